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


def test_without_a_slip_nothing_is_found():
    assert not report().findings


@pytest.mark.parametrize("name", SLIPS)
def test_slips_of_evaluations_are_found(name):
    module, here, there = SLIPS[name]
    with replaced(module, [(here, there)]):
        assert report().findings
