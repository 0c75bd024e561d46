"""Devices that send gradients. ``local/_messages.py`` has the guarantees of their noise.

``_grid.py`` shows that rows and slopes on the grid satisfy their bounds.
"""

import numpy as np

from skdp._grid import INSIDE, VALUE_BITS, GridNoise, grid_below, grid_vectors
from skdp._random._source import noise_source, seed_sequence
from skdp._validation import int_or_none, is_auto, number_or_auto, plain, short_repr
from skdp.local._base import LossPrivatizer, Privatizer, moderate, numbers


class GradientPrivatizer(Privatizer):
    """Release noisy gradients of records on a device: algorithm 1 of the paper.

    Privacy: gradients are clipped to the norm ``lipschitz``. With Gaussian noise of standard
    deviation ``scale``, a release leaks at most ``(d/2) ln(1 + lipschitz^2 / (d scale^2))`` nats
    of mutual information, on average over the record. It also satisfies local Gaussian
    differential privacy with ``mu = 2 lipschitz / scale``, for any record and any weights.
    Gradients and noise are integers on a public grid, so the low bits reveal nothing.

    Each release is one contribution and costs the guarantee again. This class does not count
    releases. The running time of a call is not covered.

    Parameters
    ----------
    scale : float
        Standard deviation of Gaussian noise in a coordinate, or scale of the norm of K-norm
        noise.

    noise : {"gaussian", "k_norm"}, default="gaussian"
        Law of the noise. "k_norm" gives pure local differential privacy.

    loss : {"absolute", "huber", "epsilon_insensitive", "squared", "custom"}, default="absolute"
        Loss of the residual, for targets mapped to [-1, 1]. "custom" is a user-defined loss whose
        gradients are passed to `release_gradient`.

    width : float or "auto", default="auto"
        See :class:`~skdp.linear_model.MIPrivateSGDRegressor`.

    x_norm : float, default=1.0
        Public bound on the row norm. Rows with larger norm are scaled to it.

    y_bounds : (float, float), default=(-1.0, 1.0)
        Public bounds of the target. Targets outside are clipped.

    fit_intercept : bool, default=True
        Whether to append a constant feature to the row in units of ``x_norm``.

    constant : float, default=1.0
        Value of that feature, in the same units, from 1/256 to 16, rounded to a multiple of
        1/256.

    gradient_norm : float or "auto", default="auto"
        Bound on the Euclidean norm of gradients of a "custom" loss. Larger gradients are clipped.
        "auto" is ``row_norm``, for losses of a score with slopes up to 1.

    n_weights : int, default=None
        Message size for which ``scale`` was planned. Other sizes raise an error. None allows any.

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

    With a custom loss:

    >>> device = GradientPrivatizer(scale=5.0, loss="custom", gradient_norm=2.0)
    >>> device.release_gradient([0.3, -0.4, 1.0]).shape
    (3,)
    """

    def __init__(self, scale, *, gradient_norm="auto", n_weights=None, **regression):
        super().__init__(scale, **regression)
        int_or_none(n_weights=n_weights)
        self.gradient_norm, self.n_weights = plain(gradient_norm), plain(n_weights)
        number_or_auto(gradient_norm=gradient_norm)
        if not is_auto(gradient_norm):
            moderate(gradient_norm=gradient_norm)
            if self.slope is not None:
                raise ValueError(
                    "gradient_norm must be 'auto' unless loss='custom': the loss determines it; "
                    f"got {short_repr(gradient_norm)}."
                )

    def _slope(self):
        return None if self.loss == "custom" else super()._slope()

    @property
    def _slope_step(self):
        return grid_below(self.lipschitz, 0) if self.slope is None else self.slope.step

    @property
    def lipschitz(self):
        """Bound on the norm of a gradient."""
        if self.slope is not None:
            return self.slope.cap * self.row_norm
        return self.row_norm if is_auto(self.gradient_norm) else float(self.gradient_norm)

    @property
    def step(self):
        """Power of two of which all messages are multiples."""
        return self._slope_step * self.row_step

    @property
    def apart(self):
        """Largest distance between two gradients."""
        # A gradient is a slope times a row: of norm lipschitz at most, whatever the record and
        # the weights, and that of another record may point the other way.
        return 2.0 * self.lipschitz

    def _grid_noise(self, size):
        """Noise of messages of ``size`` numbers."""
        # In more dimensions the same scale leaks more nats.
        if self.n_weights not in (None, size):
            raise ValueError(f"A message must have {self.n_weights} numbers; got {size}.")
        # Slopes and rows are on grids of their own: their product is exact, and a multiple
        # of the step, as the noise is.
        grid = self.noise, self.scale, self.step, size, self.apart, self._law
        return GridNoise(*grid, purpose="gradient that one device sends")

    def release(self, weights, x, y, *, random_state=None):
        """Return the noisy gradient of the loss of a record.

        Parameters
        ----------
        weights : array-like of shape (n_features + fit_intercept,)
            Weights sent by the learner, for rows in units of ``x_norm``. The weight of the
            constant is last.

        x : array-like of shape (n_features,) or (n_records, n_features)
            One or several records of the user.

        y : float or array-like of shape (n_records,)

        random_state : None, int, RandomState, Generator or NoiseSource, default=None
            None draws from the operating system; anything else is for tests.

        Returns
        -------
        ndarray of shape (n_features + fit_intercept,) or (n_records, n_features + fit_intercept)
        """
        if self.slope is None:
            raise ValueError(
                "loss must not be 'custom' to release records; got 'custom'. Use release_gradient."
            )
        rows, residuals = self._record(weights, x, y)
        noise = self._grid_noise(rows.shape[1])
        z = noise.draw(noise_source(random_state), len(rows))
        slopes = np.array([[self.slope(residual)] for residual in residuals.tolist()])
        z = noise.release_each(slopes * rows, z)
        return z[0] if np.ndim(x) == 1 else z

    def release_gradient(self, gradient, *, random_state=None):
        """Return the noisy gradient of a custom loss, convex in the weights.

        Privacy: any gradient is clipped to the norm ``lipschitz`` and rounded toward zero onto
        the grid. The message therefore has the same guarantee as that of `release`. A clipped
        gradient may be the gradient of another loss, or of no loss.

        Parameters
        ----------
        gradient : array-like of shape (n_weights,) or (n_gradients, n_weights)
            Finite gradients or subgradients at the weights sent by the learner, one record per
            row.

        random_state : None, int, RandomState, Generator or NoiseSource, default=None
            None draws from the operating system; anything else is for tests.

        Returns
        -------
        ndarray of the shape of ``gradient``
        """
        vectors = numbers(gradient, "gradient")
        if vectors.ndim not in (1, 2) or 0 in vectors.shape or not np.isfinite(vectors).all():
            raise ValueError("gradient must be one or several rows of finite numbers.")
        size = vectors.shape[-1]
        if self.n_weights not in (None, size):
            raise ValueError(f"gradient must have {self.n_weights} numbers per row; got {size}.")
        exact = grid_vectors(np.atleast_2d(vectors), self.lipschitz, self.step)
        noise = self._grid_noise(exact.shape[1])
        z = noise.release_each(exact, noise.draw(noise_source(random_state), len(exact)))
        return z[0] if vectors.ndim == 1 else z


class OnePointPrivatizer(LossPrivatizer):
    """Release noisy one-point gradient estimates on a device: algorithm 2 of the paper.

    Privacy: the vector ``(d / exploration) (value - value_range / 2) e`` has norm at most
    ``amplitude = d value_range / (2 exploration)``. Its direction ``e`` does not depend on the
    record, so given ``e`` the vector lies on one line. With Gaussian noise of standard deviation
    ``scale * amplitude``, a release leaks at most ``(1/2) ln(1 + 1 / scale^2)`` nats, less than
    theorem 3 of the paper states. It satisfies local Gaussian differential privacy with
    ``mu = 2 / scale``.

    Each release is one contribution and costs the guarantee again. This class does not count
    releases. The running time of a call is not covered.

    Parameters
    ----------
    scale : float
        Standard deviation of Gaussian noise in a coordinate, or scale of the norm of K-norm
        noise, in units of the amplitude.

    value_range : float
        Upper bound to which losses are clipped.

    noise, loss, width, x_norm, y_bounds, fit_intercept, constant
        As for `GradientPrivatizer`.

    References
    ----------
    Zhang and Venkitasubramaniam, "Mutual-information-private online gradient descent
    algorithm", ICASSP 2018, algorithm 2 and theorem 3.
    """

    @property
    def apart(self):
        """Largest distance between vectors of the same direction, in units of the amplitude."""
        # No record decides the direction. Along it, a vector is at most its amplitude long.
        return 2.0

    def _send(self, value, direction, exploration, *, random_state=None):
        """Noisy estimate of a gradient from a value in a direction.

        Parameters
        ----------
        value : float

        direction : ndarray of shape (size,)
            Unit vector.

        exploration : float

        random_state : None, int, RandomState, Generator or NoiseSource, default=None

        Returns
        -------
        ndarray of shape (size,)
        """
        size, half_range = len(direction), self.half_range
        amplitude = size * half_range / exploration
        scale, step = self.scale * amplitude, grid_below(amplitude, VALUE_BITS)
        grid = self.noise, scale, step, size, self.apart * amplitude, self._law
        noise = GridNoise(*grid, purpose="vector that one device sends")
        z = one_point_gradient(value, direction, exploration, half_range, step)
        return noise.release(z, noise.draw(noise_source(random_state), 1)[0])

    def release(self, weights, x, y, exploration, *, random_state=None):
        """Return a noisy gradient estimate from one value of the loss.

        Parameters
        ----------
        weights : array-like of shape (n_features + fit_intercept,)
            Weights sent by the learner.

        x : array-like of shape (n_features,)

        y : float

        exploration : float
            Distance between the weights and the point at which the loss is evaluated.

        random_state : None, int, RandomState or Generator, default=None
            None draws from the operating system; anything else is for tests.

        Returns
        -------
        ndarray of shape (n_features + fit_intercept,)
        """
        moderate(exploration=exploration)
        exploration = float(exploration)
        weights = np.asarray(weights, dtype=np.float64)
        generator = np.random.default_rng()
        if random_state is not None:
            seed, random_state = map(np.random.default_rng, seed_sequence(random_state).spawn(2))
            generator = seed
        direction = generator.standard_normal(len(weights))
        direction /= np.linalg.norm(direction)
        residual = self._one_residual(weights + exploration * direction, x, y)
        value = self.slope.value(residual)
        return self._send(value, direction, exploration, random_state=random_state)


def one_point_gradient(value, direction, exploration, half_range, step):
    """Estimate of a gradient from one value at a distance, on the grid of ``step``.

    Parameters
    ----------
    value : float
        Of the loss, ``exploration`` away in ``direction``.

    direction : ndarray of shape (size,)
        Unit vector.

    exploration : float

    half_range : float
        Values are clipped to ``[0, 2 half_range]``.

    step : float
        Of the coordinates.

    Returns
    -------
    ndarray of shape (size,)
        ``(size / exploration) (value - half_range) direction``, rounded toward zero, of norm at
        most ``size half_range / exploration``.
    """
    centred = max(-half_range, min(half_range, value - half_range))
    factor = len(direction) * centred / exploration * INSIDE / step
    return np.trunc(factor * direction) * step
