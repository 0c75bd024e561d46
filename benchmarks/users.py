"""What a guarantee for users costs, beside one for rows and beside bounded contributions.

    python benchmarks/users.py [--draws 5] [--epsilons 0.5 1 3] [--only WORDS]

Diabetes-130: 101,766 hospital stays of 71,518 patients, one of whom has 40. Is a patient admitted
again (classification), and how many days did a stay take (regression). Bike sharing: 17,379 hours
of 731 days, which are the users: few users with many rows that are not alike, where a guarantee
for users is dear. In every draw 30 % of the users are for scoring. Nothing is tuned.

"rows" protects one row, which is less; "users" is ``fit(X, y, groups=ids)``; "k rows a user" is
``bound_contributions`` with the epsilon for rows that makes the same epsilon for users
(`skdp.privacy.user_guarantee`). "not private" is scikit-learn on the same prepared rows. All
private models have delta 1e-6. Scores are means over rows of the test users, but for "by user",
where each user weighs the same; standard errors are over draws. Needs SKDP_DATA, or a connection
from which scikit-learn can fetch the data.
"""

import argparse
from dataclasses import dataclass

import numpy as np
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import accuracy_score, log_loss, mean_absolute_error, r2_score, roc_auc_score

from skdp.datasets import fetch_bike_sharing, fetch_diabetes130
from skdp.kernel import DPKernelRidge
from skdp.linear_model import DPLogisticRegression
from skdp.preprocessing import bound_contributions, make_public_preprocessor
from skdp.privacy import ApproxDP, GaussianDP, user_guarantee

EPSILONS = (0.5, 1.0, 3.0)
DELTA = 1e-6
TEST_SHARE = 0.3
BOUNDED = (1, 2, 4)
# Numbers that are scored, and how: rows, and users alike.
CLASSES = ("accuracy", "by user", "AUC", "log-loss")
NUMBERS = ("R^2", "by user", "mean error")


@dataclass(frozen=True, eq=False)
class Task:
    """Rows, targets, whose they are, and what learns from them.

    Parameters
    ----------
    name : str

    X : ndarray of shape (n_samples, n_features)

    y : ndarray of shape (n_samples,)

    groups : ndarray of shape (n_samples,)

    y_bounds : (float, float) or None
        None of a classification.
    """

    name: str
    X: np.ndarray
    y: np.ndarray
    groups: np.ndarray
    y_bounds: tuple[float, float] | None = None

    @property
    def scores(self):
        return CLASSES if self.y_bounds is None else NUMBERS

    def model(self, epsilon):
        """A private model with defaults only."""
        if self.y_bounds is None:
            return DPLogisticRegression(epsilon, DELTA, classes=[False, True])
        return DPKernelRidge(
            epsilon, DELTA, kernel="linear", mechanism="gradient", y_bounds=self.y_bounds
        )

    def without_privacy(self):
        return LogisticRegression(max_iter=300) if self.y_bounds is None else Ridge()

    def score(self, model, X, y, groups):
        """What is said of test rows, in the order of `scores`."""
        _, owner, counts = np.unique(groups, return_inverse=True, return_counts=True)
        by_user = 1.0 / counts[owner]
        said = model.predict(X)
        if self.y_bounds is not None:
            return (
                r2_score(y, said),
                r2_score(y, said, sample_weight=by_user),
                mean_absolute_error(y, said),
            )
        odds = model.predict_proba(X)[:, 1]
        return (
            accuracy_score(y, said),
            accuracy_score(y, said, sample_weight=by_user),
            roc_auc_score(y, odds),
            log_loss(y, odds),
        )


def tasks():
    """Data sets with users, prepared by public bounds."""
    stays = fetch_diabetes130()
    prepare = make_public_preprocessor(stays.bounds, stays.categories, log=stays.log, norm="scale")
    y = np.asarray(stays.target) == stays.classes[1]
    patient = np.asarray(stays.patient)
    yield Task("readmitted, by patient", dense(prepare.fit_transform(stays.data)), y, patient)
    days = "time_in_hospital"
    bounds = {name: ends for name, ends in stays.bounds.items() if name != days}
    prepare = make_public_preprocessor(bounds, stays.categories, log=stays.log, norm="scale")
    X = dense(prepare.fit_transform(stays.data.drop(columns=days)))
    yield Task(
        "days in hospital, by patient", X, stays.data[days].to_numpy(float), patient, (1, 14)
    )
    hours = fetch_bike_sharing()
    prepare = make_public_preprocessor(
        hours.bounds,
        hours.categories,
        log=hours.log,
        indicators=hours.indicators,
        norm="scale",
    )
    X, cnt = dense(prepare.fit_transform(hours.data)), np.asarray(hours.target, dtype=float)
    # Hours stand in their order.
    day = np.cumsum(np.diff(hours.data["weekday"].to_numpy(int), prepend=-1) != 0)
    yield Task("busy hours, by day", X, cnt > np.median(cnt), day)


def dense(rows):
    return rows.toarray() if hasattr(rows, "toarray") else np.asarray(rows, dtype=float)


def epsilon_of_rows(epsilon, n_rows):
    """Epsilon for one row of which a user with so many has ``epsilon``, at the same delta."""
    # A user's rows together lose so many times the mu of one.
    return GaussianDP(ApproxDP(epsilon, DELTA).gaussian_target().mu / n_rows).epsilon_at(DELTA)


def fitted(task, epsilon, X, y, groups):
    """Models to compare, by name."""
    yield "rows", task.model(epsilon).fit(X, y)
    yield "users", task.model(epsilon).fit(X, y, groups=groups)
    for n_rows in BOUNDED:
        kept = bound_contributions(X, y, groups, n_rows)
        name = f"{n_rows} row{'s' if n_rows > 1 else ''} a user"
        model = task.model(epsilon_of_rows(epsilon, n_rows)).fit(*kept[:2])
        told = user_guarantee(model.guarantee_, n_rows).epsilon_at(DELTA)
        if not told <= epsilon * (1.0 + 1e-6):
            raise RuntimeError(f"{name} have an epsilon of {told:g}, not {epsilon:g}.")
        yield name, model


def table(task, epsilons, n_draws):
    """Print a block of rows for each epsilon."""
    counts = np.unique(task.groups, return_counts=True)[1]
    print(
        f"\n{task.name}: {len(task.X):,} rows, {len(counts):,} users, {counts.mean():.1f} rows "
        f"each, at most {counts.max()}; {task.X.shape[1]} features"
    )
    print(f"{'epsilon':>8}  {'protects':14}" + "".join(f"{name:>20}" for name in task.scores))
    told: dict = {}
    for draw in range(n_draws):
        test = np.random.default_rng([draw, 7]).random(len(counts)) < TEST_SHARE
        test = test[np.unique(task.groups, return_inverse=True)[1]]
        train = task.X[~test], task.y[~test], task.groups[~test]
        asked = task.X[test], task.y[test], task.groups[test]
        plain = task.without_privacy().fit(*train[:2])
        told.setdefault(("", "not private"), []).append(task.score(plain, *asked))
        for epsilon in epsilons:
            for name, model in fitted(task, epsilon, *train):
                told.setdefault((epsilon, name), []).append(task.score(model, *asked))
    for (epsilon, name), scores in told.items():
        mean = np.mean(scores, axis=0)
        error = np.std(scores, axis=0, ddof=1) / np.sqrt(n_draws) if n_draws > 1 else 0 * mean
        cells = "".join(f"{m:12.4f} ± {e:.4f}" for m, e in zip(mean, error, strict=True))
        print(f"{epsilon!s:>8}  {name:14}{cells}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--epsilons", type=float, nargs="+", default=EPSILONS)
    parser.add_argument("--only", default="", help="part of the name of a task")
    chosen = parser.parse_args()
    for task in tasks():
        if chosen.only in task.name:
            table(task, chosen.epsilons, chosen.draws)


if __name__ == "__main__":
    main()
