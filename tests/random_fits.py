"""Random calls on random data: python tests/random_fits.py --cases 20000 --seed 0 [--only N].

Prints each breach of what `support.cases` checks, how many there are of each kind, and the share
of plain fits that was refused. Seeds count from --seed; --only repeats the case of one seed.
"""

import argparse
import collections
import faulthandler
import os
import sys
import time

os.environ.setdefault("SKDP_KNOWN_SEEDS", "1")

from support.cases import attempt


def main():
    """Run cases and print what became of them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int)
    options = parser.parse_args()
    faulthandler.enable()
    seeds = range(options.seed, options.seed + options.cases)
    if options.only is not None:
        seeds = [options.only]
    counts, kinds, slowest = collections.Counter(), collections.Counter(), (0.0, "")
    begin = time.process_time()
    for seed in seeds:
        print(
            f"\rseed {seed}", end="\r", file=sys.stderr, flush=True
        )  # where it crashed, if it does
        start = time.process_time()
        found = attempt(seed)
        slowest = max(slowest, (time.process_time() - start, found.told))
        counts[found.result] += 1
        kinds.update({breach.split(":")[0] for breach in found.breaches})
        if found.breaches or options.only is not None:
            print(found.result, found.told, *found.breaches, sep="\n    ", flush=True)
    print(f"{len(seeds)} cases in {time.process_time() - begin:.0f} s of CPU: {dict(counts)}")
    print(f"breaches: {dict(kinds)}; slowest {slowest[0]:.1f} s: {slowest[1]}")
    return sum(kinds.values())


if __name__ == "__main__":
    sys.exit(main() > 0)
