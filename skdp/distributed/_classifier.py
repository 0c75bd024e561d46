"""Private classification by nodes that exchange parameters with their neighbours."""

import numpy as np
from scipy.special import expit, softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from skdp._validation import positive_int
from skdp.distributed._agreement import Together, asked, engine_of, is_first_with
from skdp.distributed._plan import Plan, check_parameters
from skdp.distributed._progress import CallbackSupportMixin, Progress, with_callbacks
from skdp.distributed._regret import regret
from skdp.distributed._rows import common_classes, owners_of, validated
from skdp.distributed._stream import GossipStream
from skdp.estimators import (
    LinearPredictions,
    LinkedDocumentation,
    NoisyPredictions,
    StatedGuarantee,
    charge,
    has_begun,
    ledger_of,
    unchanged_on_error,
)

__all__ = ["DistributedDPClassifier"]


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
    ones, takes a noisy gradient on its next rows at that point, projects, and broadcasts. The
    whole transcript of all broadcasts is private for each row.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget of one record, for all rounds and passes together.

    delta : float, default=0.0
        0 is pure differential privacy, algorithm 1 of the paper; a positive number, well below one
        over the number of rows, allows Gaussian noise, algorithm 2 with its constant corrected.

    n_nodes : int, default=8
        At most 1,048,576, and 134 million parameters of all nodes together.

    topology : str, networkx graph, adjacency matrix or Topology, default="ring"
        See :func:`~skdp.topology.make_topology`. It must not depend on the data.

    edge_probability : float in (0, 1], default=1.0
        Chance of each link to be up in a round. Weights are those of Metropolis and Hastings, made
        anew in each round and doubly stochastic.

    topology_seed : int, default=0
        Public seed of random graphs and of links that are up.

    loss : {"hinge", "log_loss", "huber_hinge"}, default="hinge"
        With several classes the loss of Crammer and Singer, the multinomial logistic loss, and a
        smooth version of the former.

    noise : {"auto", "k_norm", "laplace", "gaussian"}, default="auto"
        "auto" is the quieter of K-norm and Gaussian noise. "laplace" is that of the paper, with
        twice the energy of "k_norm" and the same guarantee.

    alpha : float, default=0.0
        Strength of the penalty ``alpha / 2 ||w||^2`` of the mean loss, intercept included. If
        positive, steps are ``1 / (alpha t)`` unless ``step`` is given.

    sparsity : float or "auto", default=0.0
        If not 0, algorithm 3: gradients are summed up, and taken at soft-thresholded points, with
        this times the step as threshold. "auto" is the standard deviation of a coordinate of the
        noise. Sums are averaged, over rounds and for ``coef_`` over nodes too, and then
        thresholded with the last step, so that ``coef_`` and ``node_coef_`` have zeros.

    batch_size : int, default=1
        Rows of a node in a round, algorithm 4. The noise of a round's gradient is divided by it.

    step : float or "auto", default="auto"
        The step in round t is this over ``sqrt(t)``. "auto" is ``diameter / (sqrt(2) G)`` with the
        diameter of the ball and the root mean square norm G of a noisy gradient, where the noise
        counts as far as it remains in the mean over all nodes: a rule of thumb.

    radius : float, default=20.0
        Largest norm of the parameters of a node, for rows in units of ``x_norm``.

    average : {True, "uniform", False}, default=True
        Which of the released parameters to predict with: a mean in which round t weighs
        ``t^3``, that of theorem 9 in which rounds weigh the same, or the last.

    n_passes : int, default=1
        Passes of `fit` over the rows. The budget covers all: each pass has one part in
        ``n_passes`` of epsilon, or in its square root of the Gaussian ``mu``.

    output_node : int, default=None
        Node whose parameters are ``coef_``; None takes the mean over nodes, which for sparse ones
        is thresholded after the mean is taken.

    huber_width : float, default=0.5
        Half-width of the smoothed kink of "huber_hinge".

    engine : {"local", "mpi"} or Engine, default="local"
        "local" simulates the network in this process. With "mpi" each process of an MPI job runs
        some of the nodes and calls `fit` with their rows only.

    x_norm : float, default=1.0
        Public bound on the Euclidean norm of a row; longer ones are scaled back, to predict too.

    classes : array-like, default=None
        Public list of labels. None takes the labels present and treats them as public; it is
        needed over MPI.

    adjacency : {"replace-one", "add-remove"}, default="replace-one"
        Which data sets are neighbours. Node, round and number of rows are public either way: with
        "add-remove" a row is there or is a null row, which keeps its place.

    keep_iterates : bool, default=False
        Whether to keep the points of all rounds, for `regret`.

    random_state : None, int, RandomState or Generator, default=None
        None draws the noise from the operating system, in each process. Anything else makes it
        reproducible and void of privacy, for tests and figures.

    ledger : BudgetLedger, default=None
        Budget that is charged when a stream begins, before the data are used. Over MPI each
        process charges the one it has, for its own rows; processes that share one charge it once.
        Nobody is charged before the ledgers of all have been asked.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels. Public.

    coef_ : ndarray of shape (1, `n_features_in_`) or (n_classes, `n_features_in_`)
        Coefficients, for rows no longer than ``x_norm_``. Released under ``guarantee_``.

    intercept_ : ndarray of shape (1,) or (n_classes,)
        Intercepts. Released under ``guarantee_``.

    x_norm_ : float
        Norm to which rows were clipped by `fit`, and are when they are predicted. Public.

    node_coef_ : ndarray of shape (n_nodes, 1 or n_classes, `n_features_in_`)
        Coefficients of each node, for rows as those of ``coef_``. Released under ``guarantee_``.

    node_intercept_ : ndarray of shape (n_nodes, 1 or n_classes)
        Intercepts of each node. Released under ``guarantee_``.

    consensus_distance_ : float
        Root mean square distance of the latest parameters of the nodes from their mean, for rows
        in units of ``x_norm``. Released under ``guarantee_``.

    n_rounds_ : int
        Rounds so far. Public.

    n_samples_seen_ : int
        Rows so far, each counted once a pass. Public.

    topology_ : Topology
        The network; ``topology_.spectral_gap()`` says how fast nodes agree. Public.

    guarantee_ : ApproxDP
        What the transcript of all nodes promises to a record, with its privacy profile. Public.

    n_features_in_ : int
        Number of features. Public.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
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

    A node sees its own rows. Who contributed several records, or owns a node, has less:
    see `user_guarantee` and `node_guarantee`.

    The noise of the paper's algorithm 2 is multiplied by the step twice and vanishes with it; the
    guarantee it states does not hold. Here it is ``2 L c(epsilon, delta) / batch_size``.

    Not covered: `score` and `regret` on private rows, the time that a call takes, errors about
    malformed input, and other uses of the same data. Messages over MPI are not encrypted.

    References
    ----------
    Li, Zhou, Xiong, Wang and Wang, "Differentially private distributed online learning", IEEE TKDE
    30(8), 2018. Shamir and Zhang, "Stochastic gradient descent for non-smooth optimization",
    ICML 2013, for the mean in which late rounds weigh more.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import normalize
    >>> from skdp.distributed import DistributedDPClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = DistributedDPClassifier(epsilon=4.0, delta=1e-4, batch_size=71, n_passes=10)
    >>> model = model.fit(normalize(X), y)
    >>> model.node_coef_.shape
    (8, 1, 30)
    >>> print(model.guarantee_.epsilon, model.guarantee_.delta)
    4.0 0.0001
    """

    def __init__(
        self,
        epsilon=1.0,
        delta=0.0,
        *,
        n_nodes=8,
        topology="ring",
        edge_probability=1.0,
        topology_seed=0,
        loss="hinge",
        noise="auto",
        alpha=0.0,
        sparsity=0.0,
        batch_size=1,
        step="auto",
        radius=20.0,
        average=True,
        n_passes=1,
        output_node=None,
        huber_width=0.5,
        engine="local",
        x_norm=1.0,
        classes=None,
        adjacency="replace-one",
        keep_iterates=False,
        random_state=None,
        ledger=None,
    ):
        self.epsilon, self.delta = epsilon, delta
        self.n_nodes = n_nodes
        self.topology, self.topology_seed = topology, topology_seed
        self.edge_probability = edge_probability
        self.loss, self.noise = loss, noise
        self.alpha = alpha
        self.sparsity = sparsity
        self.batch_size = batch_size
        self.step = step
        self.radius = radius
        self.average = average
        self.n_passes = n_passes
        self.output_node = output_node
        self.huber_width = huber_width
        self.engine = engine
        self.x_norm = x_norm
        self.classes = classes
        self.adjacency = adjacency
        self.keep_iterates = keep_iterates
        self.random_state = random_state
        self.ledger = ledger

    @with_callbacks
    def fit(self, X, y, node=None):
        """Start afresh, and run ``n_passes`` over the rows in the given order.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Over MPI, the rows of the nodes of this process.

        y : array-like of shape (n_samples,)

        node : array-like of int of shape (n_samples,), default=None
            Public number of the node that owns each row. None gives the rows to the nodes in turn,
            by position.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If a parameter or the input is invalid.
        BudgetExceededError
            If the ledger cannot pay; the old model stays.
        DistributedError
            If another process has failed.
        """
        return self._advance(X, y, node, self.classes, fresh=True)

    @available_if(lambda self: self.n_passes == 1)
    @with_callbacks
    def partial_fit(self, X, y, node=None, classes=None):
        """Go on with the stream, with one pass over new rows; for ``n_passes=1`` only.

        A node whose rows do not fill its last batch takes that with fewer, and as much noise. A
        row that comes again, after `fit` or after a call that failed half way, costs its epsilon
        again, which nothing counts.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        y : array-like of shape (n_samples,)

        node : array-like of int of shape (n_samples,), default=None
            As for `fit`; None goes on in turn where the last call ended.

        classes : array-like, default=None
            Public list of labels, for the first call unless the parameter has it.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            As `fit`, and if a parameter has changed since the stream began.
        """
        return self._advance(X, y, node, classes, fresh=not has_begun(self))

    @available_if(lambda self: self.loss == "log_loss")
    def predict_proba(self, X):
        """Probability of each class, with ``loss="log_loss"`` only; costs no privacy.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        scores = self.decision_function(X)
        if scores.ndim == 2:
            return softmax(scores, axis=1)
        return np.stack([expit(-scores), expit(scores)], axis=1)

    def user_guarantee(self, n_records):
        """Guarantee for a user who contributed several records.

        Parameters
        ----------
        n_records : int
            Of one user, at any nodes and in any rounds.

        Returns
        -------
        ApproxDP or GaussianDP
        """
        check_is_fitted(self)
        positive_int(n_records=n_records)
        plan = self._stream.plan
        guarantee = plan.release.of_unit(int(n_records), plan.update.batch_size, "user")
        return guarantee.with_caveats(*self.guarantee_.caveats)

    def node_guarantee(self):
        """Guarantee for all rows of the node that has most.

        Returns
        -------
        ApproxDP or GaussianDP
        """
        check_is_fitted(self)
        plan = self._stream.plan
        most = int(np.max(self._stream.rows_of)) // plan.release.n_passes
        guarantee = plan.release.of_unit(max(most, 1), plan.update.batch_size, "node")
        return guarantee.with_caveats(*self.guarantee_.caveats)

    def regret(self, X, y, node=None, *, of=None, tolerance=1e-3):
        """Losses at the points of the nodes, minus those of the best fixed parameters in the ball.

        The penalty ``alpha`` is left out of both.

        Parameters
        ----------
        X, y, node
            The rows that `fit` has seen, or all those of `partial_fit` in their order if each call
            filled its batches. Nothing covers a regret on private rows.

        of : int, default=None
            Node whose points are held against the losses of all nodes, as in definition 1 of the
            paper. None holds each node's points against its own losses.

        tolerance : float, default=1e-3
            Certified accuracy of the best mean loss.

        Returns
        -------
        float

        Raises
        ------
        ValueError
            If ``keep_iterates`` was False, nodes are spread over processes, or the rows are not
            those of the stream.
        """
        check_is_fitted(self)
        return regret(self, X, y, node, of, tolerance)

    def _advance(self, X, y, node, classes, *, fresh):
        engine = engine_of(self.engine)
        with Together(engine):
            context = self._init_callback_context(max_subtasks=None)
            classes = common_classes(classes, self.classes if fresh else self.classes_)
        # Check, validate, plan and agree; open, ask and charge; release and store.
        with unchanged_on_error(self):
            with Together(engine) as everyone:
                check_parameters(self)
                X, codes, classes = validated(self, X, y, classes, engine, fresh)
                plan = Plan.of(self, classes, X.shape[1]) if fresh else self._stream.plan_of(self)
                if engine.is_distributed:
                    n_rounds = 0 if fresh else self._stream.time
                    everyone.token = plan.token(self, len(codes), n_rounds)
            engine.open(plan.topology, plan.size)
            try:
                stream = GossipStream.begin(plan, engine.mine) if fresh else self._stream
                with Together(engine):
                    owners = owners_of(node, len(codes), engine.mine, stream.rows_here)
                here = np.searchsorted(engine.mine, owners)
                counts = engine.collect(np.bincount(here, minlength=len(engine.mine)))
                # Nobody pays before everybody could go on and every ledger would take the charge;
                # no transaction is open while a message travels.
                with Together(engine):
                    plan.check_sizes(counts)
                    ledger = asked(ledger_of(self), plan.release.guarantee) if fresh else None
                if fresh:
                    pays = is_first_with(ledger, engine)
                    with Together(engine):
                        if pays:
                            charge(self, plan.release.guarantee)
                stream = stream.after(engine, X, codes, here, counts, Progress(self, context))
                fitted = stream.fitted(engine)
                fitted["guarantee_"] = self._stated(fitted["guarantee_"], fresh=fresh)
                for name, value in fitted.items():
                    setattr(self, name, value)
            finally:
                engine.close()
        return self
