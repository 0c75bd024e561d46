"""Slips in what is released, charged, claimed and read are found, and the code raises no alarm."""

import warnings

import pytest
from slips import DEVICES, of_function, slips
from support.configurations import CONFIGURATIONS, model, problem

from skdp.audit import replay

SLIPS = list(slips())
WHOLES = (
    *("DPPipeline", "DPGridSearch", "DPRandomizedSearch", "DPEpsilonSearch", "DPQuantileScaler"),
    "search",
)
OF_WHOLES = [slip for slip in SLIPS if slip.name.startswith(WHOLES)]
OF_FITS = [slip for slip in SLIPS if slip not in OF_WHOLES]
# Rows of zeros have one key: searches under add-remove refuse them, as it leaves a block empty.
# `test_replay_searches` replays those with keys that spread. Prediction sets refuse it as well.
CLEAN = [
    (name, adjacency)
    for name, estimator in CONFIGURATIONS.items()
    for adjacency in ("replace-one", "add-remove")
    if adjacency == "replace-one"
    or (
        "adjacency" in estimator.get_params()
        and not hasattr(estimator, "row_key")
        and not name.startswith("DPConformal")
    )
]


@pytest.mark.slow
@pytest.mark.every(50)
@pytest.mark.parametrize("slip", OF_FITS, ids=lambda slip: slip.name)
def test_a_slip_of_a_fit_is_found(slip):
    assert slip.report().findings


@pytest.mark.slow
@pytest.mark.every(200)
@pytest.mark.parametrize("slip", OF_WHOLES, ids=lambda slip: slip.name)
def test_a_slip_of_several_fits_or_selections_is_found(slip):
    assert slip.report().findings


def test_there_are_slips_of_each_kind_under_names_of_their_own():
    assert len({slip.name for slip in SLIPS}) == len(SLIPS) >= 400


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


@pytest.mark.parametrize("device", DEVICES)
def test_devices_raise_no_alarm(device):
    assert replay(*of_function(device), n=48, random_state=0).findings == ()
