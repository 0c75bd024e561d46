import pickle
import threading
from collections import Counter

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone

from skdp.kernel import DPKernelRidge, DPOnlineKernelRegressor
from skdp.linear_model import DPLogisticRegression, MIPrivateSGDRegressor
from skdp.model_selection import DPEpsilonSearch, DPGridSearch
from skdp.pipeline import DPPipeline
from skdp.preprocessing import DPQuantileScaler
from skdp.privacy import BudgetLedger

DELTA = 1e-6
KINDS = {
    "ridge": lambda: DPKernelRidge(delta=DELTA, y_bounds=(-1, 1), n_components=20),
    "query": lambda: DPKernelRidge(y_bounds=(-1, 1), release="query", n_queries=5),
    "stream": lambda: DPOnlineKernelRegressor(y_bounds=(-1, 1), n_components=20, release="final"),
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
    X, y = small(kind)
    model = KINDS[kind]().set_callbacks(recorder).fit(X, y)
    X = X[:2]
    assert recorder.begun[0][0] == recorder.ended[-1] == "fit"
    assert recorder.calls == {"setup": 1, "teardown": 1}
    assert len(recorder.begun) == len(recorder.ended)
    assert recorder.tasks.items() >= HEARD[kind].items()
    assert all(value is None for value in recorder.told)
    validated = {"n_features_in_", "feature_names_in_", "_"}
    assert set(recorder.had) <= validated  # what is fitted is not there yet
    assert not [key for key in vars(model) if "callback" in key and key != "_skl_callbacks"]
    recorder.lock = threading.Lock()  # no pickle takes it
    copied = pickle.loads(pickle.dumps(model))
    assert not hasattr(copied, "_skl_callbacks") and model._skl_callbacks == [recorder]
    assert_array_equal(copied.predict(X), model.predict(X))


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
        told = [*recorder.begun, None, *recorder.ended]
        # How many steps a linear descent has follows from the released number of rows.
        heard.append([one for one in told if kind != "logistic" or "steps" not in str(one)])
    assert heard[0] == heard[1]


# Searches: how many fits there are, and which fail, may be private.


@needs_callbacks
def test_fits_of_candidates_tell_nothing():
    X, y = problem("grid")
    inner = DPLogisticRegression().set_callbacks(Recorder(fails_at=1))
    inside = DPPipeline([("bounds", DPQuantileScaler()), ("model", clone(inner))])
    for estimator, name in ((inner, "C"), (inside, "model__C")):
        grid = {name: [0.1, 1.0]}
        search = DPGridSearch(estimator, grid, epsilon=8.0, delta=DELTA)
        search.fit(X, y)
        assert not hasattr(search.best_estimator_, "_skl_callbacks")
    (recorder,) = inner._skl_callbacks  # those of the user stay
    assert not recorder.calls and not recorder.begun


# Pipelines


@needs_callbacks
def test_a_pipeline_gives_to_its_steps_what_goes_to_steps():
    recorder = Propagated()
    model = KINDS["pipeline"]().set_callbacks(recorder).fit(*problem("pipeline"))
    assert ("step bounds", 0) in recorder.begun  # it does not tell of itself
    assert [recorder.tasks[task] for task in recorder.tasks if "steps" in task[0]] == [1]
    assert all(value is None for value in recorder.told)
    assert recorder.calls == {"setup": 1, "teardown": 1}
    for _, step in (*model.steps, *model.steps_):
        assert not [key for key in vars(step) if "callback" in key]


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
