"""Private classification by nodes that exchange parameters with their neighbours."""

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
_MOVED["algorithm"] = "told by paper: None, or a PaperAlgorithm"
_MOVED |= dict.fromkeys(
    ("edge_probability", "topology_seed"), "one of topology=make_topology(...)"
)


def _naming_moved(init):
    """Let a constructor say where a keyword of version 0.1 is now."""

    @wraps(init)
    def checked(self, *args, **options):
        for name in options.keys() & _MOVED.keys():
            raise TypeError(f"{name} is no parameter of its own since 0.2, but {_MOVED[name]}.")
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
    """Linear classifier that a network of nodes learns together, each from its own rows.

    In a round each node mixes the released parameters of its neighbours with its own released
    ones, takes a noisy gradient on its rows at that point, steps, and broadcasts. The whole
    transcript of all broadcasts is private for each row.

    Parameters of the network and of the rows are here. What only the paper's algorithms read is
    one object, ``paper``; how links behave is a matter of ``topology``, and where nodes run one of
    ``engine``.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget of one record, or with ``groups`` of one user, for all rounds and passes together.

    delta : float, default=0.0
        0 is pure differential privacy; a positive number, well below one over the number of rows,
        allows Gaussian noise.

    n_nodes : int, default=8
        Number of nodes, at most 1,048,576. All nodes together have at most 134 million parameters.

    topology : str, networkx graph, adjacency matrix, mixing matrices, callable or Topology, \
default="ring"
        See :func:`~skdp.topology.make_topology`, which also makes networks whose links fail at
        random, and random ones of another seed. It must not depend on the data.

    node_names : array-like of shape (n_nodes,), default=None
        Public names of the nodes, in their order, for ``node`` and ``output_node``. None takes
        the labels of a networkx graph, and else numbers from 0.

    n_mixings : int, default=1
        How often nodes exchange and mix what they released in a round, which costs messages and
        no privacy.

    output_node : str or int, default=None
        Node, by name or number, whose parameters are ``coef_``; None takes the mean over nodes,
        which for sparse ones is thresholded after the mean is taken.

    paper : PaperAlgorithm, default=None
        None lets the nodes take few noisy gradient steps of the logistic loss on all their rows,
        in coordinates in which the rows spread equally in all directions, as far as noisy moments
        of the rows tell. A `PaperAlgorithm` is a form of the paper, with all that only those read:
        other losses, kinds of noise, sparse models, batches, steps and passes. `partial_fit`
        always runs a form of the paper; with None that of ``PaperAlgorithm()``.

    trust : "nodes" or SecureSums, default="nodes"
        "nodes" lets each node add noise of its own to what it sends. With `SecureSums` nodes send
        masked numbers of which only sums over all nodes can be read, and each adds a share of the
        noise: with a ``delta`` as accurate as one curator, for any number of nodes. All know the
        same model, and ``topology`` says their names only. For `fit` with ``paper=None``.

    engine : {"local", "mpi"} or Engine, default="local"
        Who sees rows: "local" simulates the network in this process, which has all of them. With
        "mpi" each process of an MPI job runs some of the nodes and calls `fit` with their rows
        only. An engine of your own, or an `~skdp.engines.MPIEngine`, carries its own settings.

    x_norm : float, default=1.0
        Public bound on the Euclidean norm of a row; longer rows are scaled back, also to be
        predicted.

    x_l1_norm : float, default=None
        Public bound on the sum of the absolute values of a row, to which longer rows are scaled
        back as well. With it Laplace noise may be the quieter: for rows that are mostly zeros.

    intercept_scaling : float or "auto", default="auto"
        Value of the constant feature. "auto" is ``0.3 * x_norm``: a small one lets less noise in.

    classes : array-like, default=None
        Public list of labels. None takes the labels present and treats them as public; it is
        needed over MPI.

    adjacency : {"replace-one", "add-remove"}, default="replace-one"
        Which data sets are neighbours. Node, round and number of rows are public either way: with
        "add-remove" a row is there or is a null row, which keeps its place. With ``groups`` that
        is said of users, and how many rows one has is private.

    max_calls_per_user : int, default=1
        Calls of `partial_fit` with ``groups`` in which a user's rows count; later ones keep the
        user's place, and add nothing. Each call has its part of the budget. `fit` takes all of
        it, so that whoever was in `fit` adds nothing later.

    random_state : None, int, RandomState or Generator, default=None
        None draws the noise from the operating system, in each process. Anything else makes it
        reproducible and void of privacy, for tests and figures.

    ledger : BudgetLedger or path, default=None
        Budget that is charged when a stream begins, before the data are used. Over MPI each
        process charges the one it has, for its own rows; processes that share one charge it once.
        No ledger is charged before all of them have been asked whether they can pay.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels. Public.

    coef_ : ndarray of shape ``(1, n_features_in_)`` or ``(n_classes, n_features_in_)``
        Coefficients, for rows no longer than ``x_norm_``. Released under ``guarantee_``.

    intercept_ : ndarray of shape (1,) or (n_classes,)
        Intercepts. Released under ``guarantee_``.

    x_norm_ : float
        Norm to which rows are clipped, in `fit` and when they are predicted. Public.

    x_l1_norm_ : float or None
        Bound on the sum of the absolute values of a row, to which they are scaled back as well.
        Public.

    node_coef_ : ndarray of shape ``(n_nodes, 1 or n_classes, n_features_in_)``
        Coefficients of each node, for rows as those of ``coef_``; NaN for nodes that are gone.
        Released under ``guarantee_``.

    node_intercept_ : ndarray of shape (n_nodes, 1 or n_classes)
        Intercepts of each node. Released under ``guarantee_``.

    consensus_distance_ : float
        Root mean square distance of the latest parameters of the nodes from their mean, for rows
        in units of ``x_norm``. Released under ``guarantee_``.

    n_rounds_ : int
        Rounds so far. Public.

    n_samples_seen_ : int
        Rows so far, each counted once a pass; with ``groups`` users, whether or not what they
        bring counts. Public.

    topology_ : Topology or MixingSchedule
        The network; ``topology_.spectral_gap()`` says how fast nodes agree. Public.

    guarantee_ : ApproxDP
        What the transcript of all nodes promises to a record, or with ``groups`` to a user, with
        its privacy profile. Public.

    n_features_in_ : int
        Number of features. Public.

    feature_names_in_ : ndarray of shape ``(n_features_in_,)``
        Names of the features, if ``X`` has them. Public.

    See Also
    --------
    skdp.linear_model.DPLogisticRegression : A curator that has all rows needs less noise.

    Notes
    -----
    **Privacy.** The adversary sees all broadcasts of all nodes. Given those before, the point at
    which a node takes its gradient is a constant, as the node mixes its own *released* parameters
    and not its private ones. A record enters one gradient a pass, and the transcript over all
    rounds costs what one gradient costs: neither the rounds nor the nodes multiply it, contrary to
    theorem 4 of the paper. This holds against any coalition of the other nodes.

    A node sees its own rows. The guarantee of who contributed several records, or owns a node, is
    weaker: see `user_guarantee` and `node_guarantee`.

    The noise of the paper's algorithm 2 is multiplied by the step twice and vanishes with it; the
    guarantee it states does not hold. Here it is ``2 L c(epsilon, delta) / batch_size``.

    With ``paper=None`` a record is, in `fit`, in several releases of its node: the number of rows
    of each class, second moments of the rows or with ``delta=0`` their sum, and the sum of
    gradients of each round. Each gradient is capped in coordinates that follow from released
    values, and epsilons add up, or squares of the Gaussian mu. Numbers of rows of nodes are
    public. Nodes pass on the noisy moments of all others, so that all have the same mean: at most
    999 features, and at most 134 million numbers of all nodes;
    with more of either there are none, and steps are the same in all directions.

    `partial_fit` goes on from the nodes' released parameters. Its rows are taken for new ones with
    a budget of their own: a record is in the fit or in one call, and ``guarantee_`` covers both.

    With ``groups`` all of that is said of users. The rows of a user are at one node, and in each
    of its releases a user has the mean of what its rows have: a mean of vectors is no longer than
    they are. Who the users are, in which order they first come and at which nodes is public; how
    many rows each has, and what is in them, is not. A user comes in ``max_calls_per_user`` calls
    at most, which share its budget. For that the model keeps the ids of all users, and how often
    each has come; so do its pickles. Copies of the model count apart. Over MPI each process counts
    its own users: whoever has rows at two processes counts as two users.

    Not covered: `score` and `regret` on private rows, the time that a call takes, errors about
    malformed input, and other uses of the same data. Messages over MPI are not encrypted.

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
        """Set parameters, also ``paper__step`` and its like: ``paper`` is then a changed copy.

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
        """Start afresh, from all rows.

        The paper's form runs ``n_passes`` over the rows in the given order.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Over MPI, the rows of the nodes of this process.

        y : array-like of shape (n_samples,)

        node : array-like of int or str, shape (n_samples,), default=None
            Public name of the node that owns each row, or unless names are integers its number.
            None gives the rows to the nodes in turn, by position; with ``groups`` the users, in
            the order in which they first come.

        groups : array-like of shape (n_samples,), default=None
            Id of the user who owns each row. The guarantee is then for users: it covers all rows
            of one, however many. None protects rows.
            All rows of a user are at one node. Over MPI each process has users of its own.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If a parameter or the input is invalid, or a user has rows at several nodes.
        BudgetExceededError
            If the ledger cannot pay; the old model stays.
        DistributedError
            If another process has failed.
        """
        return advance(self, X, y, node, groups, self.classes, one_pass=False)

    @with_callbacks
    def partial_fit(self, X, y, node=None, classes=None, groups=None):
        """Go on with one pass over new rows in the paper's form, from whatever was fitted before.

        The last batch of a node may have fewer rows, and has as much noise. A row that comes
        again, after `fit` or after a call that failed half way, costs its epsilon again, which
        ``guarantee_`` does not count.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        y : array-like of shape (n_samples,)

        node : array-like of int or str, shape (n_samples,), default=None
            As for `fit`; None goes on in turn where the last call ended.

        classes : array-like, default=None
            Public list of labels, for the first call unless the parameter has it.

        groups : array-like of shape (n_samples,), default=None
            As for `fit`. All calls of a stream have groups, or none has. Rows of users who
            have come in ``max_calls_per_user`` calls add nothing.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            As `fit`, and if a parameter has changed since the stream began.
        """
        return advance(self, X, y, node, groups, classes, one_pass=True)

    @available_if(lambda self: paper_of(self).loss == "log_loss")
    def predict_proba(self, X):
        """Probability of each class, for the logistic loss; costs no privacy.

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
        """Logarithms of `predict_proba`.

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
        """Guarantee for a user who contributed several records.

        Parameters
        ----------
        n_records : int
            Number of records of one user, at any nodes and in any rounds.

        Returns
        -------
        ApproxDP or GaussianDP

        Raises
        ------
        ValueError
            If the model was fitted with ``groups``: ``guarantee_`` is for users then.
        """
        self._check_stream()
        positive_int(n_records=n_records)
        if self._stream.calls is not None:
            raise ValueError(
                "groups must be None in fit for a guarantee by the number of records: with "
                "groups guarantee_ is for users, however many records they have; got groups."
            )
        guarantee = self._stream.of_unit(int(n_records), "user")
        return guarantee.with_caveats(*self.guarantee_.caveats)

    def node_guarantee(self):
        """Guarantee for all rows of the node that has most rows, or users if it has groups.

        Returns
        -------
        ApproxDP or GaussianDP

        Raises
        ------
        ValueError
            With Gaussian noise in shares, if epsilon is above 100: nothing is promised then.
        """
        self._check_stream()
        guarantee = self._stream.of_unit(max(int(np.max(self._stream.rows_of)), 1), "node")
        return guarantee.with_caveats(*self.guarantee_.caveats)

    def regret(self, X, y, node=None, *, of=None, tolerance=_TOLERANCE_BEST):
        """Losses at the points of the nodes, minus those of the best fixed parameters in the ball.

        The penalty ``alpha`` is left out of both.

        Parameters
        ----------
        X, y, node
            The rows that `fit` has seen, or all those of `partial_fit` in their order if each call
            filled its batches. No guarantee covers a regret on private rows.

        of : str or int, default=None
            Node, by name or number, whose points are compared by the losses of all nodes, as in
            definition 1 of the paper. None compares the points of each node by its own losses.

        tolerance : float, default=1e-3
            Certified accuracy of the best mean loss.

        Returns
        -------
        float

        Raises
        ------
        ValueError
            If ``keep_iterates`` was False, nodes are spread over processes, the rows are not
            those of the stream, or it was fitted with ``groups``.
        """
        self._check_stream()
        if self._stream.calls is not None:
            raise ValueError(
                "groups must be None in fit for a regret, which is by rows; got groups."
            )
        return regret(self, X, y, node, of, tolerance)

    def _check_stream(self):
        check_is_fitted(self)
        if not has_begun(self):
            raise ValueError("What `released` returned cannot say that: ask the fitted model.")

    def released(self):
        """Return a predictor that holds released and public numbers only.

        With secure sums its pickle has the same bytes at each site.

        Returns
        -------
        DistributedDPClassifier
            Fitted, without what a stream keeps, such as ids of users, and without the ledger, the
            engine and private keys. A call of `partial_fit` begins another stream.
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
