"""What a report is about: the kind of thing, its steps, and the guarantee of all it learned."""

import inspect
from dataclasses import dataclass, field
from typing import Any

from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.utils.validation import check_is_fitted

from skdp._validation import shown
from skdp.distributed import DistributedDPClassifier
from skdp.kernel import DPKernelRidge, DPOnlineKernelRegressor, ReleasedKernelRegressor
from skdp.learner import StatedGuarantee
from skdp.linear_model import MIPrivateSGDRegressor
from skdp.metrics import Evaluation
from skdp.model_selection import DPEpsilonSearch, DPGridSearch, DPRandomizedSearch
from skdp.pipeline import DPPipeline, guarantee_of
from skdp.pipeline._wrappers import WRAPPERS, is_wrapper
from skdp.privacy import Guarantee

__all__ = ["Subject", "is_ours", "leaves_of", "subject_of"]

_SEARCHES = (DPGridSearch, DPRandomizedSearch, DPEpsilonSearch)
_KINDS = (
    ("pipeline", (DPPipeline, Pipeline, ColumnTransformer, FeatureUnion)),
    ("search", _SEARCHES),
    ("stream", (DPOnlineKernelRegressor, ReleasedKernelRegressor)),
    ("network", (DistributedDPClassifier,)),
    ("local", (MIPrivateSGDRegressor,)),
    ("evaluation", (Evaluation,)),
)


@dataclass(frozen=True)
class Subject:
    """What a report is about.

    Parameters
    ----------
    fitted : object
        As it was given, without a `~sklearn.frozen.FrozenEstimator` around it.

    kind : str

    guarantee : Guarantee

    steps : list of (str, object, str)
        Path, estimator and role.
    """

    fitted: Any
    kind: str
    guarantee: Guarantee
    steps: list[tuple[str, Any, str]] = field(default_factory=list)

    @property
    def is_kept(self):
        """Whether it, or a step, holds private numbers and has to stay with the curator."""
        if self.kind == "evaluation":
            return False
        return any(_is_kept(step) for _, step, _ in [*self.steps, ("", self.fitted, "")])

    @property
    def third_party(self):
        """Types of what has learned and is not of this package, of which nothing is known here."""
        return sorted({_type_of(one) for one in _learners(self.fitted) if not is_ours(one)})

    def told(self):
        """Part of the report."""
        steps = [
            {"name": path, "type": _type_of(step), "role": role, "does": _does(step)}
            for path, step, role in self.steps
        ]
        told = {"type": _type_of(self.fitted), "does": _does(self.fitted)}
        told |= {"third_party": self.third_party}
        return {"kind": self.kind, "name": "", "steps": steps, **told}


def is_ours(step):
    """Whether it is of a class of this package itself: what a subclass does nobody here knows."""
    return type(step).__module__.partition(".")[0] == "skdp"


def _learners(fitted):
    """Yield what states a guarantee of its own, wherever it stands."""
    while type(fitted) is FrozenEstimator:
        fitted = fitted.estimator
    if isinstance(fitted, StatedGuarantee | Evaluation):
        yield fitted
    parts = [part for _, part in _parts(fitted) or ()]
    if hasattr(fitted, "best_params_") or isinstance(fitted, _SEARCHES):
        parts += [getattr(fitted, "best_estimator_", None), fitted.estimator]
    for part in parts:
        yield from _learners(part)


def subject_of(fitted, public=()):
    """Find out what a report is about.

    Parameters
    ----------
    fitted : estimator or Evaluation

    public : tuple of str, default=()
        See `~skdp.pipeline.guarantee_of`.

    Returns
    -------
    Subject
    """
    while type(fitted) is FrozenEstimator:
        fitted = fitted.estimator
    kind = next((kind for kind, types in _KINDS if isinstance(fitted, types)), "estimator")
    if isinstance(fitted, Evaluation):
        return Subject(fitted, kind, fitted.guarantee_)
    if isinstance(fitted, type) or not hasattr(fitted, "get_params"):
        raise ValueError(
            f"fitted must be a fitted estimator or an Evaluation; got {shown(fitted)}."
        )
    if isinstance(fitted, StatedGuarantee) and hasattr(fitted, "guarantee_"):
        guarantee = fitted.guarantee_
    else:
        check_is_fitted(fitted)
        guarantee = guarantee_of(fitted, public=public)
    if not isinstance(fitted, StatedGuarantee) and hasattr(fitted, "cv_results_"):
        kind = "search"
    return Subject(fitted, kind, guarantee, list(_steps(fitted, public)))


def _type_of(step):
    return step if isinstance(step, str) else type(step).__name__


def _does(step):
    """What a step is for: the first line of what its class says of itself."""
    if step is None or isinstance(step, str):
        return ""
    kind = type(getattr(step, "estimator", step) if isinstance(step, FrozenEstimator) else step)
    return (inspect.getdoc(kind) or "").partition("\n")[0].replace("`", "").strip()


def leaves_of(fitted, public=(), path=""):
    """Yield (path, estimator, role) of what stands in a fitted estimator, itself if alone."""
    parts = _parts(fitted)
    if parts is None:
        yield path, fitted, _role(fitted, path, public)
        return
    if is_wrapper(fitted):
        yield path, fitted, "public"
    for name, part in parts:
        yield from leaves_of(part, public, f"{path}__{name}" if path else name)


def _steps(fitted, public):
    """Steps as the report lists them: none of what stands alone."""
    if hasattr(fitted, "best_estimator_"):
        if fitted.best_estimator_ is not None:
            yield from leaves_of(fitted.best_estimator_, public, "best_estimator_")
    elif _parts(fitted) is not None:
        yield from leaves_of(fitted, tuple(getattr(fitted, "public", public)))


def _parts(step):
    """Names and parts of a container, None of what is none."""
    if isinstance(step, DPPipeline | Pipeline):
        return getattr(step, "steps_", step.steps)
    if isinstance(step, ColumnTransformer):
        parts = getattr(step, "transformers_", step.transformers)
        return [(name, part) for name, part, _ in parts]
    if isinstance(step, FeatureUnion):
        return step.transformer_list
    if is_wrapper(step):
        known = WRAPPERS[type(step)]
        return [(known.parameter, known.inner(step, fitted=True))]
    return None


def _is_kept(step):
    """Live streams have sums without noise, what answers queries rows, others users' ids."""
    if isinstance(step, DPKernelRidge):
        return not hasattr(step, "coef_")
    if isinstance(step, DistributedDPClassifier):
        return step.guarantee_.unit == "user"
    return isinstance(step, DPOnlineKernelRegressor)


def _role(step, path, public):
    if step is None or isinstance(step, str):
        return "passthrough"
    if path in public:
        return "public"
    if isinstance(step, FrozenEstimator):
        return "frozen"
    return "private" if isinstance(step, StatedGuarantee) else "public"
