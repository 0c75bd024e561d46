"""Public weights of classes, as part of a loss."""

from typing import Any

import numpy as np

from skdp._validation import between, shown, store

__all__ = ["ByClass"]


class ByClass:
    """Mixin: the loss of a record is multiplied by the weight of its class, which is at most 1.

    Privacy: with weights of at most 1 the bounds of the loss itself hold for every record. Slope,
    curvature, and the trace and the rank of the Hessian are no larger than without the weight.
    Gradients are drawn towards zero, which is among their corners, and stay in their convex hull.
    Where a bound trades slope against curvature at one point, a record of weight u has the slope
    ``u t`` and the curvature ``u h(t)``: for the logistic loss ``u t (1 - t) <= u t (1 - u t)``,
    which is what the loss has where its own slope is ``u t``; other bounds take the largest of
    each.

    An objective with a largest weight w is w times one with weights of at most 1 and a penalty
    that is w times smaller. That is how the largest weight enters every sensitivity.
    """

    weights: tuple[float, ...] = ()

    def _store_weights(self, n_classes: int) -> None:
        weights = self.weights
        if len(weights) not in (0, n_classes):
            raise ValueError(
                f"weights must be empty or one for each of {n_classes} classes; "
                f"got {shown(weights)}."
            )
        for weight in weights:
            between(1e-300, 1.0, weights=weight)
        store(self, weights=tuple(map(float, weights)))

    @property
    def heaviest(self) -> int:
        """Code of a class that weighs most."""
        return int(np.argmax(self.weights)) if self.weights else 1

    def shares(self, codes: Any) -> np.ndarray:
        """Weight of each record, of the shape (n_samples,)."""
        return np.array(self.weights)[codes] if self.weights else np.ones(len(codes))

    def _weighted(self, values: Any, codes: Any) -> Any:
        """Values times the weights of records, which come first."""
        if not self.weights:
            return values
        shares = self.shares(codes)
        return values * (shares if values.ndim == 1 else shares[:, np.newaxis])
