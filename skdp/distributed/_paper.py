"""Parameters and releases of the paper's algorithms."""

import math
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

import numpy as np

from skdp._defaults import network as defaults
from skdp._grid import TINY
from skdp._validation import (
    LARGEST,
    LARGEST_RADIUS,
    between,
    boolean,
    int_or_auto,
    is_auto,
    non_negative,
    one_of,
    plain,
    positive,
    short_repr,
)
from skdp.distributed._gossip import GossipRelease, GossipUpdate, kinds_of_noise
from skdp.learner import (
    HingeLoss,
    HuberHingeLoss,
    LogisticLoss,
    MulticlassHingeLoss,
    SoftmaxLoss,
)
from skdp.privacy import ApproxDP


@dataclass(frozen=True, kw_only=True, repr=False)
class PaperAlgorithm:
    """Parameters of algorithms 1 to 4 of the paper, for ``paper`` of `DistributedDPClassifier`.

    The defaults give algorithm 1, or with a positive ``delta`` algorithm 2 with a corrected
    constant. ``sparsity`` gives algorithm 3, and ``batch_size`` algorithm 4. Values are checked
    when the classifier is fitted. Objects are immutable: use `dataclasses.replace`, or
    ``set_params(paper__step=0.5)`` of the classifier.

    Parameters
    ----------
    loss : {"log_loss", "hinge", "huber_hinge"}, default="log_loss"
        Loss function. With several classes: multinomial logistic loss, Crammer-Singer loss, and
        a smooth version of the latter.

    noise : {"auto", "k_norm", "laplace", "gaussian"}, default="auto"
        Kind of noise. "auto" uses the smallest noise. "laplace", the noise of the paper, is for
        the l1 norm of a gradient. It is the smaller pure noise for a small ``x_l1_norm`` or many
        classes. Otherwise it has twice the energy of "k_norm" with the same guarantee.

    alpha : float, default=0.0
        Strength of the penalty ``alpha / 2 ||w||^2`` of the mean loss, intercept included. If
        positive, steps are ``1 / (alpha t)`` unless ``step`` is a number.

    sparsity : float or "auto", default=0.0
        If not 0, algorithm 3: gradients are summed, and taken at points soft-thresholded at
        ``sparsity`` times the step. "auto" is the standard deviation of a coordinate of the
        noise. Sums are averaged over rounds, and for ``coef_`` also over nodes, and then
        thresholded with the last step. ``coef_`` and ``node_coef_`` therefore have zeros.

    batch_size : int or "auto", default="auto"
        Number of rows, or users, of a node per round (algorithm 4). The noise of a round's
        gradient is divided by it. "auto" is all rows of the largest node. With one pass, it is
        the size at which the noise, averaged over nodes, is a quarter of a gradient. Both depend
        only on public counts.

    step : float, "auto", "final" or "regret", default="auto"
        The step in round t is this value divided by ``sqrt(t)``. "regret" is
        ``diameter / (sqrt(2) G)`` with the diameter of the ball and the root mean square norm G
        of a noisy gradient, as in `~skdp.distributed.papers.own_regret`. Broadcasts are then
        projected onto the ball, as required by that bound and the paper. "final" and "auto" count
        only the noise in the mean over all nodes. Their steps are larger by up to the square root
        of the number of nodes: a rule of thumb for the last model. With these, and with a number,
        projection is lazy: sums of gradients are broadcast without projection, and gradients are
        taken at projected points.

    radius : float, default=20.0
        Largest norm of the parameters of a node, for rows in units of ``x_norm``.

    average : {True, "uniform", False}, default=True
        Released parameters used for prediction: True is a mean with weights ``t^3`` for round t,
        "uniform" the uniform mean of theorem 9, and False the last parameters.

    n_passes : int or "auto", default="auto"
        Number of passes of `fit` over the rows. The budget covers all passes: each uses epsilon
        divided by ``n_passes``, or the Gaussian ``mu`` divided by its square root. "auto" is 40
        with Gaussian noise and 1 to 40 with pure noise, more if the noise is small for the number
        of rows. It depends only on public counts. `partial_fit` always makes one pass.

    huber_width : float, default=0.5
        Half-width of the smoothed kink of "huber_hinge".

    keep_iterates : bool, default=False
        Whether to keep the points of all rounds, for `DistributedDPClassifier.regret`.

    Examples
    --------
    >>> from skdp.distributed import DistributedDPClassifier, PaperAlgorithm
    >>> stream = DistributedDPClassifier(paper=PaperAlgorithm(batch_size=20, n_passes=1))
    >>> stream.set_params(paper__step="regret").paper
    PaperAlgorithm(batch_size=20, step='regret', n_passes=1)
    """

    loss: str = "log_loss"
    noise: str = "auto"
    alpha: float = 0.0
    sparsity: float | str = 0.0
    batch_size: int | str = "auto"
    step: float | str = "auto"
    radius: float = float(defaults.RADIUS)
    average: bool | str = True
    n_passes: int | str = "auto"
    huber_width: float = 0.5
    keep_iterates: bool = False

    def __repr__(self) -> str:
        changed = [
            f"{field.name}={getattr(self, field.name)!r}"
            for field in fields(self)
            if repr(getattr(self, field.name)) != repr(field.default)
        ]
        return f"PaperAlgorithm({', '.join(changed)})"

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Get the parameters by name.

        Parameters
        ----------
        deep : bool, default=True
            Has no effect: there are no nested parameters.

        Returns
        -------
        dict
        """
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def check(self, delta: float) -> None:
        """Raise an error if a parameter is invalid.

        Parameters
        ----------
        delta : float
            Delta of the classifier.
        """
        one_of(("hinge", "log_loss", "huber_hinge"), loss=self.loss)
        one_of(("auto", "k_norm", "laplace", "gaussian"), noise=self.noise)
        int_or_auto(batch_size=self.batch_size, n_passes=self.n_passes)
        positive(radius=self.radius, huber_width=self.huber_width)
        non_negative(alpha=self.alpha)
        if isinstance(self.step, str):
            one_of(("auto", "final", "regret"), step=self.step)
        else:
            positive(step=self.step)
        if isinstance(self.sparsity, str) and not is_auto(self.sparsity):
            raise ValueError(
                f"sparsity must be 'auto' or a number; got {short_repr(self.sparsity)}."
            )
        if not is_auto(self.sparsity):
            non_negative(sparsity=self.sparsity)
        for name in ("radius", "huber_width", "alpha", "step", "sparsity"):
            value = getattr(self, name)
            limit = LARGEST_RADIUS if name in ("radius", "huber_width") else LARGEST
            if not isinstance(value, str) and value != 0.0:
                between(1.0 / limit, limit, **{name: value})
        is_uniform = isinstance(self.average, str) and self.average == "uniform"
        if not isinstance(self.average, bool | np.bool_) and not is_uniform:
            raise ValueError(
                f"average must be True, 'uniform' or False; got {short_repr(self.average)}."
            )
        boolean(keep_iterates=self.keep_iterates)
        if self.noise == "gaussian" and delta == 0.0:
            raise ValueError("noise must not be 'gaussian' with delta=0; got 'gaussian'.")


def target_of(estimator: Any, unit: str) -> ApproxDP:
    """What is promised to a record, or to a user."""
    epsilon, delta = float(estimator.epsilon), float(estimator.delta)
    return ApproxDP(epsilon, delta, adjacency=estimator.adjacency, unit=unit)


def paper_of(estimator: Any) -> PaperAlgorithm:
    """Parameters of the paper's form, in which `partial_fit` runs in any case."""
    if estimator.paper is None:
        return PaperAlgorithm()
    # In single precision they would spread into what is computed with them.
    params = estimator.paper.get_params()
    return PaperAlgorithm(**{name: plain(value) for name, value in params.items()})


def loss_of(paper, n_classes):
    """Loss of the parameter ``loss``."""
    binary, width = n_classes == 2, float(paper.huber_width)
    if paper.loss == "log_loss":
        return LogisticLoss() if binary else SoftmaxLoss(n_classes)
    if paper.loss == "hinge":
        return HingeLoss() if binary else MulticlassHingeLoss(n_classes)
    if binary:
        return HuberHingeLoss(width)
    return SoftmaxLoss(n_classes, margin=1.0, temperature=width)


def l1_bound(estimator, n_features):
    """Bound on the l1 norm of a row, as given or as pure shares of noise need it; or None."""
    if estimator.x_l1_norm is not None:
        return float(estimator.x_l1_norm)
    if estimator.trust == "nodes" or estimator.delta > 0.0:
        return None
    # No row of norm 1 has more than the root of the number of its columns, and few come near.
    return float(estimator.x_norm) * max(1.0, defaults.L1_NORM * math.sqrt(n_features))


def paper_form(
    estimator, n_classes, n_features, counts=None, one_pass=False, noise=None, unit="record"
):
    """What nodes release, and how they go on from it.

    Parameters
    ----------
    estimator : DistributedDPClassifier
        With parameters that have been checked.

    n_classes, n_features : int

    counts : ndarray of int of shape (n_nodes,), default=None
        Rows of each node, or its users, public. Without them what is "auto" is 1 for now.

    one_pass : bool, default=False
        Whether there is one pass whatever ``n_passes`` says, as in a stream that does not end.

    noise : str, default=None
        Kind of noise; None is that of the parameter.

    unit : {"record", "user"}, default="record"
        Whom the release protects.

    Returns
    -------
    release : GossipRelease

    update : GossipUpdate
    """
    paper, n_nodes = paper_of(estimator), int(estimator.n_nodes)
    scaling, x_l1_norm = estimator.intercept_scaling, l1_bound(estimator, n_features)
    plan = partial(
        GossipRelease.plan,
        target_of(estimator, unit),
        loss=loss_of(paper, n_classes),
        n_features=n_features,
        x_norm=float(estimator.x_norm),
        x_l1_norm=x_l1_norm,
        intercept_scaling=None if is_auto(scaling) else float(scaling),
    )
    noise = noise or paper.noise
    if one_pass:
        # A user may come again. `fit` takes all that it has.
        n_calls = int(estimator.max_calls_per_user) if unit == "user" else 1
        release = plan(noise=noise, n_calls=n_calls)
    elif not is_auto(paper.n_passes):
        release = plan(noise=noise, n_passes=int(paper.n_passes))
    elif counts is None:
        release = plan(noise=noise)
    else:
        # As many passes as the rule says for each noise, and the quietest for all of them.
        kinds = kinds_of_noise(estimator.delta) if noise == "auto" else [noise]
        ones = [plan(noise=kind) for kind in kinds]
        made = [plan(noise=one.noise.kind, n_passes=_passes(one, counts, n_nodes)) for one in ones]
        release = min(made, key=lambda each: each.energy(1) / each.n_passes)
    batch_size = 1
    if not is_auto(paper.batch_size):
        batch_size = int(paper.batch_size)
    elif counts is not None:
        most = max(1, int(counts.max()))
        batch_size = most if release.n_passes > 1 else min(most, _batch(release, n_nodes))
    energy = release.energy(batch_size)
    level = math.sqrt(energy / release.noise.size)
    update = GossipUpdate(
        release.loss,
        batch_size,
        float(paper.radius),
        _steps(paper, n_nodes, release.clip_norm, energy),
        penalty=float(paper.alpha),
        threshold=level if is_auto(paper.sparsity) else float(paper.sparsity),
        decay=float(defaults.AVERAGE_POWER) if paper.average is True else 0.0,
        # The bound on the regret is that of the form that projects what is broadcast.
        lazy=paper.step != "regret",
        n_mixings=int(estimator.n_mixings),
        per_user=release.per_user,
    )
    return release, update


def _steps(paper, n_nodes, clip_norm, energy):
    if not isinstance(paper.step, str):
        return partial(_inverse_root, float(paper.step))
    if paper.alpha > 0.0:
        return partial(_inverse, 1.0 / float(paper.alpha))
    # A regret is the sum of what nodes lose, each with its own noise; of the last model only what
    # remains of the noise in the mean over nodes counts.
    if paper.step != "regret":
        energy /= n_nodes
    norm = math.sqrt(clip_norm**2 + energy)
    return partial(_inverse_root, math.sqrt(2.0) * float(paper.radius) / norm)


def _inverse_root(first, times):
    return first / np.sqrt(times)


def _inverse(first, times):
    return first / times


def _passes(release, counts, n_nodes):
    """Passes over the rows, each in one round of all rows of a node.

    Pure noise of a pass is in proportion to their number, so that all passes together know less
    the more there are: as many as a gradient of all rows is above the noise, averaged over nodes,
    allows. Gaussian noise grows with the square root only, and all passes together know the same.
    """
    most = int(defaults.MOST_PASSES)
    if release.noise.kind == "gaussian":
        return most
    ratio = int(counts.sum()) / max(math.sqrt(n_nodes * release.energy(1)), TINY)
    return max(1, min(most, round(defaults.PASSES * min(ratio, most / defaults.PASSES))))


def _batch(release, n_nodes):
    """Rows of a node in a round of a stream of unknown length, of which each row is seen once.

    With T rounds of n rows in all the regret a row is of the order of
    ``sqrt((gradient_norm^2 + energy / (n_nodes batch^2)) / T)``, T being ``n / batch``: least
    where both terms are equal. The last model is better for a few times as many rows.
    """
    noise = math.sqrt(release.energy(1) / n_nodes)
    return max(1, round(defaults.STREAMING * noise / release.clip_norm))
