import gzip
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from pandas.testing import assert_frame_equal
from sklearn.utils import Bunch
from support.downloads import no_network

from skdp.datasets import _diabetes130, fetch_diabetes130
from skdp.preprocessing import make_public_preprocessor

# The first rows of the file, in its format.
FILE = """\
encounter_id,patient_nbr,race,gender,age,weight,admission_type_id,discharge_disposition_id,\
admission_source_id,time_in_hospital,payer_code,medical_specialty,num_lab_procedures,\
num_procedures,num_medications,number_outpatient,number_emergency,number_inpatient,diag_1,diag_2,\
diag_3,number_diagnoses,max_glu_serum,A1Cresult,metformin,repaglinide,nateglinide,chlorpropamide,\
glimepiride,acetohexamide,glipizide,glyburide,tolbutamide,pioglitazone,rosiglitazone,acarbose,\
miglitol,troglitazone,tolazamide,examide,citoglipton,insulin,glyburide-metformin,\
glipizide-metformin,glimepiride-pioglitazone,metformin-rosiglitazone,metformin-pioglitazone,\
change,diabetesMed,readmitted
2278392,8222157,Caucasian,Female,[0-10),?,6,25,1,1,?,Pediatrics-Endocrinology,41,0,1,0,0,0,\
250.83,?,?,1,None,None,No,No,No,No,No,No,No,No,No,No,No,No,No,No,No,No,No,No,No,No,No,No,No,No,\
No,NO
149190,55629189,Caucasian,Female,[10-20),?,1,1,7,3,MC,Surgery-Neuro,59,0,18,0,0,0,276,250.01,\
255,9,None,>8,No,No,No,No,No,No,No,No,No,No,No,No,No,No,No,No,No,Up,No,No,No,No,No,Ch,Yes,>30
64410,8222157,?,Male,[20-30),?,1,1,7,2,HM,?,11,5,13,2,0,1,648,E888,V27,6,Norm,None,Steady,No,No,\
No,No,No,Steady,No,No,No,No,No,No,No,No,No,No,Down,No,No,No,No,No,Ch,Yes,<30
"""

REAL = Path(os.environ.get("SKDP_DATA", "")) / "diabetes130" / "diabetic_data.csv.gz"
needs_diabetes130 = pytest.mark.skipif(
    not REAL.is_file(), reason="SKDP_DATA does not name a folder with the Diabetes 130 file"
)


def write(folder, text):
    path = folder / "diabetes130" / "diabetic_data.csv.gz"
    path.write_bytes(gzip.compress(text.encode()))


def preparation(stays, **options):
    return make_public_preprocessor(stays.bounds, stays.categories, log=stays.log, **options)


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    """A folder with three stays of two patients, and no other source."""
    (tmp_path / "diabetes130").mkdir()
    write(tmp_path, FILE)
    monkeypatch.setenv("SKDP_DATA", str(tmp_path))
    monkeypatch.setattr(_diabetes130, "fetch_openml", no_network)
    return tmp_path


def test_the_file_is_found_by_the_environment_variable(tiny):
    stays = fetch_diabetes130()
    assert stays.data.shape == (3, 46)
    assert stays.data["age"].tolist() == [5.0, 15.0, 25.0]
    assert stays.data["num_medications"].tolist() == [1.0, 18.0, 13.0]
    assert stays.data["race"].tolist() == ["Caucasian", "Caucasian", "?"]
    assert stays.data["A1Cresult"].tolist() == ["None", ">8", "None"]
    assert stays.data["insulin"].tolist() == ["No", "Up", "Down"]
    assert stays.data["discharge_disposition_id"].tolist() == [25, 1, 1]
    assert stays.data["medical_specialty"].tolist() == ["other", "surgery", "?"]
    assert stays.data["diag_1"].tolist() == ["diabetes", "other", "other"]
    assert stays.data["diag_2"].tolist() == ["?", "diabetes", "other"]
    assert stays.data["diag_3"].tolist() == ["?", "other", "other"]


def test_the_target_is_any_readmission_or_an_early_one(tiny):
    stays, early = fetch_diabetes130(), fetch_diabetes130("<30")
    assert stays.target.tolist() == [0, 1, 1] and early.target.tolist() == [0, 0, 1]
    assert stays.target_names != early.target_names
    assert_frame_equal(stays.data, early.data)
    with pytest.raises(ValueError, match="target must be one of 'any', '<30'; got '>30'"):
        fetch_diabetes130(">30")


def test_nothing_that_tells_the_answer_or_the_patient_is_a_feature(tiny):
    stays = fetch_diabetes130()
    hidden = {"readmitted", "patient_nbr", "patient", "encounter_id", "weight"}
    assert not hidden & set(stays.feature_names)
    assert stays.patient.tolist() == [8222157, 55629189, 8222157]


def test_the_bunch_is_complete_and_does_not_share_its_constants(tiny):
    stays = fetch_diabetes130()
    X, y = fetch_diabetes130(return_X_y=True)
    assert_frame_equal(X, stays.data)
    assert y.equals(stays.target)
    assert stays.feature_names == list(stays.data.columns)
    assert list(stays.frame.columns) == [*stays.feature_names, "readmitted"]
    assert stays.classes == [0, 1] and len(stays.target_names) == 2
    assert [*stays.bounds, *stays.categories] == stays.feature_names
    assert set(stays.log) <= set(stays.bounds) and stays.indicators == []
    assert "CC BY 4.0" in stays.DESCR

    stays.bounds.clear()
    stays.categories["race"].clear()
    stays.group_names.clear()
    stays.log.append("age")
    again = fetch_diabetes130()
    assert len(again.bounds) == 9 and len(again.categories["race"]) == 6
    assert len(again.group_names) == 6 and "age" not in again.log


@pytest.mark.parametrize(
    ("group_by", "n_groups", "names"),
    [
        ("medical_specialty", 6, ["other", "surgery", "?"]),
        ("payer_code", 18, ["?", "MC", "HM"]),
        ("admission_source_id", 25, [1, 7, 7]),
        ("admission_type_id", 8, [6, 1, 1]),
    ],
)
def test_groups_follow_a_public_list_and_not_the_target(tiny, group_by, n_groups, names):
    stays = fetch_diabetes130(group_by=group_by)
    assert len(stays.group_names) == len(set(stays.group_names)) == n_groups
    assert [stays.group_names[group] for group in stays.groups] == names
    write(tiny, FILE.replace(",NO\n", ",<30\n"))
    assert fetch_diabetes130(group_by=group_by).groups.equals(stays.groups)
    # One row alone has the group that it has among others.
    header, _, second, _ = FILE.splitlines()
    write(tiny, f"{header}\n{second}\n")
    assert fetch_diabetes130(group_by=group_by).groups.tolist() == [stays.groups[1]]


def test_groups_by_another_column_are_refused(tiny):
    with pytest.raises(ValueError, match="group_by must be one of 'medical_specialty'"):
        fetch_diabetes130(group_by="readmitted")


def test_unpacked_files_will_do(tiny):
    expected = fetch_diabetes130().frame
    packed = tiny / "diabetes130" / "diabetic_data.csv.gz"
    packed.unlink()
    packed.with_suffix("").write_text(FILE)
    assert_frame_equal(fetch_diabetes130().frame, expected)


def test_bounds_and_types_do_not_depend_on_the_rows(tiny):
    everything = fetch_diabetes130()
    for row in FILE.splitlines()[1:]:
        write(tiny, f"{FILE.splitlines()[0]}\n{row}\n")
        one = fetch_diabetes130()
        assert len(one.data) == 1
        assert one.data.dtypes.equals(everything.data.dtypes)
        assert one.patient.dtype == one.groups.dtype == one.target.dtype == np.int64
        for key in ("bounds", "categories", "log", "group_names"):
            assert one[key] == everything[key]


@pytest.mark.parametrize(
    ("codes", "group"),
    [
        ("390 459 428.9 785", "circulatory"),
        ("460 519 486 786", "respiratory"),
        ("520 579 787", "digestive"),
        ("250 250.01 250.83", "diabetes"),
        ("800 999 996", "injury"),
        ("710 739 715", "musculoskeletal"),
        ("580 629 788", "genitourinary"),
        ("140 239 197", "neoplasms"),
        ("8 41 139 240 249 251 276 280 389 630 709 740 780 784 789 799 V57 E888", "other"),
        ("?", "?"),
    ],
)
def test_diagnoses_are_grouped_as_in_the_paper(tiny, codes, group):
    lines = FILE.splitlines()
    rows = [lines[1].replace("250.83", code) for code in codes.split()]
    write(tiny, "\n".join([lines[0], *rows]) + "\n")
    assert set(fetch_diabetes130().data["diag_1"]) == {group}


@pytest.mark.parametrize(
    ("specialty", "department"),
    [
        ("InternalMedicine", "internal medicine"),
        ("Cardiology-Pediatric", "cardiology"),
        ("Surgeon", "surgery"),
        ("SurgicalSpecialty", "surgery"),
        ("Family/GeneralPractice", "family/general practice"),
        ("PhysicianNotFound", "other"),
    ],
)
def test_specialties_are_grouped_as_in_the_paper(tiny, specialty, department):
    write(tiny, FILE.replace("Surgery-Neuro", specialty))
    assert fetch_diabetes130().data["medical_specialty"][1] == department


def test_the_public_pipeline_takes_one_line(tiny):
    stays = fetch_diabetes130()
    out = preparation(stays).fit_transform(stays.data)
    n_categories = 6 + 3 + 8 + 30 + 25 + 18 + 6 + 3 * 10 + 4 + 4 + 23 * 4 + 2 + 2
    assert out.shape == (3, 9 + n_categories)
    assert_allclose(np.linalg.norm(out, axis=1), 1.0)
    raw = preparation(stays, norm=None).fit_transform(stays.data)
    assert np.abs(raw).max() <= 1.0
    # Each categorical column has one indicator: no value of these rows is unknown.
    assert_allclose(raw[:, 9:].sum(axis=1), len(stays.categories))


@pytest.mark.parametrize(
    ("old", "new", "column"),
    [
        ("Caucasian", "Martian", "race"),
        (",6,25,1,", ",6,31,1,", "discharge_disposition_id"),
        (",6,25,1,", ",6,25,16,", "admission_source_id"),
        ("250.83", "abc", "diag_1"),
        (",Up,", ",Sideways,", "insulin"),
    ],
)
def test_unknown_categories_become_zeros(tiny, old, new, column):
    assert old in FILE
    usual = fetch_diabetes130()
    write(tiny, FILE.replace(old, new))
    stays = fetch_diabetes130()
    unknown = stays.data[column].isna()
    assert unknown.any() and not stays.data.drop(columns=column).isna().any(axis=None)
    assert stays.data.dtypes.equals(usual.data.dtypes)
    before = preparation(usual, norm=None).fit_transform(usual.data)
    pipeline = preparation(stays, norm=None).fit(stays.data)
    after = pipeline.transform(stays.data)
    block = [name.startswith(f"{column}_") for name in pipeline.get_feature_names_out()]
    assert_allclose(after[np.ix_(unknown, block)], 0.0)
    assert_allclose(after[:, ~np.array(block)], before[:, ~np.array(block)])


@pytest.mark.parametrize(
    ("old", "new", "column", "group_by"),
    [
        ("[10-20)", "[10-25)", "age", "payer_code"),
        (",59,0,18,", ",many,0,18,", "num_lab_procedures", "payer_code"),
        (",>30\n", ",>31\n", "readmitted", "payer_code"),
        ("55629189", "55629189.5", "patient_nbr", "payer_code"),
        (",MC,", ",XX,", "payer_code", "payer_code"),
    ],
)
def test_damaged_files_are_refused(tiny, old, new, column, group_by):
    assert old in FILE
    write(tiny, FILE.replace(old, new))
    with pytest.raises(ValueError, match=f"column '{column}' of the file has others"):
        fetch_diabetes130(group_by=group_by)


def test_a_file_without_its_header_line_is_refused(tiny):
    write(tiny, FILE.split("\n", 1)[1])
    with pytest.raises(ValueError, match="must have a header line with"):
        fetch_diabetes130()


def test_openml_gives_the_same_frame(tiny, monkeypatch):
    expected = fetch_diabetes130()
    path = tiny / "diabetes130" / "diabetic_data.csv.gz"
    frame = pd.read_csv(path, keep_default_na=False)
    frame = frame.astype(object).where(frame != "?", np.nan)
    frame["gender"] = frame["gender"].astype("category")
    frame["admission_type_id"] = frame["admission_type_id"].astype(str).astype("category")
    frame["age"] = frame["age"].astype("category")
    frame["time_in_hospital"] = frame["time_in_hospital"].astype(float)

    def fetch(name, *, version, data_home, as_frame):
        assert (name, version, data_home, as_frame) == ("Diabetes130US", 1, "home", True)
        return Bunch(frame=frame)

    monkeypatch.setattr(_diabetes130, "fetch_openml", fetch)
    monkeypatch.delenv("SKDP_DATA")
    stays = fetch_diabetes130(data_home="home")
    assert_frame_equal(stays.frame, expected.frame)
    assert stays.patient.equals(expected.patient) and stays.groups.equals(expected.groups)

    del frame["patient_nbr"]
    with pytest.raises(ValueError, match=r"it lacks \['patient_nbr'\]: get the file from https"):
        fetch_diabetes130(data_home="home")


@pytest.mark.parametrize("folder", [None, "empty"])
def test_without_any_source_one_sentence_says_what_to_do(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(_diabetes130, "fetch_openml", no_network)
    monkeypatch.delenv("SKDP_DATA", raising=False)
    if folder:
        monkeypatch.setenv("SKDP_DATA", str(tmp_path / folder))
    with pytest.raises(OSError, match="SKDP_DATA") as refusal:
        fetch_diabetes130()
    message = str(refusal.value)
    assert (str(tmp_path / folder) if folder else "not set") in message
    assert "put diabetes130/diabetic_data.csv.gz there" in message
    assert "no network" in message and "archive.ics.uci.edu" in message


@pytest.fixture(scope="module")
def real():
    return fetch_diabetes130()


@needs_diabetes130
def test_the_real_file_has_the_published_numbers(real):
    assert real.data.shape == (101_766, 46)
    assert int(real.target.sum()) == 35_545 + 11_357
    assert int(fetch_diabetes130("<30", return_X_y=True)[1].sum()) == 11_357
    assert real.patient.nunique() == 71_518 and real.patient.value_counts().max() == 40
    assert not real.data.isna().any(axis=None)
    # Public bounds that clipped many real rows would be a poor choice, though a legal one.
    for column, (low, high) in real.bounds.items():
        assert real.data[column].between(low, high).mean() > 0.99
    assert np.bincount(real.groups).min() > 5_000


@needs_diabetes130
def test_the_real_diagnoses_have_the_shares_of_the_paper(real):
    # Table 2 is of first stays that did not end in death or in a hospice.
    kept = ~real.data["discharge_disposition_id"].isin([11, 13, 14, 19, 20, 21])
    first = kept & ~real.patient.where(kept).duplicated()
    shares = 100.0 * real.data["diag_1"][first].value_counts(normalize=True)
    published = {
        "circulatory": 30.6,
        "respiratory": 13.6,
        "digestive": 9.3,
        "diabetes": 8.2,
        "injury": 6.7,
        "musculoskeletal": 5.8,
        "genitourinary": 4.9,
        "neoplasms": 3.6,
        "other": 17.3,
    }
    for group, share in published.items():
        assert_allclose(shares[group], share, atol=0.1)


@needs_diabetes130
def test_the_real_rows_are_prepared_with_norm_one(real):
    part = real.data.iloc[:20_000]
    out = preparation(real).fit_transform(part)
    assert out.shape == (20_000, 239)
    assert_allclose(np.linalg.norm(out, axis=1), 1.0, rtol=1e-14)
    assert_allclose(preparation(real).fit_transform(part.iloc[[7]]), out[[7]], rtol=1e-14)
