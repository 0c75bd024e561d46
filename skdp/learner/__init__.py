"""How a private learner is written: losses, releases of weights, budgets, streams."""

from skdp.learner._budget import (
    charge,
    charge_quietly,
    charge_stream,
    check_budget,
    ledger_of,
    restored_on_error,
    unchanged_on_error,
    warn_of_delta,
    warn_of_seed,
)
from skdp.learner._coefficient_noise import CoefficientNoise
from skdp.learner._counts import ClassCounts, RowCount, largest_score
from skdp.learner._descent import NoisyDescent
from skdp.learner._descent_rules import DescentPlan, plan_descent
from skdp.learner._guarantee_views import GuaranteeView
from skdp.learner._losses._margin import HingeLoss, HuberHingeLoss, LogisticLoss
from skdp.learner._losses._multiclass import MulticlassHingeLoss, SoftmaxLoss
from skdp.learner._losses._residual import AbsoluteLoss, EpsilonInsensitiveLoss, HuberLoss
from skdp.learner._mixins import (
    LinearPredictions,
    LinkedDocumentation,
    NoisyPredictions,
    StatedGuarantee,
)
from skdp.learner._objective import ObjectivePerturbation
from skdp.learner._objective_noise import CALIBRATIONS, ObjectiveNoise, calibrate, gaussian_profile
from skdp.learner._output import OutputPerturbation
from skdp.learner._progress import (
    CallbackSupportMixin,
    Progress,
    begun_fit,
    check_own_callbacks,
    progress_of,
    with_callbacks,
    without_callbacks,
)
from skdp.learner._protocol import Release, StreamRelease
from skdp.learner._row_norm import RowNorm
from skdp.learner._score_scale import ScoreLength
from skdp.learner._sequence import Rows, Run, Sequence, Stage
from skdp.learner._streams import (
    Stream,
    StreamLine,
    charge_release,
    check_unchanged,
    frozen_params,
    has_begun,
    is_untouched,
    new_version,
    version_text,
)
from skdp.learner._units import unit_guarantee

__all__ = [
    "CALIBRATIONS",
    "AbsoluteLoss",
    "CallbackSupportMixin",
    "ClassCounts",
    "CoefficientNoise",
    "DescentPlan",
    "EpsilonInsensitiveLoss",
    "GuaranteeView",
    "HingeLoss",
    "HuberHingeLoss",
    "HuberLoss",
    "LinearPredictions",
    "LinkedDocumentation",
    "LogisticLoss",
    "MulticlassHingeLoss",
    "NoisyDescent",
    "NoisyPredictions",
    "ObjectiveNoise",
    "ObjectivePerturbation",
    "OutputPerturbation",
    "Progress",
    "Release",
    "RowCount",
    "RowNorm",
    "Rows",
    "Run",
    "ScoreLength",
    "Sequence",
    "SoftmaxLoss",
    "Stage",
    "StatedGuarantee",
    "Stream",
    "StreamLine",
    "StreamRelease",
    "begun_fit",
    "calibrate",
    "charge",
    "charge_quietly",
    "charge_release",
    "charge_stream",
    "check_budget",
    "check_own_callbacks",
    "check_unchanged",
    "frozen_params",
    "gaussian_profile",
    "has_begun",
    "is_untouched",
    "largest_score",
    "ledger_of",
    "new_version",
    "plan_descent",
    "progress_of",
    "restored_on_error",
    "unchanged_on_error",
    "unit_guarantee",
    "version_text",
    "warn_of_delta",
    "warn_of_seed",
    "with_callbacks",
    "without_callbacks",
]
