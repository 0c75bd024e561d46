"""Reports for whoever answers for the data: by the schema, and of public numbers alone."""

import json
import math
import pickle
import re
import struct

import numpy as np
import pytest
from jsonschema import Draft202012Validator
from numpy.testing import assert_allclose
from scipy.stats import norm
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from skdp import config_context
from skdp.audit import recording
from skdp.distributed import DistributedDPClassifier
from skdp.inspection import privacy_report, report_schema
from skdp.inspection._report_texts import best_guess, largest_posterior, power_of_tests
from skdp.kernel import DPKernelRidge, DPOnlineKernelRegressor
from skdp.linear_model import DPLinearSVC, DPLogisticRegression, MIPrivateSGDRegressor
from skdp.metrics import dp_evaluate
from skdp.model_selection import DPEpsilonSearch, DPGridSearch, DPRandomizedSearch
from skdp.pipeline import DPPipeline
from skdp.preprocessing import DPQuantileScaler
from skdp.privacy import ApproxDP, BudgetLedger, GaussianDP

VALIDATOR = Draft202012Validator(report_schema())


def rows(n=2000):
    X = np.random.default_rng(0).uniform(-1, 1, size=(n, 3))
    return X, X[:, 0] > 0


def model_of(kind):
    """A fitted thing of a kind, with the keywords that its report takes."""
    X, y = rows()
    target, logistic = X[:, 0], DPLogisticRegression()
    if kind == "svc":
        return DPLinearSVC(delta=1e-6, adjacency="add-remove").fit(X, y)
    if kind == "pipeline":
        steps = [("bounds", DPQuantileScaler()), ("norm", Normalizer()), ("model", logistic)]
        return DPPipeline(steps, epsilon=2.0, delta=1e-6).fit(X, y)
    if kind == "sklearn pipeline":
        return make_pipeline(Normalizer(), logistic).fit(X, y)
    if kind == "frozen":
        return FrozenEstimator(logistic.fit(X, y))
    if kind == "grid search":
        return DPGridSearch(logistic, {"C": [1.0, 10.0]}, epsilon=2.0, delta=1e-6).fit(X, y)
    if kind == "randomized search":
        return DPRandomizedSearch(logistic, {"C": [1.0, 9.0]}, epsilon=4.0, delta=1e-6).fit(X, y)
    if kind == "epsilon search":
        options = dict(target_score=0.6, epsilons=[0.5, 1.2], delta=1e-6)
        return DPEpsilonSearch(logistic, **options).fit(X, y)
    if kind == "search of scikit-learn":
        return GridSearchCV(logistic, {"C": [1.0, 10.0]}, cv=KFold(2)).fit(X, y)
    if kind == "kernel":
        return DPKernelRidge(delta=1e-6, y_bounds=(-1, 1)).fit(X, target)
    if kind == "queries":
        options = dict(delta=1e-6, y_bounds=(-1, 1), release="query", n_queries=7)
        return DPKernelRidge(**options).fit(X, target)
    if kind in ("chunk", "final", "sgd", "tree", "matrix"):
        more = {"horizon": 5000} if kind in ("tree", "matrix") else {}
        options = dict(delta=1e-6, y_bounds=(-1, 1), release=kind, **more)
        return DPOnlineKernelRegressor(**options).fit(X, target).partial_fit(X, target)
    if kind == "released":
        stream = DPOnlineKernelRegressor(delta=1e-6, y_bounds=(-1, 1)).fit(X, target)
        return stream.released()
    if kind == "network":
        return DistributedDPClassifier(topology="ring", n_nodes=4, delta=1e-6).fit(X, y)
    if kind == "local":
        return MIPrivateSGDRegressor(mi_budget=0.1, y_bounds=(-1, 1)).fit(X, target)
    if kind == "evaluation":
        return dp_evaluate(logistic.fit(X, y), X, y, epsilon=0.5)
    return logistic.fit(X, y)


KINDS = {
    "linear": "estimator",
    "svc": "estimator",
    "kernel": "estimator",
    "queries": "estimator",
    "frozen": "estimator",
    "pipeline": "pipeline",
    "sklearn pipeline": "pipeline",
    "grid search": "search",
    "randomized search": "search",
    "epsilon search": "search",
    "search of scikit-learn": "search",
    "final": "stream",
    "sgd": "stream",
    "tree": "stream",
    "matrix": "stream",
    "released": "stream",
    "network": "network",
    "local": "local",
    "evaluation": "evaluation",
}


@pytest.mark.filterwarnings("ignore:.*reached the target")
@pytest.mark.parametrize("kind", KINDS)
def test_reports_of_all_kinds_keep_to_the_schema_and_can_be_read(kind, tmp_path):
    public = ("scores",) if kind == "search of scikit-learn" else ()
    report = privacy_report(model_of(kind), public=public)
    VALIDATOR.validate(json.loads(report.to_json()))
    assert report.data["subject"]["kind"] == KINDS[kind]
    for told in (str(report), report.to_markdown(), report.to_html(), report._repr_html_()):
        assert "NIST SP 800-226" in told
    # No name in a text was left unfilled; parameters may be dicts.
    assert not re.search(r"\{[a-z_.(]+[)}]", re.sub(r"\{'.*?\}", "", report.to_text()))
    for suffix in ("txt", "md", "html", "json"):
        report.save(tmp_path / f"report.{suffix}")
        assert (tmp_path / f"report.{suffix}").stat().st_size > 2000
    purposes = [row["purpose"] for row in report.data["releases"]]
    assert purposes and "a noisy answer" not in purposes
    shares = [row["share"] for row in report.data["releases"]]
    if None not in shares and KINDS[kind] != "search":
        assert_allclose(sum(shares), 1.0)


def test_the_schema_is_one_and_refuses_what_is_not_in_it():
    Draft202012Validator.check_schema(report_schema())
    data = privacy_report(model_of("linear")).data
    for wrong in ({"version": "2.0"}, {"headline": ""}, {"attacker": {}}, {"secret": 1}):
        assert list(VALIDATOR.iter_errors(data | wrong))


@pytest.mark.parametrize("other", [3, "model", ApproxDP(1.0), DPLogisticRegression])
def test_what_is_no_model_has_no_report(other):
    with pytest.raises(ValueError, match="fitted must be a fitted estimator"):
        privacy_report(other)


# What an attacker can do


@pytest.mark.parametrize("mu", [0.05, 0.3, 1.0, 3.0])
def test_numbers_of_attackers_are_those_of_a_gaussian_release(mu):
    guarantee = GaussianDP(mu)
    power = norm.cdf(norm.ppf(0.05) + mu)
    assert_allclose(power_of_tests(guarantee, 0.05), power, rtol=1e-6)
    assert power_of_tests(guarantee, 0.05) >= power * (1 - 1e-12)
    for prior in (0.01, 0.1, 0.5):
        # The suspicion is true with probability `prior`; the rule compares posteriors.
        edge = math.log((1 - prior) / prior)
        right = prior * norm.sf(edge / mu - mu / 2) + (1 - prior) * norm.cdf(edge / mu + mu / 2)
        assert_allclose(best_guess(guarantee, prior), right, rtol=1e-9)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_numbers_of_attackers_are_those_of_randomised_response(epsilon):
    guarantee, truth = ApproxDP(epsilon), math.exp(epsilon) / (1 + math.exp(epsilon))
    for prior in (0.01, 0.1, 0.5):
        yes = prior * truth / (prior * truth + (1 - prior) * (1 - truth))
        assert_allclose(largest_posterior(guarantee, prior), yes, rtol=1e-9)
        right = max(truth, 1 - prior)  # who follows the answer, or never believes
        assert_allclose(best_guess(guarantee, prior), right, rtol=1e-9)
    # Of tests by the answer with a level of 5 %: randomised between "yes" and "never".
    lie = 1 - truth
    power = 0.05 / lie * truth if lie > 0.05 else truth + (0.05 - lie) / truth * lie
    assert_allclose(power_of_tests(guarantee, 0.05), power, rtol=1e-5)


# Public numbers alone


def test_a_report_knows_nothing_of_the_rows():
    """Fits of neighbours with the same noise have the same report, but for what is released."""
    X, y = rows(500)
    other = X.copy()
    other[0], target = -X[0], X[:, 0]
    with config_context(known_seeds=True):
        for model, labels in (
            (DPLogisticRegression(random_state=0), y),
            (DPLogisticRegression(random_state=0, mechanism="output"), y),
            (DPKernelRidge(random_state=0, y_bounds=(-1, 1), mechanism="output"), target),
        ):
            told = [privacy_report(model.fit(data, labels)).to_json() for data in (X, other)]
            assert told[0] == told[1]


def exact_numbers(transcript):
    """What was asked for before noise was added, without numbers of few digits."""
    for record in transcript:
        for name in ("asked", "linear", "utilities"):
            values = np.ravel(getattr(record, name, ())).astype(float)
            yield from (value for value in values[:2000].tolist() if len(repr(value)) > 8)


@pytest.mark.filterwarnings("ignore:.*reached the target")
@pytest.mark.parametrize("kind", sorted(set(KINDS) - {"search of scikit-learn", "queries"}))
def test_no_exact_number_is_in_a_report_or_stays_with_the_model(kind):
    with recording() as transcript:
        model = model_of(kind)
    exact = set(exact_numbers(transcript))
    assert exact or kind in ("pipeline", "local")
    report = privacy_report(model).to_json()
    steps = [getattr(step, "_facts", ()) for step in vars(model).get("steps_", ())]
    kept = pickle.dumps([getattr(model, "_facts", ()), steps])
    shown = set(re.findall(r"\d[\d.]*(?:e[+-]?\d+)?", report))
    assert shown.isdisjoint(repr(abs(value)) for value in exact)
    held = {kept[i : i + 8] for i in range(len(kept) - 7)}
    for value in exact:
        assert struct.pack("<d", value) not in held and struct.pack(">d", value) not in held


def test_under_add_remove_the_number_of_rows_is_in_no_report_and_no_pickle():
    X, y = rows(1237)
    for delta in (0.0, 1e-6):
        model = DPLogisticRegression(delta=delta, adjacency="add-remove").fit(X, y)
        report = privacy_report(model)
        assert "1237" not in report.to_json().replace(",", "")
        assert b"1237" not in pickle.dumps(model._facts)
        assert all(one.size != 1237 and one.times != 1237 for one in model._facts)


# Words


def test_a_seeded_model_says_that_its_promise_protects_nobody():
    X, y = rows()
    with config_context(known_seeds=True):
        data = privacy_report(DPLogisticRegression(random_state=0).fit(X, y)).data
    assert data["headline"].startswith("The promise below protects nobody")
    assert "random_state" in data["guarantee"]["caveats"][0]
    assert data["nist_sp_800_226"][1]["status"] == "not covered"
    assert "A seed was given" in data["randomness"][0]


def test_what_the_caller_declared_is_told_apart_from_defaults_and_from_the_data():
    X, y = rows()
    data = privacy_report(
        DPLogisticRegression(x_norm=2.0, class_weight={True: 2.0}).fit(X, y)
    ).data
    who = {row["what"]: row["declared_by"] for row in data["public"]}
    assert who["x_norm"] == who["class_weight"] == "caller"
    assert who["labels"] == who["columns"] == "data"
    assert who["rules"] == who["number of records"] == "library"
    data = privacy_report(DPLogisticRegression(classes=[False, True]).fit(X, y)).data
    who = {row["what"]: row["declared_by"] for row in data["public"]}
    assert who["labels"] == "caller" and who["x_norm"] == "default"


def test_a_ledger_is_told_of_with_what_is_left(tmp_path):
    X, y = rows()
    ledger = BudgetLedger(tmp_path / "people.db", 3.0, 1e-5)
    model = DPLogisticRegression(epsilon=1.0, ledger=ledger).fit(X, y)
    own, given = privacy_report(model).data["ledger"], privacy_report(model, ledger).data["ledger"]
    assert own == given == privacy_report(model, tmp_path / "people.db").data["ledger"]
    assert own["name"] == "people.db" and str(tmp_path) not in json.dumps(own)
    assert own["by_label"][0]["charges"] == 1 and own["left"]
    for point in own["left"]:
        assert ledger.affords(ApproxDP(point["epsilon"], point["delta"]))
    assert privacy_report(DPLogisticRegression().fit(X, y)).data["ledger"] is None


def test_users_are_told_of_where_they_are_the_unit():
    X, y = rows()
    owners = np.arange(len(X)) // 4
    report = privacy_report(DPLogisticRegression(delta=1e-6).fit(X, y, groups=owners))
    VALIDATOR.validate(report.data)
    assert report.data["guarantee"]["unit"] == "user"
    assert "other users" in report.data["headline"]
    uncovered = [one["what"] for one in report.data["not_covered"]]
    assert "a person with two ids" in uncovered
    assert "someone who is in the data more than once" not in uncovered
    assert "500" not in {row["value"] for row in report.data["public"]}


@pytest.mark.parametrize("kind", ["stream", "query", "query in a pipeline", "users of a network"])
def test_what_holds_private_numbers_stays_with_the_curator(kind):
    X, y = rows(400)
    kernel = DPKernelRidge(y_bounds=(-1, 1), release="query", n_queries=5)
    if kind == "stream":
        model = DPOnlineKernelRegressor(y_bounds=(-1, 1), release="final").fit(X, X[:, 0])
    elif kind == "users of a network":
        model = DistributedDPClassifier(epsilon=4.0, delta=1e-6, n_nodes=2)
        model.fit(X, y, groups=np.arange(400) // 2)
    elif kind == "query":
        model = kernel.fit(X, X[:, 0])
    else:
        model = make_pipeline(Normalizer(), kernel).fit(X, X[:, 0])
    data = privacy_report(model).data
    VALIDATOR.validate(data)
    assert data["headline"].startswith(
        "Assume an attacker who sees all that this model has released,"
    )
    assert "the fitted model itself, its copies and its files" in not_covered_of(data)
    if kind == "stream":  # what it gives away has none of it
        data = privacy_report(model.released()).data
        assert data["headline"].startswith("Assume an attacker who sees this model,")
        assert "the fitted model itself, its copies and its files" not in not_covered_of(data)


def not_covered_of(data):
    return [one["what"] for one in data["not_covered"]]


def test_it_says_how_sure_somebody_gets_of_a_person_with_several_rows():
    X, y = rows()
    data = privacy_report(DPLogisticRegression(epsilon=0.5).fit(X, y)).data
    told = data["attacker"]["several_rows"]
    assert [(one["rows"], one["epsilon"]) for one in told] == [(1, 0.5), (2, 1.0), (5, 2.5)]
    odds = [one["posterior"] / (1 - one["posterior"]) for one in told]
    assert_allclose(odds, np.exp([0.5, 1.0, 2.5]) / 9, rtol=1e-9)
    with_delta = privacy_report(DPLogisticRegression(delta=1e-6).fit(X, y)).data
    told = with_delta["attacker"]["several_rows"]
    assert [one["delta"] for one in told][:1] == [1e-6]
    assert all(one["epsilon"] >= one["rows"] * (1 - 1e-9) for one in told)
    owners = np.arange(len(X)) // 4
    users = privacy_report(DPLogisticRegression(delta=1e-6).fit(X, y, groups=owners)).data
    assert users["attacker"]["several_rows"] == []


@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_an_epsilon_that_limits_nothing_is_said_to_promise_nothing(delta):
    X, y = rows()
    report = privacy_report(DPLogisticRegression(epsilon=50.0, delta=delta).fit(X, y))
    VALIDATOR.validate(report.data)
    assert report.data["headline"].endswith(
        "Epsilon 50 is so large that it promises nothing against this attacker, who may become "
        "certain."
    )
    for page in (str(report), report.to_markdown(), report.to_html()):
        page = " ".join(page.split())
        assert "no limit" in page
        assert not re.search(r"at most 100\b|\b100 % sure|exception below", page)
    # The first page says no more of an exception to what is no limit.
    assert "except with" not in str(report).partition("\nDetails\n")[0]


def test_what_the_caller_says_of_the_data_is_told_as_it_is():
    model = model_of("linear")
    report = privacy_report(model, dataset="visits 2025", responsible="Dr Adams")
    VALIDATOR.validate(report.data)
    assert report.data["stated"] == {
        "dataset": "visits 2025",
        "purpose": None,
        "responsible": "Dr Adams",
    }
    first = str(report).partition("\nDetails\n")[0]
    told = dict(re.split(r"  +", line, maxsplit=1) for line in first.splitlines() if "  " in line)
    assert (told["Data"], told["Purpose"]) == ("visits 2025", "not stated")
    assert told["Person responsible"] == "Dr Adams"
    nobody = " ".join(str(privacy_report(model)).split())
    assert "Person responsible not stated: ____" in nobody  # to be filled in by hand
    with pytest.raises(ValueError, match="purpose must be a string or None; got 3"):
        privacy_report(model, purpose=3)


def test_it_says_how_sure_all_results_in_a_ledger_can_make_somebody():
    X, y = rows()
    ledger = BudgetLedger(epsilon=3.0)
    model = DPLogisticRegression(epsilon=0.5, ledger=ledger)
    model.fit(X, y)
    data = privacy_report(model.fit(X, y)).data
    VALIDATOR.validate(data)
    spent, budget = data["ledger"]["means"]
    assert_allclose(spent["posterior"], math.e / (9 + math.e), rtol=1e-9)
    assert_allclose(budget["posterior"], math.exp(3) / (9 + math.exp(3)), rtol=1e-9)


def test_how_many_runs_there_were_is_not_in_a_report(monkeypatch):
    X, y = rows()
    told = []
    for count in (1, 13):
        monkeypatch.setattr(
            "skdp.model_selection._randomized_search.n_random_runs", lambda count=count, **_: count
        )
        search = DPRandomizedSearch(DPLogisticRegression(), {"C": [1.0]}, epsilon=4.0, delta=1e-6)
        report = privacy_report(search.fit(X, y))
        assert search._facts == ()
        told.append(
            [(row["purpose"], row["times"], row["guarantee"]) for row in report.data["releases"]]
        )
        assert "13" not in {str(row["times"]) for row in report.data["releases"]}
    assert told[0] == told[1]
