"""Say which files each privacy claim is checked in: python doc/claims.py writes claims.rst.

Small models are fitted, and it is noted which files of learners, ``mechanisms`` and ``rows`` a
release enters. A release that calls another one leaves the files of that one out.
"""

import re
import sys
import warnings
from functools import cache, partial
from pathlib import Path

import numpy as np

from skdp import config_context
from skdp.calibration import DPCalibratedClassifier, DPConformalClassifier
from skdp.distributed import DistributedDPClassifier, PaperAlgorithm
from skdp.kernel import DPKernelRidge, DPOnlineKernelRegressor
from skdp.learner import PrivateEstimator, Sequence, SumRelease
from skdp.linear_model import (
    DPLinearRegression,
    DPLogisticRegression,
    DPPoissonRegressor,
    MIPrivateSGDRegressor,
)
from skdp.metrics import dp_evaluate
from skdp.model_selection import DPGridSearch
from skdp.preprocessing import (
    DPOneHotEncoder,
    DPQuantileScaler,
    DPSimpleImputer,
    dp_histogram,
    dp_mean,
)

PAGE = Path(__file__).parent / "claims.rst"
PACKAGE = Path(sys.modules["skdp"].__file__).parent
READ = (
    *("distributed", "kernel", "learner", "linear_model", "local", "mechanisms", "metrics"),
    *("model_selection", "preprocessing", "rows", "_grid.py"),
)

# What charges, tells callbacks and keeps streams apart: no release rests on it.
PLUMBING = ("learner/_estimator.py", "learner/_streams.py")

# What each class claims.
CLAIMS = {
    "NoisyDescent": "Linear models, noisy descent",
    "ObjectivePerturbation": "Linear models, objective perturbation",
    "OutputPerturbation": "Linear models, output perturbation",
    "Sequence": "Several releases under one budget",
    "RegressionMoments": "Least squares, with intervals",
    "JointSteps": "Newton steps, with intervals",
    "CutShares": "How many rows were clipped",
    "RowNorm": "The norm to which rows are clipped",
    "RowCount": "The number of rows, where it is private",
    "ClassCounts": "The numbers of rows of the classes",
    "ScoreScale": "The scale of the scores",
    "SumRelease": "The sum of one bounded vector a row",
    "TargetMean": "The mean of a target that is a count",
    "FeatureDescent": "Functions of features, noisy descent",
    "FeatureStatistics": "Functions of features, sufficient statistics",
    "FeatureOutput": "Functions of features, output perturbation",
    "CentredOutput": "Functions of features, output perturbation of centred targets",
    "CentredObjective": "Functions of features, objective perturbation",
    "TargetBounds": "Bounds of a target",
    "ExactQueries": "Exact kernel ridge, a number of queries",
    "ChunkRelease": "Streams without end, one release of the rows of each call",
    "FinalRelease": "Streams, the function released after each call",
    "FedBackRelease": "Streams, noise fed back",
    "TreeRelease": "Streams, a tree over the horizon",
    "MatrixRelease": "Streams, sums whose noise cancels",
    "QueryRelease": "Streams, a number of queries",
    "QuantileRelease": "Quantiles of columns",
    "MedianRelease": "Bounds of columns by medians, of few rows",
    "CategoryRelease": "Categories of columns",
    "MostFrequentRelease": "The most frequent of public categories",
    "MeanRelease": "The mean of one column",
    "CountsRelease": "The histogram of one column",
    "BoundedSums": "Sums of several bounded numbers of a row, of which scores are made",
    "PrecisionSum": "The sum behind average precision",
    "ChoiceRelease": "The choice among candidates",
    "GradientPrivatizer": "Users' devices, gradients",
    "ValuePrivatizer": "Users' devices, values of a loss",
    "OnePointPrivatizer": "Users' devices, one-point gradients",
    "Gradients": "Streams of users' gradients, both parties",
    "Values": "Streams of users' values, both parties",
    "OnePoints": "Streams of users' one-point gradients, both parties",
    "SlopeSteps": "Calibration of a model, offset and slope of its scores",
    "RankSelection": "Prediction sets and intervals, a quantile of errors",
    "GossipRelease": "Decentralised gradient descent",
    "WhitenedGossip": "Decentralised gradient descent, preconditioned",
}
METHODS = ("__call__", "advance", "bounds", "learn", "release", "release_value", "run")


class Total(PrivateEstimator):
    """Sum of the rows."""

    def plan(self, public):
        """One sum."""
        release = partial(SumRelease.plan, size=public.n_features, l2_norm=1.0)
        return Sequence.plan(public.target, release=release, n_samples=public.n_samples)

    def learn(self, data, run):
        """Release it."""
        self.total_ = run(data).total


def uses(rng):
    """Functions that make each release once."""
    X = rng.uniform(-0.5, 0.5, size=(2000, 4))
    y, few = X[:, 0], slice(0, 200)
    two, three = (y > 0) * 1, np.digitize(y, [-0.2, 0.2])
    for options in (dict(delta=1e-5), {}, dict(adjacency="add-remove"), dict(mechanism="output")):
        yield partial(DPLogisticRegression(**options).fit, X, two)
    yield partial(DPLogisticRegression().fit, X, three)
    yield partial(DPLogisticRegression(delta=1e-5, inference=True).fit, X, two)
    # Whose next step the noise decides.
    yield partial(DPLinearRegression(y_bounds=(-1, 1), random_state=0).fit, X, y)
    yield partial(DPPoissonRegressor(delta=1e-5).fit, X, three)
    yield partial(Total().fit, X)
    for options in (
        dict(delta=1e-5),
        dict(delta=1e-5, mechanism="sufficient_statistics"),
        dict(delta=1e-5, mechanism="output"),
        dict(mechanism="output"),
        {},
    ):
        yield partial(DPKernelRidge(y_bounds=(-1, 1), **options).fit, X, y)
    yield partial(DPKernelRidge(y_bounds="auto", delta=1e-5, epsilon=5.0).fit, X, y)
    queries = DPKernelRidge(y_bounds=(-1, 1), release="query", n_queries=10)
    yield lambda: queries.fit(X[few], y[few]).predict(X[:3])
    for release in ("chunk", "final", "sgd", "tree", "matrix", "query"):
        counts = {"tree": "horizon", "matrix": "horizon", "query": "n_queries"}
        horizon = {counts[release]: 500} if release in counts else {}
        stream = DPOnlineKernelRegressor(
            delta=1e-5, y_bounds=(-1, 1), gamma=1.0, release=release, **horizon
        )
        yield lambda stream=stream: stream.fit(X[few], y[few]).predict(X[:3])
    yield partial(DPQuantileScaler(epsilon=5.0).fit, X)
    yield partial(DPQuantileScaler(epsilon=0.3, delta=1e-5).fit, X)
    names = np.where(X[:, :1] > 0, "a", "b").astype(object)
    yield partial(DPOneHotEncoder(epsilon=8.0, delta=1e-3).fit, names)
    frequent = DPSimpleImputer(strategy="most_frequent", categories=[["a", "b"]])
    yield partial(frequent.fit, names)
    yield partial(dp_mean, y, epsilon=1.0, bounds=(-1.0, 1.0))
    yield partial(dp_histogram, y, epsilon=1.0, edges=[-1.0, 0.0, 1.0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        known = DPLogisticRegression(epsilon=5.0).fit(X, two)
    yield partial(DPCalibratedClassifier(DPLogisticRegression()).fit, X, two)
    yield partial(DPConformalClassifier(DPLogisticRegression()).fit, X, two)
    scores = dict(epsilon=5.0, scoring=["accuracy", "average_precision"])
    yield partial(dp_evaluate, known, X, two, **scores)
    grid = DPGridSearch(DPLogisticRegression(), {"C": [0.1, 1.0]}, epsilon=20.0)
    yield partial(grid.fit, X, two)
    for options in ({}, dict(feedback="bandit"), dict(feedback="bandit", perturbation="vector")):
        yield partial(MIPrivateSGDRegressor(y_bounds=(-1, 1), **options).fit, X[few], y[few])
    device = MIPrivateSGDRegressor(y_bounds=(-1, 1))
    yield lambda: device.privatizer(4).release(np.zeros(5), X[0], y[0])
    for feedback, perturbation in (("bandit", "scalar"), ("bandit", "vector")):
        yield partial(_asked, feedback, perturbation, X[0], y[0])
    for paper in (PaperAlgorithm(batch_size=5), None):
        network = DistributedDPClassifier(delta=1e-4, n_nodes=4, paper=paper)
        yield partial(network.fit, X[few], two[few])


def _asked(feedback, perturbation, x, y):
    """A message of a device that is asked about a loss."""
    model = MIPrivateSGDRegressor(y_bounds=(-1, 1), feedback=feedback, perturbation=perturbation)
    device, point = model.privatizer(4), np.zeros(5)
    return device.release(point, x, y, *((0.5,) if perturbation == "vector" else ()))


@cache
def files_entered():
    """For each class its own file, and those that its releases enter."""
    entered: dict[str, set[str]] = {name: set() for name in CLAIMS}
    own: dict[str, str] = {}
    first: dict[str, object] = {}  # use of a release: other losses would enter other files
    stack: list[tuple[object, str]] = []

    def look(frame, event, _):
        if event == "return" and stack and stack[-1][0] is frame:
            stack.pop()
        if event != "call":
            return
        path = Path(frame.f_code.co_filename)
        if not path.is_relative_to(PACKAGE) or frame.f_code.co_name == "<module>":
            return
        file = str(path.relative_to(PACKAGE))
        if frame.f_code.co_name in METHODS:
            name = frame.f_code.co_qualname.partition(".")[0]
            if "self" in frame.f_locals:  # which may be of a subclass
                name = type(frame.f_locals["self"]).__name__
            if name in CLAIMS and first.setdefault(name, use) is use:
                own.setdefault(name, file)
                stack.append((frame, name))
        # The sequence that calls a release has a row of its own.
        if stack and file.startswith(READ) and file not in ("learner/_sequence.py", *PLUMBING):
            entered[stack[-1][1]].add(file)

    with warnings.catch_warnings(), config_context(known_seeds=True):
        warnings.simplefilter("ignore")
        for use in uses(np.random.default_rng(0)):
            before = sys.getprofile()
            sys.setprofile(look)
            try:
                use()
            finally:
                sys.setprofile(before)
                stack.clear()
    return {name: (own.get(name), entered[name] - {own.get(name)}) for name in CLAIMS}


def table():
    """The table of the page."""
    lines = [
        *(".. list-table::", "   :header-rows: 1", "   :widths: 30 25 45", ""),
        *("   * - Claim", "     - Release", "     - Read with it"),
    ]
    for name, (own, others) in files_entered().items():
        read = ", ".join(f"``{file}``" for file in sorted(others)) or "the rows of what it calls"
        lines += [f"   * - {CLAIMS[name]}", f"     - ``{own}``", f"     - {read}"]
    return "\n".join(lines)


def page(rows):
    """Text of the page with a table."""
    text = PAGE.read_text(encoding="utf-8")
    between = r"(?s)(\.\. claims-begin\n).*(\n\.\. claims-end)"
    return re.sub(between, lambda found: f"{found[1]}\n{rows}\n{found[2]}", text)


if __name__ == "__main__":
    PAGE.write_text(page(table()), encoding="utf-8")
