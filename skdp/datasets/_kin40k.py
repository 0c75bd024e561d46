"""A simulated robot arm."""

from skdp.datasets._files import pandas_for, required_file
from skdp.datasets._tables import make_bunch, read_table

__all__ = ["fetch_kin40k"]

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
    frame = read_table(pandas, path, [*KIN40K_BOUNDS, "y"])
    return make_bunch(
        frame[list(KIN40K_BOUNDS)],
        frame["y"],
        bounds=KIN40K_BOUNDS,
        target_bounds=KIN40K_TARGET,
        DESCR=KIN40K_DESCR,
        return_X_y=return_X_y,
    )
