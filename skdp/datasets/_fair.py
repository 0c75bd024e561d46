"""Fair's survey of extramarital affairs."""

import numpy as np
from sklearn.utils import Bunch

from skdp.datasets._files import damaged_column, finite_numbers, pandas_for

__all__ = ["fetch_fair"]

# The answers that the questionnaire offered, lowest and highest, as Fair coded them. Ages: 17.5 is
# under 20 and 42 is 40 or more. Years: 0.5 is less than one and 23 is more than ten with a child
# of 18 or more. Children: 5.5 is five or more. Education: 9 is grade school, 20 an advanced
# degree.
BOUNDS = {
    "rate_marriage": (1.0, 5.0),
    "age": (17.5, 42.0),
    "yrs_married": (0.5, 23.0),
    "children": (0.0, 5.5),
    "religious": (1.0, 4.0),
    "educ": (9.0, 20.0),
}
# Kinds of work, without an order.
CATEGORIES = {"occupation": [1, 2, 3, 4, 5, 6], "occupation_husb": [1, 2, 3, 4, 5, 6]}
COLUMNS = [*BOUNDS, *CATEGORIES]

DESCR = """Fair's survey of extramarital affairs

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
"""


def fetch_fair(*, return_X_y=False):
    """Load Fair's survey of extramarital affairs (binary classification) with public bounds.

    The records come with the package statsmodels, as the extra ``data`` of skdp installs it, so
    that they need no network. Needs pandas.

    Parameters
    ----------
    return_X_y : bool, default=False
        If True, return ``(data, target)`` only.

    Returns
    -------
    sklearn.utils.Bunch
        With ``data`` (DataFrame of 8 columns), ``target`` (Series of 0 and 1, ``"affair"``),
        ``frame`` (both), ``feature_names``, ``classes`` (0 and 1), ``target_names`` (their
        meaning), ``bounds`` (dict of the numeric columns), ``categories`` (dict of the
        categorical columns), ``indicators`` (an empty list), and ``DESCR``. Bounds, categories
        and labels are public: they are written in the code and do not depend on the records.

    Examples
    --------
    >>> from skdp.datasets import fetch_fair
    >>> from skdp.preprocessing import make_public_preprocessor
    >>> fair = fetch_fair()
    >>> prepare = make_public_preprocessor(fair.bounds, fair.categories)
    >>> prepare.fit_transform(fair.data).shape
    (6366, 18)
    """
    pandas_for("fetch_fair")
    data, target = _typed(_records())
    if return_X_y:
        return data, target
    return Bunch(
        data=data,
        target=target,
        frame=data.assign(affair=target),
        feature_names=list(COLUMNS),
        classes=[0, 1],
        target_names=["no affair", "affair"],
        bounds=dict(BOUNDS),
        categories={name: list(values) for name, values in CATEGORIES.items()},
        indicators=[],
        DESCR=DESCR,
    )


def _records():
    try:
        from statsmodels.datasets import fair
    except ImportError as error:
        raise ImportError(
            "fetch_fair reads the records that come with statsmodels: install statsmodels, or "
            'skdp with its extra "data", to use it.'
        ) from error
    return fair.load_pandas().data


def _typed(frame):
    """Give the columns types that do not depend on the rows, and refuse unknown categories."""
    columns = {name: finite_numbers(frame[name]) for name in [*COLUMNS, "affairs"]}
    for name, values in CATEGORIES.items():
        if not columns[name].isin(values).all():
            raise ValueError(damaged_column(name))
        columns[name] = columns[name].astype(np.int64)
    target = (columns.pop("affairs") > 0.0).astype(np.int64).rename("affair")
    return frame[COLUMNS].assign(**columns), target
