"""Kernel ridge regression for users: all rows of one are replaced, and nothing counts them."""

import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn import config_context as sklearn_config
from sklearn.pipeline import make_pipeline
from support.insides import Users, noise_source
from support.problems import LAYOUTS
from support.problems import feature_blocks as blocks
from support.releases import transcript
from support.statistics import composed, name, strength

from skdp.exceptions import SolverError
from skdp.features import fourier_features
from skdp.kernel import DPKernelRidge
from skdp.preprocessing import BoundedScaler
from skdp.privacy import ApproxDP, BudgetLedger, GaussianDP
from skdp.releases import FeatureDescent, FeatureStatistics, _feature_descent
from skdp.solvers.feature_rows import FeatureBlocks, IntegerFeatureBlocks, NormalisedRows
from skdp.solvers.feature_whitening import Whitening

ADJACENCIES = ["replace-one", "add-remove"]
KINDS = [FeatureBlocks, IntegerFeatureBlocks]
LINEAR = NormalisedRows(6, 2.0)
# More inputs than frequencies: phases can be chosen.
FOURIER = fourier_features("rbf", 40, n_components=12, gamma=0.5, random_state=0)
FEATURES = pytest.mark.parametrize("features", [LINEAR, FOURIER], ids=["linear", "fourier"])
COUNTS = pytest.mark.parametrize("counts", [(1, 1), (1, 50), (50, 7), (13, 13), (2, 3000)])


def users_of(counts):
    """Owners of rows that stand one user after another."""
    return Users.of(np.repeat(np.arange(len(counts)), counts), int(np.sum(counts)))


def row_of(features, kind):
    """A row, far away where features allow it, with features "here", "opposite" or "across"."""
    if features is LINEAR:
        axes = np.linalg.qr(np.random.default_rng(1).normal(size=(6, 6)))[0]
        return {"here": 1e6 * axes[0], "opposite": -1e300 * axes[0], "across": 1e6 * axes[1]}[kind]
    turn = {"here": 0.0, "opposite": math.pi, "across": math.pi / 2}[kind]
    return np.linspace(-1.0, 1.0, 40) + np.linalg.pinv(features.frequencies) @ np.full(6, turn)


def worlds(features, adjacency, counts, *, other="here", target=-1.0, layout="dense", pull=0.0):
    """Three thousand users alike, of one to three rows, and one whose target they do not reach.

    The first user has ``counts[0]`` rows. They are replaced by ``counts[1]`` others, or removed.
    """
    row = row_of(features, "here")
    others = 1 + np.arange(3000) % 3
    n = int(others.sum())

    def world(kind, value, count):
        X = np.vstack([np.tile(row_of(features, kind), (count, 1)), np.tile(row, (n, 1))])
        y = np.append(np.full(count, value), np.full(n, pull))
        sizes = [count, *others] if count else others
        return blocks(features, X, y, layout, users=users_of(sizes))

    if adjacency == "add-remove":
        return world("here", 1.0, counts[0]), world("here", 1.0, 0)
    return world("here", 1.0, counts[0]), world(other, target, counts[1])


def shares_of(here, there, solve, guarantee):
    """What neighbours use up of each release that is declared, given the same outputs so far."""
    first, result = transcript(lambda: solve(here))
    second, same = transcript(lambda: solve(there), replay=first)
    assert_array_equal(result, same)  # nothing but what is released goes in
    assert len(first) == len(second)
    distances, budgets = [], []
    for a, b in zip(first, second, strict=True):
        assert (a.scale, a.law, a.sensitivity, a.step) == (b.scale, b.law, b.sensitivity, b.step)
        assert a.asked.shape == b.asked.shape
        distances.append(np.linalg.norm(a.asked - b.asked) / a.scale)
        budgets.append(strength(a.law.guarantee))
    assert_allclose(composed(budgets, guarantee), strength(guarantee), rtol=1e-9)
    assert (np.array(distances) <= budgets).all()
    assert composed(distances, guarantee) <= strength(guarantee)
    return np.array(distances) / budgets, first


# What is released, and how far all rows of a user move it.


@COUNTS
@FEATURES
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_all_rows_of_a_user_move_a_descent_as_far_as_declared_and_no_farther(
    adjacency, features, counts
):
    guarantee = GaussianDP(2.0, adjacency=adjacency)
    here, there = worlds(features, adjacency, counts)

    def solve(data):
        return FeatureDescent(guarantee, guarantee, 0.04)(data, noise_source(0))[0]

    shares, releases = shares_of(here, there, solve, guarantee)
    size = here.n_features
    gradients = [s for s, r in zip(shares, releases, strict=True) if r.asked.shape == (size,)]
    assert len(gradients) == 48
    assert min(gradients) > 0.96
    if adjacency == "add-remove":  # the count, cells, targets and second moments move as well
        assert min(shares[[0, 1, 3]]) > 0.96
        assert shares[2] > 0.88  # the centre of the window is nearer to this end of the targets
        assert releases[0].asked == 3001.0  # users, of whom there are 6003 rows and more


@COUNTS
@FEATURES
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_all_rows_of_a_user_move_noisy_statistics_as_far_as_declared(adjacency, features, counts):
    guarantee = GaussianDP(2.0, adjacency=adjacency)
    here, there = worlds(features, adjacency, counts, other="across")

    def solve(data):
        return FeatureStatistics(guarantee, guarantee, 3.0)(data, noise_source(0))[0]

    (gram, _), _ = shares_of(here, there, solve, guarantee)
    assert gram > 0.98
    here, there = worlds(features, adjacency, counts)  # the same rows, whose targets turn around
    (_, products), _ = shares_of(here, there, solve, guarantee)
    assert products > 0.98


def hostile(rng, n_rows):
    """Rows of a user that may be alike or not, far, zero, at the bounds."""
    X = rng.normal(size=(n_rows, 3)) * rng.choice([0.0, 1.0, 1e8], size=(n_rows, 1))
    y = rng.choice([-1e9, -1.0, 0.0, 1.0, 1e9], size=n_rows)
    if rng.random() < 0.5:
        X[:], y[:] = X[0], y[0]
    return X, y


FITS = [
    dict(mechanism="gradient"),
    dict(mechanism="gradient", adjacency="add-remove"),
    dict(mechanism="gradient", kernel="linear", residual_cap=0.05),
    dict(mechanism="gradient", alpha=5.0, kernel="laplacian", adjacency="add-remove"),
    dict(mechanism="sufficient_statistics"),
    dict(mechanism="sufficient_statistics", kernel="linear", adjacency="add-remove"),
]


@pytest.mark.filterwarnings("ignore:random_state is set")
@pytest.mark.parametrize("options", FITS, ids=name)
def test_fits_on_neighbours_differ_in_values_alone_and_stay_below_the_claim(options):
    rng = np.random.default_rng(5)
    counts = rng.integers(1, 51, 60)
    ids = np.repeat(np.arange(60), counts)
    X, y = rng.uniform(-1.0, 1.0, (len(ids), 3)), rng.uniform(-1.0, 1.0, len(ids))
    ledger = BudgetLedger(epsilon=1e6, delta=0.5)
    params = dict(n_components=20, y_bounds=(-1.0, 1.0), ledger=ledger) | options
    params["random_state"] = 4  # of the features

    def fit(X, y, ids):
        model = DPKernelRidge(1.0, 1e-5, **params).fit(X, y, groups=ids)
        public = {key: value for key, value in vars(model).items() if key.endswith("_")}
        released = public.pop("coef_"), public.pop("intercept_")
        return released, public

    first, ((coef, intercept), public) = transcript(lambda: fit(X, y, ids))
    claim = public["guarantee_"]
    assert (claim.unit, claim.refined.unit) == ("user", "user")
    adjacency = claim.adjacency
    for i in range(12):
        user = (0, 31, 59)[i % 3]
        rest = ids != user
        new, values = hostile(rng, (1, 50, 4)[i % 3])
        if adjacency == "add-remove" and i % 2:
            new, values = new[:0], values[:0]
        elif adjacency == "add-remove":
            rest = np.full(len(ids), True)
            user = 60
        place = int(np.searchsorted(ids[rest], user))
        there = (
            np.insert(X[rest], place, new, axis=0),
            np.insert(y[rest], place, values),
            np.insert(ids[rest], place, np.full(len(values), user)),
        )
        again, (released, other) = transcript(lambda there=there: fit(*there), replay=first)
        losses = [
            np.linalg.norm(a.asked - b.asked) / a.scale if a.asked.shape == b.asked.shape else 9e9
            for a, b in zip(first, again, strict=True)
        ]
        assert math.hypot(*losses) <= claim.refined.mu * (1 + 1e-9)
        assert_array_equal(released[0], coef)
        assert released[1] == intercept
        assert {key: str(value) for key, value in other.items()} == {
            key: str(value) for key, value in public.items()
        }
    charges = {record.guarantee.with_caveats() for record in ledger.history()}
    assert len(charges) == 1
    assert charges.pop()._plain("user") == claim._plain("user")


# Sums over users.


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", KINDS)
def test_sums_over_users_are_those_of_the_means_of_their_rows(kind, layout):
    rng = np.random.default_rng(2)
    n = 2600
    ids = rng.integers(0, 90, n)
    X, targets = rng.normal(size=(n, 3)), rng.uniform(-1.0, 1.0, n)
    features = fourier_features("rbf", 3, n_components=10, gamma=0.7, random_state=1)
    data = kind(LAYOUTS[layout](X), targets, features, users=Users.of(ids, n))
    assert (data.n_units, data.n_samples) == (90, n)
    Z = np.vstack([rows for rows, _ in kind(X, targets, features).blocks])
    weights = rng.normal(size=10)

    def mean(rows):
        """Sum over users of the means of their rows, by no way of the code's."""
        return sum(np.mean(rows[ids == user], axis=0) for user in range(90))

    residuals = Z @ weights - targets
    capped, error = data.capped_sum(weights, 0.4)
    exact = mean(Z * np.clip(residuals, -0.4, 0.4)[:, np.newaxis])
    assert np.linalg.norm(capped - exact) <= error + n * 0.4 * 2.0**-24
    scores, error = data.score_sum(weights, 0.3)
    assert abs(scores - mean(np.clip(Z @ weights, -0.3, 0.3))) <= error + n * 0.3 * 2.0**-24
    sums, error = data.target_moments()
    assert_allclose(sums, [mean(targets), mean(targets**2)], atol=error, rtol=0)
    moments, error = data.second_moments()
    products = np.einsum("ij,ik->ijk", Z, Z)
    assert_array_equal(moments, moments.T)
    assert error < 1e-3
    assert np.linalg.norm(moments - mean(products)) <= error + 1e-12
    shift = data.centred(0.25)
    assert_allclose(shift.target_moments()[0][0], sums[0] - 0.25 * 90, rtol=1e-12)
    with pytest.raises(ValueError, match="Rows with owners"):
        next(iter(data.blocks))


@pytest.mark.parametrize("kind", KINDS)
def test_no_mean_of_limited_rows_is_longer_than_a_row_may_be(kind):
    rng = np.random.default_rng(4)
    counts = [*range(1, 51), 999, 100_000]
    n = sum(counts)
    users = users_of(counts)
    X, targets = rng.normal(size=(n, 3)) * rng.choice([0.1, 10.0], (n, 1)), np.zeros(n)
    features = fourier_features("rbf", 3, n_components=8, gamma=1.0, random_state=1)
    if kind is FeatureBlocks:
        features = NormalisedRows(3, 1.0)
    data = kind(X, targets, features, users=users)
    size = data.n_features
    vectors = np.linalg.qr(rng.normal(size=(size, size)))[0][:, :2]
    whitening = Whitening.of(np.array([0.9, 0.3]), vectors, 0.01)
    limits = data.residual_limits(whitening, 0.5)
    start, biggest = 0, 0.0
    for i, (rows, _) in enumerate(data._converted()):
        block = limits.whole[data._block(i)]
        _, most = data._shared(i, slice(None), np.zeros(len(rows)), block)
        lengths = np.linalg.norm(
            np.array([whitening.apply(row) for row in rows[:64] * data.unit]), axis=1
        )
        whole = limits.whole[data._block(i)]
        assert (lengths * whole[:64] * limits.unit <= 0.5).all()
        for limit, each, code in zip(most, whole, users.codes[start:], strict=False):
            # A user's rows have at most one over their number of what each may have alone.
            assert Fraction(limit) * counts[code] <= Fraction(each)
            if each > 2**12 * counts[code]:
                biggest = max(biggest, 1.0 - limit * counts[code] / each)
        start += len(rows)
    assert 0.0 < biggest < 2.0**-11


@pytest.mark.parametrize("kind", KINDS)
def test_sums_over_users_do_not_depend_on_the_order_of_rows(kind):
    rng = np.random.default_rng(6)
    n = 3000
    ids = rng.integers(0, 200, n)
    X, targets = rng.normal(size=(n, 3)), rng.uniform(-1.0, 1.0, n)
    features = fourier_features("rbf", 3, n_components=12, gamma=1.0, random_state=3)
    weights, order = 1e3 * rng.normal(size=12), rng.permutation(n)
    whitening = Whitening.of(np.array([0.5]), np.eye(12)[:, :1], 0.02)
    found = []
    for rows in (np.arange(n), order):
        data = kind(X[rows], targets[rows], features, users=Users.of(ids[rows], n))
        limits = data.residual_limits(whitening, 0.5)
        found.append([data.whitened_sum(weights, whitening, limits)[0]])
        found[-1] += [data.capped_sum(weights, 0.5)[0], data.score_sum(weights, 0.5)[0]]
    for here, there in zip(*found, strict=True):
        assert_array_equal(here, there)


def test_long_sums_over_users_are_exact():
    # 2**27 users of one row each, by passing blocks many times: longer than an int64.
    data = blocks(LINEAR, np.full((1024, 6), 2.0), -np.ones(1024), users=users_of([1] * 1024))
    made = next(data._made())
    few = data.capped_sum(np.zeros(6), 1.0)[0]
    data._made = lambda: iter([made] * 2000)
    data.shares = data.shares * 2000
    assert_allclose(data.capped_sum(np.zeros(6), 1.0)[0], 2000 * few, rtol=2.0**-52)
    high = np.array([2.0**62 - 1.0])
    assert int(high[0]) >> 32 == 2**30  # halves of a sum are whole


# The estimator.


def problem(n_users=400, seed=0):
    rng = np.random.default_rng(seed)
    ids = np.repeat(np.arange(n_users), rng.integers(1, 9, n_users))
    ids = rng.permutation(ids)
    X = rng.uniform(-1.0, 1.0, (len(ids), 2))
    return X, np.sin(3.0 * X[:, 0]) * X[:, 1], ids


MODEL = DPKernelRidge(2.0, 1e-5, n_components=40, y_bounds=(-1.0, 1.0))


@pytest.mark.parametrize("mechanism", ["gradient", "sufficient_statistics"])
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_users_of_equal_rows_count_as_one_row_each(mechanism, kernel):
    X, y, _ = problem()
    model = DPKernelRidge(2.0, 1e-5, kernel=kernel, mechanism=mechanism, y_bounds=(-1.0, 1.0))
    model.set_params(n_components=40, random_state=3)
    alone = model.fit(X, y).coef_
    order = np.random.default_rng(0).permutation(np.repeat(np.arange(len(X)), 3))
    order = np.concatenate([np.arange(len(X)), order])  # first come in the order of the rows
    again = model.fit(X[order], y[order], groups=order)
    assert_allclose(again.coef_, alone, atol=2e-3 * np.linalg.norm(alone))
    assert again.guarantee_.unit == "user"


def test_a_fit_for_users_learns_with_all_of_their_rows():
    X, y, ids = problem(4000)
    there, values, _ = problem(300, seed=1)
    model = DPKernelRidge(1.0, 1e-6, y_bounds=(-1.0, 1.0)).fit(X, y, groups=ids)
    assert model.score(there, values) > 0.85
    # By the rule, from the number of users, which is public, and not of rows.
    rows = DPKernelRidge(1.0, 1e-6, y_bounds=(-1.0, 1.0)).fit(X, y)
    first = DPKernelRidge(1.0, 1e-6, y_bounds=(-1.0, 1.0)).fit(X[:4000], y[:4000])
    assert model.coef_.shape == first.coef_.shape != rows.coef_.shape


@pytest.mark.parametrize(
    "kind",
    [
        lambda ids: ids.tolist(),
        lambda ids: pd.Series(ids, index=ids[::-1]),
        lambda ids: pd.Series([f"id {one}" for one in ids], dtype="category"),
        lambda ids: np.array([(one, "x") for one in ids] + [None], dtype=object)[:-1],
        lambda ids: np.datetime64("2020-01-01") + ids,
        lambda ids: pytest.importorskip("polars").Series(ids),
    ],
    ids=["list", "series", "category", "tuples", "dates", "polars"],
)
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array, pd.DataFrame])
def test_ids_and_rows_come_in_any_container(kind, container):
    X, y, ids = problem(60)
    model = DPKernelRidge(2.0, 1e-5, kernel="linear", y_bounds=(-1.0, 1.0), random_state=0)
    expected = model.fit(X, y, ids).coef_
    if container is pd.DataFrame:
        model.fit(pd.DataFrame(X, columns=["a", "b"]), pd.Series(y), groups=kind(ids))
    else:
        model.fit(container(X), y, groups=kind(ids))
    assert_allclose(model.coef_, expected, rtol=1e-9)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_bounds_of_the_target_see_one_row_of_each_user(adjacency):
    X, y, ids = problem(4000)
    many = np.full(5000, 90.0)  # of one user, against all others together
    X, y = np.vstack([X, np.zeros((5000, 2))]), np.append(y, many)
    ids = np.append(ids, np.full(5000, 4000))
    model = DPKernelRidge(2.0, 1e-5, y_bounds="auto", adjacency=adjacency, n_components=30)
    model.fit(X, y, groups=ids)
    assert model.y_bounds_[1] < 3.0 and model.guarantee_.unit == "user"
    assert model.guarantee_.epsilon == 2.0
    assert model.guarantee_.delta_at(2.0) <= 1e-5
    model.fit(X, y)  # rows: a user of many has them all
    assert model.y_bounds_[1] > 80.0


def test_rules_read_the_number_of_users():
    X, y, ids = problem(3000)
    rule = DPKernelRidge("auto", 1e-5, y_bounds=(-1.0, 1.0), n_components=10)
    assert (
        rule.fit(X, y, groups=ids).guarantee_.epsilon
        == rule.fit(X[:3000], y[:3000]).guarantee_.epsilon
        != rule.fit(X, y).guarantee_.epsilon
    )


@pytest.mark.parametrize(
    "options, message",
    [
        (dict(release="query", n_queries=5), r"groups .* release='query'.*bound_contributions"),
        (dict(delta=0.0), r"groups .* delta=0.*bound_contributions"),
        (dict(mechanism="output"), r"groups .* mechanism='output'.*bound_contributions"),
    ],
)
def test_what_is_no_sum_over_records_refuses_users_before_the_charge(options, message):
    X, y, ids = problem(50)
    ledger = BudgetLedger(epsilon=9.0, delta=1e-3)
    model = DPKernelRidge(1.0, 1e-5, y_bounds=(-1.0, 1.0), ledger=ledger).set_params(**options)
    with pytest.raises(ValueError, match=message):
        model.fit(X, y, groups=ids)
    assert not ledger.history() and not hasattr(model, "guarantee_")


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("loss", ["auto", "huber", "squared"])
def test_the_automatic_mechanism_is_one_for_users(loss, adjacency):
    X, y, ids = problem(40)  # few: for rows it might be output noise
    if (loss, adjacency) == ("squared", "add-remove"):
        return
    model = DPKernelRidge(0.3, 1e-5, y_bounds=(-1.0, 1.0), loss=loss, adjacency=adjacency)
    told = model.fit(X, y, groups=ids).guarantee_.mechanism
    assert (
        told
        in {
            "auto": (
                "noisy gradient descent on random features",
                "noisy sufficient statistics of random features",
            ),
            "huber": ("noisy gradient descent on random features",),
            "squared": ("noisy sufficient statistics of random features",),
        }[loss]
    )


@pytest.mark.parametrize("bad", [[1, 2], [[1]] * 200, "ids", None])
def test_ids_that_are_none_are_refused_and_not_shown(bad):
    X, y, ids = problem(50)
    if bad is None:
        bad = [*ids[:-1].tolist(), None]
    ledger = BudgetLedger(epsilon=9.0, delta=1e-3)
    model = DPKernelRidge(1.0, 1e-5, y_bounds=(-1.0, 1.0), ledger=ledger)
    with pytest.raises(ValueError, match="groups must") as caught:
        model.fit(X, y, groups=bad)
    assert not any(str(number) in str(caught.value) for number in (len(ids), 17, 23))
    assert not ledger.history()


def test_ids_without_a_text_are_refused_before_the_charge():
    class Person(int):
        __hash__ = int.__hash__
        __str__, __repr__ = object.__str__, object.__repr__

    X, y, ids = problem(1500)
    groups = np.empty(len(ids), dtype=object)
    groups[:] = [Person(one) for one in ids]
    ledger = BudgetLedger(epsilon=20.0, delta=1e-3)
    model = DPKernelRidge(10.0, 1e-6, y_bounds="auto", adjacency="add-remove", ledger=ledger)
    with pytest.raises(ValueError, match="a text of their own"):
        model.fit(X, y, groups=groups)
    assert not ledger.history()


def test_a_ledger_keeps_users_and_rows_apart():
    X, y, ids = problem(100)
    ledger = BudgetLedger(epsilon=9.0, delta=1e-3)
    model = DPKernelRidge(1.0, 1e-5, y_bounds=(-1.0, 1.0), ledger=ledger, n_components=10)
    model.fit(X, y, groups=ids)
    with pytest.raises(ValueError, match="differ in one user; got replace-one and record"):
        model.fit(X, y)
    assert [record.guarantee.unit for record in ledger.history()] == ["user"]
    assert model.guarantee_.unit == "user"  # the old model is whole
    assert ledger.spent().unit == "user"


def test_a_failed_fit_leaves_the_old_model_and_the_charge(monkeypatch):
    X, y, ids = problem(100)
    ledger = BudgetLedger(epsilon=9.0, delta=1e-3)
    model = DPKernelRidge(1.0, 1e-5, y_bounds=(-1.0, 1.0), ledger=ledger, n_components=10)
    before = model.fit(X, y, groups=ids).coef_
    monkeypatch.setattr(
        _feature_descent, "certified", lambda *given: (_ for _ in ()).throw(SolverError("no"))
    )
    model.mechanism = "gradient"
    with pytest.raises(SolverError):
        model.fit(X, y, groups=ids)
    assert model.coef_ is before and len(ledger.history()) == 2


def test_ids_are_routed_through_a_pipeline_of_scikit_learn():
    X, y, ids = problem(100)
    with sklearn_config(enable_metadata_routing=True):
        model = DPKernelRidge(1.0, 1e-5, y_bounds=(-1.0, 1.0), n_components=10)
        steps = make_pipeline(BoundedScaler((-1, 1)), model.set_fit_request(groups=True))
        assert steps.fit(X, y, groups=ids)[-1].guarantee_.unit == "user"


def test_the_guarantee_is_what_was_asked_for():
    X, y, ids = problem(100)
    for adjacency in ADJACENCIES:
        claim = MODEL.set_params(adjacency=adjacency, ledger=None).fit(X, y, ids).guarantee_
        assert (claim.epsilon, claim.delta) == (2.0, 1e-5)
        assert (claim.unit, claim.adjacency) == ("user", adjacency)
        assert (
            claim.refined
            == ApproxDP(2.0, 1e-5, adjacency=adjacency, unit="user").gaussian_target()
        )


@pytest.mark.parametrize("y_bounds", [(-1.0, 1.0), "auto"])
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("options", [{}, dict(loss="squared"), dict(kernel="linear")], ids=name)
def test_a_fit_for_users_is_charged_as_planned(options, adjacency, y_bounds):
    if (options.get("loss"), adjacency) == ("squared", "add-remove"):
        return
    X, y, ids = problem(1500)
    model = DPKernelRidge(2.0, 1e-6, adjacency=adjacency, y_bounds=y_bounds, **options)
    planned = model._planned_for_users(2)
    fitted = model.fit(X, y, groups=ids).guarantee_
    assert planned._plain("user") == fitted._plain("user")
    assert planned.unit == fitted.unit == "user"


def test_numbers_of_rows_are_in_no_error():
    X, y, ids = problem(1500)
    for given in ((X, y[:-1], ids), (X, y, ids[:-1])):
        with pytest.raises(ValueError) as caught:
            MODEL.fit(given[0], given[1], groups=given[2])
        assert str(len(X)) not in str(caught.value)
        assert str(len(X) - 1) not in str(caught.value)
    few = DPKernelRidge(0.01, 1e-6, y_bounds="auto")
    with pytest.raises(ValueError, match="y_bounds='auto' with 40 users") as caught:
        few.fit(X[ids < 40], y[ids < 40], groups=ids[ids < 40])
