"""How far apart regressions of neighbours are, against problems that are solved outright."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import optimize
from support.problems import ridge

from skdp.kernel._ridge_problem import query_variance, ridge_norm_bound, ridge_sensitivity
from skdp.kernel.papers import paper_sensitivity


def tight_pair(n_samples, penalty, y_bound, kappa):
    """All other rows support the direction in which the changed point tilts, at their most."""
    base = [0.0, math.sqrt(penalty / n_samples)]
    copies = np.array([n_samples - 1.0, 1.0])
    half = kappa / math.sqrt(2.0)
    return [
        ridge(
            np.array([base, [half, sign * half]]),
            y_bound * np.array([1.0, -sign]),
            copies,
            penalty,
        )
        for sign in (1.0, -1.0)
    ]


def huber(points, targets, penalty, width):
    """Minimise Huber's losses plus ``penalty/2 ||w||^2``."""

    def objective(w):
        r = points @ w - targets
        small = abs(r) <= width
        loss = np.where(small, r**2 / 2, width * (abs(r) - width / 2))
        gradient = points.T @ np.clip(r, -width, width) + penalty * w
        return loss.sum() + penalty / 2 * w @ w, gradient

    solved = optimize.minimize(
        objective, np.zeros(points.shape[1]), jac=True, tol=1e-12, method="BFGS"
    )
    return solved.x, np.linalg.norm(objective(solved.x)[1]) / penalty


def in_ball(rng, size, radius):
    points = rng.standard_normal((size, 2))
    lengths = radius * rng.choice([1.0, 1.0, 0.3, 0.03], size)
    return points * (lengths / np.linalg.norm(points, axis=1))[:, np.newaxis]


def random_problem(rng):
    n_samples, kappa, y_bound = rng.integers(1, 9), *10.0 ** rng.uniform(-1, 1, 2)
    penalty = kappa**2 * 10.0 ** rng.uniform(-3, 2)
    points = in_ball(rng, n_samples, kappa)
    targets = y_bound * rng.choice([-1.0, 1.0, 0.5], n_samples)
    # Many copies of the first rows bring the norm near its bound.
    copies = np.append(rng.choice([1.0, 10.0, 1000.0], n_samples - 1), 1.0)
    public = {"penalty": penalty, "y_bound": y_bound, "kappa": kappa}
    return points, targets, copies, public


def test_sensitivity_has_the_values_computed_by_hand():
    public = {"n_samples": 1000, "penalty": 10.0, "y_bound": 1.0}  # lam = 0.01
    assert_allclose(ridge_sensitivity(**public), 0.7)
    assert_allclose(paper_sensitivity(**public), 4.0)
    other = {"n_samples": 100, "penalty": 25.0, "y_bound": 3.0, "kappa": 2.0}
    assert_allclose(paper_sensitivity(**other), 2.88)
    assert_allclose(paper_sensitivity(**other, norm="sup"), 5.76)


@pytest.mark.parametrize("y_bound, kappa", [(1.0, 1.0), (3.0, 0.2), (0.1, 5.0)])
def test_a_pair_of_neighbours_attains_the_sensitivity_as_the_penalty_falls(y_bound, kappa):
    ratios = []
    for lam in (1e-2, 1e-3, 1e-4):
        n_samples, penalty = 1e6, 1e6 * lam * kappa**2
        here, there = tight_pair(n_samples, penalty, y_bound, kappa)
        bound = ridge_sensitivity(
            n_samples=n_samples, penalty=penalty, y_bound=y_bound, kappa=kappa
        )
        ratios.append(np.linalg.norm(here - there) / bound)
    assert ratios == sorted(ratios)
    assert 0.98 < ratios[-1] < 1.0


def test_no_pair_of_neighbours_is_further_apart_than_the_sensitivity():
    rng = np.random.default_rng(0)
    closest = 0.0
    for _ in range(3000):
        points, targets, copies, public = random_problem(rng)
        here = ridge(points, targets, copies, public["penalty"])
        points[-1:], targets[-1] = in_ball(rng, 1, public["kappa"]), -targets[-1]
        there = ridge(points, targets, copies, public["penalty"])
        bound = ridge_sensitivity(n_samples=copies.sum(), **public)
        closest = max(closest, np.linalg.norm(here - there) / bound)
    assert 0.5 < closest <= 1.0 + 1e-9


@pytest.mark.parametrize("n_samples", [1, 7, 10_000])
@pytest.mark.parametrize("lam", [1e-4, 0.3, 4.0, 100.0])
def test_the_norm_bound_is_attained_and_not_exceeded(n_samples, lam):
    kappa, y_bound, penalty = 2.0, 3.0, n_samples * lam
    norms = [
        np.linalg.norm(ridge(np.array([[s, 0.0]]), [y_bound], np.array([n_samples]), penalty))
        for s in np.linspace(0.0, kappa, 20_001)
    ][1:]
    bound = ridge_norm_bound(n_samples=n_samples, penalty=penalty, y_bound=y_bound, kappa=kappa)
    assert_allclose(max(norms), bound, rtol=1e-5)
    assert max(norms) <= bound * (1 + 1e-12)


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_huber_neighbours_attain_the_sensitivity_and_do_not_exceed_it(adjacency):
    kappa, y_bound, width, penalty = 2.0, 5.0, 0.7, 3.0
    bound = ridge_sensitivity(
        penalty=penalty,
        y_bound=y_bound,
        kappa=kappa,
        adjacency=adjacency,
        loss="huber",
        huber_width=width,
    )

    def distance(points, targets, point, target):
        if adjacency == "replace-one":
            first = np.vstack([points, point]), np.append(targets, -target)
        else:
            first = points, targets
        second = np.vstack([points, point]), np.append(targets, target)
        (here, slack), (there, more) = (huber(*rows, penalty, width) for rows in (first, second))
        return np.linalg.norm(here - there), slack + more

    nothing = np.empty((0, 2)), np.empty(0)
    attained, slack = distance(*nothing, [kappa, 0.0], y_bound)
    assert_allclose(attained, bound, atol=2 * slack + 1e-12)
    rng = np.random.default_rng(2)
    for _ in range(200):
        size = rng.integers(0, 12)
        targets = y_bound * rng.choice([-1.0, 1.0], size)
        points = in_ball(rng, size, kappa)
        apart, slack = distance(points, targets, in_ball(rng, 1, kappa), y_bound)
        assert apart <= bound + slack + 1e-12


def test_the_width_of_huber_defaults_to_the_bound_on_targets():
    common = {"penalty": 2.0, "y_bound": 3.0, "loss": "huber"}
    assert ridge_sensitivity(**common) == ridge_sensitivity(**common, huber_width=3.0) == 3.0


def test_the_squared_loss_is_refused_where_its_sensitivity_is_infinite():
    with pytest.raises(ValueError, match=r"loss must be 'huber'.*infinite sensitivity"):
        ridge_sensitivity(penalty=1.0, y_bound=1.0, n_samples=10, adjacency="add-remove")


def test_projection_limits_the_noise_of_a_tiny_penalty():
    variance = query_variance(n_samples=10, penalty=1e-9, epsilon=0.5, y_bound=3.0)
    assert_allclose(math.sqrt(variance / 2.0), 6.0 / 0.5)


PUBLIC = {"n_samples": 10, "penalty": 1.0, "y_bound": 1.0}


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: ridge_norm_bound(**PUBLIC | {"n_samples": 0}), "n_samples must be a pos"),
        (lambda: ridge_sensitivity(penalty=1.0, y_bound=1.0), "n_samples must be given"),
        (lambda: ridge_sensitivity(**PUBLIC, adjacency="one"), "adjacency must be one of"),
        (lambda: ridge_sensitivity(**PUBLIC, loss="hinge"), "loss must be one of"),
        (lambda: query_variance(**PUBLIC, epsilon=0.0), "epsilon must be a positive"),
    ],
)
def test_impossible_numbers_are_refused_by_name(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("lam", [1e-8, 1e-4, 0.03, 1.0])
@pytest.mark.parametrize("kappa", [0.05, 1.0, 7.0])
@pytest.mark.parametrize("n_samples", [2, 300, 10**6])
def test_the_bound_of_the_paper_is_its_lemma_and_at_least_ours(n_samples, kappa, lam):
    public = dict(n_samples=n_samples, penalty=lam * n_samples, y_bound=0.7, kappa=kappa)
    paper = ridge_sensitivity(**public, bound="paper")
    assert_allclose(paper, paper_sensitivity(**public), rtol=1e-14)
    assert paper >= ridge_sensitivity(**public)


def test_the_bound_of_the_paper_is_refused_where_it_is_not_proved():
    public = dict(n_samples=10, penalty=5.0, y_bound=1.0, bound="paper")
    for wrong, message in [
        (dict(penalty=10.5), "penalty must be at most n_samples"),
        (dict(loss="huber"), "bound must be 'tight' with loss='huber'"),
        (dict(adjacency="add-remove"), "infinite sensitivity"),
        (dict(bound="loose"), "bound must be one of"),
    ]:
        with pytest.raises(ValueError, match=message):
            ridge_sensitivity(**(public | wrong))
