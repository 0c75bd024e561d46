"""Slips in the code under audit, made by objects: no text of the code, no place of it.

A slip changes for the length of a block what a release is given, what is charged or claimed, or
which rows a fit gets. ``PYTHONPATH=tests python tests/audit/slips.py [WORD...]`` replays all whose
names have the words in them, with the defaults of `~skdp.audit.replay`, and prints what is found.
"""

import argparse
import contextlib
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any
from unittest import mock

import numpy as np
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from support.configurations import CONFIGURATIONS, model, problem
from support.insides import Users, grid_rows
from support.search_audits import searches

from skdp import _recording
from skdp.audit import recording, replay
from skdp.learner import ledger_of
from skdp.linear_model import DPLinearSVC, DPLogisticRegression, MIPrivateSGDRegressor
from skdp.local import GradientPrivatizer, OnePointPrivatizer, ValuePrivatizer
from skdp.mechanisms import Kept, Perturbed, Released, Selected, clip_rows, gaussian_mechanism
from skdp.metrics import dp_evaluate
from skdp.privacy import ApproxDP, BudgetLedger, compose, n_records_changed

# What is released: each takes a record, and what it kept of those before, and returns another


def on_step(values, step):
    return np.rint(np.asarray(values) / step) * step


def noise_of(record):
    return record.released - on_step(record.asked, record.step)


def with_noise(record, noise):
    return replace(record, released=on_step(record.asked, record.step) + noise)


def half_the_sensitivity(record, kept):
    """Calibrated and declared for half of what a record moves."""
    if isinstance(record, Selected):
        return replace(record, utilities=2 * record.utilities)
    moved = record.released + on_step(record.asked, record.step)
    return replace(record, asked=2.0 * record.asked, released=moved)


def half_the_noise(record, kept):
    if isinstance(record, Perturbed):
        return replace(record, linear=on_step(record.linear / 2.0, record.step))
    return with_noise(record, on_step(noise_of(record) / 2.0, record.step))


def no_noise(record, kept):
    if isinstance(record, Selected):
        return replace(record, chosen=record.utilities.argmax(axis=-1))
    if isinstance(record, Perturbed):
        return replace(record, linear=np.zeros_like(record.linear))
    return with_noise(record, 0.0)


def the_same_noise(record, kept):
    """That of the first release of this size, in all fits."""
    return with_noise(record, kept.setdefault(record.asked.shape, noise_of(record)))


def positive_noise(record, kept):
    return with_noise(record, abs(noise_of(record)))


def released_twice(record, kept):
    return with_noise(record, -noise_of(record)), record


OF_NOISE = (half_the_noise, no_noise, the_same_noise, positive_noise)
OF_RELEASES = {
    Released: (half_the_sensitivity, released_twice, *OF_NOISE),
    Kept: (half_the_sensitivity, *OF_NOISE),
    # Directions of linear terms, and whether they repeat, are what a replay does not see.
    Perturbed: (half_the_noise, no_noise),
    Selected: (half_the_sensitivity, no_noise),
}


class Meddler:
    """Stands between those who release and who records them, and changes records of one kind."""

    def __init__(self, change, site):
        self.change, self.site, self.kept = change, site, {}
        self.original = _recording.released_values

    def get(self):
        listener = self.original.get()
        return None if listener is None else partial(self.hear, listener)

    def hear(self, listener, record):
        if site_of(record) != self.site:
            return listener(record)
        made = self.change(record, self.kept)
        *before, last = made if isinstance(made, tuple) else (made,)
        for one in before:
            listener(one)
        answer = listener(last)
        return outcome_of(last) if answer is None else answer


def outcome_of(record):
    if isinstance(record, Kept):
        return record.above(record.released)
    if isinstance(record, Perturbed):
        return record.linear
    return record.chosen if isinstance(record, Selected) else record.released


def site_of(record):
    """Kind of a record and the function that it is of, whatever its lines."""
    return type(record), getattr(record, "where", "").rpartition(" ")[2]


def changed_release(change, site):
    return mock.patch.object(_recording, "released_values", Meddler(change, site))


# What is charged and claimed


def less(guarantee):
    return replace(guarantee, epsilon=guarantee.epsilon / 2.0, refined=None)


def nothing(guarantee):
    return None


class Careless:
    """A ledger that is charged something else, or nothing."""

    def __init__(self, ledger, change):
        self._ledger, self._change = ledger, change

    def __getattr__(self, name):
        return getattr(self._ledger, name)

    def charge(self, guarantee, *args, **options):
        self._with(self._ledger.charge, guarantee, *args, **options)

    def charge_stream(self, guarantee, **options):
        self._with(self._ledger.charge_stream, guarantee, **options)

    def _with(self, charge, guarantee, *args, **options):
        other = self._change(guarantee)
        if other is not None:
            charge(other, *args, **options)


def charged(kind, change):
    """Estimators of a class charge something else."""

    def other(estimator):
        ledger = ledger_of(estimator)
        is_one = type(estimator) is kind and ledger is not None
        return Careless(ledger, change) if is_one else ledger

    return everywhere(ledger_of, other)


OF_CHARGES = {
    "nothing is charged": nothing,
    "half is charged": less,
}


# What a fit does with rows before, and with the model after


def around(kind, before=None, after=None):
    """Fits of a class with other rows, or with something done to the model afterwards."""
    fit = kind.fit

    def other(self, X, y=None, **options):
        made = X if before is None else before(self, X)
        fit(self, made, y, **options)
        if after is not None:
            after(self, X, y)
        return self

    return mock.patch.object(kind, "fit", other)


def numbers(X):
    return np.nan_to_num(X.toarray() if sparse.issparse(X) else np.asarray(X, dtype=float))


def centred(self, X):
    return X - numbers(X).mean(axis=0)


def divided_by_the_largest(self, X):
    return X / max(abs(numbers(X)).max(), 1e-3)


def sorted_and_weighted(self, X):
    return X * (1.0 + np.argsort(np.argsort(numbers(X)[:, 0])))[:, np.newaxis] / len(X)


def halved_if_one_is_far(self, X):
    return X / 2.0 if abs(numbers(X)).max() > 10.0 else X


def norm_of_the_longest(self, X):
    self.x_norm = float(np.linalg.norm(np.clip(numbers(X), -100.0, 100.0), axis=1).max())
    return X


def seeded_by_the_first(self, X):
    self.random_state = int(abs(numbers(X)[0, 0]) > 0.1)
    return X


def warned_of_far_rows(self, X):
    if abs(numbers(X)).max() > 10.0:
        warnings.warn("A row is far off.", UserWarning, stacklevel=2)
    return X


def refused_far_rows(self, X):
    if abs(numbers(X)).max() > 10.0:
        raise ValueError("A row is far off.")
    return X


OF_ROWS = (
    centred,
    divided_by_the_largest,
    sorted_and_weighted,
    halved_if_one_is_far,
    norm_of_the_longest,
    seeded_by_the_first,
    warned_of_far_rows,
    refused_far_rows,
)


def claims_half(self, X, y):
    self.guarantee_ = less(self.guarantee_)


def claims_the_other_adjacency(self, X, y):
    other = {"replace-one": "add-remove", "add-remove": "replace-one"}
    self.guarantee_ = replace(
        self.guarantee_, adjacency=other[self.guarantee_.adjacency], refined=None
    )


def shows_the_largest(self, X, y):
    self.scale_ = float(np.clip(numbers(X), -1.0, 1.0).max())


def shows_the_mean(self, X, y):
    self._mean = numbers(X).mean(axis=0)


def rounds_of_a_solver(self, X, y):
    self.n_iter_ = int(np.count_nonzero(abs(numbers(X)) > 1.0))


OF_MODELS = (
    claims_half,
    claims_the_other_adjacency,
    shows_the_largest,
    shows_the_mean,
    rounds_of_a_solver,
)


# How long rows are, and whose


@contextlib.contextmanager
def everywhere(original, other):
    """Have another function wherever the package holds this one."""
    with contextlib.ExitStack() as stack:
        for name, module in list(sys.modules.items()):
            if name.partition(".")[0] == "skdp":
                for key, value in list(vars(module).items()):
                    if value is original:
                        stack.enter_context(mock.patch.object(module, key, other))
        yield


def by_coordinate(X, norm):
    return np.clip(numbers(X), -norm, norm)


def on_the_grid_twice_as_far(X, x_norm, constant, step):
    rows = grid_rows(X, 2.0 * x_norm, constant, step)
    rows[:, : X.shape[1]] *= 2.0
    return rows


OF_NORMS = {
    "rows are not clipped": (clip_rows, lambda X, norm: X),
    "rows are clipped to twice the norm": (clip_rows, lambda X, norm: clip_rows(X, 2.0 * norm)),
    "rows are clipped by coordinate": (clip_rows, by_coordinate),
}
OF_GRIDS = {"rows are clipped to twice the norm": (grid_rows, on_the_grid_twice_as_far)}
# By whom rows are clipped: other classes do not go through either function alone.
NORMS = {
    DPLogisticRegression: OF_NORMS,
    DPLinearSVC: OF_NORMS,
    MIPrivateSGDRegressor: OF_GRIDS,
}
# Where all users weigh the same, and where more rows come first.
OF_OWNERS = [
    name
    for name in CONFIGURATIONS
    if name.startswith(
        ("DPKernelRidge-delta=0.0001-mechanism=gradient", "DistributedDPClassifier-loss=log")
    )
]
OF_USERS = {
    "each row weighs 1": lambda shares: np.ones_like(shares),
    "two rows weigh twice": lambda shares: np.where(shares > 0.4, 1.0, shares),
    "weights are those of the rows beside": lambda shares: np.roll(shares, 1),
    "all weigh what they do on average": lambda shares: np.full_like(shares, shares.mean()),
}


def owned(change):
    """Users whose rows have other shares."""
    begin = Users.__post_init__

    def other(self):
        begin(self)
        object.__setattr__(self, "shares", change(self.shares))

    return mock.patch.object(Users, "__post_init__", other)


# How parts add up


def without(place):
    """The composition of all parts but one, which is free."""

    def other(parts):
        rest = list(parts.elements() if isinstance(parts, Counter) else parts)
        del rest[place]
        return compose(rest) if rest else ApproxDP(0.0)

    return compose, other


FITTED, SCORED, PURE = "a row of fits, ", "a row of scores, ", "adjacency=replace-one delta=0.0"
GRID = "DPGridSearch param_grid={'C': [0.0001, 0.0002, 0.0003]} "
STAGES = "DPEpsilonSearch target_score=0.99 "
# Of what is planned for searches: the case that shows it, and which function is another one.
OF_SEARCHES = {
    "a fit is free": (f"{FITTED}{GRID}refit=False {PURE}", without(0)),
    "the last fit is free": (f"{FITTED}{GRID}{PURE}", without(-1)),
    "what scores is free": (f"{SCORED}{GRID}refit=False {PURE}", without(0)),
    "half the spread of the choice": (
        f"{SCORED}{GRID}{PURE}",
        (n_records_changed, lambda adjacency: 1),
    ),
    "a stage is free": (f"{FITTED}{STAGES}{PURE}", without(0)),
    "what stages score is free": (f"{SCORED}{STAGES}{PURE}", without(0)),
}


# Evaluations of models that others fitted

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(40, 2))
LABELS = (ROWS[:, 0] + 0.5 * RNG.normal(size=40) > 0.0).astype(int)
MODEL = LogisticRegression().fit(ROWS, LABELS)
SCORES = ("accuracy", "average_precision", "recall")


def evaluated(scoring):
    def evaluate(X, y, random_state=None):
        options = {"scoring": [scoring], "classes": [0, 1], "random_state": random_state}
        found = dp_evaluate(MODEL, X, y, 1.0, **options)
        return np.array([one.value for one in found.values.values()])

    return evaluate, ROWS, LABELS


# Functions of users', which break the promise by themselves


def of_one_records_length(X, random_state=None):
    return noisy(clip_rows(X, 1.0).sum(axis=0), 1.0, random_state)


def of_unbounded_rows(X, random_state=None):
    return noisy(X.mean(axis=0), 0.1, random_state)


def with_a_bound_of_the_data(X, random_state=None):
    return noisy(X.sum(axis=0), 2.0 * float(np.linalg.norm(X, axis=1).max()), random_state)


def with_the_median_beside_the_noise(X, random_state=None):
    return noisy(clip_rows(X, 1.0).sum(axis=0), 2.0, random_state) + 1e-9 * np.median(X, axis=0)


def released_only_if_small(X, random_state=None):
    sums = clip_rows(X, 1.0).sum(axis=0)
    return None if sums[0] > 3.0 else noisy(sums, 2.0, random_state)


def clipped_after_the_sum(X, random_state=None):
    return noisy(clip_rows(X.sum(axis=0)[None], 1.0)[0], 0.1, random_state)


def clipped_by_coordinate(X, random_state=None):
    return noisy(np.clip(X, -1.0, 1.0).sum(axis=0), 2.0, random_state)


def of_half_of_the_rows_by_their_order(X, random_state=None):
    return of_all_rows(X[np.argsort(X[:, 0])[: len(X) // 2]], random_state)


def of_all_rows(X, random_state=None):
    return noisy(clip_rows(X, 1.0).sum(axis=0), 2.0, random_state)


def noisy(values, sensitivity, random_state):
    return gaussian_mechanism(
        values,
        l2_sensitivity=sensitivity,
        guarantee=ApproxDP(1.0, 1e-5),
        random_state=random_state,
    )


OF_FUNCTIONS = (
    of_one_records_length,
    of_unbounded_rows,
    with_a_bound_of_the_data,
    with_the_median_beside_the_noise,
    released_only_if_small,
    clipped_after_the_sum,
    clipped_by_coordinate,
    of_half_of_the_rows_by_their_order,
)


# Devices of users, who send a message each


def of_gradients(X, y, random_state=None):
    return GradientPrivatizer(2.0).release(np.zeros(4), X, y, random_state=random_state)


def of_values(X, y, random_state=None):
    device = ValuePrivatizer(2.0, value_range=0.5)
    return [
        device.release(np.zeros(4), x, t, random_state=random_state)
        for x, t in zip(X, y, strict=True)
    ]


def of_points(X, y, random_state=None):
    device = OnePointPrivatizer(2.0, value_range=0.5)
    rows = zip(X, y, strict=True)
    return [device.release(np.zeros(4), x, t, 0.5, random_state=random_state) for x, t in rows]


DEVICES = (of_gradients, of_values, of_points)


# All of them


@dataclass(frozen=True, eq=False)
class Slip:
    """What is changed, and on what it shows.

    Parameters
    ----------
    name : str

    target : callable
        Without arguments; returns an estimator or a function, its rows and its targets.

    applied : callable
        Without arguments; returns a context within which the code has the slip.

    options : dict, default={}
        Of the replay.
    """

    name: str
    target: Callable[[], tuple[Any, Any, Any]]
    applied: Callable[[], Any]
    options: dict = field(default_factory=dict)

    def report(self, n=240):
        target, X, y = self.target()
        with self.applied(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return replay(target, X, y, **{"n": n, "random_state": 0, **self.options})


def configured(name, **options):
    return model(name, **options), *problem(name, n_samples=40)


@cache
def told(made):
    """What a configuration or a function releases, and the model if it is one."""
    target, X, y = made()
    with warnings.catch_warnings(), recording() as transcript:
        warnings.simplefilter("ignore")
        if hasattr(target, "fit"):
            target.set_params(random_state=0).fit(X, y)
        else:
            target(X, y, random_state=0)
    return target, transcript


def words(function):
    return function.__name__.replace("_", " ")


def slips_of_estimators():
    """In each configuration each kind of release; what all fits share once for each class."""
    seen = set()
    for name in CONFIGURATIONS:
        made = partial(configured, name)
        estimator, transcript = told(made)
        kind = type(estimator)
        yield from slips_of_releases(name, made, transcript)
        pays = partial(configured, name, ledger=BudgetLedger(epsilon=1e4, delta=0.5))
        for what, change in OF_CHARGES.items():
            plain = isinstance(estimator.guarantee_, ApproxDP)
            if plain or change is nothing:
                yield Slip(f"{name}: {what}", pays, partial(charged, kind, change))
        if kind in seen:
            continue
        seen.add(kind)
        for change in OF_ROWS:
            if change is not norm_of_the_longest or hasattr(estimator, "x_norm"):
                yield Slip(f"{name}: {words(change)}", made, partial(around, kind, change))
        for change in OF_MODELS:
            if breaks_a_promise(change, estimator):
                yield Slip(f"{name}: {words(change)}", made, partial(around, kind, after=change))
        for what, pair in NORMS.get(kind, {}).items():
            yield Slip(f"{name}: {what}", made, partial(everywhere, *pair))


def breaks_a_promise(change, estimator):
    """Whether a change of a fitted model is wrong for its class, and ordinary rows show it."""
    if change is shows_the_mean:  # a live stream stays with the curator
        return not hasattr(estimator, "released")
    if change is claims_half:  # whole searches are used up by the rows of `OF_SEARCHES` only
        return isinstance(estimator.guarantee_, ApproxDP) and not hasattr(estimator, "row_key")
    if change is claims_the_other_adjacency:  # the parts of a pipeline would not compose
        return isinstance(estimator.guarantee_, ApproxDP) and not hasattr(estimator, "steps")
    return True


def slips_of_releases(name, made, transcript, options=None):
    """Of each kind of release, in their order."""
    found = dict.fromkeys(site_of(record) for record in transcript)
    sites = [site for site in found if site[0] in OF_RELEASES]
    for number, site in enumerate(sites):
        for change in OF_RELEASES[site[0]]:
            applied = partial(changed_release, change, site)
            what = f"{name}: release {number + 1}, {words(change)}"
            yield Slip(what, made, applied, options or {})


def slips_of_functions():
    for name in SCORES:
        made = partial(evaluated, name)
        options = dict(guarantee=ApproxDP(1.0))
        yield from slips_of_releases(f"dp_evaluate, {name}", made, told(made)[1], options)
    for device in DEVICES:
        made = partial(of_function, device)
        yield from slips_of_releases(f"device {words(device)}", made, told(made)[1])
    for function in OF_FUNCTIONS:
        yield Slip(
            f"function {words(function)}", partial(of_function, function), contextlib.nullcontext
        )


def of_function(function):
    rng = np.random.default_rng(0)
    X = rng.normal(scale=0.4, size=(40, 3))
    return function, X, np.clip(X[:, 0], -1.0, 1.0) if function in DEVICES else None


def slips_of_searches():
    cases = {case.name: case for case in searches()}
    for what, (name, pair) in OF_SEARCHES.items():
        case = cases[name]
        options = dict(neighbours=case.neighbours, n=len(case.neighbours))
        made = partial(tuple, (case.program, *case.data))
        yield Slip(f"search: {what}", made, partial(everywhere, *pair), options)


def owners(n_samples, seed=0):
    """Whose rows are whose: users of 1 to some, not side by side."""
    rng = np.random.default_rng(seed)
    n_users = max(3, n_samples // 3)
    return np.append(np.arange(n_users), rng.integers(0, n_users, n_samples - n_users))


def slips_of_users():
    for name in OF_OWNERS:
        for what, change in OF_USERS.items():
            yield Slip(
                f"users, {name}: {what}",
                partial(configured, name),
                partial(owned, change),
                dict(groups=owners(40)),
            )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("words", nargs="*")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    options = parser.parse_args()
    chosen = [slip for slip in slips() if all(word in slip.name for word in options.words)]
    chosen, left = chosen[options.first :: options.every], 0
    for slip in chosen:
        begun = time.perf_counter()
        try:
            report = slip.report()
            what = " | ".join(f"{f.kind}: {f.what}"[:70] for f in report.findings[:2])
            left += report.passed
            what = (
                what or f"NOT FOUND, share {report.share:.3f} {[r.share for r in report.releases]}"
            )
        except Exception as error:
            what = f"BROKEN {type(error).__name__}: {error}"[:300]
        print(f"{time.perf_counter() - begun:5.1f} s  {slip.name}  {what}", flush=True)
    print(f"{len(chosen)} slips, {left} not found")


def slips():
    yield from slips_of_estimators()
    yield from slips_of_users()
    yield from slips_of_searches()
    yield from slips_of_functions()


if __name__ == "__main__":
    main()
