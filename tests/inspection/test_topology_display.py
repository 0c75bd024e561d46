"""What a picture of a network shows, read from the picture."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from support.problems import clusters as problem

from skdp.distributed import DistributedDPClassifier
from skdp.inspection import TopologyDisplay
from skdp.topology import MixingSchedule, Topology, make_topology

plt = pytest.importorskip("matplotlib.pyplot")
CITIES = ["bonn", "oslo", "rome", "bern"]


def test_nodes_links_and_names_are_those_of_the_network():
    topology = Topology(4, [(0, 1), (1, 2), (1, 3)], node_names=CITIES)
    display = TopologyDisplay.from_topology(topology, n_rounds=7, name="cities")
    places = np.asarray(display.nodes_.get_offsets())
    assert places.shape == (4, 2)
    assert_array_equal(np.stack(display.links_.get_segments()), places[topology.edges])
    assert [text.get_text() for text in display.names_] == CITIES
    assert_array_equal([text.xy for text in display.names_], places)
    assert display.ax_[0].get_title() == "cities" and display.figure_ is display.ax_[1].figure
    rounds, left = display.line_.get_data()
    assert_array_equal(rounds, np.arange(8))
    # Of unit vectors, all together: the mixing matrix to that power, without its mean.
    A = topology.mixing(0, 1)[0] - 0.25
    powers = [np.linalg.norm(np.linalg.matrix_power(A, t)) for t in range(1, 8)]
    assert_allclose(left[1:], powers / np.sqrt(3.0), rtol=1e-10)
    assert left[0] == 1.0
    display.figure_.canvas.draw()


@pytest.mark.parametrize("name, n_nodes", [("ring", 5), ("star", 1), ("grid", 90), ("ring", 600)])
def test_networks_of_any_size_have_places_apart(name, n_nodes):
    display = TopologyDisplay.from_topology(make_topology(name, n_nodes), n_rounds=3)
    places = np.asarray(display.nodes_.get_offsets())
    assert len(np.unique(places.round(9), axis=0)) == n_nodes
    assert len(display.names_) == (n_nodes if n_nodes <= 40 else 0)
    if name == "ring":  # neighbours are next to each other
        steps = np.linalg.norm(np.diff(places, axis=0), axis=1)
        assert_allclose(steps, steps[0])


def test_positions_and_axes_are_taken_as_given():
    figure, axes = plt.subplots(2, 1)
    positions = [(0.0, 1.0), (2.0, 3.0), (4.0, 5.0)]
    display = TopologyDisplay.from_topology(
        make_topology("ring", 3), ax=axes, positions=positions, show_names=False, s=5.0
    )
    assert display.figure_ is figure and display.ax_.tolist() == list(axes)
    assert_array_equal(display.nodes_.get_offsets(), positions)
    assert not display.names_ and display.nodes_.get_sizes().tolist() == [5.0]
    again = display.plot()
    assert again is display and again.figure_ is not figure


def test_rounds_are_as_many_as_it_takes_to_agree():
    ring = TopologyDisplay.from_topology(make_topology("ring", 12))
    assert ring.consensus[-1] < 0.01 < ring.consensus[len(ring.consensus) // 3]
    half = np.full((2, 2), 0.5)
    pairs = MixingSchedule([np.kron(np.eye(2), half), np.kron(half, np.eye(2))])
    display = TopologyDisplay.from_topology(pairs)
    assert_allclose(display.consensus, [1.0, np.sqrt(1 / 3), *[0.0] * 9], atol=1e-15)
    assert display.ax_[1].get_yscale() == "linear"  # zeros have no logarithm
    many = make_topology("random_regular", 400)
    assert many.is_sparse
    left = many.consensus(20)
    assert left[20] / left[19] == pytest.approx(1.0 - many.spectral_gap(), rel=0.03)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_model_shows_how_far_its_nodes_are_apart(n_classes):
    X, y = problem(80, n_classes)
    model = DistributedDPClassifier(5.0, n_nodes=4, node_names=CITIES, random_state=0).fit(X, y)
    display = TopologyDisplay.from_estimator(model)
    assert [text.get_text() for text in display.names_] == CITIES
    every = np.concatenate([model.node_coef_, model.node_intercept_[..., None]], axis=2)
    apart = [np.linalg.norm(one - every.mean(axis=0)) for one in every]
    assert_allclose(display.nodes_.get_array(), apart, rtol=1e-12)
    assert len(display.consensus) == 1 + max(10, model.n_rounds_ * model.n_mixings)
    assert len(TopologyDisplay.from_estimator(model, n_rounds=3, c="red").consensus) == 4


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: TopologyDisplay.from_topology("ring"), "topology must be a Topology"),
        (lambda: TopologyDisplay.from_topology(RING, n_rounds=0), "n_rounds must be"),
        (lambda: TopologyDisplay.from_topology(RING, ax=[None]), "ax must hold two axes"),
        (lambda: TopologyDisplay.from_topology(RING, positions=[(0, 1)]), "positions must hold"),
        (lambda: TopologyDisplay.from_topology(RING, show_names="yes"), "show_names must be"),
        (
            lambda: TopologyDisplay.from_topology(make_topology("ring", 3000), n_rounds=1),
            "topology must have at most 2,048 nodes",
        ),
    ],
)
def test_what_cannot_be_drawn_is_said(call, message):
    with pytest.raises(ValueError, match=message):
        call()


RING = make_topology("ring", 3)
