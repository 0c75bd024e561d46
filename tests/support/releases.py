"""What is released, recorded and replayed, and solvers that err."""

from contextlib import contextmanager

import pytest

from skdp.audit import recording
from skdp.learner._newton import minimise
from skdp.mechanisms import Released
from skdp.privacy import ApproxDP, GaussianDP
from support.insides import Replayer, listening

# What a release is planned for: pure and Gaussian, of both adjacencies.
TARGETS = pytest.mark.parametrize(
    "target",
    [
        kind(0.8, adjacency=adjacency)
        for kind in (ApproxDP, GaussianDP)
        for adjacency in ("replace-one", "add-remove")
    ],
    ids=str,
)


@contextmanager
def replaying(transcript):
    """Transcript of what is released within, where the values of another one go on."""
    values = [getattr(record, "released", None) for record in transcript]
    with listening(Replayer(values)), recording() as again:
        yield again
    assert len(again) == len(transcript)


def transcript(solve, replay=()):
    """Releases of ``solve()`` and its result; ``replay`` repeats the outputs of another run.

    That is adaptive composition in the flesh: given the same outputs so far, how far apart
    are the next exact values?
    """
    with replaying(replay) if replay else recording() as records:
        result = solve()
    return [record for record in records if isinstance(record, Released)], result


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
