"""What an audit finds, in words that show no private value."""

from dataclasses import dataclass

__all__ = ["KINDS", "Finding"]

# In the order in which a report tells them.
KINDS = (
    "sensitivity",
    "law",
    "control flow",
    "total",
    "charge",
    "outcome",
    "error",
    "warning",
    "noise",
)


@dataclass(frozen=True)
class Finding:
    """One way in which a promise was seen to be broken.

    Parameters
    ----------
    kind : str
        One of "sensitivity", "law", "control flow", "total", "charge", "outcome", "error",
        "warning", "noise".

    what : str
        What was seen, in words and without any value of the data.

    where : str, default=""
        Place in the code of the release that the finding belongs to, if any.
    """

    kind: str
    what: str
    where: str = ""

    def __str__(self) -> str:
        place = f" [{self.where}]" if self.where else ""
        return f"{self.kind}: {self.what}{place}"
