"""Results of an audit, in texts without private values."""

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
    """One observed violation of a guarantee.

    Parameters
    ----------
    kind : str
        One of "sensitivity", "law", "control flow", "total", "charge", "outcome", "error",
        "warning", "noise".

    what : str
        Description of the violation, without any value of the data.

    where : str, default=""
        Code location of the release concerned, if any.
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
    """Summary of all releases from one code location.

    Parameters
    ----------
    where : str
        Module, line and function.

    law : str
        Kind of the noise.

    size : int
        Number of values in one release.

    n_releases : int
        Number of releases in one run.

    share : float
        Largest distance between two neighbours, divided by the declared sensitivity. For
        objective perturbation, the largest fraction of its guarantee consumed by two neighbours.

    pair : str
        Description of these neighbours.
    """

    where: str
    law: str
    size: int
    n_releases: int
    share: float
    pair: str


@dataclass(frozen=True)
class ReplayReport:
    """Report of `replay`.

    Attributes
    ----------
    findings : tuple of Finding
        Observed violations of the guarantee; empty if none was observed.

    releases : tuple of ReleaseTally
        Releases, by code location.

    claim : Guarantee or None
        Tested guarantee.

    share : float
        Largest fraction of the claimed budget that one pair of neighbours has consumed in one
        transcript.

    pair : str
        Description of that pair.

    n_runs : int
        Number of runs on neighbours.

    seconds : float

    not_checked : tuple of str
        Descriptions of what this replay could not check. They count neither as finding nor as
        pass.
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
        """Whether the checks found no violation, which is not a proof of privacy."""
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
