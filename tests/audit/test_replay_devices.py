"""Replays of what users' devices send, and of learners that hear of nothing else."""

import subprocess
import sys

import numpy as np
import pytest

from skdp.audit import replay
from skdp.linear_model import MIPrivateSGDRegressor
from skdp.local import GradientPrivatizer

pytestmark = pytest.mark.slow

LOSSES = ["absolute", "huber", "epsilon_insensitive", "squared"]
NOISES = ["gaussian", "k_norm"]
FEEDBACKS = [
    dict(feedback="full"),
    dict(feedback="bandit"),
    dict(feedback="bandit", perturbation="vector"),
]


def users(n=6):
    """One record of each user."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, 3)), rng.uniform(-1, 1, size=n)


def local(model):
    """What one message promises to its user."""
    return model.fit(*users()).guarantee_.local


def check_finite(X, y):
    """Who plays all users refuses before any of them sends; each device does so by itself."""
    if not (np.isfinite(X).all() and np.isfinite(y.astype(float)).all()):
        raise ValueError("X and y must be finite.")


def messages(device, weights):
    """As a user writes it: all that the devices of all users send at some weights."""
    if isinstance(device, GradientPrivatizer):
        return lambda X, y, random_state=None: device.release(
            weights, X, y, random_state=random_state
        )
    options = (0.3,) if hasattr(device, "_send") else ()  # how far the learner explores

    def send(X, y, random_state=None):
        check_finite(X, y)
        # Directions of one-point gradients are public: the same in each run.
        seeds = [random_state and random_state + i for i in range(len(X))]
        each = zip(X, y, seeds, strict=True)
        return [device.release(weights, *one, *options, random_state=s) for *one, s in each]

    return send


def kinds(report):
    return {finding.kind for finding in report.findings}


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("feedback", FEEDBACKS, ids=str)
def test_devices_keep_their_promise_and_no_more_than_that(feedback, loss, noise):
    model = MIPrivateSGDRegressor(0.5, loss=loss, noise=noise, **feedback, y_bounds=(-1.0, 1.0))
    device, guarantee = model.privatizer(3), local(model)
    # Weights may come from an adversary: far ones take values to both ends of their range.
    for weights in (np.zeros(4), np.array([40.0, -30.0, 20.0, 0.0])):
        report = replay(
            messages(device, weights), *users(), n=48, guarantee=guarantee, random_state=0
        )
        assert report.passed, str(report)
        assert report.share <= 1.0
        assert report.releases[0].n_releases == 6
    assert report.share > 0.85
    assert report.releases[0].share > 0.85


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("feedback", FEEDBACKS, ids=str)
def test_who_plays_both_parties_keeps_the_promise(feedback, noise):
    report = replay(
        MIPrivateSGDRegressor(0.5, noise=noise, **feedback, y_bounds=(-1.0, 1.0)),
        *users(20),
        n=96,
        random_state=0,
    )
    assert report.passed, str(report)
    # A value is at the end of its range at the farthest point only, where weights on the border
    # of the ball are explored outward: the direction is public, random, and nobody's choice.
    assert (0.97 if feedback["feedback"] == "full" else 0.4) < report.share <= 1.0


def test_a_value_is_at_the_end_of_its_range_where_weights_are_explored_outward():
    """The declared distance of values is attained in a stream, at a point that can occur."""
    model = MIPrivateSGDRegressor(0.5, feedback="bandit", random_state=0, y_bounds=(-1.0, 1.0))
    model.ask(1)
    device, projection = model.privatizer(1), model._stream.channel.projection
    outward = np.full(2, np.sqrt(0.5))
    # The second exploration is as wide as the first.
    point = (projection.radius + projection.explorations(1, 1)[0]) * outward
    farthest = device.slope.value(device._one_residual(point, [1.0], -1.0))
    assert farthest == pytest.approx(device.value_range, rel=1e-4)
    assert device._one_residual(point, [0.0], 1.0) == pytest.approx(0.414, abs=1e-3)
    nearest = device.slope.value(device._one_residual(point, [-0.5], 0.707))
    assert nearest == pytest.approx(0.0, abs=1e-2)


def ask_and_tell(X, y, random_state=None):
    """A learner and the devices of its users, as they run apart."""
    model = MIPrivateSGDRegressor(
        0.5, feedback="bandit", random_state=random_state, y_bounds=(-1.0, 1.0)
    )
    device = model.privatizer(X.shape[1])
    rng = None if random_state is None else np.random.default_rng(random_state)
    check_finite(X, y)
    for record in zip(X, y, strict=True):
        point = model.ask(X.shape[1])
        model.tell(device.release(point, *record, random_state=rng))
    return model.coef_


def test_learners_and_devices_that_run_apart_are_replayed_together():
    guarantee = local(MIPrivateSGDRegressor(0.5, feedback="bandit", y_bounds=(-1.0, 1.0)))
    report = replay(ask_and_tell, *users(), n=48, guarantee=guarantee, random_state=0)
    assert report.passed, str(report)
    assert report.releases[0].n_releases == 6
    assert report.releases[0].where.startswith("skdp.local._value:")


class Unclipped(GradientPrivatizer):
    """Forgets the bound of a row."""

    def _rows(self, X):
        X = np.trunc(np.asarray(X) / self.row_step) * self.row_step
        return np.column_stack([X, np.ones(len(X))])


class Near(GradientPrivatizer):
    """Forgets that gradients can point the other way."""

    @property
    def apart(self):
        return self.lipschitz


def test_devices_that_break_their_promise_are_found():
    weights = np.zeros(4)
    model = MIPrivateSGDRegressor(0.5, y_bounds=(-1.0, 1.0))
    sound, guarantee = model.privatizer(3), local(model)
    for device, expected in [
        (Unclipped(sound.scale), {"sensitivity", "total"}),
        (Near(sound.scale), {"sensitivity"}),
        (GradientPrivatizer(0.5 * sound.scale), {"total"}),
    ]:
        report = replay(
            messages(device, weights), *users(), n=24, guarantee=guarantee, random_state=0
        )
        assert expected <= kinds(report), str(report)


def test_a_device_with_numpy_only_is_recorded():
    code = """
import sys
for name in ("scipy", "sklearn", "mpi4py"):
    sys.modules[name] = None
import numpy as np
from skdp._recording import released_values
from skdp.local import GradientPrivatizer, OnePointPrivatizer, ValuePrivatizer
heard = []
released_values.set(heard.append)
record = np.zeros(3), [0.6, 0.8], 0.5
for device, more in [
    (GradientPrivatizer(5.0), ()),
    (ValuePrivatizer(2.0, value_range=4.0), ()),
    (OnePointPrivatizer(2.0, value_range=4.0), (0.1,)),
]:
    message = device.release(*record, *more)
    assert np.array_equal(np.ravel(message), heard[-1].released)
    moved = np.abs(heard[-1].asked).max()
    assert 0.0 < moved <= heard[-1].sensitivity and moved % heard[-1].step == 0.0
    print(type(device).__name__, heard[-1].law, heard[-1].scale > 0.0, heard[-1].where)
"""
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    names = [line.split()[:3] for line in result.stdout.splitlines()]
    assert names == [
        [name, "None", "True"]
        for name in ("GradientPrivatizer", "ValuePrivatizer", "OnePointPrivatizer")
    ]
