"""The Adult census data."""

from sklearn.datasets import fetch_openml

from skdp.datasets._files import TableDataSet, import_pandas, listed, parts_of, whole_numbers

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

    The files ``adult/adult.data`` and ``adult/adult.test``, packed with gzip (``.gz``) or not,
    are looked for in the folder named by the environment variable ``SKDP_DATA``; where they
    are not there, scikit-learn fetches the data from OpenML, or takes them from its folder if it
    has fetched them before. Needs pandas.

    Parameters
    ----------
    subset : {"train", "test", "all"}, default="train"
        The part to load, as divided by the donors; "all" is the training part followed by the
        test part.

    data_home : str or path-like, default=None
        Folder in which scikit-learn keeps what it fetches.

    timeout : float, default=None
        Seconds after which to give up what scikit-learn does, from its folder or over the network;
        what it has fetched by then it need not fetch again. None waits, and tries again.

    return_X_y : bool, default=False
        If True, return ``(data, target)`` only.

    Returns
    -------
    sklearn.utils.Bunch
        With ``data`` (DataFrame of 14 columns), ``target`` (Series of ``"<=50K"`` and
        ``">50K"``), ``frame`` (both), ``feature_names``, ``classes`` (the two labels), ``bounds``
        (dict of the numeric columns), ``categories`` (dict of the categorical columns),
        ``indicators`` (an empty list), and ``DESCR``. Bounds, categories and labels are
        public: they are written in the code and do not depend on the records.

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
