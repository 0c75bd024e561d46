"""Objective perturbation: its exact distribution, and the mask over the solver's error."""

import inspect
import math
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from scipy.special import expit
from support.insides import noise_source
from support.linear import LAYOUTS, LOSSES, random_problem
from support.noise import Ruler
from support.releases import let_the_solver_err, transcript

from skdp.learner import (
    HuberHingeLoss,
    LogisticLoss,
    ObjectiveNoise,
    ObjectivePerturbation,
    SoftmaxLoss,
    calibrate,
)
from skdp.learner._newton import minimise
from skdp.mechanisms import NoiseLaw
from skdp.privacy import ApproxDP
from skdp.rows._blocks import RowBlocks


def objective_perturbation(loss, data, *, law, solver_guarantee, noise, centre=0.0):
    masking = NoiseLaw.meeting(solver_guarantee, size=loss.n_outputs * data.n_features)
    release = ObjectivePerturbation(
        loss, data.n_features, data.row_norm, law, masking, law.guarantee, abs(centre)
    )
    return release(data, noise, np.full((1, 1), centre) if centre else None)


@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_the_solver_of_the_objective_is_masked_however_it_errs(delta, monkeypatch):
    # The same data and the same linear term: only the error of the solver differs.
    loss = LogisticLoss()
    X, codes = random_problem(loss, np.random.default_rng(12))
    data = RowBlocks(X, codes, x_norm=1.0)
    law = calibrate(loss, x_norm=1.0, penalty=2.0, guarantee=ApproxDP(1.0, delta))
    solver = ApproxDP(0.01)

    def masked(sign):
        module = inspect.getmodule(ObjectivePerturbation)
        let_the_solver_err(monkeypatch, module, sign, closer=1e-3)
        options = dict(law=law, solver_guarantee=solver, noise=noise_source(0))
        (release,), _ = transcript(lambda: objective_perturbation(loss, data, **options))
        return release

    here, there = masked(1.0), masked(-1.0)
    assert here.scale == there.scale
    assert 0.8 < np.linalg.norm(here.asked - there.asked) / here.scale / 0.01 <= 1.0


def test_the_lattice_of_the_linear_term_is_masked_as_well(monkeypatch):
    seen = []

    def solver(loss, data, *, penalty, tolerance, linear):
        seen.append((tolerance, linear))
        return np.zeros_like(linear)

    monkeypatch.setattr(inspect.getmodule(ObjectivePerturbation), "minimise", solver)
    data = RowBlocks(np.eye(50), np.arange(50) % 3, x_norm=1.0)
    law = ObjectiveNoise(2.0, 30.0, True, ApproxDP(1.0, 1e-5))
    options = dict(law=law, solver_guarantee=ApproxDP(0.01), noise=Ruler())
    (release,), _ = transcript(lambda: objective_perturbation(SoftmaxLoss(3), data, **options))
    ((tolerance, linear),) = seen
    # Rounding moves each of the 150 coordinates by at most half a step.
    rounding = math.sqrt(150) / 2 * linear[0, 0] / Ruler.length
    declared = release.sensitivity
    assert 1.0 <= declared * law.penalty / (2.0 * (tolerance + rounding)) < 1.2


def one_dimension(loss, records, penalty, law, w, centre=0.0):
    """Exact distribution function of the output of objective perturbation in one dimension.

    The minimiser is below w where the linear term is above -J'(w).
    """
    derivative = penalty * (w - centre)
    for z in records:
        margin = z * w
        if isinstance(loss, LogisticLoss):
            slope = np.minimum(expit(-margin), loss.slope_cap)
        else:
            slope = np.clip((1.0 + loss.width - margin) / (2.0 * loss.width), 0.0, 1.0)
        derivative = derivative - z * slope
    noise = stats.norm if law.gaussian else stats.laplace
    return noise.cdf(derivative / law.scale)


def draws_in_one_dimension(loss, records, law, size, seed, centre=0.0):
    x = np.array(records, dtype=float).reshape(-1, 1)
    data = RowBlocks(np.abs(x), (x[:, 0] > 0).astype(int), x_norm=1.0)
    options = dict(law=law, solver_guarantee=ApproxDP(0.01), noise=noise_source(seed))
    options["centre"] = centre
    return np.array([objective_perturbation(loss, data, **options)[0, 0] for _ in range(size)])


@pytest.mark.parametrize("delta", [0.0, 1e-2])
@pytest.mark.parametrize("loss", [LogisticLoss(0.5), HuberHingeLoss(0.5)], ids=str)
def test_objective_perturbation_has_its_exact_distribution(loss, delta, repetitions):
    records = (1.0, 0.7, -0.4)
    law = calibrate(loss, x_norm=1.0, penalty=0.8, guarantee=ApproxDP(1.5, delta))
    size = repetitions(20_000, 1000)
    centre = 0.9 if delta == 0.0 else 0.0  # of the penalty
    draws = draws_in_one_dimension(loss, records, law, size, seed=1, centre=centre)

    def distribution(w):
        return one_dimension(loss, records, law.penalty, law, w, centre)

    assert stats.kstest(draws, distribution).pvalue > 1e-7
    # Half the noise would have been noticed.
    halved = replace(law, scale=law.scale / 2)
    draws = draws_in_one_dimension(loss, records, halved, size, seed=2, centre=centre)
    assert stats.kstest(draws, distribution).pvalue < 1e-7


@pytest.mark.parametrize("layout", ["dense", "csr"])
@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_a_huge_budget_leaves_the_minimiser(loss, layout):
    X, codes = random_problem(loss, np.random.default_rng(15), spread=0.5)
    data = RowBlocks(LAYOUTS[layout](X), codes, x_norm=1.0)
    exact = minimise(loss, data, penalty=2.0, tolerance=1e-7)
    guarantee = ApproxDP(1e8)
    law = ObjectiveNoise(2.0, 1e-8, True, guarantee)
    released = objective_perturbation(
        loss, data, law=law, solver_guarantee=guarantee, noise=noise_source(0)
    )
    assert_allclose(released, exact, atol=1e-4)
