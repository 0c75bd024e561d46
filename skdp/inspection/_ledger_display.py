"""Plot of the budget that a ledger has spent over time."""

import os
from dataclasses import dataclass

from skdp._validation import one_of, short_repr
from skdp.inspection._axes import OneAxes
from skdp.privacy import BudgetLedger


@dataclass(eq=False, repr=False)
class BudgetLedgerDisplay(OneAxes):
    """Plot of the epsilon spent by a ledger, over time and by label, and of its budget.

    Use `from_ledger` to create a display.

    Privacy: guarantees, labels and times of charges are as public as the ledger. The plot reads no
    other data and charges nothing.

    Parameters
    ----------
    courses : list of LedgerCourse
        Courses of all charges together, then of each label. A course has a ``name`` and, for each
        of its charges, the ledger's number of ``charges``, the ``times`` and the ``epsilons``
        spent so far.

    epsilon : float
        Epsilon of the budget.

    delta : float, default=0.0
        Delta of the budget, at which epsilons are computed.

    Attributes
    ----------
    figure_ : matplotlib Figure

    ax_ : matplotlib Axes

    lines_ : list of matplotlib Line2D
        Lines of the courses, in the order of ``courses``.

    budget_ : matplotlib Line2D

    See Also
    --------
    skdp.privacy.BudgetLedger : Its ``history`` lists the charges.

    Notes
    -----
    The epsilons of labels do not add up to the total: the total comes from composition, which
    usually gives less than the sum. A new release of a stream replaces the previous one.

    Examples
    --------
    >>> from skdp.inspection import BudgetLedgerDisplay
    >>> from skdp.privacy import ApproxDP, BudgetLedger
    >>> ledger = BudgetLedger(epsilon=3.0)
    >>> for label, epsilon in [("counts", 0.5), ("model", 1.0), ("counts", 0.5)]:
    ...     ledger.charge(ApproxDP(epsilon), label)
    >>> display = BudgetLedgerDisplay.from_ledger(ledger)
    >>> [(course.name, course.epsilons) for course in display.courses]
    [('all together', (0.5, 1.5, 2.0)), ('counts', (0.5, 1.0)), ('model', (1.0,))]
    """

    courses: list
    epsilon: float
    delta: float = 0.0

    @classmethod
    def from_ledger(cls, ledger, *, by="label", ax=None, name=None, **kwargs):
        """Plot the history of a ledger.

        Parameters
        ----------
        ledger : BudgetLedger, str or path-like
            Ledger, or the path of an existing one.

        by : {"label", "team"}, default="label"
            Grouping of the charges: by their own label, or by the label of the ledger that made
            them. If there are more than eight groups, those with the fewest charges are merged.

        ax, name, **kwargs
            See `plot`.

        Returns
        -------
        BudgetLedgerDisplay
        """
        if isinstance(ledger, str | os.PathLike):
            ledger = BudgetLedger(ledger)
        if not isinstance(ledger, BudgetLedger):
            raise ValueError(
                f"ledger must be a BudgetLedger or its path; got {short_repr(ledger)}."
            )
        one_of(("label", "team"), by=by)
        display = cls(list(ledger._courses(by)), ledger.epsilon, ledger.delta)
        return display.plot(ax, name=name, **kwargs)

    def plot(self, ax=None, *, name=None, over="time", **kwargs):
        """Draw the courses and the budget.

        Parameters
        ----------
        ax, name
            See `PrivacyProfileDisplay.plot`.

        over : {"time", "charge"}, default="time"
            Quantity on the horizontal axis: times in UTC or the number of charges.

        **kwargs : dict
            Keyword arguments of matplotlib's ``plot`` for the course of all charges together.

        Returns
        -------
        self : BudgetLedgerDisplay
        """
        one_of(("time", "charge"), over=over)
        ax, self.lines_ = self._axes(ax, name), []
        for number, course in enumerate(self.courses):
            # Steps go from nothing spent to the last charge of all.
            if over == "charge":
                places = [0, *course.charges, self.courses[0].charges[-1]]
            else:
                times = self.courses[0].times
                places = [times[0], *course.times, times[-1]]
            epsilons = [0.0, *course.epsilons, course.epsilons[-1]]
            style = {"drawstyle": "steps-post", "label": course.name or "(no label)"}
            if not number:
                style |= {"color": "black", "linewidth": 2.2, "zorder": 3, **kwargs}
            self.lines_ += ax.plot(places, epsilons, **style)
        label = f"budget: epsilon {self.epsilon:.6g}"
        self.budget_ = ax.axhline(self.epsilon, color="tab:red", linestyle="--", label=label)
        at = f" at delta {self.delta:.6g}" if self.delta else ""
        below = "time (UTC)" if over == "time" else "number of charges"
        ax.set(xlabel=below, ylabel=f"epsilon spent{at}", ylim=(0.0, 1.1 * self.epsilon))
        if over == "time":
            ax.tick_params(axis="x", labelrotation=25)
        ax.legend(fontsize="small")
        return self
