"""Tables of coefficients with intervals, computed from released numbers only."""

import math
import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from skdp._validation import between, boolean, level_of_the_user, short_repr
from skdp._views import clean, table

CONFIDENCE = 0.95
_LIMIT_LEVEL = 1e-6
# Largest share that is not told of what was cut.
_LIMIT_CUT = 0.01


def deviate(level: Any) -> float:
    """Half-width, in standard deviations, of the central normal interval of mass ``level``."""
    between(_LIMIT_LEVEL, 1.0 - _LIMIT_LEVEL, level=level)  # a share, and no percentage
    return float(ndtri(0.5 + float(level) / 2.0))


def in_percent(level: Any) -> str:
    """Level of an interval, in percent."""
    return f"{100 * float(level):g} %"


@dataclass(frozen=True, eq=False, repr=False)
class CoefficientSummary:
    """Coefficients of a private model with standard errors, intervals and p-values.

    All values are released or computed from released values. Reading them costs no privacy, at any
    level.

    Parameters
    ----------
    names : tuple of str
        Names of the coefficients.

    estimates : ndarray of shape (n_coefficients,)
        Coefficients.

    sampling : ndarray of shape (n_coefficients, n_coefficients)
        Covariance due to sampling of the rows, without noise.

    noise : ndarray of shape (n_coefficients, n_coefficients)
        Covariance due to the noise, for fixed rows.

    values : ndarray of shape (n_weights,)
        Eigenvalues of the released curvature.

    loadings : ndarray of shape (n_weights, n_coefficients)
        Component of each coefficient along each eigenvector.

    beside : float
        Standard deviation of the noise of an off-diagonal entry of the curvature.

    is_robust : bool
        Whether ``sampling`` holds for errors of any variance (Huber and White). Otherwise it
        assumes a single error variance; for users it is then an upper bound.

    has_converged : bool
        Whether the last Newton step was small enough. Otherwise there are no intervals.

    exponentials : bool, default=False
        Whether exponentials of the coefficients are meaningful: odds ratios or rate ratios.

    has_intercept : bool, default=False
        Whether the last coefficient is the intercept.

    notes : tuple of str, default=()
        Further remarks.

    Notes
    -----
    If noise hides a direction, intervals along it are unbounded. With z the normal quantile and s
    the standard deviation of the off-diagonal noise of the curvature, this happens if its
    eigenvalue is at most ``sqrt(2) z s`` (Fieller). Let a be the inverse curvature times the
    direction of a coefficient, over all other directions. The coefficient is marked "cannot tell"
    if its component along a hidden direction exceeds ``z s |a|``, which is z times the component
    that noise alone would produce.

    References
    ----------
    Fieller, "Some problems in interval estimation", JRSS-B 1954. White, "A heteroskedasticity-
    consistent covariance matrix estimator and a direct test for heteroskedasticity",
    Econometrica 1980.
    """

    names: tuple[str, ...]
    estimates: np.ndarray
    sampling: np.ndarray
    noise: np.ndarray
    values: np.ndarray
    loadings: np.ndarray
    beside: float
    is_robust: bool
    has_converged: bool
    exponentials: bool = False
    has_intercept: bool = False
    notes: tuple[str, ...] = ()

    def combined(
        self,
        matrix: np.ndarray,
        names: Any,
        offset: Any = 0.0,
        *,
        has_intercept: bool = False,
        notes: tuple[str, ...] = (),
    ) -> "CoefficientSummary":
        """Return the summary of linear combinations of the coefficients.

        Parameters
        ----------
        matrix : ndarray of shape (n_combinations, n_coefficients)
            Weights of the coefficients, in the order of ``names``: ``[[1, -1, 0]]`` is the first
            minus the second.

        names : sequence of str
            Names of the combinations.

        offset : float or ndarray of shape (n_combinations,), default=0.0
            Public constant added to the estimates.

        has_intercept : bool, default=False
            Whether the last combination is an intercept, which has no odds ratio.

        notes : tuple of str, default=()
            Remarks to add to those of the summary.

        Returns
        -------
        CoefficientSummary
        """
        matrix, names = np.asarray(matrix, dtype=float), tuple(map(str, names))
        if matrix.shape != (len(names), len(self.names)):
            raise ValueError(
                f"matrix must have a row for each of {len(names)} names and a column for each of "
                f"{len(self.names)} coefficients; got the shape {matrix.shape}."
            )
        return replace(
            self,
            names=names,
            estimates=matrix @ self.estimates + offset,
            sampling=matrix @ self.sampling @ matrix.T,
            noise=matrix @ self.noise @ matrix.T,
            loadings=self.loadings @ matrix.T,
            has_intercept=has_intercept,
            notes=(*self.notes, *notes),
        )

    @property
    def covariance(self) -> np.ndarray:
        """Covariance of the coefficients, due to sampling and noise together."""
        return self.sampling + self.noise

    @property
    def standard_errors(self) -> np.ndarray:
        """Standard errors, due to sampling and noise together."""
        return np.hypot(*self.error_parts)

    @property
    def error_parts(self) -> tuple[np.ndarray, np.ndarray]:
        """Standard errors due to sampling, 0 for a negative noisy variance, and to noise."""
        variances = np.diag(self.sampling), np.diag(self.noise)
        sampling, noise = (np.sqrt(np.maximum(part, 0.0)) for part in variances)
        return sampling, noise

    def cannot_tell(self, level: float = CONFIDENCE) -> np.ndarray:
        """Return whether noise hides each coefficient, which then has no interval.

        Parameters
        ----------
        level : float, default=0.95

        Returns
        -------
        ndarray of bool, shape (n_coefficients,)
        """
        z = deviate(level)
        if not self.has_converged:
            return np.ones(len(self.names), dtype=bool)
        hides = self.values <= math.sqrt(2.0) * z * self.beside
        seen = self.loadings[~hides] / self.values[~hides, np.newaxis]
        by_noise = z * self.beside * np.linalg.norm(seen, axis=0)
        return (np.abs(self.loadings[hides]) > by_noise).any(axis=0)

    def conf_int(self, level: float = CONFIDENCE) -> np.ndarray:
        """Return a confidence interval of probability ``level`` for each coefficient separately.

        Parameters
        ----------
        level : float, default=0.95

        Returns
        -------
        ndarray of shape (n_coefficients, 2)
            Lower and upper bounds; NaN where `cannot_tell`.
        """
        reach = deviate(level) * self.standard_errors
        ends = np.column_stack([self.estimates - reach, self.estimates + reach])
        ends[self.cannot_tell(level)] = np.nan
        return ends

    @property
    def z_values(self) -> np.ndarray:
        """Coefficients divided by their standard errors; NaN where `cannot_tell`."""
        values = self.estimates / self.standard_errors
        return np.where(self.cannot_tell(), np.nan, values)

    @property
    def p_values(self) -> np.ndarray:
        """Two-sided p-values for a coefficient of 0; NaN where `cannot_tell`."""
        return 2.0 * ndtr(-np.abs(self.z_values))

    def _columns(self, level: float) -> dict[str, Any]:
        ends, name = self.conf_int(level), in_percent(level)
        sampling, noise = self.error_parts
        return {
            "estimate": self.estimates,
            "standard error": self.standard_errors,
            "of sampling": sampling,
            "of noise": noise,
            f"{name} from": ends[:, 0],
            f"{name} to": ends[:, 1],
            "z": self.z_values,
            "p": self.p_values,
            "cannot tell": self.cannot_tell(level),
        }

    def to_frame(self, level: float = CONFIDENCE) -> Any:
        """Return the table as a pandas DataFrame, one row per coefficient.

        Parameters
        ----------
        level : float, default=0.95

        Returns
        -------
        DataFrame
        """
        import pandas as pd

        return pd.DataFrame(self._columns(level), index=list(self.names))

    def exponential(self, level: float = CONFIDENCE) -> Any:
        """Return the exponentials of the coefficients and of their interval bounds.

        Parameters
        ----------
        level : float, default=0.95

        Returns
        -------
        DataFrame
            One row per coefficient, without the intercept.
        """
        import pandas as pd

        name = in_percent(level)
        values = np.exp(np.column_stack([self.estimates, self.conf_int(level)]))
        columns = ["ratio", f"{name} from", f"{name} to"]
        frame = pd.DataFrame(values, index=list(self.names), columns=columns)
        frame["p"] = self.p_values
        return frame.iloc[:-1] if self.has_intercept else frame

    def _cells(self) -> tuple[list[str], list[list[str]]]:
        columns = self._columns(CONFIDENCE)
        hidden = columns.pop("cannot tell")
        rows = []
        for i, name in enumerate(self.names):
            cells = [f"{values[i]:.4g}" for values in columns.values()]
            if hidden[i]:
                cells[1:] = ["", "", "", "cannot tell", "", "", ""]
            rows.append([name, *cells])
        return ["", *columns], rows

    @property
    def remarks(self) -> tuple[str, ...]:
        """Remarks on the table, as sentences."""
        kind = (
            "for errors of any variance" if self.is_robust else "for errors of a single variance"
        )
        told = [f"Standard errors are {kind} and include the noise."]
        if not self.has_converged:
            told.append(NOT_CONVERGED)
        elif self.cannot_tell().any():
            told.append(HIDDEN)
        return (*told, *self.notes)

    def __str__(self) -> str:
        head, rows = self._cells()
        lines = [head, *([clean(cell) for cell in row] for row in rows)]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        shown = []
        for line in lines:
            cells = [line[0].ljust(widths[0])]
            cells += [cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True)]
            shown.append("  ".join(cells).rstrip())
        return "\n".join([*shown, *self.remarks])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        head, rows = self._cells()
        view = table(head, rows, numbers=range(1, len(head)))
        return f"{view}<p>{clean(' '.join(self.remarks))}</p>"


HIDDEN = (
    "Coefficients marked 'cannot tell' are nearly excluded from the model: correlated columns "
    "take over their effect. Scale columns to similar ranges, such as [-1, 1], use the smallest "
    "x_norm, drop one category per column, or increase the budget."
)
NOT_CONVERGED = (
    "The Newton steps did not converge, so there are no intervals: the last step exceeded the "
    "noise level, noise hides most directions, the classes are separable, or columns are "
    "redundant. More rows, a larger epsilon or fewer features may help. If a categorical column "
    "has an indicator for every level, leave one level out of its list."
)


class CoefficientInference:
    """Mixin: a summary of coefficients, and methods based on it."""

    summary_: CoefficientSummary
    n_features_in_: int
    inference: Any
    delta: Any

    def _check_inference(self) -> None:
        """Check ``inference``, and that noise is Gaussian with it."""
        boolean(inference=self.inference)
        if self.inference and self.delta == 0.0:
            raise ValueError(
                "delta must be positive with inference=True: intervals require Gaussian noise; "
                f"got {short_repr(self.delta)}."
            )

    def _store_summary(
        self,
        found: dict[str, Any],
        scales: np.ndarray,
        offset: float = 0.0,
        *,
        exponentials: bool = False,
        notes: tuple[str, ...] = (),
    ) -> None:
        """Store ``summary_`` of weights times scales, and warn of what it has to be read with.

        Parameters
        ----------
        found : dict
            What the stages released.

        scales : ndarray of shape (n_weights,)
            The last may be that of an intercept.

        offset : float, default=0.0
            Of the intercept.

        exponentials : bool, default=False
            As for `CoefficientSummary`.

        notes : tuple of str, default=()
            Beside those on what was cut.
        """
        estimate, n_features = found["estimate"], self.n_features_in_
        names = list(getattr(self, "feature_names_in_", [f"x{i}" for i in range(n_features)]))
        shift, has_intercept = np.zeros(len(scales)), len(scales) > n_features
        if has_intercept:
            names, shift[-1] = [*names, "intercept"], offset
        cut = _cut_notes(found)
        weights = CoefficientSummary(
            tuple(map(str, names)),
            estimate.weights,
            estimate.sampling,
            estimate.noise,
            estimate.values,
            estimate.vectors.T,
            estimate.beside,
            estimate.is_robust,
            estimate.has_converged,
            exponentials,
        )
        options: Any = dict(has_intercept=has_intercept, notes=(*notes, *cut))
        self.summary_ = weights.combined(np.diag(scales), names, shift, **options)
        if not estimate.has_converged:
            warnings.warn(NOT_CONVERGED, ConvergenceWarning, stacklevel=level_of_the_user())
        for note in cut:
            warnings.warn(note, UserWarning, stacklevel=level_of_the_user())

    @property
    def covariance_(self) -> np.ndarray:
        """Covariance of the coefficients and the intercept, due to sampling and noise together."""
        self._check_summary()
        return self.summary_.covariance

    def conf_int(self, level: float = CONFIDENCE) -> np.ndarray:
        """Return confidence intervals of the coefficients, the intercept last; costs no privacy.

        Parameters
        ----------
        level : float, default=0.95

        Returns
        -------
        ndarray of shape (n_coefficients, 2)
            Lower and upper bounds; NaN where noise hides the coefficient.
        """
        self._check_summary()
        return self.summary_.conf_int(level)

    def _check_summary(self) -> None:
        check_is_fitted(self)
        if not hasattr(self, "summary_"):
            raise AttributeError(
                f"{type(self).__name__} has intervals only if fitted with inference=True; "
                f"got inference={short_repr(getattr(self, 'inference', None))}."
            )


# What stages count: of rows, targets and residuals.
_CUT = (
    "Rows with a norm above x_norm were clipped; the mean relative reduction is about",
    "The fraction of targets outside their bounds is about",
    "The fraction of clipped residuals is about",
)


def _cut_notes(found: dict[str, Any]) -> tuple[str, ...]:
    """Sentences on shares that were clipped and are more than their noise.

    A share of p moves a mean by p deviations, and more, and its standard error is one deviation
    over the root of the number of rows.
    """
    notes, most = [], min(_LIMIT_CUT, 0.5 / math.sqrt(found["n_units"]))
    for name, share in zip(_CUT, found["cut"].tolist(), strict=False):
        if share - 3.0 * found["cut_noise"] > most:
            told = f"{name} {min(share, 1.0):.2%}"
            notes.append(f"{told}: intervals are for the clipped data.")
    return tuple(notes)
