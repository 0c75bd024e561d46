"""What is replayed of users: neighbours that have other rows of one user, from 1 to 50.

Rows of the same user are a mean: 50 rows that are all the worst one move a sum as far as one does.
"""

from dataclasses import replace

import numpy as np
from sklearn.base import clone, is_classifier

from skdp.distributed import DistributedDPClassifier
from skdp.kernel import DPKernelRidge, DPOnlineKernelRegressor
from skdp.linear_model import DPLinearSVC, DPLogisticRegression
from support.audits import DELTAS, FEWER, LENGTHS, MOMENTS, POINTS, PREDICTED, Case, each, named
from support.insides import DataSet
from support.networks import network

N_USERS = 14
AGREE = (
    "how far rows of a user agree moves from 0 to 1 where rows cancel, which a search seldom hits"
)
MARGINS = "in the last of many steps the margin of a user who is there is past the kink"
# Why a claim for several calls is not consumed.
APART = "two steps of a user that are not side by side are in fewer sums together than might be"


def owned(kind, n_users=N_USERS, d=3, n_classes=2, seed=0):
    """Rows of users who have 1 to 9, beside each other and not, and who has which."""
    rng = np.random.default_rng(seed)
    more = rng.permutation(np.repeat(np.arange(n_users), rng.integers(0, 9, n_users)))
    groups = np.append(np.arange(n_users), more)
    X = rng.uniform(-0.5, 0.5, (len(groups), d))
    score = X[:, 0] - 0.5 * X[:, 1]
    if not is_classifier(kind()):
        return (X, score), groups
    return (X, np.arange(len(X)) % n_classes if n_classes > 2 else (score > 0).astype(int)), groups


def with_rows(data, groups, user, x, y, n_rows):
    """A data set with so many rows of one user, all alike; ``n_rows=0`` leaves the user out."""
    kept = np.flatnonzero(groups != user)
    cut = int((kept < np.argmax(groups == user)).sum())
    parts = [kept[:cut], kept[cut:]]
    rows = [np.asarray(data[0], dtype=float)[part] for part in parts]
    targets = [np.asarray(data[1])[part] for part in parts]
    return (
        np.concatenate([rows[0], np.tile(x, (n_rows, 1)), rows[1]]),
        np.concatenate(
            [targets[0], np.full(n_rows, y, dtype=np.asarray(data[1]).dtype), targets[1]]
        ),
        np.concatenate([groups[parts[0]], np.full(n_rows, user), groups[parts[1]]]),
    )


def grown(data, groups, adjacency, user, here, there):
    """From one row of a user to 50 others, and from 50 to one; or none at all."""
    for n_here, n_there in ((1, 50), (50, 1)):
        base = with_rows(data, groups, user, *here, n_here)
        n_other = 0 if adjacency == "add-remove" else n_there
        yield (
            f"{n_here} to {n_other} rows",
            base,
            (with_rows(data, groups, user, *there, n_other),),
        )


def stated(name, program, data, neighbours, **options):
    X, y, groups = data
    return Case(name, program, (X, y), neighbours, options=(("groups", groups),), **options)


def searched(name, program, data, groups, n, **options):
    return Case(name, program, data, searched=n, options=(("groups", groups),), **options)


def linear():
    for kind in (DPLogisticRegression, DPLinearSVC):
        for n_classes in (2, 3) if kind is DPLogisticRegression else (2,):
            for chosen in each(mechanism="gradient"):
                data, groups = owned(kind, n_classes=n_classes)
                name = f"users {named(kind, n_classes=n_classes, **chosen)}"
                less = dict(least=0.8, reason=AGREE) if chosen["delta"] else {}
                yield searched(name, kind(**chosen), data, groups, 96, **less)
    for chosen in each(mechanism="gradient", class_weight={0: 1.0, 1: 4.0}):
        data, groups = owned(DPLogisticRegression)
        name = f"users {named(DPLogisticRegression, **chosen)}"
        less = dict(least=0.8, reason=AGREE) if chosen["delta"] else {}
        yield searched(name, DPLogisticRegression(**chosen), data, groups, 96, **less)
    # The flattest direction, and a user who turns around in it (12.2).
    X, y = np.tile(np.eye(1, 3), (4001, 1)), np.arange(4001) % 2
    for kind, options in ((DPLinearSVC, {}), (DPLogisticRegression, dict(slope_cap=0.05))):
        for chosen in each(mechanism="gradient", fit_intercept=False, epsilon=20.0, **options):
            less = {}
            if chosen["adjacency"] == "replace-one":
                less = dict(least=0.0, reason=MOMENTS if chosen["delta"] > 0.0 else LENGTHS)
            elif chosen["delta"] > 0.0 and kind is DPLinearSVC:
                less = dict(least=0.9, total=0.8, reason=MARGINS)
            row = 1e6 * np.eye(3)[1]
            ends = (row, 1), (-row, 1)
            for words, base, pairs in grown(
                (X, y), np.arange(4001), chosen["adjacency"], 0, *ends
            ):
                name = f"users {words} {named(kind, **chosen)}"
                yield stated(name, kind(**chosen), base, pairs, **less)


def ridge():
    for kernel in ("rbf", "linear"):
        for adjacency in ("replace-one", "add-remove"):
            options = dict(kernel=kernel, adjacency=adjacency, delta=1e-4, mechanism="gradient")
            data, groups = owned(DPKernelRidge)
            program = DPKernelRidge(n_components=20, y_bounds=(-1.0, 1.0), **options)
            yield searched(f"users {named(DPKernelRidge, **options)}", program, data, groups, 72)
            # Many rows alike, and targets of a user from one end to the other.
            X, y = np.full((400, 2), 1e6), np.zeros(400)
            options |= dict(residual_cap=0.1, epsilon=4.0)
            program = DPKernelRidge(n_components=20, y_bounds=(-1.0, 1.0), **options)
            ends = (X[0], 1.0), (X[0], -1.0)
            for words, base, pairs in grown((X, y), np.arange(400), adjacency, 0, *ends):
                name = f"users {words} {named(DPKernelRidge, **options)}"
                yield stated(name, program, base, pairs, least=0.0, reason=PREDICTED)


def online():
    """A user who comes once: nothing is learnt before, so that no residual is short (2.5)."""
    forms = (
        *(("chunk", {}), ("final", {}), ("sgd", {})),
        *(("tree", dict(horizon=31)), ("matrix", dict(horizon=24))),
    )
    for kind, more in forms:
        for chosen in each(release=kind, kernel="linear"):
            if kind == "matrix" and chosen["delta"] == 0.0:
                continue
            X, y = np.zeros((24, 3)), np.zeros(24)
            user = 23 if kind == "final" else 0
            ends = (np.eye(3)[0], 1.0), (np.eye(3)[0], -1.0)
            model = DPOnlineKernelRegressor(**chosen, **more, y_bounds=(-1.0, 1.0))
            # Places of a stream are public: a user who is not there leaves its place empty.
            relation = chosen["adjacency"] if kind == "chunk" else "replace-one"
            less = {}
            if kind == "chunk" and relation == "replace-one":
                less = dict(least=0.0, total=0.75, reason=MOMENTS)
            for words, base, pairs in grown((X, y), np.arange(24), relation, user, *ends):
                name = f"users {words} {named(DPOnlineKernelRegressor, **chosen)}"
                yield stated(name, model, base, pairs, **less)
    for kind, more in forms:
        for most in (1, 2):
            for adjacency in ("replace-one", "add-remove"):
                options = dict(release=kind, adjacency=adjacency, delta=1e-4)
                model = DPOnlineKernelRegressor(
                    **options,
                    **({} if not more else dict(horizon=100)),
                    max_calls_per_user=most,
                    kernel="linear",
                    y_bounds=(-1.0, 1.0),
                )
                data, groups = owned(DPOnlineKernelRegressor)
                name = f"users in calls {named(type(model), max_calls=most, **options)}"
                yield searched(name, model, data, groups, 72, least=0.45, total=0.3, reason=FEWER)
    yield from visits()


def visits():
    """A user who comes in two calls, with half of its rows in each, or one in both."""
    for kind, more in (("chunk", {}), ("final", {}), ("sgd", {}), ("tree", 15), ("matrix", 8)):
        for most in (1, 2):
            for delta in DELTAS[kind == "matrix" :]:
                options = dict(release=kind, delta=delta, max_calls_per_user=most)
                model = DPOnlineKernelRegressor(
                    1e3,  # so much that noise which is fed back leaves points near 0
                    kernel="linear",
                    **options,
                    **(dict(horizon=more) if more else {}),
                    y_bounds=(-1.0, 1.0),
                )
                program = two_calls(model)
                # Of what is released last, the last step has most.
                n, user = (5, 4) if kind == "final" else (6, 0)
                X, y = np.zeros((n, 3)), np.zeros(n)
                ends = (np.eye(3)[0], 1.0), (np.eye(3)[0], -1.0)
                less = {}
                if kind == "chunk":
                    less = dict(least=0.0, total=0.75, reason=MOMENTS)
                if most == 2 and kind in ("tree", "matrix"):
                    less = dict(least=0.85, total=0.7, reason=APART)
                for words, base, pairs in grown((X, y), np.arange(n), "replace-one", user, *ends):
                    name = f"users {words} in two calls {named(type(model), **options)}"
                    case = stated(name, program, base, pairs, **less)
                    claim = ("guarantee", program.claim(base))
                    yield replace(case, options=(*case.options, claim))


class two_calls:
    """A stream of users in two calls; the first of them comes in both."""

    def __init__(self, model):
        self.model = model

    def __call__(self, X, y, groups, random_state=None):
        model = clone(self.model).set_params(random_state=random_state)
        for part in DataSet.of(X, y, groups).calls(2):
            model.partial_fit(part.X, part.y, groups=part.groups)
        self.told = model.guarantee_
        return model.predict(np.eye(2, X.shape[1]))

    def claim(self, data):
        """What is promised after the last call: public, as the calls are."""
        self(*data)
        return self.told


def networks():
    kind, paper = DistributedDPClassifier, dict(batch_size=2, n_nodes=3)
    for options in (dict(n_nodes=3), paper):
        for n_classes in (2, 3):
            for chosen in each(**options):
                data, groups = owned(kind, n_classes=n_classes)
                name = f"users {named(kind, n_classes=n_classes, **chosen)}"
                less = dict(least=0.45, total=0.8, reason=POINTS)
                yield searched(name, network(**chosen), data, groups, 72, **less)
    # Rows with the full norm, of which those of one user have the other label.
    X, y, groups = np.ones((12, 1)), np.arange(12) % 2, np.arange(12)
    for options in (dict(n_nodes=3), dict(paper, step=1e-9, loss="hinge")):
        for delta in DELTAS:
            for user in (0, 5, 11):
                ends = (X[0], y[user]), (X[0], 1 - y[user])
                for words, base, pairs in grown((X, y), groups, "replace-one", user, *ends):
                    name = f"users {words} {named(kind, delta=delta, **options)} user={user}"
                    less = dict(least=0.0) if options == dict(n_nodes=3) else {}
                    less |= dict(reason=MOMENTS) if less else {}
                    yield stated(name, network(delta=delta, **options), base, pairs, **less)


GROUPS = {"linear": linear, "ridge": ridge, "networks": networks, "online": online}


def user_cases():
    for group in GROUPS.values():
        yield from group()
