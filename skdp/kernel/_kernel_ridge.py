"""Private kernel ridge regression."""

import os
from dataclasses import replace

from scipy.sparse import issparse

from skdp._random._source import noise_source
from skdp._targets import TargetRange, warn_of_bounds
from skdp._validation import is_auto, shown
from skdp.kernel._base import BaseKernelRegressor
from skdp.kernel._choices import check_users
from skdp.kernel._exact_solver import KernelExpansion
from skdp.kernel._planned import planned_guarantee
from skdp.kernel._ridge_plan import check_ridge_parameters, ridge_plan, ridge_size
from skdp.learner import (
    begun_fit,
    charge,
    progress_of,
    unchanged_on_error,
    warn_of_delta,
    with_callbacks,
)
from skdp.mechanisms import clip_rows
from skdp.preprocessing._target_bounds import TargetBounds, check_search_range
from skdp.privacy import ApproxDP
from skdp.rows import FeatureFunction
from skdp.rows._feature_blocks import FeatureBlocks, IntegerFeatureBlocks
from skdp.rows._inputs import checked_data
from skdp.rows._threads import one_blas_thread
from skdp.rows._users import Users, chosen_rows

__all__ = ["DPKernelRidge"]

_LIMIT_STREAMS = 3  # of random numbers: features, noise, bounds
_LIMIT_SECRET = 32  # bytes


class DPKernelRidge(BaseKernelRegressor):
    """Kernel ridge regression with differential privacy.

    Either the function is released once, on random features, and predicts any number of rows; or
    an exact kernel stays with the curator, and answers a fixed number of queries with noise.

    Parameters
    ----------
    epsilon : float or "auto", default=1.0
        Budget of one fit, all predictions included. "auto" is the rule of Nie and Wang,
        ``n_samples ** -min(1/3, 4r/(3+6r))`` with ``r = source_smoothness``, corrected as
        :func:`~skdp.theory.kernel_ridge.epsilon_rule` says. It reads the number of rows and
        needs "replace-one".

    delta : float, default=0.0
        0 is pure differential privacy; a positive number, well below one over the number of
        rows, allows Gaussian noise, which costs far less accuracy here.

    kernel : {"rbf", "laplacian", "matern", "linear"}, default="rbf"
        ``exp(-gamma ||x-y||^2)``, ``exp(-gamma ||x-y||_1)``, the Matérn kernel of length scale
        ``1/gamma``, or ``<x, y>``.

    gamma : float or "auto", default="auto"
        Public: chosen without a look at the data. "auto" is for rows in ``[-1, 1]^d``, scaled by
        public bounds, and for sparse rows of norm 1: see
        :func:`~skdp.rows.automatic_gamma`, which reads the number of columns and whether
        ``X`` is a sparse matrix. Entries beyond 64 length scales (many more with few features)
        are cut.

    nu : {0.5, 1.5, 2.5}, default=1.5
        Smoothness of the Matérn kernel.

    alpha : float or "auto", default="auto"
        Strength of the penalty as in :class:`~sklearn.kernel_ridge.KernelRidge`. "auto" follows
        from the noise, by public numbers; the gradient mechanism has no penalty then. For queries
        it must be large enough for floating point: 1e-4 times the number of rows always suffices,
        up to 20,000 rows of 1,000 columns.

    release : {"features", "query"}, default="features"
        "features" releases the whole function. "query" keeps an exact kernel expansion, which
        holds the training data, and adds noise to each predicted row.

    mechanism : {"auto", "gradient", "sufficient_statistics", "objective", "output"}, \
            default="auto"
        How "features" releases: by noisy gradients, by noisy second moments and products with
        the targets, by a random linear term in the objective, or by noise on the minimiser. "auto"
        is "objective" for ``delta=0`` and "gradient" otherwise; with ``loss="squared"`` it is
        "output" and "sufficient_statistics".

    loss : {"auto", "squared", "huber"}, default="auto"
        "huber" is half the square up to ``residual_cap`` and straight beyond. "squared" has the
        sensitivity of the paper's Lemma 2, sharpened; under "add-remove" it has none. "auto" is
        "squared" for sufficient statistics, and for queries with ``epsilon="auto"`` or
        ``sensitivity="paper"``, which are about it; otherwise "huber", which is the more accurate.

    residual_cap : float or "auto", default="auto"
        Largest slope of Huber's loss, in units of the target. "auto" follows from the released
        variance of the targets with ``mechanism="gradient"`` and with ``delta=0``; otherwise
        it is an eighth of the range of ``y_bounds``.

    sensitivity : {"tight", "paper"}, default="tight"
        Bound behind the noise of queries: the exact one, or that of the paper's Lemma 2 with
        ``R = M / sqrt(lam)``, which is at least 2 and up to 8 times as large. "paper" is for
        ``release="query"``, the squared loss (which "auto" is then), "replace-one" and an
        ``alpha`` of at most the number of rows, for which alone it is proved.

    n_components : int or "auto", default="auto"
        Number of random features; they come in pairs, so that an odd number is rounded up.
        "auto" grows with the number of rows, where that is public, times the budget: up to 1000,
        by ``automatic_components`` for a positive delta and otherwise by
        ``pure_components``.

    orthogonal : bool, default=True
        Draw frequencies in orthogonal groups, for a better approximation of the kernel.

    y_bounds : (float, float) or "auto", default=None
        Public bounds of the target. Targets outside are clipped; predictions stay within. "auto"
        releases them first, for 5 % of the squared mu of the budget, or 10 % of a pure epsilon: a
        low and a high quantile, as far out as the number of rows times this share allows, and
        moved outwards somewhat. None takes (-1, 1) and warns in every fit, whatever the targets
        are.

    y_search_range : (float, float), default=(-1e6, 1e6)
        Public range in which ``y_bounds="auto"`` looks. It may be far too wide: its cells widen
        with the distance from 0, by a third of a percent of it each. Where ``y_bounds_`` ends at
        an end of it, targets may lie beyond and are clipped: another fit may search farther.

    x_norm : float, default=1.0
        Public bound on the Euclidean norm of a row, for the linear kernel only: longer rows
        are scaled back. The other kernels need none.

    adjacency : {"replace-one", "add-remove"}, default="replace-one"
        Which data sets are neighbours. Under "replace-one" the number of rows is public.

    n_queries : int, default=None
        Number of different rows that ``release="query"`` predicts in the life of the fitted
        model. `score` predicts too.

    source_smoothness : float, default=0.5
        Declared smoothness ``r`` of the regression function, for ``epsilon="auto"``: it lies in
        the range of the r-th power of the kernel's integral operator.

    random_state : None, int, RandomState or Generator, default=None
        None draws the noise from the operating system. Anything else makes it reproducible
        and void of privacy, for tests and figures. Frequencies have a stream of their own.

    ledger : BudgetLedger or path, default=None
        Budget that each fit is charged to before it uses the data.

    Attributes
    ----------
    coef_ : ndarray of shape (n_components,), or ``(n_features_in_,)`` for the linear kernel
        Weights of the features, for targets in units of half their range around its middle;
        only with ``release="features"``. Released under ``guarantee_``.

    intercept_ : float
        Value that products of features and weights are added to, in the same units; only with
        ``release="features"``. Released under ``guarantee_``.

    frequencies_ : ndarray of shape ``(n_components / 2, n_features_in_)``
        Frequencies of the features, except for the linear kernel. Public.

    gamma_ : float
        Width of the kernel, except for the linear one. Public.

    y_bounds_ : tuple of two floats
        Bounds of the target in the fit. They are public where they are given; with "auto" they are
        a release. Released under ``guarantee_``.

    guarantee_ : ApproxDP
        What the fit promises, with its privacy profile. Public.

    n_features_in_ : int
        Number of features. Public.

    feature_names_in_ : ndarray of shape ``(n_features_in_,)``
        Names of the features, if ``X`` has them. Public.

    See Also
    --------
    DPLogisticRegression : Linear classification.

    Notes
    -----
    **Privacy.** With ``release="features"`` everything that `fit` stores is public or a function
    of releases that satisfy ``guarantee_`` together, whatever the data are. Predictions are
    post-processing and free. With ``release="query"`` the same holds of the answers of `predict`;
    the fitted object itself holds the training data under one private name, and so
    does a pickle of it: neither may leave the curator. Copies within a process share one count
    of queries; a row that comes again is answered as before, free of charge.

    **Users.** With ``fit(X, y, groups=ids)`` neighbours differ in all rows of one user, who may
    have any number. The rows of a user share a weight of 1. So a user adds to each sum the mean of
    what these rows would add, which is bounded as one row is. Rules read the number of users in
    place of the number of rows; it is public under "replace-one". ``y_bounds="auto"`` sees one row
    of each user, drawn by a public key. How many rows a user has is private. This is possible for
    sums over records: ``release="features"`` with a positive delta and ``mechanism`` "gradient" or
    "sufficient_statistics". Otherwise use
    :func:`~skdp.preprocessing.bound_contributions`.

    One random number that is added to the whole function, as in the paper's Lemma 1, would protect
    nothing: it cancels in the difference of two predictions.

    `score` compares predictions with targets that the caller passes. These must be public: a score
    on private targets is an exact function of them, which no guarantee covers.
    `~skdp.metrics.dp_evaluate` scores on private rows.

    What the guarantee does not cover: the time `fit` takes, errors about malformed input, a
    `~skdp.exceptions.SolverError`, and other uses of the same data, such as cross-validation
    without a ledger.

    References
    ----------
    Nie and Wang, "Error analysis and variable selection for differential private learning
    algorithm", Journal of Applied Mathematics and Physics 5, 2017. Rahimi and Recht, "Random
    features for large-scale kernel machines", NIPS 2007. Bassily, Smith and Thakurta, "Private
    empirical risk minimization", FOCS 2014. Dong, Roth and Su, "Gaussian differential privacy",
    JRSS-B 2022.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.kernel import DPKernelRidge
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(5000, 2))
    >>> y = np.sin(3 * X[:, 0]) * X[:, 1]
    >>> model = DPKernelRidge(epsilon=1.0, delta=1e-6, y_bounds=(-1, 1)).fit(X[:4000], y[:4000])
    >>> bool(model.score(X[4000:], y[4000:]) > 0.7)  # made-up rows are public
    True
    """

    def __init__(
        self,
        epsilon=1.0,
        delta=0.0,
        *,
        kernel="rbf",
        gamma="auto",
        nu=1.5,
        alpha="auto",
        release="features",
        mechanism="auto",
        loss="auto",
        residual_cap="auto",
        sensitivity="tight",
        n_components="auto",
        orthogonal=True,
        y_bounds=None,
        y_search_range=(-1e6, 1e6),
        x_norm=1.0,
        adjacency="replace-one",
        n_queries=None,
        source_smoothness=0.5,
        random_state=None,
        ledger=None,
    ):
        self.epsilon = epsilon
        self.delta = delta
        self.kernel = kernel
        self.gamma = gamma
        self.nu = nu
        self.alpha = alpha
        self.release = release
        self.mechanism = mechanism
        self.loss = loss
        self.residual_cap = residual_cap
        self.sensitivity = sensitivity
        self.n_components = n_components
        self.orthogonal = orthogonal
        self.y_bounds = y_bounds
        self.y_search_range = y_search_range
        self.x_norm = x_norm
        self.adjacency = adjacency
        self.n_queries = n_queries
        self.source_smoothness = source_smoothness
        self.random_state = random_state
        self.ledger = ledger

    def _planned_guarantee(self, n_features):
        return planned_guarantee(self, super()._planned_guarantee(n_features), n_features)

    def _planned_for_users(self, n_features):
        target = replace(super()._planned_guarantee(n_features), unit="user")
        return planned_guarantee(self, target, n_features)

    @with_callbacks
    def fit(self, X, y, groups=None):
        """Fit the model under ``(epsilon, delta)``-differential privacy.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        y : array-like of shape (n_samples,)
            Targets. Those outside ``y_bounds`` are clipped.

        groups : array-like of shape (n_samples,), default=None
            Id of the user who owns each row. The guarantee is then for users: it covers all rows
            of one, however many. None protects rows. See the notes above.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If a parameter or the input is invalid.
        BudgetExceededError
            If the ledger cannot pay; the old model stays.
        SolverError
            If the solution could not be certified; the ledger stays charged.
        """
        warn_of_bounds(self.y_bounds)
        context = begun_fit(self)
        with unchanged_on_error(self):
            check_ridge_parameters(self)
            if groups is not None:
                check_users(self)
            X, y = checked_data(self, X, y, numeric=True, counts=groups is None)
            users = Users.of(groups, X.shape[0])
            n_units = X.shape[0] if users is None else users.n_users
            unit = "record" if users is None else "user"
            released_bounds, release = ridge_plan(self, n_units, X.shape[1], unit=unit)
            guarantee = release.guarantee
            if released_bounds is not None:
                guarantee = released_bounds.guarantee(guarantee)
                # Quantiles count rows, and no means of them: of a user one row is among them.
                seen = y if users is None else y[chosen_rows(groups, users)]
            n_public = n_units if self.adjacency == "replace-one" else None
            warn_of_delta(self, n_public, unit)
            charge(self, guarantee)
            gamma = self._public_gamma(X)
            *streams, bounds_state = self._random_streams(_LIMIT_STREAMS)
            bounds = self.y_bounds
            if released_bounds is not None:
                bounds = released_bounds(seen, noise_source(bounds_state))
            bounds = TargetRange.of(bounds)
            targets = bounds.scaled(y)
            with progress_of(self, context, groups=groups):
                predictor = self._released(release, X, targets, users, gamma, *streams)
            self._store(
                predictor,
                guarantee_=guarantee,
                y_bounds_=(bounds.low, bounds.high),
                gamma_=gamma,
            )
        return self

    def _least_guarantee(self, n_features, n_samples):
        """Of the least budget with which the target has bounds, of a public number of rows."""
        target = ApproxDP(self.epsilon, self.delta, adjacency=self.adjacency)
        if not is_auto(self.y_bounds):
            return replace(target, epsilon=0.0)
        return replace(target, epsilon=TargetBounds.least_epsilon(target, n_samples=n_samples))

    def _check_y_bounds(self):
        check_search_range(self.y_search_range)
        if not is_auto(self.y_bounds):
            super()._check_y_bounds()
        elif not is_auto(self.residual_cap):
            raise ValueError(
                "residual_cap must be 'auto' with y_bounds='auto': it is in units of the target, "
                f"whose size is not known beforehand; got {shown(self.residual_cap)}."
            )

    def _released(self, release, X, targets, users, gamma, feature_state, noise_state):
        """What predicts: a function on features, or answers that hold the rows."""
        linear = self.kernel == "linear"
        if self.release == "features":
            n_units = X.shape[0] if users is None else users.n_users
            size = ridge_size(self, release.guarantee, n_units, X.shape[1])
            features = self._draw_features(X.shape[1], size, gamma, feature_state)
            blocks = FeatureBlocks if linear else IntegerFeatureBlocks
            data = blocks(X, targets, features, users=users)
            # Products are of a few rows at a time, for which threads would wait for each other.
            with one_blas_thread():
                return FeatureFunction(features, *release(data, noise_source(noise_state)))
        secret = (
            os.urandom(_LIMIT_SECRET) if noise_state is None else noise_state.bytes(_LIMIT_SECRET)
        )
        if linear:
            X = clip_rows(X, float(self.x_norm)) / float(self.x_norm)
        else:
            X = X.toarray() if issparse(X) else X.copy()  # the caller may change it
        expansion = KernelExpansion(X, self.kernel, gamma or 1.0, self.nu, self.x_norm)
        return release((expansion, targets), secret)
