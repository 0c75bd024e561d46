"""What an audit finds, in words that show no private value."""

from dataclasses import dataclass

from skdp.privacy import Guarantee

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


# What no replay sees.
UNSEEN = (
    "time, memory, files and logs, labels in a ledger, classes that are made in a fit, what no "
    "pickle holds beside public attributes, what a fit does only without a seed or a ledger, "
    "records and transcripts that it does not try, or noise that others can compute although it "
    "looks fresh"
)


@dataclass(frozen=True)
class ReleaseTally:
    """All releases from one place in the code.

    Parameters
    ----------
    where : str
        Module, line and function.

    law : str
        Kind of the noise.

    size : int
        How many numbers one release has.

    n_releases : int
        Number of releases in one run.

    share : float
        Largest distance between two neighbours, over the declared sensitivity; of objective
        perturbation, the part of its guarantee that two neighbours attain.

    pair : str
        Which neighbours were that far apart, in words.
    """

    where: str
    law: str
    size: int
    n_releases: int
    share: float
    pair: str


@dataclass(frozen=True)
class ReplayReport:
    """What `replay` has seen.

    Attributes
    ----------
    findings : tuple of Finding
        Ways in which the promise was seen to be broken; empty if it passed.

    releases : tuple of ReleaseTally
        What was released, by place in the code.

    claim : Guarantee or None
        What was claimed.

    share : float
        Largest fraction of the claimed budget that one pair of neighbours has consumed in one
        transcript.

    pair : str
        That pair, in words.

    n_runs : int
        Number of runs on neighbours.

    seconds : float

    not_checked : tuple of str
        What this replay could not check, in words. It is neither a finding nor a pass.
    """

    findings: tuple[Finding, ...]
    releases: tuple[ReleaseTally, ...]
    claim: Guarantee | None
    share: float
    pair: str
    n_runs: int
    seconds: float
    not_checked: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether nothing was found, in what was checked: that proves nothing."""
        return not self.findings

    def __str__(self) -> str:
        lines = [f"Replay on {self.n_runs} neighbours in {self.seconds:.1f} s."]
        claim = "nothing is claimed" if self.claim is None else str(self.claim)
        consumed = "not known, as no pair was compared"
        if self.releases:
            consumed = f"{self.share:.3f} ({self.pair})"
        lines.append(f"Claim: {claim}")
        lines.append(f"Fraction of the budget consumed by the worst pair: {consumed}")
        lines += ["", f"{'distance/declared':>17}  {'releases':>8}  {'size':>6}  law       where"]
        for tally in self.releases:
            lines.append(
                f"{tally.share:17.4f}  {tally.n_releases:8d}  {tally.size:6d}  {tally.law:8}  "
                f"{tally.where}"
            )
        lines.append("")
        if self.passed:
            lines.append("No promise was seen broken.")
        else:
            order = sorted(self.findings, key=lambda finding: KINDS.index(finding.kind))
            lines += [f"BROKEN: {finding}" for finding in order]
        lines += [f"Not checked: {what}." for what in self.not_checked]
        return "\n".join([*lines, f"No replay sees {UNSEEN}."])
