"""MIPrivateSGDRegressor: two parties in one estimator, and each of them apart."""

import copy
import json
import math
import pickle

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks
from support.insides import GridNoise, TargetRange, residual_slope
from support.noise import Silent
from support.problems import plane as problem

import skdp.linear_model._mi_learner as module
from skdp.audit import recording
from skdp.exceptions import BudgetExceededError, PrivacyWarning
from skdp.linear_model import MIPrivateSGDRegressor
from skdp.linear_model._mi_learner import MessageStream
from skdp.linear_model._mi_regret import loss_of
from skdp.local import GradientPrivatizer, OnePointPrivatizer, ValuePrivatizer, _base
from skdp.preprocessing import BoundedScaler
from skdp.privacy import BudgetLedger, GaussianDP, Guarantee, MutualInformationPrivacy, compose
from skdp.solvers.ogd import OGDState, run_noised

LOSSES = ["absolute", "huber", "epsilon_insensitive", "squared"]
BANDIT = dict(feedback="bandit")
VECTOR = dict(feedback="bandit", perturbation="vector")
MODES = {
    "full": dict(),
    "full, k-norm": dict(noise="k_norm"),
    "full, huber": dict(loss="huber", horizon=500),
    "full, epsilon": dict(loss="epsilon_insensitive", fit_intercept=False, average=False),
    "full, squared": dict(
        loss="squared", step=0.01, y_bounds=(-2, 3), x_norm=1.7, average="uniform"
    ),
    "bandit": BANDIT,
    "bandit, k-norm": dict(noise="k_norm", horizon=500, intercept_scaling=0.3, **BANDIT),
    "bandit, squared": dict(loss="squared", fit_intercept=False, **BANDIT),
    "vector": VECTOR,
    "vector, k-norm": dict(noise="k_norm", loss="huber", horizon=500, **VECTOR),
}
every_mode = pytest.mark.parametrize("options", MODES.values(), ids=MODES)
some_modes = pytest.mark.parametrize(
    "options", [MODES["full"], MODES["bandit"], MODES["vector"]], ids=["full", "bandit", "vector"]
)


def regressor(mi_budget=1.0, **options):
    return MIPrivateSGDRegressor(mi_budget, **{"y_bounds": (-1.0, 1.0), **options})


def same(a, b):
    """Whether two models are the same bit by bit."""
    for name in ("coef_", "intercept_", "weights_", "n_samples_seen_"):
        assert_array_equal(getattr(a, name), getattr(b, name))
    for name in ("theta", "total", "time"):
        assert_array_equal(getattr(a._stream.state, name), getattr(b._stream.state, name))
    assert a.guarantee_ == b.guarantee_
    assert a.noise_scale_ == b.noise_scale_
    assert a.regret_bound_ == b.regret_bound_


def snapshot(model):
    return {key: id(value) for key, value in vars(model).items()}


@pytest.fixture
def no_noise(monkeypatch):
    monkeypatch.setattr(module, "noise_source", lambda random_state: Silent())


@pytest.mark.filterwarnings("ignore:y_bounds is None")
@parametrize_with_checks(
    [
        MIPrivateSGDRegressor(),
        MIPrivateSGDRegressor(y_bounds=(-1.0, 1.0)),
        MIPrivateSGDRegressor(feedback="bandit", y_bounds=(-1.0, 1.0)),
        MIPrivateSGDRegressor(feedback="bandit", perturbation="vector", y_bounds=(-1.0, 1.0)),
        MIPrivateSGDRegressor(
            noise="k_norm", keep_iterates=True, average=False, y_bounds=(-1.0, 1.0)
        ),
        MIPrivateSGDRegressor(
            loss="huber", horizon=100, fit_intercept=False, y_bounds=(-1.0, 1.0)
        ),
        MIPrivateSGDRegressor(
            loss="epsilon_insensitive", unit="bits", noise="k_norm", y_bounds=(-1.0, 1.0)
        ),
        MIPrivateSGDRegressor(intercept_scaling=0.3, average="uniform", y_bounds=(-1.0, 1.0)),
        MIPrivateSGDRegressor(
            loss="squared", feedback="bandit", noise="k_norm", step=0.01, y_bounds=(-1.0, 1.0)
        ),
    ]
)
def test_sklearn_conventions(estimator, check):
    check(estimator)


# One stream


@every_mode
@pytest.mark.parametrize("size", [1, 7, 300])
def test_any_chunks_are_one_fit_bit_by_bit(options, size):
    X, y = problem(500 if size > 1 else 60)
    options = dict(random_state=3, keep_iterates=True, **options)
    whole = regressor(**options).fit(X, y)
    parts = regressor(**options)
    for start in range(0, len(y), size):
        parts.partial_fit(X[start : start + size], y[start : start + size])
    same(parts, whole)
    assert_array_equal(parts.iterates_, whole.iterates_)
    assert whole.n_samples_seen_ == len(y)
    assert_array_equal(parts.predict(X), whole.predict(X))


@some_modes
def test_blocks_of_a_long_fit_leave_no_seam(options, monkeypatch):
    X, y = problem(700)
    whole = regressor(random_state=0, keep_iterates=True, **options).fit(X, y)
    monkeypatch.setattr(module, "_BLOCK", 64 * 4)
    parts = regressor(random_state=0, keep_iterates=True, **options).fit(X, y)
    same(parts, whole)
    assert_array_equal(parts.iterates_, whole.iterates_)


@every_mode
def test_seeds_reproduce_and_their_absence_does_not(options):
    X, y = problem(60)
    first, again = (regressor(random_state=5, **options).fit(X, y) for _ in range(2))
    same(first, again)
    for state in (lambda: np.random.RandomState(5), lambda: np.random.default_rng(5)):
        same(*(regressor(random_state=state(), **options).fit(X, y) for _ in range(2)))
    others = [regressor(random_state=state, **options) for state in (6, None, None)]
    found = {model.fit(X, y).weights_.tobytes() for model in (first, *others)}
    assert len(found) == 4


@every_mode
def test_fit_starts_afresh(options):
    X, y = problem(80)
    model = regressor(random_state=0, **options).fit(X[:50], y[:50]).partial_fit(X, y)
    same(model.fit(X[:50], y[:50]), clone(model).fit(X[:50], y[:50]))


@every_mode
@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_copies_go_on_as_the_stream_would(options, duplicate):
    X, y = problem(80)
    model = regressor(random_state=0, **options).fit(X[:40], y[:40])
    twin = duplicate(model)
    before = twin.weights_.copy()
    model.partial_fit(X[40:], y[40:])
    assert_array_equal(twin.weights_, before)
    same(twin.partial_fit(X[40:], y[40:]), model)


@every_mode
def test_layouts_of_the_input_agree(options):
    X, y = problem(120)
    X[::3, 1] = 0.0
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    plain = regressor(random_state=0, **options).fit(X, y)
    layouts = [np.asfortranarray(X), frame, sparse.csr_array(X), sparse.csc_matrix(X), X.tolist()]
    for layout in layouts:
        model = regressor(random_state=0, **options).fit(layout, y)
        same(model, plain)
        assert_allclose(model.predict(layout), plain.predict(X), rtol=1e-12)
        if layout is frame:
            assert list(model.feature_names_in_) == ["a", "b", "c"]
            with pytest.raises(ValueError, match="feature names"):
                model.partial_fit(frame[["c", "b", "a"]], y)
            same(model, plain)


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.float16, bool])
def test_targets_of_any_numeric_type_are_taken_in_double_precision(dtype):
    X, y = problem(50)
    narrow = (100 * y).astype(dtype)
    fits = [
        regressor(y_bounds=(-200, 200), random_state=0).fit(X, target)
        for target in (narrow, narrow.astype(float))
    ]
    same(*fits)


def test_parameters_of_other_types_are_the_same_parameters():
    X, y = problem(50)
    plain = regressor(1, random_state=0, horizon=50, y_bounds=(-1, 1), average=True).fit(X, y)
    other = regressor(np.float32(1), random_state=np.int64(0), horizon=np.int64(50))
    other.set_params(y_bounds=np.array([-1.0, 1.0]), x_norm=1, average=np.True_)
    same(other.fit(X, y).partial_fit(X, y), plain.partial_fit(X, y))


def test_a_model_says_what_it_is():
    X, y = problem(50)
    model = regressor().fit(X, y)
    assert model.coef_.shape == (3,) and isinstance(model.intercept_, float)
    assert model.weights_.shape == (4,) and model.n_features_in_ == 3
    assert regressor(fit_intercept=False).fit(X, y).intercept_ == 0.0
    pipe = make_pipeline(BoundedScaler(bounds=(-1, 1)), regressor()).fit(X, y)
    assert np.isfinite(pipe.predict(X)).all()
    for name in ("guarantee_", "iterates_", "regret_bound_"):
        assert not hasattr(regressor(), name)
    for call in (lambda m: m.predict(X), lambda m: m.tell(0.0), lambda m: m.regret(X, y)):
        with pytest.raises(NotFittedError):
            call(regressor())


# What is learned


def test_units_of_rows_and_targets_do_not_matter():
    X, y = problem(200)
    for options in MODES.values():
        options = {k: v for k, v in options.items() if k not in ("x_norm", "y_bounds")}
        plain = regressor(random_state=0, **options).fit(X, y)
        if "intercept_scaling" in options:
            options["intercept_scaling"] *= 4.0
        large = regressor(random_state=0, x_norm=4.0, y_bounds=(50, 150), **options)
        large.fit(4 * X, 100 + 50 * y)
        assert_allclose(large.weights_, plain.weights_, rtol=1e-4, atol=1e-5)
        assert_allclose(large.predict(4 * X), 100 + 50 * plain.predict(X), rtol=1e-4)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("average", ["late", "uniform", False])
@pytest.mark.parametrize("loss", LOSSES)
def test_without_noise_the_recursion_is_projected_gradient_descent(
    loss, average, fit_intercept, no_noise
):
    X, y = problem(300)
    X[0], X[1] = 1e200, -1e-200
    options = dict(loss=loss, average=average, fit_intercept=fit_intercept)
    options.update(x_norm=0.9, y_bounds=(-0.5, 1.0), radius=0.6, step=0.05)
    options.update(intercept_scaling=0.27)
    model = regressor(5.0, keep_iterates=True, **options).fit(X, y)
    scaled = X.copy()
    scaled[0] = 1.0
    rows = scaled / np.maximum(0.9, np.linalg.norm(scaled, axis=1, keepdims=True))
    constant = 77 / 256  # the multiple of 1/256 that is next to 0.27 / 0.9
    rows = np.hstack([rows, np.full((300, 1), constant)])[:, : 3 + fit_intercept]
    targets = (np.clip(y, -0.5, 1.0) - 0.25) / 0.75
    theta, played = np.zeros(3 + fit_intercept), []
    width = {"absolute": 0.0, "huber": 0.3, "epsilon_insensitive": 0.1, "squared": 1.0}[loss]
    for x, target in zip(rows, targets, strict=True):
        w = 0.05 * theta
        w *= min(1.0, 0.6 / max(np.linalg.norm(w), 1e-9))
        played.append(w)
        r = w @ x - target
        if loss in ("huber", "squared"):
            psi = np.clip(r, -width, width)
        else:
            psi = np.sign(r) * (abs(r) > width)
        theta = theta - psi * x
    # Slopes jump where a residual crosses a kink, there the grid decides.
    atol = 0.02 if loss in ("huber", "squared") else 0.05
    assert_allclose(model.iterates_, played, atol=atol)
    last = 0.05 * theta
    last *= min(1.0, 0.6 / np.linalg.norm(last))
    shares = np.arange(1.0, 301.0) ** (3 if average == "late" else 0)
    chosen = np.average(played, axis=0, weights=shares) if average else last
    assert_allclose(model.coef_, chosen[:3] * 0.75 / 0.9, atol=atol)
    offset = constant * chosen[3] if fit_intercept else 0.0
    assert_allclose(model.intercept_, 0.25 + 0.75 * offset, atol=atol)
    assert_allclose(model.weights_, last, atol=atol)
    inside = np.clip(X @ model.coef_ + model.intercept_, -0.5, 1.0)
    assert_allclose(model.predict(X), inside, rtol=1e-12)


@pytest.mark.parametrize(
    "options, least",
    [
        (dict(), 0.6),
        (dict(loss="huber"), 0.6),
        (dict(loss="squared"), 0.6),
        (dict(loss="epsilon_insensitive", noise="k_norm"), 0.5),
        (dict(horizon=20_000, average=False), 0.4),
        (dict(average="uniform", **BANDIT), 0.0),
    ],
    ids=str,
)
def test_a_private_stream_learns(options, least):
    X, y = problem(21_000)
    model = regressor(2.0, random_state=0, **options).fit(X[:20_000], y[:20_000])
    assert model.score(X[20_000:], y[20_000:]) > least


def test_predictions_stay_within_the_bounds_and_rows_far_away_do_no_harm():
    X, y = problem(60)
    X[0], X[1], X[2] = 1e300, -1e300, (1e300, -1e-300, 5e-324)
    y[:4] = 1e300, -1e300, 7, -7
    for options in MODES.values():
        model = regressor(**options).fit(X, y)
        low, high = model.y_bounds
        with np.errstate(over="ignore"):
            found = model.predict(X)
        assert (found >= low).all() and (found <= high).all()


@pytest.mark.parametrize("budget", [1e-6, 1e-3, 30.0, 100.0])
@every_mode
def test_extreme_budgets_fit(options, budget):
    X, y = problem(30)
    model = regressor(budget, **options).fit(X, y)
    assert np.isfinite(model.predict(X)).all()
    assert model.guarantee_.nats == budget
    assert 0.0 <= model.guarantee_.delta_at(1.0) <= 1.0


def test_more_budget_is_less_noise():
    for options in MODES.values():
        X, y = problem(10)
        scales = [regressor(b, **options).fit(X, y).noise_scale_ for b in (0.01, 0.1, 1.0)]
        assert scales[0] > 2 * scales[1] > 4 * scales[2]


# The learner sees no data


def play(device, model, X, y, learner=None):
    """Both parties apart: weights go out, messages come in."""
    learner, messages = clone(model) if learner is None else learner, []
    weights = np.zeros(X.shape[1] + model.fit_intercept)
    for x, target in zip(X, y, strict=True):
        messages.append(device(weights, x, target))
        learner.partial_fit_noised(messages[-1][np.newaxis])
        weights = learner.weights_
    return learner, np.array(messages)


@pytest.mark.parametrize(
    "options", [v for v in MODES.values() if v.get("feedback") != "bandit"] + [VECTOR], ids=str
)
def test_the_model_is_a_function_of_what_devices_send(options):
    X, y = problem(150)
    model = regressor(**options)
    privatizer = model.privatizer(3)

    def device(weights, x, target):
        if not isinstance(privatizer, OnePointPrivatizer):
            return privatizer.release(weights, x, target)
        distance = getattr(playing, "exploration_", 0.3)
        return privatizer.release(weights, x, target, distance)

    learner, messages = play(device, model, X, y, playing := clone(model))
    assert learner.n_samples_seen_ == 150
    # Another learner, that never met a device.
    again = clone(model).partial_fit_noised(messages[:70]).partial_fit_noised(messages[70:])
    same(again, learner)
    assert_array_equal(again.predict(X), learner.predict(X))


@pytest.mark.parametrize(
    "options", [v for v in MODES.values() if v.get("feedback") != "bandit"], ids=str
)
def test_devices_and_learner_do_together_what_fit_does(options):
    """With the noise of the seeded fit, record by record."""
    X, y = problem(150)
    model = regressor(random_state=0, keep_iterates=True, **options)
    joint = clone(model).fit(X, y)
    source = MessageStream.begin(clone(model), 3).noise
    privatizer = model.privatizer(3)
    learner, _ = play(
        lambda weights, x, target: privatizer.release(weights, x, target, random_state=source),
        model,
        X,
        y,
    )
    same(learner, joint)
    assert_array_equal(learner.iterates_, joint.iterates_)


@pytest.mark.parametrize(
    "options", [v for v in MODES.values() if v.get("feedback") != "bandit"], ids=str
)
def test_a_fit_replays_from_its_noisy_gradients(options, monkeypatch):
    X, y = problem(2500)
    noises = []
    inner = GridNoise.draw

    def spy(*args):
        noises.append(inner(*args).copy())
        return noises[-1].copy()

    with monkeypatch.context() as patch:
        patch.setattr(GridNoise, "draw", spy)
        model = regressor(keep_iterates=True, **options).fit(X, y)
    privatizer = model.privatizer(3)
    gradients = [
        privatizer.release(w, x, target, random_state=Silent())
        for w, x, target in zip(model.iterates_, X, y, strict=True)
    ]
    messages = np.array(gradients) + np.concatenate(noises)
    replayed = run_noised(
        messages, OGDState.zeros(messages.shape[1]), model._stream.channel.projection
    )
    assert_array_equal(replayed.theta, model._stream.state.theta)
    assert_array_equal(replayed.total, model._stream.state.total)
    same(clone(model).partial_fit_noised(messages), model)


def test_a_vector_device_and_fit_agree(no_noise):
    X, y = problem(40)
    model = regressor(random_state=0, keep_iterates=True, **VECTOR).fit(X, y)
    privatizer = model.privatizer(3)
    assert isinstance(privatizer, OnePointPrivatizer)
    assert privatizer.scale == model.noise_scale_
    values = ValuePrivatizer(1.0, value_range=privatizer.value_range)
    projection = model._stream.channel.projection
    learner = clone(model)
    weights = np.zeros(4)
    for t, (x, target, point) in enumerate(zip(X, y, model.iterates_, strict=True)):
        delta = projection.explorations(t, 1)[0]
        assert t == 0 or learner.exploration_ == delta
        e = (point - weights) / delta
        assert_allclose(np.linalg.norm(e), 1.0, rtol=1e-6)
        z = 4 / delta * values.release(point, x, target, random_state=Silent()) * e
        weights = learner.partial_fit_noised(z[np.newaxis]).weights_
    assert_allclose(weights, model.weights_, rtol=1e-5)


@pytest.mark.parametrize("noise", ["gaussian", "k_norm"])
def test_asking_and_telling_is_what_fit_does(noise):
    X, y = problem(120)
    model = regressor(random_state=0, keep_iterates=True, noise=noise, **BANDIT)
    joint = clone(model).fit(X, y)
    privatizer, source = model.privatizer(3), MessageStream.begin(clone(model), 3).noise
    assert isinstance(privatizer, ValuePrivatizer)
    learner = clone(model)
    for t, (x, target) in enumerate(zip(X, y, strict=True)):
        point = learner.ask(3) if t == 0 else learner.ask()
        before = learner.weights_.copy()
        assert_array_equal(learner.ask(), point)  # the same one until it is told
        assert_array_equal(learner.weights_, before)
        assert learner.n_samples_seen_ == t
        learner.tell(privatizer.release(point, x, target, random_state=source))
    assert_array_equal(learner._stream.state.theta, joint._stream.state.theta)
    assert_array_equal(learner.weights_, joint.weights_)
    for name in ("coef_", "intercept_", "iterates_"):  # sums of products, fused or not
        assert_allclose(getattr(learner, name), getattr(joint, name), rtol=1e-12, atol=1e-15)
    assert learner.guarantee_ == joint.guarantee_ and learner.n_samples_seen_ == 120
    assert learner.ask(3).shape == (4,)
    assert (learner.ask() != point).any()


def test_answers_to_something_else_than_regression_are_welcome():
    rng = np.random.default_rng(0)
    model = regressor(100.0, horizon=3000, random_state=0, fit_intercept=False, **BANDIT)
    privatizer = model.privatizer(2)
    best = np.array([0.5, -0.3])
    for _ in range(3000):
        point = model.ask(2)
        cost = float(np.abs(point - best).max() + 0.01 * rng.random())
        model.tell(privatizer.release_value(cost))
    assert np.abs(model.weights_ - best).max() < 0.25


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_a_question_survives_a_copy(duplicate):
    model = regressor(**BANDIT)
    point = model.ask(3)
    twin = duplicate(model)
    assert_array_equal(twin.ask(), point)
    same(twin.tell(0.5), model.tell(0.5))


def test_questions_and_answers_take_turns():
    model = regressor(**BANDIT)
    with pytest.raises(ValueError, match=r"^n_features must be given to begin a stream; got None"):
        model.ask()
    assert not hasattr(model, "_stream") and not hasattr(model, "n_features_in_")
    model.ask(3)
    model.tell(0.3)
    before = model.coef_  # kept: an array that is gone may leave its id to another
    with pytest.raises(ValueError, match="ask must be called before tell"):
        model.tell(0.3)
    for bad in (math.nan, math.inf, None, "1"):
        model.ask()
        with pytest.raises(ValueError, match="value must be a finite number; got "):
            model.tell(bad)
    assert model.n_samples_seen_ == 1
    X, y = problem(20)
    model.partial_fit(X, y)  # whatever was asked is forgotten
    with pytest.raises(ValueError, match="ask must be called before tell"):
        model.tell(0.3)
    assert before is not model.coef_ and model.n_samples_seen_ == 21


def test_hostile_messages_are_clipped_and_honest_ones_are_not():
    rng = np.random.default_rng(0)
    for options in (dict(), dict(noise="k_norm"), VECTOR, BANDIT):
        model = regressor(0.1, random_state=0, **options)
        privatizer, worst, weights = model.privatizer(3), clone(model), np.zeros(4)
        if options is BANDIT:
            for message in (1e307, -1e307, 1e307):
                worst.ask(3)
                worst.tell(message)
            model.ask(3)
            direction, distance = model._stream.channel.question
            before, message = model._stream.state.theta, privatizer.release_value(1e9)
            model.tell(message)
            moved = before - 4 / distance * message * direction
            assert_allclose(model._stream.state.theta, moved, rtol=1e-12)
        else:
            worst.partial_fit_noised(np.array([[1e307] * 4, [-1e307] * 4, [1e307] * 4]))
            more = (0.3,) if options is VECTOR else ()
            for _ in range(200):
                before = model._stream.state.theta if hasattr(model, "_stream") else 0.0
                message = privatizer.release(weights, rng.normal(size=3), 1.0, *more)
                weights = model.partial_fit_noised(message[np.newaxis]).weights_
                assert_allclose(model._stream.state.theta, before - message, rtol=1e-12)
        state = worst._stream.state
        assert np.abs(state.theta).max() < 1e6 and np.isfinite(state.total).all()
        assert np.linalg.norm(worst.weights_) <= 1.0 + 1e-12


def test_each_kind_of_message_has_its_way_in():
    X, y = problem(5)
    with pytest.raises(ValueError, match=r"^feedback must be 'bandit', .*; got 'full'"):
        regressor().ask(3)
    with pytest.raises(ValueError, match=r"^feedback must be 'bandit', .*'vector'"):
        regressor(**VECTOR).ask(3)
    with pytest.raises(ValueError, match=r"^perturbation must be 'vector' .*; got 'scalar'"):
        regressor(**BANDIT).partial_fit_noised(np.zeros((2, 4)))
    model = regressor().fit(X, y)
    before = snapshot(model)
    for columns in (1, 3, 5):
        with pytest.raises(ValueError, match=f"^Z must have 4 columns.*; got {columns}"):
            model.partial_fit_noised(np.zeros((2, columns)))
    with pytest.raises(ValueError, match="NaN"):
        model.partial_fit_noised(np.full((2, 4), np.nan))
    assert snapshot(model) == before
    with pytest.raises(ValueError, match="n_features must be a positive int; got 0"):
        regressor().partial_fit_noised(np.zeros((2, 1)))


@pytest.mark.parametrize("bad", [0, -1, 1.5, None, True, "3"])
def test_privatizers_are_for_a_number_of_features(bad):
    with pytest.raises(ValueError, match="n_features must be a positive int; got "):
        regressor().privatizer(bad)


@every_mode
def test_privatizers_are_those_of_the_parameters(options):
    model = regressor(0.3, **options)
    privatizer = model.privatizer(3)
    kinds = {"full": GradientPrivatizer, "scalar": ValuePrivatizer, "vector": OnePointPrivatizer}
    kind = "full" if model.feedback == "full" else model.perturbation
    assert type(privatizer) is kinds[kind]
    for name in ("noise", "loss", "fit_intercept"):
        assert getattr(privatizer, name) == getattr(model, name)
    assert privatizer.x_norm == model.x_norm and privatizer.y_bounds == tuple(model.y_bounds)
    X, y = problem(10)
    assert privatizer.scale == model.fit(X, y).noise_scale_


# Noise


def sent_noise(model, size=400):
    """Noise that reaches the learner: null records send nothing else, or a constant."""
    before = model._stream.state.theta.copy() if hasattr(model, "_stream") else 0.0
    model.partial_fit(np.zeros((1, size)), [0.0])
    return model._stream.state.theta - before


@pytest.mark.parametrize("noise", ["gaussian", "k_norm"])
def test_noise_is_never_used_twice(noise):
    size = 3000
    model = regressor(noise=noise, fit_intercept=False)
    parts = [sent_noise(model, size)]
    copies = [clone(model), pickle.loads(pickle.dumps(model)), copy.deepcopy(model), model, model]
    parts += [sent_noise(m, size) for m in copies]
    fresh = regressor(noise=noise, fit_intercept=False)
    for _ in range(2):
        fresh.fit(np.zeros((1, size)), [0.0])
        parts.append(-fresh._stream.state.theta)
    fresh = regressor(noise=noise, fit_intercept=False, random_state=0)
    parts += [sent_noise(fresh, size) for _ in range(3)]  # within a seeded stream as well
    norms = np.linalg.norm(parts, axis=1)
    correlation = np.corrcoef(parts) - np.eye(len(parts))
    assert np.abs(correlation).max() < 6 / math.sqrt(size)
    assert norms.min() > 0.0


@some_modes
@pytest.mark.parametrize("noise", ["gaussian", "k_norm"])
def test_every_record_has_noise_of_its_own(options, noise, monkeypatch):
    """The noise that is drawn is the noise of that many records, all of it different."""
    drawn = []
    inner = GridNoise.draw

    def spy(*args):
        out = inner(*args)
        drawn.extend(out.copy())
        return out

    monkeypatch.setattr(GridNoise, "draw", spy)
    X, y = problem(1200)
    regressor(noise=noise, **options).fit(X, y)
    assert len(drawn) == 1200
    # Numbers of some 26 bits: two agree by chance once in a hundred runs, six once in 1e10.
    assert len({row.tobytes() for row in drawn}) > 1200 - 6
    assert {len(row) for row in drawn} == {1 if options == BANDIT else 4}


@every_mode
def test_a_fit_draws_the_noise_that_its_devices_draw(options, monkeypatch):
    X, y = problem(30)
    calls = []
    inner = GridNoise.draw

    def spy(given, source, n):
        calls.append((given.kind, n, given.size, given.scale, given.step))
        return inner(given, source, n)

    monkeypatch.setattr(GridNoise, "draw", spy)
    model = regressor(0.2, keep_iterates=True, **options)
    privatizer, played = model.privatizer(3), []
    for x, target in zip(X, y, strict=True):
        played.append(getattr(model, "weights_", np.zeros(3 + model.fit_intercept)))
        model.partial_fit(x[np.newaxis], [target])
    points = model.iterates_
    assert len(calls) == 30
    for (noise, n, size, scale, step), w, point in zip(calls, played, points, strict=True):
        assert noise == privatizer.noise and n == 1
        assert size == (1 if isinstance(privatizer, ValuePrivatizer) else len(w))
        unit = 1.0
        if isinstance(privatizer, OnePointPrivatizer):
            unit = len(w) * privatizer.value_range / 2 / np.linalg.norm(point - w)
        else:
            assert step == privatizer.step
        assert_allclose(scale, privatizer.scale * unit, rtol=1e-6)
        assert scale / step > 1e3


@pytest.mark.parametrize("options", [BANDIT, VECTOR], ids=["bandit", "vector"])
def test_directions_are_new_in_each_stream(options):
    X, y = problem(2)
    model = regressor(keep_iterates=True, **options)
    points = [m.fit(X, y).iterates_ for m in (model, model, clone(model))]
    assert len({point[0].tobytes() for point in points}) == 3
    assert not np.allclose(points[0][0], points[0][1])


def test_seeded_noise_and_directions_have_streams_of_their_own(no_noise):
    X, y = problem(300)
    model = regressor(random_state=0, keep_iterates=True, **BANDIT).fit(X, y)
    other = clone(model).fit(-X, y)
    # The same directions, whatever the noise and the records.
    first = model.iterates_[0] / np.linalg.norm(model.iterates_[0])
    assert_allclose(other.iterates_[0] / np.linalg.norm(other.iterates_[0]), first)


# Who records releases hears of each message


@every_mode
def test_every_message_of_a_fit_is_recorded_with_its_law(options):
    X, y = problem(1100)
    silent = regressor(0.2, random_state=0, **options).fit(X, y)
    model = regressor(0.2, random_state=0, **options)
    with recording() as messages:
        model.fit(X[:600], y[:600]).partial_fit(X[600:], y[600:])
    silent.guarantee_ = silent.guarantee_.with_caveats("recorded: void")
    same(model, silent)
    assert len(messages) == 1100
    local, device = model.guarantee_.local, model.privatizer(3)
    laws = []
    for message in messages:
        # Two messages are as far apart as the longest and its opposite.
        assert 2.0 * np.linalg.norm(message.asked) <= message.sensitivity * (1 + 1e-15)
        assert (message.asked != message.released).all()
        law = message.law
        if law not in laws:
            laws.append(law)
        if not isinstance(device, OnePointPrivatizer):
            assert_allclose(law.scale * message.sensitivity, device.scale, rtol=1e-12)
    claimed = local.epsilon_at(1e-3)
    for law in laws:
        assert law.kind == device.noise
        assert law.guarantee.epsilon_at(1e-3) <= claimed * (1 + 1e-12)
        assert_allclose(law.guarantee.epsilon_at(1e-3), claimed, rtol=1e-9)
    if not isinstance(device, ValuePrivatizer):
        received = sum(message.released for message in messages)
        assert_allclose(model._stream.state.theta, -received, rtol=1e-9)


# The guarantee


@every_mode
@pytest.mark.parametrize("unit", ["nats", "bits"])
def test_the_guarantee_is_what_was_asked_for(options, unit):
    X, y = problem(20)
    for k in (1, 3):
        model = regressor(0.4, unit=unit, contributions_per_user=k, **options).fit(X, y)
        told = model.guarantee_
        assert isinstance(told, MutualInformationPrivacy)
        nats = 0.4 * (math.log(2) if unit == "bits" else 1.0)
        assert_allclose(told.mutual_information(), k * nats, rtol=1e-14)
        assert_allclose(told.bits, k * nats / math.log(2), rtol=1e-14)
        assert told.unit == ("user" if k > 1 else "record")
        assert told.contributions == k and told.adjacency == "replace-one"
        assert Guarantee.from_dict(json.loads(json.dumps(told.to_dict()))) == told
        assert "average-case promise" in str(told) and "Zhang" in told.source
        twice = compose([told, told])
        assert_allclose(twice.mutual_information(), 2 * k * nats, rtol=1e-14)
        assert twice.epsilon_at(1e-5) > told.epsilon_at(1e-5)
        if model.noise == "gaussian":
            assert isinstance(told.local, GaussianDP)
            # An average promise is a weak one in the worst case.
            assert told.local.mu >= math.sqrt(8 * nats)
            assert_allclose(told.to_gdp().mu, math.sqrt(k) * told.local.mu)
        else:
            assert told.local.delta == 0.0 and told.epsilon_at(0.0) == pytest.approx(
                k * told.local.epsilon, rel=1e-12
            )
    assert model.partial_fit(X, y).guarantee_ == told


def test_regret_is_below_its_bound():
    for options in (dict(), dict(loss="huber", horizon=400), dict(noise="k_norm"), BANDIT, VECTOR):
        regrets = []
        for seed in range(12):
            X, y = problem(400, seed)
            model = regressor(1.0, random_state=seed, keep_iterates=True, **options).fit(X, y)
            regrets.append(model.regret(X, y))
        bound = model.regret_bound_
        assert np.mean(regrets) + 6 * np.std(regrets) / math.sqrt(12) < bound
        assert np.mean(regrets) > 0.0


def test_regret_is_that_of_the_weights_played(no_noise):
    X, y = problem(300)
    model = regressor(keep_iterates=True, fit_intercept=False, radius=0.5).fit(X, y)
    model.partial_fit(X, y)
    X2, y2 = np.vstack([X, X]), np.tile(y, 2)
    rows = X2 / np.maximum(1.0, np.linalg.norm(X2, axis=1, keepdims=True))
    mine = np.abs((rows * model.iterates_).sum(axis=1) - y2).sum()
    rng = np.random.default_rng(0)
    others = rng.normal(size=(4000, 3))
    others *= (
        0.5 * rng.random((4000, 1)) ** (1 / 3) / np.linalg.norm(others, axis=1, keepdims=True)
    )
    best = np.abs(rows @ others.T - y2[:, np.newaxis]).sum(axis=0).min()
    found = model.regret(X2, y2, tolerance=1e-5)
    assert mine - best - 0.1 <= found <= mine - best + 3.0
    with pytest.raises(ValueError, match="X must hold the 600 records of the stream; got 300"):
        model.regret(X, y)
    with pytest.raises(ValueError, match="keep_iterates must be True for a regret; got False"):
        regressor().fit(X, y).regret(X, y)
    with pytest.raises(ValueError, match="tolerance must be"):
        model.regret(X2, y2, tolerance=0.0)


def test_the_regret_bound_at_the_horizon_is_that_of_the_theorems():
    X, y = problem(400)
    for loss, cap in (("absolute", 1.0), ("huber", 0.3)):
        options = dict(loss=loss, horizon=400, radius=2.0, intercept_scaling=1.0)
        slope = cap * math.sqrt(2)
        model = regressor(**options).fit(X, y)
        energy = slope**2 + 4 * model.noise_scale_**2
        assert_allclose(model.regret_bound_, 2.0 * math.sqrt(energy * 400), rtol=1e-9)
        model = regressor(**options, **BANDIT).fit(X, y)
        delta, half = model.exploration_, model.privatizer(3).value_range / 2
        energy = (4 / delta) ** 2 * (half**2 + model.noise_scale_**2)
        expected = 2.0 * math.sqrt(energy * 400) + 2 * 400 * slope * delta
        assert_allclose(model.regret_bound_, expected, rtol=1e-9)


def test_the_regret_bound_grows_with_the_stream():
    X, y = problem(100)
    for options in MODES.values():
        model, bounds = regressor(**options), []
        for _ in range(3):
            bounds.append(model.partial_fit(X, y).regret_bound_)
        assert 0.0 < bounds[0] < bounds[1] < bounds[2]


# The ledger and failures


def ledger(epsilon=100.0, delta=1e-3):
    return BudgetLedger(epsilon=epsilon, delta=delta)


@every_mode
def test_the_ledger_is_charged_once_a_stream(options):
    X, y = problem(60)
    book = ledger()
    model = regressor(0.2, ledger=book, **options)
    for start in range(0, 60, 20):
        model.partial_fit(X[start : start + 20], y[start : start + 20])
        (record,) = book.history()
    assert record.guarantee == model.guarantee_ and record.label == "MIPrivateSGDRegressor"
    model.fit(X, y)
    assert len(book.history()) == 2
    clone(model).partial_fit(X, y)
    assert len(book.history()) == 3


def test_the_learner_alone_charges_nothing_and_both_parties_do():
    X, y = problem(20)
    book = ledger()
    model = regressor(0.2, ledger=book).partial_fit_noised(np.zeros((3, 4)))
    assert not book.history()
    model.partial_fit(X, y)  # these records are ours
    assert len(book.history()) == 1
    model.partial_fit_noised(np.zeros((3, 4))).partial_fit(X, y)
    assert len(book.history()) == 1
    model = regressor(0.2, ledger=book, **BANDIT)
    model.ask(3)
    model.tell(0.1)
    assert len(book.history()) == 1
    model.partial_fit(X, y)
    assert len(book.history()) == 2


@some_modes
def test_a_refused_charge_leaves_the_old_model(options):
    X, y = problem(40)
    one = regressor(0.2, **options).fit(X, y).guarantee_
    book = ledger(1.01 * one.epsilon_at(1e-3))
    model = regressor(0.2, ledger=book, **options).fit(X, y)
    before = snapshot(model)
    with pytest.raises(BudgetExceededError):
        model.fit(X[:, :2], y)
    with pytest.raises(BudgetExceededError):
        clone(model).partial_fit(X, y)
    assert snapshot(model) == before and len(book.history()) == 1
    model.partial_fit(X, y)  # paid for
    assert model.n_samples_seen_ == 80


@some_modes
@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError, MemoryError])
def test_an_interrupted_fit_leaves_the_old_model_and_the_charge(options, error, monkeypatch):
    X, y = problem(200)
    book = ledger()
    model = regressor(0.2, ledger=book, keep_iterates=True, **options).fit(X, y)
    before, weights = snapshot(model), model.weights_.copy()
    monkeypatch.setattr(module, "_BLOCK", 64 * 4)
    inner, n_calls = GridNoise.draw, []

    def failing(*args):
        n_calls.append(1)
        if len(n_calls) == 3:
            raise error("stop")
        return inner(*args)

    monkeypatch.setattr(GridNoise, "draw", failing)
    with pytest.raises(error):
        model.fit(X[:, :2], y)
    assert len(book.history()) == 2  # nothing is refunded
    n_calls.clear()
    with pytest.raises(error):
        model.partial_fit(X, y)
    assert snapshot(model) == before
    assert_array_equal(model.weights_, weights)
    assert model.n_samples_seen_ == 200 and model.iterates_.shape == (200, 4)
    n_calls.extend([1] * 9)
    assert model.partial_fit(X, y).n_samples_seen_ == 400
    assert len(book.history()) == 2
    first = regressor(0.2, ledger=book, **options)
    n_calls.clear()
    with pytest.raises(error):
        first.partial_fit(X, y)
    assert not hasattr(first, "coef_") and len(book.history()) == 3


def test_a_seeded_charge_is_warned_of():
    X, y = problem(20)
    with pytest.warns(PrivacyWarning, match="random_state is set"):
        regressor(0.2, ledger=ledger(), random_state=0).fit(X, y)


@every_mode
def test_parameters_do_not_change_within_a_stream(options):
    X, y = problem(20)
    model = regressor(**options).fit(X, y)
    before = snapshot(model)
    changes = dict(
        mi_budget=2.0, radius=2.0, x_norm=2.5, y_bounds=(-5, 5), average="other", step=0.7
    )
    for name, value in changes.items():
        old = getattr(model, name)
        value = not old if name == "average" else value
        model.set_params(**{name: value})
        with pytest.raises(ValueError, match=f"^{name} must not change within a stream"):
            model.partial_fit(X, y)
        if model.feedback == "full":
            with pytest.raises(ValueError, match=f"^{name} must not change within a stream"):
                model.partial_fit_noised(np.zeros((1, len(model.weights_))))
        model.set_params(**{name: old})
    assert {k: v for k, v in snapshot(model).items()} == before
    assert np.isfinite(model.predict(X)).all()
    model.set_params(radius=2.0).fit(X, y)


# Errors

POSITIVE = "must be a positive, finite number; got "
BAD = [
    *[
        ({name: bad}, f"{name} {POSITIVE}{bad!r}")
        for name in ("mi_budget", "radius", "x_norm")
        for bad in (0.0, -1.0, math.nan, math.inf, None, "1", True)
    ],
    (dict(mi_budget=1e-7), "mi_budget must be between 1e-6 and 100; got 1e-07"),
    (dict(mi_budget=1e4), "mi_budget must be between 1e-6 and 100; got 10000.0"),
    (dict(radius=1e7), "radius must be between 1e-6 and 1e6; got 10000000.0"),
    (dict(x_norm=1e60), "x_norm must be between 1e-50 and 1e50; got 1e+60"),
    (dict(unit="shannon"), "unit must be one of 'nats', 'bits'; got 'shannon'"),
    (dict(loss="hinge"), "loss must be one of 'absolute', 'huber'"),
    (dict(loss="huber", width=0.0), f"width {POSITIVE}0.0"),
    (dict(loss="squared", width="wide"), "width must be 'auto' or a positive number; got 'wide'"),
    (dict(feedback="partial"), "feedback must be one of 'full', 'bandit'; got 'partial'"),
    (dict(noise="laplace"), "noise must be one of 'gaussian', 'k_norm'; got 'laplace'"),
    (dict(perturbation="both"), "perturbation must be one of 'scalar', 'vector'; got 'both'"),
    (dict(y_bounds=(1, -1)), "y_bounds must be (low, high), low first; got (1, -1)"),
    (dict(y_bounds=(0, 0)), "y_bounds must be (low, high), low first; got (0, 0)"),
    (dict(y_bounds=3), "y_bounds must be two numbers (low, high); got 3"),
    (dict(y_bounds=(1, 2, 3)), "y_bounds must be two numbers (low, high); got (1, 2, 3)"),
    (dict(y_bounds="wide"), "y_bounds must be two numbers (low, high); got 'wide'"),
    (dict(y_bounds=(0, math.inf)), "y_bounds[1] must be a finite number; got inf"),
    (dict(y_bounds=("a", 1)), "y_bounds[0] must be a finite number; got 'a'"),
    (dict(step="constant"), "step must be 'auto' or a positive number; got 'constant'"),
    (dict(step=0.0), f"step {POSITIVE}0.0"),
    (dict(step=1e-320), "step must be between 1e-50 and 1e50; got 1e-320"),
    (dict(step=1e308), "step must be between 1e-50 and 1e50; got 1e+308"),
    (dict(step=None), f"step {POSITIVE}None"),
    *[
        (dict(horizon=bad), f"horizon must be None or a positive int; got {bad!r}")
        for bad in (0, 1.5, "9", True)
    ],
    (dict(horizon=2**60), "horizon must be at most 2**53; got 1152921504606846976"),
    *[
        (
            {"contributions_per_user": bad},
            f"contributions_per_user must be a positive int; got {bad}",
        )
        for bad in (None, 0, True)
    ],
    (dict(contributions_per_user=2**60), "contributions_per_user must be at most 2**53; got "),
    *[
        ({name: bad}, f"{name} must be True or False; got {bad!r}")
        for name in ("fit_intercept", "keep_iterates")
        for bad in (1, None, "yes")
    ],
    *[
        ({"average": bad}, f"average must be 'uniform', 'late', True or False; got {bad!r}")
        for bad in (1, None, "yes")
    ],
    *[
        ({"intercept_scaling": bad}, f"intercept_scaling {POSITIVE}{bad!r}")
        for bad in (0.0, -1.0, math.nan, math.inf, None, True)
    ],
    (
        dict(intercept_scaling="wide"),
        "intercept_scaling must be 'auto' or a positive number; got 'wide'",
    ),
    *[
        (
            dict(intercept_scaling=bad, x_norm=2.0),
            f"intercept_scaling must be 'auto' or from 1/256 to 16 times x_norm; got {bad} with",
        )
        for bad in (1 / 129, 33.0)
    ],
    (dict(gradient_norm=1.0), "gradient_norm must be 'auto' unless loss='custom', as the loss"),
    (dict(loss="custom", gradient_norm=0.0), f"gradient_norm {POSITIVE}0.0"),
    (dict(loss="custom", gradient_norm=1e60), "gradient_norm must be between 1e-50 and 1e50; got"),
    (
        dict(loss="custom", gradient_norm="wide"),
        "gradient_norm must be 'auto' or a positive number; got 'wide'",
    ),
    (dict(loss="custom", **BANDIT), "feedback must be 'full' with loss='custom': values of any"),
    (dict(random_state=-1), "random_state must be"),
    (dict(random_state="seed"), "random_state must be"),
    (dict(ledger=1.0), "ledger must be None, a BudgetLedger or the path of one"),
]


@pytest.mark.parametrize("options, message", BAD, ids=str)
def test_bad_parameters_are_refused_by_name(options, message):
    X, y = problem(5)
    calls = [lambda m: m.partial_fit_noised(np.zeros((1, 4)))]
    if options.get("loss") != "custom":
        calls += [lambda m: m.fit(X, y), lambda m: m.partial_fit(X, y)]
    if "random_state" not in options and "ledger" not in options:
        calls.append(lambda m: m.privatizer(3))
    for call in calls:
        book = ledger()
        model = regressor(**{"ledger": book, **options})
        with pytest.raises(ValueError) as error:
            call(model)
        assert str(error.value).startswith(message)
        assert not book.history() and not hasattr(model, "_stream")


@every_mode
def test_repeated_entries_are_summed_or_refused_before_they_overflow(options):
    y = problem(3)[1]
    repeated = sparse.coo_array(([0.25, 0.25, 0.1], ([0, 0, 2], [1, 1, 0])), shape=(3, 3))
    plain = regressor(random_state=0, **options).fit(repeated.toarray(), y)
    same(regressor(random_state=0, **options).fit(repeated, y), plain)
    entries = np.array([1.7e308, 1.7e308])
    wide = sparse.csr_array((entries, np.array([1, 1]), np.array([0, 2, 2, 2])), shape=(3, 3))
    before = snapshot(plain)
    with pytest.raises(ValueError, match="X must be finite, also where repeated entries"):
        plain.partial_fit(wide, y)
    assert snapshot(plain) == before and wide.nnz == 2


def test_a_wide_sparse_matrix_is_opened_a_few_rows_at_a_time(monkeypatch):
    X = sparse.random_array((60, 3000), density=0.01, random_state=0, format="csr")
    y, most = np.zeros(60), []
    inner = _base.grid_rows

    def spy(X, *args):
        most.append(X.shape[0] * X.shape[1])
        return inner(X, *args)

    whole = regressor(random_state=0).fit(X, y)
    monkeypatch.setattr(_base, "grid_rows", spy)
    monkeypatch.setattr(module, "_BLOCK", 30_000)
    same(regressor(random_state=0).fit(X, y), whole)
    assert max(most) <= 30_000 and len(most) >= 6
    monkeypatch.setattr(module, "_BLOCK", 10)
    assert regressor().fit(X[:3], y[:3]).n_samples_seen_ == 3


def test_a_learner_meets_a_table_with_names():
    X, y = problem(20)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = regressor().partial_fit_noised(np.zeros((2, 4)))
    with pytest.raises(ValueError, match="X must have 3 features; got 2"):
        model.partial_fit(X[:, :2], y)
    assert model.n_features_in_ == 3
    model.partial_fit(frame, y)
    assert list(model.feature_names_in_) == ["a", "b", "c"]
    assert model.predict(frame).shape == (20,) and model.n_samples_seen_ == 22
    for n_features in (2, 4, "a"):
        asked = regressor(**BANDIT)
        asked.ask(3)
        with pytest.raises(ValueError, match="n_features must be None or 3 in this stream; got"):
            asked.ask(n_features)


def test_results_belong_to_the_parameters_of_the_stream():
    X, y = problem(30)
    model = regressor(keep_iterates=True).fit(X, y)
    found = model.predict(X)
    for bounds in ((5, 6), None):
        assert_array_equal(model.set_params(y_bounds=bounds).predict(X), found)
    model.set_params(y_bounds=(-1, 1), loss="huber")
    with pytest.raises(ValueError, match=r"^loss must not change within a stream"):
        model.regret(X, y)


SECRET = 0.123456789


@pytest.mark.parametrize(
    "spoil",
    [
        lambda X, y: (np.where(X[3, 1] == X, np.nan, X), y),
        lambda X, y: (X, np.where(y[3] == y, np.inf, y)),
        lambda X, y: (X[:-1], y),
        lambda X, y: (X[:, :2], y),
        lambda X, y: (X, np.tile(y, (2, 1)).T),
        lambda X, y: (X[:0], y[:0]),
        lambda X, y: (X, y + 1j),
        lambda X, y: (sparse.csr_array(X + np.where(X[3, 1] == X, np.nan, 0)), y),
        lambda X, y: (X, np.where(y > 0, "high", "low")),
        lambda X, y: (X, np.array([b"a"] * len(y), dtype=object)),
    ],
)
@some_modes
@pytest.mark.filterwarnings("error")
def test_bad_records_leave_the_model_and_stay_private(spoil, options):
    X, y = problem(30)
    X[:], y[:] = X + SECRET, y / 2 + SECRET
    book = ledger()
    model = regressor(0.2, ledger=book, **options).fit(X, y)
    before, numbers = snapshot(model), [f"{v:.4f}" for v in (*X.ravel(), *y)]
    bad = spoil(X, y)
    with pytest.raises(ValueError) as error:
        model.partial_fit(*bad)
    assert not any(number in str(error.value) for number in numbers)
    assert snapshot(model) == before and len(book.history()) == 1
    assert model.predict(X).shape == (30,)


def test_a_stream_keeps_released_numbers_only():
    """No record, target or exact gradient can be found in what is stored."""
    X, y = problem(50)
    for options in (dict(), BANDIT, VECTOR):
        model = regressor(1.0, keep_iterates=True, **options).fit(X, y)
        stored = pickle.dumps(model)
        assert model.coef_.tobytes() in stored
        assert not any(value.tobytes() in stored for value in (*X.ravel(), *y))
        assert "array" not in repr(model._stream) and repr(model) == repr(clone(model))


def test_the_slope_of_the_loss_is_the_one_of_the_devices():
    for loss in LOSSES:
        model = regressor(loss=loss, y_bounds=(0, 10), width=2.0)
        assert model.privatizer(2).slope == residual_slope(loss, 2.0, TargetRange(0, 10))
        r = np.linspace(-3, 3, 101)
        values = [model.privatizer(2).slope.value(v) for v in r.tolist()]
        assert_allclose(values, loss_of(model).value(r), atol=1e-15)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_channel_has_a_coordinate_for_each_weight(fit_intercept):
    # Capacity (d/2) ln(1 + L^2 / (d sigma^2)), with d and L of the augmented row.
    budget, size = 0.3, 2 + fit_intercept
    model = MIPrivateSGDRegressor(budget, fit_intercept=fit_intercept, y_bounds=(-1.0, 1.0))
    scale = model.fit([[0.1, 0.2]], [0.3]).noise_scale_
    squared = 2.0 if fit_intercept else 1.0
    capacity = size / 2 * np.log1p(squared / (size * scale**2))
    assert budget * (1 - 1e-9) < capacity <= budget
