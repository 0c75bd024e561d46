"""Which release a stream has, from the parameters of an estimator: checks and public numbers."""

import math
from functools import lru_cache
from typing import Any

from skdp import learner
from skdp._defaults import kernel as defaults
from skdp._random._source import noise_source
from skdp._validation import (
    between,
    is_auto,
    number_or_auto,
    one_of,
    positive,
    positive_int,
    short_repr,
)
from skdp.kernel._online._base import BLOCK
from skdp.kernel._online._chunk import ChunkRelease
from skdp.kernel._online._fed_back import FedBackRelease
from skdp.kernel._online._final import FinalRelease
from skdp.kernel._online._matrix import LONGEST, MatrixRelease, TreeRelease
from skdp.kernel._online._query import QueryRelease
from skdp.kernel._online._recursion import Recursion
from skdp.kernel._online._sensitivity import RESIDUALS, automatic_t0
from skdp.kernel._queries import KAPPA
from skdp.mechanisms._additive import check_memory
from skdp.privacy import ApproxDP, n_records_changed

RELEASES = ("auto", "chunk", "final", "matrix", "tree", "sgd", "query")
_LIMIT_VISITS = 100
TRANSCRIPTS: dict[str, Any] = dict(matrix=MatrixRelease, tree=TreeRelease, sgd=FedBackRelease)
NEEDED = {"tree": "horizon", "matrix": "horizon", "query": "n_queries"}

# Where targets span [-1, 1]: noise is proportional to the cap, and so is what a step can learn.
CAPS = {"final": float(defaults.CAP), "sgd": float(defaults.CAP), "query": 0.5}
TYPICAL_SIZE = int(defaults.ONLINE_FEATURES)

_LIMIT_RADIUS = 1e-6, 1e6
_LIMIT_OFFSET = 1e9
_LIMIT_BYTES = 8.0  # of a number
_LIMIT_BLOCKS = 4  # that are held at once


def kind_of_release(model):
    """Release that "auto" stands for, by public parameters."""
    if model.release != "auto":
        return model.release
    if model.horizon is None:
        return "chunk"
    return "matrix" if model.delta > 0.0 and model.horizon <= LONGEST else "tree"


def check_stream_parameters(model):
    """Check what streams of kernels have beside a budget."""
    one_of(RELEASES, release=model.release)
    one_of(RESIDUALS, residual=model.residual)
    model._check_kernel_parameters()
    positive(theta=model.theta, radius=model.radius)
    if not 0.5 < model.theta < 1.0:
        raise ValueError(f"theta must be above 1/2 and below 1; got {short_repr(model.theta)}.")
    between(*_LIMIT_RADIUS, radius=model.radius)
    if model.release == "auto" and model.horizon is not None:
        positive_int(horizon=model.horizon)
    release = kind_of_release(model)
    # Those take gradients at noisy points.
    if release in TRANSCRIPTS and model.residual == "plain":
        raise ValueError(
            f"residual must be 'huber' or 'ball' with {release=}: gradients of the plain "
            "recursion are unbounded at a noisy point; got 'plain'."
        )
    if release in NEEDED:
        name = NEEDED[release]
        if getattr(model, name) is None:
            raise ValueError(f"{name} must be a positive int with {release=}; got None.")
        positive_int(**{name: getattr(model, name)})
    model._check_user_calls()
    if release == "final" and model.max_calls_per_user > _LIMIT_VISITS:
        raise ValueError(
            f"max_calls_per_user must be at most {_LIMIT_VISITS} with release='final', whose "
            f"accountant compares the calls of a user; got {short_repr(model.max_calls_per_user)}."
        )
    if release != "chunk" and is_auto(model.y_bounds):
        raise ValueError(
            f"y_bounds must be two numbers with {release=}: only 'chunk' can learn bounds, "
            "because the others reuse the rows of the first call; got 'auto'."
        )
    check_half_life(model)
    if release != "chunk":
        stream_recursion(model, 1.0)


def stream_recursion(model, kappa, size=TYPICAL_SIZE, calls=1):
    """Public numbers of the recursion, in units of half the range of the target.

    Parameters
    ----------
    model : DPOnlineKernelRegressor

    kappa : float
        Bound on the norm of a row of features.

    size : int
        Number of features.

    calls : int, default=1
        In how many a user takes a step.
    """
    number_or_auto(t0=model.t0)
    release = kind_of_release(model)
    t0 = automatic_t0(model.theta, kappa)
    if is_auto(model.t0):
        # Early functions are less noisy the larger it is.
        t0 *= defaults.ONLINE_OFFSET if release in ("tree", "matrix") else 1.0
    else:
        least = automatic_t0(model.theta, 1.0)
        if not least <= model.t0 <= _LIMIT_OFFSET:
            raise ValueError(
                f"t0 must be at least {least:.6g} with theta={short_repr(model.theta)}, so that "
                f"steps do not overshoot, and at most 1e9; got {short_repr(model.t0)}."
            )
        t0 = max(float(model.t0), t0)
    cap, radius = math.inf, math.inf
    if model.residual == "huber":
        cap = model._cap(CAPS[release] if release in CAPS else _planned_cap(model, size, calls))
    elif model.residual == "ball":
        radius = float(model.radius)
        if release in TRANSCRIPTS:  # points are projected: no residual gets there
            cap = kappa * radius + 1.0
    return Recursion(float(model.theta), t0, cap, radius)


def _planned_cap(model, size, calls):
    """Cap for all rows that a stream is planned for: more of them stand more noise, and signal."""
    if model.delta > 0.0:
        mu = _mu(float(model.epsilon), float(model.delta))
    else:  # of Gaussian noise as loud
        mu = float(model.epsilon) / math.sqrt((size + 1.0) * int(model.horizon).bit_length())
    signal = float(model.horizon) * mu * 2.0 / n_records_changed(model.adjacency) / calls
    return min(math.sqrt(signal / defaults.ONLINE_ROWS), 0.5)


@lru_cache
def _mu(epsilon, delta):
    return ApproxDP(epsilon, delta).gaussian_target().mu


def stream_plan(model, public):
    """Release from the first row on; with the unit "user" a step is a user."""
    target, n_features, is_of_users = public.target, public.n_features, public.unit == "user"
    release = kind_of_release(model)
    if release == "query" and is_of_users:
        raise ValueError(
            "groups must be None with release='query', which keeps an expansion on rows; use "
            "another release, or limit the rows of each user with "
            "skdp.preprocessing.bound_contributions; got user IDs."
        )
    calls, participation = model._participation(public.unit)
    if release == "chunk":
        return chunk_plan(model, public)
    gamma = model._public_gamma(n_features, public.is_sparse)
    function = dict(residual=model.residual, bound=model.sensitivity)
    feature_state, noise_state = model._random_streams()
    # Drawn for all releases, so that a seed has the same noise in each.
    secret = model._secret(noise_state)
    if release == "query":
        return QueryRelease.plan(
            target,
            recursion=stream_recursion(model, KAPPA),
            kappa=KAPPA,
            n_queries=int(model.n_queries),
            n_features=n_features,
            kernel=model.kernel,
            gamma=gamma,
            nu=model.nu,
            x_norm=float(model.x_norm),
            secret=secret,
            seeded=model.random_state is not None,
            **function,
        )
    is_large = release == "final" and target.delta > 0.0
    automatic = int(defaults.MOST_FEATURES) if is_large else TYPICAL_SIZE
    size = model._n_components(n_features, automatic)
    check_memory(
        _LIMIT_BYTES * size * (n_features + _LIMIT_BLOCKS * BLOCK), "n_components must be smaller"
    )
    features = model._draw_features(n_features, size, gamma, feature_state)
    stream = dict(
        recursion=stream_recursion(model, features.row_norm, size, calls),
        kappa=features.row_norm,
        gamma=gamma,
        features=features,
        noise=noise_source(noise_state),
        calls=calls,
        participation=participation,
    )
    if release == "final":
        return FinalRelease.plan(target, **stream, **function)
    horizon = int(model.horizon) if release in NEEDED else None
    return TRANSCRIPTS[release].plan(target, horizon=horizon, **stream)


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
        loss: Any = learner.HuberLoss(1.0)  # targets are in [-1, 1]
    elif len(public.classes) == 2:
        loss = learner.LogisticLoss()
    else:
        loss = learner.SoftmaxLoss(len(public.classes))
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
