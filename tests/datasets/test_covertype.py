import gzip
import os
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from pandas.testing import assert_frame_equal
from support.downloads import no_network

from skdp.datasets import _covertype, fetch_covertype
from skdp.preprocessing import make_public_preprocessor

ROWS = np.zeros((3, 55))
ROWS[:, :10] = [
    [2596, 51, 3, 258, 0, 510, 221, 232, 148, 6279],
    [2590, 56, 2, 212, -6, 390, 220, 235, 151, 6225],
    [2804, 139, 9, 268, 65, 3180, 234, 238, 135, 6121],
]
ROWS[[0, 1, 2], [10, 10, 13]] = 1.0
ROWS[[0, 1, 2], [42, 42, 25]] = 1.0
ROWS[:, 54] = [5, 5, 2]

REAL = Path(os.environ.get("SKDP_DATA", "")) / "covertype" / "covtype.data.gz"
needs_covertype = pytest.mark.skipif(
    not REAL.is_file(), reason="SKDP_DATA does not name a folder with the Covertype file"
)


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    text = "\n".join(",".join(str(int(value)) for value in row) for row in ROWS) + "\n"
    (tmp_path / "covertype").mkdir()
    (tmp_path / "covertype" / "covtype.data.gz").write_bytes(gzip.compress(text.encode()))
    monkeypatch.setenv("SKDP_DATA", str(tmp_path))
    monkeypatch.setattr(_covertype, "fetch_covtype", no_network)
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


def test_the_names_are_those_of_scikit_learn(tiny):
    names = fetch_covertype().feature_names
    assert names[:2] == ["Elevation", "Aspect"] and names[9].endswith("Fire_Points")
    assert names[10] == "Wilderness_Area_0" and names[14] == "Soil_Type_0"
    assert names[-1] == "Soil_Type_39" and len(names) == 54


def test_scikit_learn_is_asked_when_the_file_is_not_there(tiny, monkeypatch):
    expected = fetch_covertype().frame

    def fetch(*, data_home, return_X_y):
        assert data_home == "home" and return_X_y
        return ROWS[:, :-1], ROWS[:, -1].astype(np.int32)

    monkeypatch.setattr(_covertype, "fetch_covtype", fetch)
    monkeypatch.delenv("SKDP_DATA")
    assert_frame_equal(fetch_covertype(data_home="home").frame, expected)


def test_without_any_source_one_sentence_says_what_to_do(monkeypatch):
    monkeypatch.delenv("SKDP_DATA", raising=False)
    monkeypatch.setattr(_covertype, "fetch_covtype", no_network)
    with pytest.raises(OSError, match=r"SKDP_DATA \(not set\)") as refusal:
        fetch_covertype()
    assert "put covertype/covtype.data.gz there" in str(refusal.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [("1,2,3\n", "must have 55 columns; got 3"), ("0," * 54 + "9\n", "cover types 1 to 7")],
)
def test_damaged_files_are_refused(tiny, text, message):
    path = tiny / "covertype" / "covtype.data.gz"
    path.write_bytes(gzip.compress(text.encode()))
    with pytest.raises(ValueError, match=message):
        fetch_covertype()


def test_the_public_pipeline_takes_one_line(tiny):
    cover = fetch_covertype()
    prepare = make_public_preprocessor(cover.bounds, cover.categories, indicators=cover.indicators)
    out = prepare.fit_transform(cover.data)
    assert out.shape == (3, 54)
    assert_allclose(np.linalg.norm(out, axis=1), 1.0)
    assert_array_equal(out[:, 10:] != 0, ROWS[:, 10:54] != 0)


@needs_covertype
@pytest.mark.slow
def test_the_real_file_has_the_published_counts():
    cover = fetch_covertype()
    assert cover.data.shape == (581_012, 54)
    counts = [211_840, 283_301, 35_754, 2_747, 9_493, 17_367, 20_510]
    assert cover.target.value_counts().sort_index().tolist() == counts
    for name, (low, high) in cover.bounds.items():
        assert cover.data[name].between(low, high).all()
    assert np.isin(cover.data[cover.indicators].to_numpy(), (0.0, 1.0)).all()
