"""Splits as files, and workers that read them in a peer's environment."""

import json
import os
import subprocess
from pathlib import Path

import numpy as np

from peers import data
from peers.environments import interpreter

__all__ = ["Worker", "write_rows"]

_WORKERS = Path(__file__).resolve().parent / "workers"


def write_rows(path: Path, split: data.Split) -> None:
    """Write what peers get of a split: everything but the labels of test rows.

    Parameters
    ----------
    path : Path

    split : Split
        With two classes, or a target to predict.
    """
    table, regression = split.table, split.y_bounds is not None
    y = np.clip(split.y, *split.y_bounds) if regression else np.asarray(split.y)
    low, high = _ends(table)
    arrays = dict(X=split.X, X_test=split.X_test, y=np.asarray(y, dtype=float), low=low, high=high)
    for end, raw in (("", split.raw), ("_test", split.raw_test)):
        arrays[f"numbers{end}"] = _numbers(table, raw)
        arrays[f"codes{end}"] = _codes(table, raw)
    n_raw = len(table.bounds) + len(table.indicators) + len(table.categories)
    n_numeric = len(table.bounds)
    np.savez(
        path,
        **arrays,
        y_bounds=np.array(split.y_bounds if regression else ()),
        # Of prepared columns: numbers come first, and of the rest each is 0 or 1.
        x_low=np.where(np.arange(split.X.shape[1]) < n_numeric, -1.0, 0.0),
        x_high=np.ones(split.X.shape[1]),
        scale=np.sqrt(n_raw),
        column=strongest(split) if regression else -1,
    )


def strongest(split: data.Split) -> int:
    """Return the column that goes best with the target on test rows."""
    X, y = split.X_test, split.y_test
    spread = X.std(axis=0)
    products = ((X - X.mean(axis=0)) * (y - y.mean())[:, np.newaxis]).mean(axis=0)
    return int(np.argmax(np.abs(products) / np.where(spread > 0.0, spread, np.inf)))


def _ends(table):
    """Bounds of numbers, in logarithms where they are public on that scale."""
    pairs = [
        (0.0, np.log1p(high - low)) if name in table.log else (low, high)
        for name, (low, high) in table.bounds.items()
    ]
    return np.array(pairs, dtype=float).reshape(-1, 2).T


def _numbers(table, raw):
    columns = []
    for name, (low, high) in table.bounds.items():
        values = np.clip(raw[name].to_numpy(dtype=float), low, high)
        columns.append(np.log1p(values - low) if name in table.log else values)
    return np.column_stack(columns) if columns else np.empty((len(raw), 0))


def _codes(table, raw):
    """Place of each category in its public list, -1 where it is not there; indicators."""
    columns = []
    for name, values in table.categories.items():
        places = {value: float(i) for i, value in enumerate(values)}
        columns.append(np.array([places.get(value, -1.0) for value in raw[name]]))
    columns += [raw[name].to_numpy(dtype=float) for name in table.indicators]
    return np.column_stack(columns) if columns else np.empty((len(raw), 0))


class Worker:
    """A process in a peer's environment, which waits for jobs.

    Parameters
    ----------
    peer : str

    environments : Path

    Attributes
    ----------
    versions : dict
        Of the peer and what matters to it.
    """

    def __init__(self, peer: str, environments: Path):
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        environment |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            [interpreter(peer, environments), _WORKERS / f"run_{peer}.py"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        self.versions = self._answer()

    def _answer(self):
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"The worker {self._process.args[1]} has ended.")
        return json.loads(line)

    def ask(self, **job) -> dict:
        """Run a job; the answer has "seconds" or "error"."""
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def close(self) -> None:
        """End the process."""
        self._process.stdin.close()
        self._process.wait()
