"""Online linear regression in which users add the noise themselves."""

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from skdp._defaults import network as defaults
from skdp._validation import warn_of_bounds
from skdp.learner import (
    CallbackSupportMixin,
    LinkedDocumentation,
    NoisyPredictions,
    begun_fit,
    charge,
    check_unchanged,
    has_begun,
    progress_of,
    unchanged_on_error,
    warn_of_seed,
    with_callbacks,
)
from skdp.linear_model._mutual_information._parameters import check_parameters, is_custom
from skdp.linear_model._mutual_information._regret import Regret
from skdp.linear_model._mutual_information._stream import Learner, MessageStream
from skdp.rows._inputs import checked_rows


class MIPrivateSGDRegressor(
    CallbackSupportMixin,
    Learner,
    Regret,
    LinkedDocumentation,
    NoisyPredictions,
    RegressorMixin,
    BaseEstimator,
):
    """Online linear regression from gradients to which users have added noise.

    Two parties: a user's device takes the learner's weights and its own record, and sends a noisy
    gradient of the loss; the learner sees noisy gradients only. Its next weights are minus their
    sum, times a step, projected onto a ball. `fit` and `partial_fit` play both parties. To run
    them apart, give the object that `privatizer` returns to the devices, and call
    `partial_fit_noised`, or `ask` and `tell`, at the learner.

    Parameters
    ----------
    mi_budget : float, default=0.1
        Mutual information between a contribution and what is sent of it.

    unit : {"nats", "bits"}, default="nats"
        Unit of ``mi_budget``. A bit is 0.693 nats.

    loss : {"absolute", "huber", "epsilon_insensitive", "squared", "custom"}, default="absolute"
        Loss of the residual. The slope of "squared" is clipped, so that it is the Huber loss with
        a wide middle. "custom" is for a learner alone: users take gradients of a convex loss of
        their own, and `predict` returns the score of a row.

    width : float or "auto", default="auto"
        In units of the target: the residual up to which the Huber loss is a square and the
        epsilon-insensitive loss is 0, and at which the slope of "squared" is clipped. "auto" is
        0.3, 0.1 and 1 times half the range of ``y_bounds``.

    gradient_norm : float or "auto", default="auto"
        Public bound on the Euclidean norm of a gradient of a "custom" loss, in units of the
        learner; longer ones are clipped on the device. "auto" is the bound of a row with its
        constant, for losses whose slope in the score is at most 1.

    feedback : {"full", "bandit"}, default="full"
        Whether a user sends a gradient, or the value of the loss at one point.

    noise : {"gaussian", "k_norm"}, default="gaussian"
        "k_norm" gives pure local differential privacy, with more noise for the same budget.

    perturbation : {"scalar", "vector"}, default="scalar"
        With "bandit": noise on the value, or on the vector that is made of it as in the paper.
        Both leak the same, but "vector" brings more noise to the learner.

    radius : float, default=1.0
        Largest norm of the weights, for rows in units of ``x_norm`` and targets in units of half
        their range around its middle.

    x_norm : float, default=1.0
        Public bound on the Euclidean norm of a row. Longer rows are scaled back onto the ball by
        `fit`, but not by `predict`, where it did harm in measurements.

    y_bounds : (float, float), default=None
        Public bounds of the target. Targets outside are clipped; predictions stay within. None
        takes (-1, 1) and warns in each call that clips, whatever the targets are.

    step : float or "auto", default="auto"
        "auto" is the paper's step if ``horizon`` is given, and otherwise a step that decreases
        with time and needs no horizon, see :mod:`skdp.linear_model.papers`.

    horizon : int, default=None
        Number of contributions for which the step is best. The stream may go on after it.

    average : {"late", "uniform", True, False}, default="late"
        Whether to predict with the mean of the weights played, where those at time t count
        ``t^3`` times with "late" and all the same with "uniform" or True; False predicts with
        the latest.

    fit_intercept : bool, default=True
        Whether to append a constant feature to rows.

    intercept_scaling : float or "auto", default="auto"
        Value of the constant feature, public: from 1/256 to 16 times ``x_norm``, rounded to a
        multiple of 1/256 of ``x_norm``. The noise grows with it, and the intercept is at most
        ``radius`` times it. "auto" is ``x_norm`` over the root of ``radius``, but from 0.5 to 1
        times ``x_norm``.

    contributions_per_user : int, default=1
        Declared number of records that one user contributes, each counted once a pass;
        ``guarantee_`` is for a user then. Nothing can check it.

    keep_iterates : bool, default=False
        Whether to keep the weights played, for `regret`: as much memory as dense rows take.

    random_state : None, int, RandomState or Generator, default=None
        None draws the noise from the operating system. Anything else makes it reproducible
        and void of privacy, for tests and figures.

    ledger : BudgetLedger or path, default=None
        Budget that is charged before a stream first reads data. A learner that gets noisy messages
        only reads none.

    Attributes
    ----------
    coef_ : ndarray of shape ``(n_features_in_,)``
        Coefficients. Released under ``guarantee_``.

    intercept_ : float
        Intercept. Released under ``guarantee_``.

    weights_ : ndarray of shape ``(n_features_in_ + fit_intercept,)``
        Weights that the learner plays next: what devices are sent. Released under
        ``guarantee_``.

    exploration_ : float
        With "bandit", distance from the weights at which the next loss is taken. Public.

    iterates_ : ndarray of shape ``(n_samples_seen_, n_features_in_ + fit_intercept)``
        Weights played, or with "bandit" the points asked for, if ``keep_iterates``.
        Released under ``guarantee_``.

    noise_scale_ : float
        Standard deviation of the noise in a coordinate, or the scale of its norm with "k_norm",
        for rows in units of ``x_norm``; for "vector", in units of the amplitude. Public.

    regret_bound_ : float
        Bound on the expected regret so far for records that do not react to the weights, in units
        of half the range of the target: the paper's theorem 2 or 4 as corrected in
        :mod:`skdp.linear_model.papers`, at the steps taken. Public.

    n_samples_seen_ : int
        Contributions so far. Public.

    guarantee_ : MutualInformationPrivacy
        Mutual information and the local differential privacy that comes with it. Public.

    n_features_in_ : int
        Number of features. Public.

    feature_names_in_ : ndarray of shape ``(n_features_in_,)``
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
    the cap of the slope times the bound on a row, ``sqrt(1 + c^2)`` with a constant feature of c
    times ``x_norm``. Gradients are rounded toward zero onto a public grid and stay within L.

    `regret` and `score` compare with records that the caller passes. Of private records they are
    exact functions, which no guarantee covers.

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
    >>> model = MIPrivateSGDRegressor(mi_budget=0.2, y_bounds=(-1, 1))
    >>> model = model.fit(X[:16000], y[:16000])
    >>> bool(model.score(X[16000:], y[16000:]) > 0.5)  # made-up rows are public
    True
    >>> round(model.guarantee_.bits, 4)
    0.2885
    """

    _report_kind = "local"

    def __init__(
        self,
        mi_budget=float(defaults.MI_BUDGET),
        *,
        unit="nats",
        loss="absolute",
        width="auto",
        gradient_norm="auto",
        feedback="full",
        noise="gaussian",
        perturbation="scalar",
        radius=1.0,
        x_norm=1.0,
        y_bounds=None,
        step="auto",
        horizon=None,
        average="late",
        fit_intercept=True,
        intercept_scaling="auto",
        contributions_per_user=1,
        keep_iterates=False,
        random_state=None,
        ledger=None,
    ):
        self.mi_budget = mi_budget
        self.unit = unit
        self.loss = loss
        self.width = width
        self.gradient_norm = gradient_norm
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
        self.intercept_scaling = intercept_scaling
        self.contributions_per_user = contributions_per_user
        self.keep_iterates = keep_iterates
        self.random_state = random_state
        self.ledger = ledger

    @with_callbacks
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

    @with_callbacks
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
        return self._advance(X, y, fresh=not has_begun(self))

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
        if not is_custom(self):
            warn_of_bounds(self.y_bounds)
        check_parameters(self)
        return MessageStream.begin(self, n_features).channel.device

    def predict(self, X):
        """Predict the target of each row, within ``y_bounds``; costs no privacy.

        With a "custom" loss, the score of each row, without bounds.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        X = checked_rows(self, X)
        targets, is_score = self._stream.targets, self._stream.params["loss"] == "custom"
        with np.errstate(all="ignore"):  # a warning would tell huge rows from others
            scores = _products(X, self.coef_) + self.intercept_
            return scores if is_score else np.clip(scores, targets.low, targets.high)

    def _advance(self, X, y, *, fresh):
        if is_custom(self):
            raise ValueError(
                "loss must not be 'custom' to play both parties, as only users know the gradient: "
                "privatizer returns their part, and partial_fit_noised takes what they send."
            )
        warn_of_bounds(self.y_bounds)
        context = begun_fit(self)
        with unchanged_on_error(self, fresh=fresh):
            if fresh:
                check_parameters(self)
            else:
                check_unchanged(self, self._stream.params)
            # A learner alone knows how many features there are, and not their names.
            X, targets = self._validated(X, y, reset=fresh or not self._stream.charged)
            stream = MessageStream.begin(self, X.shape[1]) if fresh else self._stream
            if X.shape[1] != stream.n_features:
                raise ValueError(f"X must have {stream.n_features} features; got {X.shape[1]}.")
            if stream.charged:
                warn_of_seed(self.random_state is not None, self.ledger)
            else:
                charge(self, stream.channel.guarantee)
            with progress_of(self, context):
                stream = stream.advance(X, targets)
            self._store(stream, fresh=fresh)
        return self


def _products(X, coef):
    """Scores of rows, those of huge ones in their own unit: no sum is infinity less infinity."""
    scores = X @ coef
    odd = np.flatnonzero(~np.isfinite(scores))
    if odd.size:
        rows = X[odd].toarray() if issparse(X) else X[odd]
        largest = abs(rows).max(axis=1)
        scores[odd] = (rows / largest[:, np.newaxis]) @ coef * largest
    return scores
