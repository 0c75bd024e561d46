"""Private online kernel regression."""

from dataclasses import replace

from sklearn.utils.validation import check_is_fitted

from skdp._validation import TARGET_SEARCH_RANGE, TargetRange, warn_of_bounds
from skdp.kernel._base import BaseKernelRegressor
from skdp.kernel._online._base import UserCalls
from skdp.kernel._online._chunk import ChunkRelease
from skdp.kernel._online._plan import check_stream_parameters, kind_of_release, stream_plan
from skdp.kernel._online._released import ReleasedKernelRegressor
from skdp.learner import StreamEstimator, with_callbacks
from skdp.learner._streams import has_begun
from skdp.rows import FeatureFunction
from skdp.rows._inputs import checked_data


class DPOnlineKernelRegressor(UserCalls, BaseKernelRegressor, StreamEstimator):
    """Online kernel regression with differential privacy, for unbounded streams.

    By default each call of `partial_fit` is one release, of the rows of that call only, and all
    calls together have the guarantee of one. How fast old releases are forgotten is chosen from
    released numbers. The other release modes run the recursion of the papers in one pass:
    ``f_{t+1} = f_t - eta_t [psi(f_t(x_t) - y_t) K(x_t, .) + lam_t f_t]`` with ``eta_t = (t +
    t0)^-theta`` and ``eta_t lam_t = 1 / (t + t0)``.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of one release with ``release="final"``, and of all calls together
        otherwise.

    delta : float, default=0.0
        0 gives pure differential privacy. A positive value, well below one over the number of
        rows, allows Gaussian noise.

    kernel : {"rbf", "laplacian", "matern", "linear"}, default="rbf"
        As for :class:`DPKernelRidge`.

    gamma : float or "auto", default="auto"
        Public, as for :class:`DPKernelRidge`; "auto" depends on the rows of the first call.

    nu : {0.5, 1.5, 2.5}, default=1.5
        Smoothness of the Matérn kernel.

    theta : float in (1/2, 1), default=0.6
        Exponent of the step sizes of the recursion; not used by "chunk". Values close to 1/2 learn
        faster with more noise. The paper uses 0.75.

    t0 : float or "auto", default="auto"
        Time offset of the step sizes. "auto" is the smallest value at which no step overshoots,
        see ``automatic_t0``, and 100 times that for "matrix" and "tree", whose noise is high at
        first.

    residual : {"huber", "ball", "plain"}, default="huber"
        How a step is bounded. "huber" clips residuals to ``residual_cap``. "ball" projects the
        function onto the ball of ``radius`` in the kernel space. "plain", the recursion of the
        paper, does neither and is for "final" and "query" only.

    residual_cap : float or "auto", default="auto"
        Largest residual for "huber", in units of the target. "auto" is a fraction of half the
        range of ``y_bounds``: 0.25 with "final" and "sgd", whose noise requires a small cap; 0.5
        with "query"; with "matrix" and "tree" a value that grows with the root of ``horizon``
        times the budget, up to 0.5.

    radius : float, default=1.0
        Radius of the ball, for targets in units of half their range.

    sensitivity : {"tight", "paper"}, default="tight"
        Sensitivity bound for the noise of "final" and "query": "tight" is exact, "paper" is
        formula (17) of the paper.

    release : {"auto", "chunk", "final", "matrix", "tree", "sgd", "query"}, default="auto"
        "chunk" releases, in each call, second moments and gradients of the rows of that call; it
        stores nothing private. "final" releases the function at the end of each `fit` or
        `partial_fit`, and its guarantee grows. "matrix" releases noisy sums of gradients up to a
        public ``horizon``, with noise that cancels in the function, and requires a positive delta.
        "tree" does so over time intervals, for any delta, with two to three times the noise. "sgd"
        feeds noise back at every step: the whole transcript, of any length, is released for one
        budget. "query" keeps an exact kernel expansion, which contains the data, and adds noise to
        each prediction. "auto" is "chunk" without a ``horizon``; with one it is "matrix", or
        "tree" if delta is 0 or there are more than 8,388,608 rows.

    half_life : float or "auto", default="auto"
        For "chunk". Number of calls after which the weight of a release halves; ``float("inf")``
        forgets nothing. "auto" chooses among 2, 10 and infinity after each call, from released
        numbers.

    n_components : int or "auto", default="auto"
        Number of random features; an odd number is rounded up. "auto" depends on the budget for
        "chunk": 100 to 200 with a positive delta and 6 to 40 without. It is 1000 for "final" with
        a positive delta, and 200 otherwise. Not used by "query".

    orthogonal : bool, default=True
        Whether to draw frequencies in orthogonal groups.

    y_bounds : (float, float) or "auto", default=None
        Public bounds of the target. Targets are clipped to them; predictions stay within. With
        "chunk", "auto" learns them from the first call, within the budget. None is "auto" with
        "chunk" and "replace-one", if the budget and the number of rows of the first call suffice,
        and otherwise (-1, 1), with a warning.

    y_search_range : (float, float), default=(-1e12, 1e12)
        Public range that is searched for bounds.

    x_norm : float, default=1.0
        Public bound on the Euclidean norm of a row, for the linear kernel only.

    adjacency : {"replace-one", "add-remove"}, default="replace-one"
        Definition of neighbouring streams. Time stamps are public in both cases. With "add-remove"
        one record is present or replaced by a null record, which keeps its time and contributes
        nothing. With "chunk" the number of rows of a call is then private and is released with
        noise.

    horizon : int, default=None
        Largest number of rows over the life of a stream, for "matrix" and "tree"; with ``groups``,
        the number of users summed over calls. Rows beyond it are refused.

    n_queries : int, default=None
        Number of distinct rows that "query" predicts over the life of a stream. A row counts again
        after the function has changed.

    max_calls_per_user : int, default=1
        With ``groups``, the number of `partial_fit` calls in which a user takes a step; the
        guarantee covers that many. In later calls the rows of the user are left out, and the step
        keeps its time. At most 100 with "final".

    user_calls : {"counted", "stated"}, default="counted"
        How ``max_calls_per_user`` is enforced. "counted" stores user IDs in the process that
        started the stream, and leaves out rows beyond the limit. Pickles do not contain the IDs,
        so a stream unpickled elsewhere cannot continue. "stated" stores no IDs: the caller must
        leave those users out, and ``guarantee_`` states this as a caveat.

    random_state : None, int, RandomState or Generator, default=None
        None draws the noise from the operating system. Any other value makes the noise
        reproducible and voids the privacy; use it for tests and figures. Frequencies use a
        separate random stream.

    ledger : BudgetLedger or path, default=None
        Budget ledger that is charged before the data are used. A stream has one entry, which each
        call replaces with the ``guarantee_`` of all releases, including the next one.

    Attributes
    ----------
    coef_ : ndarray of shape (n_components,), or ``(n_features_in_,)`` for the linear kernel
        Weights of the features, for targets centred and in units of half their range. With "sgd" a
        mean of the iterates with larger weights for later ones. Not with "query". Released under
        ``guarantee_``.

    intercept_ : float
        Constant added to all predictions, with "chunk". Released under ``guarantee_``.

    half_life_ : float
        Current half-life, in calls, with "chunk"; 0 if no model was better than none. Released
        under ``guarantee_``.

    drift_ : float
        With "chunk": the recent reduction in mean error per row from this half-life, relative to
        the longest candidate, estimated from released numbers; 0 if ``half_life`` is a number. The
        error is half the square, for targets in units of half their range. Released under
        ``guarantee_``.

    frequencies_ : ndarray of shape ``(n_components / 2, n_features_in_)``
        Frequencies of the features, except for the linear kernel. Public.

    gamma_ : float
        Value of ``gamma`` in use, except for the linear kernel. Public.

    n_samples_seen_ : int
        Number of rows so far, as public as time stamps are; with ``groups`` the number of users
        summed over calls. With "chunk" and "add-remove" it is counted with noise. Released under
        ``guarantee_``.

    y_bounds_ : tuple of two floats
        Bounds of the target: public if given, and a release with "auto". Released under
        ``guarantee_``.

    guarantee_ : ApproxDP
        Joint guarantee of all releases of the stream so far, with its privacy profile. Public.

    n_features_in_ : int
        Number of features. Public.

    feature_names_in_ : ndarray of shape ``(n_features_in_,)``
        Names of the features, if ``X`` has them. Public.

    See Also
    --------
    DPKernelRidge : Many passes over the same rows, for less noise in the end.
        Makes many passes over the same rows, with less noise in the end.

    Notes
    -----
    **Privacy.** The attributes above are public or released. With "chunk" nothing else is stored,
    except user IDs with ``groups``. A row is in one call. Earlier calls do not depend on it, and
    later calls depend on it only through its releases. So the sequence of all releases, of any
    length, satisfies the guarantee of one (McSherry, SIGMOD 2009, theorem 4), even if later rows
    depend on earlier releases. The choice of rows for a call must not depend on the data; with
    "add-remove" end calls by the date, never by the number of rows.

    With other release modes a live estimator also stores unreleased values: with "final" the
    function without noise, with "matrix" and "tree" sums without noise, with "query" all rows.
    They are under private names and in pickles, so both the estimator and its pickles must stay
    with the curator. `released` returns a predictor without them.

    Only one of several copies of a live estimator may continue the stream. Copies that each
    continue are separate streams on the same rows, and together they cost more than the guarantee
    of any of them. Within a process, once one copy has continued, all others are refused for the
    life of the process, however they were made and whether or not that copy still exists. With a
    ledger they are refused in any process. Without a ledger the curator must ensure that no two
    processes continue, and that none continues from an old pickle. A release that fails after its
    charge stays charged, and is part of ``guarantee_`` from the next one on.

    With "final", a record that entered at step s has moved each later function by at most ``D_s (s
    + t0) / (T - 1 + t0)``. The guarantee is the exact composition of the releases, maximised over
    s; it is far below the sum of their budgets. With "sgd", "tree" and "matrix" a record's
    gradient is taken at a released point. It therefore enters one noisy gradient with "sgd", one
    noisy sum at each level with "tree", and all later sums with "matrix", with a column of public
    factors whose norm calibrates the noise.

    With ``groups`` a step is a user: the mean of the gradients of the user's rows in a call.
    Replacing all of these rows, however many, moves it no further than replacing one row would.
    Which users are in which call, in the order of their first rows, is public; the number of rows
    of a user is not. The guarantee covers all calls of a user. With "final" the distances add up,
    each shrinking from its own step on, and the noise and the guarantee are for the worst calls.
    With "sgd" that many gradients compose; with "tree" that many may be in each sum; with "matrix"
    that many columns add up. The estimator stores the IDs and the number of calls of each user
    under a private name, unless ``user_calls="stated"``. Pickles and predictors from `released` do
    not contain them.

    One random number added to a whole function, as in the paper's Theorem 1, would protect
    nothing. The paper's Theorem 2 omits the bias of the penalty, see
    :func:`~skdp.kernel.papers.online_rate`.

    `score` compares predictions with the given targets. A score on private targets is an exact
    function of them and not covered by any guarantee, even if the stream already contained them.
    `~skdp.metrics.dp_evaluate` scores on private rows.

    The guarantee does not cover the run time of a call, errors about malformed input, and other
    uses of the same data.

    References
    ----------
    "A study on differential private online learning", Journal of Computer and Communications 5,
    2017. Tarrès and Yao, "Online learning as stochastic approximation of regularization paths",
    IEEE Transactions on Information Theory 60, 2014. Kairouz, McMahan, Song, Thakkar, Thakurta and
    Xu, "Practical and private (deep) learning without sampling or shuffling", ICML 2021. Denisov,
    McMahan, Rush, Smith and Guha Thakurta, "Improved differential privacy for SGD via optimal
    private linear operators on adaptive streams", NeurIPS 2022.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.kernel import DPOnlineKernelRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(20000, 2))
    >>> y = np.sin(3 * X[:, 0])
    >>> model = DPOnlineKernelRegressor(epsilon=1.0, delta=1e-6, y_bounds=(-1, 1))
    >>> for start in range(0, 15000, 500):
    ...     model = model.partial_fit(X[start : start + 500], y[start : start + 500])
    >>> bool(model.released().score(X[15000:], y[15000:]) > 0.7)  # the data are synthetic
    True
    >>> model.guarantee_.epsilon
    1.0
    """

    def __init__(
        self,
        epsilon=1.0,
        delta=0.0,
        *,
        kernel="rbf",
        gamma="auto",
        nu=1.5,
        theta=0.6,
        t0="auto",
        residual="huber",
        residual_cap="auto",
        radius=1.0,
        sensitivity="tight",
        release="auto",
        half_life="auto",
        n_components="auto",
        orthogonal=True,
        y_bounds=None,
        y_search_range=TARGET_SEARCH_RANGE,
        x_norm=1.0,
        adjacency="replace-one",
        horizon=None,
        n_queries=None,
        max_calls_per_user=1,
        user_calls="counted",
        random_state=None,
        ledger=None,
    ):
        self.epsilon, self.delta = epsilon, delta
        self.kernel = kernel
        self.gamma, self.nu = gamma, nu
        self.theta = theta
        self.t0 = t0
        self.residual = residual
        self.residual_cap = residual_cap
        self.radius = radius
        self.sensitivity = sensitivity
        self.release = release
        self.half_life = half_life
        self.n_components = n_components
        self.orthogonal = orthogonal
        self.y_bounds = y_bounds
        self.y_search_range = y_search_range
        self.x_norm = x_norm
        self.adjacency = adjacency
        self.horizon = horizon
        self.n_queries = n_queries
        self.max_calls_per_user = max_calls_per_user
        self.user_calls = user_calls
        self.random_state = random_state
        self.ledger = ledger

    @with_callbacks
    def fit(self, X, y, groups=None):
        """Start a new stream with one pass over the rows in the given order.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), or source
            Rows. All rows of a source are read into memory.

        y : array-like of shape (n_samples,) or str
            Targets, or the name of their column. Targets are clipped to ``y_bounds``.

        groups : array-like of shape (n_samples,), default=None
            User ID of each row. The guarantee is then for users: it covers all rows of a user,
            however many. None protects rows.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If a parameter or the input is invalid, there are more steps than ``horizon``, or
            ``groups`` come with ``release="query"``.
        BudgetExceededError
            If the ledger cannot cover the charge; the previous model is kept.
        """
        return self._advance(X, y, groups, is_whole=True)

    @with_callbacks
    def partial_fit(self, X, y, groups=None):
        """Continue the stream with new rows.

        Pass each record once: the guarantee is for a record, and repeated rows count as records of
        their own. Passing them k times costs as much as k records of one user. The number of rows
        of a call must not depend on the data.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), or source

        y : array-like of shape (n_samples,) or str

        groups : array-like of shape (n_samples,), default=None
            User ID of each row. The guarantee is then for users: it covers all rows of a user,
            however many. None protects rows. Either all calls of a stream have IDs, with one ID
            per user, or none has. Rows of users beyond ``max_calls_per_user`` calls have no
            effect.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            As for `fit`, and if a parameter has changed since the stream began.
        StaleStreamError
            If another copy has continued the stream; `fit` starts a new one.
        BudgetExceededError
            If the ledger cannot cover one more release; the previous model is kept.
        """
        if has_begun(self) and getattr(self._stream.release, "bounds", None) is None:
            warn_of_bounds(self.y_bounds)
        return self._advance(X, y, groups)

    def released(self):
        """Return a predictor that contains released numbers only.

        Returns
        -------
        ReleasedKernelRegressor

        Raises
        ------
        ValueError
            With ``release="query"``, which releases answers only.
        """
        check_is_fitted(self)
        if not isinstance(self._predictor, FeatureFunction):
            raise ValueError(
                "release must not be 'query', which releases answers only; got 'query'."
            )
        names = getattr(self, "feature_names_in_", None)
        released = ReleasedKernelRegressor(
            coef=self.coef_.copy(),
            features=self._predictor.features,
            y_bounds=self.y_bounds_,
            guarantee=self.guarantee_,
            feature_names=None if names is None else tuple(names),
            intercept=self._predictor.intercept,
        )
        released._facts = self._facts  # what was released is the same
        return released

    @property
    def _has_time_stamps(self):
        """Whether each row has a public place, which a null record may take."""
        return not isinstance(self._stream.release, ChunkRelease)

    @property
    def _costs_once(self):
        """Whether the guarantee stays what it was after the first call."""
        return kind_of_release(self) != "final"

    @property
    def _holds_private_numbers(self):  # type: ignore[override]
        """Whether it keeps sums without noise, rows, or ids of users."""
        if not has_begun(self):
            return False
        release = self._stream.release
        return not isinstance(release, ChunkRelease) or release.keeps_ids

    def check_parameters(self):
        """Check the parameters, before the rows are looked at."""
        check_stream_parameters(self)

    def begin(self, public):
        """The release that the parameters ask for, maybe after bounds of the target."""

        def planned(rest):
            return stream_plan(self, replace(public, target=rest))

        sizes = public.target, public.n_samples
        if self._learns_bounds(*sizes):
            bounds, release, guarantee = self._with_bounds(*sizes, planned)
            return release.after(bounds, guarantee)
        warn_of_bounds(self.y_bounds)
        release = planned(public.target)
        if not self._asks_for_bounds:
            return release
        return replace(release, found_range=TargetRange.of(None))

    @property
    def _may_learn_bounds(self):
        return kind_of_release(self) == "chunk"

    def learn(self, release, fitted):
        """Store what predicts, and public numbers."""
        bounds = release.found_range if self._asks_for_bounds else TargetRange.of(self.y_bounds)
        self._store(
            **fitted,
            y_bounds_=(bounds.low, bounds.high),
            gamma_=release.gamma,
            n_samples_seen_=release.time,
        )

    def _read(self, X, y, *, reset, counts):
        is_chunk = kind_of_release(self) == "chunk"
        options = self._fewest(reset) if is_chunk else {}
        X, y = checked_data(self, X, y, reset=reset, numeric=True, counts=counts, **options)
        return X, y if self._asks_for_bounds else TargetRange.of(self.y_bounds).scaled(y)
