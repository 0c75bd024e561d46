"""Decentralised classification with differential privacy."""

from copy import copy
from dataclasses import fields, replace
from functools import wraps

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from skdp._defaults import network as defaults
from skdp._validation import positive_int
from skdp.distributed._fit import advance
from skdp.distributed._paper import PaperAlgorithm, paper_of
from skdp.distributed._rows import clipped_in_l1, regret
from skdp.learner import (
    CallbackSupportMixin,
    LinearPredictions,
    LinkedDocumentation,
    NoisyPredictions,
    StatedGuarantee,
    has_begun,
    with_callbacks,
)

_TOLERANCE_BEST = 1e-3  # of the loss of the best fixed parameters
_MOVED = {
    field.name: "a parameter of paper=PaperAlgorithm(...)" for field in fields(PaperAlgorithm)
}
_MOVED["algorithm"] = "set by paper: None, or a PaperAlgorithm"
_MOVED |= dict.fromkeys(
    ("edge_probability", "topology_seed"), "one of topology=make_topology(...)"
)


def _naming_moved(init):
    """Let a constructor say where a keyword of version 0.1 is now."""

    @wraps(init)
    def checked(self, *args, **options):
        for name in options.keys() & _MOVED.keys():
            raise TypeError(f"{name} is not a parameter since 0.2: it is {_MOVED[name]}.")
        init(self, *args, **options)

    return checked


class DistributedDPClassifier(
    CallbackSupportMixin,
    StatedGuarantee,
    LinearPredictions,
    LinkedDocumentation,
    NoisyPredictions,
    ClassifierMixin,
    BaseEstimator,
):
    """Decentralised linear classifier with differential privacy.

    A network of nodes fits the classifier; each node has its own rows. In each round, a node
    mixes its released parameters with those of its neighbours, computes a noisy gradient on its
    rows at that point, takes a step and broadcasts the result. The whole transcript of all
    broadcasts is private for each row.

    The object ``paper`` has the parameters that only the paper's algorithms use. ``topology``
    defines the links and ``engine`` where nodes run.

    Parameters
    ----------
    epsilon : float, default=1.0
        Total epsilon of one record, or with ``groups`` of one user, for all rounds and passes.

    delta : float, default=0.0
        Total delta. 0 is pure differential privacy. A positive value, well below 1 divided by the
        number of rows, allows Gaussian noise.

    n_nodes : int, default=8
        Number of nodes, at most 1,048,576. All nodes together have at most 134 million parameters.

    topology : str, networkx graph, adjacency matrix, mixing matrices, callable or Topology, \
default="ring"
        See :func:`~skdp.topology.make_topology`, which also makes networks with random link
        failures and random networks with other seeds. The topology must not depend on the data.

    node_names : array-like of shape (n_nodes,), default=None
        Public names of the nodes, in node order, for ``node`` and ``output_node``. None uses the
        labels of a networkx graph, or numbers from 0.

    n_mixings : int, default=1
        Number of exchange-and-mix steps per round. More steps cost messages but no privacy.

    output_node : str or int, default=None
        Name or number of the node whose parameters are ``coef_``. None uses the mean over nodes;
        for sparse models, thresholding follows the mean.

    paper : PaperAlgorithm, default=None
        With None, the nodes take a few noisy gradient steps of the logistic loss on all their
        rows, in coordinates whitened by noisy moments of the rows. A `PaperAlgorithm` selects a
        form of the paper, with its own parameters: other losses, kinds of noise, sparse models,
        batches, steps and passes. `partial_fit` always runs a form of the paper: for None,
        ``PaperAlgorithm()``.

    trust : "nodes" or SecureSums, default="nodes"
        With "nodes", each node adds its own noise to the values it sends. With `SecureSums`, nodes
        send masked numbers of which only sums over all nodes can be read, and each node adds a
        share of the noise. With a positive ``delta`` this is as accurate as one curator, for any
        number of nodes. All nodes have the same model, and ``topology`` only provides their
        names. `SecureSums` requires `fit` with ``paper=None``.

    engine : {"local", "mpi"} or Engine, default="local"
        Where nodes run. "local" simulates the network in this process, which has all rows. With
        "mpi", each process of an MPI job runs some of the nodes and calls `fit` with their rows
        only. A custom engine or an `~skdp.engines.MPIEngine` has its own settings.

    x_norm : float, default=1.0
        Public bound on the Euclidean norm of a row. Rows with larger norm are scaled to it, also
        in prediction.

    x_l1_norm : float, default=None
        Public bound on the l1 norm of a row, to which rows are also scaled. With it, Laplace
        noise may be smaller, for rows that are mostly zeros.

    intercept_scaling : float or "auto", default="auto"
        Value of the constant feature. "auto" is ``0.3 * x_norm``: a small value lets less noise
        in.

    classes : array-like, default=None
        Public list of labels. None uses the labels in ``y`` and treats them as public. Required
        over MPI.

    adjacency : {"replace-one", "add-remove"}, default="replace-one"
        Relation between neighbouring data sets. Node, round and number of rows are public either
        way: with "add-remove" a row is present or is a null row in the same position. With
        ``groups`` this applies to users, and the number of rows of a user is private.

    max_calls_per_user : int, default=1
        Number of calls of `partial_fit` with ``groups`` in which a user's rows count. In later
        calls they keep their position and add nothing. Each call has its part of the budget.
        `fit` uses the whole budget, so users in `fit` add nothing later.

    random_state : None, int, RandomState or Generator, default=None
        None draws the noise from the operating system, in each process. Anything else makes the
        noise reproducible and voids privacy; use it for tests and figures.

    ledger : BudgetLedger or path, default=None
        Ledger charged when a stream begins, before the data are used. Over MPI each process
        charges its ledger for its own rows; processes with a common ledger charge it once. All
        ledgers are checked before any is charged.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels. Public.

    coef_ : ndarray of shape ``(1, n_features_in_)`` or ``(n_classes, n_features_in_)``
        Coefficients, for rows of norm at most ``x_norm_``. Released under ``guarantee_``.

    intercept_ : ndarray of shape (1,) or (n_classes,)
        Intercepts. Released under ``guarantee_``.

    x_norm_ : float
        Norm to which rows are clipped, in fitting and prediction. Public.

    x_l1_norm_ : float or None
        l1 norm to which rows are also scaled. Public.

    node_coef_ : ndarray of shape ``(n_nodes, 1 or n_classes, n_features_in_)``
        Coefficients of each node, for rows like those of ``coef_``; NaN for missing nodes.
        Released under ``guarantee_``.

    node_intercept_ : ndarray of shape (n_nodes, 1 or n_classes)
        Intercepts of each node. Released under ``guarantee_``.

    consensus_distance_ : float
        Root mean square distance of the latest parameters of the nodes from their mean, for rows
        in units of ``x_norm``. Released under ``guarantee_``.

    n_rounds_ : int
        Number of rounds so far. Public.

    n_samples_seen_ : int
        Number of rows so far, each counted once per pass; with ``groups`` the number of users,
        whether or not their rows count. Public.

    topology_ : Topology or MixingSchedule
        Network. ``topology_.spectral_gap()`` is the rate of consensus. Public.

    guarantee_ : ApproxDP
        Guarantee of the transcript of all nodes for a record, or with ``groups`` for a user, with
        its privacy profile. Public.

    n_features_in_ : int
        Number of features. Public.

    feature_names_in_ : ndarray of shape ``(n_features_in_,)``
        Names of the features, if ``X`` has them. Public.

    See Also
    --------
    skdp.linear_model.DPLogisticRegression : Central classifier, which needs less noise.

    Notes
    -----
    **Privacy.** The adversary sees all broadcasts of all nodes. A node mixes its own *released*
    parameters, not its private ones. Given the earlier broadcasts, the point of its gradient is
    therefore a constant. A record enters one gradient per pass, and the transcript over all
    rounds costs as much as one gradient: neither the rounds nor the nodes multiply it, contrary
    to theorem 4 of the paper. This holds against any coalition of the other nodes.

    A node sees its own rows. The guarantee is weaker for a user with several records and for the
    owner of a node: see `user_guarantee` and `node_guarantee`.

    In the paper's algorithm 2, the noise is multiplied by the step twice and vanishes with it.
    The stated guarantee does not hold. Here the noise is ``2 L c(epsilon, delta) / batch_size``.

    With ``paper=None``, `fit` uses a record in several releases of its node: the number of rows
    of each class, second moments of the rows (or with ``delta=0`` their sum), and the sum of
    gradients of each round. Gradients are clipped in coordinates computed from released values.
    Epsilons add up, or squares of the Gaussian mu. The numbers of rows of the nodes are public.
    Nodes forward the noisy moments of all other nodes, so that all have the same mean. This is
    limited to 999 features and to 134 million numbers of all nodes. Above either limit there are
    no moments, and steps are the same in all directions.

    `partial_fit` continues from the released parameters of the nodes. Its rows count as new, with
    their own budget: a record is in the fit or in one call, and ``guarantee_`` covers both.

    With ``groups`` all of this applies to users. All rows of a user are at one node. Each release
    uses the mean over the rows of a user, whose norm is at most that of its terms. The identity
    of users, the order of their first occurrence and their nodes are public. The number and the
    content of their rows are private. A user counts in at most ``max_calls_per_user`` calls,
    which share its budget. The model and its pickles therefore store the IDs of all users and the
    number of calls of each. Copies of the model count separately. Over MPI each process counts
    its own users: a user with rows at two processes counts as two users.

    Not covered: `score` and `regret` on private rows, running times, errors about malformed
    input, and other uses of the same data. Messages over MPI are not encrypted.

    References
    ----------
    Li, Zhou, Xiong, Wang and Wang, "Differentially private distributed online learning", IEEE TKDE
    30(8), 2018. Shamir and Zhang, "Stochastic gradient descent for non-smooth optimization",
    ICML 2013, for the mean in which late rounds weigh more. Bassily, Smith and Thakurta, "Private
    empirical risk minimization", FOCS 2014, for noisy gradient descent.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import normalize
    >>> from skdp.distributed import DistributedDPClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = DistributedDPClassifier(epsilon=4.0, delta=1e-4)
    >>> model = model.fit(normalize(X), y)
    >>> model.node_coef_.shape
    (8, 1, 30)
    >>> print(model.guarantee_.epsilon, model.guarantee_.delta)
    4.0 0.0001
    """

    _report_kind = "network"

    @_naming_moved
    def __init__(
        self,
        epsilon=1.0,
        delta=0.0,
        *,
        n_nodes=int(defaults.N_NODES),
        topology="ring",
        node_names=None,
        n_mixings=1,
        output_node=None,
        paper=None,
        trust="nodes",
        engine="local",
        x_norm=1.0,
        x_l1_norm=None,
        intercept_scaling="auto",
        classes=None,
        adjacency="replace-one",
        max_calls_per_user=1,
        random_state=None,
        ledger=None,
    ):
        self.epsilon, self.delta = epsilon, delta
        self.n_nodes, self.topology, self.node_names = n_nodes, topology, node_names
        self.n_mixings, self.output_node = n_mixings, output_node
        self.paper, self.trust, self.engine = paper, trust, engine
        self.x_norm, self.x_l1_norm = x_norm, x_l1_norm
        self.intercept_scaling = intercept_scaling
        self.classes = classes
        self.adjacency = adjacency
        self.max_calls_per_user = max_calls_per_user
        self.random_state = random_state
        self.ledger = ledger

    def set_params(self, **params):
        """Set parameters. Names such as ``paper__step`` replace ``paper`` by a changed copy.

        Parameters
        ----------
        **params : dict

        Returns
        -------
        self : object
        """
        inner = [name for name in params if name.startswith("paper__")]
        changes = {name.removeprefix("paper__"): params.pop(name) for name in inner}
        super().set_params(**params)
        if changes:
            self.paper = replace(self.paper, **changes)
        return self

    @property
    def _holds_private_numbers(self):
        """Whether it keeps ids of users, for streams."""
        return has_begun(self) and self.guarantee_.unit == "user"

    def _assumptions(self, unit):
        return () if self.trust == "nodes" else (self.trust.assumption(int(self.n_nodes)),)

    def _planned_guarantee(self, n_features):
        target = super()._planned_guarantee(n_features)
        if target.delta == 0.0 or self.paper is not None or self.trust != "nodes":
            return target  # noise in shares has no finer profile
        return replace(target, refined=target.gaussian_target())

    @with_callbacks
    def fit(self, X, y, node=None, groups=None):
        """Fit the model from scratch.

        The paper's form makes ``n_passes`` passes over the rows in the given order.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training rows; over MPI, the rows of the nodes of this process.

        y : array-like of shape (n_samples,)

        node : array-like of int or str, shape (n_samples,), default=None
            Public name of the node that owns each row, or its number unless names are integers.
            None assigns rows to nodes cyclically by position; with ``groups`` it assigns users,
            in the order of first occurrence.

        groups : array-like of shape (n_samples,), default=None
            ID of the user who owns each row. The guarantee is then for users and covers any
            number of rows of one user. None protects rows. All rows of a user must be at one
            node. Over MPI each process has its own users.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If a parameter or the input is invalid, or a user has rows at several nodes.
        BudgetExceededError
            If the charge exceeds the ledger's budget; the old model is kept.
        DistributedError
            If another process has failed.
        """
        return advance(self, X, y, node, groups, self.classes, one_pass=False)

    @with_callbacks
    def partial_fit(self, X, y, node=None, classes=None, groups=None):
        """Continue fitting with one pass over new rows, in the paper's form.

        The last batch of a node may have fewer rows but has the same noise. A row passed again,
        after `fit` or after a failed call, costs its epsilon again. ``guarantee_`` does not
        include that cost.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        y : array-like of shape (n_samples,)

        node : array-like of int or str, shape (n_samples,), default=None
            As for `fit`. None continues the cycle of the last call.

        classes : array-like, default=None
            Public list of labels, required in the first call unless set as a parameter.

        groups : array-like of shape (n_samples,), default=None
            As for `fit`. All calls of a stream must have groups, or none. Rows of users with
            ``max_calls_per_user`` earlier calls add nothing.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            As for `fit`, and if a parameter has changed since the stream began.
        """
        return advance(self, X, y, node, groups, classes, one_pass=True)

    @available_if(lambda self: paper_of(self).loss == "log_loss")
    def predict_proba(self, X):
        """Predict class probabilities, for the logistic loss. This costs no privacy.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return self._probabilities(X)

    @available_if(lambda self: paper_of(self).loss == "log_loss")
    def predict_log_proba(self, X):
        """Predict logarithms of class probabilities.

        Parameters
        ----------
        X
            As for `predict_proba`.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return self._log_probabilities(X)

    def user_guarantee(self, n_records):
        """Return the guarantee for a user with several records.

        Parameters
        ----------
        n_records : int
            Number of records of one user, at any nodes and rounds.

        Returns
        -------
        ApproxDP or GaussianDP

        Raises
        ------
        ValueError
            If the model was fitted with ``groups``: then ``guarantee_`` is for users.
        """
        self._check_stream()
        positive_int(n_records=n_records)
        if self._stream.calls is not None:
            raise ValueError(
                "groups must be None in fit for a guarantee by number of records: with groups, "
                "guarantee_ is for users with any number of records; got groups."
            )
        guarantee = self._stream.of_unit(int(n_records), "user")
        return guarantee.with_caveats(*self.guarantee_.caveats)

    def node_guarantee(self):
        """Return the guarantee for all rows, or users with ``groups``, of the largest node.

        Returns
        -------
        ApproxDP or GaussianDP

        Raises
        ------
        ValueError
            With Gaussian noise in shares, if epsilon is above 100: then no guarantee holds.
        """
        self._check_stream()
        guarantee = self._stream.of_unit(max(int(np.max(self._stream.rows_of)), 1), "node")
        return guarantee.with_caveats(*self.guarantee_.caveats)

    def regret(self, X, y, node=None, *, of=None, tolerance=_TOLERANCE_BEST):
        """Return the regret: losses of the nodes minus those of the best fixed parameters.

        The best parameters are those in the ball. The penalty ``alpha`` is excluded.

        Parameters
        ----------
        X, y, node
            Rows of `fit`, or all rows of `partial_fit` in order if each call filled its batches.
            No guarantee covers a regret on private rows.

        of : str or int, default=None
            Name or number of the node whose points are evaluated on the losses of all nodes, as
            in definition 1 of the paper. None evaluates each node on its own losses.

        tolerance : float, default=1e-3
            Certified accuracy of the best mean loss.

        Returns
        -------
        float

        Raises
        ------
        ValueError
            If ``keep_iterates`` was False, nodes run in several processes, the rows are not
            those of the stream, or the model was fitted with ``groups``.
        """
        self._check_stream()
        if self._stream.calls is not None:
            raise ValueError(
                "groups must be None in fit for a regret, which needs rows; got groups."
            )
        return regret(self, X, y, node, of, tolerance)

    def _check_stream(self):
        check_is_fitted(self)
        if not has_begun(self):
            raise ValueError("This needs the fitted model, not the result of `released`.")

    def released(self):
        """Return a predictor with only released and public numbers.

        With secure sums, its pickle has the same bytes at each site.

        Returns
        -------
        DistributedDPClassifier
            Fitted model without the state of a stream, such as user IDs, and without the ledger,
            the engine and private keys. A call of `partial_fit` begins another stream.
        """
        check_is_fitted(self)
        given = copy(self)
        del given._stream
        given.ledger = given.random_state = None
        given.engine = "local"
        if self.trust != "nodes":
            given.trust = replace(self.trust, private_keys=None)
        return given

    def _clipped_products(self, X):
        if self.x_l1_norm_ is not None:
            X = clipped_in_l1(X, self.x_norm_, self.x_l1_norm_)
        return super()._clipped_products(X)
