"""Fair's survey of extramarital affairs."""

import numpy as np

from skdp.datasets._files import TableDataSet, finite_numbers, import_pandas

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

    The records come with the package statsmodels, as the extra ``data`` of skdp installs it, so
    that they need no network. Needs pandas.

    Parameters
    ----------
    return_X_y
        See `fetch_adult`.

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
    import_pandas()
    try:
        from statsmodels.datasets import fair
    except ImportError as error:
        raise ImportError(
            "fetch_fair reads the records that come with statsmodels: install statsmodels, or "
            'skdp with its extra "data", to use it.'
        ) from error
    frame = fair.load_pandas().data
    target = (finite_numbers(frame["affairs"]) > 0.0).astype(np.int64).rename("affair")
    return FAIR.bunch(FAIR.features(frame), target, return_X_y)
