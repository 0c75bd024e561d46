"""Private kernel ridge regression."""

from typing import Any

from scipy.sparse import issparse

from skdp import learner
from skdp._random._source import noise_source
from skdp._validation import (
    TARGET_SEARCH_RANGE,
    TargetRange,
    between,
    is_auto,
    number_or_auto,
    one_of,
    positive,
    positive_int,
    short_repr,
    warn_of_an_end,
)
from skdp.kernel import _descent, _pure, _queries, _ridge_theory
from skdp.kernel._base import BaseKernelRegressor
from skdp.learner._estimator import with_weights
from skdp.privacy import ApproxDP
from skdp.rows import FeatureFunction, _blocks
from skdp.rows._inputs import in_memory, one_blas_thread

RELEASES = ("features", "query")
MECHANISMS = ("auto", "gradient", "sufficient_statistics", "objective", "output")
LOSSES = ("auto", "squared", "huber")

# Those that release sums over records, which are as well sums over users of their rows' means.
OF_USERS = ("gradient", "sufficient_statistics")

_LIMIT_PENALTIES = 1e-6, 1e12
_LIMIT_GROWTH = 30.0  # noise of the last of 48 steps, which has a third of an even share
_LIMIT_ROWS = 2**30  # rows, on which the cost of bounds does not depend
_LIMIT_STREAMS = 3  # of random numbers: features, noise, bounds


def check_users(model):
    """Check that all releases are sums over records, if rows belong to users."""
    if model.release == "query":
        why = (
            "release='query', whose noise covers the effect of one row on an exact minimiser. Use "
            "release='features' with a positive delta"
        )
    elif model.delta == 0.0:
        why = "delta=0, whose random term in the objective protects one row. Use a positive delta"
    elif model.mechanism not in ("auto", *OF_USERS):
        why = (
            f"mechanism={short_repr(model.mechanism)}, whose noise covers the effect of one row "
            "on a minimiser. Use mechanism='gradient'"
        )
    else:
        return
    raise ValueError(
        f"groups must be None with {why}, or limit the rows of each user with "
        "skdp.preprocessing.bound_contributions; got user IDs."
    )


def check_loss(model):
    """Check that the loss has a finite sensitivity."""
    if model.loss == "squared" and model.adjacency == "add-remove":
        raise ValueError(
            "loss must not be 'squared' under adjacency='add-remove': a record's residual "
            "is unbounded if the number of rows is private, so no finite noise "
            "suffices. Use loss='huber' or adjacency='replace-one'; got 'squared'."
        )


def check_mechanism(model):
    """Check that budget and loss suit the mechanism."""
    if model.mechanism in ("gradient", "sufficient_statistics") and model.delta == 0.0:
        raise ValueError(
            f"delta must be positive with mechanism={short_repr(model.mechanism)}, whose noise is "
            "Gaussian; use mechanism='output' for pure differential privacy; got 0."
        )
    if model.mechanism == "objective" and model.delta > 0.0:
        raise ValueError(
            "delta must be 0 with mechanism='objective', whose noise is not Gaussian; use "
            f"mechanism='gradient' for a positive delta; got {short_repr(model.delta)}."
        )
    if model.loss == "huber" and model.mechanism == "sufficient_statistics":
        raise ValueError(
            "loss must be 'auto' or 'squared' with mechanism='sufficient_statistics'; got 'huber'."
        )
    if model.loss == "squared" and model.mechanism in ("gradient", "objective"):
        raise ValueError(
            f"loss must be 'auto' or 'huber' with mechanism={short_repr(model.mechanism)}, "
            "which caps residuals; got 'squared'."
        )


def check_paper(model):
    """Check that the sensitivity of the paper is asked for only where it is proved."""
    if model.sensitivity != "paper":
        return
    if model.release != "query":
        why = (
            "with release='features': the paper's lemma is for the exact minimiser, and its "
            "scalar noise protects one prediction, not a function. Use release='query'"
        )
    elif model.adjacency != "replace-one":
        why = (
            "under adjacency='add-remove': the paper's lemma assumes a public number of rows; "
            "with a private one the residual of a record with squared loss is unbounded"
        )
    elif model.loss == "huber":
        why = "with loss='huber': the paper's lemma is for the squared loss"
    else:
        return
    raise ValueError(f"sensitivity must be 'tight' {why}; got 'paper'.")


def check_queries(model):
    """Check that the number of answers is declared."""
    if model.n_queries is None:
        raise ValueError(
            "n_queries must be given with release='query': every prediction costs "
            "budget. Use release='features' for unlimited predictions; got None."
        )
    positive_int(n_queries=model.n_queries)
    if model.mechanism != "auto":
        raise ValueError(
            f"mechanism must be 'auto' with release='query'; got {short_repr(model.mechanism)}."
        )


def _scaled(model, alpha):
    """Penalty in units where features have norm one."""
    return float(alpha) / (model.x_norm**2 if model.kernel == "linear" else 1.0)


def _plan_features(model, target, n_samples, n_features, most=None):
    """Release of a function on features, from public numbers.

    ``most`` is the largest weight of a row, None where rows have no weights.
    """
    size, squared = model._size(target, n_samples, n_features), model.loss == "squared"
    mechanism = model.mechanism
    if mechanism == "auto" and target.delta == 0.0:
        mechanism = "output" if squared else "objective"
    elif mechanism == "auto":
        mechanism = "sufficient_statistics" if squared else "gradient"
    if model.kernel == "linear":
        rule = "X must have fewer columns, of which the linear kernel takes the square"
    else:
        rule = "n_components must be smaller"
    growth = _LIMIT_GROWTH if mechanism == "gradient" else 1.0
    _descent.check_features(target, n_samples, n_features, size, rule=rule, growth=growth)
    penalty = None if is_auto(model.alpha) else _scaled(model, model.alpha)
    if most is not None and penalty is not None:  # the objective is that over the largest weight
        penalty /= most
        between(*_LIMIT_PENALTIES, **{"alpha over max_sample_weight": penalty})
    cap = model._cap()
    if mechanism == "gradient":
        return _descent.FeatureDescent.plan(target, clip_norm=cap, penalty=penalty or 0.0)
    if mechanism == "sufficient_statistics":
        return _descent.FeatureStatistics.plan(target, n_components=size, penalty=penalty)
    options = dict(cap=cap, penalty=penalty)
    kind: Any
    if mechanism == "objective":
        kind, own = _pure.CentredObjective, dict(pairs=model.kernel != "linear")
    elif target.delta == 0.0 and not squared:
        kind, own = _pure.CentredOutput, {}
    else:
        own = dict(squared=squared, n_samples=n_samples, n_components=size)
        kind = _pure.FeatureOutput
    release = kind.plan(target, **options, **own)
    release.check_n_rows(n_samples, size)
    return release


def _plan_queries(model, target, n_samples, n_features):
    """Release of noisy answers, from public numbers."""
    is_ruled = is_auto(model.epsilon)
    penalty = None if is_auto(model.alpha) else _scaled(model, model.alpha)
    if penalty is None and is_ruled:
        smoothness = float(model.source_smoothness)
        penalty = _ridge_theory.penalty_rule(n_samples, target.epsilon, smoothness)
    is_paper = model.sensitivity == "paper"
    if is_paper and penalty is not None and penalty > n_samples:
        unit = " times x_norm^2" if model.kernel == "linear" else ""
        raise ValueError(
            f"alpha must be at most the number of rows, {n_samples},{unit} with "
            f"sensitivity='paper', whose lemma requires lam <= 1; got {short_repr(model.alpha)}."
        )
    release = _queries.ExactQueries.plan(
        target,
        n_samples=n_samples,
        n_features=n_features,
        n_queries=int(model.n_queries),
        squared=model.loss == "squared" or (model.loss == "auto" and (is_ruled or is_paper)),
        cap=model._cap(),
        penalty=penalty,
        automatic=is_auto(model.alpha),
        bound=model.sensitivity,
    )
    release.check_n_rows(n_samples, n_features, given=short_repr(model.alpha))
    return release


class DPKernelRidge(BaseKernelRegressor):
    """Kernel ridge regression with differential privacy.

    With ``release="features"`` the function is released once, on random features, and predicts any
    number of rows. With ``release="query"`` an exact kernel expansion stays with the curator and
    answers a fixed number of queries with noise.

    Parameters
    ----------
    epsilon : float or "auto", default=1.0
        Privacy budget of one fit, including all predictions. "auto" is the rule of Nie and Wang,
        ``n_samples ** -min(1/3, 4r/(3+6r))`` with ``r = source_smoothness``, corrected as in
        :func:`~skdp.kernel.papers.epsilon_rule`. It uses the number of rows and requires
        "replace-one".

    delta : float, default=0.0
        0 gives pure differential privacy. A positive value, well below one over the number of
        rows, allows Gaussian noise, which costs far less accuracy here.

    kernel : {"rbf", "laplacian", "matern", "linear"}, default="rbf"
        ``exp(-gamma ||x-y||^2)``, ``exp(-gamma ||x-y||_1)``, the Matérn kernel of length scale
        ``1/gamma``, or ``<x, y>``.

    gamma : float or "auto", default="auto"
        Public: chosen without using the data. "auto" is for rows in ``[-1, 1]^d``, scaled by
        public bounds, and for sparse rows of norm 1; see :func:`~skdp.rows.automatic_gamma`, which
        uses the number of columns and whether ``X`` is a sparse matrix. Entries beyond 64 length
        scales (many more with few features) are clipped.

    nu : {0.5, 1.5, 2.5}, default=1.5
        Smoothness of the Matérn kernel.

    alpha : float or "auto", default="auto"
        Regularisation strength, as in :class:`~sklearn.kernel_ridge.KernelRidge`. "auto" is set
        from the noise, by public numbers; the gradient mechanism then has no penalty. With
        ``release="query"`` it must be large enough for floating point: 1e-4 times the number of
        rows always suffices, up to 20,000 rows of 1,000 columns.

    release : {"features", "query"}, default="features"
        "features" releases the whole function. "query" keeps an exact kernel expansion, which
        contains the training data, and adds noise to each prediction.

    mechanism : {"auto", "gradient", "sufficient_statistics", "objective", "output"}, \
            default="auto"
        Mechanism of "features": noisy gradients; noisy second moments and products with the
        targets; a random linear term in the objective; or noise on the minimiser. "auto" is
        "objective" for ``delta=0`` and "gradient" otherwise; with ``loss="squared"`` it is
        "output" and "sufficient_statistics".

    loss : {"auto", "squared", "huber"}, default="auto"
        "huber" is half the square up to ``residual_cap`` and linear beyond. "squared" has the
        sensitivity of the paper's Lemma 2, sharpened; under "add-remove" its sensitivity is
        unbounded. "auto" is "squared" for sufficient statistics, and for queries with
        ``epsilon="auto"`` or ``sensitivity="paper"``, which assume it; otherwise it is "huber",
        which is more accurate.

    residual_cap : float or "auto", default="auto"
        Largest slope of the Huber loss, in units of the target. "auto" is set from the released
        variance of the targets with ``mechanism="gradient"`` and with ``delta=0``; otherwise it is
        an eighth of the range of ``y_bounds``.

    sensitivity : {"tight", "paper"}, default="tight"
        Sensitivity bound for the noise of queries. "tight" is exact. "paper" is Lemma 2 of the
        paper with ``R = M / sqrt(lam)``, which is 2 to 8 times as large. It requires
        ``release="query"``, the squared loss (then the "auto" choice), "replace-one" and an
        ``alpha`` of at most the number of rows, because it is proved only there.

    n_components : int or "auto", default="auto"
        Number of random features. They come in pairs, so an odd number is rounded up. "auto" grows
        with the budget times the number of rows, if that is public, up to 1000: by
        ``automatic_components`` for a positive delta and by ``pure_components`` otherwise.

    orthogonal : bool, default=True
        Whether to draw frequencies in orthogonal groups, for a better approximation of the kernel.

    y_bounds : (float, float) or "auto", default=None
        Public bounds of the target. Targets are clipped to them; predictions stay within. "auto"
        releases bounds first, for 5 % of the squared mu of the budget, or 10 % of a pure epsilon:
        a low and a high quantile, as extreme as the number of rows times this share allows, moved
        outwards somewhat. With fewer rows this takes up to half of the budget. If that is not
        enough for the quantiles, bounds are computed from the median and the median absolute
        deviation. None is "auto" under "replace-one" if the budget and the number of rows
        suffice and ``residual_cap`` is "auto", and otherwise (-1, 1), with a warning.

    y_search_range : (float, float), default=(-1e12, 1e12)
        Public range that is searched for bounds. It may be far too wide: the width of its cells is
        half a percent of their distance from 0. If ``y_bounds_`` reaches an end of it, targets may
        lie beyond and are clipped, and a warning says so.

    x_norm : float, default=1.0
        Public bound on the Euclidean norm of a row, for the linear kernel only. Rows with a larger
        norm are scaled down to it. The other kernels need no bound.

    adjacency : {"replace-one", "add-remove"}, default="replace-one"
        Definition of neighbouring data sets. Under "replace-one" the number of rows is public.

    n_queries : int, default=None
        Number of distinct rows that ``release="query"`` predicts over the life of the fitted
        model. `score` also predicts.

    source_smoothness : float, default=0.5
        Declared smoothness ``r`` of the regression function, for ``epsilon="auto"``: the function
        lies in the range of the r-th power of the integral operator of the kernel.

    max_sample_weight : float, default=None
        Public upper bound on ``sample_weight``, from 1e-6 to 1e6; larger weights are clipped to
        it. The noise is proportional to it. None uses 1 and warns in a fit with weights. Ignored
        without weights.

    random_state : None, int, RandomState or Generator, default=None
        None draws the noise from the operating system. Any other value makes the noise
        reproducible and voids the privacy; use it for tests and figures. Frequencies use a
        separate random stream.

    ledger : BudgetLedger or path, default=None
        Budget ledger that each fit is charged to before it uses the data.

    Attributes
    ----------
    coef_ : ndarray of shape (n_components,), or ``(n_features_in_,)`` for the linear kernel
        Weights of the features, for targets centred and in units of half their range; only with
        ``release="features"``. Released under ``guarantee_``.

    intercept_ : float
        Constant added to the products of features and weights, in the same units; only with
        ``release="features"``. Released under ``guarantee_``.

    frequencies_ : ndarray of shape ``(n_components / 2, n_features_in_)``
        Frequencies of the features, except for the linear kernel. Public.

    gamma_ : float
        Value of ``gamma`` in use, except for the linear kernel. Public.

    y_bounds_ : tuple of two floats
        Bounds of the target in the fit: public if given, and a release with "auto". Released under
        ``guarantee_``.

    guarantee_ : ApproxDP
        Guarantee of the fit, with its privacy profile. Public.

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
    of releases that jointly satisfy ``guarantee_``, for any data. Predictions are post-processing
    and cost no privacy. With ``release="query"`` the same holds for the predictions. The fitted
    object and its pickles contain the training data under one private name: both must stay with
    the curator. Copies within a process share one count of queries. A repeated row gets the same
    answer at no cost.

    **Users.** With ``fit(X, y, groups=ids)`` neighbours differ in all rows of one user, who may
    have any number. The rows of a user share a weight of 1, so a user adds to each sum the mean
    over their rows, with the same bound as one row. Rules use the number of users in place of the
    number of rows; it is public under "replace-one". ``y_bounds="auto"`` uses one row of each
    user, drawn by a public key. The number of rows of a user is private. This requires sums over
    records: ``release="features"`` with a positive delta and ``mechanism`` "gradient" or
    "sufficient_statistics". Otherwise use :func:`~skdp.preprocessing.bound_contributions`.

    **Weights.** ``sample_weight`` multiplies what a row adds to each sum that is released. The sum
    of weights takes 2 % of the budget where rules read the number of rows, and replaces it. The
    guarantee holds if each weight is a function of its own row and of public or released numbers;
    ``guarantee_`` states this as a caveat.

    One random number added to the whole function, as in the paper's Lemma 1, would protect
    nothing: it cancels in the difference of two predictions.

    `score` compares predictions with the given targets, which must be public: a score on private
    targets is an exact function of them and not covered by any guarantee.
    `~skdp.metrics.dp_evaluate` scores on private rows.

    The guarantee does not cover the run time of `fit`, errors about malformed input, a
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
    >>> bool(model.score(X[4000:], y[4000:]) > 0.7)  # the data are synthetic
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
        y_search_range=TARGET_SEARCH_RANGE,
        x_norm=1.0,
        adjacency="replace-one",
        n_queries=None,
        source_smoothness=0.5,
        max_sample_weight=None,
        random_state=None,
        ledger=None,
    ):
        super().__init__(
            epsilon, delta, adjacency=adjacency, random_state=random_state, ledger=ledger
        )
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
        self.n_queries = n_queries
        self.max_sample_weight = max_sample_weight
        self.source_smoothness = source_smoothness

    def _target(self, unit="record", n_samples=None):
        """Budget of a fit, which "auto" takes from the number of rows."""
        epsilon = self.epsilon
        if is_auto(epsilon):
            epsilon = _ridge_theory.epsilon_rule(n_samples, float(self.source_smoothness))
        return ApproxDP(float(epsilon), float(self.delta), adjacency=self.adjacency, unit=unit)

    def _size(self, target, n_samples, n_features):
        """Length of a row of features; a private number of rows has no part in it."""
        rows = n_samples if target.adjacency == "replace-one" else None
        if target.delta > 0.0:
            budget = target.gaussian_target()
            automatic = _descent.automatic_components(n_samples=rows, guarantee=budget)
        else:
            automatic = _pure.pure_components(n_samples=rows, epsilon=target.epsilon)
        return self._n_components(n_features, automatic)

    @property
    def _holds_private_numbers(self):
        """Whether it keeps rows, to answer queries."""
        return not hasattr(self, "coef_")

    def _planned_release(self, target, n_features):
        if self.release == "features" and self.mechanism == "output":
            # Of more features it is Gaussian as well.
            size = self._n_components(n_features or 1, _descent.FEWEST_FEATURES)
            if not _pure.FeatureOutput.is_gaussian(target, size):
                return target
        return super()._planned_release(target, n_features)

    def check_parameters(self):
        """Check all parameters that do not depend on the rows or their users."""
        one_of(RELEASES, release=self.release)
        one_of(MECHANISMS, mechanism=self.mechanism)
        one_of(LOSSES, loss=self.loss)
        learner.check_budget(self, epsilon=1.0 if is_auto(self.epsilon) else None)
        self._check_kernel_parameters()
        positive(source_smoothness=self.source_smoothness)
        number_or_auto(alpha=self.alpha)
        if not is_auto(self.alpha):
            unit = _scaled(self, 1.0)
            between(*(limit / unit for limit in _LIMIT_PENALTIES), alpha=self.alpha)
        self._cap()
        if is_auto(self.epsilon) and self.adjacency == "add-remove":
            raise ValueError(
                "epsilon must be a number under adjacency='add-remove': the rule uses the "
                "number of rows, which is private there; got 'auto'."
            )
        check_loss(self)
        check_paper(self)
        if self.release == "features":
            check_mechanism(self)
        else:
            check_queries(self)

    @learner.with_callbacks
    def fit(self, X, y, groups=None, sample_weight=None):
        """Fit the model under ``(epsilon, delta)``-differential privacy.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), or source
            Rows, or with ``release="features"`` any input of `~skdp.rows.row_source`.

        y : array-like of shape (n_samples,) or str
            Targets, or the name of their column in ``X``. Targets are clipped to ``y_bounds``.

        groups : array-like of shape (n_samples,), default=None
            User ID of each row. The guarantee is then for users: it covers all rows of a user,
            however many. None protects rows. See the notes above.

        sample_weight : array-like of shape (n_samples,), default=None
            Weight of each row, at least 0, for ``release="features"``; clipped to
            ``max_sample_weight``. A weight must be a function of its own row and of public or
            released numbers. None is 1 for all.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If a parameter or the input is invalid.
        BudgetExceededError
            If the ledger cannot cover the charge; the previous model is kept.
        SolverError
            If the solution could not be certified; the ledger stays charged.
        """
        context = learner.begun_fit(self)
        with learner.unchanged_on_error(self):
            self.check_parameters()
            if groups is not None:
                check_users(self)
            if self.release == "query" and in_memory(X, y, groups) is None:
                raise ValueError(
                    "release must be 'features' if X is a source: 'query' holds the rows in "
                    "memory; got 'query'."
                )
            data = self._data(X, y, groups, sample_weight)
            if data.weights is not None and self.release == "query":
                raise ValueError(
                    "sample_weight must be None with release='query', whose noise covers the "
                    "effect of one row on an exact minimiser; got weights."
                )
            X, y, users, n_units = data.X, data.y, data.users, data.n_units
            unit = "record" if users is None else "user"
            target = self._target(unit, n_units)

            def planned(rest):
                if self.release == "query":
                    return _plan_queries(self, rest, n_units, X.shape[1])
                most = None if data.weights is None else self._most_weight
                return _plan_features(self, rest, n_units, X.shape[1], most)

            bounds_plan, release, guarantee = self._with_bounds(target, n_units, planned)
            learner.warn_of_delta(self, n_units, unit)
            guarantee = with_weights(guarantee, data.weights)
            learner.charge(self, guarantee)
            gamma = self._public_gamma(X.shape[1], issparse(X))
            *streams, bounds_state = self._random_streams(_LIMIT_STREAMS)
            bounds = self.y_bounds
            if bounds_plan is not None:
                bounds = bounds_plan(y, noise_source(bounds_state), users, data.weights)
            bounds = TargetRange.of(bounds)
            if bounds_plan is not None:
                warn_of_an_end(bounds, self.y_search_range)
            with learner.progress_of(self, context, groups=groups):
                predictor = self._released(release, data, bounds.scaled(y), gamma, *streams)
            self._store(predictor, y_bounds_=(bounds.low, bounds.high), gamma_=gamma)
            self.guarantee_ = self._stated(guarantee)
        return self

    def _released(self, release, data, targets, gamma, feature_state, noise_state):
        """Predictor: a function on features, or query answers that hold the rows."""
        X = data.X
        if self.release == "query":
            X = _queries.KernelExpansion(X, self.kernel, gamma or 1.0, self.nu, self.x_norm)
            return release((X, targets), self._secret(noise_state))
        size = self._size(release.guarantee, data.n_units, X.shape[1])
        features = self._draw_features(X.shape[1], size, gamma, feature_state)
        is_linear = self.kernel == "linear"
        kind = _blocks.FeatureBlocks if is_linear else _blocks.IntegerFeatureBlocks
        rows = kind(X, targets, features, users=data.users, weights=data.weights)
        # Products are of a few rows at a time, for which threads would wait for each other.
        with one_blas_thread():
            return FeatureFunction(features, *release(rows, noise_source(noise_state)))
