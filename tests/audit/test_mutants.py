"""Slips in the real code are found by a replay, and the code as it is raises no alarm."""

import warnings

import pytest
from mutants import MUTANTS, found
from mutation import Mutant
from support.configurations import CONFIGURATIONS, model, problem

from skdp.audit import replay
from skdp.releases import OutputPerturbation

ADJACENCIES = ("replace-one", "add-remove")
# Slips of one function share it, and it is sound once.
DEVICES = {m.target: m for m in MUTANTS if m.slips and not hasattr(m.target, "fit")}.values()


# Rows of zeros have one key: searches under add-remove refuse them, as it leaves a block empty.
# `test_replay_searches` replays those with keys that spread.
CLEAN = [
    (name, adjacency)
    for name, estimator in CONFIGURATIONS.items()
    for adjacency in ADJACENCIES
    if adjacency == "replace-one"
    or ("adjacency" in estimator.get_params() and not hasattr(estimator, "row_key"))
]


@pytest.mark.slow
@pytest.mark.every(14)
@pytest.mark.parametrize("slip", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_slip_is_found(slip):
    assert found(slip, seed=0).findings


@pytest.mark.slow
@pytest.mark.every(14)
@pytest.mark.parametrize("clean", CLEAN, ids="-".join)
def test_the_code_as_it_is_raises_no_alarm(clean, repetitions):
    name, adjacency = clean
    estimator = model(name)
    if "adjacency" in estimator.get_params():
        estimator.set_params(adjacency=adjacency)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        n = repetitions(72, 24)
        report = replay(estimator, *problem(name, n_samples=40), n=n, random_state=0)
    assert report.findings == ()
    assert 0.0 < report.share <= 1.0 + 1e-6


@pytest.mark.parametrize("mutant", DEVICES, ids=lambda mutant: mutant.name)
def test_functions_on_which_slips_show_are_sound_without_them(mutant):
    sound = Mutant(mutant.name, mutant.target, data=mutant.data)
    assert found(sound, 0, n=48).findings == ()


def test_a_count_before_a_minimiser_has_its_share_of_the_claim():
    (mutant,) = (m for m in MUTANTS if m.name == "objective: the count is not charged")
    report = found(mutant, seed=0, n=4)
    assert any("with all other releases" in finding.what for finding in report.findings)


def test_each_slip_is_one_of_the_code_as_it_is():
    # Only some are run at a time: what has moved or is gone is to be noticed for all.
    for mutant in MUTANTS:
        with mutant.applied():
            pass


def test_a_slip_lasts_as_long_as_its_block():
    (mutant,) = (m for m in MUTANTS if m.name == "output: halved sensitivity")
    before = OutputPerturbation.__call__.__code__
    with mutant.applied():
        assert OutputPerturbation.__call__.__code__ is not before
    assert OutputPerturbation.__call__.__code__ is before
    assert len({m.name for m in MUTANTS}) == len(MUTANTS) >= 200
