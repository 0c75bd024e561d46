"""Speed of exact lattice noise beside numpy's own generators, per core.

    OPENBLAS_NUM_THREADS=1 python benchmarks/noise_speed.py

Processor time of this thread, best of several rounds that alternate between the contestants.
"""

import os
import time

import numpy as np
from scipy.special import ndtri

from skdp._random._source import noise_source

N = 1 << 20
SCALE = 5000.0  # lattice steps; mechanisms use hundreds to tens of thousands


def main():
    """Print million draws a second."""
    system, generator = noise_source(), np.random.default_rng()
    uniform = generator.random(N)
    contestants = {
        "exact lattice Gaussian, system entropy": lambda: system.normal(N, SCALE),
        "exact lattice Laplace, system entropy": lambda: system.laplace(N, SCALE),
        "exact lattice K-norm, 1024 coordinates": lambda: [
            system.k_norm(1024, SCALE) for _ in range(N // 1024)
        ],
        "exact lattice K-norm, vectors of 55": lambda: system.k_norms(N // 55, 55, SCALE),
        "numpy standard_normal (PCG64)": lambda: generator.standard_normal(N),
        "numpy laplace (PCG64)": lambda: generator.laplace(size=N),
        "os.urandom, 8 bytes": lambda: os.urandom(8 * N),
        "scipy ndtri": lambda: ndtri(uniform),
    }
    best = dict.fromkeys(contestants, np.inf)
    for _ in range(7):
        for name, draw in contestants.items():
            start = time.thread_time()
            draw()
            best[name] = min(best[name], time.thread_time() - start)
    base = best["numpy standard_normal (PCG64)"]
    for name, seconds in best.items():
        rate = N / seconds / 1e6
        print(f"{name:46s} {rate:7.1f} million/s   {seconds / base:5.2f} x standard_normal")


if __name__ == "__main__":
    main()
