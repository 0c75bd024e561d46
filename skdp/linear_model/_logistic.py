"""Private logistic regression."""

from skdp._validation import is_auto, positive, short_repr
from skdp.learner import LogisticLoss, RowCount, Sequence, SoftmaxLoss
from skdp.learner._inference import CutShares, JointSteps
from skdp.linear_model._base import BaseDPLinearClassifier
from skdp.linear_model._summary import CONFIDENCE, CoefficientInference

_LIMIT_SLOPE_CAP = 1e-6

# Values of other parameters that inference requires.
_WITH_INFERENCE: dict[str, tuple] = {
    "C": ("auto",),
    "mechanism": ("auto", "gradient"),
    "calibration": ("tight",),
    "slope_cap": ("auto", None),
    "class_weight": (None,),
}


class DPLogisticRegression(CoefficientInference, BaseDPLinearClassifier):
    """Logistic regression with differential privacy.

    Multiclass problems use one joint softmax release. The defaults need no tuning, which would
    cost budget.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of one fit.

    delta : float, default=0.0
        0 gives pure differential privacy. A positive value, well below one over the number of
        rows, allows Gaussian noise.

    C : float or "auto", default="auto"
        Inverse regularisation strength, as in :class:`~sklearn.linear_model.LogisticRegression`
        (sum of losses). "auto" is set by public and released numbers: the penalty is stronger for
        few rows, many features or a small epsilon, and the gradient mechanism has none. The
        objective mechanism uses a stronger penalty than requested if the budget does not cover the
        curvature of the loss. ``C`` times the squared norm of a row, including the constant
        feature, must be between 1e-12 and 1e9, and with the mechanisms "objective" and "output"
        below 1e8 over the curvature of the loss (1/4; 1/2 for more than two classes).

        With "auto", `fit` releases more than the coefficients. If all classes have the same weight
        and there are no ``groups``, it releases two derivatives of the log-likelihood with respect
        to the scale of the scores, for 3 % of epsilon (of the squared mu with ``delta > 0``),
        unless noise would hide them. The resulting factor multiplies all scores, so predictions
        for two classes do not change. With ``delta=0`` and more classes it multiplies only what
        was learned beyond the log-odds. For more than two classes with an intercept and
        ``delta=0``, the class counts are released first, for an epsilon of ``30 * sqrt(n_classes)
        / n`` and at most half of the budget. Under "add-remove" this is half of the value for
        1,000 rows. Without class counts, "add-remove" spends 2 % of the budget to release the
        number of rows for the rules, except with the mechanism "output", and "objective" with a
        delta, whose rules do not use it.

    mechanism : {"auto", "objective", "output", "gradient"}, default="auto"
        "objective" adds a random linear term to the objective, "output" adds noise to the
        minimiser, "gradient" runs gradient descent on noisy gradients. "auto" is "objective" for
        ``delta=0`` and "gradient" otherwise.

    calibration : {"tight", "jmlr2011"}, default="tight"
        How the objective mechanism sets its noise scale. "tight" is the rule of this package.
        "jmlr2011" is the rule of the JMLR 2011 paper, for two classes and ``delta=0`` only.

    slope_cap : float from 1e-6 to 1, "auto" or None, default="auto"
        Largest slope of the loss. Where the logistic loss is steeper it continues as a straight
        line, and the noise shrinks in proportion. "auto" is 0.4; with the objective mechanism it
        rises to at most 1 if there are many rows for this epsilon and number of features. None
        sets no cap. The gradient mechanism caps gradients instead, so that residuals of rows of
        typical norm are at most the cap, or sqrt(2) times the cap for more than two classes; there
        "auto" has a separate rule, and None is 1. The other mechanisms set no cap for more than
        two classes. With "auto" and ``delta=0`` the objective mechanism then has a margin between
        4 and 0, which tends to 0 as the number of rows grows.

    adjacency : {"replace-one", "add-remove"}, default="replace-one"
        Definition of neighbouring data sets. Under "replace-one" the number of rows is public.

    x_norm : float, default=1.0
        Public bound on the Euclidean norm of a row, from 1e-50 to 1e50. Rows with a larger norm
        are scaled down to it, in `fit` and in `predict`. If ``C`` is "auto" and
        ``intercept_scaling`` is not set, `fit` under "replace-one" first releases ``x_norm_``, a
        smaller norm that hardly any row exceeds: ``x_norm`` over a power of the root of 2, from 1
        to 128. The noise is proportional to it. This release costs 2 % of epsilon, or of the
        squared mu with the gradient mechanism and ``delta > 0``. It requires ``n * epsilon`` of at
        least 1000, or ``mu * n`` of at least 100. All other releases share the rest of the budget.

    classes : array-like, default=None
        Public list of labels. None uses the labels in ``y`` and treats them as public.

    class_weight : dict, default=None
        Public weights ``{label: weight}``, from 1e-6 to 1e6, that multiply the loss of each record
        with that label. Labels without an entry have weight 1. "balanced" is refused because it
        would count the private labels; pass ``1 / (n_classes * share)`` with class shares that you
        declare.

    fit_intercept : bool, default=True
        Whether to fit an intercept, as the coefficient of a constant feature. It is penalised like
        the other coefficients, because without a penalty no finite noise would suffice. The
        constant counts in the row norm.

    intercept_scaling : float or "auto", default="auto"
        Public value of the constant feature, from 1e-50 to 1e50. "auto" is 0.3 times ``x_norm_``.
        A larger value adds noise; a smaller value keeps the intercept closer to 0.

    inference : bool, default=False
        Whether to release standard errors, confidence intervals and p-values with the
        coefficients; see ``summary_``. Requires two classes and a positive ``delta``. The whole
        budget then goes to Newton steps on the likelihood, each with the squared residuals, and to
        the fraction of clipped rows. There is no penalty: with few rows, predictions are worse
        than without inference. No norm is released, so ``x_norm_`` is ``x_norm``: intervals are
        for rows clipped to it, and noise is proportional to it.

    max_sample_weight : float, default=None
        Public upper bound on ``sample_weight``, from 1e-6 to 1e6; larger weights are clipped to
        it. The noise is proportional to it. None uses 1 and warns in a fit with weights. Ignored
        without weights.

    random_state : None, int, RandomState or Generator, default=None
        None draws the noise from the operating system. Any other value makes the noise
        reproducible and voids the privacy; use it for tests and figures.

    ledger : BudgetLedger or path, default=None
        Budget ledger that each fit is charged to before it uses the data.

    Attributes
    ----------
    coef_ : ndarray of shape ``(1, n_features_in_)`` or ``(n_classes, n_features_in_)``
        Coefficients, for rows with norm at most ``x_norm_``; see `decision_function`. Released
        under ``guarantee_``.

    coef_noise_ : CoefficientNoise or None
        Standard deviations of the noise in ``coef_`` over fits to the same rows, without the noise
        in ``x_norm_``. They are exact with ``mechanism="output"``. They are approximate with
        ``"gradient"`` and a delta if there are enough rows to release their second moments: 0.5
        to 1.35 times the true deviations, and more with few rows. None otherwise and with
        ``groups``, because the known bounds may be a hundred times too large. See
        `~skdp.learner.CoefficientNoise`. Released under ``guarantee_``.

    intercept_ : ndarray of shape (1,) or (n_classes,)
        Intercepts. Released under ``guarantee_``.

    summary_ : CoefficientSummary
        Standard errors, confidence intervals and p-values, if ``inference=True``. Released under
        ``guarantee_``.

    covariance_ : ndarray of shape (n_coefficients, n_coefficients)
        Covariance of the coefficients, with the intercept last, if ``inference=True``. Released
        under ``guarantee_``.

    x_norm_ : float
        Norm to which rows are clipped in `fit` and in predictions: ``x_norm``, or the released
        norm. Released under ``guarantee_``.

    classes_ : ndarray of shape (n_classes,)
        Class labels. Public.

    guarantee_ : ApproxDP
        Guarantee of the fit, with its privacy profile. Public.

    n_features_in_ : int
        Number of features. Public.

    feature_names_in_ : ndarray of shape ``(n_features_in_,)``
        Names of the features, if ``X`` has them. Public.

    See Also
    --------
    DPLinearSVC : The same with a hinge loss.
        Linear classifier with a hinge loss.

    Notes
    -----
    **Privacy.** Everything that `fit` stores is public or a function of one release that satisfies
    ``guarantee_``, for any data. Rows are clipped to ``x_norm_``. Released floats lie on a public
    lattice. Predictions are post-processing and cost no privacy. The guarantee does not cover the
    run time of `fit`, errors about malformed input, a `~skdp.exceptions.SolverError`, and other
    uses of the same data, such as cross-validation without a ledger.

    **Users.** With ``groups`` the guarantee is for users: it covers all rows of a user, however
    many. The gradient of a user is the mean of the gradients of the user's rows, clipped to one
    cap. Noise and rules are therefore those for as many rows as there are users, and ``C`` applies
    to a sum over users. With a positive ``delta``, `fit` releases a noisy mean of the agreement of
    each user's gradients; if it is low, the cap and the noise are smaller. The number of rows of a
    user is private; the users are public under "replace-one". Only ``mechanism="gradient"``
    supports users, and "auto" then selects it.

    **Weights.** A weight multiplies what a row adds to each sum that is released; ``x_norm_`` is
    read from all rows alike. The largest weight k is ``max_sample_weight`` times the largest of
    ``class_weight`` and multiplies the sensitivity: the objective is k times one with weights of
    at most 1 and the penalty ``1 / (k C)``. With ``C="auto"`` only ratios of weights count. The
    sum of ``sample_weight`` takes 2 % of the budget and replaces the number of rows in all rules.
    The guarantee holds if each weight is a function of its own row and of public or released
    numbers; ``guarantee_`` states this as a caveat.

    References
    ----------
    Chaudhuri, Monteleoni and Sarwate, "Differentially private empirical risk minimization",
    JMLR 2011, theorems 6 and 9. Redberg, Koskela and Wang, "Improving the privacy and
    practicality of objective perturbation for differentially private linear learners",
    NeurIPS 2023. Bassily, Smith and Thakurta, "Private empirical risk minimization",
    FOCS 2014.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.pipeline import make_pipeline
    >>> from skdp.linear_model import DPLogisticRegression
    >>> from skdp.preprocessing import BoundedScaler, RowNormClipper
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = make_pipeline(
    ...     BoundedScaler((0, 5000)), RowNormClipper(), DPLogisticRegression(epsilon=1.0)
    ... )
    >>> print(model.fit(X, y)[-1].guarantee_.epsilon)
    1.0
    """

    _has_odds = True

    _knows_slopes = True

    def __init__(
        self,
        epsilon=1.0,
        delta=0.0,
        *,
        C="auto",
        mechanism="auto",
        calibration="tight",
        slope_cap="auto",
        adjacency="replace-one",
        x_norm=1.0,
        classes=None,
        class_weight=None,
        fit_intercept=True,
        intercept_scaling="auto",
        inference=False,
        max_sample_weight=None,
        random_state=None,
        ledger=None,
    ):
        super().__init__(
            epsilon, delta, adjacency=adjacency, random_state=random_state, ledger=ledger
        )
        self.C = C
        self.mechanism = mechanism
        self.calibration = calibration
        self.slope_cap = slope_cap
        self.x_norm = x_norm
        self.classes = classes
        self.class_weight = class_weight
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.max_sample_weight = max_sample_weight
        self.inference = inference

    def check_parameters(self):
        super().check_parameters()
        self._check_inference()
        if not self.inference:
            return
        for name, allowed in _WITH_INFERENCE.items():
            given = getattr(self, name)
            if not any(
                given is one or (isinstance(given, str) and given == one) for one in allowed
            ):
                raise ValueError(
                    f"{name} must be {' or '.join(map(repr, allowed))} with inference=True: "
                    f"intervals require the plain likelihood; got {short_repr(given)}."
                )

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = not self.inference
        return tags

    def _plan(self, classes, n_features, n_samples, unit="record", most=None):
        if not self.inference:
            return super()._plan(classes, n_features, n_samples, unit, most)
        if len(classes) != 2:
            raise ValueError(
                "Only binary classification is supported. inference must be False for more than "
                f"two classes; got {len(classes)} classes."
            )
        loss, sizes = LogisticLoss(), self._sizes(n_features)
        return Sequence.plan(
            self._target(unit),
            release=lambda budget, n_samples: JointSteps.plan(budget, loss=loss, **sizes),
            n_samples=n_samples,
            before=[RowCount.planned] if n_samples is None or most is not None else (),
            after=[CutShares.planned],
            is_counted=most is not None,
        )

    def learn(self, data, run):
        """Release the coefficients, and their summary with ``inference=True``."""
        self.__dict__.pop("summary_", None)
        found = super().learn(data, run)
        if not self.inference:
            return
        told = f"Coefficients are for the log-odds of {short_repr(data.classes.tolist()[1])}."
        scales = self._scales(found.norm_scale)
        self._store_summary(found.found, scales, exponentials=True, notes=(told,))

    def odds_ratios(self, level=CONFIDENCE):
        """Return the odds ratio of each feature with its interval; costs no privacy.

        Parameters
        ----------
        level : float, default=0.95

        Returns
        -------
        DataFrame
            One row per feature: the ratio, the interval bounds, the p-value.
        """
        self._check_summary()
        return self.summary_.exponential(level)

    def _loss(self, n_classes, mechanism, rule):
        cap = self.slope_cap
        if isinstance(cap, str) and not is_auto(cap):
            raise ValueError(
                f"slope_cap must be 'auto', None or in (0, 1]; got {short_repr(cap)}."
            )
        if cap is not None and not isinstance(cap, str):
            positive(slope_cap=cap)
            if float(cap) < _LIMIT_SLOPE_CAP:
                raise ValueError(f"slope_cap must be at least 1e-6; got {short_repr(cap)}.")
        binary = LogisticLoss(1.0 if cap is None or is_auto(cap) else cap)
        if n_classes > 2:
            return SoftmaxLoss(n_classes, margin=rule if is_auto(cap) else 0.0)
        if mechanism == "gradient":  # descents cap whole gradients instead
            return LogisticLoss()
        return LogisticLoss(rule) if is_auto(cap) else binary

    def _clip_norm(self, loss):
        if is_auto(self.slope_cap):
            return None
        return loss.lipschitz * (1.0 if self.slope_cap is None else float(self.slope_cap))

    def predict_proba(self, X):
        """Return the probability of each class; costs no privacy.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return self._probabilities(X)

    def predict_log_proba(self, X):
        """Return the log-probability of each class; costs no privacy.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return self._log_probabilities(X)
