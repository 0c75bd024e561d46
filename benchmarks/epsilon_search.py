"""The least epsilon that does, against the least of its grid that truly does.

    python benchmarks/epsilon_search.py [--runs 50] [--sets adult ...] [--rows 16000]

Rows are drawn anew for each run; models are measured on all others. A search that nothing stops
goes through its whole grid, and a score does not depend on the target: so one such search a run
tells where each target would have stopped it. Targets are spread over the whole curve, from two
standard errors of the rows that score below the first stage to as many below the best.

Printed for each target: the mean of what was spent over the size (mu, or epsilon for delta=0) of
the least stage whose mean true score is two standard errors of the rows that score above the
target; how often the released model is truly below it; and how often the search stopped too late
and too early by that stage. In the end the same over all targets, and the largest spent over the
declared total. Needs SKDP_DATA.
"""

import argparse
import warnings

import numpy as np
from peers.data import split
from scipy import sparse

from skdp import config_context
from skdp.linear_model import DPLogisticRegression
from skdp.model_selection import DPEpsilonSearch
from skdp.privacy import gaussian_mu

DELTA = 1e-5
N_TARGETS = 12


class Measured(DPLogisticRegression):
    """A model that notes how good it truly is: not private, for measurements."""

    rows = None
    found: list = []  # noqa: RUF012

    def fit(self, X, y):
        """Fit, and note the score on rows that are not the search's."""
        super().fit(X, y)
        if self.ledger is None:
            self.found.append(float(np.mean(self.predict(self.rows[0]) == self.rows[1])))
        return self


def pooled(name):
    """All rows of a set, prepared by public numbers."""
    parts = split(name)
    stack = sparse.vstack if sparse.issparse(parts.X) else np.vstack
    return stack([parts.X, parts.X_test]).astype(float), np.r_[parts.y, parts.y_test]


def runs_of(name, delta, n_runs, n_rows):
    """Whole grids: noisy scores, standard errors and true scores, (n_runs, n_stages) each."""
    X, y = pooled(name)
    scores, errors, truths, search = [], [], [], None
    for run in range(n_runs):
        order = np.random.default_rng(run).permutation(len(y))
        here, there = order[:n_rows], order[n_rows:]
        Measured.rows, Measured.found = (X[there], y[there]), []
        search = DPEpsilonSearch(Measured(), 0.9999, delta=delta, random_state=run)
        search.fit(X[here], y[here])
        scores.append([stage.score for stage in search.stages_])
        errors.append([stage.standard_error for stage in search.stages_])
        truths.append(Measured.found)
    return search, np.array(scores), np.array(errors), np.array(truths)


def cost(delta, epsilons):
    """Sums of the sizes of the first stages, which all releases of a block cost together."""
    if delta == 0.0:
        return np.asarray(epsilons), np.cumsum(epsilons)
    mus = np.array([gaussian_mu(epsilon=e, delta=delta) for e in epsilons])
    return mus, np.sqrt(np.cumsum(mus**2))


def report(name, delta, n_runs, n_rows, margin, strict):
    """One set: a line a target."""
    search, scores, errors, truths = runs_of(name, delta, n_runs, n_rows)
    epsilons = [stage.epsilon for stage in search.stages_]
    sizes, spent = cost(delta, epsilons)
    margin = (0.5 if delta == 0.0 else 1.0) if margin is None else margin
    (total,) = cost(delta, [search.guarantee_.epsilon])[0]
    curve = truths.mean(axis=0)
    error = errors.mean(axis=0)
    if strict:
        error = np.sqrt(curve * (1 - curve) / (n_rows // 4))
    print(f"\n{name}, delta={delta:g}: epsilons {epsilons}")
    print("  true " + " ".join(f"{score:.4f}" for score in curve), end="")
    print(f"; standard error {error[0]:.4f} to {error[-1]:.4f}")
    sure = curve - 2 * error
    targets = np.linspace(sure[0], sure.max(), N_TARGETS)
    everything = []
    for target in targets:
        least = int(np.argmax(sure >= target - 1e-12))
        hit = scores - margin * errors >= target
        stop = np.where(hit.any(axis=1), hit.argmax(axis=1), len(sizes) - 1)
        ratio = spent[stop] / sizes[least]
        model = truths[np.arange(n_runs), stop]
        below = model < target
        everything.append((ratio, below))
        late, early = np.mean(stop > least), np.mean(stop < least)
        print(
            f"  {target:.4f}  stage {least + 1}  spent {ratio.mean():.2f}"
            f"  below {below.mean():.2f}  later {late:.2f}  earlier {early:.2f}"
        )
    ratio, below = (np.array(each) for each in zip(*everything, strict=True))
    means = ratio.mean(axis=0)
    print(
        f"  all targets: spent {means.mean():.3f} (standard error {means.std() / n_runs**0.5:.3f})"
        f"  below {below.mean():.3f}  worst target {below.mean(axis=1).max():.2f}"
        f"  spent of declared at most {spent[-1] / total:.4f}"
    )


def main():
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--rows", type=int, default=16_000)
    parser.add_argument("--margin", type=float, help="None takes those of the search")
    parser.add_argument("--strict", action="store_true", help="errors of sampling alone")
    parser.add_argument("--sets", nargs="+", default=["adult", "covertype2", "kddcup"])
    parser.add_argument("--deltas", nargs="+", type=float, default=[DELTA, 0.0])
    given = parser.parse_args()
    warnings.filterwarnings("ignore", category=UserWarning)
    with config_context(known_seeds=True):
        for name in given.sets:
            for delta in given.deltas:
                report(name, delta, given.runs, given.rows, given.margin, given.strict)


if __name__ == "__main__":
    main()
