"""Noisy descent of linear models: its releases, one by one."""

import inspect
import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LogisticRegression
from support.insides import noise_source
from support.linear import LAYOUTS, random_problem
from support.releases import transcript as transcript_of
from support.statistics import composed, strength

from skdp.exceptions import SolverError
from skdp.learner import HuberHingeLoss, LogisticLoss, NoisyDescent, SoftmaxLoss
from skdp.learner._newton import minimise
from skdp.privacy import ApproxDP, GaussianDP
from skdp.rows import _whitening as whitening
from skdp.rows._blocks import RowBlocks

ADJACENCIES = ["replace-one", "add-remove"]


def gradient_descent(loss, data, *, clip_norm, guarantee, noise, penalty=0.0):
    release = NoisyDescent(
        loss, data.n_features, data.row_norm, clip_norm, penalty, guarantee, guarantee
    )
    # Neighbours hear the same number, where it is private.
    return release(data, noise, None if guarantee.adjacency == "replace-one" else 3000.5)


def transcript(loss, data, clip_norm, guarantee, replay=(), penalty=0.0):
    """Releases of a descent and its result."""
    return transcript_of(
        lambda: gradient_descent(
            loss,
            data,
            clip_norm=clip_norm,
            guarantee=guarantee,
            noise=noise_source(0),
            penalty=penalty,
        ),
        replay,
    )


# With small caps the odd record's gradient is as long as the cap.
DESCENTS = [
    (LogisticLoss(0.5), 0.1),
    (LogisticLoss(), 0.1),
    (HuberHingeLoss(0.5), 0.15),
    (SoftmaxLoss(3), 0.2),
    (SoftmaxLoss(3, margin=1.0, temperature=0.5), 0.1),
]


def descent_neighbours(adjacency, layout, *, across=False, mixed=False, constant=0.0):
    """Many rows along one axis, and a record far outside the ball where they hardly reach.

    There the coordinates of the descent stretch most, and its gradient is capped. Replacing its
    row by the opposite one turns its gradient around; replacing it by one across changes second
    moments most. With mixed labels the other rows do not pull.
    """
    rng = np.random.default_rng(13)
    base = np.eye(1, 4) + 0.1 * rng.normal(size=(3000, 4))
    codes = np.arange(3001) % 2 if mixed else np.ones(3001, dtype=int)
    codes[0] = 0
    odd = 1e6 * np.eye(4)[[3]]
    other = 1e6 * np.eye(4)[[2]] if across else -odd
    to = LAYOUTS[layout]
    here = RowBlocks(to(np.vstack([odd, base])), codes, x_norm=2.0, constant=constant)
    if adjacency == "add-remove":
        return here, RowBlocks(to(base), codes[1:], x_norm=2.0, constant=constant)
    return here, RowBlocks(to(np.vstack([other, base])), codes, x_norm=2.0, constant=constant)


@pytest.mark.parametrize("layout", ["dense", "csr"])
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("pure", [False, True], ids=["gaussian", "pure"])
@pytest.mark.parametrize("penalty", [0.0, 7.0])
@pytest.mark.parametrize("loss, clip_norm", DESCENTS, ids=str)
def test_the_releases_of_a_descent_compose_to_its_guarantee(
    loss, clip_norm, penalty, pure, adjacency, layout
):
    guarantee = (ApproxDP if pure else GaussianDP)(2.0, adjacency=adjacency)
    # Under add-remove a constant feature can be part of the worst case, too.
    constant = 1.5 if adjacency == "add-remove" else 0.0
    here, there = descent_neighbours(adjacency, layout, constant=constant)
    first, weights = transcript(loss, here, clip_norm, guarantee, penalty=penalty)
    second, weights_there = transcript(
        loss, there, clip_norm, guarantee, replay=first, penalty=penalty
    )

    assert len(first) == len(second)
    assert_array_equal(weights, weights_there)  # nothing but the releases is used
    spent = []
    for a, b in zip(first, second, strict=True):
        assert a.scale == b.scale  # the noise does not depend on the data
        assert type(a.law.guarantee) is type(guarantee)
        assert a.law.guarantee.adjacency == adjacency
        spent.append(np.linalg.norm(a.asked - b.asked) / a.scale)
        assert spent[-1] <= strength(a.law.guarantee)
    assert composed(spent, guarantee) <= 2.0

    # Nothing is wasted: the parts add up, and the steps, the first at least, are attained.
    parts = [strength(a.law.guarantee) for a in first]
    assert_allclose(composed(parts, guarantee), 2.0, rtol=1e-9)
    steps = [np.shape(a.asked) == (loss.n_outputs, here.n_features) for a in first]
    attained = [s / p for s, p, step in zip(spent, parts, steps, strict=True) if step]
    assert attained[0] > 0.98
    if adjacency == "add-remove":
        # Second moments move as far as they can as well.
        others = [s / p for s, p, step in zip(spent, parts, steps, strict=True) if not step]
        assert min(others[:1], default=1.0) > 0.95
        if loss.n_outputs == 1:
            assert composed(spent, guarantee) > 0.95 * 2.0


def test_second_moments_move_most_between_rows_that_are_orthogonal():
    guarantee = GaussianDP(2.0)
    here, there = descent_neighbours("replace-one", "dense", across=True)
    (first, *_), _ = transcript(LogisticLoss(), here, 0.1, guarantee)
    (second, *_), _ = transcript(LogisticLoss(), there, 0.1, guarantee)
    assert first.asked.shape == (10,)  # half of a symmetric matrix of 4 features
    shift = np.linalg.norm(first.asked - second.asked)
    # In this form the Frobenius norm is the Euclidean one.
    assert_allclose(shift, np.linalg.norm(here.second_moments() - there.second_moments()))
    assert_allclose(shift, math.sqrt(2.0) * 2.0**2, rtol=1e-6)
    assert 0.95 < shift / first.scale / first.law.guarantee.mu <= 1.0


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("kind", [GaussianDP, ApproxDP])
def test_errors_of_sums_that_pass_are_part_of_the_sensitivity(kind, adjacency, monkeypatch):
    here, _ = descent_neighbours(adjacency, "dense")
    caps = []

    class Sums(whitening.CappedSums):
        def __init__(self, *args):
            super().__init__(*args)
            caps.append(self.cap)

    monkeypatch.setattr(inspect.getmodule(NoisyDescent), "CappedSums", Sums)
    error = 1.0
    while True:  # the largest that passes, to a few percent
        error *= 0.95
        monkeypatch.setattr(
            whitening.Coordinates, "capped_error", lambda *args, e=error, **options: e
        )
        try:
            releases, _ = transcript(LogisticLoss(), here, 0.5, kind(2.0, adjacency=adjacency))
        except SolverError:
            continue
        break
    exact = kind(2.0, adjacency=adjacency).n_records_changed * caps[-1]
    # The error counts on either side.
    steps = [release.sensitivity for release in releases if release.asked.ndim == 2]
    assert steps and error <= (min(steps) - exact) / 2.0 < 3.0 * error


@pytest.mark.parametrize("mu", [1e4, 30.0])
@pytest.mark.parametrize("loss", [LogisticLoss(), SoftmaxLoss(3)], ids=str)
def test_the_bias_of_caps_and_steps_vanishes_where_noise_does(loss, mu):
    rng = np.random.default_rng(14)
    n_classes = max(2, loss.n_outputs)
    X = rng.normal(size=(4000, 5)) @ np.diag([1.0, 1.0, 1.0, 0.3, 0.1])
    codes = (X @ rng.normal(size=(5, n_classes)) + rng.gumbel(size=(4000, n_classes))).argmax(1)
    data = RowBlocks(X, codes, x_norm=5.0)
    weights = gradient_descent(
        loss, data, clip_norm=None, guarantee=GaussianDP(mu), noise=noise_source(0)
    )
    reference = LogisticRegression(C=1e4, fit_intercept=False, tol=1e-8).fit(X, codes)
    best = loss.total(X @ reference.coef_.T, codes)
    found = loss.total(X @ weights.T, codes)
    assert best <= found * (1 + 1e-9)
    assert found - best < (0.01 if mu > 1e3 else 0.02) * (4000 * math.log(n_classes) - best)


def test_a_penalty_of_a_descent_is_that_of_the_minimiser():
    X, codes = random_problem(LogisticLoss(), np.random.default_rng(17), n=2000, spread=2.0)
    codes = (X[:, 0] > 0).astype(int)
    data = RowBlocks(X, codes, x_norm=5.0)
    exact = minimise(LogisticLoss(), data, penalty=300.0, tolerance=1e-6)
    weights = gradient_descent(
        LogisticLoss(),
        data,
        clip_norm=1.0,
        guarantee=GaussianDP(1e4),
        noise=noise_source(0),
        penalty=300.0,
    )
    assert_allclose(weights, exact, atol=0.02 * np.linalg.norm(exact))
