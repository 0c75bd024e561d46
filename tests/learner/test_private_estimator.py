"""Learners of others: what they state is true of what they release."""

import importlib.util
import pickle
import sys
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import RegressorMixin
from sklearn.linear_model import PoissonRegressor
from sklearn.metrics import d2_tweedie_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from skdp import DPGridSearch, DPPipeline
from skdp.audit import replay
from skdp.exceptions import BudgetExceededError, PrivacyWarning, StaleStreamError
from skdp.learner import (
    Loss,
    NoisyDescent,
    ObjectivePerturbation,
    OutputPerturbation,
    PrivateEstimator,
    RowCount,
    Sequence,
    StreamEstimator,
    StreamRelease,
    SumRelease,
    exact_sum,
)
from skdp.mechanisms import clip_rows, release
from skdp.metrics import dp_evaluate
from skdp.preprocessing import BoundedScaler
from skdp.privacy import ApproxDP, BudgetLedger, GaussianDP
from skdp.rows._users import Users

EXAMPLES = Path(__file__).parents[2] / "examples"


def example(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # where pickles look for its classes
    spec.loader.exec_module(module)
    return module


forest, poisson = example("learner_forest"), example("learner_poisson")
RandomForest, OwnPoisson = forest.RandomForest, poisson.PoissonRegressor
small_forest = partial(RandomForest, n_trees=4, depth=2)


def counts(n=60, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-0.5, 0.5, size=(n, 3))
    return X, rng.poisson(np.exp(1.0 + 2.0 * X[:, 0])).astype(float)


def labels(n=60, seed=0):
    X = np.random.default_rng(seed).uniform(size=(n, 3))
    return X, (X[:, 0] > 0.5).astype(int)


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("delta", [0.0, 1e-5])
@pytest.mark.parametrize(("kind", "problem"), [(small_forest, labels), (OwnPoisson, counts)])
def test_own_learners_attain_their_claim_and_no_more(kind, problem, delta, adjacency):
    model = kind(epsilon=1.0, delta=delta, adjacency=adjacency)
    report = replay(model, *problem(), n=60, random_state=0)
    assert report.passed, str(report)
    assert max(release.share for release in report.releases) > 0.9


@pytest.mark.parametrize(("kind", "problem"), [(small_forest, labels), (OwnPoisson, counts)])
def test_own_learners_protect_users(kind, problem):
    X, y = problem()
    groups = np.arange(len(y)) // 3
    report = replay(kind(epsilon=1.0, delta=1e-5), X, y, groups=groups, n=60, random_state=0)
    assert report.passed, str(report)
    assert kind().fit(X, y, groups=groups).guarantee_.unit == "user"


def test_the_examples_are_as_short_as_the_guide_says():
    def n_lines(name):
        text = (EXAMPLES / f"{name}.py").read_text(encoding="utf-8").partition("# %%")[2]
        return len([line for line in text.splitlines() if line.strip()])

    assert n_lines("learner_poisson") <= 30 and n_lines("learner_forest") <= 120


@parametrize_with_checks([small_forest(), OwnPoisson()])
@pytest.mark.filterwarnings("ignore")
def test_own_learners_follow_the_conventions_of_sklearn(estimator, check):
    check(estimator)


class Total(PrivateEstimator):
    """Sum of rows, of which two uses are made if asked for."""

    def __init__(self, epsilon=1.0, delta=0.0, *, uses=1, random_state=None, ledger=None):
        super().__init__(epsilon, delta, random_state=random_state, ledger=ledger)
        self.uses = uses

    def plan(self, public):
        """One sum."""
        release = partial(SumRelease.plan, size=public.n_features, l2_norm=1.0)
        return Sequence.plan(public.target, release=release, n_samples=public.n_samples)

    def learn(self, data, run):
        """Release it."""
        for _ in range(self.uses):
            self.total_ = run(data).total


def test_what_was_planned_is_released_once():
    ledger = BudgetLedger(epsilon=10.0)
    model = Total(ledger=ledger).fit(np.eye(3))
    before = model.total_
    with pytest.raises(ValueError, match="run must be called once"):
        model.set_params(uses=2).fit(np.eye(3))
    assert model.total_ is before  # the old model is whole, and the ledger is charged
    assert len(ledger.history()) == 2


def test_what_run_returns_holds_no_rows():
    class Keeping(Total):
        def learn(self, data, run):
            """Keep all that was released."""
            self.found_ = run(data)

    found = Keeping().fit(np.eye(3)).found_
    assert set(vars(found)) == {
        "n_samples",
        "norm_scale",
        "centre",
        "found",
        "has_scale",
        "scale_deviation",
        "total",
        "totals",
    }


def test_each_of_several_sums_is_returned():
    def stage(norm, budget, n_samples):
        return SumRelease.plan(replace(budget, epsilon=5e3), size=3, l2_norm=norm)

    def first(budget, n_samples):
        return stage(1.0, budget, n_samples), replace(budget, epsilon=5e3)

    class Sums(Total):
        def plan(self, public):
            """Vectors of two norms."""
            release = partial(stage, 2.0)
            return Sequence.plan(public.target, release=release, n_samples=3, before=[first])

        def learn(self, data, run):
            """Both sums."""
            found = run(data)
            self.totals_, self.total_ = found.totals, found.total

    model = Sums(1e4).fit(4.0 * np.eye(3))
    assert_allclose(model.totals_, np.array([[1.0] * 3, [2.0] * 3]), atol=0.1)
    assert_array_equal(model.total_, model.totals_[1])


@pytest.mark.parametrize("change", [dict(epsilon=2.0), dict(delta=1e-6), dict(unit="user")])
def test_a_plan_that_costs_more_than_the_parameters_say_is_refused(change):
    class Dear(Total):
        def plan(self, public):
            """For another target."""
            return super().plan(replace(public, target=replace(public.target, **change)))

    ledger = BudgetLedger(epsilon=10.0, delta=1e-3)
    with pytest.raises(ValueError, match="plan must return a sequence that meets"):
        Dear(1.0, ledger=ledger).fit(np.eye(3))
    assert not ledger.history()


def test_a_vector_that_is_no_number_counts_as_zero():
    class Odd(Total):
        def learn(self, data, run):
            """Vectors that no check has seen."""
            self.total_ = run(replace(data, X=np.log(data.X))).total

    with np.errstate(all="ignore"):
        total = Odd(1e4).fit(np.array([[-1.0, 1.0, np.e], [1.0, 1.0, 1.0]])).total_
    assert_allclose(total, [0.0, 0.0, 1.0], atol=0.1)


def test_sparse_vectors_of_any_format_are_clipped():
    rows = np.array([[3.0, 3.0, 0.0], [0.0, 0.0, 4.0]])

    class Sparse(Total):
        def plan(self, public):
            """With Laplace noise."""
            release = partial(SumRelease.plan, size=3, l2_norm=1.0, l1_norm=1.0)
            return Sequence.plan(public.target, release=release, n_samples=public.n_samples)

        def learn(self, data, run):
            """Columns first."""
            self.total_ = run(replace(data, X=sparse.csc_array(data.X))).total

    assert_allclose(Sparse(1e4).fit(rows).total_, [0.5, 0.5, 1.0], atol=0.01)


def test_a_ledger_that_cannot_pay_refuses_before_the_rows_are_used():
    model = Total(epsilon=1.0, ledger=BudgetLedger(epsilon=0.5))
    with pytest.raises(BudgetExceededError):
        model.fit(np.eye(3))
    assert not hasattr(model, "total_")


def test_a_known_seed_is_a_caveat_and_warns():
    with pytest.warns(PrivacyWarning, match="random_state is set"):
        model = Total(random_state=0, ledger=BudgetLedger(epsilon=1.0)).fit(np.eye(3))
    assert any("random_state" in caveat for caveat in model.guarantee_.caveats)
    assert_array_equal(pickle.loads(pickle.dumps(model)).total_, model.total_)


def test_the_plan_says_what_a_fit_will_cost():
    for delta in (0.0, 1e-5):
        planned = Total(2.0, delta)._planned_guarantee(3)
        fitted = Total(2.0, delta).fit(np.eye(3)).guarantee_
        assert planned.epsilon == fitted.epsilon and planned.refined is None


def test_own_learners_share_a_budget_and_are_scored():
    X, y = labels(400)
    steps = [("scale", BoundedScaler((0.0, 1.0))), ("forest", small_forest())]
    pipeline = DPPipeline(steps, epsilon=2.0).fit(X, y)
    assert pipeline.guarantee_.epsilon == 2.0
    found = dp_evaluate(pipeline, X, y, epsilon=1.0, scoring="accuracy")
    assert found.guarantee_.epsilon == 1.0
    search = DPGridSearch(small_forest(), {"n_trees": [2, 4]}, epsilon=20.0).fit(X, y)
    assert search.best_params_["n_trees"] in (2, 4)


class Steep(Loss):
    """The worst case: the slope is 1 everywhere, so the bounds are attained."""

    lipschitz, curvature = 1.0, 0.25

    def total(self, scores, targets):
        """Never below 0 in these tests."""
        return float((10.0 + scores[:, 0]).sum())

    def residuals(self, scores, targets):
        """One."""
        return np.ones_like(scores)

    def hessian_weights(self, scores, targets):
        """Zero."""
        return np.zeros(len(scores))


@pytest.mark.parametrize("kind", [NoisyDescent, OutputPerturbation, ObjectivePerturbation])
def test_releases_take_losses_of_others(kind):
    class Regressor(RegressorMixin, PrivateEstimator):
        def plan(self, public):
            sizes = dict(n_features=public.n_features, row_norm=public.row_norm(1.0))
            options = {} if kind is NoisyDescent else dict(penalty=8.0)
            return Sequence.plan(
                public.target,
                release=lambda budget, n: kind.plan(budget, loss=Steep(), **sizes, **options),
                n_samples=public.n_samples,
            )

        def learn(self, data, run):
            self.coef_ = run(data.rows(1.0, y_bounds=(-1.0, 1.0))).weights[0]

    X, y = counts(30)
    report = replay(Regressor(epsilon=1.0), X, y, n=40, random_state=0)
    assert report.passed, str(report)
    if kind is not ObjectivePerturbation:  # of which the audit sees the joint density alone
        assert max(found.share for found in report.releases) > 0.99


def test_objective_perturbation_with_a_delta_asks_for_the_corners_of_gradients():
    sizes = dict(n_features=2, row_norm=1.0, penalty=8.0)
    with pytest.raises(ValueError, match="delta must be 0 for Steep; got 1e-05"):
        ObjectivePerturbation.plan(ApproxDP(1.0, 1e-5), loss=Steep(), **sizes)


# Sums


def test_sums_are_the_same_in_any_order_and_in_parts():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(997, 5)) * 10.0 ** rng.integers(-8, 1, size=(997, 1))
    whole = exact_sum(rows, bound=4.0)
    mixed = rng.permutation(997)
    parts = [exact_sum(rows[mixed[i::3]], bound=4.0) for i in range(3)]
    assert_array_equal((parts[2] + parts[0] + parts[1]).total, whole.total)
    assert_array_equal(exact_sum(np.array_split(rows, 7), bound=4.0).total, whole.total)
    assert_array_equal(exact_sum(sparse.csr_array(rows), bound=4.0).total, whole.total)
    assert_allclose(whole.total, np.clip(rows, -4.0, 4.0).sum(axis=0), atol=997 * 4.0 * 2.0**-26)
    with pytest.raises(ValueError, match="step must be"):
        whole + exact_sum(rows, bound=16.0)


def test_no_row_becomes_longer_in_a_sum():
    rows = np.random.default_rng(0).normal(size=(200, 3))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    for row in rows:
        assert np.linalg.norm(exact_sum(row[np.newaxis], bound=1.0).total) <= 1.0


def test_sums_of_users_are_of_their_means():
    rows = np.array([[1.0], [0.5], [0.25]])
    users = Users.of(["a", "a", "b"], 3)
    assert_allclose(exact_sum(rows, users=users, bound=1.0).total, [1.0], atol=1e-6)
    weighted = exact_sum(rows, np.array([0.0, 1.0, 1.0]), users, bound=1.0)
    assert_allclose(weighted.total, [0.5], atol=1e-6)


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize(
    ("target", "norms", "law"),
    [
        (ApproxDP(1.0), dict(l2_norm=2.0, l1_norm=2.0), "laplace"),
        (ApproxDP(1.0), dict(l2_norm=2.0), "k_norm"),
        (GaussianDP(1.0), dict(l2_norm=2.0, l1_norm=2.0), "gaussian"),
    ],
)
def test_worst_neighbours_of_a_sum_are_as_far_apart_as_declared(target, norms, law, adjacency):
    target = replace(target, adjacency=adjacency)
    stage = SumRelease.plan(target, size=3, **norms)
    assert stage.law.kind == law
    far = np.array([[9.0, 9.0, 0.0]])  # outside the ball: clipping must act

    class Fixed(PrivateEstimator):
        def plan(self, public):
            return Sequence((), ((stage,),), _whole(target))

        def learn(self, data, run):
            self.total_ = run(data).total

    base = np.zeros((4, 3))
    other = np.vstack([base, far]) if adjacency == "add-remove" else np.vstack([base[1:], -far])
    here = base if adjacency == "add-remove" else np.vstack([base[1:], far])
    options = dict(epsilon=10.0, delta=1e-6, adjacency=adjacency, random_state=0)
    shift = Fixed(**options).fit(here).total_ - Fixed(**options).fit(other).total_
    expected = 2.0 if adjacency == "add-remove" else 4.0
    order = 1 if law == "laplace" else 2
    # What is released is rounded to a lattice, which counts in the sensitivity.
    assert_allclose(np.linalg.norm(shift, order), expected, rtol=0.01)


def _whole(target):
    if isinstance(target, ApproxDP):
        return target
    return ApproxDP(target.epsilon_at(1e-6), 1e-6, refined=target, adjacency=target.adjacency)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (dict(size=0, l2_norm=1.0), "size must be"),
        (dict(size=2, l2_norm=0.0), "l2_norm must be"),
        (dict(size=2, l2_norm=1.0, l1_norm=-1.0), "l1_norm must be"),
    ],
)
def test_bad_numbers_of_a_sum_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        SumRelease.plan(ApproxDP(1.0), **options)


def test_without_noise_the_example_is_the_regression_of_sklearn():
    X, y = counts(4000)
    y = np.minimum(y, 20.0)
    found = OwnPoisson(epsilon=1e4, delta=1e-6).fit(X, y).predict(X)
    known = PoissonRegressor(alpha=0.0, fit_intercept=False, tol=1e-8).fit(X, y).predict(X)
    assert d2_tweedie_score(y, found, power=1) > d2_tweedie_score(y, known, power=1) - 0.005


# Streams


@dataclass(frozen=True)
class RunningSums(StreamRelease):
    """Noisy sum of the rows of each call: a record is in one of them."""

    target: ApproxDP
    size: int
    totals: tuple = ()

    def advance(self, X, targets, charge):
        """Release the sum of the rows of a call."""
        stage = SumRelease.plan(self.target, size=self.size, l2_norm=1.0)
        guarantee, _ = charge(lambda account: (self.target, account))
        exact = exact_sum(clip_rows(X, 1.0), bound=1.0)
        total = release(
            exact,
            law=stage.law,
            sensitivity=self.target.n_records_changed,
            random_state=None,
        )
        return replace(self, totals=(*self.totals, total)), dict(guarantee_=guarantee)


class Totals(StreamEstimator):
    """What the rows of each call add up to."""

    def begin(self, public):
        """A stream without rows."""
        return RunningSums(public.target, public.n_features)

    def learn(self, release, fitted):
        """Sums so far."""
        self.totals_ = release.totals


def test_a_stream_of_ones_own_is_charged_once_and_goes_on_from_one_copy():
    ledger = BudgetLedger(epsilon=1.0)
    model = Totals(1.0, ledger=ledger)
    for _ in range(3):
        model.partial_fit(np.eye(3))
    assert len(model.totals_) == 3 and model.guarantee_.epsilon == 1.0
    assert ledger.spent().epsilon == 1.0
    copied = pickle.loads(pickle.dumps(model))
    model.partial_fit(np.eye(3))
    with pytest.raises(StaleStreamError):
        copied.partial_fit(np.eye(3))
    with pytest.raises(ValueError, match="epsilon must not change within a stream"):
        model.set_params(epsilon=2.0).partial_fit(np.eye(3))
    with pytest.raises(BudgetExceededError):
        model.set_params(epsilon=1.0).fit(np.eye(3))
    assert len(model.totals_) == 4


def test_a_stream_that_is_whole_warns_of_a_delta_that_allows_for_a_record():
    with pytest.warns(PrivacyWarning, match="delta=0.5 is at least 1 over the 3 records"):
        Totals(1.0, 0.5).fit(np.eye(3))
    Totals(1.0, 0.5).partial_fit(np.eye(3))  # more rows may come


def test_a_stream_of_ones_own_is_what_it_claims():
    X = np.random.default_rng(0).normal(size=(20, 3))
    report = replay(Totals(1.0), X, n=40, random_state=0)
    assert report.passed, str(report)
    assert max(found.share for found in report.releases) > 0.99


@pytest.mark.parametrize(
    ("charges", "stated"), [(0, ApproxDP(1.0)), (1, ApproxDP(0.5)), (2, ApproxDP(1.0))]
)
def test_a_stream_charges_once_and_states_what_it_charged(charges, stated):
    class Wrong(RunningSums):
        def advance(self, X, targets, charge):
            """Charge as often as the test says, and state what it says."""
            for _ in range(charges):
                charge(lambda account: (self.target, account))
            return replace(self, totals=(0.0,)), dict(guarantee_=stated)

    class Stream(Totals):
        def begin(self, public):
            """A stream that is wrong."""
            return Wrong(public.target, public.n_features)

    with pytest.raises(ValueError, match="advance must charge once"):
        Stream(1.0).fit(np.eye(3))


def test_losses_of_others_may_be_plain_classes():
    @dataclass
    class Changed(Steep):  # not frozen: it has no hash
        table: object = None

    loss = Changed(table=np.ones(2))
    sizes = dict(loss=loss, n_features=2, row_norm=1.0)
    sequence = Sequence.plan(
        ApproxDP(1.0, 1e-5, adjacency="add-remove"),
        release=lambda budget, n: NoisyDescent.plan(budget, **sizes),
        n_samples=None,
        before=[RowCount.planned],
    )
    sequence.check_n_rows(100)
