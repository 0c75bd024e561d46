import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.interpolate import BSpline
from sklearn.preprocessing import SplineTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks

from skdp.preprocessing import BoundedSplineTransformer, automatic_n_splines


@parametrize_with_checks(
    [
        BoundedSplineTransformer(),
        BoundedSplineTransformer((-3, 5), n_splines=5, degree=3, knots="log", sparse_output=False),
        BoundedSplineTransformer(n_splines=1, sparse_output=False),
    ]
)
def test_sklearn_conventions(estimator, check):
    check(estimator)


def test_hats_are_those_of_scikit_learn_within_the_bounds():
    X = np.random.default_rng(0).uniform(-1.0, 3.0, size=(200, 2))
    ours = BoundedSplineTransformer((-1, 3), n_splines=6).fit_transform(X)
    # Knots of the rows themselves would be a release there.
    theirs = SplineTransformer(knots=np.c_[[np.linspace(-1, 3, 6)] * 2].T, degree=1)
    assert_allclose(ours.toarray(), theirs.fit_transform(X), atol=1e-12)


@pytest.mark.parametrize("degree", [2, 3, 5])
def test_splines_of_higher_degrees_are_those_of_scipy(degree):
    x = np.r_[np.linspace(0.0, 10.0, 101), -4.0, 11.0]
    n_splines = degree + 4
    ours = BoundedSplineTransformer((0, 10), n_splines, degree).fit_transform(x[:, np.newaxis])
    knots = np.r_[[0.0] * degree, np.linspace(0.0, 10.0, 5), [10.0] * degree]
    theirs = BSpline.design_matrix(np.clip(x, 0.0, 10.0), knots, degree)
    assert_allclose(ours.toarray(), theirs.toarray(), atol=1e-15)
    assert ours[[0, -1]].toarray()[[0, 1], [0, -1]].tolist() == [1.0, 1.0]


def test_knots_may_be_given_for_each_column_in_a_list_or_by_name():
    frame = pd.DataFrame({"a": [0.0, 4.0, 9.0], "b": [1.0, 0.0, 0.5]})
    knots = [[0.0, 1.0, 5.0], "uniform"]
    splines = BoundedSplineTransformer((0, 1), 2, knots=knots)
    expected = [[1, 0, 0, 0, 1], [0, 0.25, 0.75, 1, 0], [0, 0, 1, 0.5, 0.5]]
    assert_allclose(splines.fit_transform(frame.to_numpy()).toarray(), expected)
    named = splines.set_params(knots={"b": "uniform", "a": np.array([0, 1, 5])})
    assert_allclose(named.fit_transform(frame).toarray(), expected)
    # Bounds are not looked at where every column has knots.
    both = BoundedSplineTransformer(None, degree=2, knots=[[0, 9], [0, 0.5, 1]]).fit(frame)
    assert both.transform(frame).shape == (3, 3 + 4)


def test_fit_learns_nothing_and_rows_are_transformed_alone():
    rng = np.random.default_rng(0)
    X = rng.normal(scale=3.0, size=(30, 3))
    here = BoundedSplineTransformer((0, 5)).fit(X)
    there = BoundedSplineTransformer((0, 5)).fit(rng.normal(loc=1e6, size=(2, 3)))
    together = here.transform(X).toarray()
    alone = np.vstack([there.transform(row[np.newaxis]).toarray() for row in X])
    assert_array_equal(together, alone)
    assert here.x_norm_ == there.x_norm_
    assert [list(k) for k in here.knots_] == [list(k) for k in there.knots_]


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_how_full_the_output_is_tells_nothing(degree):
    X = np.array([[0.0, np.nan], [0.3, 0.7], [1.0, -1e308], [0.5, 1.7e308]])
    out = BoundedSplineTransformer((0, 1), degree=degree).fit_transform(X)
    assert out.has_canonical_format
    assert (np.diff(out.indptr) == 2 * (degree + 1)).all()


def hostile(low, high):
    """Values where rounding could do harm."""
    inner = np.random.default_rng(0).uniform(low, high, size=500)
    edges = [low, high, np.nextafter(low, high), np.nextafter(high, low), low / 3, high / 3]
    return np.r_[inner, edges, 0.0, -0.0, 5e-324, 1.7e308, -1.7e308, np.nan]


@pytest.mark.parametrize("degree", [1, 2, 3, 5])
@pytest.mark.parametrize(
    "bounds", [(0, 1), (-1e-300, 1e-300), (-8e307, 8e307), (1e15, 1e15 + 64), (0.1, 0.3)]
)
def test_norms_are_bounded_in_exact_arithmetic(bounds, degree):
    x = hostile(*bounds)
    for knots in ("uniform", "log"):
        splines = BoundedSplineTransformer(bounds, 7, degree, knots=knots)
        if knots == "log" and math.log1p(bounds[1] - bounds[0]) < 1e-200:
            continue
        rows = splines.fit_transform(x[:, np.newaxis]).toarray()
        assert np.isfinite(rows).all() and rows.min() >= 0.0
        for row in rows:
            entries = [Fraction(entry) for entry in row if entry]
            assert sum(entries) <= Fraction(splines.x_l1_norm_)
            assert sum(entry**2 for entry in entries) <= Fraction(splines.x_norm_) ** 2
        assert not rows[-1].any()
        assert_allclose(rows[:-1].sum(axis=1), 1.0, rtol=1e-12)


@pytest.mark.parametrize("n_splines", [1, 5])
def test_norm_bounds_are_attained(n_splines):
    splines = BoundedSplineTransformer((0, 1), n_splines)
    rows = splines.fit_transform(np.ones((1, 6)))
    assert_allclose(splines.x_norm_, math.sqrt(6.0), rtol=1e-14)
    assert_allclose([sparse.linalg.norm(rows), abs(rows).sum()], [6.0**0.5, 6.0])
    assert splines.x_l1_norm_ >= 6.0 and splines.x_norm_**2 >= 6.0


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_splines": 0}, "n_splines must be 'auto' or a positive int; got 0"),
        ({"n_splines": 10**6}, "n_splines must be at most 10,000; got 1000000"),
        ({"n_splines": 3, "degree": 3}, "n_splines must be greater than degree=3, or 1"),
        ({"degree": 6}, "degree must be at most 5; got 6"),
        ({"knots": "quantile"}, "knots must be 'uniform', 'log' or arrays; got 'quantile'"),
        ({"knots": ["log"]}, "one entry for each of the 2 columns"),
        ({"knots": ["log", [0, 2, 1]]}, "strictly increasing numbers; .* for column 1"),
        ({"knots": ["log", [0, np.inf]]}, "finite, strictly"),
        ({"knots": ["log", [-1e308, 1e308]]}, "finite, strictly"),
        ({"knots": ["log", [1]]}, "at least two"),
        ({"knots": {"a": "log"}}, "knots must not be a dict if the columns have no names"),
        ({"bounds": (1, 0)}, "bounds must be finite with low < high"),
        ({"bounds": (1.0, 1.0 + 1e-15)}, "n_splines must be smaller for the close bounds"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        BoundedSplineTransformer(**parameters).fit(np.zeros((2, 2)))


def test_the_rule_for_the_number_of_splines():
    assert automatic_n_splines(29.0, n_columns=1) == 1
    assert automatic_n_splines(179.9, n_columns=6) == 1
    assert automatic_n_splines(180.0, n_columns=6) == 8
    assert automatic_n_splines(1e9, n_columns=6) == 8
    with pytest.raises(ValueError, match="q must be a positive, finite number; got -1"):
        automatic_n_splines(-1.0, n_columns=6)
    with pytest.raises(ValueError, match="n_columns must be a positive int; got 0"):
        automatic_n_splines(1.0, n_columns=0)
