"""A report says of each model only what is known of it."""

import numpy as np
import pytest
from jsonschema import Draft202012Validator
from sklearn.base import BaseEstimator
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from skdp import DPLogisticRegression, DPPipeline, config_context
from skdp.estimators import StatedGuarantee
from skdp.inspection import privacy_report, report_schema
from skdp.mechanisms import clip_rows, gaussian_mechanism
from skdp.metrics import dp_evaluate
from skdp.model_selection import DPGridSearch
from skdp.preprocessing import DPQuantileScaler
from skdp.privacy import ApproxDP

ROUNDING = "a proven bound on that error is part of their sensitivities"
# Each is true of an estimator of this package, and of no other is it known.
OF_OURS = (
    ROUNDING,
    "Here rounding was taken into account",
    "Noise is a whole number of steps of a public size",
    "Random bits came from the operating system's generator",
    "No seed was used",
    "Here no seed was used and no exact answer was recorded",
    "Bounds are enforced, not assumed",
    "Rounding and random bits are covered",
    "noisy answers about the data and of nothing else",
    "the promise covers all of them",
    "follows from public and released numbers alone",
    "from public and released numbers alone.",
    "a row that exceeds it is scaled down",
    "computed by rules from public and from released numbers",
    "The proof says more than epsilon and delta",
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


class Learner(Normalizer):
    """A step of somebody else's, with parameters that are named as ours."""

    def __init__(self, norm="l2", *, copy=True, epsilon=1.5, categories="auto", bounds=(0, 1)):
        super().__init__(norm, copy=copy)
        self.epsilon = epsilon
        self.categories = categories
        self.bounds = bounds


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
    assert data["headline"].startswith(f"{name} is not part of skdp, and nothing here checks")
    of_the_container = "computed by rules" if kind in ("pipeline", "search") else None
    for sentence in OF_OURS:
        if of_the_container is None or not sentence.startswith(of_the_container):
            assert sentence not in page, sentence
    status = {row["layer"]: row["status"] for row in data["nist_sp_800_226"]}
    assert status["algorithms"] == status["implementation"] == "not covered"
    assert "what other programs did" in [row["what"] for row in data["not_covered"]]


def test_a_parameter_of_another_program_is_listed_without_its_meaning_here():
    data, page = told_of(NoisyMean().fit(rows()[0]))
    notes = {row["what"]: row["note"] for row in data["public"]}
    assert notes["x_norm"] == ""
    assert notes["width"] == "what NoisyMean makes of it this report does not know"
    assert "classes= would declare them" not in page


def test_a_public_step_has_no_budget_no_bounds_and_no_rules_of_this_package():
    X, y = rows()
    steps = [("learner", Learner()), ("model", DPLogisticRegression())]
    data, _ = told_of(DPPipeline(steps, public=("learner",), epsilon=1.0).fit(X, y))
    notes = {row["what"]: row["note"] for row in data["public"]}
    assert "how much may be learned" not in notes.get("learner: epsilon", "")
    assert notes["learner: bounds"] == ""
    assert "Learner" in notes["learner: categories"]
    assert "learner: rules" not in notes
    assert data["subject"]["third_party"] == []  # the caller answers for it, with a caveat
    alone = make_pipeline(Learner(), DPLogisticRegression()).fit(X, y)
    data, _ = told_of(alone, public=("learner",))
    assert "learner: epsilon" not in {row["what"] for row in data["public"]}


@pytest.mark.parametrize(
    ("fitted", "is_rounded"),
    [
        (lambda X, y: DPLogisticRegression().fit(X, y), True),
        (lambda X, y: DPLogisticRegression(delta=1e-6).fit(X, y), True),
        (lambda X, y: dp_evaluate(DPLogisticRegression().fit(X, y), X, y, epsilon=1.0), True),
        (lambda X, y: DPQuantileScaler().fit(X), False),
        (lambda X, y: NoisyMean().fit(X), False),
    ],
    ids=["objective", "descent", "scores", "selections", "another program"],
)
def test_rounding_errors_are_said_to_be_bounded_where_the_fit_added_noise_to_sums(
    fitted, is_rounded
):
    data, page = told_of(fitted(*rows()))
    assert (ROUNDING in page) == is_rounded
    # What only chooses among candidates adds no noise, and has none in whole steps.
    assert any("whole number of steps" in text for text in data["floating_point"]) == is_rounded


def test_a_cipher_is_told_of_only_where_its_package_was_installed():
    (text,) = told_of(DPLogisticRegression().fit(*rows()))[0]["randomness"]
    assert "Where the package cryptography was installed, long draws came from AES-256" in text


@pytest.mark.parametrize("kind", ["pipeline", "scores"])
def test_a_seed_of_a_part_is_told(kind):
    X, y = rows()
    with config_context(known_seeds=True):
        if kind == "pipeline":
            fitted = make_pipeline(Normalizer(), DPLogisticRegression(random_state=0)).fit(X, y)
        else:
            model = DPLogisticRegression().fit(X, y)
            fitted = dp_evaluate(model, X, y, epsilon=1.0, random_state=0)
    assert "No seed was used" not in told_of(fitted)[1]


def test_a_frozen_step_is_not_said_to_have_learned_nothing():
    X, y = rows()
    scaler = FrozenEstimator(DPQuantileScaler().fit(X))
    page = told_of(make_pipeline(scaler, DPLogisticRegression()).fit(X, y))[1]
    assert "the others learned nothing of them" not in page
    assert "A frozen step was fitted before; if it learned from the data, that counts, too" in page


def test_scores_that_are_lost_in_the_noise_are_not_said_to_have_intervals():
    X, y = rows(50)
    model = DPLogisticRegression().fit(X, y)
    page = told_of(dp_evaluate(model, X, y, epsilon=1e-3))[1]
    assert "Some of these scores are lost in the noise" in page
    page = told_of(dp_evaluate(model, *rows(5000), epsilon=2.0))[1]
    assert "These scores have intervals for noise and sampling" in page


def test_a_step_that_names_no_theorem_is_not_said_to_name_one():
    X, y = rows()
    search = DPGridSearch(DPLogisticRegression(), {"C": [0.1, 1.0]}, epsilon=4.0, delta=1e-6)
    page = told_of(search.fit(X, y))[1]
    assert "Some answers name no theorem" in page
    assert "Each answer names its theorem" in told_of(DPLogisticRegression().fit(X, y))[1]
