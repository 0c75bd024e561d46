"""Slips in the real code are found by a replay, and the code as it is raises no alarm."""

import warnings

import pytest
from mutants import MUTANTS, found, ordinary
from support.configurations import CONFIGURATIONS, model, problem

from skdp.audit import replay
from skdp.releases import OutputPerturbation

ADJACENCIES = ("replace-one", "add-remove")
DEVICES = [m for m in MUTANTS if m.slips and not hasattr(m.target, "fit")]


@pytest.fixture
def chosen(request, repetitions):
    """Skip all but some of the many cases; none with ``--full``."""

    def choose(cases, case, every):
        if list(cases).index(case) % repetitions(1, every):
            pytest.skip("runs with --full")

    return choose


@pytest.mark.slow
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_slip_is_found(mutant, chosen):
    chosen(MUTANTS, mutant, 6)
    report = found(mutant, seed=0)
    assert report.findings
    assert report.seconds < 60.0


@pytest.mark.slow
@pytest.mark.parametrize("name", CONFIGURATIONS)
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_the_code_as_it_is_raises_no_alarm(name, adjacency, chosen):
    chosen(CONFIGURATIONS, name, 6)
    estimator = model(name)
    if "adjacency" in estimator.get_params():
        estimator.set_params(adjacency=adjacency)
    elif adjacency != "replace-one":
        pytest.skip("users replace their records")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        report = replay(estimator, *problem(name, n_samples=40), n=72, random_state=0)
    assert report.findings == ()
    assert 0.0 < report.share <= 1.0 + 1e-6


@pytest.mark.parametrize("mutant", DEVICES, ids=lambda mutant: mutant.name)
def test_functions_on_which_slips_show_are_sound_without_them(mutant):
    X, y = ordinary(mutant.target)
    report = replay(mutant.target, X, y, n=48, random_state=0)
    assert report.findings == ()


def test_a_slip_lasts_as_long_as_its_block():
    (mutant,) = (m for m in MUTANTS if m.name == "output: halved sensitivity")
    before = OutputPerturbation.__call__.__code__
    with mutant.applied():
        assert OutputPerturbation.__call__.__code__ is not before
    assert OutputPerturbation.__call__.__code__ is before
    assert len({m.name for m in MUTANTS}) == len(MUTANTS) >= 200
