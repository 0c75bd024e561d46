import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from support.frames import FRAMES

from skdp.preprocessing import make_public_preprocessor

PEOPLE = {
    "age": [30.0, 75.0, 200.0],
    "gain": [0.0, 99.0, 9.0],
    "city": ["Bonn", "Ulm", None],
    "rooms": [3, 1, 7],
    "owner": [0, 1, 1],
    "name": ["A", "B", "C"],
}
BOUNDS = {"age": (0, 100), "gain": (0, 99)}
CATEGORIES = {"city": ["Ulm", "Aachen", "Bonn"], "rooms": [3, 2, 1]}
NAMES = ["age", "gain", "owner", "city_Ulm", "city_Aachen", "city_Bonn"]
NAMES += ["rooms_1", "rooms_2", "rooms_3"]
ROWS = [
    [-0.4, -1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0],
    [0.5, 1.0, 1.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0],
    [1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],  # an unknown city, unknown rooms
]


def make(**options):
    return make_public_preprocessor(
        BOUNDS, CATEGORIES, indicators=["owner"], log=["gain"], **options
    )


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("frame", FRAMES)
def test_columns_follow_from_the_public_lists(frame, is_sparse):
    prepare = make(norm=None, sparse=is_sparse)
    out = prepare.fit_transform(frame(PEOPLE))
    assert sparse.issparse(out) == is_sparse
    assert_allclose(out.toarray() if is_sparse else out, ROWS, atol=1e-15)
    assert_array_equal(prepare.get_feature_names_out(), NAMES)


@pytest.mark.parametrize("is_sparse", [False, True])
def test_rows_are_scaled_or_clipped(is_sparse):
    def norms(norm):
        out = make(norm=norm, sparse=is_sparse).fit_transform(pd.DataFrame(PEOPLE))
        return np.linalg.norm(out.toarray() if is_sparse else out, axis=1)

    lengths = np.linalg.norm(ROWS, axis=1)
    assert_allclose(norms("scale"), 1.0)
    assert_allclose(norms(1.5), np.minimum(lengths, 1.5))


def test_the_rows_at_fit_do_not_matter():
    frame = pd.DataFrame(PEOPLE)
    expected = make().fit(frame).transform(frame)
    for i in range(3):
        one = frame.iloc[[i]].reset_index(drop=True)
        assert_array_equal(make().fit(one).transform(frame), expected)
        # And each row is transformed on its own.
        assert_array_equal(make().fit(frame).transform(one), expected[[i]])


@pytest.mark.parametrize("is_sparse", [False, True])
def test_numeric_columns_have_splines(is_sparse):
    prepare = make(norm=None, sparse=is_sparse, n_splines=3)
    out = prepare.fit_transform(pd.DataFrame(PEOPLE))
    assert sparse.issparse(out) == is_sparse
    hats = [[0.4, 0.6, 0, 1, 0, 0], [0, 0.5, 0.5, 0, 0, 1], [0, 0, 1, 0, 1, 0]]
    expected = np.hstack([hats, np.array(ROWS)[:, 2:]])
    assert_allclose(out.toarray() if is_sparse else out, expected, atol=1e-15)
    names = [f"{name}_sp_{i}" for name in ("age", "gain") for i in range(3)]
    assert_array_equal(prepare.get_feature_names_out(), names + NAMES[2:])
    scaled = make(sparse=is_sparse, n_splines="auto").fit_transform(pd.DataFrame(PEOPLE))
    assert scaled.shape == (3, 2 * 8 + 7)
    squares = scaled.multiply(scaled) if is_sparse else scaled**2
    assert_allclose(squares.sum(axis=1), 1.0)


def test_splines_of_a_missing_number_are_zeros():
    frame = pd.DataFrame({"age": [np.nan, 100.0], "city": ["Ulm", "Ulm"]})
    prepare = make_public_preprocessor({"age": (0, 100)}, {"city": ["Ulm"]}, n_splines=2)
    assert_allclose(prepare.fit_transform(frame), [[0, 0, 1], [0, 0.5**0.5, 0.5**0.5]])


def test_frames_come_out_when_asked_for():
    out = make().set_output(transform="pandas").fit_transform(pd.DataFrame(PEOPLE))
    assert list(out.columns) == NAMES


def test_it_can_be_cloned():
    frame = pd.DataFrame(PEOPLE)
    prepare = make()
    assert_array_equal(clone(prepare).fit_transform(frame), prepare.fit_transform(frame))


def test_an_unknown_category_is_a_block_of_zeros_in_silence():
    # A warning or an error would tell that such a record is among the data.
    frame = pd.DataFrame({"city": ["Kiel", np.nan, None, "Ulm"]})
    out = make_public_preprocessor(None, {"city": ["Bonn", "Ulm"]}).fit_transform(frame)
    assert_array_equal(out, [[0.0, 0.0]] * 3 + [[0.0, 1.0]])


def test_missing_numbers_are_refused_or_centered():
    frame = pd.DataFrame({"age": [np.nan, 100.0]})
    with pytest.raises(ValueError, match="contains NaN"):
        make_public_preprocessor({"age": (0, 100)}).fit(frame)
    prepare = make_public_preprocessor({"age": (0, 100)}, missing="center", norm=None)
    assert_array_equal(prepare.fit_transform(frame), [[0.0], [1.0]])


def test_a_column_that_is_absent_is_refused():
    with pytest.raises(ValueError, match="column"):
        make().fit(pd.DataFrame(PEOPLE).drop(columns="age"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (({}, {}), "must name a column; got none"),
        (({"a": (0, 1)}, {"a": ["x"]}), r"name a column once; got \['a'\] twice"),
        (({"a": (0, 1)}, {"b": []}), r"non-empty lists; got \[\] for 'b'"),
        (({"a": (0, 1)}, {"b": "xyz"}), "non-empty lists; got 'xyz' for 'b'"),
        (({"a": (0, 1)}, {"b": {"x", "y"}}), "non-empty lists; got .* for 'b'"),
        (({"a": (0, 1)}, {"b": ["x", "x"]}), "must not repeat a value; got .* for 'b'"),
        (({0: (0, 1)},), r"names must be strings; got \[0\]"),
    ],
)
def test_lists_that_make_no_sense_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        make_public_preprocessor(*arguments)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"log": ["b"]}, r"log must name columns of bounds; got \['b'\]"),
        ({"log": "a"}, "log must be a list of column names; got 'a'"),
        ({"indicators": "a"}, "indicators must be a list of column names; got 'a'"),
        ({"indicators": ["a"]}, r"name a column once; got \['a'\] twice"),
        ({"norm": "clip"}, "norm must be 'scale', a positive number or None; got 'clip'"),
        ({"n_splines": 0}, "n_splines must be 'auto' or a positive int; got 0"),
        ({"norm": -1.0}, "norm must be a positive, finite number; got -1.0"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        make_public_preprocessor({"a": (0, 1)}, **options)


def test_bounds_are_checked_at_fit_with_the_column_named():
    with pytest.raises(ValueError, match=r"low < high; got \(9, 1\) for column 'age'"):
        make_public_preprocessor({"age": (9, 1)}).fit(pd.DataFrame(PEOPLE))
