"""Device that sends loss values. ``local/_messages.py`` has its guarantee."""

import math

from skdp._grid import VALUE_BITS, GridNoise, grid_below
from skdp._random._source import noise_source
from skdp.local._base import LossPrivatizer, numbers


class ValuePrivatizer(LossPrivatizer):
    """Release noisy loss values on a device (bandit feedback).

    Privacy: the value is clipped to ``[0, value_range]`` and centred. With Gaussian noise of
    standard deviation ``scale``, a release leaks at most
    ``(1/2) ln(1 + value_range^2 / (4 scale^2))`` nats and satisfies local Gaussian differential
    privacy with ``mu = value_range / scale``. K-norm noise is Laplace noise here and gives
    ``value_range / scale``-local differential privacy.

    The paper adds noise to the vector ``(d / delta) value e`` (see `OnePointPrivatizer`). The
    direction ``e`` does not depend on the record. Noise on the value alone therefore leaks no
    more, and reduces the noise energy by a factor of d.

    Each release is one contribution and costs the guarantee again. This class does not count
    releases. The running time of a call is not covered.

    Parameters
    ----------
    scale : float
        Standard deviation of Gaussian noise, or scale of Laplace noise.

    value_range : float
        Upper bound to which values are clipped.

    noise, loss, width, x_norm, y_bounds, fit_intercept, constant
        As for `GradientPrivatizer`. All except ``noise`` apply to `release` only.

    Examples
    --------
    >>> from skdp.local import ValuePrivatizer
    >>> device = ValuePrivatizer(scale=2.0, value_range=10.0)
    >>> answer = device.release_value(7.5)
    """

    @property
    def step(self):
        """Power of two of which all messages are multiples."""
        return grid_below(self.half_range, VALUE_BITS)

    @property
    def apart(self):
        """Largest distance between two values."""
        # A centred value is at most half the range in size, on either side.
        return 2.0 * self.half_range

    def _sender(self, n, *, random_state=None):
        """As many devices at once, for who plays them all.

        Parameters
        ----------
        n : int

        random_state : None, int, RandomState, Generator or NoiseSource, default=None

        Returns
        -------
        callable
            Turns a value into a noisy one, minus the middle of the range; n times.
        """
        half_range, step = self.half_range, self.step
        grid = self.noise, self.scale, step, 1, self.apart, self._law
        noise = GridNoise(*grid, purpose="value that one device sends")
        releases = iter(noise.releasing(noise.draw(noise_source(random_state), n)))

        def send(value):
            return next(releases)(centred_value(value, half_range, step))

        return send

    def release_value(self, value, *, random_state=None):
        """Return the noisy value, minus the middle of the range.

        Parameters
        ----------
        value : float
            Loss of the user at the query point.

        random_state : None, int, RandomState, Generator or NoiseSource, default=None
            None draws from the operating system; anything else is for tests.

        Returns
        -------
        float
        """
        value = float(numbers(value))
        if math.isnan(value):
            raise ValueError("value must be a number; got NaN.")
        return self._sender(1, random_state=random_state)(value)

    def release(self, point, x, y, *, random_state=None):
        """Return the noisy loss of a linear-regression record at a point.

        Parameters
        ----------
        point : array-like of shape (n_features + fit_intercept,)
            Query point sent by the learner.

        x : array-like of shape (n_features,)

        y : float

        random_state : None, int, RandomState, Generator or NoiseSource, default=None

        Returns
        -------
        float
        """
        residual = self._one_residual(point, x, y)
        return self.release_value(self.slope.value(residual), random_state=random_state)


def centred_value(value, half_range, step):
    """Value in ``[0, 2 half_range]`` minus the middle, on the grid of ``step``.

    A constant does not matter to a one-point gradient, whose direction has mean zero. Centred,
    values have half the amplitude.

    Parameters
    ----------
    value : float
        Clipped to its range.

    half_range : float

    step : float

    Returns
    -------
    float
        A multiple of ``step``, at most ``half_range`` in absolute value.
    """
    centred = max(-half_range, min(half_range, value - half_range))
    return int(centred / step) * step
