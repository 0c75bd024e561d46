"""Online linear regression with noise added by the users."""

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
    """Online linear regression from gradients with noise added by the users.

    There are two parties. A user's device takes the learner's weights and its own record, and
    sends a noisy gradient of the loss. The learner sees only noisy gradients; its next weights are
    minus their sum times a step size, projected onto a ball. `fit` and `partial_fit` simulate both
    parties. To run them separately, give the object returned by `privatizer` to the devices, and
    call `partial_fit_noised`, or `ask` and `tell`, at the learner.

    Parameters
    ----------
    mi_budget : float, default=0.1
        Mutual information between a contribution and the message sent about it.

    unit : {"nats", "bits"}, default="nats"
        Unit of ``mi_budget``. A bit is 0.693 nats.

    loss : {"absolute", "huber", "epsilon_insensitive", "squared", "custom"}, default="absolute"
        Loss of the residual. The slope of "squared" is clipped, which gives the Huber loss with a
        wide quadratic part. "custom" is for a learner alone: users compute gradients of their own
        convex loss, and `predict` returns the score of a row.

    width : float or "auto", default="auto"
        In units of the target: the residual up to which the Huber loss is quadratic and the
        epsilon-insensitive loss is 0, and at which the slope of "squared" is clipped. "auto" is
        0.3, 0.1 and 1 times half the range of ``y_bounds``, respectively.

    gradient_norm : float or "auto", default="auto"
        Public bound on the Euclidean norm of a gradient of a "custom" loss, in units of the
        learner. The device clips gradients to it. "auto" is the bound on the norm of a row with
        its constant, for losses whose slope in the score is at most 1.

    feedback : {"full", "bandit"}, default="full"
        Whether a user sends a gradient, or the value of the loss at one point.

    noise : {"gaussian", "k_norm"}, default="gaussian"
        "k_norm" gives pure local differential privacy, with more noise for the same budget.

    perturbation : {"scalar", "vector"}, default="scalar"
        With "bandit": whether noise is added to the value, or to the vector computed from it as in
        the paper. Both leak the same, but "vector" adds more noise.

    radius : float, default=1.0
        Largest norm of the weights, for rows in units of ``x_norm`` and targets centred and in
        units of half their range.

    x_norm : float, default=1.0
        Public bound on the Euclidean norm of a row. `fit` scales rows with a larger norm down to
        it. `predict` does not, because this reduced accuracy in experiments.

    y_bounds : (float, float), default=None
        Public bounds of the target. Targets are clipped to them; predictions stay within. None
        uses (-1, 1) and warns in each call that clips, whatever the targets are.

    step : float or "auto", default="auto"
        Step size. "auto" is the paper's step if ``horizon`` is given; otherwise the step decreases
        with time and needs no horizon, see :mod:`skdp.linear_model.papers`.

    horizon : int, default=None
        Number of contributions for which the step is optimal. The stream may continue beyond it.

    average : {"late", "uniform", True, False}, default="late"
        Whether to predict with the mean of the weights played. Weights at time t count ``t^3``
        times with "late", and equally with "uniform" or True. False predicts with the latest
        weights.

    fit_intercept : bool, default=True
        Whether to append a constant feature to the rows.

    intercept_scaling : float or "auto", default="auto"
        Public value of the constant feature, from 1/256 to 16 times ``x_norm``, rounded to a
        multiple of 1/256 of ``x_norm``. The noise grows with it, and the intercept is at most
        ``radius`` times it. "auto" is ``x_norm`` over the root of ``radius``, limited to 0.5 to 1
        times ``x_norm``.

    contributions_per_user : int, default=1
        Declared number of records that one user contributes, each counted once per pass;
        ``guarantee_`` is then for a user. The estimator cannot check it.

    keep_iterates : bool, default=False
        Whether to store the weights played, for `regret`. This takes as much memory as the rows in
        dense form.

    random_state : None, int, RandomState or Generator, default=None
        None draws the noise from the operating system. Any other value makes the noise
        reproducible and voids the privacy; use it for tests and figures.

    ledger : BudgetLedger or path, default=None
        Budget ledger that is charged before a stream first reads data. A learner that receives
        only noisy messages reads no data.

    Attributes
    ----------
    coef_ : ndarray of shape ``(n_features_in_,)``
        Coefficients. Released under ``guarantee_``.

    intercept_ : float
        Intercept. Released under ``guarantee_``.

    weights_ : ndarray of shape ``(n_features_in_ + fit_intercept,)``
        Weights that the learner plays next, which are sent to the devices. Released under
        ``guarantee_``.

    exploration_ : float
        With "bandit", distance between the weights and the point at which the next loss is taken.
        Public.

    iterates_ : ndarray of shape ``(n_samples_seen_, n_features_in_ + fit_intercept)``
        Weights played, or with "bandit" the points of evaluation, if ``keep_iterates``. Released
        under ``guarantee_``.

    noise_scale_ : float
        Standard deviation of the noise per coordinate, or scale of its norm with "k_norm", for
        rows in units of ``x_norm``; for "vector", in units of the amplitude. Public.

    regret_bound_ : float
        Bound on the expected regret so far, for records that do not depend on the weights, in
        units of half the range of the target. This is theorem 2 or 4 of the paper, as corrected in
        :mod:`skdp.linear_model.papers`, at the steps taken. Public.

    n_samples_seen_ : int
        Number of contributions so far. Public.

    guarantee_ : MutualInformationPrivacy
        Mutual information and the local differential privacy that it implies. Public.

    n_features_in_ : int
        Number of features. Public.

    feature_names_in_ : ndarray of shape ``(n_features_in_,)``
        Names of the features, if ``X`` has them. Public.

    See Also
    --------
    skdp.local.GradientPrivatizer : The device's part.
        Privatizer that runs on a device.
    skdp.kernel.DPOnlineKernelRegressor : A curator that is trusted adds far less noise.
        Adds far less noise, with a trusted curator.

    Notes
    -----
    **Privacy.** Each message of a device is private on its own, including against the learner.
    Mutual information is an average over records. The worst case is the local differential privacy
    in ``guarantee_``, Gaussian with ``mu = 2 L / sigma >= sqrt(8 C)`` for a budget of C nats. Both
    hold for each contribution, for weights of any origin.

    The bound of theorem 1 is the capacity of a Gaussian channel with power ``L^2``, where L is
    the cap of the slope times the bound on a row, ``sqrt(1 + c^2)`` with a constant feature of c
    times ``x_norm``. Gradients are rounded toward zero onto a public grid and stay within L.

    `regret` and `score` compare with the given records. For private records they are exact
    functions of them, which no guarantee covers.

    Concurrent updates of one model from several threads are not supported.

    The guarantee does not cover the run time of a call, errors about malformed input, other uses
    of the same data, and information about this record in the records of other users.

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
    >>> bool(model.score(X[16000:], y[16000:]) > 0.5)  # the data are synthetic
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
        """Start a new stream and simulate both parties in one pass over the rows, in order.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        y : array-like of shape (n_samples,)
            Targets, which are clipped to ``y_bounds``.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If a parameter or the input is invalid.
        BudgetExceededError
            If the ledger cannot cover the charge; the previous model is kept.
        """
        return self._advance(X, y, fresh=True)

    @with_callbacks
    def partial_fit(self, X, y):
        """Continue the stream, simulating both parties.

        A record passed k times is k contributions, which ``contributions_per_user`` must include.

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
            As for `fit`, and if a parameter has changed since the stream began.
        """
        return self._advance(X, y, fresh=not has_begun(self))

    def privatizer(self, n_features):
        """Return the object that privatises records on a device.

        Parameters
        ----------
        n_features : int

        Returns
        -------
        GradientPrivatizer, ValuePrivatizer or OnePointPrivatizer
            Picklable; it requires only numpy.
        """
        if not is_custom(self):
            warn_of_bounds(self.y_bounds)
        check_parameters(self)
        return MessageStream.begin(self, n_features).channel.device

    def predict(self, X):
        """Predict the target of each row, within ``y_bounds``; costs no privacy.

        With a "custom" loss, return the score of each row, without bounds.

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
                "loss must not be 'custom' to simulate both parties, because only users know the "
                "gradient. Use privatizer for the devices and partial_fit_noised for their "
                "messages; got 'custom'."
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
