"""What a release is: one object a privacy claim, with its bound, reason, noise and guarantee."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Protocol, Self

import numpy as np

from skdp._random._source import NoiseSource
from skdp.learner._losses._margin import HuberHingeLoss, LogisticLoss
from skdp.learner._losses._multiclass import SoftmaxLoss
from skdp.learner._losses._residual import HuberLoss
from skdp.privacy import Guarantee

__all__ = ["LinearLoss", "PerturbedLoss", "Release", "StreamRelease"]

LinearLoss = LogisticLoss | HuberHingeLoss | SoftmaxLoss
PerturbedLoss = LinearLoss | HuberLoss


class Release(Protocol):
    """A claim about one use of the data. Frozen, and made from public numbers only.

    ``plan`` makes it, the ledger is charged with its ``guarantee``, and only then it is called
    with the data. Whatever it returns has passed :func:`~skdp.mechanisms.release`. What ``plan``
    made is proven; who changes a field by hand makes a claim of their own.
    """

    @property
    def guarantee(self) -> Guarantee:
        """What the ledger is charged."""

    @classmethod
    def plan(cls, target: Any, **public: Any) -> Self:
        """Release for a target, from public numbers."""

    def __call__(self, data: Any, noise: NoiseSource) -> np.ndarray:
        """Release; bound, reason and noise stand here, next to each other."""


class StreamRelease(ABC):
    """Where a stream stands. Frozen: going on makes another one.

    Its guarantee is that of one line, which goes on from each place once. Two that go on from the
    same place are two streams, and together cost more than either says; estimators refuse the
    second.
    """

    @abstractmethod
    def advance(
        self, X: Any, targets: np.ndarray, charge: Callable[..., Any]
    ) -> tuple["StreamRelease", dict[str, Any]]:
        """Go on with more rows.

        Parameters
        ----------
        X : {ndarray, CSR matrix or array} of shape (n_rows, n_features)

        targets : ndarray of shape (n_rows,)

        charge : callable
            ``charge(cost)`` has the ledger cover the coming release before the data are used, and
            returns the guarantee and the account of all releases, the coming one included;
            ``cost(account)`` makes both of the account so far, which a stream that keeps one
            passes along: ``charge(cost, account)``.

        Returns
        -------
        next : StreamRelease

        fitted : dict
            What a fitted estimator has now: ``predictor``, which answers, and ``guarantee_``.
        """
