"""Regret of mutual-information-private online gradient descent, beside its bounds.

    python benchmarks/mi_regret.py [--quick] [--runs 100] [--out FOLDER]

Figures 3 and 4 of Zhang and Venkitasubramaniam (ICASSP 2018), and the counterpart with values of
the loss. Everything is in units where the loss is |<w, x> - y|, rows have norms up to 1, targets
are in [-1, 1], and weights in the unit ball; there is no intercept.

REGRET (figure 3): d = L = B = sigma^2 = 1, which leaks ln(2)/2 nats, and sigma = 0; each horizon T
has its step. The bounds are sqrt(2 T) and sqrt(T). Streams, the same ones for all runs:

    regression   x uniform in [-1, 1], y = 0.8 x and noise of standard deviation 0.3, clipped
    coins        x = 1, y = 1 or -1 by fair coins: any learner loses sqrt(2 T / pi) on average
    ones         x = 1, y = 1: the learner starts in the wrong place
    chaser       x = 1, y the sign that is worse for the weight played (of each run: adaptive)

TRADE-OFF (figure 4): T = 25, leakage against 5 sqrt(1 + sigma^2) and the regret.

VALUES: one value of the loss a round, with ln(2)/2 nats, noise on the value or on the vector as
in the paper, in 1 and 5 dimensions, on "ones" (in 5 dimensions, x is always the same unit vector)
and "regression" (rows on the sphere). The exponent is the slope of log regret in log T over the
last decade. That of the bound is 3/4; on the way from small T, where exploration is as large as
the ball and regret far below its bound, to the bound's order, it can be more for a while.

Regret is that of Definition 2: the mean over the noise, minus the loss of the best fixed weights,
which are exact in one dimension (a weighted median) and certified to 1e-6 T in five. Tables and
figures are written to FOLDER. The exit code is 1 if a mean regret is above its bound.
"""

import argparse
import csv
import math
import sys
from pathlib import Path

import numpy as np

from skdp._grid import GridNoise, ResidualSlope
from skdp._random._source import NoiseSource
from skdp.learner import AbsoluteLoss
from skdp.linear_model._comparator import best_in_ball
from skdp.linear_model.papers import (
    bandit_amplitude,
    bandit_range,
    bandit_regret,
    bandit_step,
    full_regret,
    full_step,
)
from skdp.local._messages import bandit_noise, gaussian_leakage
from skdp.local._ogd import LazyProjection, OGDState, run_full

NATS = 0.5 * math.log(2.0)
STREAMS = ("regression", "coins", "ones", "chaser")
DRAWS = 512  # rounds whose noise is drawn at once
ROOT = Path(__file__).parent


def stream(name, horizon, dimension=1):
    """Rows and targets; None for targets that the adversary chooses."""
    rng = np.random.default_rng(7)
    if name == "regression" and dimension == 1:
        rows = 1.0 - 2.0 * rng.random((horizon, 1))  # never 0
    elif name == "regression":
        rows = rng.standard_normal((horizon, dimension))
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    else:
        rows = np.eye(1, dimension) + np.zeros((horizon, 1))
    if name == "regression":
        noise = 0.3 * rng.standard_normal(horizon)
        direction = np.ones(dimension) / math.sqrt(dimension)
        return rows, np.clip(0.8 * rows @ direction + noise, -1.0, 1.0)
    if name == "coins":
        return rows, rng.choice([-1.0, 1.0], size=horizon)
    return rows, np.ones(horizon) if name == "ones" else None


def best_loss(rows, targets):
    """Least sum of losses of a fixed weight in [-1, 1]: a median of y / x with weights |x|."""
    x, kinks = np.abs(rows[:, 0]), targets / rows[:, 0]
    order = np.argsort(kinks)
    middle = np.searchsorted(np.cumsum(x[order]), x.sum() / 2.0)
    weight = np.clip(kinks[order[min(middle, len(x) - 1)]], -1.0, 1.0)
    return np.abs(weight * rows[:, 0] - targets).sum()


def play(rows, targets, horizons, steps, sigmas, runs, seed):
    """Losses of gradient descent with lazy projection, for many horizons and runs at once.

    Returns the sums of losses, of shape (n_horizons, n_runs), and for an adversary's targets their
    sums. Each horizon has its own step and sigma; horizons descend, so that those that are over
    can be dropped.
    """
    rng = np.random.default_rng(seed)
    n = len(horizons)
    theta, losses, sums = (np.zeros((n, runs)) for _ in range(3))
    eta, sigma = np.array(steps)[:, np.newaxis], np.array(sigmas)[:, np.newaxis]
    active = n
    for t in range(horizons[0]):
        if t % DRAWS == 0:
            noise = rng.standard_normal((min(DRAWS, horizons[0] - t), n, runs))
        while horizons[active - 1] <= t:
            active -= 1
        now = slice(active)
        w = np.clip(eta[now] * theta[now], -1.0, 1.0)
        y = np.where(w > 0.0, -1.0, 1.0) if targets is None else targets[t]
        x = rows[t, 0]
        residual = x * w - y
        losses[now] += np.abs(residual)
        sums[now] += y
        theta[now] -= np.sign(residual) * x + sigma[now] * noise[t % DRAWS, now]
    return losses, sums


class Given(NoiseSource):
    """Stands in for a source: gives out normal numbers, in any portions."""

    def __init__(self, numbers):
        self.numbers = numbers

    def normal(self, size, scale):
        """As they are, for a scale of 1."""
        given, self.numbers = np.split(self.numbers, [size])
        return given


def agrees_with_package(horizon=2000):
    """Largest difference of the weights of `play` and of skdp.local._ogd, by the same noise."""
    rows, targets = stream("regression", horizon)
    rows = np.trunc(rows * 2.0**20) / 2.0**20
    step = full_step(horizon, radius=1.0, lipschitz=1.0, noise_energy=1.0)
    rng = np.random.default_rng(3)
    keep = np.empty((horizon, 1))
    noise = np.concatenate(
        [rng.standard_normal((min(DRAWS, horizon - t), 1, 1)) for t in range(0, horizon, DRAWS)]
    )
    run_full(
        rows,
        targets,
        OGDState.zeros(1),
        LazyProjection(1.0, step),
        ResidualSlope(1.0),
        noise=GridNoise("gaussian", 1.0, 1.0, 1, sensitivity=2.0, law=None),
        source=Given(noise[:, 0, 0]),
        keep=keep,
    )
    losses, _ = play(rows, targets, [horizon], [step], [1.0], 1, 3)
    return abs(float(np.abs(keep[:, 0] * rows[:, 0] - targets).sum() - losses[0, 0]))


def mean_of(regrets):
    """Mean over runs and its standard error."""
    return float(regrets.mean()), float(regrets.std(ddof=1)) / math.sqrt(len(regrets))


def full_rows(name, horizons, sigmas, runs, seed=1):
    """Lines of a table: stream, sigma, T, regret, its standard error, bound."""
    horizons = sorted(horizons, reverse=True)
    arms = [(T, sigma) for T in horizons for sigma in sigmas]
    rows, targets = stream(name, horizons[0])
    steps = [full_step(T, radius=1.0, lipschitz=1.0, noise_energy=s**2) for T, s in arms]
    losses, sums = play(
        rows, targets, [T for T, _ in arms], steps, [s for _, s in arms], runs, seed
    )
    lines = []
    for (T, sigma), loss, total in zip(arms, losses, sums, strict=True):
        # Definition 2 has the best weight for the mean over the noise. With targets of 1 and -1
        # and x = 1, the loss of a weight u is T - u sum(y).
        if targets is None:
            best = T - math.copysign(1.0, total.mean()) * total
        else:
            best = best_loss(rows[:T], targets[:T])
        bound = full_regret(T, radius=1.0, lipschitz=1.0, noise_energy=sigma**2)
        lines.append((name, sigma, T, *mean_of(loss - best), bound))
    return lines[::-1]


def play_values(rows, targets, arms, runs, seed):
    """Losses at the points asked for, for arms (horizon, radius of exploration, step, noises).

    The answer to a round is ``(d / delta) (phi - F/2 + s N) e`` plus a vector of noise.
    """
    rng = np.random.default_rng(seed)
    n, d = len(arms), rows.shape[1]
    horizons = [arm["T"] for arm in arms]
    delta, eta, half, scalar, vector = (
        np.array([arm[key] for arm in arms])[:, np.newaxis]
        for key in ("delta", "eta", "half", "scalar", "vector")
    )
    theta, losses = np.zeros((n, runs, d)), np.zeros((n, runs))
    active = n
    for t in range(horizons[0]):
        while horizons[active - 1] <= t:
            active -= 1
        now = slice(active)
        norms = np.linalg.norm(theta[now], axis=2)
        factor = np.minimum(eta[now], 1.0 / np.maximum(norms, 1e-300))
        e = rng.standard_normal((active, runs, d))
        e /= np.linalg.norm(e, axis=2, keepdims=True)
        point = factor[:, :, np.newaxis] * theta[now] + delta[now, :, np.newaxis] * e
        value = np.abs(point @ rows[t] - targets[t])
        losses[now] += value
        answer = value - half[now] + scalar[now] * rng.standard_normal((active, runs))
        theta[now] -= (d / delta[now] * answer)[:, :, np.newaxis] * e
        if vector[now].any():
            noise = rng.standard_normal((active, runs, d))
            noise *= vector[now, :, np.newaxis]
            theta[now] -= noise
    return losses


def value_rows(name, dimension, perturbations, horizons, runs, seed=2):
    """Lines of a table: stream, dimension, noise, T, regret, its standard error, bound."""
    rows, targets = stream(name, max(horizons), dimension)
    arms = []
    for T in sorted(horizons, reverse=True):
        for kind in perturbations:
            relative = (
                0.0
                if kind == "none"
                else bandit_noise(dimension=dimension, nats=NATS, perturbation=kind)
            )
            F, delta = bandit_range(
                abs,
                dimension=dimension,
                relative_noise=relative,
                radius=1.0,
                lipschitz=1.0,
                horizon=T,
            )
            K = bandit_amplitude(dimension=dimension, value_range=F, relative_noise=relative)
            eta = bandit_step(T, radius=1.0, amplitude=K, exploration=delta)
            vector = kind == "vector"
            # Of the energy of a vector's noise, relative * amplitude^2, a coordinate has 1 / d.
            spread = dimension * F / (2.0 * delta) * math.sqrt(relative / dimension)
            arm = {"T": T, "kind": kind, "delta": delta, "eta": eta, "half": F / 2.0}
            arm |= {"scalar": 0.0 if vector else F / 2.0 * math.sqrt(relative)}
            arm |= {"vector": spread if vector else 0.0}
            arm["bound"] = bandit_regret(T, radius=1.0, lipschitz=1.0, amplitude=K)
            arms.append(arm)
    losses = play_values(rows, targets, arms, runs, seed)
    best = {}
    for T in horizons:
        _, value, gap = best_in_ball(
            rows[:T], targets[:T], AbsoluteLoss(), radius=1.0, tolerance=1e-6
        )
        best[T] = value - gap
    lines = [
        (name, dimension, arm["kind"], arm["T"], *mean_of(loss - best[arm["T"]]), arm["bound"])
        for arm, loss in zip(arms, losses, strict=True)
    ]
    return lines[::-1]


def grid(low, high, per_decade):
    """Horizons, evenly in log."""
    count = round(per_decade * math.log10(high / low)) + 1
    return [round(T) for T in np.geomspace(low, high, count)]


def exponent(lines):
    """Slope of log regret in log T over the last decade, and its standard error."""
    T, regret, error = np.array([line[-4:-1] for line in lines], dtype=float).T
    last = T[-1] / 10.001 <= T
    x = np.log(T[last]) - np.log(T[last]).mean()
    weights = x / (x @ x)
    slope = float(weights @ np.log(regret[last]))
    return slope, float(np.linalg.norm(weights * error[last] / regret[last]))


def show(title, heads, lines):
    """Print a table with a last column that says whether regret is below its bound."""
    print(f"\n{title}")
    print(
        "  "
        + "".join(f"{head:>13s}" for head in (*heads, "T", "regret", "(se)", "bound", "ratio"))
    )
    for *keys, T, regret, error, bound in lines:
        cells = "".join(f"{f'{key:.3g}' if isinstance(key, float) else key:>13}" for key in keys)
        verdict = "" if regret <= bound else "   ABOVE"
        print(
            f"  {cells}{T:13d}{regret:13.2f}{error:13.2f}{bound:13.2f}"
            f"{regret / bound:13.2f}{verdict}"
        )


def of(lines, *keys):
    """Lines that begin with the keys."""
    return [line for line in lines if line[: len(keys)] == keys]


def write_csv(path, heads, lines):
    """Save a table."""
    with open(path, "w", newline="") as file:
        table = csv.writer(file)
        table.writerow([*heads, "T", "regret", "standard_error", "bound"])
        for *keys, regret, error, bound in lines:
            table.writerow([*keys, f"{regret:.6g}", f"{error:.6g}", f"{bound:.6g}"])


def draw(folder, full, trade, values):
    """Save the three figures as one PNG."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(14.5, 4.6), layout="constrained")
    colors = dict(zip(STREAMS, ("C0", "C1", "C2", "C3"), strict=True))
    for sigma, style, label in ((1.0, "-", "sqrt(2 T)"), (0.0, "--", "sqrt(T)")):
        for name in STREAMS:
            T, regret = zip(*(line[2:4] for line in of(full, name, sigma)), strict=True)
            kept = name if sigma else None
            axes[0].loglog(T, np.maximum(regret, 1e-9), style, color=colors[name], label=kept)
        T, bound = zip(*((line[2], line[5]) for line in of(full, STREAMS[0], sigma)), strict=True)
        axes[0].loglog(T, bound, style, color="k", lw=2, label=f"bound {label}")
    axes[0].set(title="gradients: private (solid) and $\\sigma=0$ (dashed)", xlabel="T")
    axes[0].set(ylabel="regret", ylim=(0.3, None))

    for name in STREAMS:
        lines = of(trade, name)
        leak = [gaussian_leakage(dimension=1, lipschitz=1.0, sigma=line[1]) for line in lines]
        axes[1].plot(leak, [line[3] for line in lines], color=colors[name], label=name)
    axes[1].plot(
        leak, [line[5] for line in lines], color="k", lw=2, label=r"5 sqrt(1 + $\sigma^2$)"
    )
    axes[1].set(title="gradients, T = 25", xlabel="leakage in nats", ylabel="regret", xscale="log")
    axes[1].set(ylim=(0.0, 30.0))

    for dimension, style in ((1, ":"), (5, "-")):
        for kind, color in (("none", "C7"), ("scalar", "C0"), ("vector", "C1")):
            lines = of(values, "ones", dimension, kind)
            if lines:
                T, regret, bound = zip(*((n[3], n[4], n[6]) for n in lines), strict=True)
                label = f"d={dimension}, {'no noise' if kind == 'none' else kind}"
                axes[2].loglog(T, regret, style, color=color, label=label)
                axes[2].loglog(T, bound, style, color=color, lw=0.8, alpha=0.6)
    axes[2].set(title="values, ones: regret and, thin, bounds", xlabel="T", ylabel="regret")
    for ax in axes:
        ax.legend(frameon=False, fontsize=8)
        ax.grid(alpha=0.25)
    figure.savefig(folder / "mi_regret.png", dpi=120)


def main():
    """Print tables, write files, and return 1 if a regret is above its bound."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="T up to 10,000 (values: 1,000)")
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--out", type=Path, default=ROOT / "results")
    arguments = parser.parse_args()
    runs, quick = arguments.runs, arguments.quick
    arguments.out.mkdir(parents=True, exist_ok=True)

    print(f"Loss by the loop here and by skdp.local._ogd differ by {agrees_with_package():.2g}")
    horizons = grid(10, 10_000 if quick else 100_000, 4)
    full = [line for name in STREAMS for line in full_rows(name, horizons, (1.0, 0.0), runs)]
    decades = [line for line in full if math.log10(line[2]).is_integer()]
    show(f"Gradients, d=L=B=1, mean of {runs} runs", ("stream", "sigma"), decades)
    sigmas = [float(s) for s in np.geomspace(0.2, 5.0, 15)]
    # Short streams are cheap, and their noise is not small beside the regret.
    trade = [line for name in STREAMS for line in full_rows(name, [25], sigmas, 20 * runs)]
    trade.sort(key=lambda line: (STREAMS.index(line[0]), line[1]))
    show(f"Gradients, T=25, mean of {20 * runs} runs", ("stream", "sigma"), trade[::2])
    horizons = grid(100, 1000 if quick else 100_000, 2)
    values = []
    for name in ("ones", "regression"):
        for dimension, kinds in ((1, ("none", "scalar")), (5, ("none", "scalar", "vector"))):
            lines = value_rows(name, dimension, kinds, horizons, runs)
            values += [line for kind in kinds for line in of(lines, name, dimension, kind)]
    shown = [line for line in values if math.log10(line[3]).is_integer()]
    heads = ("stream", "d", "noise")
    show(f"Values, B=L=1, {NATS:.3f} nats, mean of {runs} runs", heads, shown)
    print("\nExponents over the last decade; those of the bounds are 1/2 and 3/4")
    for name in STREAMS:
        slope, error = exponent(of(full, name, 1.0))
        print(f"  gradients, {name:22s}{slope:8.3f} +- {error:.3f}")
    for key in dict.fromkeys(line[:3] for line in values):
        slope, error = exponent(of(values, *key))
        label = f"{key[0]}, d={key[1]}, {key[2]}"
        print(f"  values, {label:25s}{slope:8.3f} +- {error:.3f}")

    write_csv(arguments.out / "mi_regret_gradients.csv", ("stream", "sigma"), full)
    write_csv(arguments.out / "mi_regret_tradeoff.csv", ("stream", "sigma"), trade)
    write_csv(arguments.out / "mi_regret_values.csv", ("stream", "dimension", "noise"), values)
    draw(arguments.out, full, trade, values)
    above = [line for line in (*full, *trade, *values) if not line[-3] <= line[-1]]
    n = len(full) + len(trade) + len(values)
    print(f"\n{n - len(above)} of {n} mean regrets are below their bounds; see {arguments.out}")
    return 1 if above else 0


if __name__ == "__main__":
    sys.exit(main())
