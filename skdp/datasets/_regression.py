"""Regression data sets."""

from functools import partial

from sklearn.datasets import fetch_california_housing as fetch_from_scikit_learn
from sklearn.utils import Bunch

from skdp.datasets._files import (
    check_timeout,
    damaged_column,
    fetched,
    finite_numbers,
    local_file,
    pandas_for,
    required_file,
)

__all__ = [
    "fetch_bike_sharing",
    "fetch_california_housing",
    "fetch_ccpp",
    "fetch_kin40k",
    "fetch_nycflights13",
]

# The codebook (Readme.txt): codes of the calendar and the weather, and measures that the donors
# have divided by their largest value.
BIKE_CATEGORIES = {
    "season": range(1, 5),
    "yr": range(2),
    "mnth": range(1, 13),
    "hr": range(24),
    "holiday": range(2),
    "weekday": range(7),
    "workingday": range(2),
    "weathersit": range(1, 5),
}
BIKE_BOUNDS = dict.fromkeys(["temp", "atemp", "hum", "windspeed"], (0.0, 1.0))
# A thousand hires in an hour is about one for each bicycle that the service began with.
BIKE_TARGET = (0.0, 1_000.0)
BIKE_DESCR = """Bike sharing in Washington, by the hour

Hires of the Capital Bikeshare system in 2011 and 2012: 17,379 hours in the order of time, with
the calendar (season, year, month, hour, holiday, day of the week, working day), the weather and
the number of bicycles hired, "cnt". Years count from 2011 and days of the week from Sunday, both
from 0; the measures of the weather are divided by their largest value. The parts of the target,
"casual" and "registered", are left out.

The bounds and categories that come with the data are public: the published codebook, and a round
number of bicycles, written down without a look at the records.

H. Fanaee-T, Bike Sharing, UCI Machine Learning Repository, 2013, doi:10.24432/C5W894, licence
CC BY 4.0. H. Fanaee-T and J. Gama, "Event labeling combining ensemble detectors and background
knowledge", Progress in Artificial Intelligence 2, 2014.
"""

# Weather of a temperate coast in degrees Celsius, millibar and per cent, and a condenser's vacuum
# in cm Hg. The range of the power is published with the data (420.26 to 495.76 MW).
CCPP_BOUNDS = {
    "AT": (-10.0, 40.0),
    "V": (20.0, 90.0),
    "AP": (970.0, 1_050.0),
    "RH": (0.0, 100.0),
}
CCPP_TARGET = (420.0, 500.0)
CCPP_DESCR = """Combined cycle power plant

9,568 hourly averages from a Turkish power plant at full load, 2006 to 2011, in random order:
ambient temperature AT (degrees Celsius), exhaust vacuum V (cm Hg), ambient pressure AP (millibar)
and relative humidity RH (per cent); the task is to predict the electrical power PE (MW).

The bounds that come with the data are public: round numbers that suit weather and machine, and
for the power the range published with the data, rounded outwards.

P. Tüfekci and H. Kaya, Combined Cycle Power Plant, UCI Machine Learning Repository, 2014,
doi:10.24432/C5002N, licence CC BY 4.0. P. Tüfekci, "Prediction of full load electrical power
output of a base load operated combined cycle power plant using machine learning methods",
International Journal of Electrical Power & Energy Systems 60, 2014.
"""

# Uniform inputs of unit variance lie within sqrt(3) = 1.732 of their mean. A bounded target of
# unit variance seldom exceeds four.
KIN40K_BOUNDS = {f"x{i}": (-1.75, 1.75) for i in range(1, 9)}
KIN40K_TARGET = (-4.0, 4.0)
KIN40K_DESCR = """kin40k

40,000 simulated configurations of a robot arm with eight joints; the task is to predict the
distance of its end from a point. A noise-free, strongly nonlinear member of the kin family of
DELVE. Those who made the set have scaled inputs and target to mean 0 and variance 1, or nearly.

The bounds that come with the data are public: they follow from that scale and from the inputs
being uniform.

A. Schwaighofer and V. Tresp, "Transductive and inductive methods for approximate Gaussian process
regression", Advances in Neural Information Processing Systems 15, 2003. Kin family:
https://www.cs.toronto.edu/~delve/data/kin/desc.html
"""

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

# The calendar, the package's own table of airlines, the three airports, and the longest domestic
# route (4,983 miles, to Honolulu).
_CARRIERS = "9E, AA, AS, B6, DL, EV, F9, FL, HA, MQ, OO, UA, US, VX, WN, YV"
FLIGHTS_CATEGORIES = {
    "month": range(1, 13),
    "weekday": range(7),
    "hour": range(24),
    "carrier": _CARRIERS.split(", "),
    "origin": ["EWR", "JFK", "LGA"],
}
FLIGHTS_BOUNDS = {"day": (1.0, 31.0), "minute": (0.0, 59.0), "distance": (0.0, 5_000.0)}
# An hour early is about as much as a flight can make up; three hours is the delay from which the
# rules on waiting aboard apply.
FLIGHTS_TARGET = (-60.0, 180.0)
FLIGHTS_DESCR = """Flights from New York City in 2013

The 336,776 departures from Newark (EWR), Kennedy (JFK) and LaGuardia (LGA) in 2013, without those
that did not arrive as planned (cancelled or diverted), in the order in which they were to depart.
The features are known before the departure: date, day of the week (from 0, Sunday), hour and
minute by the timetable, carrier, origin and distance in miles. The task is to predict the delay
on arrival, "arr_delay", in minutes.

Delays run to a day and are given as they are. The bounds of the target, an hour early and three
hours late, do not cover them: private estimators clip what lies outside.

The bounds and categories that come with the data are public: the calendar, the list of airlines,
and round numbers, written down without a look at the records.

H. Wickham, nycflights13: flights that departed NYC in 2013, R package, licence CC0; from the
on-time data of the US Bureau of Transportation Statistics.
"""


def fetch_bike_sharing(*, return_X_y=False):
    """Load the hourly hires of bicycles in Washington (regression) with public bounds.

    The file ``bike_sharing/hour.csv``, packed with gzip (``.gz``) or not, must be in the folder
    named by the environment variable ``SKDP_DATA``. scikit-learn has no fetcher for it (the set
    of that name on OpenML has other columns). Needs pandas.

    Parameters
    ----------
    return_X_y : bool, default=False
        If True, return ``(data, target)`` only.

    Returns
    -------
    sklearn.utils.Bunch
        With ``data`` (DataFrame of 12 columns, in the order of time), ``target`` (Series of
        hires, ``"cnt"``), ``frame`` (both), ``feature_names``, ``bounds`` (dict of the measures
        of the weather), ``categories`` (dict of the columns of codes), ``log`` and
        ``indicators`` (empty lists), ``target_bounds``, and ``DESCR``. Bounds and categories are
        public: they are written in the code and do not depend on the records.

    Examples
    --------
    >>> from skdp.datasets import fetch_bike_sharing
    >>> from skdp.preprocessing import make_public_preprocessor
    >>> bike = fetch_bike_sharing()  # doctest: +SKIP
    >>> prepare = make_public_preprocessor(bike.bounds, bike.categories)  # doctest: +SKIP
    >>> prepare.fit_transform(bike.data).shape  # doctest: +SKIP
    (17379, 61)
    """
    features = [*BIKE_CATEGORIES, *BIKE_BOUNDS]
    pandas = pandas_for("fetch_bike_sharing")
    path = required_file(
        "bike_sharing/hour.csv.gz",
        "https://archive.ics.uci.edu/dataset/275/bike+sharing+dataset",
    )
    frame = _table(pandas, path, [*features, "cnt", "dteday"])
    frame = frame.sort_values(["dteday", "hr"], kind="stable", ignore_index=True)
    return _bunch(
        frame[features],
        frame["cnt"],
        bounds=BIKE_BOUNDS,
        categories=BIKE_CATEGORIES,
        target_bounds=BIKE_TARGET,
        DESCR=BIKE_DESCR,
        return_X_y=return_X_y,
    )


def fetch_ccpp(*, return_X_y=False):
    """Load the combined cycle power plant data (regression) with public bounds.

    The file ``ccpp/ccpp.csv``, packed with gzip (``.gz``) or not, must be in the folder named by
    the environment variable ``SKDP_DATA``: the first sheet of the original file, saved as CSV.
    Needs pandas.

    Parameters
    ----------
    return_X_y : bool, default=False
        If True, return ``(data, target)`` only.

    Returns
    -------
    sklearn.utils.Bunch
        With ``data`` (DataFrame of 4 columns), ``target`` (Series of the power in MW, ``"PE"``),
        ``frame`` (both), ``feature_names``, ``bounds`` (dict), ``categories`` (an empty dict),
        ``log`` and ``indicators`` (empty lists), ``target_bounds``, and ``DESCR``. Bounds are
        public: they are written in the code and do not depend on the records.

    Examples
    --------
    >>> from skdp.datasets import fetch_ccpp
    >>> from skdp.preprocessing import make_public_preprocessor
    >>> plant = fetch_ccpp()  # doctest: +SKIP
    >>> prepare = make_public_preprocessor(plant.bounds, norm=None)  # doctest: +SKIP
    >>> prepare.fit_transform(plant.data).shape  # doctest: +SKIP
    (9568, 4)
    """
    pandas = pandas_for("fetch_ccpp")
    path = required_file(
        "ccpp/ccpp.csv.gz",
        "https://archive.ics.uci.edu/dataset/294/combined+cycle+power+plant "
        "(the first sheet of Folds5x2_pp.xlsx, saved as CSV)",
    )
    frame = _table(pandas, path, [*CCPP_BOUNDS, "PE"])
    return _bunch(
        frame[list(CCPP_BOUNDS)],
        frame["PE"],
        bounds=CCPP_BOUNDS,
        target_bounds=CCPP_TARGET,
        DESCR=CCPP_DESCR,
        return_X_y=return_X_y,
    )


def fetch_kin40k(*, return_X_y=False):
    """Load the simulated robot arm kin40k (regression) with public bounds.

    The file ``kin40k/kin40k.csv``, packed with gzip (``.gz``) or not, must be in the folder named
    by the environment variable ``SKDP_DATA``, with a header line that names the columns ``x1`` to
    ``x8`` and ``y``. Needs pandas.

    Parameters
    ----------
    return_X_y : bool, default=False
        If True, return ``(data, target)`` only.

    Returns
    -------
    sklearn.utils.Bunch
        With ``data`` (DataFrame of 8 columns), ``target`` (Series, ``"y"``), ``frame`` (both),
        ``feature_names``, ``bounds`` (dict), ``categories`` (an empty dict), ``log`` and
        ``indicators`` (empty lists), ``target_bounds``, and ``DESCR``. Bounds are public: they
        are written in the code and do not depend on the records.

    Examples
    --------
    >>> from skdp.datasets import fetch_kin40k
    >>> from skdp.preprocessing import make_public_preprocessor
    >>> arm = fetch_kin40k()  # doctest: +SKIP
    >>> prepare = make_public_preprocessor(arm.bounds, norm=None)  # doctest: +SKIP
    >>> prepare.fit_transform(arm.data).shape  # doctest: +SKIP
    (40000, 8)
    """
    pandas = pandas_for("fetch_kin40k")
    path = required_file(
        "kin40k/kin40k.csv.gz",
        "https://github.com/treforevans/uci_datasets "
        "(with a header line that names the columns x1 to x8 and y)",
    )
    frame = _table(pandas, path, [*KIN40K_BOUNDS, "y"])
    return _bunch(
        frame[list(KIN40K_BOUNDS)],
        frame["y"],
        bounds=KIN40K_BOUNDS,
        target_bounds=KIN40K_TARGET,
        DESCR=KIN40K_DESCR,
        return_X_y=return_X_y,
    )


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
        frame = _table(pandas, path, CALIFORNIA_COLUMNS)
    return _bunch(
        frame[list(CALIFORNIA_BOUNDS)],
        frame["medianHouseValue"],
        bounds=CALIFORNIA_BOUNDS,
        log=CALIFORNIA_LOG,
        target_bounds=CALIFORNIA_TARGET,
        DESCR=CALIFORNIA_DESCR,
        return_X_y=return_X_y,
    )


def fetch_nycflights13(*, return_X_y=False):
    """Load the flights from New York City in 2013 (regression) with public bounds.

    The file ``nycflights13/flights.csv``, packed with gzip (``.gz``) or not, must be in the
    folder named by the environment variable ``SKDP_DATA``: the table ``flights`` of the R package
    of that name, of any release. Needs pandas.

    Parameters
    ----------
    return_X_y : bool, default=False
        If True, return ``(data, target)`` only.

    Returns
    -------
    sklearn.utils.Bunch
        With ``data`` (DataFrame of 8 columns, in the order of the timetable), ``target`` (Series
        of delays in minutes, ``"arr_delay"``), ``frame`` (both), ``feature_names``, ``bounds``
        (dict of the numeric columns), ``categories`` (dict of the others), ``log`` and
        ``indicators`` (empty lists), ``target_bounds`` (which the longest delays exceed), and
        ``DESCR``. Bounds and categories are public: they are written in the code and do not
        depend on the records.

    Examples
    --------
    >>> from skdp.datasets import fetch_nycflights13
    >>> from skdp.preprocessing import make_public_preprocessor
    >>> flights = fetch_nycflights13()  # doctest: +SKIP
    >>> prepare = make_public_preprocessor(flights.bounds, flights.categories)  # doctest: +SKIP
    >>> prepare.fit_transform(flights.data).shape  # doctest: +SKIP
    (327346, 65)
    """
    pandas = pandas_for("fetch_nycflights13")
    table = ["year", "month", "day", "dep_time", "dep_delay", "arr_delay", "carrier", "origin"]
    path = required_file(
        "nycflights13/flights.csv.gz",
        "https://cran.r-project.org/package=nycflights13 (the table flights, saved as CSV)",
    )
    frame = _table(pandas, path, [*table, "distance"])
    frame = frame.dropna(subset=["arr_delay"])
    # Hour and minute of the table are those of the departure itself in its first release, so the
    # timetable is computed: the departure, which may fall on the next day, less its delay.
    departure = frame["dep_time"] // 100 * 60 + frame["dep_time"] % 100
    planned = (departure - frame["dep_delay"]) % (24 * 60)
    date = pandas.to_datetime(frame[["year", "month", "day"]])
    frame = frame.assign(
        weekday=(date.dt.day_of_week + 1) % 7, hour=planned // 60, minute=planned % 60
    )
    order = ["year", "month", "day", "hour", "minute"]
    frame = frame.sort_values(order, kind="stable", ignore_index=True)
    return _bunch(
        frame[["month", "day", "weekday", "hour", "minute", "carrier", "origin", "distance"]],
        frame["arr_delay"],
        bounds=FLIGHTS_BOUNDS,
        categories=FLIGHTS_CATEGORIES,
        target_bounds=FLIGHTS_TARGET,
        DESCR=FLIGHTS_DESCR,
        return_X_y=return_X_y,
    )


def _table(pandas, path, columns):
    """Read the named columns of a file."""
    frame = pandas.read_csv(path)
    lacking = [column for column in columns if column not in frame.columns]
    if lacking:
        raise ValueError(f"{path} must have a header line with {columns}; it lacks {lacking}.")
    return frame[columns]


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


def _bunch(data, target, *, bounds, target_bounds, DESCR, return_X_y, categories=None, log=()):
    """Put together what every fetcher returns, with types that do not depend on the file."""
    categories = {name: list(values) for name, values in (categories or {}).items()}
    data, target = _typed(data, bounds, categories), finite_numbers(target)
    if return_X_y:
        return data, target
    return Bunch(
        data=data,
        target=target,
        frame=data.assign(**{target.name: target}),
        feature_names=list(data.columns),
        bounds=dict(bounds),
        categories=categories,
        indicators=[],
        log=list(log),
        target_bounds=target_bounds,
        DESCR=DESCR,
    )


def _typed(data, bounds, categories):
    """Give the columns their types, and refuse what the codebook does not know."""
    typed = {name: finite_numbers(data[name]) for name in bounds}
    for name, values in categories.items():
        if not data[name].isin(values).all():
            raise ValueError(damaged_column(name))
        typed[name] = data[name].astype(type(values[0]))
    return data.assign(**typed)
