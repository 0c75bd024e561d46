"""Errors and warnings of skdp."""

__all__ = [
    "BudgetExceededError",
    "DistributedError",
    "NoConversionError",
    "PrivacyWarning",
    "SolverError",
    "SourceChangedError",
    "StaleStreamError",
]


class BudgetExceededError(ValueError):
    """A charge would exceed the budget of a ledger or of a fitted model; nothing was charged."""


class DistributedError(RuntimeError):
    """Another process of the same fit failed, or the processes were not called alike."""


class NoConversionError(ValueError):
    """The asked conversion between privacy guarantees does not exist."""


class SolverError(RuntimeError):
    """The solver could not certify its solution, so nothing was released.

    Whether this happens depends on the data, so that it lies outside the guarantee. It is not
    expected: the objectives are smooth and strongly convex, and what public numbers show to be
    out of reach is refused with a ValueError before a ledger is charged.
    """


class SourceChangedError(RuntimeError):
    """Rows of a source are others than those that were checked; a charge made before stays."""


class StaleStreamError(ValueError):
    """Another copy of the stream has gone on; nothing was charged."""


class PrivacyWarning(UserWarning):
    """The call is allowed, and weakens or voids the guarantee."""
