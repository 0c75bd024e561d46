"""Replay on neighbours: whom it takes, what it finds, what it shows, and what it leaves alone."""

import re

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skdp.audit import ReplayReport, replay
from skdp.distributed import DistributedDPClassifier
from skdp.kernel import DPKernelRidge, DPOnlineKernelRegressor
from skdp.linear_model import DPLogisticRegression, MIPrivateSGDRegressor
from skdp.mechanisms import NoiseLaw, gaussian_mechanism, laplace_mechanism, release
from skdp.preprocessing import BoundedScaler
from skdp.privacy import ApproxDP, BudgetLedger, ComposedDP, GaussianDP, compose

MODEL = DPLogisticRegression(mechanism="output")
CONTAINERS = {
    "float32": lambda X: X.astype(np.float32),
    "integers": lambda X: np.rint(3 * X).astype(int),
    "lists": lambda X: X.tolist(),
    "csr": sparse.csr_array,
    "csc": sparse.csc_matrix,
    "frame": lambda X: pd.DataFrame(X, columns=list("abc")),
}


def problem(n=20, seed=0):
    X = np.random.default_rng(seed).uniform(-0.5, 0.5, (n, 3))
    return X, (X[:, 0] > 0.0).astype(int)


def mean(X, random_state=None, *, sensitivity=None, bound=1.0, epsilon=1.0):
    """Clipped mean of one column with Laplace noise."""
    values = np.clip(np.nan_to_num(np.asarray(X, dtype=float)[:, 0]), -bound, bound)
    return laplace_mechanism(
        values.mean(),
        l1_sensitivity=2.0 * bound / len(X) if sensitivity is None else sensitivity,
        guarantee=ApproxDP(epsilon),
        random_state=random_state,
    )


class Own(ClassifierMixin, BaseEstimator):
    """A user's own estimator: counts of two labels in each category of the last column."""

    def __init__(self, epsilon=1.0, categories=("a", "b"), random_state=None, sensitivity=2.0):
        self.epsilon = epsilon
        self.categories = categories
        self.random_state = random_state
        self.sensitivity = sensitivity

    def fit(self, X, y):
        last = np.asarray(X.iloc[:, -1] if hasattr(X, "iloc") else X[:, -1], dtype=object)
        y = np.asarray(y)
        self.classes_ = np.array([0, 1])
        table = [[np.sum((last == a) & (y == c)) for c in self.classes_] for a in self.categories]
        law = NoiseLaw.of("laplace", ApproxDP(self.epsilon))
        self.table_ = release(
            table, law=law, sensitivity=self.sensitivity, random_state=self.random_state
        )
        self.guarantee_ = law.guarantee
        return self


def kinds(report):
    return {finding.kind for finding in report.findings}


# Whom it takes


def test_what_releases_nothing_that_is_recorded_is_sent_to_the_black_box():
    with pytest.raises(ValueError, match=r"recorded no release.*estimate_epsilon"):
        replay(LogisticRegression(), *problem())
    with pytest.raises(ValueError, match=r"recorded no release.*estimate_epsilon"):
        replay(lambda X: X.mean() + np.random.default_rng().laplace(), problem()[0])


def test_data_that_can_be_read_once_are_refused():
    X, y = problem()
    with pytest.raises(ValueError, match=r"X must be readable more than once.*exhausted"):
        replay(MODEL, iter(X), y)
    with pytest.raises(ValueError, match="y must be readable more than once"):
        replay(MODEL, X, (label for label in y))
    with pytest.raises(ValueError, match=r"y must have one entry per row of X; got shape \(19,\)"):
        replay(MODEL, X, y[:-1])
    with pytest.raises(ValueError, match="y must have one entry per row of X"):
        replay(MODEL, X, 1)
    with pytest.raises(ValueError, match="X must have at least one row"):
        replay(MODEL, X[:0], y[:0])
    with pytest.raises(ValueError, match="X must be an array; got rows of different lengths"):
        replay(MODEL, [[1.0, 2.0], [3.0]], [0, 1])


def test_an_error_of_the_estimator_on_the_data_as_given_is_the_callers():
    X, y = problem()
    X[0, 0] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        replay(MODEL, X, y)


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_rows_come_in_any_container(container, adjacency):
    X, y = problem()
    model = DPLogisticRegression(mechanism="output", adjacency=adjacency)
    report = replay(model, CONTAINERS[container](X), y, n=30, random_state=0)
    assert report.passed, report
    assert 0.5 < report.releases[0].share <= 1.0


# Neighbours


def swapped(X, y=None, place=3):
    X = np.array(X, dtype=float)
    X[place] = -X[place]
    return X if y is None else (X, y)


@pytest.mark.parametrize("neighbours", ["worst", "random", swapped, "a list"])
def test_neighbours_are_searched_drawn_or_given(neighbours):
    X, y = problem()
    if neighbours == "a list":
        neighbours = [swapped(X, y, place) for place in range(5)]
    report = replay(MODEL, X, y, neighbours=neighbours, n=5, random_state=0)
    assert report.passed and report.n_runs >= 5
    assert 0.0 < report.releases[0].share <= 1.0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, y: (X[:, :2], y), "must have the 3 columns of X; got 2"),
        (lambda X, y: (X[1:], y[1:]), "must have 20 records, as X has, with one replaced"),
        (lambda X, y: (-X, y), "must differ in one record; got 20 changed records"),
        (lambda X, y: (X, 1 - y), "must differ in one record; got 20 changed records"),
        (lambda X, y: (swapped(swapped(X, place=1), place=7), y), "got 2 changed records"),
        (lambda X, y: (X, None), "must have targets if and only if y is given"),
        (lambda X, y: X, r"must be pairs \(X, y\) if y is given; got .* type ndarray"),
    ],
)
def test_what_is_no_neighbour_is_refused(change, message):
    X, y = problem()
    with pytest.raises(ValueError, match=message):
        replay(MODEL, X, y, neighbours=change, n=1)
    with pytest.raises(ValueError, match=message):
        replay(MODEL, X, y, neighbours=[change(X, y)], n=1)


def test_under_add_remove_neighbours_have_one_record_more_or_less():
    X, y = problem()
    model = DPLogisticRegression(mechanism="output", adjacency="add-remove")
    more = np.vstack([X, X[:1]]), np.append(y, 1 - y[0])
    less = np.delete(X, 4, axis=0), np.delete(y, 4)
    assert replay(model, X, y, neighbours=[more, less], n=2, random_state=0).passed
    for data, message in (
        (swapped(X, y), "one record more or less than the 20 of X; got 20"),
        ((X[2:], y[2:]), "one record more or less than the 20 of X; got 18"),
        ((-X[1:], y[1:]), "must differ in one record"),
    ):
        with pytest.raises(ValueError, match=message):
            replay(model, X, y, neighbours=[data], n=1)


# What it finds


def test_what_comes_out_follows_from_releases():
    X, _ = problem()

    def exact(X, random_state):
        return mean(X, random_state), X[:, 0].mean()

    def warned(X, random_state):
        if X[:, 0].max() > 1e3:
            import warnings

            warnings.warn("far", stacklevel=1)
        return mean(X, random_state)

    def twice(X, random_state):
        return [mean(X, random_state) for _ in range(1 + (X[:, 0].max() > 1e3))]

    def failing(X, random_state):
        if X[:, 0].max() > 1e3:
            raise RuntimeError("far")
        return mean(X, random_state)

    for program, kind in (
        (exact, "outcome"),
        (warned, "warning"),
        (twice, "control flow"),
        (failing, "error"),
    ):
        assert kind in kinds(replay(program, X, n=40, random_state=0)), kind


def test_noise_is_tested_on_runs_without_a_seed():
    X, _ = problem()

    def required(X, random_state):
        # With a seed all is well.
        told = mean(X, random_state)
        return told if random_state is not None else mean(X, 0)

    def fixed(X, random_state=0):
        return mean(X, random_state)

    for program in (required, fixed):
        report = replay(program, X, n=5, random_state=0)
        assert "noise" in kinds(report), program


def test_a_pipeline_that_learns_from_rows_is_flagged_and_a_public_one_passes():
    X, y = problem()
    good = replay(make_pipeline(BoundedScaler((-0.5, 0.5)), MODEL), X, y, n=48, random_state=0)
    assert good.passed, good
    assert good.claim.epsilon == 1.0 and good.share > 0.5
    bad = replay(make_pipeline(StandardScaler(), MODEL), X, y, n=48, random_state=0)
    # Its means are attributes, and queries are shifted by them.
    assert "outcome" in kinds(bad)


@pytest.mark.parametrize(
    "model",
    [
        DPKernelRidge(n_components=8, y_bounds=(-1.0, 1.0)),
        DPOnlineKernelRegressor(kernel="linear", release="sgd", y_bounds=(-1.0, 1.0)),
        MIPrivateSGDRegressor(y_bounds=(-1.0, 1.0)),
    ],
    ids=lambda model: type(model).__name__,
)
def test_regressors_are_asked_with_targets_that_are_numbers(model):
    X, _ = problem()
    report = replay(model, X, X[:, 0], n=30, random_state=0)
    assert report.passed, report
    assert 0.5 < max(tally.share for tally in report.releases) <= 1.0 + 1e-9


# What it leaves alone


def test_a_ledger_is_never_charged():
    X, y = problem()
    ledger = BudgetLedger(epsilon=3.0, delta=0.0)
    fitted = DPLogisticRegression(mechanism="output", ledger=ledger).fit(X, y)
    before, coef = ledger.history(), fitted.coef_.copy()
    report = replay(fitted, X, y, n=30, random_state=0)
    assert report.passed, report
    assert ledger.history() == before
    assert fitted.ledger is ledger and fitted.guarantee_.caveats == ()
    assert_array_equal(fitted.coef_, coef)


def test_an_estimator_that_charges_nothing_late_or_too_little_is_found():
    X, y = problem()

    class Free(DPLogisticRegression):
        def fit(self, X, y):
            ledger, self.ledger = self.ledger, None
            try:
                return super().fit(X, y)
            finally:
                self.ledger = ledger

    report = replay(Free(mechanism="output"), X, y, n=5, random_state=0)
    assert "charge" in kinds(report)


# What it shows


def test_a_report_prints_as_a_table_and_shows_no_value():
    X, y = problem()
    X[:, 1] = 0.2677712 + 1e-9 * np.arange(len(X))
    models = [
        MODEL,
        DPLogisticRegression(mechanism="gradient", adjacency="add-remove", delta=1e-4),
        DistributedDPClassifier(n_nodes=2),
        make_pipeline(StandardScaler(), MODEL),
    ]
    for model in models:
        report = replay(model, X, y, n=24, random_state=0)
        assert isinstance(report, ReplayReport)
        text = f"{report}\n{report!r}"
        assert "267771" not in text
        assert f"Replay on {report.n_runs} neighbours" in text
        for tally in report.releases:
            assert tally.where in text and re.match(r"skdp\.[\w.]+:\d+ \w+", tally.where)
        assert ("No promise was seen broken." in text) == report.passed
        assert text.count("BROKEN:") == len(report.findings)
    assert not report.passed


def test_a_claim_is_told_without_the_caveats_that_the_audit_causes():
    told = ("recorded: void", "random_state: noise can be recomputed", "of the user")

    class Doubtful(Own):
        def fit(self, X, y):
            super().fit(X, y)
            behind = ApproxDP(0.5).with_caveats(*told)
            both = ComposedDP(((behind, 1), (ApproxDP(0.5), 1)))
            self.guarantee_ = ApproxDP(1.0, refined=both)
            return self

    X, y = problem()
    X[:, -1] = 0
    report = replay(Doubtful(categories=(0, 1)), X, y, n=2, random_state=0)
    claim = report.claim
    assert claim.caveats == ("of the user",) == claim.refined.caveats
    assert [part.caveats for part, _ in claim.refined.parts] == [("of the user",), ()]
    plain = replay(MODEL, *problem(), n=2, random_state=0)
    assert plain.claim.caveats == () and "Caveat" not in str(plain)


class TestTotal:
    """What is lost together against claims that allow a delta."""

    X = np.linspace(0.0, 1.0, 12)[:, np.newaxis]

    @staticmethod
    def counts(n, epsilon):
        """Release a clipped sum ``n`` times with Laplace noise."""

        def released(X, random_state=None):
            source = None if random_state is None else np.random.RandomState(random_state)
            total = np.clip(np.nan_to_num(np.asarray(X, dtype=float)), 0.0, 1.0).sum()
            options = {"l1_sensitivity": 1.0, "guarantee": ApproxDP(epsilon)}
            return [laplace_mechanism(total, random_state=source, **options) for _ in range(n)]

        return released

    @pytest.mark.parametrize("share, kept", [(1.001, True), (0.5, False)])
    def test_a_delta_is_that_of_the_noise_and_not_of_the_worst_release(self, share, kept):
        # Laplace noise has this delta at 0.7. Randomised response has 0.19.
        delta = share * (1.0 - np.exp((0.7 - 1.0) / 2.0))
        claim = ApproxDP(0.7, delta)
        report = replay(self.counts(1, 1.0), self.X, guarantee=claim, n=24, random_state=0)
        assert report.passed == kept, report

    @pytest.mark.parametrize("divisor, kept", [(1.0, True), (4.0, False)])
    def test_claims_that_compose_better_than_by_sums_are_kept(self, divisor, kept):
        epsilon = compose([ApproxDP(0.2)] * 30).epsilon_at(1e-2)
        assert epsilon < 0.7 * 30 * 0.2
        claim = ApproxDP(epsilon / divisor, 1e-2)
        report = replay(self.counts(30, 0.2), self.X, guarantee=claim, n=24, random_state=0)
        assert report.passed == kept, report

    def test_a_point_is_not_what_is_said_to_stand_behind_it(self):
        behind = GaussianDP(2.0)
        claim = ApproxDP(1.0, 1e-5, refined=behind)

        def released(X, random_state=None):
            total = np.clip(np.nan_to_num(np.asarray(X, dtype=float)), 0.0, 1.0).sum()
            options = {"l2_sensitivity": 1.0, "guarantee": behind}
            return gaussian_mechanism(total, random_state=random_state, **options)

        found = replay(released, self.X, guarantee=claim, n=24, random_state=0).findings
        assert {finding.kind for finding in found} == {"total"}
        assert replay(released, self.X, guarantee=behind, n=24, random_state=0).passed


def test_one_number_of_fresh_noise_that_repeats_by_chance_is_no_seed():
    # Of a hundred steps of the lattice, the first two draws of this generator are one apart.
    rng = np.random.default_rng(114)

    def noisy_share(X, y):
        claim = ApproxDP(1.0)
        return laplace_mechanism(
            y.mean(), l1_sensitivity=1.0 / len(y), guarantee=claim, random_state=rng
        )

    X = np.random.default_rng(0).normal(size=(60, 3))
    y = (X[:, 0] > 0.0).astype(int)
    options = dict(neighbours="random", n=4, guarantee=ApproxDP(1.0), random_state=0)
    assert replay(noisy_share, X, y, **options).passed
