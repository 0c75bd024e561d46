"""Combined cycle power plant."""

from skdp.datasets._files import pandas_for, required_file
from skdp.datasets._tables import make_bunch, read_table

__all__ = ["fetch_ccpp"]

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
    frame = read_table(pandas, path, [*CCPP_BOUNDS, "PE"])
    return make_bunch(
        frame[list(CCPP_BOUNDS)],
        frame["PE"],
        bounds=CCPP_BOUNDS,
        target_bounds=CCPP_TARGET,
        DESCR=CCPP_DESCR,
        return_X_y=return_X_y,
    )
