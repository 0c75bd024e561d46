"""How a pipeline is shown, with the division of its budget."""

from html import escape

from sklearn.pipeline import Pipeline
from sklearn.utils import estimator_html_repr

__all__ = ["as_html", "table_of"]


def as_html(pipeline):
    """HTML of the steps, as of a pipeline of scikit-learn, and of what each may spend."""
    steps = estimator_html_repr(Pipeline(list(pipeline._steps)))
    return f"<div>{steps}{table_of(pipeline)}</div>"


def table_of(model):
    """Table of the parts of a budget: the steps that learn, their shares and their guarantees."""
    fitted = getattr(model, "division_", None)
    told = (
        f"epsilon={model.epsilon!r}, delta={model.delta!r}"
        if fitted is None
        else str(model.guarantee_)
    )
    rows = "".join(
        f"<tr><td>{escape(path)}</td><td>{share:.3g}</td><td>{escape(text)}</td></tr>"
        for path, share, text in fitted or ()
    )
    body = (
        "<thead><tr><th>step</th><th>share</th><th>guarantee</th></tr></thead>"
        f"<tbody>{rows}</tbody>"
    )
    title = escape(f"{type(model).__name__}: {told}")
    return f"<table><caption>{title}</caption>{body if rows else ''}</table>"
