"""DPOnlineKernelRegressor as its users and its attackers see it.

Where a bound has to be exact, the kernel is the linear one: its features are the rows, and a row
of zeros is a null record, which keeps its time and contributes nothing. Where noise would hide
it, all draws are replaced by one number, and their laws and scales are noted.
"""

import copy
import math
import pickle
import threading
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks
from support.memory import arrays_in
from support.noise import Constant
from support.problems import surface as problem
from support.statistics import name

from skdp.exceptions import BudgetExceededError, StaleStreamError
from skdp.kernel import DPOnlineKernelRegressor, ReleasedKernelRegressor
from skdp.kernel._online._fed_back import FedBackRelease
from skdp.kernel._online._final import FinalRelease
from skdp.kernel._online._matrix import MatrixRelease, TreeRelease
from skdp.kernel._online._query import QueryRelease
from skdp.kernel._online._sensitivity import created_distances
from skdp.mechanisms import Lattice, released_values
from skdp.privacy import BudgetLedger, gaussian_delta, gaussian_mu
from skdp.rows import kernel_matrix

ESTIMATORS = [
    DPOnlineKernelRegressor(),
    DPOnlineKernelRegressor(
        release="sgd", residual="ball", delta=1e-5, kernel="linear", y_bounds=(-1.0, 1.0)
    ),
    DPOnlineKernelRegressor(release="tree", horizon=10_000, n_components=20, y_bounds=(-1.0, 1.0)),
    DPOnlineKernelRegressor(
        release="matrix", delta=1e-5, horizon=10_000, n_components=20, y_bounds=(-1.0, 1.0)
    ),
    DPOnlineKernelRegressor(
        release="query", n_queries=10_000, residual="plain", kernel="matern", y_bounds=(-1.0, 1.0)
    ),
]

# One of each release, and each residual, with both noises and relations.
RELEASES = [
    dict(release="final", delta=1e-5, n_components=20),
    dict(release="final", residual="plain", n_components=20, adjacency="add-remove"),
    dict(release="sgd", residual="ball", n_components=20, adjacency="add-remove"),
    dict(release="tree", delta=1e-5, n_components=20, horizon=3000),
    dict(release="matrix", delta=1e-5, n_components=20, horizon=3000),
    dict(release="query", n_queries=50),
    dict(release="query", residual="ball", n_queries=50, delta=1e-5, adjacency="add-remove"),
]
WEIGHTS = [options for options in RELEASES if options["release"] != "query"]

RESIDUALS = [
    dict(residual="huber"),
    dict(residual="huber", residual_cap=2.0),
    dict(residual="ball"),
    dict(residual="ball", radius=0.3),
    dict(residual="plain"),
]
ADJACENCIES = ["replace-one", "add-remove"]
LAWS = [dict(delta=0.0), dict(delta=1e-3)]


def regressor(epsilon=1.0, **options):
    return DPOnlineKernelRegressor(
        epsilon, **{"y_bounds": (-1.0, 1.0), "release": "final", **options}
    )


def in_chunks(model, X, y, size):
    for start in range(0, len(y), size):
        model.partial_fit(X[start : start + size], y[start : start + size])
    return model


def state(model):
    """All numbers that a stream goes on from, as one vector."""
    stream = model._stream.release
    if isinstance(stream, FedBackRelease):
        return np.concatenate([stream.gathered, stream.average])
    if isinstance(stream, MatrixRelease):
        return np.concatenate([stream.prefix.exact.ravel(), stream.prefix.noisy.ravel()])
    if isinstance(stream, QueryRelease):
        return np.concatenate([stream.gathered.coef, stream.gathered.rows.ravel()])
    if not isinstance(stream, TreeRelease):
        return stream.gathered
    tree = stream.tree
    assert sorted(tree.exact) == sorted(tree.noisy)
    levels = [parts[level] for parts in (tree.exact, tree.noisy) for level in sorted(parts)]
    return np.concatenate(levels)


def answer(model):
    """What comes out of a model: its function, or its value at a point before it is clipped."""
    if hasattr(model, "coef_"):
        return model.coef_.copy()
    return model._predictor.answer(np.zeros((1, model.n_features_in_)))


def snapshot(model):
    return {key: id(value) for key, value in vars(model).items()}


@pytest.fixture
def noise(monkeypatch):
    return Constant().take_over(monkeypatch)


@dataclass
class Releases:
    """Notes what is declared of releases, their lattices, and their values before the noise.

    ``told`` are sensitivities without the error of what is computed.
    """

    told: list = field(default_factory=list)
    claimed: list = field(default_factory=list)
    lattices: list = field(default_factory=list)
    exact: list = field(default_factory=list)


@pytest.fixture
def releases():
    spy, choose, chosen = Releases(), Lattice.for_sensitivity, []

    def noted(sensitivity, **options):
        chosen.append((sensitivity, choose(sensitivity, **options)))
        return chosen[-1][1]

    def listener(record):
        alone = (record.sensitivity, Lattice(record.step, record.sensitivity))
        told, lattice = chosen[-1] if chosen else alone
        spy.told.append(told)
        spy.lattices.append(lattice)
        spy.claimed.append(record.sensitivity)
        spy.exact.append(record.asked.copy())

    token = released_values.set(listener)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Lattice, "for_sensitivity", noted)
        yield spy
    released_values.reset(token)


@pytest.mark.filterwarnings("ignore:y_bounds is None")
@parametrize_with_checks(ESTIMATORS)
def test_sklearn_conventions(estimator, check):
    check(estimator)


# What is computed


def plain_recursion(K, y, *, theta, t0, cap=math.inf, radius=math.inf):
    """Coefficients of the function after all rows, one step after another."""
    coef = np.zeros(len(y))
    for t in range(len(y)):
        eta = (t + t0) ** -theta
        residual = np.clip(K[t] @ coef - y[t], -cap, cap)
        coef *= 1.0 - eta * (t + t0) ** (theta - 1.0)
        coef[t] = -eta * residual
        norm = math.sqrt(coef @ K @ coef)
        if norm > radius:
            coef *= radius / norm
    return coef


RECURSIONS = [
    (dict(residual="huber", residual_cap=0.3), dict(cap=0.3)),
    (dict(residual="ball", radius=0.7), dict(radius=0.7)),
    (dict(residual="plain"), {}),
]


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "matern", "linear"])
@pytest.mark.parametrize("options, numbers", RECURSIONS, ids=["huber", "ball", "plain"])
def test_queries_see_the_plain_recursion_with_the_exact_kernel(
    kernel, options, numbers, noise, releases
):
    X, y = problem(400)
    steps = dict(theta=0.6, t0=4.0)
    model = regressor(release="query", kernel=kernel, x_norm=2.0, n_queries=9, **options, **steps)
    in_chunks(model.set_params(gamma=1.0), X, y, 150).predict(X[:9])
    scaled = X / 2.0 if kernel == "linear" else X
    K = kernel_matrix(kernel, scaled, gamma=1.0)
    expected = K[:9] @ plain_recursion(K, y, **numbers, **steps)
    assert_allclose(np.ravel(releases.exact), expected, atol=1e-12)


@pytest.mark.parametrize("options, numbers", RECURSIONS, ids=["huber", "ball", "plain"])
def test_the_function_before_its_noise_is_the_plain_recursion_on_the_features(
    options, numbers, noise, releases
):
    X, y = problem(400)
    steps = dict(theta=0.6, t0=4.0)
    model = regressor(n_components=30, random_state=0, **options, **steps)
    in_chunks(model, X, y, 150)
    Z = model._predictor.features.transform(X).astype(float)
    expected = plain_recursion(Z @ Z.T, y, **numbers, **steps) @ Z
    assert_allclose(releases.exact[-1], expected, atol=1e-12)
    assert_allclose(model.coef_, expected, atol=releases.lattices[-1].step)


@pytest.mark.parametrize("residual", [dict(residual_cap=0.3), dict(residual="ball", radius=0.7)])
def test_without_noise_sums_and_fed_back_gradients_are_the_plain_recursion(
    residual, noise, monkeypatch
):
    monkeypatch.setattr(np, "rint", lambda value, out=None: value)  # no lattice either
    X, y = problem(300)
    steps = dict(theta=0.6, t0=4.0, kernel="linear", x_norm=2.0)
    Z = X / 2.0
    matrix = dict(release="matrix", delta=1e-5, horizon=300)
    for release in (dict(release="sgd"), dict(release="tree", horizon=300), matrix):
        model = in_chunks(regressor(**residual, **steps, **release), X, y, 77)
        numbers = dict(theta=0.6, t0=4.0, cap=residual.get("residual_cap", math.inf))
        if release["release"] == "sgd":
            numbers["radius"] = residual.get("radius", math.inf)
            last = model._stream.release.gathered / (len(y) - 1.0 + 4.0)
        else:
            # Points are projected, sums are not: here no point leaves the ball.
            last = model.coef_
        assert_allclose(last, plain_recursion(Z @ Z.T, y, **numbers) @ Z, atol=1e-12)


@pytest.mark.parametrize(
    "options, least",
    [
        (dict(delta=1e-6), 0.7),
        (dict(epsilon=10.0, release="sgd", delta=1e-6, n_components=30), 0.3),
        (dict(epsilon=10.0, release="tree", delta=1e-6, horizon=4000, n_components=30), 0.5),
        (dict(epsilon=5.0, release="matrix", delta=1e-6, horizon=4000, n_components=30), 0.6),
        (dict(epsilon=10.0, release="query", n_queries=1000, delta=1e-6), 0.4),
    ],
    ids=lambda value: name(value) if isinstance(value, dict) else "",
)
def test_a_private_stream_learns(options, least):
    X, y = problem(5000)
    model = regressor(random_state=0, theta=0.6, **options).fit(X[:4000], y[:4000])
    assert model.score(X[4000:], y[4000:]) > least


@pytest.mark.parametrize("options", RELEASES, ids=name)
def test_targets_are_clipped_and_predictions_stay_within_the_bounds(options):
    X, y = problem(300)
    wild = y.copy()
    wild[:10] = [1e300, -1e300, 7, -7, 1e9, -1e9, 2, -2, 3, -3]
    models = [
        regressor(random_state=0, **options).fit(X, target) for target in (wild, wild.clip(-1, 1))
    ]
    predictions = [model.predict(50 * X[:20]) for model in models]
    assert_allclose(*predictions, rtol=1e-9)
    assert np.abs(predictions).max() <= 1.0


@pytest.mark.parametrize("options", RELEASES, ids=name)
def test_layouts_of_the_input_agree(options):
    X, y = problem(200)
    frame = pd.DataFrame(X, columns=["a", "b"])
    layouts = [X, np.asfortranarray(X), frame, sparse.csr_array(X), sparse.csc_matrix(X)]
    predictions = []
    for rows in layouts:
        model = regressor(random_state=0, gamma=1.0, **options).fit(rows[:120], y[:120])
        model.partial_fit(rows[120:], y[120:])
        predictions.append(model.predict(rows[:9]))
        if rows is frame:
            assert list(model.feature_names_in_) == ["a", "b"]
    for prediction in predictions[1:]:
        assert_allclose(prediction, predictions[0], atol=1e-6)


# The stream


def brute_force(model, times, scales, slacks, pure):
    """Cost of all releases to the record that they cost most, by looking at every record.

    Scales and slacks are in units of the function.
    """
    recursion, kappa = model._stream.release.recursion, model._stream.release.kappa
    positions = np.arange(times[-1])
    if model.residual == "huber" and recursion.cap <= 1.0 and model.sensitivity == "tight":
        # Of a clipped gradient, without the help of the theory.
        records = 2.0 if model.adjacency == "replace-one" else 1.0
        created = records * kappa * recursion.cap / (positions + recursion.t0) ** recursion.theta
    else:
        created = created_distances(
            positions,
            theta=recursion.theta,
            t0=recursion.t0,
            y_bound=1.0,
            kappa=kappa,
            residual=model.residual,
            radius=model.radius if model.residual == "ball" else None,
            width=recursion.cap if model.residual == "huber" else None,
            adjacency=model.adjacency,
            bound=model.sensitivity,
        )
    spent = np.zeros(times[-1])
    for time, scale, slack in zip(times, scales, slacks, strict=True):
        s = positions[:time]
        shrunk = created[:time] * (s + recursion.t0) / (time - 1 + recursion.t0)
        spent[:time] += ((shrunk + slack) / scale) ** (1 if pure else 2)
    return spent.max() if pure else math.sqrt(spent.max())


def check_cumulative(model, times, noise, releases):
    """Compare ``guarantee_`` with brute force; one draw and one lattice belong to each release."""
    pure = model.delta == 0.0
    assert len(noise.draws) == len(releases.lattices) == len(times)
    pairs = list(zip(noise.draws, releases.lattices, releases.told, strict=True))
    scales = [draw[2] * lattice.step for draw, lattice, _ in pairs]
    slacks = [lattice.sensitivity - told for _, lattice, told in pairs]
    assert {draw[0] for draw in noise.draws} == {"k_norm" if pure else "normal"}
    expected = brute_force(model, times, scales, slacks, pure)
    guarantee = model.guarantee_
    found = guarantee.epsilon if pure else guarantee.refined.mu
    assert_allclose(found, expected, rtol=1e-9)
    if not pure:
        assert gaussian_delta(guarantee.epsilon, found) <= model.delta * (1 + 1e-6)
        assert gaussian_delta(guarantee.epsilon * 0.999, found) > model.delta
    return expected


@pytest.mark.slow
@pytest.mark.parametrize("n_rows, size", [(100_000, 100), (100_000, 10_000), (2000, 1)])
@pytest.mark.parametrize(
    "options",
    [
        dict(release="final", delta=1e-5),
        dict(release="final", residual="ball", radius=0.5),
        dict(release="sgd", delta=1e-5),
        dict(release="tree", delta=1e-5, horizon=100_000),
        dict(release="matrix", delta=1e-5, horizon=100_000),
        dict(release="query", n_queries=5),
    ],
    ids=name,
)
def test_a_stream_in_chunks_is_one_stream(
    options, n_rows, size, repetitions, noise, releases, monkeypatch
):
    """The same state and, where it should be, the same guarantee as of one fit."""
    is_query = options["release"] == "query"  # its time grows with the square
    divisor = repetitions(10 if is_query else 1, 50) if n_rows > 2000 else repetitions(1, 10)
    n_rows, size = n_rows // divisor, -(-size // divisor)
    if size > 1:
        size += 1  # no multiple of any block
    X, y = problem(n_rows)
    if options["release"] in ("sgd", "tree", "matrix"):
        monkeypatch.undo()  # with their noise
    whole = regressor(n_components=8, random_state=0, **options).fit(X, y)
    for calls in (noise.draws, releases.lattices, releases.told):
        calls.clear()
    parts = in_chunks(clone(whole), X, y, size)
    assert whole.n_samples_seen_ == parts.n_samples_seen_ == n_rows
    assert_allclose(state(parts), state(whole), rtol=1e-10, atol=1e-10)
    if options["release"] != "final":
        assert parts.guarantee_ == whole.guarantee_
        assert_allclose(answer(parts), answer(whole), rtol=1e-10, atol=1e-10)
    else:
        times = [min(start + size, n_rows) for start in range(0, n_rows, size)]
        check_cumulative(parts, times, noise, releases)


@pytest.mark.parametrize("law", LAWS, ids=["pure", "gaussian"])
@pytest.mark.parametrize("sensitivity", ["tight", "paper"])
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("residual", RESIDUALS, ids=name)
def test_releases_cost_what_their_worst_record_pays(
    residual, adjacency, sensitivity, law, noise, releases
):
    X, y = problem(60)
    model = regressor(0.8, sensitivity=sensitivity, adjacency=adjacency, **residual, **law)
    model.set_params(kernel="linear", theta=0.6)
    last, times = 0.0, [1, 2, 10, 11, 40, 60]
    for i, time in enumerate(times):
        start = times[i - 1] if i else 0
        model.partial_fit(X[start:time], y[start:time])
        cost = check_cumulative(model, times[: i + 1], noise, releases)
        assert cost > last
        last = cost
        assert model.guarantee_.adjacency == adjacency
    alone = 0.8 if law["delta"] == 0.0 else gaussian_mu(epsilon=0.8, delta=law["delta"])
    assert alone * 1.3 < cost < alone * len(times)


@pytest.mark.parametrize("options", RELEASES, ids=name)
@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, "pickle"])
def test_one_copy_of_a_stream_goes_on(options, duplicate):
    """Two would cost more than either knows."""
    if duplicate == "pickle":

        def duplicate(model):
            return pickle.loads(pickle.dumps(model))

    X, y = problem(60)
    ledger = BudgetLedger(epsilon=9.0, delta=1e-3)
    model = regressor(ledger=ledger, **options).fit(X[:20], y[:20])
    twin = duplicate(model)
    third = duplicate(twin)
    twin.partial_fit(X[20:40], y[20:40])
    n_charges = len(ledger.history())
    for stale in (model, third):
        before = snapshot(stale)
        with pytest.raises(ValueError, match="stale"):
            stale.partial_fit(X[20:40], y[20:40])
        assert snapshot(stale) == before and len(ledger.history()) == n_charges
        assert np.isfinite(stale.predict(X[:3])).all()
    assert duplicate(twin).partial_fit(X[40:], y[40:]).n_samples_seen_ == 60
    assert model.fit(X[:20], y[:20]).partial_fit(X, y).n_samples_seen_ == 80


# Worst neighbours


def neighbours(rng, n, s, adjacency, *, is_typical):
    """Records on a sphere, and the same with another one, or none, at ``s``."""
    X, y = rng.normal(size=(n, 3)), rng.choice([-1.0, 1.0], size=n)
    if is_typical:
        # As bad as it gets: until then one direction, then what is orthogonal to it.
        X[:], y[:] = (1.0, 0.0, 0.0), 1.0
        X[s] = (0.0, 1.0, 0.0)
        X[s + 1 :] = (0.0, 0.0, 1.0)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    X_other, y_other = X.copy(), y.copy()
    if adjacency == "add-remove":
        X_other[s] = 0.0
    else:
        y_other[s] = -y[s]
        if not is_typical and rng.random() < 0.5:
            X_other[s] = rng.normal(size=3)
            X_other[s] /= np.linalg.norm(X_other[s])
    return (X, y), (X_other, y_other)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("residual", RESIDUALS, ids=name)
@pytest.mark.parametrize("sensitivity", ["tight", "paper"])
def test_no_record_moves_a_function_further_than_declared(
    residual, adjacency, sensitivity, noise, releases
):
    rng = np.random.default_rng(0)
    options = dict(kernel="linear", sensitivity=sensitivity, adjacency=adjacency, **residual)
    best = {}
    for n in (1, 2, 5):
        for trial, s in [(trial, s) for trial in range(8) for s in range(n)]:
            worlds = neighbours(rng, n, s, adjacency, is_typical=trial == 0)
            coefs = [regressor(**options).fit(X, y).coef_ for X, y in worlds]
            claimed = releases.claimed[-1]
            share = np.linalg.norm(releases.exact[-1] - releases.exact[-2]) / claimed
            assert share <= 1.0
            best[n] = max(best.get(n, 0.0), share)
            # With rounding, and as the noise sees it: one release at epsilon = 1.
            step = releases.lattices[-1].step
            assert np.linalg.norm(coefs[0] - coefs[1]) <= noise.scale * step
    if sensitivity == "tight":
        # The function is 0 before, which the bound for a null record in a small ball ignores.
        is_loose = residual.get("radius") == 0.3 and adjacency == "add-remove"
        assert best[1] > (0.5 if is_loose else 0.99)
        if residual == dict(residual="huber"):
            assert best[2] > 0.99 and best[5] > 0.99  # by the last record
    assert {draw[0] for draw in noise.draws} == {"k_norm"}


@pytest.mark.parametrize("law", LAWS, ids=["pure", "gaussian"])
def test_a_stream_of_noisy_gradients_keeps_released_numbers_only(law, noise):
    """Two records that are rounded to the same gradient leave the same behind, bit by bit."""
    X, y = problem(30)
    models = [regressor(release="sgd", kernel="linear", **law) for _ in range(2)]
    for model, tail in zip(models, (0.7, 0.9), strict=True):
        model.fit(X, np.append(y[:-1], tail))  # both residuals are above the cap
    here, there = (model._stream.release for model in models)
    assert here.gathered.tobytes() == there.gathered.tobytes()
    arrays = [array for path, array in arrays_in(here) if "features" not in path]
    assert all(array.shape == (2,) for array in arrays) and len(arrays) == 2


# Noise


@pytest.mark.parametrize("random_state", [None, 0], ids=["unseeded", "seeded"])
@pytest.mark.parametrize("law", LAWS, ids=["pure", "gaussian"])
@pytest.mark.parametrize(
    "release",
    [dict(release="final"), dict(release="sgd"), dict(release="tree", horizon=8)],
    ids=name,
)
def test_noise_of_one_call_says_nothing_about_that_of_another(release, law, random_state):
    """Null records, so that whatever comes out is noise."""
    size = 2000
    model = regressor(kernel="linear", random_state=random_state, **release, **law)
    X, parts = np.zeros((1, size)), []
    for _ in range(5):
        before = model._stream if hasattr(model, "_stream") else None
        model.partial_fit(X, [1.0])
        if release["release"] == "final":
            parts.append(model.coef_)
        elif release["release"] == "sgd":
            gathered = model._stream.release.gathered
            parts.append(gathered - (before.release.gathered if before else 0.0))
        else:
            noisy = model._stream.release.tree.noisy
            parts.append(noisy[min(noisy)])
    correlation = np.corrcoef(parts) - np.eye(5)
    assert np.abs(correlation).max() < 6 / math.sqrt(size)
    assert min(np.std(part) for part in parts) > 0.0


@pytest.mark.parametrize(
    "release",
    [
        dict(release="sgd"),
        dict(release="sgd", delta=1e-3),
        dict(release="tree", horizon=6),
        dict(release="tree", horizon=6, delta=1e-3),
        dict(release="matrix", horizon=6, delta=1e-3),
    ],
    ids=name,
)
def test_noise_of_many_rows_in_one_call_is_that_of_one_row_at_a_time(release):
    X, y = np.zeros((6, 1000)), np.ones(6)
    options = dict(kernel="linear", random_state=0, **release)
    alone, together = (in_chunks(regressor(**options), X, y, size).coef_ for size in (1, 6))
    assert_array_equal(alone, together)


# What is kept, shown and given away


def private_numbers(model):
    """What a stream keeps and has not released."""
    stream = model._stream.release
    if isinstance(stream, QueryRelease):
        return np.concatenate([stream.gathered.rows.ravel(), stream.gathered.coef])
    if isinstance(stream, TreeRelease):
        return np.concatenate(list(stream.tree.exact.values()))
    if isinstance(stream, MatrixRelease):
        return stream.prefix.exact.ravel()
    return stream.gathered if isinstance(stream, FinalRelease) else np.empty(0)


@pytest.mark.parametrize("options", WEIGHTS, ids=name)
def test_a_released_predictor_holds_released_numbers_only(options):
    # A seed, as sums on a lattice have few bits: by chance one model in hundreds holds one.
    X, y = problem(97)
    model = regressor(random_state=0, **options).fit(X, y)
    released = model.released()
    assert isinstance(released, ReleasedKernelRegressor)
    points = problem(20, seed=1)[0]
    assert_array_equal(released.predict(points), model.predict(points))
    assert_array_equal(released.predict(sparse.csr_array(points)), model.predict(points))
    assert released.score(points, y[:20]) == model.score(points, y[:20])
    assert released.guarantee == model.guarantee_ and released.y_bounds == (-1.0, 1.0)
    assert not hasattr(released, "partial_fit") and not hasattr(released, "fit")

    found = dict(arrays_in(released))
    assert_array_equal(found.pop(".coef"), model.coef_)
    assert found and all(path.startswith(".features") for path in found)
    assert not any(97 in array.shape for array in found.values())
    private, live, given = private_numbers(model), pickle.dumps(model), pickle.dumps(released)
    kept = [value.tobytes() for value in private if value not in (0.0, 1.0, -1.0)]
    assert all(value in live for value in kept)  # so that this would be seen
    assert not any(value in given for value in kept)
    assert bool(kept) == (options["release"] != "sgd")
    assert b"_stream" in live and b"_stream" not in given
    assert_array_equal(pickle.loads(given).predict(points), released.predict(points))


# Queries


def test_queries_are_counted_over_the_whole_stream():
    X, y = problem(60)
    model = regressor(release="query", n_queries=7).fit(X[:20], y[:20])
    answers = model.predict(X[:3])
    assert_array_equal(model.predict(X[[2, 0]]), answers[[2, 0]])  # free
    twin = pickle.loads(pickle.dumps(model))
    model.partial_fit(X[20:40], y[20:40])
    later = model.predict(X[:3])  # of another function: three more
    assert (later != answers).any()
    assert_array_equal(model.predict(X[:3]), later)
    with pytest.raises(BudgetExceededError, match="n_queries=7"):
        model.predict(X[3:5])
    model.partial_fit(X[40:], y[40:])
    with pytest.raises(BudgetExceededError, match="n_queries=7"):
        model.predict(X[:2])
    model.predict(X[:1])
    for other in (model, twin):
        with pytest.raises(BudgetExceededError, match="0 of n_queries=7"):
            other.predict(X[10:11])
    assert_array_equal(twin.predict(X[:3]), answers)
    assert np.isfinite(clone(model).fit(X, y).predict(X[5:12])).all()


# The ledger and failures


@pytest.mark.parametrize("options", RELEASES, ids=name)
def test_a_stream_has_one_entry_in_the_ledger_which_is_what_it_claims(options):
    X, y = problem(120)
    ledger = BudgetLedger(epsilon=50.0, delta=options.get("delta", 0.0))
    model, last = regressor(0.5, ledger=ledger, **options), 0.0
    for call, start in enumerate(range(0, 120, 20), start=1):
        model.partial_fit(X[start : start + 20], y[start : start + 20])
        epsilon, steps = model.guarantee_.epsilon, ledger.history()
        assert len(steps) == call and steps[-1].guarantee == model.guarantee_
        assert steps[-1].label == "DPOnlineKernelRegressor"
        assert_allclose(ledger.spent().epsilon, epsilon, rtol=1e-9)
        assert epsilon > last if options["release"] == "final" else epsilon == 0.5
        last = epsilon
    model.fit(X, y)  # a new stream over the same people: all of it
    assert model.guarantee_.epsilon == 0.5 and len(ledger.history()) == 7
    assert ledger.spent().epsilon > last * 1.02
    spent = ledger.spent().epsilon
    model.partial_fit(X[:20], y[:20])
    if options["release"] != "final":
        assert ledger.spent().epsilon == spent


@pytest.mark.parametrize("options", RELEASES, ids=name)
@pytest.mark.parametrize("when", ["run", "before", "after"])
def test_a_stream_goes_on_after_a_release_that_failed(options, when, monkeypatch):
    """Wherever it failed, the ledger covers it, and later accounts do."""
    X, y = problem(90)
    ledger = BudgetLedger(epsilon=20.0, delta=options.get("delta", 0.0))
    model, plain = (regressor(ledger=each, **options) for each in (ledger, None))
    for one in (model, plain):
        one.fit(X[:30], y[:30])
    before = snapshot(model)
    charge_stream = BudgetLedger.charge_stream

    def interrupted(self, *args, **kwargs):
        if when == "after":
            charge_stream(self, *args, **kwargs)
        raise KeyboardInterrupt

    def fail(*args, **kwargs):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        if when == "run":
            patch.setattr(DPOnlineKernelRegressor, "_store", fail)
        else:
            patch.setattr(BudgetLedger, "charge_stream", interrupted)
        for _ in range(2):
            with pytest.raises(KeyboardInterrupt):
                model.partial_fit(X[30:60], y[30:60])
    assert snapshot(model) == before
    paid = 1 if when == "before" else 3
    model = pickle.loads(pickle.dumps(model))
    assert len(ledger.history()) == paid
    model.partial_fit(X[30:60], y[30:60]).partial_fit(X[60:], y[60:])
    assert len(ledger.history()) == paid + 2
    assert_allclose(ledger.spent().epsilon, model.guarantee_.epsilon, rtol=1e-9)
    plain.partial_fit(X[30:60], y[30:60]).partial_fit(X[60:], y[60:])
    if options["release"] == "final" and when != "before":
        assert model.guarantee_.epsilon > plain.guarantee_.epsilon * 1.1
    else:
        assert model.guarantee_ == plain.guarantee_


@pytest.mark.parametrize("law", LAWS, ids=["pure", "gaussian"])
def test_a_stream_past_its_horizon_is_refused_before_the_charge(law):
    X, y = problem(60)
    ledger = BudgetLedger(epsilon=10.0, delta=1e-2)
    model = regressor(release="tree", horizon=40, ledger=ledger, **law)
    with pytest.raises(ValueError, match=r"horizon must be at least .* 60; got 40"):
        model.fit(X, y)
    assert not ledger.history() and not hasattr(model, "n_features_in_")
    model.fit(X[:30], y[:30])
    before = snapshot(model)
    with pytest.raises(ValueError, match=r"horizon must be at least .* 41; got 40"):
        model.partial_fit(X[30:41], y[30:41])
    assert snapshot(model) == before
    assert model.partial_fit(X[30:40], y[30:40]).n_samples_seen_ == 40
    with pytest.raises(ValueError, match="horizon must be at least"):
        model.partial_fit(X[:1], y[:1])
    assert len(ledger.history()) == 2


# Bad input


@pytest.mark.parametrize(
    "options, message",
    [
        (dict(epsilon=0), "epsilon must be a positive"),
        (dict(epsilon=1e-14), "epsilon must be larger"),
        (dict(release="query", n_queries=10**15), "epsilon must be larger: .* smaller n_queries"),
        (dict(theta=0.5), "theta must be above 1/2 and below 1; got 0.5"),
        (dict(theta=1.0), "theta must be above 1/2 and below 1; got 1.0"),
        (dict(t0=1.0), "t0 must be at least 2.4.* with theta=0.6"),
        (dict(t0="large"), "t0 must be 'auto' or a positive number"),
        (dict(radius=0.0), "radius must be a positive"),
        (dict(radius=1e-7), "radius must be between 1e-6 and 1e6"),
        (dict(residual="squared"), "residual must be one of"),
        (dict(residual="plain", release="sgd"), "residual must be 'huber' or 'ball' with"),
        (dict(residual_cap=-1.0), "residual_cap must be a positive"),
        (dict(release="all"), "release must be one of"),
        (dict(release="tree"), "horizon must be a positive int with release='tree'; got None"),
        (dict(release="tree", horizon=19), "horizon must be at least"),
        (dict(delta=1e-6, horizon=19), "horizon must be .* with this call 20; got 19.*fit"),
        (
            dict(release="matrix", horizon=99),
            "delta must be positive with release='matrix'.*got 0",
        ),
        (
            dict(release="matrix", delta=1e-6),
            "horizon must be a positive int with release='matrix'",
        ),
        (
            dict(release="matrix", delta=1e-6, horizon=2**23 + 1),
            "horizon must be at most 8388608 .*'tree'.*got 8388609",
        ),
        (
            dict(residual="plain", delta=1e-6, horizon=99),
            "residual must be 'huber' or 'ball' with release='matrix'",
        ),
        (dict(epsilon=1e-14, delta=1e-16, release="matrix", horizon=99), "epsilon must be larger"),
        (dict(release="query", n_queries=0), "n_queries must be a positive int"),
        (dict(n_components=0), "n_components must be 'auto' or a positive int"),
        (dict(n_components=10**7), "n_components must be smaller: .* GiB"),
        (dict(y_bounds=(1, -1)), "y_bounds must be .* low first"),
        (dict(adjacency="both"), "adjacency must be one of"),
        (dict(random_state=-1), "random_state must be None"),
        (dict(ledger="file"), "ledger must be None, a BudgetLedger"),
    ],
    ids=lambda value: str(value)[:50],
)
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_bad_parameters_are_named_before_the_ledger_is_charged(options, message, method):
    X, y = problem(20)
    ledger = BudgetLedger(epsilon=10.0, delta=0.1)
    release = "auto" if "horizon" in options else "final"
    model = regressor(**{"ledger": ledger, "release": release, **options})
    with pytest.raises(ValueError, match=message):
        getattr(model, method)(X, y)
    assert not ledger.history()
    assert not hasattr(model, "_stream") and not hasattr(model, "n_features_in_")


@pytest.mark.parametrize(
    "change",
    [
        dict(epsilon=0.5),
        dict(delta=1e-5),
        dict(theta=0.7),
        dict(residual="ball"),
        dict(sensitivity="paper"),
        dict(release="sgd"),
        dict(y_bounds=(0.0, 1.0)),
        dict(adjacency="add-remove"),
        dict(horizon=500),
        dict(n_queries=500),
        dict(ledger=None),
        dict(ledger=BudgetLedger(epsilon=10.0, delta=0.1)),
    ],
    ids=lambda value: name(value) if isinstance(value, dict) else "",
)
@pytest.mark.parametrize("release", ["final", "tree", "matrix", "query"])
def test_parameters_do_not_change_within_a_stream(release, change):
    X, y = problem(20)
    ledger = BudgetLedger(epsilon=10.0, delta=0.1)
    model = regressor(release=release, horizon=100, n_queries=10, ledger=ledger)
    model.set_params(delta=1e-3 if release == "matrix" else 0.0).fit(X, y)
    old = model.get_params()
    before, private = model._stream, state(model).copy()
    model.set_params(**change)
    (changed,) = change
    with pytest.raises(ValueError, match=f"{changed} must not change .* call fit to start"):
        model.partial_fit(X, y)
    assert model._stream is before and len(ledger.history()) == 1
    assert_array_equal(state(model), private)
    model.set_params(**old).partial_fit(X, y)
    assert model.n_samples_seen_ == 40


def test_threads_that_share_a_stream_pass_all_their_rows():
    X, y = problem(80)
    model = regressor(n_components=4).fit(X[:10], y[:10])
    copies = [model, copy.copy(model)]
    went_on, stale = [], []

    def run(i):
        for _ in range(5):
            try:
                copies[i % 2].partial_fit(X[:5], y[:5])
                went_on.append(i % 2)
            except StaleStreamError:
                stale.append(i % 2)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (winner,) = set(went_on)
    assert stale == [1 - winner] * 20 and copies[winner].n_samples_seen_ == 110
