"""One object a privacy claim: bound, reason, noise and guarantee in one place."""

from skdp.releases._bounded_sums import BoundedSums
from skdp.releases._categories import CategoryRelease
from skdp.releases._cells import checked_ranges
from skdp.releases._choice import ChoiceRelease
from skdp.releases._coefficient_noise import CoefficientNoise
from skdp.releases._column_sums import CountsRelease, MeanRelease
from skdp.releases._counts import ClassCounts, RowCount, largest_score
from skdp.releases._descent import NoisyDescent
from skdp.releases._descent_rules import DescentPlan, plan_descent
from skdp.releases._exact_queries import ExactQueries
from skdp.releases._feature_descent import FeatureDescent
from skdp.releases._feature_objective import CentredObjective
from skdp.releases._feature_output import FeatureOutput
from skdp.releases._feature_pure import CentredOutput, PurePlan, plan_pure, pure_components
from skdp.releases._feature_rules import FeaturePlan, automatic_components, plan_features
from skdp.releases._feature_statistics import FeatureStatistics
from skdp.releases._gossip import GossipRelease
from skdp.releases._gossip_whitened import WhitenedGossip
from skdp.releases._gradient_messages import (
    GradientMessages,
    gaussian_leakage,
    gaussian_sigma,
    implied_mu,
    implied_mu_of_budget,
    k_norm_leakage,
    k_norm_scale,
    local_law,
    nats_of,
)
from skdp.releases._linear_rules import (
    AUTOMATIC_CONSTANT,
    TYPICAL_ROWS,
    linear_signal,
    objective_margin,
    objective_penalty,
    objective_slope_cap,
    output_penalty,
)
from skdp.releases._most_frequent import MostFrequentRelease
from skdp.releases._objective import ObjectivePerturbation
from skdp.releases._objective_noise import (
    CALIBRATIONS,
    ObjectiveNoise,
    calibrate,
    gaussian_profile,
)
from skdp.releases._output import OutputPerturbation
from skdp.releases._precision_sum import PrecisionSum
from skdp.releases._protocol import Release, StreamRelease
from skdp.releases._quantiles import QuantileRelease, least_epsilon, least_guarantee
from skdp.releases._queries import QueryAnswers, QueryPlan
from skdp.releases._ridge_problem import RidgeProblem, ridge_norm_bound, ridge_sensitivity
from skdp.releases._ridge_risk import EpsilonSuggestion, query_variance, suggest_epsilon
from skdp.releases._row_norm import RowNorm
from skdp.releases._score_length import ScoreLength
from skdp.releases._sequence import Rows, Run, Sequence, Stage
from skdp.releases._stream_account import ReleaseAccount
from skdp.releases._stream_fed_back import FedBackRelease, sgd_noise
from skdp.releases._stream_final import FinalRelease
from skdp.releases._stream_matrix import MatrixRelease
from skdp.releases._stream_query import QueryRelease
from skdp.releases._stream_sensitivity import (
    automatic_t0,
    created_distances,
    norm_bounds,
    step_sensitivity,
    stream_sensitivities,
    stream_sensitivity,
)
from skdp.releases._stream_tree import TreeRelease
from skdp.releases._target_bounds import TargetBounds, check_search_range
from skdp.releases._units import unit_guarantee
from skdp.releases._value_messages import (
    OnePointMessages,
    ValueMessages,
    bandit_noise,
    laplace_leakage,
    laplace_scale,
    scalar_leakage,
    scalar_sigma,
    vector_leakage,
    vector_sigma,
)

__all__ = [
    "AUTOMATIC_CONSTANT",
    "CALIBRATIONS",
    "TYPICAL_ROWS",
    "BoundedSums",
    "CategoryRelease",
    "CentredObjective",
    "CentredOutput",
    "ChoiceRelease",
    "ClassCounts",
    "CoefficientNoise",
    "CountsRelease",
    "DescentPlan",
    "EpsilonSuggestion",
    "ExactQueries",
    "FeatureDescent",
    "FeatureOutput",
    "FeaturePlan",
    "FeatureStatistics",
    "FedBackRelease",
    "FinalRelease",
    "GossipRelease",
    "GradientMessages",
    "MatrixRelease",
    "MeanRelease",
    "MostFrequentRelease",
    "NoisyDescent",
    "ObjectiveNoise",
    "ObjectivePerturbation",
    "OnePointMessages",
    "OutputPerturbation",
    "PrecisionSum",
    "PurePlan",
    "QuantileRelease",
    "QueryAnswers",
    "QueryPlan",
    "QueryRelease",
    "Release",
    "ReleaseAccount",
    "RidgeProblem",
    "RowCount",
    "RowNorm",
    "Rows",
    "Run",
    "ScoreLength",
    "Sequence",
    "Stage",
    "StreamRelease",
    "TargetBounds",
    "TreeRelease",
    "ValueMessages",
    "WhitenedGossip",
    "automatic_components",
    "automatic_t0",
    "bandit_noise",
    "calibrate",
    "check_search_range",
    "checked_ranges",
    "created_distances",
    "gaussian_leakage",
    "gaussian_profile",
    "gaussian_sigma",
    "implied_mu",
    "implied_mu_of_budget",
    "k_norm_leakage",
    "k_norm_scale",
    "laplace_leakage",
    "laplace_scale",
    "largest_score",
    "least_epsilon",
    "least_guarantee",
    "linear_signal",
    "local_law",
    "nats_of",
    "norm_bounds",
    "objective_margin",
    "objective_penalty",
    "objective_slope_cap",
    "output_penalty",
    "plan_descent",
    "plan_features",
    "plan_pure",
    "pure_components",
    "query_variance",
    "ridge_norm_bound",
    "ridge_sensitivity",
    "scalar_leakage",
    "scalar_sigma",
    "sgd_noise",
    "step_sensitivity",
    "stream_sensitivities",
    "stream_sensitivity",
    "suggest_epsilon",
    "unit_guarantee",
    "vector_leakage",
    "vector_sigma",
]
