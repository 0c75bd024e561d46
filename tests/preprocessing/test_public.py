import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (({}, {}), "must name a column; got none"),
        (({"a": (0, 1)}, {"a": ["x"]}), r"name each column once; got \['a'\] twice"),
        (({"a": (0, 1)}, {"b": "xyz"}), "non-empty lists; got 'xyz' for 'b'"),
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
        ({"indicators": "a"}, "indicators must be a list of columns; got 'a'"),
        ({"indicators": ["a"]}, r"name each column once; got \['a'\] twice"),
        ({"norm": "clip"}, "norm must be 'scale', a positive number or None; got 'clip'"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        make_public_preprocessor({"a": (0, 1)}, **options)
