"""Private online classification, with one guarantee for an unbounded stream."""

from copy import copy
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from skdp._validation import short_repr
from skdp.kernel._base import KernelFeatures
from skdp.kernel._online._base import UserCalls
from skdp.kernel._online._plan import check_half_life, chunk_plan
from skdp.learner import LinearPredictions, StreamEstimator, with_callbacks
from skdp.learner._streams import has_begun
from skdp.rows._inputs import checked_data, declared_classes, encode_labels


class DPOnlineClassifier(
    UserCalls, KernelFeatures, LinearPredictions, ClassifierMixin, StreamEstimator
):
    """Online logistic regression with differential privacy, for unbounded streams.

    Each call of `partial_fit` releases noisy second moments of the rows of that call, and noisy
    gradients at previously released weights. From 2,000 rows on it makes several releases, each of
    part of the rows, if row positions are public. All calls together, of any number, have the
    guarantee of one, and nothing private is kept between them. How fast old releases are forgotten
    is chosen from released numbers.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of all calls together.

    delta : float, default=0.0
        0 gives pure differential privacy. A positive value, well below one over the number of
        rows, allows Gaussian noise, which is far smaller in this many dimensions.

    kernel : {"linear", "rbf", "laplacian", "matern"}, default="linear"
        "linear" learns on the rows; the others use random features, as for :class:`DPKernelRidge`.

    gamma : float or "auto", default="auto"
        Public, as for :class:`DPKernelRidge`; "auto" depends on the rows of the first call.

    nu : {0.5, 1.5, 2.5}, default=1.5
        Smoothness of the Matérn kernel.

    n_components : int or "auto", default="auto"
        Number of random features; an odd number is rounded up. "auto" depends on the budget: 100
        to 200, and 6 to 40 with ``delta=0``. Not used by "linear".

    orthogonal : bool, default=True
        Whether to draw frequencies in orthogonal groups.

    x_norm : float, default=1.0
        Public bound on the Euclidean norm of a row, for the linear kernel only. Rows with a larger
        norm are scaled down to it.

    classes : array-like, default=None
        Public list of labels. None uses the ``classes`` of the first `partial_fit`, or else the
        labels in the ``y`` of the first `partial_fit` or `fit`, and treats them as public.

    half_life : float or "auto", default="auto"
        Number of calls after which the weight of a release halves; ``float("inf")`` forgets
        nothing. "auto" chooses among 2, 10 and infinity after each call, from released numbers.

    adjacency : {"replace-one", "add-remove"}, default="replace-one"
        Definition of neighbouring streams. With "add-remove" the number of rows of a call is
        private and is released with noise: end calls by the date, never by the number of rows.

    max_calls_per_user : int, default=1
        With ``groups``, the number of calls in which the rows of a user count; the guarantee
        covers that many. In later calls they are left out.

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
        Budget ledger that is charged before the data are used. A stream has one entry, whatever
        its length.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels. Public.

    coef_ : ndarray of shape (1, n_components) or (n_classes, n_components)
        Weights of the features; for the linear kernel these are the columns divided by ``x_norm``.
        Released under ``guarantee_``.

    intercept_ : ndarray of shape (1,) or (n_classes,)
        Intercepts. Released under ``guarantee_``.

    temperature_ : float
        Divisor of the scores that calibrates probabilities, from 0.5 to 2, set from all gradients
        so far. Released under ``guarantee_``.

    half_life_ : float
        Current half-life, in calls; 0 if no model was better than none. Released under
        ``guarantee_``.

    drift_ : float
        Recent reduction in mean log-loss per row from this half-life, relative to the longest
        candidate, estimated from released numbers; 0 if ``half_life`` is a number. Released under
        ``guarantee_``.

    frequencies_ : ndarray of shape ``(n_components / 2, n_features_in_)``
        Frequencies of the features, except for the linear kernel. Public.

    gamma_ : float
        Value of ``gamma`` in use, except for the linear kernel. Public.

    n_samples_seen_ : int
        Number of rows so far, or of users summed over calls; counted with noise under
        "add-remove". Released under ``guarantee_``.

    guarantee_ : ApproxDP
        Joint guarantee of all calls, with its privacy profile. Public.

    n_features_in_ : int
        Number of features. Public.

    feature_names_in_ : ndarray of shape ``(n_features_in_,)``
        Names of the features, if ``X`` has them. Public.

    See Also
    --------
    DPOnlineKernelRegressor : The same for numbers, and the algorithms of the papers.
        Online regression, and the algorithms of the papers.
    skdp.linear_model.DPLogisticRegression : Many passes over the same rows.
        Makes many passes over the same rows.

    Notes
    -----
    **Privacy.** A row is in one call, and the choice of call must not depend on the data. Earlier
    calls do not depend on the row, and later calls depend on it only through its releases. So the
    sequence of all releases, of any length, satisfies the guarantee of one, even if later rows
    depend on earlier releases. The guarantee does not cover rows of other people that are present
    because of this one.

    Without ``groups`` nothing private is stored: the estimator may be pickled, copied and
    published after each call. With ``groups`` the live estimator stores the IDs and the number of
    calls of each user, unless ``user_calls="stated"``; its pickles do not. Only one of several
    copies may continue the stream.

    `score` compares predictions with the given labels, which no guarantee covers.
    `~skdp.metrics.dp_evaluate` scores on private rows.

    References
    ----------
    McSherry, "Privacy integrated queries", SIGMOD 2009, theorem 4.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.kernel import DPOnlineClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-0.5, 0.5, size=(20000, 3))
    >>> y = np.where(X[:, 0] > X[:, 1], "up", "down")
    >>> model = DPOnlineClassifier(epsilon=1.0, delta=1e-6)
    >>> for start in range(0, 20000, 1000):
    ...     part = slice(start, start + 1000)
    ...     model = model.partial_fit(X[part], y[part], classes=["down", "up"])
    >>> model.guarantee_.epsilon
    1.0
    >>> bool(model.score(X, y) > 0.8)  # the data are synthetic
    True
    """

    classes_: np.ndarray

    def __init__(
        self,
        epsilon=1.0,
        delta=0.0,
        *,
        kernel="linear",
        gamma="auto",
        nu=1.5,
        n_components="auto",
        orthogonal=True,
        x_norm=1.0,
        classes=None,
        half_life="auto",
        adjacency="replace-one",
        max_calls_per_user=1,
        user_calls="counted",
        random_state=None,
        ledger=None,
    ):
        self.epsilon, self.delta = epsilon, delta
        self.kernel = kernel
        self.gamma, self.nu = gamma, nu
        self.n_components = n_components
        self.orthogonal = orthogonal
        self.x_norm = x_norm
        self.classes = classes
        self.half_life = half_life
        self.adjacency = adjacency
        self.max_calls_per_user = max_calls_per_user
        self.user_calls = user_calls
        self.random_state = random_state
        self.ledger = ledger

    @with_callbacks
    def partial_fit(self, X, y, classes=None, groups=None):
        """Continue the stream with one release, of these rows only.

        Pass each record once. The choice of rows for a call, and under "replace-one" their number,
        must not depend on the data.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), or source
            Rows of the call, which are read into memory.

        y : array-like of shape (n_samples,) or str
            Labels, or the name of their column.

        classes : array-like, default=None
            Public list of all labels, for the first call. None uses the parameter ``classes``, or
            the labels in ``y``.

        groups : array-like of shape (n_samples,), default=None
            User ID of each row. The guarantee is then for users: it covers all rows of a user,
            however many. Either all calls of a stream have IDs or none has.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If a parameter or the input is invalid, or a parameter has changed since the stream
            began.
        StaleStreamError
            If another copy has continued the stream; `fit` starts a new one.
        BudgetExceededError
            If the ledger cannot cover the charge; the previous model is kept.
        """
        return self._advance(X, y, groups, classes=classes)

    def released(self):
        """Return a predictor that contains released numbers only and can be published.

        Returns
        -------
        DPOnlineClassifier
            Fitted, without the stream and its IDs; `partial_fit` starts a new stream.
        """
        check_is_fitted(self)
        given = copy(self)
        if has_begun(given):
            del given._stream
        given.ledger = given.random_state = None
        return given

    def decision_function(self, X):
        """Return the score of the second class, or of each class if there are more than two.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
        """
        return super().decision_function(X)

    def _scores(self, X):
        return self._predictor.answer(X)

    def predict_proba(self, X):
        """Return the probability of each class, from scores divided by ``temperature_``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return self._probabilities(X)

    def predict_log_proba(self, X):
        """Return the logarithm of `predict_proba`.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return self._log_probabilities(X)

    @property
    def _temperature(self):  # type: ignore[override]
        return self.temperature_

    # Of records that are added or removed; rows have no places beside the call that they are in.
    _has_time_stamps = False

    # However many calls there are, the guarantee stays what it was after the first.
    _costs_once = True

    @property
    def _holds_private_numbers(self):  # type: ignore[override]
        """Whether it keeps ids of users."""
        release: Any = self._stream.release if has_begun(self) else None
        return release is not None and release.keeps_ids

    def check_parameters(self):
        """Check the parameters, before the rows are looked at."""
        self._check_features()
        self._n_components(1, 2)
        self._check_user_calls()
        check_half_life(self)

    def begin(self, public):
        """The release that the parameters ask for."""
        return chunk_plan(self, public)

    def learn(self, release, fitted):
        """Store what predicts, and public numbers."""
        self._store(
            **fitted,
            classes_=self.classes_,
            gamma_=release.gamma,
            temperature_=1.0 / release.found.length,
            n_samples_seen_=release.time,
        )

    def _read(self, X, y, *, reset, counts, classes=None):
        X, y = checked_data(self, X, y, reset=reset, counts=counts, **self._fewest(reset))
        known = self.classes if reset else self.classes_
        both = classes is not None and known is not None
        if both and not np.array_equal(declared_classes(classes), declared_classes(known)):
            raise ValueError(
                "classes must be the same in all calls of a stream and match the parameter; got "
                f"{short_repr(classes)}."
            )
        found, codes = encode_labels(y, classes if known is None else known)
        self.classes_ = found
        return X, codes
