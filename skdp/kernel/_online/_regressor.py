"""Private online regression in a kernel space."""

from dataclasses import replace

from sklearn.utils.validation import check_is_fitted

from skdp._validation import TARGET_SEARCH_RANGE, TargetRange, is_auto, warn_of_bounds
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
    """Online regression in a kernel space with differential privacy, for streams without end.

    By default each call of `partial_fit` is one release, of the rows of that call alone, and the
    guarantee of all calls together is that of one. What is forgotten, and how fast, is
    chosen from released numbers. The other releases are the papers' recursion, in one pass:
    ``f_{t+1} = f_t - eta_t [psi(f_t(x_t) - y_t) K(x_t, .) + lam_t f_t]`` with
    ``eta_t = (t + t0)^-theta`` and ``eta_t lam_t = 1 / (t + t0)``.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget: of one release with ``release="final"``, of all calls together otherwise.

    delta : float, default=0.0
        0 is pure differential privacy; a positive number, well below one over the number of
        rows, allows Gaussian noise.

    kernel : {"rbf", "laplacian", "matern", "linear"}, default="rbf"
        As for :class:`DPKernelRidge`.

    gamma : float or "auto", default="auto"
        Public, as for :class:`DPKernelRidge`; "auto" goes by the rows of the first call.

    nu : {0.5, 1.5, 2.5}, default=1.5
        Smoothness of the Matérn kernel.

    theta : float in (1/2, 1), default=0.6
        Exponent of the steps of the recursion, which "chunk" has not. Close to 1/2 the function
        learns faster and is noisier. The paper's is 0.75.

    t0 : float or "auto", default="auto"
        Offset of the time. "auto" is the smallest with which no step overshoots, see
        ``automatic_t0``, and 100 times that for "matrix" and "tree", whose
        noise is high at first.

    residual : {"huber", "ball", "plain"}, default="huber"
        What bounds a step: "huber" clips residuals to ``residual_cap``; "ball" projects the
        function onto the ball of ``radius`` in the kernel's space; "plain", the recursion of the
        paper, does neither, and is for "final" and "query" only.

    residual_cap : float or "auto", default="auto"
        Largest residual for "huber", in units of the target. "auto" is a share of half the range
        of ``y_bounds``: 0.25 with "final" and "sgd", whose noise needs it small, 0.5 with "query",
        and with "matrix" and "tree" one that grows with the root of ``horizon`` times the budget,
        up to 0.5.

    radius : float, default=1.0
        Norm of the ball, for targets in units of half their range.

    sensitivity : {"tight", "paper"}, default="tight"
        Bound behind the noise of "final" and "query": the exact one, or formula (17) of the paper.

    release : {"auto", "chunk", "final", "matrix", "tree", "sgd", "query"}, default="auto"
        "chunk" releases, in each call, second moments and gradients of its own rows; nothing
        private is kept. "final" releases the function at the end of each `fit` or `partial_fit`,
        and its guarantee grows. "matrix" releases noisy sums of gradients up to a public
        ``horizon``, whose noise cancels in the function, and needs a positive delta; "tree" does
        so over intervals of time, with two to three times the noise, for any delta. "sgd" feeds
        noise back at every step: the whole transcript, however long, is released for one budget.
        "query" keeps an exact kernel expansion, which holds the data, and adds noise to each
        predicted row. "auto" is "chunk" without a ``horizon``, and with one "matrix", or "tree" if
        delta is 0 or there are more than 8,388,608 rows.

    half_life : float or "auto", default="auto"
        For "chunk": after how many calls what was released counts half; ``float("inf")`` forgets
        nothing. "auto" chooses among 2, 10 and infinity after each call, by released numbers.

    n_components : int or "auto", default="auto"
        Number of random features; an odd number is rounded up. "auto" is 100 to 200 by the budget
        for "chunk" with a positive delta and 6 to 40 without; 1000 for "final" with a positive
        delta, and 200 otherwise. Not used by "query".

    orthogonal : bool, default=True
        Draw frequencies in orthogonal groups.

    y_bounds : (float, float) or "auto", default=None
        Public bounds of the target. Targets outside are clipped; predictions stay within. With
        "chunk", "auto" learns them from the first call, within the budget. None is "auto" with
        "chunk" and "replace-one", where the budget and the number of rows of the first call are
        enough for that, and otherwise (-1, 1), with a warning.

    y_search_range : (float, float), default=(-1e12, 1e12)
        Public range in which bounds are looked for.

    x_norm : float, default=1.0
        Public bound on the Euclidean norm of a row, for the linear kernel only.

    adjacency : {"replace-one", "add-remove"}, default="replace-one"
        Which streams are neighbours. Time stamps are public either way: with "add-remove" one
        record is there or is a null record, which keeps its time and contributes nothing; with
        "chunk" the number of rows of a call is private, and is released with noise.

    horizon : int, default=None
        Largest number of rows in the life of a stream, for "matrix" and "tree"; with ``groups``
        of users, added up over calls. What is beyond is refused.

    n_queries : int, default=None
        Number of different rows that "query" predicts in the life of a stream. A row counts
        again when the function has changed.

    max_calls_per_user : int, default=1
        With ``groups``, the number of calls of `partial_fit` in which a user takes a step; the
        guarantee covers that many. In later calls the rows of the user are left out, and the step
        keeps its time. At most 100 with "final".

    user_calls : {"counted", "stated"}, default="counted"
        How ``max_calls_per_user`` is kept to. "counted" keeps the ids of users in the process in
        which the stream began, and leaves out who comes too often; no pickle has them, and what
        is read from one elsewhere cannot go on. "stated" keeps none: whoever calls leaves those
        users out, and ``guarantee_`` has that as a caveat.

    random_state : None, int, RandomState or Generator, default=None
        None draws the noise from the operating system. Anything else makes it reproducible
        and void of privacy, for tests and figures. Frequencies have a stream of their own.

    ledger : BudgetLedger or path, default=None
        Budget that is charged before the data are used. A stream has one entry, which each call
        replaces by ``guarantee_`` of all releases, the coming one included.

    Attributes
    ----------
    coef_ : ndarray of shape (n_components,), or ``(n_features_in_,)`` for the linear kernel
        Weights of the features, for targets in units of half their range around its middle;
        with "sgd" a mean of the iterates in which late ones weigh more. Not with "query".
        Released under ``guarantee_``.

    intercept_ : float
        What is added to all values, with "chunk". Released under ``guarantee_``.

    half_life_ : float
        Half-life in use, in calls, with "chunk"; 0 where no model was better than none. Released
        under ``guarantee_``.

    drift_ : float
        With "chunk": how much lower the error of a row has been lately with this half-life than
        with the longest of those that are compared, as released numbers tell: 0 where one is
        stated. The error is half of a square, for targets in units of half their range. Released
        under ``guarantee_``.

    frequencies_ : ndarray of shape ``(n_components / 2, n_features_in_)``
        Frequencies of the features, except for the linear kernel. Public.

    gamma_ : float
        Width of the kernel, except for the linear one. Public.

    n_samples_seen_ : int
        Rows of the stream so far, as public as time stamps are; with ``groups`` the users of each
        call, added up. With "chunk" and "add-remove" they are counted with noise. Released under
        ``guarantee_``.

    y_bounds_ : tuple of two floats
        Bounds of the target. They are public where they are given; with "auto" they are a release.
        Released under ``guarantee_``.

    guarantee_ : ApproxDP
        What all releases of the stream so far promise together, with its privacy profile.
        Public.

    n_features_in_ : int
        Number of features. Public.

    feature_names_in_ : ndarray of shape ``(n_features_in_,)``
        Names of the features, if ``X`` has them. Public.

    See Also
    --------
    DPKernelRidge : Many passes over the same rows, for less noise in the end.

    Notes
    -----
    **Privacy.** The attributes above are public or released. With "chunk" nothing else is kept,
    but with ``groups`` ids of users: a row is in one call, calls before it do not know of it, and
    those after it know what its own released. So the sequence of all releases, without end,
    satisfies the guarantee of one (McSherry, SIGMOD 2009, theorem 4), also where later rows depend
    on earlier releases. Which rows a call has must not depend on the data; with "add-remove" end
    calls by the date, never by the number of rows.

    With other releases a live estimator must
    also keep what has not been released: with "final" the function without noise, with "matrix"
    and "tree" sums without noise, with "query" all rows. It keeps them under private names, and a
    pickle has them too: both belong to the curator alone. `released` returns a predictor without
    them. Only one of several copies of a live estimator may go on. Copies that each go on are
    streams of their own on the same rows, and together they cost more than the guarantee of any of
    them says. Within a process, once one has gone on all others are refused as long as the process
    lives, however they were made and whether or not that one still exists. With a ledger they are
    refused in any process. Without a ledger the curator must see to it that no two processes go
    on, and that none goes on from an old pickle. A release that fails after its charge stays
    charged, and is part of ``guarantee_`` from the next one on.

    With "final", a record that entered at step s has moved each later function by at most
    ``D_s (s + t0) / (T - 1 + t0)``, and the guarantee is the largest, over s, of what the releases
    compose to: exactly, and far below the sum of their budgets. With "sgd", "tree" and "matrix" a
    record's gradient is taken at a released point, so that it enters one noisy gradient, one
    noisy sum at each level of the tree, or all later sums of "matrix" with a column of public
    factors, whose norm the noise is made for.

    With ``groups`` a step is a user: the mean of the gradients of the rows that the user has in a
    call, so that whoever replaces all of them, however many, moves it no further than one row
    does. Who comes in which call, in the order of first rows, is public; how many rows anybody has
    is not. The guarantee of a user who comes in several calls covers all of them. With "final"
    distances add up, each shrinking from its own step on, and the noise and the guarantee are for
    the worst calls. With "sgd" so many gradients compose; with "tree" so many may be in each sum,
    and with "matrix" so many columns add up. The estimator keeps the ids, and in how many calls
    each has come, under a private name, unless ``user_calls="stated"``; pickles and what
    `released` returns have none.

    One random number that is added to a whole function, as in the paper's Theorem 1, would protect
    nothing. The paper's Theorem 2 leaves out the bias of the penalty, see
    :func:`~skdp.kernel.papers.online_rate`.

    `score` compares predictions with targets that the caller passes. A score on private targets is
    an exact function of them, which no guarantee covers, whether or not the stream has passed them
    already. `~skdp.metrics.dp_evaluate` scores on private rows.

    What the guarantee does not cover: the time that a call takes, errors about malformed input,
    and other uses of the same data.

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
    >>> bool(model.released().score(X[15000:], y[15000:]) > 0.7)  # made-up rows are public
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
        """Start afresh, and pass through the rows once in the given order.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), or source
            Of a source all rows are read into memory.

        y : array-like of shape (n_samples,) or str
            Targets, or the name of their column. Those outside ``y_bounds`` are clipped.

        groups : array-like of shape (n_samples,), default=None
            Id of the user who owns each row. The guarantee is then for users: it covers all rows
            of one, however many. None protects rows.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If a parameter or the input is invalid, there are more steps than ``horizon``, or
            ``groups`` come with ``release="query"``.
        BudgetExceededError
            If the ledger cannot pay; the old model stays.
        """
        return self._advance(X, y, groups, is_whole=True)

    @with_callbacks
    def partial_fit(self, X, y, groups=None):
        """Go on with the stream.

        Each record may pass once: the guarantee is that of a record, and rows that come again
        count as records of their own. Passing them k times costs what k records of one user cost.
        How many rows a call has must not depend on the data.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), or source

        y : array-like of shape (n_samples,) or str

        groups : array-like of shape (n_samples,), default=None
            Id of the user who owns each row. The guarantee is then for users: it covers all rows
            of one, however many. None protects rows. All calls of a stream have them, with one id
            for one user, or none has. Rows of users who have come in ``max_calls_per_user`` calls
            before change nothing.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            As `fit`, and if a parameter has changed since the stream began.
        StaleStreamError
            If another copy of the stream has gone on; `fit` starts afresh.
        BudgetExceededError
            If the ledger cannot pay for one more release; the old model stays.
        """
        if has_begun(self) and getattr(self._stream.release, "bounds", None) is None:
            warn_of_bounds(self.y_bounds)
        return self._advance(X, y, groups)

    def released(self):
        """Return a predictor that holds released numbers only.

        Returns
        -------
        ReleasedKernelRegressor

        Raises
        ------
        ValueError
            With ``release="query"``, where nothing is released but answers.
        """
        check_is_fitted(self)
        if not isinstance(self._predictor, FeatureFunction):
            raise ValueError(
                "release must not be 'query': its answers are released, the function is not."
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
        if not self._reads_raw:
            return release
        return replace(release, found_range=TargetRange.of(None))

    @property
    def _may_learn_bounds(self):
        return kind_of_release(self) == "chunk"

    @property
    def _reads_raw(self):
        """Whether targets are scaled by what the release knows of them."""
        may_learn = self.y_bounds is None and self._may_learn_bounds
        return may_learn or is_auto(self.y_bounds)

    def learn(self, release, fitted):
        """Store what predicts, and public numbers."""
        bounds = release.found_range if self._reads_raw else TargetRange.of(self.y_bounds)
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
        return X, y if self._reads_raw else TargetRange.of(self.y_bounds).scaled(y)
