"""What all estimators share: mixins, the budget and its charge, streams."""

from skdp.estimators._budget import (
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
from skdp.estimators._mixins import (
    LinearPredictions,
    LinkedDocumentation,
    NoisyPredictions,
    StatedGuarantee,
)
from skdp.estimators._progress import (
    CallbackSupportMixin,
    Progress,
    begun_fit,
    check_own_callbacks,
    progress_of,
    with_callbacks,
    without_callbacks,
)
from skdp.estimators._streams import (
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
from skdp.estimators._views import GuaranteeView

__all__ = [
    "CallbackSupportMixin",
    "GuaranteeView",
    "LinearPredictions",
    "LinkedDocumentation",
    "NoisyPredictions",
    "Progress",
    "StatedGuarantee",
    "Stream",
    "StreamLine",
    "begun_fit",
    "charge",
    "charge_quietly",
    "charge_release",
    "charge_stream",
    "check_budget",
    "check_own_callbacks",
    "check_unchanged",
    "frozen_params",
    "has_begun",
    "is_untouched",
    "ledger_of",
    "new_version",
    "progress_of",
    "restored_on_error",
    "unchanged_on_error",
    "version_text",
    "warn_of_delta",
    "warn_of_seed",
    "with_callbacks",
    "without_callbacks",
]
