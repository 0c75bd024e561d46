"""Networks that protect users: all rows of one, however many, at one node and in a few calls."""

import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import BaseEstimator, clone

from skdp import config_context
from skdp.audit import recording, replay
from skdp.distributed import DistributedDPClassifier
from skdp.losses import (
    HingeLoss,
    HuberHingeLoss,
    LogisticLoss,
    MulticlassHingeLoss,
    SoftmaxLoss,
)
from skdp.privacy import ApproxDP, BudgetLedger, GaussianDP, compose
from skdp.solvers.gossip_sums import UserGradients, UserRows, bounded_rows, slope_step
from skdp.solvers.hits import class_counts, hits_gained
from skdp.solvers.rows import RowBlocks
from skdp._users import Users

FORMS = {
    "hinge": dict(algorithm="paper", loss="hinge", batch_size=1, n_passes=1, step=2.0**-16),
    "batches": dict(algorithm="paper", loss="hinge", batch_size=3, n_passes=2, step=2.0**-16),
    "gaussian": dict(algorithm="paper", loss="hinge", step=2.0**-16, n_passes=3, delta=1e-3),
    "laplace": dict(algorithm="paper", loss="hinge", step=2.0**-16, noise="laplace"),
    "log_loss": dict(algorithm="paper", loss="log_loss", batch_size=2, n_passes=1),
    "huber_hinge": dict(algorithm="paper", loss="huber_hinge"),
    "whitened": dict(algorithm="whitened"),
    "whitened, gaussian": dict(algorithm="whitened", delta=1e-3, epsilon=2.0),
    "whitened, laplace": dict(algorithm="whitened", x_l1_norm=1.0),
}
TIGHT = ("hinge", "batches", "gaussian", "laplace")
each_form = pytest.mark.parametrize("form", FORMS)
kinds = pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])


@pytest.fixture(autouse=True)
def _seeds_are_known():
    with config_context(known_seeds=True):
        yield


def network(form="hinge", **options):
    options = {"n_nodes": 3, "random_state": 0, "radius": 1e6} | FORMS.get(form, {}) | options
    if options.get("algorithm") == "whitened" or "algorithm" not in options:
        options.pop("radius")
    return DistributedDPClassifier(**options)


MOST = 50


def people(n_users=9, n_classes=2, n_features=1, most=12, seed=0):
    """Users with rows of 1 to ``most``, in turn: ids, rows, labels."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, most + 1, n_users)
    ids = rng.permutation(np.repeat(np.arange(n_users), counts - 1))
    ids = np.concatenate([np.arange(n_users), ids])  # who is there, in this order, is public
    X = rng.choice([-1.0, 1.0], size=(len(ids), n_features)) / math.sqrt(n_features)
    y = rng.integers(0, n_classes, len(ids))
    y[:n_classes] = np.arange(n_classes)
    return ids, X, y


def as_record(X, y):
    """All rows of one user as one row, so that `replay` may replace them."""
    padded = np.zeros((MOST, X.shape[1] + 1))
    padded[: len(X), :-1], padded[: len(X), -1] = X, y
    return np.append(padded.ravel(), len(X))


def from_records(records):
    """Ids, rows and labels; those of a user are not side by side, where it has many."""
    parts, n_users = [], len(records)
    for user, record in enumerate(records):
        rows = record[:-1].reshape(MOST, -1)[: int(record[-1])]
        parts += [(user, i, row) for i, row in enumerate(rows)]
    parts.sort(key=lambda part: (part[1] > 0, part[0] if part[1] == 0 else part[1] * n_users))
    rows = np.array([row for _, _, row in parts])
    return np.array([user for user, _, _ in parts]), rows[:, :-1], rows[:, -1].astype(int)


def neighbours(records, n_classes=2, lengths=(1, 2, 7, MOST)):
    """Hostile rows of one user in the place of all that it has."""
    for user in range(4):
        _, X, y = from_records(records[user : user + 1])
        for length in lengths:
            # The other labels at the same places, all alike, and far away.
            label = np.full(length, (y[0] + 1) % n_classes)
            one = np.tile(X[:1], (length, 1))
            for rows, labels in [
                (np.resize(X, one.shape), (np.resize(y, length) + 1) % n_classes),
                (1e3 * one, label),
                (-one, label),
                (0.0 * one, label),
            ]:
                other = records.copy()
                other[user] = as_record(rows, labels)
                yield other


class OfRecords(BaseEstimator):
    """A network whose users are records, one a row, as `replay` replaces them."""

    def __init__(self, network=None, sparse=False, random_state=None, ledger=None):
        self.network, self.sparse = network, sparse
        self.random_state, self.ledger = random_state, ledger

    def fit(self, records, y=None):
        """Fit the network, or take as many calls as it lets a user have."""
        part = clone(self.network)
        part.set_params(random_state=self.random_state, ledger=self.ledger)
        self.advance(part, *from_records(records))
        self.coef_, self.node_coef_ = part.coef_, part.node_coef_
        self.guarantee_ = part.guarantee_
        return self

    def advance(self, part, ids, X, y):
        """Once."""
        part.fit(self.kind(X), y, groups=ids)

    def kind(self, X):
        return sparse.csr_array(X) if self.sparse else X

    def partial_fit(self, records, y=None):
        """Streams are replaced in their places under add-remove too; `replay` looks for it."""
        raise NotImplementedError


class InCalls(OfRecords):
    """The same users in several calls, and in one too many."""

    def advance(self, part, ids, X, y):
        for _ in range(part.max_calls_per_user + 1):
            part.partial_fit(self.kind(X), y, groups=ids)


class AfterFit(OfRecords):
    """A fit, and a call in which the same users add nothing."""

    def advance(self, part, ids, X, y):
        part.fit(self.kind(X), y, groups=ids)
        part.partial_fit(self.kind(X), y, groups=ids)


def report_of(model, ids, X, y, n_classes=2, kind=np.asarray, wrapped=OfRecords):
    """Replays of neighbours in one user."""
    records = np.array([as_record(X[ids == user], y[ids == user]) for user in np.unique(ids)])
    model.set_params(classes=list(range(n_classes)))
    model = wrapped(model, kind is not np.asarray)
    assert model.fit(records).guarantee_.unit == "user"
    others = list(neighbours(records, n_classes))
    return replay(model, records, neighbours=others, n=len(others), random_state=0)


# The claim


@each_form
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_all_rows_of_a_user_cost_the_claim_and_not_more(form, adjacency):
    # Of alike users of any number of rows the other labels are as far as can be.
    ids, X, y = people()
    y = (ids % 2).astype(int)
    X[:] = 1.0
    report = report_of(network(form, adjacency=adjacency), ids, X, y)
    assert report.passed, report
    assert report.share <= 1.0 + 1e-9
    if form in TIGHT:
        assert report.share >= 0.99, report


@each_form
@kinds
@pytest.mark.parametrize("n_classes", [2, 3])
def test_users_of_any_rows_cost_no_more(form, kind, n_classes):
    ids, X, y = people(12, n_classes, 3, seed=n_classes)
    X *= np.random.default_rng(1).choice([0.1, 1.0, 1e3], size=(len(X), 1))
    options = {} if "step" not in FORMS[form] else dict(step=1.0)
    report = report_of(network(form, **options), ids, X, y, n_classes, kind)
    assert report.passed, report
    assert report.share > 0.0


@pytest.mark.parametrize("wrapped", [InCalls, AfterFit])
@pytest.mark.parametrize("form", ["hinge", "gaussian", "laplace", "whitened"])
def test_calls_of_a_user_are_counted(form, wrapped):
    ids, X, y = people()
    y = (ids % 2).astype(int)
    X[:] = 1.0
    model = network(form, max_calls_per_user=3)
    report = report_of(model, ids, X, y, wrapped=wrapped)
    assert report.passed, report
    assert report.share <= 1.0 + 1e-9
    if wrapped is InCalls and form != "whitened":
        assert report.share >= 0.99, report
