"""Base classes of private estimators, whose fit checks, plans, charges, releases and stores."""

import inspect
import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from contextvars import ContextVar
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial, wraps
from pickle import PicklingError
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import expit, log_expit, log_softmax, softmax
from sklearn.base import BaseEstimator, is_classifier, is_regressor
from sklearn.frozen import FrozenEstimator
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from skdp._config import get_config
from skdp._random._source import check_random_state, noise_source
from skdp._recording import facts_of_a_fit, heard_by, is_recorded
from skdp._validation import level_of_the_user, one_of, plain, positive, probability, short_repr
from skdp.exceptions import PrivacyWarning
from skdp.learner._sequence import Rows
from skdp.learner._views import GuaranteeView
from skdp.mechanisms import clip_rows
from skdp.privacy import ADJACENCIES, ApproxDP, BudgetLedger, Guarantee
from skdp.rows import _inputs as inputs
from skdp.rows import _users as owners
from skdp.rows._source_frames import predictions
from skdp.rows._sources import read_source


def check_budget(estimator, *, epsilon=None):
    """Check ``epsilon``, ``delta``, ``adjacency``, ``random_state`` and ``ledger``."""
    positive(epsilon=estimator.epsilon if epsilon is None else epsilon)
    probability(delta=estimator.delta)
    one_of(ADJACENCIES, adjacency=estimator.adjacency)
    check_random_state(estimator.random_state)
    ledger_of(estimator)


def ledger_of(estimator):
    """Return the ledger of an estimator, opened if it is a path; None if there is none.

    A path must name an existing ledger, because a typo would otherwise create a fresh budget.
    """
    ledger = estimator.ledger
    if ledger is None or isinstance(ledger, BudgetLedger):
        return ledger
    if isinstance(ledger, str | os.PathLike):
        with suppress(FileNotFoundError):
            return BudgetLedger(ledger)
    raise ValueError(
        "ledger must be None, a BudgetLedger or the path of an existing one "
        f"(BudgetLedger(path, epsilon, delta) creates it); got {short_repr(ledger)}."
    )


# How many fits are around this point, this one included: a step of a pipeline is at 2.
_depth: ContextVar[int] = ContextVar("depth", default=0)
_names: dict[type, tuple[str, ...]] = {}


def parameter_names(estimator):
    """Names of the parameters, which are those of the class; to find them out takes a while."""
    kind = type(estimator)
    if kind not in _names:
        _names[kind] = tuple(kind._get_param_names())
    return _names[kind]


_PLAIN = (bool, int, float, str)


def frozen_params(estimator):
    """Return a copy of the parameters that compares by value."""
    names = parameter_names(estimator)
    return {name: _frozen(getattr(estimator, name)) for name in names}


def check_unchanged(estimator, params):
    """Check that the parameters equal the ``params`` with which a stream began."""
    for name, before in params.items():
        if _is_same(getattr(estimator, name), before):
            continue
        now = _frozen(getattr(estimator, name))
        if now is not before and now != before:
            raise ValueError(
                f"{name} must not change within a stream, it was {short_repr(before)}; call fit "
                "to "
                f"start a new one; got {short_repr(getattr(estimator, name))}."
            )


def is_untouched(estimator, params):
    """Whether every parameter has its old value and type and so was checked before.

    False is inconclusive: a list, an array or a number of another type may be equal.
    """
    return all(_is_same(getattr(estimator, name), before) for name, before in params.items())


def _is_same(value, before):
    if value is before:
        return True
    if type(value) is not type(before):
        return False
    if type(value) is tuple:
        return len(value) == len(before) and all(map(_is_same, value, before))
    return type(value) in _PLAIN and value == before


def _frozen(value):
    """What compares by its values, whatever becomes of those that it was made of."""
    if type(value) is tuple and all(type(item) in _PLAIN for item in value):
        return value
    value = plain(value)
    if type(value) in _PLAIN:
        return value
    if hasattr(value, "toarray"):
        value = value.toarray()
    if hasattr(value, "__array__"):
        value = np.asarray(value).tolist()
    if isinstance(value, Mapping):
        return tuple(sorted(((repr(key), _frozen(one)) for key, one in value.items()), key=repr))
    if isinstance(value, Sequence) and not isinstance(value, bytes):
        return tuple(map(_frozen, value))
    return plain(value)


@contextmanager
def restored_on_error(estimator):
    """Restore the attributes of an estimator if the block fails, also on an interrupt."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise


@contextmanager
def unchanged_on_error(estimator, *, fresh=True):
    """Leave a fitted model unchanged if a new fit fails, including attributes set by validation.

    Within the block, parameters are Python numbers and floating-point warnings are silenced,
    because a warning about an overflow would depend on the data. Releases are noted in public
    numbers, in addition to earlier notes unless ``fresh``. Listeners of an outer fit get no
    messages of this one.
    """
    told = () if fresh else vars(estimator).get("_facts", ())
    given = {name: getattr(estimator, name) for name in parameter_names(estimator)}
    token = _depth.set(_depth.get() + 1)
    try:
        with restored_on_error(estimator):
            vars(estimator).update({name: plain(value) for name, value in given.items()})
            with facts_of_a_fit(told) as facts, heard_by(None), np.errstate(all="ignore"):
                yield
            vars(estimator).update(given, _facts=facts.as_tuple())
    finally:
        _depth.reset(token)


def charge(estimator, guarantee):
    """Charge the ledger, if any, before the data are used, and warn of a known seed."""
    warn_of_seed(estimator.random_state is not None, estimator.ledger)
    charge_quietly(estimator, guarantee)


def charge_quietly(estimator, guarantee):
    """Charge the ledger, if any, without a warning of a known seed."""
    ledger = ledger_of(estimator)
    if ledger is not None:
        ledger.charge(guarantee, label=getattr(estimator, "_label", type(estimator).__name__))


def charge_stream(estimator, guarantee, *, stream, version, continues):
    """Raise the ledger's entry of a stream to ``guarantee``, before the data are used."""
    ledger = ledger_of(estimator)
    if ledger is None:
        return
    label = type(estimator).__name__
    ledger.charge_stream(
        guarantee, stream=stream, version=version, continues=continues, label=label
    )


def warn_of_delta(model, n_units, unit="record"):
    """Warn of a delta that permits the release of a record, once for nested fits.

    There is no warning under add-remove, where the number of records is private.

    Parameters
    ----------
    model : object
        With parameters ``delta`` and ``adjacency``.

    n_units : int or None
        Number of records, or of users.

    unit : str, default="record"
    """
    delta, is_public = model.delta, model.adjacency == "replace-one"
    # Without rows a fit is refused.
    if not is_public or not n_units or _depth.get() > 1 or delta < 1.0 / n_units:
        return
    warnings.warn(
        f"delta={delta:g} is at least 1 over the {n_units} {unit}s: a mechanism that publishes "
        f"one {unit} at random satisfies it. Take a delta well below {1.0 / n_units:.2g}.",
        PrivacyWarning,
        stacklevel=level_of_the_user(),
    )


def warn_of_seed(is_seeded, ledger=None):
    """Warn of noise that can be recomputed, once per call and before the charge.

    ``config_context(known_seeds=True)`` silences the warning unless there is a ledger.
    """
    if not is_seeded or (ledger is None and get_config()["known_seeds"]):
        return
    if ledger is None:
        means = (
            "and its guarantee protects nobody. Use random_state=None on real data; fit figures "
            "and tests within skdp.config_context(known_seeds=True)"
        )
    else:
        means = "and the charge to the ledger buys no privacy. Use random_state=None on real data"
    warnings.warn(
        f"random_state is set, so the noise of this fit can be recomputed, {means}.",
        PrivacyWarning,
        stacklevel=level_of_the_user(),
    )


try:  # scikit-learn 1.9
    from sklearn.callback import AutoPropagatedCallback, with_callbacks
    from sklearn.callback import CallbackSupportMixin as _CallbackSupportMixin
except ImportError:

    class _CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands in where scikit-learn has no callbacks."""

        def _init_callback_context(self, **_):
            return None

    def with_callbacks(method):
        """Return the method."""
        return method

    class AutoPropagatedCallback:  # type: ignore[no-redef]
        """Stands in, too: no callback is one."""


class CallbackSupportMixin(_CallbackSupportMixin):
    """Mixin for estimators that support callbacks.

    Privacy: pickles omit callbacks, which may hold times or any other data.
    """

    def __reduce_ex__(self, protocol):
        make, arguments, state, *rest = super().__reduce_ex__(protocol)
        kept = {name: value for name, value in state.items() if name != "_skl_callbacks"}
        return make, arguments, kept, *rest


def begun_fit(estimator, n_parts=None):
    """Return the callback context of a fit, before any check; None without callbacks."""
    context = estimator._init_callback_context(max_subtasks=n_parts)
    listens = getattr(estimator, "_skl_callbacks", ())
    return context if listens else None


class Progress:
    """Report the progress of a fit to callbacks.

    A callback receives the estimator, with the attributes of an earlier fit if any, and the names
    and numbers of the parts of the fit. It receives no rows, targets or model. Its return value is
    ignored, because the guarantee is for a whole fit.

    Parameters
    ----------
    estimator : estimator

    context : CallbackContext or None
        None disables the messages.

    public : tuple of str, default=()
        Units with a public number, among "rows" and "users".
    """

    def __init__(self, estimator, context, *, public=()):
        self.estimator, self.context = estimator, context
        self.public = public
        if context is not None:
            context.call_on_fit_task_begin(estimator=estimator)

    def __call__(self, n_rounds):
        """Report that rounds of a network are done."""
        if self.context is not None:
            Progress(
                self.estimator, self.context.subcontext(task_name=f"{n_rounds} rounds")
            ).close()

    def phase(self, name, n_parts):
        """Begin a phase of public length, within the fit."""
        return _Phase(self.estimator, self.context.subcontext(name, max_subtasks=n_parts), name)

    @contextmanager
    def part(self, name, step=None):
        """Report a part of the fit; a step with callbacks reports its own progress."""
        if self.context is None:
            yield
            return
        context = self.context.subcontext(task_name=name)
        joined = nullcontext()
        if isinstance(step, CallbackSupportMixin) and type(step).__module__.startswith("skdp."):
            joined = context.propagate_callback_context(step)
        with joined:
            context.call_on_fit_task_begin(estimator=self.estimator)
            yield
            context.call_on_fit_task_end(estimator=self.estimator)

    def close(self):
        """Report that the fit is done."""
        if self.context is not None:
            self.context.call_on_fit_task_end(estimator=self.estimator)


class _Phase(Progress):
    """Part of a fit that reports its steps."""

    def __init__(self, estimator, context, name):
        super().__init__(estimator, context)
        self.name = name

    def step(self):
        """Report that one more step is done."""
        Progress(self.estimator, self.context.subcontext(self.name)).close()


@contextmanager
def progress_of(estimator, context, *, groups=None):
    """Report the fit within the block to callbacks, from its charge until it is stored.

    Parameters
    ----------
    estimator : estimator

    context : CallbackContext or None
        From `begun_fit`.

    groups : array-like, default=None
        Owners of the rows. If given, the number of rows is private.

    Yields
    ------
    Progress
    """
    public: tuple[str, ...] = ("rows", "users") if groups is None else ("users",)
    if getattr(estimator, "adjacency", "replace-one") == "add-remove":
        public = ()
    progress = Progress(estimator, context, public=public)
    with heard_by(None if context is None else progress):
        yield progress
    progress.close()


def _parts(estimator):
    """An estimator and all that are in it, but what is frozen, which is not a copy."""
    yield estimator
    inner = estimator.get_params(deep=True)
    frozen = [name for name, value in inner.items() if isinstance(value, FrozenEstimator)]
    for name, value in inner.items():
        if not any(name == one or name.startswith(f"{one}__") for one in frozen):
            yield value


def without_callbacks(estimator):
    """Remove the callbacks from a copied estimator and its parts, and return it.

    Privacy: the number of fits of a search, and which of them fail, may be private.
    """
    for part in _parts(estimator):
        if not isinstance(part, type) and hasattr(part, "_skl_callbacks"):
            part.set_callbacks()
    return estimator


def check_own_callbacks(estimator, steps):
    """Refuse, before a charge, callbacks of steps that scikit-learn would refuse later."""
    if not getattr(estimator, "_skl_callbacks", ()):
        return
    for name, step in steps:
        own = getattr(step, "_skl_callbacks", ())
        if any(isinstance(callback, AutoPropagatedCallback) for callback in own):
            raise ValueError(
                "steps must have no auto-propagated callbacks, such as a ProgressBar, in a "
                "pipeline with callbacks: set them on the pipeline; got some of "
                f"{name!r}."
            )


_ANSWERS = ("predict", "predict_proba", "predict_log_proba", "decision_function", "transform")
_METHODS = ("fit", "partial_fit", "fit_transform", "score", *_ANSWERS)
_ARGUMENTS = {
    "sample_weight": (
        "a weight of k multiplies the contribution of a row by k. DPLogisticRegression, "
        "DPLinearSVC, DPLinearRegression, DPPoissonRegressor and DPKernelRidge take weights up to "
        "max_sample_weight, and so does a DPPipeline whose last step is one of these, as "
        "model__sample_weight if the step is called model"
    ),
    "return_std": (
        "no private standard deviation of a prediction is released. Linear classifiers have "
        "coef_noise_, the noise in their coefficients"
    ),
    "return_cov": "no private covariance of predictions is released",
    "groups": (
        "it protects rows, not users. DPLogisticRegression, DPLinearSVC, "
        "DPKernelRidge, streams and DistributedDPClassifier take the owners of rows, and so do a "
        "DPPipeline whose last step is one of these and a search over these"
    ),
    "node": "it has no nodes. DistributedDPClassifier.fit takes them, with preprocessed rows",
}
_MISSING = {
    "summary_": (
        "DPLinearRegression has intervals, and so have DPLogisticRegression and "
        "DPPoissonRegressor fitted with inference=True"
    ),
    "partial_fit": (
        "each call would be a separate release. For streams use "
        "DPOnlineKernelRegressor, DPOnlineClassifier, MIPrivateSGDRegressor or "
        "DistributedDPClassifier"
    ),
    "released": (
        "only streams have it. The user guide lists the contents of each fitted object "
        "and the objects that must stay with the curator"
    ),
}


class Explained:
    """Mixin whose errors about missing arguments and attributes name alternatives."""

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        for name in _METHODS:
            method = inspect.getattr_static(cls, name, None)  # of a mixin as well
            # What `available_if` makes has the function and its condition.
            function, check = getattr(method, "fn", method), getattr(method, "check", None)
            if inspect.isfunction(function) and not hasattr(function, "_explains"):
                told = _explained(function)
                if name in _ANSWERS:
                    told = _reading(told, name)
                setattr(cls, name, told if check is None else available_if(check)(told))

    def _explain(self, method, name):
        """Raise an error that names the alternative to an argument, if it is known."""
        if name in _ARGUMENTS:
            kind = type(self).__name__
            raise TypeError(f"{kind}.{method}() takes no {name}: {_ARGUMENTS[name]}.")

    def __getattr__(self, name):
        if inspect.getattr_static(type(self), name, None) is not None:
            # A property that raised: its own error, a NotFittedError perhaps, says more.
            try:
                return object.__getattribute__(self, name)
            except AttributeError as error:
                if name not in _MISSING:
                    raise
                told = f"{error}: {_MISSING[name]}."
            raise AttributeError(told, name=name, obj=self)
        told = f"{type(self).__name__!r} object has no attribute {name!r}"
        if name in _MISSING:
            told += f": {_MISSING[name]}."
        raise AttributeError(told, name=name, obj=self)


def _explained(method):
    known = inspect.signature(method).parameters
    if any(one.kind is one.VAR_KEYWORD for one in known.values()):
        return method

    @wraps(method)
    def explained(self, *args, **kwargs):
        for name in kwargs:
            if name not in known:
                self._explain(method.__name__, name)
        return method(self, *args, **kwargs)

    vars(explained)["_explains"] = True
    return explained


def _reading(method, name):
    """Extend a method to sources, which it reads block by block."""

    @wraps(method)
    def answered(self, X, *args, **kwargs):
        if inputs.in_memory(X, None, None) is not None:
            return method(self, X, *args, **kwargs)
        check_is_fitted(self)
        names = None
        if name == "predict":
            names = ["prediction"]
        elif name == "transform":
            names = list(self.get_feature_names_out())
        elif hasattr(self, "classes_") and len(self.classes_) > (name == "decision_function") + 1:
            names = [str(label) for label in self.classes_]
        ask = partial(method, self, *args, **kwargs)
        return predictions(X, ask, getattr(self, "feature_names_in_", None), names)

    return answered


# Caveat: weights that are made of all rows, as those of boosting, tell of all rows.
WEIGHTED = (
    "sample_weight: each weight must be a function of its own row and of public or released "
    "numbers"
)

# Caveats: who knows the seed, or has the transcript, knows the exact answers.
SEEDED, VOID = "random_state: noise can be recomputed", "recorded: void"


_IN_CACHE = 2**17  # numbers


class LinkedDocumentation:
    """Mixin that links the HTML view of an estimator to the skdp documentation."""

    _doc_link_module = "skdp"
    _doc_link_template = (
        "https://skdp.readthedocs.io/en/latest/api/generated/"
        "{estimator_module}.{estimator_name}.html"
    )


class NoisyPredictions:
    """Mixin with the tags of noisy predictors: sparse input and possibly poor scores."""

    def __sklearn_tags__(self):
        return _noisy(super().__sklearn_tags__())  # type: ignore[misc]


def _noisy(tags):
    tags.input_tags.sparse = True
    for kind in (tags.classifier_tags, tags.regressor_tags):
        if kind is not None:
            kind.poor_score = True  # noise is a promise and accuracy is not
    return tags


class StatedGuarantee(Explained, GuaranteeView):
    """Mixin for estimators whose ``guarantee_`` states known seeds and recorded releases.

    Recording releases keeps the exact answers behind them, so the guarantee of such a model is
    void. The model can be copied but not pickled.
    """

    guarantee_: Guarantee
    random_state: Any
    epsilon: Any
    delta: Any
    adjacency: str

    def _stated(self, guarantee, *, fresh=True):
        """Return what a ledger was charged as the model states it, with its caveats.

        What goes on with a stream, where ``fresh`` is False, has those of the stream so far.
        """
        before = () if fresh else self.guarantee_.caveats
        seeded = () if self.random_state is None else (SEEDED,)
        recorded = (VOID,) if is_recorded() else ()
        return guarantee.with_caveats(*before, *seeded, *recorded)

    def _is_seeded(self):
        """Whether the noise of the fit, or of any call of its stream, can be recomputed."""
        return SEEDED in self.guarantee_.caveats

    # Part of a budget that a step takes in a pipeline, where models share what is left; None is a
    # model. Of mu^2 if delta is positive, of epsilon otherwise; a pair has one for each.
    _budget_share: float | tuple[float, float] | None = None
    # Whether steps have their budgets, seeds and ledger from it.
    _divides_budget = False

    @property
    def _reads_count(self):
        """Whether what a fit releases depends on how many rows there are, if that is public."""
        return False

    def _assumptions(self, unit):
        """What a guarantee rests on that nothing checks, in words, with parameters checked."""
        return ()

    @property
    def _takes_columns(self):
        """Whether rows are best as columns in [-1, 1], neither splines nor scaled to one norm."""
        return False

    def _planned_guarantee(self, n_features):
        """What a fit with these parameters is charged, at most: from public numbers alone.

        Parameters
        ----------
        n_features : int or None
            Columns of the rows; None where they are not known, which what is returned holds for.

        Returns
        -------
        Guarantee
            Which does not depend on the number of rows.
        """
        return ApproxDP(float(self.epsilon), float(self.delta), adjacency=self.adjacency)

    def _planned_for_users(self, n_features):
        """`_planned_guarantee` of a fit with ``groups``, for those that take any.

        It differs in its unit, unless a subclass says more.
        """
        return self._planned_guarantee(n_features)._plain("user")

    def _planned_for(self, n_features, n_units=None, unit="record"):
        """`_planned_guarantee` of a fit to a public number of rows, or of users."""
        by_unit = {"record": self._planned_guarantee, "user": self._planned_for_users}
        return by_unit[unit](n_features)

    def __reduce_ex__(self, protocol):
        stated = getattr(self, "guarantee_", None)
        if stated is not None and VOID in stated.caveats:
            raise PicklingError(
                f"This {type(self).__name__} was fitted, or asked, while releases were recorded: "
                "its guarantee is void, and it must not leave its process. Fit it again without "
                "recording."
            )
        return super().__reduce_ex__(protocol)

    # Copies are made as they would be otherwise, which is as pickles are.

    def __copy__(self):
        return self._rebuilt(lambda copied, state: state)

    def __deepcopy__(self, memo):
        def deep(copied, state):
            memo[id(self)] = copied
            return deepcopy(state, memo)

        return self._rebuilt(deep)

    def _rebuilt(self, state_of):
        recipe: Any = super().__reduce_ex__(4)
        make, given, state = recipe[:3]
        copied = make(*given)
        state = state_of(copied, state)
        if hasattr(type(copied), "__setstate__"):
            copied.__setstate__(state)
        else:
            vars(copied).update(state)
        return copied


@dataclass(frozen=True)
class Public:
    """Public facts about a fit, known before the charge, on which its plan may depend.

    Parameters
    ----------
    target : ApproxDP
        Target guarantee of the fit: epsilon, delta, adjacency and unit.

    n_features : int

    n_samples : int or None
        Number of rows, or of users if rows have owners; None if it is private.

    classes : ndarray of shape (n_classes,) or None
        Labels of a classifier.

    is_sparse : bool, default=False
        Whether the rows are a sparse matrix.

    is_weighted : bool, default=False
        Whether the rows have weights. The sum of weights is private even if the number of rows is
        public.
    """

    target: ApproxDP
    n_features: int
    n_samples: int | None = None
    classes: np.ndarray | None = None
    is_sparse: bool = False
    is_weighted: bool = False

    @property
    def unit(self) -> str:
        """Unit of protection: "record" or "user"."""
        return self.target.unit

    def row_norm(self, x_norm: float, *, constant: float = 0.0) -> float:
        """Return a bound on the norm of a row of `Data.rows`, including rounding."""
        return Rows.norm_bound(float(x_norm), constant, self.n_features + (constant != 0.0))


@dataclass(frozen=True, eq=False, repr=False)
class Data:
    """Validated private rows of one fit.

    Parameters
    ----------
    X : {ndarray, CSR matrix} of shape (n_samples, n_features)

    y : ndarray of shape (n_samples,) or None
        Targets, or label codes from 0 on for a classifier.

    users : Users or None
        Owners of the rows, if the fit protects users.

    classes : ndarray of shape (n_classes,) or None
        Labels of a classifier. Public.

    weights : ndarray of shape (n_samples,) or None
        Weights divided by the largest allowed weight: from 0 to 1.
    """

    X: Any
    y: Any
    users: owners.Users | None = None
    classes: np.ndarray | None = None
    weights: np.ndarray | None = None

    @property
    def n_units(self) -> int:
        """Number of users if rows have owners, of rows otherwise."""
        return self.X.shape[0] if self.users is None else self.users.n_users

    def rows(
        self, x_norm: float, *, y_bounds: tuple[float, float] | None = None, constant: float = 0.0
    ) -> Rows:
        """Return rows for the releases of linear models, which clip them to a norm.

        Parameters
        ----------
        x_norm : float

        y_bounds : (float, float), default=None
            Bounds to which targets are clipped; None disables clipping.

        constant : float, default=0.0
            Constant feature appended to each row; 0 appends none.
        """
        y = self.y if y_bounds is None else np.clip(self.y, *y_bounds)
        x_norm = float(x_norm)
        return Rows(self.X, y, x_norm, constant, users=self.users, weights=self.weights)


class _Learner(
    CallbackSupportMixin,
    StatedGuarantee,
    LinkedDocumentation,
    BaseEstimator,
    ABC,
):
    """Base of private estimators: parameters, checks and rows."""

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        if "__sklearn_tags__" not in vars(cls):
            # Mixins stand before this class, as scikit-learn asks, and make tags anew.
            cls.__sklearn_tags__ = lambda self: _noisy(super(cls, self).__sklearn_tags__())

    def __init__(
        self,
        epsilon=1.0,
        delta=0.0,
        *,
        adjacency="replace-one",
        random_state=None,
        ledger=None,
    ):
        self.epsilon = epsilon
        self.delta = delta
        self.adjacency = adjacency
        self.random_state = random_state
        self.ledger = ledger

    # What numbers of rows may be in a fit; others are copied.
    _dtypes: Any = np.float64

    def check_parameters(self):
        """Check the parameters of the subclass, before the rows are read."""

    def report_notes(self):
        """Return sentences for the privacy report, from public and released numbers.

        Returns
        -------
        sequence of str
        """
        return ()

    def validated(self, X):
        """Validate the input of a fitted model: {ndarray, CSR matrix} of ``n_features_in_``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        return inputs.checked_rows(self, X)

    def _target(self, unit="record"):
        epsilon, delta = float(self.epsilon), float(self.delta)
        return ApproxDP(epsilon, delta, adjacency=self.adjacency, unit=unit)

    def _read(self, X, y, *, reset, counts):
        """Rows and targets, checked; no targets where there are none to learn."""
        if is_regressor(self) or is_classifier(self):
            numeric, options = is_regressor(self), dict(dtype=self._dtypes) if reset else {}
            return inputs.checked_data(
                self, X, y, reset=reset, numeric=numeric, counts=counts, **options
            )
        return inputs.checked_rows(self, X, reset=reset), None

    # Public bound on weights, of those that take any.
    max_sample_weight: Any = None

    @property
    def _most_weight(self):
        return 1.0 if self.max_sample_weight is None else float(self.max_sample_weight)

    def _data(self, X, y, groups, sample_weight=None):
        """Rows, checked; of a classifier with codes in place of labels."""
        owners.check_largest_weight(self.max_sample_weight)
        data = self._unweighted(X, y, groups)
        weights = owners.checked_weights(sample_weight, data.X.shape[0], self._most_weight)
        if weights is not None and self.max_sample_weight is None:
            warnings.warn(
                "max_sample_weight is not given: weights above 1 count as 1. This bound must be "
                "public; the noise is proportional to it.",
                PrivacyWarning,
                stacklevel=level_of_the_user(),
            )
        return replace(data, weights=weights)

    def _unweighted(self, X, y, groups):
        given = inputs.in_memory(X, y, groups)
        if given is None:
            return Data(*read_source(self, X, y, groups))
        X, y, groups = given
        X, y = self._read(X, y, reset=True, counts=groups is None)
        users = owners.Users.of(groups, X.shape[0])
        if not is_classifier(self):
            return Data(X, y, users)
        classes, codes = inputs.encode_labels(y, getattr(self, "classes", None))
        return Data(X, codes, users, classes)


class PrivateEstimator(_Learner):
    """Base class of estimators whose fit is one `Sequence` of releases.

    A subclass implements `plan`, which plans the releases from public numbers only, and `learn`,
    which makes them. This class handles checks, users, the charge, callbacks, the guarantee and
    its caveats. A fit that fails leaves the old model unchanged.

    Privacy: `learn` may store only public values and functions of the result of ``run``. Nothing
    else that depends on ``data`` may leave it.

    Parameters
    ----------
    epsilon : float, default=1.0

    delta : float, default=0.0

    adjacency : {"replace-one", "add-remove"}, default="replace-one"

    random_state : None, int, RandomState or Generator, default=None

    ledger : BudgetLedger or path, default=None

    Attributes
    ----------
    guarantee_ : ApproxDP
        Guarantee of the fit. Public.

    classes_ : ndarray of shape (n_classes,)
        Labels of a classifier: its parameter ``classes``, or the labels in ``y``. Public.

    Examples
    --------
    A private sum of rows that are clipped to norm 1:

    >>> from functools import partial
    >>> import numpy as np
    >>> from skdp.learner import PrivateEstimator, Sequence, SumRelease
    >>> class PrivateTotal(PrivateEstimator):
    ...     def plan(self, public):
    ...         release = partial(SumRelease.plan, size=public.n_features, l2_norm=1.0)
    ...         return Sequence.plan(public.target, release=release, n_samples=public.n_samples)
    ...     def learn(self, data, run):
    ...         self.total_ = run(data).total
    >>> model = PrivateTotal(epsilon=2.0, delta=1e-6).fit(np.eye(3))
    >>> model.total_.shape, model.guarantee_.epsilon
    ((3,), 2.0)
    """

    @abstractmethod
    def plan(self, public):
        """Plan the releases of a fit from public numbers, and check the subclass's parameters.

        Parameters
        ----------
        public : Public

        Returns
        -------
        Sequence
            Planned releases, whose guarantee is charged to the ledger.
        """

    @abstractmethod
    def learn(self, data, run):
        """Make the releases and store the fitted attributes.

        Parameters
        ----------
        data : Data

        run : callable
            ``run(rows)`` makes the planned releases on rows, such as ``data`` or
            ``data.rows(x_norm)``, and returns a `Run` with the released values, without the rows.
            It can be called once.
        """

    @with_callbacks
    def fit(self, X, y=None, groups=None):
        """Fit the model under ``(epsilon, delta)``-differential privacy.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), or source
            Rows, or any input of `~skdp.rows.row_source`, which is read several times.

        y : array-like of shape (n_samples,) or str, default=None
            Labels or targets, or the name of their column in ``X``.

        groups : array-like of shape (n_samples,) or str, default=None
            ID of the user who owns each row, or the name of its column. The guarantee then
            covers all rows of a user, however many. None protects single rows.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If a parameter or the input is invalid.
        BudgetExceededError
            If the charge would exceed the ledger's budget; the old model stays.
        SolverError
            If the solution could not be certified; the ledger stays charged.
        SourceChangedError
            If rows of a source change during the fit; the ledger stays charged.
        """
        return self._fit(X, y, groups)

    def _fit(self, X, y, groups, sample_weight=None):
        context = begun_fit(self)
        with unchanged_on_error(self):
            check_budget(self)
            self.check_parameters()
            data = self._data(X, y, groups, sample_weight)
            # Sensitivities and rules count users, if rows have any: how many rows is private then.
            unit, n_units = "record" if data.users is None else "user", data.n_units
            # Under add-remove their number is private: rules do not see it.
            n_public = n_units if self.adjacency == "replace-one" else None
            target = self._target(unit)
            sizes, is_sparse = (data.X.shape[1], n_public), sparse.issparse(data.X)
            is_weighted = data.weights is not None
            sequence = self.plan(Public(target, *sizes, data.classes, is_sparse, is_weighted))
            _check_plan(sequence.guarantee, target)
            guarantee = with_weights(sequence.guarantee, data.weights)
            sequence.check_n_rows(n_units)
            noise = noise_source(self.random_state)
            warn_of_delta(self, n_public, unit)
            charge(self, guarantee)
            unused = iter((False,))  # threads take it one at a time

            def run(rows):
                if next(unused, True):
                    raise ValueError("run must be called once: the charge covers one use.")
                same = rows.users is data.users and rows.weights is data.weights
                if rows.X.shape[0] != data.X.shape[0] or not same:
                    raise ValueError(
                        "run must get as many rows as learn, with the same users and weights."
                    )
                with progress_of(self, context, groups=groups):
                    return sequence(rows, noise).released()

            self.learn(data, run)
            if data.classes is not None:
                self.classes_ = data.classes
            self.guarantee_ = self._stated(guarantee)
        return self


def with_weights(guarantee, weights):
    """Return the guarantee, with a caveat if rows have weights."""
    return guarantee if weights is None else guarantee.with_caveats(WEIGHTED)


class Weighted(PrivateEstimator):
    """Base class of estimators that support sample weights.

    A subclass has the parameter ``max_sample_weight``. Its plan is for weights of at most 1; it
    tells `Sequence.plan` by ``is_counted`` that the sum of weights is counted.
    """

    @with_callbacks
    def fit(self, X, y=None, groups=None, sample_weight=None):
        """Fit the model under ``(epsilon, delta)``-differential privacy.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), or source
            Rows, or any input of `~skdp.rows.row_source`, which is read several times.

        y : array-like of shape (n_samples,) or str, default=None
            Labels or targets, or the name of their column in ``X``.

        groups : array-like of shape (n_samples,) or str, default=None
            ID of the user who owns each row, or the name of its column. The guarantee then
            covers all rows of a user, however many. None protects single rows.

        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative weight of each row, clipped to ``max_sample_weight``. A weight must be a
            function of its own row and of public or released numbers. None means 1 for all rows.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If a parameter or the input is invalid.
        BudgetExceededError
            If the charge would exceed the ledger's budget; the old model stays.
        SolverError
            If the solution could not be certified; the ledger stays charged.
        SourceChangedError
            If rows of a source change during the fit; the ledger stays charged.
        """
        return self._fit(X, y, groups, sample_weight)


def _check_plan(guarantee, target):
    """Check that a plan meets the target guarantee, with its adjacency and unit."""
    about = guarantee.adjacency, guarantee.unit
    is_met = guarantee.epsilon <= target.epsilon and guarantee.delta <= target.delta
    if about != (target.adjacency, target.unit) or not is_met:
        raise ValueError(
            f"plan must return a sequence that meets public.target ({target}); got one with: "
            f"{guarantee}"
        )


class LinearPredictions:
    """Mixin with the predictions of a linear classifier, which clips rows as in its fit."""

    classes_: np.ndarray
    coef_: np.ndarray
    intercept_: np.ndarray
    x_norm_: float

    def decision_function(self, X):
        """Return the scores of each sample: of the second of two classes, or of all classes.

        Rows whose norm exceeds ``x_norm_`` are scaled down to it, as in `fit`. For other rows the
        score is ``X @ coef_.T + intercept_``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
        """
        check_is_fitted(self)
        X = inputs.checked_rows(self, X)
        with np.errstate(all="ignore"):  # a warning would tell huge rows from others
            scores = self._scores(X)
        return scores[:, 0] if len(self.intercept_) == 1 else scores

    def predict(self, X):
        """Predict the class of each sample, at no privacy cost.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        scores = self.decision_function(X)
        codes = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[codes]

    # What scores are divided by for probabilities.
    _temperature = 1.0

    def _probabilities(self, X):
        scores = self.decision_function(X) / self._temperature
        if scores.ndim == 1:
            return np.column_stack([expit(-scores), expit(scores)])
        return softmax(scores, axis=1)

    def _log_probabilities(self, X):
        scores = self.decision_function(X) / self._temperature
        if scores.ndim == 1:
            return np.column_stack([log_expit(-scores), log_expit(scores)])
        return log_softmax(scores, axis=1)

    def _scores(self, X):
        return self._clipped_products(X) + self.intercept_

    def _clipped_products(self, X):
        if sparse.issparse(X):
            return np.asarray(clip_rows(X, self.x_norm_) @ self.coef_.T)
        products = np.empty((len(X), len(self.coef_)))
        length = max(1, _IN_CACHE // X.shape[1])
        for start in range(0, len(X), length):
            rows = clip_rows(X[start : start + length], self.x_norm_)
            np.matmul(rows, self.coef_.T, out=products[start : start + length])
        return products
