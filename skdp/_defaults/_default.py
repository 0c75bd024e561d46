"""A number with its reason."""

from typing import Self

__all__ = ["Default"]


class Default(float):
    """Number that a rule goes by.

    Parameters
    ----------
    value : float

    why : str, default=""
        The sentence that derives it, or what was compared.

    worth : str, default=""
        What is lost without it, with its standard error over data sets. Empty where it is derived.
    """

    why: str
    worth: str

    def __new__(cls, value: float, why: str = "", worth: str = "") -> Self:
        number = super().__new__(cls, value)
        number.why, number.worth = why, worth
        return number
