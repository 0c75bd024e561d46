"""Private linear support vector classification."""

from skdp._defaults import linear as defaults
from skdp._validation import between, is_auto, number_or_auto
from skdp.learner import HuberHingeLoss, SoftmaxLoss
from skdp.linear_model._base import BaseDPLinearClassifier

_LIMIT_WIDTH = 1e-3, 1e6


class DPLinearSVC(BaseDPLinearClassifier):
    """Linear support vector classification with differential privacy.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of one fit.

    delta : float, default=0.0
        0 gives pure differential privacy. A positive value, well below one over the number of
        rows, allows Gaussian noise.

    C : float or "auto", default="auto"
        Inverse regularisation strength, as in :class:`~sklearn.svm.LinearSVC` with the hinge loss
        (sum of losses). "auto" is set by public and released numbers: the penalty is stronger for
        few rows, many features or a small epsilon, and the gradient mechanism has none. The
        objective mechanism uses a stronger penalty than requested if the budget does not cover the
        curvature of the loss. ``C`` times the squared norm of a row, including the constant
        feature, must be between 1e-12 and 1e9, and with the mechanisms "objective" and "output"
        below 2e8 times ``huber_width``.

        With "auto", the objective mechanism, ``delta=0`` and more than two classes with an
        intercept, the class counts are released first, for an epsilon of ``30 * sqrt(n_classes) /
        n`` and at most half of the budget. The penalty is then centred on their log-odds, times
        the temperature. Under "add-remove", 2 % of the budget releases the number of rows for the
        rules, except with the mechanism "output", and "objective" with a delta, whose rules do not
        use it.

    mechanism : {"auto", "objective", "output", "gradient"}, default="auto"
        "objective" adds a random linear term to the objective, "output" adds noise to the
        minimiser, "gradient" runs gradient descent on noisy gradients. "auto" is "objective" for
        ``delta=0`` and "gradient" otherwise.

    calibration : {"tight", "jmlr2011"}, default="tight"
        How the objective mechanism sets its noise scale. "tight" is the rule of this package.
        "jmlr2011" is the rule of the JMLR 2011 paper, for two classes and ``delta=0`` only.

    huber_width : float from 0.001 to 1e6 or "auto", default="auto"
        The kink of the hinge is rounded between the margins ``1 - huber_width`` and ``1 +
        huber_width``. Objective perturbation requires the rounding, and a smaller width costs
        more. Output perturbation does not require it, but a solver could not certify the minimiser
        of a loss with a kink. "auto" is 0.05 for the output mechanism with two classes, which is
        close to the plain hinge, and 0.5 otherwise. For more than two classes it is the
        temperature of the softmax that replaces the maximum.

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
        in ``x_norm_``, with ``mechanism="output"``. None otherwise, because known estimates are
        too inaccurate. See `~skdp.learner.CoefficientNoise`. Released under ``guarantee_``.

    intercept_ : ndarray of shape (1,) or (n_classes,)
        Intercepts. Released under ``guarantee_``.

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
    DPLogisticRegression : Has probabilities.
        Linear classifier with probabilities.

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

    With more than two classes the loss is a smooth version of the joint hinge of Crammer and
    Singer, released jointly for all classes.

    References
    ----------
    Chaudhuri, Monteleoni and Sarwate, "Differentially private empirical risk minimization",
    JMLR 2011, section 3.4.2. Crammer and Singer, "On the algorithmic implementation of
    multiclass kernel-based vector machines", JMLR 2001.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from skdp.linear_model import DPLinearSVC
    >>> X, y = make_classification(n_samples=2000, random_state=0)
    >>> model = DPLinearSVC(epsilon=1.0, delta=1e-6, x_norm=5.0).fit(X, y)
    >>> print(model.guarantee_.adjacency)
    replace-one
    """

    def __init__(
        self,
        epsilon=1.0,
        delta=0.0,
        *,
        C="auto",
        mechanism="auto",
        calibration="tight",
        huber_width="auto",
        adjacency="replace-one",
        x_norm=1.0,
        classes=None,
        class_weight=None,
        fit_intercept=True,
        intercept_scaling="auto",
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
        self.huber_width = huber_width
        self.x_norm = x_norm
        self.classes = classes
        self.class_weight = class_weight
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.max_sample_weight = max_sample_weight

    def _loss(self, n_classes, mechanism, rule):
        width = self.huber_width
        number_or_auto(huber_width=width)
        if is_auto(width):
            width = defaults.SHARP_HINGE if mechanism == "output" and n_classes == 2 else 0.5
        between(*_LIMIT_WIDTH, huber_width=width)
        if n_classes == 2:
            return HuberHingeLoss(float(width))
        return SoftmaxLoss(n_classes, margin=1.0, temperature=float(width))
