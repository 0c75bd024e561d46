"""What runs of somebody's release come to: numbers, and which outcomes are the same."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from skdp._random._words import seed_sequence
from skdp._validation import shown

__all__ = ["Outcomes", "check_reusable", "generators", "n_always_nan", "outcomes", "run"]

_LARGEST = 1e150  # beyond, squares overflow


@dataclass(frozen=True)
class Outcomes:
    """Runs in both worlds.

    Parameters
    ----------
    world : ndarray of int, shape (n,)
        0 for runs on ``D``, 1 for those on its neighbour.

    numbers : ndarray of shape (n, n_numbers)
        Finite; 0 where an outcome has no number.

    same : ndarray of int, shape (n,)
        Equal where outcomes are, to the last bit.

    kind : ndarray of int, shape (n,)
        Equal where outcomes have NaN and infinite entries at the same places, or the same type of
        exception.
    """

    world: np.ndarray
    numbers: np.ndarray
    same: np.ndarray
    kind: np.ndarray

    def __len__(self) -> int:
        return len(self.world)

    def __getitem__(self, rows: np.ndarray) -> "Outcomes":
        return Outcomes(self.world[rows], self.numbers[rows], self.same[rows], self.kind[rows])


@dataclass(frozen=True)
class _Raised:
    """An exception, as the outcome that it is."""

    error: Exception


def check_reusable(**named: Any) -> None:
    """Check that data can be read run after run."""
    for name, data in named.items():
        parts = [data]
        if isinstance(data, tuple | list) and len(data) <= 10:
            parts += list(data)
        elif isinstance(data, Mapping):
            parts += list(data.values())
        for part in parts:
            if isinstance(part, Iterator):
                raise ValueError(
                    f"{name} must be data that can be used again, for it is released many times; "
                    f"got {shown(type(part).__name__)}, which is exhausted after one run. "
                    "Give a list or an array."
                )


def generators(random_state: Any) -> tuple[np.random.Generator, np.random.Generator]:
    """Two generators of an audit's own choices, from the operating system by default."""
    root = np.random.SeedSequence() if random_state is None else seed_sequence(random_state)
    first, second = root.spawn(2)
    return np.random.default_rng(first), np.random.default_rng(second)


def run(release: Callable[[Any], Any], data: Any, statistic: Callable[[Any], Any] | None) -> Any:
    """One run; an exception is an outcome as well, for whoever sees it."""
    try:
        outcome = release(data)
    except Exception as error:
        return _Raised(error)
    return _plain(outcome if statistic is None else statistic(outcome))


def _plain(outcome: Any) -> Any:
    """One array of all numbers of an outcome, or one of texts."""
    if isinstance(outcome, Mapping):
        outcome = [outcome[key] for key in sorted(outcome)]
    if isinstance(outcome, tuple | list):
        parts = [np.atleast_1d(_plain(part)) for part in outcome]
        if any(part.dtype.kind == "U" for part in parts):
            parts = [part.astype("U") for part in parts]
        return np.concatenate([part.ravel() for part in parts]) if parts else np.zeros(0)
    values = np.asarray(outcome)
    if values.dtype.kind == "c":
        values = np.stack([values.real, values.imag], axis=-1)
    if values.dtype.kind in "US":
        return values.astype("U")
    if values.dtype.kind not in "biuf":
        raise ValueError(
            f"release must return numbers or arrays; got {type(outcome).__name__}. For anything "
            "else give statistic=, a function of the outcome that returns numbers."
        )
    return values.astype(float)  # 1 and 1.0 are the same outcome


def outcomes(results: list[Any], world: np.ndarray) -> Outcomes:
    """Gather the results of `run`.

    Parameters
    ----------
    results : list

    world : ndarray of int

    Returns
    -------
    Outcomes

    Raises
    ------
    ValueError
        If results differ in shape.

    Exception
        That of the first run, if all runs raised the same.
    """
    values = [result for result in results if not isinstance(result, _Raised)]
    if not values and len({type(result.error) for result in results}) == 1:
        raise results[0].error
    shapes = {value.shape for value in values}
    if len(shapes) > 1:
        first, second = sorted(shapes, key=str)[:2]
        raise ValueError(
            f"release must return outcomes of one shape; got {first} and {second}. Give "
            "statistic=, a function of the outcome that returns as many numbers every time."
        )
    is_text = [value.dtype.kind == "U" for value in values]
    if any(is_text) and not all(is_text):
        raise ValueError("release must return outcomes of one kind; got texts and numbers.")
    return _coded(results, values, world)


def n_always_nan(results: list[Any]) -> tuple[int, int]:
    """Numbers of an outcome that are NaN in every run, and how many numbers there are.

    Parameters
    ----------
    results : list
        Of `run`, of one shape.

    Returns
    -------
    n_nan, n_numbers : int
        0 where a run raised, or returned texts.
    """
    if not all(isinstance(one, np.ndarray) and one.dtype.kind == "f" for one in results):
        return 0, 0
    always = np.ones(results[0].size, dtype=bool)
    for one in results:
        always &= np.isnan(one.ravel())
    return int(always.sum()), always.size


def _coded(results: list[Any], values: list[np.ndarray], world: np.ndarray) -> Outcomes:
    """Numbers of outcomes, and codes of those that are the same or of the same kind."""
    raised = np.array([isinstance(result, _Raised) for result in results])
    errors = [type(result.error).__qualname__ for result in results if isinstance(result, _Raised)]
    numbers = np.zeros((len(results), 0))
    same, kind = np.zeros((2, len(results)), dtype=object)
    if not values:
        pass
    elif values[0].dtype.kind == "U":
        same[~raised] = [repr(value.tolist()) for value in values]
    else:
        block = np.stack([value.ravel() for value in values]) + 0.0  # -0.0 is 0.0
        block[np.isnan(block)] = np.nan  # whatever its bits
        finite = np.isfinite(block)
        numbers = np.zeros((len(results), block.shape[1]))
        numbers[~raised] = np.clip(np.where(finite, block, 0.0), -_LARGEST, _LARGEST)
        same[~raised] = _rows(block)
        kind[~raised] = _rows(np.where(finite, 0.0, block)) if not finite.all() else 0
    same[raised] = kind[raised] = [f"raised {error}" for error in errors]
    return Outcomes(world, numbers, _codes(same), _codes(kind))


def _rows(block: np.ndarray) -> list[bytes]:
    """Each row as bytes, equal where rows are to the last bit."""
    data, width = block.tobytes(), block.itemsize * block.shape[1]
    return [data[i * width : (i + 1) * width] for i in range(len(block))]


def _codes(keys: np.ndarray) -> np.ndarray:
    """An int for each different key."""
    known: dict[Any, int] = {}
    return np.array([known.setdefault(key, len(known)) for key in keys], dtype=np.int64)
