"""Private logistic regression."""

from skdp._validation import is_auto, positive, short_repr
from skdp.learner import LogisticLoss, RowCount, Sequence, SoftmaxLoss
from skdp.learner._inference import CutShares, JointSteps
from skdp.linear_model._base import BaseDPLinearClassifier
from skdp.linear_model._summary import CONFIDENCE, CoefficientInference

_LIMIT_SLOPE_CAP = 1e-6

# What intervals need other parameters to be.
_WITH_INFERENCE: dict[str, tuple] = {
    "C": ("auto",),
    "mechanism": ("auto", "gradient"),
    "calibration": ("tight",),
    "slope_cap": ("auto", None),
    "class_weight": (None,),
}


class DPLogisticRegression(CoefficientInference, BaseDPLinearClassifier):
    """Logistic regression with differential privacy.

    Binary, or multiclass by one joint softmax release. With the defaults nothing needs
    tuning, which would cost budget.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget of one fit.

    delta : float, default=0.0
        0 is pure differential privacy; a positive number, well below one over the number of
        rows, allows Gaussian noise.

    C : float or "auto", default="auto"
        Inverse strength of the penalty as in :class:`~sklearn.linear_model.LogisticRegression`
        (sum of losses). "auto" follows from public and released numbers: the penalty is stronger
        where rows are few, features are many or epsilon is small, and the gradient mechanism has
        none. The objective mechanism uses a stronger penalty than asked for where the budget does
        not pay for the curvature of the loss. ``C`` times the squared norm of a row, the constant
        feature included, must be between 1e-12 and 1e9, and with the mechanisms "objective" and
        "output" below 1e8 over the curvature of the loss (1/4; 1/2 for more than two classes).

        What "auto" releases besides the coefficients: where classes weigh alike and no
        ``groups`` are given, two derivatives of the log-likelihood along the length of the scores,
        for 3 % of epsilon (of the squared mu with ``delta > 0``) where noise does not hide them.
        The factor that follows multiplies all scores, which changes no predicted class of two;
        with ``delta=0`` and more classes, what was learned beyond the log-odds. For more than two
        classes with an intercept and ``delta=0`` the number of rows of each class comes first, for
        an epsilon of ``30 * sqrt(n_classes) / n`` and at most half of it. Under "add-remove" it
        is half of that for 1,000 rows, and else 2 % of the budget tell the number of rows, which
        rules read; those of the mechanism "output", and of "objective" with a delta, do not.

    mechanism : {"auto", "objective", "output", "gradient"}, default="auto"
        "objective" adds a random linear term to the objective, "output" adds noise to the
        minimiser, "gradient" descends along noisy gradients. "auto" is "objective" for
        ``delta=0`` and "gradient" otherwise.

    calibration : {"tight", "jmlr2011"}, default="tight"
        How the objective mechanism finds the size of its noise: "tight" is the rule of this
        package, and "jmlr2011" that of its paper, for two classes and ``delta=0`` only.

    slope_cap : float from 1e-6 to 1, "auto" or None, default="auto"
        Largest slope of the loss: where the logistic loss is steeper it goes on as a straight
        line, and the noise shrinks in proportion. "auto" is 0.4; with
        the objective mechanism it goes up to 1 where there are many rows for this epsilon and
        this number of features. None does not cap. The gradient mechanism caps gradients instead,
        so that residuals of rows of typical norm are at most the cap, or sqrt(2) times the cap for
        more than two classes; there "auto" has a rule of its own, and None is 1. The other
        mechanisms do not cap for more than two classes. With "auto" and ``delta=0`` the objective
        mechanism then has a margin from 4 to 0, which goes to 0 with the number of rows.

    adjacency : {"replace-one", "add-remove"}, default="replace-one"
        Which data sets are neighbours. Under "replace-one" the number of rows is public.

    x_norm : float, default=1.0
        Public bound on the Euclidean norm of a row, from 1e-50 to 1e50. Longer rows are scaled
        back onto the ball, in `fit` and in `predict`. Where ``C`` is "auto" and no
        ``intercept_scaling`` is given, `fit` under "replace-one" first reads a smaller norm from
        the rows, ``x_norm_``, that hardly any exceeds: ``x_norm`` over a power of the root of 2,
        from 1 to 128. Noise is in proportion to it. That takes 2 % of epsilon, or of the squared
        mu with the gradient mechanism and ``delta > 0``, where ``n * epsilon`` is 1000 or more,
        or ``mu * n`` 100. All other releases share what is left.

    classes : array-like, default=None
        Public list of labels. None takes the labels present in ``y`` and treats them as
        public.

    class_weight : dict, default=None
        ``{label: weight}``, from 1e-6 to 1e6 and public: what the loss of a record with that label
        is multiplied by. Labels that are not named weigh 1. "balanced" is refused, because it
        would count the private labels: pass ``1 / (n_classes * share)`` for shares of the classes
        that you declare.

    fit_intercept : bool, default=True
        Whether to fit an intercept, as the coefficient of a constant feature. It is penalised like
        the others, since without a penalty no finite noise would suffice, and the constant counts
        in the norm of a row.

    intercept_scaling : float or "auto", default="auto"
        Value of the constant feature, from 1e-50 to 1e50; public. "auto" is 0.3 times ``x_norm_``.
        A larger constant means more noise, and a smaller one keeps the intercept nearer to 0.

    inference : bool, default=False
        Whether to release standard errors, intervals and p-values with the coefficients, see
        ``summary_``; for two classes, and with a positive ``delta``. The whole budget is then for
        Newton steps on the likelihood, each with the squared residuals, and for a share of the
        rows that were clipped. There is no penalty: where rows are few, predictions
        are worse than without. No norm is read, so that ``x_norm_`` is ``x_norm``: intervals are
        for rows clipped to it, and noise is in proportion to it.

    max_sample_weight : float, default=None
        Largest ``sample_weight``, from 1e-6 to 1e6 and public: larger ones count as this. Noise is
        in proportion to it. None takes 1, and warns in a fit with weights. Without weights it
        does nothing.

    random_state : None, int, RandomState or Generator, default=None
        None draws the noise from the operating system. Anything else makes it reproducible
        and void of privacy, for tests and figures.

    ledger : BudgetLedger or path, default=None
        Budget that each fit is charged to before it uses the data.

    Attributes
    ----------
    coef_ : ndarray of shape ``(1, n_features_in_)`` or ``(n_classes, n_features_in_)``
        Coefficients, for rows no longer than ``x_norm_``: see `decision_function`. Released under
        ``guarantee_``.

    coef_noise_ : CoefficientNoise or None
        Standard deviations of the noise in ``coef_`` over fits to the same rows: exact with
        ``mechanism="output"``, approximate with ``"gradient"`` and a delta where rows are enough
        for their second moments to be released. See `~skdp.learner.CoefficientNoise`. That of
        ``x_norm_`` is not in them. None otherwise: only bounds are known, which may be a hundred
        times too large. Released under ``guarantee_``.

    intercept_ : ndarray of shape (1,) or (n_classes,)
        Intercepts. Released under ``guarantee_``.

    summary_ : CoefficientSummary
        Standard errors, intervals and p-values, with ``inference=True``. Released under
        ``guarantee_``.

    covariance_ : ndarray of shape (n_coefficients, n_coefficients)
        Covariance of the coefficients and, last, of the intercept, with ``inference=True``.
        Released under ``guarantee_``.

    x_norm_ : float
        Norm to which rows are clipped, in `fit` and when they are predicted: ``x_norm``, or what
        was read. Released under ``guarantee_``.

    classes_ : ndarray of shape (n_classes,)
        Labels. Public.

    guarantee_ : ApproxDP
        What the fit promises, with its privacy profile. Public.

    n_features_in_ : int
        Number of features. Public.

    feature_names_in_ : ndarray of shape ``(n_features_in_,)``
        Names of the features, if ``X`` has them. Public.

    See Also
    --------
    DPLinearSVC : The same with a hinge loss.

    Notes
    -----
    **Privacy.** Everything that `fit` stores is public or a function of one release that satisfies
    ``guarantee_``, whatever the data are. Rows are clipped to ``x_norm_``; the floats that are
    released lie on a public lattice. Predictions are post-processing and free. What the guarantee
    does not cover: the time `fit` takes, errors about malformed input, a
    `~skdp.exceptions.SolverError`, and other uses of the same data, such as cross-validation
    without a ledger.

    **Users.** With ``groups`` the guarantee is for users: it covers all rows of a user, however
    many. The gradient of a user is the mean of the gradients of the user's rows, shortened to one
    cap. So noise and rules are those for as many rows as there are users, and ``C`` weighs a sum
    over users. With a positive ``delta`` a noisy mean of the agreement of each user's gradients is
    released; where it is low, the cap and the noise are smaller. The number of rows of a user is
    private; the users are public under "replace-one". Only ``mechanism="gradient"`` supports
    this, and "auto" then stands for it.

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
                    f"intervals are for the likelihood alone; got {short_repr(given)}."
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
        """Release the coefficients, and how sure they are if that is asked for."""
        self.__dict__.pop("summary_", None)
        found = super().learn(data, run)
        if not self.inference:
            return
        told = f"Coefficients are of the log-odds of {short_repr(data.classes.tolist()[1])}."
        scales = self._scales(found.norm_scale)
        self._store_summary(found.found, scales, exponentials=True, notes=(told,))

    def odds_ratios(self, level=CONFIDENCE):
        """Odds ratios of the features with their intervals; costs no privacy.

        Parameters
        ----------
        level : float, default=0.95

        Returns
        -------
        DataFrame
            A row for each feature: the ratio, the ends of its interval, the p-value.
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
        """Probability of each class; costs no privacy.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return self._probabilities(X)

    def predict_log_proba(self, X):
        """Log-probability of each class; costs no privacy.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return self._log_probabilities(X)
