"""Standard errors, intervals and p-values of private linear models."""

import pickle
import re
import warnings

import jsonschema
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit
from scipy.stats import binom
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks
from support.configurations import failing_checks
from support.releases import transcript

from skdp import DPLinearRegression, DPLogisticRegression, DPPipeline, DPPoissonRegressor
from skdp.audit import replay
from skdp.inspection import coefficient_summary, privacy_report, report_schema
from skdp.preprocessing import make_private_preprocessor, make_public_preprocessor
from skdp.privacy import BudgetLedger

ADJACENCIES = pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
SLOPES, STEEP = np.array([0.5, -0.3, 0.0]), np.array([3.0, -2.0, 0.0])


def numbers(n=5000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-0.55, 0.55, size=(n, 3))
    return X, 0.1 + X @ SLOPES + 0.2 * rng.uniform(-1.0, 1.0, n)


def classes(n=5000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-0.55, 0.55, size=(n, 3))
    return X, (rng.random(n) < expit(0.3 + X @ STEEP)).astype(int)


RATES = np.array([1.0, -0.7, 0.0])


def counted(n=5000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-0.55, 0.55, size=(n, 3))
    return X, rng.poisson(np.exp(0.7 + X @ RATES)).astype(float)


def poisson(epsilon=5.0, **options):
    return DPPoissonRegressor(epsilon, 1e-6, y_max=40.0, inference=True, **options)


def linear(epsilon=1.0, **options):
    return DPLinearRegression(epsilon, y_bounds=(-1.0, 1.0), **options)


def logistic(epsilon=1.0, **options):
    return DPLogisticRegression(epsilon, 1e-6, inference=True, **options)


KINDS = {
    "linear": (linear, numbers),
    "logistic": (logistic, classes),
    "poisson": (poisson, counted),
}
EACH = pytest.mark.parametrize("kind", KINDS)


REFUSED = {"check_class_weight_classifiers": "intervals are for the likelihood without weights"}


@parametrize_with_checks(
    [
        DPLinearRegression(),
        DPLogisticRegression(delta=1e-6, inference=True),
        DPPoissonRegressor(delta=1e-6, inference=True),
    ],
    expected_failed_checks=lambda model: (
        failing_checks(model) | (REFUSED if hasattr(model, "class_weight") else {})
    ),
)
@pytest.mark.filterwarnings("ignore")
def test_sklearn_conventions(estimator, check):
    check(estimator)


# Privacy


@EACH
@ADJACENCIES
@pytest.mark.parametrize("of_users", [False, True])
@pytest.mark.parametrize("epsilon", [2.0, 200.0])
@pytest.mark.filterwarnings("ignore")
def test_a_replay_finds_no_more_than_is_claimed(kind, adjacency, of_users, epsilon):
    make, data = KINDS[kind]
    X, y = data(60)
    groups = np.arange(60) // 2 if of_users else None
    report = replay(make(epsilon, adjacency=adjacency), X, y, groups=groups, n=60, random_state=0)
    assert report.passed, str(report)


@EACH
@ADJACENCIES
@pytest.mark.parametrize("n", [300, 20_000])
@pytest.mark.filterwarnings("ignore")
def test_all_releases_together_spend_the_budget_and_no_more(kind, adjacency, n):
    make, data = KINDS[kind]
    model = make(adjacency=adjacency, random_state=0)
    records, _ = transcript(lambda: model.fit(*data(n)))
    spent = sum(record.law.guarantee.mu**2 for record in records)
    assert 1.0 - 1e-9 < spent / model.guarantee_.refined.mu**2 <= 1.0 + 1e-9


@EACH
def test_whose_budget_is_too_small_reads_nothing(kind):
    make, data = KINDS[kind]
    ledger = BudgetLedger(epsilon=0.5, delta=1e-5)
    with pytest.raises(ValueError, match="Nothing was charged"):
        make(1.0, ledger=ledger).fit(*data(200))


# Coverage


@EACH
@pytest.mark.slow
def test_intervals_hold_the_truth_as_often_as_they_say(kind):
    make, data = KINDS[kind]
    truth = {"linear": [*SLOPES, 0.1], "logistic": [*STEEP, 0.3], "poisson": [*RATES, 0.7]}[kind]
    hits, widths, n_draws = np.zeros(4), [], 60
    errors = []
    for seed in range(n_draws):
        model = make(random_state=seed).fit(*data(4000, seed))
        ends = model.conf_int()
        hits += (ends[:, 0] <= truth) & (truth <= ends[:, 1])
        widths.append(model.summary_.standard_errors)
        errors.append(model.summary_.estimates - truth)
    # A false alarm in 10^6: four coefficients of 60 draws, each held with a chance of .93 to .97.
    assert (hits >= binom.ppf(2e-7, n_draws, 0.93)).all()
    # Of 60 draws a standard deviation errs by 9 %.
    ratio = np.sqrt(np.mean(np.square(errors), axis=0)) / np.median(widths, axis=0)
    assert (ratio > 0.5).all() and (ratio < 1.5).all()


@EACH
def test_without_noise_it_is_what_others_say(kind):
    make, data = KINDS[kind]
    X, y = data(3000)
    model = make(1e5).fit(X, y)
    others = dict(linear=LinearRegression(), logistic=LogisticRegression(C=1e9))
    other = (others | dict(poisson=PoissonRegressor(alpha=0.0, tol=1e-8)))[kind].fit(X, y)
    assert_allclose(np.ravel(model.coef_), np.ravel(other.coef_), atol=5e-3)
    assert_allclose(model.intercept_, other.intercept_, atol=5e-3)
    rows = np.column_stack([X, np.ones(len(X))])
    means = other.predict_proba(X)[:, 1] if kind == "logistic" else other.predict(X)
    variances = dict(linear=np.ones(len(X)), logistic=means * (1.0 - means), poisson=means)
    residuals, weights = y - means, variances[kind]
    bread = np.linalg.inv((rows * weights[:, np.newaxis]).T @ rows)
    meat = (rows * residuals[:, np.newaxis] ** 2).T @ rows
    other = bread @ meat @ bread
    assert_allclose(model.covariance_, other, atol=0.05 * np.diag(other).max())
    assert_allclose(model.summary_.noise, 0.0, atol=1e-6)


@EACH
@pytest.mark.filterwarnings("ignore")
def test_rows_of_users_are_not_taken_for_independent(kind):
    """Each user's row twelve times: users tell as much as their rows once."""
    make, data = KINDS[kind]
    X, y = data(2000)
    once = make(1e5).fit(X, y)
    owners = np.repeat(np.arange(2000), 12)
    many = make(1e5).fit(np.repeat(X, 12, axis=0), np.repeat(y, 12), groups=owners)
    largest = np.diag(once.covariance_).max()
    assert_allclose(many.covariance_, once.covariance_, atol=0.05 * largest)
    assert many.summary_.has_converged
    plain = make(1e5).fit(np.repeat(X, 12, axis=0), np.repeat(y, 12))
    assert_allclose(12 * plain.covariance_, once.covariance_, atol=0.1 * largest)


def test_standard_errors_are_for_errors_of_any_law():
    X, _ = numbers(4000)
    rng = np.random.default_rng(1)
    y = X @ SLOPES + np.abs(X[:, 0]) * rng.uniform(-1.0, 1.0, 4000)
    model = linear(1e5).fit(X, y)
    rows = np.column_stack([X, np.ones(4000)])
    bread = np.linalg.inv(rows.T @ rows)
    residuals = y - rows @ (bread @ rows.T @ y)
    robust = np.sqrt(np.diag(bread @ (rows.T @ (rows * residuals[:, np.newaxis] ** 2)) @ bread))
    plain = np.sqrt(np.diag(bread) * residuals.var())
    assert robust[0] > 1.2 * plain[0]
    assert_allclose(model.summary_.standard_errors, robust, rtol=0.02)


# What cannot be told


def test_a_direction_that_noise_hides_has_no_interval():
    X, y = numbers(3000)
    X = np.column_stack([X[:, :2], X[:, 0] + 1e-3 * X[:, 2]]) / 1.5
    hidden = [linear(random_state=i).fit(X, y).summary_.cannot_tell() for i in range(20)]
    assert np.mean(hidden, axis=0)[[0, 2]].min() > 0.6
    assert np.mean(hidden, axis=0)[1] < 0.5
    model = linear(random_state=0).fit(X, y)
    told = model.summary_.cannot_tell()
    assert_allclose(np.isnan(model.conf_int()).all(axis=1), told)
    assert_allclose(np.isnan(model.summary_.p_values), told)
    if told.any():
        assert "cannot tell" in str(model.summary_)


def test_steps_that_did_not_converge_have_no_interval():
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.5, 0.5, size=(20_000, 3))
    y = (X[:, 0] > 0.0).astype(int)
    with pytest.warns(ConvergenceWarning, match="did not converge"):
        model = logistic(3.0, random_state=0).fit(X, y)
    assert np.isnan(model.conf_int()).all()
    assert "did not converge" in str(model.summary_)


def test_counts_beyond_the_largest_are_told():
    X, y = counted(20_000)
    with pytest.warns(UserWarning, match="The fraction of targets outside"):
        DPPoissonRegressor(5.0, 1e-6, y_max=3.0, inference=True, random_state=0).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        DPPoissonRegressor(5.0, 1e-6, y_max=40.0, inference=True, random_state=0).fit(X, y)


def test_what_was_clipped_is_told():
    X, y = numbers()
    with pytest.warns(UserWarning, match="The fraction of targets outside") as caught:
        model = DPLinearRegression(y_bounds=(-0.3, 0.3), random_state=0).fit(X, y)
    assert "for the clipped data" in str(model.summary_)
    share = np.mean(np.abs(y) >= 0.3)
    told = float(re.search(r"([\d.]+)%", str(caught[0].message))[1])
    assert abs(told - 100 * share) < 10
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        linear(random_state=0).fit(X, y)


# The table


@EACH
def test_the_table_is_made_of_the_model(kind):
    make, data = KINDS[kind]
    X, y = data()
    frame = pd.DataFrame(X, columns=["age", "dose", "site"])
    model = make(random_state=0).fit(frame, y)
    table = model.summary_.to_frame()
    assert list(table.index) == ["age", "dose", "site", "intercept"]
    assert_allclose(table["estimate"].iloc[:3], np.ravel(model.coef_))
    assert_allclose(table["estimate"].iloc[3], model.intercept_)
    both = np.hypot(table["of sampling"], table["of noise"])
    assert_allclose(table["standard error"], both)
    assert_allclose(table[["95 % from", "95 % to"]], model.conf_int())
    assert_allclose(table["standard error"] ** 2, np.diag(model.covariance_))
    assert table["p"]["age"] < 1e-3 < table["p"]["site"]
    narrow, wide = model.conf_int(0.5), model.conf_int(0.99)
    assert (np.diff(narrow) < np.diff(wide)).all()
    assert "age" in model.summary_._repr_html_() and "intercept" in str(model.summary_)
    again = pickle.loads(pickle.dumps(model))
    assert_allclose(again.conf_int(), model.conf_int())


def test_the_table_says_whose_odds_it_is_about():
    X, y = classes()
    model = logistic(random_state=0).fit(X, np.where(y, "ill", "well"))
    assert "Coefficients are for the log-odds of 'well'." in str(model.summary_)


def test_odds_ratios_are_exponentials():
    X, y = classes()
    model = logistic(random_state=0).fit(pd.DataFrame(X, columns=list("abc")), y)
    ratios = model.odds_ratios(0.9)
    assert list(ratios.index) == ["a", "b", "c"]
    assert_allclose(ratios["ratio"], np.exp(model.coef_[0]))
    assert_allclose(ratios[["90 % from", "90 % to"]], np.exp(model.conf_int(0.9)[:3]))


@EACH
def test_units_of_rows_and_targets_change_nothing_but_units(kind):
    make, data = KINDS[kind]
    X, y = data()
    here = make(random_state=0).fit(X, y)
    options = dict(x_norm=1024.0, random_state=0)
    y_far, unit = y, 1.0
    if kind == "linear":
        options["y_bounds"], y_far, unit = (4.0, 20.0), 12.0 + 8.0 * y, 8.0
        there = DPLinearRegression(1.0, **options).fit(1024.0 * X, y_far)
    else:
        there = make(**options).fit(1024.0 * X, y_far)
    scale = np.array([unit / 1024.0] * 3 + [unit])
    assert_allclose(there.summary_.standard_errors, here.summary_.standard_errors * scale)
    assert_allclose(there.summary_.estimates[:3], here.summary_.estimates[:3] * scale[:3])


def test_linear_combinations_have_intervals():
    X, y = numbers()
    model = linear(random_state=0).fit(X, y)
    both = model.summary_.combined([[1.0, 1.0, 0.0, 0.0]], ["sum"])
    assert both.estimates[0] == pytest.approx(model.coef_[:2].sum())
    assert both.covariance[0, 0] == pytest.approx(model.covariance_[:2, :2].sum())
    assert both.conf_int().shape == (1, 2)


# Pipelines


def people(n=20_000):
    rng = np.random.default_rng(0)
    ages, sites = rng.uniform(20.0, 80.0, n), rng.choice(["north", "south", "west"], n)
    frame = pd.DataFrame({"age": ages, "site": sites})
    return frame, 100.0 + 0.5 * ages + 4.0 * (sites == "south") + rng.normal(0.0, 5.0, n)


def test_a_pipeline_is_told_in_units_of_its_columns():
    frame, y = people()
    prepare = make_public_preprocessor(
        {"age": (20.0, 80.0)}, {"site": ["south", "west"]}, norm=None
    )
    model = DPLinearRegression(3.0, y_bounds=(80.0, 160.0), x_norm=2.0, random_state=0)
    model = make_pipeline(prepare, model).fit(frame, y)
    summary = coefficient_summary(model, references={"site": "north"})
    assert summary.names == ("age", "site = south", "site = west", "intercept")
    told = "Categories are compared to site = north (a category without an indicator)."
    assert told in summary.notes
    other = coefficient_summary(model)
    assert other.names == ("age", "site = west", "intercept")
    assert other.estimates[1] == pytest.approx(summary.estimates[2] - summary.estimates[1])
    for wrong in ({"age": 20.0}, {"town": "north"}):
        with pytest.raises(ValueError, match="references must name categorical columns"):
            coefficient_summary(model, references=wrong)
    errors = (summary.estimates - [0.5, 4.0, 0.0, 100.0]) / summary.standard_errors
    assert np.abs(errors).max() < 5.0  # 1 in 400,000 for each
    assert summary.standard_errors[0] < 0.02
    assert_allclose(summary.estimates[3] + 50.0 * summary.estimates[0], 125.0, atol=2.0)
    assert not any("learned" in note for note in summary.notes)


def test_intervals_of_learned_bounds_say_so_and_stand_in_the_report():
    frame, y = people()
    steps = [
        ("prepare", make_private_preprocessor(n_splines=None)),
        ("model", DPLinearRegression(y_bounds=(80.0, 160.0))),
    ]
    model = DPPipeline(steps, epsilon=3.0, delta=1e-6, random_state=0).fit(frame, y)
    summary = coefficient_summary(model)
    assert "Bounds or categories were learned: intervals are conditional on them." in summary.notes
    report = privacy_report(model)
    jsonschema.validate(report.data, report_schema())
    told = report.data["coefficients"]["rows"]
    assert [one["name"] for one in told] == list(summary.names)
    assert told[0]["estimate"] == summary.estimates[0]
    assert "Confidence intervals of the coefficients" in report.to_text()


def test_splines_are_told_from_knot_to_knot():
    frame, y = people()
    prepare = make_public_preprocessor({"age": (20.0, 80.0)}, n_splines=3, norm=None)
    model = DPLinearRegression(10.0, y_bounds=(80.0, 160.0), x_norm=2.0, random_state=0)
    model = make_pipeline(prepare, model).fit(frame[["age"]], y)
    summary = coefficient_summary(model)
    assert all(name.startswith("age ") for name in summary.names[:-1])
    told = ~summary.cannot_tell()[:-1]
    assert told.any() and (summary.estimates[:-1][told] > 0.0).all()


def test_a_curve_without_knots_is_told_in_parts_and_not_as_a_line():
    ages = np.random.default_rng(0).uniform(20.0, 80.0, 20_000)
    frame, y = pd.DataFrame({"age": ages}), 3.0 * ((ages - 50.0) / 10.0) ** 2
    steps = [("prepare", make_private_preprocessor()), ("model", DPLinearRegression())]
    model = DPPipeline(steps, epsilon=20.0, delta=1e-6, random_state=0)
    model = model.set_params(model__y_bounds=(0.0, 30.0)).fit(frame, y)
    summary = coefficient_summary(model)
    assert len(summary.names) == 5
    down, up = summary.estimates[0], summary.estimates[3]
    assert down < -10.0 and up > 10.0


def test_what_stands_in_place_of_a_column_is_in_the_intercept():
    frame, y = people()
    prepare = make_public_preprocessor({"age": (20.0, 80.0)}, norm=None, constant=0.5)
    model = DPLinearRegression(
        5.0, y_bounds=(80.0, 160.0), x_norm=1.2, fit_intercept=False, random_state=0
    )
    summary = coefficient_summary(make_pipeline(prepare, model).fit(frame, y))
    assert summary.names == ("age",)
    assert not summary.has_intercept


def test_targets_beyond_the_nearer_bound_are_told_without_an_intercept():
    X = np.random.default_rng(0).uniform(-1.0, 1.0, (6000, 1))
    with pytest.warns(UserWarning, match="The fraction of targets outside"):
        DPLinearRegression(5.0, y_bounds=(0.0, 10.0), fit_intercept=False, random_state=0).fit(
            X, 2.0 * X[:, 0]
        )


def test_a_feature_may_have_the_name_of_the_intercept():
    X, y = classes()
    frame = pd.DataFrame(X, columns=["a", "b", "intercept"])
    model = logistic(random_state=0, fit_intercept=False).fit(frame, y)
    assert list(model.odds_ratios().index) == ["a", "b", "intercept"]


def test_a_model_without_intervals_has_no_summary():
    X, y = classes(300)
    with pytest.raises(ValueError, match="must end with a model that has summary_"):
        coefficient_summary(DPLogisticRegression().fit(X, y))


# Parameters


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (dict(delta=0.0), "delta must be positive with inference=True"),
        (dict(C=1.0), "C must be 'auto' with inference=True"),
        (dict(mechanism="objective"), "mechanism must be 'auto' or 'gradient' with"),
        (dict(class_weight={1: 2.0}), "class_weight must be None with inference=True"),
        (dict(inference=1), "inference must be True or False"),
    ],
)
def test_parameters_that_do_not_go_together_are_refused(changes, message):
    ledger = BudgetLedger(epsilon=10.0, delta=1e-4)
    with pytest.raises(ValueError, match=message):
        logistic(ledger=ledger).set_params(**changes).fit(*classes(100))
    assert not ledger.history()


def test_three_classes_and_pure_budgets_are_refused():
    X, y = classes(100)
    with pytest.raises(ValueError, match="inference must be False for more than two classes"):
        logistic().fit(X, np.arange(100) % 3)
    with pytest.raises(ValueError, match="delta must be positive"):
        linear(delta=0.0).fit(X, y)


@pytest.mark.filterwarnings("ignore")
def test_a_fit_without_inference_has_no_intervals():
    X, y = classes(500)
    model = logistic().fit(X, y)
    model.set_params(inference=False).fit(X, y)
    assert not hasattr(model, "summary_") and not hasattr(model, "covariance_")
    for ask in (model.conf_int, model.odds_ratios):
        with pytest.raises(AttributeError, match="fitted with inference=True"):
            ask()
    assert not hasattr(clone(logistic()), "summary_")


def test_a_level_is_between_0_and_1():
    model = linear(random_state=0).fit(*numbers(500))
    for level in (0.0, 1.0, "95"):
        with pytest.raises(ValueError, match="level must be"):
            model.conf_int(level)
