"""Online linear regression in which users add the noise themselves."""

import math
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from skdp._grid import (
    NOISES,
    VALUE_BITS,
    GridNoise,
    ResidualSlope,
    grid_below,
    grid_rows,
    record_row_step,
    residual_slope,
)
from skdp._inputs import checked_array, checked_data, checked_rows
from skdp._random import NoiseSource, check_random_state, noise_source, seed_sequence
from skdp._targets import TargetRange
from skdp._validation import (
    between,
    boolean,
    check_y_bounds,
    finite,
    one_of,
    positive,
    positive_int,
    shown,
)
from skdp.estimators import (
    LinkedDocumentation,
    charge,
    check_unchanged,
    frozen_params,
    ledger_of,
    unchanged_on_error,
)
from skdp.local import GradientPrivatizer, OnePointPrivatizer, ValuePrivatizer
from skdp.losses import AbsoluteLoss, EpsilonInsensitiveLoss, HuberLoss
from skdp.privacy import ApproxDP, GaussianDP, MutualInformationPrivacy
from skdp.solvers.comparator import best_in_ball
from skdp.solvers.ogd import (
    LazyProjection,
    OGDState,
    learn_value,
    played,
    run_bandit,
    run_full,
    run_noised,
)
from skdp.theory.ogd import (
    anytime_bandit_explorations,
    anytime_bandit_steps,
    anytime_full_steps,
    bandit_amplitude,
    bandit_exploration,
    bandit_noise,
    bandit_range,
    bandit_step,
    full_step,
    gaussian_sigma,
    k_norm_scale,
    nats_of,
    noise_energy,
    regret_of_steps,
)

__all__ = ["MIPrivateSGDRegressor"]

FEEDBACKS = ("full", "bandit")
PERTURBATIONS = ("scalar", "vector")
UNITS = ("nats", "bits")
_BLOCK = 1 << 22  # numbers in memory beside the input
_UP = 1.0 + 1e-12  # rounding errors of public numbers


@dataclass(frozen=True)
class _Plan:
    """Public numbers of a stream."""

    slope: ResidualSlope
    size: int
    scale: float
    guarantee: MutualInformationPrivacy
    projection: LazyProjection
    energy: float
    lipschitz: float
    value_range: float = 0.0


@dataclass(frozen=True)
class _Stream:
    """What is kept between calls, all of it released or public."""

    params: dict = field(repr=False)
    plan: _Plan
    state: OGDState = field(repr=False)
    noise: NoiseSource = field(repr=False)
    directions: np.random.Generator = field(repr=False)
    iterates: tuple = field(default=(), repr=False)
    asked: Any = field(default=None, repr=False)
    charged: bool = False


class MIPrivateSGDRegressor(LinkedDocumentation, RegressorMixin, BaseEstimator):
    """Online linear regression from gradients to which users have added noise.

    Two parties: a user's device takes the learner's weights and its own record, and sends a noisy
    gradient of the loss; the learner sees noisy gradients only, and plays the projection of minus
    their sum, times a step, onto a ball. `fit` and `partial_fit` play both parties. Apart, they
    are the object that `privatizer` returns, and `partial_fit_noised` or `ask` and `tell`.

    Parameters
    ----------
    mi_budget : float, default=0.1
        Mutual information between a contribution and what is sent of it.

    unit : {"nats", "bits"}, default="nats"
        Unit of ``mi_budget``. A bit is 0.693 nats.

    loss : {"absolute", "huber", "epsilon_insensitive", "squared"}, default="absolute"
        Loss of the residual. The slope of "squared" is clipped, so that it is the Huber loss with
        a wide middle.

    width : float or "auto", default="auto"
        In units of the target: the residual up to which the Huber loss is a square and the
        epsilon-insensitive loss is 0, and at which the slope of "squared" is clipped. "auto" is
        0.3, 0.1 and 1 times half the range of ``y_bounds``.

    feedback : {"full", "bandit"}, default="full"
        Whether a user sends a gradient, or the value of the loss at one point.

    noise : {"gaussian", "k_norm"}, default="gaussian"
        "k_norm" gives pure local differential privacy, with more noise for the same budget.

    perturbation : {"scalar", "vector"}, default="scalar"
        With "bandit": noise on the value, or on the vector that is made of it as in the paper.
        Both leak the same, and of "vector" more noise arrives.

    radius : float, default=1.0
        Largest norm of the weights, for rows in units of ``x_norm`` and targets in units of half
        their range around its middle.

    x_norm : float, default=1.0
        Public bound on the Euclidean norm of a row; longer rows are scaled back onto the ball.

    y_bounds : (float, float), default=(-1.0, 1.0)
        Public bounds of the target. Targets outside are clipped silently; predictions stay
        within.

    step : float or "auto", default="auto"
        "auto" is the paper's step if ``horizon`` is given, and otherwise a step that decreases
        with time and needs no horizon, see :mod:`skdp.theory.ogd`.

    horizon : int, default=None
        Number of contributions for which the step is best. The stream may go on after it.

    average : bool, default=True
        Whether to predict with the mean of the weights played, or with the latest.

    fit_intercept : bool, default=True
        Whether to append a feature of 1 to rows in units of ``x_norm``.

    contributions_per_user : int, default=1
        Declared number of records that one user contributes, each counted once a pass;
        ``guarantee_`` is for a user then. Nothing can check it.

    keep_iterates : bool, default=False
        Whether to keep the weights played, for `regret`: as much memory as dense rows take.

    random_state : None, int, RandomState or Generator, default=None
        None draws the noise from the operating system. Anything else makes it reproducible
        and void of privacy, for tests and figures.

    ledger : BudgetLedger, default=None
        Budget that is charged when a stream first reads data, before it does. A learner alone
        reads none.

    Attributes
    ----------
    coef_ : ndarray of shape (`n_features_in_`,)
        Coefficients. Released under ``guarantee_``.

    intercept_ : float
        Intercept. Released under ``guarantee_``.

    weights_ : ndarray of shape (`n_features_in_` + fit_intercept,)
        Weights that the learner plays next: what devices are sent. Released under
        ``guarantee_``.

    exploration_ : float
        With "bandit", distance from the weights at which the next loss is taken. Public.

    iterates_ : ndarray of shape (`n_samples_seen_`, `n_features_in_` + fit_intercept)
        Weights played, or with "bandit" the points asked for, if ``keep_iterates``.
        Released under ``guarantee_``.

    noise_scale_ : float
        Standard deviation of the noise in a coordinate, or the scale of its norm with "k_norm",
        for rows in units of ``x_norm``; for "vector", in units of the amplitude. Public.

    regret_bound_ : float
        Bound on the expected regret so far for records that do not react to the weights, in units
        of half the range of the target: the paper's theorem 2 or 4 as corrected in
        :mod:`skdp.theory.ogd`, at the steps taken. Public.

    n_samples_seen_ : int
        Contributions so far. Public.

    guarantee_ : MutualInformationPrivacy
        Mutual information and the local differential privacy that comes with it. Public.

    n_features_in_ : int
        Number of features. Public.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if ``X`` has them. Public.

    See Also
    --------
    skdp.local.GradientPrivatizer : The device's part.
    skdp.kernel.DPOnlineKernelRegressor : A curator that is trusted adds far less noise.

    Notes
    -----
    **Privacy.** What a device sends is private on its own, against the learner as well. Mutual
    information is an average over records; the worst case is the local differential privacy in
    ``guarantee_``, Gaussian with ``mu = 2 L / sigma >= sqrt(8 C)`` for a budget of C nats. Both
    hold for each contribution, at weights of any origin.

    The bound of theorem 1 is the capacity of a Gaussian channel with power ``L^2``, where L is
    the cap of the slope times the bound on a row, which is sqrt(2) with an intercept. Gradients
    are rounded toward zero onto a public grid and stay within L.

    `regret` and `score` compare with records of the caller's, and are new functions of them which
    nothing covers.

    Updates of one model from several threads at once are not supported.

    What the guarantee does not cover: the time that a call takes, errors about malformed input,
    other uses of the same data, and what records of other users tell about this one.

    References
    ----------
    Zhang and Venkitasubramaniam, "Mutual-information-private online gradient descent
    algorithm", ICASSP 2018. Flaxman, Kalai and McMahan, "Online convex optimization in the bandit
    setting: gradient descent without a gradient", SODA 2005.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.linear_model import MIPrivateSGDRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-0.7, 0.7, size=(20000, 2))
    >>> y = 0.6 * X[:, 0] + 0.1
    >>> model = MIPrivateSGDRegressor(mi_budget=0.2).fit(X, y)
    >>> bool(model.score(X, y) > 0.5)
    True
    >>> round(model.guarantee_.bits, 4)
    0.2885
    """

    def __init__(
        self,
        mi_budget=0.1,
        *,
        unit="nats",
        loss="absolute",
        width="auto",
        feedback="full",
        noise="gaussian",
        perturbation="scalar",
        radius=1.0,
        x_norm=1.0,
        y_bounds=(-1.0, 1.0),
        step="auto",
        horizon=None,
        average=True,
        fit_intercept=True,
        contributions_per_user=1,
        keep_iterates=False,
        random_state=None,
        ledger=None,
    ):
        self.mi_budget = mi_budget
        self.unit = unit
        self.loss = loss
        self.width = width
        self.feedback = feedback
        self.noise = noise
        self.perturbation = perturbation
        self.radius = radius
        self.x_norm = x_norm
        self.y_bounds = y_bounds
        self.step = step
        self.horizon = horizon
        self.average = average
        self.fit_intercept = fit_intercept
        self.contributions_per_user = contributions_per_user
        self.keep_iterates = keep_iterates
        self.random_state = random_state
        self.ledger = ledger

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.regressor_tags.poor_score = True  # noise is a promise and accuracy is not
        return tags

    def fit(self, X, y):
        """Start afresh, and play both parties once through the rows in the given order.

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
            If a parameter or the input is invalid.
        BudgetExceededError
            If the ledger cannot pay; the old model stays.
        """
        return self._advance(X, y, fresh=True)

    def partial_fit(self, X, y):
        """Go on with the stream, playing both parties.

        A record that passes k times is k contributions, which ``contributions_per_user`` must
        allow for.

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
        """
        return self._advance(X, y, fresh=not hasattr(self, "_stream"))

    def partial_fit_noised(self, Z):
        """Go on with the stream as the learner alone, from what devices have sent.

        Parameters
        ----------
        Z : array-like of shape (n_messages, n_features + fit_intercept)
            Noisy gradients, each taken at the ``weights_`` of its time; at zeros before the first.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If messages are values, with ``feedback="bandit"`` and ``perturbation="scalar"``: use
            `ask` and `tell`.
        """
        with unchanged_on_error(self):
            self._check_parameters()
            if self.feedback == "bandit" and self.perturbation == "scalar":
                raise ValueError(
                    "perturbation must be 'vector' for messages to be vectors with "
                    "feedback='bandit'; values are given to tell; got 'scalar'."
                )
            Z = checked_array(Z, accept_sparse=False)
            stream = self._learner(Z.shape[1] - bool(self.fit_intercept))
            n_messages, size = Z.shape
            if size != stream.plan.size:
                raise ValueError(
                    f"Z must have {stream.plan.size} columns, one a weight; got {size}."
                )
            keep = np.empty(Z.shape) if self.keep_iterates else None
            limit = self._largest_message(stream, n_messages)[:, np.newaxis]
            Z = np.ascontiguousarray(np.clip(Z, -limit, limit))
            state = run_noised(Z, stream.state, stream.plan.projection, keep=keep)
            self._store(self._continued(stream, state, keep))
        return self

    def ask(self, n_features=None):
        """Point at which the next user is to take the loss, with ``feedback="bandit"``.

        Parameters
        ----------
        n_features : int, default=None
            To begin a stream.

        Returns
        -------
        ndarray of shape (n_features + fit_intercept,)
            The same one until `tell` is called.
        """
        with unchanged_on_error(self):
            self._check_parameters()
            if self.feedback != "bandit" or self.perturbation != "scalar":
                raise ValueError(
                    "feedback must be 'bandit', with perturbation='scalar', to ask for values; "
                    f"got {shown(self.feedback)} and {shown(self.perturbation)}."
                )
            if n_features is None and not hasattr(self, "_stream"):
                raise ValueError("n_features must be given to begin a stream; got None.")
            if hasattr(self, "_stream") and n_features not in (None, self.n_features_in_):
                raise ValueError(
                    f"n_features must be None or {self.n_features_in_} in this stream; "
                    f"got {shown(n_features)}."
                )
            stream = self._learner(n_features)
            plan = stream.plan
            if stream.asked is None:
                direction = _unit_vectors(stream.directions, 1, plan.size)[0]
                distance = float(plan.projection.explorations(stream.state.time, 1)[0])
                stream = replace(stream, asked=(direction, distance))
            direction, distance = stream.asked
            self._store(self._fitted(stream))
        return played(stream.state, plan.projection) + distance * direction

    def tell(self, value):
        """Learn from the noisy value at the point that `ask` has returned.

        Parameters
        ----------
        value : float
            From :class:`~skdp.local.ValuePrivatizer`: noisy, and minus the middle of the range.

        Returns
        -------
        self : object
        """
        check_is_fitted(self)
        finite(value=value)
        stream = self._stream
        if stream.asked is None:
            raise ValueError("ask must be called before tell.")
        with unchanged_on_error(self):
            check_unchanged(self, stream.params)
            direction, distance = stream.asked
            limit = float(self._largest_message(stream, 1)[0])
            value = max(-limit, min(limit, float(value)))
            state, projection = stream.state, stream.plan.projection
            weights, theta = played(state, projection), state.theta.copy()
            learn_value(value, direction, distance, theta)
            state = OGDState(theta, state.total + weights, state.time + 1)
            keep = (weights + distance * direction)[np.newaxis] if self.keep_iterates else None
            self._store(self._continued(replace(stream, asked=None), state, keep))
        return self

    def privatizer(self, n_features):
        """Return the device's part, for these parameters.

        Parameters
        ----------
        n_features : int

        Returns
        -------
        GradientPrivatizer, ValuePrivatizer or OnePointPrivatizer
            It can be pickled and needs numpy only.
        """
        self._check_parameters()
        plan = self._plan(n_features)
        options = dict(
            noise=self.noise,
            loss=self.loss,
            width=self.width,
            x_norm=self.x_norm,
            y_bounds=self.y_bounds,
            fit_intercept=self.fit_intercept,
        )
        if self.feedback == "full":
            return GradientPrivatizer(plan.scale, **options)
        kind = ValuePrivatizer if self.perturbation == "scalar" else OnePointPrivatizer
        return kind(plan.scale, value_range=plan.value_range, **options)

    def predict(self, X):
        """Predict the target of each row, within ``y_bounds``; costs no privacy.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        X = checked_rows(self, X)
        low, high = self._stream.params["y_bounds"]
        with np.errstate(all="ignore"):  # a warning would tell huge rows from others
            return np.clip(X @ self.coef_ + self.intercept_, low, high)

    @property
    def iterates_(self):
        """Weights played, or points asked for: one row a contribution."""
        if not self.__dict__.get("_stream") or not self.keep_iterates:
            raise AttributeError("iterates_ are kept only by a fit with keep_iterates=True.")
        size = self._stream.plan.size
        return np.concatenate([np.empty((0, size)), *self._stream.iterates])

    @property
    def regret_bound_(self):
        """Bound on the expected regret so far."""
        if "_stream" not in self.__dict__:
            raise AttributeError("regret_bound_ is known after fit only.")
        plan, time = self._stream.plan, self._stream.state.time
        if time == 0:
            return 0.0
        energies, slack = plan.energy, 0.0
        if plan.value_range:
            distances = plan.projection.explorations(0, time)
            energies, slack = plan.energy / distances**2, 2.0 * plan.lipschitz * distances
        steps = plan.projection.steps(0, time)
        return regret_of_steps(steps, energies, radius=plan.projection.radius, slack=slack)

    def regret(self, X, y, *, tolerance=1e-4):
        """Losses of the weights played, minus those of the best fixed weights in the ball.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (`n_samples_seen_`, n_features)
            The records of the stream, in its order. Nothing covers a regret on private records.

        y : array-like of shape (`n_samples_seen_`,)

        tolerance : float, default=1e-4
            Certified accuracy of the best mean loss.

        Returns
        -------
        float
            In units of half the range of the target, as ``regret_bound_``.

        Raises
        ------
        ValueError
            If ``keep_iterates`` was False, or there are more or fewer rows.
        """
        check_is_fitted(self)
        positive(tolerance=tolerance)
        check_unchanged(self, self._stream.params)
        if not self.keep_iterates:
            raise ValueError(
                f"keep_iterates must be True for a regret; got {shown(self.keep_iterates)}."
            )
        X, targets = self._validated(X, y, reset=False)
        if len(targets) != self.n_samples_seen_:
            raise ValueError(
                f"X must hold the {self.n_samples_seen_} records of the stream; "
                f"got {len(targets)} rows."
            )
        rows = self._rows(X, self._stream.plan)
        loss, scores = self._loss(), np.einsum("ij,ij->i", rows, self.iterates_)
        best = best_in_ball(
            rows, targets, loss, radius=float(self.radius), tolerance=float(tolerance)
        )
        return loss.total(scores[:, np.newaxis], targets) - best[1]

    def _check_parameters(self):
        one_of(UNITS, unit=self.unit)
        one_of(FEEDBACKS, feedback=self.feedback)
        one_of(NOISES, noise=self.noise)
        one_of(PERTURBATIONS, perturbation=self.perturbation)
        positive(mi_budget=self.mi_budget, radius=self.radius, x_norm=self.x_norm)
        between(1e-6, 100.0, mi_budget=self.mi_budget)
        between(1e-6, 1e6, radius=self.radius)
        between(1e-50, 1e50, x_norm=self.x_norm)
        check_y_bounds(self.y_bounds)
        residual_slope(self.loss, self.width, TargetRange.of(self.y_bounds))
        if isinstance(self.step, str) and self.step != "auto":
            raise ValueError(f"step must be 'auto' or a positive number; got {shown(self.step)}.")
        if not isinstance(self.step, str):
            positive(step=self.step)
            between(1e-50, 1e50, step=self.step)
        for name, optional in (("horizon", True), ("contributions_per_user", False)):
            value = getattr(self, name)
            whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
            if not (whole and 1 <= value < 2**53) and not (optional and value is None):
                raise ValueError(f"{name} must be an int from 1 to 2**53; got {shown(value)}.")
        boolean(
            average=self.average,
            fit_intercept=self.fit_intercept,
            keep_iterates=self.keep_iterates,
        )
        check_random_state(self.random_state)
        ledger_of(self)

    def _loss(self):
        slope = residual_slope(self.loss, self.width, TargetRange.of(self.y_bounds))
        if slope.linear:
            return HuberLoss(slope.cap)
        return EpsilonInsensitiveLoss(slope.dead) if slope.dead else AbsoluteLoss()

    def _validated(self, X, y, *, reset):
        X, y = checked_data(self, X, y, reset=reset, numeric=True)
        return X, TargetRange.of(self.y_bounds).scaled(y)

    def _plan(self, n_features):
        """Turn public numbers into the noise, what it promises, and the learner's steps."""
        positive_int(n_features=n_features)
        size = int(n_features) + bool(self.fit_intercept)
        slope = residual_slope(self.loss, self.width, TargetRange.of(self.y_bounds))
        row_norm = math.sqrt(2.0) if self.fit_intercept else 1.0
        lipschitz, radius = slope.cap * row_norm, float(self.radius)
        nats = nats_of(self.mi_budget, self.unit)
        horizon = None if self.horizon is None else int(self.horizon)
        calibrated = gaussian_sigma if self.noise == "gaussian" else k_norm_scale

        if self.feedback == "full":
            scale = calibrated(dimension=size, lipschitz=lipschitz, nats=nats) * _UP
            energy = noise_energy(dimension=size, scale=scale, noise=self.noise)
            bounds = dict(radius=radius, lipschitz=lipschitz, noise_energy=energy)
            step = partial(anytime_full_steps, **bounds)
            if horizon is not None:
                step = full_step(horizon, **bounds)
            projection = LazyProjection(radius, self._step(step))
            local = self._local(2.0 * lipschitz / scale)
            return _Plan(
                slope,
                size,
                scale,
                self._guarantee(local),
                projection,
                lipschitz**2 + energy,
                lipschitz,
            )

        relative = bandit_noise(
            dimension=size, nats=nats, perturbation=self.perturbation, noise=self.noise
        )
        value_range, exploration = bandit_range(
            slope.value,
            dimension=size,
            relative_noise=relative,
            radius=radius,
            lipschitz=lipschitz,
            row_norm=row_norm,
            horizon=horizon,
        )
        amplitude = bandit_amplitude(
            dimension=size, value_range=value_range, relative_noise=relative
        )
        bounds = dict(radius=radius, lipschitz=lipschitz, amplitude=amplitude)
        if horizon is None:
            projection = LazyProjection(
                radius,
                self._step(partial(anytime_bandit_steps, **bounds)),
                partial(anytime_bandit_explorations, **bounds),
            )
        else:
            exploration = float(bandit_exploration(horizon, **bounds))
            step = bandit_step(
                horizon, radius=radius, amplitude=amplitude, exploration=exploration
            )
            projection = LazyProjection(radius, self._step(step), exploration)
        vector = self.perturbation == "vector"
        # In units of the amplitude; given its direction a vector is a number, to Gaussian noise.
        joint = vector and self.noise == "k_norm"
        scale = calibrated(dimension=size if joint else 1, lipschitz=1.0, nats=nats)
        local = self._local(2.0 / scale)
        scale *= _UP * (1.0 if vector else value_range / 2.0)
        return _Plan(
            slope,
            size,
            scale,
            self._guarantee(local),
            projection,
            amplitude**2,
            lipschitz,
            value_range,
        )

    def _step(self, automatic):
        return automatic if isinstance(self.step, str) else float(self.step)

    def _local(self, ratio):
        """Worst case: messages of two records differ by ``ratio`` times the noise scale."""
        return GaussianDP(ratio) if self.noise == "gaussian" else ApproxDP(ratio)

    def _guarantee(self, local):
        several = self.contributions_per_user > 1
        channel = {"full": "gradient", "bandit": "value of the loss"}[self.feedback]
        if self.feedback == "bandit" and self.perturbation == "vector":
            channel = "one-point gradient"
        return MutualInformationPrivacy(
            nats_of(self.mi_budget, self.unit),
            local,
            contributions=int(self.contributions_per_user),
            unit="user" if several else "record",
            mechanism=f"noise that a user adds to a {channel}",
            source="Zhang and Venkitasubramaniam, ICASSP 2018, theorem "
            + ("1" if self.feedback == "full" else "3, improved"),
        )

    def _largest_message(self, stream, n_messages):
        """Bound on coordinates that only broken or hostile devices exceed, one a message."""
        plan = stream.plan
        reach = 64.0 * plan.scale * (1.0 if self.noise == "gaussian" else plan.size)
        if self.feedback == "full":
            return np.full(n_messages, plan.lipschitz + reach)
        if self.perturbation == "scalar":
            return np.full(n_messages, plan.value_range / 2.0 + reach)
        distances = plan.projection.explorations(stream.state.time, n_messages)
        return plan.size * plan.value_range / (2.0 * distances) * (1.0 + reach)

    def _new_stream(self, n_features):
        plan = self._plan(n_features)
        noise_state, directions = None, np.random.default_rng()
        if self.random_state is not None:
            noise_state, directions = map(
                np.random.default_rng, seed_sequence(self.random_state).spawn(2)
            )
        return _Stream(
            params=frozen_params(self),
            plan=plan,
            state=OGDState.zeros(plan.size),
            noise=noise_source(noise_state),
            directions=directions,
        )

    def _learner(self, n_features):
        """Stream of the learner alone, which reads no data and charges nothing."""
        if hasattr(self, "_stream"):
            check_unchanged(self, self._stream.params)
            return self._stream
        stream = self._new_stream(n_features)
        self.n_features_in_ = int(n_features)
        return stream

    def _advance(self, X, y, *, fresh):
        with unchanged_on_error(self):
            if fresh:
                self._check_parameters()
            else:
                check_unchanged(self, self._stream.params)
            # A learner alone knows how many features there are, and not their names.
            named = fresh or not self._stream.charged
            X, targets = self._validated(X, y, reset=named)
            if fresh:
                stream = self._new_stream(X.shape[1])
            else:
                stream = self._stream
                expected = stream.plan.size - bool(self.fit_intercept)
                if X.shape[1] != expected:
                    raise ValueError(f"X must have {expected} features; got {X.shape[1]}.")
            if not stream.charged:
                charge(self, stream.plan.guarantee)
                stream = replace(stream, charged=True)
            state, kept = stream.state, list[np.ndarray]()
            run = self._run_full if self.feedback == "full" else self._run_bandit
            length = max(1, min(4096, _BLOCK // stream.plan.size))
            for start in range(0, X.shape[0], length):
                block = slice(start, start + length)
                rows = self._rows(X[block], stream.plan)
                keep = np.empty(rows.shape) if self.keep_iterates else None
                state = run(rows, targets[block], state, stream, keep)
                if keep is not None:
                    kept.append(keep)
            keep = np.concatenate(kept) if self.keep_iterates else None
            self._store(self._continued(replace(stream, asked=None), state, keep))
        return self

    def _rows(self, X, plan):
        step = record_row_step(plan.slope, self.noise, plan.scale)
        return grid_rows(X, float(self.x_norm), self.fit_intercept, step)

    def _run_full(self, rows, targets, state, stream, keep):
        plan = stream.plan
        slope = plan.slope
        grid = slope.step * record_row_step(slope, self.noise, plan.scale)

        def draw(n):
            return GridNoise(self.noise, plan.scale, grid, plan.size, 1.0, None).draw(
                stream.noise, n
            )

        return run_full(rows, targets, state, plan.projection, slope, draw=draw, keep=keep)

    def _run_bandit(self, rows, targets, state, stream, keep):
        plan, vector = stream.plan, self.perturbation == "vector"
        half_range = plan.value_range / 2.0

        def draw(distances):
            if not vector:
                grid = grid_below(half_range, VALUE_BITS)
                given = GridNoise(self.noise, plan.scale, grid, 1, 1.0, None)
                return given.draw(stream.noise, len(distances))
            return [self._vector_noise(stream, half_range, d) for d in distances.tolist()]

        return run_bandit(
            rows,
            targets,
            state,
            plan.projection,
            plan.slope,
            half_range=half_range,
            vector=vector,
            directions=lambda n: _unit_vectors(stream.directions, n, plan.size),
            draw=draw,
            keep=keep,
        )

    def _vector_noise(self, stream, half_range, distance):
        plan = stream.plan
        amplitude = plan.size * half_range / distance
        grid = grid_below(amplitude, VALUE_BITS)
        given = GridNoise(self.noise, plan.scale * amplitude, grid, plan.size, 1.0, None)
        return given.draw(stream.noise, 1)[0]

    def _continued(self, stream, state, keep):
        iterates = (*stream.iterates, keep) if self.keep_iterates else ()
        return self._fitted(replace(stream, state=state, iterates=iterates))

    def _fitted(self, stream):
        """Attributes that follow from what the learner holds."""
        plan, state = stream.plan, stream.state
        weights = played(state, plan.projection)
        chosen = state.total / state.time if self.average and state.time else weights
        low, high = map(float, self.y_bounds)
        half = high / 2 - low / 2
        n_features = plan.size - bool(self.fit_intercept)
        return dict(
            coef_=half / float(self.x_norm) * chosen[:n_features],
            intercept_=low / 2 + high / 2 + half * float(chosen[n_features:].sum()),
            weights_=weights,
            exploration_=float(plan.projection.explorations(state.time, 1)[0]),
            noise_scale_=plan.scale,
            n_samples_seen_=state.time,
            guarantee_=plan.guarantee,
            _stream=stream,
        )

    def _store(self, fitted):
        for name, value in fitted.items():
            setattr(self, name, value)


def _unit_vectors(generator, n, size):
    """Uniform directions, a little shorter than 1 so that bounds survive rounding."""
    vectors = generator.standard_normal((n, size))
    return vectors / (np.linalg.norm(vectors, axis=1, keepdims=True) * _UP)
