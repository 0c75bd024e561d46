"""How tight black-box bounds are, how often they are wrong, and whether half the noise is noticed.

    OPENBLAS_NUM_THREADS=1 python benchmarks/audit_black_box.py
    OPENBLAS_NUM_THREADS=1 python benchmarks/audit_black_box.py --audits 100 --jobs 2
    OPENBLAS_NUM_THREADS=1 python benchmarks/audit_black_box.py --laws laplace -n 5000

Laplace and Gaussian mechanisms at a value of 0 and of 1, their sensitivity. Each audit is
evaluated at two confidences: at 0.95 the bounds are averaged, and at 1 - 1e-6 none may be above
the claim. "Halved" adds half of the noise under the same claim, with fewer runs. With delta > 0
the claim is `GaussianDP(mu)` that meets (epsilon, delta) exactly: its bound is that on mu, and
"epsilon of mu" is what it converts to at delta. "epsilon" needs no Gaussian.
"""

import argparse
import math
import time
from concurrent.futures import ProcessPoolExecutor

import numpy as np

from skdp.audit import estimate_epsilon
from skdp.mechanisms import gaussian_mechanism, laplace_mechanism
from skdp.privacy import ApproxDP, GaussianDP, gaussian_mu

EPSILONS, DELTA = (0.5, 1.0, 4.0), 1e-5
LAWS = {"laplace": 0.0, "gaussian": DELTA}
SURE = 1 - 1e-6


def claim_of(epsilon, delta):
    """Guarantee that is met."""
    return GaussianDP(gaussian_mu(epsilon=epsilon, delta=delta)) if delta else ApproxDP(epsilon)


def release_of(claim, noise=1.0):
    """Mechanism that meets ``claim``, with a multiple of the noise."""
    if isinstance(claim, GaussianDP):
        met = GaussianDP(claim.mu / noise)
        return lambda value: gaussian_mechanism(value, l2_sensitivity=1.0, guarantee=met)
    met = ApproxDP(claim.epsilon / noise)
    return lambda value: laplace_mechanism(value, l1_sensitivity=1.0, guarantee=met)


class Remembered:
    """A release whose runs can be told once more."""

    def __init__(self, release):
        self.release = release
        self.runs = {0.0: [], 1.0: []}

    def __call__(self, value):
        self.runs[value].append(self.release(value))
        return self.runs[value][-1]

    def again(self, value):
        return self.runs[value].pop()


def audits(job):
    """Audits of one mechanism: bounds at 0.95, bounds when sure, seconds, halved flagged."""
    epsilon, delta, n, n_halved = job
    claim = claim_of(epsilon, delta)
    remembered = Remembered(release_of(claim))
    start = time.perf_counter()
    found = estimate_epsilon(remembered, 0.0, 1.0, n=n, delta=delta, guarantee=claim)
    seconds = time.perf_counter() - start
    sure = estimate_epsilon(remembered.again, 0.0, 1.0, n=n, delta=delta, confidence=SURE)
    halved = release_of(claim, 0.5)
    flagged = estimate_epsilon(halved, 0.0, 1.0, n=n_halved, delta=delta, guarantee=claim).violated
    mu = claim.mu if delta else math.inf
    return (
        found.epsilon,
        found.mu,
        found.epsilon_if_gaussian(),
        sure.epsilon > epsilon or sure.mu > mu,
        found.violated,
        flagged,
        seconds,
    )


def main():
    """Print a line a mechanism."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--audits", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("-n", type=int, default=25_000, help="runs on each data set")
    parser.add_argument("--laws", nargs="+", choices=LAWS, default=list(LAWS))
    parser.add_argument("--epsilons", nargs="+", type=float, default=list(EPSILONS))
    parser.add_argument("--halved", type=int, default=5_000, help="the same, of halved noise")
    options = parser.parse_args()
    print(
        f"{options.audits} audits, {options.n} runs on each data set; {options.halved} if halved"
    )
    print("law       epsilon  mean bound / claim                       above  refuted  halved  s")
    with ProcessPoolExecutor(options.jobs) as pool:
        for delta in (LAWS[law] for law in options.laws):
            for epsilon in options.epsilons:
                jobs = [(epsilon, delta, options.n, options.halved)] * options.audits
                rows = np.array(list(pool.map(audits, jobs)), dtype=float)
                bound, mu, of_mu = rows[:, :3].mean(axis=0)
                shares = f"epsilon {bound / epsilon:.3f}"
                if delta:
                    claimed = gaussian_mu(epsilon=epsilon, delta=delta)
                    shares += f"  mu {mu / claimed:.3f}  epsilon of mu {of_mu / epsilon:.3f}"
                above, refuted, flagged = rows[:, 3:6].sum(axis=0).astype(int)
                print(
                    f"{'Gaussian' if delta else 'Laplace':8s}  {epsilon:7g}  {shares:40s} "
                    f"{above:4d} {refuted:7d} {flagged:7d}  {rows[:, 6].mean():.1f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
