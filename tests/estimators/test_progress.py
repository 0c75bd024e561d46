import pickle
from collections import Counter

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone

from skdp import (
    DPEpsilonSearch,
    DPGridSearch,
    DPKernelRidge,
    DPLogisticRegression,
    DPOnlineKernelRegressor,
    DPPipeline,
    DPRandomizedSearch,
    MIPrivateSGDRegressor,
)
from skdp._progress import heard_by, told
from skdp.preprocessing import DPQuantileScaler
from skdp.privacy import BudgetLedger

DELTA = 1e-6
KINDS = {
    "ridge": lambda: DPKernelRidge(delta=DELTA, y_bounds=(-1, 1), n_components=20),
    "query": lambda: DPKernelRidge(y_bounds=(-1, 1), release="query", n_queries=5),
    "stream": lambda: DPOnlineKernelRegressor(y_bounds=(-1, 1), n_components=20),
    "logistic": lambda: DPLogisticRegression(delta=DELTA),
    "mi": lambda: MIPrivateSGDRegressor(y_bounds=(-1, 1)),
    "grid": lambda: DPGridSearch(DPLogisticRegression(), {"C": [0.1, 1.0]}, 8.0, DELTA),
    "epsilon": lambda: DPEpsilonSearch(DPLogisticRegression(), 0.7, epsilons=[2.0, 4.0]),
    "pipeline": lambda: DPPipeline(
        [("bounds", DPQuantileScaler()), ("model", DPLogisticRegression())], delta=DELTA
    ),
}
# What callbacks hear of: names of tasks, how many, and how many parts each has.
HEARD = {
    "ridge": {("second moments", 3): 1, ("noisy gradient steps", 48): 1},
    "query": {},
    "stream": {("rows of the stream", 3): 1},
    "logistic": {},
    "mi": {("contributions", 1): 1},
    "grid": {("candidates", 2): 1, ("fit to all rows", 0): 1},
    "epsilon": {},
    "pipeline": {("step bounds", 0): 1, ("step model", 0): 1},
}

needs_callbacks = pytest.mark.skipif(
    not hasattr(DPKernelRidge, "set_callbacks"), reason="callbacks came with scikit-learn 1.9"
)


class Recorder:
    """Writes down what callbacks are told."""

    def __init__(self, fails_at=None, error=ZeroDivisionError):
        self.error = error
        self.begun, self.ended, self.calls = [], [], Counter()
        self.fails_at, self.told, self.had = fails_at, [], []

    def setup(self, estimator, context):
        self.calls["setup"] += 1

    def teardown(self, estimator, context):
        self.calls["teardown"] += 1

    # scikit-learn looks up by name which arguments a callback asks for.

    def on_fit_task_begin(
        self, estimator, context, *, X=None, y=None, metadata=None, fitted_estimator=None
    ):
        self.begun.append((context.task_name, context.max_subtasks))
        self._hear(estimator, X, y, metadata, fitted_estimator)

    def on_fit_task_end(
        self, estimator, context, *, X=None, y=None, metadata=None, fitted_estimator=None
    ):
        self.ended.append(context.task_name)
        self._hear(estimator, X, y, metadata, fitted_estimator)
        if len(self.ended) == self.fails_at:
            raise self.error("from a callback")
        return True  # to stop, which nobody does

    def _hear(self, estimator, *told):
        self.told.extend(told)
        self.had.extend(name for name in vars(estimator) if name.endswith("_"))

    @property
    def tasks(self):
        """Tasks below the fit that have parts, or are none of a task that has."""
        names = Counter(self.begun)
        whole = {name for name, parts in names if parts}
        return {
            (name, parts): count
            for (name, parts), count in names.items()
            if name != "fit" and (parts or name not in whole)
        }


class Propagated(Recorder):
    """Goes from a pipeline to its steps."""

    max_propagation_depth = None


def problem(kind, n=2500):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, size=(n, 2))
    is_class = kind not in ("ridge", "query", "stream", "mi")
    return X, (X[:, 0] > 0) if is_class else np.sin(X[:, 0])


def small(kind):
    return problem(kind, 200 if kind == "query" else 2500)


@needs_callbacks
@pytest.mark.parametrize("kind", KINDS)
def test_callbacks_hear_how_far_a_fit_is_and_see_nothing(kind):
    recorder = Recorder()
    model = KINDS[kind]().set_callbacks(recorder).fit(*small(kind))
    assert recorder.begun[0][0] == recorder.ended[-1] == "fit"
    assert recorder.calls == {"setup": 1, "teardown": 1}
    assert len(recorder.begun) == len(recorder.ended)
    assert recorder.tasks.items() >= HEARD[kind].items()
    assert all(value is None for value in recorder.told)
    validated = {"n_features_in_", "feature_names_in_", "_"}
    assert set(recorder.had) <= validated  # what is fitted is not there yet
    assert not [key for key in vars(model) if "callback" in key and key != "_skl_callbacks"]
    pickle.dumps(model)


@needs_callbacks
@pytest.mark.parametrize("kind", KINDS)
def test_who_listens_changes_nothing(kind):
    X, y = small(kind)
    models = [KINDS[kind]().set_params(random_state=0) for _ in range(2)]
    models[1].set_callbacks(Recorder())
    first, second = (model.fit(X, y).predict(X[:5]) for model in models)
    assert_array_equal(first, second)


@needs_callbacks
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("fails_at", [1, "last"])
def test_a_callback_that_raises_leaves_the_old_model_and_the_charge(kind, fails_at, tmp_path):
    X, y = small(kind)
    recorder = Recorder()
    ledger = BudgetLedger(tmp_path / "spent.ledger", 100.0, 1e-3)
    model = KINDS[kind]().set_params(ledger=ledger).set_callbacks(recorder)
    old = model.fit(X, y).predict(X[:5]) if kind != "query" else None
    spent = len(ledger.history())
    n_told = len(recorder.ended) if kind != "query" else 1
    model.set_callbacks(Recorder(1 if fails_at == 1 else n_told))
    before = dict(vars(model))
    with pytest.raises(ZeroDivisionError, match="from a callback"):
        model.fit(X, y)
    assert {name: vars(model)[name] for name in before} == before
    if old is not None:
        assert_array_equal(model.predict(X[:5]), old)
    assert len(ledger.history()) == spent + 1


@needs_callbacks
@pytest.mark.parametrize("kind", ["ridge", "stream", "logistic"])
def test_how_many_rows_there_are_is_not_told_where_that_is_private(kind):
    heard = []
    for n in (2500, 8000):
        recorder = Recorder()
        model = KINDS[kind]().set_params(adjacency="add-remove").set_callbacks(recorder)
        model.fit(*problem(kind, n))
        heard.append((recorder.begun, recorder.ended))
    assert heard[0] == heard[1]


@needs_callbacks
@pytest.mark.parametrize("kind", ["ridge", "stream", "logistic"])
def test_how_many_rows_users_have_is_not_told(kind):
    heard = []
    for n in (2500, 8000):
        recorder = Recorder()
        X, y = problem(kind, n)
        KINDS[kind]().set_callbacks(recorder).fit(X, y, groups=np.arange(n) % 2000)
        heard.append((recorder.begun, recorder.ended))
    assert heard[0] == heard[1]


@needs_callbacks
def test_each_call_of_a_stream_is_told():
    X, y = problem("stream")
    for kind in ("stream", "mi"):
        recorder = Recorder()
        model = KINDS[kind]().set_callbacks(recorder)
        model.partial_fit(X[:1000], y[:1000]).partial_fit(X[1000:], y[1000:])
        assert recorder.begun.count(("fit", None)) == 2


# Searches: how many fits there are, and which fail, may be private.


@needs_callbacks
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_fits_of_candidates_tell_nothing(n_jobs):
    X, y = problem("grid")
    inner = DPLogisticRegression().set_callbacks(Recorder(fails_at=1))
    inside = DPPipeline([("bounds", DPQuantileScaler()), ("model", clone(inner))])
    for estimator, name in ((inner, "C"), (inside, "model__C")):
        grid = {name: [0.1, 1.0]}
        search = DPGridSearch(estimator, grid, epsilon=8.0, delta=DELTA, n_jobs=n_jobs)
        search.fit(X, y)
        assert not hasattr(search.best_estimator_, "_skl_callbacks")
    (recorder,) = inner._skl_callbacks  # those of the user stay
    assert not recorder.calls and not recorder.begun


@needs_callbacks
def test_a_random_number_of_runs_is_told_to_nobody():
    assert not hasattr(DPRandomizedSearch, "set_callbacks")
    X, y = problem("grid")
    recorder = Recorder()
    inner = DPLogisticRegression().set_callbacks(recorder)
    whole = DPPipeline([("model", inner)])
    # Estimators among the candidates have callbacks of their own.
    for estimator, grid in ((inner, {"C": [0.1, 1.0]}), (whole, {"model": [inner]})):
        for kind in (DPRandomizedSearch, DPGridSearch):
            kind(estimator, grid, epsilon=8.0, delta=DELTA).fit(X, y)
    assert not recorder.calls and not recorder.begun


@needs_callbacks
def test_stages_of_a_search_are_told_until_the_score_is_reached():
    recorder = Recorder()
    search = KINDS["epsilon"]().set_callbacks(recorder).fit(*problem("epsilon"))
    assert [name for name, _ in recorder.begun[1:]] == [
        f"epsilon {stage.epsilon:.6g}" for stage in search.stages_
    ]


# Pipelines


@needs_callbacks
def test_a_pipeline_gives_to_its_steps_what_goes_to_steps():
    recorder = Propagated()
    model = KINDS["pipeline"]().set_callbacks(recorder).fit(*problem("pipeline"))
    assert ("step bounds", 0) in recorder.begun  # it does not tell of itself
    assert recorder.tasks[("noisy gradient steps", 12)] == 1
    assert all(value is None for value in recorder.told)
    assert recorder.calls == {"setup": 1, "teardown": 1}
    for _, step in (*model.steps, *model.steps_):
        assert not [key for key in vars(step) if "callback" in key]


@needs_callbacks
def test_a_pipeline_tells_of_each_call_of_a_stream():
    X, y = problem("stream")
    recorder = Propagated()
    model = DPPipeline([("model", KINDS["stream"]())]).set_callbacks(recorder)
    model.partial_fit(X[:1000], y[:1000]).partial_fit(X[1000:], y[1000:])
    assert recorder.calls == {"setup": 2, "teardown": 2}
    assert recorder.tasks[("rows of the stream", 1)] == 1


@needs_callbacks
@pytest.mark.parametrize("fails_at", [1, 2])
@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt])
def test_a_callback_that_raises_leaves_the_last_step_of_a_stream_where_it_was(fails_at, error):
    X, y = problem("stream")
    model = DPPipeline([("model", KINDS["stream"]())]).partial_fit(X[:1000], y[:1000])
    old, guarantee = model.predict(X[:5]), model.guarantee_
    model.set_callbacks(Recorder(fails_at, error))  # of the step, which has gone on, or of the fit
    with pytest.raises(error, match="from a callback"):
        model.partial_fit(X[1000:], y[1000:])
    assert_array_equal(model.predict(X[:5]), old)
    assert model.guarantee_ == guarantee == model._stated(model.steps_[-1][1].guarantee_)


@needs_callbacks
def test_callbacks_of_steps_that_could_be_those_of_the_pipeline_are_refused(tmp_path):
    ledger = BudgetLedger(tmp_path / "spent.ledger", 100.0, 1e-3)
    inner = DPLogisticRegression().set_callbacks(Propagated())
    model = DPPipeline([("model", inner)], delta=DELTA, ledger=ledger)
    model.set_callbacks(Recorder())
    with pytest.raises(ValueError, match=r"^steps must have no callbacks .* got some of 'model'"):
        model.fit(*problem("pipeline"))
    assert not ledger.history()
    model.set_callbacks().fit(*problem("pipeline"))  # a step may have them by itself
    assert inner._skl_callbacks[0].begun


@needs_callbacks
@pytest.mark.parametrize("kind", ["ridge", "grid", "pipeline"])
def test_a_progress_bar_shows_them(kind, capsys):
    pytest.importorskip("rich")
    from sklearn.callback import ProgressBar

    KINDS[kind]().set_callbacks(ProgressBar()).fit(*problem(kind))
    shown = capsys.readouterr().out
    # A bar for each part that has parts.
    for name in {"pipeline": ["step model", "noisy gradient steps"]}.get(kind, HEARD[kind]):
        assert (name if isinstance(name, str) else name[0]) in shown or name[1] == 0


# What is told


class Parts:
    """Counts the parts of phases."""

    def __init__(self, public=()):
        self.public, self.heard = public, []

    def phase(self, name, n_parts):
        self.heard.append([name, n_parts, 0, False])
        return self

    def step(self):
        self.heard[-1][2] += 1

    def close(self):
        self.heard[-1][3] = True


@pytest.mark.parametrize("n, n_parts", [(0, 0), (7, 7), (100, 100), (1001, 100)])
def test_a_phase_is_told_in_a_hundred_parts_at_most(n, n_parts):
    parts = Parts()
    with heard_by(parts):
        assert list(told(range(n), "steps", n)) == list(range(n))
    assert parts.heard == [["steps", n_parts, n_parts, True]]
    assert list(told(range(n), "steps", n)) == list(range(n))
    assert len(parts.heard) == 1


@pytest.mark.parametrize("public, n_parts", [((), 0), (("users",), 0), (("rows",), 7)])
def test_what_follows_from_a_private_number_is_told_without_it(public, n_parts):
    parts = Parts(public)
    with heard_by(parts):
        assert list(told(range(7), "a pass", 7, of="rows")) == list(range(7))
    assert parts.heard == [["a pass", n_parts, n_parts, True]]


def test_a_fit_within_another_one_is_not_heard():
    parts = Parts(("rows", "users"))
    with heard_by(parts):
        KINDS["ridge"]().fit(*problem("ridge"))
    assert not parts.heard
