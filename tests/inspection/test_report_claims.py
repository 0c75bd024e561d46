"""A report says of each model only what is known of it."""

import numpy as np
import pytest
from jsonschema import Draft202012Validator
from sklearn.base import BaseEstimator
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from skdp import DPLogisticRegression, DPPipeline
from skdp.inspection import privacy_report, report_schema
from skdp.learner import StatedGuarantee
from skdp.mechanisms import clip_rows, gaussian_mechanism
from skdp.model_selection import DPGridSearch
from skdp.preprocessing import DPQuantileScaler
from skdp.privacy import ApproxDP

ROUNDING = "A proven bound on this error is part of their sensitivity"
# Each is true of an estimator of this package, and of no other is it known.
OF_OURS = (
    ROUNDING,
    "This program takes rounding into account",
    "the noise is a whole number of steps",
    "Random bits came from the operating system's cryptographic generator",
    "No seed was used",
    "Here no seed was used and no exact answer was recorded",
    "Bounds are enforced",
    "Rounding and random bits are covered",
    "depends only on the noisy answers",
    "the promise covers all of them",
    "uses public and released numbers only",
    "from public and released numbers only.",
    "a longer row is scaled down",
    "computed by rules from public and released numbers",
    "The proof is stronger than epsilon and delta",
)


def rows(n=2000):
    X = np.random.default_rng(0).uniform(-1, 1, size=(n, 3))
    return X, X[:, 0] > 0


class NoisyMean(StatedGuarantee, BaseEstimator):
    """The mean of rows, by somebody who read the guide."""

    def __init__(self, epsilon=1.0, delta=1e-5, x_norm=1.0, width="auto", random_state=None):
        self.epsilon = epsilon
        self.delta = delta
        self.x_norm = x_norm
        self.width = width
        self.random_state = random_state

    def fit(self, X, y=None):
        self.guarantee_ = ApproxDP(self.epsilon, self.delta)
        value = clip_rows(np.asarray(X), self.x_norm).mean(axis=0)
        sensitivity = 2.0 * self.x_norm / len(X)
        law = dict(l2_sensitivity=sensitivity, guarantee=self.guarantee_)
        self.mean_ = gaussian_mechanism(value, **law)
        return self


class Regression(DPLogisticRegression):
    """A subclass, which may do anything beside what it inherits."""


def told_of(fitted, **options):
    """Data of a report, by the schema, and its words on one line."""
    report = privacy_report(fitted, **options)
    Draft202012Validator(report_schema()).validate(report.data)
    return report.data, report.to_markdown()  # where a cell of a table is on one line


OTHERS = {
    "alone": lambda X, y: NoisyMean().fit(X),
    "subclass": lambda X, y: Regression(delta=1e-6).fit(X, y),
    "frozen": lambda X, y: FrozenEstimator(Regression(delta=1e-6).fit(X, y)),
    "pipeline of scikit-learn": lambda X, y: make_pipeline(
        Normalizer(), Regression(delta=1e-6)
    ).fit(X, y),
    "pipeline": lambda X, y: DPPipeline(
        [("bounds", DPQuantileScaler()), ("model", Regression())], epsilon=2.0, delta=1e-6
    ).fit(X, y),
    "search": lambda X, y: DPGridSearch(
        Regression(), {"C": [1.0, 10.0]}, epsilon=3.0, delta=1e-6
    ).fit(X, y),
    "search of scikit-learn": lambda X, y: GridSearchCV(
        Regression(delta=1e-6), {"C": [1.0, 10.0]}, cv=KFold(2)
    ).fit(X, y),
}


@pytest.mark.parametrize("sentence", OF_OURS)
def test_a_model_of_this_package_is_said_to_do_what_it_does(sentence):
    assert sentence in told_of(DPLogisticRegression(delta=1e-6).fit(*rows()))[1]


@pytest.mark.parametrize("kind", OTHERS)
def test_nothing_is_said_of_other_programs_that_is_not_known(kind):
    name = "NoisyMean" if kind == "alone" else "Regression"
    public = ("scores",) if kind == "search of scikit-learn" else ()
    data, page = told_of(OTHERS[kind](*rows()), public=public)
    assert data["subject"]["third_party"] == [name]
    assert data["headline"].startswith(f"{name} is not part of skdp, so this report did not check")
    of_the_container = "computed by rules" if kind in ("pipeline", "search") else None
    for sentence in OF_OURS:
        if of_the_container is None or not sentence.startswith(of_the_container):
            assert sentence not in page, sentence
    status = {row["layer"]: row["status"] for row in data["nist_sp_800_226"]}
    assert status["algorithms"] == status["implementation"] == "not covered"
    assert "what other programs did" in [row["what"] for row in data["not_covered"]]
