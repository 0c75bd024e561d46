"""How a pipeline is shown, with the division of its budget."""

from html import escape

from sklearn.pipeline import Pipeline
from sklearn.utils import estimator_html_repr

__all__ = ["as_html"]


def as_html(pipeline):
    """HTML of the steps, as of a pipeline of scikit-learn, and of what each may spend."""
    steps = estimator_html_repr(Pipeline(list(pipeline._steps)))
    return f"<div>{steps}{_table(pipeline)}</div>"


def _table(pipeline):
    """Table of the steps that learn, their shares and their guarantees."""
    fitted = getattr(pipeline, "division_", None)
    told = (
        f"epsilon={pipeline.epsilon!r}, delta={pipeline.delta!r}"
        if fitted is None
        else str(pipeline.guarantee_)
    )
    rows = "".join(
        f"<tr><td>{escape(path)}</td><td>{share:.3g}</td><td>{escape(text)}</td></tr>"
        for path, share, text in fitted or ()
    )
    body = (
        "<thead><tr><th>step</th><th>share</th><th>guarantee</th></tr></thead>"
        f"<tbody>{rows}</tbody>"
    )
    title = escape(f"{type(pipeline).__name__}: {told}")
    return f"<table><caption>{title}</caption>{body if rows else ''}</table>"
