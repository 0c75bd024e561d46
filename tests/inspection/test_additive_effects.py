import matplotlib as mpl
import numpy as np
import pandas as pd
import polars as pl
import pytest
from matplotlib import pyplot as plt
from numpy.testing import assert_allclose
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler

from skdp.inspection import AdditiveEffectsDisplay
from skdp.linear_model import DPLinearSVC, DPLogisticRegression
from skdp.preprocessing import BoundedScaler, BoundedSplineTransformer, make_public_preprocessor

BOUNDS = {"age": (0, 100), "gain": (0, 1000)}
CATEGORIES = {"city": ["Bonn", "Ulm"]}


@pytest.fixture(autouse=True)
def closed():
    with mpl.rc_context({"backend": "agg"}):
        yield
        plt.close("all")


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


def test_rows_of_one_norm_have_curves_of_typical_rows():
    X, y = people(1000)
    # Hats of two columns and one category: 1 + 2 * mean of (1 - f)^2 + f^2 over f.
    fitted = model(DPLogisticRegression(8.0, 1e-5, random_state=0), norm="scale").fit(X, y)
    display = AdditiveEffectsDisplay.from_estimator(fitted, n_values=1001)
    coef = fitted[-1].coef_[0, :5]
    curve = display.effects[0].curves[0]
    expected = coef - np.interp(display.effects[0].values, np.linspace(0, 100, 5), coef).mean()
    assert_allclose(curve[::250], expected / np.sqrt(1.0 + 2.0 * 2.0 / 3.0), rtol=0.01)
    # It is what is learned: high in the middle.
    assert curve[len(curve) // 2] > curve[[0, -1]].max() + 0.5


def test_several_classes_have_a_curve_each():
    X, y = people(600)
    y = np.where(X["age"] > 66, "old", np.where(X["age"] > 33, "middle", "young"))
    fitted = make_pipeline(
        BoundedSplineTransformer((0, 100), 4), Normalizer(), DPLogisticRegression(4.0, 1e-5)
    ).fit(X[["age"]], y)
    display = AdditiveEffectsDisplay.from_estimator(fitted)
    assert display.effects[0].curves.shape[0] == len(display.lines_[0]) == 3
    assert len(display.bands_[0]) == 3
    legend = [text.get_text() for text in display.axes_[0].get_legend().get_texts()]
    assert legend == ["middle", "old", "young"]


def test_straight_lines_of_scaled_columns_and_models_without_noise():
    X, y = people()
    fitted = make_pipeline(BoundedScaler([(0, 100), (0, 1000)]), LogisticRegression())
    fitted.fit(X[["age", "gain"]].to_numpy(), y)
    display = AdditiveEffectsDisplay.from_estimator(fitted, columns=["x1"])
    (effect,) = display.effects
    assert_allclose(np.ptp(effect.curves), 2.0 * abs(fitted[-1].coef_[0, 1]))
    assert effect.deviations is None and display.kind is None and display.bands_ == [[]]


def test_plots_take_axes_and_styles():
    X, y = people()
    fitted = model(DPLinearSVC(1.0, 1e-5), norm=None).fit(X, y)
    _, axes = plt.subplots(1, 2)
    display = AdditiveEffectsDisplay.from_estimator(fitted, ax=axes, color="k")
    assert display.axes_[1] is axes[1] and display.figure_ is axes[0].figure
    assert display.lines_[0][0].get_color() == "k"
    assert [ax.get_xlabel() for ax in axes] == ["age", "gain"]
    assert display.plot(n_deviations=0).bands_ == [[], []]
    with pytest.raises(ValueError, match="ax must hold 2 axes, one a column"):
        display.plot(axes[0])
    with pytest.raises(ValueError, match="n_deviations must be a non-negative, finite number"):
        display.plot(n_deviations=-1)


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
    scaled = make_pipeline(BoundedScaler((0, 1000)), StandardScaler(), LogisticRegression())
    with pytest.raises(ValueError, match="nothing but a Normalizer or a RowNormClipper"):
        draw(scaled.fit(numbers, y))
    alone = make_pipeline(StandardScaler(), LogisticRegression()).fit(numbers, y)
    with pytest.raises(ValueError, match=r"columns with a range or with categories, of \[\]"):
        draw(alone)
