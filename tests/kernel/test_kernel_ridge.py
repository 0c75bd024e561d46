"""DPKernelRidge as its users and its attackers see it."""

import math
import os
import pickle

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy import sparse, stats
from sklearn.base import clone
from sklearn.kernel_ridge import KernelRidge
from sklearn.utils.estimator_checks import parametrize_with_checks
from support.configurations import failing_checks
from support.memory import arrays_in
from support.problems import surface as problem
from support.statistics import name

from skdp.exceptions import BudgetExceededError
from skdp.kernel import DPKernelRidge
from skdp.kernel.papers import epsilon_rule
from skdp.privacy import BudgetLedger, GaussianDP, gaussian_delta
from skdp.rows import kernel_matrix


def scalar_noise_variant(X, y, epsilon, seed):
    """The function plus one number, as in Lemma 1 of Nie and Wang: not private."""
    exact = KernelRidge(alpha=5.0, kernel="rbf", gamma=1.0).fit(X, y)
    noise = np.random.default_rng(seed).laplace(scale=(2 + math.sqrt(len(y) / 20)) / 5.0 / epsilon)
    return lambda Z: exact.predict(Z) + noise


ESTIMATORS = [
    DPKernelRidge(),
    DPKernelRidge(
        delta=1e-5, n_components=50, mechanism="sufficient_statistics", y_bounds=(-1.0, 1.0)
    ),
    DPKernelRidge(mechanism="output", loss="squared", kernel="matern", y_bounds=(-1.0, 1.0)),
    DPKernelRidge(delta=1e-5, kernel="linear", adjacency="add-remove", y_bounds=(-1.0, 1.0)),
    DPKernelRidge(
        release="query", n_queries=10_000, kernel="laplacian", delta=1e-5, y_bounds=(-1.0, 1.0)
    ),
]

# One of each release and mechanism, for both relations.
RELEASES = [
    dict(mechanism="gradient", delta=1e-5, n_components=20),
    dict(mechanism="gradient", delta=1e-5, n_components=20, adjacency="add-remove"),
    dict(mechanism="sufficient_statistics", delta=1e-5, n_components=20),
    dict(mechanism="output", n_components=20),
    dict(mechanism="output", n_components=20, loss="squared"),
    dict(mechanism="output", n_components=20, adjacency="add-remove"),
    dict(release="query", n_queries=50),
    dict(release="query", n_queries=50, loss="squared"),
    dict(release="query", n_queries=50, delta=1e-5, adjacency="add-remove"),
]


@pytest.mark.filterwarnings("ignore:y_bounds is None")
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=failing_checks)
@pytest.mark.filterwarnings("ignore:max_sample_weight is not given")
def test_sklearn_conventions(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    "options, least",
    [
        (dict(delta=1e-6), 0.8),
        (dict(delta=1e-6, kernel="laplacian"), 0.8),
        (dict(delta=1e-6, mechanism="sufficient_statistics", n_components=100), 0.5),
        (dict(epsilon=10.0), 0.5),
        (dict(epsilon=10.0, release="query", n_queries=1000, delta=1e-6), 0.4),
    ],
    ids=lambda value: name(value) if isinstance(value, dict) else "",
)
def test_a_private_fit_learns(options, least):
    X, y = problem(5000)
    model = DPKernelRidge(random_state=0, **options, y_bounds=(-1.0, 1.0)).fit(X[:4000], y[:4000])
    assert model.score(X[4000:], y[4000:]) > least


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "matern", "linear"])
def test_without_privacy_queries_are_kernel_ridge(kernel):
    X, y = problem(200)
    options = dict(release="query", n_queries=50, alpha=200.0, x_norm=2.0, loss="squared")
    model = DPKernelRidge(1e9, kernel=kernel, gamma=2.0, **options, y_bounds=(-1.0, 1.0)).fit(X, y)
    K = kernel_matrix(kernel, X, gamma=2.0)
    exact = KernelRidge(alpha=200.0, kernel="precomputed").fit(K, y)
    # The lattice has steps of about a hundredth of the sensitivity, which is 0.012
    # or, with rows of norm 2 for the linear kernel, 0.05.
    assert_allclose(model.predict(X[:50]), exact.predict(K[:50]), atol=4e-4)


@pytest.mark.parametrize("options", RELEASES, ids=name)
def test_targets_are_clipped_and_predictions_stay_within_the_bounds(options):
    X, y = problem(300)
    wild = y.copy()
    wild[:10] = [1e300, -1e300, 7, -7, 1e9, -1e9, 2, -2, 3, -3]
    models = [
        DPKernelRidge(random_state=0, **options, y_bounds=(-1.0, 1.0)).fit(X, target)
        for target in (wild, np.clip(wild, -1, 1))
    ]
    predictions = [model.predict(50 * X[:20]) for model in models]
    assert_allclose(*predictions, rtol=1e-9)
    assert np.abs(predictions).max() <= 1.0


@pytest.mark.parametrize("options", RELEASES, ids=name)
def test_layouts_of_the_input_agree(options):
    X, y = problem(300)
    frame = pd.DataFrame(X, columns=["a", "b"])
    fits = [
        DPKernelRidge(gamma=1.0, random_state=0, **options, y_bounds=(-1.0, 1.0))
        .fit(rows, y)
        .predict(rows[:9])
        for rows in (X, np.asfortranarray(X), frame, sparse.csr_array(X), sparse.csc_matrix(X))
        if not sparse.issparse(rows) or rows.format == "csr"
    ]
    for fit in fits[1:]:
        assert_allclose(fit, fits[0], atol=1e-6)
    columns = sparse.csc_array(X)
    model = DPKernelRidge(gamma=1.0, random_state=0, **options, y_bounds=(-1.0, 1.0))
    model = model.fit(columns, y)
    assert_allclose(model.predict(X[:9]), fits[0], atol=1e-6)


# Privacy


@pytest.mark.parametrize("options", RELEASES, ids=name)
def test_the_guarantee_is_what_was_asked_for(options):
    X, y = problem(50)
    guarantee = DPKernelRidge(0.7, **options, y_bounds=(-1.0, 1.0)).fit(X, y).guarantee_
    assert (guarantee.epsilon, guarantee.delta) == (0.7, options.get("delta", 0.0))
    assert guarantee.adjacency == options.get("adjacency", "replace-one")
    assert guarantee.source and guarantee.mechanism
    if options.get("delta"):
        assert isinstance(guarantee.refined, GaussianDP)
        assert_allclose(gaussian_delta(0.7, guarantee.refined.mu), options["delta"], rtol=1e-6)


@pytest.mark.parametrize("options", RELEASES, ids=name)
def test_noise_is_new_in_each_fit_and_clone(options):
    X, y = problem(50)
    model = DPKernelRidge(3.0, **{**options, "alpha": 500.0}, y_bounds=(-1.0, 1.0))
    # One number may well be the same twice, on the lattice that it is rounded to.
    values = [tuple(m.fit(X, y).predict(X[:5])) for m in (model, model, clone(model))]
    assert len(set(values)) == 3


@pytest.mark.parametrize("options", RELEASES[:6], ids=name)
def test_a_released_function_keeps_nothing_of_the_data(options):
    n_samples = 97
    X, y = problem(n_samples)
    model = DPKernelRidge(**options, y_bounds=(-1.0, 1.0)).fit(X, y)
    found = [array for _, array in arrays_in(model)]
    assert len(found) >= 2
    assert all(n_samples not in array.shape for array in found)


def test_queries_end_and_repeated_rows_are_free():
    X, y = problem(30)
    model = DPKernelRidge(release="query", n_queries=5, y_bounds=(-1.0, 1.0)).fit(X, y)
    answers = model.predict(X[:3])
    copy = pickle.loads(pickle.dumps(model))
    assert_allclose(copy.predict(X[[2, 0]]), answers[[2, 0]], rtol=0)
    copy.predict(X[3:5])
    with pytest.raises(BudgetExceededError, match="n_queries=5"):
        model.predict(X[5:6])
    assert_allclose(model.predict(X[:3]), answers, rtol=0)
    assert np.isfinite(clone(model).fit(X, y).predict(X[5:10])).all()


# The rule for epsilon


@pytest.mark.parametrize("r", [0.25, 0.5, 2.0])
def test_epsilon_auto_reads_the_number_of_rows_only(r):
    guarantees = []
    for seed in range(2):
        X, y = problem(400, seed)
        for release in (dict(), dict(release="query", n_queries=2)):
            model = DPKernelRidge(
                "auto", source_smoothness=r, **release, y_bounds=(-1.0, 1.0)
            ).fit(X, y)
            guarantees.append(model.guarantee_.epsilon)
    assert_allclose(guarantees, epsilon_rule(400, r), rtol=0)
    assert_allclose(guarantees[0], 400 ** -min(1 / 3, 4 * r / (3 + 6 * r)))


# Bad input


@pytest.mark.parametrize(
    "options, message",
    [
        (dict(epsilon=0), "epsilon must be a positive"),
        (dict(delta=1.0), "delta must be at least 0"),
        (dict(gamma=0.0), "gamma must be a positive"),
        (dict(gamma="scale"), "gamma must be 'auto' or a positive number, chosen without"),
        (dict(kernel="poly"), "kernel must be one of"),
        (dict(kernel="matern", nu=1.0), "nu must be 0.5, 1.5 or 2.5"),
        (dict(y_bounds=(1, -1)), "y_bounds must be .* low first"),
        (dict(y_bounds=(0, math.inf)), r"y_bounds\[1\] must be a finite"),
        (dict(y_bounds="wide"), "y_bounds must be two numbers"),
        (dict(alpha="scale"), "alpha must be 'auto' or a positive"),
        (dict(alpha=1e-9), "alpha must be between"),
        (dict(x_norm=0.0), "x_norm must be a positive"),
        (dict(residual_cap=1e-9), "residual_cap must be between 1e-6 and 1e6"),
        (dict(epsilon=1e-14), "epsilon must be larger"),
        # What all steps have together would fit, and the share of the last one not.
        (
            dict(mechanism="gradient", epsilon=2e-11, delta=1e-30, n_components=20),
            "epsilon must be larger",
        ),
        (dict(release="query", n_queries=10**15), "epsilon must be larger: .* smaller n_queries"),
        (dict(n_components=0), "n_components must be 'auto' or a positive int"),
        (dict(n_components=10**7), "n_components must be smaller: .* GiB"),
        (
            dict(mechanism="sufficient_statistics"),
            "delta must be positive .* use mechanism='output'",
        ),
        (dict(epsilon="auto", adjacency="add-remove"), "epsilon must be a number under"),
        (dict(loss="squared", adjacency="add-remove"), "loss must not be 'squared' .* unbounded"),
        (dict(loss="squared", mechanism="gradient", delta=1e-5), "loss must be 'auto' or 'huber'"),
        (
            dict(loss="huber", mechanism="sufficient_statistics", delta=1e-5),
            "loss must be 'auto' or 'squared'",
        ),
        (dict(release="query"), "n_queries must be given .* release='features'"),
        (dict(release="query", n_queries=5, mechanism="output"), "mechanism must be 'auto'"),
        (dict(random_state=-1), "random_state must be None"),
        (dict(orthogonal="no"), "orthogonal must be True or False"),
        (dict(ledger="file"), "ledger must be None, a BudgetLedger"),
        (dict(source_smoothness=0.0), "source_smoothness must be a positive"),
        (dict(sensitivity="both"), "sensitivity must be one of"),
        (dict(sensitivity="paper"), "sensitivity must be 'tight' .* protects one prediction"),
        (
            dict(sensitivity="paper", release="query", n_queries=3, adjacency="add-remove"),
            "sensitivity must be 'tight' under adjacency='add-remove': .* is unbounded",
        ),
        (
            dict(sensitivity="paper", release="query", n_queries=3, loss="huber"),
            "sensitivity must be 'tight' with loss='huber'",
        ),
        (
            dict(sensitivity="paper", release="query", n_queries=3, alpha=21.0),
            "alpha must be at most the number of rows, 20, with sensitivity='paper'",
        ),
        (
            dict(
                sensitivity="paper",
                release="query",
                n_queries=3,
                alpha=81.0,
                kernel="linear",
                x_norm=2.0,
            ),
            r"alpha must be at most the number of rows, 20, times x_norm\^2 with .* got 81",
        ),
    ],
    ids=lambda value: str(value)[:50],
)
def test_bad_parameters_are_named_before_the_ledger_is_charged(options, message):
    X, y = problem(20)
    ledger = BudgetLedger(epsilon=10.0, delta=0.1)
    with pytest.raises(ValueError, match=message):
        DPKernelRidge(**{"ledger": ledger, "y_bounds": (-1.0, 1.0), **options}).fit(X, y)
    assert not ledger.history()


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_a_huge_budget_is_next_to_no_privacy(delta, adjacency):
    X, y = problem(1000)
    for epsilon in (1e4, 1e8):
        model = DPKernelRidge(epsilon, delta, adjacency=adjacency, y_bounds=(-1.0, 1.0))
        assert model.set_params(random_state=0).fit(X, y).score(X, y) > 0.95


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_a_model_for_queries_does_not_follow_the_array_it_was_fitted_to(kernel):
    X, y = problem(50)
    twins = [
        DPKernelRidge(
            kernel=kernel, release="query", n_queries=20, random_state=0, y_bounds=(-1.0, 1.0)
        )
        for _ in range(2)
    ]
    for model, rows in zip(twins, (X, X.copy()), strict=True):
        model.fit(rows, y)
    points = X[:5].copy()
    X[:] = 7.0
    assert_allclose(twins[0].predict(points), twins[1].predict(points), rtol=0)


def test_rows_of_the_linear_kernel_are_clipped_to_the_ball():
    X, y = problem(200)
    options = dict(kernel="linear", mechanism="output", alpha=20.0, x_norm=0.5, random_state=0)
    inside = 0.5 * X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 0.5)
    fits = [
        DPKernelRidge(1e6, **options, y_bounds=(-1.0, 1.0)).fit(rows, y) for rows in (X, inside)
    ]
    assert_allclose(fits[0].coef_, fits[1].coef_, rtol=1e-9)
    assert_allclose(fits[0].predict(X), fits[0].predict(inside), rtol=1e-9)


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_rows_that_do_not_fit_into_memory_are_refused_before_the_charge(monkeypatch, adjacency):
    X, y = problem(2000)
    monkeypatch.setattr(os, "sysconf", lambda name: 1000)
    ledger = BudgetLedger(epsilon=10.0)
    model = DPKernelRidge(
        release="query", n_queries=5, adjacency=adjacency, ledger=ledger, y_bounds=(-1.0, 1.0)
    )
    with pytest.raises(ValueError, match="X must have fewer rows") as caught:
        model.fit(X, y)
    assert not ledger.history()
    # The number of rows is private where records come and go.
    assert ("2000" in str(caught.value)) == (adjacency == "replace-one")


@pytest.mark.parametrize("epsilon, same", [(1.0, "huber"), ("auto", "squared")])
def test_queries_use_hubers_loss_unless_the_rule_of_the_paper_is_asked_for(epsilon, same):
    X, y = problem(500)
    options = dict(release="query", n_queries=5, alpha=2000.0, random_state=0)  # little noise
    fits = [
        DPKernelRidge(epsilon, loss=loss, **options, y_bounds=(-1.0, 1.0)).fit(X, y).predict(X[:5])
        for loss in ("auto", same, "huber" if same == "squared" else "squared")
    ]
    assert_allclose(fits[0], fits[1], rtol=0)
    assert np.abs(fits[0] - fits[2]).max() > 1e-6


def test_the_sensitivity_of_the_paper_has_its_noise_and_the_squared_loss():
    X, y = problem(60)
    options = dict(release="query", n_queries=2, alpha=30.0, random_state=0)
    scales = {}
    for sensitivity in ("tight", "paper"):
        chosen = dict(loss="squared", sensitivity=sensitivity, y_bounds=(-1.0, 1.0))
        model = DPKernelRidge(2.0, **chosen, **options).fit(X, y)
        scales[sensitivity] = model._predictor._change["sensitivity"]
    # 4 / sqrt(lam) and 2 + 1 / (2 sqrt(lam)) over the penalty, with lam = 1/2.
    assert_allclose(scales["paper"], 4.0 * math.sqrt(2.0) / 30.0, rtol=1e-6)
    assert_allclose(scales["tight"], (2.0 + math.sqrt(0.5)) / 30.0, rtol=1e-6)
    options |= dict(sensitivity="paper", y_bounds=(-1.0, 1.0))
    auto, squared = (
        DPKernelRidge(1e6, loss=loss, **options).fit(X, y).predict(X[:2])
        for loss in ("auto", "squared")
    )
    assert_allclose(auto, squared, rtol=0)


def test_more_rows_than_queries_can_be_certified_for_are_refused_before_the_charge():
    X = np.random.default_rng(0).uniform(-0.5, 0.5, size=(41, 3))
    ledger = BudgetLedger(epsilon=2.0)
    model = DPKernelRidge(
        release="query",
        n_queries=5,
        alpha=1e-4,
        adjacency="add-remove",
        ledger=ledger,
        y_bounds=(-1.0, 1.0),
    )
    with pytest.raises(ValueError, match="X must have at most 20 rows") as error:
        model.fit(X, X[:, 0])
    assert "41" not in str(error.value)  # private
    assert not ledger.history()
    model.fit(X[:20], X[:20, 0])
    assert len(ledger.history()) == 1


@pytest.mark.slow
@pytest.mark.parametrize("options", [*RELEASES, dict(variant="scalar")], ids=name)
def test_the_difference_of_two_predictions_gives_nothing_away(options, repetitions):
    """Guess which neighbour was fitted, knowing the exact difference for both."""
    X, y = problem(40)
    other = y.copy()
    other[0] = -np.sign(y[0])
    X[0] = 0.5
    points = np.array([[0.5, 0.5], [-0.5, -0.5]])
    exact = [
        float(
            np.diff(KernelRidge(alpha=5.0, kernel="rbf", gamma=1.0).fit(X, t).predict(points))[0]
        )
        for t in (y, other)
    ]
    n_rounds, right = repetitions(1500, 150), 0
    for seed in range(n_rounds):
        world = seed % 2
        target = (y, other)[world]
        if "variant" in options:
            predict = scalar_noise_variant(X, target, 1.0, seed)
        else:
            predict = (
                DPKernelRidge(1.0, random_state=seed, **options, y_bounds=(-1.0, 1.0))
                .fit(X, target)
                .predict
            )
        difference = float(np.diff(predict(points))[0])
        guess = int(abs(difference - exact[1]) < abs(difference - exact[0]))
        right += guess == world
    if "variant" in options:
        assert right == n_rounds
    else:
        # No test can be right more often than e/(1+e) of the time; delta adds nothing to see.
        most = stats.binom.isf(1e-7, n_rounds, math.e / (1 + math.e) + 1e-5)
        assert right <= most
