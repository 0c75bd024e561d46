"""Base of estimators that wrap a model and learn from its output, within one budget."""

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, cast

import numpy as np
from scipy import sparse
from scipy.special import logit
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    MetaEstimatorMixin,
    clone,
    is_classifier,
    is_regressor,
)
from sklearn.frozen import FrozenEstimator
from sklearn.utils import column_or_1d, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from skdp import _validation as checks
from skdp._config import config_context
from skdp._random._source import NoiseSource, noise_source
from skdp.learner import _estimator as learner
from skdp.metrics import _dp_evaluate as asked
from skdp.metrics._releases import answers, label_codes
from skdp.model_selection._searched import Blocks
from skdp.pipeline import _division as division_of
from skdp.pipeline import _plan, _walk, _wrappers
from skdp.pipeline._guarantee_of import frozen_guarantee
from skdp.privacy import ApproxDP, GaussianDP, Guarantee, compose, gaussian_epsilon
from skdp.rows import _inputs as inputs
from skdp.rows._source_frames import opened_frame
from skdp.rows._users import Users

LARGEST_SCORE = 12.0  # logits beyond count as that


def log_odds(model: Any, said: Any) -> np.ndarray:
    """Scores of rows in logits: of the second of two classes, or of each class.

    Parameters
    ----------
    model : estimator
        Fitted classifier.

    said : callable
        ``said(name)`` is what a method of the model says of the rows.

    Returns
    -------
    ndarray of shape (n_rows,) or (n_rows, n_classes)
        Finite, at most `LARGEST_SCORE` in absolute value.
    """
    if hasattr(model, "predict_proba"):
        chances = np.asarray(said("predict_proba"), dtype=np.float64)
        chances = np.clip(np.nan_to_num(chances, nan=0.5), 0.0, 1.0)
        scores = logit(chances[:, 1]) if chances.shape[1] == 2 else np.log(chances)
    else:
        # As for scores of `dp_evaluate`.
        scores = 4.0 * np.asarray(said("decision_function"), dtype=np.float64)
    if scores.ndim == 2:
        scores = scores - scores.max(axis=1, keepdims=True)
    return np.clip(np.nan_to_num(scores, nan=0.0), -LARGEST_SCORE, LARGEST_SCORE)


@dataclass(frozen=True)
class Division:
    """Budgets of a model and of the step after it.

    Parameters
    ----------
    of_model : ApproxDP or None
        Budget of the model; None if it was fitted before.

    of_step : ApproxDP or GaussianDP
        Budget of the step after the model.

    total : Guarantee
        Guarantee charged to the ledger.
    """

    of_model: ApproxDP | None
    of_step: ApproxDP | GaussianDP
    total: Guarantee


def divided(
    target: ApproxDP, share: float, planned: Any, of_step: Any, mechanism: str
) -> Division:
    """Divide a budget between a model and the step after it, which read the same rows.

    Parameters
    ----------
    target : ApproxDP

    share : float
        Of what follows: of epsilon, or of the squared mu with a delta.

    planned : callable
        ``planned(point)`` is the guarantee of a fit of the model with that budget.

    of_step : callable
        ``of_step(budget)`` is the guarantee of what follows.

    mechanism : str
        Of the whole.

    Returns
    -------
    Division
    """
    if target.delta == 0.0:
        part = replace(target, epsilon=share * target.epsilon)
        rest = replace(target, epsilon=target.epsilon - part.epsilon)
        total = division_of.as_epsilon_delta(
            compose([planned(rest), of_step(part)]), target, mechanism
        )
        return Division(rest, part, total)
    mu = target.gaussian_target().mu
    own = GaussianDP(mu * math.sqrt(share), adjacency=target.adjacency, unit=target.unit)

    @cache
    def tried(scale: float) -> tuple[ApproxDP, Guarantee]:
        # A guarantee that is a point spends all of its delta.
        for delta in (target.delta, target.delta / 2.0):
            epsilon = gaussian_epsilon(mu=scale * math.sqrt(1.0 - share), delta=delta)
            point = replace(target, epsilon=epsilon, delta=delta)
            found = planned(point)
            if not (isinstance(found, ApproxDP) and found.delta > 0.0 and found.refined is None):
                break
        return point, compose([found, of_step(own)])

    scale = division_of.largest_scale(
        lambda scale: division_of.excess(tried(scale)[1], target), target, mu
    )
    point, total = tried(scale)
    return Division(point, own, division_of.as_epsilon_delta(total, target, mechanism))


def inner_has(name):
    """Whether the model within has a method: for `available_if`."""

    def has(self):
        getattr(getattr(self, "estimator_", self.estimator), name)
        return True

    return available_if(has)


class AfterFit(
    MetaEstimatorMixin,
    learner.CallbackSupportMixin,
    learner.StatedGuarantee,
    learner.LinkedDocumentation,
    BaseEstimator,
):
    """Base of estimators that learn from the output of a model.

    A subclass plans one release of the output of the model on the rows, from public numbers, and
    stores the result. Fitting, budget, charge and rows are handled here.
    """

    # Of the budget, where model and release read the same rows.
    _share: Any
    _divides_budget = True

    estimator: Any
    holdout: Any
    share: Any
    public: Any
    ledger: Any

    @abstractmethod
    def _release(self, budget: Any, n_units: int | None, n_outputs: int, total: Any = None) -> Any:
        """Release that meets a budget; it has a ``guarantee``, and is called with numbers.

        The guarantee does not depend on ``total``, which is that of model and release together.
        """

    @abstractmethod
    def _numbers(self, model: Any, said: Any, y: np.ndarray) -> np.ndarray:
        """What is released about rows is a function of these numbers, one line a row."""

    @abstractmethod
    def _keep(self, found: Any, model: Any) -> None:
        """Store what was released."""

    def _check(self) -> None:
        """Check parameters of a subclass."""

    def _check_labels(self, classes: np.ndarray) -> None:
        """Refuse numbers of classes that a subclass cannot take."""

    def _n_classes(self, y: Any) -> int:
        """Number of classes, before a model is fitted: those declared, or those in ``y``."""
        if not isinstance(self, ClassifierMixin):
            return 1
        inner = self.estimator
        classes = getattr(inner.estimator, "classes_", None) if self._is_frozen else None
        if classes is None:
            classes = getattr(_wrappers.learner_of(inner), "classes", None)
        if classes is None:
            if y is None:
                return 2
            with inputs.without_values("y"):
                check_classification_targets(y)
                classes = np.unique(np.asarray(y))
        self._check_labels(np.asarray(classes))
        return len(classes)

    @property
    def _takes_columns(self):
        return bool(getattr(self.estimator, "_takes_columns", False))

    @property
    def _is_frozen(self) -> bool:
        return isinstance(self.estimator, FrozenEstimator)

    @learner.with_callbacks
    def fit(self, X, y, groups=None):
        """Fit the model and the step that uses its output.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix} of shape (n_samples, n_features), or source
            Rows, as the estimator takes them.

        y : array-like of shape (n_samples,) or str
            Labels or targets, or the name of their column in ``X``.

        groups : array-like of shape (n_samples,) or str, default=None
            User ID of each row, or the name of the column with IDs. The guarantee is then for
            users: it covers all rows of a user, however many. None protects rows.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If a parameter or the input is invalid.
        BudgetExceededError
            If the ledger cannot cover the charge; the previous model is kept.
        """
        context = learner.begun_fit(self)
        with learner.unchanged_on_error(self):
            learner.check_budget(self)
            self._check_estimator()
            self._check()
            numeric = is_regressor(self.estimator)
            given = inputs.in_memory(X, y, groups)
            if given is None:
                X, y, groups = opened_frame(X, y, groups, numeric=numeric)
            else:
                X, y, groups = given
                X = inputs.framed(X)
                X = X.tocsr() if sparse.issparse(X) else X
            if y is None:
                raise ValueError(
                    f"{type(self).__name__} requires y to be passed, but the target y is None."
                )
            inputs.check_unmasked(y, "y")
            is_counted = groups is None and self.adjacency == "replace-one"
            with inputs.without_values("y", counts=is_counted):
                y = column_or_1d(y, warn=True)
            n_rows = inputs.count_of_rows(X)
            if inputs.count_of_rows(y) not in (None, n_rows or len(y)):
                raise ValueError("X and y must have the same number of rows.")
            users = Users.of(groups, len(y))
            unit = "record" if users is None else "user"
            n_units = len(y) if users is None else users.n_users
            n_public = n_units if self.adjacency == "replace-one" else None
            epsilon, delta = float(self.epsilon), float(self.delta)
            target = ApproxDP(epsilon, delta, adjacency=self.adjacency, unit=unit)
            seed_of_model, seed = _plan.seeds(self.random_state, 2)
            if self._is_frozen:
                model, of_step = self.estimator.estimator, (X, y, groups)
                before = self._before(model, unit)
                self._check_asked(model, X, y)
                n_step, n_outputs = n_public, self._n_classes(y)
                division = self._of_step(target, n_public, n_outputs)
            else:
                model, before = clone(self.estimator), None
                model.set_params(adjacency=self.adjacency, ledger=None, random_state=seed_of_model)
                n_outputs = self._n_classes(y)
                of_model, of_step = self._parts(X, y, groups, n_units)
                n_step = n_public if self.holdout is None else self._blocks().sizes(n_units)[1]
                owned = {} if groups is None else {"groups": of_model[2]}
                division = self._division(
                    model, target, _wrappers.Schema.of(X), n_public, n_outputs
                )
                point = cast(ApproxDP, division.of_model)
                model.set_params(epsilon=point.epsilon, delta=point.delta)
                before = self._frozen_within(model, X)
                with config_context(known_seeds=True):  # which checks the rows
                    if self.holdout is not None:
                        every = {} if groups is None else {"groups": groups}
                        _plan.charge_of(model, X, y, **every)
                    _plan.charge_of(model, *of_model[:2], **owned)
            whole = division.total if before is None else compose([before, division.total])
            self._release(division.of_step, n_step, n_outputs, whole)
            learner.warn_of_delta(self, n_units, unit)
            learner.charge(self, division.total)
            # What there is to warn of has been said.
            with (
                learner.progress_of(self, context, groups=groups),
                config_context(known_seeds=True),
            ):
                if not self._is_frozen:
                    model.fit(*of_model[:2], **owned)
                found = self._learn(model, of_step, division.of_step, whole, noise_source(seed))
            self.estimator_ = model
            self._keep(found, model)
            for name in ("n_features_in_", "feature_names_in_", "classes_"):
                self.__dict__.pop(name, None)
                if hasattr(model, name):
                    setattr(self, name, getattr(model, name))
            total = whole
            if self.public:
                total = total.with_caveats(_walk.declared("estimator"))
            elif not self._is_frozen:
                total = total.with_caveats(*model.guarantee_.caveats)
            self.guarantee_ = self._stated(total)
        return self

    def _check_estimator(self) -> None:
        kind = "classifier" if isinstance(self, ClassifierMixin) else "regressor"
        is_kind = is_classifier if kind == "classifier" else is_regressor
        inner = self.estimator
        is_estimator = isinstance(inner, BaseEstimator) and hasattr(inner, "fit")
        if not is_estimator or not is_kind(inner):
            raise ValueError(f"estimator must be a {kind}; got {checks.short_repr(inner)}.")
        if not isinstance(self.public, tuple | list) or set(self.public) - {"estimator"}:
            raise ValueError(
                "public must be () or ('estimator',), which declares that a frozen estimator "
                f"learned nothing from private rows; got {checks.short_repr(self.public)}."
            )
        if self._is_frozen:
            if self.holdout is not None:
                raise ValueError(
                    "holdout must be None for a frozen estimator, which is not fitted; got "
                    f"{checks.short_repr(self.holdout)}."
                )
            if not checks.is_auto(self.share):
                raise ValueError(
                    "share must be 'auto' for a frozen estimator, which uses no part of the "
                    f"budget; got {checks.short_repr(self.share)}."
                )
        elif not _walk.is_private(inner):
            raise ValueError(
                "estimator must be an estimator of skdp with a budget, a DPPipeline, or a "
                f"FrozenEstimator of a fitted one; got {checks.short_repr(inner)}."
            )
        elif self.public:
            raise ValueError(f"public must be () unless estimator is frozen; got {self.public!r}.")
        else:
            kind = type(self).__name__
            whole = f"the {kind} has one {{name}} for both. Give it to the {kind}"
            what = f"estimator, a {type(inner).__name__},"
            self._refuse_deep(inner)
            _walk.check_defaults(inner, self, what, "estimator", whole)
        if self.holdout is not None:
            checks.between(0.05, 0.95, holdout=self.holdout)
            if self.adjacency != "replace-one":
                raise ValueError(
                    "holdout must be None under 'add-remove', where row positions may shift; got "
                    f"{checks.short_repr(self.holdout)}."
                )
        if not checks.is_auto(self.share):
            checks.between(1e-3, 0.95, share=self.share)

    def _before(self, model: Any, unit: str) -> Guarantee | None:
        """Guarantee of a model that was fitted before."""
        check_is_fitted(model)
        asked.refuse_queries(model)
        if "estimator" in self.public:
            return None
        before = frozen_guarantee(model, "estimator")
        if before is not None and before.adjacency != self.adjacency:
            raise ValueError(
                f"adjacency must be that of the frozen estimator, {before.adjacency!r}; got "
                f"{self.adjacency!r}."
            )
        if before is not None:
            division_of.check_one_unit([("estimator", before)], unit)
        return before

    @staticmethod
    def _frozen_within(model: Any, X: Any) -> Guarantee | None:
        """Guarantee of steps of a pipeline that were fitted before."""
        if not hasattr(model, "_planned_fit"):
            return None
        frozen = model._planned_fit(_wrappers.Schema.of(X)).node.frozen_guarantees()
        return compose(list(frozen.values())) if frozen else None

    def _check_asked(self, model: Any, X: Any, y: Any) -> None:
        """Refuse rows that a fitted model refuses, before the charge."""
        with inputs.without_values():
            target = np.asarray(y)
            if target.ndim != 1 or not len(target):
                raise ValueError("y must have one dimension and at least one entry.")
            if is_regressor(model):
                inputs.real_targets(target)
        if is_classifier(model):
            inputs.encode_labels(target, np.asarray(model.classes_).tolist())
        asked.check_rows(model, X)

    def _check_rows(self, X: Any) -> None:
        """Refuse rows that the fitted model refuses, before the charge."""
        asked.check_rows(self.estimator_, X)

    def _parts(self, X: Any, y: Any, groups: Any, n_units: int) -> list[tuple[Any, Any, Any]]:
        """Rows of the model, and those that it is asked about."""
        if self.holdout is None:
            return [(X, y, groups)] * 2
        blocks = self._blocks()
        if min(blocks.sizes(n_units)) < 1:
            raise ValueError(
                f"holdout must leave at least one row on each side of n_samples={n_units}; got "
                f"{self.holdout!r}."
            )
        owners = None if groups is None else np.asarray(groups)
        found = []
        for rows in blocks.parts(X, len(y), owners):
            ids = None if owners is None else owners[rows]
            found.append((inputs.rows_of(X, rows), inputs.rows_of(np.asarray(y), rows), ids))
        return found

    def _blocks(self) -> Blocks:
        share = float(self.holdout)
        return Blocks.of((1.0 - share, share), row_key=None, adjacency=self.adjacency)

    def _of_step(self, target: ApproxDP, n_units: int | None, n_outputs: int) -> Division:
        release = self._release(target, n_units, n_outputs)
        total = division_of.as_epsilon_delta(release.guarantee, target, self._mechanism)
        return Division(None, target, total)

    def _division(
        self, model: Any, target: ApproxDP, schema: Any, n_units: int | None, n_outputs: int
    ) -> Division:
        """Of a fit to public numbers of rows."""
        n_model, n_step = n_units, n_units
        if self.holdout is not None and n_units is not None:
            n_model, n_step = self._blocks().sizes(n_units)

        def planned(point: ApproxDP) -> Guarantee:
            return self._planned_of(model, point, schema, n_model)

        def of_step(budget: Any) -> Guarantee:
            return self._release(budget, n_step, n_outputs).guarantee

        if self.holdout is None:
            share = self._share if checks.is_auto(self.share) else float(self.share)
            return divided(target, share, planned, of_step, self._mechanism)
        # Each row is in one of two parts, and which is public.
        of_step(target)
        planned(target)
        return Division(target, target, replace(target, mechanism=self._mechanism))

    @property
    def _mechanism(self) -> str:
        return f"{type(self).__name__} around {type(self.estimator).__name__}"

    @staticmethod
    def _planned_of(model: Any, point: ApproxDP, schema: Any, n_units: int | None) -> Guarantee:
        model.set_params(epsilon=point.epsilon, delta=point.delta)
        if hasattr(model, "_planned_fit"):
            return model._planned_fit(schema, n_units, point.unit).division.total
        return model._planned_for(schema.n_columns, n_units, point.unit)

    def _learn(
        self, model: Any, rows: Any, budget: Any, whole: Guarantee, noise: NoiseSource
    ) -> Any:
        X, y, groups = rows
        users = Users.of(groups, len(y))
        n_units = len(y) if users is None else users.n_users
        n_public = n_units if self.adjacency == "replace-one" else None
        n_outputs = len(getattr(model, "classes_", (None,)))
        release = self._release(budget, n_public, n_outputs, whole)
        with np.errstate(all="ignore"), asked.silent():
            with inputs.without_values("y"):
                target = np.asarray(y, dtype=np.float64 if is_regressor(model) else None)
            numbers = self._numbers(model, lambda name: answers(model, name, X), target)
        return release(numbers, users, noise)

    @staticmethod
    def _refuse_deep(inner: Any) -> None:
        """Refuse parts without accounting in a model that is fitted here."""
        params = inner.get_params(deep=True)
        frozen = [name for name, value in params.items() if isinstance(value, FrozenEstimator)]
        steps = [name for name, _ in inner.steps] if hasattr(inner, "_planned_fit") else ()
        deeper = [n for n in frozen if n not in steps and not _is_below(n, frozen)]
        if deeper:
            raise ValueError(
                "estimator must contain a FrozenEstimator only as a step of a DPPipeline, where "
                f"its guarantee is counted; got one at {deeper[0]!r}."
            )
        for name, value in params.items():
            is_deep = _is_below(name, frozen)
            if name.rpartition("__")[2] == "release" and value == "query" and not is_deep:
                raise ValueError(
                    "estimator must not use release='query', which stores the queried rows; got "
                    f"{name}='query'."
                )

    def _planned_guarantee(self, n_features):
        frozen = [v for v in self.get_params().values() if isinstance(v, FrozenEstimator)]
        if frozen:
            raise ValueError(
                f"estimator of a {type(self).__name__} must contain no FrozenEstimator inside a "
                "pipeline or a search. Wrap the whole pipeline or search, or freeze it all; got "
                f"{checks.short_repr(frozen[0])}."
            )
        return super()._planned_guarantee(n_features)

    def _planned_for(self, n_features, n_units=None, unit="record"):
        target = replace(self._planned_guarantee(n_features), refined=None, unit=unit)
        model = clone(self.estimator)
        model.set_params(adjacency=self.adjacency)
        return self._division(
            model, target, _wrappers.Schema(n_features), n_units, self._n_classes(None)
        ).total

    def _assumptions(self, unit):
        own = getattr(self.estimator, "_assumptions", None)
        told = () if own is None else tuple(own(unit))
        return (*told, _walk.declared("estimator")) if "estimator" in self.public else told

    @inner_has("predict_proba")
    def predict_proba(self, X):
        """Return the probability of each class by the model.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        check_is_fitted(self)
        return self.estimator_.predict_proba(X)

    def _scores(self, X):
        """Scores of new rows in logits."""
        check_is_fitted(self)
        return log_odds(self.estimator_, lambda name: getattr(self.estimator_, name)(X))

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        if "__sklearn_tags__" not in vars(cls):
            # Mixins stand before this class, as scikit-learn asks, and make tags anew.
            cls.__sklearn_tags__ = lambda self: self._with_inner(
                super(cls, self).__sklearn_tags__()
            )

    def _with_inner(self, tags):
        """Tags of the model within."""
        if not isinstance(self.estimator, BaseEstimator):
            return tags  # fit says so
        inner = get_tags(self.estimator)
        tags.input_tags = inner.input_tags
        for name in ("classifier_tags", "regressor_tags"):
            setattr(tags, name, getattr(inner, name))
        return tags

    def __sklearn_is_fitted__(self):
        return hasattr(self, "estimator_")

    def _view_children(self):
        return "parallel", [("estimator", getattr(self, "estimator_", self.estimator))]


def _is_below(name: str, parents: list[str]) -> bool:
    """Whether a parameter is one of an estimator that is named."""
    return any(name.startswith(f"{parent}__") for parent in parents)


def codes_of(model: Any, y: np.ndarray) -> np.ndarray:
    """Positions of labels among the classes of a model; -1 of those that it does not know."""
    return label_codes(y, np.asarray(model.classes_))
