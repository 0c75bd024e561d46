import gzip

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from pandas.testing import assert_frame_equal

from skdp.datasets import fetch_covertype

ROWS = np.zeros((3, 55))
ROWS[:, :10] = [
    [2596, 51, 3, 258, 0, 510, 221, 232, 148, 6279],
    [2590, 56, 2, 212, -6, 390, 220, 235, 151, 6225],
    [2804, 139, 9, 268, 65, 3180, 234, 238, 135, 6121],
]
ROWS[[0, 1, 2], [10, 10, 13]] = 1.0
ROWS[[0, 1, 2], [42, 42, 25]] = 1.0
ROWS[:, 54] = [5, 5, 2]


@pytest.fixture
def tiny(tmp_path, monkeypatch, scikit_learn):
    text = "\n".join(",".join(str(int(value)) for value in row) for row in ROWS) + "\n"
    (tmp_path / "covertype").mkdir()
    (tmp_path / "covertype" / "covtype.data.gz").write_bytes(gzip.compress(text.encode()))
    monkeypatch.setenv("SKDP_DATA", str(tmp_path))
    scikit_learn(fetch_covertype, "fetch_covtype")
    return tmp_path


def test_the_file_is_found_by_the_environment_variable(tiny):
    cover = fetch_covertype()
    assert_array_equal(cover.data.to_numpy(), ROWS[:, :-1])
    assert cover.target.tolist() == [5, 5, 2]
    assert cover.frame.shape == (3, 55) and cover.frame.columns[-1] == "Cover_Type"
    assert [*cover.bounds, *cover.indicators] == cover.feature_names == list(cover.data.columns)
    assert dict(zip(cover.classes, cover.target_names, strict=True))[2] == "Lodgepole Pine"
    X, y = fetch_covertype(return_X_y=True)
    assert_frame_equal(X, cover.data)
    assert y.equals(cover.target)


@pytest.mark.parametrize(
    ("text", "message"),
    [("1,2,3\n", "must have 55 columns; got 3"), ("0," * 54 + "9\n", "cover types 1 to 7")],
)
def test_damaged_files_are_refused(tiny, text, message):
    path = tiny / "covertype" / "covtype.data.gz"
    path.write_bytes(gzip.compress(text.encode()))
    with pytest.raises(ValueError, match=message):
        fetch_covertype()
