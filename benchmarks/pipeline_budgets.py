"""Budgets of random pipelines, by an accountant that is not ours.

    python benchmarks/pipeline_budgets.py [--pipelines 1000] [--first 0]

Pipelines have random columns, steps, budgets and neighbours. What an adversary attains against all
that their steps were planned to release is composed by dp-accounting, rounded down: each selection
of range e is two outcomes of losses t and t - e, at the worst of three t; noise is Gaussian; a
failure is certain. No total may attain more than its delta. Printed are the largest share of it,
and the least mu that a model was left, over the one its share is for.
"""

import argparse
import math

import numpy as np
from dp_accounting.pld import privacy_loss_distribution as pld
from sklearn.compose import ColumnTransformer

from skdp.kernel import DPKernelRidge
from skdp.linear_model import DPLogisticRegression
from skdp.pipeline import DPPipeline
from skdp.pipeline._plan import Plan
from skdp.pipeline._wrappers import Schema
from skdp.preprocessing import DPOneHotEncoder, DPQuantileScaler, DPSimpleImputer
from skdp.privacy import ApproxDP, BoundedRangeDP, ComposedDP, GaussianDP

PLACES = (0.5, 0.75, 0.9)
OPTIONS = dict(value_discretization_interval=1e-4, pessimistic_estimate=False)


def drawn(seed):
    """A pipeline, and how many columns it takes."""
    rng = np.random.default_rng(seed)
    delta = float(rng.choice([0.0, 1e-5, 1e-6, 1e-8]))
    parts, first = [], 0

    def add(name, step, most):
        nonlocal first
        n = int(rng.integers(1, most + 1))
        parts.append((name, step, list(range(first, first + n))))
        first += n

    if rng.random() < 0.8:
        add("bounds", DPQuantileScaler(), 12)
    if rng.random() < 0.3:
        add("others", DPQuantileScaler(quantiles=(0.05, 0.95)), 4)
    if rng.random() < 0.3:
        strategy = str(rng.choice(["median", "most_frequent"]))
        known = [0, 1, 2] if strategy == "most_frequent" else None
        add("missing", DPSimpleImputer(strategy=strategy, categories=known), 5)
    if (delta and rng.random() < 0.6) or not parts:
        known = "auto" if delta else [[0, 1]]
        add("categories", DPOneHotEncoder(categories=known), 6 if delta else 1)
    if rng.random() < 0.6:
        model = DPLogisticRegression()
    else:
        model = DPKernelRidge(y_bounds="auto" if rng.random() < 0.7 else (0.0, 1.0))
    order = rng.permutation(len(parts))
    columns = ColumnTransformer([parts[i] for i in order], sparse_threshold=0.0)
    pipeline = DPPipeline(
        [("columns", columns), ("model", model)],
        epsilon=float(np.exp(rng.uniform(np.log(0.1), np.log(4.0)))),
        delta=delta,
        adjacency=str(rng.choice(["replace-one", "add-remove"])),
    )
    return pipeline, first


def parts_of(guarantee):
    """What stands behind a guarantee, one after the other."""
    if isinstance(guarantee, ComposedDP):
        for part, count in guarantee.parts:
            for _ in range(count):
                yield from parts_of(part)
    elif isinstance(guarantee, BoundedRangeDP):
        yield BoundedRangeDP(guarantee.epsilons)
        if guarantee.then is not None:
            yield from parts_of(guarantee.then)
    elif isinstance(guarantee, ApproxDP) and guarantee.refined is not None:
        yield from parts_of(guarantee.refined)
    else:
        yield guarantee


def attained(parts, epsilon):
    """Delta that an adversary attains, rounded down."""
    chosen = any(isinstance(part, BoundedRangeDP) for part in parts)
    return max(attained_at(place, parts, epsilon) for place in (PLACES if chosen else PLACES[:1]))


def attained_at(place, parts, epsilon):
    laws, mu = [], 0.0
    for part in parts:
        if isinstance(part, BoundedRangeDP):
            laws += [selection(each, place * each) for each in part.epsilons]
        elif isinstance(part, GaussianDP):
            mu = math.hypot(mu, part.mu)
        elif isinstance(part, ApproxDP):
            laws.append(point(part.epsilon, part.delta))
        else:
            raise TypeError(f"{type(part).__name__} is not known here.")
    if mu > 0.0:
        laws.append(pld.from_gaussian_mechanism(1.0 / mu, **OPTIONS, use_connect_dots=False))
    total = laws[0]
    for law in laws[1:]:
        total = total.compose(law)
    return total.get_delta_for_epsilon(epsilon)


def selection(each, t):
    """Two outcomes of losses t and t - each."""
    high = (math.exp(each) - math.exp(t)) / math.expm1(each)
    upper = {0: math.log(high), 1: math.log1p(-high)}
    lower = {0: math.log(high) - t, 1: math.log1p(-high) + each - t}
    return pld.from_two_probability_mass_functions(lower, upper, **OPTIONS)


def point(epsilon, delta):
    """Randomised response that fails for certain with a probability of delta."""
    low = math.log1p(-delta) - math.log1p(math.exp(epsilon))
    upper, lower = {0: low + epsilon, 1: low}, {0: low, 1: low + epsilon}
    if delta:
        upper[2] = lower[3] = math.log(delta)
    return pld.from_two_probability_mass_functions(lower, upper, **OPTIONS)


def main():
    """Print the extremes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pipelines", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    arguments = parser.parse_args()
    shares, models, above, pure = [], [], 0, []
    for seed in range(arguments.first, arguments.first + arguments.pipelines):
        pipeline, n_columns = drawn(seed)
        division = Plan.from_schema(pipeline, Schema(n_columns)).division
        parts = [part for planned in division.planned.values() for part in parts_of(planned)]
        if pipeline.delta == 0.0:
            spent = math.fsum(part.epsilon_at(0.0) for part in parts)
            pure.append(spent / pipeline.epsilon)
            above += spent > pipeline.epsilon * (1.0 + 1e-12)
            continue
        shares.append(attained(parts, pipeline.epsilon) / pipeline.delta)
        above += shares[-1] > 1.0
        noise = [p.mu for p in parts_of(division.planned["model"]) if isinstance(p, GaussianDP)]
        if noise and pipeline.named_steps["model"].get_params().get("y_bounds") != "auto":
            target = ApproxDP(pipeline.epsilon, pipeline.delta).gaussian_target().mu
            models.append(noise[0] / (target * math.sqrt(division.shares["model"])))
    print(f"{arguments.pipelines} pipelines, {above} above their budget")
    print(f"pure, {len(pure)}: spent at least {min(pure):.9f}, at most {max(pure):.9f} of epsilon")
    low, middle, high = np.quantile(shares, [0.0, 0.5, 1.0])
    print(
        f"delta, {len(shares)}: attained {low:.3f} to {high:.4f} of delta, half above {middle:.3f}"
    )
    low, middle, high = np.quantile(models, [0.0, 0.5, 1.0])
    print(f"mu of models, {len(models)}: {low:.4f} to {high:.4f} of its share, half {middle:.4f}")


if __name__ == "__main__":
    main()
