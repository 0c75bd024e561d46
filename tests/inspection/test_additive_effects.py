import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skdp.inspection import AdditiveEffectsDisplay
from skdp.linear_model import DPLinearRegression, DPLogisticRegression
from skdp.preprocessing import BoundedScaler, make_public_preprocessor

BOUNDS = {"age": (0, 100), "gain": (0, 1000)}
CATEGORIES = {"city": ["Bonn", "Ulm"]}


def people(n=400, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.uniform(0, 100, n),
            "gain": rng.uniform(0, 1000, n),
            "city": rng.choice(["Bonn", "Ulm"], n),
        }
    )
    return frame, (abs(frame["age"] - 50) < 25).to_numpy().astype(int)


def model(classifier, n_splines=5, **options):
    prepare = make_public_preprocessor(
        BOUNDS, CATEGORIES, log=["gain"], n_splines=n_splines, **options
    )
    return make_pipeline(prepare, classifier)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize("is_sparse", [False, True])
def test_curves_are_what_columns_add_to_the_score(frame, is_sparse):
    X, y = people()
    options = dict(norm=None, sparse=is_sparse)
    fitted = model(DPLogisticRegression(x_norm=2.0, mechanism="output"), **options)
    fitted.fit(frame(X.to_dict("list")), y)
    display = AdditiveEffectsDisplay.from_estimator(fitted, columns=["gain", "age", "city"])
    assert [effect.column for effect in display.effects] == ["gain", "age", "city"]
    assert (display.kind, display.classes) == ("exact", None)
    for effect in display.effects:
        rows = X.iloc[[0] * len(effect.values)].assign(**{effect.column: effect.values})
        scores = fitted.decision_function(frame(rows.to_dict("list")))
        assert_allclose(effect.curves[0], scores - scores.mean(), atol=1e-12)
        out = fitted[0].transform(frame(rows.to_dict("list")))
        out = out.toarray() if is_sparse else out
        spread = fitted[-1].coef_noise_.of(out - out.mean(axis=0), np.arange(out.shape[1]))
        assert_allclose(effect.deviations, spread, rtol=1e-9)
    gain, age, city = (effect.values for effect in display.effects)
    assert (gain[0], gain[-1], age[0], age[-1]) == (0.0, 1000.0, 0.0, 100.0)
    assert list(city) == ["Bonn", "Ulm"]
    assert np.isin(fitted[0]["columns"].named_transformers_["log"].knots_[0], gain).all()


def test_curves_of_a_regressor_are_what_columns_add_to_the_prediction():
    X, _ = people(4000)
    y = np.sin(X["age"] / 20.0) + 0.5 * (X["city"] == "Ulm")
    fitted = model(DPLinearRegression(8.0, 1e-5, x_norm=2.0, y_bounds=(-1, 2)), norm=None).fit(
        X, y
    )
    display = AdditiveEffectsDisplay.from_estimator(fitted, columns=["age", "city"])
    assert (display.kind, display.classes) == (None, None)
    for effect in display.effects:
        rows = X.iloc[[0] * len(effect.values)].assign(**{effect.column: effect.values})
        predicted = fitted.predict(rows)
        assert effect.curves.shape == (1, len(effect.values))
        assert_allclose(effect.curves[0], predicted - predicted.mean(), atol=1e-12)


def test_what_cannot_be_drawn_is_refused():
    X, y = people()
    numbers = X[["age", "gain"]]
    fitted = model(DPLogisticRegression(), norm=None).fit(X, y)
    draw = AdditiveEffectsDisplay.from_estimator
    with pytest.raises(ValueError, match=r"columns must name .* got \['wage'\]"):
        draw(fitted, columns=["wage"])
    with pytest.raises(ValueError, match="columns must be a list of names; got 'age'"):
        draw(fitted, columns="age")
    with pytest.raises(ValueError, match="estimator must be a pipeline"):
        draw(fitted[-1])
    with pytest.raises(ValueError, match="n_values must be a positive int; got 0"):
        draw(fitted, n_values=0)
    two = make_pipeline(BoundedScaler((0, 1000)), LinearRegression())
    with pytest.raises(ValueError, match="linear model of classes or of one target"):
        draw(two.fit(numbers, np.column_stack([y, y])))
    scaled = make_pipeline(BoundedScaler((0, 1000)), StandardScaler(), LogisticRegression())
    with pytest.raises(ValueError, match="only a Normalizer or RowNormClipper between"):
        draw(scaled.fit(numbers, y))
    alone = make_pipeline(StandardScaler(), LogisticRegression()).fit(numbers, y)
    with pytest.raises(ValueError, match=r"columns that have a range or categories, among \[\]"):
        draw(alone)
