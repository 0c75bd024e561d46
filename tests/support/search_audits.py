"""What is replayed of searches: neighbours that differ in a row of either block."""

import numpy as np

from skdp.linear_model import DPLinearSVC
from skdp.model_selection import DPEpsilonSearch, DPGridSearch, DPRandomizedSearch
from support.audits import MOMENTS, Case, changed, each, lessened, named
from support.insides import Blocks

# So small that margins stay in the straight part of the loss.
GRID = {"C": [1e-4, 2e-4, 3e-4]}
SEARCHES = (
    (DPGridSearch, dict(param_grid=GRID)),
    (DPGridSearch, dict(param_grid=GRID, refit=False)),
    (DPGridSearch, dict(param_grid=GRID, strategy="split")),
    (DPRandomizedSearch, dict(param_distributions=GRID, n_iter_mean=3)),
    (DPRandomizedSearch, dict(param_distributions=GRID, n_iter_mean=3, refit=False)),
    (DPEpsilonSearch, dict(target_score=0.05)),
    (DPEpsilonSearch, dict(target_score=0.99)),
)


def key(X):
    """Rows differ in their last column alone, which no model sees much of."""
    return np.asarray(X)[:, -1]


def turning(adjacency, fractions, block, n=80, d=3):
    """Rows that are all alike, with labels in turn, so that noise decides what models say.

    Of a block, one of each label has the other in a neighbour, or is no more.
    """
    X, y = np.tile(1e6 * np.eye(1, d), (n, 1)), np.zeros(n, dtype=int)
    X[:, -1] = np.arange(n)
    row_key = None if adjacency == "replace-one" else key
    parts = Blocks.of(fractions, row_key=row_key, adjacency=adjacency).parts(X, n)
    for part in parts:
        y[part] = np.arange(len(part)) % 2
    places = parts[block][:2]
    if adjacency == "add-remove":
        return (X, y), tuple(lessened((X, y), place) for place in places)
    return (X, y), tuple(changed((X, y), place, X[place], 1 - y[place]) for place in places)


def program(kind, adjacency, delta, **options):
    """A search over models whose slopes are 1, or of which second moments are released, too."""
    model = DPLinearSVC(mechanism="gradient" if delta else "output", huber_width=0.5, C=1e-4)
    options["max_epsilon" if kind is DPEpsilonSearch else "epsilon"] = 60.0
    if adjacency == "add-remove":
        options |= dict(row_key=key)
    return kind(model, adjacency=adjacency, delta=delta, classes=[0, 1], **options)


def searches():
    """A row that candidates are fitted to, and one by which they are compared or scored."""
    for kind, options in SEARCHES:
        for chosen in each(**options):
            by_stages = kind is DPEpsilonSearch
            if by_stages and chosen["adjacency"] == "add-remove":
                chosen |= dict(epsilons=[1.0, 3.0, 9.0])
            fractions = (0.75, 0.25) if by_stages else (0.8, 0.2)
            if "strategy" in options:
                fractions = (1 / 4,) * 4
            whole = dict(total=0.85, reason=MOMENTS) if chosen["delta"] else dict(total=0.95)
            for block, words in ((0, "a row of fits"), (-1, "a row of scores")):
                data, neighbours = turning(chosen["adjacency"], fractions, block)
                name = f"{words}, {named(kind, **chosen)}"
                made = program(kind, **chosen)
                yield Case(name, made, data, neighbours, least=0.0, **whole)
