"""The paper's family of algorithms: from parameters and public counts to releases and steps."""

import math
from functools import partial

import numpy as np

from skdp._defaults import network as defaults
from skdp._grid import TINY
from skdp._validation import is_auto
from skdp.distributed._gossip import GossipRelease
from skdp.distributed._solver_gossip import GossipUpdate
from skdp.learner import HingeLoss, HuberHingeLoss, LogisticLoss, MulticlassHingeLoss, SoftmaxLoss
from skdp.privacy import ApproxDP

__all__ = ["loss_of", "paper_form"]


def loss_of(estimator, n_classes):
    """Loss of the parameter ``loss``."""
    if estimator.loss == "log_loss":
        return LogisticLoss() if n_classes == 2 else SoftmaxLoss(n_classes)
    if estimator.loss == "hinge":
        return HingeLoss() if n_classes == 2 else MulticlassHingeLoss(n_classes)
    width = float(estimator.huber_width)
    if n_classes == 2:
        return HuberHingeLoss(width)
    return SoftmaxLoss(n_classes, margin=1.0, temperature=width)


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
    plan = partial(
        GossipRelease.plan,
        ApproxDP(
            float(estimator.epsilon),
            float(estimator.delta),
            adjacency=estimator.adjacency,
            unit=unit,
        ),
        loss=loss_of(estimator, n_classes),
        n_features=n_features,
        x_norm=float(estimator.x_norm),
        x_l1_norm=None if estimator.x_l1_norm is None else float(estimator.x_l1_norm),
        intercept_scaling=_number(estimator.intercept_scaling),
    )
    noise = noise or estimator.noise
    if one_pass:
        # A user may come again. `fit` takes all that it has.
        n_calls = int(estimator.max_calls_per_user) if unit == "user" else 1
        release = plan(noise=noise, n_calls=n_calls)
    elif is_auto(estimator.n_passes) and counts is None:
        release = plan(noise=noise)
    elif not is_auto(estimator.n_passes):
        release = plan(n_passes=int(estimator.n_passes), noise=noise)
    else:
        release = _with_passes(plan, estimator, int(counts.sum()))
    batch_size = _batch_size(estimator, release, counts)
    return release, _update(estimator, release, batch_size)


def _number(value):
    return None if is_auto(value) else float(value)


def _with_passes(plan, estimator, n_rows):
    """Release with as many passes as the rule says for its noise, the quietest for all of them."""
    kinds = [estimator.noise]
    if estimator.noise == "auto":
        kinds = ["k_norm", "laplace"] + ["gaussian"] * (estimator.delta > 0.0)
    n_nodes = int(estimator.n_nodes)
    made = []
    for kind in kinds:
        one = plan(noise=kind)
        n_passes = _passes(kind, one.energy(1), n_rows, n_nodes)
        made.append(plan(noise=kind, n_passes=n_passes))
    return min(made, key=lambda release: release.energy(1) / release.n_passes)


def _batch_size(estimator, release, counts):
    if not is_auto(estimator.batch_size):
        return int(estimator.batch_size)
    if counts is None:
        return 1
    most = max(1, int(counts.max()))
    if release.n_passes > 1:
        return most
    energy, n_nodes = release.energy(1), int(estimator.n_nodes)
    return min(most, _batch(energy, release.clip_norm, n_nodes))


def _update(estimator, release, batch_size):
    energy = release.energy(batch_size)
    level = math.sqrt(energy / release.noise.size)
    return GossipUpdate(
        release.loss,
        batch_size,
        float(estimator.radius),
        _steps(estimator, release.clip_norm, energy),
        penalty=float(estimator.alpha),
        threshold=level if is_auto(estimator.sparsity) else float(estimator.sparsity),
        decay={True: float(defaults.AVERAGE_POWER), False: 0.0}.get(estimator.average, 0.0),
        # The bound on the regret is that of the form that projects what is broadcast.
        lazy=not _is(estimator.step, "regret"),
        n_mixings=int(estimator.n_mixings),
        per_user=release.per_user,
    )


def _steps(estimator, clip_norm, energy):
    if not isinstance(estimator.step, str):
        return partial(_inverse_root, float(estimator.step))
    if estimator.alpha > 0.0:
        return partial(_inverse, 1.0 / float(estimator.alpha))
    # A regret is the sum of what nodes lose, each with its own noise; of the last model only what
    # remains of the noise in the mean over nodes counts.
    if not _is(estimator.step, "regret"):
        energy /= int(estimator.n_nodes)
    norm = math.sqrt(clip_norm**2 + energy)
    return partial(_inverse_root, math.sqrt(2.0) * float(estimator.radius) / norm)


def _is(value, name):
    return isinstance(value, str) and value == name


def _inverse_root(first, times):
    return first / np.sqrt(times)


def _inverse(first, times):
    return first / times


def _passes(kind, energy, n_rows, n_nodes):
    """Passes over the rows, each in one round of all rows of a node.

    Pure noise of a pass is in proportion to their number, so that all passes together know less
    the more there are: as many as a gradient of all rows is above the noise, averaged over nodes,
    allows. Gaussian noise grows with the square root only, and all passes together know the same.
    """
    most = int(defaults.MOST_PASSES)
    if kind == "gaussian":
        return most
    ratio = n_rows / max(math.sqrt(n_nodes * energy), TINY)
    return max(1, min(most, round(defaults.PASSES * min(ratio, most / defaults.PASSES))))


def _batch(energy, gradient_norm, n_nodes):
    """Rows of a node in a round of a stream of unknown length, of which each row is seen once.

    With T rounds of n rows in all the regret a row is of the order of
    ``sqrt((gradient_norm^2 + energy / (n_nodes batch^2)) / T)``, T being ``n / batch``: least
    where both terms are equal. The last model is better for a few times as many rows.
    """
    return max(1, round(defaults.STREAMING * math.sqrt(energy / n_nodes) / gradient_norm))
