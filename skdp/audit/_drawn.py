"""Noise that was drawn, taken from transcripts: what is released less what is asked."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from skdp.audit._findings import Finding
from skdp.mechanisms import NoiseLaw, Released
from skdp.privacy import ApproxDP, GaussianDP

__all__ = ["GAUSSIAN", "K_NORM", "LAPLACE", "Drawn", "broken_records", "noisy_records"]

# Numbers of laws in arrays.
LAPLACE, K_NORM, GAUSSIAN = range(3)
_KINDS = ("laplace", "k_norm", "gaussian")
_LARGEST = 2.0**53  # where a lattice ends
_ROUNDING = 1e-9  # relative, of scales that were computed in another order


def noisy_records(transcripts: Sequence) -> list[list[Released]]:
    """Releases with additive noise of a known law, of each transcript; others are left out."""
    return [
        [one for one in transcript if isinstance(one, Released) and isinstance(one.law, NoiseLaw)]
        for transcript in transcripts
    ]


def broken_records(fits: Sequence[Sequence[Released]]) -> list[Finding]:
    """What single records show, without any chance: each fault once for each place."""
    of_laws: dict[int, str] = {}  # there are few of them
    found: dict[tuple[str, str], Finding] = {}
    for record in (one for fit in fits for one in fit):
        law = record.law
        of_law = of_laws.get(id(law))
        if of_law is None:
            of_law = of_laws[id(law)] = _fault_of_law(law)
        faults = [("law", of_law)] if of_law else []
        if not record.scale >= law.scale * record.sensitivity * (1.0 - _ROUNDING):
            faults.append(("law", "the scale is below that of the law times the sensitivity"))
        if not record.step > 0.0:
            faults.append(("noise", "what is released is on no lattice"))
        if record.asked.shape != record.released.shape:
            faults.append(("law", "what is released has another shape than what is asked"))
        for kind, what in faults:
            found.setdefault((what, record.where), Finding(kind, what, record.where))
    return list(found.values())


def _fault_of_law(law: NoiseLaw) -> str:
    """Why a law, for a sensitivity of 1, does not satisfy its guarantee; empty if it does."""
    guarantee = law.guarantee
    if law.kind != "gaussian":
        if not isinstance(guarantee, ApproxDP):
            return f"{law.kind} noise states a guarantee that is not pure"
        needed, name = guarantee.epsilon, "1 / epsilon"
    else:
        if isinstance(guarantee, ApproxDP) and guarantee.delta > 0.0:
            guarantee = guarantee.gaussian_target()
        if not isinstance(guarantee, GaussianDP):
            return "gaussian noise states a guarantee that is not Gaussian"
        needed, name = guarantee.mu, "1 / mu"
    enough = law.scale * needed >= 1.0 - _ROUNDING
    return "" if enough else f"the scale of the law is below {name} of its guarantee"


@dataclass(frozen=True, eq=False)
class Drawn:
    """Noise of many records, one after the other, fit by fit.

    Attributes
    ----------
    steps : ndarray of shape (n_numbers,)
        In steps of the lattice.

    half : ndarray of shape (n_numbers,)
        Half a step in units of the scale that was recorded: what rounding may have moved.

    low, high : ndarray of shape (n_numbers,)
        Bounds on the magnitude before it was rounded, in units of the scale.

    sizes, kinds, places, fits, positions : ndarray of shape (n_records,)
        Of each record: its numbers, law, place in the code, fit and number within the fit.

    wheres : list of str
        Places in the code.

    off_lattice : list of str
        Those that released what is no multiple of the step.
    """

    steps: np.ndarray
    half: np.ndarray
    low: np.ndarray
    high: np.ndarray
    sizes: np.ndarray
    kinds: np.ndarray
    places: np.ndarray
    fits: np.ndarray
    positions: np.ndarray
    wheres: list[str]
    off_lattice: list[str]

    @classmethod
    def of(cls, fits: Sequence[Sequence[Released]]) -> "Drawn | None":
        """Noise of the records of several fits; None if there is no number in them.

        Where what is asked is beyond the lattice, or the noise might be, both are clamped: such
        records say nothing. Which they are does not depend on the noise.
        """
        # Vectors only, of a known scale: what else is wrong is said by `broken_records`.
        chosen = [
            (record, fit, position)
            for fit, records in enumerate(fits)
            for position, record in enumerate(records)
            if record.asked.size
            and record.asked.shape == record.released.shape
            and record.scale > 0.0
            and record.step >= 0.0
        ]
        if not chosen:
            return None
        records = [one for one, _, _ in chosen]
        sizes = np.array([one.asked.size for one in records])
        starts = np.cumsum(sizes) - sizes
        asked = np.concatenate([one.asked.ravel() for one in records]).astype(np.float64)
        released = np.concatenate([one.released.ravel() for one in records])
        scale = np.array([one.scale for one in records], dtype=np.float64)
        step = np.array([one.step for one in records], dtype=np.float64)
        # Without a lattice nothing is rounded; the unit is a small one, then.
        unit = np.where(step > 0.0, step, scale * 2.0**-40)
        with np.errstate(over="ignore", invalid="ignore"):
            unit_each, is_lattice = np.repeat(unit, sizes), np.repeat(step > 0.0, sizes)
            asked, released = asked / unit_each, released.astype(np.float64) / unit_each
            off = is_lattice & ~((np.rint(released) == released) & np.isfinite(released))
            far = ~(np.abs(asked) <= _LARGEST / 2.0) | ~np.isfinite(released)
            steps = released - np.where(is_lattice, np.rint(asked), asked)
        wheres = sorted({one.where for one in records})
        number = {where: i for i, where in enumerate(wheres)}
        places = np.array([number[one.where] for one in records])
        off_places = np.unique(places[np.add.reduceat(off, starts, dtype=np.int64) > 0])
        kept = (np.add.reduceat(far, starts, dtype=np.int64) == 0) & (scale / unit < 2.0**46)
        numbers = np.repeat(kept, sizes)
        half = np.where(is_lattice, 0.5 * np.repeat(unit / scale, sizes), 0.0)[numbers]
        steps = steps[numbers]
        size = np.abs(steps) * np.repeat(unit / scale, sizes)[numbers]
        return cls(
            steps=steps,
            half=half,
            low=np.maximum(size - half, 0.0) * (1.0 - _ROUNDING),
            high=(size + half) * (1.0 + _ROUNDING),
            sizes=sizes[kept],
            kinds=np.array([_KINDS.index(one.law.kind) for one in records])[kept],
            places=places[kept],
            fits=np.array([fit for _, fit, _ in chosen])[kept],
            positions=np.array([position for _, _, position in chosen])[kept],
            wheres=wheres,
            off_lattice=[wheres[i] for i in off_places],
        )

    def __len__(self) -> int:
        return len(self.sizes)

    @cached_property
    def starts(self) -> np.ndarray:
        """Where the numbers of each record begin."""
        return np.cumsum(self.sizes) - self.sizes

    @cached_property
    def signs(self) -> np.ndarray:
        """Of each number: -1, 0 or 1."""
        return np.sign(self.steps)

    def per_record(self, values: np.ndarray) -> np.ndarray:
        """Sums of ``values``, one for each number, over each record."""
        return np.add.reduceat(values, self.starts)

    def rows(self, chosen: np.ndarray, values: np.ndarray) -> np.ndarray:
        """``values`` of the chosen records, all of one size, one record a row.

        Parameters
        ----------
        chosen : ndarray of bool or int
            Of records.

        values : ndarray of shape (n_numbers,)

        Returns
        -------
        ndarray of shape (n_chosen, size)
        """
        starts, sizes = self.starts[chosen], self.sizes[chosen]
        return values[starts[:, np.newaxis] + np.arange(sizes[0])]

    def matched(self) -> tuple[np.ndarray, np.ndarray]:
        """Records of the fits that released vectors of the same laws and sizes as most others.

        Returns
        -------
        records : ndarray of shape (n_matched, n_positions)
            Numbers of records, one fit a row.

        fits : ndarray of shape (n_matched,)
        """
        names = np.unique(self.fits)
        bounds = np.searchsorted(self.fits, names), np.searchsorted(self.fits, names, "right")
        shapes = [
            (self.kinds[a:b].tobytes(), self.sizes[a:b].tobytes(), self.positions[a:b].tobytes())
            for a, b in zip(*bounds, strict=True)
        ]
        ((common, _),) = Counter(shapes).most_common(1)
        like = np.array([shape == common for shape in shapes])
        begins, ends = bounds[0][like], bounds[1][like]
        return begins[:, np.newaxis] + np.arange(ends[0] - begins[0]), names[like]
