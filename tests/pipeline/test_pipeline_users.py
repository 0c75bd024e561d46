"""Pipelines for users: what all steps promise is for users."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn import config_context
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, cross_val_score
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import Normalizer

from skdp.audit import replay
from skdp.kernel import DPOnlineKernelRegressor
from skdp.linear_model import DPLinearSVC, DPLogisticRegression
from skdp.pipeline import DPPipeline, guarantee_of
from skdp.preprocessing import (
    DPOneHotEncoder,
    DPQuantileScaler,
    DPSimpleImputer,
    make_private_preprocessor,
)
from skdp.privacy import BudgetLedger


def crowd(n_users=80, seed=0):
    rng = np.random.default_rng(seed)
    groups = rng.permutation(np.repeat(np.arange(n_users), rng.integers(1, 30, n_users)))
    X = rng.uniform(-1.0, 1.0, size=(len(groups), 3))
    return X, (X[:, 0] > 0).astype(int), groups


def pipeline(*steps, **options):
    steps = steps or (("length", Normalizer()),)
    options = {"epsilon": 1.0, "delta": 1e-6, "random_state": 0, **options}
    return DPPipeline([*steps, ("model", DPLogisticRegression())], **options)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("kind", [DPLogisticRegression, DPLinearSVC])
def test_a_pipeline_for_users_is_its_model_for_users(kind, adjacency, delta):
    X, y, groups = crowd()
    ledger = BudgetLedger(epsilon=2.0, delta=1e-5)
    options = dict(adjacency=adjacency, ledger=ledger)
    fitted = DPPipeline([("length", Normalizer()), ("model", kind())], 1.0, delta, **options)
    assert fitted.fit(X, y, groups=groups) is fitted
    claim = fitted.guarantee_
    assert (claim.epsilon, claim.delta, claim.unit) == (1.0, delta, "user")
    assert claim.adjacency == adjacency
    assert claim.refined is None or claim.refined.unit == "user"
    assert fitted["model"].guarantee_.unit == "user"
    assert fitted["model"].guarantee_._plain() == claim._plain()
    ((name, share, told),) = fitted.budget_
    assert (name, share) == ("model", 1.0) and "one user" in told
    (entry,) = ledger.history()
    assert entry.guarantee.unit == ledger.spent().unit == "user"
    with pytest.raises(ValueError, match="unit 'user'"):
        fitted.fit(X, y)


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize(
    "step",
    [
        DPQuantileScaler(),
        DPSimpleImputer(),
        Pipeline([("inner", DPQuantileScaler())]),
        FeatureUnion([("inner", DPQuantileScaler())]),
        ColumnTransformer([("inner", DPQuantileScaler(), [0, 1]), ("rest", Normalizer(), [2])]),
    ],
    ids=lambda step: type(step).__name__,
)
def test_every_step_learns_from_users(step, adjacency):
    X, y, groups = crowd()
    ledger = BudgetLedger(epsilon=2.0, delta=1e-5)
    whole = pipeline(("first", step), ledger=ledger, random_state=None, adjacency=adjacency)
    whole.fit(X, y, groups=groups)
    (entry,) = ledger.history()
    claim = whole.guarantee_
    assert (claim.epsilon, claim.delta, claim.unit) == (1.0, 1e-6, "user")
    assert (entry.guarantee.epsilon, entry.guarantee.unit) == (1.0, "user")
    assert [path.partition("__")[0] for path, *_ in whole.budget_] == ["first", "model"]
    assert all("one user" in words for _, share, words in whole.budget_ if share)
    assert whole.predict(X[:3]).shape == (3,)
    with pytest.raises(ValueError, match="unit 'user'"):
        whole.fit(X, y)


def raw_visits(n_users=60, seed=0):
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(n_users), 3)
    frame = pd.DataFrame(
        {"dose": rng.lognormal(3.0, 1.0, 3 * n_users), "ward": rng.choice(["A", "B"], 3 * n_users)}
    )
    return frame, (frame["dose"] > 20).astype(int).to_numpy(), groups


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_hostile_users_move_a_raw_frame_no_further_than_is_claimed(adjacency):
    frame, y, groups = raw_visits()
    prepare = make_private_preprocessor({"numeric": ["dose"], "categorical": ["ward"]})
    steps = [("prepare", prepare), ("model", DPLogisticRegression())]
    whole = DPPipeline(steps, 1.0, 1e-3, adjacency=adjacency)
    report = replay(whole, frame, y, groups=groups, n=48, random_state=0)
    assert not report.findings and report.share > 0.8


def test_a_user_with_many_names_has_one_vote():
    names = np.array([f"name {i}" for i in range(3000)] + ["A"] * 3000, dtype=object)[:, None]
    groups = np.r_[np.zeros(3000), np.arange(1, 3001)]
    encoder = DPOneHotEncoder(1.0, 1e-6).fit(names, groups=groups)
    assert encoder.categories_[0].tolist() == ["A"]


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_names_of_one_user_have_the_chance_of_one_name(adjacency):
    rng = np.random.default_rng(0)
    names, groups = rng.integers(0, 3, (200, 2)).astype(float), np.arange(200) // 2
    encoder = DPOneHotEncoder(2.0, 1e-4, adjacency=adjacency)
    report = replay(encoder, names, groups=groups, n=60, random_state=0)
    assert report.passed and report.share > 0.9, str(report)
    # A name that no user has most often is not there, however often it is tried.
    names = np.array([f"name {i}" for i in range(20_000)] + ["A"] * 20_001, dtype=object)
    groups = np.r_[np.zeros(40_001)]
    encoder = DPOneHotEncoder(200.0, 0.5, adjacency=adjacency).fit(names[:, None], groups=groups)
    assert set(encoder.categories_[0]) <= {"A"}


def test_a_step_without_groups_is_refused_before_a_charge():
    X, y, groups = crowd()
    ledger = BudgetLedger(epsilon=2.0, delta=1e-5)

    class ForRecords(DPQuantileScaler):
        def fit(self, X, y=None):
            return super().fit(X)

    whole = pipeline(("bounds", ForRecords()), ledger=ledger, random_state=None)
    with pytest.raises(ValueError, match="a step does not accept them: Step 'bounds'"):
        whole.fit(X, y, groups=groups)
    assert not ledger.history()


def test_frozen_steps_must_have_been_fitted_for_users():
    X, y, groups = crowd()
    bounds = DPQuantileScaler().fit(X)
    frozen = pipeline(("bounds", FrozenEstimator(bounds)))
    with pytest.raises(ValueError, match="'bounds' has a guarantee for one record"):
        frozen.fit(X, y, groups=groups)
    frozen.fit(X, y)  # of records all are
    free = DPPipeline([("length", Normalizer())]).fit(X)
    assert pipeline(("free", FrozenEstimator(free))).fit(X, y, groups=groups).guarantee_.unit == (
        "user"
    )
    users = Scores().fit(X, y, groups=groups)
    both = pipeline(("scores", FrozenEstimator(users))).fit(X, y, groups=groups).guarantee_
    assert both.unit == "user" and both.epsilon_at(1e-6) > 1.2
    with pytest.raises(ValueError, match="'scores' has a guarantee for one user"):
        pipeline(("scores", FrozenEstimator(users))).fit(X, y)


class Scores(DPLogisticRegression):
    """A transformer that was fitted for users."""

    def transform(self, X):
        return np.column_stack([X, self.decision_function(X)])


# Pipelines and searches of scikit-learn's own


def test_units_are_not_mixed_in_the_guarantee_of_a_pipeline():
    X, y, groups = crowd()
    mixed = make_pipeline(DPQuantileScaler(), DPLogisticRegression())
    mixed.fit(X, y, dplogisticregression__groups=groups)
    with pytest.raises(ValueError, match=r"'dplogisticregression' has .* one user.*one record"):
        guarantee_of(mixed)
    plain = make_pipeline(Normalizer(), DPLogisticRegression(0.5))
    plain.fit(X, y, dplogisticregression__groups=groups)
    assert guarantee_of(plain).unit == "user" and guarantee_of(plain).epsilon == 0.5


def test_an_outer_router_passes_groups_to_a_pipeline():
    X, y, groups = crowd()
    with config_context(enable_metadata_routing=True):
        inner = pipeline().set_fit_request(groups=True)
        outer = Pipeline([("same", "passthrough"), ("inner", inner)]).fit(X, y, groups=groups)
        scores = cross_val_score(
            inner, X, y, cv=GroupKFold(3), params={"groups": groups}, error_score="raise"
        )
    assert outer["inner"].guarantee_.unit == "user"
    assert_array_equal(
        outer["inner"]["model"].coef_, pipeline().fit(X, y, groups=groups)["model"].coef_
    )
    assert len(scores) == 3


@pytest.mark.parametrize("name", [True, "ids"])
@pytest.mark.parametrize("refit", [True, False])
def test_a_search_whose_fits_are_for_users_has_no_guarantee(refit, name):
    X, y, groups = crowd()
    ids = {"groups" if name is True else name: groups}
    with config_context(enable_metadata_routing=True):
        for model in (DPLogisticRegression(), make_pipeline(Normalizer(), DPLogisticRegression())):
            last = model[-1] if isinstance(model, Pipeline) else model
            last.set_fit_request(groups=name)
            grid = {k: [1.0, 2.0] for k in model.get_params() if k.endswith("epsilon")}
            search = GridSearchCV(model, grid, cv=KFold(2), refit=refit).fit(X, y, **ids)
            with pytest.raises(ValueError, match="The fits of the search use groups"):
                guarantee_of(search, public=("scores", "splits"))


# Streams


def test_a_stream_of_users_is_that_of_its_last_step():
    X, _, groups = crowd()
    ledger = BudgetLedger(epsilon=5.0)
    model = DPOnlineKernelRegressor(n_components=10, y_bounds=(-1.0, 1.0), max_calls_per_user=2)
    whole = DPPipeline([("length", Normalizer()), ("model", model)], 1.0, ledger=ledger)
    alone = clone(model)
    for rows in (slice(0, 400), slice(400, None)):
        whole.partial_fit(X[rows], X[rows, 0], groups=groups[rows])
        alone.partial_fit(Normalizer().transform(X[rows]), X[rows, 0], groups=groups[rows])
    assert whole.guarantee_._plain("user") == alone.guarantee_._plain("user")
    assert whole.guarantee_.unit == "user" and ledger.spent().unit == "user"
    with pytest.raises(ValueError, match="groups"):
        whole.partial_fit(X, X[:, 0])
