"""Names of packages that are gone: they warn, and come from where they are now, until 0.3."""

import importlib
import importlib.machinery
import sys
import warnings

__all__ = ["GONE", "MovedNames"]

# Package as it was, then for each module of today the names that it has.
_MOVED = {
    "estimators": {
        "learner": (
            "CallbackSupportMixin GuaranteeView LinearPredictions LinkedDocumentation "
            "NoisyPredictions Progress StatedGuarantee Stream StreamLine begun_fit charge "
            "charge_quietly charge_release charge_stream check_budget check_own_callbacks "
            "check_unchanged frozen_params has_begun is_untouched ledger_of new_version "
            "progress_of restored_on_error unchanged_on_error version_text warn_of_delta "
            "warn_of_seed with_callbacks without_callbacks"
        ),
    },
    "features": {
        "rows": (
            "FeatureFunction FourierFeatures KERNELS automatic_gamma check_kernel "
            "fourier_features kernel_error kernel_matrix"
        ),
    },
    "losses": {
        "learner": (
            "AbsoluteLoss EpsilonInsensitiveLoss HingeLoss HuberHingeLoss HuberLoss "
            "LogisticLoss MulticlassHingeLoss SoftmaxLoss"
        ),
    },
    "releases": {
        "_defaults.linear": "TYPICAL_ROWS",
        "distributed._gossip": "GossipRelease",
        "distributed._whitened_gossip": "WhitenedGossip",
        "kernel._descent": "FeatureDescent",
        "kernel._exact_queries": "ExactQueries",
        "kernel._objective": "CentredObjective",
        "kernel._online._account": "ReleaseAccount",
        "kernel._online._fed_back": "FedBackRelease sgd_noise",
        "kernel._online._final": "FinalRelease",
        "kernel._online._matrix": "MatrixRelease",
        "kernel._online._query": "QueryRelease",
        "kernel._online._sensitivity": (
            "automatic_t0 created_distances norm_bounds step_sensitivity "
            "stream_sensitivities stream_sensitivity"
        ),
        "kernel._online._tree": "TreeRelease",
        "kernel._output": "FeatureOutput",
        "kernel._pure": "CentredOutput PurePlan plan_pure pure_components",
        "kernel._queries": "QueryAnswers QueryPlan",
        "kernel._ridge_problem": "RidgeProblem ridge_norm_bound ridge_sensitivity",
        "kernel._ridge_risk": "EpsilonSuggestion query_variance suggest_epsilon",
        "kernel._rules": "FeaturePlan automatic_components plan_features",
        "kernel._statistics": "FeatureStatistics",
        "learner": (
            "CALIBRATIONS CoefficientNoise DescentPlan NoisyDescent ObjectiveNoise "
            "ObjectivePerturbation OutputPerturbation Release StreamRelease calibrate "
            "gaussian_profile largest_score plan_descent unit_guarantee"
        ),
        "linear_model._rules": (
            "AUTOMATIC_CONSTANT linear_signal objective_margin "
            "objective_penalty objective_slope_cap output_penalty"
        ),
        "local._gradient_messages": (
            "GradientMessages gaussian_leakage gaussian_sigma implied_mu "
            "implied_mu_of_budget k_norm_leakage k_norm_scale local_law nats_of"
        ),
        "local._value_messages": (
            "OnePointMessages ValueMessages bandit_noise laplace_leakage laplace_scale "
            "scalar_leakage scalar_sigma vector_leakage vector_sigma"
        ),
        "mechanisms._cells": "checked_ranges",
        "model_selection._choice": "ChoiceRelease",
        "metrics._precision_sum": "PrecisionSum",
        "preprocessing._bounded_sums": "BoundedSums",
        "preprocessing._categories": "CategoryRelease",
        "preprocessing._column_sums": "CountsRelease MeanRelease",
        "preprocessing._most_frequent": "MostFrequentRelease",
        "preprocessing._quantiles": "QuantileRelease least_epsilon least_guarantee",
        "preprocessing._target_bounds": "TargetBounds check_search_range",
    },
}

# Modules of `skdp.solvers`, and those that have their names now.
_SOLVERS = {
    "certificates": "rows._certificates",
    "comparator": "linear_model._comparator",
    "curvatures": "rows._curvatures",
    "exact_sums": "rows._exact_sums",
    "feature_rows": "rows._feature_blocks",
    "feature_whitening": "rows._feature_whitening",
    "gossip": "distributed._solver_gossip",
    "gossip_sums": "distributed._solver_gossip_sums",
    "gossip_whitened": "distributed._solver_gossip_whitened",
    "hits": "rows._hits",
    "kernel_ridge": "kernel._exact_solver",
    "newton": "learner._newton",
    "newton_steps": "rows._newton_steps",
    "normalised_rows": "rows._normalised_rows",
    "ogd": "local._ogd",
    "online": "kernel._online._recursion",
    "online_kernel": "kernel._online._exact_kernel",
    "prefix_factors": "kernel._online._prefix_factors",
    "row_lengths": "rows._row_norms",
    "row_products": "rows._row_products",
    "rows": "rows._blocks",
    "threads": "rows._threads",
    "user_norms": "rows._user_norms",
    "whitening": "rows._whitening",
}

GONE = (*_MOVED, "solvers")


def _homes(package):
    """Modules of today, by the names that a package or a module had; None if it never was."""
    if package == "solvers":
        return {}
    if package.startswith("solvers.") and package[8:] in _SOLVERS:
        home = _SOLVERS[package[8:]]
        return dict.fromkeys(importlib.import_module(f"skdp.{home}").__all__, home)
    if package in _MOVED:
        return {n: home for home, names in _MOVED[package].items() for n in names.split()}
    return None


class MovedNames:
    """Finder of the packages that are gone."""

    def find_spec(self, fullname, path=None, target=None):
        """Spec of a package of ours that is gone."""
        if not fullname.startswith("skdp.") or _homes(fullname[5:]) is None:
            return None
        # A loader needs no base class, which would load `typing`.
        return importlib.machinery.ModuleSpec(
            fullname,
            self,  # type: ignore[arg-type]
            is_package=fullname == "skdp.solvers",
        )

    def create_module(self, spec):
        """A module as any other."""

    def exec_module(self, module):
        """Let the module look for its names where they are now."""
        package = module.__name__.partition(".")[2]
        homes = _homes(package)

        def moved(name):
            if name not in homes:
                raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")
            warnings.warn(
                f"skdp.{package}.{name} is skdp.{homes[name]}.{name} now; the old name goes in "
                "version 0.3.",
                DeprecationWarning,
                stacklevel=2,
            )
            return getattr(importlib.import_module(f"skdp.{homes[name]}"), name)

        module.__getattr__ = moved
        module.__all__ = sorted(homes)


if not any(isinstance(finder, MovedNames) for finder in sys.meta_path):
    sys.meta_path.append(MovedNames())
