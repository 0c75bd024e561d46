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
from sklearn.utils.estimator_checks import parametrize_with_checks
from support.noise import Silent
from support.problems import plane as problem

from skdp.audit import recording
from skdp.linear_model import MIPrivateSGDRegressor
from skdp.local import OnePointPrivatizer, ValuePrivatizer
from skdp.privacy import BudgetLedger, GaussianDP, Guarantee, MutualInformationPrivacy, compose

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


@parametrize_with_checks(
    [
        MIPrivateSGDRegressor(y_bounds=(-1.0, 1.0)),
        MIPrivateSGDRegressor(
            noise="k_norm", keep_iterates=True, average=False, y_bounds=(-1.0, 1.0)
        ),
        MIPrivateSGDRegressor(
            loss="squared", feedback="bandit", noise="k_norm", step=0.01, y_bounds=(-1.0, 1.0)
        ),
        MIPrivateSGDRegressor(feedback="bandit", perturbation="vector", y_bounds=(-1.0, 1.0)),
    ]
)
def test_sklearn_conventions(estimator, check):
    check(estimator)


# One stream


@every_mode
def test_any_chunks_are_one_fit_bit_by_bit(options):
    X, y = problem(200)
    options = dict(random_state=3, keep_iterates=True, **options)
    whole = regressor(**options).fit(X, y)
    parts = regressor(**options)
    for start, stop in [(0, 1), (1, 8), (8, 200)]:
        parts.partial_fit(X[start:stop], y[start:stop])
    same(parts, whole)
    assert_array_equal(parts.iterates_, whole.iterates_)
    assert whole.n_samples_seen_ == len(y)
    assert_array_equal(parts.predict(X), whole.predict(X))


@some_modes
@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_copies_go_on_as_the_stream_would(options, duplicate):
    X, y = problem(80)
    model = regressor(random_state=0, **options).fit(X[:40], y[:40])
    twin = duplicate(model)
    before = twin.weights_.copy()
    model.partial_fit(X[40:], y[40:])
    assert_array_equal(twin.weights_, before)
    same(twin.partial_fit(X[40:], y[40:]), model)


@some_modes
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


# What is learned


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("average", ["late", "uniform", False])
@pytest.mark.parametrize("loss", LOSSES)
def test_without_noise_the_recursion_is_projected_gradient_descent(loss, average, fit_intercept):
    X, y = problem(300)
    X[0], X[1] = 1e200, -1e-200
    options = dict(loss=loss, average=average, fit_intercept=fit_intercept)
    options.update(x_norm=0.9, y_bounds=(-0.5, 1.0), radius=0.6, step=0.05)
    options.update(intercept_scaling=0.27)
    model = regressor(5.0, keep_iterates=True, **options)
    privatizer = model.privatizer(3)
    weights = np.zeros(3 + fit_intercept)
    for x, target in zip(X, y, strict=True):
        message = privatizer.release(weights, x, target, random_state=Silent())
        weights = model.partial_fit_noised(message[np.newaxis]).weights_
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


# The learner sees no data


@pytest.mark.parametrize(
    "options", [v for v in MODES.values() if v.get("feedback") != "bandit"], ids=str
)
def test_a_fit_is_what_devices_send_and_what_the_learner_makes_of_it(options):
    X, y = problem(300)
    with recording() as messages:
        model = regressor(keep_iterates=True, **options).fit(X, y)
    privatizer = model.privatizer(3)
    gradients = [
        privatizer.release(w, x, target, random_state=Silent())
        for w, x, target in zip(model.iterates_, X, y, strict=True)
    ]
    assert_allclose([message.asked for message in messages], gradients, rtol=1e-12)
    learner = clone(model)
    for part in np.split(np.array([message.released for message in messages]), [1, 70]):
        learner.partial_fit_noised(part)
    for name in ("weights_", "coef_", "intercept_", "iterates_", "n_samples_seen_"):
        assert_array_equal(getattr(learner, name), getattr(model, name))
    assert_array_equal(learner.predict(X), model.predict(X))


def test_questions_and_answers_take_turns():
    model = regressor(**BANDIT)
    with pytest.raises(ValueError, match=r"^n_features must be given to start a stream; got None"):
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
    # Numbers of some 26 bits: two agree by chance once in a hundred runs.
    noise = {(message.released - message.asked).tobytes() for message in messages}
    assert len(noise) > 1100 - 6
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


# The ledger and failures


def ledger(epsilon=100.0, delta=1e-3):
    return BudgetLedger(epsilon=epsilon, delta=delta)


@some_modes
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


# Errors


@pytest.mark.parametrize(
    "options, message",
    [
        (dict(mi_budget=1e-7), "mi_budget must be between 1e-6 and 100; got 1e-07"),
        (dict(mi_budget=1e4), "mi_budget must be between 1e-6 and 100; got 10000.0"),
        (dict(radius=1e7), "radius must be between 1e-6 and 1e6; got 10000000.0"),
        (dict(x_norm=1e60), "x_norm must be between 1e-50 and 1e50; got 1e+60"),
        (dict(loss="huber", width=0.0), "width must be a positive, finite number; got 0.0"),
        (dict(y_bounds=(0, 0)), "y_bounds must be (low, high), low first; got (0, 0)"),
        (dict(y_bounds=(0, math.inf)), "y_bounds[1] must be a finite number; got inf"),
        (dict(step=1e308), "step must be between 1e-50 and 1e50; got 1e+308"),
        (dict(horizon=0), "horizon must be None or a positive int; got 0"),
        (dict(horizon=2**60), "horizon must be at most 2**53; got 1152921504606846976"),
        (dict(contributions_per_user=2**60), "contributions_per_user must be at most 2**53; got "),
        (
            dict(intercept_scaling=1 / 129, x_norm=2.0),
            "intercept_scaling must be 'auto' or from 1/256 to 16 times x_norm; got",
        ),
        (dict(gradient_norm=1.0), "gradient_norm must be 'auto' unless loss='custom'"),
        (dict(loss="custom", gradient_norm=1e60), "gradient_norm must be between 1e-50 and 1e50"),
        (dict(loss="custom", **BANDIT), "feedback must be 'full' with loss='custom'; for values"),
    ],
    ids=str,
)
def test_bad_parameters_are_refused_by_name(options, message):
    X, y = problem(5)
    calls = [lambda m: m.partial_fit_noised(np.zeros((1, 4)))]
    if options.get("loss") != "custom":
        calls += [lambda m: m.fit(X, y), lambda m: m.partial_fit(X, y)]
    calls.append(lambda m: m.privatizer(3))
    for call in calls:
        book = ledger()
        model = regressor(**{"ledger": book, **options})
        with pytest.raises(ValueError) as error:
            call(model)
        assert str(error.value).startswith(message)
        assert not book.history() and not hasattr(model, "_stream")
