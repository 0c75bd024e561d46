"""Slips about users: what a row counts, how many there are, and how often one may come."""

import numpy as np
from mutation import Mutant

from skdp.distributed import DistributedDPClassifier
from skdp.kernel import DPKernelRidge, DPOnlineKernelRegressor
from skdp.linear_model import DPLinearSVC

DELTA = dict(delta=1e-4)
REMOVE = dict(adjacency="add-remove")
BOUNDS = dict(y_bounds=(-1.0, 1.0))
USERS, ROWS, BASE = "_users", "solvers.rows", "linear_model._base"
FEATURES, RIDGE = "solvers.feature_rows", "kernel._kernel_ridge"
STREAM, STEPS = "releases._stream", "releases._stream_users"


def owners(n_samples, seed=0):
    """Whose rows are whose: users of 1 to some, not side by side."""
    rng = np.random.default_rng(seed)
    n_users = max(3, n_samples // 3)
    return np.append(np.arange(n_users), rng.integers(0, n_users, n_samples - n_users))


def svc(**options):
    return DPLinearSVC(mechanism="gradient", **options)


def ridge(**options):
    return DPKernelRidge(
        **{**BOUNDS, **DELTA, "mechanism": "gradient", "n_components": 20, **options}
    )


def stream(release, **options):
    sizes = dict(horizon=60) if release in ("tree", "matrix") else {}
    return DPOnlineKernelRegressor(
        release=release, kernel="linear", **{**BOUNDS, **DELTA, **sizes, **options}
    )


def network(**options):
    return DistributedDPClassifier(**{"n_nodes": 3, **options})


def paper(**options):
    return network(algorithm="paper", batch_size=2, loss="hinge", **options)


RESIDUALS = "            residuals *= self.shares[i][:, np.newaxis]"
OWN = '        object.__setattr__(self, "shares", np.where(counts == 1, 1.0, shares)[self.codes])'


def shares():
    """Weights of rows, that all sums have in common."""
    for name, target in [
        ("ridge", ridge()),
        ("network", network()),
        ("paper", paper()),
    ]:
        yield (
            f"users, {name}: users of two rows weigh twice",
            target,
            (USERS, OWN, OWN.replace("counts == 1", "counts <= 2")),
        )
        yield (
            f"users, {name}: rows beyond the tenth are not counted",
            target,
            (USERS, "np.maximum(counts, 1)", "np.clip(counts, 1, 10)"),
        )
        yield (
            f"users, {name}: one share for all, of the mean number of rows",
            target,
            (
                USERS,
                OWN,
                OWN.replace(
                    "np.where(counts == 1, 1.0, shares)[self.codes]",
                    "np.full(len(self.codes), self.n_users / len(self.codes))",
                ),
            ),
        )
        yield (
            f"users, {name}: shares by place",
            target,
            (
                USERS,
                OWN,
                OWN.replace(
                    "np.where(counts == 1, 1.0, shares)[self.codes]",
                    "np.roll(np.where(counts == 1, 1.0, shares)[self.codes], 1)",
                ),
            ),
        )


def linear():
    # Whatever a row weighs, a mean that is too long is shortened: weights alone break nothing.
    yield (
        "users, svc: means are not shortened",
        svc(**DELTA),
        (
            "solvers.user_norms",
            "return factors[self.users.codes]",
            "return 1.0 + 0.0 * factors[self.users.codes]",
        ),
    )
    yield (
        "users, svc: moments of rows",
        svc(epsilon=50.0, **DELTA),
        (ROWS, "rows = times(rows, np.sqrt(self.shares[i]))", "pass"),
    )
    counted = (
        ROWS,
        "return self.n_samples if self.users is None else self.users.n_users",
        "return self.n_samples",
    )
    for chosen in (DELTA, REMOVE, {}):
        yield f"users, svc: rows are counted {sorted(chosen)}", svc(**chosen), counted
    for chosen in (DELTA, {}):
        yield (
            f"users, svc: the norm that is read counts rows {sorted(chosen)}",
            svc(epsilon=200.0, **chosen),
            (
                "releases._row_norm",
                "shares = None if users is None else users.shares",
                "shares = None",
            ),
        )
    yield (
        "users, svc: the longest history gets out",
        svc(),
        (
            BASE,
            "        self.x_norm_ = float(self.x_norm) / longer",
            "        self.x_norm_ = float(np.bincount(users.codes).max())",
        ),
        (
            BASE,
            "            noise = noise_source(self.random_state)",
            "            import numpy as np; noise = noise_source(self.random_state)",
        ),
    )


def kernel():
    both = FEATURES, "return values * shares, np.floor(limits * shares)"
    yield "users, ridge: the share is dropped", ridge(), (*both, "return values, limits")
    yield "users, ridge: limits of rows", ridge(), (*both, "return values * shares * 50.0, limits")
    yield (
        "users, ridge: targets of rows",
        ridge(),
        (FEATURES, "shares = 1.0 if self.users is None else self.users.shares", "shares = 1.0"),
    )
    yield (
        "users, ridge: cells of rows",
        ridge(epsilon=100.0),
        (
            "releases._target_window",
            "shares = None if data.users is None else data.users.shares",
            "shares = None",
        ),
    )
    yield (
        "users, ridge: moments of rows",
        ridge(epsilon=50.0),
        (FEATURES, "rows *= np.sqrt(self.shares[i])[:, np.newaxis]", "pass"),
    )
    for chosen in ({}, REMOVE):
        yield (
            f"users, ridge: rows are counted {sorted(chosen)}",
            ridge(**chosen),
            (
                "releases._feature_descent",
                "release_n_samples(data.n_units, guarantee=count",
                "release_n_samples(data.n_samples, guarantee=count",
            ),
        )
    yield (
        "users, ridge: quantiles of rows",
        ridge(y_bounds="auto", epsilon=600.0, kernel="linear"),
        (RIDGE, "seen = y if users is None else y[chosen_rows(groups, users)]", "seen = y"),
    )


def streams():
    for kind in ("final", "sgd", "tree", "matrix"):
        yield (
            f"users, {kind}: the share is dropped",
            stream(kind),
            (STEPS, "float(users.shares[first[start + i]])", "1.0"),
        )
        yield (
            f"users, {kind}: calls are not counted",
            stream(kind, epsilon=100.0),
            (
                STREAM,
                "is_null = visits.counts(visitors) > self.calls",
                "is_null = visits.counts(visitors) > 9",
            ),
        )
        if kind in ("final", "sgd"):  # the others' bounds are for calls side by side
            yield (
                f"users, {kind}: one call too many",
                stream(kind, epsilon=100.0, max_calls_per_user=2),
                (
                    STREAM,
                    "is_null = visits.counts(visitors) > self.calls",
                    "is_null = visits.counts(visitors) > self.calls + 1",
                ),
            )
        yield (
            f"users, {kind}: time counts rows",
            stream(kind, **(dict(horizon=600) if kind in ("tree", "matrix") else {})),
            (
                STREAM,
                "return n_rows if visitors is None else visitors.users.n_users",
                "return n_rows",
            ),
        )
    yield (
        "users, sgd: calls are not paid for",
        stream("sgd", epsilon=100.0, max_calls_per_user=2),
        (
            "releases._stream_fed_back",
            "law = together if calls == 1 else together.repeated(calls)",
            "law = together",
        ),
    )
    yield (
        "users, tree: calls are not paid for",
        stream("tree", epsilon=100.0, max_calls_per_user=2),
        (
            "releases._stream_tree",
            "(change * weight * (1 + 1e-12) + rounding) * self.calls",
            "(change * weight * (1 + 1e-12) + rounding)",
        ),
    )


def networks():
    yield (
        "users, paper: the share is dropped",
        paper(),
        (
            "solvers.gossip_sums",
            "        residuals *= self.shares[part][:, np.newaxis]",
            "        pass",
        ),
    )
    yield (
        "users, whitened: classes of rows",
        network(),
        (
            "solvers.hits",
            "shares = None if shares is None else _on_grid(shares)",
            "shares = None",
        ),
    )
    yield (
        "users, whitened: the share is dropped",
        network(**DELTA),
        (ROWS, RESIDUALS, "            pass"),
    )
    yield (
        "users, whitened: right rows are counted",
        network(epsilon=300.0, n_nodes=1),
        (
            "solvers.hits",
            "_on_grid(data.shares[i]) @ (new.astype(float) - old)",
            "(new.astype(float) - old).sum()",
        ),
    )

    for name, target in (("whitened", network(**DELTA)), ("paper", paper())):
        yield (
            f"users, {name}: calls of users are not counted",
            target,
            ("distributed._users", "gone[i] = n_calls >= self.most", "gone[i] = False"),
        )


def users():
    """Mutants with the groups that `owners` makes."""
    for group in (shares, linear, kernel, streams, networks):
        for name, target, *slips in group():
            yield Mutant(name, target, tuple(slips), has_groups=True)
