"""Private online classification, with one guarantee for a stream without end."""

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
    """Online logistic regression with differential privacy, for streams without end.

    Each call of `partial_fit` is one release, of the rows of that call alone: their second
    moments, and their gradients at weights that were released before, both with noise. Of 2,000
    rows and more there are several, each of a part of the rows, where these have public places.
    All else follows from what was released. So the guarantee of all calls together is that of one,
    however many there are, and nothing private is kept between them. What is forgotten, and how
    fast, is chosen from released numbers.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget of all calls together.

    delta : float, default=0.0
        0 is pure differential privacy; a positive number, well below one over the number of
        rows, allows Gaussian noise, which is far smaller in as many dimensions as here.

    kernel : {"linear", "rbf", "laplacian", "matern"}, default="linear"
        "linear" learns on the rows, the others on random features, as for :class:`DPKernelRidge`.

    gamma : float or "auto", default="auto"
        Public, as for :class:`DPKernelRidge`; "auto" goes by the rows of the first call.

    nu : {0.5, 1.5, 2.5}, default=1.5
        Smoothness of the Matérn kernel.

    n_components : int or "auto", default="auto"
        Number of random features; an odd number is rounded up. "auto" is 100 to 200 by the
        budget, and 6 to 40 with ``delta=0``. Not used by "linear".

    orthogonal : bool, default=True
        Draw frequencies in orthogonal groups.

    x_norm : float, default=1.0
        Public bound on the Euclidean norm of a row, for the linear kernel only. Longer rows are
        scaled back.

    classes : array-like, default=None
        Public list of labels. None takes those that the first `partial_fit` is given, or else the
        labels present in its ``y``, or in that of `fit`, and treats them as public.

    half_life : float or "auto", default="auto"
        After how many calls what was released counts half; ``float("inf")`` forgets nothing.
        "auto" chooses among 2, 10 and infinity after each call, by released numbers.

    adjacency : {"replace-one", "add-remove"}, default="replace-one"
        Which streams are neighbours. With "add-remove" the number of rows of a call is
        private, and is released with noise: end calls by the date, never by the number of rows.

    max_calls_per_user : int, default=1
        With ``groups``, the number of calls in which rows of a user count; the guarantee covers
        that many. In later calls they are left out.

    user_calls : {"counted", "stated"}, default="counted"
        How ``max_calls_per_user`` is kept to. "counted" keeps the ids of users in the process in
        which the stream began, and leaves out who comes too often; no pickle has them, and what
        is read from one elsewhere cannot go on. "stated" keeps none: whoever calls leaves those
        users out, and ``guarantee_`` has that as a caveat.

    random_state : None, int, RandomState or Generator, default=None
        None draws the noise from the operating system. Anything else makes it reproducible
        and void of privacy, for tests and figures. Frequencies have a stream of their own.

    ledger : BudgetLedger or path, default=None
        Budget that is charged before the data are used. A stream has one entry, whatever its
        length.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels. Public.

    coef_ : ndarray of shape (1, n_components) or (n_classes, n_components)
        Weights of the features; of the linear kernel these are the columns of rows over
        ``x_norm``. Released under ``guarantee_``.

    intercept_ : ndarray of shape (1,) or (n_classes,)
        Released under ``guarantee_``.

    temperature_ : float
        What scores are divided by for probabilities, from 0.5 to 2: what calibrates them by all
        gradients so far. Released under ``guarantee_``.

    half_life_ : float
        Half-life in use, in calls; 0 where no model was better than none. Released under
        ``guarantee_``.

    drift_ : float
        How much lower the log-loss of a row has been lately with this half-life than with the
        longest of those that are compared, as released numbers tell: 0 where one is stated.
        Released under ``guarantee_``.

    frequencies_ : ndarray of shape ``(n_components / 2, n_features_in_)``
        Frequencies of the features, except for the linear kernel. Public.

    gamma_ : float
        Width of the kernel, except for the linear one. Public.

    n_samples_seen_ : int
        Rows so far, or users of each call; under "add-remove" they are counted with noise.
        Released under ``guarantee_``.

    guarantee_ : ApproxDP
        What all calls promise together, with its privacy profile. Public.

    n_features_in_ : int
        Number of features. Public.

    feature_names_in_ : ndarray of shape ``(n_features_in_,)``
        Names of the features, if ``X`` has them. Public.

    See Also
    --------
    DPOnlineKernelRegressor : The same for numbers, and the algorithms of the papers.
    skdp.linear_model.DPLogisticRegression : Many passes over the same rows.

    Notes
    -----
    **Privacy.** A row is in one call, which must not depend on the data. Calls before it do not
    know of it, and those after it know what its own released: so the sequence of all releases,
    without end, satisfies the guarantee of one, also where later rows depend on earlier
    releases. It does not cover rows of other people that are there because this one was.

    Without ``groups`` nothing private is kept: the estimator may be pickled, copied and published
    after each call. With them the living estimator keeps the ids, and in how many calls each has
    come, unless ``user_calls="stated"``; its pickles do not.
    Of several copies one may go on, as for all streams.

    `score` compares predictions with labels that the caller passes, which no guarantee covers.
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
    >>> bool(model.score(X, y) > 0.8)  # made-up rows are public
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
        """Go on with the stream: one release, of these rows alone.

        Each record may pass once. Which rows a call has, and under "replace-one" how many, must
        not depend on the data.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), or source
            The rows of a call are read into memory.

        y : array-like of shape (n_samples,) or str
            Labels, or the name of their column.

        classes : array-like, default=None
            Public list of all labels, for the first call. None takes the parameter of the
            class, or the labels present in ``y``.

        groups : array-like of shape (n_samples,), default=None
            Id of the user who owns each row. The guarantee is then for users: it covers all rows
            of one, however many. All calls of a stream have them, or none has.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If a parameter or the input is invalid, or a parameter has changed since the stream
            began.
        StaleStreamError
            If another copy of the stream has gone on; `fit` starts afresh.
        BudgetExceededError
            If the ledger cannot pay; the old model stays.
        """
        return self._advance(X, y, groups, classes=classes)

    def released(self):
        """Return a predictor that holds released numbers only, and can be given away.

        Returns
        -------
        DPOnlineClassifier
            Fitted, without the stream and its ids: a call of `partial_fit` begins another stream.
        """
        check_is_fitted(self)
        given = copy(self)
        if has_begun(given):
            del given._stream
        given.ledger = given.random_state = None
        return given

    def decision_function(self, X):
        """Score of each sample: of the second class, or of every class if there are more.

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
        """Probability of each class, by scores over ``temperature_``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return self._probabilities(X)

    def predict_log_proba(self, X):
        """Logarithms of `predict_proba`.

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
                "classes must be the same in all calls of a stream, and as the parameter; got "
                f"{short_repr(classes)}."
            )
        found, codes = encode_labels(y, classes if known is None else known)
        self.classes_ = found
        return X, codes
