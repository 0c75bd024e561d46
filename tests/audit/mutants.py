"""Slips that outsiders may make in this code, for `skdp.audit` to find.

``python tests/audit/mutants.py [--seeds 0 1 2] [--large] [WORD...]`` replays each with the
defaults of `~skdp.audit.replay`, which end with the round that finds something, and prints the
time that it takes and what is found. A mutant is a text of the code and what stands there instead.
"""

# ruff: noqa: E501 - texts stand as they do in the code

import argparse
import time
import warnings

import numpy as np
from mutation import Mutant
from scipy import sparse
from sklearn.base import is_classifier
from user_mutants import owners
from user_mutants import users as of_users

from skdp._random import noise_source
from skdp.audit import replay
from skdp.distributed import DistributedDPClassifier
from skdp.kernel import DPKernelRidge, DPOnlineKernelRegressor
from skdp.linear_model import DPLinearSVC, DPLogisticRegression, MIPrivateSGDRegressor
from skdp.local import GradientPrivatizer, OnePointPrivatizer, ValuePrivatizer
from skdp.mechanisms import clip_rows, gaussian_mechanism, k_norm_mechanism, laplace_mechanism
from skdp.preprocessing import DPOneHotEncoder, DPQuantileScaler, DPSimpleImputer
from skdp.privacy import ApproxDP, BudgetLedger
from skdp.releases import QuantileRelease

DELTA = dict(delta=1e-4)
REMOVE = dict(adjacency="add-remove")
LEDGER = dict(ledger=BudgetLedger(epsilon=100.0, delta=0.01))
SMALL = dict(n_components=20)
BOUNDS = dict(y_bounds=(-1.0, 1.0))
NETWORK = dict(n_nodes=4, batch_size=5)


def ordinary(target, n_samples=40, n_features=3, seed=0):
    """Rows and targets like those of a user."""
    rng = np.random.default_rng(seed)
    X = rng.normal(scale=0.4, size=(n_samples, n_features))
    score = X[:, 0] - 0.5 * X[:, 1] + rng.normal(scale=0.1, size=n_samples)
    labels = hasattr(target, "fit") and is_classifier(target)
    return X, (score > 0.0).astype(int) if labels else score


def sparse_rows(X, y):
    """The same rows, sparse."""
    return sparse.csr_array(X), y


def short_rows(X, y):
    """The same rows, an eighth as long: half of them are shorter than a fourth of their bound."""
    return X / 8.0, y


def wide_rows(X, y):
    """Many sparse rows of more features than second moments are read of, most of them empty."""
    rows = sparse.csr_array(np.tile(X, (10, 1)) + np.array([1.0, 0.5, 0.0]))
    rows.resize(rows.shape[0], 1100)
    return rows, np.tile(y, 10)


def three_classes(X, y):
    """The same rows with three labels."""
    return X, np.digitize(X[:, 0], [-0.2, 0.2])


def four_classes(X, y):
    """The same rows with four labels."""
    return X, np.digitize(X[:, 0], [-0.3, 0.0, 0.3])


def rows_between_powers_of_two(X, y):
    """46 rows of three labels: with one less they are nearer to 32 than to 64 (in logarithms)."""
    return three_classes(np.vstack([X, 0.5 * X[:6]]), y)


def one_row_alone(X, y):
    """400 rows of zeros, and one of which no other tells anything."""
    rows = np.zeros((400, 1))
    rows[0] = 1.0
    return rows, np.append(1e9, np.linspace(-1.0, 1.0, 399))


# Estimators


def svc(**options):
    return DPLinearSVC(**options)


def logistic(**options):
    return DPLogisticRegression(**options)


def ridge(**options):
    return DPKernelRidge(**{**BOUNDS, **SMALL, **options})


def online(release, **options):
    sizes = {
        "tree": dict(horizon=40),
        "matrix": dict(horizon=40, delta=1e-4),
        "query": dict(n_queries=20),
    }.get(release, {})
    return DPOnlineKernelRegressor(release=release, **{**BOUNDS, **SMALL, **sizes, **options})


def mi(**options):
    return MIPrivateSGDRegressor(**{**BOUNDS, **options})


def network(**options):
    return DistributedDPClassifier(**{**NETWORK, **options})


OUTPUT = dict(mechanism="output")
GRADIENT = dict(mechanism="gradient")
STATISTICS = dict(mechanism="sufficient_statistics", **DELTA)
QUERY = dict(release="query", n_queries=20)
BANDIT = dict(feedback="bandit")
VECTOR = dict(feedback="bandit", perturbation="vector")


# Linear models

OUT, DESCENT, MOMENTS = "releases._output", "releases._descent", "releases._moments"
RULES, WHITE = "releases._descent_rules", "solvers.whitening"
MEAN = "releases._mean_row"
LENGTH, HITS = "releases._score_length", "solvers.hits"
CLASSES = "releases._counted_classes"
HELD = "releases._checked_objective"
NORM = "releases._row_norm"
IN_ONE_COUNT = "two change by 1.\n            sensitivity=self.guarantee.n_records_changed"
ROWS, BASE, LEARNED = (
    "solvers.rows",
    "linear_model._base",
    "            self.coef_, self.intercept_ =",
)
CLIPPED = "rows = clip_rows(block.astype(np.float64, copy=False), x_norm / longer)"
CHECKED = "            X, y = checked_data(self, X, y, counts=groups is None)\n"
RELEASED = (
    "            with progress_of(self, context, groups=groups):\n"
    "                longer = 1.0\n"
    "                if isinstance(release, NormedRelease):\n"
    "                    longer = release.longer(X, float(self.x_norm), users, noise)\n"
    "                rows = self._rows(X, codes, longer, users)\n"
    "                weights, spread = with_noise(release, rows, noise)\n"
)
PAID = "            charge(self, release.guarantee)\n"
PLANNED = "            release = self._plan(classes, X.shape[1], n_public, unit)\n"
CLAIMED = "self.classes_, self.guarantee_ = classes, self._stated(release.guarantee)"
STORED = "            self.coef_, self.intercept_ = coef, intercept\n"


def linear():
    steps = "plan.step_guarantees()"
    more_steps = (DESCENT, f"in told({steps},", f"in told([*{steps}, {steps}[0]],")

    def fit(name, target, old, new):
        return Mutant(name, target, ((BASE, old, new),))

    for name, target in [
        ("output", logistic(**OUTPUT)),
        ("gradient", svc(**GRADIENT, **DELTA)),
        ("objective", logistic()),
    ]:
        yield Mutant(f"{name}: rows are not clipped", target, ((ROWS, CLIPPED, "rows = block"),))
    yield Mutant(
        "output: clip per coordinate",
        svc(**OUTPUT),
        (
            (
                ROWS,
                CLIPPED,
                "import numpy\n            rows = numpy.clip(block, -x_norm, x_norm)",
            ),
        ),
    )
    yield Mutant(
        "output: rows of norms up to 2",
        svc(**OUTPUT),
        ((ROWS, CLIPPED, "rows = clip_rows(block, 2 * x_norm)"),),
    )
    yield Mutant(
        "gradient: rows through single precision",
        svc(**GRADIENT, **DELTA),
        ((ROWS, CLIPPED, 'rows = clip_rows(block.astype("f4").astype("f8"), x_norm)'),),
    )
    yield Mutant(
        "gradient: clip to the longest row",
        logistic(**GRADIENT),
        (
            (
                ROWS,
                CLIPPED,
                "rows = clip_rows(block, max(x_norm, float(abs(X).sum(axis=1).max())))",
            ),
        ),
    )
    yield Mutant(
        "output: constant left out of the norm",
        logistic(**OUTPUT),
        ((ROWS, "return math.hypot(x_norm, constant) *", "return x_norm *"),),
    )
    yield Mutant(
        "output: constant is 2",
        svc(**OUTPUT),
        ((ROWS, "        constant /= unit\n", "        constant /= unit / 2\n"),),
    )
    for slip, text, wrong in (
        (
            "is not charged",
            "epsilon=guarantee.epsilon - reading.epsilon",
            "epsilon=guarantee.epsilon",
        ),
        ("moves no row's rank", "spread=_PARTS", "spread=_PARTS // 50"),
        ("is that of the longest row", "place(counts, noise)", "int(np.flatnonzero(counts)[0])"),
        (
            "hides less with each row",
            "epsilon=epsilon,",
            "epsilon=5 * epsilon,",
        ),
    ):
        yield Mutant(
            f"objective: the norm that is read {slip}",
            logistic(epsilon=80.0),
            ((NORM, text, wrong),),
            short_rows,
        )
    yield Mutant(
        "gradient: the norm that is read is in no count",
        logistic(epsilon=80.0, **GRADIENT, **DELTA),
        ((NORM, "sensitivity = math.sqrt(", "sensitivity = 0.1 * math.sqrt("),),
        short_rows,
    )
    yield Mutant(
        "objective: the count without noise",
        svc(fit_intercept=False, **REMOVE),
        (
            (
                "releases._counted",
                "count = release_n_samples(data.n_samples, guarantee=self.counting, noise=noise)",
                "count = float(data.n_samples)",
            ),
        ),
        rows_between_powers_of_two,
    )
    yield Mutant(
        "objective: noise of the count for 200 times its epsilon",
        svc(**REMOVE),
        (
            (
                "releases._counted",
                "guarantee=self.counting, noise",
                "guarantee=replace(self.counting, epsilon=200 * self.counting.epsilon), noise",
            ),
        ),
    )
    yield Mutant(
        "objective: the count is not charged",
        svc(**REMOVE),
        (
            (
                "releases._counted",
                "rest = replace(target, epsilon=target.epsilon - counting.epsilon)",
                "rest = target",
            ),
        ),
    )
    yield Mutant(
        "objective: rows are counted twice",
        svc(**REMOVE),
        (
            (
                "releases._counted",
                "        power = min(",
                "        count += release_n_samples(data.n_samples, guarantee=self.counting, noise=noise)\n        power = min(",
            ),
        ),
    )
    for adjacency in ({}, REMOVE):
        under = "add-remove" if adjacency else "replace-one"
        yield Mutant(
            f"objective: classes are counted without noise, {under}",
            logistic(**adjacency),
            ((CLASSES, IN_ONE_COUNT, IN_ONE_COUNT.replace("=", "=1e-9 * ")),),
            three_classes,
        )
        yield Mutant(
            f"objective: the counts of classes are not charged, {under}",
            logistic(**adjacency),
            (
                (
                    CLASSES,
                    "rest = replace(target, epsilon=target.epsilon - counting.epsilon)",
                    "rest = target",
                ),
            ),
            three_classes,
        )
    yield Mutant(
        "objective: a replaced record is in one of three counts",
        logistic(),
        (
            (
                CLASSES,
                IN_ONE_COUNT,
                IN_ONE_COUNT.replace("self.guarantee.n_records_changed", "1.0"),
            ),
        ),
        three_classes,
    )
    yield Mutant(
        "objective: the check of several classes is not charged",
        logistic(epsilon=60.0),
        ((CLASSES, "rest = replace(rest, epsilon=rest.epsilon - checking.epsilon)", "pass"),),
        three_classes,
    )
    yield Mutant(
        "objective: a record moves the rows that a model gets right by less than 1",
        svc(epsilon=60.0),
        (
            (
                CLASSES,
                "# A record adds 1, 0 or -1.\n        sensitivity = ",
                "sensitivity = 0.1 * ",
            ),
        ),
        three_classes,
    )
    yield Mutant(
        "objective: a model is kept for the true number of rows that it gets right",
        svc(epsilon=60.0),
        (
            (
                CLASSES,
                "return float(gain[0])",
                "return float(hits_gained(data, weights, centre)[0])",
            ),
        ),
        three_classes,
    )
    three, two = logistic(epsilon=500.0), logistic(epsilon=200.0)
    for slip, model, data, where, text, wrong in (
        (
            "rows of three classes move what is beyond their start as far as they like",
            three,
            three_classes,
            HITS,
            "np.clip(slope, -steepest, largest[0])",
            "np.maximum(slope, -1e3)",
        ),
        (
            "scores of three classes as long as the true number of rows says",
            logistic(epsilon=40.0, **REMOVE),
            three_classes,
            CLASSES,
            "n_samples=n_samples,\n                guarantee=checking",
            "n_samples=float(data.n_samples),\n                guarantee=checking",
        ),
        (
            "scores of three classes as long as the true slope says",
            three,
            three_classes,
            LENGTH,
            "for value in released / units)",
            "for value in sums[0])",
        ),
        (
            "a record moves the two numbers of a check by half of what the first is moved",
            two,
            None,
            LENGTH,
            "return slope + _BEND_UNIT_PURE * bend",
            "return 0.5 * slope",
        ),
        (
            "rows of two classes are clipped farther off than noise is for",
            two,
            None,
            LENGTH,
            "score_slopes(data, weights, steepest,",
            "score_slopes(data, weights, 8.0,",
        ),
        (
            "the second sum of two classes counts whole",
            two,
            None,
            LENGTH,
            "units * certified",
            "1.0 * certified",
        ),
        (
            "scores of two classes as long as the true slope says",
            two,
            None,
            LENGTH,
            "for value in released / units)",
            "for value in sums[0])",
        ),
        (
            "the check of two classes is not charged",
            two,
            None,
            HELD,
            "epsilon=target.epsilon - checking.epsilon",
            "epsilon=target.epsilon",
        ),
    ):
        yield Mutant(f"objective: {slip}", model, ((where, text, wrong),), data)
    for name, model in (("logits", logistic()), ("a joint hinge", svc())):
        yield Mutant(
            f"objective: one radius for the noise of all classes, {name}",
            model,
            (
                (
                    "releases._objective_noise",
                    "noise.k_norms(*shape, scale)",
                    "noise.k_norm(shape[0] * shape[1], scale)",
                ),
            ),
            three_classes,
        )
        yield Mutant(
            f"objective: noise of each class for residuals of l2 norm, {name}",
            model,
            (
                ("releases._objective_noise", "* loss.lipschitz_l1", "* loss.lipschitz"),
                ("losses._multiclass", "weight * self.lipschitz_l1", "weight * self.lipschitz"),
            ),
            three_classes,
        )
    yield Mutant(
        "objective: log-odds of the true counts",
        logistic(epsilon=8.0),
        (
            (
                CLASSES,
                "starting_scores(released /",
                "starting_scores(class_counts(data, loss.n_outputs) /",
            ),
        ),
        three_classes,
    )
    yield Mutant(
        "objective: rules see a private number of rows",
        svc(fit_intercept=False, **REMOVE),
        ((BASE, 'if self.adjacency == "replace-one" else None', ""),),
        three_classes,
    )
    yield Mutant(
        "output: halved sensitivity",
        logistic(**OUTPUT),
        ((OUT, "sensitivity=self._distance(),", "sensitivity=0.5 * self._distance(),"),),
    )
    yield Mutant(
        "output: sensitivity of one record",
        svc(**OUTPUT, **DELTA),
        ((OUT, "records = self.guarantee.n_records_changed", "records = 1"),),
    )
    yield Mutant(
        "output: law of half the scale",
        svc(**OUTPUT),
        (
            (
                OUT,
                "            law=self.law,\n",
                "            law=replace(self.law, scale=self.law.scale / 2),\n",
            ),
        ),
    )
    yield Mutant(
        "output: law of half the scale, delta",
        svc(**OUTPUT, **DELTA, **REMOVE),
        (
            (
                OUT,
                "            law=self.law,\n",
                "            law=replace(self.law, scale=self.law.scale / 2),\n",
            ),
        ),
    )
    yield Mutant(
        "output: half the penalty is solved",
        svc(**OUTPUT),
        ((OUT, "data, penalty=self.penalty,", "data, penalty=self.penalty / 2,"),),
    )
    yield Mutant(
        "output: penalty from the data",
        svc(**OUTPUT),
        (
            (
                BASE,
                RELEASED,
                "            from dataclasses import replace\n            release = replace(release, penalty=release.penalty * (1 + abs(X).mean()))\n"
                + RELEASED,
            ),
        ),
    )
    yield Mutant(
        "output: intercept leans away from the penalty",
        svc(**OUTPUT),
        (
            (
                OUT,
                "        return release(\n            weights,",
                "        weights[:, -1] *= 3.0\n        return release(\n            weights,",
            ),
        ),
    )
    yield Mutant(
        "output: K-norm noise for Laplace's",
        svc(**OUTPUT),
        (
            (
                OUT,
                "law = NoiseLaw.meeting(target, size=size)",
                'law = NoiseLaw.of("laplace", target)',
            ),
        ),
    )
    yield Mutant(
        "output: epsilon doubled in the guarantee",
        svc(**OUTPUT),
        (
            (
                OUT,
                "law = NoiseLaw.meeting(target, size=size)",
                "law = NoiseLaw.meeting(replace(target, epsilon=2 * target.epsilon), size=size)",
            ),
        ),
    )
    yield Mutant("output: released twice", svc(**OUTPUT), ((BASE, RELEASED, RELEASED + RELEASED),))
    yield Mutant(
        "output: guarantee for add-remove from noise for one record",
        svc(**OUTPUT, **REMOVE),
        (
            (
                OUT,
                "self.loss.lipschitz * self.row_norm /",
                "0.5 * self.loss.lipschitz * self.row_norm /",
            ),
        ),
    )
    yield Mutant(
        "gradient: adjacency ignored",
        logistic(**GRADIENT),
        ((DESCENT, "self.budget.n_records_changed * capped_sum.cap", "capped_sum.cap"),),
    )
    yield Mutant(
        "gradient: one step too many",
        svc(**GRADIENT),
        (more_steps,),
    )
    yield Mutant(
        "gradient: one step too many, add-remove",
        svc(**GRADIENT, **DELTA, **REMOVE),
        (more_steps,),
    )
    yield Mutant(
        "gradient: steps do not share, pure",
        logistic(**GRADIENT),
        ((RULES, "ApproxDP(guarantee.epsilon / n_steps", "ApproxDP(guarantee.epsilon"),),
    )
    yield Mutant(
        "gradient: steps do not share, delta",
        logistic(**GRADIENT, **DELTA),
        ((RULES, "GaussianDP(mu / math.sqrt(n_steps)", "GaussianDP(mu"),),
    )
    yield Mutant(
        "gradient: what later steps have more is free",
        logistic(**GRADIENT, **DELTA, epsilon=20.0),
        ((RULES, "weights / weights.mean()", "weights"),),
    )
    yield Mutant(
        "gradient: second moments are free",
        logistic(**GRADIENT, **DELTA, **REMOVE),
        ((RULES, "1.0 - (0.0 if gram is None else _GRAM_SHARE)", "1.0"),),
    )
    yield Mutant(
        "gradient: second moments without noise",
        logistic(**GRADIENT, **DELTA, epsilon=20.0),
        (
            (
                DESCENT,
                "        released /= n_samples\n",
                "        released = data.second_moments() / n_samples\n",
            ),
        ),
    )
    yield Mutant(
        "gradient: half the norm of second moments",
        svc(**GRADIENT, **DELTA, epsilon=20.0),
        (
            (
                MOMENTS,
                "sensitivity = math.sqrt(guarantee.n_records_changed) *",
                "sensitivity = 0.5 * math.sqrt(guarantee.n_records_changed) *",
            ),
        ),
    )
    yield Mutant(
        "gradient: half a matrix without the root of two",
        svc(**GRADIENT, **DELTA, epsilon=20.0),
        (
            (
                MOMENTS,
                "sensitivity = math.sqrt(guarantee.n_records_changed) * row_norm**2",
                "sensitivity = row_norm**2",
            ),
        ),
    )
    for name, rows in (("", ()), (" of three classes", (three_classes,))):
        yield Mutant(
            "gradient: the slope along the length of scores" + name + " moves by less than a row",
            logistic(**GRADIENT, **DELTA, epsilon=60.0),
            (
                (
                    LENGTH,
                    "sensitivity = _sensitivity(guarantee, steepest, largest)\n",
                    "sensitivity = 0.2\n",
                ),
            ),
            *rows,
        )
        yield Mutant(
            "gradient: scores" + name + " as long as the true slope says",
            logistic(**GRADIENT, **DELTA, epsilon=60.0),
            (
                (
                    LENGTH,
                    "(float(value) / n_samples for value in released / units)",
                    "(float(value) / n_samples for value in sums[0])",
                ),
            ),
            *rows,
        )
        yield Mutant(
            "gradient: the slope along the length of scores" + name + " is free",
            logistic(**GRADIENT, **DELTA, epsilon=60.0),
            ((DESCENT, "split_mu(cast(GaussianDP, rest), share)", "(rest, rest)"),),
            *rows,
        )
    yield Mutant(
        "gradient: number of steps from the data",
        logistic(**GRADIENT),
        (
            (
                DESCENT,
                f"in told({steps},",
                f"in told({steps}[int(capped_sum.data.blocks[0][0][:, 0].sum() > 0) :],",
            ),
        ),
    )
    yield Mutant(
        "gradient: step size from the data",
        logistic(**GRADIENT),
        (
            (
                DESCENT,
                "velocity = plan.momentum * velocity - step / n_samples",
                "velocity = plan.momentum * velocity - step / n_samples / (1 + abs(capped_sum.data.blocks[0][0][:, :-1]).max())",
            ),
        ),
    )
    yield Mutant(
        "gradient: stops by the gradient without noise",
        logistic(**GRADIENT),
        (
            (
                DESCENT,
                "            released = release(\n",
                "            if np.linalg.norm(gradient) < 0.1 * capped_sum.data.n_samples:\n                break\n            released = release(\n",
            ),
        ),
    )
    yield Mutant(
        "gradient: momentum by the gradient without noise",
        logistic(**GRADIENT),
        (
            (
                DESCENT,
                "            velocity = plan.momentum * velocity - step / n_samples\n",
                "            velocity = plan.momentum * velocity - (step + 1e-3 * gradient) / n_samples\n",
            ),
        ),
    )
    yield Mutant(
        "gradient: the last one without noise",
        logistic(**GRADIENT, **DELTA),
        (
            (
                DESCENT,
                "        even = NoiseLaw.meeting(",
                "        weights = weights - 1e-3 * gradient / n_samples\n        even = NoiseLaw.meeting(",
            ),
        ),
    )
    yield Mutant(
        "gradient: residuals not clipped",
        logistic(**GRADIENT, **DELTA),
        ((WHITE, "caps=self._caps, ", ""),),
        three_classes,
    )
    yield Mutant(
        "gradient: residuals clipped in each output",
        logistic(**GRADIENT, **DELTA),
        (
            (
                ROWS,
                'norms = np.sqrt(np.einsum("ij,ij->i", residuals, residuals))',
                "norms = np.abs(residuals).max(axis=1)",
            ),
        ),
        three_classes,
    )
    yield Mutant(
        "gradient: the sum is clipped, not its terms",
        logistic(**GRADIENT, **DELTA),
        (
            (
                ROWS,
                "residuals *= (caps[i] / np.maximum(norms, caps[i]))[:, np.newaxis]",
                "residuals *= caps[i].mean() / max(float(norms.mean()), caps[i].mean())",
            ),
        ),
        three_classes,
    )
    yield Mutant(
        "gradient: clipped before the rows are whitened only",
        svc(**GRADIENT, **DELTA, epsilon=20.0),
        (
            (
                WHITE,
                "reach / np.maximum(coordinates.norms(rows, data.row_norm), least)",
                "np.full(rows.shape[0], reach / data.row_norm)",
            ),
        ),
    )
    yield Mutant(
        "gradient: the rest of a row beside its first bits is not in its norm, and they are few",
        svc(**GRADIENT, **DELTA, epsilon=20.0),
        (
            (WHITE, "return coarse_rest(self.n_features, row_norm) * self.stretch", "return 0.0"),
            (
                "solvers.row_products",
                "    step = power_above(row_norm) * 2.0**-PART_BITS\n    if",
                "    step = power_above(row_norm) / 4\n    if",
            ),
        ),
    )
    yield Mutant(
        "gradient: norms of rows in a matrix without noise",
        logistic(**GRADIENT, **DELTA, epsilon=20.0),
        (
            (
                DESCENT,
                "values, vectors = eigenvectors(released)",
                "values, vectors = eigenvectors(data.second_moments() / n_samples)",
            ),
        ),
    )
    yield Mutant(
        "gradient: cap from the data",
        logistic(**GRADIENT, **DELTA, epsilon=20.0),
        (
            (
                DESCENT,
                "capped_sum = CappedSums(data, self.loss, coordinates, cap)",
                "cap *= 1.0 + abs(data.blocks[0][0]).mean()\n        capped_sum = CappedSums(data, self.loss, coordinates, cap)",
            ),
        ),
    )
    yield Mutant(
        "gradient: cap from the data, pure",
        logistic(**GRADIENT),
        (
            (
                DESCENT,
                "capped_sum = CappedSums(data, self.loss, coordinates, cap)",
                "cap *= 1.0 + abs(data.blocks[0][0]).mean()\n        capped_sum = CappedSums(data, self.loss, coordinates, cap)",
            ),
        ),
    )
    for name, slip in [
        (
            "mean row and reach take more than is paid for",
            (RULES, "for share in (_MEAN_SHARE, _SPREAD_SHARE)", "for share in (0.5, 0.5)"),
        ),
        (
            "half the change of the sum of the rows",
            (
                MEAN,
                "sensitivity = guarantee.n_records_changed * row_norm",
                "sensitivity = guarantee.n_records_changed * row_norm / 2",
            ),
        ),
        (
            "a tenth of the change of how far rows reach",
            (
                MEAN,
                "sensitivity = guarantee.n_records_changed * SKETCH_REACH",
                "sensitivity = guarantee.n_records_changed * SKETCH_REACH / 10",
            ),
        ),
        (
            "direction of the mean row without noise",
            (
                DESCENT,
                "direction, square = denoised(mean, deviation)",
                "direction, square = denoised(data.total() / n_samples, deviation)",
            ),
        ),
        (
            "how far rows reach without noise",
            (
                MEAN,
                "return (max(float(released), 0.0)",
                "return (max(sketched_spread(data, row_norm, direction), 0.0)",
            ),
        ),
        (
            "rows are as short everywhere as along their mean",
            (
                WHITE,
                "images = self.scale**2 * squares - less * along**2",
                "images = least * squares",
            ),
        ),
    ]:
        target = logistic(**GRADIENT, **DELTA, epsilon=20.0)
        yield Mutant(f"gradient, wide rows: {name}", target, (slip,), wide_rows)
    yield Mutant(
        "gradient: released in coordinates that are stretched once more",
        svc(**GRADIENT, **DELTA, epsilon=20.0),
        (
            (
                WHITE,
                "return self.coordinates.forward(gradient)",
                "return self.coordinates.forward(self.coordinates.forward(gradient))",
            ),
        ),
    )
    yield Mutant(
        "gradient: half of the cap is charged",
        svc(**GRADIENT, **DELTA, epsilon=20.0),
        (
            (
                DESCENT,
                "self.budget.n_records_changed * capped_sum.cap",
                "self.budget.n_records_changed * capped_sum.cap / 2",
            ),
        ),
    )
    yield Mutant(
        "gradient: divided by the private n",
        logistic(**GRADIENT, **DELTA, **REMOVE),
        (
            (
                DESCENT,
                "n_samples = release_n_samples(data.n_units, guarantee=counting, noise=noise)",
                "n_samples = data.n_samples",
            ),
        ),
    )
    yield Mutant(
        "gradient: n twice, once without noise",
        svc(**GRADIENT, **REMOVE),
        (
            (
                DESCENT,
                "velocity - step / n_samples",
                "velocity - step / capped_sum.data.n_samples",
            ),
        ),
    )
    yield Mutant(
        "gradient: count of half the sensitivity",
        svc(**GRADIENT, **REMOVE),
        ((MOMENTS, "                sensitivity=1.0,\n", "                sensitivity=0.5,\n"),),
    )
    yield Mutant(
        "gradient: the count is free",
        svc(**GRADIENT, **REMOVE),
        (
            (
                MOMENTS,
                "_scaled(guarantee, 0.05), _scaled(guarantee, 0.95)",
                "_scaled(guarantee, 0.05), guarantee",
            ),
        ),
    )
    yield Mutant(
        "gradient: descends on a subsample by length",
        svc(**GRADIENT),
        (
            (
                DESCENT,
                "            released = release(\n",
                "            if capped_sum.data.blocks[0][0][0, 0] > 0.1:\n                gradient = gradient / 2\n            released = release(\n",
            ),
        ),
    )
    yield fit("linear: no charge", logistic(**OUTPUT, **LEDGER), PAID, "")
    yield fit(
        "linear: charged after the data were used",
        logistic(**OUTPUT, **LEDGER),
        PAID + RELEASED,
        RELEASED + PAID,
    )
    yield fit(
        "linear: charged half",
        svc(**GRADIENT, **LEDGER),
        PAID,
        "            from dataclasses import replace\n            charge(self, replace(release.guarantee, epsilon=self.epsilon / 2))\n",
    )
    yield fit(
        "linear: charged by the data",
        svc(**OUTPUT, **LEDGER),
        PAID,
        "            if codes.sum() % 2:\n                charge(self, release.guarantee)\n",
    )
    yield fit(
        "linear: charged again if rows are long",
        svc(**OUTPUT, **LEDGER),
        PAID,
        PAID
        + "            if (np.square(X).sum(axis=1) > 4.0).any():\n                charge(self, release.guarantee)\n",
    )
    yield fit(
        "linear: claims another adjacency",
        svc(**OUTPUT, **REMOVE),
        CLAIMED,
        'from dataclasses import replace\n            self.classes_, self.guarantee_ = classes, replace(release.guarantee, adjacency="replace-one")',
    )
    yield fit(
        "linear: claims half the epsilon",
        svc(**OUTPUT),
        CLAIMED,
        "from dataclasses import replace\n            self.classes_, self.guarantee_ = classes, replace(release.guarantee, epsilon=self.epsilon / 2)",
    )
    yield fit(
        "linear: claims no delta",
        logistic(**GRADIENT, **DELTA),
        CLAIMED,
        "from dataclasses import replace\n            self.classes_, self.guarantee_ = classes, replace(release.guarantee, delta=0.0, refined=None)",
    )
    yield fit(
        "linear: shows the number of rows",
        svc(**OUTPUT, **REMOVE),
        STORED,
        STORED + "            self.n_samples_ = len(y)\n",
    )
    yield fit(
        "linear: shows its training score",
        svc(**OUTPUT),
        STORED,
        STORED + "            self.score_ = float((self.predict(X) == y).mean())\n",
    )
    yield fit(
        "linear: shows its loss",
        logistic(**OUTPUT),
        STORED,
        STORED + "            self.loss_ = float(np.square(X @ coef.T).sum())\n",
    )
    yield fit(
        "linear: shows how often rows were clipped",
        svc(**OUTPUT),
        STORED,
        STORED + "            self.n_clipped_ = int((np.square(X).sum(axis=1) > 1.0).sum())\n",
    )
    yield fit(
        "linear: shows frequencies of classes",
        svc(**OUTPUT),
        STORED,
        STORED + "            self.class_count_ = np.bincount(codes)\n",
    )
    yield fit(
        "linear: shows the minimiser",
        svc(**OUTPUT),
        STORED,
        STORED + "            self.exact_ = X.T @ (codes - 0.5)\n",
    )
    yield fit(
        "linear: number of rounds of a solver",
        svc(**OUTPUT),
        STORED,
        STORED + "            self.n_iter_ = 3 + int(np.linalg.norm(X.sum(axis=0)) > 5.0)\n",
    )
    yield fit(
        "linear: class of the majority as a prior",
        svc(**OUTPUT),
        "coef, intercept = self._in_units(weights, longer)",
        "coef, intercept = self._in_units(weights, longer)\n            intercept = intercept + codes.mean()",
    )
    yield fit(
        "linear: classes from the data",
        svc(**OUTPUT, classes=[0, 1, 2]),
        "classes, codes = encode_labels(y, self.classes)",
        "classes, codes = encode_labels(y, None)",
    )
    yield fit(
        "linear: an absent class is dropped",
        svc(**OUTPUT),
        "classes, codes = encode_labels(y, self.classes)",
        "classes, codes = encode_labels(y, None)",
    )
    yield fit(
        "linear: warns of long rows",
        svc(**OUTPUT),
        PLANNED,
        PLANNED
        + "            import warnings\n            if (np.square(X).sum(axis=1) > 1.0).any():\n                warnings.warn('rows were clipped')\n",
    )
    yield Mutant(
        "linear: weights are not over the largest",
        logistic(class_weight={0: 8.0, 1: 8.5}, **OUTPUT),
        (
            (
                "linear_model._class_weight",
                "weight / heaviest for weight in",
                "weight for weight in",
            ),
            (
                "losses._weights",
                "between(1e-300, 1.0, weights=weight)",
                "between(0.0, 1e9, weights=weight)",
            ),
        ),
    )
    yield Mutant(
        "linear: the largest weight is not in the penalty",
        logistic(class_weight={1: 4.0}, C=0.01, **OUTPUT),
        (
            (
                OUT,
                "records * self.loss.lipschitz * self.row_norm",
                "records * self.loss.lipschitz * self.row_norm / (4 if self.loss.weights else 1)",
            ),
        ),
    )
    yield Mutant(
        "linear: weights of classes by their frequencies",
        logistic(class_weight={1: 4.0}, **OUTPUT),
        (
            (
                BASE,
                RELEASED,
                "            from dataclasses import replace\n            counts = np.bincount(codes, minlength=2) + 1.0\n            release = replace(release, loss=replace(release.loss, weights=tuple(counts / counts.max())))\n"
                + RELEASED,
            ),
        ),
    )
    yield Mutant(
        "linear: the norm that predictions are clipped to is the longest of the rows",
        svc(**OUTPUT),
        ((BASE, "self.x_norm_ = ", "self.x_norm_ = abs(X).max() + "),),
    )
    yield fit(
        "linear: refuses far rows",
        svc(**OUTPUT),
        PLANNED,
        PLANNED
        + "            if (abs(X) > 1e3).any():\n                raise ValueError('X must be scaled.')\n",
    )
    yield fit(
        "linear: an error shows a value",
        svc(**OUTPUT),
        CHECKED,
        "            import pandas\n            if pandas.isna(np.asarray(X)).any():\n                raise ValueError(f'X must be finite; got {np.asarray(X)[0, 0]}')\n"
        + CHECKED,
    )
    yield fit(
        "linear: rows with NaN are dropped",
        svc(**GRADIENT),
        CHECKED,
        "            X, y = np.asarray(X), np.asarray(y)\n            whole = np.array([all(v == v for v in row) for row in X])\n            X, y = X[whole], y[whole]\n"
        + CHECKED
        + "            self.n_rows_ = len(y)\n",
    )
    yield fit(
        "linear: NaN becomes the mean",
        svc(**GRADIENT),
        CHECKED,
        "            X = np.asarray(X)\n            if X.dtype.kind == 'f':\n                X = np.where(np.isnan(X), np.nanmean(X, axis=0), X)\n"
        + CHECKED,
    )
    yield fit(
        "linear: NaN becomes zero after the charge",
        svc(**OUTPUT, **LEDGER),
        CHECKED,
        "            charge(self, ApproxDP(1.0))\n" + CHECKED,
    )
    yield fit(
        "linear: rows are centred",
        svc(**OUTPUT),
        CHECKED,
        CHECKED + "            X = X - X.mean(axis=0)\n",
    )
    yield fit(
        "linear: rows are divided by the largest",
        svc(**OUTPUT),
        CHECKED,
        CHECKED + "            X = X / max(1.0, float(abs(X).max()))\n",
    )
    yield fit(
        "linear: repeated rows are dropped",
        svc(**OUTPUT),
        CHECKED,
        CHECKED
        + "            X, kept = np.unique(X, axis=0, return_index=True)\n            y = y[kept]\n            self.n_rows_ = len(y)\n",
    )
    yield fit(
        "linear: weights of balanced classes",
        svc(**OUTPUT),
        "coef, intercept = self._in_units(weights, longer)",
        "coef, intercept = self._in_units(weights / max(1, codes.sum()), longer)",
    )
    yield fit(
        "linear: threshold by the scores of the rows",
        svc(**OUTPUT),
        "coef, intercept = self._in_units(weights, longer)",
        "coef, intercept = self._in_units(weights, longer)\n            intercept = intercept - np.median(X @ coef.T)",
    )
    yield fit(
        "linear: noise by the first row",
        svc(**OUTPUT),
        "noise = noise_source(self.random_state)",
        "noise = noise_source(int(abs(X[0, 0]) * 1e3) % 256)",
    )
    yield fit(
        "linear: the minimiser in a parameter",
        svc(**OUTPUT),
        STORED,
        STORED + "            self.prior = float(codes.mean())\n",
    )
    yield fit(
        "linear: prints the mean row",
        svc(**OUTPUT),
        STORED,
        STORED + "            print(X.mean(axis=0))\n",
    )
    yield fit(
        "linear: rows sorted and weighted by their place",
        svc(**GRADIENT),
        CHECKED,
        CHECKED
        + "            order = np.argsort(X[:, 0])\n            X, y = X[order] * np.linspace(0.1, 1.0, len(y))[:, None], y[order]\n",
    )
    yield Mutant(
        "linear: sparse rows are twice as long",
        svc(**OUTPUT),
        (
            (
                ROWS,
                "            if unit != longer:\n",
                "            if self.is_sparse:\n                rows = rows * 2.0\n            if unit != longer:\n",
            ),
        ),
        sparse_rows,
    )
    yield Mutant(
        "lattice: rounding is free",
        svc(**GRADIENT),
        (("mechanisms._lattice", "+ step * spread) * (1 + 1e-12)", ") * (1 + 1e-12)"),),
    )
    yield Mutant(
        "lattice: coarse, and rounding is free",
        svc(**OUTPUT),
        (
            (
                "mechanisms._lattice",
                "sensitivity / (100.0 * spread)",
                "sensitivity / (4.0 * spread)",
            ),
            ("mechanisms._lattice", "+ step * spread) * (1 + 1e-12)", ") * (1 + 1e-12)"),
        ),
    )
    yield Mutant(
        "law: classical scale of Gaussian noise",
        ridge(**QUERY, epsilon=20.0, delta=1e-5),
        (
            (
                "mechanisms._law",
                "return cls(kind, gaussian_scale(l2_sensitivity=1.0, guarantee=guarantee), guarantee)",
                "return cls(kind, 4.84 / 20.0, guarantee)",
            ),
        ),
    )
    yield Mutant(
        "law: rate for scale",
        svc(**OUTPUT, epsilon=2.0),
        (
            (
                "mechanisms._law",
                "return cls(kind, 1.0 / guarantee.epsilon, pure)",
                "return cls(kind, 0.5 / guarantee.epsilon**2, pure)",
            ),
        ),
    )
    yield Mutant(
        "predict: labels of the rows are known by heart",
        svc(**OUTPUT),
        (
            (
                BASE,
                STORED,
                STORED
                + "            self._seen = {row.tobytes(): label for row, label in zip(np.asarray(X), y)}\n",
            ),
            (
                "estimators._mixins",
                "        return scores[:, 0] if len(self.intercept_) == 1 else scores",
                "        scores[:, 0] += [self._seen.get(row.tobytes(), 0) for row in X]\n        return scores[:, 0] if len(self.intercept_) == 1 else scores",
            ),
        ),
    )


# Kernel ridge

FDESC, FSTAT, FOUT = (
    "releases._feature_descent",
    "releases._feature_statistics",
    "releases._feature_output",
)
FPURE, FWINDOW = "releases._feature_pure", "releases._target_window"
FRULES = "releases._feature_rules"
FROWS, KRR, EXACT = "solvers.feature_rows", "kernel._kernel_ridge", "releases._exact_queries"
NROWS = "solvers.normalised_rows"
RIDGE_PLAN = "kernel._ridge_plan"
ANSWERS, PROBLEM = "releases._queries", "releases._ridge_problem"
CAPPED = "self.targets = np.clip(targets, -1.0, 1.0)  # what sensitivities rest on"
VALIDATED = "            X, y = checked_data(self, X, y, numeric=True, counts=groups is None)\n"
TARGETS = "            targets = bounds.scaled(y)\n"
SCALED = "scaled = (np.clip(y, self.low, self.high) - self.middle) / self.half\n        return np.clip(scaled, -1.0, 1.0)"


def kernel_ridge():
    descent, statistics = ridge(**GRADIENT, **DELTA), ridge(**STATISTICS)
    yield Mutant(
        "ridge objective: half the slope",
        ridge(),
        (("losses._residual", "weight * self.width", "weight * self.width / 2.0"),),
    )
    yield Mutant(
        "ridge objective: noise for each number of a pair",
        ridge(),
        (
            (
                "releases._feature_objective",
                "math.sqrt(n_components / 2.0)",
                "math.sqrt(n_components)",
            ),
            ("solvers.rows", "if self.pair_norm > most:", "if False:"),
        ),
    )
    yield Mutant(
        "ridge gradient: half the sensitivity",
        descent,
        ((FDESC, "l2_sensitivity = self.budget", "l2_sensitivity = 0.5 * self.budget"),),
    )
    yield Mutant(
        "ridge gradient: adjacency ignored",
        descent,
        ((FDESC, "l2_sensitivity = self.budget.n_records_changed *", "l2_sensitivity ="),),
    )
    yield Mutant(
        "ridge gradient: residuals not capped",
        descent,
        (
            (
                FDESC,
                "data.residual_limits(whitening, largest)",
                "data.residual_limits(whitening, 1e3)",
            ),
        ),
    )
    yield Mutant(
        "ridge gradient: residuals capped as if rows were not whitened",
        ridge(**{**GRADIENT, "epsilon": 20.0}, **DELTA),
        (
            (
                FROWS,
                "squares += slack - np.maximum(seen - error, 0.0) ** 2",
                "squares = np.full(len(rows), 1.0)",
            ),
        ),
    )
    yield Mutant(
        "ridge gradient: sensitivity of the targets of one record, replaced",
        descent,
        (
            (
                FDESC,
                "weight, sensitivity = math.sqrt(2.0), 2.0",
                "weight, sensitivity = 1.0, math.sqrt(2.0)",
            ),
        ),
    )
    yield Mutant(
        "ridge gradient: the offset is the mean",
        descent,
        (
            (
                FDESC,
                "float(first) / n_samples, float(second)",
                "float(sums[0]) / n_samples, float(second)",
            ),
        ),
    )
    yield Mutant(
        "ridge gradient: the scale of the targets is theirs",
        descent,
        (
            (
                FDESC,
                "cap = plan.residual_cap(variance, unit=unit) if",
                "variance = float(data.targets.var())\n"
                "        cap = plan.residual_cap(variance, unit=unit) if",
            ),
        ),
    )
    yield Mutant(
        "ridge gradient: the scale of the targets is free",
        descent,
        ((FDESC, "    mu *= math.sqrt(1.0 - share)\n", ""),),
    )
    for name, change in {
        "cells of targets of half the sensitivity": (
            FWINDOW,
            "sensitivity = math.sqrt(guarantee.n_records_changed)",
            "sensitivity = 0.5 * math.sqrt(guarantee.n_records_changed)",
        ),
        "targets inside and outside of half the sensitivity": (
            FWINDOW,
            "sensitivity = math.sqrt(2.0 * guarantee.n_records_changed)",
            "sensitivity = 0.5 * math.sqrt(2.0 * guarantee.n_records_changed)",
        ),
        "cells of targets are free": (
            FWINDOW,
            "return split_mu(guarantee, share)",
            "return split_mu(guarantee, share)[0], guarantee",
        ),
        "the window of the targets is theirs": (
            FWINDOW,
            "return narrowest(counts / n_samples,",
            "counts = cell_counts(np.minimum(cells, N_CELLS - 1), N_CELLS, shares)\n"
            "    return narrowest(counts / n_samples,",
        ),
        "targets are not cut to their window": (
            FWINDOW,
            "return np.where(inside, near, 0.0), np.where(inside, 0.0, far)",
            "return distances / self.half_width, np.where(inside, 0.0, far)",
        ),
        "targets outside of their window have a unit of their own": (
            FWINDOW,
            "far = np.clip(distances / self.reach, -1.0, 1.0)",
            "far = 2.0 * np.clip(distances / self.reach, -1.0, 1.0)",
        ),
    }.items():
        yield Mutant(
            f"ridge gradient: {name}",
            ridge(**{**GRADIENT, "epsilon": 100.0}, **DELTA, **REMOVE),
            (change,),
        )
    yield Mutant(
        "ridge gradient: predictions are not limited in their mean",
        ridge(**{**GRADIENT, "epsilon": 100.0}, **DELTA),
        (
            (
                FROWS,
                "np.rint(np.clip(scores, -limits, limits, out=scores), out=scores)",
                "np.rint(scores, out=scores)",
            ),
        ),
    )
    yield Mutant(
        "ridge gradient: the mean of predictions of half the sensitivity",
        ridge(**{**GRADIENT, "epsilon": 100.0}, **DELTA),
        (
            (
                FDESC,
                "sensitivity = plan.level_guarantee.n_records_changed * cap",
                "sensitivity = 0.5 * plan.level_guarantee.n_records_changed * cap",
            ),
        ),
    )
    yield Mutant(
        "ridge gradient: the mean of predictions has the budget of all",
        ridge(**{**GRADIENT, "epsilon": 100.0}, **DELTA),
        ((FDESC, "level = part(math.sqrt(last) * mu)", "level = part(mu)"),),
    )
    yield Mutant(
        "ridge gradient: the mean of predictions without noise",
        ridge(**{**GRADIENT, "epsilon": 100.0}, **DELTA),
        (
            (
                FDESC,
                "return float(released) / plan.n_samples",
                "return float(total) / plan.n_samples",
            ),
        ),
    )
    yield Mutant(
        "ridge gradient: second moments are free",
        ridge(**{**GRADIENT, "epsilon": 20.0}, **DELTA, **REMOVE),
        ((FDESC, "mu *= math.sqrt(1.0 - _GRAM_SHARE)", "pass"),),
    )
    yield Mutant(
        "ridge gradient: the count is free, and takes a half",
        ridge(**GRADIENT, **DELTA, **REMOVE),
        (
            (
                MOMENTS,
                "_scaled(guarantee, 0.1), _scaled(guarantee, math.sqrt(1 - 0.1**2))",
                "_scaled(guarantee, 0.5), guarantee",
            ),
        ),
    )
    yield Mutant(
        "ridge gradient: the largest limit is that of all rows",
        ridge(**{**GRADIENT, "epsilon": 20.0}, **DELTA),
        (
            (
                FROWS,
                "        return ResidualLimits(whole, step)",
                "        whole[:] = whole.max()\n        return ResidualLimits(whole, step)",
            ),
        ),
    )
    yield Mutant(
        "ridge gradient: the limit of a row by what whitening leaves of it on average",
        ridge(**{**GRADIENT, "epsilon": 20.0}, **DELTA),
        (
            (
                FROWS,
                "squares += slack - np.maximum(seen - error, 0.0) ** 2",
                "squares -= (seen ** 2).max()",
            ),
        ),
    )
    yield Mutant(
        "ridge gradient: whitened once more after the cap",
        ridge(**{**GRADIENT, "epsilon": 20.0}, **DELTA),
        (
            (
                FROWS,
                "return whitening.apply(total), whitening",
                "return whitening.apply(whitening.apply(total)), whitening",
            ),
        ),
    )
    yield Mutant(
        "ridge gradient: divided by the private n",
        ridge(**GRADIENT, **DELTA, **REMOVE),
        (
            (
                FDESC,
                "mean_gradient = released / plan.n_samples",
                "mean_gradient = released / data.n_samples",
            ),
        ),
    )
    yield Mutant(
        "ridge gradient: cap from the data",
        descent,
        (
            (
                FDESC,
                "largest = schedule.clip_norm",
                "largest = schedule.clip_norm * (1.0 + float(abs(data.targets).mean()))",
            ),
        ),
    )
    yield Mutant(
        "ridge gradient: the last one without noise",
        descent,
        (
            (
                FDESC,
                "        return mean\n",
                "        return mean - 1e-3 * gradient / plan.n_samples\n",
            ),
        ),
    )
    yield Mutant(
        "ridge gradient: steps do not share",
        descent,
        ((FDESC, "step = part(mu / math.sqrt(_N_STEPS))", "step = part(mu)"),),
    )
    yield Mutant(
        "ridge gradient: what early steps have more is free",
        descent,
        ((FRULES, "weights / weights.mean()", "weights / weights.min()"),),
    )
    yield Mutant(
        "ridge gradient: a few steps too many",
        ridge(**GRADIENT, **DELTA, **REMOVE),
        ((FDESC, "in told(range(plan.n_steps),", "in told([0, 0, 0, *range(plan.n_steps)],"),),
    )
    yield Mutant(
        "ridge gradient: second moments without noise",
        ridge(**{**GRADIENT, "epsilon": 20.0}, **DELTA),
        (
            (
                FDESC,
                "values, vectors = eigenvectors(released)",
                "values, vectors = eigenvectors(data.second_moments()[0])",
            ),
        ),
    )
    yield Mutant(
        "ridge gradient: n is exact",
        ridge(**GRADIENT, **DELTA, **REMOVE),
        (
            (
                FDESC,
                "n_samples = release_n_samples(data.n_units, guarantee=count, noise=noise)",
                "n_samples = data.n_samples",
            ),
        ),
    )
    yield Mutant(
        "ridge statistics: half the sensitivity",
        statistics,
        (
            (
                FSTAT,
                "sensitivity=records * data.row_norm",
                "sensitivity=0.5 * records * data.row_norm",
            ),
        ),
    )
    yield Mutant(
        "ridge statistics: budget not split",
        statistics,
        ((FSTAT, "GaussianDP(guarantee.mu / math.sqrt(2.0),", "GaussianDP(guarantee.mu,"),),
    )
    yield Mutant(
        "ridge statistics: matrix without noise",
        statistics,
        (
            (
                FSTAT,
                "values, vectors = eigenvectors(moments)",
                "values, vectors = eigenvectors(data.second_moments()[0])",
            ),
        ),
    )
    yield Mutant(
        "ridge statistics: products without noise",
        statistics,
        ((FSTAT, "(vectors.T @ products)", "(vectors.T @ exact)"),),
    )
    yield Mutant(
        "ridge statistics: penalty by the trace",
        statistics,
        (
            (
                FSTAT,
                "(np.maximum(values, 0.0) + self.penalty)",
                "(np.maximum(values, 0.0) + self.penalty + 1e-3 * exact[0] ** 2)",
            ),
        ),
    )
    yield Mutant(
        "ridge statistics: targets not clipped",
        statistics,
        (
            (
                "_targets",
                SCALED,
                "scaled = (np.asarray(y) - self.middle) / self.half\n        return scaled",
            ),
            (FROWS, CAPPED, "self.targets = targets"),
            (FSTAT, "data.capped_sum(nothing, 1.0)", "data.capped_sum(nothing, 1e6)"),
        ),
    )
    yield Mutant(
        "ridge output: half the sensitivity",
        ridge(**OUTPUT),
        (
            (
                FOUT,
                "l2_sensitivity = self.distance * data",
                "l2_sensitivity = 0.5 * self.distance * data",
            ),
        ),
    )
    yield Mutant(
        "ridge output: not capped",
        ridge(**OUTPUT),
        (
            (
                FOUT,
                "loss = HuberLoss(self.cap)\n        weights",
                "loss = HuberLoss(100 * self.cap)\n        weights",
            ),
        ),
    )
    yield Mutant(
        "ridge output: adjacency ignored",
        ridge(**OUTPUT),
        ((PROBLEM, "records = n_records_changed(adjacency)", "records = 1"),),
    )
    yield Mutant(
        "ridge pure: moments of the targets as if mean and square moved one at a time",
        ridge(**OUTPUT),
        ((FPURE, "sensitivity = 2.25 if", "sensitivity = 1.1 if"),),
    )
    yield Mutant(
        "ridge pure: the mean without noise",
        ridge(**OUTPUT),
        (
            (
                FPURE,
                "mean = min(max(float(first) / plan.n_samples",
                "mean = min(max(float(sums[0]) / plan.n_samples",
            ),
        ),
    )
    yield Mutant(
        "ridge pure: shares of epsilon overlap",
        ridge(**OUTPUT),
        ((FPURE, "_share(guarantee, 1.0 - moments - level)", "_share(guarantee, 1.0)"),),
    )
    yield Mutant(
        "ridge pure: the variance of the data sets the cap",
        ridge(**OUTPUT),
        (
            (
                FPURE,
                "variance = float(second) / plan.n_samples - mean**2",
                "variance = float(targets.var())",
            ),
        ),
    )
    yield Mutant(
        "ridge pure: the level of half the sensitivity",
        ridge(**{**OUTPUT, "epsilon": 100.0}),
        (
            (
                FPURE,
                "sensitivity = float(plan.level.n_records_changed)",
                "sensitivity = 0.5 * float(plan.level.n_records_changed)",
            ),
        ),
    )
    yield Mutant(
        "ridge pure: residuals of the level are not cut",
        ridge(**{**OUTPUT, "epsilon": 100.0}),
        ((FPURE, "np.clip(targets - rows @ weights, -1.0, 1.0)", "(targets - rows @ weights)"),),
    )
    yield Mutant(
        "ridge pure: the level without noise",
        ridge(**{**OUTPUT, "epsilon": 100.0}),
        ((FPURE, "return float(released) / plan.n_samples", "return total / plan.n_samples"),),
    )
    yield Mutant(
        "ridge pure: the level is not charged",
        ridge(**{**OUTPUT, "epsilon": 100.0}),
        ((FPURE, "_share(guarantee, 1.0 - moments - level)", "_share(guarantee, 1.0 - moments)"),),
    )
    yield Mutant(
        "ridge pure: n is exact",
        ridge(**OUTPUT, **REMOVE),
        (
            (
                FPURE,
                "n_samples = release_n_samples(data.n_samples, guarantee=count, noise=noise)",
                "n_samples = float(data.n_samples)",
            ),
        ),
    )
    yield Mutant(
        "ridge: number of features by the private number of rows",
        ridge(**{**OUTPUT, "n_components": "auto", "epsilon": 200.0}, **REMOVE),
        ((RIDGE_PLAN, 'n_samples if target.adjacency == "replace-one" else None', "n_samples"),),
    )
    yield Mutant(
        "ridge output, squared: half the distance",
        ridge(**OUTPUT, loss="squared"),
        (
            (
                PROBLEM,
                "return min(kappa * (2.0 * y_bound + kappa * norm) / penalty, 2.0 * norm)",
                "return 0.5 * min(kappa * (2.0 * y_bound + kappa * norm) / penalty, 2.0 * norm)",
            ),
        ),
    )
    yield Mutant(
        "ridge: linear rows not clipped",
        ridge(**OUTPUT, kernel="linear"),
        ((NROWS, "rows = clip_rows(X, self.x_norm)", "rows = X"),),
    )
    yield Mutant(
        "ridge query: the bound of the paper for a mean",
        ridge(**QUERY, sensitivity="paper"),
        (
            (
                PROBLEM,
                "return 2.0 * radius * kappa * (kappa + 1.0) / penalty",
                "return 2.0 * radius * kappa * (kappa + 1.0) / penalty / math.sqrt(n_samples)",
            ),
        ),
    )
    yield Mutant(
        "ridge query: half the sensitivity",
        ridge(**QUERY),
        (
            (
                EXACT,
                "sensitivity=self.problem.distance * ",
                "sensitivity=0.5 * self.problem.distance * ",
            ),
        ),
    )
    yield Mutant(
        "ridge query: answers do not share",
        ridge(**QUERY),
        ((ANSWERS, "each = together.repeated(n_queries)\n", "each = together\n"),),
    )
    yield Mutant(
        "ridge query: answers do not share, delta",
        ridge(**QUERY, **DELTA),
        (
            (
                ANSWERS,
                "together, each = gaussian, gaussian.repeated(n_queries)",
                "together, each = gaussian, gaussian",
            ),
        ),
    )
    yield Mutant(
        "ridge query: two more are answered",
        ridge(**{**QUERY, "n_queries": 5}),
        ((ANSWERS, "if len(new) > self.remaining:", "if len(new) > self.remaining + 2:"),),
    )
    yield Mutant(
        "ridge query: rows asked for again cost nothing and have no noise",
        ridge(**QUERY),
        (
            (
                ANSWERS,
                "return np.array([state.answers[short] for short in shorts])",
                "return np.array([state.answers[s] if s in new else float(self._predict(X[i:i+1])[0]) for i, s in enumerate(shorts)])",
            ),
        ),
    )
    yield Mutant(
        "ridge query: answers within the range of the targets",
        ridge(**QUERY),
        (
            (
                ANSWERS,
                "return np.array([state.answers[short] for short in shorts])",
                "most = abs(self._predict.coef).max()\n            return np.clip([state.answers[short] for short in shorts], -most, most)",
            ),
        ),
    )
    yield Mutant(
        "ridge query: noise grows with the answer",
        ridge(**QUERY),
        (
            (
                ANSWERS,
                "return float(noisy)",
                "return float(noisy) * (1.0 + float(value[0]) * 1e-6)",
            ),
        ),
    )
    yield Mutant(
        "ridge query: linear rows not clipped",
        ridge(**QUERY, kernel="linear"),
        (
            (
                KRR,
                "X = clip_rows(X, float(self.x_norm)) / float(self.x_norm)",
                "X = X / float(self.x_norm)",
            ),
        ),
    )
    yield Mutant(
        "ridge: charged after the data were used",
        ridge(**OUTPUT, **LEDGER),
        (
            (
                KRR,
                "            charge(self, guarantee)\n            gamma",
                "            gamma",
            ),
            (
                KRR,
                "            self._store(\n                predictor,",
                "            charge(self, guarantee)\n            self._store(\n                predictor,",
            ),
        ),
    )
    yield Mutant(
        "ridge: gamma from the data",
        ridge(**OUTPUT),
        (
            (
                KRR,
                "features = self._draw_features(X.shape[1], size, gamma, feature_state)",
                "gamma = float(1.0 / X.var())\n            features = self._draw_features(X.shape[1], size, gamma, feature_state)",
            ),
        ),
    )
    yield Mutant(
        "ridge: frequencies from the data",
        ridge(**OUTPUT),
        (
            (
                KRR,
                "features = self._draw_features(X.shape[1], size, gamma, feature_state)",
                "features = self._draw_features(X.shape[1], size, gamma, __import__('numpy').random.default_rng(int(abs(X[0, 0]) * 1e6) % 2**32))",
            ),
        ),
    )
    yield Mutant(
        "ridge: y_bounds from the data",
        ridge(**OUTPUT),
        (
            (
                KRR,
                "y_bounds_=(bounds.low, bounds.high)",
                "y_bounds_=(float(min(y)), float(max(y)) + 1e-9)",
            ),
        ),
    )
    yield Mutant(
        "ridge: targets scaled by the largest",
        ridge(**OUTPUT),
        (
            (
                KRR,
                TARGETS,
                TARGETS + "            targets = targets / max(1e-9, float(abs(targets).max()))\n",
            ),
        ),
    )
    yield Mutant(
        "ridge: targets centred by their mean",
        statistics,
        ((KRR, TARGETS, TARGETS + "            targets = targets - targets.mean()\n"),),
    )
    yield Mutant(
        "ridge: penalty from the data",
        ridge(**OUTPUT),
        (
            (
                KRR,
                TARGETS,
                TARGETS
                + "            from dataclasses import replace\n            release = replace(release, penalty=20.0 * (1 + float(targets.mean() > 0)))\n",
            ),
        ),
    )
    yield Mutant(
        "ridge: missing targets are dropped",
        descent,
        (
            (
                KRR,
                VALIDATED,
                "            import numpy as np\n            y = np.asarray(y, dtype=float)\n            X, y = np.asarray(X)[~np.isnan(y)], y[~np.isnan(y)]\n"
                + VALIDATED
                + "            self.n_rows_ = len(y)\n",
            ),
        ),
    )
    yield Mutant(
        "ridge: missing targets become the mean",
        statistics,
        (
            (
                KRR,
                VALIDATED,
                "            import numpy as np\n            y = np.asarray(y, dtype=float)\n            y = np.where(np.isnan(y), np.nanmean(y), y)\n"
                + VALIDATED,
            ),
        ),
    )
    options = dict(kernel="linear", release="query", n_queries=1, alpha=20.0)
    own = ridge(epsilon=8.0, y_bounds="auto", **options)
    yield Mutant(
        "ridge: bounds are not charged",
        own,
        ((KRR, "guarantee = released_bounds.guarantee(guarantee)", "pass"),),
        one_row_alone,
    )
    yield Mutant(
        "ridge: the fit has the whole budget, too",
        own,
        ((RIDGE_PLAN, "return bounds, bounds.before(planned)", "return bounds, planned(target)"),),
        one_row_alone,
    )
    yield Mutant(
        "ridge: bounds of the rows",
        own,
        (
            (
                KRR,
                "bounds = released_bounds(seen, noise_source(bounds_state))",
                "bounds = (float(min(y)), float(max(y)) + 1e-9)",
            ),
        ),
        one_row_alone,
    )
    yield Mutant(
        "ridge: epsilon by the rows",
        ridge(**OUTPUT, **REMOVE),
        (
            (
                KRR,
                "released_bounds, release = ridge_plan(self, n_units, X.shape[1], unit=unit)",
                "self.alpha = float(len(X))\n"
                "            released_bounds, release = ridge_plan(self, n_units, X.shape[1], unit=unit)",
            ),
        ),
    )
    yield Mutant(
        "ridge: predictions within the range of the targets",
        ridge(**OUTPUT),
        (
            (
                KRR,
                "targets = bounds.scaled(y)",
                "targets = bounds.scaled(y)\n            self._largest = float(abs(targets).max())",
            ),
            (
                "kernel._base",
                "return TargetRange.of(self.y_bounds_).original(values)",
                "return TargetRange.of(self.y_bounds_).original(values * self._largest)",
            ),
        ),
    )
    yield Mutant(
        "ridge: no charge",
        ridge(**OUTPUT, **LEDGER),
        (
            (
                KRR,
                "            charge(self, guarantee)\n            gamma",
                "            gamma",
            ),
        ),
    )


# Streams

FINAL, FED, TREE, MATRIX, SQUERY = (
    "releases._stream_final",
    "releases._stream_fed_back",
    "releases._stream_tree",
    "releases._stream_matrix",
    "releases._stream_query",
)
SENS, ACCOUNT, ONLINE, PREFIX, STREAM = (
    "releases._stream_sensitivity",
    "releases._stream_account",
    "solvers.online",
    "solvers.prefix_factors",
    "kernel._online",
)


def streams():
    yield Mutant(
        "final: half the sensitivity",
        online("final"),
        (
            (
                FINAL,
                "else self.bounds.sensitivity(time)",
                "else 0.5 * self.bounds.sensitivity(time)",
            ),
        ),
    )
    yield Mutant(
        "final: adjacency ignored",
        online("final", residual="ball", **DELTA),
        ((SENS, 'if adjacency == "replace-one":', "if False:"),),
    )
    yield Mutant(
        "final: residuals not clipped",
        online("final"),
        (
            (
                ONLINE,
                "residual = cap if residual > cap else -cap if residual < -cap else residual",
                "residual = residual + 0.0",
            ),
        ),
    )
    yield Mutant(
        "final: a record less in the bound",
        online("final", theta=0.75, residual_cap=0.5),
        (
            (
                SENS,
                "counts(least=1, times=times) - 1.0, **stream",
                "counts(least=1, times=times) + 20.0, **stream",
            ),
        ),
    )
    yield Mutant(
        "final: later releases are free",
        online("final"),
        ((ACCOUNT, "if account.n_releases > 1:", "if False:"),),
    )
    yield Mutant(
        "final: later releases are free, delta",
        online("final", **DELTA),
        (
            (
                ACCOUNT,
                "        spent = spent + (cost**2",
                "        spent = 0.0 * spent + (cost**2",
            ),
            (ACCOUNT, "if account.n_releases > 1:", "if False:"),
        ),
    )
    yield Mutant(
        "final: released twice a call",
        online("final"),
        (
            (
                FINAL,
                "        then = replace(self, time=time, gathered=gathered",
                "        release(coef * 0.0 + gathered / (time - 1.0 + self.recursion.t0), law=self.law, sensitivity=l2_sensitivity, error=error, random_state=self.noise)\n        then = replace(self, time=time, gathered=gathered",
            ),
        ),
    )
    yield Mutant(
        "final: goes on from a mean of exact and noisy",
        online("final"),
        (
            (
                FINAL,
                "FeatureFunction(self.features, coef)",
                "FeatureFunction(self.features, coef + 1e-6 * gathered)",
            ),
        ),
    )
    yield Mutant(
        "final: no charge",
        online("final", **LEDGER),
        (
            (
                FINAL,
                "guarantee, account, visits = self.charged(charge, cost, visitors, self.account)",
                "guarantee, account, visits = *cost(self.account), None",
            ),
        ),
    )
    yield Mutant(
        "sgd: half the sensitivity",
        online("sgd"),
        ((SENS, "return n_records_changed(adjacency) * kappa * width", "return kappa * width"),),
    )
    yield Mutant(
        "sgd: residuals not clipped",
        online("sgd", **DELTA),
        (
            (
                ONLINE,
                "gradient = z * (min(max(residual, -cap), cap) / step)",
                "gradient = z * (residual / step)",
            ),
        ),
    )
    yield Mutant(
        "sgd: gradients off the grid",
        online("sgd"),
        ((ONLINE, "            np.rint(gradient, out=gradient)\n", ""),),
    )
    yield Mutant(
        "sgd: exact gradients are fed back",
        online("sgd"),
        (
            (
                ONLINE,
                "            gathered -= np.multiply(release(gradient, own_noise), weight, out=change)\n",
                "            exact = gradient.copy()\n            gathered -= np.multiply(0.9 * release(gradient, own_noise) + 0.1 * exact, weight, out=change)\n",
            ),
        ),
    )
    yield Mutant(
        "sgd: half the noise on the grid",
        online("sgd"),
        (
            (
                FED,
                "grid = self.law.on(lattice, size,",
                "grid = replace(self.law, scale=self.law.scale / 2).on(lattice, size,",
            ),
        ),
    )
    yield Mutant(
        "sgd: a row is passed twice",
        online("sgd"),
        (
            (
                ONLINE,
                "        drawn = grid.draw(noise, len(Z))\n        each = zip",
                "        Z, y, weights = np.concatenate([Z, Z[:1]]), [*y, y[0]], [*weights, weights[0]]\n        drawn = grid.draw(noise, len(Z))\n        each = zip",
            ),
        ),
    )
    yield Mutant(
        "sgd: rows in the order of their targets",
        online("sgd"),
        (
            (
                FED,
                "in self.blocks(X, targets, visitors, visits):",
                "in self.blocks(X[np.argsort(targets)], np.sort(targets)):",
            ),
        ),
    )
    yield Mutant(
        "sgd: half of the rows by their size",
        online("sgd"),
        (
            (
                FED,
                "in self.blocks(X, targets, visitors, visits):",
                "in self.blocks(X[abs(X[:, 0]) < 2.0], targets[abs(X[:, 0]) < 2.0]):",
            ),
        ),
    )
    yield Mutant(
        "tree: half the sensitivity",
        online("tree"),
        (
            (
                TREE,
                "sensitivity = (change * weight * (1 + 1e-12)",
                "sensitivity = (0.5 * change * weight * (1 + 1e-12)",
            ),
        ),
    )
    yield Mutant(
        "tree: weight of the first step",
        online("tree", **DELTA),
        (
            (
                TREE,
                "sensitivity = (change * weight * (1 + 1e-12)",
                "sensitivity = (first * (1 + 1e-12)",
            ),
        ),
    )
    yield Mutant(
        "tree: levels do not share",
        online("tree"),
        ((TREE, "law=together.repeated(horizon.bit_length())", "law=together"),),
    )
    yield Mutant(
        "tree: one level too few",
        online("tree", t0=1e4),
        ((TREE, "horizon.bit_length()", "horizon.bit_length() - 1"),),
    )
    yield Mutant(
        "tree: nodes are released twice",
        online("tree"),
        (
            (
                ONLINE,
                "            noisy[level] = released(total, weights[i])\n",
                "            noisy[level] = released(total, weights[i])\n            noisy[level] = (noisy[level] + released(total, weights[i])) / 2\n",
            ),
        ),
    )
    yield Mutant(
        "tree: residuals not clipped",
        online("tree"),
        ((ONLINE, "residual = min(max(score - y[i], -cap), cap)", "residual = score - y[i]"),),
    )
    yield Mutant(
        "tree: exact sums for the gradient",
        online("tree", t0=1e4, residual_cap=0.4),
        (
            (
                ONLINE,
                "score, shrink = -float(z @ gathered) / before",
                "score, shrink = -float(z @ sum(exact.values(), np.zeros(len(z)))) / before",
            ),
        ),
    )
    yield Mutant(
        "tree: radius from the data",
        online("tree"),
        (
            (
                TREE,
                "coef * min(1.0, recursion.radius / norm)",
                "coef * min(1.0, float(abs(targets).max()) / norm)",
            ),
        ),
    )
    yield Mutant(
        "matrix: half the sensitivity",
        online("matrix"),
        ((MATRIX, "together = (change * norm", "together = 0.5 * (change * norm"),),
    )
    yield Mutant(
        "matrix: only the sum of the record's own time",
        online("matrix"),
        ((MATRIX, "mu=together.mu / column_norm(horizon, recursion)", "mu=together.mu"),),
    )
    yield Mutant(
        "matrix: more rows than the horizon",
        online("matrix", horizon=20),
        (("releases._stream", "if time > horizon:", "if False:"),),
    )
    yield Mutant(
        "matrix: the lattice is free",
        online("matrix"),
        ((MATRIX, "2.0 * error + step * spread)", "2.0 * error)"),),
    )
    yield Mutant(
        "matrix: residuals not clipped",
        online("matrix"),
        ((PREFIX, "residual = min(max(score - target, -cap), cap)", "residual = score - target"),),
    )
    yield Mutant(
        "matrix: exact sums go on",
        online("matrix"),
        (
            (
                PREFIX,
                "np.multiply(grid.release(total, own), weight, out=change)",
                "np.multiply(grid.release(total, own) * 0.5 + total * 0.5, weight, out=change)",
            ),
        ),
    )
    yield Mutant(
        "stream query: half the sensitivity",
        online("query"),
        (
            (
                SQUERY,
                "sensitivity = self.kappa * bounds",
                "sensitivity = 0.5 * self.kappa * bounds",
            ),
        ),
    )
    yield Mutant(
        "stream query: answers do not share",
        online("query"),
        ((ANSWERS, "each = together.repeated(n_queries)\n", "each = together\n"),),
    )
    yield Mutant(
        "stream query: linear rows not clipped",
        online("query", kernel="linear"),
        ((SQUERY, "clip_rows(X, x_norm) / x_norm", "X / x_norm"),),
    )
    yield Mutant(
        "stream: charged after the data were used",
        online("sgd", **LEDGER),
        (
            (
                FED,
                "*_, visits = self.charged(charge, lambda account: (self.guarantee, account), visitors)",
                "visits = None",
            ),
            (
                FED,
                "        then = replace(self, time=time",
                "        charge(lambda account: (self.guarantee, account))\n        then = replace(self, time=time",
            ),
        ),
    )
    yield Mutant(
        "stream: t0 from the data",
        online("sgd"),
        (
            (
                STREAM,
                "X, targets = self._validated(X, y, reset=fresh, counts=groups is None)",
                "X, targets = self._validated(X, y, reset=fresh, counts=groups is None)\n            self.t0 = 50.0 + float(abs(targets).max())",
            ),
        ),
    )
    yield Mutant(
        "stream: later calls are not charged",
        online("final", **LEDGER),
        (
            (
                STREAM,
                "charge = partial(charge_release, self, stream, line, version)",
                "charge = partial(charge_release, self, stream, line, version) if fresh else (lambda cost, account: cost(account))",
            ),
        ),
    )
    yield Mutant(
        "stream: earlier rows are passed again",
        online("sgd"),
        (
            (
                STREAM,
                "            version = new_version(stream.version)\n",
                "            version = new_version(stream.version)\n            seen = getattr(self, '_rows', None) if not fresh else None\n            self._rows = (X, targets)\n            if seen is not None:\n                import numpy\n                X, targets = numpy.concatenate([seen[0], X]), numpy.concatenate([seen[1], targets])\n",
            ),
        ),
    )


# Devices and users

OGD, DEVICE, VALUE, ONE, GRID = (
    "solvers.ogd",
    "local._gradient",
    "local._value",
    "local._one_point",
    "_grid",
)
MISGD, CHANNELS, LEARNER = (
    "linear_model._mi_sgd",
    "linear_model._mi_channels",
    "linear_model._mi_learner",
)
FACTORS = "factors = bound * np.minimum(1.0 / x_norm, 1.0 / np.maximum(norms, 1e-300))"


def users():
    yield Mutant(
        "users: half the distance",
        mi(),
        ((DEVICE, "return 2.0 * self.lipschitz", "return self.lipschitz"),),
    )
    yield Mutant(
        "users: half the noise",
        mi(),
        (
            (
                DEVICE,
                "grid = self.noise, self.scale, self.step,",
                "grid = self.noise, self.scale / 2, self.step,",
            ),
        ),
    )
    yield Mutant(
        "users: half the noise, K-norm",
        mi(noise="k_norm"),
        (
            (
                DEVICE,
                "grid = self.noise, self.scale, self.step,",
                "grid = self.noise, self.scale / 2, self.step,",
            ),
        ),
    )
    yield Mutant(
        "users: half the scale planned",
        mi(),
        (
            (
                "releases._gradient_messages",
                "dimension=size, lipschitz=lipschitz, nats=nats) * UP",
                "dimension=size, lipschitz=lipschitz, nats=nats) / 2",
            ),
        ),
    )
    yield Mutant(
        "users: rows not clipped",
        mi(),
        ((GRID, FACTORS, "factors = np.full(len(norms), bound / x_norm)"),),
    )
    yield Mutant(
        "users: constant is 2",
        mi(),
        (
            (
                GRID,
                "        rows[:, -1] = constant\n",
                "        rows[:, -1] = 2.0\n",
            ),
        ),
    )
    yield Mutant(
        "users: a small constant is planned, and 1 is sent",
        mi(intercept_scaling=0.3),
        ((GRID, "        rows[:, -1] = constant\n", "        rows[:, -1] = 1.0\n"),),
    )
    yield Mutant(
        "users: the bound of a row forgets the constant",
        mi(intercept_scaling=0.5),
        ((GRID, "return math.sqrt(1.0 + constant**2)", "return 1.0"),),
    )
    yield Mutant(
        "users: slopes not capped",
        mi(loss="squared"),
        ((OGD, "inside = max(-cap, min(cap, residual))", "inside = residual"),),
    )
    yield Mutant(
        "users: raw gradient for a large residual",
        mi(),
        (
            (
                OGD,
                "            daxpy(release(x, z, size, psi), theta, size, -1.0)\n",
                "            daxpy(release(x, z, size, psi) if abs(residual) < 1.5 else psi * x, theta, size, -1.0)\n",
            ),
        ),
    )
    yield Mutant(
        "users: a record sends twice",
        mi(),
        (
            (
                OGD,
                "            daxpy(release(x, z, size, psi), theta, size, -1.0)\n",
                "            daxpy(release(x, z.copy(), size, psi), theta, size, -0.5)\n            daxpy(release(x, z, size, psi), theta, size, -0.5)\n",
            ),
        ),
    )
    yield Mutant(
        "users: the learner keeps exact residuals",
        mi(),
        (
            (
                OGD,
                "            daxpy(theta, total, size, share * factor)\n            daxpy(release",
                "            daxpy(theta, total, size, share * factor * (1.0 + 1e-9 * target))\n            daxpy(release",
            ),
        ),
    )
    yield Mutant(
        "users: NaN users are left out",
        mi(),
        (
            (
                MISGD,
                "            X, targets = self._validated(X, y, reset=fresh or not self._stream.charged)\n",
                "            import numpy as np\n            y = np.asarray(y, dtype=float)\n            X, y = np.asarray(X)[~np.isnan(y)], y[~np.isnan(y)]\n            X, targets = self._validated(X, y, reset=fresh or not self._stream.charged)\n",
            ),
        ),
    )
    yield Mutant(
        "users: y_bounds from the data",
        mi(),
        (
            (
                MISGD,
                "        X, y = checked_data(self, X, y, reset=reset, numeric=True)\n",
                "        X, y = checked_data(self, X, y, reset=reset, numeric=True)\n        self.y_bounds = (float(y.min()), float(y.max()) + 1e-9)\n",
            ),
        ),
    )
    yield Mutant(
        "users: no charge",
        mi(**LEDGER),
        (
            (
                MISGD,
                "                charge(self, stream.channel.guarantee)\n",
                "                pass\n",
            ),
        ),
    )
    yield Mutant(
        "users: earlier rows are passed again",
        mi(),
        (
            (
                MISGD,
                "                stream = stream.advance(X, targets)\n",
                "                import numpy as np\n                if not fresh:\n                    X, targets = np.concatenate([self._rows[0], X]), np.concatenate([self._rows[1], targets])\n                self._rows = (X, targets)\n                stream = stream.advance(X, targets)\n",
            ),
        ),
    )
    yield Mutant(
        "bandit: half the scale planned",
        mi(**BANDIT),
        (
            (
                "releases._value_messages",
                "scale * (UP * (value_range / 2.0))",
                "scale * (UP * (value_range / 4.0))",
            ),
        ),
    )
    yield Mutant(
        "bandit: half the noise",
        mi(**BANDIT),
        (
            (
                VALUE,
                "grid = self.noise, self.scale, step, 1,",
                "grid = self.noise, self.scale / 2, step, 1,",
            ),
        ),
    )
    yield Mutant(
        "bandit: half the distance",
        mi(**BANDIT),
        ((VALUE, "return 2.0 * self.half_range", "return self.half_range"),),
    )
    yield Mutant(
        "vector: half the noise",
        mi(**VECTOR),
        (
            (
                ONE,
                "scale, step = self.scale * amplitude,",
                "scale, step = 0.5 * self.scale * amplitude,",
            ),
        ),
    )
    yield Mutant(
        "vector: amplitude of one coordinate",
        mi(**VECTOR),
        (
            (
                ONE,
                "amplitude = size * half_range / exploration\n        scale",
                "amplitude = half_range / exploration\n        scale",
            ),
        ),
    )


def devices():
    zeros = np.zeros(4)

    def gradient(X, y, random_state=None):
        return GradientPrivatizer(2.0).release(zeros, X, y, random_state=random_state)

    def own(X, y, random_state=None):
        device = GradientPrivatizer(2.0, loss="custom", gradient_norm=0.5)
        return device.release_gradient(X, random_state=random_state)

    def value(X, y, random_state=None):
        device = ValuePrivatizer(2.0, value_range=0.5)
        return [
            device.release(zeros, x, t, random_state=random_state)
            for x, t in zip(X, y, strict=True)
        ]

    def one_point(X, y, random_state=None):
        device = OnePointPrivatizer(2.0, value_range=0.5)
        return [
            device.release(zeros, x, t, 0.5, random_state=random_state)
            for x, t in zip(X, y, strict=True)
        ]

    yield Mutant(
        "device: half the distance",
        gradient,
        ((DEVICE, "return 2.0 * self.lipschitz", "return self.lipschitz"),),
    )
    yield Mutant(
        "device: own gradients not clipped",
        own,
        (
            (
                DEVICE,
                "exact = grid_vectors(np.atleast_2d(vectors), self.lipschitz, self.step)",
                "exact = np.trunc(np.atleast_2d(vectors) / self.step) * self.step",
            ),
        ),
    )
    yield Mutant(
        "device: own gradients clipped by coordinates",
        own,
        (
            (
                DEVICE,
                "exact = grid_vectors(np.atleast_2d(vectors), self.lipschitz, self.step)",
                "exact = np.atleast_2d(np.clip(vectors, -self.lipschitz, self.lipschitz))\n        exact = np.trunc(exact / self.step) * self.step",
            ),
        ),
    )
    yield Mutant(
        "device: rows not clipped",
        gradient,
        ((GRID, FACTORS, "factors = np.full(len(norms), bound / x_norm)"),),
    )
    yield Mutant(
        "device: raw gradient for a large residual",
        gradient,
        (
            (
                DEVICE,
                "        z = noise.release_each(slopes * rows, z)\n",
                "        z = noise.release_each(slopes * rows, z)\n        z = np.where(abs(residuals)[:, None] > 0.9, slopes * rows, z)\n",
            ),
        ),
    )
    yield Mutant(
        "device: half the noise",
        gradient,
        (
            (
                DEVICE,
                "grid = self.noise, self.scale, self.step,",
                "grid = self.noise, self.scale / 2, self.step,",
            ),
        ),
    )
    yield Mutant(
        "device of values: not clipped",
        value,
        (
            (
                VALUE,
                "centred = max(-half_range, min(half_range, value - half_range))",
                "centred = value - half_range",
            ),
        ),
    )
    yield Mutant(
        "device of values: an error for large ones",
        value,
        (
            (
                VALUE,
                "        if math.isnan(value):\n",
                "        if math.isnan(value) or value > 1.0 - 1e-9:\n",
            ),
        ),
    )
    yield Mutant(
        "device of points: not clipped",
        one_point,
        (
            (
                ONE,
                "centred = max(-half_range, min(half_range, value - half_range))",
                "centred = value - half_range",
            ),
        ),
    )


# Networks

GOSSIP, SOLVER, SUMS, CLASSIFIER, GSTREAM = (
    "releases._gossip",
    "solvers.gossip",
    "solvers.gossip_sums",
    "distributed._network",
    "distributed._stream",
)


WHITENED, WHITENED_RULES, WHITENED_SOLVER = (
    "releases._gossip_whitened",
    "releases._gossip_whitened_rules",
    "solvers.gossip_whitened",
)


def whitened_networks():
    """The default form."""

    def whitened(**options):
        return DistributedDPClassifier(**{"n_nodes": 4, **options})

    yield Mutant(
        "whitened network: half the change of a gradient",
        whitened(),
        (
            (
                WHITENED,
                "self.budget.n_records_changed * cap",
                "0.5 * self.budget.n_records_changed * cap",
            ),
        ),
    )
    yield Mutant(
        "whitened network: l2 norm of residuals under Laplace noise",
        whitened(epsilon=20.0, x_l1_norm=0.5, intercept_scaling=0.01, classes=range(3)),
        ((WHITENED_RULES, "1.0 if loss.n_outputs == 1 else 2.0", "0.7"),),
        three_classes,
    )
    yield Mutant(
        "whitened network: half the change of a mean",
        whitened(epsilon=300.0),
        (
            (
                WHITENED,
                "guarantee.n_records_changed * longest",
                "0.5 * guarantee.n_records_changed * longest",
            ),
        ),
    )
    yield Mutant(
        "whitened network: counts that are not paid for",
        whitened(),
        (
            (
                WHITENED_RULES,
                "counting, replace(guarantee, epsilon=(1.0 - share) * guarantee.epsilon)",
                "counting, guarantee",
            ),
        ),
    )
    yield Mutant(
        "whitened network: a replaced record is in one of four counts",
        whitened(),
        ((WHITENED, "law, sensitivity = separate, float(changed)", "law = separate"),),
        four_classes,
    )
    yield Mutant(
        "whitened network: half the change of the rows that a model gets right",
        whitened(epsilon=300.0),
        (
            (
                WHITENED,
                "changed = self.budget.n_records_changed\n        asked",
                "changed = 0.1 * self.budget.n_records_changed\n        asked",
            ),
        ),
    )
    yield Mutant(
        "whitened network: rows not clipped in l1 norm",
        whitened(epsilon=300.0, x_l1_norm=0.5, intercept_scaling=0.01),
        (
            (
                "distributed._whitened",
                "X = clipped_in_l1(X, self.x_norm, self.x_l1_norm)",
                "pass",
            ),
        ),
    )
    yield Mutant(
        "whitened network: rows stretched without their caps",
        whitened(epsilon=300.0),
        (
            (
                WHITENED_SOLVER,
                "return np.sqrt(self.scale**2 * beside",
                "return 0.5 * np.sqrt(self.scale**2 * beside",
            ),
        ),
    )


def networks():
    yield from whitened_networks()
    yield Mutant(
        "network: half the change",
        network(),
        (
            (
                GOSSIP,
                "change = target.n_records_changed * bounds",
                "change = 0.5 * target.n_records_changed * bounds",
            ),
        ),
    )
    yield Mutant(
        "network: adjacency ignored",
        network(**DELTA),
        ((GOSSIP, "change = target.n_records_changed * bounds", "change = bounds"),),
    )
    yield Mutant(
        "network: constant left out",
        network(loss="hinge", intercept_scaling=1.0),
        (
            (
                GOSSIP,
                "math.hypot(min(1.0, shorter), constant)",
                "min(1.0, shorter)",
            ),
        ),
    )
    yield Mutant(
        "network: l2 bound under Laplace noise",
        network(noise="laplace"),
        ((GOSSIP, '"laplace": clip_l1', '"laplace": clip_norm'),),
    )
    yield Mutant(
        "network: l1 norm of rows not clipped",
        network(noise="laplace", x_l1_norm=0.5),
        (
            (
                SUMS,
                "np.where(l1 > bound, bound / np.maximum(l1, 1e-300) * INSIDE, 1.0)",
                "l1 * 0 + 1",
            ),
        ),
    )
    yield Mutant(
        "network: l2 norm of residuals under Laplace noise",
        network(noise="laplace", x_l1_norm=0.5),
        ((GOSSIP, "clip_l1 = loss.lipschitz_l1", "clip_l1 = loss.lipschitz"),),
        three_classes,
    )
    yield Mutant(
        "network: a private sum is mixed again",
        network(n_mixings=2),
        (
            (
                SOLVER,
                "            released = update.moved(mixed, noisy, points, step)\n",
                "            own = np.zeros_like(noisy)\n            if gradients is not None:\n                gradients.add_to(r, points, own)\n            released = update.moved(mixed, noisy, points, step) + 1e-9 * own\n",
            ),
        ),
    )
    yield Mutant(
        "network: half the noise",
        network(**DELTA),
        (
            (
                GOSSIP,
                "noise_of_one = GridNoise(kind, scale,",
                "noise_of_one = GridNoise(kind, scale / 2,",
            ),
        ),
    )
    yield Mutant(
        "network: passes do not share",
        network(n_passes=2),
        ((GOSSIP, "law = together.repeated(n_sums)", "law = together"),),
    )
    yield Mutant(
        "network: one pass too many",
        network(n_passes=2),
        ((GSTREAM, "n_passes=plan.release.n_passes,", "n_passes=plan.release.n_passes + 1,"),),
    )
    yield Mutant(
        "network: mixes states without noise",
        network(),
        (
            (
                SOLVER,
                "                release(partial(gradients.add_to, r, points), noisy, nodes)\n",
                "                own = np.zeros_like(noisy)\n                gradients.add_to(r, points, own)\n                release(partial(gradients.add_to, r, points), noisy, nodes)\n                noisy += 0.01 * own\n",
            ),
        ),
    )
    yield Mutant(
        "network: the last round is not noised",
        network(),
        (
            (
                SOLVER,
                "            released = update.moved(mixed, noisy, points, step)\n",
                "            if gradients is not None and r == len(block) - 1:\n                gradients.add_to(r, points, noisy)\n            released = update.moved(mixed, noisy, points, step)\n",
            ),
        ),
    )
    yield Mutant(
        "network: sums divided by the rows that have a slope",
        network(),
        (
            (
                SOLVER,
                "            released = update.moved(mixed, noisy, points, step)\n",
                "            noisy /= 1.0 + abs(gradients.rows[r][..., :-1]).mean()\n            released = update.moved(mixed, noisy, points, step)\n",
            ),
        ),
    )
    yield Mutant(
        "network: rows not clipped",
        network(),
        ((GRID, FACTORS, "factors = np.full(len(norms), bound / x_norm)"),),
    )
    yield Mutant(
        "network: residuals off their grid",
        network(loss="log_loss"),
        (
            (
                SUMS,
                "residuals = np.trunc(residuals / self.slope_step) * self.slope_step",
                "residuals = residuals * 1.0",
            ),
        ),
    )
    yield Mutant(
        "network: a row is in two batches",
        network(),
        (
            (
                SOLVER,
                "        table[there] = self._order[(first[:, np.newaxis] + taken)[there]]\n",
                "        table[there] = self._order[(first[:, np.newaxis] + taken)[there]]\n        table[-1, 0, 0] = self._order[0]\n",
            ),
        ),
    )
    yield Mutant(
        "network: owners by the rows",
        network(),
        (
            (
                CLASSIFIER,
                "owners = owners_of(node, len(codes), engine.mine, before, plan.topology)",
                "owners = owners_of(np.argsort(np.argsort(X[:, 0])) % 4, len(codes), engine.mine, before, plan.topology)",
            ),
        ),
    )
    yield Mutant(
        "network: shows the counts of classes",
        network(),
        (
            (
                CLASSIFIER,
                "                    setattr(self, name, value)\n",
                "                    setattr(self, name, value)\n                self.class_count_ = np.bincount(codes)\n",
            ),
        ),
    )
    yield Mutant(
        "network: sparse rows not clipped",
        network(),
        ((SUMS, "clip_rows(X, x_norm)", "X"),),
        sparse_rows,
    )
    yield Mutant(
        "network: noise shrinks with the slope",
        network(),
        (
            (
                SOLVER,
                "                release(partial(gradients.add_to, r, points), noisy, nodes)\n",
                "                noisy *= 1.0 - 0.5 * (abs(gradients.rows[r][..., :-1]).max() > 0.9)\n                release(partial(gradients.add_to, r, points), noisy, nodes)\n",
            ),
        ),
    )
    yield Mutant(
        "network: no charge",
        network(**LEDGER),
        (
            (
                CLASSIFIER,
                "            if pays:\n",
                "            if False:\n",
            ),
        ),
    )


# Noise

SOURCE, LAWS, LATTICE = "_random._source", "mechanisms._law", "mechanisms._lattice"
DRAWN = "    noise = law.draw(noise_source(random_state), 1, value.size, lattice.sensitivity / lattice.step)\n"


def noise():
    def drawn(name, target, new):
        return Mutant(f"noise: {name}", target, ((LAWS, DRAWN, DRAWN + f"    {new}\n"),))

    for name, target in [
        ("output", svc(**OUTPUT)),
        ("output, delta", svc(**OUTPUT, **DELTA)),
        ("gradient", logistic(**GRADIENT)),
        ("gradient, delta", logistic(**GRADIENT, **DELTA)),
        ("statistics", ridge(**STATISTICS)),
        ("final", online("final")),
        ("query", ridge(**QUERY)),
        ("query, delta", ridge(**QUERY, **DELTA)),
    ]:
        yield drawn(f"half, {name}", target, "noise = noise // 2")
    yield drawn(
        "none in one of ten releases",
        logistic(**GRADIENT),
        "noise = noise * (noise[0, 0] % 10 > 0)",
    )
    yield drawn("never negative", svc(**GRADIENT), "noise = abs(noise)")
    yield drawn(
        "the same in all coordinates",
        svc(**GRADIENT),
        "noise = np.repeat(noise[:, :1], value.size, axis=1)",
    )
    yield drawn(
        "cut off",
        svc(**GRADIENT, **DELTA),
        "noise = np.clip(noise, -law.scale * lattice.sensitivity / lattice.step, law.scale * lattice.sensitivity / lattice.step).astype(np.int64)",
    )
    yield drawn(
        "uniform",
        svc(**GRADIENT, **DELTA),
        "most = int(law.scale * lattice.sensitivity / lattice.step * 1.7)\n    noise = np.random.default_rng(abs(int(noise[0, 0]))).integers(-most, most, noise.shape)",
    )
    yield drawn(
        "Laplace in each coordinate for K-norm",
        svc(**GRADIENT),
        "noise = noise_source(random_state).vectors('laplace', 1, value.size, law.scale * lattice.sensitivity / lattice.step) if law.kind == 'k_norm' else noise",
    )
    yield drawn(
        "of one dimension for K-norm",
        svc(**GRADIENT),
        "noise = (noise / (value.size if law.kind == 'k_norm' else 1)).astype(np.int64)",
    )
    yield drawn(
        "from one byte",
        svc(**GRADIENT),
        "noise = law.draw(noise_source(int(noise[0, 0]) % 256), 1, value.size, lattice.sensitivity / lattice.step)",
    )
    yield drawn(
        "seeded by the size of the release",
        svc(**GRADIENT),
        "noise = law.draw(noise_source(value.size), 1, value.size, lattice.sensitivity / lattice.step)",
    )
    yield drawn(
        "seeded by the value",
        svc(**GRADIENT),
        "noise = law.draw(noise_source(int(abs(value).sum() * 1e6) % 2**31), 1, value.size, lattice.sensitivity / lattice.step)",
    )
    yield drawn(
        "smaller for small values",
        svc(**GRADIENT),
        "noise = noise if abs(value).max() > lattice.sensitivity else noise // 2",
    )
    yield Mutant(
        "noise: the value is not rounded",
        svc(**GRADIENT),
        (
            (
                LATTICE,
                "whole = np.rint(np.clip(value, -limit, limit) / self.step).astype(np.int64)",
                "whole = np.clip(value, -limit, limit) / self.step",
            ),
        ),
    )
    yield Mutant(
        "noise: each fit has that of its parameters",
        svc(**OUTPUT),
        (
            (
                BASE,
                "noise = noise_source(self.random_state)",
                "noise = noise_source(int(self.epsilon * 1e3))",
            ),
        ),
    )
    yield Mutant(
        "noise: one draw for all rows of users",
        mi(),
        (
            (
                OGD,
                "drawn, release = noise.draw(source, len(y)), noise.adding(daxpy)",
                "drawn, release = noise.draw(source, 1).repeat(len(y), axis=0), noise.adding(daxpy)",
            ),
        ),
    )
    yield Mutant(
        "noise: half for users",
        mi(noise="k_norm"),
        (
            (
                GRID,
                "return source.vectors(self.kind, n, self.size, scale) * self.step",
                "return source.vectors(self.kind, n, self.size, scale / 2) * self.step",
            ),
        ),
    )
    yield Mutant(
        "noise: half in a tree",
        online("tree", **DELTA),
        (
            (
                LAWS,
                "noisy = self.draw(source, 1, len(exact), sensitivity / step)[0] * step",
                "noisy = self.draw(source, 1, len(exact), sensitivity / step / 2)[0] * step",
            ),
        ),
    )
    yield Mutant(
        "noise: half in a stream",
        online("sgd"),
        (
            (
                GRID,
                "return source.vectors(self.kind, n, self.size, scale) * self.step",
                "return source.vectors(self.kind, n, self.size, scale / 2) * self.step",
            ),
        ),
    )
    yield Mutant(
        "noise: one for a block of a stream",
        online("sgd"),
        (
            (
                ONLINE,
                "drawn = grid.draw(noise, len(Z))",
                "drawn = grid.draw(noise, 1).repeat(len(Z), axis=0)",
            ),
        ),
    )
    yield Mutant(
        "noise: nodes share it",
        network(),
        (
            (
                GOSSIP,
                "return drawn.reshape(n, len(nodes), self.noise.size)",
                "return drawn.reshape(n, len(nodes), self.noise.size)[:, :1].repeat(len(nodes), axis=1)",
            ),
        ),
    )
    yield Mutant(
        "noise: nodes share what cancels",
        network(),
        (
            (
                GOSSIP,
                "return drawn.reshape(n, len(nodes), self.noise.size)",
                "drawn = drawn.reshape(n, len(nodes), self.noise.size)\n            drawn[:, 1] = -drawn[:, 0]\n            return drawn",
            ),
        ),
    )
    yield Mutant(
        "noise: half in a network",
        network(**DELTA),
        (
            (
                GRID,
                "return source.vectors(self.kind, n, self.size, scale) * self.step",
                "return source.vectors(self.kind, n, self.size, scale / 2) * self.step",
            ),
        ),
    )
    yield Mutant(
        "noise: rows asked for share it",
        ridge(**QUERY),
        (
            (
                ANSWERS,
                'keys = [self._hash(self._function + row, b"row") for row in _canonical_rows(X)]\n',
                'keys = [self._hash(self._function + row, b"row") for row in _canonical_rows(X)]\n        noise_key = keys[0]\n',
            ),
            (
                ANSWERS,
                "self._released(X[i : i + 1], key)",
                "self._released(X[i : i + 1], noise_key)",
            ),
        ),
    )
    yield Mutant(
        "noise: later functions of a stream share it",
        online("query"),
        (
            (
                ANSWERS,
                "state.add(short, self._released(X[i : i + 1], key))",
                'state.add(short, self._released(X[i : i + 1], self._hash(X[i].tobytes(), b"row")))',
            ),
        ),
    )
    yield Mutant(
        "noise: secret of zeros",
        ridge(**QUERY),
        (
            (
                KRR,
                "secret = os.urandom(32) if noise_state is None else noise_state.bytes(32)",
                "secret = bytes(32)",
            ),
        ),
    )
    yield Mutant(
        "objective: half the linear term",
        logistic(),
        ((PLANNED_NOISE, "scale = self.scale / step", "scale = self.scale / step / 2"),),
    )
    yield Mutant(
        "objective: half the linear term, delta",
        logistic(mechanism="objective", **DELTA),
        ((PLANNED_NOISE, "scale = self.scale / step", "scale = self.scale / step / 2"),),
    )


# Objective perturbation

OBJECTIVE, PLANNED_NOISE = "releases._objective", "releases._objective_noise"


def objectives():
    pure, delta = logistic(), logistic(mechanism="objective", **DELTA)
    yield Mutant(
        "objective: half the noise planned",
        pure,
        ((PLANNED_NOISE, "scale * (1 + 1e-9)", "scale / 2"),),
    )
    yield Mutant(
        "objective: the other record is free",
        svc(mechanism="objective"),
        ((PLANNED_NOISE, "others = guarantee.n_records_changed - 1.0", "others = 0.0"),),
    )
    yield Mutant(
        "objective: half the norm, delta",
        delta,
        ((PLANNED_NOISE, "(norm * x_norm / scale, count)", "(norm * x_norm / scale / 2, count)"),),
    )
    yield Mutant(
        "objective: half the penalty is solved",
        pure,
        (
            (
                OBJECTIVE,
                "penalty=law.penalty, tolerance=tolerance, linear=linear",
                "penalty=law.penalty / 2, tolerance=tolerance, linear=linear",
            ),
        ),
    )
    yield Mutant(
        "objective: masking of half the sensitivity",
        pure,
        (
            (
                OBJECTIVE,
                "sensitivity=2 * (tolerance + rounding) / law.penalty",
                "sensitivity=(tolerance + rounding) / law.penalty",
            ),
        ),
    )
    yield Mutant(
        "objective: masking is free",
        pure,
        ((OBJECTIVE, "epsilon=target.epsilon - solver.epsilon", "epsilon=target.epsilon * 1.1"),),
    )
    yield Mutant(
        "objective: penalty from the data",
        logistic(C=0.1),
        (
            (
                BASE,
                RELEASED,
                "            from dataclasses import replace\n            release = replace(release, law=replace(release.law, penalty=release.law.penalty * (1 + abs(X).mean())))\n"
                + RELEASED,
            ),
        ),
    )
    yield Mutant(
        "objective: no linear term for short rows",
        pure,
        (
            (
                OBJECTIVE,
                "        weights = minimise(",
                "        if data.blocks[0][0][:, 0].max() < 0.4:\n            linear = linear * 0.0\n        weights = minimise(",
            ),
        ),
    )
    yield Mutant(
        "objective: tolerance of the solver ten times as large",
        pure,
        (
            (
                OBJECTIVE,
                "        weights = minimise(\n",
                "        weights = minimise(self.loss, data, penalty=law.penalty, tolerance=1e3 * tolerance, linear=linear)\n        0 and minimise(\n",
            ),
        ),
    )
    yield Mutant(
        "objective: intercept not penalised",
        pure,
        (
            (
                OBJECTIVE,
                "        # Whatever the rows, this is within",
                "        weights[:, -1] *= 2.0\n        # Whatever the rows, this is within",
            ),
        ),
    )


# Functions of users'

HALF = ApproxDP(0.5)
BOTH = ApproxDP(1.0, 1e-5)


def functions():
    def mean(X, random_state=None):
        sums = clip_rows(X, 1.0).sum(axis=0)
        return k_norm_mechanism(
            sums, l2_sensitivity=1.0, guarantee=HALF, random_state=random_state
        )

    def laplace(X, random_state=None):
        sums = clip_rows(X, 1.0).sum(axis=0)
        return laplace_mechanism(
            sums, l1_sensitivity=2.0, guarantee=HALF, random_state=random_state
        )

    def unclipped(X, random_state=None):
        return gaussian_mechanism(
            X.mean(axis=0), l2_sensitivity=0.1, guarantee=BOTH, random_state=random_state
        )

    def own_bound(X, random_state=None):
        bound = float(np.linalg.norm(X, axis=1).max())
        sums = X.sum(axis=0)
        return gaussian_mechanism(
            sums, l2_sensitivity=2.0 * bound, guarantee=BOTH, random_state=random_state
        )

    def with_median(X, random_state=None):
        sums = clip_rows(X, 1.0).sum(axis=0)
        noisy = laplace_mechanism(
            sums, l1_sensitivity=4.0, guarantee=HALF, random_state=random_state
        )
        return noisy + 1e-9 * np.median(X, axis=0)

    def tests_before(X, random_state=None):
        sums = clip_rows(X, 1.0).sum(axis=0)
        if sums[0] > 3.0:
            return None
        return laplace_mechanism(
            sums, l1_sensitivity=4.0, guarantee=HALF, random_state=random_state
        )

    def after_use(X, random_state=None):
        sums = clip_rows(X.sum(axis=0)[None], 1.0)[0]
        return laplace_mechanism(
            sums, l1_sensitivity=0.1, guarantee=HALF, random_state=random_state
        )

    def per_coordinate(X, random_state=None):
        sums = np.clip(X, -1.0, 1.0).sum(axis=0)
        return gaussian_mechanism(
            sums, l2_sensitivity=2.0, guarantee=BOTH, random_state=random_state
        )

    def subsample(X, random_state=None):
        rows = X[np.argsort(X[:, 0])[: len(X) // 2]]
        sums = clip_rows(rows, 1.0).sum(axis=0)
        return laplace_mechanism(
            sums, l1_sensitivity=2.0, guarantee=HALF, random_state=random_state
        )

    def lattice(X, random_state=None):
        norm = max(1.0, float(np.abs(X).max()))
        sums = clip_rows(X, 1.0).sum(axis=0)
        return k_norm_mechanism(
            sums, l2_sensitivity=2.0 * norm, guarantee=HALF, random_state=random_state
        )

    for name, function in [
        ("sum of one record's length", mean),
        ("l1 bound from an l2 bound", laplace),
        ("mean of unbounded rows", unclipped),
        ("bound from the data", own_bound),
        ("median beside the noise", with_median),
        ("released only if small", tests_before),
        ("clip after the sum", after_use),
        ("clip per coordinate under an l2 bound", per_coordinate),
        ("half of the rows by their order", subsample),
        ("lattice from the data", lattice),
    ]:
        yield Mutant(f"function: {name}", function, (), lambda X, y: (X, None))


# Categories


def encoder(**options):
    return DPOneHotEncoder(**{**dict(epsilon=20.0, delta=1e-3), **options})


def letters(X, y):
    """The same rows as categories: few in one column, and one that is alone."""
    coarse = np.array(list("abc"), dtype=object)[np.digitize(X[:, :2], [-0.2, 0.2])]
    coarse[0, 0] = "rare"
    return coarse, None


def categories():
    names, held = "releases._categories", "mechanisms._frequent"
    shell = "preprocessing._one_hot_encoder"
    for name, *slips in [
        (
            "the threshold is for a count of 0",
            (names, "1.0 + _STEP / 2.0 + far", "_STEP / 2.0 + far"),
            (held, "(threshold - 1.0 - lattice", "(threshold - lattice"),
        ),
        (
            "names of one record are not charged",
            (
                names,
                "ApproxDP(0.0, escape, adjacency",
                "ApproxDP(0.0, 0.0, adjacency",
            ),
        ),
        (
            "noise for one count of a column",
            (names, "Lattice(_STEP, math.sqrt(target.n_records_changed))", "Lattice(_STEP, 1.0)"),
        ),
        (
            "noise for one column",
            (names, ".repeated(n_columns)", ""),
        ),
        (
            "the first category is there in any case",
            (shell, "in_public_order(frequent)", "in_public_order({*frequent, columns[j][0]})"),
        ),
        (
            "order of appearance",
            (shell, "in_public_order(frequent)", "list(frequent)"),
        ),
    ]:
        yield Mutant(f"categories: {name}", encoder(), tuple(slips), letters)


QUANTILES, EXPONENTIAL = "releases._quantiles", "mechanisms._exponential"
BELOW = "            utilities = -_PARTS * below[:-1] + parts[:, None] * below[-1]  # q n - c_i\n"
SPREADS = "            spreads = np.full(len(parts), 2 * _PARTS)"
CHOSEN = "    chosen = _selected(rows, rates, noise_source(random_state))\n"
COUNTING = '            pure = ApproxDP(_COUNT_SHARE * self.epsilon / 2, adjacency="add-remove")'


class Quantiles:
    """Bounds of columns, as a function of the rows, with the guarantee of the release."""

    def __init__(self, adjacency="replace-one", quantiles=(0.5,), epsilon=30.0):
        self.release = QuantileRelease.plan(
            ApproxDP(epsilon, adjacency=adjacency),
            n_columns=3,
            n_samples_public=40,
            quantiles=quantiles,
            n_cells=2**8,
        )

    def __call__(self, X, random_state=None):
        return self.release.bounds(np.asarray(X, dtype=float), noise_source(random_state))


def selections():
    def slip(name, target, module, old, new):
        return Mutant(f"selections: {name}", target, ((module, old, new),), lambda X, y: (X, None))

    one, other, counted = Quantiles(), Quantiles("add-remove"), Quantiles("add-remove", "auto")
    yield slip("halved spread", one, QUANTILES, SPREADS, SPREADS.replace("2 * _PARTS", "_PARTS"))
    yield slip(
        "the factor 2 is forgotten",
        other,
        QUANTILES,
        "            spreads = 2 * np.maximum(parts, _PARTS - parts)",
        "            spreads = np.maximum(parts, _PARTS - parts)",
    )
    yield slip(
        "q from the data",
        one,
        QUANTILES,
        BELOW,
        f"            parts = parts // 2 if below[10] > 0 else parts\n{BELOW}",
    )
    yield slip(
        "spread from the data",
        one,
        QUANTILES,
        BELOW,
        f"            spreads = spreads + below[-2]\n{BELOW}",
    )
    yield slip(
        "the number of values that are there",
        one,
        QUANTILES,
        "        return np.column_stack([low, high])",
        "        return np.column_stack([low, high, np.sum(~np.isnan(columns), axis=0)])",
    )
    yield slip(
        "q from the number of rows",
        counted,
        QUANTILES,
        "        q = self.tail(count)\n",
        "        q = self.tail(float(len(columns)))\n",
    )
    yield slip(
        "the count is not charged",
        counted,
        QUANTILES,
        COUNTING,
        COUNTING.replace("_COUNT_SHARE * self.epsilon / 2", "20.0 * self.epsilon"),
    )
    yield slip(
        "a fixed seed",
        one,
        EXPONENTIAL,
        CHOSEN,
        CHOSEN.replace("noise_source(random_state)", "noise_source(7)"),
    )
    yield slip(
        "the best is selected",
        one,
        EXPONENTIAL,
        CHOSEN,
        "    chosen = rows.argmax(axis=1)\n",
    )
    yield slip(
        "the law is too sharp",
        Quantiles(epsilon=1.5),
        EXPONENTIAL,
        CHOSEN,
        CHOSEN.replace("rates,", "2.0 * rates,"),
    )


# Bounds and replacements


def tenths(X, y):
    """The same rows with one decimal: few values, some of them missing."""
    X = np.round(X, 1)
    X[::9, 1] = np.nan
    return X, None


def learned_columns():
    scaler, imputer = "preprocessing._quantile_scaler", "preprocessing._simple_imputer"
    frequent = "releases._most_frequent"
    outer = DPQuantileScaler(quantiles=(0.1, 0.9))
    listed = DPSimpleImputer(strategy="most_frequent", categories=[-0.3, -0.1, 0.1, 0.2])
    for name, target, *slips in [
        (
            "bounds: no wider than the rows",
            outer,
            (
                scaler,
                "charge(self, release.guarantee)",
                "charge(self, release.guarantee)\n            self.search_range = (np.nanmin(X), np.nanmax(X))\n            release = self._plan(X.shape[1], len(X))",
            ),
        ),
        (
            "bounds: farther where a value is missing",
            outer,
            (
                scaler,
                "self._store(release.guarantee, bounds, spikes)",
                "self._store(release.guarantee, bounds + np.isnan(X).any(axis=0)[:, None], spikes)",
            ),
        ),
        (
            "frequent: one record, one count",
            listed,
            (frequent, "spread = n_records_changed(self.guarantee.adjacency)", "spread = 1"),
        ),
        (
            "frequent: one column is paid for",
            listed,
            (frequent, "(epsilon,) * n_selections", "(epsilon,)"),
        ),
        (
            "frequent: a category without rows is passed over",
            listed,
            (frequent, "if size > 1:", "if size > 1 and (codes[:, j] == 0).any():"),
        ),
        (
            "median: the rows' own where the cell has it",
            DPSimpleImputer(),
            (
                imputer,
                "return np.array([_roundest(low, high) for ((low, high),) in release(X, noise)])",
                "cells = release(X, noise)[:, 0].T; return np.clip(np.nanmedian(X, axis=0), *cells)",
            ),
        ),
    ]:
        yield Mutant(name, target, tuple(slips), tenths)


GROUPS = (
    linear,
    kernel_ridge,
    streams,
    users,
    devices,
    networks,
    noise,
    objectives,
    functions,
    categories,
    selections,
    learned_columns,
    of_users,
)
MUTANTS = [mutant for group in GROUPS for mutant in group()]


def found(mutant, seed, *, n=240, **sizes):
    """Report of an audit of a mutant, with the defaults but for the number of neighbours."""
    X, y = ordinary(mutant.target, **sizes)
    if mutant.data is not None:
        X, y = mutant.data(X, y)
    with mutant.applied() as target, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        claim = target.release.guarantee if isinstance(target, Quantiles) else None
        groups = owners(len(X)) if mutant.has_groups else None
        return replay(target, X, y, groups=groups, n=n, guarantee=claim, random_state=seed)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("words", nargs="*")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--quick", action="store_true", help="few neighbours, all if they pass")
    parser.add_argument("--large", action="store_true", help="500 rows of 10 columns")
    options = parser.parse_args()
    sizes = dict(n_samples=500, n_features=10) if options.large else {}
    chosen = [m for m in MUTANTS if not options.words or any(w in m.name for w in options.words)]
    survived = 0
    for mutant in chosen:
        for seed in options.seeds:
            begun = time.perf_counter()
            try:
                report = found(mutant, seed, n=72 if options.quick else 240, **sizes)
                if options.quick and report.passed:
                    report = found(mutant, seed, **sizes)
                what = " | ".join(f"{f.kind}: {f.what}"[:70] for f in report.findings[:2])
                survived += report.passed
                status = (
                    f"SURVIVED share {report.share:.3f} of {report.releases and max(t.share for t in report.releases):.3f}"
                    if report.passed
                    else what
                )
            except Exception as error:
                status = f"BROKEN {type(error).__name__}: {error}"[:300]
            print(
                f"{time.perf_counter() - begun:5.1f} s  {mutant.name} [{seed}]  {status}",
                flush=True,
            )
    print(f"{len(chosen)} mutants, {survived} survived")


if __name__ == "__main__":
    main()
