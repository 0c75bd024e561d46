from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.model_selection import GridSearchCV, KFold

from skdp.inspection import PrivacyUtilityDisplay
from skdp.linear_model import DPLogisticRegression
from skdp.privacy import ApproxDP


def rows(n=400):
    X = np.random.default_rng(0).uniform(-0.5, 0.5, size=(n, 3))
    return X, (X[:, 0] > 0).astype(int)


def stage(epsilon, score):
    return SimpleNamespace(epsilon=epsilon, score=score, standard_error=0.02)


def test_numbers_are_drawn_in_the_order_of_epsilon():
    display = PrivacyUtilityDisplay(
        [1.0, 0.1, 0.3],
        [0.8, 0.6, 0.7],
        [0.01, 0.03, 0.02],
        bands=[[0.7, 0.5, 0.6], [0.9, 0.7, 0.8]],
        references={"without privacy": 0.9, "always no": 0.5},
        chosen=1.0,
        target=0.75,
        price="all of it",
        score_name="accuracy",
    ).plot(color="C3")
    curve, *references = display.lines_
    assert_allclose(curve.get_data(), [[0.1, 0.3, 1.0], [0.6, 0.7, 0.8]])
    assert curve.get_color() == "C3"
    assert [line.get_ydata()[0] for line in references] == [0.9, 0.5]
    assert display.chosen_.get_xdata()[0] == 1.0
    first, _, last = display.errors_[2][0].get_segments()
    assert_allclose([first[:, 1], last[:, 1]], [[0.57, 0.63], [0.79, 0.81]])
    assert display.band_ is not None
    ax = display.ax_
    assert ax.figure is display.figure_ and ax.get_title() == "all of it"
    assert (ax.get_xscale(), ax.get_ylabel()) == ("log", "accuracy")
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == ["private", "without privacy", "always no", "target", "chosen: epsilon 1"]


def test_a_search_shows_its_stages_and_what_it_spent():
    search = SimpleNamespace(
        stages_=[stage(0.1, 0.6), stage(0.2, np.nan), stage(0.4, 0.81)],  # noise may say nothing
        target_score=0.75,
        best_epsilon_=0.4,
        reached_=True,
        spent_=ApproxDP(0.62, 1e-5),
        scoring="accuracy",
    )
    display = PrivacyUtilityDisplay.from_search(search, references={"without privacy": 0.9})
    assert_allclose(display.lines_[0].get_data(), [[0.1, 0.2, 0.4], [0.6, np.nan, 0.81]])
    assert display.chosen_.get_xdata()[0] == 0.4
    assert "epsilon=0.62, delta=1e-05" in display.ax_.get_title()
    search.reached_, search.scoring, search.estimator = False, None, DPLogisticRegression()
    missed = PrivacyUtilityDisplay.from_search(search)
    assert missed.ax_.get_title().startswith("target not reached; spent by the whole search")
    assert missed.score_name == display.score_name == "accuracy"
    with pytest.raises(ValueError, match="search must be a fitted DPEpsilonSearch"):
        PrivacyUtilityDisplay.from_search(DPLogisticRegression())


def test_of_public_searches_the_best_of_each_epsilon_is_shown():
    X, y = rows()
    grid = {"epsilon": [1.0, 0.1], "C": ["auto", 1e-4]}
    search = GridSearchCV(DPLogisticRegression(random_state=None), grid, cv=KFold(4)).fit(X, y)
    means = search.cv_results_["mean_test_score"]
    tried = np.array([point["epsilon"] for point in search.cv_results_["params"]])
    display = PrivacyUtilityDisplay.from_cv_results(search)
    best = [means[tried == epsilon].max() for epsilon in (0.1, 1.0)]
    assert_allclose(display.lines_[0].get_data(), [[0.1, 1.0], best])
    place = np.flatnonzero((tried == 1.0) & (means == best[1]))[0]
    folds = [search.cv_results_[f"split{k}_test_score"][place] for k in range(4)]
    assert_allclose(display.errors[1], np.std(folds, ddof=1) / 2.0)
    same = PrivacyUtilityDisplay.from_cv_results(search.cv_results_)
    assert_allclose(same.lines_[0].get_ydata(), best)
    with pytest.raises(ValueError, match="parameter 'model__epsilon'; got"):
        PrivacyUtilityDisplay.from_cv_results(search, parameter="model__epsilon")


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(ValueError, match=r"scores must hold numbers of shape \(2,\)"):
        PrivacyUtilityDisplay([0.1, 1.0], [0.5]).plot()
    with pytest.raises(ValueError, match="epsilons must be a list of numbers; got 'all'"):
        PrivacyUtilityDisplay("all", [0.5]).plot()
    with pytest.raises(ValueError, match=r"epsilons must be a positive, finite number; got 0\.0"):
        PrivacyUtilityDisplay([0.0], [0.5]).plot()
    with pytest.raises(ValueError, match=r"bands must hold numbers of shape \(2, 1\)"):
        PrivacyUtilityDisplay([1.0], [0.5], bands=[0.1]).plot()
    with pytest.raises(ValueError, match=r"references\['x'\] must be a finite number"):
        PrivacyUtilityDisplay([1.0], [0.5], references={"x": np.nan}).plot()
