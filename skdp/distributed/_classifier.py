"""Private classification by nodes that exchange parameters with their neighbours."""

import hashlib
import math
import os
import warnings
from dataclasses import dataclass, field, replace
from functools import partial
from numbers import Real
from typing import Any

import numpy as np
from scipy.sparse import issparse
from scipy.special import expit, softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from skdp import __version__
from skdp._grid import grid_rows, row_step
from skdp._inputs import checked_data, encode_labels
from skdp._random import noise_source, seed_sequence
from skdp._validation import (
    boolean,
    non_negative,
    non_negative_int,
    one_of,
    positive,
    positive_int,
    shown,
)
from skdp.engines import LocalEngine, MPIEngine
from skdp.estimators import (
    LinearPredictions,
    LinkedDocumentation,
    charge,
    check_budget,
    check_unchanged,
    frozen_params,
    ledger_of,
    unchanged_on_error,
)
from skdp.exceptions import PrivacyWarning
from skdp.losses import (
    HingeLoss,
    HuberHingeLoss,
    LogisticLoss,
    MulticlassHingeLoss,
    SoftmaxLoss,
)
from skdp.mechanisms import NoiseLaw
from skdp.privacy import ApproxDP, GaussianDP
from skdp.solvers.classifier_comparator import best_classifier_in_ball
from skdp.solvers.gossip import (
    GossipState,
    GossipUpdate,
    Schedule,
    batches,
    grid_csr_rows,
    run_gossip,
    slope_step,
)
from skdp.theory.distributed import gradient_sensitivity, noise_energy, unit_guarantee
from skdp.topology import Topology, make_topology

try:  # scikit-learn 1.9
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands in where scikit-learn has no callbacks."""

        def _init_callback_context(self, **_):
            return None

    def with_callbacks(method):
        """Return the method."""
        return method


__all__ = ["DistributedDPClassifier"]

LOSSES = ("hinge", "log_loss", "huber_hinge")
NOISES = ("auto", "k_norm", "laplace", "gaussian")
_UP = 1.0 + 1e-12  # rounding errors of public numbers
_MOST_NUMBERS = 2**27  # in an array: a gigabyte


@dataclass(frozen=True)
class _Plan:
    """Public numbers of a stream."""

    classes: np.ndarray
    n_features: int
    update: GossipUpdate
    noise: str
    scale: float
    guarantee: ApproxDP
    single: GaussianDP | ApproxDP  # of one noisy gradient
    n_passes: int

    @property
    def width(self):
        return self.n_features + 1

    @property
    def size(self):
        return self.update.loss.n_outputs * self.width


@dataclass(frozen=True)
class _Stream:
    """What is kept between calls, all of it released or public."""

    params: dict = field(repr=False)
    plan: _Plan
    topology: Topology = field(repr=False)
    sources: list | None = field(repr=False)
    state: GossipState | None = field(default=None, repr=False)
    rows_here: int = 0
    rows_of: Any = 0
    points: tuple = field(default=(), repr=False)


class DistributedDPClassifier(
    CallbackSupportMixin, LinearPredictions, LinkedDocumentation, ClassifierMixin, BaseEstimator
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
        Public bound on the Euclidean norm of a row; longer rows are scaled back onto the ball.

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
        Coefficients. Released under ``guarantee_``.

    intercept_ : ndarray of shape (1,) or (n_classes,)
        Intercepts. Released under ``guarantee_``.

    node_coef_ : ndarray of shape (n_nodes, 1 or n_classes, `n_features_in_`)
        Coefficients of each node. Released under ``guarantee_``.

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
        self.epsilon = epsilon
        self.delta = delta
        self.n_nodes = n_nodes
        self.topology = topology
        self.edge_probability = edge_probability
        self.topology_seed = topology_seed
        self.loss = loss
        self.noise = noise
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

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.poor_score = True  # noise is a promise and accuracy is not
        return tags

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
        return self._advance(X, y, node, classes, fresh=not hasattr(self, "_stream"))

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
        batch = plan.update.batch_size
        # The worst case: they share their rounds.
        full, rest = divmod(int(n_records), batch)
        rounds = [(batch, full * plan.n_passes), (rest, plan.n_passes)]
        return unit_guarantee(plan.single, repeated=rounds, unit="user")

    def node_guarantee(self):
        """Guarantee for all rows of the node that has most.

        Returns
        -------
        ApproxDP or GaussianDP
        """
        check_is_fitted(self)
        most = int(np.max(self._stream.rows_of)) // self._stream.plan.n_passes
        return replace(self.user_guarantee(max(most, 1)), unit="node")

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
        stream = self._stream
        check_unchanged(self, stream.params)
        if not self.keep_iterates:
            raise ValueError(
                f"keep_iterates must be True for a regret; got {shown(self.keep_iterates)}."
            )
        X, y = checked_data(self, X, y, reset=False)
        codes = encode_labels(y, stream.plan.classes)[1]
        points = np.concatenate(stream.points)
        n_rounds, n_here = points.shape[:2]
        if n_here != stream.topology.n_nodes:
            raise ValueError("engine must be 'local' for a regret: rows stay where they are.")
        everyone = np.arange(n_here)
        owners = _owners(node, len(codes), everyone, 0)
        update = stream.plan.update
        most = int(np.bincount(owners).max())
        schedule = batches(owners, n_here, min(update.batch_size, most))
        schedule = np.tile(schedule, (int(self.n_passes), 1, 1))
        if len(schedule) != n_rounds:
            raise ValueError(
                f"X must hold the rows of the stream, which make {n_rounds} rounds; "
                f"these make {len(schedule)}."
            )
        if of is not None and not _is_node(of, n_here):
            raise ValueError(f"of must be a node from 0 to {n_here - 1} or None; got {shown(of)}.")
        rows = (grid_csr_rows if issparse(X) else grid_rows)(
            X, float(self.x_norm), True, update.row_step
        )
        total = 0.0
        for t, place in enumerate(schedule):
            for i, here in enumerate(place):
                here = here[here >= 0]
                if len(here):
                    weights = points[t, i if of is None else of].reshape(-1, stream.plan.width)
                    total += update.loss.total(np.asarray(rows[here] @ weights.T), codes[here])
        uses = np.bincount(schedule[schedule >= 0], minlength=len(codes))
        if (uses != uses[0]).any():
            raise ValueError("X must hold the rows of the stream, each seen equally often.")
        best = best_classifier_in_ball(
            rows, codes, update.loss, radius=float(self.radius), tolerance=float(tolerance)
        )
        return total - float(uses[0]) * best[1]

    def _check_parameters(self):
        check_budget(self)
        non_negative_int(topology_seed=self.topology_seed)
        positive_int(n_nodes=self.n_nodes, batch_size=self.batch_size, n_passes=self.n_passes)
        one_of(LOSSES, loss=self.loss)
        one_of(NOISES, noise=self.noise)
        positive(x_norm=self.x_norm, radius=self.radius, huber_width=self.huber_width)
        non_negative(alpha=self.alpha)
        for name, given in (("step", self.step), ("sparsity", self.sparsity)):
            if isinstance(given, str):
                if given != "auto":
                    raise ValueError(f"{name} must be 'auto' or a number; got {shown(given)}.")
            elif name == "step":
                positive(step=given)
            else:
                non_negative(sparsity=given)
        limits = {"radius": 1e6, "x_norm": 1e50, "huber_width": 1e6}
        limits.update(alpha=1e50, step=1e50, sparsity=1e50)
        for name, limit in limits.items():
            value = getattr(self, name)
            if value in ("auto", 0.0):
                continue
            if not 1.0 / limit <= value <= limit:
                raise ValueError(
                    f"{name} must be between {1.0 / limit:g} and {limit:g}; got {shown(value)}."
                )
        is_uniform = isinstance(self.average, str) and self.average == "uniform"
        if not isinstance(self.average, bool | np.bool_) and not is_uniform:
            raise ValueError(
                f"average must be True, 'uniform' or False; got {shown(self.average)}."
            )
        boolean(keep_iterates=self.keep_iterates)
        if self.noise == "gaussian" and self.delta == 0.0:
            raise ValueError("noise must not be 'gaussian' with delta=0; got 'gaussian'.")
        if self.output_node is not None and not _is_node(self.output_node, self.n_nodes):
            raise ValueError(
                f"output_node must be None or a node from 0 to {self.n_nodes - 1}; "
                f"got {shown(self.output_node)}."
            )

    def _engine(self):
        if isinstance(self.engine, str):
            one_of(("local", "mpi"), engine=self.engine)
            return LocalEngine() if self.engine == "local" else MPIEngine()
        if not hasattr(self.engine, "exchange"):
            raise ValueError(
                f"engine must be 'local', 'mpi' or an Engine; got {shown(self.engine)}."
            )
        return self.engine

    def _loss(self, n_classes):
        if self.loss == "log_loss":
            return LogisticLoss() if n_classes == 2 else SoftmaxLoss(n_classes)
        if self.loss == "hinge":
            return HingeLoss() if n_classes == 2 else MulticlassHingeLoss(n_classes)
        width = float(self.huber_width)
        if n_classes == 2:
            return HuberHingeLoss(width)
        return SoftmaxLoss(n_classes, margin=1.0, temperature=width)

    def _plan(self, classes, n_features):
        """Turn public numbers into the noise, what it promises, and the update."""
        target = ApproxDP(float(self.epsilon), float(self.delta), adjacency=self.adjacency)
        loss = self._loss(len(classes))
        size = loss.n_outputs * (n_features + 1)
        noise = NoiseLaw.meeting(target, size=size).kind if self.noise == "auto" else self.noise
        single: GaussianDP | ApproxDP
        refined: GaussianDP | ApproxDP | None
        n_passes, source = int(self.n_passes), "each record in one noisy gradient a pass"
        if noise == "gaussian":
            together = refined = target.gaussian_target()
            single = replace(together, mu=together.mu / math.sqrt(n_passes))
            source += ", composed by Dong, Roth and Su, JRSS-B 2022, corollary 2"
        else:
            single = ApproxDP(target.epsilon / n_passes, adjacency=target.adjacency)
            refined = replace(target, delta=0.0) if target.delta else None
        guarantee = replace(
            target,
            refined=refined,
            mechanism="decentralised online gradient descent"
            + (f" in {n_passes} passes" if n_passes > 1 else ""),
            source="algorithm of Li, Zhou, Xiong, Wang and Wang, IEEE TKDE 2018; " + source,
        )
        clip_norm = loss.lipschitz * math.sqrt(2.0)
        change = gradient_sensitivity(clip_norm=clip_norm, adjacency=self.adjacency)
        if isinstance(single, GaussianDP):
            scale = change / single.mu
        else:
            scale = change / single.epsilon * (math.sqrt(size) if noise == "laplace" else 1.0)
        scale *= _UP
        # K-norm noise has one more factor, a random one, whose error counts 16 times.
        reach = scale * (16.0 * math.sqrt(size) if noise == "k_norm" else 1.0)
        rows = row_step(min(reach, 1e300), slope_step(loss))
        if not reach / (rows * slope_step(loss)) < 2.0**47:
            raise ValueError(
                "epsilon must be larger: the noise would not fit into the 53 bits of a float; "
                f"got {shown(self.epsilon)}."
            )
        energy = noise_energy(
            size,
            clip_norm=clip_norm,
            guarantee=single,
            noise=noise,
            batch_size=int(self.batch_size),
        )
        update = GossipUpdate(
            loss,
            int(self.batch_size),
            float(self.radius),
            self._steps(clip_norm, energy),
            rows,
            penalty=float(self.alpha),
            threshold=self._threshold(size, energy),
            decay={True: 3.0, False: 0.0}.get(self.average, 0.0),
        )
        return _Plan(classes, n_features, update, noise, scale, guarantee, single, n_passes)

    def _steps(self, clip_norm, energy):
        if not isinstance(self.step, str):
            return partial(_inverse_root, float(self.step))
        if self.alpha > 0.0:
            return partial(_inverse, 1.0 / float(self.alpha))
        norm = math.sqrt(clip_norm**2 + energy / int(self.n_nodes))
        return partial(_inverse_root, math.sqrt(2.0) * float(self.radius) / norm)

    def _threshold(self, size, energy):
        if isinstance(self.sparsity, str):
            return math.sqrt(energy / size)
        return float(self.sparsity)

    def _new_stream(self, plan, topology):
        sources = None
        if self.random_state is not None:
            seeds = seed_sequence(self.random_state).spawn(topology.n_nodes)
            sources = [noise_source(np.random.default_rng(seed)) for seed in seeds]
        return _Stream(frozen_params(self), plan, topology, sources)

    def _advance(self, X, y, node, classes, *, fresh):
        engine = self._engine()
        with _Together(engine):
            context = self._init_callback_context(max_subtasks=None)
            classes = _common_classes(classes, self.classes if fresh else self.classes_)
        with unchanged_on_error(self):
            with _Together(engine) as everyone:
                stream, X, codes = self._prepared(X, y, classes, engine, fresh)
                everyone.token = self._token(stream, len(codes)) if engine.is_distributed else None
            engine.open(stream.topology, stream.plan.size)
            try:
                with _Together(engine):
                    owners = _owners(node, len(codes), engine.mine, stream.rows_here)
                here = np.searchsorted(engine.mine, owners)
                counts = engine.collect(np.bincount(here, minlength=len(engine.mine)))
                # Nobody pays before everybody could go on and every ledger would take the charge;
                # no transaction is open while a message travels.
                is_new = stream.state is None
                with _Together(engine):
                    self._check_sizes(stream, counts)
                    if is_new:
                        identity = _asked(ledger_of(self), stream.plan.guarantee)
                if is_new:
                    pays = _is_first_with(identity, engine)
                    with _Together(engine):
                        if pays:
                            charge(self, stream.plan.guarantee)
                self._run(engine, stream, X, codes, here, counts, context)
            finally:
                engine.close()
        return self

    def _prepared(self, X, y, classes, engine, fresh):
        self._check_parameters()
        X, y = checked_data(
            self,
            X,
            y,
            reset=fresh,
            ensure_min_samples=0 if engine.is_distributed else 1,
        )
        if engine.is_distributed:
            if classes is None:
                raise ValueError("classes must be given over MPI: labels stay here; got None.")
            if self.random_state is not None:
                warnings.warn(
                    "random_state is set, so that every process can recompute the noise of all. "
                    "Leave random_state=None on real data.",
                    PrivacyWarning,
                    stacklevel=4,
                )
        classes, codes = encode_labels(y, classes)
        if not fresh:
            stream = self._stream
            check_unchanged(self, stream.params)
            return stream, X, codes
        topology = make_topology(
            self.topology,
            self.n_nodes,
            edge_probability=self.edge_probability,
            seed=self.topology_seed,
        )
        plan = self._plan(classes, X.shape[1])
        if topology.n_nodes * plan.size > _MOST_NUMBERS:
            raise ValueError(
                f"n_nodes must be at most {_MOST_NUMBERS // plan.size:,} for {plan.size:,} "
                f"parameters a node; got {shown(self.n_nodes)}."
            )
        return self._new_stream(plan, topology), X, codes

    def _token(self, stream, n_rows):
        """What all processes must have in common, by name."""
        own = ("engine", "ledger", "random_state", "topology")
        token = {
            name: float(value) if isinstance(value, Real) else value
            for name, value in stream.params.items()
            if name not in own
        }
        token["classes"] = stream.plan.classes.tolist()
        token["topology"] = stream.topology
        token["n_features_in_"] = stream.plan.n_features
        token["n_rounds_"] = 0 if stream.state is None else stream.state.time
        token["version of skdp"] = __version__
        names = getattr(self, "feature_names_in_", None)
        if n_rows or names is not None:  # without rows there is nothing to be in another order
            token["feature_names_in_"] = None if names is None else names.tolist()
        return token

    def _check_sizes(self, stream, counts):
        """Refuse what would not fit into memory, by public numbers."""
        n_rounds = -(-int(counts.max()) // stream.plan.update.batch_size) * int(self.n_passes)
        size = n_rounds * stream.topology.n_nodes * stream.plan.size
        if self.keep_iterates and size > _MOST_NUMBERS:
            raise ValueError(
                f"keep_iterates must be False for {n_rounds:,} rounds of "
                f"{stream.topology.n_nodes:,} nodes with {stream.plan.size:,} parameters each: at "
                f"most {_MOST_NUMBERS:,} numbers are kept; got {shown(self.keep_iterates)}."
            )

    def _run(self, engine, stream, X, codes, here, counts, context):
        plan, mine = stream.plan, engine.mine
        n_passes = int(self.n_passes)
        n_rounds = -(-int(counts.max()) // plan.update.batch_size)
        # However large a batch may be, a round has no more rows than there are.
        batch = min(plan.update.batch_size, max(1, int(counts.max())))
        kept: list = []
        progress = _Progress(self, context)
        state = run_gossip(
            engine,
            stream.topology,
            X,
            codes,
            Schedule(here, len(mine), batch, n_rounds),
            stream.state or GossipState.zeros(len(mine), plan.size),
            plan.update,
            x_norm=float(self.x_norm),
            constant=True,
            draw=self._draw(stream, mine),
            n_passes=n_passes,
            keep=kept if self.keep_iterates else None,
            monitor=progress,
        )
        progress.close()
        stream = replace(
            stream,
            state=state,
            rows_here=stream.rows_here + len(codes),
            rows_of=stream.rows_of + n_passes * counts,
            points=(*stream.points, *kept),
        )
        self._store(engine, stream)

    def _draw(self, stream, mine):
        """Noise of rounds: of one stream, or for tests of one stream a node."""
        plan = stream.plan
        scale = plan.scale / plan.update.grid

        def vectors(source, n):
            if plan.noise == "k_norm":
                return source.k_norms(n, plan.size, scale)
            law = source.normal if plan.noise == "gaussian" else source.laplace
            return law(n * plan.size, scale).reshape(n, plan.size)

        def draw(n):
            if stream.sources is None:
                drawn = vectors(noise_source(None), n * len(mine))
                return drawn.reshape(n, len(mine), plan.size) * plan.update.grid
            drawn = [vectors(stream.sources[i], n) for i in mine]
            return np.stack(drawn, axis=1) * plan.update.grid

        return draw

    def _store(self, engine, stream):
        plan, state = stream.plan, stream.state
        latest = engine.collect(state.released)
        final = latest if self.average is False else engine.collect(state.average())
        step = float(plan.update.steps(np.array([max(state.time, 1)]))[0])
        # Of sums of gradients the mean over nodes is thresholded, like that over rounds: a mean
        # of thresholded nodes has next to no zeros. All of it is done to released values.
        mean = plan.update.points(final.mean(axis=0, keepdims=True), step)
        weights = np.concatenate([plan.update.points(final, step), mean])
        weights = weights.reshape(len(weights), -1, plan.width)
        coef, intercept = weights[..., :-1] / float(self.x_norm), weights[..., -1].copy()
        spread = np.square(latest - latest.mean(axis=0)).sum(axis=1)
        output = -1 if self.output_node is None else int(self.output_node)
        fitted = dict(
            classes_=plan.classes,
            coef_=coef[output].copy(),
            intercept_=intercept[output].copy(),
            node_coef_=coef[:-1],
            node_intercept_=intercept[:-1],
            consensus_distance_=float(np.sqrt(spread.mean())),
            n_rounds_=state.time,
            n_samples_seen_=int(np.sum(stream.rows_of)),
            topology_=stream.topology,
            guarantee_=plan.guarantee,
            _stream=stream,
        )
        for name, value in fitted.items():
            setattr(self, name, value)


class _Together:
    """Raises in all processes what the block has raised in one, or if their tokens differ."""

    def __init__(self, engine):
        self.engine, self.token = engine, None

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if error is None or isinstance(error, Exception):
            self.engine.agree(error, self.token)


def _common_classes(given, known):
    """Classes of the stream, from a call or from before."""
    if given is None or known is None or given is known:
        return given if known is None else known
    if _sorted(given) != _sorted(known):
        raise ValueError(
            f"classes must be those of the stream, {shown(list(known))}; got {shown(given)}."
        )
    return known


def _sorted(classes):
    try:
        return np.unique(np.asarray(classes)).tolist()
    except (TypeError, ValueError):
        return None


def _asked(ledger, guarantee):
    """Raise what the charge would raise; otherwise, which ledger it is. Nothing is written."""
    if ledger is None:
        return None
    ledger.check(guarantee)
    if ledger.path is None:
        return ledger.identity
    for place in (ledger.path, os.path.dirname(ledger.path)):  # its journal stands beside it
        if not os.access(place, os.W_OK):
            raise PermissionError(f"The ledger {ledger.path} cannot be written.")
    # A copy of the file has the same name, and is charged by nobody else.
    return f"{ledger.identity} {os.stat(ledger.path).st_ino}"


def _is_first_with(identity, engine):
    """Whether this process is the first of those that share its ledger, and pays for them."""
    if not engine.is_distributed:
        return True
    own = np.zeros(4, dtype=np.int64)
    if identity is not None:
        own[:] = np.frombuffer(hashlib.sha256(identity.encode()).digest(), dtype=np.int64)
    everyone = engine.collect(np.tile(own, (len(engine.mine), 1)))
    first = int(np.flatnonzero((everyone == own).all(axis=1))[0])
    return first == engine.mine[0]


class _Progress:
    """Tells callbacks of scikit-learn how far a fit is; rows are not for them."""

    def __init__(self, estimator, context):
        self.estimator, self.context = estimator, context
        if context is not None:
            context.call_on_fit_task_begin(estimator=estimator)

    def __call__(self, n_rounds):
        if self.context is not None:
            block = self.context.subcontext(task_name=f"{n_rounds} rounds")
            block.call_on_fit_task_begin(estimator=self.estimator)
            block.call_on_fit_task_end(estimator=self.estimator)

    def close(self):
        if self.context is not None:
            self.context.call_on_fit_task_end(estimator=self.estimator)


def _inverse_root(first, times):
    return first / np.sqrt(times)


def _inverse(first, times):
    return first / times


def _is_node(value, n_nodes):
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    return whole and 0 <= value < n_nodes


def _owners(node, n_rows, mine, n_before):
    """Node of each row, one of ``mine``; in turn by position if ``node`` is None."""
    if node is None:
        return mine[(n_before + np.arange(n_rows)) % len(mine)]
    owners = np.asarray(node) if n_rows else np.zeros(0, dtype=int)
    if owners.shape != (n_rows,) or owners.dtype.kind not in "iu":
        raise ValueError(
            f"node must hold one int a row, {n_rows}; got an array of shape {owners.shape} and "
            f"dtype {owners.dtype}."
        )
    if not np.isin(owners, mine).all():
        raise ValueError(f"node must hold nodes of this process, {mine.tolist()}, only.")
    return owners
