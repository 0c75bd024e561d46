"""Networks that protect users: all rows of one, however many, at one node and in a few calls."""

import copy
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from support import networks
from support.insides import Users

from skdp import config_context
from skdp.audit import replay
from skdp.distributed._gossip import GradientSums, UserRows, bounded_rows, slope_step
from skdp.engines import LocalEngine
from skdp.learner import HingeLoss, HuberHingeLoss, LogisticLoss, MulticlassHingeLoss, SoftmaxLoss
from skdp.rows._blocks import RowBlocks
from skdp.rows._sums import class_counts

FORMS = {
    "hinge": dict(paper=True, loss="hinge", batch_size=1, n_passes=1, step=2.0**-16),
    "batches": dict(paper=True, loss="hinge", batch_size=3, n_passes=2, step=2.0**-16),
    "gaussian": dict(paper=True, loss="hinge", step=2.0**-16, n_passes=3, delta=1e-3),
    "laplace": dict(paper=True, loss="hinge", step=2.0**-16, noise="laplace"),
    "log_loss": dict(paper=True, loss="log_loss", batch_size=2, n_passes=1),
    "huber_hinge": dict(paper=True, loss="huber_hinge"),
    "whitened": dict(),
    "whitened, gaussian": dict(delta=1e-3, epsilon=2.0),
    # So much that the nodes check what they have learned, and release the mean of their rows.
    "whitened, checked": dict(epsilon=1e4),
    "whitened, laplace": dict(x_l1_norm=1.0),
}
TIGHT = ("hinge", "batches", "gaussian", "laplace")
each_form = pytest.mark.parametrize("form", FORMS)
kinds = pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])


@pytest.fixture(autouse=True)
def _seeds_are_known():
    with config_context(known_seeds=True):
        yield


def network(form="hinge", **options):
    form = FORMS[form]
    ball = {"radius": 1e6} if "paper" in form else {}
    return networks.network(**{"n_nodes": 3, "random_state": 0} | ball | form | options)


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


def neighbours(records, n_classes=2, lengths=(1, 7, MOST), n_moved=3):
    """Hostile rows of one user in the place of all that it has."""
    for user in range(n_moved):
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
        # Streams are replaced in their places under add-remove too: this shows that it is one.
        self.n_samples_seen_ = part.n_samples_seen_
        return self

    def advance(self, part, ids, X, y):
        """Once."""
        part.fit(self.kind(X), y, groups=ids)

    def kind(self, X):
        return sparse.csr_array(X) if self.sparse else X


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


def report_of(model, ids, X, y, n_classes=2, kind=np.asarray, wrapped=OfRecords, n_moved=3):
    """Replays of neighbours in one user."""
    records = np.array([as_record(X[ids == user], y[ids == user]) for user in np.unique(ids)])
    model.set_params(classes=list(range(n_classes)))
    model = wrapped(model, kind is not np.asarray)
    assert model.fit(records).guarantee_.unit == "user"
    others = list(neighbours(records, n_classes, n_moved=n_moved))
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
@pytest.mark.parametrize(("kind", "n_classes"), [(np.asarray, 2), (sparse.csr_array, 3)])
def test_users_of_any_rows_cost_no_more(form, kind, n_classes, repetitions):
    ids, X, y = people(12, n_classes, 3, seed=n_classes)
    X *= np.random.default_rng(1).choice([0.1, 1.0, 1e3], size=(len(X), 1))
    options = {} if "step" not in FORMS[form] else dict(step=1.0)
    n_moved = repetitions(3, 1)
    report = report_of(network(form, **options), ids, X, y, n_classes, kind, n_moved=n_moved)
    assert report.passed, report
    assert report.share > 0.0


@pytest.mark.parametrize("wrapped", [InCalls, AfterFit])
@pytest.mark.parametrize("form", ["hinge", "gaussian", "laplace", "whitened"])
def test_calls_of_a_user_are_counted(form, wrapped):
    ids, X, y = people()
    y = (ids % 2).astype(int)
    X[:] = 1.0
    model = network(form, max_calls_per_user=3)
    report = report_of(model, ids, X, y, wrapped=wrapped, n_moved=1)
    assert report.passed, report
    assert report.share <= 1.0 + 1e-9
    if wrapped is InCalls and form != "whitened":
        assert report.share >= 0.99, report


# Sums


LOSSES = {
    "hinge": HingeLoss(),
    "log": LogisticLoss(),
    "huber": HuberHingeLoss(0.3),
    "multi hinge": MulticlassHingeLoss(3),
    "multi log": SoftmaxLoss(3),
}


class Update:
    """What sums read of an update."""

    per_user = True

    def __init__(self, loss):
        self.loss, self.slope_step = loss, slope_step(loss, True)


def user_sums(loss, X, codes, users, points, block, kind=np.asarray, x_norm=1.0):
    """Sums of one round."""
    update, owners = Update(loss), UserRows(users)
    taken, counts = owners.taken(block)
    rows = bounded_rows(kind(X[taken]), x_norm, None, 0.25, 2.0**-10)
    noisy = np.zeros_like(points)
    sums = GradientSums(rows, codes[taken], owners.shares[taken], counts, update)
    sums.add_to(0, points, noisy)
    return noisy


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
@kinds
@pytest.mark.parametrize("seed", range(3))
def test_a_user_adds_exact_multiples_and_no_more_than_a_row_may(loss, kind, seed):
    rng = np.random.default_rng(seed)
    n_users, n_classes = 20, max(2, loss.n_outputs)
    codes = np.concatenate([np.arange(n_users), rng.integers(0, n_users, 400)])
    users = Users(codes, n_users)
    X = rng.normal(size=(len(codes), 3)) * rng.choice([0.1, 1e3], size=(len(codes), 1))
    X[codes < 5] = X[0]  # some have rows that are all alike
    labels = rng.integers(0, n_classes, len(codes))
    labels[codes < 5] = 0
    points = 1e3 * rng.normal(size=(1, loss.n_outputs * 4))
    step = Fraction(slope_step(loss, True) * 2.0**-10)
    bound = Fraction(loss.lipschitz) ** 2 * Fraction(1 + 0.25**2)
    alone = []
    for user in range(n_users):
        one = user_sums(loss, X, labels, users, points, np.array([[[user]]]), kind)
        exact = [Fraction(value) for value in one.ravel()]
        assert all((value / step).denominator == 1 for value in exact)
        assert sum(value * value for value in exact) <= bound
        alone.append(one)
    together = user_sums(loss, X, labels, users, points, np.arange(n_users)[None, None], kind)
    assert_array_equal(together, np.sum(alone, axis=0))


@kinds
def test_counts_of_users_are_shares_that_add_up_to_one(kind):
    rng = np.random.default_rng(0)
    codes = np.concatenate([np.arange(7), rng.integers(0, 7, 5000)])
    X, labels = rng.normal(size=(len(codes), 3)), rng.integers(0, 3, len(codes))
    data = RowBlocks(kind(X), labels, x_norm=1.0, constant=0.3, users=Users(codes, 7))
    counts = class_counts(data, 3)
    expected = [
        np.bincount(labels[codes == u], minlength=3) / (codes == u).sum() for u in range(7)
    ]
    assert_allclose(counts, np.sum(expected, axis=0), atol=1e-3)
    assert counts.sum() <= 7.0
    binary = RowBlocks(kind(X), labels % 2, x_norm=1.0, constant=0.3, users=Users(codes, 7))
    assert 0.0 < class_counts(binary, 1)[0] < 7.0


# Who is whose


@each_form
def test_the_order_of_rows_and_how_they_are_named_do_not_matter(form):
    ids, X, y = people(12, 2, 3)
    model = network(form).fit(X, y, groups=ids)
    order = np.argsort(ids, kind="stable")  # first appearance is in the order of ids
    names = np.array([f"user {i}" for i in ids])
    dates = np.datetime64("2020-01-01") + ids
    for other in (names, dates, names.astype(object), ids.astype(float)):
        again = network(form).fit(X[order], y[order], groups=other[order])
        tolerance = 0.0 if "paper" in FORMS[form] else 1e-6
        assert_allclose(again.node_coef_, model.node_coef_, rtol=tolerance, atol=tolerance)


@each_form
def test_rows_of_a_user_that_come_twice_change_nothing(form):
    ids, X, y = people(12, 2, 3, most=4)
    model = network(form).fit(X, y, groups=ids)
    again = network(form).fit(np.tile(X, (8, 1)), np.tile(y, 8), groups=np.tile(ids, 8))
    for name in ("n_rounds_", "n_samples_seen_", "guarantee_"):
        assert getattr(again, name) == getattr(model, name)
    scale = np.abs(model.node_coef_).max()
    assert_allclose(again.node_coef_, model.node_coef_, atol=2e-3 * scale)


def test_users_and_not_rows_are_counted():
    ids, X, y = people(10, 2, 3)
    model = network("batches").fit(X, y, groups=ids)
    # Ten users of three nodes, in batches of three and two passes.
    assert model.n_rounds_ == 4 and model.n_samples_seen_ == 20
    assert (model.guarantee_.epsilon, model.guarantee_.unit) == (1.0, "user")
    node = model.node_guarantee()
    assert node.unit == "node" and node.epsilon == pytest.approx(4.0)
    with pytest.raises(ValueError, match="groups must be None in fit"):
        model.user_guarantee(3)
    kept = network("batches", keep_iterates=True).fit(X, y, groups=ids)
    with pytest.raises(ValueError, match="groups must be None in fit for a regret"):
        kept.regret(X, y)


# Nodes


def test_users_are_dealt_in_turn_and_stay_where_they_are():
    ids, X, y = people(7, 2, 3)
    turn = network(n_passes=1).fit(X, y, groups=ids)
    given = network(n_passes=1).fit(X, y, node=ids % 3, groups=ids)
    assert_array_equal(turn.node_coef_, given.node_coef_)
    assert_array_equal(turn._stream.rows_of, [3, 2, 2])
    stream = network(classes=[0, 1], max_calls_per_user=5)
    stream.partial_fit(X[:3], y[:3], groups=[0, 1, 2])
    stream.partial_fit(X[:2], y[:2], groups=[4, 1])  # a new one, and one who has a node
    assert_array_equal(stream._stream.rows_of, [2, 2, 1])
    stream.partial_fit(X[:2], y[:2], groups=[4, 1], node=[0, 1])
    with pytest.raises(ValueError, match="groups must have a user at one node in all calls"):
        stream.partial_fit(X[:2], y[:2], groups=[4, 1], node=[0, 2])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (dict(groups=[1, 1, 2, 2], node=[0, 0, 1, 2]), "rows of a user at one node"),
        (dict(groups=[1, 1, 2]), "one ID per row"),
        (dict(groups=[1, 1, 2, None]), "an ID is missing"),
        (dict(groups=[1, 1, 2, 2], node=[0, 0, 1]), "node must have one int per row; got"),
    ],
    ids=str,
)
@pytest.mark.parametrize("form", ["hinge", "whitened"])
def test_what_is_no_owner_of_rows_is_refused(form, options, message):
    ids, X, y = people(4, 2, 3, most=1)
    model = network(form).fit(X, y, groups=ids)
    coef = model.coef_
    with pytest.raises(ValueError, match=message):
        model.fit(X, y, **options)
    assert model.coef_ is coef
    # Numbers of rows are private.
    with pytest.raises(ValueError) as error:
        model.fit(X, y[:3], groups=ids)
    assert "4" not in str(error.value) and "3" not in str(error.value)


# Calls


def one_of(ids, X, y, *users):
    kept = np.isin(ids, users)
    return dict(X=X[kept], y=y[kept], groups=ids[kept])


def test_a_call_that_fails_half_way_is_one(monkeypatch):
    def breaks(*_):
        raise RuntimeError("no power")

    ids, X, y = people(6, 2, 3)
    models = []
    for sign in (1.0, -1.0):
        model = network(classes=[0, 1]).partial_fit(**one_of(ids, X, y, 0, 1))
        with monkeypatch.context() as patch:
            patch.setattr(LocalEngine, "exchange", breaks)
            with pytest.raises(RuntimeError):
                model.partial_fit(**one_of(ids, X, y, 2, 3))
        # Users 2 and 3 have had their call, and user 4 has not.
        rows = one_of(ids, X, y, 2, 3, 4)
        rows["X"] = np.where(rows["groups"][:, None] == 4, 1.0, sign) * rows["X"]
        models.append(model.partial_fit(**rows))
    assert_array_equal(models[0].node_coef_, models[1].node_coef_)
    other = network(classes=[0, 1]).partial_fit(**one_of(ids, X, y, 0, 1))
    other.partial_fit(**one_of(ids, X, y, 2, 3, 4))
    assert (models[0].node_coef_ != other.node_coef_).any()


def test_groups_are_of_all_calls_or_of_none():
    ids, X, y = people(6, 2, 3)
    for first, second in [(ids, None), (None, ids)]:
        for begin in ("fit", "partial_fit"):
            model = network(classes=[0, 1])
            getattr(model, begin)(X, y, groups=first)
            with pytest.raises(ValueError, match="groups must be given in all calls"):
                model.partial_fit(X, y, groups=second)
            model.fit(X, y, groups=second)
    for second in (ids.astype(str), np.datetime64("2020-01-01") + ids):
        model = network(classes=[0, 1]).partial_fit(X, y, groups=ids)
        with pytest.raises(ValueError, match="groups must have IDs of one type"):
            model.partial_fit(X, y, groups=second)


def test_a_pipeline_routes_groups():
    ids, X, y = people(9, 2, 3)
    with config_context(known_seeds=True), sklearn.config_context(enable_metadata_routing=True):
        model = network("hinge").set_fit_request(groups=True, node=True)
        model = model.set_partial_fit_request(groups=True)
        steps = make_pipeline(FunctionTransformer(), model).fit(X, y, groups=ids, node=ids % 3)
    alone = network("hinge").fit(X, y, groups=ids, node=ids % 3)
    assert_array_equal(steps[-1].node_coef_, alone.node_coef_)
    assert steps[-1].guarantee_.unit == "user"


@pytest.mark.parametrize(
    "copied", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))]
)
def test_a_copy_remembers_who_has_come(copied):
    ids, X, y = people(6, 2, 3)
    models = []
    for sign in (1.0, -1.0):
        model = network(classes=[0, 1]).partial_fit(X, y, groups=ids)
        models.append(copied(model).partial_fit(sign * X, y, groups=ids))
    assert_array_equal(models[0].node_coef_, models[1].node_coef_)
