"""Base class of all searches: parameter checks and prediction."""

from dataclasses import replace
from typing import Any

from sklearn.base import MetaEstimatorMixin
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from skdp._defaults import pipeline as defaults
from skdp._validation import fraction, is_auto, is_whole, short_repr
from skdp.learner import check_budget
from skdp.model_selection._candidates import check_answers
from skdp.model_selection._searched import Blocks
from skdp.pipeline import DPPipeline
from skdp.pipeline._pipeline import DelegatingEstimator
from skdp.pipeline._walk import OWN, check_defaults, is_private
from skdp.privacy import ApproxDP, compose

_LIMIT_JOBS = 2**31
_WHOLE = "the search has one {name} for all fits. Give it to the search"


def check_names(names):
    """Refuse to search over what the budget is made of."""
    for name in names:
        own = name.rpartition("__")[2]
        if own in OWN:
            further = " DPEpsilonSearch looks for the least." if own == "epsilon" else ""
            what = f"{short_repr(name)} must not be searched over"
            raise ValueError(f"{what}: a search has one {own} for all fits.{further}")


class BaseDPSearch(MetaEstimatorMixin, DelegatingEstimator):
    """What a search can be asked: all that the estimator it found can be."""

    best_estimator_: Any
    _report_kind = "search"

    def __init__(
        self, estimator, delta, blocks, row_key, classes, y_bounds, adjacency, random_state, ledger
    ):
        self.estimator = estimator
        self.delta = delta
        self.blocks = blocks
        self.row_key = row_key
        self.classes = classes
        self.y_bounds = y_bounds
        self.adjacency = adjacency
        self.random_state = random_state
        self.ledger = ledger

    def __sklearn_is_fitted__(self):
        return hasattr(self, "best_estimator_")

    @property
    def _inner(self):
        check_is_fitted(self)
        return self.best_estimator_

    def _check_has(self, name):
        getattr(getattr(self, "best_estimator_", self.estimator), name)
        return True

    def _inner_tags(self):
        return get_tags(self.estimator)

    def _view_children(self):
        """Show the estimator that was found, and before that the one to search with."""
        name = "best_estimator_" if hasattr(self, "best_estimator_") else "estimator"
        return "parallel", [(name, getattr(self, name))]

    def _target(self, unit="record"):
        """Budget of the search."""
        epsilon, delta = float(self.epsilon), float(self.delta)
        return ApproxDP(epsilon, delta, adjacency=self.adjacency, unit=unit)

    def _check_common(self, epsilon=None):
        """Check what does not depend on the rows, as far as all searches have it."""
        check_budget(self, epsilon=epsilon)
        try:
            if not is_auto(self.blocks):
                fraction(blocks=self.blocks)
        except ValueError:
            raise ValueError(
                "blocks must be 'auto' or a number between 0 and 1; got "
                f"{short_repr(self.blocks)}."
            ) from None
        n_jobs = getattr(self, "n_jobs", None)
        if n_jobs is not None and (not is_whole(n_jobs) or not 0 < abs(n_jobs) < _LIMIT_JOBS):
            raise ValueError(
                f"n_jobs must be None, or an int that is not 0; got {short_repr(n_jobs)}."
            )
        self._check_estimator()

    def _check_estimator(self):
        """Refuse an estimator without a budget of its own kind that a search can give."""
        estimator, kind = self.estimator, type(self.estimator).__name__
        is_pipeline = isinstance(estimator, DPPipeline)
        if isinstance(estimator, type) or not (is_pipeline or is_private(estimator)):
            raise ValueError(
                "estimator must be a private estimator of skdp with an epsilon, or a DPPipeline "
                f"with preprocessing steps and a model; got {short_repr(estimator)}."
            )
        if isinstance(estimator, DelegatingEstimator) and not is_pipeline:
            raise ValueError(f"estimator must not be a search itself; got a {kind}.")
        if not hasattr(estimator, "predict"):
            raise ValueError(f"estimator must have a predict method to be scored; got a {kind}.")
        if hasattr(estimator, "partial_fit"):
            raise ValueError(f"estimator must not learn from a stream; got a {kind}.")
        check_defaults(estimator, self, f"estimator, a {kind},", "estimator", _WHOLE)
        check_answers(estimator)

    def _two_blocks(self, unit):
        """Blocks to fit to and to score."""
        part = float(defaults.HELD_OUT if is_auto(self.blocks) else self.blocks)
        return self._blocks_of((1 - part, part), unit)

    def _blocks_of(self, fractions, unit):
        key = {"row_key": self.row_key, "adjacency": self.adjacency}
        return Blocks.of(fractions, unit=unit, **key)

    def _store(self, plan, params, model, evaluation):
        """Store what was found by a plan."""
        self.best_estimator_, self.best_params_ = model, params
        # With the caveats of the search, of which the evaluation is a part.
        stated = self._stated(evaluation.guarantee_)
        self.best_evaluation_ = replace(evaluation, guarantee_=stated)
        self.best_score_ = value_of(evaluation)
        self.guarantee_ = self._stated(compose([*plan.frozen.values(), plan.guarantee]))
        self.budget_ = plan.table


def value_of(evaluation):
    """The one score of an evaluation."""
    (score,) = evaluation.values.values()
    return float(score.value)
