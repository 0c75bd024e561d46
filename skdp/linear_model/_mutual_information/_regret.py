"""Regret of the learner of a stream."""

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skdp._validation import TargetRange, positive, short_repr
from skdp.learner import (
    AbsoluteLoss,
    EpsilonInsensitiveLoss,
    HuberLoss,
    check_unchanged,
    has_begun,
)
from skdp.linear_model._comparator import best_in_ball
from skdp.linear_model._mutual_information._parameters import is_custom, slope_of
from skdp.linear_model._mutual_information._stream import MessageStream
from skdp.linear_model._mutual_information._theory import regret_of_steps
from skdp.rows._inputs import checked_data

_TOLERANCE = 1e-4


class Regret:
    """Mixin: regret of the learner."""

    keep_iterates: bool
    radius: float
    y_bounds: tuple[float, float] | None
    n_samples_seen_: int
    _stream: MessageStream

    def _validated(self, X, y, *, reset):
        """Rows, and targets in units of half their range."""
        X, y = checked_data(self, X, y, reset=reset, numeric=True)
        return X, TargetRange.of(self.y_bounds).scaled(y)

    @property
    def iterates_(self):
        """Weights played, or points of evaluation: one row per contribution."""
        if not has_begun(self) or not self.keep_iterates:
            raise AttributeError("iterates_ is available only with keep_iterates=True.")
        size = self._stream.channel.size
        return np.concatenate([np.empty((0, size)), *self._stream.iterates])

    @property
    def regret_bound_(self):
        """Bound on the expected regret so far."""
        if not has_begun(self):
            raise AttributeError("regret_bound_ is available only after fit.")
        channel, time = self._stream.channel, self._stream.state.time
        if time == 0:
            return 0.0
        energies, slack = channel.regret_terms(time)
        steps, radius = channel.projection.steps(0, time), channel.projection.radius
        return regret_of_steps(steps, energies, radius=radius, slack=slack)

    def regret(self, X, y, *, tolerance=_TOLERANCE):
        """Return the loss of the weights played minus that of the best fixed weights in the ball.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape ``(n_samples_seen_, n_features)``
            Records of the stream, in its order. No guarantee covers a regret on private records.

        y : array-like of shape ``(n_samples_seen_,)``

        tolerance : float, default=1e-4
            Certified accuracy of the best mean loss.

        Returns
        -------
        float
            Regret in units of half the range of the target, as ``regret_bound_``.

        Raises
        ------
        ValueError
            If ``keep_iterates`` was False, or ``X`` does not have as many rows as the stream.
        """
        check_is_fitted(self)
        positive(tolerance=tolerance)
        check_unchanged(self, self._stream.params)
        if not self.keep_iterates:
            raise ValueError(
                f"keep_iterates must be True for the regret; got {short_repr(self.keep_iterates)}."
            )
        if is_custom(self):
            raise ValueError("loss must not be 'custom' for the regret; got 'custom'.")
        X, targets = self._validated(X, y, reset=False)
        if len(targets) != self.n_samples_seen_:
            raise ValueError(
                f"X must hold the {self.n_samples_seen_} records of the stream; "
                f"got {len(targets)} rows."
            )
        rows = self._stream.channel.device._rows(X)
        loss, scores = loss_of(self), np.einsum("ij,ij->i", rows, self.iterates_)
        best = best_in_ball(
            rows, targets, loss, radius=float(self.radius), tolerance=float(tolerance)
        )
        return loss.total(scores[:, np.newaxis], targets) - best[1]


def loss_of(model):
    """Loss of a residual, whose slope the devices have."""
    slope = slope_of(model)
    if slope.linear:
        return HuberLoss(slope.cap)
    return EpsilonInsensitiveLoss(slope.dead) if slope.dead else AbsoluteLoss()
