"""The encryption layer: one record in, one noisy message out."""

import math

import numpy as np

from skdp._grid import (
    NOISES,
    VALUE_BITS,
    GridNoise,
    centred_value,
    grid_below,
    grid_rows,
    one_point_gradient,
    record_row_step,
    residual_slope,
)
from skdp._random import noise_source, seed_sequence
from skdp._targets import TargetRange
from skdp._validation import between, boolean, check_y_bounds, one_of, plain, positive

__all__ = ["GradientPrivatizer", "OnePointPrivatizer", "ValuePrivatizer"]


def _moderate(**named):
    """Check that values are far from where floats end."""
    positive(**named)
    between(1e-50, 1e50, **named)


def _numbers(values):
    """Array of a record, which a message of numpy would show if it holds something else."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        pass
    raise ValueError("x and y must hold numbers.")


class _Privatizer:
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
    ):
        _moderate(scale=scale, x_norm=x_norm)
        one_of(NOISES, noise=noise)
        check_y_bounds(y_bounds)
        boolean(fit_intercept=fit_intercept)
        low, high = y_bounds
        self.scale, self.noise, self.loss, self.width = float(scale), noise, loss, plain(width)
        self.x_norm, self.y_bounds = float(x_norm), (float(low), float(high))
        self.fit_intercept = bool(fit_intercept)
        self.slope = residual_slope(loss, self.width, TargetRange.of(self.y_bounds))

    @property
    def row_norm(self):
        """Bound on the norm of a row, in units of ``x_norm`` and with the constant feature."""
        return math.sqrt(2.0) if self.fit_intercept else 1.0

    @property
    def row_step(self):
        """Rows are rounded toward zero to multiples of this power of two."""
        return record_row_step(self.slope, self.noise, self.scale)

    def _record(self, weights, x, y):
        """Rows on the grid and residuals; no error or warning may tell records apart."""
        weights = np.asarray(weights, dtype=np.float64)
        x, y = np.atleast_2d(_numbers(x)), np.atleast_1d(_numbers(y))
        size = x.shape[1] + self.fit_intercept
        # Weights may come from an adversary, and must not overflow for some records only.
        if weights.shape != (size,) or not (np.abs(weights) <= 1e100).all():
            raise ValueError(
                f"weights must be {size} numbers of at most 1e100 for these features."
            )
        finite = np.isfinite(x).all() and np.isfinite(y).all()
        if x.ndim != 2 or y.shape != (len(x),) or not finite:
            raise ValueError("x and y must be finite, and y hold one number a row of x.")
        rows = grid_rows(x, self.x_norm, self.fit_intercept, self.row_step)
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


class GradientPrivatizer(_Privatizer):
    """Turn a record into a noisy gradient of its loss: the encryption layer of algorithm 1.

    Privacy: a gradient is clipped to the norm ``lipschitz``, so that Gaussian noise of standard
    deviation ``scale`` leaks at most ``(d/2) ln(1 + lipschitz^2 / (d scale^2))`` nats of mutual
    information, on average over the record, and satisfies local Gaussian differential privacy with
    ``mu = 2 lipschitz / scale``, for any record and whatever the weights. Gradients and noise
    are integers on a public grid, so that the low bits reveal nothing.

    Each release is one contribution and costs the guarantee again; nothing here counts them. The
    time that a call takes is not covered.

    Parameters
    ----------
    scale : float
        Standard deviation of Gaussian noise in a coordinate, or scale of the norm of K-norm
        noise.

    noise : {"gaussian", "k_norm"}, default="gaussian"

    loss : {"absolute", "huber", "epsilon_insensitive", "squared"}, default="absolute"
        Loss of the residual, for targets mapped to [-1, 1].

    width : float or "auto", default="auto"
        See :class:`~skdp.linear_model.MIPrivateSGDRegressor`.

    x_norm : float, default=1.0
        Public bound on the norm of a row; longer rows are scaled back.

    y_bounds : (float, float), default=(-1.0, 1.0)
        Public bounds of the target; targets outside are clipped.

    fit_intercept : bool, default=True
        Whether a constant feature of 1 is appended to the row in units of ``x_norm``.

    References
    ----------
    Zhang and Venkitasubramaniam, "Mutual-information-private online gradient descent
    algorithm", ICASSP 2018, algorithm 1 and theorem 1.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.local import GradientPrivatizer
    >>> device = GradientPrivatizer(scale=5.0)
    >>> message = device.release(np.zeros(3), [0.6, 0.8], 0.5)
    >>> message.shape
    (3,)
    """

    @property
    def lipschitz(self):
        """Bound on the norm of a gradient."""
        return self.slope.cap * self.row_norm

    @property
    def step(self):
        """Messages are multiples of this power of two."""
        return self.slope.step * self.row_step

    def release(self, weights, x, y, *, random_state=None):
        """Noisy gradient of the loss of a record.

        Parameters
        ----------
        weights : array-like of shape (n_features + fit_intercept,)
            From the learner, for rows in units of ``x_norm``; the constant's last.

        x : array-like of shape (n_features,) or (n_records, n_features)
            The user's own record, or several.

        y : float or array-like of shape (n_records,)

        random_state : None, int, RandomState, Generator or NoiseSource, default=None
            None draws from the operating system; anything else is for tests.

        Returns
        -------
        ndarray of shape (n_features + fit_intercept,) or (n_records, n_features + fit_intercept)
        """
        rows, residuals = self._record(weights, x, y)
        source = noise_source(random_state)
        n, size = rows.shape
        z = GridNoise(self.noise, self.scale, self.step, size, 1.0, None).draw(source, n)
        z += np.array([[self.slope(residual)] for residual in residuals.tolist()]) * rows
        return z[0] if np.ndim(x) == 1 else z


class ValuePrivatizer(_Privatizer):
    """Turn a loss into a noisy value: the encryption layer with bandit feedback.

    Privacy: the value is clipped to ``[0, value_range]`` and centred, so that Gaussian noise of
    standard deviation ``scale`` leaks at most ``(1/2) ln(1 + value_range^2 / (4 scale^2))`` nats,
    and satisfies local Gaussian differential privacy with ``mu = value_range / scale``. With
    K-norm noise, which is Laplace noise here, it is ``value_range / scale``-differential privacy.

    The paper adds noise to the vector ``(d / delta) value e`` (see `OnePointPrivatizer`). As the
    direction ``e`` does not depend on the record, noise on the value alone leaks no more,
    and of the noise that reaches the learner only one part in d is left.

    Each release is one contribution and costs the guarantee again; nothing here counts them. The
    time that a call takes is not covered.

    Parameters
    ----------
    scale : float
        Standard deviation of Gaussian noise, or scale of Laplace noise.

    value_range : float
        Largest value.

    noise, loss, width, x_norm, y_bounds, fit_intercept
        As for `GradientPrivatizer`; all but the noise are for `release` only.

    Examples
    --------
    >>> from skdp.local import ValuePrivatizer
    >>> device = ValuePrivatizer(scale=2.0, value_range=10.0)
    >>> answer = device.release_value(7.5)
    """

    def __init__(self, scale, *, value_range, **regression):
        super().__init__(scale, **regression)
        _moderate(value_range=value_range)
        self.value_range = float(value_range)

    @property
    def half_range(self):
        """Bound on a centred value."""
        return self.value_range / 2.0

    @property
    def step(self):
        """Messages are multiples of this power of two."""
        return grid_below(self.half_range, VALUE_BITS)

    def release_value(self, value, *, random_state=None):
        """Noisy value, minus the middle of the range.

        Parameters
        ----------
        value : float
            What the point cost the user.

        random_state : None, int, RandomState, Generator or NoiseSource, default=None
            None draws from the operating system; anything else is for tests.

        Returns
        -------
        float
        """
        value = float(_numbers(value))
        if math.isnan(value):
            raise ValueError("value must be a number; got NaN.")
        source = noise_source(random_state)
        noise = GridNoise(self.noise, self.scale, self.step, 1, 1.0, None).draw(source, 1)
        return centred_value(value, self.half_range, self.step) + float(noise[0, 0])

    def release(self, point, x, y, *, random_state=None):
        """Noisy loss of a record of linear regression at a point.

        Parameters
        ----------
        point : array-like of shape (n_features + fit_intercept,)
            From the learner.

        x : array-like of shape (n_features,)

        y : float

        random_state : None, int, RandomState, Generator or NoiseSource, default=None

        Returns
        -------
        float
        """
        residual = self._one_residual(point, x, y)
        return self.release_value(self.slope.value(residual), random_state=random_state)


class OnePointPrivatizer(_Privatizer):
    """Turn a loss into a noisy one-point gradient: the encryption layer of algorithm 2.

    Privacy: the vector ``(d / exploration) (value - value_range / 2) e`` has norm at most
    ``amplitude = d value_range / (2 exploration)``. Given its direction ``e``, which does not
    depend on the record, it moves along one line, so that Gaussian noise of standard deviation
    ``scale * amplitude`` leaks at most ``(1/2) ln(1 + 1 / scale^2)`` nats, less than theorem 3 of
    the paper states. It satisfies local Gaussian differential privacy with ``mu = 2 / scale``.

    Each release is one contribution and costs the guarantee again; nothing here counts them. The
    time that a call takes is not covered.

    Parameters
    ----------
    scale : float
        Standard deviation of Gaussian noise in a coordinate, or scale of the norm of K-norm
        noise, in units of the amplitude.

    value_range : float
        Largest loss. Losses are clipped to it.

    noise, loss, width, x_norm, y_bounds, fit_intercept
        As for `GradientPrivatizer`.

    References
    ----------
    Zhang and Venkitasubramaniam, "Mutual-information-private online gradient descent
    algorithm", ICASSP 2018, algorithm 2 and theorem 3.
    """

    def __init__(self, scale, *, value_range, **regression):
        super().__init__(scale, **regression)
        _moderate(value_range=value_range)
        self.value_range = float(value_range)

    def release(self, weights, x, y, exploration, *, random_state=None):
        """Noisy estimate of a gradient from one value of the loss.

        Parameters
        ----------
        weights : array-like of shape (n_features + fit_intercept,)
            From the learner.

        x : array-like of shape (n_features,)

        y : float

        exploration : float
            Distance from the weights of the point at which the loss is taken.

        random_state : None, int, RandomState or Generator, default=None
            None draws from the operating system; anything else is for tests.

        Returns
        -------
        ndarray of shape (n_features + fit_intercept,)
        """
        _moderate(exploration=exploration)
        exploration = float(exploration)
        weights = np.asarray(weights, dtype=np.float64)
        generator = np.random.default_rng()
        if random_state is not None:
            seed, random_state = map(np.random.default_rng, seed_sequence(random_state).spawn(2))
            generator = seed
        direction = generator.standard_normal(len(weights))
        direction /= np.linalg.norm(direction)
        residual = self._one_residual(weights + exploration * direction, x, y)
        value, half_range = self.slope.value(residual), self.value_range / 2.0
        amplitude = len(weights) * half_range / exploration
        step = grid_below(amplitude, VALUE_BITS)
        z = one_point_gradient(value, direction, exploration, half_range, step)
        source, scale = noise_source(random_state), self.scale * amplitude
        return z + GridNoise(self.noise, scale, step, len(weights), 1.0, None).draw(source, 1)[0]
