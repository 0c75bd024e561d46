"""So many rows of each user, and what a guarantee for rows is worth to users then."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from support.releases import transcript

from skdp.kernel import DPKernelRidge
from skdp.preprocessing import bound_contributions
from skdp.privacy import user_guarantee


def problem(n_users=50, seed=0):
    rng = np.random.default_rng(seed)
    ids = rng.permutation(np.repeat(np.arange(n_users), rng.integers(1, 12, n_users)))
    X = rng.uniform(-1.0, 1.0, (len(ids), 3))
    return X, (X[:, 0] > 0).astype(int), ids


@pytest.mark.parametrize("max_rows", [1, 3, 20])
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_users_have_so_many_rows(adjacency, max_rows):
    X, y, ids = problem()
    table = pd.DataFrame(X)
    table["y"], table["id"] = y, ids
    rows, labels, owners = bound_contributions(X, y, ids, max_rows, adjacency=adjacency)
    counts = pd.Series(owners).value_counts()
    before = pd.Series(ids).value_counts()
    if adjacency == "replace-one":
        assert (counts == max_rows).all()
    else:
        assert (counts == np.minimum(before, max_rows)[counts.index]).all()
    kept = pd.DataFrame(rows)
    kept["y"], kept["id"] = labels, owners
    merged = kept.drop_duplicates().merge(table)  # rows belong together as they did
    assert len(merged) == len(kept.drop_duplicates()) == np.minimum(before, max_rows).sum()


def test_all_rows_of_a_user_are_so_many_rows_apart():
    X, y, ids = problem()
    rng = np.random.default_rng(1)
    for user in (0, 20, 49):
        for count in (1, 5, 50):
            place = int(np.flatnonzero(ids == user)[0])  # where the user comes first is public
            rest = ids != user
            at = int(rest[:place].sum())
            there = (
                np.insert(X[rest], at, rng.normal(size=(count, 3)), axis=0),
                np.insert(y[rest], at, np.ones(count, dtype=int)),
                np.insert(ids[rest], at, np.full(count, user)),
            )
            for max_rows in (1, 4):
                here, again = (
                    bound_contributions(*data, max_rows) for data in ((X, y, ids), there)
                )
                assert_array_equal(here[2], again[2])
                changed = (here[0] != again[0]).any(axis=1) | (here[1] != again[1])
                assert set(here[2][changed]) <= {user}
                assert changed.sum() <= max_rows
                # Removed, or there with few rows: what all others have is as it was.
                here, gone = (
                    bound_contributions(*data, max_rows, adjacency="add-remove")
                    for data in ((X, y, ids), (X[rest], y[rest], ids[rest]))
                )
                mine = here[2] == user
                assert mine.sum() <= max_rows
                assert_array_equal(here[0][~mine], gone[0])


@pytest.mark.parametrize("max_rows", [1, 3])
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_a_fit_on_bounded_rows_keeps_its_promise_to_users(adjacency, max_rows):
    # Rows whose targets turn around, of a user who has more than are kept.
    counts = np.append(8, 1 + np.arange(3000) % 3)
    ids = np.repeat(np.arange(3001), counts)
    X = np.zeros((len(ids), 2))
    X[:, 0] = 1.0
    here = np.where(ids == 0, 1.0, 0.0)
    worlds = [(X, here, ids), (X, -here, ids)]
    if adjacency == "add-remove":
        worlds[1] = X[8:], here[8:], ids[8:]

    def fit(X, y, ids):
        model = DPKernelRidge(1.0, 1e-5, kernel="linear", residual_cap=0.05, y_bounds=(-1.0, 1.0))
        model.set_params(mechanism="gradient", adjacency=adjacency)
        X, y, _ = bound_contributions(X, y, ids, max_rows, adjacency=adjacency)
        return model.fit(X, y).guarantee_

    first, guarantee = transcript(lambda: fit(*worlds[0]))
    again, _ = transcript(lambda: fit(*worlds[1]), replay=first)
    lost = np.hypot.reduce(
        [np.linalg.norm(a.asked - b.asked) / a.scale for a, b in zip(first, again, strict=True)]
    )
    claim = user_guarantee(guarantee, max_rows)
    assert claim.unit == "user"
    assert 0.85 * claim.refined.mu < lost <= claim.refined.mu
    assert max_rows == 1 or lost > guarantee.refined.mu  # that of a row would not do


@pytest.mark.parametrize(
    "container",
    [
        sparse.csr_array,
        sparse.coo_matrix,
        np.ndarray.tolist,
        pd.DataFrame,
        lambda X: pytest.importorskip("polars").DataFrame(X, schema=["a", "b", "c"]),
    ],
    ids=["csr", "coo", "list", "pandas", "polars"],
)
def test_tables_stay_of_their_kind(container):
    X, y, ids = problem()
    expected = bound_contributions(X, y, ids, 2)
    as_given = container(X)
    rows, _, owners = bound_contributions(as_given, pd.Series(y), pd.Series(ids), 2)
    if sparse.issparse(rows):
        assert sparse.issparse(as_given)
        rows = rows.toarray()
    else:
        assert type(rows) is type(as_given)
    assert_array_equal(np.asarray(rows), expected[0])
    assert isinstance(owners, pd.Series)
    assert_array_equal(owners, expected[2])


@pytest.mark.parametrize(
    "options, message",
    [
        (dict(groups=None), "groups must hold the user ID of each row; got None"),
        (dict(groups=[1, 2]), "groups must hold one ID per row"),
        (dict(max_rows=0), "max_rows must be a positive int; got 0"),
        (dict(max_rows=1.5), "max_rows must be a positive int; got 1.5"),
        (dict(adjacency="none"), "adjacency must be one of"),
        (dict(random_state=None), "random_state must be an integer .*public; got None"),
        (dict(random_state=-1), "random_state must be an integer .*public; got -1"),
        (dict(y=[1]), "y must have one entry per row of X"),
        (dict(X=np.empty((0, 2))), "X must have at least one row"),
        (dict(X=5), "X must have at least one row"),
    ],
)
def test_slips_are_named(options, message):
    X, y, ids = problem()
    with pytest.raises(ValueError, match=message):
        bound_contributions(**dict(X=X, y=y, groups=ids) | options)
