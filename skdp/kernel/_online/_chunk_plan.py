"""Streams without end, from the parameters of an estimator: checks and public numbers."""

import math
from typing import Any

from skdp._defaults import kernel as defaults
from skdp._random._source import noise_source
from skdp._validation import between, is_auto, positive
from skdp.kernel._online._chunk import ChunkRelease
from skdp.learner import HuberLoss, LogisticLoss, SoftmaxLoss
from skdp.mechanisms._additive import check_memory
from skdp.privacy import ApproxDP

_LIMIT_BYTES = 16.0  # of a number in matrices of frequencies
_LIMIT_HALF_LIFE = 0.01
_LIMIT_PIECE = 500  # rows of a call
_LIMIT_PURE = 6, 40  # features without a delta


def check_half_life(model: Any) -> None:
    """Check the parameter, which is a number of calls."""
    if is_auto(model.half_life):
        return
    if isinstance(model.half_life, float) and model.half_life == math.inf:
        return
    positive(half_life=model.half_life)
    between(_LIMIT_HALF_LIFE, 1.0 / _LIMIT_HALF_LIFE, half_life=model.half_life)


def chunk_plan(model: Any, public: Any) -> ChunkRelease:
    """Stream without end, each call of which is one release."""
    if public.classes is None:
        loss: Any = HuberLoss(1.0)  # targets are in [-1, 1]
    elif len(public.classes) == 2:
        loss = LogisticLoss()
    else:
        loss = SoftmaxLoss(len(public.classes))
    target, n_features = public.target, public.n_features
    calls, participation = model._participation(public.unit)
    gamma = model._public_gamma(n_features, public.is_sparse)
    feature_state, noise_state = model._random_streams()
    size = model._n_components(n_features, _chunk_features(target, calls))
    check_memory(_LIMIT_BYTES * size * n_features, "n_components, or columns of X, must be fewer")
    return ChunkRelease.plan(
        target,
        loss=loss,
        features=model._draw_features(n_features, size, gamma, feature_state),
        noise=noise_source(noise_state),
        half_life=model.half_life,
        calls=calls,
        participation=participation,
        gamma=gamma,
    )


def _chunk_features(target: ApproxDP, calls: int) -> int:
    """As many features as second moments with noise tell of."""
    if target.delta > 0.0:
        mu = target.gaussian_target().mu / math.sqrt(calls)
        return round(float(defaults.ONLINE_FEATURES) * min(max(2.0 * mu, 0.5), 1.0))
    fewest, most = _LIMIT_PURE
    return round(min(max(math.sqrt(_LIMIT_PIECE * target.epsilon / calls) / 2.0, fewest), most))
