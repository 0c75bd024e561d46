"""The forest cover type data."""

import numpy as np
from sklearn.datasets import fetch_covtype

from skdp.datasets._files import TableDataSet, import_pandas

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

    The file ``covertype/covtype.data``, packed with gzip (``.gz``) or not, is looked for in the
    folder named by the environment variable ``SKDP_DATA``; where it is not there, scikit-learn
    fetches the data. Needs pandas.

    Parameters
    ----------
    data_home, timeout, return_X_y
        See `fetch_adult`.

    Returns
    -------
    sklearn.utils.Bunch
        With ``data`` (DataFrame of 54 columns, named as scikit-learn names them), ``target``
        (Series of 1 to 7), ``frame`` (both), ``feature_names``, ``target_names`` (the seven
        types, in the order of their numbers), ``classes`` (the seven numbers), ``bounds`` (dict
        of the ten measures), ``indicators`` (names of the columns of zeros and ones),
        ``categories`` (an empty dict), and ``DESCR``. Bounds, indicators and labels are public:
        they are written in the code and do not depend on the records.

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
        raise ValueError("The last column must hold the cover types 1 to 7.")
    target = pandas.Series(labels.astype(np.int64), name="Cover_Type")
    return COVERTYPE.bunch(pandas.DataFrame(data, columns=columns), target, return_X_y)
