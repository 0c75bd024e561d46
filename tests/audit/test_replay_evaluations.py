"""Slips of private evaluations, which a replay finds."""

import numpy as np
import pytest
from mutation import replaced
from sklearn.linear_model import LogisticRegression

from skdp.audit import replay
from skdp.metrics import dp_evaluate
from skdp.privacy import ApproxDP

SUMS, PLAN = "releases._bounded_sums", "metrics._plan"
SLIPS = {
    "half the range of a sum": (SUMS, "return high - low", "return (high - low) / 2"),
    "half the sensitivity": (SUMS, "* (1.0 + 2.0**-40)", "* 0.5"),
    "a sum is not noisy": (SUMS, "return noisy / factors", "return np.array(sums) / factors"),
    "something exact is kept": (
        PLAN,
        "values, self.guarantee, self.confidence,",
        "values, self.guarantee, float(np.mean(y)),",
    ),
}
rng = np.random.default_rng(0)
X = rng.normal(size=(40, 2))
Y = (X[:, 0] + 0.5 * rng.normal(size=40) > 0.0).astype(int)
MODEL = LogisticRegression().fit(X, Y)


def evaluate(X, y, random_state=None):
    found = dp_evaluate(MODEL, X, y, 1.0, scoring=["accuracy"], random_state=random_state)
    return np.array([found.values["accuracy"].value, found.confidence])


def report():
    return replay(evaluate, X, Y, n=12, guarantee=ApproxDP(1.0), random_state=0)


def report_of_ranks(scoring, adjacency):
    """Positive rows but for a few; the one with the highest score turns negative, or goes."""
    claim = ApproxDP(1.0, adjacency=adjacency)

    def evaluate(X, y, random_state=None):
        options = {"scoring": scoring, "adjacency": adjacency, "random_state": random_state}
        found = dp_evaluate(MODEL, X, y, 1.0, classes=[0, 1], **options)
        return np.array([one.value for one in found.values.values()])

    here = np.where(np.arange(len(X)) < 2, 0, 1)
    top, there = np.argmax(MODEL.predict_proba(X)[:, 1]), here.copy()
    there[top] = 0
    there = (
        (X, there) if adjacency == "replace-one" else (np.delete(X, top, 0), np.delete(here, top))
    )
    options = {"guarantee": claim, "random_state": 0}
    worst = replay(evaluate, X, here, neighbours=[there], n=1, **options)
    return [*worst.findings, *replay(evaluate, X, here, n=12, **options).findings]


NAMES = ["average_precision", "precision", "recall", "balanced_accuracy"]
RANKS, RELEASES = "releases._precision_sum", "metrics._releases"
SLIPS_OF_RANKS = {
    "half the harmonic number": (RANKS, "* (1.0 + 2.0**-40)", "* 0.5"),
    "without logarithm": (RANKS, "math.log(n) + float(np.euler_gamma)", "0.5"),
    "the sum is not noisy": (RANKS, "return float(noisy[0])", "return math.fsum(terms.tolist())"),
    "the whole budget for a part": (
        RELEASES,
        'part = self._part(self.shares["precision"])',
        "part = self._part(1.0)",
    ),
}


def test_without_a_slip_nothing_is_found():
    assert not report().findings


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("scoring", [*([name] for name in NAMES), NAMES], ids=str)
def test_precision_and_recall_lose_no_more_than_is_declared(scoring, adjacency):
    assert not report_of_ranks(scoring, adjacency)


@pytest.mark.parametrize("name", SLIPS_OF_RANKS)
def test_slips_of_average_precision_are_found(name):
    module, here, there = SLIPS_OF_RANKS[name]
    with replaced(module, [(here, there)]):
        assert report_of_ranks(["average_precision"], "replace-one")


def test_half_the_sensitivity_of_counts_is_found():
    with replaced(
        "releases._column_sums", [("return float(changed) if", "return 0.5 * changed if")]
    ):
        assert report_of_ranks(["recall"], "replace-one")


@pytest.mark.parametrize("name", SLIPS)
def test_slips_of_evaluations_are_found(name):
    module, here, there = SLIPS[name]
    with replaced(module, [(here, there)]):
        assert report().findings
