"""Bounds of private kernel ridge regression against problems that are solved outright.

Regressions are computed in feature space with the objective written anew, privacy and risk by
enumerating what can happen.
"""

import itertools
import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import optimize

from skdp.theory.kernel_ridge import (
    approximation_bound,
    epsilon_rule,
    norm_bound,
    paper_sensitivity,
    penalty_rule,
    query_variance,
    rate,
    relative_risk_bound,
    risk_bound,
    sensitivity,
    stability_bound,
    suggest_epsilon,
)

RS = [0.1, 0.25, 0.5, 1.0]


def ridge(points, targets, copies, penalty):
    """Minimise the sum of squares plus ``penalty ||w||^2``; each row comes in some copies."""
    root = np.sqrt(copies)[:, np.newaxis]
    rows = np.vstack([root * points, math.sqrt(penalty) * np.eye(points.shape[1])])
    values = np.concatenate([root[:, 0] * targets, np.zeros(points.shape[1])])
    return np.linalg.lstsq(rows, values)[0]


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
    assert_allclose(sensitivity(**public), 0.7)
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
        bound = sensitivity(n_samples=n_samples, penalty=penalty, y_bound=y_bound, kappa=kappa)
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
        bound = sensitivity(n_samples=copies.sum(), **public)
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
    bound = norm_bound(n_samples=n_samples, penalty=penalty, y_bound=y_bound, kappa=kappa)
    assert_allclose(max(norms), bound, rtol=1e-5)
    assert max(norms) <= bound * (1 + 1e-12)


def test_norms_of_random_problems_stay_within_the_bound():
    rng = np.random.default_rng(1)
    for _ in range(1000):
        points, targets, copies, public = random_problem(rng)
        norm = np.linalg.norm(ridge(points, targets, copies, public["penalty"]))
        assert norm <= norm_bound(n_samples=copies.sum(), **public) * (1 + 1e-9)


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_huber_neighbours_attain_the_sensitivity_and_do_not_exceed_it(adjacency):
    kappa, y_bound, width, penalty = 2.0, 5.0, 0.7, 3.0
    bound = sensitivity(
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
    assert sensitivity(**common) == sensitivity(**common, huber_width=3.0) == 3.0


def test_the_squared_loss_is_refused_where_its_sensitivity_is_infinite():
    with pytest.raises(ValueError, match=r"infinite sensitivity.*loss='huber'"):
        sensitivity(penalty=1.0, y_bound=1.0, n_samples=10, adjacency="add-remove")
    # The reason: one further row moves the solution by as much as one likes.
    base, new = [0.0, 1.0], [0.7, 0.7]
    distances = []
    for n_samples in (1e2, 1e4, 1e6):
        points, targets = np.array([base, new]), np.array([1.0, -1.0])
        points[0, 1] = n_samples**-0.5
        with_it, without = (
            ridge(points, targets, np.array([n_samples, copies]), 1.0) for copies in (1.0, 0.0)
        )
        distances.append(np.linalg.norm(with_it - without))
    assert distances[1] > 5 * distances[0] and distances[2] > 5 * distances[1]


def test_the_published_sensitivity_holds_and_is_eight_times_too_large_in_the_end():
    for kappa in (0.1, 1.0, 6.0):
        for lam in np.geomspace(1e-8, 1.0, 30):
            public = {"n_samples": 1e12, "penalty": 1e12 * lam, "y_bound": 2.0, "kappa": kappa}
            assert sensitivity(**public) <= paper_sensitivity(**public)
    public = {"n_samples": 1e12, "penalty": 1e2, "y_bound": 2.0}
    assert_allclose(paper_sensitivity(**public) / sensitivity(**public), 8.0, rtol=1e-3)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_laplace_noise_of_the_query_variance_hides_the_tight_pair_and_is_not_wasted(epsilon):
    public = {"n_samples": 1e6, "penalty": 400.0, "y_bound": 3.0, "kappa": 2.0}
    here, there = tight_pair(**public)
    # The prediction that differs most; the log ratio of two shifted Laplace laws.
    apart = public["kappa"] * np.linalg.norm(here - there)
    scale = math.sqrt(query_variance(**public, epsilon=epsilon) / 2.0)
    assert 0.95 * epsilon < apart / scale <= epsilon


def test_projection_limits_the_noise_of_a_tiny_penalty():
    variance = query_variance(n_samples=10, penalty=1e-9, epsilon=0.5, y_bound=3.0)
    assert_allclose(math.sqrt(variance / 2.0), 6.0 / 0.5)


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 3.0])
def test_sample_and_population_means_differ_by_no_more_than_the_stability_bound(epsilon):
    rng = np.random.default_rng(3)
    values, outputs, n_samples = 3, 4, 3
    samples = list(itertools.product(range(values), repeat=n_samples))
    for _ in range(100):
        # An exponential mechanism; its scores differ by at most one between any samples.
        law = np.exp(epsilon / 2.0 * rng.random((len(samples), outputs)) ** 0.1)
        law = dict(zip(samples, law / law.sum(axis=1, keepdims=True), strict=True))
        prior = rng.dirichlet(np.full(values, 0.5))
        g = rng.exponential(size=(outputs, values)) ** 3
        sample_mean = population_mean = 0.0
        for sample, chances in law.items():
            weight = prior[list(sample)].prod()
            sample_mean += weight * chances @ g[:, list(sample)].mean(axis=1)
            population_mean += weight * chances @ (g @ prior)
        gap = sample_mean - population_mean
        for of, expected in {
            "population": population_mean,
            "sample": sample_mean,
            "both": max(sample_mean, population_mean),
        }.items():
            above, below = stability_bound(epsilon, expected, of=of)
            assert -below <= gap <= above


@pytest.mark.parametrize("epsilon", [0.1, 1.5])
def test_randomised_response_over_a_large_alphabet_attains_the_stability_bound(epsilon):
    size = 100_000
    kept = math.exp(epsilon) / (math.exp(epsilon) + size - 1.0)
    # One uniform record; g says whether the output names it.
    sample, population = kept, 1.0 / size
    above, _ = stability_bound(epsilon, population)
    _, below = stability_bound(epsilon, sample, of="sample")
    assert 0.999 * above < sample - population <= above
    above, _ = stability_bound(epsilon, sample, of="sample")
    assert 0.999 * above < sample - population <= above
    # The complement: g is 1 unless the output names the record. The roles change.
    _, below = stability_bound(epsilon, 1.0 - sample, of="sample")
    assert 0.0 < sample - population <= below
    # Twice epsilon, as published, is a bound for small epsilons only.
    assert (sample - population <= 2.0 * epsilon * population) == (epsilon < 1.0)


def test_the_published_factor_holds_up_to_an_epsilon_of_five_quarters():
    root = optimize.brentq(lambda e: stability_bound(e, 1.0)[0] - 2.0 * e, 0.5, 3.0)
    assert_allclose(root, 1.256431, atol=1e-6)


@pytest.mark.parametrize("r", RS)
@pytest.mark.parametrize("kappa", [0.3, 1.0, 2.0])
@pytest.mark.parametrize("lam", [1e-4, 0.05, 1.0, 30.0])
def test_the_approximation_error_of_no_spectrum_exceeds_the_bound_and_one_attains_it(
    r, kappa, lam
):
    def error(mu, h):
        """Risk and penalty of the minimiser, coordinate by coordinate, with a check of both."""
        target = mu**r * h

        def objective(f):
            return np.sum((f - target) ** 2) + lam * np.sum(f**2 / mu)

        best = target * mu / (mu + lam)
        assert objective(best) <= min(objective(0.999 * best), objective(1.001 * best))
        return objective(best)

    rng = np.random.default_rng(4)
    bound = approximation_bound(lam, r=r, source=2.0, kappa=kappa)
    for _ in range(30):
        mu = kappa**2 * 10.0 ** rng.uniform(-5, 0, 6)
        h = rng.standard_normal(6)
        assert error(mu, 2.0 * h / np.linalg.norm(h)) <= bound
    single = [
        error(np.array([mu]), np.array([2.0])) for mu in kappa**2 * np.geomspace(1e-6, 1, 4001)
    ]
    assert_allclose(max(single), bound, rtol=1e-4)
    simple = 4.0 * lam ** min(2 * r, 1.0) * (max(1.0, kappa ** (4 * r - 2)) if r > 0.5 else 1.0)
    assert bound <= simple * (1 + 1e-12)


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 20.0])
@pytest.mark.parametrize("lam", [0.05, 0.3, 1.0])
@pytest.mark.parametrize("chance", [0.5, 0.9, 1.0])
def test_the_exact_risk_of_a_small_problem_stays_within_both_bounds(epsilon, lam, chance):
    n_samples, r = 8, 0.5
    gram = np.array([[1.0, 0.4], [0.4, 1.0]])  # two points, equally likely
    mean = np.array([1.0, -1.0]) * (2.0 * chance - 1.0)  # of targets that are 1 or -1
    roots = np.linalg.cholesky(gram)
    risk = 0.0
    cells = [(0, 1.0), (0, -1.0), (1, 1.0), (1, -1.0)]
    chances = np.array([0.5 * (1.0 + y * mean[x]) / 2.0 for x, y in cells])
    for counts in itertools.product(range(n_samples + 1), repeat=4):
        if sum(counts) != n_samples:
            continue
        ways = math.factorial(n_samples) / math.prod(map(math.factorial, counts))
        weight = ways * np.prod(chances ** np.array(counts))
        points = roots[[x for x, _ in cells]]
        targets = np.array([y for _, y in cells])
        f = roots @ ridge(points, targets, np.array(counts, float), n_samples * lam)
        f = np.clip(f, -1.0, 1.0)
        risk += weight * sum(p * (f[x] - y) ** 2 for p, (x, y) in zip(chances, cells, strict=True))
    public = {"n_samples": n_samples, "penalty": n_samples * lam, "epsilon": epsilon}
    risk += query_variance(**public, y_bound=1.0)
    best = 1.0 - mean[0] ** 2
    # L_K has the matrix gram / 2 on functions, whose mean square is half the sum of squares.
    source = math.sqrt(mean @ np.linalg.solve(gram / 2.0, mean) / 2.0)
    bounds = {"r": r, "source": source, **public}
    assert risk - math.exp(epsilon) * best <= relative_risk_bound(**bounds)
    assert risk - best <= risk_bound(**bounds)


def test_risk_bounds_have_the_values_computed_by_hand():
    # Noise of variance 2 (0.7)^2, approximation error 1/101, e times both, and e - 1.
    public = {"n_samples": 1000, "penalty": 10.0, "epsilon": 1.0}
    assert_allclose(relative_risk_bound(**public), 2.6908298734)
    assert_allclose(risk_bound(**public), 4.4091117018)


def slope(values, sizes):
    return math.log(values[1] / values[0]) / math.log(sizes[1] / sizes[0])


@pytest.mark.parametrize("r", RS)
def test_bounds_fall_at_the_rates_of_the_theorems_and_not_with_the_misprint(r):
    sizes = 1e24, 1e27  # the second term of the sensitivity wins slowly
    fixed = [relative_risk_bound(n_samples=m, epsilon=1.0, r=r) for m in sizes]
    assert_allclose(slope(fixed, sizes), -rate(r, fixed_epsilon=True), atol=3e-3)
    rule = [risk_bound(n_samples=m, epsilon=epsilon_rule(m, r), r=r) for m in sizes]
    assert_allclose(slope(rule, sizes), -rate(r), atol=3e-3)
    printed = [
        risk_bound(n_samples=m, epsilon=epsilon_rule(m, r, misprinted=True), r=r) for m in sizes
    ]
    assert_allclose(slope(printed, sizes), -rate(r) / 2.0, atol=3e-3)


@pytest.mark.parametrize(
    "r, fixed, free", [(0.25, 2 / 7, 2 / 9), (0.5, 1 / 2, 1 / 3), (3.0, 1 / 2, 1 / 3)]
)
def test_rules_and_rates_have_the_values_computed_by_hand(r, fixed, free):
    assert_allclose(rate(r, fixed_epsilon=True), fixed)
    assert_allclose(rate(r), free)
    assert_allclose(epsilon_rule(10**9, r), 10 ** (-9 * free))
    assert_allclose(epsilon_rule(10**9, r, misprinted=True), 10 ** (-4.5 * free))
    lam = penalty_rule(10**6, 0.01, r) / 10**6
    assert_allclose(lam, 1e4 ** -(2 / 3.5 if r < 0.5 else 0.5))


def test_penalties_that_are_not_given_follow_the_rule():
    common = {"n_samples": 5000, "epsilon": 0.3, "r": 0.3}
    by_rule = risk_bound(**common, penalty=penalty_rule(5000, 0.3, 0.3))
    assert risk_bound(**common) == by_rule
    fixed = relative_risk_bound(**common, penalty=penalty_rule(5000, 1.0, 0.3))
    assert relative_risk_bound(**common) == fixed


@pytest.mark.parametrize("n_samples", [1, 30, 1000, 10**7])
@pytest.mark.parametrize(
    "public", [{}, {"r": 0.2}, {"source": 5.0}, {"kappa": 3.0}, {"source": 0.0}], ids=str
)
def test_no_other_budget_and_penalty_have_a_smaller_bound(n_samples, public):
    best = suggest_epsilon(n_samples, **public)

    def bound(epsilon, penalty):
        return risk_bound(n_samples=n_samples, epsilon=epsilon, penalty=penalty, **public)

    assert best.bound == bound(best.epsilon, best.penalty)
    assert best.rule == epsilon_rule(n_samples, public.get("r", 0.5))
    largest = n_samples * public.get("kappa", 1.0) ** 2
    assert 0.0 < best.penalty <= largest * (1 + 1e-9)
    rng = np.random.default_rng(5)
    for spread in (0.01, 0.3, 5.0):
        for factors in np.exp(spread * rng.standard_normal((200, 2))):
            epsilon, penalty = best.epsilon * factors[0], min(best.penalty * factors[1], largest)
            assert bound(epsilon, penalty) >= best.bound * (1 - 1e-6)


def test_a_suggestion_does_not_depend_on_units():
    plain = suggest_epsilon(3000, r=0.3)
    targets = suggest_epsilon(3000, y_bound=50.0, r=0.3, source=50.0)
    assert_allclose(targets.epsilon, plain.epsilon, rtol=1e-4)
    assert_allclose(targets.penalty, plain.penalty, rtol=1e-4)
    assert_allclose(targets.bound, 2500.0 * plain.bound)
    # A kernel nine times as large: L_K^r h is the same function if h shrinks.
    kernel = suggest_epsilon(3000, kappa=3.0, r=0.3, source=9.0**-0.3)
    assert_allclose(kernel.epsilon, plain.epsilon, rtol=1e-4)
    assert_allclose(kernel.penalty, 9.0 * plain.penalty, rtol=1e-4)
    assert_allclose(kernel.bound, plain.bound)


def test_the_closed_form_is_close_to_the_minimum_for_the_default_numbers():
    for n_samples in np.geomspace(1e3, 1e12, 10):
        best = suggest_epsilon(n_samples)
        assert_allclose(best.epsilon, best.rule, rtol=0.2)
        by_rule = risk_bound(n_samples=n_samples, epsilon=best.rule)
        assert best.bound <= by_rule <= 1.5 * best.bound


def test_bounds_of_an_enormous_epsilon_are_infinite_rather_than_an_error():
    assert risk_bound(n_samples=10, epsilon=1e4) == math.inf
    assert stability_bound(1e4, 1.0) == (math.inf, 1.0)


PUBLIC = {"n_samples": 10, "penalty": 1.0, "y_bound": 1.0}


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: norm_bound(n_samples=0, penalty=1.0, y_bound=1.0), "n_samples must be a pos"),
        (lambda: sensitivity(penalty=-1.0, y_bound=1.0), "penalty must be a positive"),
        (lambda: sensitivity(penalty=1.0, y_bound=1.0), "n_samples must be given"),
        (lambda: sensitivity(**PUBLIC, adjacency="one"), "adjacency must be one of"),
        (lambda: sensitivity(**PUBLIC, loss="hinge"), "loss must be one of"),
        (lambda: sensitivity(**PUBLIC, loss="huber", huber_width=0.0), "huber_width must be"),
        (lambda: sensitivity(**PUBLIC, kappa=math.inf), "kappa must be a positive, finite"),
        (lambda: paper_sensitivity(**PUBLIC, norm="l2"), "norm must be one of"),
        (
            lambda: paper_sensitivity(n_samples=10, penalty=11.0, y_bound=1.0),
            "penalty must be at most n_samples",
        ),
        (lambda: query_variance(**PUBLIC, epsilon=0.0), "epsilon must be a positive"),
        (lambda: stability_bound(0.0, 1.0), "epsilon must be a positive"),
        (lambda: stability_bound(1.0, -1.0), "expected must be a non-negative"),
        (lambda: stability_bound(1.0, 1.0, of="noise"), "of must be one of"),
        (lambda: approximation_bound(0.0), "lam must be a positive"),
        (lambda: approximation_bound(1.0, r=0.0), "r must be a positive"),
        (lambda: approximation_bound(1.0, source=-1.0), "source must be a non-negative"),
        (lambda: risk_bound(n_samples=10, epsilon=-1.0), "epsilon must be a positive"),
        (lambda: rate(0.0), "r must be a positive"),
        (lambda: penalty_rule(10, 0.0), "epsilon must be a positive"),
        (lambda: epsilon_rule(-3), "n_samples must be a positive"),
        (lambda: suggest_epsilon(10, y_bound=math.nan), "y_bound must be a positive"),
        (lambda: suggest_epsilon(10, source=-1.0), "source must be a non-negative"),
    ],
)
def test_impossible_numbers_are_refused_by_name(call, message):
    with pytest.raises(ValueError, match=message):
        call()
