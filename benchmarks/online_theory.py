"""The error of the online recursion: the printed theorem, its counterexample, and the rate.

    OPENBLAS_NUM_THREADS=1 python benchmarks/online_theory.py [--steps 1000000] [--streams 20]
        [--output FILE]

COUNTEREXAMPLE. One point, K(x, x) = 1, targets that are all 1: no chance is involved. The error
of the recursion beside Theorem 2 of the paper as printed (probability 1/2, no noise) and beside
`skdp.kernel.papers.error_bound`, the corrected one. Where theta is above 3/4 the error falls
more slowly than the claim, and exceeds it from some time on, whatever its constant.

RATE. A kernel on a circle with known eigenvalues and ``f_rho = L_K^r g``: the distance of the
function in the kernel's space, the median and the worst of independent streams, beside the
corrected bound at probability .95, for several r at their best theta. The slope over the last
decade is compared with the exponent of the theory: an upper bound may fall more slowly than what
it bounds.

--output writes FILE.png and FILE.csv.
"""

import argparse
import csv

import numpy as np

from skdp.kernel._online._sensitivity import automatic_t0
from skdp.kernel.papers import best_theta, error_bound, printed_error_bound
from skdp.kernel.papers import online_rate as rate

POINTS = 64
THETAS = (0.75, 0.9, 0.98)
SMOOTHNESS = (0.75, 1.0, 1.5)
NOISE = 0.5  # targets are the regression function plus or minus this


def single_point(times, theta, t0):
    """Error on one point, at some times."""
    f, last, errors = 0.0, 0, []
    for time in times.tolist():
        for t in range(last, time):
            f -= (t + t0) ** -theta * (f - 1.0) + f / (t + t0)
        last = time
        errors.append(abs(f - 1.0))
    return np.array(errors)


class Circle:
    """A kernel of known eigenvalues on a circle, and a function of known smoothness."""

    def __init__(self, r):
        t = np.arange(POINTS) / POINTS
        row = 0.5 + 3.0 * (t**2 - t + 1.0 / 6.0)
        half = np.fft.rfft(row).real / POINTS
        h = np.maximum(np.arange(POINTS // 2 + 1), 1.0) ** -0.55
        g = np.fft.irfft(h, POINTS)
        target = np.fft.irfft(half**r * np.fft.rfft(g), POINTS)
        size = (1.0 - NOISE) / np.abs(target).max()
        self.kernel = row[(np.arange(POINTS)[:, None] - np.arange(POINTS)) % POINTS]
        self.spectrum = np.concatenate([half, half[-2:0:-1]])
        self.target, self.source = size * target, size * float(np.sqrt(np.mean(g**2)))

    def distances(self, functions):
        """Of functions from the regression function, in the norm of the kernel's space."""
        powers = np.abs(np.fft.fft(functions - self.target, axis=1) / POINTS) ** 2
        return np.sqrt((powers / self.spectrum).sum(axis=1))

    def run(self, times, theta, t0, n_streams, rng):
        """Distances after some times, one row a time."""
        f, last, found, every = np.zeros((n_streams, POINTS)), 0, [], np.arange(n_streams)
        for time in times.tolist():
            for t in range(last, time):
                x = rng.integers(POINTS, size=n_streams)
                y = self.target[x] + NOISE * rng.choice([-1.0, 1.0], n_streams)
                slopes = (f[every, x] - y) * (t + t0) ** -theta
                f = (1.0 - 1.0 / (t + t0)) * f - slopes[:, None] * self.kernel[x]
            last = time
            found.append(self.distances(f))
        return np.array(found)


def counterexample(times):
    """Errors and bounds for each theta."""
    print("COUNTEREXAMPLE: error, the printed claim at probability 1/2, the corrected bound")
    table = {}
    for theta in THETAS:
        t0 = 2.0 ** (1.0 / theta)
        errors = single_point(times, theta, t0)
        public = dict(theta=theta, t0=t0, failure=0.5)
        printed = np.array([printed_error_bound(t, norm=1.0, **public) for t in times])
        ours = np.array([error_bound(t, r=1.5, source=1.0, **public) for t in times])
        table[theta] = errors, printed, ours
        over = times[errors > printed]
        print(f"theta={theta}: false from t={over[0] if len(over) else 'beyond the last'}")
        for i in range(0, len(times), 4):
            line = f"  t={times[i]:8d} {errors[i]:9.4f} {printed[i]:9.4f} {ours[i]:9.4f}"
            print(
                line
                + f"   error over t^(1/2 - theta) {errors[i] * times[i] ** (theta - 0.5):8.2f}"
            )
    return table


def rates(times, n_streams):
    """Distances and bounds for each r at its best theta."""
    print("RATE: median and worst distance, the corrected bound at probability .95")
    table = {}
    for r in SMOOTHNESS:
        theta = max(best_theta(r), 0.51)
        t0, problem = automatic_t0(theta), Circle(r)
        found = problem.run(times, theta, t0, n_streams, np.random.default_rng(0))
        law = dict(theta=theta, t0=t0, failure=0.05, r=r, source=problem.source)
        ours = np.array([error_bound(t, **law) for t in times])
        median, worst = np.median(found, axis=1), found.max(axis=1)
        table[r] = median, worst, ours
        for i in range(0, len(times), 4):
            print(f"  r={r} t={times[i]:8d} {median[i]:8.4f} {worst[i]:8.4f} {ours[i]:8.4f}")
        late = times >= times[-1] / 10
        slope = -np.polyfit(np.log(times[late]), np.log(median[late]), 1)[0]
        print(f"  r={r} theta={theta:.3f}: slope {slope:.3f}, theory {rate(theta, r):.3f}")
        assert (worst <= ours).all()
    return table


def draw(times, errors, late, distances, output):
    """Two panels."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    for i, (theta, (error, printed, ours)) in enumerate(errors.items()):
        axes[0].loglog(times, error, color=f"C{i}", label=f"theta={theta}")
        axes[0].loglog(times, printed, ":", color=f"C{i}")
        axes[0].loglog(times, ours, "--", color=f"C{i}")
    axes[0].set(title="one point: error, as printed (dotted), corrected (dashed)", xlabel="t")
    axes[0].legend(frameon=False)
    for i, (r, (median, worst, ours)) in enumerate(distances.items()):
        axes[1].loglog(late, median, color=f"C{i}", label=f"r={r}")
        axes[1].loglog(late, worst, color=f"C{i}", lw=0.6)
        axes[1].loglog(late, ours, "--", color=f"C{i}")
    axes[1].set(title="circle: median, worst (thin), corrected bound (dashed)", xlabel="t")
    axes[1].legend(frameon=False)
    figure.savefig(f"{output}.png", dpi=120)


def write(times, errors, late, distances, output):
    """Save the curves as a table."""
    with open(f"{output}.csv", "w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["part", "parameter", "t", "curve", "value"])
        for part, parameters, axis, names in (
            ("point", errors, times, ("error", "printed", "corrected")),
            ("circle", distances, late, ("median", "worst", "corrected")),
        ):
            for parameter, curves in parameters.items():
                for name, values in zip(names, curves, strict=True):
                    for t, value in zip(axis, values, strict=True):
                        table.writerow([part, parameter, t, name, f"{value:.5g}"])


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=1_000_000, help="of the counterexample")
    parser.add_argument("--rate-steps", type=int, default=30_000)
    parser.add_argument("--streams", type=int, default=20)
    parser.add_argument("--output")
    options = parser.parse_args()
    times = np.unique(np.geomspace(2, options.steps, 25).astype(int))
    errors = counterexample(times)
    late = np.unique(np.geomspace(10, options.rate_steps, 25).astype(int))
    distances = rates(late, options.streams)
    if options.output:
        draw(times, errors, late, distances, options.output)
        write(times, errors, late, distances, options.output)


if __name__ == "__main__":
    main()
