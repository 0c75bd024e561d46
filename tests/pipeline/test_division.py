"""One budget is divided among steps, exactly and never above itself."""

import math

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer

from skdp.learner import StatedGuarantee
from skdp.linear_model import DPLogisticRegression
from skdp.pipeline import DPPipeline
from skdp.pipeline._plan import Plan
from skdp.pipeline._wrappers import Schema
from skdp.preprocessing import DPOneHotEncoder
from skdp.privacy import ApproxDP, BoundedRangeDP, GaussianDP, gaussian_mu

DELTA = 1e-5


class Stub(StatedGuarantee, TransformerMixin, BaseEstimator):
    """A step that spends what it says."""

    _budget_share = 0.1

    def __init__(
        self,
        kind="selections",
        n=4,
        epsilon=1.0,
        delta=0.0,
        *,
        adjacency="replace-one",
        random_state=None,
        ledger=None,
    ):
        self.kind, self.n = kind, n
        self.epsilon, self.delta, self.adjacency = epsilon, delta, adjacency
        self.random_state, self.ledger = random_state, ledger

    def _planned_guarantee(self, n_features):
        target = ApproxDP(self.epsilon, self.delta, adjacency=self.adjacency)
        if self.kind == "point" or (self.delta == 0.0 and self.kind == "gaussian"):
            return target
        if self.kind == "gaussian":
            return target.gaussian_target()
        each = self.epsilon / self.n
        if self.delta:  # about that of a Gaussian
            each = 2.0 * target.gaussian_target().mu / math.sqrt(self.n)
        return BoundedRangeDP((each,) * self.n, adjacency=self.adjacency)

    def fit(self, X, y=None):
        self.guarantee_ = self._planned_guarantee(X.shape[1])
        return self

    def transform(self, X):
        return X


def planned(pipeline, n_columns=4):
    return Plan.from_schema(pipeline, Schema(n_columns))


def attained_delta(parts, epsilon, places=(0.5, 0.75, 0.9)):
    """Delta that an adversary attains against the parts, by dp-accounting and rounded down.

    A selection of range e is two outcomes of losses t and t - e; the adversary has the best of
    some t, the same share of each e.
    """
    if not any(isinstance(part, BoundedRangeDP) for part in parts):
        places = places[:1]
    return max(attained_at(place, parts, epsilon) for place in places)


def attained_at(place, parts, epsilon):
    options = dict(
        value_discretization_interval=1e-4, pessimistic_estimate=False, use_connect_dots=False
    )
    total, mu = None, 0.0
    for part in parts:
        if isinstance(part, GaussianDP):
            mu = math.hypot(mu, part.mu)
            continue
        if isinstance(part, BoundedRangeDP):
            laws = [selection(each, place * each, options) for each in part.epsilons]
        else:
            laws = [point(part.epsilon, part.delta, options)]
        for law in laws:
            total = law if total is None else total.compose(law)
    if mu > 0.0:
        law = pld.from_gaussian_mechanism(1.0 / mu, **options)
        total = law if total is None else total.compose(law)
    return total.get_delta_for_epsilon(epsilon)


def selection(each, t, options):
    high = (math.exp(each) - math.exp(t)) / math.expm1(each)
    upper = {0: math.log(high), 1: math.log1p(-high)}
    lower = {0: math.log(high) - t, 1: math.log1p(-high) + each - t}
    return two_laws(lower, upper, options)


def point(epsilon, delta, options):
    low = math.log1p(-delta) - math.log1p(math.exp(epsilon))
    upper, lower = {0: low + epsilon, 1: low}, {0: low, 1: low + epsilon}
    if delta:
        upper[2] = lower[3] = math.log(delta)
    return two_laws(lower, upper, options)


def two_laws(lower, upper, options):
    options = {key: value for key, value in options.items() if key != "use_connect_dots"}
    return pld.from_two_probability_mass_functions(lower, upper, **options)


def parts_of(plan):
    """What stands behind the plans of the steps."""
    for part in plan.division.planned.values():
        while isinstance(part, ApproxDP) and part.refined is not None:
            part = part.refined
        yield part


def random_pipeline(rng):
    """Stubs one after the other and beside each other, and a model or none."""
    kinds = ["selections", "gaussian"] + ["point"] * (rng.random() < 0.3)

    def stub(i):
        return (f"s{i}", Stub(str(rng.choice(kinds)), int(rng.integers(1, 4))))

    steps = [stub(i) for i in range(int(rng.integers(0, 3)))]
    if rng.random() < 0.5:
        parts = [(*stub(9 + i), [i]) for i in range(int(rng.integers(1, 3)))]
        steps.append(("columns", ColumnTransformer(parts, sparse_threshold=0)))
    if rng.random() < 0.7 or not steps:
        steps.append(("model", DPLogisticRegression()))
    delta = DELTA if rng.random() < 0.7 else 0.0
    adjacency = str(rng.choice(["replace-one", "add-remove"]))
    return DPPipeline(steps, float(rng.uniform(0.2, 3.0)), delta, adjacency=adjacency)


def check_total(pipeline):
    plan = planned(pipeline)
    total, parts = plan.division.total, list(parts_of(plan))
    assert total.epsilon_at(pipeline.delta) <= pipeline.epsilon
    if len(parts) == 1:
        return
    if pipeline.delta == 0.0:
        spent = math.fsum(part.epsilon_at(0.0) for part in parts)
        assert spent == pytest.approx(pipeline.epsilon, rel=1e-9)
        assert spent <= pipeline.epsilon * (1 + 1e-12)
        return
    behind = total.refined
    assert behind.epsilon_at(pipeline.delta) == pytest.approx(pipeline.epsilon, rel=1e-6)
    attained = attained_delta(parts, pipeline.epsilon)
    assert attained <= pipeline.delta
    # Of a few selections alone the adversary would have to be found with more care.
    noisy = [part.mu for part in parts if isinstance(part, GaussianDP)]
    if max(noisy, default=0.0) > 0.5 * gaussian_mu(epsilon=pipeline.epsilon, delta=DELTA):
        assert attained > 0.2 * pipeline.delta  # which is a few percent of epsilon


@pytest.mark.parametrize("seed", range(40))
def test_random_pipelines_spend_their_budget_and_no_more(seed):
    check_total(random_pipeline(np.random.default_rng(seed)))


def test_given_shares_are_kept_and_the_rest_goes_to_others():
    steps = [("a", Stub("gaussian")), ("b", Stub("gaussian")), ("m", DPLogisticRegression())]
    shares = planned(DPPipeline(steps, 1.0, DELTA, shares={"a": 0.3})).division.shares
    assert shares["a"] == 0.3
    assert shares["b"] == pytest.approx(0.07) and shares["m"] == pytest.approx(0.63)
    shares = {"a": 0.1, "b": 0.1, "m": 0.2}  # all are named: proportions
    division = planned(DPPipeline(steps, 1.0, DELTA, shares=shares)).division
    assert division.shares == pytest.approx({"a": 0.25, "b": 0.25, "m": 0.5})
    assert division.total.refined.epsilon_at(DELTA) == pytest.approx(1.0, rel=1e-6)


@pytest.mark.parametrize(
    ("shares", "told"),
    [
        ({"a": 0.7, "m": 0.4}, "sum to at most 1"),
        ({"n": 0.5}, "must name steps that learn under a guarantee"),
        ({"a": -0.5}, "shares\\['a'\\] must be between"),
        ({"a": 1.0}, "leave a remainder"),
        ("even", "must be 'auto' or a dict"),
        ([0.5, 0.5], "must be 'auto' or a dict"),
    ],
)
def test_shares_that_cannot_be_are_refused(shares, told):
    steps = [("a", Stub()), ("n", "passthrough"), ("m", DPLogisticRegression())]
    with pytest.raises(ValueError, match=told):
        planned(DPPipeline(steps, 1.0, DELTA, shares=shares))


def test_a_step_that_has_no_pure_guarantee_is_named():
    class Gaussian(Stub):
        def _planned_guarantee(self, n_features):
            return GaussianDP(0.1)

    steps = [("noisy", Gaussian()), ("m", DPLogisticRegression())]
    with pytest.raises(ValueError, match="delta must be positive for step 'noisy'"):
        planned(DPPipeline(steps, 1.0))
    with pytest.raises(ValueError, match="delta must be positive to learn categories"):
        planned(DPPipeline([("c", DPOneHotEncoder()), ("m", DPLogisticRegression())], 1.0))
