"""What solvers release, seen from outside: exact values, scales of noise, certified errors."""

from dataclasses import dataclass

import numpy as np
import pytest

from skdp.solvers import _releases, erm, feature_ridge
from skdp.solvers.newton import minimise
from support.noise import noise_scale

PLACES = [
    (_releases, "gaussian_mechanism"),
    (_releases, "k_norm_mechanism"),
    (erm, "additive_mechanism"),
    (feature_ridge, "additive_mechanism"),
]


@dataclass(frozen=True)
class Release:
    """One call of a mechanism: exact value, scale of the noise, arguments and result."""

    value: np.ndarray
    scale: float
    options: dict
    released: np.ndarray

    @property
    def guarantee(self):
        return self.options["guarantee"]


def transcript(solve, replay=None):
    """Releases of ``solve()`` and its result; ``replay`` repeats the outputs of another run.

    That is adaptive composition in the flesh: given the same outputs so far, how far apart
    are the next exact values?
    """
    releases = []

    def spy(mechanism):
        def spied(value, **options):
            scale = noise_scale(
                lambda ruler: mechanism(value, **{**options, "random_state": ruler})
            )
            released = mechanism(value, **options)
            if replay is not None:
                released = replay[len(releases)].released
            releases.append(Release(np.array(value), scale, options, released))
            return released

        return spied

    with pytest.MonkeyPatch.context() as patch:
        for module, name in PLACES:
            patch.setattr(module, name, spy(getattr(module, name)))
        return releases, solve()


def let_the_solver_err(monkeypatch, module, sign, *, closer=1e-5):
    """Move minimisers along the first axis as far as the certificate allows."""

    def erring(loss, data, *, penalty, tolerance, linear=None):
        options = {"penalty": penalty, "linear": linear}
        weights = minimise(loss, data, tolerance=closer * tolerance, **options)
        weights[0, 0] += sign * tolerance / penalty
        return weights

    monkeypatch.setattr(module, "minimise", erring)
