"""Losses and mechanisms of kernel ridge regression, and which go together."""

from skdp._validation import shown

__all__ = [
    "LOSSES",
    "MECHANISMS",
    "check_loss",
    "check_mechanism",
    "check_paper",
    "check_users",
]

MECHANISMS = ("auto", "gradient", "sufficient_statistics", "objective", "output")
LOSSES = ("auto", "squared", "huber")

# Those that release sums over records, which are as well sums over users of their rows' means.
OF_USERS = ("gradient", "sufficient_statistics")


def check_users(model):
    """Check that all which is released is a sum over records, where they have owners."""
    instead = (
        "or give each user at most so many rows by skdp.preprocessing.bound_contributions; "
        "got ids of users."
    )
    if model.release == "query":
        raise ValueError(
            "groups must be None with release='query', whose noise is for one row's change of an "
            f"exact minimiser. Use release='features' with a positive delta, {instead}"
        )
    if model.delta == 0.0:
        raise ValueError(
            "groups must be None with delta=0, where a random term in the objective protects one "
            f"row. Use a positive delta, {instead}"
        )
    if model.mechanism not in ("auto", *OF_USERS):
        raise ValueError(
            f"groups must be None with mechanism={shown(model.mechanism)}, whose noise is for one "
            f"row's change of a minimiser. Use mechanism='gradient', {instead}"
        )


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
