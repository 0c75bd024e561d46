"""A report for whoever answers for the data: one page, and details below it."""

import json
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from skdp._validation import shown
from skdp.inspection._report_data import report_of
from skdp.inspection._report_render import as_fragment, as_html, as_markdown, as_text
from skdp.inspection._report_subject import subject_of

__all__ = ["PrivacyReport", "privacy_report", "report_schema"]


@dataclass(frozen=True, eq=False, repr=False)
class PrivacyReport:
    """What a fitted model promises, for a data protection officer; see `privacy_report`.

    Privacy: made of public and of released numbers only, so that it may be stored, mailed and
    published.

    Parameters
    ----------
    data : dict
        The report as plain values, by the schema that `report_schema` returns.
    """

    data: dict[str, Any]

    def to_text(self) -> str:
        """Return the report as plain text, in lines of at most 80 characters.

        Returns
        -------
        str
        """
        return as_text(self.data)

    def to_markdown(self) -> str:
        """Return the report as Markdown.

        Returns
        -------
        str
        """
        return as_markdown(self.data)

    def to_html(self) -> str:
        """Return the report as an HTML page that stands alone, without scripts.

        Returns
        -------
        str
        """
        return as_html(self.data)

    def to_json(self) -> str:
        """Return the report as JSON, by the schema that `report_schema` returns.

        Returns
        -------
        str
        """
        return json.dumps(self.data, indent=2, ensure_ascii=False, allow_nan=False) + "\n"

    def save(self, path) -> None:
        """Write the report to a file, in the form that the name asks for.

        Parameters
        ----------
        path : str or path-like
            Ends with ``.txt``, ``.md``, ``.html`` or ``.json``.
        """
        path = Path(path)
        forms = {
            ".txt": self.to_text,
            ".md": self.to_markdown,
            ".html": self.to_html,
            ".json": self.to_json,
        }
        if path.suffix not in forms:
            raise ValueError(f"path must end with {', '.join(forms)}; got {shown(str(path))}.")
        path.write_text(forms[path.suffix](), encoding="utf-8")

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        return f"PrivacyReport of {self.data['subject']['type']}"

    def _repr_html_(self) -> str:
        return as_fragment(self.data)


def privacy_report(
    fitted, ledger=None, *, public=(), dataset=None, purpose=None, responsible=None
):
    """Report what a fitted model, or a set of scores, promises: one page, and its details.

    For a data protection officer and anyone else who answers for the data. The first page says
    what the result is, who is protected, how sure an attacker can become, what it cost and who
    answers for it. Details follow: what is treated as public and who declared it so, each release
    with its noise, theorem and share of the budget, what the ledger holds, what is not covered,
    and a line for each layer of the evaluation pyramid of NIST SP 800-226.

    Privacy: made of public and of released numbers only. No row is read, and it costs nothing. Of
    a class outside this package, a subclass among them, neither is known, and the report says so.

    Parameters
    ----------
    fitted : estimator or Evaluation
        Fitted: an estimator of this package, or a pipeline, column transformer or search of
        scikit-learn's own around such; or what `~skdp.metrics.dp_evaluate` returns.

    ledger : BudgetLedger or path, default=None
        Ledger of the data set, whose balance the report states. None takes the ledger of
        ``fitted``, if it has one that can be opened.

    public : tuple of str, default=()
        Steps of a pipeline of scikit-learn's own for which the caller takes responsibility, see
        `~skdp.pipeline.guarantee_of`.

    dataset, purpose, responsible : str, default=None
        Which data these are, what the result is for, and who answers for it: printed as given, and
        not checked. None prints "not stated", with room for the name of who is ``responsible``.

    Returns
    -------
    PrivacyReport

    Raises
    ------
    ValueError
        If something is not covered by a guarantee; the message names it.

    See Also
    --------
    skdp.pipeline.guarantee_of : The guarantee alone.

    References
    ----------
    Near, Darais, Lefkovitz and Howarth, "Guidelines for evaluating differential privacy
    guarantees", NIST SP 800-226, 2025. Kairouz, Oh and Viswanath, "The composition theorem for
    differential privacy", ICML 2015, for the power of tests.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPLogisticRegression
    >>> from skdp.inspection import privacy_report
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(1000, 3))
    >>> report = privacy_report(DPLogisticRegression(epsilon=0.5).fit(X, X[:, 0] > 0))
    >>> report.data["guarantee"]["epsilon"]
    0.5
    >>> [round(one["posterior"], 3) for one in report.data["attacker"]["posteriors"]]
    [0.016, 0.155, 0.622]
    >>> print(str(report).splitlines()[0])
    Privacy report: DPLogisticRegression
    """
    if isinstance(public, str):
        raise ValueError(f"public must be a tuple of steps; got {shown(public)}.")
    about = {"dataset": dataset, "purpose": purpose, "responsible": responsible}
    for name, text in about.items():
        if not isinstance(text, str | None):
            raise ValueError(f"{name} must be a string or None; got {shown(text)}.")
    return PrivacyReport(report_of(subject_of(fitted, tuple(public)), ledger, about))


def report_schema():
    """JSON schema (draft 2020-12) of the ``data`` of a `PrivacyReport`, with its version.

    Returns
    -------
    dict

    Examples
    --------
    >>> from skdp.inspection import report_schema
    >>> report_schema()["properties"]["version"]
    {'enum': ['1.0', '1.1']}
    """
    text = files("skdp.inspection").joinpath("privacy_report.schema.json").read_text("utf-8")
    return json.loads(text)
