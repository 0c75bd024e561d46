"""Privacy guarantees, their calibration and composition, and a durable budget ledger."""

from skdp.privacy._bounded_range import BoundedRangeDP, bounded_range_epsilon
from skdp.privacy._composition import ComposedDP, MutualInformationPrivacy, compose
from skdp.privacy._guarantees import (
    ADJACENCIES,
    ZCDP,
    ApproxDP,
    GaussianDP,
    Guarantee,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_mu,
    gaussian_scale,
    n_records_changed,
)
from skdp.privacy._ledger import BudgetLedger
from skdp.privacy._ledger_view import LedgerRecord
from skdp.privacy._objective_profiles import JointLogisticDP, ShiftedGaussianDP
from skdp.privacy._of_users import user_guarantee
from skdp.privacy._random_runs import (
    ParallelDP,
    RandomRunsDP,
    parallel,
    random_runs_gamma,
    random_runs_mean,
)

__all__ = [
    "ADJACENCIES",
    "ZCDP",
    "ApproxDP",
    "BoundedRangeDP",
    "BudgetLedger",
    "ComposedDP",
    "GaussianDP",
    "Guarantee",
    "JointLogisticDP",
    "LedgerRecord",
    "MutualInformationPrivacy",
    "ParallelDP",
    "RandomRunsDP",
    "ShiftedGaussianDP",
    "bounded_range_epsilon",
    "compose",
    "gaussian_delta",
    "gaussian_epsilon",
    "gaussian_mu",
    "gaussian_scale",
    "n_records_changed",
    "parallel",
    "random_runs_gamma",
    "random_runs_mean",
    "user_guarantee",
]
