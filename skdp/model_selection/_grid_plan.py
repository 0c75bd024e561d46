"""What a search over a grid will do and cost, from public numbers alone."""

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from skdp._defaults import search as defaults
from skdp._validation import between, is_auto, level_of_the_user, shown
from skdp.model_selection._candidates import (
    OF_DELTA,
    NothingLeftError,
    check_pure,
    gaussian_point,
    needs_delta,
    planned_guarantee,
)
from skdp.model_selection._choice import ChoiceRelease
from skdp.pipeline._division import as_point, excess, largest_scale
from skdp.privacy import ApproxDP, GaussianDP, Guarantee, compose, parallel

__all__ = ["GridPlan", "GridPlanner", "check_rows", "plan_of", "shares_of"]

PARTS = ("fits", "choice", "score", "refit")
_MOST = 0.5  # of the budget, for all that is not the last fit
_LIMIT_SHARE, _TOLERANCE = 1e-6, 1e-12
_SMALL = 0.5  # of what the last fit should have: below it all parts have less


def shares_of(shares, n_candidates, *, refit):
    """Part of the budget of each part of a search.

    Parameters
    ----------
    shares : "auto" or dict

    n_candidates : int

    refit : bool

    Returns
    -------
    dict of str to float
    """
    given = {} if is_auto(shares) else shares
    if not isinstance(given, Mapping):
        raise ValueError(
            f"shares must be 'auto' or a dict from {', '.join(PARTS)} to numbers; got "
            f"{shown(shares)}."
        )
    for name, share in given.items():
        if name not in PARTS or (name == "refit" and not refit):
            raise ValueError(f"shares must name {', '.join(PARTS)}; got {shown(name)}.")
        between(_LIMIT_SHARE, 1.0, **{f"shares[{name!r}]": share})
    searched = min(defaults.SEARCH * math.sqrt(n_candidates), _MOST) if refit else 1.0
    searched = 1.0 - given.get("refit", 1.0 - searched)
    fits = given.get("fits", searched)
    score = given.get("score", defaults.SCORE * searched)
    choice = given.get("choice", searched - score)
    last = 1.0 - max(fits, choice + score)
    if last < given.get("refit", 0.0) - _TOLERANCE or (refit and last <= 0.0) or choice <= 0.0:
        raise ValueError(
            "shares must leave something for each part: fits and refit sum to at most 1, and so "
            f"do choice, score and refit; got {shown(dict(given))}."
        )
    return {"fits": fits, "choice": choice, "score": score, "refit": last}


@dataclass(frozen=True)
class GridPlan:
    """What a search over a grid will do and cost.

    Parameters
    ----------
    fits : tuple of ApproxDP
        Budget of the fit of each candidate.

    refits : tuple of ApproxDP
        Budget of each candidate if it is the one that is fitted again; empty without.

    planned : tuple of Guarantee or None
        What each of the fits, and then of the refits, will be charged.

    choice : ChoiceRelease

    evaluation : EvaluationPlan

    guarantee : ApproxDP
        Of all of it; the budget.

    table : list of (str, float, str)
        Parts, their shares and their guarantees in words.

    frozen : tuple of Guarantee
        Of steps that were fitted before.
    """

    fits: tuple[ApproxDP, ...]
    refits: tuple[ApproxDP, ...]
    planned: tuple[Guarantee | None, ...]
    choice: ChoiceRelease
    evaluation: Any
    guarantee: Guarantee
    table: list[tuple[str, float, str]]
    frozen: tuple[Guarantee, ...] = ()


class GridPlanner:
    """Plans a search: the costs of its parts, and how much of the budget they leave.

    Parameters
    ----------
    searched : Searched

    params : list of dict
        Of the candidates.

    target : ApproxDP

    shares : dict
        See `shares_of`.

    sizes : sequence of int or None
        Rows of the fit of each candidate, None where that is private.

    disjoint : bool
        Whether each candidate is fitted to rows of its own.
    """

    def __init__(self, searched, params, target, shares, sizes, *, disjoint):
        self.searched, self.params, self.target = searched, params, target
        self.shares, self.sizes, self.disjoint = shares, sizes, disjoint
        self.is_pure = target.delta == 0.0
        self.base = target.epsilon if self.is_pure else target.gaussian_target().mu
        self.each = 1 if disjoint else len(params)  # fits that read a record
        self.frozen: dict = {}
        self._known: dict = {}
        self.of_delta = [self._share_of_delta(i) for i in range(len(params))]

    def plan(self, *, refit):
        """Plan all parts, of which one takes what the others leave.

        Returns
        -------
        GridPlan
        """
        if refit:
            guess = self._guess()
            if self._is_beyond(_SMALL * guess):
                scale = self._largest(lambda at: self._total(at, at, at * guess), 1.0)
                return self._made(scale, scale, scale * guess)
            scale = self._largest(lambda at: self._total(1.0, 1.0, at), guess)
            return self._made(1.0, 1.0, scale)
        fits = self._largest(lambda at: self._of_fits(at, []), 1.0)
        scores = self._largest(lambda at: self._of_scores(at, []), 1.0)
        return self._made(fits, scores, None)

    def _is_beyond(self, refit):
        """Whether fits that are points, whose epsilons add up, leave no such last fit."""
        if all(share == 1.0 for share in self.of_delta):
            return False
        return excess(self._total(1.0, 1.0, refit), self.target) > 0.0

    def _largest(self, total, guess):
        total(guess)  # what is wrong with a part is said here
        try:
            return largest_scale(lambda at: excess(total(at), self.target), self.target, guess)
        except ValueError:
            raise NothingLeftError(
                f"not all parts of the search can have a part of epsilon={self.target.epsilon!r} "
                f"at delta={self.target.delta!r}"
            ) from None

    def _guess(self):
        left = self.shares["refit"]
        return left if self.is_pure else math.sqrt(left)

    def _amount(self, share, scale=1.0):
        """Mu or epsilon of a part."""
        return scale * self.base * (share if self.is_pure else math.sqrt(share))

    def _fit_point(self, i, scale):
        return self._point(i, self._amount(self.shares["fits"] / self.each, scale))

    def _point(self, i, amount):
        if self.is_pure:
            return replace(self.target, epsilon=amount)
        return gaussian_point(amount, self.target, share_of_delta=self.of_delta[i])

    def _planned(self, i, point, n_samples):
        key = i, point, n_samples
        if key not in self._known:
            found = planned_guarantee(
                self.searched.estimator, self.params[i], point, self.searched.schema, n_samples
            )
            self._known[key], frozen = found
            self.frozen |= frozen
            if self.is_pure and found[0] is not None:
                check_pure(found[0], self.params[i])
        return self._known[key]

    def _share_of_delta(self, i):
        """Part of delta of each fit of a candidate, where such parts add up."""
        whole = self._planned(i, self.target, None)
        if self.is_pure or whole is None or not needs_delta(whole):
            return 1.0
        return OF_DELTA / (self.each + 1)

    def _fits(self, scale):
        points = [self._fit_point(i, scale) for i in range(len(self.params))]
        return points, [self._planned(i, p, self.sizes[i]) for i, p in enumerate(points)]

    def _refits(self, scale):
        if scale is None:
            return [], []
        count = self.searched.public_count
        points = [self._point(i, scale * self.base) for i in range(len(self.params))]
        return points, [self._planned(i, point, count) for i, point in enumerate(points)]

    def _of_fits(self, scale, last):
        """Of all that is released about a record that candidates are fitted to."""
        planned = [one for one in self._fits(scale)[1] if one is not None]
        if not self.disjoint:
            return self._composed([*planned, *last])
        return parallel([self._composed([one, *last]) for one in dict.fromkeys(planned)])

    def _of_scores(self, scale, last):
        """Of all that is released about a record that candidates are compared by."""
        choice, evaluation = self._scores(scale)
        return choice.guarantee.followed_by(compose([evaluation.guarantee, *last]))

    def _composed(self, parts):
        return compose(parts) if parts else ApproxDP(0.0, adjacency=self.target.adjacency)

    def _scores(self, scale):
        key = "scores", scale
        if key not in self._known:
            # A selection of range epsilon costs as much as a Gaussian release of half of it.
            factor = 1.0 if self.is_pure else 2.0
            choice = ChoiceRelease.plan(
                factor * self._amount(self.shares["choice"], scale),
                n_candidates=len(self.params),
                adjacency=self.target.adjacency,
            )
            part, adjacency = self._amount(self.shares["score"], scale), self.target.adjacency
            kind = ApproxDP if self.is_pure else GaussianDP
            self._known[key] = choice, self.searched.evaluation(kind(part, adjacency=adjacency))
        return self._known[key]

    def _total(self, fits, scores, refit):
        last = [one for one in self._refits(refit)[1] if one is not None]
        last = [parallel(last)] if last else []  # whichever is chosen
        return parallel([self._of_fits(fits, last), self._of_scores(scores, last)])

    def _made(self, fits, scores, refit):
        points, planned = self._fits(fits)
        refits, planned_again = self._refits(refit)
        choice, evaluation = self._scores(scores)
        count = len(points)
        told = f"a search over {count} candidate{'s' if count > 1 else ''}"
        total = as_point(self._total(fits, scores, refit), self.target, told)
        words = [
            ("fits", f"{count} fits, each: {_words(planned)}"),
            ("choice", str(choice.guarantee)),
            ("score", str(evaluation.guarantee)),
            ("refit", _words(planned_again)),
        ]
        table = [(name, self.shares[name], text) for name, text in words if text]
        everything = (*planned, *planned_again)
        frozen = tuple(self.frozen.values())
        return GridPlan(
            tuple(points), tuple(refits), everything, choice, evaluation, total, table, frozen
        )


def plan_of(planned, n_candidates):
    """The plan of a search, or how many candidates its budget bears.

    Parameters
    ----------
    planned : callable
        ``planned(count)`` is the plan for as many of the candidates.

    n_candidates : int

    Returns
    -------
    GridPlan
    """
    try:
        return planned(n_candidates)
    except NothingLeftError as error:
        told = str(error)

    def bears(count):
        try:
            return bool(planned(count))
        except NothingLeftError:
            return False

    least, most = 0, 1  # few are planned soon
    while most < n_candidates and bears(most):
        least, most = most, 2 * most
    most = min(most, n_candidates)
    while most - least > 1:
        count = (least + most) // 2
        least, most = (count, most) if bears(count) else (least, count)
    able = f"{least} at most" if least else "not even 1"
    raise ValueError(
        f"param_grid must hold fewer candidates, or epsilon be larger: this budget bears {able}, "
        f"for {told}; got {n_candidates}."
    )


def _words(planned):
    """Guarantees of several fits in words, each once."""
    return "; ".join(dict.fromkeys(str(one) for one in planned if one is not None))


def check_rows(n_samples, target, n_candidates, share_of, *, disjoint):
    """Refuse a search whose fits tell nothing, and warn of one where they tell little.

    Parameters
    ----------
    n_samples : int
        Public number of rows of a fit.

    target : ApproxDP
        Budget of the search.

    n_candidates : int

    share_of : callable
        ``share_of(n_candidates)`` is the part of the budget for all fits.

    disjoint : bool
        Whether each candidate has rows of its own.
    """
    pure = target.delta == 0.0
    base = target.epsilon if pure else target.gaussian_target().mu

    def amount(count):
        share = share_of(count) / (1 if disjoint else count)
        return base * (share if pure else math.sqrt(share))

    def tells(count, needed):
        n_rows = n_samples * n_candidates / count if disjoint else n_samples
        return n_rows * amount(count) >= needed

    def most(needed):
        fewer = (count for count in range(n_candidates - 1, 0, -1) if tells(count, needed))
        return next(fewer, 1)

    if n_candidates == 1 or tells(n_candidates, defaults.FEW):
        return
    what = f"{n_samples} rows and {'epsilon' if pure else 'mu'}={amount(n_candidates):.3g}"
    if not tells(n_candidates, defaults.TOO_FEW):
        raise ValueError(
            "param_grid must hold fewer candidates for this budget, at most "
            f"{most(defaults.TOO_FEW)}: {what} for the fit of each tell nothing about which "
            f"is best. Choose by knowledge or by public data; got {n_candidates}."
        )
    fewer = most(defaults.FEW)
    better = f" A grid of {fewer} would be told apart." if fewer > 1 else ""
    warnings.warn(
        f"{what} for the fit of each of {n_candidates} candidates tell little about which is "
        f"best.{better} A choice by knowledge or by public data may well do more than this "
        "search.",
        UserWarning,
        stacklevel=level_of_the_user(),
    )
