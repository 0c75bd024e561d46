"""Privacy guarantees as values, their calibration, composition and a durable ledger."""

from skdp.privacy._base import ADJACENCIES, Guarantee, n_records_changed
from skdp.privacy._bounded_range import BoundedRangeDP, bounded_range_epsilon
from skdp.privacy._calibration import (
    gaussian_delta,
    gaussian_epsilon,
    gaussian_mu,
)
from skdp.privacy._composition import ComposedDP, compose
from skdp.privacy._gaussian_scale import gaussian_scale
from skdp.privacy._guarantees import ZCDP, ApproxDP, GaussianDP
from skdp.privacy._joint_logistic import JointLogisticDP
from skdp.privacy._ledger import BudgetLedger
from skdp.privacy._ledger_record import LedgerRecord
from skdp.privacy._mutual_information import MutualInformationPrivacy
from skdp.privacy._of_users import user_guarantee
from skdp.privacy._parallel import ParallelDP, parallel
from skdp.privacy._random_runs import RandomRunsDP, random_runs_gamma, random_runs_mean
from skdp.privacy._shifted_gaussian import ShiftedGaussianDP

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
