"""Private evaluations lose no more than they declare."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from skdp.audit import replay
from skdp.metrics import dp_evaluate
from skdp.privacy import ApproxDP

rng = np.random.default_rng(0)
X = rng.normal(size=(40, 2))
Y = (X[:, 0] + 0.5 * rng.normal(size=40) > 0.0).astype(int)
MODEL = LogisticRegression().fit(X, Y)


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


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("scoring", [*([name] for name in NAMES), NAMES], ids=str)
def test_precision_and_recall_lose_no_more_than_is_declared(scoring, adjacency):
    assert not report_of_ranks(scoring, adjacency)
