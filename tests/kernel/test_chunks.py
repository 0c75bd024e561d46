"""Streams without end: one release of the rows of each call, and what follows from it."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone

from skdp.audit import recording
from skdp.exceptions import BudgetExceededError, StaleStreamError
from skdp.kernel import DPOnlineClassifier, DPOnlineKernelRegressor
from skdp.kernel._online._chunk import Curvatures
from skdp.privacy import BudgetLedger, GaussianDP

ADJACENCIES = ["replace-one", "add-remove"]


def regressor(**options):
    return DPOnlineKernelRegressor(**{"y_bounds": (-1, 1), "delta": 1e-6, **options})


def classifier(**options):
    return DPOnlineClassifier(**{"delta": 1e-6, "classes": [0, 1], **options})


KINDS = {"numbers": regressor, "classes": classifier}
EACH = pytest.mark.parametrize("kind", KINDS)


def problem(kind, n=2000, seed=0, turned=1.0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 3)) / 2
    signal = turned * (X[:, 0] - X[:, 1])
    return X, signal if kind == "numbers" else (signal + rng.normal(0, 0.1, n) > 0).astype(int)


def in_calls(model, X, y, size=500, **options):
    for start in range(0, len(y), size):
        own = {name: values[start : start + size] for name, values in options.items()}
        model.partial_fit(X[start : start + size], y[start : start + size], **own)
    return model


# What it costs


@EACH
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_a_longer_stream_costs_nothing(kind, adjacency, delta):
    ledger = BudgetLedger(epsilon=1.0, delta=delta)
    X, y = problem(kind, 900)
    model = KINDS[kind](epsilon=1.0, delta=delta, adjacency=adjacency, ledger=ledger)
    model.partial_fit(X[:100], y[:100])
    first = model.guarantee_
    in_calls(model, X[100:], y[100:], 100)
    assert model.guarantee_ == first and first.epsilon == 1.0
    assert_allclose(ledger.spent().epsilon, 1.0)
    assert sum(not record.is_replaced for record in ledger.history()) == 1
    with pytest.raises(BudgetExceededError):
        model.fit(X, y)


@EACH
def test_the_releases_of_a_call_compose_to_the_claim(kind):
    X, y = problem(kind, 300)
    for adjacency, names in zip(ADJACENCIES, (2, 3), strict=True):
        model = KINDS[kind](adjacency=adjacency)
        with recording() as released:
            model.partial_fit(X, y)
        assert len(released) == names
        total = sum((one.sensitivity / one.scale) ** 2 for one in released) ** 0.5
        claim = model.guarantee_.refined
        assert isinstance(claim, GaussianDP)
        assert 0.98 * claim.mu <= total <= claim.mu  # the lattice of the noise takes some


@EACH
def test_users_of_several_calls_are_paid_for_and_others_left_out(kind):
    X, y = problem(kind, 900)
    owners = np.arange(900) % 150  # each in three of six calls
    model = KINDS[kind](max_calls_per_user=2, random_state=0)
    once = KINDS[kind](random_state=0)
    in_calls(model, X, y, 300, groups=owners)
    assert model.guarantee_.unit == "user" and model.guarantee_.epsilon == 1.0
    scales = []
    for one in (model, once):
        with recording() as released:
            clone(one).partial_fit(X[:150], y[:150], groups=owners[:150])
        scales.append(released[0].scale / released[0].sensitivity)
    assert_allclose(scales[0] / scales[1], np.sqrt(2.0))
    # The third call has no one left who counts.
    other = KINDS[kind](max_calls_per_user=2, random_state=0)
    in_calls(other, X[:600], y[:600], 300, groups=owners[:600])
    in_calls(other, -X[600:], y[600:], 300, groups=owners[600:])
    assert_array_equal(other.coef_, model.coef_)


# What is kept


@EACH
def test_nothing_is_kept_but_what_was_released(kind):
    X, y = problem(kind, 700)
    model = KINDS[kind]()
    with recording() as released:
        in_calls(model, X, y, 350)
    # Exact numbers are known to whoever records; a stream that nobody recorded has none.
    assert len(released) == 4
    model = in_calls(KINDS[kind](), X, y, 350)
    stored = pickle.dumps(model)
    assert not any(value.tobytes() in stored for value in X.ravel())
    if kind == "numbers":
        assert not any(value.tobytes() in stored for value in y)
    assert len(stored) == len(pickle.dumps(in_calls(model, X, y, 350)))  # as long after more rows


@EACH
def test_a_stream_goes_on_from_a_pickle_and_only_once(kind):
    X, y = problem(kind, 900)
    whole = in_calls(KINDS[kind](random_state=3), X, y, 300)
    half = in_calls(KINDS[kind](random_state=3), X[:600], y[:600], 300)
    copy = pickle.loads(pickle.dumps(half))
    in_calls(copy, X[600:], y[600:], 300)
    assert_array_equal(copy.coef_, whole.coef_)
    with pytest.raises(StaleStreamError):
        half.partial_fit(X[600:], y[600:])


@EACH
def test_a_private_number_of_rows_is_told_with_noise_alone(kind):
    X, y = problem(kind, 400)
    told = set()
    for _ in range(5):
        model = KINDS[kind](adjacency="add-remove", epsilon=0.5).partial_fit(X, y)
        told.add(model.n_samples_seen_)
    assert len(told) > 1  # all five alike by chance: less than 1e-6, as the deviation is 20 rows
    assert KINDS[kind]().partial_fit(X, y).n_samples_seen_ == 400


@EACH
def test_many_rows_are_several_releases_only_where_they_have_public_places(kind):
    X, y = problem(kind, 2100)
    counts = {}
    for adjacency in ADJACENCIES:
        with recording() as released:
            KINDS[kind](adjacency=adjacency).partial_fit(X, y)
        counts[adjacency] = len(released)
    assert counts == {"replace-one": 2 * 2, "add-remove": 3}
    with recording() as released:
        KINDS[kind]().partial_fit(X, y, groups=np.arange(2100))
    assert len(released) == 2


# What it learns


@EACH
def test_models_are_better_than_none_and_stay_so(kind):
    X, y = problem(kind, 20_000)
    model = in_calls(KINDS[kind](epsilon=2.0, random_state=0), X, y, 1000)
    score = model.score(X, y)  # .9 and more with other seeds
    assert score > (0.6 if kind == "numbers" else 0.85)
    assert model.half_life_ in (2.0, 10.0, np.inf)
    if kind == "classes":
        shares = model.predict_proba(X)
        assert_allclose(shares.sum(axis=1), 1.0)
        assert_allclose(np.exp(model.predict_log_proba(X)), shares)
        assert 0.5 <= model.temperature_ <= 2.0


@EACH
def test_what_is_over_is_forgotten_by_released_numbers(kind):
    X, y = problem(kind, 20_000)
    turned, other = problem(kind, 12_000, seed=1, turned=-1.0)
    for half_life in ("auto", np.inf):
        model = in_calls(KINDS[kind](epsilon=5.0, half_life=half_life, random_state=0), X, y)
        before = model.score(turned, other)
        in_calls(model, turned, other)
        if half_life == "auto":
            assert model.half_life_ < np.inf and model.drift_ > 0.0
            assert model.score(turned, other) > before + 0.3
            forgetting = model.score(turned, other)
        else:
            assert model.half_life_ in (0.0, np.inf)  # maybe none is better
            assert model.score(turned, other) < forgetting


def test_several_classes_need_not_come_in_each_call():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (6000, 3)) / 2
    y = np.array(["low", "middle", "high"])[np.digitize(X[:, 0], [-0.2, 0.2])]
    model = DPOnlineClassifier(5.0, 1e-6, random_state=0)
    first = y != "middle"
    model.partial_fit(X[first][:600], y[first][:600], classes=["low", "middle", "high"])
    in_calls(model, X, y, 600)
    assert model.coef_.shape == (3, 3) and model.predict_proba(X).shape == (6000, 3)
    assert model.score(X, y) > 0.55  # one third by chance
    with pytest.raises(ValueError, match="classes must"):
        model.partial_fit(X[:9], np.full(9, "other"))


@EACH
def test_sparse_rows_are_learned_as_dense_ones(kind):
    X, y = problem(kind, 600)
    X[X < 0] = 0.0
    kernel = dict(kernel="linear", random_state=0)
    dense = in_calls(KINDS[kind](**kernel), X, y, 200)
    thin = in_calls(KINDS[kind](**kernel), sparse.csr_array(X), y, 200)
    assert_allclose(thin.coef_, dense.coef_)


def test_directions_that_noise_hides_share_what_is_missing():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(500, 4)) * [1.0, 0.5, 0.01, 0.01]
    rows /= np.linalg.norm(rows, axis=1).max()
    square = float((rows**2).sum(axis=1).mean())
    found = Curvatures.of(rows.T @ rows / 500, 0.01, 1.0)
    assert (found.divisors >= 1.0 / 8.0).all()  # half of the mean of a square of 1
    assert found.supposed.sum() >= square
    assert found.stretched**2 <= found.supposed.sum() * 8.0


@EACH
@pytest.mark.parametrize(
    ("options", "words"),
    [
        (dict(half_life=0.0), "half_life must be"),
        (dict(half_life="short"), "half_life must be"),
        (dict(half_life=float("nan")), "half_life must be"),
        (dict(max_calls_per_user=0), "max_calls_per_user must be"),
        (dict(n_components=0, kernel="rbf"), "n_components must be"),
        (dict(kernel="poly"), "kernel must be"),
    ],
)
def test_bad_parameters_are_refused_before_the_charge(kind, options, words):
    ledger = BudgetLedger(epsilon=1.0, delta=1e-6)
    X, y = problem(kind, 50)
    with pytest.raises(ValueError, match=words):
        KINDS[kind](ledger=ledger, **options).partial_fit(X, y)
    assert not ledger.history()


@EACH
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_a_call_of_nobody_is_a_release_like_others(kind, adjacency):
    X, y = problem(kind, 120)
    owners = np.repeat(np.arange(60), 2)
    model = KINDS[kind](adjacency=adjacency).partial_fit(X, y, groups=owners)
    before = model.coef_.copy()
    with recording() as released:
        model.partial_fit(X, y, groups=owners)  # all have come before
    assert len(released) == {"replace-one": 2, "add-remove": 3}[adjacency]
    assert (model.coef_ != before).any()
    if adjacency == "add-remove":
        model = KINDS[kind](adjacency=adjacency).partial_fit(X, y)
        with recording() as released:
            model.partial_fit(X[:0], y[:0])
        assert len(released) == 3


def test_classes_are_the_same_in_all_calls():
    X, y = problem("classes", 50)
    with pytest.raises(ValueError, match="classes must be the same"):
        classifier().partial_fit(X, y, classes=[0, 1, 2])
    model = DPOnlineClassifier().partial_fit(X, y, classes=[0, 1])
    with pytest.raises(ValueError, match="classes must be the same"):
        model.partial_fit(X, y, classes=[0, 2])


@EACH
def test_what_is_released_predicts_alone(kind):
    X, y = problem(kind, 300)
    model = KINDS[kind]().partial_fit(X, y, groups=[f"patient {i}" for i in range(300)])
    given = pickle.dumps(model.released())
    assert b"patient" not in given + pickle.dumps(model)
    assert_array_equal(pickle.loads(given).predict(X), model.predict(X))


@EACH
def test_a_month_may_be_a_file(kind, tmp_path):
    dataset, parquet = (
        pytest.importorskip("pyarrow.dataset"),
        pytest.importorskip("pyarrow.parquet"),
    )
    X, y = problem(kind, 300)
    table = dict(zip("abc", X.T, strict=True)) | {"target": y, "owner": np.arange(300) // 3}
    parquet.write_table(pytest.importorskip("pyarrow").table(table), tmp_path / "month")
    month = dataset.dataset(tmp_path / "month")
    found = KINDS[kind](random_state=0).partial_fit(month, "target", groups="owner")
    model = KINDS[kind](random_state=0).partial_fit(X, y, groups=table["owner"])
    assert_array_equal(found.coef_, model.coef_)
    assert found.feature_names_in_.tolist() == list("abc")


# Bounds of the target


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("users", [False, True])
def test_bounds_of_the_target_are_learned_from_the_first_call(adjacency, delta, users):
    X, y = problem("numbers", 4000)
    y = 300.0 + 50.0 * y
    ids = {"groups": np.arange(4000)} if users else {}
    # So much that bounds are more than noise, whatever is drawn.
    ledger = BudgetLedger(epsilon=20.0, delta=delta)
    options = dict(epsilon=20.0, delta=delta, adjacency=adjacency, ledger=ledger)
    model = regressor(y_bounds="auto", **options)
    model.partial_fit(X[:2000], y[:2000], **{name: own[:2000] for name, own in ids.items()})
    low, high = model.y_bounds_
    assert 200.0 < low < 280.0 and 320.0 < high < 400.0
    parts = {name: own[2000:] for name, own in ids.items()}
    in_calls(model, X[2000:], 10.0 * y[2000:], 500, **parts)  # what is beyond is clipped
    assert model.y_bounds_ == (low, high) and ledger.spent().epsilon <= 20.0
    assert len({record.guarantee for record in ledger.history()}) == 1
    released = model.released()
    assert_array_equal(released.predict(X[:5]), model.predict(X[:5]))
    assert (model.predict(X) <= high).all()


def test_bounds_and_the_first_call_share_the_budget():
    X, y = problem("numbers")
    model = regressor(y_bounds="auto", epsilon=1.0)
    model.partial_fit(X, y)
    alone = regressor(epsilon=1.0).partial_fit(X, y)
    own, whole = (each._stream.release.parts[2].mu for each in (model, alone))
    assert 0.9 * whole < own < whole
    assert model.guarantee_.epsilon_at(1e-6) <= 1.0
    assert model.guarantee_.refined.epsilon_at(1e-6) == pytest.approx(1.0, abs=1e-4)


def test_bounds_are_learned_where_a_release_is_of_its_own_rows_alone():
    X, y = problem("numbers", 200)
    for options in ({"horizon": 500}, {"release": "final"}, {"release": "sgd"}):
        with pytest.raises(ValueError, match="y_bounds must be two numbers with release"):
            regressor(y_bounds="auto", **options).partial_fit(X, y)
    with pytest.raises(ValueError, match="epsilon must be at least"):
        regressor(y_bounds="auto").partial_fit(X[:5], y[:5])
