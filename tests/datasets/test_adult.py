import gzip
import os
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from pandas.testing import assert_frame_equal
from sklearn.utils import Bunch
from support.downloads import no_network

from skdp.datasets import _adult, fetch_adult
from skdp.preprocessing import make_public_preprocessor

# The first rows of the two files, in their format, and a row with unknown values.
TRAIN = """\
39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, White, Male, \
2174, 0, 40, United-States, <=50K
52, Self-emp-not-inc, 209642, HS-grad, 9, Married-civ-spouse, Exec-managerial, Husband, White, \
Male, 0, 0, 45, United-States, >50K
54, ?, 180211, Some-college, 10, Married-civ-spouse, ?, Husband, Asian-Pac-Islander, Male, 0, 0, \
60, South, >50K

"""
TEST = """\
|1x3 Cross validator
25, Private, 226802, 11th, 7, Never-married, Machine-op-inspct, Own-child, Black, Male, 0, 0, \
40, United-States, <=50K.
28, Local-gov, 336951, Assoc-acdm, 12, Married-civ-spouse, Protective-serv, Husband, White, \
Male, 0, 0, 40, ?, >50K.

"""

REAL = Path(os.environ.get("SKDP_DATA", "")) / "adult" / "adult.data.gz"
needs_adult = pytest.mark.skipif(
    not REAL.is_file(), reason="SKDP_DATA does not name a folder with the Adult files"
)


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    """A folder with three training rows and two test rows, and no other source."""
    (tmp_path / "adult").mkdir()
    for name, text in (("adult.data.gz", TRAIN), ("adult.test.gz", TEST)):
        (tmp_path / "adult" / name).write_bytes(gzip.compress(text.encode()))
    monkeypatch.setenv("SKDP_DATA", str(tmp_path))
    monkeypatch.setattr(_adult, "fetch_openml", no_network)
    return tmp_path


@pytest.fixture
def openml(tiny, monkeypatch):
    """What OpenML would serve, had Adult five rows: NaN for unknown, the test rows first."""
    frames = {part: fetch_adult(part).frame for part in ("train", "test")}
    monkeypatch.delenv("SKDP_DATA")
    monkeypatch.setattr(_adult, "N_TRAIN", 3)
    monkeypatch.setattr(_adult, "N_TEST", 2)

    def serve(*parts):
        frame = pd.concat([frames[part] for part in parts], ignore_index=True)
        frame = frame.astype(object).where(frame.astype(object) != "?", np.nan)
        frame = frame.rename(columns={"income": "class"}).astype({"age": float})

        def fetch(name, *, version, data_home, as_frame):
            assert (name, version, data_home, as_frame) == ("adult", 2, "home", True)
            return Bunch(frame=frame)

        monkeypatch.setattr(_adult, "fetch_openml", fetch)
        return frames

    return serve


def test_the_files_are_found_by_the_environment_variable(tiny):
    train, test = fetch_adult(), fetch_adult("test")
    assert train.data.shape == (3, 14) and test.data.shape == (2, 14)
    assert list(train.target) == ["<=50K", ">50K", ">50K"]
    assert list(test.target) == ["<=50K", ">50K"]
    assert train.data["capital-gain"].tolist() == [2174, 0, 0]
    assert train.data["occupation"].tolist() == ["Adm-clerical", "Exec-managerial", "?"]
    assert test.data["native-country"].tolist() == ["United-States", "?"]


def test_all_is_train_and_then_test(tiny):
    parts = [fetch_adult(part).frame for part in ("train", "test")]
    assert_frame_equal(fetch_adult("all").frame, pd.concat(parts, ignore_index=True))


def test_unpacked_files_will_do(tiny):
    expected = fetch_adult("all").frame
    for packed in (tiny / "adult").glob("*.gz"):
        packed.with_suffix("").write_bytes(gzip.decompress(packed.read_bytes()))
        packed.unlink()
    assert_frame_equal(fetch_adult("all").frame, expected)


def test_the_bunch_is_complete_and_does_not_share_its_constants(tiny):
    adult = fetch_adult()
    X, y = fetch_adult(return_X_y=True)
    assert_frame_equal(X, adult.data)
    assert y.equals(adult.target)
    assert adult.feature_names == list(adult.data.columns)
    assert list(adult.frame.columns) == [*adult.feature_names, "income"]
    assert adult.classes == ["<=50K", ">50K"]
    assert adult.indicators == []
    assert "CC BY 4.0" in adult.DESCR
    assert set(adult.bounds) | set(adult.categories) == set(adult.feature_names)
    assert not set(adult.bounds) & set(adult.categories)

    adult.bounds.clear()
    adult.categories["sex"].clear()
    assert len(fetch_adult().bounds) == 6 and len(fetch_adult().categories["sex"]) == 2


def test_bounds_and_types_do_not_depend_on_the_rows(tiny):
    train, test = fetch_adult(), fetch_adult("test")
    assert train.bounds == test.bounds and train.categories == test.categories
    assert train.data.dtypes.equals(test.data.dtypes)
    assert train.target.dtype == test.target.dtype


def test_the_public_pipeline_takes_one_line(tiny):
    adult = fetch_adult()
    prepare = make_public_preprocessor(
        adult.bounds, adult.categories, log=["capital-gain", "capital-loss"]
    )
    out = prepare.fit_transform(adult.data)
    assert out.shape == (3, 108)
    assert_allclose(np.linalg.norm(out, axis=1), 1.0)


@pytest.mark.parametrize("order", [("test", "train"), ("train", "test")])
def test_openml_gives_the_same_frames_in_either_order(openml, order):
    expected = openml(*order)
    for part in ("train", "test"):
        assert_frame_equal(fetch_adult(part, data_home="home").frame, expected[part])
    both = pd.concat([expected["train"], expected["test"]], ignore_index=True)
    assert_frame_equal(fetch_adult("all", data_home="home").frame, both)


@pytest.mark.parametrize("order", [("train",), ("test", "test"), ("train", "train", "test")])
def test_openml_rows_in_an_unknown_order_are_refused(openml, order):
    openml(*order)
    with pytest.raises(OSError, match="must be the 2 test rows and the 3 training rows"):
        fetch_adult(data_home="home")


def test_shuffled_openml_rows_are_refused(openml, monkeypatch):
    openml("test", "train")
    frame = _adult.fetch_openml("adult", version=2, data_home="home", as_frame=True).frame
    shuffled = Bunch(frame=frame.iloc[::-1].reset_index(drop=True))
    monkeypatch.setattr(_adult, "fetch_openml", lambda *args, **kwargs: shuffled)
    with pytest.raises(OSError, match="got 5 rows in another order"):
        fetch_adult(data_home="home")


def test_an_empty_variable_does_not_mean_the_current_folder(tiny, monkeypatch):
    monkeypatch.chdir(tiny)
    monkeypatch.setenv("SKDP_DATA", "")
    with pytest.raises(OSError, match="not set"):
        fetch_adult()


@pytest.mark.parametrize("folder", [None, "empty"])
def test_without_any_source_one_sentence_says_what_to_do(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(_adult, "fetch_openml", no_network)
    monkeypatch.delenv("SKDP_DATA", raising=False)
    if folder:
        monkeypatch.setenv("SKDP_DATA", str(tmp_path / folder))
    with pytest.raises(OSError, match="SKDP_DATA") as refusal:
        fetch_adult()
    message = str(refusal.value)
    assert (str(tmp_path / folder) if folder else "not set") in message
    assert "adult/adult.data.gz and adult/adult.test.gz" in message
    assert "no network" in message and "archive.ics.uci.edu" in message


@pytest.mark.parametrize(
    ("old", "new", "column"),
    [("Bachelors", "Bachelor", "education"), ("39,", ",", "age"), ("<=50K", "<50K", "income")],
)
def test_damaged_files_are_refused(tiny, old, new, column):
    damaged = gzip.compress(TRAIN.replace(old, new).encode())
    (tiny / "adult" / "adult.data.gz").write_bytes(damaged)
    with pytest.raises(ValueError, match=f"column '{column}' of the files has others"):
        fetch_adult()


def test_the_subset_is_checked():
    with pytest.raises(ValueError, match="subset must be one of 'train', 'test', 'all'; got 'val"):
        fetch_adult("validation")


@needs_adult
def test_the_real_files_have_the_published_counts():
    train, test = fetch_adult("train"), fetch_adult("test")
    assert train.target.value_counts().to_dict() == {"<=50K": 24_720, ">50K": 7_841}
    assert test.target.value_counts().to_dict() == {"<=50K": 12_435, ">50K": 3_846}
    assert (train.data["workclass"] == "?").sum() == 1_836
    for frame in (train.data, test.data):
        # Public bounds that clipped real rows would be a poor choice, though a legal one.
        for name, (low, high) in train.bounds.items():
            assert frame[name].between(low, high).all()
        assert len(frame) in (_adult.N_TRAIN, _adult.N_TEST)
    assert _adult._begins(train.data, _adult.FIRST_TRAIN)
    assert _adult._begins(test.data, _adult.FIRST_TEST)


@needs_adult
def test_the_real_training_rows_are_prepared_within_two_seconds():
    adult = fetch_adult()
    prepare = make_public_preprocessor(
        adult.bounds, adult.categories, log=["capital-gain", "capital-loss"]
    )
    start = time.process_time()
    out = prepare.fit_transform(adult.data)
    assert time.process_time() - start < 2.0
    assert out.shape == (32_561, 108)
    assert_allclose(np.linalg.norm(out, axis=1), 1.0, rtol=1e-14)
    assert_allclose(prepare.transform(adult.data.iloc[[7]]), out[[7]], rtol=1e-14)
