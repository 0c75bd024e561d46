"""What a picture of privacy profiles shows, read from the picture."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.exceptions import NotFittedError

from skdp import DPLogisticRegression
from skdp.inspection import PrivacyProfileDisplay
from skdp.privacy import ApproxDP, GaussianDP

plt = pytest.importorskip("matplotlib.pyplot")


def test_curves_are_the_profiles_of_the_guarantees():
    given = {"pure": ApproxDP(1.0), "gaussian": GaussianDP(0.3), "point": ApproxDP(0.5, 1e-6)}
    display = PrivacyProfileDisplay.from_guarantees(given, name="three", max_epsilon=3.0)
    assert display.epsilons[0] == 0.0 and display.epsilons[-1] == 3.0
    for line, (name, guarantee) in zip(display.lines_, given.items(), strict=True):
        assert line.get_label() == name
        deltas = line.get_ydata()
        seen = np.isfinite(deltas)
        assert_array_equal(deltas[seen], guarantee.delta_at(display.epsilons[seen]))
        assert (guarantee.delta_at(display.epsilons[~seen]) < 1e-7).all()
    (point,) = display.points_
    assert point.get_xydata().tolist() == [[0.5, 1e-6]]
    assert display.ax_.get_title() == "three" and display.ax_.get_yscale() == "log"
    assert "replace-one, one record" in display.ax_.get_xlabel()
    display.figure_.canvas.draw()


def test_a_model_has_the_profile_that_is_behind_its_point():
    X = np.random.default_rng(0).uniform(-1.0, 1.0, size=(500, 2))
    model = DPLogisticRegression(delta=1e-5).fit(X, X[:, 0] > 0)
    figure, ax = plt.subplots()
    display = PrivacyProfileDisplay.from_estimator(model, ax=ax, color="tab:green")
    assert display.ax_ is ax and display.figure_ is figure
    (line,) = display.lines_
    assert line.get_label() == "DPLogisticRegression" and line.get_color() == "tab:green"
    assert line.get_ydata()[0] == model.guarantee_.delta_at(0.0)
    with pytest.raises(NotFittedError):
        PrivacyProfileDisplay.from_estimator(DPLogisticRegression())


@pytest.mark.parametrize("given", [[], {}, 1.0, [1.0], {"one": 1.0}])
def test_what_is_no_guarantee_is_refused(given):
    with pytest.raises(ValueError, match=r"^guarantees must be a Guarantee, a list of them or"):
        PrivacyProfileDisplay.from_guarantees(given)
