"""What notebooks show: the guarantee in full, wherever the estimator stands."""

import html

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils import estimator_html_repr
from support.configurations import EVERYTHING, fitted, problem

from skdp import DPLogisticRegression, DPPipeline, config_context
from skdp.learner import GuaranteeView
from skdp.model_selection import DPGridSearch
from skdp.preprocessing import DPQuantileScaler, RowNormClipper
from skdp.privacy import Guarantee

OF_ONE = {name.split("-")[0]: name for name in EVERYTHING}  # one configuration of each class


@pytest.fixture(autouse=True)
def known():
    with config_context(known_seeds=True):
        yield


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(400, 3))
    return X, (X[:, 0] > 0).astype(int)


def views(model):
    return model._repr_html_(), model._repr_mimebundle_()["text/html"]


@pytest.mark.parametrize("name", OF_ONE.values(), ids=list(OF_ONE))
def test_every_estimator_with_a_guarantee_shows_it_whole(name):
    model = fitted(name, *problem(name))
    guarantee = getattr(model, "guarantee_", None)
    if not isinstance(guarantee, Guarantee):
        pytest.skip("without a guarantee")
    assert isinstance(model, GuaranteeView)
    for view in views(model):
        assert html.escape(guarantee._claim()) in view
        for text in (guarantee.mechanism, guarantee.source, *guarantee.caveats):
            assert html.escape(text) in view
        assert f"one {guarantee.unit}" in view and guarantee.adjacency in view


def test_within_pipelines_and_searches_of_others_a_line_tells_it(rows):
    X, y = rows
    model = make_pipeline(
        ColumnTransformer([("a", DPQuantileScaler(3.0, 1e-7), [0, 1])], remainder="passthrough"),
        RowNormClipper(),
        DPLogisticRegression(2.0, random_state=0),
    )
    search = GridSearchCV(model, {"dplogisticregression__epsilon": [2.0]}, cv=2).fit(X, y)
    best = search.best_estimator_
    for view in (*views(best), *views(search)):
        assert "epsilon=2, delta=0, one record, replace-one (random_state: noise can be" in view
        if "Fitted attributes" in view:  # before version 1.9 it draws what is not fitted
            scaler = best[0].named_transformers_["a"]
            told = f"epsilon={scaler.guarantee_.epsilon_at(1e-6):.4g} at delta=1e-06, one record"
            assert told in view


def test_steps_and_what_was_found_are_drawn_within(rows):
    X, y = rows
    steps = [("scale", DPQuantileScaler()), ("model", DPLogisticRegression())]
    pipeline = DPPipeline(steps, epsilon=20.0, delta=1e-6)
    for model in (pipeline, pipeline.fit(X, y)):
        view = estimator_html_repr(model)
        assert "sk-serial" in view and "DPQuantileScaler" in view and "DPPipeline" in view
    search = DPGridSearch(DPLogisticRegression(), {"x_norm": [1.0, 2.0]}, epsilon=9.0)
    assert "estimator: DPLogisticRegression" in search._repr_html_()
    view = search.fit(X, y)._repr_html_()
    assert "best_estimator_: DPLogisticRegression" in view
    assert "Budget allocation" in view


def test_what_is_not_fitted_promises_nothing():
    view = DPLogisticRegression()._repr_html_()
    assert "skdp-view" not in view and "one record" not in view
    assert "epsilon=3.0, delta=1e-06, replace-one" in DPPipeline([], 3.0, 1e-6)._repr_html_()
