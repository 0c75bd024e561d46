"""Losses and mechanisms of kernel ridge regression, and which go together."""

from skdp._validation import shown

__all__ = ["CANDIDATES", "LOSSES", "MECHANISMS", "check_loss", "check_mechanism"]

MECHANISMS = ("auto", "gradient", "sufficient_statistics", "objective", "output")
LOSSES = ("auto", "squared", "huber")

# What "auto" chooses among, for each loss.
CANDIDATES = {
    "auto": ("gradient", "sufficient_statistics", "output"),
    "squared": ("sufficient_statistics", "output"),
    "huber": ("gradient", "output"),
}


def check_loss(model):
    """Check that the loss has a finite sensitivity."""
    if model.loss == "squared" and model.adjacency == "add-remove":
        raise ValueError(
            "loss must not be 'squared' under adjacency='add-remove': a record's residual "
            "is unbounded where the number of rows is private, so that no finite noise "
            "would do. Use loss='huber' or adjacency='replace-one'; got 'squared'."
        )


def check_mechanism(model):
    """Check that budget and loss suit the mechanism."""
    if model.mechanism in ("gradient", "sufficient_statistics") and model.delta == 0.0:
        raise ValueError(
            f"delta must be positive with mechanism={shown(model.mechanism)}, whose noise is "
            "Gaussian; use mechanism='output' for pure differential privacy; got 0."
        )
    if model.mechanism == "objective" and model.delta > 0.0:
        raise ValueError(
            "delta must be 0 with mechanism='objective', whose noise is not Gaussian; use "
            f"mechanism='gradient' for a positive delta; got {shown(model.delta)}."
        )
    if model.loss == "huber" and model.mechanism == "sufficient_statistics":
        raise ValueError(
            "loss must be 'auto' or 'squared' with mechanism='sufficient_statistics'; got 'huber'."
        )
    if model.loss == "squared" and model.mechanism in ("gradient", "objective"):
        raise ValueError(
            f"loss must be 'auto' or 'huber' with mechanism={shown(model.mechanism)}, which caps "
            "residuals; got 'squared'."
        )
