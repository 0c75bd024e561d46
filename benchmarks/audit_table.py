"""How near neighbours come to what was declared, for every estimator and every mechanism.

    OPENBLAS_NUM_THREADS=1 python benchmarks/audit_table.py [--only WORDS]

Each row is a replay on neighbours (`skdp.audit.replay`). Of the places in the code that release,
it has the least and the largest attained part of the declared sensitivity: never above 1, and at
least .9 on a worst pair, or there is a reason. The last number is the part of the claim that one
pair uses up in all releases together. The cases, with their worst pairs, are those of
``tests/support/audits.py``, and for users, who have 1 to 50 rows, of
``tests/support/user_audits.py``.
"""

import argparse
import itertools
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.audits import Row, cases
from support.user_audits import user_cases


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="part of the names of rows")
    only, begun, wrong, n = parser.parse_args().only, time.perf_counter(), 0, 0
    print(f"{'least':>6} {'most':>6} {'total':>6} {'n':>5}  what")
    for case in itertools.chain(cases(), user_cases()):
        if only in case.name:
            row = Row.of(case)
            told = "; ".join(filter(None, (row.wrong and f"WRONG: {row.wrong}", case.reason)))
            print(
                f"{row.least:6.3f} {row.most:6.3f} {row.total:6.3f} {row.n_releases:5d}  "
                f"{case.name}{told and f'  ({told})'}",
                flush=True,
            )
            wrong, n = wrong + bool(row.wrong), n + 1
    print(f"{n} rows, {wrong} wrong, {time.perf_counter() - begun:.0f} s")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
