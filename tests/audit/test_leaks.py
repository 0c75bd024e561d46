"""What leaves past the releases is found wherever it is: attributes, pickles, notes, reports."""

import sys
import weakref
from dataclasses import replace
from types import MappingProxyType

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.pipeline import make_pipeline

from skdp import _grid
from skdp._recording import note
from skdp.audit import replay
from skdp.inspection import privacy_report
from skdp.kernel import DPKernelRidge, DPOnlineKernelRegressor
from skdp.linear_model import DPLogisticRegression, MIPrivateSGDRegressor
from skdp.mechanisms import NoiseLaw, _exponential, release
from skdp.mechanisms import _additive as _law
from skdp.preprocessing import BoundedScaler, DPQuantileScaler
from skdp.privacy import ApproxDP, GaussianDP

HELD = weakref.WeakKeyDictionary()  # what a process knows of an object beside its pickle


def problem(n=30):
    X = np.random.default_rng(0).uniform(-0.5, 0.5, (n, 3))
    return X, (X[:, 0] > 0.0).astype(int)


def exact(X):
    """A private number that hostile records move, and that is no number never."""
    return float(np.clip(np.nan_to_num(np.asarray(X, dtype=float)), -1.0, 1.0).sum())


class Classifier(DPLogisticRegression):
    """A sound classifier, for leaks to be added to."""

    def fit(self, X, y):
        super().fit(X, y)
        self.leak(X)
        return self

    def leak(self, X):
        pass


class PrivateAttribute(Classifier):
    def leak(self, X):
        self._exact = exact(X)


class InsideOfAnotherObject(Classifier):
    def leak(self, X):
        self._steps = [("scaler", BoundedScaler(bounds=(-1.0, exact(X))))]


class Closure(Classifier):
    def leak(self, X):
        value = exact(X)
        self._link = lambda: value


class DefaultOfAFunction(Classifier):
    def leak(self, X):
        def link(value):
            return value

        link.__defaults__ = (exact(X),)
        self._link = link


class KeyOfADictionary(Classifier):
    def leak(self, X):
        self._counts = {exact(X): 1}


class OrderOfKeys(Classifier):
    def leak(self, X):
        self._order = dict.fromkeys("ab" if exact(X) > exact(problem()[0]) + 0.2 else "ba")


class MetadataOfADtype(Classifier):
    def leak(self, X):
        self._zero = np.zeros(1, dtype=np.dtype("f8", metadata={"exact": exact(X)}))


class OrderOfMemory(Classifier):
    def leak(self, X):
        self._zero = np.zeros((2, 2), order="FC"[exact(X) > exact(problem()[0]) + 0.2])


class ViewOfADictionary(Classifier):
    def leak(self, X):
        self._seen = {exact(X): 0}.keys()


class ProxyOfADictionary(Classifier):
    def leak(self, X):
        self._stats = MappingProxyType({"exact": exact(X)})


class BytesInMemory(Classifier):
    def leak(self, X):
        self._buffer = memoryview(np.array([exact(X)]))


class ConstantOfAFunction(Classifier):
    def leak(self, X):
        self._rule = eval(f"lambda: {exact(X)!r}")


class NamedAsATime(Classifier):
    def leak(self, X):
        self.mean_refit_time_ = exact(X)


class AttributeOfAnArray(Classifier):
    def leak(self, X):
        class Named(np.ndarray):
            def __reduce__(self):
                return np.array, (0.0,), self.__dict__

        self._zero = np.zeros(1).view(Named)
        self._zero.name = exact(X)


class AttributesOfAFrame(Classifier):
    def leak(self, X):
        self.table_ = pd.DataFrame({"a": [0.0]})
        self.table_.attrs["exact"] = exact(X)


class PickleAlone(Classifier):
    def leak(self, X):
        HELD[self] = exact(X)

    def __getstate__(self):
        return super().__getstate__() | {"extra": HELD.get(self)}


class NoteOnARelease(Classifier):
    def leak(self, X):
        first, *others = self._facts
        self._facts = replace(first, purpose=f"sum, {exact(X):.3f} without noise"), *others


class ScaleInANote(Classifier):
    def leak(self, X):
        first, *others = self._facts
        self._facts = replace(first, scales=(exact(X), exact(X))), *others


class TextOfTheReport(Classifier):
    """Neither a pickle nor a public attribute holds it, but the report prints it."""

    def leak(self, X):
        HELD[self] = exact(X)

    @property
    def _facts(self):
        first, *others = self.__dict__["_facts"]
        return replace(first, purpose=f"sum, {HELD[self]:.4f} without noise"), *others


class Noted(BaseEstimator):
    """An outsider's release, whose purpose is made of what it hides."""

    def __init__(self, noted=True, random_state=None):
        self.noted = noted
        self.random_state = random_state

    def fit(self, X, y=None):
        law = NoiseLaw.of("gaussian", GaussianDP(1.0))
        value = np.clip(np.nan_to_num(np.asarray(X, dtype=float)), -1.0, 1.0).mean(axis=0)
        purpose = f"mean near {value[0]:.4f}" if self.noted else "mean"
        sensitivity = 2.0 * np.sqrt(X.shape[1]) / len(X)
        self.mean_ = release(
            value,
            law=law,
            sensitivity=sensitivity,
            error=0.0,
            purpose=purpose,
            random_state=self.random_state,
        )
        self.guarantee_ = law.guarantee
        return self


class ShrunkBounds(DPQuantileScaler):
    """Bounds that lie within the data: no value is clipped by more than it needs."""

    def fit(self, X, y=None):
        super().fit(X, y)
        X = np.asarray(X, dtype=float)
        self.bounds_ = np.column_stack(
            [
                np.maximum(self.bounds_[:, 0], np.nanmin(X, axis=0)),
                np.minimum(self.bounds_[:, 1], np.nanmax(X, axis=0)),
            ]
        )
        return self


class HiddenStep(TransformerMixin, BaseEstimator):
    """A step that learns nothing that shows."""

    def fit(self, X, y=None):
        self._seen = exact(X)
        return self

    def transform(self, X):
        return X

    def __sklearn_is_fitted__(self):
        return True


class BetweenCalls(MIPrivateSGDRegressor):
    """Holds rows of the last call until the next one has been."""

    def partial_fit(self, X, y):
        self.__dict__.pop("_seen", None)
        super().partial_fit(X, y)
        if self.n_samples_seen_ < 30:
            self._seen = exact(X)
        return self


class StreamThatReleasesMore(DPOnlineKernelRegressor):
    """The live stream may hold private sums; what it releases may not."""

    def partial_fit(self, X, y, groups=None):
        super().partial_fit(X, y, groups)
        HELD[self] = exact(X)
        return self

    def fit(self, X, y, groups=None):
        super().fit(X, y, groups)
        HELD[self] = exact(X)
        return self

    def released(self):
        released = super().released()
        released._sums = HELD[self]
        return released


LEAKS = [
    PrivateAttribute(mechanism="output"),
    InsideOfAnotherObject(mechanism="output"),
    Closure(mechanism="output"),
    DefaultOfAFunction(mechanism="output"),
    KeyOfADictionary(mechanism="output"),
    OrderOfKeys(mechanism="output"),
    MetadataOfADtype(mechanism="output"),
    OrderOfMemory(mechanism="output"),
    AttributeOfAnArray(mechanism="output"),
    ViewOfADictionary(mechanism="output"),
    ProxyOfADictionary(mechanism="output"),
    BytesInMemory(mechanism="output"),
    ConstantOfAFunction(mechanism="output"),
    NamedAsATime(mechanism="output"),
    AttributesOfAFrame(mechanism="output"),
    PickleAlone(mechanism="output"),
    NoteOnARelease(mechanism="output"),
    ScaleInANote(delta=1e-4),
    TextOfTheReport(mechanism="output"),
    Noted(),
    ShrunkBounds(quantiles=(0.1, 0.9), epsilon=60.0),
    make_pipeline(HiddenStep(), DPLogisticRegression(mechanism="output")),
    BetweenCalls(y_bounds=(-1.0, 1.0)),
    StreamThatReleasesMore(y_bounds=(-1.0, 1.0), n_components=20, release="final"),
]


def name(target):
    inner = target.steps[0][1] if hasattr(target, "steps") else target
    return type(inner).__name__


@pytest.mark.parametrize("leaky", LEAKS, ids=name)
def test_what_leaves_past_the_releases_is_found(leaky):
    X, y = problem()
    if not hasattr(leaky, "predict_proba"):
        y = X[:, 0]
    report = replay(leaky, X, y, random_state=0)
    assert {finding.kind for finding in report.findings} == {"outcome"}, report


class ChainedError(Classifier):
    """Says what is wrong in words that hold nothing, but for what they are raised from."""

    def fit(self, X, y):
        try:
            return super().fit(X, y)
        except ValueError as error:
            raise ValueError(f"{error}") from ValueError(repr(np.asarray(X, dtype=float)[1]))


def test_words_that_an_error_is_raised_from_are_found():
    report = replay(ChainedError(mechanism="output"), *problem(), n=4, random_state=0)
    assert any("in words that depend on others" in one.what for one in report.findings)


@pytest.mark.parametrize(
    "sound",
    [Classifier(mechanism="output"), Classifier(delta=1e-4), Noted(noted=False)],
    ids=["output", "gradient", "outsider"],
)
def test_the_same_without_the_leak_raises_no_alarm(sound):
    report = replay(sound, *problem(), n=96, random_state=0)
    assert report.passed, report


@pytest.mark.parametrize("where", ["an object", "a note"])
def test_what_a_function_leaves_behind_is_found(where):
    def program(X, y, random_state=None):
        claim = ApproxDP(1.0, 1e-4)
        told = "mean" if where == "an object" else f"mean near {exact(X):.4f}"
        mean = np.clip(np.nan_to_num(X), -1.0, 1.0).mean(axis=0)
        noisy = release(
            mean,
            law=NoiseLaw.of("gaussian", claim),
            sensitivity=2.0 * np.sqrt(3) / len(X),
            error=0.0,
            purpose=told,
            random_state=random_state,
        )
        made = BoundedScaler()
        made.mean_ = noisy
        if where == "an object":
            made._exact = exact(X)
        return made

    report = replay(program, *problem(), n=48, guarantee=ApproxDP(1.0, 1e-4), random_state=0)
    assert {finding.kind for finding in report.findings} == {"outcome"}, report


@pytest.mark.parametrize(
    "model",
    [
        DPLogisticRegression(mechanism="output"),
        DPKernelRidge(delta=1e-4, n_components=20, y_bounds=(-1.0, 1.0)),
        DPQuantileScaler(quantiles=(0.1, 0.9), epsilon=60.0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_a_purpose_that_is_made_of_what_a_release_hides_is_found(model, monkeypatch):
    def exactly(purpose, *others, **bounds):
        private = sys._getframe(1).f_locals
        value = next(private[name] for name in ("exact", "value", "utilities") if name in private)
        note(f"{purpose} of {np.sum(value):.6g}", *others, **bounds)

    for module in (_law, _exponential, _grid):
        monkeypatch.setattr(module, "note", exactly)
    X, y = problem()
    report = replay(model, X, y if hasattr(model, "classes") else X[:, 0], n=48, random_state=0)
    assert {finding.kind for finding in report.findings} == {"outcome"}, report
    assert "_facts" in str(report)


def test_a_finding_says_where_the_leak_is_and_not_what_leaks():
    model = PrivateAttribute(mechanism="output")
    report = replay(model, *problem(), n=24, random_state=0)
    assert "pickle of PrivateAttribute._exact differs" in str(report)
    assert "privacy_report" not in str(report)


def test_the_report_of_the_leak_in_its_text_does_hold_it():
    # What the test of leaks supposes: no other part of the model shows the number.
    X, y = problem()
    model = TextOfTheReport(mechanism="output").fit(X, y)
    assert f"{exact(X):.4f}" in str(privacy_report(model))
