"""Bicycles hired in Washington, by the hour."""

from skdp.datasets._files import pandas_for, required_file
from skdp.datasets._tables import make_bunch, read_table

__all__ = ["fetch_bike_sharing"]

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
    frame = read_table(pandas, path, [*features, "cnt", "dteday"])
    frame = frame.sort_values(["dteday", "hr"], kind="stable", ignore_index=True)
    return make_bunch(
        frame[features],
        frame["cnt"],
        bounds=BIKE_BOUNDS,
        categories=BIKE_CATEGORIES,
        target_bounds=BIKE_TARGET,
        DESCR=BIKE_DESCR,
        return_X_y=return_X_y,
    )
