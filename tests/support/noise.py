"""Stand-ins for noise: none at all, a given one, one that fails, one that shows its scale.

Each takes the place of a `NoiseSource`, or of the draws of all of them. What a stand-in does not
draw fails for want of random words, so that no law passes unseen.
"""

import math
from dataclasses import dataclass, field

import numpy as np

from support.insides import NoiseSource

LAWS = ("normal", "k_norm", "laplace")


class Silent(NoiseSource):
    """No noise; notes what is asked for: law, number of coordinates and scale."""

    def __init__(self):
        self.drawn = []

    def normal(self, size, scale):
        self.drawn.append(("gaussian", size, scale))
        return np.zeros(size, dtype=np.int64)

    def k_norms(self, n, size, scale):
        self.drawn.append(("k_norm", n * size, scale))
        return np.zeros((n, size), dtype=np.int64)


class Fixed(NoiseSource):
    """Gives out the noise that it is given."""

    def __init__(self, integers):
        self.integers = integers

    def normal(self, size, scale):
        assert size == self.integers.size
        return self.integers.ravel()

    def k_norms(self, n, size, scale):
        assert (n, size) == self.integers.shape
        return self.integers


class Greedy(NoiseSource):
    """Takes more words than it needs before each draw, and appends them to ``taken``."""

    def __init__(self, taken, *words):
        super().__init__(*words)
        self.taken = taken

    def laplace(self, size, scale):
        self.taken.extend(word for n in (1, 1, 20, 3) for word in self._words(n))
        return super().laplace(size, scale)


class Ruler(NoiseSource):
    """Draws the same large integer always, and notes the scale it is asked for.

    The result of a mechanism shows the lattice, then, and the scale is in steps of it.
    """

    length = 2**45

    def __init__(self):
        self.scale = None

    def _mark(self, size, scale):
        self.scale = scale
        return np.full(size, self.length, dtype=np.int64)

    def k_norms(self, n, size, scale):
        return self._mark(n * size, scale).reshape(n, size)

    normal = laplace = _mark


def noise_scale(release):
    """Scale of the last noise of ``release(noise)``, which is added to its result."""
    ruler = Ruler()
    step = np.ravel(release(ruler))[0] / ruler.length
    return ruler.scale * 2.0 ** round(math.log2(step))


@dataclass
class Constant:
    """Takes the place of all noise: every coordinate of each draw is ``value``."""

    value: int = 0
    draws: list = field(default_factory=list)  # law, size, scale

    @property
    def scale(self):
        """Scale of the last draw."""
        return self.draws[-1][2]

    def take_over(self, monkeypatch):
        """Stand in for every source, whoever has made it."""
        for law in LAWS:

            def draw(source, size, scale, law=law):
                self.draws.append((law, size, scale))
                return np.full(size, self.value, dtype=np.int64)

            monkeypatch.setattr(NoiseSource, law, draw)

        def vectors(source, n, size, scale):
            return np.stack([source.k_norm(size, scale) for _ in range(n)])

        def pairs(source, n_pairs, scale):
            return source.k_norm(2 * n_pairs, scale)

        monkeypatch.setattr(NoiseSource, "k_norms", vectors)
        monkeypatch.setattr(NoiseSource, "k_norm_pairs", pairs)
        return self
