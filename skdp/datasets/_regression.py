"""Public data sets for regression."""

from functools import partial

from sklearn.datasets import fetch_california_housing as fetch_from_scikit_learn

from skdp.datasets._files import TableDataSet, finite_numbers, import_pandas

_WEATHER = ["temp", "atemp", "hum", "windspeed"]
BIKE = TableDataSet(
    "bike_sharing/hour.csv.gz",
    page="https://archive.ics.uci.edu/dataset/275/bike+sharing+dataset",
    # The codebook (Readme.txt): codes of the calendar and the weather, and measures that the
    # donors have divided by their largest value.
    feature_names=[
        *("season", "yr", "mnth", "hr", "holiday", "weekday", "workingday", "weathersit"),
        *_WEATHER,
    ],
    categories={
        "season": [*range(1, 5)],
        "yr": [0, 1],
        "mnth": [*range(1, 13)],
        "hr": [*range(24)],
        "holiday": [0, 1],
        "weekday": [*range(7)],
        "workingday": [0, 1],
        "weathersit": [*range(1, 5)],
    },
    bounds=dict.fromkeys(_WEATHER, (0.0, 1.0)),
    log=[],
    # A thousand hires in an hour is about one for each bicycle that the service began with.
    target_bounds=(0.0, 1_000.0),
    DESCR="""Bike sharing in Washington, by the hour

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
""",
)


def fetch_bike_sharing(*, return_X_y=False):
    """Load the hourly bike rentals in Washington (regression) with public bounds.

    The file ``bike_sharing/hour.csv``, optionally compressed with gzip (``.gz``), must be in the
    folder in the environment variable ``SKDP_DATA``. scikit-learn has no fetcher for it (the
    OpenML data set of that name has other columns). Requires pandas.

    Parameters
    ----------
    return_X_y : bool, default=False
        If True, return only ``(data, target)``.

    Returns
    -------
    sklearn.utils.Bunch
        Bunch with ``data`` (DataFrame of 12 columns, in chronological order), ``target`` (Series
        of rentals, ``"cnt"``), ``frame`` (both), ``feature_names``, ``bounds`` (dict of the
        weather columns), ``categories`` (dict of the coded columns), ``log`` and ``indicators``
        (empty lists), ``target_bounds``, and ``DESCR``. Bounds and categories are public: they
        are fixed in the code and do not depend on the records.

    Examples
    --------
    >>> from skdp.datasets import fetch_bike_sharing
    >>> from skdp.preprocessing import make_public_preprocessor
    >>> bike = fetch_bike_sharing()  # doctest: +SKIP
    >>> prepare = make_public_preprocessor(bike.bounds, bike.categories)  # doctest: +SKIP
    >>> prepare.fit_transform(bike.data).shape  # doctest: +SKIP
    (17379, 61)
    """
    frame = BIKE.table([*BIKE.public["feature_names"], "cnt", "dteday"])
    frame = frame.sort_values(["dteday", "hr"], kind="stable", ignore_index=True)
    return _bunch(BIKE, frame, "cnt", return_X_y)


def _bunch(kind, frame, target, return_X_y):
    return kind.bunch(kind.features(frame), finite_numbers(frame[target]), return_X_y)


CALIFORNIA = TableDataSet(
    "california_housing/cal_housing.csv.gz",
    page=(
        "https://www.dcc.fc.up.pt/~ltorgo/Regression/cal_housing.html (with a header line that "
        "names the columns)"
    ),
    # The corners of California in degrees; ages as the census sorts them (built by 1939 is the
    # last class); ten times the 3,000 people that a block group may have, with a household for
    # three of them, two bedrooms and five rooms for each; incomes in 10,000 dollars up to the
    # topmost class.
    bounds={
        "longitude": (-125.0, -114.0),
        "latitude": (32.0, 42.0),
        "housingMedianAge": (0.0, 52.0),
        "totalRooms": (0.0, 50_000.0),
        "totalBedrooms": (0.0, 20_000.0),
        "population": (0.0, 30_000.0),
        "households": (0.0, 10_000.0),
        "medianIncome": (0.0, 15.0),
    },
    log=["totalRooms", "totalBedrooms", "population", "households"],
    # The census gives values above 500,000 dollars as 500,001.
    target_bounds=(0.0, 500_001.0),
    DESCR="""California housing

20,640 block groups of the census of 1990: position, median age of the houses, numbers of rooms,
bedrooms, people and households, and median income (in 10,000 dollars); the task is to predict the
median value of a house, in dollars. The columns are the original ones; scikit-learn's version has
averages a household in place of three of the numbers, and values in 100,000 dollars.

The bounds that come with the data are public: geography and the rules of the census, written down
without a look at the records. Numbers of rooms, people and households are best scaled in log.

R. K. Pace and R. Barry, "Sparse spatial autoregressions", Statistics & Probability Letters 33,
1997.
""",
)


def fetch_california_housing(*, data_home=None, timeout=None, return_X_y=False):
    """Load the California housing data (regression) with original columns and public bounds.

    The file ``california_housing/cal_housing.csv`` with a header line, optionally compressed
    with gzip (``.gz``), is read from the folder in the environment variable ``SKDP_DATA``. If it
    is missing, scikit-learn fetches the data, and the original columns are computed from its
    averages. Requires pandas.

    Parameters
    ----------
    data_home, timeout, return_X_y
        See `fetch_adult`.

    Returns
    -------
    sklearn.utils.Bunch
        As for `fetch_bike_sharing`. ``data`` has 8 columns, ``target`` is ``"medianHouseValue"``
        in dollars, and ``log`` has the names of the columns that are best log-scaled.

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
    columns = [*CALIFORNIA.public["feature_names"], "medianHouseValue"]
    frame = CALIFORNIA.table(columns, partial(_original_california, data_home), timeout)
    return _bunch(CALIFORNIA, frame, "medianHouseValue", return_X_y)


def _original_california(data_home, **retries):
    """Undo scikit-learn's averages, which are quotients of whole numbers."""
    data, target = fetch_from_scikit_learn(
        data_home=data_home, return_X_y=True, as_frame=True, **retries
    )
    households = (data["Population"] / data["AveOccup"]).round()
    return data.assign(
        longitude=data["Longitude"],
        latitude=data["Latitude"],
        housingMedianAge=data["HouseAge"],
        totalRooms=(data["AveRooms"] * households).round(),
        totalBedrooms=(data["AveBedrms"] * households).round(),
        population=data["Population"],
        households=households,
        medianIncome=data["MedInc"],
        medianHouseValue=(target * 100_000.0).round(),
    )


CCPP = TableDataSet(
    "ccpp/ccpp.csv.gz",
    page=(
        "https://archive.ics.uci.edu/dataset/294/combined+cycle+power+plant "
        "(the first sheet of Folds5x2_pp.xlsx, saved as CSV)"
    ),
    # Weather of a temperate coast in degrees Celsius, millibar and per cent, and a condenser's
    # vacuum in cm Hg.
    bounds={
        "AT": (-10.0, 40.0),
        "V": (20.0, 90.0),
        "AP": (970.0, 1_050.0),
        "RH": (0.0, 100.0),
    },
    log=[],
    # The range of the power is published with the data (420.26 to 495.76 MW).
    target_bounds=(420.0, 500.0),
    DESCR="""Combined cycle power plant

9,568 hourly averages from a Turkish power plant at full load, 2006 to 2011, in random order:
ambient temperature AT (degrees Celsius), exhaust vacuum V (cm Hg), ambient pressure AP (millibar)
and relative humidity RH (per cent); the task is to predict the electrical power PE (MW).

The bounds that come with the data are public: round numbers that suit weather and machine, and
for the power the range published with the data, rounded outwards.

P. Tüfekci and H. Kaya, Combined Cycle Power Plant, UCI Machine Learning Repository, 2014,
doi:10.24432/C5002N, licence CC BY 4.0. P. Tüfekci, "Prediction of full load electrical power
output of a base load operated combined cycle power plant using machine learning methods",
International Journal of Electrical Power & Energy Systems 60, 2014.
""",
)


def fetch_ccpp(*, return_X_y=False):
    """Load the combined cycle power plant data (regression) with public bounds.

    The file ``ccpp/ccpp.csv``, optionally compressed with gzip (``.gz``), must be in the folder
    in the environment variable ``SKDP_DATA``. It is the first sheet of the original file, saved
    as CSV. Requires pandas.

    Returns
    -------
    sklearn.utils.Bunch
        As for `fetch_bike_sharing`, as is ``return_X_y``. ``data`` has 4 columns, and ``target``
        is the power in MW, ``"PE"``.

    Examples
    --------
    >>> from skdp.datasets import fetch_ccpp
    >>> from skdp.preprocessing import make_public_preprocessor
    >>> plant = fetch_ccpp()  # doctest: +SKIP
    >>> prepare = make_public_preprocessor(plant.bounds, norm=None)  # doctest: +SKIP
    >>> prepare.fit_transform(plant.data).shape  # doctest: +SKIP
    (9568, 4)
    """
    frame = CCPP.table([*CCPP.public["feature_names"], "PE"])
    return _bunch(CCPP, frame, "PE", return_X_y)


KIN40K = TableDataSet(
    "kin40k/kin40k.csv.gz",
    page=(
        "https://github.com/treforevans/uci_datasets "
        "(with a header line that names the columns x1 to x8 and y)"
    ),
    # Uniform inputs of unit variance lie within sqrt(3) = 1.732 of their mean.
    bounds={f"x{i}": (-1.75, 1.75) for i in range(1, 9)},
    log=[],
    # A bounded target of unit variance seldom exceeds four.
    target_bounds=(-4.0, 4.0),
    DESCR="""kin40k

40,000 simulated configurations of a robot arm with eight joints; the task is to predict the
distance of its end from a point. A noise-free, strongly nonlinear member of the kin family of
DELVE. Those who made the set have scaled inputs and target to mean 0 and variance 1, or nearly.

The bounds that come with the data are public: they follow from that scale and from the inputs
being uniform.

A. Schwaighofer and V. Tresp, "Transductive and inductive methods for approximate Gaussian process
regression", Advances in Neural Information Processing Systems 15, 2003. Kin family:
https://www.cs.toronto.edu/~delve/data/kin/desc.html
""",
)


def fetch_kin40k(*, return_X_y=False):
    """Load the simulated robot arm kin40k (regression) with public bounds.

    The file ``kin40k/kin40k.csv``, optionally compressed with gzip (``.gz``), must be in the
    folder in the environment variable ``SKDP_DATA``. Its header line must name the columns
    ``x1`` to ``x8`` and ``y``. Requires pandas.

    Returns
    -------
    sklearn.utils.Bunch
        As for `fetch_bike_sharing`, as is ``return_X_y``. ``data`` has 8 columns, and ``target``
        is ``"y"``.

    Examples
    --------
    >>> from skdp.datasets import fetch_kin40k
    >>> from skdp.preprocessing import make_public_preprocessor
    >>> arm = fetch_kin40k()  # doctest: +SKIP
    >>> prepare = make_public_preprocessor(arm.bounds, norm=None)  # doctest: +SKIP
    >>> prepare.fit_transform(arm.data).shape  # doctest: +SKIP
    (40000, 8)
    """
    frame = KIN40K.table([*KIN40K.public["feature_names"], "y"])
    return _bunch(KIN40K, frame, "y", return_X_y)


_CARRIERS = "9E, AA, AS, B6, DL, EV, F9, FL, HA, MQ, OO, UA, US, VX, WN, YV"
FLIGHTS = TableDataSet(
    "nycflights13/flights.csv.gz",
    page="https://cran.r-project.org/package=nycflights13 (the table flights, saved as CSV)",
    feature_names=[
        *("month", "day", "weekday", "hour", "minute"),
        *("carrier", "origin", "distance"),
    ],
    # The calendar, the package's own table of airlines, the three airports, and the longest
    # domestic route (4,983 miles, to Honolulu).
    categories={
        "month": [*range(1, 13)],
        "weekday": [*range(7)],
        "hour": [*range(24)],
        "carrier": _CARRIERS.split(", "),
        "origin": ["EWR", "JFK", "LGA"],
    },
    bounds={"day": (1.0, 31.0), "minute": (0.0, 59.0), "distance": (0.0, 5_000.0)},
    log=[],
    # An hour early is about as much as a flight can make up; three hours is the delay from which
    # the rules on waiting aboard apply.
    target_bounds=(-60.0, 180.0),
    DESCR="""Flights from New York City in 2013

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
""",
)


def fetch_nycflights13(*, return_X_y=False):
    """Load the flights from New York City in 2013 (regression) with public bounds.

    The file ``nycflights13/flights.csv``, optionally compressed with gzip (``.gz``), must be in
    the folder in the environment variable ``SKDP_DATA``. It is the table ``flights`` of any
    release of the R package nycflights13. Requires pandas.

    Returns
    -------
    sklearn.utils.Bunch
        As for `fetch_bike_sharing`, as is ``return_X_y``. ``data`` has 8 columns, in scheduled
        order, and ``target`` is the delay in minutes, ``"arr_delay"``. The longest delays exceed
        ``target_bounds``.

    Examples
    --------
    >>> from skdp.datasets import fetch_nycflights13
    >>> from skdp.preprocessing import make_public_preprocessor
    >>> flights = fetch_nycflights13()  # doctest: +SKIP
    >>> prepare = make_public_preprocessor(flights.bounds, flights.categories)  # doctest: +SKIP
    >>> prepare.fit_transform(flights.data).shape  # doctest: +SKIP
    (327346, 65)
    """
    date = ["year", "month", "day"]
    columns = [*date, "dep_time", "dep_delay", "arr_delay", "carrier", "origin", "distance"]
    frame = FLIGHTS.table(columns).dropna(subset=["arr_delay"])
    # Hour and minute of the table are those of the departure itself in its first release, so the
    # timetable is computed: the departure, which may fall on the next day, less its delay.
    departure = frame["dep_time"] // 100 * 60 + frame["dep_time"] % 100
    planned = (departure - frame["dep_delay"]) % (24 * 60)
    weekday = (import_pandas().to_datetime(frame[date]).dt.day_of_week + 1) % 7
    frame = frame.assign(weekday=weekday, hour=planned // 60, minute=planned % 60)
    order = [*date, "hour", "minute"]
    frame = frame.sort_values(order, kind="stable", ignore_index=True)
    return _bunch(FLIGHTS, frame, "arr_delay", return_X_y)
