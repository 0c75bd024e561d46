"""Plot of privacy profiles."""

from dataclasses import dataclass

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skdp._validation import positive, short_repr
from skdp.inspection._axes import OneAxes
from skdp.privacy import ApproxDP, Guarantee

_N_POINTS = 401
_FLOOR = 1e-12  # deltas below it are not drawn, unless a guarantee states one
_MOST_EPSILON = 100.0


@dataclass(eq=False, repr=False)
class PrivacyProfileDisplay(OneAxes):
    """Plot of privacy profiles: the smallest proven delta of guarantees for every epsilon.

    Use `from_guarantees` or `from_estimator` to create a display. A curve below another everywhere
    is the stronger guarantee. If curves cross, neither guarantee is stronger: the choice depends
    on the relevant epsilon or delta.

    Privacy: guarantees are public, and so is the plot.

    Parameters
    ----------
    guarantees : dict of str to Guarantee
        Guarantees by name, all for the same unit and adjacency.

    epsilons : ndarray of shape (n_epsilons,)

    deltas : ndarray of shape (n_guarantees, n_epsilons)

    Attributes
    ----------
    figure_ : matplotlib Figure

    ax_ : matplotlib Axes

    lines_ : list of matplotlib Line2D
        Curves in the order of the guarantees.

    points_ : list of matplotlib Line2D
        Stated points (epsilon, delta) of guarantees with a positive delta.

    See Also
    --------
    skdp.privacy.Guarantee.delta_at : Values of a profile.

    Examples
    --------
    >>> from skdp.inspection import PrivacyProfileDisplay
    >>> from skdp.privacy import ApproxDP, GaussianDP
    >>> display = PrivacyProfileDisplay.from_guarantees(
    ...     {"Laplace noise": ApproxDP(1.0), "Gaussian noise": GaussianDP(0.3)}
    ... )
    >>> [line.get_label() for line in display.lines_]
    ['Laplace noise', 'Gaussian noise']
    """

    guarantees: dict[str, Guarantee]
    epsilons: np.ndarray
    deltas: np.ndarray

    @classmethod
    def from_guarantees(cls, guarantees, *, max_epsilon=None, ax=None, name=None, **kwargs):
        """Plot the profiles of guarantees.

        Parameters
        ----------
        guarantees : dict of str to Guarantee, list of Guarantee, or Guarantee
            Guarantees to compare. In a list, their text serves as label.

        max_epsilon : float, default=None
            End of the horizontal axis. None shows all epsilons that the guarantees state.

        ax, name, **kwargs
            See `plot`.

        Returns
        -------
        PrivacyProfileDisplay
        """
        named = _named(guarantees)
        if max_epsilon is None:
            max_epsilon = _far(named.values())
        positive(max_epsilon=max_epsilon)
        epsilons = np.linspace(0.0, float(max_epsilon), _N_POINTS)
        deltas = np.array([one.delta_at(epsilons) for one in named.values()])
        return cls(named, epsilons, deltas).plot(ax, name=name, **kwargs)

    @classmethod
    def from_estimator(cls, estimator, *, max_epsilon=None, ax=None, name=None, **kwargs):
        """Plot the profile of the guarantee of a fitted estimator.

        Parameters
        ----------
        estimator : estimator
            Fitted model, transformer, pipeline or search with ``guarantee_``.

        max_epsilon, ax, name, **kwargs
            See `from_guarantees`.

        Returns
        -------
        PrivacyProfileDisplay
        """
        check_is_fitted(estimator, "guarantee_")
        named = {type(estimator).__name__: estimator.guarantee_}
        return cls.from_guarantees(named, max_epsilon=max_epsilon, ax=ax, name=name, **kwargs)

    def plot(self, ax=None, *, name=None, **kwargs):
        """Draw the profiles.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on. None creates a figure.

        name : str, default=None
            Title of the axes.

        **kwargs : dict
            Keyword arguments of matplotlib's ``plot`` for the curves.

        Returns
        -------
        self : PrivacyProfileDisplay
        """
        ax = self._axes(ax, name)
        self.lines_, self.points_ = [], []
        floor = _floor(self.guarantees.values())
        for (label, guarantee), deltas in zip(self.guarantees.items(), self.deltas, strict=True):
            seen = np.where(deltas >= floor, deltas, np.nan)
            (line,) = ax.plot(self.epsilons, seen, **{"label": label, **kwargs})
            self.lines_.append(line)
            if isinstance(guarantee, ApproxDP) and guarantee.delta > 0.0:
                stated = [guarantee.epsilon], [guarantee.delta]
                self.points_ += ax.plot(*stated, marker="o", color=line.get_color())
        one = next(iter(self.guarantees.values()))
        ax.set(
            yscale="log",
            ylim=(floor, 2.0),
            xlim=(0.0, self.epsilons[-1]),
            xlabel=f"epsilon ({one.adjacency}, one {one.unit})",
            ylabel="delta; lower is more private",
        )
        ax.legend(fontsize="small")
        return self


def _named(guarantees):
    if isinstance(guarantees, Guarantee):
        guarantees = [guarantees]
    if isinstance(guarantees, list | tuple):
        titles = [_title(one) for one in guarantees]
        if len(set(titles)) < len(titles):  # profiles differ behind one promise
            titles = [f"{number}: {title}" for number, title in enumerate(titles, 1)]
        guarantees = dict(zip(titles, guarantees, strict=True))
    if (
        not isinstance(guarantees, dict)
        or not guarantees
        or not all(isinstance(one, Guarantee) for one in guarantees.values())
    ):
        raise ValueError(
            "guarantees must be a Guarantee, a list of them or a dict by name, such as "
            f"{{'model': model.guarantee_}}; got {short_repr(guarantees)}."
        )
    if len({(one.adjacency, one.unit) for one in guarantees.values()}) > 1:
        raise ValueError(
            "guarantees must have the same unit and adjacency; convert those under 'add-remove' "
            "to 'replace-one' with to_replace_one."
        )
    return guarantees


def _title(guarantee):
    """Return the text of a guarantee without its mechanism."""
    return str(guarantee).partition(" when ")[0] if isinstance(guarantee, Guarantee) else ""


def _floor(guarantees):
    """Return the smallest delta to draw."""
    stated = [one.delta for one in guarantees if getattr(one, "delta", 0.0) > 0.0]
    return min([1e-10, *(0.01 * delta for delta in stated)]) if stated else _FLOOR


def _far(guarantees):
    """Return the epsilon at which all profiles reach the smallest delta or their stated point."""
    floor = _floor(guarantees)
    reached = [one.epsilon_at(floor) for one in guarantees]
    ends = [epsilon for epsilon in reached if epsilon <= _MOST_EPSILON]  # a point has none
    ends += [one.epsilon for one in guarantees if hasattr(one, "epsilon")]
    return 1.1 * max([0.1, *ends])
