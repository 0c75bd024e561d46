"""Nodes that gossip, against a plain loop over nodes and rows, and to the last bit.

Noise is injected, as multiples of the grid, so that results can be compared number by number.
"""

import itertools
import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from support.insides import grid_rows
from support.problems import long_and_empty_rows as problem
from support.wires import HostileNeighbour, Wire

from skdp.distributed._gossip import (
    GossipState,
    GossipUpdate,
    batches,
    grid_csr_rows,
    run_gossip,
    slope_step,
)
from skdp.learner import HingeLoss, HuberHingeLoss, LogisticLoss, MulticlassHingeLoss, SoftmaxLoss
from skdp.topology import make_topology

ROW_STEP = 2.0**-12
LOSSES = {
    "hinge": HingeLoss(),
    "log": LogisticLoss(),
    "huber": HuberHingeLoss(0.5),
    "multi hinge": MulticlassHingeLoss(3),
    "multi log": SoftmaxLoss(3),
    "multi huber": SoftmaxLoss(3, margin=1.0, temperature=0.5),
}
losses = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
kinds = pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])


def sizes(loss, n_features, constant=True):
    return loss.n_outputs * (n_features + constant)


def uneven(n_rows, n_nodes, seed=0):
    """Owners of rows; the last node has none, unless it is alone."""
    weights = np.arange(1.0, n_nodes + 1.0)
    if n_nodes > 1:
        weights[-1] = 0.0
    return np.random.default_rng(seed).choice(n_nodes, n_rows, p=weights / weights.sum())


def roots(first, times):
    return first / np.sqrt(times)


@dataclass(frozen=True)
class Update(GossipUpdate):
    """With the grid of rows, which is the business of `rows`."""

    row_step: float = ROW_STEP

    @property
    def grid(self):
        return self.slope_step * self.row_step


def of_update(loss, **options):
    numbers = dict(batch_size=1, radius=5.0, steps=partial(roots, 0.7))
    return Update(loss, **{**numbers, **options})


def on_grid(X, x_norm, step, constant=True):
    if not sparse.issparse(X):
        return grid_rows(X, x_norm, constant, step)
    rows = grid_csr_rows(X, x_norm, step)
    return sparse.csr_array(sparse.hstack([rows, np.ones((X.shape[0], int(constant)))]))


def add(add_to, noise, takes_part):
    """A release that nobody records."""
    add_to(noise)


def noise_of(n_rounds, n_nodes, update, n_features, spread=3.0, seed=1):
    rng = np.random.default_rng(seed)
    shape = (n_rounds, n_nodes, sizes(update.loss, n_features))
    return np.rint(spread * rng.normal(size=shape) / update.grid) * update.grid


def drawer(noise):
    """Noise of one round after another."""
    rounds = iter(noise)
    return lambda n: np.array(list(itertools.islice(rounds, n)))


def gossiped(
    topology, X, codes, schedule, update, noise, *, state=None, x_norm=2.0, rows=None, **options
):
    engine = Wire()
    state = state or GossipState.zeros(topology.n_nodes, sizes(update.loss, X.shape[1]))
    engine.open(topology, state.released.shape[1])
    rows = rows or partial(on_grid, x_norm=x_norm, step=update.row_step)
    options = dict(rows=rows, draw=drawer(noise), release=add) | options
    state = run_gossip(engine, topology, X, codes, schedule, state, update, **options)
    return state, np.array([*engine.messages, state.released])


# The reference: one node and one row after another


def metropolis(topology, t):
    """Weights of a round, one pair of nodes after another."""
    up = topology.edges[topology.active(t, t + 1)[0]].tolist()
    degrees = [sum(i in edge for edge in up) for i in range(topology.n_nodes)]
    A = np.eye(topology.n_nodes)
    for i, j in up:
        weight = 1.0 / (1.0 + max(degrees[i], degrees[j]))
        A[i, j] = A[j, i] = weight
        A[i, i] -= weight
        A[j, j] -= weight
    return A


def textbook_residual(loss, z, code):
    """Derivative of the loss of one row by its scores."""
    if loss.n_outputs == 1:
        sign = 1.0 if code == 1 else -1.0
        margin = sign * z[0]
        if isinstance(loss, HingeLoss):
            slope = 1.0 if margin < 1.0 else 0.0
        elif isinstance(loss, LogisticLoss):
            slope = 1.0 / (1.0 + math.exp(margin))
        else:
            slope = min(1.0, max(0.0, (1.0 + loss.width - margin) / (2.0 * loss.width)))
        return np.array([-sign * slope])
    own = np.eye(loss.n_classes)[code]
    if isinstance(loss, MulticlassHingeLoss):
        best = max(range(loss.n_classes), key=lambda k: z[k] + (k != code))
        return np.eye(loss.n_classes)[best] - own
    powers = np.exp((z + loss.margin * (1.0 - own)) / loss.temperature)
    return powers / powers.sum() - own


def textbook_row(x, x_norm, step):
    """In the ball, in units of its radius, rounded toward zero, and a constant."""
    unit = x * min(1.0 / x_norm, 1.0 / max(np.linalg.norm(x), 1e-300))
    return np.append(np.trunc(unit * (1.0 - 2.0**-40) / step) * step, 1.0)


def node_by_node(topology, X, codes, owners, update, noise, n_passes=1, x_norm=2.0):
    """Broadcasts of all nodes and the points of their gradients."""
    loss, m, h = update.loss, topology.n_nodes, update.batch_size
    queues = [[r for r in range(len(X)) if owners[r] == i] for i in range(m)]
    n_rounds = max(math.ceil(len(queue) / h) for queue in queues)
    x = np.zeros((m, loss.n_outputs, X.shape[1] + 1))
    sent, points = [x.copy()], []
    for t in range(n_passes * n_rounds):
        step, b = float(update.steps(t + 1.0)), x
        for k in range(update.n_mixings):
            A = metropolis(topology, t * update.n_mixings + k)
            b = np.stack([sum(A[i, j] * b[j] for j in range(m)) for i in range(m)])
        here = b.copy()
        for i in range(m):
            if update.lazy:
                here[i] *= min(1.0, update.radius / max(np.linalg.norm(here[i]), 1e-300))
            if update.threshold:
                for place in np.ndindex(here[i].shape):
                    size = max(abs(b[i][place]) - step * update.threshold, 0.0)
                    here[i][place] = math.copysign(size, b[i][place])
                here[i] *= min(1.0, update.radius / max(np.linalg.norm(here[i]), 1e-300))
            gradient = noise[t, i].reshape(x[i].shape).copy()
            start = (t % n_rounds) * h
            taken = queues[i][start : start + h]
            if not taken:
                gradient[...] = 0.0  # there is nothing to hide, and no noise
            for r in taken:
                row = textbook_row(X[r], x_norm, update.row_step)
                residual = textbook_residual(loss, here[i] @ row, codes[r])
                residual = np.trunc(residual / update.slope_step) * update.slope_step
                gradient += np.outer(residual, row)
            shrinks = b[i] if update.lazy else here[i]
            x[i] = b[i] - step * (gradient / h + update.penalty * shrinks)
            if not update.threshold and not update.lazy:
                x[i] *= min(1.0, update.radius / max(np.linalg.norm(x[i]), 1e-300))
        sent.append(x.copy())
        points.append(here)
    return tuple(np.array(a).reshape(len(a), m, -1) for a in (sent, points))


ALGORITHMS = {
    "1": dict(radius=3.0),
    "1 regularised": dict(penalty=0.3, steps=lambda t: 1.0 / (0.3 * t)),
    "3": dict(threshold=2.0),
    "3 in a small ball": dict(threshold=0.5, radius=0.5),
    "4": dict(batch_size=5, radius=0.5),
    "1 lazy": dict(lazy=True, radius=0.5, decay=3.0),
    "1 lazy and regularised": dict(lazy=True, radius=0.5, penalty=0.3),
    "4 lazy, mixed often": dict(lazy=True, batch_size=5, radius=0.5, n_mixings=3),
    "3 and 4": dict(threshold=1.0, batch_size=4, decay=3.0),
}
NETWORKS = {
    "ring": ("ring", 6, 1.0),
    "links up and down": ("erdos_renyi", 7, 0.4),
    "one": ("ring", 1, 1.0),
}


def compare(update, network, kind, *, n_passes=1, n_rows=60):
    name, n_nodes, p = NETWORKS[network]
    topology = make_topology(name, n_nodes, edge_probability=p, seed=3)
    X, codes = problem(n_rows, n_classes=max(2, update.loss.n_outputs))
    owners = uneven(len(X), n_nodes)
    schedule = np.tile(batches(owners, n_nodes, update.batch_size), (n_passes, 1, 1))
    noise = noise_of(len(schedule), n_nodes, update, X.shape[1])
    keep = []
    state, sent = gossiped(topology, kind(X), codes, schedule, update, noise, keep=keep)
    expected = node_by_node(topology, X, codes, owners, update, noise, n_passes)
    assert state.time == len(schedule) == len(noise)
    assert_allclose(sent[:: update.n_mixings], expected[0], rtol=1e-10, atol=1e-12)
    assert_allclose(np.concatenate(keep), expected[1], rtol=1e-10, atol=1e-12)
    shares = np.arange(1.0, len(noise) + 1.0) ** update.decay
    mean = np.tensordot(shares / shares.sum(), expected[0][1:], 1)
    assert_allclose(state.average(), mean, rtol=1e-10, atol=1e-12)
    return sent


@kinds
@losses
def test_every_loss_is_a_loop_over_nodes_and_rows(loss, kind):
    compare(of_update(loss), "ring", kind)
    compare(of_update(loss, batch_size=3), "links up and down", kind)


@kinds
@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_algorithm_is_a_loop_over_nodes_and_rows(algorithm, network, kind):
    update = of_update(LogisticLoss(), **ALGORITHMS[algorithm])
    sent = compare(update, network, kind)
    longest = np.linalg.norm(sent, axis=2).max()
    if algorithm in ("1", "4"):
        assert longest == pytest.approx(update.radius)  # the projection was at work
    if "lazy" in algorithm or algorithm == "3 in a small ball":
        assert longest > 0.5  # sums of gradients are not projected


# Schedules


@pytest.mark.parametrize("batch_size", [1, 2, 5, 100])
@pytest.mark.parametrize("n_nodes", [1, 3, 8])
def test_each_row_is_taken_once_in_its_order_by_its_owner(n_nodes, batch_size):
    owners = uneven(50, n_nodes)
    table = batches(owners, n_nodes, batch_size)
    fullest = np.bincount(owners).max()
    assert table.shape == (-(-fullest // batch_size), n_nodes, batch_size)
    assert sorted(table[table >= 0]) == list(range(50))
    for i in range(n_nodes):
        taken = table[:, i].ravel()
        taken = taken[: (owners == i).sum()]  # no gap before the last row
        assert_array_equal(taken, np.flatnonzero(owners == i))
        assert (table[:, i].ravel()[len(taken) :] == -1).all()
    longer = batches(owners, n_nodes, batch_size, n_rounds=len(table) + 2)
    assert_array_equal(longer[:-2], table)
    assert (longer[-2:] == -1).all()


# Exactness: what noise is added to


class Alone:
    """Everyone mixes with itself only, exactly."""

    def __init__(self, n_nodes):
        self.n_nodes = n_nodes

    size = 0  # of its matrices, which are nothing to speak of

    def mixer(self, mine, heard):
        return self

    def __call__(self, start, stop):
        return [np.eye(self.n_nodes)] * (stop - start)


def exact_sums(
    loss, X, codes, schedule, points, *, x_norm=1.0, row_step=ROW_STEP, kind=np.asarray
):
    """Sums of gradients at ``points`` in one round, without a rounding of the test's own."""
    batch_size = schedule.shape[2]
    update = of_update(
        loss,
        batch_size=batch_size,
        radius=2.0**60,
        row_step=row_step,
        steps=lambda t: np.full(len(t), float(batch_size)),
    )
    points = np.rint(points / update.grid) * update.grid
    state = replace(GossipState.zeros(*points.shape), released=points)
    state, _ = gossiped(
        Alone(len(points)),
        kind(X),
        codes,
        schedule,
        update,
        np.zeros((1, *points.shape)),
        state=state,
        x_norm=x_norm,
    )
    return points - state.released, update


def hostile_rows(n_features, x_norm, n_rows=24, seed=0):
    """Rows on the sphere, a rounding beyond, far beyond, tiny, and along axes."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_features))
    X *= x_norm / np.linalg.norm(X, axis=1, keepdims=True)
    X[1::6] = np.nextafter(X[1::6], np.inf * X[1::6])
    X[2::6] *= 1e200
    X[3::6] *= 1e-200
    X[4::6] *= 1.0 + rng.random((len(X[4::6]), 1))
    X[5] = x_norm / math.sqrt(n_features)
    X[11] = 0.0
    X[11, 0] = -x_norm
    return X


def is_multiple(values, step):
    return all((Fraction(v) / Fraction(step)).denominator == 1 for v in np.ravel(values).tolist())


def squared_norm(values):
    return sum(Fraction(v) ** 2 for v in np.ravel(values).tolist())


@kinds
@losses
@pytest.mark.parametrize("x_norm", [1.0, 0.3, 1e30])
def test_rows_have_gradients_on_the_grid_of_at_most_their_bound(loss, x_norm, kind):
    # lipschitz sqrt(2) squared: 2 for one output, 4 for several.
    bound = 2 if loss.n_outputs == 1 else 4
    longest = Fraction(0)
    for n_features, spread in [(1, 0.1), (3, 100.0), (40, 3.0)]:
        X = hostile_rows(n_features, x_norm)
        codes = np.random.default_rng(1).integers(0, max(2, loss.n_outputs), len(X))
        points = spread * np.random.default_rng(2).normal(size=(len(X), sizes(loss, n_features)))
        schedule = np.arange(len(X)).reshape(1, -1, 1)
        sums, update = exact_sums(loss, X, codes, schedule, points, x_norm=x_norm, kind=kind)
        assert is_multiple(sums, update.grid)
        norms = [squared_norm(row) for row in sums]
        assert max(norms) <= bound
        longest = max(longest, max(norms))
    assert longest > bound * 0.998  # attained
    assert math.isclose(bound, 2.0 * loss.lipschitz**2)


@losses
def test_slopes_have_a_public_step_that_hits_their_bound(loss):
    step = slope_step(loss)
    assert math.log2(step).is_integer() and 2.0**-10 <= step <= 1.0
    assert (1.0 / step).is_integer()  # slopes of 1 are not rounded
    assert of_update(loss).grid == step * ROW_STEP


@pytest.mark.parametrize("loss", [LogisticLoss(), HuberHingeLoss(), HingeLoss(), SoftmaxLoss(3)])
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize(
    "form",
    [dict(), dict(lazy=True), dict(lazy=True, penalty=0.5, n_mixings=2), dict(threshold=0.1)],
    ids=["paper", "lazy", "lazy twice", "sparse"],
)
def test_an_infinite_message_does_not_show_which_features_are_zero(loss, layout, form):
    # 0 times infinity is not a number, and no noise would hide where that comes out.
    width = 3
    size = width * loss.n_outputs
    topology = make_topology("complete", 2)
    update = GossipUpdate(loss, 1, 5.0, lambda times: 1.0 / times, **form)
    schedule = batches(np.array([0]), 2, 1)
    seen = []
    for first in (0.0, 0.5, -0.5):
        engine = HostileNeighbour()
        engine.open(topology, size)
        state = run_gossip(
            engine,
            topology,
            layout(np.array([[first, 0.5]])),
            np.array([1]),
            schedule,
            GossipState.zeros(2, size),
            update,
            rows=partial(on_grid, x_norm=1.0, step=2.0**-16),
            draw=lambda n: np.zeros((n, 2, size)),
            release=add,
        )
        seen.append(np.isnan(state.released[0]))
    assert (seen[0] == seen[1]).all()
    assert (seen[0] == seen[2]).all()


@pytest.mark.parametrize("form", [dict(), dict(lazy=True), dict(threshold=0.1)])
def test_a_node_that_is_no_number_leaves_the_others_in_the_ball(form):
    update = GossipUpdate(HingeLoss(), 1, 5.0, lambda times: 1.0 / times, **form)
    for odd in (np.nan, np.inf):
        points = np.array([[30.0, 40.0], [odd, 1.0], [0.3, 0.4]])
        if not form:
            points = update.moved(points, np.zeros_like(points), points, 1.0)
        else:
            kept = points.copy()
            points = update.points(points, 1e-9)
            assert_array_equal(kept, [[30.0, 40.0], [odd, 1.0], [0.3, 0.4]])
        assert_allclose(points[[0, 2]], [[3.0, 4.0], [0.3, 0.4]], rtol=1e-6)
