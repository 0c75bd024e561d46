"""Weights of rows: what they multiply, what they cost, and what may leave."""

import math
import warnings

import numpy as np
import pytest
from scipy import stats
from sklearn.ensemble import AdaBoostClassifier
from sklearn.model_selection import GridSearchCV, KFold

from skdp import config_context
from skdp.audit import replay
from skdp.exceptions import PrivacyWarning
from skdp.inspection import privacy_report
from skdp.kernel import DPKernelRidge
from skdp.linear_model import (
    DPLinearRegression,
    DPLinearSVC,
    DPLogisticRegression,
    DPPoissonRegressor,
)
from skdp.pipeline import DPPipeline, guarantee_of
from skdp.preprocessing import RowNormClipper
from skdp.privacy import BudgetLedger, GaussianDP

CAVEAT = "sample_weight: each weight must be a function of its own row"
DELTA = dict(delta=1e-6)
RIDGE = dict(y_bounds=(-1.0, 1.0), n_components=16)

ALL = {
    "logistic": DPLogisticRegression(),
    "logistic by gradients": DPLogisticRegression(**DELTA),
    "logistic by output": DPLogisticRegression(mechanism="output"),
    "intervals": DPLogisticRegression(inference=True, **DELTA),
    "support vectors": DPLinearSVC(),
    "least squares": DPLinearRegression(y_bounds=(-1.0, 1.0)),
    "poisson": DPPoissonRegressor(y_max=10.0),
    "poisson by gradients": DPPoissonRegressor(y_max=10.0, **DELTA),
    "ridge": DPKernelRidge(**RIDGE),
    "ridge by gradients": DPKernelRidge(**RIDGE, **DELTA),
    "ridge by moments": DPKernelRidge(mechanism="sufficient_statistics", **RIDGE, **DELTA),
    "squares by output": DPKernelRidge(loss="squared", **RIDGE),
}


def problem(name, n=600, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-0.5, 0.5, (n, 3))
    score = 2.0 * X[:, 0] + 0.4 * rng.normal(size=n)
    if "poisson" in name:
        return X, np.floor(np.exp(1.0 + score))
    if any(kind in name for kind in ("ridge", "squares")):
        return X, np.clip(score, -1.0, 1.0)
    return X, (score > 0.3).astype(int)


def weighted(name, **options):
    return ALL[name].__class__(
        **{**ALL[name].get_params(), "max_sample_weight": 1.0, "random_state": 0, **options}
    )


def learned(model):
    return np.append(np.ravel(model.coef_), np.ravel(model.intercept_))


# What a weight is


@pytest.mark.parametrize("name", [name for name in ALL if name != "squares by output"])
def test_a_weight_of_one_is_a_row_and_a_weight_of_zero_is_none(name):
    """Under add-remove, where the number of rows is released with and without weights."""
    X, y = problem(name)
    model = weighted(name, adjacency="add-remove")
    plain = learned(model.fit(X, y))
    ones = learned(model.fit(X, y, sample_weight=np.ones(len(X))))
    # With weights, limits of residuals of features have other bits.
    rough = 1e-3 if name == "ridge by gradients" else 1e-6
    np.testing.assert_allclose(ones, plain, rtol=rough, atol=rough)
    more = np.random.default_rng(1).uniform(-0.5, 0.5, (100, 3))
    X, y = np.vstack([X, more]), np.append(y, y[:100])
    both = learned(model.fit(X, y, sample_weight=np.arange(700) < 600))
    np.testing.assert_allclose(both, plain, rtol=rough, atol=rough)
    assert not np.allclose(learned(model.fit(X, y)), plain, rtol=1e-3)


@pytest.mark.parametrize("mechanism", ["objective", "output"])
@pytest.mark.parametrize("kind", [DPLogisticRegression, DPLinearSVC])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_weights_by_label_are_those_of_classes(kind, mechanism, n_classes):
    X, _ = problem("logistic")
    y = np.digitize(X[:, 0], [-0.1, 0.2][: n_classes - 1])
    by_class = {0: 1.0, 1: 3.0, 2: 0.5}
    options = dict(mechanism=mechanism, C=0.1, random_state=0)
    first = kind(class_weight={label: by_class[label] for label in range(n_classes)}, **options)
    own = kind(max_sample_weight=3.0, **options)
    own.fit(X, y, sample_weight=[by_class[label] for label in y])
    np.testing.assert_allclose(learned(own), learned(first.fit(X, y)), rtol=1e-5, atol=1e-6)


def test_weights_multiply_rows_of_texts_and_of_many_columns():
    """Newton steps by conjugate gradients, and with a Hessian of frequent columns."""
    from scipy import sparse

    rng = np.random.default_rng(0)
    X = sparse.random(1500, 3000, density=0.01, format="csr", random_state=rng)
    X = sparse.hstack([sparse.csr_array(rng.uniform(0, 1, (1500, 20))), X], format="csr")
    y = (X[:, [0]].toarray()[:, 0] > 0.5).astype(int)
    options = dict(C=1.0, random_state=0, mechanism="objective", x_norm=3.0)
    for labels in (y, np.where(X[:, [1]].toarray()[:, 0] > 0.7, 2, y)):
        weights = np.where(labels == 1, 0.3, 1.0)
        own = DPLogisticRegression(max_sample_weight=1.0, **options)
        first = DPLogisticRegression(class_weight={1: 0.3}, **options).fit(X, labels)
        own.fit(X, labels, sample_weight=weights)
        np.testing.assert_allclose(learned(own), learned(first), rtol=1e-4, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["logistic by gradients", "least squares", "ridge by moments"])
def test_whole_weights_are_repeated_rows_in_distribution(name, repetitions):
    """Of a k-th of the mu: k rows of one record have as much of the noise as a weight of k.

    Fails with a chance below 1e-6 for each coefficient if the laws are the same.
    """
    k, mu = 3, 1.5
    X, y = problem(name, 400)
    weights = np.random.default_rng(2).integers(0, k + 1, size=len(X))
    rows = np.repeat(np.arange(len(X)), weights)
    found = []
    for strength, data, options in (
        (mu, (X, y), dict(sample_weight=weights)),
        (mu / k, (X[rows], y[rows]), {}),
    ):
        delta = 1e-6
        epsilon = GaussianDP(strength).epsilon_at(delta)
        model = weighted(name, epsilon=epsilon, delta=delta, adjacency="add-remove")
        model.set_params(max_sample_weight=k)
        some = []
        for seed in range(repetitions(1000, 150)):
            some.append(learned(model.set_params(random_state=seed).fit(*data, **options)))
        found.append(np.array(some))
    for one, other in zip(*(part.T for part in found), strict=True):
        if np.ptp(one) or np.ptp(other):
            assert stats.ks_2samp(one, other, method="asymp").pvalue > 1e-7


def test_balanced_weights_find_the_rare_class():
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.5, 0.5, (20_000, 3))
    y = (2.0 * X[:, 0] + 0.4 * rng.normal(size=len(X)) > 1.0).astype(int)
    share = y.mean()  # made-up rows are public
    weights = np.where(y == 1, 1.0, share / (1.0 - share))
    found = []
    for options in ({}, dict(sample_weight=weights)):
        model = weighted("logistic").fit(X, y, **options)
        hits = [(model.predict(X[y == label]) == label).mean() for label in (0, 1)]
        found.append(np.mean(hits))
    assert found[1] > found[0] + 0.1


# Privacy


def by_sign(X, y):
    """All of a row, or nothing."""
    return (X[:, 1] > 0.0).astype(float)


def by_size(X, y):
    """Any number, of the row and of its label."""
    return np.minimum(np.abs(X[:, 0]), 0.5) * np.clip(1.0 + y, 0.0, 2.0)


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("name", ALL)
def test_hostile_weights_lose_no_more_than_is_claimed(name, adjacency):
    if name == "squares by output" and adjacency == "add-remove":
        pytest.skip("squared loss has no finite sensitivity there")
    X, y = problem(name, 60)
    weigh = by_size if len(name) % 2 else by_sign

    def fitted(X, y, random_state):
        model = weighted(name, adjacency=adjacency, random_state=random_state)
        if "classes" in model.get_params():
            model.set_params(classes=[0, 1])
        return model.fit(X, y, sample_weight=weigh(np.asarray(X), np.asarray(y)))

    claim = fitted(X, y, 0).guarantee_
    report = replay(fitted, X, y, guarantee=claim, n=36, random_state=0)
    assert report.passed, report


@pytest.mark.parametrize("name", ["logistic by gradients", "ridge by gradients"])
def test_weights_of_users_rows_lose_no_more_than_is_claimed(name):
    X, y = problem(name, 60)
    groups = np.arange(60) // 3

    def fitted(X, y, groups, random_state):
        model = weighted(name, random_state=random_state)
        if "classes" in model.get_params():
            model.set_params(classes=[0, 1])
        weights = by_size(np.asarray(X), np.asarray(y))
        return model.fit(X, y, groups=groups, sample_weight=weights)

    claim = fitted(X, y, groups, 0).guarantee_
    report = replay(fitted, X, y, groups=groups, guarantee=claim, n=24, random_state=0)
    assert report.passed, report


def test_the_sum_of_weights_is_no_exact_number():
    """Under replace-one the number of rows is public; what the rules read is not."""
    X, y = problem("logistic by gradients", 2000)
    model = weighted("logistic by gradients", random_state=None)
    first, other = (
        model.fit(X, y, sample_weight=np.full(len(X), weight)).guarantee_ for weight in (1.0, 0.01)
    )
    assert first == other


# What leaves


def test_what_weights_rest_on_is_said_wherever_a_guarantee_is():
    X, y = problem("logistic")
    ledger = BudgetLedger(epsilon=5.0, delta=0.1)
    with config_context(known_seeds=True):
        model = weighted("logistic", ledger=ledger, random_state=None)
    weights = np.ones(len(X))
    assert CAVEAT in str(model.fit(X, y, sample_weight=weights).guarantee_)
    assert CAVEAT in str(guarantee_of(model))
    assert CAVEAT not in str(model.fit(X, y).guarantee_)
    pipeline = DPPipeline([("clip", RowNormClipper()), ("model", weighted("logistic"))])
    pipeline.set_params(model__random_state=None, ledger=ledger)
    pipeline.fit(X, y, model__sample_weight=weights)
    assert CAVEAT in str(pipeline.guarantee_) and CAVEAT in str(guarantee_of(pipeline))
    assert len(ledger.history()) == 3 and CAVEAT in str(ledger.history()[0].guarantee)
    assert "sample_weight" in privacy_report(pipeline).to_html()
    search = GridSearchCV(weighted("logistic", random_state=None), {"C": [1.0]}, cv=KFold(2))
    search.fit(X, y, sample_weight=weights)
    assert CAVEAT in str(guarantee_of(search, public=("scores",)))


def test_what_makes_weights_of_all_rows_is_refused():
    X, y = problem("logistic")
    y = (X[:, 0] > 0.0).astype(int)
    boosted = AdaBoostClassifier(DPLogisticRegression(1e4, C=1e6), n_estimators=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        boosted.fit(X, y)
    with pytest.raises(ValueError, match="row weights come from the exact errors of all rows"):
        guarantee_of(boosted)


# Input


@pytest.mark.parametrize(
    "weights",
    [
        np.ones(599),
        np.ones((600, 1)),
        np.full(600, np.nan),
        -np.ones(600),
        "weights",
        [None] * 600,
        np.ma.masked_equal(np.ones(600), 1.0),
        [1j] * 600,
        np.full(600, "2020-01-01", dtype="datetime64[D]"),
    ],
    ids=range(9),
)
def test_bad_weights_are_refused_before_a_charge(weights):
    X, y = problem("logistic")
    ledger = BudgetLedger(epsilon=5.0)
    model = weighted("logistic", ledger=ledger, random_state=None)
    pipeline = DPPipeline([("model", model.__class__(max_sample_weight=1.0))], ledger=ledger)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(ValueError, match="sample_weight must hold one number per row"):
            model.fit(X, y, sample_weight=weights)
        with pytest.raises(ValueError, match="sample_weight must hold one number per row"):
            pipeline.fit(X, y, model__sample_weight=weights)
    assert not ledger.history()


def test_large_weights_count_as_the_largest_and_a_default_is_told():
    X, y = problem("logistic")
    model = weighted("logistic", max_sample_weight=2.0)
    large = np.where(X[:, 1] > 0.0, 1e300, 1.0)
    large[:5] = np.inf
    cut = learned(model.fit(X, y, sample_weight=np.minimum(large, 2.0)))
    assert (learned(model.fit(X, y, sample_weight=large)) == cut).all()
    with pytest.warns(PrivacyWarning, match="weights above 1 count as 1"):
        DPLogisticRegression(random_state=0).fit(X, y, sample_weight=np.ones(len(X)))
    for most in (0.0, -1.0, math.inf, 1e7, "1"):
        with pytest.raises(ValueError, match="max_sample_weight must"):
            DPLogisticRegression(max_sample_weight=most).fit(X, y)


def test_weights_belong_to_a_last_step_that_takes_them():
    X, y = problem("logistic")
    weights = np.ones(len(X))
    pipeline = DPPipeline([("clip", RowNormClipper()), ("model", weighted("logistic"))])
    pipeline.set_params(model__random_state=None)
    for name in ("sample_weight", "clip__sample_weight", "weights"):
        with pytest.raises(TypeError, match=r"DPPipeline.fit\(\) takes"):
            pipeline.fit(X, y, **{name: weights})
    pipeline.fit(X, y, model__sample_weight=None)
    assert not pipeline.guarantee_.caveats
    with pytest.raises(ValueError, match="sample_weight must be None unless the last step"):
        DPPipeline([("clip", RowNormClipper())]).fit(X, y, clip__sample_weight=weights)
    with pytest.raises(ValueError, match="sample_weight must be None with release='query'"):
        weighted("ridge", release="query", n_queries=2).fit(X, y * 0.5, sample_weight=weights)


def test_a_fixed_penalty_is_over_the_largest_weight():
    X, y = problem("ridge", 2000)
    for options in ({}, DELTA, dict(mechanism="sufficient_statistics", **DELTA)):
        model = DPKernelRidge(1e3, alpha=300.0, random_state=0, **RIDGE, **options)
        sizes = []
        for most, weight in ((1.0, 1.0), (10.0, 10.0), (10.0, 1.0)):
            model.set_params(max_sample_weight=most)
            weights = np.full(len(X), weight)
            sizes.append(model.fit(X, y, sample_weight=weights).predict(X).std())
        assert abs(sizes[2] / sizes[0] - 1.0) < 0.1 and sizes[1] > 1.5 * sizes[0]


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_separated_classes_have_no_intervals_with_weights_either(adjacency):
    X, _ = problem("intervals", 3000)
    y = (X[:, 0] > 0.0).astype(int)
    model = weighted("intervals", epsilon=3.0, adjacency=adjacency)
    refused = 0
    for seed in range(3):
        model.set_params(random_state=seed)
        found = model.fit(X, y, sample_weight=np.ones(len(X))).summary_
        refused += np.isnan(found.conf_int()).all()
    assert refused >= 2


@pytest.mark.parametrize("name", ["least squares", "ridge", "ridge by gradients"])
def test_rows_of_weight_zero_say_nothing_of_learned_bounds(name):
    X, y = problem(name.replace("least squares", "ridge"), 4000)
    y = np.where(np.arange(4000) % 5, y, 1e6)
    model = weighted(name, y_bounds="auto")
    low, high = model.fit(X, y, sample_weight=np.arange(4000) % 5 > 0).y_bounds_
    assert -5.0 < low < high < 5.0
