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
    """A charge would exceed the budget of a ledger or a fitted model; nothing was charged."""


class DistributedError(RuntimeError):
    """Another process of the same fit failed, or the processes got different arguments."""


class NoConversionError(ValueError):
    """The requested conversion between privacy guarantees does not exist."""


class SolverError(RuntimeError):
    """The solver could not certify its solution, so nothing was released.

    Whether this error occurs depends on the data, so it is outside the guarantee. It is not
    expected: the objectives are smooth and strongly convex. If public numbers show that a solution
    cannot be certified, a ValueError is raised before the ledger is charged.
    """


class SourceChangedError(RuntimeError):
    """The rows of a source changed after they were checked; an earlier charge stays."""


class StaleStreamError(ValueError):
    """Another copy of the stream has continued it; nothing was charged."""


class PrivacyWarning(UserWarning):
    """The call is allowed but weakens or voids the guarantee."""
