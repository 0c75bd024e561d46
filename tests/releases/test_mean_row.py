"""The mean row of many features: its releases, and what is made of them."""

import inspect

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from support.insides import noise_source
from support.linear import LAYOUTS
from support.releases import transcript
from support.statistics import composed

from skdp.linear_model import DPLinearSVC, DPLogisticRegression
from skdp.losses import HuberHingeLoss, LogisticLoss, SoftmaxLoss
from skdp.privacy import ApproxDP, GaussianDP
from skdp.releases import NoisyDescent, plan_descent
from skdp.releases._mean_row import denoised
from skdp.solvers.rows import RowBlocks

ADJACENCIES = ["replace-one", "add-remove"]


@pytest.fixture
def all_are_wide(monkeypatch):
    """Two features are too many for second moments."""
    monkeypatch.setattr(inspect.getmodule(plan_descent), "_LIMIT_FEATURES", 1)


def release_of(loss, data, budget, clip_norm=None, penalty=0.0):
    return NoisyDescent(loss, data.n_features, data.row_norm, clip_norm, penalty, budget, budget)


def run(release, data, replay=()):
    return transcript(lambda: release(data, noise_source(0)), replay)


def neighbours(adjacency, layout):
    """Many rows along one axis, and a record far outside the ball beside it."""
    rng = np.random.default_rng(13)
    base = np.eye(1, 4) + 0.1 * rng.normal(size=(4000, 4))
    codes = np.r_[0, np.ones(4000, dtype=int)]
    odd = 1e6 * np.eye(4)[[3]]
    to = LAYOUTS[layout]
    here = RowBlocks(to(np.vstack([odd, base])), codes, x_norm=2.0)
    if adjacency == "add-remove":
        return here, RowBlocks(to(base), codes[1:], x_norm=2.0)
    return here, RowBlocks(to(np.vstack([-odd, base])), codes, x_norm=2.0)


@pytest.mark.parametrize("layout", ["dense", "csr"])
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("penalty", [0.0, 7.0])
@pytest.mark.parametrize(
    "loss, clip_norm", [(LogisticLoss(), 0.1), (HuberHingeLoss(0.5), 0.15), (SoftmaxLoss(3), 0.2)]
)
@pytest.mark.usefixtures("all_are_wide")
def test_its_releases_compose_to_the_guarantee_of_the_descent(
    loss, clip_norm, penalty, adjacency, layout
):
    budget = GaussianDP(2.0, adjacency=adjacency)
    here, there = neighbours(adjacency, layout)
    release = release_of(loss, here, budget, clip_norm, penalty)
    first, weights = run(release, here)
    second, weights_there = run(release, there, first)
    counted = int(adjacency == "add-remove")
    shapes = [np.shape(a.asked) for a in first]
    assert shapes == [np.shape(b.asked) for b in second]
    # The number of rows, the sum of the rows, how far they reach, and the sums of gradients.
    assert shapes[: counted + 3] == [()] * counted + [(4,), (), (loss.n_outputs, 4)]
    assert_array_equal(weights, weights_there)  # nothing but the releases is used
    spent, parts, steps = [], [], []
    for a, b in zip(first, second, strict=True):
        assert a.scale == b.scale
        assert a.law.guarantee.adjacency == adjacency
        parts.append(a.law.guarantee.mu)
        spent.append(np.linalg.norm(a.asked - b.asked) / a.scale)
        assert spent[-1] <= parts[-1]
        if np.shape(a.asked) == (loss.n_outputs, 4):
            steps.append(spent[-1] / parts[-1])
    assert_allclose(composed(parts, budget), 2.0, rtol=1e-9)  # nothing is wasted
    assert composed(spent, budget) <= 2.0
    assert steps[0] > 0.97  # the odd row is capped, beside the direction


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.usefixtures("all_are_wide")
def test_the_sum_of_the_rows_moves_by_as_much_as_it_says(adjacency):
    here, there = neighbours(adjacency, "dense")
    release = release_of(LogisticLoss(), here, GaussianDP(2.0, adjacency=adjacency))
    (a,), (b,) = (
        [record for record in run(release, data)[0] if np.shape(record.asked) == (4,)]
        for data in (here, there)
    )
    assert_allclose(a.asked, here.total())
    shift = np.linalg.norm(a.asked - b.asked)
    assert_allclose(shift, (1.0 if adjacency == "add-remove" else 2.0) * 2.0, rtol=1e-6)
    assert 0.95 < shift / a.scale / a.law.guarantee.mu <= 1.0


@pytest.mark.parametrize("adjacency, share", [("replace-one", 1.0), ("add-remove", 0.5)])
def test_it_is_read_where_the_signal_is_clear(adjacency, share):
    public = dict(n_features=3000, loss=LogisticLoss(), row_norm=1.0)
    budget = GaussianDP(1.0, adjacency=adjacency)

    def guarantee(n_samples, budget=budget, **options):
        plan = plan_descent(n_samples=share * n_samples, guarantee=budget, **public, **options)
        assert (plan.mean_guarantee is None) == (plan.spread_guarantee is None)
        return plan.mean_guarantee

    assert guarantee(700.0, mean_row=True) is None
    assert guarantee(750.0, mean_row=True).adjacency == adjacency
    assert guarantee(750.0) is None
    assert guarantee(1e6, ApproxDP(1.0, adjacency=adjacency), mean_row=True) is None


def test_noise_alone_is_hardly_a_direction():
    rng = np.random.default_rng(1)
    squares = [denoised(0.01 * rng.normal(size=2000), 0.01)[1] for _ in range(200)]
    assert np.mean(np.array(squares) == 0.0) > 0.6
    # A few entries may be the largest of many: far less than all of the noise.
    assert max(squares) < 0.03 * 2000 * 0.01**2
    for mean in (np.zeros(3), np.zeros(1)):
        assert denoised(mean, 0.1) == (None, 0.0)
    assert denoised(np.array([5.0]), 0.1)[0] is not None


@pytest.mark.parametrize("model", [DPLogisticRegression(2.0, 1e-5), DPLinearSVC(2.0, 1e-5)])
def test_wide_rows_are_learned_as_well_dense_as_sparse(model):
    rng = np.random.default_rng(2)
    common = 1.0 * (rng.uniform(size=(6000, 30)) < 0.5)  # what most rows have in common
    rest = sparse.random_array((6000, 1170), density=0.02, random_state=rng)
    X = sparse.csr_array(sparse.hstack([common, rest]))
    y = (common @ rng.normal(size=30) > 0.0).astype(int)
    dense, csr = (clone(model).set_params(random_state=0).fit(Z, y) for Z in (X.toarray(), X))
    assert_allclose(dense.coef_, csr.coef_, rtol=1e-6, atol=1e-9)
    assert csr.score(X, y) > 0.85
    assert csr.coef_noise_ is None


def test_users_and_pure_budgets_have_no_mean_row(monkeypatch):
    monkeypatch.setattr(inspect.getmodule(plan_descent), "_LIMIT_FEATURES", 1)
    for budget in (GaussianDP(1.0, unit="user"), ApproxDP(1.0)):
        release = NoisyDescent(LogisticLoss(), 5, 1.0, None, 0.0, budget, budget)
        plan = release._planned(1e5)
        assert plan.mean_guarantee is None
