"""Base of kernel regressors: a kernel, public bounds of the target, and predictions."""

import os
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin

from skdp._random._source import seed_sequence
from skdp._recording import is_recorded
from skdp._validation import (
    LARGEST,
    LEAST,
    TargetRange,
    between,
    boolean,
    int_or_auto,
    is_auto,
    number_or_auto,
    one_of,
    positive,
    short_repr,
    warn_of_bounds,
)
from skdp.kernel._queries import QueryAnswers, QueryPlan
from skdp.learner import warn_of_seed
from skdp.learner._estimator import _Learner
from skdp.preprocessing._target_bounds import TargetBounds, check_search_range
from skdp.rows import automatic_gamma, check_kernel, fourier_features
from skdp.rows._blocks import NormalisedRows

BOUNDS = ("tight", "paper")
# Stored by what all estimators share.
COMMON = ("n_features_in_", "feature_names_in_", "guarantee_")
_LIMIT_SECRET = 32  # bytes


class KernelFeatures:
    """Mixin: a kernel, and public features that stand in for it."""

    kernel: Any
    gamma: Any
    nu: Any
    n_components: Any
    orthogonal: Any
    x_norm: Any
    random_state: Any
    adjacency: Any

    @property
    def _takes_columns(self):
        return self.kernel != "linear"

    def _fewest(self, reset):
        """Options of checks of rows: a private number of later ones may be none."""
        return {} if reset or self.adjacency == "replace-one" else {"ensure_min_samples": 0}

    def _check_features(self):
        if isinstance(self.gamma, str) and not is_auto(self.gamma):
            raise ValueError(
                "gamma must be 'auto' or a positive number, chosen without using the data; "
                f"got {short_repr(self.gamma)}."
            )
        check_kernel(self.kernel, 1.0 if is_auto(self.gamma) else self.gamma, self.nu)
        boolean(orthogonal=self.orthogonal)
        positive(x_norm=self.x_norm)
        between(LEAST, LARGEST, x_norm=self.x_norm)

    def _n_components(self, n_features, automatic):
        """Length of a row of features."""
        size = self.n_components
        int_or_auto(n_components=size)
        if self.kernel == "linear":
            return n_features
        size = automatic if is_auto(size) else int(size)
        return size + size % 2

    def _public_gamma(self, n_features, is_sparse):
        """Width of the kernel, of which the linear one has none."""
        if self.kernel == "linear":
            return None
        if is_auto(self.gamma):
            return automatic_gamma(self.kernel, n_features, sparse_rows=is_sparse)
        return float(self.gamma)

    def _random_streams(self, n_streams=2):
        """Frequencies are public: their seed is never that of the noise."""
        if self.random_state is None:
            return (None,) * n_streams
        return map(np.random.default_rng, seed_sequence(self.random_state).spawn(n_streams))

    def _draw_features(self, n_features, n_components, gamma, feature_state):
        if self.kernel == "linear":
            return NormalisedRows(n_components, float(self.x_norm))
        return fourier_features(
            self.kernel,
            n_features,
            n_components=n_components,
            gamma=gamma,
            nu=self.nu,
            orthogonal=self.orthogonal,
            random_state=feature_state,
        )

    def _store(self, predictor, **fitted):
        """Replace all that an older fit, maybe of another kind, has learned.

        ``predictor`` is what `predict` asks: ``answer(X)`` are its values at rows, for targets in
        [-1, 1], and ``attributes`` what is public of it.
        """
        for name in [name for name in vars(self) if name.endswith("_") and name not in COMMON]:
            delattr(self, name)
        if fitted.get("gamma_", 0.0) is None:
            del fitted["gamma_"]
        for name, value in {**fitted, **predictor.attributes, "_predictor": predictor}.items():
            setattr(self, name, value)


class BaseKernelRegressor(KernelFeatures, RegressorMixin, _Learner):
    """Regressor on a kernel, with a public range of targets."""

    def predict(self, X):
        """Predict the target of each row, within ``y_bounds``.

        This costs no privacy, except with ``release="query"``: there each row that was not
        predicted before counts toward ``n_queries``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)

        Raises
        ------
        BudgetExceededError
            If there are more new rows than queries left. No row is predicted then.
        """
        X = self.validated(X)
        if isinstance(self._predictor, QueryAnswers):
            warn_of_seed(self._is_seeded(), self.ledger)
            if is_recorded():
                self.guarantee_ = self._stated(self.guarantee_, fresh=False)
        with np.errstate(all="ignore"):  # a warning would tell huge rows from others
            values = self._predictor.answer(X)
        return TargetRange.of(self.y_bounds_).original(values)

    def _check_kernel_parameters(self):
        one_of(BOUNDS, sensitivity=self.sensitivity)
        self._check_features()
        self._check_y_bounds()

    def _check_y_bounds(self):
        check_search_range(self.y_search_range)
        if not is_auto(self.y_bounds):
            TargetRange.of(self.y_bounds)
        elif not is_auto(self.residual_cap):
            raise ValueError(
                "residual_cap must be 'auto' with y_bounds='auto': it is in units of the target, "
                f"whose scale is not known in advance; got {short_repr(self.residual_cap)}."
            )

    @property
    def _may_learn_bounds(self):
        """Whether bounds may be learned where none are given."""
        return True

    def _learns_bounds(self, target, n_units):
        """Whether bounds of the target are learned; of public numbers.

        Parameters
        ----------
        target : ApproxDP
            Of a fit.

        n_units : int or None
            Rows or users that there are; what is private is not read. None is as many as needed.
        """
        if self.y_bounds is not None or not self._may_learn_bounds:
            return is_auto(self.y_bounds)
        # A cap is in units of the target. Of a private number of rows nobody knows whether bounds
        # would be noise.
        if not is_auto(self.residual_cap) or target.adjacency != "replace-one":
            return False
        return target.epsilon >= TargetBounds.least_epsilon(target, n_samples=n_units)

    def _with_bounds(self, target, n_units, planned):
        """Plan a release and, where the target's bounds are to be learned, these before it.

        Parameters
        ----------
        target : ApproxDP
            Of both together.

        n_units : int or None
            Rows or users that there are; what is private is not read.

        planned : callable
            ``planned(rest)`` is a release that meets the point ``rest``.

        Returns
        -------
        bounds : TargetBounds or None

        release : Release

        guarantee : ApproxDP
            Of both together.
        """
        if not self._learns_bounds(target, n_units):
            warn_of_bounds(self.y_bounds)
            release = planned(target)
            return None, release, release.guarantee
        public = n_units if target.adjacency == "replace-one" else None
        bounds = TargetBounds.plan(target, n_samples=public, search_range=self.y_search_range)
        release = bounds.before(planned)
        return bounds, release, bounds.guarantee(release.guarantee)

    @property
    def _asks_for_bounds(self):
        """Whether bounds are learned, or may be, depending on the number of rows."""
        may_learn = self.y_bounds is None and self._may_learn_bounds
        return may_learn or is_auto(self.y_bounds)

    @property
    def _reads_count(self):
        return self._asks_for_bounds and self.adjacency == "replace-one"

    def _planned_guarantee(self, n_features):
        return self._planned(super()._planned_guarantee(n_features), n_features)

    def _planned_for_users(self, n_features):
        target = replace(super()._planned_guarantee(n_features), unit="user")
        return self._planned(target, n_features)

    def _planned_for(self, n_features, n_units=None, unit="record"):
        target = replace(super()._planned_guarantee(n_features), unit=unit)
        return self._planned(target, n_features, n_units)

    def _planned(self, target, n_features, n_units=None):
        """Guarantee of a fit, with what stands behind it where that is known without the rows."""
        if not self._learns_bounds(target, n_units):
            return self._planned_release(target, n_features)
        if n_units is None and self._reads_count:
            return target

        def planned(rest):
            return SimpleNamespace(guarantee=self._planned_release(rest, n_features))

        try:
            _, release, guarantee = self._with_bounds(target, n_units, planned)
        except ValueError:  # the fit will say so
            return target
        is_known = target.delta == 0.0 or release.guarantee.refined is not None
        return guarantee if is_known else target

    def _cap(self, automatic=None):
        """Cap of the residuals, in units of half the range of the target."""
        if is_auto(self.residual_cap):
            return automatic
        number_or_auto(residual_cap=self.residual_cap)
        return TargetRange.of(self.y_bounds).relative(residual_cap=self.residual_cap)

    @staticmethod
    def _secret(noise_state):
        """Key that the noise of answers follows from, new for each fit."""
        return (
            os.urandom(_LIMIT_SECRET) if noise_state is None else noise_state.bytes(_LIMIT_SECRET)
        )

    def _planned_release(self, target, n_features):
        """Guarantee of a release that meets a target, at most, for any number of rows."""
        if self.release == "query" and self.n_queries is not None:
            return QueryPlan.plan(target, n_queries=int(self.n_queries)).guarantee
        if target.delta == 0.0 or self.release == "query":
            return target
        return replace(target, refined=target.gaussian_target())
