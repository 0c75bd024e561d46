import gzip

import pytest
from pandas.testing import assert_frame_equal

from skdp.datasets import fetch_diabetes130

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


def write(folder, text):
    path = folder / "diabetes130" / "diabetic_data.csv.gz"
    path.write_bytes(gzip.compress(text.encode()))


@pytest.fixture
def tiny(tmp_path, monkeypatch, scikit_learn):
    """A folder with three stays of two patients, and no other source."""
    (tmp_path / "diabetes130").mkdir()
    write(tmp_path, FILE)
    monkeypatch.setenv("SKDP_DATA", str(tmp_path))
    scikit_learn(fetch_diabetes130, "fetch_openml")
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
