"""A device that sends one-point gradients. Its promise is in ``local/_value_messages.py``."""

import numpy as np

from skdp._grid import INSIDE, VALUE_BITS, GridNoise, grid_below
from skdp._random._source import noise_source
from skdp._random._words import seed_sequence
from skdp.local._base import LossPrivatizer, moderate

__all__ = ["OnePointPrivatizer", "one_point_gradient"]


class OnePointPrivatizer(LossPrivatizer):
    """Turn a loss into a noisy one-point gradient, on a device: algorithm 2 of the paper.

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

    noise, loss, width, x_norm, y_bounds, fit_intercept, constant
        As for `GradientPrivatizer`.

    References
    ----------
    Zhang and Venkitasubramaniam, "Mutual-information-private online gradient descent
    algorithm", ICASSP 2018, algorithm 2 and theorem 3.
    """

    @property
    def apart(self):
        """Largest distance of two vectors of one direction, in units of the amplitude."""
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
