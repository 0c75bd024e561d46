"""Private online regression in a kernel space."""

import html
import math
import os
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from skdp._inputs import checked_rows
from skdp._random import noise_source
from skdp._targets import TargetRange
from skdp._validation import one_of, positive, positive_int, shown
from skdp.estimators import (
    LinkedDocumentation,
    StreamLine,
    charge_stream,
    check_budget,
    check_unchanged,
    frozen_params,
    new_version,
    unchanged_on_error,
    version_text,
)
from skdp.exceptions import StaleStreamError
from skdp.features import FeatureFunction, kernel_error, kernel_matrix
from skdp.kernel._base import BaseKernelRegressor
from skdp.mechanisms import Lattice, clip_rows
from skdp.privacy import ApproxDP
from skdp.releases import QueryAnswers, QueryPlan
from skdp.releases._limits import check_memory, check_noise
from skdp.solvers.kernel_ridge import KAPPA, KernelExpansion
from skdp.solvers.online import (
    NoisyTree,
    Recursion,
    rounding_error,
    run_features,
    run_kernel,
    run_noisy,
    run_tree,
)
from skdp.theory.online import (
    RESIDUALS,
    ReleaseAccount,
    automatic_t0,
    norm_bounds,
    sensitivity,
    step_sensitivity,
)

__all__ = ["DPOnlineKernelRegressor", "ReleasedKernelRegressor"]

RELEASES = ("final", "sgd", "tree", "query")
BOUNDS = ("tight", "paper")

# Where targets span [-1, 1]: noise is proportional to the cap, and so is what a step can learn.
_CAPS = {"final": 0.5, "sgd": 0.2, "tree": 0.4, "query": 0.5}
# Rows whose features are made at a time.
_BLOCK = 1024


@dataclass(frozen=True)
class _Stream:
    """What is kept between calls. Arrays are private; it is replaced whole, never changed."""

    params: dict = field(repr=False)
    recursion: Recursion
    kappa: float
    token: bytes = field(repr=False)
    version: tuple[int, bytes] = (0, b"")
    time: int = 0
    features: Any = field(default=None, repr=False)
    noise: Any = field(default=None, repr=False)
    secret: bytes = field(default=b"", repr=False)
    gathered: Any = field(default=None, repr=False)
    rows: Any = field(default=None, repr=False)
    tree: NoisyTree | None = field(default=None, repr=False)
    account: ReleaseAccount | None = field(default=None, repr=False)
    answers: QueryAnswers | None = field(default=None, repr=False)

    @property
    def line(self):
        """What this process remembers of the stream and its copies."""
        return StreamLine.of(self.token, self.version)

    def __getstate__(self):
        line = self.line
        return {**vars(self), "charged": line.charged if line.version == self.version else None}

    def __setstate__(self, state):
        vars(self).update(state)
        self.line.remember(self.version, vars(self).pop("charged"))


class DPOnlineKernelRegressor(BaseKernelRegressor):
    """Online regression in a kernel space with differential privacy.

    One pass through a stream: ``f_{t+1} = f_t - eta_t [psi(f_t(x_t) - y_t) K(x_t, .) +
    lam_t f_t]`` with ``eta_t = (t + t0)^-theta`` and ``eta_t lam_t = 1 / (t + t0)``. `partial_fit`
    goes on where the last call ended.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget: of one release with ``release="final"``, of the whole stream otherwise.

    delta : float, default=0.0
        0 is pure differential privacy; a positive number, well below one over the number of
        rows, allows Gaussian noise.

    kernel : {"rbf", "laplacian", "matern", "linear"}, default="rbf"
        As for :class:`DPKernelRidge`.

    gamma : float, default=1.0
        Public, as for :class:`DPKernelRidge`.

    nu : {0.5, 1.5, 2.5}, default=1.5
        Smoothness of the Matérn kernel.

    theta : float in (1/2, 1), default=0.75
        Exponent of the steps. Close to 1/2 the function learns faster and is noisier.

    t0 : float or "auto", default="auto"
        Offset of the time. "auto" is the smallest with which no step overshoots, see
        :func:`~skdp.theory.online.automatic_t0`.

    residual : {"huber", "ball", "plain"}, default="huber"
        What bounds a step: "huber" clips residuals to ``residual_cap``; "ball" projects the
        function onto the ball of ``radius`` in the kernel's space; "plain", the recursion of the
        paper, does neither, and is for "final" and "query" only.

    residual_cap : float or "auto", default="auto"
        Largest residual for "huber", in units of the target. "auto" is half of half the range
        of ``y_bounds``, 0.4 of it with "tree" and 0.2 with "sgd", whose noise needs it small.

    radius : float, default=1.0
        Norm of the ball, for targets in units of half their range.

    sensitivity : {"tight", "paper"}, default="tight"
        Bound behind the noise of "final" and "query": exact, or the paper's (17).

    release : {"final", "sgd", "tree", "query"}, default="final"
        "final" releases the function at the end of each `fit` or `partial_fit`. "sgd" feeds
        noise back at every step: the transcript is released, for ever, for one budget. "tree"
        releases noisy sums of gradients up to a public ``horizon``, less noisy than "sgd" by
        far. "query" keeps an exact kernel expansion, which holds the data, and adds noise to
        each predicted row.

    n_components : int or "auto", default="auto"
        Number of random features; an odd number is rounded up. "auto" is 1000 for "final" with
        a positive delta and 200 otherwise. Not used by "query".

    orthogonal : bool, default=True
        Draw frequencies in orthogonal groups.

    y_bounds : (float, float), default=(-1.0, 1.0)
        Public bounds of the target. Targets outside are clipped silently; predictions stay
        within.

    x_norm : float, default=1.0
        Public bound on the Euclidean norm of a row, for the linear kernel only.

    adjacency : {"replace-one", "add-remove"}, default="replace-one"
        Which streams are neighbours. Time stamps are public either way: with "add-remove" one
        record is there or is a null record, which keeps its time and contributes nothing.

    horizon : int, default=None
        Largest number of rows in the life of a stream, for "tree".

    n_queries : int, default=None
        Number of different rows that "query" predicts in the life of a stream. A row counts
        again when the function has changed.

    random_state : None, int, RandomState or Generator, default=None
        None draws the noise from the operating system. Anything else makes it reproducible
        and void of privacy, for tests and figures. Frequencies have a stream of their own.

    ledger : BudgetLedger, default=None
        Budget that is charged before the data are used. A stream has one entry, which each call
        replaces by ``guarantee_`` of all releases, the coming one included.

    Attributes
    ----------
    coef_ : ndarray of shape (n_components,), or (`n_features_in_`,) for the linear kernel
        Weights of the features, for targets in units of half their range around its middle;
        with "sgd" a mean of the iterates in which late ones weigh more. Not with "query".
        Released under ``guarantee_``.

    frequencies_ : ndarray of shape (n_components / 2, `n_features_in_`)
        Frequencies of the features, except for the linear kernel. Public.

    n_samples_seen_ : int
        Rows of the stream so far, as public as time stamps are. Public.

    y_bounds_ : tuple of two floats
        Bounds of the target. Public.

    guarantee_ : ApproxDP
        What all releases of the stream so far promise together, with its privacy profile.
        Public.

    n_features_in_ : int
        Number of features. Public.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if ``X`` has them. Public.

    See Also
    --------
    DPKernelRidge : Many passes over the same rows, for less noise in the end.

    Notes
    -----
    **Privacy.** The attributes above are public or released. Between calls a live estimator must
    also keep what has not been released: with "final" the function without noise, with "tree"
    sums without noise, with "query" all rows. It keeps them under private names, and a pickle
    has them too: both belong to the curator alone. `released` returns a predictor without them.
    Of several copies of a live estimator one may go on: copies that go on apart are streams of
    their own on the same rows, and together cost more than the account of each. Within a process
    all others are refused for as long as it lives, however they were made and whether or not the
    one that went on is still there. With a ledger they are refused in whatever processes they
    are. Without one it is up to the curator that no two processes go on, and that none goes on
    from an old pickle. A release that fails after its charge stays charged, and is part of
    ``guarantee_`` from the next one on.

    With "final", a record that entered at step s has moved each later function by at most
    ``D_s (s + t0) / (T - 1 + t0)``, and the guarantee is the largest, over s, of what the releases
    compose to: exactly, and far below the sum of their budgets. With "sgd" and "tree" a
    record's gradient is taken at a released point, so that it enters one noisy gradient, or one
    noisy sum at each level of the tree.

    One scalar noise for a whole function, as in the paper's Theorem 1, would be void; and the
    paper's Theorem 2 drops the bias of the penalty, see :func:`~skdp.theory.online.rate`.

    `score` compares predictions with targets of the caller's. A score on private targets is a new
    function of them, which nothing covers, also before the stream has passed them.

    What the guarantee does not cover: the time that a call takes, errors about malformed input,
    and other uses of the same data.

    References
    ----------
    "A study on differential private online learning", Journal of Computer and Communications 5,
    2017. Tarrès and Yao, "Online learning as stochastic approximation of regularization paths",
    IEEE Transactions on Information Theory 60, 2014. Kairouz, McMahan, Song, Thakkar, Thakurta and
    Xu, "Practical and private (deep) learning without sampling or shuffling", ICML 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.kernel import DPOnlineKernelRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(20000, 2))
    >>> y = np.sin(3 * X[:, 0])
    >>> model = DPOnlineKernelRegressor(epsilon=1.0, delta=1e-6, theta=0.6)
    >>> for start in range(0, 15000, 5000):
    ...     model = model.partial_fit(X[start : start + 5000], y[start : start + 5000])
    >>> bool(model.released().score(X[15000:], y[15000:]) > 0.7)
    True
    >>> bool(model.guarantee_.epsilon < 3.0)
    True
    """

    def __init__(
        self,
        epsilon=1.0,
        delta=0.0,
        *,
        kernel="rbf",
        gamma=1.0,
        nu=1.5,
        theta=0.75,
        t0="auto",
        residual="huber",
        residual_cap="auto",
        radius=1.0,
        sensitivity="tight",
        release="final",
        n_components="auto",
        orthogonal=True,
        y_bounds=(-1.0, 1.0),
        x_norm=1.0,
        adjacency="replace-one",
        horizon=None,
        n_queries=None,
        random_state=None,
        ledger=None,
    ):
        self.epsilon = epsilon
        self.delta = delta
        self.kernel = kernel
        self.gamma = gamma
        self.nu = nu
        self.theta = theta
        self.t0 = t0
        self.residual = residual
        self.residual_cap = residual_cap
        self.radius = radius
        self.sensitivity = sensitivity
        self.release = release
        self.n_components = n_components
        self.orthogonal = orthogonal
        self.y_bounds = y_bounds
        self.x_norm = x_norm
        self.adjacency = adjacency
        self.horizon = horizon
        self.n_queries = n_queries
        self.random_state = random_state
        self.ledger = ledger

    def fit(self, X, y):
        """Start afresh, and pass through the rows once in the given order.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        y : array-like of shape (n_samples,)
            Targets. Those outside ``y_bounds`` are clipped.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If a parameter or the input is invalid, or there are more rows than ``horizon``.
        BudgetExceededError
            If the ledger cannot pay; the old model stays.
        """
        return self._advance(X, y, fresh=True)

    def partial_fit(self, X, y):
        """Go on with the stream.

        Each record may pass once: the guarantee is that of a record, and rows that come again
        are records of their own. Passing them k times costs what k records in one hand cost. How
        many rows a call has must not depend on the data.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        y : array-like of shape (n_samples,)

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
        return self._advance(X, y, fresh=not hasattr(self, "_stream"))

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
        return ReleasedKernelRegressor(
            coef=self.coef_.copy(),
            features=self._predictor.features,
            y_bounds=self.y_bounds_,
            guarantee=self.guarantee_,
            feature_names=None if names is None else tuple(names),
        )

    def _advance(self, X, y, *, fresh):
        line = StreamLine((0, b"")) if fresh else self._stream.line
        # Threads go on one after the other, each from where the last has ended.
        with line.lock, unchanged_on_error(self):
            self._check_parameters()
            X, targets = self._validated(X, y, reset=fresh)
            if fresh:
                stream = self._new_stream(X.shape[1])
            else:
                stream = self._stream
                check_unchanged(self, stream.params)
                line.check(stream.version)
            version = new_version(stream.version)
            advance = getattr(self, f"_advance_{self.release}")
            pay = partial(self._pay, stream, line, version)
            stream, guarantee, predictor = advance(X, targets, stream, pay)
            stream = replace(stream, version=version)
            low, high = map(float, self.y_bounds)
            self._store(
                predictor,
                _stream=stream,
                guarantee_=guarantee,
                n_samples_seen_=stream.time,
                y_bounds_=(low, high),
            )
            # From here on no other copy may go on, whether this one lives or not.
            StreamLine.of(stream.token, version)
        return self

    def _pay(self, stream, line, version, cost):
        """Let the ledger's one entry of the stream cover the coming release.

        Parameters
        ----------
        cost : callable
            ``cost(account)`` returns the guarantee of all releases, the coming one included, and
            the new account.

        Returns
        -------
        guarantee : ApproxDP

        account : ReleaseAccount or None
        """
        if self.ledger is None:
            return cost(stream.account)
        # What was charged for a release that failed stays charged: later ones go on from there.
        failed = line.charged
        possible = {stream.version: stream.account, **(failed or {})}
        for before, account in reversed(possible.items()):
            guarantee, new = cost(account)
            # Noted beforehand: an interrupt may come between the charge and the next line.
            line.charged = {**possible, version: new}
            try:
                charge_stream(
                    self,
                    guarantee,
                    stream=stream.token.hex(),
                    version=version_text(version),
                    continues=version_text(before),
                )
            except StaleStreamError:
                line.charged = failed
            except ValueError:  # refused
                line.charged = failed
                raise
            else:
                line.charged = {version: new}
                return guarantee, new
        raise StaleStreamError(
            "This copy of the stream is stale: the ledger has another version, since another copy "
            "has gone on, or failed after it was charged. Nothing was charged; call fit to start "
            "afresh."
        )

    def _check_parameters(self):
        one_of(RELEASES, release=self.release)
        one_of(RESIDUALS, residual=self.residual)
        one_of(BOUNDS, sensitivity=self.sensitivity)
        check_budget(self)
        self._check_kernel_parameters()
        positive(theta=self.theta, radius=self.radius)
        if not 0.5 < self.theta < 1.0:
            raise ValueError(f"theta must be above 1/2 and below 1; got {shown(self.theta)}.")
        if not 1e-6 <= self.radius <= 1e6:
            raise ValueError(f"radius must be between 1e-6 and 1e6; got {shown(self.radius)}.")
        self._recursion(1.0)
        if self.release in ("sgd", "tree") and self.residual == "plain":
            raise ValueError(
                f"residual must be 'huber' or 'ball' with release={self.release!r}: a gradient "
                "of the plain recursion is not bounded at a noisy point; got 'plain'."
            )
        for name, release in (("horizon", "tree"), ("n_queries", "query")):
            value = getattr(self, name)
            if self.release != release:
                continue
            if value is None:
                raise ValueError(
                    f"{name} must be a positive int with release={shown(release)}; got None."
                )
            positive_int(**{name: value})

    def _recursion(self, kappa):
        """Public numbers of the recursion, in units of half the range of the target."""
        if isinstance(self.t0, str) and self.t0 == "auto":
            t0 = automatic_t0(self.theta, kappa)
        else:
            if isinstance(self.t0, str):
                raise ValueError(f"t0 must be 'auto' or a positive number; got {shown(self.t0)}.")
            positive(t0=self.t0)
            t0, least = float(self.t0), automatic_t0(self.theta, 1.0)
            if not least <= t0 <= 1e9:
                raise ValueError(
                    f"t0 must be at least {least:.6g} with theta={shown(self.theta)}, for steps "
                    f"not to overshoot, and at most 1e9; got {shown(self.t0)}."
                )
            t0 = max(t0, automatic_t0(self.theta, kappa))
        cap, radius = math.inf, math.inf
        noisy = self.release in ("sgd", "tree")
        if self.residual == "huber":
            cap = self._cap(_CAPS[self.release])
        elif self.residual == "ball":
            radius = float(self.radius)
            if noisy:  # points are projected, so that no residual gets there
                cap = kappa * radius + 1.0
        return Recursion(float(self.theta), t0, cap, radius)

    def _new_stream(self, n_features):
        feature_state, noise_state = self._random_streams()
        kappa = KAPPA
        features = None
        if self.release != "query":
            size = self._n_components(n_features, self._automatic_size())
            check_memory(8.0 * size * (n_features + 4 * _BLOCK), "n_components must be smaller")
            features = self._draw_features(n_features, size, feature_state)
            kappa = features.row_norm
        secret = os.urandom(32) if noise_state is None else noise_state.bytes(32)
        return _Stream(
            params=frozen_params(self),
            recursion=self._recursion(kappa),
            kappa=kappa,
            features=features,
            noise=noise_source(noise_state),
            secret=secret,
            token=os.urandom(16),
        )

    def _automatic_size(self):
        return 1000 if self.release == "final" and self.delta > 0.0 else 200

    def _target(self):
        return ApproxDP(float(self.epsilon), float(self.delta), adjacency=self.adjacency)

    def _distances(self, stream):
        """Keywords of the theory for this recursion."""
        recursion = stream.recursion
        return dict(
            theta=recursion.theta,
            t0=recursion.t0,
            y_bound=1.0,
            kappa=stream.kappa,
            residual=self.residual,
            radius=recursion.radius if self.residual == "ball" else None,
            width=recursion.cap if self.residual == "huber" else None,
            adjacency=self.adjacency,
            bound=self.sensitivity,
        )

    def _norm(self, stream, time):
        """Bound on the norm of the function."""
        keywords = self._distances(stream)
        del keywords["adjacency"], keywords["bound"]
        return float(norm_bounds(time, **keywords))

    def _rounding_error(self, stream, time, size):
        return rounding_error(time, size, self._norm(stream, time), stream.recursion)

    def _advance_final(self, X, targets, stream, pay):
        """Run the recursion without noise, and release where it ends."""
        time, size = stream.time + X.shape[0], stream.features.n_components
        target, distances = self._target(), self._distances(stream)
        l2_sensitivity = sensitivity(time, **distances)
        error = self._rounding_error(stream, time, size)
        lattice = Lattice.for_sensitivity(l2_sensitivity, size=size, error=error)
        gaussian = target.delta > 0.0
        if gaussian:
            # On its own, this release satisfies the target.
            level = 1.0 / target.gaussian_target().mu
        else:
            level = 1.0 / target.epsilon
        check_noise(level, size)
        scale = level * lattice.sensitivity * (1 + 1e-12)

        def cost(account):
            if account is None:
                account = ReleaseAccount(noise="gaussian" if gaussian else "k-norm", **distances)
            new = account.after(time, scale, slack=lattice.sensitivity - l2_sensitivity)
            return _cumulative(new, target), new

        guarantee, account = pay(cost)

        gathered = stream.gathered
        gathered = np.zeros(size) if gathered is None else gathered
        for rows, part, start in _feature_blocks(X, targets, stream):
            gathered = run_features(rows, part, gathered, start, stream.recursion)
        weights = gathered / (time - 1.0 + stream.recursion.t0)
        draw = stream.noise.normal if gaussian else stream.noise.k_norm
        coef = lattice.release(weights, draw(size, scale / lattice.step))
        stream = replace(stream, time=time, gathered=gathered, account=account)
        return stream, guarantee, FeatureFunction(stream.features, coef)

    def _advance_sgd(self, X, targets, stream, pay):
        """Feed noise back at every step; what it costs was paid at the first."""
        time, size = stream.time + X.shape[0], stream.features.n_components
        target, recursion = self._target(), stream.recursion
        change = step_sensitivity(
            width=recursion.cap, kappa=stream.kappa, adjacency=self.adjacency
        )
        lattice = Lattice.for_sensitivity(change, size=size, error=1e-12 * change)
        guarantee, level = _one_shot(target, "noisy online gradient descent")
        check_noise(level, size)
        pay(lambda account: (guarantee, account))
        scale = level * lattice.sensitivity * (1 + 1e-12) / lattice.step

        def draw(n):
            if target.delta > 0.0:
                return stream.noise.normal(n * size, scale).reshape(n, size)
            return stream.noise.k_norms(n, size, scale)

        state = stream.gathered
        gathered, average = np.zeros((2, size)) if state is None else state
        for rows, part, start in _feature_blocks(X, targets, stream):
            gathered, average = run_noisy(
                rows, part, gathered, average, start, recursion, lattice=lattice, draw=draw
            )
        coef = average.copy()
        stream = replace(stream, time=time, gathered=(gathered, average))
        return stream, guarantee, FeatureFunction(stream.features, coef)

    def _advance_tree(self, X, targets, stream, pay):
        """Take gradients at noisy prefix sums; all levels of the tree were paid at the first."""
        time, size = stream.time + X.shape[0], stream.features.n_components
        horizon, target, recursion = int(self.horizon), self._target(), stream.recursion
        if time > horizon:
            raise ValueError(
                f"horizon must be at least the number of rows, which these would make {time}; "
                f"got {horizon}."
            )
        guarantee, level = _one_shot(target, "binary tree of noisy gradient sums")
        levels = horizon.bit_length()
        level *= math.sqrt(levels) if target.delta > 0.0 else levels
        # Later sums are on the lattice of the first step.
        growth = ((horizon + recursion.t0) / recursion.t0) ** (1.0 - recursion.theta)
        check_noise(level * growth, size)
        pay(lambda account: (guarantee, account))
        change = step_sensitivity(
            width=recursion.cap, kappa=stream.kappa, adjacency=self.adjacency
        )
        law = stream.noise.normal if target.delta > 0.0 else stream.noise.k_norm
        tree, gathered = stream.tree or NoisyTree(), np.zeros(size)
        for rows, part, start in _feature_blocks(X, targets, stream):
            tree, gathered = run_tree(
                rows,
                part,
                tree,
                start,
                recursion,
                sensitivity=change,
                horizon=horizon,
                noise_scale=level * (1 + 1e-12),
                draw=lambda scale: law(size, scale),
            )
        coef = gathered / (time - 1.0 + recursion.t0)
        norm = float(np.linalg.norm(coef))
        coef = coef * min(1.0, recursion.radius / norm) if norm > 0.0 else coef
        stream = replace(stream, time=time, tree=tree)
        return stream, guarantee, FeatureFunction(stream.features, coef)

    def _advance_query(self, X, targets, stream, pay):
        """Run the recursion with the exact kernel; answers have noise of their own."""
        time = stream.time + X.shape[0]
        distance = sensitivity(time, **self._distances(stream))
        plan = QueryPlan.plan(self._target(), n_queries=self.n_queries)
        check_noise(plan.law.scale, 1)
        error = self._rounding_error(stream, time, time)
        # Coefficients sum to (norm + 1) time^(1 - theta) at most, before and after.
        norm = self._norm(stream, time)
        error += (
            kernel_error(X.shape[1], KAPPA)
            * 4.0
            * (norm + 1.0)
            * time ** (2.0 - 2.0 * stream.recursion.theta)
        )
        check_memory(8.0 * time * (X.shape[1] + 1), "X must have fewer rows with release='query'")
        pay(lambda account: (plan.guarantee, account))

        linear = self.kernel == "linear"
        rows = clip_rows(X, float(self.x_norm)) / float(self.x_norm) if linear else X
        rows = rows.toarray() if issparse(rows) else np.array(rows)
        if stream.rows is not None:
            rows = np.concatenate([stream.rows, rows])
        predictor = KernelExpansion(rows, self.kernel, float(self.gamma), self.nu, self.x_norm)
        gathered = run_kernel(
            lambda A, B: kernel_matrix(self.kernel, A, B, gamma=predictor.gamma, nu=self.nu),
            rows,
            targets,
            np.zeros(0) if stream.gathered is None else stream.gathered,
            stream.time,
            stream.recursion,
        )
        predictor.coef = gathered / (time - 1.0 + stream.recursion.t0)
        options = dict(sensitivity=stream.kappa * distance, error=error)
        if stream.answers is None:
            answers = QueryAnswers(plan, predictor, secret=stream.secret, **options)
        else:
            # New for every copy that goes on; with a seed, reproducible.
            seeded = self.random_state is not None
            function = time.to_bytes(16, "little") if seeded else os.urandom(16)
            answers = stream.answers.continued(predictor, function=function, **options)
        stream = replace(stream, time=time, gathered=gathered, rows=rows, answers=answers)
        return stream, plan.guarantee, answers


def _feature_blocks(X, targets, stream):
    """Features and targets of a block of rows, with the steps before it."""
    for start in range(0, X.shape[0], _BLOCK):
        block = slice(start, start + _BLOCK)
        yield stream.features.transform(X[block]), targets[block], stream.time + start


def _one_shot(target, mechanism):
    """Guarantee of a transcript in which a record has one Gaussian or K-norm release.

    Returns
    -------
    guarantee : ApproxDP

    level : float
        Scale of the noise for a sensitivity of 1.
    """
    source = "Bassily, Smith and Thakurta, FOCS 2014"
    if target.delta == 0.0:
        return replace(target, mechanism=mechanism, source=source), 1.0 / target.epsilon
    refined = target.gaussian_target()
    return replace(target, refined=refined, mechanism=mechanism, source=source), 1.0 / refined.mu


def _cumulative(account, target):
    """What all releases so far satisfy, at the delta of the target."""
    guarantee = account.guarantee
    # The first release satisfies the target by its calibration, and later ones add to it.
    epsilon = target.epsilon
    if account.n_releases > 1:
        epsilon = max(epsilon, guarantee.epsilon_at(target.delta))
    return replace(
        target,
        epsilon=epsilon,
        refined=guarantee if target.delta > 0.0 else None,
        mechanism=f"{account.n_releases} release(s) of online kernel regression",
        source="output perturbation as in Chaudhuri, Monteleoni and Sarwate, JMLR 2011, "
        "composed exactly over the positions of a record",
    )


class ReleasedKernelRegressor(LinkedDocumentation, RegressorMixin, BaseEstimator):
    """Function that a private stream has released: a predictor and nothing else.

    Made by :meth:`DPOnlineKernelRegressor.released`. It holds public and released numbers only,
    and can be given away. Its HTML view says what it promises.

    Parameters
    ----------
    coef : ndarray of shape (n_components,)
        Weights of the features, for targets in units of half their range around its middle.

    features : FourierFeatures or NormalisedRows
        Map from rows to features.

    y_bounds : tuple of two floats
        Bounds of the target.

    guarantee : ApproxDP
        What all releases of the stream so far satisfy together.

    feature_names : tuple of str, default=None
        Names of the columns of ``X``, if the stream had them.

    Attributes
    ----------
    n_features_in_ : int
        Number of columns of ``X``. Public.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        The same, if there are any. Public.
    """

    def __init__(self, coef, features, y_bounds, guarantee, feature_names=None):
        self.coef = coef
        self.features = features
        self.y_bounds = y_bounds
        self.guarantee = guarantee
        self.feature_names = feature_names

    def __sklearn_is_fitted__(self):
        return True

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.regressor_tags.poor_score = True
        return tags

    @property
    def n_features_in_(self):
        """Number of columns of ``X``."""
        return self.features.n_features_in

    @property
    def feature_names_in_(self):
        """Names of the columns of ``X``, in their order."""
        if self.feature_names is None:
            raise AttributeError("feature_names_in_ is there if the stream had names only.")
        return np.array(self.feature_names, dtype=object)

    def predict(self, X):
        """Predict the target of each row, within ``y_bounds``; costs no privacy.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Columns in the order of the stream, by name if it had names.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        X = checked_rows(self, X)
        with np.errstate(all="ignore"):  # a warning would tell huge rows from others
            values = FeatureFunction(self.features, self.coef).answer(X)
        return TargetRange.of(self.y_bounds).original(values)

    @property
    def _repr_html_(self):
        view = super()._repr_html_  # there is none where scikit-learn is to display text
        return lambda: self._with_guarantee(view())

    def _repr_mimebundle_(self, **kwargs):
        views = super()._repr_mimebundle_(**kwargs)
        if "text/html" in views:
            views["text/html"] = self._with_guarantee(views["text/html"])
        return views

    def _with_guarantee(self, view):
        return f"{view}<p>{html.escape(str(self.guarantee))}</p>"
