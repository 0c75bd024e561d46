"""Public random words, the same in every process, on every machine and in every numpy."""

import math

import numpy as np

__all__ = ["GAP", "GRAPH", "LINKS", "draw", "drawn_links", "words"]

_STREAM = 0x736B6470  # keeps these words apart from other uses of the same seed
LINKS, GRAPH, GAP = range(3)  # what words are for


def words(seed, *purpose):
    """Key of a Philox generator. Raw words, unlike draws, are the same in all numpy versions."""
    sequence = np.random.SeedSequence(seed, spawn_key=(_STREAM, *purpose))
    return sequence.generate_state(2, np.uint64)


def draw(n, seed, *purpose):
    """``n`` words of 64 bits."""
    return np.random.Philox(key=words(seed, *purpose)).random_raw(n)


def drawn_links(topology, start, n_rounds, purpose):
    """Links that are up by chance, of shape (n_rounds, n_edges)."""
    # A step of the counter gives four words. Each round begins at a step of its own.
    n_edges = len(topology.edges)
    steps = -(-n_edges // 4)
    bits = np.random.Philox(key=words(topology.seed, purpose), counter=int(start) * steps)
    drawn = bits.random_raw(n_rounds * steps * 4).reshape(n_rounds, steps * 4)
    threshold = np.uint64(min(math.ceil(topology.edge_probability * 2.0**64), 2**64 - 1))
    return drawn[:, :n_edges] < threshold
