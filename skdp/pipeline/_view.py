"""How a budget that is divided is shown."""

from skdp._views import table

__all__ = ["budget_of", "table_of"]


def budget_of(model):
    """Budget of what is not fitted."""
    delta = getattr(model, "delta", 0.0)
    return f"Budget of one fit: epsilon={model.epsilon!r}, delta={delta!r}, {model.adjacency}"


def table_of(model):
    """Table of the parts of a budget: the steps that learn, their shares and their guarantees."""
    rows = [(path, f"{share:.3g}", text) for path, share, text in model.division_]
    return table(
        ("step", "share", "guarantee"), rows, caption="How the budget is divided", numbers=(1,)
    )
