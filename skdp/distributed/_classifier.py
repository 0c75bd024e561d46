"""Private classification by nodes that exchange parameters with their neighbours."""

from dataclasses import replace

from sklearn.base import BaseEstimator, ClassifierMixin

from skdp._defaults import network as defaults
from skdp.distributed._network import NetworkLearner
from skdp.distributed._whitened import chosen_form
from skdp.learner import LinkedDocumentation, NoisyPredictions, has_begun, with_callbacks

__all__ = ["DistributedDPClassifier"]


class DistributedDPClassifier(
    NetworkLearner,
    LinkedDocumentation,
    NoisyPredictions,
    ClassifierMixin,
    BaseEstimator,
):
    """Linear classifier that a network of nodes learns together, each from its own rows.

    In a round each node mixes the released parameters of its neighbours with its own released
    ones, takes a noisy gradient on its rows at that point, steps, and broadcasts. The whole
    transcript of all broadcasts is private for each row.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget of one record, or with ``groups`` of one user, for all rounds and passes together.

    delta : float, default=0.0
        0 is pure differential privacy, algorithm 1 of the paper; a positive number, well below one
        over the number of rows, allows Gaussian noise, algorithm 2 with its constant corrected.

    algorithm : {"auto", "whitened", "paper"}, default="auto"
        "whitened" lets the nodes take few noisy gradient steps on all their rows, in coordinates
        in which the rows spread equally in all directions, as far as noisy moments of the rows
        tell. "paper" is the family of the paper: algorithms 1 and 2, 3 with ``sparsity``, 4 with
        ``batch_size``. "auto" is "whitened" with ``loss="log_loss"`` if all parameters that only
        "paper" reads have their defaults: ``noise``, ``alpha``, ``sparsity``, ``batch_size``,
        ``step``, ``radius``, ``average``, ``n_passes``, ``huber_width`` and ``keep_iterates``.
        `partial_fit` always runs the form of the paper.

    n_nodes : int, default=8
        Number of nodes, at most 1,048,576. All nodes together have at most 134 million parameters.

    topology : str, networkx graph, adjacency matrix, mixing matrices, callable or Topology, \
default="ring"
        See :func:`~skdp.topology.make_topology`. It must not depend on the data.

    edge_probability : float in (0, 1], default=1.0
        Chance of each link to be up in a round. Weights are those of Metropolis and Hastings, made
        anew in each round and doubly stochastic.

    topology_seed : int, default=0
        Public seed of random graphs and of links that are up.

    node_names : array-like of shape (n_nodes,), default=None
        Public names of the nodes, in their order, for ``node`` and ``output_node``. None takes
        the labels of a networkx graph, and else numbers from 0.

    loss : {"hinge", "log_loss", "huber_hinge"}, default="log_loss"
        With several classes the loss of Crammer and Singer, the multinomial logistic loss, and a
        smooth version of the former.

    noise : {"auto", "k_norm", "laplace", "gaussian"}, default="auto"
        "auto" is the quietest. "laplace", that of the paper, is for the l1 norm of a gradient: it
        is the quieter of the pure ones with a small ``x_l1_norm`` or many classes, and else has
        twice the energy of "k_norm" with the same guarantee. Read by "paper" only.

    alpha : float, default=0.0
        Strength of the penalty ``alpha / 2 ||w||^2`` of the mean loss, intercept included. If
        positive, steps are ``1 / (alpha t)`` unless ``step`` is a number.

    sparsity : float or "auto", default=0.0
        If not 0, algorithm 3: gradients are summed up, and taken at soft-thresholded points, with
        this times the step as threshold. "auto" is the standard deviation of a coordinate of the
        noise. Sums are averaged, over rounds and for ``coef_`` over nodes too, and then
        thresholded with the last step, so that ``coef_`` and ``node_coef_`` have zeros.

    batch_size : int or "auto", default="auto"
        Rows, or users, of a node in a round, algorithm 4, by which the noise of a round's gradient
        is divided. "auto" is all rows of the node that has most, and with one pass as many as let
        the noise, averaged over nodes, be a quarter of a gradient: a rule of public counts.

    step : float, "auto", "final" or "regret", default="auto"
        The step in round t is this over ``sqrt(t)``. "regret" is ``diameter / (sqrt(2) G)`` with
        the diameter of the ball and the root mean square norm G of a noisy gradient, the step
        behind `~skdp.theory.distributed.own_regret`; with it broadcasts are projected onto the
        ball, as that bound and the paper want them. "final", and "auto", count only the noise that
        remains in the mean over all nodes. Their steps are up to the root of the number of nodes
        longer: a rule of thumb for the last model. With these, and with a number, projection is
        lazy: sums of gradients are broadcast as they are, and gradients are taken at projected
        points.

    radius : float, default=20.0
        Largest norm of the parameters of a node, for rows in units of ``x_norm``.

    average : {True, "uniform", False}, default=True
        Which of the released parameters to predict with: a mean in which round t weighs
        ``t^3``, that of theorem 9 in which rounds weigh the same, or the last.

    n_mixings : int, default=1
        How often nodes exchange and mix what they released in a round, which costs messages and
        no privacy.

    n_passes : int or "auto", default="auto"
        Passes of `fit` over the rows. The budget covers all: each pass has one part in
        ``n_passes`` of epsilon, or in its square root of the Gaussian ``mu``. "auto" is 40 with
        Gaussian noise and 1 to 40 with pure noise, more where the noise is small for the number of
        rows: a rule of public counts. `partial_fit` always makes one pass.

    output_node : str or int, default=None
        Node, by name or number, whose parameters are ``coef_``; None takes the mean over nodes,
        which for sparse ones is thresholded after the mean is taken.

    huber_width : float, default=0.5
        Half-width of the smoothed kink of "huber_hinge".

    engine : {"local", "mpi"} or Engine, default="local"
        "local" simulates the network in this process. With "mpi" each process of an MPI job runs
        some of the nodes and calls `fit` with their rows only.

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

    keep_iterates : bool, default=False
        Whether to keep the points of all rounds, for `regret`.

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

    node_coef_ : ndarray of shape ``(n_nodes, 1 or n_classes, n_features_in_)``
        Coefficients of each node, for rows as those of ``coef_``. Released under ``guarantee_``.

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

    With ``algorithm="whitened"`` a record is in several releases of its node: the number of rows
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

    def __init__(
        self,
        epsilon=1.0,
        delta=0.0,
        *,
        algorithm="auto",
        n_nodes=int(defaults.N_NODES),
        topology="ring",
        edge_probability=1.0,
        topology_seed=0,
        node_names=None,
        loss="log_loss",
        noise="auto",
        alpha=0.0,
        sparsity=0.0,
        batch_size="auto",
        step="auto",
        radius=float(defaults.RADIUS),
        average=True,
        n_mixings=1,
        n_passes="auto",
        output_node=None,
        huber_width=0.5,
        engine="local",
        x_norm=1.0,
        x_l1_norm=None,
        intercept_scaling="auto",
        classes=None,
        adjacency="replace-one",
        keep_iterates=False,
        max_calls_per_user=1,
        random_state=None,
        ledger=None,
    ):
        self.epsilon, self.delta = epsilon, delta
        self.algorithm, self.loss, self.noise = algorithm, loss, noise
        self.n_nodes, self.node_names, self.output_node = n_nodes, node_names, output_node
        self.topology, self.topology_seed = topology, topology_seed
        self.edge_probability = edge_probability
        self.alpha, self.sparsity, self.huber_width = alpha, sparsity, huber_width
        self.batch_size, self.n_passes, self.n_mixings = batch_size, n_passes, n_mixings
        self.step, self.radius, self.average = step, radius, average
        self.engine = engine
        self.x_norm, self.x_l1_norm = x_norm, x_l1_norm
        self.intercept_scaling = intercept_scaling
        self.classes = classes
        self.adjacency = adjacency
        self.keep_iterates, self.max_calls_per_user = keep_iterates, max_calls_per_user
        self.random_state = random_state
        self.ledger = ledger

    def _planned_guarantee(self, n_features):
        target = super()._planned_guarantee(n_features)
        if target.delta == 0.0 or chosen_form(self) != "whitened":
            return target
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
        return self._advance(X, y, node, groups, self.classes, fresh=True, one_pass=False)

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
            Id of the user who owns each row. The guarantee is then for users: it covers all rows
            of one, however many. None protects rows.
            All calls of a stream have groups, or none has. Rows of users who
            have come in ``max_calls_per_user`` calls add nothing.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            As `fit`, and if a parameter has changed since the stream began.
        """
        fresh = not has_begun(self)
        return self._advance(X, y, node, groups, classes, fresh=fresh, one_pass=True)
