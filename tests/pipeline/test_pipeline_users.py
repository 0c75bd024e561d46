"""Pipelines for users: the last step alone learns, and what it promises is for users."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn import config_context
from sklearn.base import BaseEstimator, clone
from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, cross_val_score
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import Normalizer, OneHotEncoder
from support.releases import transcript

from skdp.distributed import DistributedDPClassifier
from skdp.estimators import StatedGuarantee
from skdp.kernel import DPKernelRidge, DPOnlineKernelRegressor
from skdp.linear_model import DPLinearSVC, DPLogisticRegression
from skdp.pipeline import DPPipeline, guarantee_of
from skdp.preprocessing import BoundedScaler, BoundedSplineTransformer, DPQuantileScaler
from skdp.privacy import ApproxDP, BudgetLedger


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
    ((name, share, told),) = fitted.division_
    assert (name, share) == ("model", 1.0) and "one user" in told
    (entry,) = ledger.history()
    assert entry.guarantee.unit == ledger.spent().unit == "user"
    with pytest.raises(ValueError, match="differ in one user"):
        fitted.fit(X, y)


@pytest.mark.parametrize(
    "last",
    [
        DPKernelRidge(n_components=10, y_bounds=(-1.0, 1.0)),
        DPOnlineKernelRegressor(n_components=10, y_bounds=(-1.0, 1.0)),
        DistributedDPClassifier(n_nodes=4),
        DistributedDPClassifier(n_nodes=4, algorithm="paper"),
    ],
    ids=str,
)
def test_whoever_takes_groups_may_be_the_last_step(last):
    X, y, groups = crowd()
    y = y if hasattr(last, "n_nodes") else 2.0 * y - 1.0
    ledger = BudgetLedger(epsilon=2.0, delta=1e-5)
    whole = DPPipeline([("length", Normalizer()), ("model", last)], 1.0, 1e-6, ledger=ledger)
    claim = whole.fit(X, y, groups=groups).guarantee_
    assert (claim.epsilon, claim.delta, claim.unit) == (1.0, 1e-6, "user")
    alone = clone(last).set_params(epsilon=1.0, delta=1e-6).fit(X, y, groups=groups)
    spent = alone.guarantee_
    assert spent.unit == "user"
    assert claim.delta_at(0.3) == pytest.approx(spent.delta_at(0.3), rel=1e-4)
    assert [entry.guarantee.unit for entry in ledger.history()] == ["user"]


@pytest.mark.parametrize("to", [np.asarray, sparse.csr_array, pd.DataFrame], ids=lambda to: "X")
def test_groups_reach_the_last_step_as_they_are(to):
    X, y, groups = crowd()
    names = pd.Series(groups).map("patient {}".format)
    X = to(X)
    if isinstance(X, pd.DataFrame):
        X.columns = list("abc")
    asked = {}
    for ids in (groups, names, list(names)):
        records, _ = transcript(lambda ids=ids: pipeline().fit(X, y, groups=ids))
        asked[type(ids)] = [record.asked for record in records]
    model = DPLogisticRegression(1.0, 1e-6, random_state=0)
    rows = Normalizer().fit_transform(X)
    alone, _ = transcript(lambda: model.fit(rows, y, groups=groups))
    for found in asked.values():
        assert_array_equal(found[0], alone[0].asked)
        assert len(found) == len(alone)


def test_without_groups_nothing_has_changed():
    X, y, _ = crowd()
    plain = pipeline().fit(X, y)
    assert plain.guarantee_.unit == "record"
    assert_array_equal(plain["model"].coef_, pipeline().fit(X, y, groups=None)["model"].coef_)


@pytest.mark.parametrize(
    "step",
    [
        DPQuantileScaler(),
        Pipeline([("inner", DPQuantileScaler())]),
        FeatureUnion([("inner", DPQuantileScaler())]),
        ColumnTransformer([("inner", DPQuantileScaler(), [0, 1])]),
    ],
    ids=lambda step: type(step).__name__,
)
def test_a_step_that_learns_from_records_is_refused_before_a_charge(step):
    X, y, groups = crowd()
    ledger = BudgetLedger(epsilon=2.0, delta=1e-5)
    with pytest.raises(ValueError, match="groups must be None where a step learns") as told:
        pipeline(("bounds", step), ledger=ledger, random_state=None).fit(X, y, groups=groups)
    assert "bound_contributions" in str(told.value) and "'bounds" in str(told.value)
    assert not ledger.history()


def test_a_last_step_that_takes_no_groups_is_refused():
    X, y, groups = crowd()
    alone = DPPipeline([("bounds", DPQuantileScaler())])
    with pytest.raises(ValueError, match="groups must be None where the last step takes none"):
        alone.fit(X, y, groups=groups)
    within = DPPipeline([("both", make_pipeline(Normalizer(), DPLogisticRegression()))])
    with pytest.raises(ValueError, match="'both__dplogisticregression'"):
        within.fit(X, y, groups=groups)


def test_what_the_model_refuses_for_users_costs_nothing():
    X, y, groups = crowd()
    ledger = BudgetLedger(epsilon=2.0, delta=1e-5)
    steps = [("length", Normalizer()), ("model", DPLogisticRegression(mechanism="output"))]
    with pytest.raises(ValueError, match="mechanism must be 'auto' or 'gradient' with groups"):
        DPPipeline(steps, ledger=ledger).fit(X, y, groups=groups)
    for ids, message in [
        (groups[1:], "one id a row"),
        (np.where(groups, groups, np.nan), "missing"),
    ]:
        with pytest.raises(ValueError, match=message) as told:
            pipeline(ledger=ledger, random_state=None).fit(X, y, groups=ids)
        assert str(len(y)) not in str(told.value)
    assert not ledger.history()


def test_steps_that_learn_nothing_may_come_before():
    X, y, groups = crowd()
    spline = ("spline", BoundedSplineTransformer(bounds=(-1.0, 1.0)))
    scaled = ("scale", BoundedScaler(bounds=(-1.0, 1.0)))
    for step in (spline, scaled):
        assert pipeline(step).fit(X, y, groups=groups).guarantee_.unit == "user"
    codes = (np.abs(X) > 0.5).astype(int)
    known = OneHotEncoder(categories=[[0, 1]] * 3, handle_unknown="ignore")
    assert pipeline(("codes", known)).fit(codes, y, groups=groups).guarantee_.unit == "user"


def test_public_rules_read_the_number_of_users():
    # Of a number of rows and of users for which the rule of splines differs.
    X, y, _ = crowd(n_users=400)
    groups = np.arange(len(y)) // 25
    spline = ("spline", BoundedSplineTransformer(bounds=(-1.0, 1.0), n_splines="auto"))
    n_splines = [
        pipeline(spline, epsilon=1.0).fit(X[rows], y[rows], groups=ids)["spline"].n_splines
        for rows, ids in [
            (slice(None), groups),
            (slice(None, None, 25), None),
            (slice(None), None),
        ]
    ]
    assert n_splines[0] == n_splines[1] < n_splines[2]


def test_declared_steps_are_caveats_of_a_guarantee_for_users():
    X, y, groups = crowd()
    fitted = pipeline(("bounds", Normalizer()), public=("bounds",)).fit(X, y, groups=groups)
    assert "step 'bounds' was declared public" in fitted.guarantee_.caveats
    assert fitted.guarantee_.unit == "user"
    nothing = DPPipeline([("length", Normalizer())], public=("length",))
    assert nothing.fit(X, y, groups=groups).guarantee_.unit == "user"


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


class Careless(DPLogisticRegression):
    """Takes groups, and learns from records."""

    def fit(self, X, y, groups=None):
        return super().fit(X, y)


def test_a_step_that_forgets_the_groups_is_found_out():
    X, y, groups = crowd()
    careless = DPPipeline([("model", Careless())])
    with pytest.raises(RuntimeError, match="'model' spent more than was planned"):
        careless.fit(X, y, groups=groups)
    assert not hasattr(careless, "guarantee_")


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
            with pytest.raises(ValueError, match="The fits of the search are for users"):
                guarantee_of(search, public=("scores", "splits"))


def test_groups_of_a_search_that_routes_nothing_choose_folds_and_protect_rows():
    X, y, groups = crowd()
    search = GridSearchCV(DPLogisticRegression(), {"epsilon": [0.5, 1.0]}, cv=GroupKFold(2))
    search.fit(X, y, groups=groups)
    assert guarantee_of(search, public=("scores", "splits")).unit == "record"


# Streams


class Stream(StatedGuarantee, BaseEstimator):
    """Counts calls, with a guarantee for whom they are."""

    def __init__(
        self, epsilon=1.0, delta=0.0, adjacency="replace-one", random_state=None, ledger=None
    ):
        self.epsilon, self.delta, self.adjacency = epsilon, delta, adjacency
        self.random_state, self.ledger = random_state, ledger

    def fit(self, X, y=None, groups=None):
        return self.partial_fit(X, y, groups)

    def partial_fit(self, X, y=None, groups=None):
        unit = "record" if groups is None else "user"
        self.guarantee_ = ApproxDP(self.epsilon, self.delta, unit=unit)
        self.groups_ = groups
        return self


def test_a_stream_has_groups_in_all_its_calls_or_in_none():
    X, y, groups = crowd()
    stream = DPPipeline([("length", Normalizer()), ("model", Stream())])
    stream.partial_fit(X, y, groups=groups)
    stream.partial_fit(X, y, groups)
    assert stream.guarantee_.unit == "user"
    assert stream["model"].groups_ is groups
    with pytest.raises(ValueError, match="groups must be given in all calls of a stream"):
        stream.partial_fit(X, y)
    rows = DPPipeline([("length", Normalizer()), ("model", Stream())]).partial_fit(X, y)
    assert rows.guarantee_.unit == "record" and rows["model"].groups_ is None
    with pytest.raises(ValueError, match="groups must be given in all calls of a stream"):
        rows.partial_fit(X, y, groups=groups)


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


def test_a_stream_for_users_refuses_what_was_frozen_for_records():
    X, y, groups = crowd()
    frozen = FrozenEstimator(DPQuantileScaler().fit(X))
    stream = DPPipeline([("bounds", frozen), ("model", Stream())])
    with pytest.raises(ValueError, match="'bounds' has a guarantee for one record"):
        stream.partial_fit(X, y, groups=groups)
    stream.partial_fit(X, y)
    public = DPPipeline([("l", Normalizer()), ("model", Stream())], public=("l",))
    told = public.partial_fit(X, y, groups=groups).guarantee_
    assert told.unit == "user" and told.caveats == ("step 'l' was declared public",)
