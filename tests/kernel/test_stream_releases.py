"""Releases of a stream: what is recorded of them, and what their transcript is made of."""

import inspect
import pickle
from dataclasses import FrozenInstanceError, fields

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from support.insides import noise_source
from support.problems import surface as problem
from support.releases import listening
from support.statistics import name

from skdp.audit import recording
from skdp.kernel import DPOnlineKernelRegressor
from skdp.kernel._online._fed_back import FedBackRelease
from skdp.kernel._online._final import FinalRelease
from skdp.kernel._online._matrix import LONGEST, MatrixRelease, TreeRelease, column_norm
from skdp.kernel._online._query import QueryRelease
from skdp.kernel._online._recursion import Recursion
from skdp.kernel._online._sensitivity import step_sensitivity, stream_sensitivity
from skdp.mechanisms import Lattice
from skdp.privacy import ApproxDP, GaussianDP, compose
from skdp.rows._blocks import NormalisedRows

LAWS = [dict(delta=0.0), dict(delta=1e-5)]
LIVE = [dict(release="final"), dict(release="sgd"), dict(release="tree", horizon=40)]
MATRIX = dict(release="matrix", horizon=40, delta=1e-5)
RELEASES = [*LIVE, dict(release="query", n_queries=12)]


def fitted(options, seed=0):
    """A stream of 24 rows in two calls, and what it says about twelve."""
    X, y = problem(36)
    model = DPOnlineKernelRegressor(
        2.0, n_components=8, random_state=seed, **options, y_bounds=(-1.0, 1.0)
    )
    model.partial_fit(X[:10], y[:10]).partial_fit(X[10:24], y[10:24])
    return model, model.predict(X[24:])


@pytest.mark.parametrize("law", LAWS, ids=["pure", "gaussian"])
@pytest.mark.parametrize("options", RELEASES, ids=name)
def test_every_release_is_recorded_with_what_it_satisfies(options, law):
    with recording() as records:
        model, _ = fitted({**options, **law})
    counts = {"final": 2, "sgd": 24, "tree": 24, "query": 12}
    assert len(records) == counts[options["release"]]
    gaussian = law["delta"] > 0.0
    # A record is in one final function of each call, in one gradient, in a sum of each of the six
    # levels up to a horizon of 40, in every answer.
    together = {"final": 1, "sgd": 1, "tree": 6, "query": 12}[options["release"]]
    for record in records:
        noise = record.released - record.asked
        assert np.count_nonzero(noise) > 0.9 * noise.size
        assert 0.02 < np.abs(noise).mean() / record.sensitivity / record.law.level(noise.size) < 5
        guarantee = record.law.guarantee
        assert isinstance(guarantee, GaussianDP if gaussian else ApproxDP)
        assert guarantee.adjacency == model.adjacency
        total = compose([guarantee] * together)
        assert_allclose(total.epsilon_at(law["delta"]), 2.0, rtol=1e-6)
    if options["release"] == "sgd":
        change = step_sensitivity(width=0.25)
        assert all(change < record.sensitivity < 1.05 * change for record in records)
    if options["release"] == "tree":
        recursion = model._stream.release.recursion
        first = step_sensitivity(width=recursion.cap) * recursion.t0**0.4
        weights = ((np.arange(24) + recursion.t0) / recursion.t0) ** 0.4
        found = np.array([record.sensitivity for record in records]) / first
        # Each gradient is rounded to the lattice of the first.
        rounding = Lattice.for_sensitivity(first, size=8).sensitivity / first - 1.0
        assert (weights + 0.99 * rounding < found).all() and (found < weights + 0.05).all()


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_all_sums_of_a_matrix_together_satisfy_what_was_asked_for(adjacency):
    with recording() as records:
        model, _ = fitted({**MATRIX, "adjacency": adjacency})
    stream = model._stream.release
    together = ApproxDP(2.0, 1e-5, adjacency=adjacency).gaussian_target()
    assert len(records) == 24 and stream.guarantee.refined == together
    change = step_sensitivity(width=stream.recursion.cap, kappa=stream.kappa, adjacency=adjacency)
    # What a record changes in one sum and in all later ones: its column of C, from the factors.
    factors, weights = stream.factors, stream.recursion.weights(0, 40)
    kept = factors.amounts @ factors.decays[:, np.newaxis] ** np.arange(40)
    columns = [np.linalg.norm(kept[: 40 - s] * weights[s] / weights[s:]) for s in range(40)]
    for record in records:
        noise = record.released - record.asked
        assert np.count_nonzero(noise) > 0.9 * noise.size
        assert change < record.sensitivity < 1.005 * change
        assert_allclose(record.law.guarantee.mu * max(columns), together.mu, rtol=1e-9)
        assert_allclose(record.scale, max(columns) * record.sensitivity / together.mu, rtol=1e-9)
        assert_array_equal(np.rint(record.asked / record.step), record.asked / record.step)
        # Beside the distance of a column there is room for the rounding of both sides.
        room = (record.sensitivity - change) * max(columns)
        assert room >= record.step * np.sqrt(40 * noise.size)
    size = sum(np.abs(record.released - record.asked).mean() for record in records) / 24
    assert 0.9 < size / records[0].scale / np.sqrt(2.0 / np.pi) < 1.1


def test_the_rounding_of_sums_is_part_of_what_noise_covers(monkeypatch):
    with recording() as records:
        fitted(MATRIX)
        monkeypatch.setattr(
            inspect.getmodule(MatrixRelease), "encoding_error", lambda horizon: 0.25
        )
        model, _ = fitted(MATRIX)
    stream, before, after = model._stream.release, records[0], records[-1]
    added = 2 * 0.25 * stream.recursion.cap * stream.kappa / column_norm(40, stream.recursion)
    assert_allclose(after.sensitivity - before.sensitivity, added, rtol=1e-6)


def plans():
    """A release of each kind, at the beginning of a stream of two features."""
    numbers = dict(recursion=Recursion(0.75, 4.0, cap=0.5), kappa=1.0)
    shared = dict(features=NormalisedRows(2, 1.0), **numbers)
    exact = dict(kernel="rbf", gamma=1.0, nu=1.5, x_norm=1.0, secret=bytes(32), seeded=True)
    function = dict(residual="huber", bound="tight")
    target = ApproxDP(1.0)
    return [
        FinalRelease.plan(target, noise=noise_source(0), **shared, **function),
        FedBackRelease.plan(target, noise=noise_source(0), **shared),
        TreeRelease.plan(target, noise=noise_source(0), horizon=9, **shared),
        MatrixRelease.plan(ApproxDP(1.0, 1e-5), noise=noise_source(0), horizon=9, **shared),
        QueryRelease.plan(target, n_queries=3, n_features=2, **numbers, **function, **exact),
    ]


@pytest.mark.parametrize("stream", plans(), ids=lambda stream: type(stream).__name__)
def test_going_on_makes_another_stream_and_asks_for_its_charge_first(stream):
    X, y = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([1.0, -1.0])
    before = {part.name: getattr(stream, part.name) for part in fields(stream)}
    kept = before.keys() & {"gathered", "average", "tree", "prefix", "account"}
    values = {key: pickle.dumps(before[key]) for key in kept}
    events = []

    def charge(cost, account=None):
        events.append("charge")
        return cost(account)

    with listening(lambda record: events.append("release")):
        then, stored = stream.advance(X, y, charge)
        stored["predictor"].answer(X[:1])  # with noise only if it is an exact function
    assert events == ["charge", *["release"] * (len(events) - 1)] and len(events) > 1
    assert (stream.time, then.time) == (0, 2) and type(then) is type(stream)
    assert stored.keys() == {"guarantee_", "predictor"} and stored["guarantee_"].epsilon == 1.0
    assert all(getattr(stream, key) is value for key, value in before.items())
    assert values and all(pickle.dumps(before[key]) == value for key, value in values.items())
    with pytest.raises(FrozenInstanceError):
        stream.time = 3


@pytest.mark.parametrize("stream", [plans()[0], plans()[-1]], ids=["final", "query"])
def test_the_rounding_of_a_recursion_is_part_of_what_noise_covers(stream, monkeypatch):
    lattices, choose = [], Lattice.for_sensitivity

    def chosen(*sensitivity, **options):
        lattices.append(choose(*sensitivity, **options))
        return lattices[-1]

    monkeypatch.setattr(Lattice, "for_sensitivity", chosen)
    monkeypatch.setattr(type(stream), "rounding_error", lambda self, time, size: 0.25)
    stream.advance(np.eye(2), np.array([1.0, -1.0]), lambda cost, account=None: cost(account))
    assert lattices[-1].sensitivity > stream_sensitivity(2, **stream.distances) + 2 * 0.25


@pytest.mark.parametrize(
    "target, horizon, message",
    [
        (ApproxDP(1.0), 9, "delta must be positive"),
        (ApproxDP(1.0, 1e-5), LONGEST + 1, "horizon must be at most 8388608 .*got 8388609"),
    ],
    ids=["pure", "long"],
)
def test_a_matrix_refuses_what_its_bound_does_not_cover(target, horizon, message):
    shared = dict(recursion=Recursion(0.75, 4.0, cap=0.5), kappa=1.0, noise=noise_source(0))
    with pytest.raises(ValueError, match=message):
        MatrixRelease.plan(target, horizon=horizon, features=NormalisedRows(2, 1.0), **shared)
