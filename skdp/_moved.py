"""Names of packages that are gone: they warn, and come from where they are now, until 0.3."""

import importlib
import importlib.machinery
import sys
import warnings

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
        "kernel._descent": (
            "FeatureDescent FeaturePlan FeatureStatistics automatic_components plan_features"
        ),
        "kernel._online._base": "ReleaseAccount",
        "kernel._online._fed_back": "FedBackRelease sgd_noise",
        "kernel._online._final": "FinalRelease",
        "kernel._online._matrix": "MatrixRelease TreeRelease",
        "kernel._online._query": "QueryRelease",
        "kernel._online._sensitivity": (
            "automatic_t0 created_distances norm_bounds step_sensitivity "
            "stream_sensitivities stream_sensitivity"
        ),
        "kernel._pure": (
            "CentredObjective CentredOutput FeatureOutput PurePlan plan_pure pure_components"
        ),
        "kernel._queries": "ExactQueries QueryAnswers QueryPlan",
        "kernel._ridge_problem": (
            "EpsilonSuggestion RidgeProblem query_variance ridge_norm_bound "
            "ridge_sensitivity suggest_epsilon"
        ),
        "learner": (
            "CALIBRATIONS CoefficientNoise DescentPlan NoisyDescent ObjectiveNoise "
            "ObjectivePerturbation OutputPerturbation Release StreamRelease calibrate "
            "gaussian_profile largest_score plan_descent unit_guarantee"
        ),
        "linear_model._rules": (
            "AUTOMATIC_CONSTANT linear_signal objective_margin objective_penalty "
            "objective_slope_cap output_penalty"
        ),
        "local._messages": (
            "GradientMessages OnePointMessages ValueMessages bandit_noise "
            "gaussian_leakage gaussian_sigma implied_mu implied_mu_of_budget "
            "k_norm_leakage k_norm_scale laplace_leakage laplace_scale local_law nats_of "
            "scalar_leakage scalar_sigma vector_leakage vector_sigma"
        ),
        "mechanisms._cells": "checked_ranges",
        "metrics._releases": "PrecisionSum",
        "model_selection._choice": "ChoiceRelease",
        "preprocessing._column_statistics": "BoundedSums CountsRelease MeanRelease",
        "preprocessing._one_hot_encoder": "CategoryRelease",
        "preprocessing._quantiles": "QuantileRelease least_epsilon least_guarantee",
        "preprocessing._most_frequent": "MostFrequentRelease",
        "preprocessing._target_bounds": "TargetBounds check_search_range",
    },
}

# Modules, and those that have their names now.
_MODULES = {
    "solvers.certificates": "rows._sums",
    "solvers.comparator": "linear_model._comparator",
    "solvers.curvatures": "learner._newton",
    "solvers.exact_sums": "rows._sums",
    "solvers.feature_rows": "rows._blocks",
    "solvers.feature_whitening": "rows._whitening",
    "solvers.gossip": "distributed._gossip",
    "solvers.gossip_sums": "distributed._gossip",
    "solvers.gossip_whitened": "distributed._whitened_gossip",
    "solvers.hits": "rows._sums",
    "solvers.kernel_ridge": "kernel._queries",
    "solvers.newton": "learner._newton",
    "solvers.newton_steps": "learner._newton",
    "solvers.normalised_rows": "rows._blocks",
    "solvers.ogd": "local._ogd",
    "solvers.online": "kernel._online._recursion",
    "solvers.online_kernel": "kernel._online._recursion",
    "solvers.prefix_factors": "kernel._online._matrix",
    "solvers.row_lengths": "learner._stages",
    "solvers.row_products": "rows._sums",
    "solvers.rows": "rows._blocks",
    "solvers.threads": "rows._inputs",
    "solvers.user_norms": "rows._users",
    "solvers.whitening": "rows._whitening",
    "theory.bandit": "linear_model.papers",
    "theory.distributed": "distributed.papers",
    "theory.distributed_printed": "distributed.papers",
    "theory.kernel_ridge": "kernel.papers",
    "theory.kernel_ridge_printed": "kernel.papers",
    "theory.ogd": "linear_model.papers",
    "theory.online": "kernel.papers",
    "theory.online_error": "kernel.papers",
}

_RENAMED = {
    ("theory.kernel_ridge", "rate"): "ridge_rate",
    ("theory.online", "rate"): "online_rate",
}

GONE = (*_MOVED, "solvers", "theory")


def _homes(package):
    """Modules of today, by the names that a package or a module had; None if it never was."""
    if package in ("solvers", "theory"):
        return {}
    if package in _MODULES:
        home = _MODULES[package]
        module = importlib.import_module(f"skdp.{home}")
        names = getattr(module, "__all__", None) or [
            name
            for name, value in vars(module).items()
            if getattr(value, "__module__", "") == module.__name__ and not name.startswith("_")
        ]
        renamed = [name for old, name in _RENAMED if old == package]
        return dict.fromkeys([*names, *renamed], home)
    if package in _MOVED:
        return {n: home for home, names in _MOVED[package].items() for n in names.split()}
    return None


def _public(home, name):
    """The package that shows a name of a module, where one does; else the module."""
    package = home.partition("._")[0]
    shown = getattr(importlib.import_module(f"skdp.{package}"), "__all__", ())
    return package if name in shown else home


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
            is_package=fullname in ("skdp.solvers", "skdp.theory"),
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
            now = _RENAMED.get((package, name), name)
            home = _public(homes[name], now)
            warnings.warn(
                f"skdp.{package}.{name} is skdp.{home}.{now} now; the old name goes in version "
                "0.3.",
                DeprecationWarning,
                stacklevel=2,
            )
            return getattr(importlib.import_module(f"skdp.{home}"), now)

        module.__getattr__ = moved
        module.__all__ = sorted(homes)


if not any(isinstance(finder, MovedNames) for finder in sys.meta_path):
    sys.meta_path.append(MovedNames())
