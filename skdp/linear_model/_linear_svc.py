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
        Budget of one fit.

    delta : float, default=0.0
        0 is pure differential privacy; a positive number, well below one over the number of
        rows, allows Gaussian noise.

    C : float or "auto", default="auto"
        Inverse strength of the penalty as in :class:`~sklearn.svm.LinearSVC` with the hinge loss
        (sum of losses). "auto" follows from public and released numbers: the penalty is stronger
        where rows are few, features are many or epsilon is small, and the gradient mechanism has
        none. The objective mechanism uses a stronger penalty than asked for where the budget does
        not pay for the curvature of the loss. ``C`` times the squared norm of a row, the constant
        feature included, must be between 1e-12 and 1e9, and with the mechanisms "objective" and
        "output" below 2e8 times ``huber_width``.

        What "auto" releases with the objective mechanism and ``delta=0`` for more than two classes
        with an intercept: first the number of rows of each class, for an epsilon of
        ``30 * sqrt(n_classes) / n`` and at most half of it, so that the penalty is around their
        log-odds, times the temperature. Under "add-remove" 2 % of the budget tell the number of
        rows, which rules read; those of the mechanism "output", and of "objective" with a delta,
        do not.

    mechanism : {"auto", "objective", "output", "gradient"}, default="auto"
        "objective" adds a random linear term to the objective, "output" adds noise to the
        minimiser, "gradient" descends along noisy gradients. "auto" is "objective" for
        ``delta=0`` and "gradient" otherwise.

    calibration : {"tight", "jmlr2011"}, default="tight"
        How the objective mechanism finds the size of its noise: "tight" is the rule of this
        package, and "jmlr2011" that of its paper, for two classes and ``delta=0`` only.

    huber_width : float from 0.001 to 1e6 or "auto", default="auto"
        The kink of the hinge is rounded between the margins ``1 - huber_width`` and
        ``1 + huber_width``. Objective perturbation needs the rounding, and the narrower it is the
        more it costs. Output perturbation does not need it, but a solver could not certify the
        minimiser of a loss with a kink. "auto" is 0.05 for the output mechanism with two classes,
        which is close to the plain hinge, and 0.5 otherwise. For more than two classes it is the
        temperature of the softmax that replaces the maximum.

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
        Standard deviations of the noise in ``coef_`` over fits to the same rows, with
        ``mechanism="output"``: see `~skdp.learner.CoefficientNoise`. That of ``x_norm_`` is not
        in them. None otherwise: what is known of them is too far off. Released under
        ``guarantee_``.

    intercept_ : ndarray of shape (1,) or (n_classes,)
        Intercepts. Released under ``guarantee_``.

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
    DPLogisticRegression : Has probabilities.

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

    With more than two classes the loss is a smooth version of the joint hinge of Crammer and
    Singer, released at once for all classes.

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
