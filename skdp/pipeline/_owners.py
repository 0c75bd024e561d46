"""Users instead of rows in a pipeline: which steps learn from them, and whose guarantees fit."""

from sklearn.utils.validation import has_fit_parameter

from skdp._validation import shown
from skdp.pipeline._order import leaves_of
from skdp.rows._users import Users

__all__ = ["check_for_users", "check_one_unit", "for_users", "owners_of"]

_WAYS_OUT = (
    "State what is public (BoundedScaler, given categories), freeze a step that was fitted for "
    "users, or leave groups out and bound how many rows each user has: "
    "skdp.preprocessing.bound_contributions"
)


def owners_of(groups, n_samples):
    """Users by a parameter ``groups``, or None.

    Parameters
    ----------
    groups : array-like of shape (n_samples,), or None

    n_samples : int or None
        None where the rows do not say it.

    Returns
    -------
    Users or None
    """
    if groups is not None and n_samples is None:
        n_samples = len(groups) if hasattr(groups, "__len__") else 0
    return Users.of(groups, n_samples)


def check_for_users(steps, node):
    """Check that nothing but the last step learns from the rows of users, and that it can.

    Parameters
    ----------
    steps : list of (str, estimator)

    node : Node
    """
    last = steps[-1][0]
    for leaf in leaves_of(node):
        what = f"Step {leaf.path!r}, a {type(leaf.estimator).__name__},"
        if leaf.guarantee is not None:
            continue
        if leaf.around is not None:
            raise ValueError(
                "groups must be None where another estimator stands around the one that learns: "
                f"the fit of a {type(leaf.around[1]).__name__} takes none; "
                f"got {shown(leaf.around[1])}."
            )
        if leaf.path != last:
            raise ValueError(
                f"groups must be None where a step learns that is not the last one: {what} has a "
                f"guarantee for records, which does not compose with one for users. {_WAYS_OUT}; "
                f"got {shown(leaf.estimator)}."
            )
        if not has_fit_parameter(leaf.estimator, "groups"):
            raise ValueError(
                f"groups must be None where the last step takes none: {what} has a guarantee for "
                "records. Bound how many rows each user has instead: "
                f"skdp.preprocessing.bound_contributions; got {shown(leaf.estimator)}."
            )


def for_users(node):
    """Let steps that were frozen before they learned anything be those of users."""
    for leaf in leaves_of(node):
        if leaf.guarantee is not None and leaf.guarantee.delta_at(0.0) == 0.0:
            caveats = leaf.guarantee.caveats
            leaf.guarantee = leaf.guarantee._plain("user").with_caveats(*caveats)


def check_one_unit(guarantees, unit=None):
    """Refuse guarantees for records beside guarantees for users: neither follows from the other.

    Parameters
    ----------
    guarantees : iterable of (str, Guarantee)
        With the steps whose they are.

    unit : str, default=None
        That of what else is composed with them; None is that of the first.
    """
    for path, guarantee in guarantees:
        unit = guarantee.unit if unit is None else unit
        if guarantee.unit == unit:
            continue
        raise ValueError(
            f"Step {path!r} has a guarantee for one {guarantee.unit}, and other steps have one "
            f"for one {unit}: they do not compose. Fit all with groups, or none."
        )
