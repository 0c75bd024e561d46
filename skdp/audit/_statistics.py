"""Numbers of an outcome that may tell two worlds apart, learned from runs of which each is known.

Whatever is learned here is tested on other runs. A poor statistic costs power, never validity.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from skdp.audit._outcomes import Outcomes

__all__ = ["Statistic", "statistics"]

_COORDINATES = 8  # looked at one by one
_WIDE = 300  # more numbers than these are not whitened


@dataclass(frozen=True)
class Statistic:
    """A number of each outcome, in words and as a function."""

    name: str
    of: Callable[[Outcomes], np.ndarray]


def statistics(learn: Outcomes) -> list[Statistic]:
    """Learn statistics that tend to be larger for runs on the neighbour.

    Parameters
    ----------
    learn : Outcomes

    Returns
    -------
    list of Statistic
    """
    found = [
        _frequencies("how often this very outcome was seen", "same", learn),
        _frequencies("which entries are finite, or the exception", "kind", learn),
    ]
    if learn.numbers.shape[1]:
        found += _linear(learn)
        found += _low_bits(learn)
        found += _classifiers(learn)
    return found


def _frequencies(name: str, field: str, learn: Outcomes) -> Statistic:
    """Logarithm of how much more often an outcome was seen in the one world.

    That finds noise that is missing, seeded or of few bits, and is the likelihood ratio of what
    has few outcomes, such as randomised response.
    """
    seen = getattr(learn, field)
    size = int(seen.max()) + 1
    counts = [np.bincount(seen[learn.world == w], minlength=size) + 0.5 for w in (0, 1)]
    ratios = np.log(counts[1]) - np.log(counts[0])

    def ratio(runs: Outcomes) -> np.ndarray:
        codes = getattr(runs, field)
        known = codes < size
        return np.where(known, ratios[np.where(known, codes, 0)], 0.0)

    return Statistic(name, ratio)


@dataclass(frozen=True)
class _Scaling:
    """Numbers about their centre, in units of their spread, as one half of the runs has them."""

    centre: np.ndarray
    spread: np.ndarray

    @classmethod
    def of(cls, numbers: np.ndarray) -> "_Scaling":
        centre = np.median(numbers, axis=0)
        spread = np.mean(np.abs(numbers - centre), axis=0)
        return cls(centre, np.where(spread > 0, spread, 1.0))

    def __call__(self, runs: Outcomes) -> np.ndarray:
        return np.clip((runs.numbers - self.centre) / self.spread, -1e12, 1e12)


def _linear(learn: Outcomes) -> Iterator[Statistic]:
    """Projections, distances and coordinates."""
    scaling = _Scaling.of(learn.numbers)
    numbers = scaling(learn)
    worlds = [numbers[learn.world == w] for w in (0, 1)]
    centres = [np.median(world, axis=0) for world in worlds]
    size = numbers.shape[1]

    def along(direction: np.ndarray) -> Callable[[Outcomes], np.ndarray]:
        return lambda runs: scaling(runs) @ direction

    def coordinate(j: int) -> Callable[[Outcomes], np.ndarray]:
        # As it came: scaling would round what differs in the last bits.
        return lambda runs: runs.numbers[:, j]

    def distance(order: int, at: np.ndarray) -> Callable[[Outcomes], np.ndarray]:
        return lambda runs: np.linalg.norm((scaling(runs) - at) * weights, ord=order, axis=1)

    def nearer(order: int) -> Callable[[Outcomes], np.ndarray]:
        here, there = distance(order, centres[0]), distance(order, centres[1])
        return lambda runs: here(runs) - there(runs)

    # Norms compare coordinates in the units in which they came.
    weights = scaling.spread / scaling.spread.max()
    apart = np.abs(centres[1] - centres[0])
    for j in np.argsort(-apart, kind="stable")[:_COORDINATES]:
        yield Statistic(f"number {j}" if size > 1 else "the number", coordinate(int(j)))
    middle = np.median(numbers, axis=0)
    yield Statistic("the distance from the middle", distance(2, middle))
    if size == 1:
        return
    means = [world.mean(axis=0) for world in worlds]
    squares = weights * weights
    yield Statistic(
        "the projection on the difference of means", along((means[1] - means[0]) * squares)
    )
    yield Statistic(
        "the projection on the difference of medians", along((centres[1] - centres[0]) * squares)
    )
    yield Statistic("which centre is nearer (l2)", nearer(2))
    yield Statistic("which centre is nearer (l1)", nearer(1))
    if size <= _WIDE:
        # Noise that coordinates share cancels in the directions where they vary least.
        within = np.concatenate([world - mean for world, mean in zip(worlds, means, strict=True)])
        covariance = within.T @ within / len(within)
        ridge = 1e-10 * max(np.trace(covariance) / size, 1e-300)
        inverse = np.linalg.pinv(covariance + ridge * np.eye(size), hermitian=True)
        yield Statistic("the discriminant", along(inverse @ (means[1] - means[0])))


def _lowest_bits(numbers: np.ndarray) -> np.ndarray:
    """Exponents of the lowest bits that are set: how fine the grid is that numbers lie on."""
    mantissas, exponents = np.frexp(numbers)
    whole = (mantissas * 2.0**53).astype(np.int64)
    lowest = np.frexp((whole & -whole).astype(float))[1]
    return np.where(numbers == 0.0, 2000.0, exponents - 53.0 + lowest)


def _low_bits(learn: Outcomes) -> Iterator[Statistic]:
    """The floats that value + noise can reach depend on the value (Mironov, CCS 2012)."""
    yield Statistic("the lowest bit", lambda runs: _lowest_bits(runs.numbers).min(axis=1))


def _classifiers(learn: Outcomes) -> Iterator[Statistic]:
    """Scores of trees, for events that are no half-spaces."""
    from sklearn.ensemble import ExtraTreesClassifier  # slow to load, and replay needs none
    from sklearn.tree import DecisionTreeClassifier

    scaling = _Scaling.of(learn.numbers)
    size = learn.numbers.shape[1]

    def features(runs: Outcomes) -> np.ndarray:
        numbers = scaling(runs)
        bits = _lowest_bits(runs.numbers[:, :_COORDINATES])
        return np.column_stack([np.clip(numbers, -1e30, 1e30), bits])

    least = max(2, len(learn) // 200)
    tree = DecisionTreeClassifier(max_leaf_nodes=16, min_samples_leaf=least, random_state=0)
    models = [("a decision tree", tree)]
    if size > 2:
        forest = ExtraTreesClassifier(
            30, max_leaf_nodes=64, min_samples_leaf=least, random_state=0
        )
        models.append(("a forest", forest))
    for name, model in models:
        model.fit(features(learn), learn.world)
        yield Statistic(f"the score of {name}", _score(model, features))


def _score(model: Any, features: Callable[[Outcomes], np.ndarray]) -> Callable:
    return lambda runs: model.predict_proba(features(runs))[:, 1]
