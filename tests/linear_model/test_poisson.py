"""Private Poisson regression."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.optimize import approx_fprime
from sklearn.linear_model import PoissonRegressor
from sklearn.utils.estimator_checks import parametrize_with_checks
from support.configurations import failing_checks

from skdp import DPPoissonRegressor
from skdp._random._source import noise_source
from skdp.audit import replay
from skdp.inspection import privacy_report, report_schema
from skdp.learner import Rows, Run
from skdp.linear_model._poisson import PoissonLoss, TargetMean
from skdp.privacy import ApproxDP, BudgetLedger, GaussianDP


def counts(n=60, seed=0, scale=1.0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-0.5, 0.5, size=(n, 3))
    return X, rng.poisson(scale * np.exp(1.0 + 1.5 * X[:, 0] - X[:, 1])).astype(float)


@parametrize_with_checks(
    [DPPoissonRegressor(), DPPoissonRegressor(delta=1e-5)], expected_failed_checks=failing_checks
)
@pytest.mark.filterwarnings("ignore")
def test_sklearn_conventions(estimator, check):
    check(estimator)


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("delta", [0.0, 1e-5])
@pytest.mark.parametrize("of_users", [False, True])
def test_a_replay_finds_no_more_than_is_claimed(delta, adjacency, of_users):
    X, y = counts()
    groups = np.arange(60) // 2 if of_users else None
    model = DPPoissonRegressor(2.0, delta, y_max=20.0, adjacency=adjacency)
    report = replay(model, X, y, groups=groups, n=60, random_state=0)
    assert report.passed, str(report)
    mean = [found for found in report.releases if "TargetMean" in found.where]
    assert len(mean) == 1 and mean[0].share > 0.99


@pytest.mark.parametrize("guarantee", [GaussianDP(0.5), ApproxDP(0.5)])
def test_the_mean_costs_its_share_of_squared_noise(guarantee):
    stage, rest = TargetMean.planned(10.0, guarantee, 1000.0)
    name = "mu" if isinstance(guarantee, GaussianDP) else "epsilon"
    assert getattr(stage.guarantee, name) ** 2 == pytest.approx(0.02 * 0.5**2)
    power = 2 if name == "mu" else 1
    parts = getattr(stage.guarantee, name) ** power + getattr(rest, name) ** power
    assert parts == pytest.approx(0.5**power)


def test_targets_are_no_more_than_four_times_their_mean():
    X, y = counts(1000)
    run = Run(Rows(X, np.append(y[1:], 1e3), 1.0), 1000.0)
    stage, _ = TargetMean.planned(2e3, GaussianDP(1e4), 1000.0)
    stage.learn(run, noise_source(0))
    assert run.total[0] == pytest.approx((y[1:].sum() + 1e3) / 1000.0, rel=0.05)
    assert run.rows.codes.max() == 4.0
    assert_allclose(run.rows.codes[0], y[1] / run.total[0])


@pytest.mark.parametrize("scale", [1.0, 1000.0])
def test_with_a_large_budget_it_is_the_regression_of_sklearn(scale):
    X, y = counts(20_000, scale=scale)
    y = np.minimum(y, 4.0 * y.mean())
    model = DPPoissonRegressor(1000.0, 1e-6, y_max=20.0 * scale, x_norm=0.87).fit(X, y)
    known = PoissonRegressor(alpha=0.0, tol=1e-8).fit(X, y)
    assert_allclose(model.coef_, known.coef_, atol=0.03)
    assert model.intercept_ == pytest.approx(known.intercept_, abs=0.02)
    assert model.score(X, y) == pytest.approx(known.score(X, y), abs=0.002)


def test_a_loss_states_how_steep_and_how_curved_it_is():
    loss = PoissonLoss(4.0)
    scores = np.linspace(-30.0, 30.0, 2001)[:, np.newaxis]
    for target in (0.0, 1.0, 4.0):
        targets = np.full(len(scores), target)
        residuals = loss.residuals(scores, targets)
        assert np.abs(residuals).max() <= loss.lipschitz
        curvatures = loss.hessian_weights(scores, targets)
        assert curvatures.max() <= loss.curvature
        assert (curvatures * np.abs(scores[:, 0])).max() <= loss.relative_curvature(1.0)
        each = [loss.total(row[np.newaxis], targets[:1]) for row in scores]
        assert min(each) >= -1e-12
        assert loss.total(np.zeros((1, 1)), targets[:1]) <= loss.total(
            np.zeros((1, 1)), np.array([loss.heaviest])
        )
        slope = approx_fprime([0.3], lambda z, own=targets[:1]: loss.total(np.array([z]), own))
        assert_allclose(slope, loss.residuals(np.array([[0.3]]), targets[:1])[0], atol=1e-6)


def test_targets_beyond_their_bound_count_as_of_the_bound():
    X, y = counts(200)
    ledger = BudgetLedger(epsilon=1e6, delta=0.5)
    far = DPPoissonRegressor(1e3, 1e-5, y_max=5.0, ledger=ledger).fit(X, 1e6 * (y + 1.0))
    assert far.predict(X).max() <= 5.0 * (1 + 1e-12)


def test_sparse_rows_are_welcome():
    X, y = counts(500)
    model = DPPoissonRegressor(1.0, 1e-5).fit(sparse.csr_array(X), y)
    assert_allclose(model.predict(sparse.csr_array(X)), model.predict(X))


@pytest.mark.parametrize("bad", [0.0, -1.0, float("inf"), "1", None])
def test_a_bad_bound_is_refused_before_the_charge(bad):
    ledger = BudgetLedger(epsilon=1.0)
    with pytest.raises(ValueError, match="y_max must be"):
        DPPoissonRegressor(y_max=bad, ledger=ledger).fit(*counts())
    assert not ledger.history()


def test_the_report_has_the_notes_of_the_learner():
    model = DPPoissonRegressor(1.0, 1e-5, y_max=20.0).fit(*counts(200))
    report = privacy_report(model)
    assert report.data["notes"] == list(model.report_notes())
    assert "Targets were clipped to [0, 20]" in str(report)
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.validate(report.data, report_schema())
