"""Names of frequent categories: the claim against exact profiles, the law, the point."""

import math

import pytest
from scipy.special import ndtr
from scipy.stats import binomtest
from support.insides import noise_source

from skdp.mechanisms import Lattice, NoiseLaw, frequent_names
from skdp.preprocessing._one_hot_encoder import CategoryRelease
from skdp.privacy import ApproxDP, GaussianDP, compose

ADJACENCIES = ("replace-one", "add-remove")


def planned(epsilon=1.0, delta=1e-5, *, adjacency="replace-one", n_columns=1, **options):
    return CategoryRelease.plan(
        ApproxDP(epsilon, delta, adjacency=adjacency), n_columns=n_columns, **options
    )


def deviation(release):
    return release.law.scale * math.sqrt(release.guarantee.n_records_changed)


def reach(release, count):
    """Probability that a count is released, by the law of noise rounded to the lattice."""
    if count == 0:
        return 0.0
    step = 2.0**-7
    return ndtr((count - (release.threshold - step / 2)) / deviation(release))


def profile(release, one, other, epsilon):
    """Exact delta of the sets that are released from two small tables of counts."""
    names = sorted({*one, *other})
    delta = 0.0
    for chosen in range(2 ** len(names)):
        p = q = 1.0
        for i, name in enumerate(names):
            a, b = reach(release, one.get(name, 0)), reach(release, other.get(name, 0))
            p *= a if chosen >> i & 1 else 1 - a
            q *= b if chosen >> i & 1 else 1 - b
        delta += max(0.0, p - math.exp(epsilon) * q)
    return delta


def around(release):
    """Counts near the threshold, where a record tells most."""
    middle = max(2, math.ceil(release.threshold))
    return sorted({1, 2, 3, max(2, middle - 2), middle - 1, middle, middle + 2})


def neighbours(release, adjacency):
    """Tables that differ in one record: a category that appears, vanishes, or changes."""
    for a in around(release):
        yield {"a": a}, {"a": a - 1} if a > 1 else {}
        if adjacency == "add-remove":
            continue
        for b in [0, *around(release)]:
            one, other = {"a": a, "b": b}, {"a": a - 1, "b": b + 1}
            yield tuple({k: v for k, v in table.items() if v} for table in (one, other))


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize(("epsilon", "delta"), [(0.3, 1e-3), (1.0, 0.05), (3.0, 1e-6), (8.0, 0.2)])
def test_no_pair_of_neighbours_loses_more_than_is_claimed(adjacency, epsilon, delta):
    release = planned(epsilon, delta, adjacency=adjacency)
    worst = dict.fromkeys((0.0, 0.5 * epsilon, epsilon, 2.0 * epsilon), 0.0)
    for one, other in neighbours(release, adjacency):
        for e in worst:
            here = max(profile(release, one, other, e), profile(release, other, one, e))
            worst[e] = max(worst[e], here)
    for e, lost in worst.items():
        assert lost <= release.guarantee.delta_at(e) + 1e-15
    # What one record alone has, and nothing else, is all that is lost far out.
    assert worst[2.0 * epsilon] >= 0.1 * delta * 0.9
    assert worst[0.0] >= 0.4 * release.guarantee.delta_at(0.0)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("n_columns", [1, 8, 300])
@pytest.mark.parametrize(
    ("epsilon", "delta"), [(0.05, 1e-9), (1.0, 1e-5), (50.0, 1e-5), (1e4, 0.3)]
)
def test_the_point_is_met_and_used_up(adjacency, n_columns, epsilon, delta):
    release = planned(epsilon, delta, adjacency=adjacency, n_columns=n_columns)
    assert (release.guarantee.epsilon, release.guarantee.delta) == (epsilon, delta)
    # Gaussian noise over all columns, and names in one or the other of them.
    mu = math.sqrt(n_columns) / release.law.scale
    escape = -math.expm1(n_columns * math.log1p(-reach(release, 1)))
    context = dict(adjacency=adjacency)
    lost = compose([GaussianDP(mu, **context), ApproxDP(0.0, escape, **context)])
    assert lost.epsilon_at(delta) <= epsilon * (1 + 1e-9)
    # The lattice is coarse beside noise that is a hundredth of a record.
    assert lost.epsilon_at(delta) >= epsilon * (1 - 2e-3)
    assert 1.0 < release.threshold == release.threshold * 128 // 1 / 128


def test_a_pure_budget_is_refused_with_the_way_out():
    with pytest.raises(ValueError, match=r"delta must be positive to learn .*State public"):
        planned(1.0, 0.0)


def test_a_public_count_raises_the_threshold_and_never_lowers_it():
    assert planned(min_frequency=5).threshold == planned().threshold
    assert planned(min_frequency=500).threshold == 500.0


def test_names_have_the_probability_that_was_planned():
    # Each of 8 tests fails by chance with a probability below 1e-7.
    release = planned(2.0, 0.01)
    counts = {count: count for count in around(release)}
    n_runs, seen = 5_000, dict.fromkeys(counts, 0)
    noise = noise_source(0)
    for _ in range(n_runs):
        for name in release([counts], noise)[0]:
            seen[name] += 1
    for name, count in counts.items():
        assert binomtest(seen[name], n_runs, reach(release, count)).pvalue > 1e-8


def test_what_is_not_there_is_not_released():
    release = planned(1.0, 1e-5, n_columns=3)
    assert release([{}, {"a": 10**9}, {"b": 1}], noise_source(0)) == ((), ("a",), ())


def test_counts_of_other_columns_than_planned_are_refused():
    with pytest.raises(ValueError, match="counts must have 2 columns; got 1"):
        planned(n_columns=2)([{"secret": 1}], noise_source(0))


@pytest.mark.parametrize("threshold", [1.0, 0.5, 3.001, math.nan])
def test_thresholds_are_above_one_and_on_the_lattice(threshold):
    law = NoiseLaw.of("gaussian", GaussianDP(1.0))
    with pytest.raises(ValueError, match="threshold must be above 1"):
        frequent_names({"a": 3}, law=law, lattice=Lattice(2.0**-7, 1.0), threshold=threshold)
