"""Replays of whole searches: fits, choices, scores and last fits, with rows of either block."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from support.audits import Row
from support.insides import one_of_runs
from support.search_audits import searches

from skdp.audit import _session, recording, replay
from skdp.audit._claims import Claim
from skdp.audit._noise import run_findings
from skdp.linear_model import DPLogisticRegression
from skdp.mechanisms import n_random_runs
from skdp.model_selection import DPEpsilonSearch
from skdp.privacy import ApproxDP, BoundedRangeDP, GaussianDP, parallel, random_runs_mean

CASES = list(searches())


@pytest.fixture(autouse=True)
def two_noise_runs(monkeypatch):
    """Laws of noise are those of fits without a search, whose tests look at them."""
    monkeypatch.setattr(_session, "_MOST_NOISE_RUNS", 2)


@pytest.mark.slow
@pytest.mark.every(9)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_row_of_either_block_loses_what_is_declared_and_no_more(case):
    row = Row.of(case)
    assert not row.wrong
    assert row.most <= 1.0 + 1e-9 and row.total <= 1.0 + 1e-6
    assert row.most > 0.99


def test_a_point_says_more_than_the_gaussian_of_the_worse_of_two_cases():
    fits, scores = GaussianDP(2.0), BoundedRangeDP((3.0,), then=GaussianDP(1.0))
    worst = parallel([fits, scores])
    delta = 1e-5
    assert worst.epsilon_at(delta) == fits.epsilon_at(delta) and worst.to_gdp().mu > 2.05
    claim = Claim(ApproxDP(fits.epsilon_at(delta), delta, refined=worst))
    assert_allclose(claim.fraction_of(0.0, 1.9), 0.95, rtol=1e-6)
    assert claim.fraction_of(0.0, 2.01) > 1.0


def test_a_score_of_other_rows_and_a_minimiser_may_each_have_the_whole_claim():
    search = DPEpsilonSearch(DPLogisticRegression(), 0.01, epsilons=[200.0])
    X = np.random.default_rng(0).normal(scale=0.4, size=(40, 3))
    report = replay(search, X, (X[:, 0] > 0.0).astype(int), n=48, random_state=0)
    assert report.passed, report


def numbers_of_runs(draw, n=60, eta=0.0, gamma=0.3):
    """Transcripts of as many runs as are drawn."""
    transcripts = []
    for seed in range(n):
        with recording() as transcript:
            for _ in range(draw(seed)):
                with one_of_runs(GaussianDP(1.0), eta=eta, gamma=gamma):
                    pass
        transcripts.append(transcript)
    return run_findings(transcripts, alarm=1e-7)


@pytest.mark.parametrize(("eta", "gamma"), [(0.0, 0.3), (1.0, 0.1), (-0.5, 0.02)])
def test_a_number_of_runs_that_is_not_as_declared_is_found(eta, gamma):
    law = dict(eta=eta, gamma=gamma)

    def drawn(seed):
        return n_random_runs(**law, random_state=seed)

    assert numbers_of_runs(drawn, **law) == []
    mean = round(random_runs_mean(eta, gamma))
    for wrong in (lambda seed: mean, lambda seed: drawn(0), lambda seed: 3 * drawn(seed) + 2):
        assert [finding.kind for finding in numbers_of_runs(wrong, **law)] == ["noise"]
