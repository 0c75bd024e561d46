"""California housing, with its original columns."""

from functools import partial

from sklearn.datasets import fetch_california_housing as fetch_from_scikit_learn

from skdp.datasets._files import check_timeout, fetched, local_file, pandas_for
from skdp.datasets._tables import make_bunch, read_table

__all__ = ["fetch_california_housing"]

# The corners of California in degrees; ages as the census sorts them (built by 1939 is the last
# class); ten times the 3,000 people that a block group may have, with a household for three of
# them, two bedrooms and five rooms for each; incomes in 10,000 dollars up to the topmost class.
CALIFORNIA_BOUNDS = {
    "longitude": (-125.0, -114.0),
    "latitude": (32.0, 42.0),
    "housingMedianAge": (0.0, 52.0),
    "totalRooms": (0.0, 50_000.0),
    "totalBedrooms": (0.0, 20_000.0),
    "population": (0.0, 30_000.0),
    "households": (0.0, 10_000.0),
    "medianIncome": (0.0, 15.0),
}
CALIFORNIA_COLUMNS = [*CALIFORNIA_BOUNDS, "medianHouseValue"]
CALIFORNIA_LOG = ["totalRooms", "totalBedrooms", "population", "households"]
# The census gives values above 500,000 dollars as 500,001.
CALIFORNIA_TARGET = (0.0, 500_001.0)
CALIFORNIA_DESCR = """California housing

20,640 block groups of the census of 1990: position, median age of the houses, numbers of rooms,
bedrooms, people and households, and median income (in 10,000 dollars); the task is to predict the
median value of a house, in dollars. The columns are the original ones; scikit-learn's version has
averages a household in place of three of the numbers, and values in 100,000 dollars.

The bounds that come with the data are public: geography and the rules of the census, written down
without a look at the records. Numbers of rooms, people and households are best scaled in log.

R. K. Pace and R. Barry, "Sparse spatial autoregressions", Statistics & Probability Letters 33,
1997.
"""


def fetch_california_housing(*, data_home=None, timeout=None, return_X_y=False):
    """Load the California housing data (regression) with their original columns and public bounds.

    The file ``california_housing/cal_housing.csv``, packed with gzip (``.gz``) or not and with a
    header line, is looked for in the folder named by the environment variable ``SKDP_DATA``;
    where it is not there, scikit-learn fetches the data, and the original columns are computed
    from its averages. Needs pandas.

    Parameters
    ----------
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
        With ``data`` (DataFrame of 8 columns), ``target`` (Series of values in dollars,
        ``"medianHouseValue"``), ``frame`` (both), ``feature_names``, ``bounds`` (dict), ``log``
        (names of the columns that are best scaled in log), ``categories`` (an empty dict),
        ``indicators`` (an empty list), ``target_bounds``, and ``DESCR``. Bounds are public: they
        are written in the code and do not depend on the records.

    Examples
    --------
    >>> from skdp.datasets import fetch_california_housing
    >>> from skdp.preprocessing import make_public_preprocessor
    >>> houses = fetch_california_housing()  # doctest: +SKIP
    >>> prepare = make_public_preprocessor(
    ...     houses.bounds, log=houses.log, norm=None
    ... )  # doctest: +SKIP
    >>> prepare.fit_transform(houses.data).shape  # doctest: +SKIP
    (20640, 8)
    """
    check_timeout(timeout)
    pandas = pandas_for("fetch_california_housing")
    name = "california_housing/cal_housing.csv.gz"
    path = local_file(name)
    if path is None:
        frame = _original_california(pandas, data_home, timeout, name)
    else:
        frame = read_table(pandas, path, CALIFORNIA_COLUMNS)
    return make_bunch(
        frame[list(CALIFORNIA_BOUNDS)],
        frame["medianHouseValue"],
        bounds=CALIFORNIA_BOUNDS,
        log=CALIFORNIA_LOG,
        target_bounds=CALIFORNIA_TARGET,
        DESCR=CALIFORNIA_DESCR,
        return_X_y=return_X_y,
    )


def _original_california(pandas, data_home, timeout, name):
    """Undo scikit-learn's averages, which are quotients of whole numbers."""
    data, target = fetched(
        partial(fetch_from_scikit_learn, data_home=data_home, return_X_y=True, as_frame=True),
        timeout,
        title="The California housing data set",
        names=name,
        page=(
            "https://www.dcc.fc.up.pt/~ltorgo/Regression/cal_housing.html "
            f"(with the header line {','.join(CALIFORNIA_COLUMNS)})"
        ),
    )
    households = (data["Population"] / data["AveOccup"]).round()
    return pandas.DataFrame(
        {
            "longitude": data["Longitude"],
            "latitude": data["Latitude"],
            "housingMedianAge": data["HouseAge"],
            "totalRooms": (data["AveRooms"] * households).round(),
            "totalBedrooms": (data["AveBedrms"] * households).round(),
            "population": data["Population"],
            "households": households,
            "medianIncome": data["MedInc"],
            "medianHouseValue": (target * 100_000.0).round(),
        }
    )
