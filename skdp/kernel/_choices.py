"""Losses and mechanisms of kernel ridge regression, and which go together."""

from skdp._validation import shown

__all__ = ["CANDIDATES", "LOSSES", "MECHANISMS", "check_loss", "check_mechanism", "check_paper"]

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


def check_paper(model):
    """Check that the sensitivity of the paper is asked for only where it is proved."""
    if model.sensitivity != "paper":
        return
    if model.release != "query":
        raise ValueError(
            "sensitivity must be 'tight' with release='features': the paper's lemma is about the "
            "exact minimiser, and its one scalar noise protects one prediction, not a function. "
            "Use release='query'; got 'paper'."
        )
    if model.adjacency != "replace-one":
        raise ValueError(
            "sensitivity must be 'tight' under adjacency='add-remove': the paper's lemma is about "
            "a public number of rows, and where it is private the residual of a record with "
            "squared loss has no bound; got 'paper'."
        )
    if model.loss == "huber":
        raise ValueError(
            "sensitivity must be 'tight' with loss='huber': the paper's lemma is about the "
            "squared loss; got 'paper'."
        )
