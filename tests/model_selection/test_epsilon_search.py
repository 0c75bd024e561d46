import math
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from dp_accounting import GaussianDpEvent, SelfComposedDpEvent
from dp_accounting.pld import PLDAccountant
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.preprocessing import Normalizer

from skdp.exceptions import BudgetExceededError
from skdp.kernel import DPKernelRidge
from skdp.linear_model import DPLogisticRegression
from skdp.model_selection import DPEpsilonSearch
from skdp.pipeline import DPPipeline
from skdp.preprocessing import DPQuantileScaler
from skdp.privacy import ApproxDP, BudgetLedger, GaussianDP, gaussian_mu

N = 4000  # of which 1000 score


def rows(n=N, seed=0, flipped=0.1):
    """Rows of which a straight line tells the label, but for those that are flipped."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, 3)) / math.sqrt(3)
    return X, ((X[:, 0] > 0) ^ (rng.random(n) < flipped)).astype(int)


def search(target=0.8, *, estimator=None, **options):
    estimator = DPLogisticRegression() if estimator is None else estimator
    options = {"epsilons": [0.05, 0.2, 1.0, 4.0], "random_state": 0, **options}
    return DPEpsilonSearch(estimator, target, **options)


class Blunt(DPLogisticRegression):
    """A model that is of no use below a public epsilon, and counts how often it was fitted."""

    fits: list = []  # noqa: RUF012
    useful = 0.5

    def fit(self, X, y):
        super().fit(X, y)
        if self.ledger is None:
            self.fits.append(self.epsilon)
            if self.epsilon < self.useful:
                self.coef_ = -np.abs(self.coef_)
        return self


@pytest.fixture
def blunt():
    Blunt.fits = []
    return Blunt()


@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_the_search_stops_at_the_first_epsilon_that_does(delta, blunt):
    epsilons = [0.1, 0.3, 0.9, 2.7]
    X, y = rows()
    found = DPEpsilonSearch(blunt, 0.7, epsilons=epsilons, delta=delta, random_state=0).fit(X, y)
    assert Blunt.fits == epsilons[:3] == [stage.epsilon for stage in found.stages_]
    assert found.reached_ and found.best_epsilon_ == found.best_estimator_.epsilon == 0.9
    last = found.stages_[-1]
    assert found.best_score_ == last.score and 0.7 + last.standard_error / 2 <= last.score < 0.95
    assert all(stage.score < 0.5 for stage in found.stages_[:2])
    assert found.score(X, y) == found.best_estimator_.score(X, y) > 0.85
    spent = [stage.spent for stage in found.stages_]
    assert spent == sorted(spent) and spent[-1] == found.spent_.epsilon
    assert found.spent_.epsilon < 0.5 * found.guarantee_.epsilon


@pytest.mark.parametrize(("delta", "margin"), [(0.0, 0.5), (1e-5, 1.0)])
def test_a_score_within_its_error_of_the_target_is_not_enough(delta, margin):
    X, y = rows()
    one = dict(epsilons=[1.0], delta=delta)
    given = search(**one).fit(X, y).stages_[0]
    at = given.score - margin * given.standard_error
    assert search(at - 1e-9, **one).fit(X, y).reached_
    with pytest.warns(UserWarning, match=r"No stage reached target_score=.*epsilon=1 and"):
        assert not search(at + 1e-9, **one).fit(X, y).reached_


def test_standard_errors_are_of_noise_and_sampling_together():
    X, y = rows()
    scores = []
    for seed in range(30):
        order = np.random.default_rng(seed).permutation(N)
        found = search(0.01, epsilons=[0.05], random_state=seed).fit(X[order], y[order])
        model = found.best_estimator_
        # The scores of this model on rows like those that scored it, and on all that there are.
        scores.append((found.best_score_ - model.score(*rows(20_000, 1)), found.stages_[0]))
    off = np.array([score / stage.standard_error for score, stage in scores])
    assert 0.6 < off.std() < 1.5 and abs(off.mean()) < 0.8


# What it costs


def by_others(mus, delta):
    """Epsilon of Gaussian releases by an accountant that is not ours."""
    accountant = PLDAccountant()
    for mu in mus:
        accountant.compose(SelfComposedDpEvent(GaussianDpEvent(1.0 / mu), 1))
    return accountant.get_epsilon(delta)


def test_what_was_spent_is_what_an_accountant_of_others_says():
    X, y = rows()
    found = search(0.85, delta=1e-5, random_state=3).fit(X, y)
    mus = [gaussian_mu(epsilon=stage.epsilon, delta=1e-5) for stage in found.stages_]
    assert 1 < len(mus) < 4
    # A record of either part lost the same: that of all fits, or that of all scores.
    assert found.spent_.delta == 1e-5 / 4
    assert_allclose(found.spent_.epsilon, by_others(mus, 1e-5 / 4), rtol=1e-3)
    assert_allclose(found.spent_.to_gdp().mu, math.sqrt(sum(mu * mu for mu in mus)))
    every = [gaussian_mu(epsilon=epsilon, delta=1e-5) for epsilon in (0.05, 0.2, 1.0, 4.0)]
    assert found.guarantee_.delta == 1e-5
    assert_allclose(found.guarantee_.epsilon, by_others(every, 1e-5), rtol=1e-3)
    pure = search(0.87, random_state=3, epsilons=[0.02, 0.1, 0.4, 4.73]).fit(X, y)
    epsilons = [stage.epsilon for stage in pure.stages_]
    assert 1 < len(epsilons) < 4 and pure.spent_.delta == 0.0
    assert_allclose(pure.spent_.epsilon, sum(epsilons))
    assert_allclose(pure.guarantee_.epsilon, 5.25)


@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_the_ledger_holds_what_was_spent(delta):
    ledger = BudgetLedger(epsilon=50.0, delta=delta)
    ledger.charge(ApproxDP(0.1) if delta == 0.0 else GaussianDP(0.1))
    X, y = rows()
    found = search(0.85, delta=delta, random_state=None, ledger=ledger).fit(X, y)
    counted = [record.guarantee for record in ledger.history() if not record.is_replaced]
    (entry,) = counted[1:]
    assert len(ledger.history()) == 1 + len(found.stages_)
    assert [record.label for record in ledger.history()[1:]] == ["DPEpsilonSearch"] * len(
        found.stages_
    )
    if delta == 0.0:
        assert entry.epsilon == found.spent_.epsilon
    else:
        assert entry.mu == found.spent_.to_gdp().mu
        at = entry.epsilon_at(found.spent_.delta)
        assert_allclose(at, found.spent_.epsilon)


def test_a_ledger_that_cannot_bear_all_stages_is_not_charged():
    ledger = BudgetLedger(epsilon=2.0)
    X, y = rows()
    with pytest.raises(
        BudgetExceededError, match=r"Asked: 4 stages.* the first 3, up to epsilon=1[.]"
    ):
        search(0.6, random_state=None, ledger=ledger).fit(X, y)
    with pytest.raises(
        BudgetExceededError, match=r"Asked: .*Left: nothing with a delta.*Search with delta=0[.]"
    ):
        search(0.6, delta=1e-5, random_state=None, ledger=ledger).fit(X, y)
    assert ledger.history() == []
    ledger = BudgetLedger(epsilon=0.01)
    with pytest.raises(BudgetExceededError, match="Left: enough for none of them"):
        search(0.6, random_state=None, ledger=ledger).fit(X, y)


def test_an_interrupted_search_stays_charged_and_leaves_the_old_model(blunt, monkeypatch):
    X, y = rows()
    ledger = BudgetLedger(epsilon=50.0)
    found = DPEpsilonSearch(blunt, 0.7, epsilons=[0.1, 0.3, 0.9], ledger=ledger)
    before = dict(vars(found.fit(X, y)))
    spent = ledger.spent().epsilon
    original = Blunt.fit

    def interrupted(self, X, y):
        if self.ledger is None and self.epsilon == 0.3:
            raise KeyboardInterrupt
        return original(self, X, y)

    monkeypatch.setattr(Blunt, "fit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        found.fit(X, y)
    assert vars(found) == before
    assert_allclose(ledger.spent().epsilon - spent, 0.1 + 0.3)


def test_others_who_charge_between_stages_end_the_search(blunt, monkeypatch):
    X, y = rows()
    ledger = BudgetLedger(epsilon=10.0)
    found = DPEpsilonSearch(blunt, 0.7, epsilons=[0.1, 0.3, 0.9], ledger=ledger)
    original = Blunt.fit

    def meanwhile(self, X, y):
        if self.ledger is None and self.epsilon == 0.3:
            ledger.charge(ApproxDP(9.0), label="somebody else")
        return original(self, X, y)

    monkeypatch.setattr(Blunt, "fit", meanwhile)
    with pytest.raises(BudgetExceededError, match=r"Asked: .* Nothing was charged"):
        found.fit(X, y)
    assert not hasattr(found, "stages_")
    assert_allclose(ledger.spent().epsilon, 9.4)


# The grid


@pytest.mark.parametrize("delta", [0.0, 1e-5])
@pytest.mark.parametrize("most", [0.7, 3.0])
def test_automatic_epsilons_begin_above_the_noise_and_cost_at_most_what_is_said(delta, most):
    X, y = rows(8000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        found = search(0.99, epsilons="auto", max_epsilon=most, delta=delta).fit(X, y)
    assert 0.99 * most < found.guarantee_.epsilon <= most
    epsilons = np.array([stage.epsilon for stage in found.stages_])
    if delta == 0.0:
        assert_allclose(epsilons[1:] / epsilons[:-1], math.e, rtol=2e-3)
        assert 0.4 / 3 < math.sqrt(2.0) / epsilons[0] / math.sqrt(1600) <= 0.401
    else:
        mus = np.array([gaussian_mu(epsilon=epsilon, delta=delta) for epsilon in epsilons])
        assert_allclose(mus[1:] / mus[:-1], 2.0, rtol=2e-3)
        assert 0.4 / 2 < 1.0 / mus[0] / math.sqrt(1600) <= 0.401


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (dict(target=1.0), "target_score must be above 0 and below 1, .*'accuracy'"),
        (dict(target=0.5, scoring="neg_log_loss"), "target_score must be above -5 and below 0"),
        (dict(scoring="r2"), "scoring must have a bounded range"),
        (dict(epsilons=[0.5, 0.2]), r"epsilons must .* be followed by at least 1; got 0\.2"),
        (dict(epsilons=[0.5, 0.9]), "epsilons must be such that epsilons at least double"),
        (dict(epsilons=[0.5, 1.0], delta=1e-5), r"must be followed by at least 1\.0\d+; got 1\.0"),
        (dict(epsilons=[]), "epsilons must be 'auto' or a non-empty list"),
        (dict(blocks=1.0), "blocks must be 'auto' or a number between 0 and 1; got 1.0"),
        (dict(blocks=1e-3), "X must have more rows than n_samples=400: .* have 0 and needs 2"),
        (dict(adjacency="add-remove"), "row_key must be given"),
        (
            dict(adjacency="add-remove", epsilons="auto", row_key=0),
            "epsilons must be given under adjacency='add-remove'",
        ),
        (dict(classes=[0, 2]), "classes"),
        (
            dict(estimator=DPLogisticRegression(epsilon=0.5)),
            "epsilon of estimator must be the def",
        ),
        (dict(estimator=Normalizer()), "estimator must be a private estimator"),
        (dict(estimator=DPKernelRidge(release="query", n_queries=9)), "must not answer by query"),
        (dict(estimator=DPKernelRidge(y_bounds="auto"), scoring="r2"), "y_bounds must be"),
        (dict(estimator=search()), "estimator must be a private estimator"),
    ],
)
def test_what_cannot_be_done_is_refused_before_the_charge(options, told):
    ledger = BudgetLedger(epsilon=50.0, delta=0.1)
    found = search(**{"random_state": None, "ledger": ledger, **options})
    X, y = rows(400)
    before = dict(vars(found))
    with pytest.raises(ValueError, match=told):
        found.fit(X, y)
    assert ledger.history() == [] and vars(found) == before


# What it can be asked


def test_rows_may_be_added_where_a_key_says_which_part_they_are_in():
    X, y = rows()
    X = np.column_stack([X, np.arange(N) / N])
    found = search(0.7, adjacency="add-remove", row_key=3).fit(X, y)
    assert found.reached_ and found.resolution_ is None
    assert found.guarantee_.adjacency == found.spent_.adjacency == "add-remove"
    assert found.best_estimator_.adjacency == "add-remove"


def test_nothing_of_the_models_that_did_not_do_is_kept(blunt, monkeypatch):
    X, y = rows()
    coefs = []
    original = Blunt.fit

    def noted(self, X, y):
        fitted = original(self, X, y)
        if self.ledger is None:
            coefs.append(self.coef_.copy())
        return fitted

    monkeypatch.setattr(Blunt, "fit", noted)
    found = DPEpsilonSearch(blunt, 0.7, epsilons=[0.1, 0.3, 0.9], random_state=0).fit(X, y)
    kept = pickle.dumps(found)
    *others, last = coefs
    assert all(number.tobytes() in kept for number in last[0])
    assert len(others) == 2
    assert not any(number.tobytes() in kept for each in others for number in each[0])
    again = pickle.loads(kept)
    assert np.array_equal(again.predict(X), found.predict(X))
    assert vars(clone(found)).keys() == found.get_params(deep=False).keys()


def test_a_record_is_learned_from_or_scored_and_never_both(blunt, monkeypatch):
    X, y = rows()
    X[:, 2] = np.arange(N) / (2 * N)
    learned, scored = [], []
    original = Blunt.fit

    def noted(self, X, y):
        if self.ledger is None:
            learned.append(X[:, 2].copy())
        return original(self, X, y)

    def predicted(self, X):
        scored.append(X[:, 2].copy())
        return DPLogisticRegression.predict(self, X)

    monkeypatch.setattr(Blunt, "fit", noted)
    monkeypatch.setattr(Blunt, "predict", predicted, raising=False)
    search(0.7, estimator=blunt, epsilons=[0.1, 0.3, 0.9]).fit(X, y)
    assert len(learned) == len(scored) == 3
    for here, there in zip(learned, scored, strict=True):
        assert np.array_equal(here, learned[0]) and np.array_equal(there, scored[0])
    # Blocks that are asked about are filled up with copies of a row.
    assert (len(learned[0]), len(scored[0]), len(set(scored[0]))) == (3200, 1024, 800)
    assert set(learned[0]).isdisjoint(scored[0])


def test_what_it_tells_on_the_way_is_released(capsys):
    X, y = rows()
    found = search(0.8, verbose=True, epsilons="auto").fit(X, y)
    first, *others = capsys.readouterr().out.splitlines()
    assert first.startswith("800 rows score: steps below 0.01")
    assert first.endswith(f"all stages together cost {found.guarantee_.epsilon:.6g}.")
    assert len(others) == len(found.stages_)
    assert all(
        f"epsilon {stage.epsilon:.6g}: {stage.score:.4g}" in line
        for stage, line in zip(found.stages_, others, strict=True)
    )
    view = found._repr_html_()
    assert f">{found.best_epsilon_:.4g}</td>" in view
    assert ">standard error</th>" in view
    assert "DPLogisticRegression" in search()._repr_html_()


def test_other_scorings_and_estimators_are_searched():
    X, y = rows()
    targets = {"roc_auc": 0.7, "neg_log_loss": -0.65, "balanced_accuracy": 0.7}
    targets |= {"average_precision": 0.7, "precision": 0.6, "recall": 0.6}
    for scoring, target in targets.items():
        assert search(target, scoring=scoring).fit(X, y).reached_
    t = np.clip(X[:, 0] + 0.05 * np.random.default_rng(1).normal(size=N), -1, 1)
    ridge = DPKernelRidge(kernel="linear", y_bounds=(-1.0, 1.0))
    found = DPEpsilonSearch(ridge, 0.5, epsilons=[0.3, 2.0, 8.0], delta=1e-5, random_state=0)
    assert found.fit(X, t).reached_ and found.predict(X).shape == (N,)
    steps = [
        ("bounds", DPQuantileScaler()),
        ("length", Normalizer()),
        ("m", DPLogisticRegression()),
    ]
    found = DPEpsilonSearch(DPPipeline(steps), 0.7, max_epsilon=6.0, delta=1e-5, random_state=0)
    frame = pd.DataFrame(X, columns=list("abc"))
    assert found.fit(frame, y).reached_
    assert found.guarantee_.epsilon <= 6.0
    assert found.feature_names_in_.tolist() == list("abc")
    assert found.predict(frame).shape == (N,)
