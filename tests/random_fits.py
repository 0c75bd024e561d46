"""Fits of random valid configurations: python tests/random_fits.py [n] [first seed].

Prints what else happened than what may happen (see `support.fits`), and the share that was
refused.
"""

import sys
import time

from support.fits import attempt


def main(n=2000, first=0):
    """Run fits and print what became of them."""
    counts = dict.fromkeys(("fitted", "refused", "broken"), 0)
    slowest, begin = (0.0, ""), time.perf_counter()
    for seed in range(first, first + n):
        start = time.perf_counter()
        result, told = attempt(seed)
        slowest = max(slowest, (time.perf_counter() - start, told))
        counts[result] += 1
        if result != "fitted":
            print(result, told, flush=True)
    print(f"{n} fits in {time.perf_counter() - begin:.0f} s: {counts}")
    print(f"share refused: {counts['refused'] / n:.2%}; slowest {slowest[0]:.1f} s: {slowest[1]}")
    return counts


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:]))["broken"] > 0)
