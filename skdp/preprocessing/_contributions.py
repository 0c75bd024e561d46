"""So many rows of each user, for what protects one row."""

from typing import Any

import numpy as np
from scipy import sparse

from skdp._tables import rows_of
from skdp._validation import is_whole, one_of, plain_arguments, positive_int, shown
from skdp.privacy import ADJACENCIES
from skdp.rows._users import Users, chosen_rows

__all__ = ["bound_contributions"]

_SEEDS = 2**64


@plain_arguments
def bound_contributions(
    X: Any,
    y: Any = None,
    groups: Any = None,
    max_rows: int = 1,
    *,
    adjacency: str = "replace-one",
    random_state: int = 0,
) -> tuple[Any, Any, Any]:
    """Keep at most ``max_rows`` rows of each user, for estimators that protect rows and not users.

    Privacy: which rows of a user are kept follows from a public seed, the user's id and how many
    rows the user has. So two tables that differ in all rows of one user differ afterwards in
    ``max_rows`` rows at most, and what has a ``guarantee_`` for one row of the result has
    :func:`user_guarantee(guarantee_, max_rows) <skdp.privacy.user_guarantee>` for users. The
    result itself is private, and nothing is released.

    Estimators whose ``fit`` takes ``groups`` need no such bound, and use all rows.

    Parameters
    ----------
    X : {array-like, sparse matrix, frame} of shape (n_samples, n_features)

    y : array-like of shape (n_samples,), default=None

    groups : array-like of shape (n_samples,)
        Id of the user who owns each row. Must be given.

    max_rows : int, default=1
        Rows of a user, public. The fewer, the less a guarantee for users costs: see
        :func:`~skdp.privacy.user_guarantee`.

    adjacency : {"replace-one", "add-remove"}, default="replace-one"
        Under "replace-one" every user has exactly ``max_rows`` rows in the result: who has fewer
        has them several times, since the number of rows is public, and how many rows a user has is
        not. Under "add-remove" users have at most as many. It must be that of the estimator.

    random_state : int, default=0
        Public seed of the choice. It hides nothing and makes no noise; other estimators on the
        same data may take the same.

    Returns
    -------
    X, y, groups
        Containers as given, or None. Users in the order in which they first come, each with all
        rows that are kept of theirs.

    See Also
    --------
    skdp.privacy.user_guarantee : What a guarantee for rows promises to users then.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.linear_model import DPLogisticRegression
    >>> from skdp.preprocessing import bound_contributions
    >>> from skdp.privacy import user_guarantee
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(1000, 3))
    >>> y, patient = X[:, 0] > 0, rng.integers(0, 300, 1000)
    >>> X, y, patient = bound_contributions(X, y, patient, max_rows=2)
    >>> X.shape  # of 291 patients
    (582, 3)
    >>> model = DPLogisticRegression(0.5).fit(X, y)
    >>> user_guarantee(model.guarantee_, 2).epsilon
    1.0
    """
    positive_int(max_rows=max_rows)
    one_of(ADJACENCIES, adjacency=adjacency)
    if not is_whole(random_state) or not 0 <= random_state < _SEEDS:
        raise ValueError(
            "random_state must be an integer from 0 to 2**64 - 1: the choice of rows is public; "
            f"got {shown(random_state)}."
        )
    n_samples = _length(X, "X")
    if y is not None and _length(y, "y") != n_samples:
        raise ValueError("y must have as many entries as X has rows.")
    users = Users.of(groups, n_samples)
    if users is None:
        raise ValueError("groups must hold the id of the user who owns each row; got None.")
    kept = chosen_rows(
        groups,
        users,
        max_rows=int(max_rows),
        repeat=adjacency == "replace-one",
        seed=int(random_state),
    )
    return _kept(X, kept), None if y is None else _kept(y, kept), _kept(groups, kept)


def _length(values: Any, name: str) -> int:
    shape = getattr(values, "shape", None)
    try:
        n = int(shape[0]) if shape is not None else len(values)
    except (IndexError, TypeError):
        n = 0
    if n < 1:
        raise ValueError(f"{name} must have at least one row, and be an array, frame or list.")
    return n


def _kept(values: Any, positions: np.ndarray) -> Any:
    if sparse.issparse(values) and values.format not in ("csr", "csc", "lil"):
        values = values.tocsr()  # others have no rows to take
    return rows_of(values, positions)
