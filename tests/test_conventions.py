"""What every estimator of the package promises, whoever writes it.

Estimators are found in the package. `support.configurations` says how to make and fit each: one
that is not there fails the first test.
"""

import importlib
import inspect
import pickle
import pkgutil
import re
import sys
import warnings
from contextlib import contextmanager
from functools import partial
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import BaseEstimator, clone, is_classifier, is_regressor
from sklearn.dummy import DummyClassifier
from sklearn.utils import estimator_html_repr
from sklearn.utils.validation import has_fit_parameter
from support.configurations import CONFIGURATIONS, EVERYTHING, fitted, model, outcome, problem
from support.memory import parts_as_long_as

import skdp
from skdp.audit._data import DataSet
from skdp.audit._density import Passthrough, Replayer
from skdp.audit._neighbouring_runs import NeighbourRun, differences
from skdp.audit._runs import Program
from skdp.distributed import DistributedDPClassifier
from skdp.exceptions import BudgetExceededError, PrivacyWarning
from skdp.kernel import DPKernelRidge, DPOnlineKernelRegressor
from skdp.linear_model import DPLogisticRegression, MIPrivateSGDRegressor
from skdp.metrics import Evaluation, dp_evaluate
from skdp.pipeline import DPPipeline
from skdp.preprocessing import (
    ColumnStatistic,
    DPOneHotEncoder,
    DPQuantileScaler,
    DPSimpleImputer,
    dp_histogram,
    dp_mean,
    dp_quantile,
)
from skdp.privacy import BudgetLedger


def public_estimators():
    """Estimators that users can import from modules without an underscore."""
    for info in pkgutil.walk_packages(skdp.__path__, "skdp."):
        if "._" not in info.name:
            module = importlib.import_module(info.name)
            for name in getattr(module, "__all__", ()):
                kind = getattr(module, name)
                if not inspect.isclass(kind) or inspect.isabstract(kind):
                    continue
                if issubclass(kind, BaseEstimator):
                    yield kind


def kind_of(name):
    return name.split("-")[0]


KINDS = {kind.__name__: kind for kind in public_estimators()}
EVERY = pytest.mark.parametrize("name", EVERYTHING)
WITH_LEDGER = pytest.mark.parametrize("name", CONFIGURATIONS)
OF_DATA = [name for name, kind in EVERYTHING.items() if kind_of(name) == type(kind).__name__]


def ledger():
    return BudgetLedger(epsilon=1e6, delta=0.5)


def test_every_public_estimator_has_a_configuration():
    assert len(KINDS) >= 9
    assert KINDS.keys() == {kind_of(name) for name in EVERYTHING}
    learners = {kind for kind in KINDS if "ledger" in inspect.signature(KINDS[kind]).parameters}
    assert learners == {kind_of(name) for name in CONFIGURATIONS}


# Documentation

PUBLIC, RELEASED = "Public.", "Released under ``guarantee_``."
VALUES = (ColumnStatistic, Evaluation)  # what functions release, and no estimator


def documented_attributes(kind):
    """Description of each attribute in the docstring of a class."""
    section = re.search(
        r"^Attributes\n-+\n(.*?)(?=^\S[^\n]*\n---|\Z)",
        inspect.getdoc(kind),
        re.DOTALL | re.MULTILINE,
    )
    entries = re.findall(
        r"^(\w+) :[^\n]*\n((?:[ ]+\S[^\n]*\n|\n)*)", section[1] + "\n", re.MULTILINE
    )
    return {name: " ".join(text.split()) for name, text in entries}


def fitted_attributes(estimator):
    """Names of what is there after a fit and was not there before."""
    names = {*vars(estimator), *dir(type(estimator))}
    public = {name for name in names if name.endswith("_") and not name.startswith("_")}
    return {name for name in public if hasattr(estimator, name)}


def attributes_of(kind):
    found = set()
    for name in EVERYTHING:
        if kind_of(name) == kind:
            X, y = problem(name)
            found |= fitted_attributes(fitted(name, pd.DataFrame(X, columns=list("abc")), y))
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_fitted_attributes_are_documented_and_no_others(kind):
    assert documented_attributes(KINDS[kind]).keys() == attributes_of(kind)


def test_each_attribute_says_what_covers_it():
    silent = {
        f"{kind}.{name}"
        for kind in KINDS
        for name, text in documented_attributes(KINDS[kind]).items()
        if not text.endswith((PUBLIC, RELEASED))
    }
    assert not silent, sorted(silent)


@pytest.mark.parametrize("kind", VALUES)
def test_each_attribute_of_a_released_value_says_what_covers_it(kind):
    texts = documented_attributes(kind)
    covers = (PUBLIC, RELEASED, RELEASED.replace("guarantee_", "guarantee"))
    assert texts and all(text.endswith(covers) for text in texts.values())


# Parameters


@pytest.mark.parametrize("kind", sorted({kind_of(name) for name in OF_DATA}))
def test_refusals_name_the_parameter_and_come_before_the_charge(kind):
    refused, offenders = set(), {}
    for name in OF_DATA:
        if kind_of(name) == kind:
            X, y = problem(name)
            for parameter in EVERYTHING[name].get_params(deep=False):
                for hopeless in (object(), "no such thing"):
                    told = refusal(name, X, y, parameter, hopeless)
                    if told is not None:
                        refused.add(parameter)
                        if not told.startswith(f"{parameter} must"):
                            offenders[kind, parameter] = told
    assert refused == set(inspect.signature(KINDS[kind]).parameters)  # each by some configuration
    assert not offenders, offenders


def refusal(name, X, y, parameter, value):
    """What `fit` says of a value, before anything is charged or stored; None if it fits."""
    learns = name in CONFIGURATIONS or "ledger" in EVERYTHING[name].get_params()
    book = ledger()
    estimator = model(name, **({"ledger": book} if learns else {}) | {parameter: value})
    before = vars(estimator).copy()
    try:
        estimator.fit(X, y)
    except ValueError as error:
        assert not book.history()
        # Where there is no ledger, the number of columns is needed to check the others.
        assert vars(estimator) == before or not learns
        return str(error)
    return None


# Copies


@EVERY
def test_a_pickle_predicts_the_same(name):
    X, y = problem(name)
    estimator = fitted(name, X, y)
    told = outcome(estimator, X)
    again = pickle.loads(pickle.dumps(estimator))
    assert_array_equal(outcome(again, X), told)
    assert_array_equal(outcome(estimator, X), told)
    assert repr(again) == repr(estimator)
    assert fitted_attributes(again) == fitted_attributes(estimator)


# The charge

# What uses rows: packages, modules and what is defined in some. Before the charge rows are
# validated, labels become numbers, and that is all.
USERS = (
    *("mechanisms.", "engines.", "local."),
    *("rows._blocks.", "rows._sums.", "rows._whitening.", "rows._users.UserCap."),
    *("learner._descent.", "learner._losses.", "learner._newton.", "learner._objective."),
    *("learner._output.", "learner._sequence.", "learner._stages."),
    *("linear_model._comparator.", "linear_model._rules."),
    *("kernel._descent.", "kernel._pure.", "kernel._queries.", "kernel._ridge_problem."),
    *("kernel._online._base.step_blocks", "kernel._online._fed_back.", "kernel._online._final."),
    *("kernel._online._matrix.", "kernel._online._query.", "kernel._online._recursion."),
    *("distributed._gossip.", "distributed._whitened_gossip."),
    *("preprocessing._column_statistics.BoundedSums.", "preprocessing._target_bounds."),
    *(f"preprocessing._column_statistics.{kind}Release." for kind in ("Counts", "Mean")),
    "preprocessing._one_hot_encoder.CategoryRelease.",
    "preprocessing._quantiles.QuantileRelease.",
    "preprocessing._medians.MedianRelease.",
    "preprocessing._most_frequent.MostFrequentRelease.",
    "metrics._releases.PrecisionSum.",
)
USERS = tuple(f"skdp.{name}" for name in USERS)
LAWS = {"normal", "laplace", "k_norm", "k_norms"}
# They are handed the rows and ask for the charge themselves: what they call is watched, and that
# they read no row before is asked in tests/kernel/test_stream_releases.py.
CHARGING = tuple(
    f"skdp.kernel._online._{release}.advance"
    for release in (*("base.TranscriptRelease", "final.FinalRelease", "query.QueryRelease"),)
)


@contextmanager
def watched(n_samples):
    """List, while it goes on, of functions that use rows or draw noise."""
    used = []

    def look(frame, event, argument):
        if event != "call":
            return
        function = f"{frame.f_globals.get('__name__', '')}.{frame.f_code.co_qualname}"
        if function.startswith("skdp._random.") and frame.f_code.co_name in LAWS:
            used.append(function)
        elif function.startswith(USERS) and function not in CHARGING:
            given = frame.f_code.co_varnames[: frame.f_code.co_argcount]
            shapes = [getattr(frame.f_locals.get(name), "shape", ()) for name in given]
            shapes = [shape for shape in shapes if isinstance(shape, tuple)]  # not of a type
            if any(shape and shape[0] == n_samples for shape in shapes):
                used.append(function)

    before = sys.getprofile()
    sys.setprofile(look)
    try:
        yield used
    finally:
        sys.setprofile(before)


def patched_charges(monkeypatch, action):
    """Run ``action()`` before each charge."""
    for charge in ("charge", "charge_stream"):
        original = getattr(BudgetLedger, charge)

        def spied(self, *args, original=original, **options):
            action()
            return original(self, *args, **options)

        monkeypatch.setattr(BudgetLedger, charge, spied)


def beginnings(name):
    """Methods that begin a model."""
    return ("fit", "partial_fit") if hasattr(EVERYTHING[name], "partial_fit") else ("fit",)


def begin(estimator, method, X, y):
    if method == "partial_fit" and hasattr(estimator, "classes"):
        estimator.set_params(classes=[0, 1])
    return getattr(estimator, method)(X, y)


@WITH_LEDGER
def test_the_ledger_is_charged_before_the_rows_are_used(name, monkeypatch):
    X, y = problem(name, 97)
    for method in beginnings(name):
        estimator, uses = model(name, ledger=ledger()), []
        with monkeypatch.context() as patch, watched(97) as used:
            patched_charges(patch, lambda used=used, uses=uses: uses.append(list(used)))
            begin(estimator, method, X, y)
        assert uses == [[]]
        assert used  # so that earlier uses would be seen
        assert len(estimator.ledger.history()) == 1


@WITH_LEDGER
def test_the_charge_follows_from_public_numbers(name):
    sizes = [97, 97]
    if getattr(EVERYTHING[name], "adjacency", "") == "add-remove":
        sizes.append(96)  # how many rows there are is private as well
    charges = []
    for seed, size in enumerate(sizes):
        estimator = model(name, ledger=ledger()).fit(*problem(name, size, seed=seed))
        charges.append([charge.guarantee for charge in estimator.ledger.history()])
        assert charges[-1] == [estimator.guarantee_] == charges[0]


@WITH_LEDGER
def test_a_seed_is_a_caveat_of_the_guarantee_and_not_of_the_charge(name):
    X, y = problem(name)
    estimator = model(name, random_state=0, ledger=ledger())
    with pytest.warns(PrivacyWarning, match="random_state is set"):
        stated = estimator.fit(X, y).guarantee_
    (charge,) = estimator.ledger.history()
    assert stated.caveats == ("random_state: noise can be recomputed",)
    assert (
        charge.guarantee.caveats == () and charge.guarantee.with_caveats(*stated.caveats) == stated
    )
    assert estimator.set_params(random_state=None, ledger=None).fit(X, y).guarantee_.caveats == ()


@WITH_LEDGER
def test_a_refused_charge_uses_no_rows_and_leaves_the_old_model(name, monkeypatch):
    def refuse():
        raise BudgetExceededError("refused")

    X, y = problem(name, 97)
    others = problem(name, 97, n_features=2, seed=1)
    for method in beginnings(name):
        unfitted, estimator = (model(name, ledger=ledger()) for _ in range(2))
        told = outcome(estimator.fit(X, y), X)
        for each in (unfitted, estimator):
            if each is estimator and method == "partial_fit":
                continue  # that goes on with a stream, which may have been paid for
            before, n_charges = vars(each).copy(), len(each.ledger.history())
            with monkeypatch.context() as patch, watched(97) as used:
                patched_charges(patch, refuse)
                with pytest.raises(BudgetExceededError):
                    getattr(each, method)(*others)
            assert used == []
            assert vars(each).keys() == before.keys()
            assert all(vars(each)[key] is value for key, value in before.items())
            assert len(each.ledger.history()) == n_charges
        assert_array_equal(outcome(estimator, X), told)


def flawed(X, y):
    """Data that a fit refuses, after it has looked at names, at types, or at values."""
    names = [f"other {i}" for i in range(X.shape[1])]
    missing, words = X.astype(float), X.astype(object)
    missing[0, 0], words[0, 0] = np.inf, "word"
    yield pd.DataFrame(missing, columns=names), y
    yield pd.DataFrame(words, columns=names), y
    yield np.hstack([missing, missing]), y
    yield X[:, :, np.newaxis], y
    yield X[:0], y[:0]


@pytest.mark.parametrize("name", [name for name in EVERYTHING if "Released" not in name])
def test_a_refused_fit_leaves_everything_as_it_was(name):
    X, y = problem(name)
    fitted_, unfitted = model(name).fit(X, y), model(name)
    for other, targets in flawed(np.asarray(X), y):
        for estimator in (fitted_, unfitted):
            before = dict(vars(estimator))
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    clone(estimator).fit(other, targets)
            except Exception as refused:
                with pytest.raises(type(refused)):
                    estimator.fit(other, targets)
                after = vars(estimator)
                assert after.keys() == before.keys()
                assert all(after[key] is value for key, value in before.items())


@pytest.mark.parametrize(
    "name", ["DPLogisticRegression", "DPPipeline-delta=0.0", "DPGridSearch", "DPRandomizedSearch"]
)
def test_an_interrupt_while_a_fit_is_stored_leaves_the_old_model(name, monkeypatch):
    X, y = problem(name)
    estimator = model(name).fit(X, y)
    before, stated = dict(vars(estimator)), type(estimator)._stated

    def interrupted(self, guarantee, **options):
        if self is estimator:
            raise KeyboardInterrupt
        return stated(self, guarantee, **options)

    monkeypatch.setattr(type(estimator), "_stated", interrupted)
    with pytest.raises(KeyboardInterrupt):
        estimator.fit(X, y)
    assert vars(estimator).keys() == before.keys()
    assert all(vars(estimator)[key] is value for key, value in before.items())


def test_an_interrupt_while_a_call_of_a_stream_is_stored_leaves_the_old_pipeline(monkeypatch):
    stream = DPPipeline([("m", MIPrivateSGDRegressor(y_bounds=(-1, 1)))])
    X = np.random.default_rng(0).uniform(-0.5, 0.5, (20, 3))
    stream.partial_fit(X, X[:, 0])
    before, last = dict(vars(stream)), dict(vars(stream.steps_[-1][1]))
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(DPPipeline, "_stated", Mock(side_effect=KeyboardInterrupt))
        stream.partial_fit(X, X[:, 0])
    assert vars(stream) == before and vars(stream.steps_[-1][1]) == last
    stream.partial_fit(X, X[:, 0])


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_messages_do_not_count_rows_that_may_be_added_or_removed(name):
    X, y = problem(name, n_samples=97)
    estimator = model(name)
    if "adjacency" not in estimator.get_params():
        pytest.skip("the promise is for messages of devices, which are not counted")
    faults = [(X[:, :0], y), (X[:, :, np.newaxis], y)]
    if hasattr(type(estimator), "predict"):
        faults += [(X, y[:-1]), (X, np.column_stack([y, y]))]
    for rows, targets in faults:
        with pytest.raises(ValueError) as caught:
            clone(estimator).set_params(adjacency="add-remove").fit(rows, targets)
        assert not re.search(r"\b9[67]\b", str(caught.value))


# What there is instead


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_a_method_or_an_argument_that_is_missing_is_explained(name):
    X, y = problem(name)
    estimator = fitted(name, X, y)
    for method in ("partial_fit", "released"):
        if not hasattr(estimator, method):
            with pytest.raises(AttributeError, match=f"has no attribute '{method}': .*[.]$"):
                getattr(estimator, method)
            assert not hasattr(estimator, method)
    if not has_fit_parameter(estimator, "sample_weight"):
        with pytest.raises(TypeError, match="takes no sample_weight: a weight of k multiplies"):
            estimator.fit(X, y, sample_weight=np.ones(len(X)))
    if hasattr(estimator, "predict"):
        with pytest.raises(TypeError, match="takes no return_std: no private standard deviation"):
            estimator.predict(X, return_std=True)
    if hasattr(estimator, "score"):
        weighted = estimator.score(X, y, sample_weight=np.ones(len(X)))
        assert weighted == pytest.approx(estimator.score(X, y))
    with pytest.raises(AttributeError, match=r"has no attribute 'nothing_of_this_name'$"):
        estimator.nothing_of_this_name  # noqa: B018


def test_what_searches_and_pipelines_cannot_be_given_is_explained():
    X, y = problem("DPLogisticRegression")
    with pytest.raises(TypeError, match=r"Regressor.fit\(\) takes no groups: it protects"):
        MIPrivateSGDRegressor().fit(X, y, groups=y)
    with pytest.raises(TypeError, match=r"DPGridSearch.fit\(\) takes no node: it has no nodes"):
        model("DPGridSearch").fit(X, y, node=y)
    with pytest.raises(TypeError, match=r"DPPipeline.fit\(\) takes no node: it has no nodes"):
        model("DPPipeline-delta=0.0").fit(X, y, node=y)


@pytest.mark.parametrize(
    "estimator",
    [
        DPLogisticRegression(delta=0.01),
        DPKernelRidge(delta=0.01, y_bounds=(-1.0, 1.0), n_components=20),
        DPQuantileScaler(delta=0.01, quantiles=(0.1, 0.9)),
        DPPipeline([("m", DPLogisticRegression())], delta=0.01),
        DPOnlineKernelRegressor(delta=0.01, y_bounds=(-1.0, 1.0), n_components=20, gamma=1.0),
        DistributedDPClassifier(delta=0.01),
        DPOneHotEncoder(delta=0.01),
        DPSimpleImputer(delta=0.01),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_a_delta_of_one_over_the_rows_warns_once_where_their_number_is_public(estimator):
    X = np.random.default_rng(0).uniform(-0.5, 0.5, (200, 3))
    y = X[:, 0] if is_regressor(estimator) else (X[:, 0] > 0.0).astype(int)
    with pytest.warns(PrivacyWarning, match="delta=0.01 is at least 1 over the 200 rec") as told:
        clone(estimator).fit(X, y)
    assert len(told) == 1
    clone(estimator).set_params(delta=0.004).fit(X, y)  # warnings are errors here
    with pytest.warns(PrivacyWarning, match="over the 49 records"):  # 49 * (1 / 49) < 1
        clone(estimator).set_params(delta=1.0 / 49.0, epsilon=60.0).fit(X[:49], y[:49])
    clone(estimator).set_params(adjacency="add-remove").fit(X, y)
    if isinstance(estimator, DPLogisticRegression | DPKernelRidge | DPPipeline):
        with pytest.warns(PrivacyWarning, match="over the 100 users"):
            clone(estimator).fit(X, y, groups=np.arange(200) // 2)


@pytest.mark.parametrize(
    "released",
    [
        partial(dp_mean, bounds=(0.0, 1.0)),
        partial(dp_quantile, search_range=(0.0, 1.0)),
        partial(dp_histogram, edges=(0.0, 0.5, 1.0)),
        partial(
            dp_evaluate, DummyClassifier().fit(np.zeros((4, 1)), [0, 0, 0, 1]), np.zeros((50, 1))
        ),
    ],
    ids=["mean", "quantile", "histogram", "evaluate"],
)
def test_a_delta_of_one_over_the_rows_warns_of_functions(released):
    column = np.arange(50) % 2
    with pytest.warns(PrivacyWarning, match="delta=0.02 is at least 1 over the 50 records"):
        released(column, epsilon=9.0, delta=0.02)
    released(column, epsilon=9.0, delta=0.01)
    released(column, epsilon=9.0, delta=0.02, adjacency="add-remove")


# The releases

SEEDED = {"ledger", "random_state"}
# A constant that replaces missing values is all that comes out, and is public.
LEARNERS = [
    name
    for name, kind in EVERYTHING.items()
    if kind.get_params().keys() >= SEEDED and "constant" not in name
]


def world(name, X, y, listener, **changes):
    """A fit, in two calls if it is a stream, and all that comes out of it."""
    estimator = model(name, **changes)
    n_calls = 1 + hasattr(estimator, "partial_fit")
    program = Program(estimator, n_calls, [0, 1] if is_classifier(estimator) else None)
    return NeighbourRun(
        None, program.run(DataSet.of(X, y), [problem(name, 20, seed=2)[0]], listener, 0)
    )


def asked(world):
    """The private numbers behind all that was released, in order."""
    return [r.asked for r in world.releases] + [s.utilities for s in world.selected]


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("name", LEARNERS)
def test_whatever_comes_out_follows_from_recorded_releases(name, adjacency):
    options = {"adjacency": adjacency} if hasattr(EVERYTHING[name], "adjacency") else {}
    honest = Passthrough()
    first = world(name, *problem(name), honest, **options)
    assert asked(first) and "guarantee_" in first.run.outcome
    # All rows are others, and their number where that is private: what was released decides.
    counted = adjacency == "replace-one" or "n_samples_seen_" in first.run.outcome
    X, y = problem(name, 60 if counted else 53, seed=1)
    other = world(name, X, y[::-1], Replayer(honest.values), **options)
    assert differences(first, other, same_noise=True) == []
    pairs = zip(asked(first), asked(other), strict=True)
    assert not all(np.array_equal(here, there) for here, there in pairs)


# What is kept and shown

# As long as the data, and why.
LONG = {"iterates_": "one for each contribution, where keep_iterates asks for them"}


@EVERY
def test_nothing_public_has_an_axis_as_long_as_the_data(name):
    X, y = problem(name, 97)
    estimator = fitted(name, X, y)
    shown = {key: getattr(estimator, key) for key in fitted_attributes(estimator) - LONG.keys()}
    shown["_facts"] = vars(estimator).get("_facts")  # for reports: public, or released
    assert list(parts_as_long_as(97, shown)) == []
    # Exact answers need the rows: they are kept under private names, and nowhere else.
    private = {"_predictor", "_stream"}
    public = {"_schema", "_before", "_began", "_facts", "_scaling"}
    assert {key for key in vars(estimator) if key.startswith("_")} <= private | public
    kept = {path.split(".")[1] for path in parts_as_long_as(97, vars(estimator))} - LONG.keys()
    keepers = {"_predictor", "_stream"} if getattr(estimator, "release", "") == "query" else set()
    if "iterates_" in fitted_attributes(estimator):
        keepers |= {"_stream"}
    assert kept <= keepers


@EVERY
def test_no_view_shows_a_row_or_a_target(name):
    X, y = problem(name)
    X[:, 1] = 0.2677712 + 1e-9 * np.arange(len(X))
    if y.dtype.kind == "f":
        y[:] = X[:, 1]
    # Seeded, as noise could show any digits.
    seed = {"random_state": 0} if "random_state" in model(name).get_params() else {}
    estimator = fitted(name, X, y, **seed)
    outcome(estimator, X)
    for view in (estimator_html_repr(estimator), repr(estimator), str(vars(estimator))):
        assert "267771" not in view
