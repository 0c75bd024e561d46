"""Shared code of the devices: linear regression on one record, and noise on a grid."""

from abc import ABC, abstractmethod

import numpy as np

from skdp._grid import (
    CONSTANTS,
    NOISES,
    constant_on_grid,
    grid_rows,
    record_row_step,
    residual_slope,
    row_bound,
)
from skdp._validation import (
    LARGEST,
    LEAST,
    TargetRange,
    between,
    boolean,
    check_y_bounds,
    one_of,
    plain,
    positive,
)

_LIMIT_WEIGHTS = 1e100


def moderate(**named):
    """Check that values are far from where floats end."""
    positive(**named)
    between(LEAST, LARGEST, **named)


def numbers(values, named="x and y"):
    """Array of a record, which a message of numpy would show if it holds something else."""
    try:
        # What is masked, imaginary or a time must not be taken for a number.
        if not np.ma.is_masked(values):
            found = np.asarray(values)
            with np.errstate(all="ignore"):  # of a wider type some leave the range of floats
                if found.dtype.kind not in "cmM":
                    return found.astype(np.float64, copy=False)
    except (TypeError, ValueError, OverflowError):
        pass
    raise ValueError(f"{named} must be numeric.")


class Privatizer(ABC):
    """Linear regression on a device: public parameters, and no state."""

    def __init__(
        self,
        scale,
        *,
        noise="gaussian",
        loss="absolute",
        width="auto",
        x_norm=1.0,
        y_bounds=(-1.0, 1.0),
        fit_intercept=True,
        constant=1.0,
    ):
        moderate(scale=scale, x_norm=x_norm)
        one_of(NOISES, noise=noise)
        check_y_bounds(y_bounds)
        boolean(fit_intercept=fit_intercept)
        between(*CONSTANTS, constant=constant)
        low, high = y_bounds
        self.scale, self.noise, self.loss, self.width = float(scale), noise, loss, plain(width)
        self.x_norm, self.y_bounds = float(x_norm), (float(low), float(high))
        self.fit_intercept = bool(fit_intercept)
        self.constant = constant_on_grid(float(constant))
        self.slope = self._slope()

    def _slope(self):
        return residual_slope(self.loss, self.width, TargetRange.of(self.y_bounds))

    @property
    def _appended(self):
        """Constant feature of rows; 0 if there is none."""
        return self.constant if self.fit_intercept else 0.0

    @property
    def _slope_step(self):
        """Slopes are multiples of this power of two."""
        return self.slope.step

    @property
    def row_norm(self):
        """Bound on the norm of a row, in units of ``x_norm`` and with the constant feature."""
        return row_bound(self._appended)

    @property
    def row_step(self):
        """Rows are rounded toward zero to multiples of this power of two."""
        return record_row_step(self._slope_step, self.noise, self.scale)

    def _rows(self, X):
        """Rows on the grid, in units of ``x_norm``: of norm ``row_norm`` at most."""
        return grid_rows(X, self.x_norm, self._appended, self.row_step)

    @property
    @abstractmethod
    def apart(self):
        """Largest distance of what any two records send before noise, in units of the scale's."""

    def _law(self):
        """Law of a message for who records releases; None on a device that has numpy only."""
        try:
            from skdp.local._messages import local_law
        except ModuleNotFoundError:  # a message has its scale and its sensitivity, too
            return None
        return local_law(self.noise, self.scale, self.apart)

    def _record(self, weights, x, y):
        """Rows on the grid and residuals; no error or warning may tell records apart."""
        weights = np.asarray(weights, dtype=np.float64)
        x, y = np.atleast_2d(numbers(x)), np.atleast_1d(numbers(y))
        size = x.shape[1] + self.fit_intercept
        # Weights may come from an adversary, and must not overflow for some records only.
        if weights.shape != (size,) or not (np.abs(weights) <= _LIMIT_WEIGHTS).all():
            last = ", and one for the intercept" if self.fit_intercept else ""
            raise ValueError(
                f"weights must be {size} numbers of at most 1e100: one for each of the "
                f"{x.shape[1]} features of x{last}."
            )
        finite = np.isfinite(x).all() and np.isfinite(y).all()
        if x.ndim != 2 or y.shape != (len(x),) or not finite:
            raise ValueError("x and y must be finite, and y must have one number per row of x.")
        rows = self._rows(x)
        with np.errstate(all="ignore"):
            return rows, rows @ weights - TargetRange(*self.y_bounds).scaled(y)

    def _one_residual(self, weights, x, y):
        residuals = self._record(weights, x, y)[1]
        if len(residuals) != 1:
            raise ValueError("x must be one record.")
        return float(residuals[0])

    def __repr__(self):
        named = ", ".join(f"{k}={v!r}" for k, v in vars(self).items() if k not in ("slope",))
        return f"{type(self).__name__}({named})"


class LossPrivatizer(Privatizer):
    """The same for a device that sends what it makes of a loss, whose range is public."""

    def __init__(self, scale, *, value_range, **regression):
        super().__init__(scale, **regression)
        moderate(value_range=value_range)
        self.value_range = float(value_range)

    @property
    def half_range(self):
        """Bound on a centred value."""
        return self.value_range / 2.0
