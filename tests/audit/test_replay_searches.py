"""Replays of whole searches: fits, choices, scores and last fits, with rows of either block."""

from contextlib import ExitStack

import numpy as np
import pytest
from mutation import replaced
from numpy.testing import assert_allclose
from support.audits import Row
from support.insides import one_of_runs
from support.search_audits import searches

from skdp.audit import _session, recording, replay
from skdp.audit._claims import Claim
from skdp.audit._several_runs import run_findings
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
    assert_allclose(claim.share_of(0.0, 1.9), 0.95, rtol=1e-6)
    assert claim.share_of(0.0, 2.01) > 1.0


def test_a_score_of_other_rows_and_a_minimiser_may_each_have_the_whole_claim():
    search = DPEpsilonSearch(DPLogisticRegression(), 0.01, epsilons=[200.0])
    X = np.random.default_rng(0).normal(scale=0.4, size=(40, 3))
    report = replay(search, X, (X[:, 0] > 0.0).astype(int), n=48, random_state=0)
    assert report.passed, report


# Slips, the beginning of the name of a case that shows them, and what is found.

GRID, PLAN = "model_selection._grid_search", "model_selection._grid_plan"
RUNS, DRAWN = "model_selection._random_plan", "model_selection._randomized_search"
STAGES = "model_selection._epsilon_grid"
FITTED, SCORED = "a row of fits, ", "a row of scores, "
PURE = "adjacency=replace-one delta=0.0"
ON_GRID = "DPGridSearch param_grid={'C': [0.0001, 0.0002, 0.0003]} "
AT_RANDOM = "DPRandomizedSearch param_distributions={'C': [0.0001, 0.0002, 0.0003]} n_iter_mean=3 "
SLIPS = [
    (
        "one fit is paid for, of three",
        f"{FITTED}{ON_GRID}refit=False {PURE}",
        [(PLAN, "self._composed([*planned, *last])", "self._composed([planned[0], *last])")],
        "total",
    ),
    (
        "the score is free",
        f"{SCORED}{ON_GRID}refit=False {PURE}",
        [(PLAN, "compose([evaluation.guarantee, *last])", "self._composed(last)")],
        "total",
    ),
    (
        "the last fit is free",
        f"{FITTED}{ON_GRID}{PURE}",
        [(PLAN, "last = [parallel(last)] if last else []", "last = []")],
        "total",
    ),
    (
        "half the spread of the choice",
        f"{SCORED}{ON_GRID}{PURE}",
        [("releases._choice", "n_records_changed(self.guarantee.adjacency)", "1")],
        "sensitivity",
    ),
    (
        "rows that compare are fitted to",
        f"{SCORED}{ON_GRID}{PURE}",
        [
            (
                GRID,
                "charge(self, plan.guarantee)",
                "charge(self, plan.guarantee); fitted = [(searched.X, searched.y)] * len(fitted)",
            )
        ],
        "total",
    ),
    (
        "losses are kept",
        f"{SCORED}{ON_GRID}{PURE}",
        [
            (
                GRID,
                "model = models[best]",
                "model = models[best]; self.losses_ = [float(one.sum()) for one in losses]",
            )
        ],
        "outcome",
    ),
    (
        "the best is chosen",
        f"{SCORED}{ON_GRID}{PURE}",
        [
            (
                GRID,
                "best = plan.choice(regrets(losses), noise_source(choice))",
                "best = min(range(len(losses)), key=lambda i: losses[i].sum())",
            )
        ],
        "law",
    ),
    (
        "the last fit after random runs is free",
        f"{FITTED}{AT_RANDOM}adjacency=replace-one delta=0.0001",
        [(RUNS, "compose([law, *last])", "compose([law])")],
        "total",
    ),
    (
        "the best of many runs costs what one does",
        f"{FITTED}{AT_RANDOM}refit=False {PURE}",
        [
            (
                RUNS,
                "[RandomRunsDP(run, self.eta, self.gamma, **self._kind()) for run in runs]",
                "runs",
            ),
            (
                RUNS,
                "amount = self.base * (1.0 - self.share) / (2.0 + self.eta)",
                "amount = self.base",
            ),
        ],
        "total",
    ),
    (
        "runs are fitted to the rows that score, too",
        f"{SCORED}{AT_RANDOM}{PURE}",
        [
            (
                DRAWN,
                "X, y = rows[0]",
                "X, y = searched.X, searched.y",
            )
        ],
        "total",
    ),
    (
        "the last stage is what was spent",
        f"{FITTED}DPEpsilonSearch target_score=0.99 {PURE}",
        [
            (STAGES, "self.fits[:n_stages]", "self.fits[n_stages - 1 : n_stages]"),
            (STAGES, "self.scores[:n_stages]", "self.scores[n_stages - 1 : n_stages]"),
        ],
        "total",
    ),
    (
        "scores have twice what is charged",
        f"{SCORED}DPEpsilonSearch target_score=0.99 {PURE}",
        [
            (STAGES, "parallel([compose(fits), compose(scores)])", "compose(fits)"),
            (
                STAGES,
                "return point if point.delta == 0.0",
                "return replace(point, epsilon=2 * point.epsilon) if point.delta == 0.0",
            ),
        ],
        "total",
    ),
]


@pytest.mark.parametrize(
    ("where", "slips", "kind"), [s[1:] for s in SLIPS], ids=[s[0] for s in SLIPS]
)
def test_slips_of_searches_are_found(where, slips, kind):
    (shown,) = (one for one in CASES if one.name == where)
    with ExitStack() as stack:
        for module in dict.fromkeys(slip[0] for slip in slips):
            texts = [slip[1:] for slip in slips if slip[0] == module]
            stack.enter_context(replaced(module, texts))
        (report,) = shown.reports()
    assert kind in {finding.kind for finding in report.findings}, report


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
