from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from numpy.testing import assert_allclose
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import skdp
from skdp.inspection import CoefficientDisplay
from skdp.linear_model import DPLinearRegression, DPLogisticRegression
from skdp.pipeline import DPPipeline
from skdp.preprocessing import BoundedScaler

NAMES = ["age", "dose", "hours"]


@pytest.fixture(autouse=True)
def known_seeds():
    with skdp.config_context(known_seeds=True):
        yield


def problem(n=5000):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(-0.5, 0.5, (n, 3)), columns=NAMES)
    return X, X["age"] - 0.5 * X["dose"] + 0.1 * rng.normal(size=n)


def regressor(**options):
    return DPLinearRegression(3.0, y_bounds=(-1, 1), random_state=0, **options)


def ends_of(lines):
    """Ends of horizontal lines, and their places."""
    segments = np.array(lines.get_segments())
    return segments[:, :, 0], segments[:, 0, 1]


def test_lines_are_the_intervals_and_those_of_sampling_alone():
    model = regressor().fit(*problem())
    display = CoefficientDisplay.from_estimator(model, level=0.9, name="blood pressure")
    ends, places = ends_of(display.intervals_)
    assert_allclose(ends, model.conf_int(0.9)[:3])
    assert list(places) == [0, 1, 2]
    assert_allclose(display.line_.get_xdata(), model.coef_)
    # Normal quantiles, 1.645 at 90 %.
    deviations = np.sqrt(np.diag(model.summary_.sampling))[:3]
    inner, _ = ends_of(display.sampling_)
    assert_allclose(np.ptp(inner, axis=1), 2 * 1.644854 * deviations, rtol=1e-6)
    assert np.all(np.ptp(inner, axis=1) < np.ptp(ends, axis=1))
    labels = [text.get_text() for text in display.ax_.get_yticklabels()]
    assert labels == display.names == NAMES
    assert display.ax_.get_title() == "blood pressure"
    bottom, top = display.ax_.get_ylim()
    assert bottom > top  # the first coefficient is the topmost


def test_exponentials_are_the_odds_ratios_on_a_logarithmic_axis():
    X, y = problem()
    model = DPLogisticRegression(3.0, 1e-6, inference=True, random_state=0).fit(X, y > 0.1)
    display = CoefficientDisplay.from_estimator(model, exponentials=True)
    odds = model.odds_ratios()
    assert_allclose(display.line_.get_xdata(), odds["ratio"])
    assert_allclose(ends_of(display.intervals_)[0], odds[["95 % from", "95 % to"]])
    assert display.ax_.get_xscale() == "log"
    assert display.ax_.get_xlabel() == "odds ratio"


def test_a_coefficient_that_noise_hides_has_words_in_place_of_a_line():
    X, y = problem()
    X = X.assign(again=X["hours"])
    model = regressor().fit(X, y)
    display = CoefficientDisplay.from_estimator(model)
    hidden = model.summary_.cannot_tell()[:4]
    assert list(hidden) == [False, False, True, True]
    assert [text.get_text() for text in display.ax_.texts] == ["cannot tell"] * 2
    assert [text.get_position()[1] for text in display.ax_.texts] == [2, 3]
    assert list(ends_of(display.intervals_)[1]) == list(display.line_.get_ydata()) == [0, 1]


def test_a_model_that_did_not_converge_is_drawn_without_a_line():
    summary = replace(regressor().fit(*problem()).summary_, has_converged=False)
    display = CoefficientDisplay.from_summary(summary, name="lost")
    assert len(display.ax_.texts) == 3 and display.ax_.get_legend() is None


def test_pipelines_give_the_names_of_their_columns():
    X, y = problem()
    steps = make_pipeline(BoundedScaler((-0.5, 0.5)), regressor(x_norm=2.0)).fit(X, y)
    assert CoefficientDisplay.from_estimator(steps).names == NAMES
    last = DPLogisticRegression(x_norm=2.0, inference=True)
    steps = [("scale", BoundedScaler((-0.5, 0.5))), ("model", last)]
    private = DPPipeline(steps, epsilon=3.0, delta=1e-6, random_state=0).fit(X, y > 0.0)
    display = CoefficientDisplay.from_estimator(private, exponentials=True)
    assert (display.names, display.quantity) == (NAMES, "odds ratio")


def test_differences_of_coefficients_are_drawn_from_their_summary():
    summary = regressor().fit(*problem()).summary_
    difference = summary.combined([[1.0, -1.0, 0.0, 0.0]], ["age over dose"])
    _, ax = plt.subplots()
    display = CoefficientDisplay.from_summary(difference, ax=ax, quantity="mmHg", color="red")
    assert display.ax_ is ax and ax.get_xlabel() == "mmHg"
    assert display.line_.get_color() == "red"
    assert_allclose(ends_of(display.intervals_)[0], difference.conf_int())


def test_what_has_no_interval_is_refused():
    X, y = problem()
    draw = CoefficientDisplay.from_estimator
    with pytest.raises(ValueError, match=r"estimator must end with .* got LogisticReg"):
        draw(LogisticRegression().fit(X, y > 0))
    model = regressor().fit(X, y)
    with pytest.raises(ValueError, match=r"exponentials must be False .* got True"):
        draw(model, exponentials=True)
    with pytest.raises(ValueError, match=r"level must be .* got 95"):
        draw(model, level=95)
    with pytest.raises(ValueError, match="summary must be a CoefficientSummary; got 3"):
        CoefficientDisplay.from_summary(3)
