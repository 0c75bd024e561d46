"""Hospital stays of patients with diabetes."""

import numpy as np
from sklearn.datasets import fetch_openml

from skdp._validation import one_of
from skdp.datasets._files import (
    TableDataSet,
    damaged_column,
    finite_numbers,
    import_pandas,
    listed,
    whole_numbers,
)

AGES = {f"[{age}-{age + 10})": age + 5.0 for age in range(0, 100, 10)}

# The paper's groups of diagnoses (Table 2), by the whole part of an ICD-9 code; the symptoms 785
# to 788 belong to the organs. All other codes, external causes (E) and supplementary ones (V)
# among them, are "other".
ICD9 = {
    "circulatory": [(390, 459), (785, 785)],
    "respiratory": [(460, 519), (786, 786)],
    "digestive": [(520, 579), (787, 787)],
    "diabetes": [(250, 250)],
    "injury": [(800, 999)],
    "musculoskeletal": [(710, 739)],
    "genitourinary": [(580, 629), (788, 788)],
    "neoplasms": [(140, 239)],
}
DIAGNOSES = ["diag_1", "diag_2", "diag_3"]

# The paper's groups of specialties (Table 3).
DEPARTMENTS = {
    "InternalMedicine": "internal medicine",
    "Cardiology": "cardiology",
    "Surg": "surgery",
    "Family/GeneralPractice": "family/general practice",
}

_MEDICINES = (
    "metformin, repaglinide, nateglinide, chlorpropamide, glimepiride, acetohexamide, glipizide, "
    "glyburide, tolbutamide, pioglitazone, rosiglitazone, acarbose, miglitol, troglitazone, "
    "tolazamide, examide, citoglipton, insulin, glyburide-metformin, glipizide-metformin, "
    "glimepiride-pioglitazone, metformin-rosiglitazone, metformin-pioglitazone"
)
MEDICINES = _MEDICINES.split(", ")
_PAYERS = "BC, CH, CM, CP, DM, FR, HM, MC, MD, MP, OG, OT, PO, SI, SP, UN, WC, ?"

# The data dictionary (Table 1 of the paper) and the list of codes that comes with the file
# (IDs_mapping.csv, where no source has the number 16); "?" where values may be unknown. Of the
# payers nobody has published more than the codes in the header of OpenML's version.
CATEGORIES: dict[str, list] = {
    "race": ["Caucasian", "AfricanAmerican", "Hispanic", "Asian", "Other", "?"],
    "gender": ["Female", "Male", "Unknown/Invalid"],
    "admission_type_id": list(range(1, 9)),
    "discharge_disposition_id": list(range(1, 31)),
    "admission_source_id": [code for code in range(1, 27) if code != 16],
    "payer_code": _PAYERS.split(", "),
    "medical_specialty": [*DEPARTMENTS.values(), "other", "?"],
    **{name: [*ICD9, "other", "?"] for name in DIAGNOSES},
    "max_glu_serum": ["None", "Norm", ">200", ">300"],
    "A1Cresult": ["None", "Norm", ">7", ">8"],
    **{name: ["No", "Steady", "Up", "Down"] for name in MEDICINES},
    "change": ["No", "Ch"],
    "diabetesMed": ["No", "Yes"],
}
# Places that may stand for hospitals, which the file does not tell.
PLACES = ["medical_specialty", "payer_code", "admission_source_id", "admission_type_id"]

READMITTED = ["NO", ">30", "<30"]
TARGETS = {
    "any": ([">30", "<30"], ["not readmitted", "readmitted"]),
    "<30": (["<30"], ["not readmitted within 30 days", "readmitted within 30 days"]),
}

DIABETES = TableDataSet(
    "diabetes130/diabetic_data.csv.gz",
    page="https://archive.ics.uci.edu/dataset/296",
    # Ages run in decades to 100. Stays of 1 to 14 days were selected (Strack et al., Section 2).
    # The UB-92 claim form of those years has fields for 9 diagnoses and 6 procedures. The others
    # are round numbers: seven tests a day for two weeks, fifty medicines, a visit a week in the
    # year before. What lies outside is clipped.
    bounds={
        "age": (0.0, 100.0),
        "time_in_hospital": (1.0, 14.0),
        "num_lab_procedures": (0.0, 100.0),
        "num_procedures": (0.0, 6.0),
        "num_medications": (0.0, 50.0),
        "number_outpatient": (0.0, 52.0),
        "number_emergency": (0.0, 52.0),
        "number_inpatient": (0.0, 52.0),
        "number_diagnoses": (0.0, 9.0),
    },
    categories=CATEGORIES,
    log=["number_outpatient", "number_emergency", "number_inpatient"],
    classes=[0, 1],
    DESCR="""Diabetes 130-US hospitals, 1999 to 2008

101,766 stays of 71,518 patients with diabetes in 130 hospitals of the United States: who they
are, how they came and left, nine counts and measures, the kinds of three diagnoses, two
laboratory results and 23 medicines. The task is to tell whether the patient came back: at any
time (46 % of the stays), or within 30 days (11 %). Stays that end in death or in a hospice are
kept; they are codes 11, 13, 14, 19, 20 and 21 of discharge_disposition_id, and Strack et al.
leave them out.

A patient has up to 40 stays. A guarantee for records protects a stay; one for users protects all
stays of a patient, and "patient" tells which they are. Training and test sets are best divided by
patient, too. The file does not name the hospitals; "groups" divides the stays by a published
list (the department, unless asked otherwise), in their stead. Neither looks at the target.

Ages are the middles of their decades, diagnoses and specialties the groups of Strack et al., and
an unknown value is the category "?". The weight, which is missing for 97 % of the stays, is left
out.

The bounds and categories that come with the data are public: the published codebook, the rules by
which stays were selected, and round numbers, none of them computed from the records. The one
exception is the list of payers, of which only the codes that occur are published. Rows that
make_public_preprocessor prepares have norm 1.

J. Clore, K. Cios, J. DeShazo and B. Strack, Diabetes 130-US Hospitals for Years 1999-2008, UCI
Machine Learning Repository, 2014, doi:10.24432/C5230J, licence CC BY 4.0. B. Strack, J. DeShazo,
C. Gennings, J. Olmo, S. Ventura, K. Cios and J. Clore, "Impact of HbA1c measurement on hospital
readmission rates: analysis of 70,000 clinical database patient records", BioMed Research
International 2014, article 781670.
""",
)


def fetch_diabetes130(
    target="any",
    *,
    group_by="medical_specialty",
    data_home=None,
    timeout=None,
    return_X_y=False,
):
    """Load hospital stays of diabetes patients (binary classification) with public bounds.

    The file ``diabetes130/diabetic_data.csv``, optionally compressed with gzip (``.gz``), is
    read from the folder in the environment variable ``SKDP_DATA``. If it is missing,
    scikit-learn fetches the data from OpenML. Requires pandas.

    Parameters
    ----------
    target : {"any", "<30"}, default="any"
        Class 1: readmission at any time (46 % of the stays), or within 30 days (11 %).

    group_by : {"medical_specialty", "payer_code", "admission_source_id", \
"admission_type_id"}, default="medical_specialty"
        Column used in place of the hospital, which the file does not contain.

    data_home, timeout, return_X_y
        See `fetch_adult`.

    Returns
    -------
    sklearn.utils.Bunch
        Bunch with ``data`` (DataFrame of 46 columns, one row per stay), ``target`` (Series of 0
        and 1, ``"readmitted"``), ``frame`` (both), ``patient`` (Series of patient numbers),
        ``groups`` (Series of positions in ``group_names``), ``group_names`` (public list of
        the values of ``group_by``, some of which may not occur), ``feature_names``, ``classes``
        (0 and 1), ``target_names`` (their meaning), ``bounds`` (dict of the numeric columns),
        ``categories`` (dict of the categorical columns), ``log`` (names of the columns that are
        best log-scaled), ``indicators`` (an empty list), and ``DESCR``. Bounds, categories and
        names are public: they are fixed in the code and do not depend on the records. Values
        outside their public list are missing in ``data``, and
        `~skdp.preprocessing.make_public_preprocessor` encodes them as zeros.

    Notes
    -----
    Stays of one patient may be in several groups (9 % of the patients, by medical specialty).
    If a patient must have one group, use that of the first stay in the file:
    ``groups.groupby(patient).transform("first")``.

    Most medicines are not given in most stays, and the indicators of "No" account for much of
    the row norm. To leave them out, remove "No" from the lists: zeros encode it.

    Examples
    --------
    >>> from skdp.datasets import fetch_diabetes130
    >>> from skdp.preprocessing import make_public_preprocessor
    >>> stays = fetch_diabetes130()  # doctest: +SKIP
    >>> prepare = make_public_preprocessor(
    ...     stays.bounds, stays.categories, log=stays.log
    ... )  # doctest: +SKIP
    >>> prepare.fit_transform(stays.data).shape  # doctest: +SKIP
    (101766, 239)
    """
    one_of(TARGETS, target=target)
    one_of(PLACES, group_by=group_by)

    def fetch(**retries):
        options = dict(version=1, data_home=data_home, as_frame=True, **retries)
        return fetch_openml("Diabetes130US", **options).frame

    columns = [*DIABETES.public["feature_names"], "patient_nbr", "readmitted"]
    # "None" of the laboratory results is a value: nobody measured.
    options = {"keep_default_na": False, "low_memory": False}
    frame = DIABETES.table(columns, fetch, timeout, **options)
    data = _features(frame)
    answers = listed(_texts(frame["readmitted"]), READMITTED)
    positive, target_names = TARGETS[target]
    y = answers.isin(positive).astype(np.int64).rename("readmitted")
    groups = data[group_by].cat.codes.astype(np.int64).rename(group_by)
    if not return_X_y and (groups < 0).any():
        raise ValueError(damaged_column(group_by))
    return DIABETES.bunch(
        data,
        y,
        return_X_y,
        patient=whole_numbers(frame["patient_nbr"]).rename("patient"),
        groups=groups,
        group_names=list(CATEGORIES[group_by]),
        target_names=list(target_names),
    )


def _features(frame):
    """Columns of types that do not depend on the rows, in the order of the public lists."""
    pandas = import_pandas()
    ages = listed(_texts(frame["age"]), AGES).map(AGES)
    columns = {
        name: finite_numbers(ages if name == "age" else frame[name])
        for name in DIABETES.public["bounds"]
    }
    mapped = {**dict.fromkeys(DIAGNOSES, _diagnosis), "medical_specialty": _department}
    for name, values in CATEGORIES.items():
        whole = isinstance(values[0], int)
        column = whole_numbers(frame[name]) if whole else _texts(frame[name])
        if name in mapped:
            column = column.map({text: mapped[name](text) for text in column.unique()})
        # Unknown values are removed first: pandas is about to refuse them.
        known = column.astype(object).where(column.isin(values), None)
        columns[name] = pandas.Categorical(known, categories=values)
    return pandas.DataFrame(columns)


def _texts(column):
    # OpenML has NaN where the file has "?".
    return column.astype(object).where(column.notna(), "?").astype(str).str.strip()


def _diagnosis(code):
    """Group of an ICD-9 code, which may lack its leading zeros; "?" where there is none."""
    if code == "?":
        return code
    try:
        number = int(float(code))
    except ValueError:
        # Codes of external causes and supplementary ones begin with a letter.
        return "other" if code[:1] in ("E", "V") else None
    for group, ranges in ICD9.items():
        if any(low <= number <= high for low, high in ranges):
            return group
    return "other"


def _department(specialty):
    if specialty == "?":
        return specialty
    return next(
        (group for start, group in DEPARTMENTS.items() if specialty.startswith(start)), "other"
    )
