"""Data sets for classification: Adult, forest cover types and Fair's survey."""

import numpy as np
from sklearn.datasets import fetch_covtype, fetch_openml

from skdp.datasets._files import (
    TableDataSet,
    finite_numbers,
    import_pandas,
    listed,
    parts_of,
    whole_numbers,
)

# The published codebook (adult.names), and "?" where values may be unknown.
_CODEBOOK = {
    "workclass": (
        "Private, Self-emp-not-inc, Self-emp-inc, Federal-gov, Local-gov, State-gov, "
        "Without-pay, Never-worked, ?"
    ),
    "education": (
        "Bachelors, Some-college, 11th, HS-grad, Prof-school, Assoc-acdm, Assoc-voc, 9th, "
        "7th-8th, 12th, Masters, 1st-4th, 10th, Doctorate, 5th-6th, Preschool"
    ),
    "marital-status": (
        "Married-civ-spouse, Divorced, Never-married, Separated, Widowed, "
        "Married-spouse-absent, Married-AF-spouse"
    ),
    "occupation": (
        "Tech-support, Craft-repair, Other-service, Sales, Exec-managerial, Prof-specialty, "
        "Handlers-cleaners, Machine-op-inspct, Adm-clerical, Farming-fishing, "
        "Transport-moving, Priv-house-serv, Protective-serv, Armed-Forces, ?"
    ),
    "relationship": "Wife, Own-child, Husband, Not-in-family, Other-relative, Unmarried",
    "race": "White, Asian-Pac-Islander, Amer-Indian-Eskimo, Other, Black",
    "sex": "Female, Male",
    "native-country": (
        "United-States, Cambodia, England, Puerto-Rico, Canada, Germany, "
        "Outlying-US(Guam-USVI-etc), India, Japan, Greece, South, China, Cuba, Iran, Honduras, "
        "Philippines, Italy, Poland, Jamaica, Vietnam, Mexico, Portugal, Ireland, France, "
        "Dominican-Republic, Laos, Ecuador, Taiwan, Haiti, Columbia, Hungary, Guatemala, "
        "Nicaragua, Scotland, Thailand, Yugoslavia, El-Salvador, Trinadad&Tobago, Peru, Hong, "
        "Holand-Netherlands, ?"
    ),
}

# The order of the columns in the original files.
_COLUMNS = (
    "age, workclass, fnlwgt, education, education-num, marital-status, occupation, relationship, "
    "race, sex, capital-gain, capital-loss, hours-per-week, native-country"
)
FILES = {"train": "adult/adult.data.gz", "test": "adult/adult.test.gz"}
ADULT = TableDataSet(
    *FILES.values(),
    page="https://archive.ics.uci.edu/dataset/2/adult",
    feature_names=_COLUMNS.split(", "),
    # Round numbers that hold for any survey of this kind: ages up to 100, amounts and hours as
    # wide as their fields (five, four and two digits), the 16 steps of education. What lies
    # outside is clipped.
    bounds={
        "age": (0.0, 100.0),
        "fnlwgt": (0.0, 2_000_000.0),
        "education-num": (1.0, 16.0),
        "capital-gain": (0.0, 99_999.0),
        "capital-loss": (0.0, 9_999.0),
        "hours-per-week": (0.0, 99.0),
    },
    categories={name: values.split(", ") for name, values in _CODEBOOK.items()},
    classes=["<=50K", ">50K"],
    DESCR="""Adult, also known as Census Income

32,561 training and 16,281 test records of the 1994 census of the United States, with six numeric
and eight categorical features; the task is to tell who earned more than 50,000 dollars a year.
An unknown value is the category "?". "fnlwgt" is the weight of the record in the survey rather
than a property of the person.

The bounds and categories that come with the data are public: round numbers and the published
codebook, written down without a look at the records.

B. Becker and R. Kohavi, Adult, UCI Machine Learning Repository, 1996, doi:10.24432/C5XW20,
licence CC BY 4.0. R. Kohavi, "Scaling up the accuracy of naive-Bayes classifiers: a decision-tree
hybrid", KDD 1996.
""",
)
COLUMNS = [*ADULT.public["feature_names"], "income"]

# Age and final weight of the first row of either part, which tell the parts apart.
N_TRAIN, FIRST_TRAIN = 32_561, (39, 77_516)
N_TEST, FIRST_TEST = 16_281, (25, 226_802)


def fetch_adult(subset="train", *, data_home=None, timeout=None, return_X_y=False):
    """Load the Adult census data (binary classification) with public bounds.

    The files ``adult/adult.data`` and ``adult/adult.test``, optionally compressed with gzip
    (``.gz``), are read from the folder in the environment variable ``SKDP_DATA``. If they are
    missing, scikit-learn fetches the data from OpenML or from its cache. Requires pandas.

    Parameters
    ----------
    subset : {"train", "test", "all"}, default="train"
        Subset to load, in the original split; "all" is the training set followed by the test
        set.

    data_home : str or path-like, default=None
        Folder of scikit-learn's cache.

    timeout : float, default=None
        Time limit in seconds for scikit-learn to load or download the data. Completed downloads
        stay in the cache. None sets no limit and retries.

    return_X_y : bool, default=False
        If True, return only ``(data, target)``.

    Returns
    -------
    sklearn.utils.Bunch
        Bunch with ``data`` (DataFrame of 14 columns), ``target`` (Series of ``"<=50K"`` and
        ``">50K"``), ``frame`` (both), ``feature_names``, ``classes`` (the two labels), ``bounds``
        (dict of the numeric columns), ``categories`` (dict of the categorical columns),
        ``indicators`` (an empty list), and ``DESCR``. Bounds, categories and labels are
        public: they are fixed in the code and do not depend on the records.

    Examples
    --------
    >>> from skdp.datasets import fetch_adult
    >>> from skdp.preprocessing import make_public_preprocessor
    >>> adult = fetch_adult()  # doctest: +SKIP
    >>> prepare = make_public_preprocessor(
    ...     adult.bounds, adult.categories, log=["capital-gain", "capital-loss"]
    ... )  # doctest: +SKIP
    >>> prepare.fit_transform(adult.data).shape  # doctest: +SKIP
    (32561, 108)
    """
    parts, pandas = parts_of(subset), import_pandas()

    def read(*paths):
        return [
            pandas.read_csv(
                path,
                names=COLUMNS,
                skipinitialspace=True,
                skiprows=int(part == "test"),  # its first line is not a record
                keep_default_na=False,
            )
            for part, path in zip(parts, paths, strict=True)
        ]

    def fetch(**retries):
        found = fetch_openml("adult", version=2, data_home=data_home, as_frame=True, **retries)
        both = _divided(found.frame.rename(columns={"class": "income"}))
        return [both[part] for part in parts]

    frames = ADULT.load(read, fetch, timeout, tuple(FILES[part] for part in parts))
    frame = pandas.concat(frames, ignore_index=True)[COLUMNS]
    # Both sources get the same types, which do not depend on the rows.
    typed = {name: whole_numbers(frame[name]) for name in ADULT.public["bounds"]}
    labels = {**ADULT.public["categories"], "income": ADULT.public["classes"]}
    for name, values in labels.items():
        # OpenML has NaN where the files have "?"; labels of the test file end in a full stop.
        texts = frame[name].astype(object).fillna("?").str.strip().str.rstrip(".")
        typed[name] = pandas.Categorical(listed(texts, values), categories=values)
    frame = frame.assign(**typed)
    return ADULT.bunch(frame[COLUMNS[:-1]], frame["income"], return_X_y)


def _divided(frame):
    """Both parts as OpenML has them, told apart by their first rows.

    OpenML stacks the two original files, the test file first. Both orders are understood; anything
    else is refused, because a wrong cut would mix training and test rows unseen.
    """
    if len(frame) == N_TRAIN + N_TEST:
        for first, second, cut in (("test", "train", N_TEST), ("train", "test", N_TRAIN)):
            halves = {first: frame.iloc[:cut], second: frame.iloc[cut:]}
            if _begins(halves["train"], FIRST_TRAIN) and _begins(halves["test"], FIRST_TEST):
                return halves
    raise ValueError(
        f"OpenML's adult, version 2, must be the {N_TEST} test rows and the {N_TRAIN} training "
        f"rows in their original order; got {len(frame)} rows in another order"
    )


def _begins(frame, row):
    return tuple(frame[["age", "fnlwgt"]].iloc[0]) == row


COVERTYPE = TableDataSet(
    "covertype/covtype.data.gz",
    page="https://archive.ics.uci.edu/dataset/31/covertype",
    # Round numbers from geography and the units of the codebook (covtype.info): the Front Range
    # from its foothills to the highest summit of Colorado, a circle, a right angle, eight bits,
    # and heights and distances of a few kilometres. What lies outside is clipped.
    bounds={
        "Elevation": (1_500.0, 4_500.0),
        "Aspect": (0.0, 360.0),
        "Slope": (0.0, 90.0),
        "Horizontal_Distance_To_Hydrology": (0.0, 2_000.0),
        "Vertical_Distance_To_Hydrology": (-1_000.0, 1_000.0),
        "Horizontal_Distance_To_Roadways": (0.0, 10_000.0),
        "Hillshade_9am": (0.0, 255.0),
        "Hillshade_Noon": (0.0, 255.0),
        "Hillshade_3pm": (0.0, 255.0),
        "Horizontal_Distance_To_Fire_Points": (0.0, 10_000.0),
    },
    indicators=[
        *(f"Wilderness_Area_{i}" for i in range(4)),
        *(f"Soil_Type_{i}" for i in range(40)),
    ],
    classes=[1, 2, 3, 4, 5, 6, 7],
    target_names=[
        *("Spruce/Fir", "Lodgepole Pine", "Ponderosa Pine", "Cottonwood/Willow", "Aspen"),
        *("Douglas-fir", "Krummholz"),
    ],
    DESCR="""Covertype

581,012 patches of forest, 30 by 30 metres, in four wilderness areas of the Roosevelt National
Forest in Colorado: ten cartographic measures, four indicators of the wilderness area and forty of
the type of soil. The task is to tell which of seven types of tree prevails.

The bounds that come with the data are public: round numbers, written down without a look at the
records.

J. Blackard, Covertype, UCI Machine Learning Repository, 1998, doi:10.24432/C50K5N, licence
CC BY 4.0, copyright Jock A. Blackard and Colorado State University. J. Blackard and D. Dean,
"Comparative accuracies of artificial neural networks and discriminant analysis in predicting
forest cover types from cartographic variables", Computers and Electronics in Agriculture 24, 1999.
""",
)


def fetch_covertype(*, data_home=None, timeout=None, return_X_y=False):
    """Load the forest cover types (seven classes) with public bounds.

    The file ``covertype/covtype.data``, optionally compressed with gzip (``.gz``), is read from
    the folder in the environment variable ``SKDP_DATA``. If it is missing, scikit-learn fetches
    the data. Requires pandas.

    Parameters
    ----------
    data_home, timeout, return_X_y
        See `fetch_adult`.

    Returns
    -------
    sklearn.utils.Bunch
        Bunch with ``data`` (DataFrame of 54 columns with scikit-learn's names), ``target``
        (Series of 1 to 7), ``frame`` (both), ``feature_names``, ``target_names`` (the seven
        types, in numerical order), ``classes`` (the seven numbers), ``bounds`` (dict of the ten
        numeric columns), ``indicators`` (names of the 0/1 columns), ``categories`` (an empty
        dict), and ``DESCR``. Bounds, indicators and labels are public: they are fixed in the
        code and do not depend on the records.

    Examples
    --------
    >>> from skdp.datasets import fetch_covertype
    >>> from skdp.preprocessing import make_public_preprocessor
    >>> cover = fetch_covertype()  # doctest: +SKIP
    >>> prepare = make_public_preprocessor(
    ...     cover.bounds, indicators=cover.indicators
    ... )  # doctest: +SKIP
    >>> prepare.fit_transform(cover.data).shape  # doctest: +SKIP
    (581012, 54)
    """
    pandas = import_pandas()

    def read(path):
        values = pandas.read_csv(path, header=None, dtype=np.float64).to_numpy()
        if values.shape[1] != len(columns) + 1:
            raise ValueError(
                f"{path} must have {len(columns) + 1} columns; got {values.shape[1]}."
            )
        return values[:, :-1], values[:, -1]

    def fetch(**retries):
        return fetch_covtype(data_home=data_home, return_X_y=True, **retries)

    columns = COVERTYPE.public["feature_names"]
    data, labels = COVERTYPE.load(read, fetch, timeout)
    if not np.isin(labels, COVERTYPE.public["classes"]).all():
        raise ValueError("The last column must contain the cover types 1 to 7.")
    target = pandas.Series(labels.astype(np.int64), name="Cover_Type")
    return COVERTYPE.bunch(pandas.DataFrame(data, columns=columns), target, return_X_y)


# Kinds of work, without an order.
_WORK = [1, 2, 3, 4, 5, 6]
FAIR = TableDataSet(
    page="",  # the records come with statsmodels
    # The answers that the questionnaire offered, lowest and highest, as Fair coded them. Ages:
    # 17.5 is under 20 and 42 is 40 or more. Years: 0.5 is less than one and 23 is more than ten
    # with a child of 18 or more. Children: 5.5 is five or more. Education: 9 is grade school, 20
    # an advanced degree.
    bounds={
        "rate_marriage": (1.0, 5.0),
        "age": (17.5, 42.0),
        "yrs_married": (0.5, 23.0),
        "children": (0.0, 5.5),
        "religious": (1.0, 4.0),
        "educ": (9.0, 20.0),
    },
    categories={"occupation": _WORK, "occupation_husb": _WORK},
    classes=[0, 1],
    target_names=["no affair", "affair"],
    DESCR="""Fair's survey of extramarital affairs

6,366 answers of married women to a survey of the magazine Redbook in 1974: how happy they call
their marriage (1 to 5), age, years of marriage, number of children, how religious they are (1 to
4), years of education, and the kind of their own and of their husband's work (1 student; 2
farming, semi-skilled or unskilled; 3 white-collar; 4 teacher, nurse, artist, technician or
skilled; 5 managerial or in business; 6 professional with an advanced degree). The task is to tell
who had an affair: whose time spent in affairs is above zero, of which the rest is left out.

The bounds and categories that come with the data are public: the answers that the questionnaire
offered, written down without a look at the records.

R. C. Fair, "A theory of extramarital affairs", Journal of Political Economy 86, 1978. The
records come with the package statsmodels, with permission of the author.
""",
)


def fetch_fair(*, return_X_y=False):
    """Load Fair's survey of extramarital affairs (binary classification) with public bounds.

    The records are part of statsmodels, which the extra ``skdp[data]`` installs. No network
    access is needed. Requires pandas.

    Parameters
    ----------
    return_X_y
        See `fetch_adult`.

    Returns
    -------
    sklearn.utils.Bunch
        Bunch with ``data`` (DataFrame of 8 columns), ``target`` (Series of 0 and 1, ``"affair"``),
        ``frame`` (both), ``feature_names``, ``classes`` (0 and 1), ``target_names`` (their
        meaning), ``bounds`` (dict of the numeric columns), ``categories`` (dict of the
        categorical columns), ``indicators`` (an empty list), and ``DESCR``. Bounds, categories
        and labels are public: they are fixed in the code and do not depend on the records.

    Examples
    --------
    >>> from skdp.datasets import fetch_fair
    >>> from skdp.preprocessing import make_public_preprocessor
    >>> fair = fetch_fair()
    >>> prepare = make_public_preprocessor(fair.bounds, fair.categories)
    >>> prepare.fit_transform(fair.data).shape
    (6366, 18)
    """
    import_pandas()
    try:
        from statsmodels.datasets import fair
    except ImportError as error:
        raise ImportError(
            "fetch_fair reads the records from statsmodels: install statsmodels, or "
            'skdp with its extra "data", to use it.'
        ) from error
    frame = fair.load_pandas().data
    target = (finite_numbers(frame["affairs"]) > 0.0).astype(np.int64).rename("affair")
    return FAIR.bunch(FAIR.features(frame), target, return_X_y)
