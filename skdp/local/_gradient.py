"""A device that sends gradients. What its noise promises is in ``releases/_gradient_messages.py``.

Beside these two files, ``_grid.py`` shows that rows and slopes on the grid keep to their bounds.
"""

import numpy as np

from skdp._grid import GridNoise
from skdp._random import noise_source
from skdp.local._base import Privatizer

__all__ = ["GradientPrivatizer"]


class GradientPrivatizer(Privatizer):
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

    @property
    def apart(self):
        """Largest distance of two gradients."""
        # A gradient is a slope times a row: of norm lipschitz at most, whatever the record and
        # the weights, and that of another record may point the other way.
        return 2.0 * self.lipschitz

    def _grid_noise(self, size):
        """Noise of messages of ``size`` numbers."""
        # Slopes and rows are on grids of their own: their product is exact, and a multiple
        # of the step, as the noise is.
        return GridNoise(self.noise, self.scale, self.step, size, self.apart, self._law)

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
        noise = self._grid_noise(rows.shape[1])
        z = noise.draw(noise_source(random_state), len(rows))
        slopes = np.array([[self.slope(residual)] for residual in residuals.tolist()])
        z = noise.release_each(slopes * rows, z)
        return z[0] if np.ndim(x) == 1 else z
