"""What the releases of functions and answers have in common: charges, records, plans."""

import math
from dataclasses import FrozenInstanceError, fields

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from support.insides import noise_source

from skdp.audit import recording
from skdp.kernel import DPKernelRidge
from skdp.privacy import ApproxDP, compose
from skdp.releases import (
    ExactQueries,
    FeatureDescent,
    FeatureOutput,
    FeatureStatistics,
    QueryAnswers,
    QueryPlan,
    RidgeProblem,
    _exact_queries,
)
from skdp.solvers.feature_rows import FeatureBlocks, NormalisedRows
from skdp.solvers.kernel_ridge import KernelExpansion

KINDS = {
    "descent": dict(mechanism="gradient", delta=1e-5),
    "statistics": dict(mechanism="sufficient_statistics", delta=1e-5),
    "output": dict(mechanism="output", delta=1e-5),
    "pure output": dict(mechanism="output"),
    "objective": dict(),
    "queries": dict(release="query", n_queries=40, delta=1e-5),
    "pure queries": dict(release="query", n_queries=40),
}
EVERY = pytest.mark.parametrize("kind", KINDS)


def rows(n=200, seed=0):
    X = np.random.default_rng(seed).uniform(-1.0, 1.0, (n, 2))
    return X, np.sin(3.0 * X[:, 0])


def outcome(kind, X, y, **options):
    """What a fit gives away, all of its answers included."""
    model = DPKernelRidge(
        1.5, n_components=20, **KINDS[kind], **options, y_bounds=(-1.0, 1.0)
    ).fit(X, y)
    return model, model.predict(rows(40)[0])


@EVERY
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_what_is_charged_covers_all_releases_and_wastes_nothing(kind, kernel, adjacency):
    with recording() as records:
        model, _ = outcome(kind, *rows(), kernel=kernel, adjacency=adjacency)
    together, charged = compose([record.law.guarantee for record in records]), model.guarantee_
    delta = KINDS[kind].get("delta", 0.0)
    assert {record.law.guarantee.adjacency for record in records} == {adjacency}
    assert (charged.epsilon, charged.delta, charged.adjacency) == (1.5, delta, adjacency)
    epsilons = np.array([0.1, 0.7, 1.5, 3.0])
    assert (together.delta_at(epsilons) <= charged.delta_at(epsilons) * (1 + 1e-9) + 1e-15).all()
    if delta and not {record.law.kind for record in records} & {"k_norm", "laplace"}:
        assert 0.9 * delta < together.delta_at(1.5) <= delta * (1 + 1e-9)
    else:  # pure noise may be the quieter one
        assert_allclose(together.epsilon_at(0.0), 1.5, rtol=1e-9)


def worst_releases(adjacency, **options):
    """What a fit releases of a row whose target goes from one bound to the other, or vanishes."""
    X, y = np.array([[1.0], [0.0]]), np.array([1.0, 0.0])
    worlds = [(X, y), (X, -y) if adjacency == "replace-one" else (X[1:], y[1:])]
    with recording() as records:
        for world in worlds:
            model = DPKernelRidge(
                1.0, kernel="linear", alpha=20.0, **options, y_bounds=(-1.0, 1.0)
            )
            model.set_params(adjacency=adjacency).fit(*world).predict(X[:1])
    return list(records)


# Pure output noise comes after a release of the targets, and is replayed in the audit.
@pytest.mark.parametrize("kind", ["output", "queries", "pure queries"])
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_worst_targets_move_what_is_released_as_far_as_declared(kind, adjacency):
    here, there = worst_releases(adjacency, **KINDS[kind] | dict(n_queries=1))
    assert here.sensitivity == there.sensitivity
    moved = np.linalg.norm(here.asked - there.asked)
    # Answers are rounded to a lattice, which is part of what is declared of them.
    assert 0.97 * here.sensitivity < moved <= here.sensitivity * (1 + 1e-9)


def test_the_error_of_exact_answers_is_part_of_their_sensitivity(monkeypatch):
    options = dict(release="query", n_queries=1)
    exact, _ = worst_releases("replace-one", **options)
    monkeypatch.setattr(_exact_queries, "value_error", lambda **numbers: 0.05)
    assert worst_releases("replace-one", **options)[0].sensitivity > exact.sensitivity + 0.099


def test_a_plan_is_a_value_and_does_not_change():
    target = ApproxDP(1.0, 1e-5)
    sizes = dict(n_samples=100, squared=False, cap=0.25)
    plans = [
        lambda cap: FeatureDescent.plan(target, clip_norm=cap),
        lambda cap: FeatureStatistics.plan(target, n_components=10, penalty=cap),
        lambda cap: FeatureOutput.plan(target, **sizes | dict(n_components=10, cap=cap)),
        lambda cap: ExactQueries.plan(target, **sizes | dict(n_features=2, n_queries=3, cap=cap)),
        lambda cap: QueryPlan.plan(target, n_queries=3, bound=cap),
    ]
    for make in plans:
        plan = make(0.25)
        assert plan == make(0.25) != make(0.5)
        for field in fields(plan):
            with pytest.raises(FrozenInstanceError):
                setattr(plan, field.name, None)


@pytest.mark.parametrize("n_samples", [30, 31])
def test_squared_loss_is_for_no_more_rows_than_planned(n_samples):
    X, y = rows(n_samples)
    numbers = dict(n_samples=30, squared=True, cap=0.25, penalty=1.0)
    features = NormalisedRows(2, 1.0)
    output = FeatureOutput.plan(ApproxDP(1.0), n_components=2, **numbers)
    queries = ExactQueries.plan(ApproxDP(1.0), n_features=2, n_queries=3, **numbers)
    calls = [
        lambda: output(FeatureBlocks(X, y, features), noise_source(0)),
        lambda: queries((KernelExpansion(X, "rbf", 1.0, 1.5, 1.0), y), bytes(16)),
    ]
    for call in calls:
        if n_samples == 30:
            assert call() is not None
        else:
            with pytest.raises(ValueError, match="n_samples must be at least the number of rows"):
                call()


def test_more_rows_would_move_the_minimiser_of_squared_loss_further_than_planned():
    # Of many rows a tenth of the penalty long, and a record against all others.
    n = 10_000
    X = np.full((n, 1), math.sqrt(0.1 / n))
    here = np.linalg.solve(X.T @ X + 1.0, X.T @ np.ones(n))
    planned = RidgeProblem.plan(
        squared=True, cap=1.0, n_samples=10, adjacency="replace-one", level=1.0, penalty=1.0
    )
    X[0] = 1.0
    there = np.linalg.solve(X.T @ X + 1.0, X.T @ np.append(-1.0, np.ones(n - 1)))
    assert planned.most_rows == 10
    assert abs(here - there).item() > 4.0 * planned.distance


def test_targets_of_exact_queries_are_clipped_to_what_the_distance_rests_on():
    X, y = rows(30)
    numbers = dict(n_samples=30, n_features=2, n_queries=3, squared=True, cap=0.25, penalty=1.0)
    release = ExactQueries.plan(ApproxDP(1.0), **numbers)

    def answers(targets):
        return release((KernelExpansion(X, "rbf", 1.0, 1.5, 1.0), targets), bytes(16)).answer(
            X[:3]
        )

    far = 9.0 * np.sign(y)
    assert_array_equal(answers(far), answers(np.sign(y)))


def test_answers_stay_those_of_their_own_plan():
    # A second plan for the same rows, whose functions are further apart, has noise of its own.
    X, y = rows(30)
    numbers = dict(n_samples=30, n_features=2, n_queries=3, squared=False, cap=0.25)
    plans = [ExactQueries.plan(ApproxDP(1.0), penalty=p, **numbers) for p in (100.0, 0.1)]
    function = KernelExpansion(X, "rbf", 1.0, 1.5, 1.0)
    with recording() as answers:
        first = plans[0]((function, y), bytes(16))
        first.answer(X[:1])
        again = plans[0]((function, y), bytes(16))
        plans[1]((function, y), bytes(16))
        again.answer(X[:1])
    assert answers[0].asked == answers[1].asked


def test_a_value_that_is_not_finite_is_not_answered():
    plan = QueryPlan.plan(ApproxDP(1.0), n_queries=3)
    options = dict(sensitivity=0.5, error=0.0, secret=bytes(16))
    answers = QueryAnswers(plan, lambda X: np.array([np.nan]), **options)
    with pytest.raises(ValueError, match="value must be finite"):
        answers.answer(np.ones((1, 2)))
    assert answers.remaining == 3
