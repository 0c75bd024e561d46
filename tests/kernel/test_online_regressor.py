"""DPOnlineKernelRegressor as its users and its attackers see it.

Where a bound has to be exact, the kernel is the linear one: its features are the rows, and a row
of zeros is a null record, which keeps its time and contributes nothing. Where noise would hide
it, all draws are replaced by one number, and their laws and scales are noted.
"""

import copy
import gc
import html
import math
import pickle
import subprocess
import sys
import threading
import tracemalloc
import warnings
from dataclasses import dataclass, field, replace
from multiprocessing import get_context
from pathlib import Path
from types import FunctionType, ModuleType

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.utils import estimator_html_repr
from sklearn.utils.estimator_checks import parametrize_with_checks
from support.memory import arrays_in
from support.noise import Constant
from support.problems import surface as problem
from support.statistics import least_epsilon, name

from skdp.estimators import _streams
from skdp.exceptions import (
    BudgetExceededError,
    PrivacyWarning,
    SolverError,
    StaleStreamError,
)
from skdp.features import kernel_matrix
from skdp.kernel import DPOnlineKernelRegressor, ReleasedKernelRegressor
from skdp.kernel._online_plan import stream_recursion
from skdp.mechanisms import Lattice, NoiseLaw, released_values
from skdp.preprocessing import BoundedScaler
from skdp.privacy import BudgetLedger, GaussianDP, compose, gaussian_delta, gaussian_mu
from skdp.releases import (
    FedBackRelease,
    FinalRelease,
    MatrixRelease,
    QueryRelease,
    TreeRelease,
    _limits,
    _stream_fed_back,
    _stream_final,
    _stream_matrix,
    _stream_query,
    _stream_tree,
    created_distances,
)

ESTIMATORS = [
    DPOnlineKernelRegressor(),
    DPOnlineKernelRegressor(y_bounds=(-1.0, 1.0)),
    DPOnlineKernelRegressor(
        delta=1e-5, n_components=50, adjacency="add-remove", y_bounds=(-1.0, 1.0)
    ),
    DPOnlineKernelRegressor(residual="ball", kernel="laplacian", y_bounds=(-1.0, 1.0)),
    DPOnlineKernelRegressor(
        residual="plain", sensitivity="paper", kernel="linear", y_bounds=(-1.0, 1.0)
    ),
    DPOnlineKernelRegressor(release="sgd", n_components=20, y_bounds=(-1.0, 1.0)),
    DPOnlineKernelRegressor(
        release="sgd", residual="ball", delta=1e-5, kernel="linear", y_bounds=(-1.0, 1.0)
    ),
    DPOnlineKernelRegressor(release="tree", horizon=10_000, n_components=20, y_bounds=(-1.0, 1.0)),
    DPOnlineKernelRegressor(
        release="tree", residual="ball", delta=1e-5, horizon=10_000, y_bounds=(-1.0, 1.0)
    ),
    DPOnlineKernelRegressor(
        release="matrix", delta=1e-5, horizon=10_000, n_components=20, y_bounds=(-1.0, 1.0)
    ),
    DPOnlineKernelRegressor(release="query", n_queries=10_000, y_bounds=(-1.0, 1.0)),
    DPOnlineKernelRegressor(
        release="query", n_queries=10_000, residual="ball", delta=1e-5, y_bounds=(-1.0, 1.0)
    ),
    DPOnlineKernelRegressor(
        release="query", n_queries=10_000, residual="plain", kernel="matern", y_bounds=(-1.0, 1.0)
    ),
]

# One of each release and residual, with both noises and relations.
RELEASES = [
    dict(release="final", delta=1e-5, n_components=20),
    dict(release="final", residual="ball", n_components=20),
    dict(release="final", residual="plain", n_components=20, adjacency="add-remove"),
    dict(release="sgd", delta=1e-5, n_components=20),
    dict(release="sgd", residual="ball", n_components=20, adjacency="add-remove"),
    dict(release="tree", delta=1e-5, n_components=20, horizon=3000),
    dict(release="tree", residual="ball", n_components=20, horizon=3000, adjacency="add-remove"),
    dict(release="matrix", delta=1e-5, n_components=20, horizon=3000),
    dict(
        release="matrix",
        residual="ball",
        delta=1e-5,
        n_components=20,
        horizon=3000,
        adjacency="add-remove",
    ),
    dict(release="query", n_queries=50),
    dict(release="query", residual="ball", n_queries=50, delta=1e-5, adjacency="add-remove"),
    dict(release="query", residual="plain", n_queries=50),
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
    return DPOnlineKernelRegressor(epsilon, **{"y_bounds": (-1.0, 1.0), **options})


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
        (dict(delta=1e-6, residual="ball", radius=3.0), 0.5),
        (dict(delta=1e-6, adjacency="add-remove", kernel="laplacian"), 0.5),
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


def automatic_cap(options):
    """Of the residuals, in units of half the range of the target."""
    return stream_recursion(regressor(**{**options, "residual": "huber"}), 1.0).cap


@pytest.mark.parametrize("options", RELEASES, ids=name)
def test_units_of_the_target_do_not_matter(options):
    X, y = problem(300)
    plain = regressor(random_state=0, **options).fit(X, y).predict(X[:9])
    large = regressor(random_state=0, y_bounds=(50, 150), **options)
    if options.get("residual", "huber") == "huber":
        cap = automatic_cap(options)
        large.set_params(residual_cap=50 * cap)  # as the automatic one, in the units of y
    large.fit(X, 100 + 50 * y)
    assert_allclose(large.predict(X[:9]), 100 + 50 * plain, rtol=1e-6)


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


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "matern", "linear"])
@pytest.mark.parametrize("options", RELEASES, ids=name)
def test_rows_far_away_do_no_harm(options, kernel):
    X, y = problem(100)
    X[0], X[1], X[2] = 1e300, -1e300, (1e200, -1e-300)
    model = regressor(kernel=kernel, random_state=0, **options).fit(X, y)
    assert np.isfinite(model.predict(X[:20])).all()
    assert np.isfinite(model.partial_fit(X, y).predict(X[:20])).all()


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


@pytest.mark.parametrize("options", RELEASES, ids=name)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int64, bool])
def test_targets_of_any_numeric_type_are_taken_in_double_precision(options, dtype):
    X, y = problem(50)
    narrow = (100 * y).astype(dtype)
    fits = [
        regressor(y_bounds=(0.0, 2e5), random_state=0, **options).fit(X, target)
        for target in (narrow, narrow.astype(float))
    ]
    assert_allclose(*(fit.predict(X[:5]) for fit in fits), rtol=0)


def test_targets_that_are_not_numbers_are_refused():
    X, y = problem(50)
    with pytest.raises(ValueError, match="y must hold numbers"):
        regressor().fit(X, np.where(y > 0, "high", "low"))


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
def test_fit_starts_afresh(options):
    X, y = problem(200)
    model = regressor(random_state=0, **options).fit(X[:50], y[:50])
    model.partial_fit(X[50:], y[50:]).fit(X[:50], y[:50])
    once = regressor(random_state=0, **options).partial_fit(X[:50], y[:50])
    assert model.guarantee_ == once.guarantee_ and model.n_samples_seen_ == 50
    assert_allclose(answer(model), answer(once), rtol=0)


@pytest.mark.parametrize("options", RELEASES, ids=name)
def test_the_guarantee_of_one_call_is_what_was_asked_for(options):
    X, y = problem(50)
    guarantee = regressor(0.7, **options).fit(X, y).guarantee_
    assert (guarantee.epsilon, guarantee.delta) == (0.7, options.get("delta", 0.0))
    assert guarantee.adjacency == options.get("adjacency", "replace-one")
    assert guarantee.source and guarantee.mechanism
    if options.get("delta"):
        assert isinstance(guarantee.refined, GaussianDP)
        assert_allclose(gaussian_delta(0.7, guarantee.refined.mu), options["delta"], rtol=1e-6)


@pytest.mark.parametrize("options", RELEASES, ids=name)
def test_a_pickled_stream_goes_on(options):
    X, y = problem(200)
    plain, other = (regressor(random_state=0, **options).fit(X[:90], y[:90]) for _ in range(2))
    twin = pickle.loads(pickle.dumps(other))
    if options["release"] == "query":
        assert_array_equal(other.predict(X[:4]), twin.predict(X[:4]))
    for model in (plain, twin):
        model.partial_fit(X[90:], y[90:])
    assert twin.guarantee_ == plain.guarantee_ and twin.n_samples_seen_ == 200
    assert_array_equal(state(twin), state(plain))
    assert_array_equal(twin.predict(X[:5]), plain.predict(X[:5]))


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


GOING_ON = """
import gc, pickle, sys
from support.problems import surface as problem
from skdp.exceptions import StaleStreamError
X, y = problem(60)
counts = []
for text in pickle.load(sys.stdin.buffer):
    counts.append(0)
    for _ in range(3):
        model = pickle.loads(text)
        try:
            model.partial_fit(X[20:30], y[20:30])
            counts[-1] += 1
        except StaleStreamError:
            pass
        del model
        gc.collect()
sys.stdout.buffer.write(pickle.dumps(counts))
"""


def elsewhere(code, value):
    """What another process makes of a value."""
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[1],  # of what the code imports
    )
    process.stdin.write(pickle.dumps(value))
    process.stdin.close()

    def result():
        with process:
            return pickle.load(process.stdout)

    return result


def test_a_copy_is_refused_when_the_one_that_went_on_is_gone():
    """Else one pickle, read again and again, is a stream without end at no charge."""
    X, y = problem(60)
    texts = [pickle.dumps(regressor(**options).fit(X[:20], y[:20])) for options in RELEASES]
    assert elsewhere(GOING_ON, texts)() == [1] * len(RELEASES)


@pytest.mark.parametrize(
    ("options", "duplicate"),
    [(o, ("copy", "deepcopy", "pickle")[i % 3]) for i, o in enumerate(RELEASES)],
)
def test_copies_made_before_are_refused_after_all_others_are_gone(options, duplicate):
    X, y = problem(60)
    model = regressor(**options).fit(X[:20], y[:20])
    text = pickle.dumps(model)
    twin = pickle.loads(text) if duplicate == "pickle" else getattr(copy, duplicate)(model)
    twin.partial_fit(X[20:], y[20:])
    del model, twin
    gc.collect()
    for _ in range(2):
        with pytest.raises(StaleStreamError, match="This copy of the stream is stale"):
            pickle.loads(text).partial_fit(X[20:], y[20:])


def test_an_old_pickle_is_refused_beside_a_later_one():
    X, y = problem(60)
    model = regressor(n_components=4).fit(X[:20], y[:20])
    old = pickle.dumps(model)
    new = pickle.dumps(model.partial_fit(X[20:40], y[20:40]))
    _streams._lines.clear()  # as another process
    early, late = pickle.loads(old), pickle.loads(new)
    with pytest.raises(StaleStreamError):
        early.partial_fit(X[40:], y[40:])
    assert late.partial_fit(X[40:], y[40:]).n_samples_seen_ == 60


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


def test_a_forked_child_knows_which_copies_are_stale():
    X, y = problem(60)
    model = regressor(n_components=4).fit(X[:20], y[:20])
    twin = copy.deepcopy(model).partial_fit(X[20:40], y[20:40])
    with model._stream.line.lock:  # as if a thread went on at that moment
        child = get_context("fork").Process(target=_refused_and_admitted, args=(model, twin))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads
            child.start()
    child.join(60)
    assert child.exitcode == 0


def _refused_and_admitted(model, twin):
    X, y = problem(60)
    with pytest.raises(StaleStreamError):
        model.partial_fit(X[40:], y[40:])
    twin.partial_fit(X[40:], y[40:])


def remembered():
    """Bytes that streams and answers leave behind."""
    gc.collect()
    tracemalloc.start()
    try:
        yield
        gc.collect()
        yield tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "options", [dict(n_components=50), dict(release="query", n_queries=9)], ids=name
)
def test_streams_that_are_gone_leave_next_to_nothing(options, repetitions):
    """Below 10 MB for 10,000, which were pickled, read and gone on with again and again."""
    X, y = problem(60)

    def live():
        model = regressor(**options).fit(X[:50], y[:50])
        text = pickle.dumps(model)
        model.predict(X[:5])
        for start in (50, 55):
            model = pickle.loads(text).partial_fit(X[start : start + 5], y[start : start + 5])
            text = pickle.dumps(model)

    for _ in range(3):  # caches of what is imported and drawn
        live()
    n_streams = repetitions(10_000, 200)
    memory = remembered()
    next(memory)
    for _ in range(n_streams):
        live()
    assert next(memory) < 900 * n_streams + 100_000


def test_a_stream_that_went_on_in_another_process_goes_on_when_it_is_back():
    X, y = problem(60)
    model = regressor(release="sgd", n_components=4).fit(X[:20], y[:20])
    code = (
        "import pickle, sys; from support.problems import surface; X, y = surface(60);"
        "model, start = pickle.load(sys.stdin.buffer);"
        "model.partial_fit(X[start : start + 10], y[start : start + 10]);"
        "sys.stdout.buffer.write(pickle.dumps(model))"
    )
    for start in (20, 30):  # a worker for each call
        old, model = model, elsewhere(code, (model, start))()
    assert model.partial_fit(X[40:], y[40:]).n_samples_seen_ == 60
    with pytest.raises(StaleStreamError):
        old.partial_fit(X, y)


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


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("residual", RESIDUALS, ids=name)
def test_no_record_moves_an_answer_further_than_declared(residual, adjacency, noise, releases):
    rng = np.random.default_rng(1)
    options = dict(kernel="linear", adjacency=adjacency, release="query", n_queries=1, **residual)
    best = 0.0
    for n in (1, 4):
        for trial, s in [(trial, s) for trial in range(6) for s in range(n)]:
            worlds = neighbours(rng, n, s, adjacency, is_typical=trial == 0)
            for X, y in worlds:
                point = worlds[0][0][s : s + 1]
                value = regressor(**options).fit(X, y).predict(point)
                assert np.abs(value - releases.exact[-1]) <= releases.lattices[-1].step
            shift = abs(releases.exact[-1] - releases.exact[-2]).item()
            assert shift <= releases.claimed[-1]
            assert shift <= noise.scale * releases.lattices[-1].step
            best = max(best, shift / releases.told[-1])
    is_loose = residual.get("radius") == 0.3 and adjacency == "add-remove"
    assert best > (0.5 if is_loose else 0.99)


@pytest.mark.parametrize("law", LAWS, ids=["pure", "gaussian"])
@pytest.mark.parametrize("residual", [dict(), dict(residual="plain")], ids=["huber", "plain"])
def test_all_releases_of_a_stream_together_keep_the_cumulative_guarantee(
    residual, law, noise, releases
):
    rng = np.random.default_rng(2)
    pure, n, best = law["delta"] == 0.0, 4, 0.0
    for trial, s in [(trial, s) for trial in range(6) for s in range(n)]:
        pair = [regressor(kernel="linear", **residual, **law) for _ in range(2)]
        worlds = neighbours(rng, n, s, "replace-one", is_typical=trial == 0)
        spent = 0.0
        for t in range(n):
            for model, (X, y) in zip(pair, worlds, strict=True):
                model.partial_fit(X[t : t + 1], y[t : t + 1])
            distance = np.linalg.norm(pair[0].coef_ - pair[1].coef_)
            ratio = distance / (noise.scale * releases.lattices[-1].step)
            spent += ratio if pure else ratio**2
            guarantee = pair[0].guarantee_
            most = guarantee.epsilon if pure else guarantee.refined.mu**2
            assert spent <= most
            best = max(best, spent / most)
    assert best > 0.9


def transcript_cost(options, worlds, noise):
    """Costs to one record of each number that two streams give out, one row at a time.

    What was given out before is the same in both, whatever an attacker makes of it: after each
    step the second stream goes on from what the first one has released. With the noise out of the
    way, a cost is the distance of both releases over the scale of the noise.
    """
    # The third is the first again, with one more unit of noise.
    models, costs = [regressor(**options) for _ in range(3)], []
    for t in range(len(worlds[0][1])):
        n_draws = len(noise.draws)
        for i, model in enumerate(models):
            X, y = worlds[i % 2]
            noise.value = int(i == 2)
            model.partial_fit(X[t : t + 1], y[t : t + 1])
        noise.value = 0
        draws = noise.draws[n_draws:]
        assert len(draws) == 3  # one each
        assert {draw[1] for draw in draws} == {3}
        (scale,) = {draw[2] for draw in draws}
        streams = [model._stream.release for model in models]
        if options["release"] == "sgd":
            given = [stream.gathered for stream in streams]
        elif options["release"] == "matrix":
            # Each of these sums has the new release with the same weight.
            given = [stream.prefix.noisy[0] for stream in streams]
        else:
            new = min(streams[0].tree.noisy)
            given = [stream.tree.noisy[new] for stream in streams]
        unit = np.abs(given[2] - given[0])
        assert unit.min() > 0.0
        costs.append(np.linalg.norm((given[0] - given[1]) / unit) / scale)
        for model, stream in zip(models[1:], streams[1:], strict=True):
            if options["release"] == "sgd":
                same = dict(gathered=streams[0].gathered, average=streams[0].average)
            elif options["release"] == "matrix":
                same = dict(prefix=replace(stream.prefix, noisy=streams[0].prefix.noisy))
            else:
                same = dict(tree=replace(stream.tree, noisy=streams[0].tree.noisy))
            model._stream = replace(model._stream, release=replace(stream, **same))
    return np.array(costs)


@pytest.mark.parametrize("law", LAWS, ids=["pure", "gaussian"])
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("residual", [dict(), dict(residual="ball", radius=2.0)], ids=name)
@pytest.mark.parametrize(
    "release", [dict(release="sgd"), dict(release="tree", horizon=9)], ids=name
)
@pytest.mark.parametrize("steps", [dict(theta=0.99, t0=50.0), dict(theta=0.6)], ids=name)
def test_the_whole_transcript_costs_the_record_what_was_asked_for(
    steps, release, residual, adjacency, law, noise
):
    rng = np.random.default_rng(3)
    pure, n = law["delta"] == 0.0, 9
    budget = 0.6 if pure else gaussian_mu(epsilon=0.6, delta=law["delta"])
    options = dict(epsilon=0.6, kernel="linear", adjacency=adjacency, **steps, **release)
    options.update(**residual, **law)
    best, most_releases = 0.0, 0
    for trial, s in [(trial, s) for trial in range(2) for s in range(n)]:
        worlds = neighbours(rng, n, s, adjacency, is_typical=trial == 0)
        costs = transcript_cost(options, worlds, noise)
        spent = costs.sum() if pure else math.sqrt((costs**2).sum())
        assert spent <= budget
        assert not costs[:s].any()
        best, most_releases = max(best, spent), max(most_releases, np.count_nonzero(costs))
    # The first of nine records is in intervals of 1, 2, 4 and 8.
    assert most_releases == (1 if release["release"] == "sgd" else 4)
    if "t0" in steps:  # weights hardly grow: the first of an interval is as heavy as the last
        # Residuals of the ball, which is large so that nothing is projected, are bounded by 3.
        assert best > budget * (0.95 if not residual else 0.3)


def test_the_transcript_shows_levels_that_nobody_paid_for(noise, monkeypatch):
    repeated = NoiseLaw.repeated

    def broken(law, n_releases):
        each = repeated(law, n_releases)
        return replace(each, scale=each.scale / 4)

    monkeypatch.setattr(NoiseLaw, "repeated", broken)
    options = dict(release="tree", horizon=9, kernel="linear", theta=0.99, t0=50.0)
    worlds = neighbours(np.random.default_rng(3), 9, 0, "replace-one", is_typical=True)
    assert transcript_cost(options, worlds, noise).sum() > 3.5


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("residual", [dict(), dict(residual="ball", radius=2.0)], ids=name)
@pytest.mark.parametrize("steps", [dict(theta=0.75), dict(theta=0.6, t0=50.0)], ids=name)
def test_all_sums_of_a_matrix_cost_a_record_its_column(steps, residual, adjacency, noise):
    rng, n = np.random.default_rng(3), 9
    budget = gaussian_mu(epsilon=0.6, delta=1e-3)
    options = dict(epsilon=0.6, delta=1e-3, kernel="linear", adjacency=adjacency, **steps)
    options.update(**residual, release="matrix", horizon=n)
    shares = []
    for s in range(n):
        costs = transcript_cost(options, neighbours(rng, n, s, adjacency, is_typical=True), noise)
        assert not costs[:s].any() and costs[s:].all()
        shares.append(math.sqrt((costs**2).sum()) / budget)
    assert max(shares) <= 1.0
    if not residual:  # those of a large ball are never as large as they may be
        model = regressor(**options).fit(np.eye(1, 3), [1.0])
        factors, recursion = model._stream.release.factors, model._stream.release.recursion
        kept = factors.amounts @ factors.decays[:, np.newaxis] ** np.arange(n)
        weights = recursion.weights(0, n)
        columns = [np.linalg.norm(kept[: n - s] * weights[s] / weights[s:]) for s in range(n)]
        assert_allclose(shares, columns / max(columns), rtol=0.005)


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


# Audits. The linear kernel in one dimension; the record is the first, and the others are null.


AUDITED = [
    dict(release="final"),
    dict(release="final", adjacency="add-remove"),
    dict(release="final", residual="ball", delta=0.01),
    dict(release="final", residual="plain", adjacency="add-remove", delta=0.01),
    dict(release="final", sensitivity="paper", residual="plain"),
    dict(release="sgd"),
    dict(release="sgd", delta=0.01, adjacency="add-remove"),
    dict(release="sgd", residual="ball", radius=0.3, delta=0.01),
    dict(release="query", n_queries=2),
    dict(release="query", n_queries=2, residual="ball", delta=0.01, adjacency="add-remove"),
]
AUDITED_STREAMS = [
    dict(release="final"),
    dict(release="final", delta=0.01, adjacency="add-remove"),
    dict(release="tree", horizon=4),
    dict(release="tree", horizon=4, delta=0.01, adjacency="add-remove"),
    dict(release="matrix", horizon=4, delta=0.01),
    dict(release="query", n_queries=3),
]


def attacked_value(options, epsilon, seed, world, n_calls=1):
    """What tells most about the first record, of all that a stream gives out."""
    model = regressor(epsilon, kernel="linear", random_state=seed, **options)
    value = total = 0.0
    for t in range(n_calls):
        row = 1.0 if t == 0 else 0.0
        target = 1.0 if world == 0 else -1.0
        if options.get("adjacency") == "add-remove" and world == 1:
            row = 0.0
        model.partial_fit(np.array([[row]]), [target])
        if options["release"] == "tree":
            noisy = model._stream.release.tree.noisy
            value += float(noisy[min(noisy)][0]) if t in (0, 1, 3) else 0.0
        elif options["release"] == "matrix":
            release = model._stream.release
            # Sums without decay grow by the new release, in which the record has a known share.
            total, before = float(release.prefix.noisy[0, 0]), total
            share = release.factors.amounts @ release.factors.decays**t
            value += share * (total - before)
        elif options["release"] == "query":
            n_answers = options["n_queries"] // n_calls
            value += model.predict(1.0 - 1e-9 * np.arange(n_answers)[:, np.newaxis]).sum()
        else:
            value += model.coef_[0]
    return value, model.guarantee_


def audited(options, epsilon, n_runs, n_calls=1):
    """Lower confidence bound on epsilon, and what the model says of itself."""
    runs = [
        [attacked_value(options, epsilon, 2 * seed + w, w, n_calls) for seed in range(n_runs)]
        for w in range(2)
    ]
    values = np.array([[value for value, _ in world] for world in runs])
    return least_epsilon(values, delta=options.get("delta", 0.0)), runs[0][0][1].epsilon


@pytest.mark.slow
@pytest.mark.parametrize("options", AUDITED, ids=name)
def test_an_audit_stays_below_the_claim(options, repetitions):
    least, claimed = audited(options, 1.0, repetitions(4000, 300))
    assert claimed == 1.0 and least <= claimed


@pytest.mark.slow
@pytest.mark.parametrize("options", AUDITED_STREAMS, ids=name)
def test_an_audit_of_a_stream_stays_below_the_claim(options, repetitions):
    n_calls = {"final": 2, "query": 3, "tree": 4, "matrix": 4}[options["release"]]
    least, claimed = audited(options, 1.0, repetitions(4000, 200), n_calls)
    assert least <= claimed
    assert claimed == 1.0 or options["release"] == "final"


@pytest.mark.slow
@pytest.mark.parametrize(
    "options, n_calls",
    [
        (AUDITED[0], 1),
        (AUDITED[5], 1),
        (AUDITED[8], 1),
        (AUDITED_STREAMS[2], 4),
        (AUDITED_STREAMS[4], 4),
    ],
    ids=lambda value: name(value) if isinstance(value, dict) else str(value),
)
def test_an_audit_catches_a_claim_that_is_too_small(options, n_calls, repetitions):
    # The noise of epsilon = 9 under the claim of 1; an audit without power would pass it.
    least, _ = audited(options, 9.0, repetitions(4000, 300), n_calls)
    assert least > 1.0


# Noise


def test_frequencies_and_noise_have_streams_of_their_own():
    X, y = problem(50)
    first, second = (
        regressor(n_components=40, random_state=3).fit(X, target) for target in (y, -y)
    )
    assert_allclose(first.frequencies_, second.frequencies_, rtol=0)
    wide = regressor(1e-3, n_components=400, random_state=3).fit(X, y)
    normals = wide.frequencies_.ravel() / math.sqrt(2.0)
    assert abs(np.corrcoef(normals, wide.coef_)[0, 1]) < 0.3  # 6 standard errors


@pytest.mark.parametrize("options", RELEASES, ids=name)
def test_noise_is_new_in_each_fit_and_clone(options):
    X, y = problem(50)
    model = regressor(3.0, **{**options, "kernel": "linear"})
    values = [answer(m.fit(X, y)).tobytes() for m in (model, model, clone(model))]
    assert len(set(values)) == 3


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


@pytest.mark.parametrize("residual", [dict(), dict(residual="ball")], ids=name)
def test_sums_of_a_matrix_are_the_same_in_whatever_chunks(residual):
    X, y = problem(300)
    options = dict(delta=1e-5, horizon=400, n_components=50, random_state=0, **residual)
    models = [in_chunks(regressor(**options), X, y, size) for size in (1, 37, 300)]
    for model in models:
        assert isinstance(model._stream.release, MatrixRelease)
        assert_array_equal(model.coef_, models[0].coef_)
        assert_array_equal(state(model), state(models[0]))


def test_the_state_of_a_matrix_has_fifteen_vectors_at_any_horizon():
    for horizon in (10, 10**6):
        model = regressor(delta=1e-5, horizon=horizon, n_components=50).fit(*problem(10))
        release = model._stream.release
        kept = [part for path, part in arrays_in(release.prefix) if part.shape[-1] == 50]
        assert sum(len(part) for part in kept) == 15
        assert not any(release.time in part.shape for path, part in arrays_in(release.prefix))


def test_answers_have_noise_of_their_own_in_each_part_of_the_stream():
    X, y = np.zeros((1, 2)), [1.0]
    model = regressor(0.5, release="query", kernel="linear", n_queries=4000, random_state=0)
    points = np.random.default_rng(0).normal(size=(1000, 2))
    parts = [model.partial_fit(X, y)._predictor.answer(points) for _ in range(3)]
    correlation = np.corrcoef(parts) - np.eye(3)
    assert np.abs(correlation).max() < 6 / math.sqrt(1000)
    assert min(np.std(part) for part in parts) > 0.0


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("residual", RESIDUALS, ids=name)
@pytest.mark.parametrize("release", ["final", "query"])
def test_the_constant_of_the_paper_asks_for_more_noise(
    release, residual, adjacency, noise, releases
):
    X, y = problem(500)
    scales = []
    for sensitivity in ("tight", "paper"):
        model = regressor(release=release, n_queries=3, sensitivity=sensitivity, **residual)
        model.set_params(adjacency=adjacency).fit(X, y).predict(X[:1])
        scales.append(noise.scale * releases.lattices[-1].step)
    assert scales[1] > 1.5 * scales[0]


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


@pytest.mark.parametrize("options", WEIGHTS, ids=name)
def test_nothing_private_can_be_reached_from_a_released_predictor(options):
    X, y = problem(97)
    frame = pd.DataFrame(X, columns=["first", "second"])
    ledger = BudgetLedger(epsilon=9.0, delta=1e-3)
    model = regressor(ledger=ledger, **options).fit(frame, y)
    stream, parts = model._stream, vars(model._stream.release)
    private = [model, stream, ledger, frame, y, stream.token, stream.release, stream.params]
    names = {"noise", "gathered", "average", "tree", "prefix", "account"} & parts.keys()
    assert len(names) == (2 if options["release"] in ("tree", "matrix") else 3)
    private += [parts[name] for name in names]
    released = model.released()
    for one in (released, clone(released), pickle.loads(pickle.dumps(released))):
        reached = everything_reached_from(one)
        assert not {id(part) for part in reached} & {id(part) for part in private} - {id(None)}
        kinds = {type(part).__name__ for part in reached}
        assert not kinds & {"Stream", "StreamLine", type(stream.release).__name__}
        assert not kinds & {"NoiseSource", "Generator", "BudgetLedger"}
        assert "ndarray" in kinds  # so that something would be seen


def everything_reached_from(value):
    """All objects behind a value, but what belongs to classes and modules."""
    found, waiting = {}, [value]
    while waiting:
        part = waiting.pop()
        if id(part) in found or isinstance(part, type | ModuleType | FunctionType):
            continue
        found[id(part)] = part
        waiting.extend(gc.get_referents(part))
    return found.values()


@pytest.mark.parametrize("options", WEIGHTS, ids=name)
def test_a_released_predictor_refuses_the_columns_that_the_live_model_refuses(options):
    X, y = problem(60)
    frame = pd.DataFrame(X, columns=["first", "second"])
    model = regressor(**options).fit(frame, y)
    released = model.released()
    reordered, renamed = frame[["second", "first"]], frame.set_axis(["first", "third"], axis=1)
    for one in (model, released, clone(released), pickle.loads(pickle.dumps(released))):
        assert one.n_features_in_ == 2 and list(one.feature_names_in_) == ["first", "second"]
        assert_array_equal(one.predict(frame), model.predict(frame))
        for other in (reordered, renamed):
            with pytest.raises(ValueError, match="feature names should match"):
                one.predict(other)
        with pytest.warns(UserWarning, match="does not have valid feature names"):
            one.predict(X)
        with pytest.raises(ValueError, match="feature names should match"):
            one.predict(frame[["first"]])

    unnamed = regressor(**options).fit(X, y).released()
    assert unnamed.n_features_in_ == 2 and not hasattr(unnamed, "feature_names_in_")
    with pytest.warns(UserWarning, match="fitted without feature names"):
        unnamed.predict(frame)
    with pytest.raises(ValueError, match="expecting 2 features"):
        unnamed.predict(X[:, :1])


def test_the_view_of_a_released_predictor_says_what_it_promises():
    X, y = problem(60)
    released = regressor(0.7, n_components=4).fit(X, y).released()
    # Of what is public, some may read as markup.
    released.guarantee = replace(released.guarantee, source="Smith <b>& others</b>")
    for view in (released._repr_html_(), released._repr_mimebundle_()["text/html"]):
        assert "<style>" in view and "ReleasedKernelRegressor" in view
        assert html.escape(f"ReleasedKernelRegressor: {released.guarantee._claim()}") in view
        assert "differential privacy (pure)" in view and "replace-one" in view
        assert "Smith &lt;b&gt;&amp; others&lt;/b&gt;" in view and "<b>&" not in view
    with config_context(display="text"):
        assert list(released._repr_mimebundle_()) == ["text/plain"]
        assert not hasattr(released, "_repr_html_")


@pytest.mark.parametrize("options", WEIGHTS, ids=name)
def test_a_released_predictor_does_not_follow_the_stream_nor_lead_it(options):
    X, y = problem(60)
    twins = [regressor(random_state=0, **options).fit(X[:30], y[:30]) for _ in range(2)]
    released = twins[0].released()
    before = released.predict(X)
    twins[0].coef_[:] = 7.0
    assert_array_equal(released.predict(X), before)
    released.coef[:] = 5.0
    for model in twins:
        model.partial_fit(X[30:], y[30:])
    assert_array_equal(twins[0].coef_, twins[1].coef_)


def test_nothing_but_answers_is_released_by_queries():
    X, y = problem(30)
    model = regressor(release="query", n_queries=3).fit(X, y)
    with pytest.raises(ValueError, match="release must not be 'query'"):
        model.released()
    with pytest.raises(NotFittedError):
        regressor().released()


@pytest.mark.parametrize("options", RELEASES, ids=name)
def test_no_view_of_a_live_stream_shows_what_is_private(options):
    X, y = problem(31)
    # Seeded, and with many digits: of a few some would agree by chance.
    model = regressor(**options, random_state=0).fit(X, y)
    numbers = [f"{abs(value):.8g}"[:8] for value in private_numbers(model)]
    numbers = [number for number in numbers if len(number) == 8]
    assert numbers or options["release"] in ("sgd", "tree")  # these hold integers, or nothing
    views = [estimator_html_repr(model), repr(model), str(model), str(vars(model))]
    views += [repr(part) for part in vars(model).values()]
    for view in views:
        assert not any(number in view for number in numbers)
        assert (
            "exact={" not in view
            and "exact=array" not in view
            and "gathered=" not in view
            and "rows=" not in view
        )
        if options["release"] == "query":
            secret = model._stream.release.secret
            assert secret.hex() not in view and str(secret) not in view


@pytest.mark.parametrize("options", WEIGHTS, ids=name)
def test_a_stream_shows_no_array_of_its_own(options):
    X, y = problem(31)
    stream = regressor(**options).fit(X, y)._stream
    assert "array" not in repr(stream)
    for part in {"tree", "prefix"} & vars(stream.release).keys():
        assert "array" not in repr(getattr(stream.release, part))


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


def test_copies_of_a_stream_that_are_read_again_share_its_queries():
    X, y = problem(60)
    model = regressor(release="query", n_queries=6).fit(X[:20], y[:20])
    text = pickle.dumps(model)
    first = model.predict(X[:2])
    del model
    later = pickle.loads(text).partial_fit(X[20:40], y[20:40])
    later.predict(X[:2])  # of another function: two more
    newer = pickle.dumps(later)
    del later
    for _ in range(2):
        gc.collect()
        stale = pickle.loads(text)
        with pytest.raises(StaleStreamError):
            stale.partial_fit(X[20:40], y[20:40])
        assert_array_equal(stale.predict(X[:2]), first)
        with pytest.raises(BudgetExceededError, match="2 of n_queries=6"):
            stale.predict(X[2:5])
        del stale
    pickle.loads(text).predict(X[2:3])
    pickle.loads(newer).predict(X[2:3])
    for last in (text, newer):
        gc.collect()
        with pytest.raises(BudgetExceededError, match="0 of n_queries=6"):
            pickle.loads(last).predict(X[3:4])


def test_a_second_pass_of_the_same_estimator_has_queries_of_its_own():
    X, y = problem(60)
    model = regressor(release="query", n_queries=3).fit(X, y)
    first = model.predict(X[:3])
    assert (model.fit(X, y).predict(X[:3]) != first).all()


def test_copies_in_other_processes_that_go_on_have_other_noise():
    """Else the difference of two answers would be exact."""
    X, y = problem(40)
    model = regressor(0.1, release="query", n_queries=1000, kernel="linear").fit(X, y)
    copies = [copy.deepcopy(model) for _ in range(3)]
    null, points = np.zeros((2, 2)), np.random.default_rng(0).normal(size=(300, 2))
    for twin, rows in zip(copies, (X[:2], null, X[:2]), strict=True):
        twin._stream.line.version = twin._stream.version  # as if nobody else had gone on
        twin.partial_fit(rows, [1.0, 1.0])
    answers = [twin._predictor.answer(points) for twin in copies]
    correlation = np.corrcoef(answers) - np.eye(3)
    assert np.abs(correlation).max() < 6 / math.sqrt(300)


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


def least_delta(epsilon, losses, step=1e-3):
    """Delta of what pure releases compose to: each is the worst that its epsilon allows."""
    counts = [math.ceil(loss / step) for loss in losses]
    pmf = np.ones(1)
    for n in counts:
        p = 1.0 / (1.0 + math.exp(-n * step))
        pmf = np.pad(p * pmf, (2 * n, 0)) + np.pad((1.0 - p) * pmf, (0, 2 * n))
    total = (np.arange(len(pmf)) - sum(counts)) * step
    return float(np.sum(pmf * np.maximum(0.0, -np.expm1(epsilon - total))))


def test_what_a_ledger_takes_of_a_pure_stream_is_within_its_budget(noise, releases):
    """The record that pays most is another one after each release, and a sum over the largest
    increases is not what any record pays."""
    X = np.random.default_rng(0).uniform(-1.0, 1.0, size=(26_000, 1))
    ledger = BudgetLedger(epsilon=5.8, delta=1e-6)
    model = regressor(0.3, theta=0.6, kernel="linear", ledger=ledger)
    times = []
    for time in range(500, 26_500, 500):
        try:
            model.partial_fit(X[time - 500 : time], X[time - 500 : time, 0])
        except BudgetExceededError:
            break
        times.append(time)
    scales = [
        draw[2] * lattice.step
        for draw, lattice in zip(noise.draws, releases.lattices, strict=False)
    ]
    stream = model._stream.release
    t0, width = stream.recursion.t0, 2.0 * stream.recursion.cap * stream.kappa
    worst = 0.0
    for s in range(499, times[-1], 500):  # of the records between two releases the last pays most
        losses = [
            width * (s + t0) ** 0.4 / (time - 1 + t0) / scale
            for time, scale in zip(times, scales, strict=False)
            if time > s
        ]
        worst = max(worst, least_delta(5.8, losses))
    assert worst <= 1e-6
    assert 20 < len(times) < 52


@pytest.mark.parametrize("law", LAWS, ids=["pure", "gaussian"])
def test_streams_and_single_releases_add_up_in_a_ledger_of_another_delta(law):
    X, y = problem(200)
    ledger = BudgetLedger(epsilon=20.0, delta=1e-6)
    streams = [regressor(0.5, n_components=4, ledger=ledger, **law) for _ in range(2)]
    others = [GaussianDP(0.3), GaussianDP(0.4)]
    for start in range(0, 200, 50):
        for model in streams:
            model.partial_fit(X[start : start + 50], y[start : start + 50])
        if others:
            ledger.charge(others.pop())
    expected = compose([model.guarantee_ for model in streams] + [GaussianDP(0.5)])
    assert_allclose(ledger.spent().epsilon, expected.epsilon_at(1e-6), rtol=1e-3)


@pytest.mark.parametrize("options", RELEASES[::5], ids=name)
def test_of_two_copies_in_two_processes_one_goes_on(options, tmp_path):
    X, y = problem(60)
    ledger = BudgetLedger(tmp_path / "budget.db", epsilon=9.0, delta=1e-3)
    text = pickle.dumps(regressor(ledger=ledger, **options).fit(X[:20], y[:20]))
    workers = [elsewhere(GOING_ON, [text]) for _ in range(2)]
    assert sorted(worker() for worker in workers) == [[0], [1]]
    assert len(ledger.history()) == 2
    model = pickle.loads(text)  # this process does not know who has gone on, and the ledger does
    before = snapshot(model)
    with pytest.raises(StaleStreamError):
        model.partial_fit(X[20:], y[20:])
    assert snapshot(model) == before and len(ledger.history()) == 2
    model.fit(X[:20], y[:20]).partial_fit(X[20:], y[20:])


@pytest.mark.parametrize("options", RELEASES, ids=name)
def test_a_refused_charge_leaves_the_model_and_its_stream_whole(options):
    X, y = problem(60)
    ledger = BudgetLedger(epsilon=0.85, delta=1e-4)
    model = regressor(0.8, ledger=ledger, **options).fit(X[:30], y[:30])
    twin = regressor(0.8, **options).fit(X[:30], y[:30])
    before, private = snapshot(model), state(model).copy()
    with pytest.raises(BudgetExceededError):
        clone(model).fit(X, y)
    with pytest.raises(BudgetExceededError):
        model.fit(X[:, :1], y)
    if options["release"] == "final":
        with pytest.raises(BudgetExceededError):
            model.partial_fit(X[30:], y[30:])
        twin.partial_fit(X[30:], y[30:])
        assert twin.guarantee_.epsilon > 0.9  # it would indeed have been too much
    else:
        model.partial_fit(X[30:], y[30:])  # paid for
        assert model.n_samples_seen_ == 60
        return
    assert snapshot(model) == before and len(ledger.history()) == 1
    assert_array_equal(state(model), private)


@pytest.mark.parametrize("options", RELEASES, ids=name)
def test_a_failing_solver_leaves_the_old_stream_and_the_charge(options, monkeypatch):
    X, y = problem(60)
    ledger = BudgetLedger(epsilon=10.0, delta=1e-3)
    model = regressor(ledger=ledger, **options).fit(X[:30], y[:30])
    before, private = snapshot(model), state(model).copy()
    solvers = {
        "final": (_stream_final, "run_features"),
        "sgd": (_stream_fed_back, "run_noisy"),
        "tree": (_stream_tree, "run_tree"),
        "matrix": (_stream_matrix, "run_matrix"),
        "query": (_stream_query, "run_kernel"),
    }

    def fail(*args, **kwargs):
        raise SolverError("no")

    with monkeypatch.context() as patch:
        patch.setattr(*solvers[options["release"]], fail)
        for call in (model.fit, model.partial_fit):
            with pytest.raises(SolverError):
                call(X[30:], y[30:])
            assert snapshot(model) == before
    assert_array_equal(state(model), private)
    assert len(ledger.history()) == 3  # another stream, and one more release of this one
    model.partial_fit(X[30:], y[30:])
    assert model.n_samples_seen_ == 60


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
    early = pickle.dumps(model)
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
    late = pickle.dumps(model)

    _streams._lines.clear()  # another process, with what was pickled before and after the failure
    if when != "before":
        with pytest.raises(StaleStreamError):
            pickle.loads(early).partial_fit(X[30:60], y[30:60])
    _streams._lines.clear()
    model = pickle.loads(late)
    assert len(ledger.history()) == paid
    model.partial_fit(X[30:60], y[30:60]).partial_fit(X[60:], y[60:])
    assert len(ledger.history()) == paid + 2
    assert_allclose(ledger.spent().epsilon, model.guarantee_.epsilon, rtol=1e-9)
    plain.partial_fit(X[30:60], y[30:60]).partial_fit(X[60:], y[60:])
    if options["release"] == "final" and when != "before":
        assert model.guarantee_.epsilon > plain.guarantee_.epsilon * 1.1
    else:
        assert model.guarantee_ == plain.guarantee_


def test_an_interrupt_while_results_are_stored_leaves_the_old_stream(monkeypatch):
    X, y = problem(60)
    model = regressor(10.0, n_components=10).fit(X[:30], y[:30])
    before = snapshot(model)
    plain = DPOnlineKernelRegressor.__setattr__

    def interrupt(self, name, value):
        if name == "n_samples_seen_":
            raise KeyboardInterrupt
        plain(self, name, value)

    monkeypatch.setattr(DPOnlineKernelRegressor, "__setattr__", interrupt, raising=False)
    with pytest.raises(KeyboardInterrupt):
        model.partial_fit(X[30:], y[30:])
    monkeypatch.undo()
    assert snapshot(model) == before
    model.partial_fit(X[30:], y[30:])


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


@pytest.mark.parametrize("options", RELEASES, ids=name)
def test_rows_of_another_width_are_refused(options):
    X, y = problem(60)
    model = regressor(**options).fit(X, y)
    before = snapshot(model)
    with pytest.raises(ValueError, match="features"):
        model.partial_fit(X[:, :1], y)
    with pytest.raises(ValueError, match="features"):
        model.predict(X[:, :1])
    with pytest.raises(ValueError, match="NaN"):
        model.partial_fit(X, np.full(60, np.nan))
    assert snapshot(model) == before
    if options["release"] != "query":
        with pytest.raises(ValueError):
            model.released().predict(X[:, :1])


def test_a_seed_beside_a_ledger_warns():
    X, y = problem(30)
    ledger = BudgetLedger(epsilon=10.0, delta=0.1)
    with pytest.warns(PrivacyWarning, match="random_state is set"):
        regressor(random_state=0, ledger=ledger, n_components=4).fit(X, y)


def test_refits_in_another_way_leave_nothing_behind():
    X, y = problem(60)
    model = regressor(release="query", n_queries=5).fit(X, y)
    model.set_params(release="final", n_components=10).fit(X, y)
    assert model._predictor.coef is model.coef_ and model.coef_.shape == (10,)
    assert type(model._stream.release) is FinalRelease
    model.set_params(kernel="linear", release="tree", horizon=60).fit(X, y)
    assert not hasattr(model, "frequencies_") and model.coef_.shape == (2,)
    model.set_params(release="query").fit(X, y)
    assert not hasattr(model, "coef_") and model.predict(X[:5]).shape == (5,)
    assert type(model._stream.release) is QueryRelease


def test_a_stream_can_be_a_step_of_a_pipeline():
    X, y = problem(200)
    ledger = BudgetLedger(epsilon=1.0)
    pipeline = make_pipeline(BoundedScaler((-1.0, 1.0)), regressor(ledger=ledger)).fit(X, y)
    assert np.isfinite(pipeline.predict(X)).all() and len(ledger.history()) == 1


def test_an_array_that_changes_later_does_not_change_the_stream():
    X, y = problem(50)
    for kernel in ("rbf", "linear"):
        twins = [
            regressor(kernel=kernel, release="query", n_queries=20, random_state=0)
            for _ in range(2)
        ]
        rows = X.copy()
        for model, data in zip(twins, (rows, X), strict=True):
            model.fit(data, y)
        rows[:] = 7.0
        assert_array_equal(twins[0].predict(X[:5]), twins[1].predict(X[:5]))
        for model in twins:
            model.partial_fit(X, y)
        assert_array_equal(twins[0].predict(X[:5]), twins[1].predict(X[:5]))


# Bad input


@pytest.mark.parametrize(
    "options, message",
    [
        (dict(epsilon=0), "epsilon must be a positive"),
        (dict(epsilon="auto"), "epsilon must be a positive"),
        (dict(epsilon=1e-14), "epsilon must be larger"),
        (dict(epsilon=1e-14, release="sgd"), "epsilon must be larger"),
        (dict(epsilon=1e-14, release="tree", horizon=99), "epsilon must be larger"),
        (dict(release="query", n_queries=10**15), "epsilon must be larger: .* fewer n_queries"),
        (dict(delta=1.0), "delta must be at least 0"),
        (dict(gamma=0.0), "gamma must be a positive"),
        (dict(kernel="poly"), "kernel must be one of"),
        (dict(kernel="matern", nu=1.0), "nu must be 0.5, 1.5 or 2.5"),
        (dict(theta=0.5), "theta must be above 1/2 and below 1; got 0.5"),
        (dict(theta=1.0), "theta must be above 1/2 and below 1; got 1.0"),
        (dict(theta=-1.0), "theta must be a positive"),
        (dict(theta=math.nan), "theta must be a positive"),
        (dict(theta="auto"), "theta must be a positive"),
        (dict(t0=1.0), "t0 must be at least 2.4.* with theta=0.6"),
        (dict(t0=2.4, theta=0.6), "t0 must be at least 2.4"),
        (dict(t0=0.0), "t0 must be a positive"),
        (dict(t0=math.inf), "t0 must be a"),
        (dict(t0=1e40), "t0 must be"),
        (dict(t0=1e300, release="query", n_queries=3), "t0 must be"),
        (dict(t0="large"), "t0 must be 'auto' or a positive number"),
        (dict(t0=None), "t0 must be a positive"),
        (dict(radius=0.0), "radius must be a positive"),
        (dict(radius=-1.0), "radius must be a positive"),
        (dict(radius=1e7), "radius must be between 1e-6 and 1e6"),
        (dict(radius=1e-7), "radius must be between 1e-6 and 1e6"),
        (dict(residual="squared"), "residual must be one of"),
        (dict(residual="plain", release="sgd"), "residual must be 'huber' or 'ball' with"),
        (dict(residual="plain", release="tree", horizon=99), "residual must be 'huber' or 'ball'"),
        (dict(residual_cap=-1.0), "residual_cap must be a positive"),
        (dict(residual_cap=1e-9), "residual_cap must be between 1e-6 and 1e6"),
        (dict(residual_cap="large"), "residual_cap must be 'auto' or"),
        (dict(sensitivity="loose"), "sensitivity must be one of"),
        (dict(release="all"), "release must be one of"),
        (dict(release="tree"), "horizon must be a positive int with release='tree'; got None"),
        (dict(release="tree", horizon=0), "horizon must be a positive int"),
        (dict(release="tree", horizon=20.0), "horizon must be a positive int"),
        (dict(release="tree", horizon=True), "horizon must be a positive int"),
        (dict(release="tree", horizon=19), "horizon must be at least"),
        (dict(horizon=0), "horizon must be a positive int"),
        (dict(delta=1e-6, horizon=19), "horizon must be at least .* would make 20; got 19.*fit"),
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
        (dict(release="query"), "n_queries must be a positive int with release='query'; got None"),
        (dict(release="query", n_queries=0), "n_queries must be a positive int"),
        (dict(release="query", n_queries=2.0), "n_queries must be a positive int"),
        (dict(n_components=0), "n_components must be 'auto' or a positive int"),
        (dict(n_components=2.5), "n_components must be 'auto' or a positive int"),
        (dict(n_components=10**7), "n_components must be smaller: .* GiB"),
        (dict(y_bounds=(1, -1)), "y_bounds must be .* low first"),
        (dict(y_bounds=(0, math.inf)), r"y_bounds\[1\] must be a finite"),
        (dict(y_bounds="auto"), "y_bounds must be .*clipped as they come"),
        (dict(x_norm=0.0), "x_norm must be a positive"),
        (dict(adjacency="both"), "adjacency must be one of"),
        (dict(random_state=-1), "random_state must be None"),
        (dict(release="query", n_queries=3, random_state="a"), "random_state must be None"),
        (dict(orthogonal="no"), "orthogonal must be True or False"),
        (dict(ledger="file"), "ledger must be None, a BudgetLedger"),
    ],
    ids=lambda value: str(value)[:50],
)
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_bad_parameters_are_named_before_the_ledger_is_charged(options, message, method):
    X, y = problem(20)
    ledger = BudgetLedger(epsilon=10.0, delta=0.1)
    model = DPOnlineKernelRegressor(**{"ledger": ledger, "y_bounds": (-1.0, 1.0), **options})
    with pytest.raises(ValueError, match=message):
        getattr(model, method)(X, y)
    assert not ledger.history()
    assert not hasattr(model, "_stream") and not hasattr(model, "n_features_in_")


@pytest.mark.parametrize(
    "change",
    [
        dict(epsilon=0.5),
        dict(delta=1e-5),
        dict(kernel="laplacian"),
        dict(gamma=2.0),
        dict(theta=0.7),
        dict(t0=10.0),
        dict(residual="ball"),
        dict(residual_cap=0.1),
        dict(sensitivity="paper"),
        dict(release="sgd"),
        dict(n_components=30),
        dict(y_bounds=(0.0, 1.0)),
        dict(adjacency="add-remove"),
        dict(horizon=500),
        dict(n_queries=500),
        dict(random_state=3),
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


def test_equal_parameters_are_no_change():
    X, y = problem(20)
    model = regressor(y_bounds=[-1.0, 1.0]).fit(X, y)
    model.set_params(y_bounds=[-1.0, 1.0], kernel="".join(["rb", "f"])).partial_fit(X, y)
    assert model.n_samples_seen_ == 40


def test_rows_that_do_not_fit_into_memory_are_refused_before_the_charge(monkeypatch):
    X, y = problem(2000)
    monkeypatch.setattr(_limits.os, "sysconf", lambda name: 100)
    ledger = BudgetLedger(epsilon=10.0)
    model = regressor(release="query", n_queries=5, ledger=ledger)
    model.fit(X[:100], y[:100])
    with pytest.raises(ValueError, match="X must have fewer rows"):
        model.partial_fit(X, y)
    assert model.n_samples_seen_ == 100 and len(ledger.history()) == 1
    with pytest.raises(ValueError, match="X must have fewer rows"):
        model.fit(X, y)
    assert len(ledger.history()) == 1


@pytest.mark.parametrize(
    "options, size",
    [
        (dict(), 200),
        (dict(delta=1e-5), 1000),
        (dict(release="sgd", delta=1e-5), 200),
        (dict(release="tree", horizon=50), 200),
        (dict(delta=1e-6, horizon=50), 200),
        (dict(n_components=7), 8),
    ],
    ids=lambda value: name(value) if isinstance(value, dict) else "",
)
def test_the_number_of_features_has_a_default_and_is_even(options, size):
    X, y = problem(30)
    model = regressor(**options).fit(X, y)
    assert model.coef_.shape == (size,) and model.frequencies_.shape == (size // 2, 2)
