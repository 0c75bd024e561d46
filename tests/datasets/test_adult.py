import gzip
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal
from sklearn.utils import Bunch

from skdp.datasets import fetch_adult

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
def tiny(tmp_path, monkeypatch, scikit_learn):
    """A folder with three training rows and two test rows, and no other source."""
    (tmp_path / "adult").mkdir()
    for name, text in (("adult.data.gz", TRAIN), ("adult.test.gz", TEST)):
        (tmp_path / "adult" / name).write_bytes(gzip.compress(text.encode()))
    monkeypatch.setenv("SKDP_DATA", str(tmp_path))
    scikit_learn(fetch_adult, "fetch_openml")
    return tmp_path


@pytest.fixture
def openml(tiny, monkeypatch, scikit_learn):
    """What OpenML would serve, were the rows of Adult these five again and again."""
    frames = {}
    for part, n in (("train", 32_561), ("test", 16_281)):
        frame = fetch_adult(part).frame
        frames[part] = frame.iloc[np.arange(n) % len(frame)].reset_index(drop=True)
    monkeypatch.delenv("SKDP_DATA")

    def serve(*parts, step=1):
        frame = pd.concat([frames[part] for part in parts], ignore_index=True)
        frame = frame.astype(object).where(frame.astype(object) != "?", np.nan)
        frame = frame.rename(columns={"income": "class"}).astype({"age": float})

        def fetch(name, *, version, data_home, as_frame):
            assert (name, version, data_home, as_frame) == ("adult", 2, "home", True)
            return Bunch(frame=frame[::step])

        scikit_learn(fetch_adult, "fetch_openml", fetch)
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


@pytest.mark.parametrize(
    ("order", "part"),
    [(("test", "train"), "train"), (("train", "test"), "test"), (("test", "train"), "all")],
)
def test_openml_gives_the_same_frames_in_either_order(openml, order, part):
    expected = openml(*order)
    expected["all"] = pd.concat([expected["train"], expected["test"]], ignore_index=True)
    assert_frame_equal(fetch_adult(part, data_home="home").frame, expected[part])


@pytest.mark.parametrize("folder", [None, "empty"])
def test_without_any_source_one_sentence_says_what_to_do(
    folder, tmp_path, monkeypatch, scikit_learn
):
    scikit_learn(fetch_adult, "fetch_openml")
    monkeypatch.delenv("SKDP_DATA", raising=False)
    if folder:
        monkeypatch.setenv("SKDP_DATA", str(tmp_path / folder))
    with pytest.raises(OSError, match="SKDP_DATA") as refusal:
        fetch_adult()
    message = str(refusal.value)
    assert (str(tmp_path / folder) if folder else "not set") in message
    assert message.startswith("adult/adult.data.gz must be in the folder in the")
    assert "no network" in message and "archive.ics.uci.edu" in message


@pytest.mark.parametrize(
    ("old", "new", "column"),
    [("Bachelors", "Bachelor", "education"), ("39,", ",", "age"), ("<=50K", "<50K", "income")],
)
def test_damaged_files_are_refused(tiny, old, new, column):
    damaged = gzip.compress(TRAIN.replace(old, new).encode())
    (tiny / "adult" / "adult.data.gz").write_bytes(damaged)
    with pytest.raises(ValueError, match=f"column '{column}' of the file has others"):
        fetch_adult()


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
    assert (len(train.data), len(test.data)) == (32_561, 16_281)
