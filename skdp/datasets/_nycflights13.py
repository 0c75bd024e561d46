"""Flights from New York City in 2013."""

from skdp.datasets._files import pandas_for, required_file
from skdp.datasets._tables import make_bunch, read_table

__all__ = ["fetch_nycflights13"]

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
    frame = read_table(pandas, path, [*table, "distance"])
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
    return make_bunch(
        frame[["month", "day", "weekday", "hour", "minute", "carrier", "origin", "distance"]],
        frame["arr_delay"],
        bounds=FLIGHTS_BOUNDS,
        categories=FLIGHTS_CATEGORIES,
        target_bounds=FLIGHTS_TARGET,
        DESCR=FLIGHTS_DESCR,
        return_X_y=return_X_y,
    )
