import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.preprocessing import FunctionTransformer

from skdp.inspection import PrivacyUtilityDisplay
from skdp.kernel import DPKernelRidge
from skdp.linear_model import DPLogisticRegression, MIPrivateSGDRegressor
from skdp.model_selection import expected_score
from skdp.privacy import BudgetLedger

QUICK = {"epsilons": [0.1, 3.0], "n_repetitions": 3, "random_state": 0}


def rows(n=300, seed=0):
    X = np.random.default_rng(seed).uniform(-0.5, 0.5, size=(n, 3))
    return X, np.where(X[:, 0] > 0, "yes", "no")


def test_scores_rise_with_epsilon_and_rows_to_what_is_possible():
    model = DPLogisticRegression(delta=1e-5)
    few, many = (
        expected_score(model, n, 20, best_score=0.9, class_shares=(0.7, 0.3), **QUICK)
        for n in (500, 20_000)
    )
    assert few.mean[0] + 0.02 < few.mean[1] < many.mean[1]
    assert_allclose(many.mean[1], 0.9, atol=0.02)
    assert_allclose(many.constant.mean(), 0.7, atol=0.02)
    assert few.made_up and few.scoring == "accuracy"
    assert_array_equal(few.epsilons, [0.1, 3.0])


def test_nothing_is_charged_and_nobody_warned(tmp_path):
    ledger = BudgetLedger(tmp_path / "ledger", epsilon=1e-3)
    model = DPLogisticRegression(ledger=ledger, random_state=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table = expected_score(model, 200, 2, **QUICK)
    assert ledger.history() == []
    # The estimator is cloned; its seed would give each fit the same noise.
    assert model.ledger is ledger and model.random_state == 1 and not hasattr(model, "coef_")
    assert len(np.unique(table.scores)) > 2


def test_made_up_targets_have_their_best_r2_within_bounds():
    seen = []

    class Spy(DPKernelRidge):
        def fit(self, X, y):
            seen.append((X, y))
            return super().fit(X, y)

    spy = Spy(y_bounds=(-1, 1), n_components=10)
    options = dict(epsilons=[1.0], n_repetitions=1, random_state=0)
    expected_score(spy, 40_000, 1, best_score=0.7, **options)
    (X, y), *_ = seen
    assert abs(X).max() <= 1.0 and abs(y).max() <= 1.0
    assert_allclose(y.std(), 0.4, atol=0.1)
    # What is known of a target is its mean next to its row.
    parts = np.array_split(y[np.argsort(X[:, 0])], 200)
    known = np.concatenate([np.full(len(part), part.mean()) for part in parts])
    assert_allclose(known.var() / y.var(), 0.7, atol=0.03)
    # A straight line finds most of it, and not all.
    assert Ridge(1e-9).fit(X, y).score(X, y) < 0.7


def test_tables_and_pictures_show_the_same_numbers():
    import matplotlib as mpl
    from matplotlib import pyplot as plt

    table = expected_score(DPLogisticRegression(), 300, 3, **QUICK)
    frame = table.to_frame()
    assert list(frame) == ["epsilon", "mean", "standard_error", "10%", "90%"]
    assert_array_equal(frame["epsilon"], [0.1, 3.0, np.inf])
    assert_allclose(frame["mean"], [*table.mean, table.without_privacy.mean()])
    spread = table.scores.std(axis=1, ddof=1) / np.sqrt(3)
    assert_allclose(frame["standard_error"][:2], spread)
    assert_allclose(frame["90%"][:2], table.quantile(0.9))
    assert f"{table.mean[0]:.3f}" in str(table) and "made-up rows" in str(table)
    with mpl.rc_context({"backend": "agg"}):
        display = table.plot(color="k")
        assert isinstance(display, PrivacyUtilityDisplay)
        assert_allclose(display.lines_[0].get_ydata(), table.mean)
        labels = [line.get_label() for line in display.lines_[1:]]
        assert labels == ["without privacy", "always the same answer"]
        plt.close("all")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_samples": 0}, "n_samples must be a positive int; got 0"),
        ({"n_features": None}, "n_features must be a positive int; got None"),
        ({"epsilons": []}, r"epsilons must be a list of positive numbers; got \[\]"),
        ({"epsilons": [0.0]}, "epsilons must be a positive, finite number"),
        ({"best_score": 1.0}, "best_score must be less than 1"),
        ({"best_score": 0.6, "class_shares": (0.7, 0.3)}, "best_score must be above the share"),
        ({"class_shares": (0.7, 0.7)}, "class_shares must be two or more positive numbers"),
        ({"scoring": "wishes"}, "^scoring must be None, a name .*; got 'wishes'.$"),
        ({"estimator": LogisticRegression()}, "estimator must have one parameter epsilon"),
        ({"estimator": MIPrivateSGDRegressor()}, "estimator must have one parameter epsilon"),
        ({"estimator": FunctionTransformer()}, "estimator must be a classifier or a regressor"),
        ({"estimator": DPKernelRidge(), "class_shares": (0.5, 0.5)}, "class_shares must be None"),
        ({"X_public": [[1.0]], "n_features": None}, "y_public must hold the targets"),
        ({"X_public": [[1.0]], "y_public": [1]}, "n_features must be None with X_public"),
        ({"estimator": DPLogisticRegression(classes=[1, 2, 3]), "class_shares": (0.5, 0.5)}, "3"),
        ({"estimator": DPLogisticRegression(x_norm=-1.0)}, "x_norm must be"),
    ],
)
def test_bad_input_is_refused(change, message):
    given = {"estimator": DPLogisticRegression(), "n_samples": 100, "n_features": 2, **change}
    with pytest.raises(ValueError, match=message):
        expected_score(**given)


def test_made_up_rows_are_in_the_units_that_the_estimator_was_told():
    seen = []

    class Spy(DPKernelRidge):
        def fit(self, X, y):
            seen.append((X, y))
            return super().fit(X, y)

    expected_score(Spy(y_bounds=(50, 150)), 100, 2, epsilons=[1.0], n_repetitions=1)
    (_, y), *_ = seen
    assert 50 <= y.min() < 80 and 120 < y.max() <= 150
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # bounds that nobody told are those of the rows
        expected_score(DPKernelRidge(), 100, 2, epsilons=[1.0], n_repetitions=1)
    # Rows of norm 1 would hardly tell from the centre of a ball of 1,000.
    small = DPLogisticRegression(x_norm=1e3, classes=["a", "b", "c"])
    table = expected_score(small, 3000, 2, epsilons=[10.0], n_repetitions=2, random_state=0)
    assert table.mean[0] > table.constant.mean() + 0.1
