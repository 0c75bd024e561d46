"""Real workers of Dask, in processes of their own, one of which is lost."""

import os
from functools import partial

import numpy as np
import pandas as pd
import pytest
import sklearn
from numpy.testing import assert_array_equal
from sklearn.base import clone

from skdp import DPKernelRidge, DPLogisticRegression
from skdp.exceptions import SourceChangedError
from skdp.preprocessing import DPQuantileScaler
from skdp.privacy import BudgetLedger

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
dd = pytest.importorskip("dask.dataframe")

N = 9000
FEATURES = list("abc")


def frame():
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(rng.uniform(-1, 1, (N, 3)) / 2, columns=FEATURES)
    return rows.assign(ill=rows["a"] + rng.normal(0, 0.2, N) > 0)


def lost_once(rows, marker, after):
    """Take a worker away at a later pass, once."""
    passes = sorted(marker.glob("pass*"))
    (marker / f"pass {len(passes)}").touch()
    if len(passes) == after and not (marker / "lost").exists():
        (marker / "lost").touch()
        os._exit(1)
    return rows


def other_when_charged(rows, ledger):
    """Change one number once a fit was charged."""
    return rows.assign(a=rows["a"].where(rows.index != 4000, 0.5)) if ledger.history() else rows


@pytest.fixture(scope="module")
def workers():
    options = dict(n_workers=2, threads_per_worker=1, dashboard_address=None)
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster):
        yield


MODELS = {
    "gradient": DPLogisticRegression(delta=1e-6, random_state=0),
    "objective": DPLogisticRegression(adjacency="add-remove", random_state=0),
    "kernel": DPKernelRidge(delta=1e-6, y_bounds=(0, 1), random_state=0),
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of the engine, about the worker that it has lost
@pytest.mark.parametrize("name", MODELS)
def test_workers_in_processes_add_the_same_sums_though_one_is_lost(workers, tmp_path, name):
    rows = frame().astype(float)
    expected = clone(MODELS[name]).fit(rows[FEATURES], rows["ill"])
    lazy = dd.from_pandas(rows, npartitions=3, sort=False)
    broken = lazy.map_partitions(partial(lost_once, marker=tmp_path, after=11), meta=lazy._meta)
    for source in (lazy, broken):
        with sklearn.config_context(working_memory=0):
            model = clone(MODELS[name]).fit(source, "ill")
        assert_array_equal(model.coef_, expected.coef_)
        assert model.guarantee_ == expected.guarantee_
    assert (tmp_path / "lost").exists()


@pytest.mark.parametrize("model", [DPLogisticRegression(1.0, 1e-6), DPQuantileScaler(1.0, 1e-6)])
def test_partitions_that_change_are_an_error(model):
    target = ["ill"] if isinstance(model, DPLogisticRegression) else []
    ledger = BudgetLedger(epsilon=1.0, delta=1e-6)
    lazy = dd.from_pandas(frame()[FEATURES + target], npartitions=3, sort=False)
    other = lazy.map_partitions(partial(other_when_charged, ledger=ledger), meta=lazy._meta)
    model = clone(model).set_params(ledger=ledger)
    in_threads = dask.config.set(scheduler="threads")  # which share the ledger
    with in_threads, sklearn.config_context(working_memory=0), pytest.raises(SourceChangedError):
        model.fit(other, *target)
    assert len(ledger.history()) == 1
    assert not any(name.endswith("_") and not name.startswith("_") for name in vars(model))
