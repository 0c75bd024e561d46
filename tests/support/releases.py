"""What is released, seen from outside: exact values, scales of noise, certified errors."""

from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import pytest

from skdp.mechanisms import Lattice, NoiseLaw, Released, released_values
from skdp.solvers.newton import minimise
from support.noise import Ruler


@contextmanager
def listening(listener):
    """Let ``listener`` hear of each release; what it returns, if not None, goes on instead."""
    token = released_values.set(listener)
    try:
        yield
    finally:
        released_values.reset(token)


@dataclass(frozen=True)
class Release:
    """One release: exact value, what was declared of it, and the noise as it was drawn.

    Parameters
    ----------
    value : ndarray

    told, error : float
        Sensitivity and certified error that a mechanism was told.

    sensitivity : float
        As recorded, of the value.

    law : NoiseLaw
        As declared, for a sensitivity of 1.

    scale : float
        Of the noise that was drawn.

    released : ndarray
    """

    value: np.ndarray
    told: float
    error: float
    sensitivity: float
    law: NoiseLaw
    scale: float
    released: np.ndarray

    @property
    def guarantee(self):
        return self.law.guarantee

    @property
    def options(self):
        """What a mechanism was told."""
        return {
            "l2_sensitivity": self.told,
            "error": self.error,
            "guarantee": self.guarantee,
        }


def transcript(solve, replay=None):
    """Releases of ``solve()`` and its result; ``replay`` repeats the outputs of another run.

    That is adaptive composition in the flesh: given the same outputs so far, how far apart
    are the next exact values? What is released past the recorded call is an error.
    """
    releases, drawn, errors = [], [], []
    choose, draw = Lattice.for_sensitivity, NoiseLaw.draw

    def chosen(sensitivity, **options):
        lattice = choose(sensitivity, **options)
        errors.append((lattice, sensitivity, options.get("error", 0.0)))
        return lattice

    def drawing(law, source, n, size, steps):
        ruler = Ruler()
        draw(law, ruler, n, size, steps)
        drawn.append(ruler.scale)  # in steps of the lattice
        return draw(law, source, n, size, steps)

    def listener(record):
        if not isinstance(record, Released):
            return None  # the linear term of an objective
        ((lattice, told, error),), (scale,) = errors, drawn  # one recorded call for each noise
        errors.clear(), drawn.clear()
        released = record.released if replay is None else replay[len(releases)].released
        releases.append(
            Release(
                np.array(record.asked),
                told,
                error,
                record.sensitivity,
                record.law,
                scale * lattice.step,
                released,
            )
        )
        return released

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Lattice, "for_sensitivity", chosen)
        patch.setattr(NoiseLaw, "draw", drawing)
        with listening(listener):
            result = solve()
    assert not drawn and not errors
    return releases, result


def let_the_solver_err(monkeypatch, module, sign, *, closer=1e-5):
    """Move minimisers along the first axis as far as the certificate allows.

    Parameters
    ----------
    monkeypatch : MonkeyPatch

    module : module
        Where `minimise` is called.

    sign : float

    closer : float, default=1e-5
        Share of the tolerance that is left to the error of the true solver.
    """

    def erring(loss, data, *, penalty, tolerance, linear=None):
        options = {"penalty": penalty, "linear": linear}
        weights = minimise(loss, data, tolerance=closer * tolerance, **options)
        weights[0, 0] += sign * tolerance / penalty
        return weights

    monkeypatch.setattr(module, "minimise", erring)
