"""What searches over parameters will do and cost, from public numbers."""

import math
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from scipy.optimize import brentq
from sklearn.model_selection import ParameterGrid, ParameterSampler

from skdp._defaults import pipeline as defaults
from skdp._validation import between, short_repr
from skdp.metrics._evaluation import units_of
from skdp.model_selection._candidates import NothingLeftError, SearchPlanner, warn_user
from skdp.model_selection._choice import ChoiceRelease
from skdp.pipeline import DPPipeline
from skdp.pipeline._division import as_epsilon_delta, excess, given_shares, largest_scale
from skdp.privacy import (
    ApproxDP,
    GaussianDP,
    RandomRunsDP,
    compose,
    parallel,
    random_runs_gamma,
    random_runs_mean,
)
from skdp.privacy._budget import covers

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
    parts = PARTS if refit else PARTS[:-1]
    given = given_shares(shares, parts, ", ".join(parts), _LIMIT_SHARE)
    searched = min(defaults.SEARCH * math.sqrt(n_candidates), _MOST) if refit else 1.0
    searched = 1.0 - given.get("refit", 1.0 - searched)
    fits = given.get("fits", searched)
    score = given.get("score", defaults.SCORE * searched)
    choice = given.get("choice", searched - score)
    last = 1.0 - max(fits, choice + score)
    if last < given.get("refit", 0.0) - _TOLERANCE or (refit and last <= 0.0) or choice <= 0.0:
        raise ValueError(
            "shares must leave a positive share for each part: fits and refit sum to at most 1, "
            f"as do choice, score and refit; got {short_repr(given)}."
        )
    return {"fits": fits, "choice": choice, "score": score, "refit": last}


class GridPlanner(SearchPlanner):
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
        Rows or users of the fit of each candidate, None where that is private.

    disjoint : bool
        Whether each candidate is fitted to rows of its own.

    Attributes
    ----------
    fits, refits : list of ApproxDP
        By `plan`: budget of the fit of each candidate, and of that to all rows, if there is one.

    planned_fits, planned_refits : list of Guarantee or None
        What they will be charged.

    choice : ChoiceRelease

    evaluation : EvaluationPlan

    guarantee : ApproxDP
        Of all of it; the budget.

    table : list of (str, float, str)
        Parts, their shares and their guarantees in words.
    """

    def __init__(self, searched, params, target, shares, sizes, *, disjoint):
        super().__init__(searched, target)
        self.params, self.shares, self.sizes, self.disjoint = params, shares, sizes, disjoint
        self.each = 1 if disjoint else len(params)  # fits that read a record
        wholes = [self.planned(each, target, None) for each in params]
        self.of_delta = [self.share_of_delta([whole], self.each) for whole in wholes]

    def plan(self, *, refit):
        """Plan all parts, of which one takes what the others leave.

        Returns
        -------
        self : GridPlanner
        """
        if refit:
            left = self.shares["refit"]
            guess = left if self.is_pure else math.sqrt(left)
            # Fits that are points, whose epsilons add up, may leave no such last fit.
            has_points = any(share < 1.0 for share in self.of_delta)
            least = _SMALL * guess
            if has_points and excess(self._total(1.0, 1.0, least), self.target) > 0.0:
                scale = self._largest(lambda at: self._total(at, at, at * guess), 1.0)
                return self._made(scale, scale, scale * guess)
            scale = self._largest(lambda at: self._total(1.0, 1.0, at), guess)
            return self._made(1.0, 1.0, scale)
        fits = self._largest(lambda at: self._of_fits(at, []), 1.0)
        scores = self._largest(lambda at: self._of_scores(at, []), 1.0)
        return self._made(fits, scores, None)

    def _largest(self, total, guess):
        total(guess)  # what is wrong with a part is said here
        try:
            return largest_scale(lambda at: excess(total(at), self.target), self.target, guess)
        except ValueError:
            raise NothingLeftError(
                "not every part of the search can have a share of "
                f"epsilon={self.target.epsilon!r} at delta={self.target.delta!r}"
            ) from None

    def _planned_fits(self, amount, sizes):
        """Points of a fit of each candidate, and what they will be charged."""
        points = [self.point(amount, of_delta) for of_delta in self.of_delta]
        return points, list(map(self.planned, self.params, points, sizes))

    def _fits(self, scale):
        return self._planned_fits(self.amount(self.shares["fits"] / self.each, scale), self.sizes)

    def _refits(self, scale):
        if scale is None:
            return [], []
        count = self.searched.public_count
        return self._planned_fits(scale * self.base, [count] * len(self.params))

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
        return compose(parts) if parts else ApproxDP(0.0, **self.context)

    def _scores(self, scale):
        key = "scores", scale
        if key not in self._known:
            # A selection of range epsilon costs as much as a Gaussian release of half of it.
            factor = 1.0 if self.is_pure else 2.0
            choice = ChoiceRelease.plan(
                factor * self.amount(self.shares["choice"], scale),
                n_candidates=len(self.params),
                **self.context,
            )
            self._known[key] = choice, self.evaluated(self.amount(self.shares["score"], scale))
        return self._known[key]

    def _total(self, fits, scores, refit):
        last = [one for one in self._refits(refit)[1] if one is not None]
        last = [parallel(last)] if last else []  # whichever is chosen
        return parallel([self._of_fits(fits, last), self._of_scores(scores, last)])

    def _made(self, fits, scores, refit):
        self.fits, self.planned_fits = self._fits(fits)
        self.refits, self.planned_refits = self._refits(refit)
        self.choice, self.evaluation = self._scores(scores)
        count = len(self.fits)
        mechanism = f"a search over {count} candidate{'s' if count > 1 else ''}"
        total = self._total(fits, scores, refit)
        self.guarantee = as_epsilon_delta(total, self.target, mechanism)
        words = [
            ("fits", f"{count} fits, each: {_words(self.planned_fits)}"),
            ("choice", str(self.choice.guarantee)),
            ("score", str(self.evaluation.guarantee)),
            ("refit", _words(self.planned_refits)),
        ]
        self.table = [(name, self.shares[name], text) for name, text in words if text]
        return self


def plan_of(planned, n_candidates):
    """The plan of a search, or how many candidates its budget bears.

    Parameters
    ----------
    planned : callable
        ``planned(count)`` is the plan for as many of the candidates.

    n_candidates : int

    Returns
    -------
    GridPlanner
    """
    try:
        return planned(n_candidates)
    except NothingLeftError as error:
        reason = str(error)

    def fails(count):
        try:
            return not planned(count)
        except NothingLeftError:
            return True

    least = bisect_left(range(n_candidates), True, lo=1, key=fails) - 1
    able = f"{least} at most" if least else "not even 1"
    raise ValueError(
        "param_grid must have fewer candidates, or epsilon must be larger: this budget suffices "
        f"for {able}, for {reason}; got {n_candidates}."
    )


def _words(planned):
    """Guarantees of several fits in words, each once."""
    return "; ".join(dict.fromkeys(str(one) for one in planned if one is not None))


def check_rows_of_grid(n_units, target, n_candidates, share_of, *, disjoint):
    """Refuse a search whose fits tell nothing, and warn of one where they tell little.

    Parameters
    ----------
    n_units : int
        Public number of rows of a fit, or of users.

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
        of_each = n_units * n_candidates / count if disjoint else n_units
        return of_each * amount(count) >= needed

    def most(needed):
        fewer = (count for count in range(n_candidates - 1, 0, -1) if tells(count, needed))
        return next(fewer, 1)

    if n_candidates == 1 or tells(n_candidates, defaults.FEW):
        return
    kind = "epsilon" if pure else "mu"
    what = f"{n_units} {units_of(target)} and {kind}={amount(n_candidates):.3g}"
    if not tells(n_candidates, defaults.TOO_FEW):
        raise ValueError(
            f"param_grid must have at most {most(defaults.TOO_FEW)} candidates for this budget: "
            f"{what} for the fit of each cannot show which is best. Choose by prior knowledge or "
            f"public data; got {n_candidates}."
        )
    fewer = most(defaults.FEW)
    better = f" A grid of {fewer} could be compared." if fewer > 1 else ""
    warn_user(
        f"{what} for the fit of each of {n_candidates} candidates hardly show which is "
        f"best.{better} A choice by prior knowledge or public data may be better."
    )


_LIMIT_TRIED = 256  # lists of parameters up to here are looked at one by one
_BLOCK_TRIED = 64  # draws that are looked at otherwise
_TOLERANCE_PURE = 1e-15
# A root is looked for by a secant from a slope, in a bracket of logarithms, off its ends.
_GRID_SLOPE, _GRID_REACH, _GRID_INSIDE = 5.0, 12.0, 0.1
_LIMIT_STEPS = 20
_TOLERANCE_DELTA = 0.02  # of the logarithm of delta, below that of the budget
_TOLERANCE_MU = 1e-2  # of the logarithm of mu


def drawn_params(distributions, seed):
    """One draw of parameters, as scikit-learn draws them; None takes the operating system."""
    state = np.random.RandomState(np.random.MT19937(seed))
    return next(iter(ParameterSampler(distributions, 1, random_state=state)))


def _examples(distributions):
    """All parameters, or public draws of them where there are many."""
    parts = [distributions] if isinstance(distributions, Mapping) else list(distributions)
    if not any(hasattr(each, "rvs") for part in parts for each in part.values()):
        grid = ParameterGrid(parts)
        if len(grid) <= _LIMIT_TRIED:
            return list(grid)
    return [drawn_params(distributions, seed) for seed in range(_BLOCK_TRIED)]


def refit_share(shares, *, refit):
    """Part of the budget that the last fit has: of mu^2, or of epsilon without a delta.

    Parameters
    ----------
    shares : "auto" or dict

    refit : bool

    Returns
    -------
    float
    """
    given = given_shares(shares, ("runs", "refit"), "runs, refit", _LIMIT_SHARE)
    if not refit:
        return 0.0
    if sum(given.values()) > 1.0:
        raise ValueError(f"shares must sum to at most 1; got {short_repr(given)}.")
    share = given.get("refit", 1.0 - given.get("runs", 1.0 - float(defaults.REFIT)))
    between(_LIMIT_SHARE, 1.0 - _LIMIT_SHARE, **{"shares['refit']": share})
    return share


class RandomPlanner(SearchPlanner):
    """Plans a search: what the runs can have so that all of it is within the budget.

    Parameters
    ----------
    searched : Searched

    distributions : dict or list of dict
        Of the parameters.

    target : ApproxDP

    share : float
        Of the last fit.

    n_iter_mean, eta : float
        Of the number of runs.

    size : int or None
        Rows or users of a fit, None where that is private.

    Attributes
    ----------
    fit, last : ApproxDP
        Budget of the fit of a run, by `plan`, and of the last one; None without.

    fits, lasts : list of Guarantee
        What they may be charged, each with the parameters that were looked at.

    evaluation : EvaluationPlan
        Of each run.

    guarantee : ApproxDP
        Of all of it; the budget.

    table : list of (str, float, str)
        Parts, their shares and their guarantees in words.
    """

    def __init__(self, searched, distributions, target, share, n_iter_mean, eta, size):
        super().__init__(searched, target)
        self.share, self.size = share, size
        self.eta, self.gamma = eta, random_runs_gamma(n_iter_mean, eta)
        # Of what is no Gaussian, epsilons nearly add up.
        self.of_delta, self.last = 1.0, None
        self.params = self._kinds(_examples(distributions))
        wholes = [self.planned(params, target, size) for params in self.params]
        self.of_delta = self.share_of_delta(wholes, n_iter_mean)
        if share > 0.0:
            self.last = self.point(self.amount(share))
            if self.of_delta < 1.0:
                least = min(self.last.epsilon, share * target.epsilon)
                self.last = replace(self.last, epsilon=least)

    def plan(self):
        """Plan all parts, of which the runs take what the last fit leaves.

        Returns
        -------
        self : RandomPlanner
        """
        amount = self._amount()
        self.fit, self.evaluation = self.point(amount), self.evaluated(amount)
        self.fits, self.lasts = self._charged(self.fit)
        mean = random_runs_mean(self.eta, self.gamma)
        mechanism = f"the best of {mean:.6g} runs in the mean"
        self.guarantee = as_epsilon_delta(self._total(amount), self.target, mechanism)
        self.table = [
            ("fit of a run", 1.0 - self.share, str(self.fits[0])),
            ("score of a run", 1.0 - self.share, str(self.evaluation.guarantee)),
        ]
        if self.last is not None:
            self.table.append(("refit", self.share, str(self.lasts[0])))
        return self

    def covers(self, model, planned):
        """Whether a fit cost what was planned, which follows from public numbers alone."""
        spent = model.guarantee_
        known = [compose([one, *self.frozen.values()]) for one in planned]
        return any(one._plain() == spent._plain() or covers(one, spent) for one in known)

    def planned(self, params, point, n_units):
        """What a fit will be charged."""
        found = super().planned(params, point, n_units)
        return ApproxDP(0.0, **self.context) if found is None else found

    def point(self, amount, share_of_delta=None):
        """Budget of a fit."""
        try:
            return super().point(amount, share_of_delta or self.of_delta)
        except NothingLeftError as error:
            raise ValueError(
                f"epsilon must be larger, or n_iter_mean smaller: {error}; got "
                f"{self.target.epsilon!r}."
            ) from None

    def _charged(self, point):
        """What fits and last fits may be charged, each once."""
        count = self.searched.public_count
        fits = [self.planned(params, point, self.size) for params in self.params]
        lasts = [self.planned(params, self.last, count) for params in self.params if self.last]
        return list(dict.fromkeys(fits)), list(dict.fromkeys(lasts))

    def _kinds(self, examples):
        """One of the parameters for each kind of cost that fits may have."""
        kinds: dict = {}
        for params in examples:
            try:
                made = self.searched.with_params(params, self.target)
            except ValueError as error:
                message = str(error).replace("param_grid", "param_distributions")
                raise ValueError(message) from None
            if isinstance(made, DPPipeline):
                cost = made._cost_of_steps(self.searched.schema, self.size, self.target.unit)
            else:
                sizes = self.searched.schema.n_columns, self.size
                cost = made._planned_for(*sizes, self.target.unit)
            kinds.setdefault(cost, params)
        return list(kinds.values())

    def _total(self, amount):
        """Of the worse of both blocks: to one runs are fitted, on the other they are scored."""
        fits, lasts = self._charged(self.point(amount))
        last = [parallel(lasts)] if lasts else []  # whichever is the best
        runs = [parallel(fits), self.evaluated(amount).guarantee]
        laws = [RandomRunsDP(run, self.eta, self.gamma, **self.context) for run in runs]
        return parallel([compose([law, *last]) for law in laws])

    def _amount(self):
        """Epsilon or mu of a run, as large as the budget allows."""

        def above(amount):
            return excess(self._total(amount), self.target)

        if self.is_pure:
            amount = self.base * (1.0 - self.share) / (2.0 + self.eta)
            while above(amount) > 0.0:
                amount *= 1.0 - _TOLERANCE_PURE
            return amount
        # Composing costs little, dividing the budget of a pipeline much: that is done a few times.
        guess, slope = _largest(self._if_gaussian, self._guess(), _GRID_SLOPE)
        return math.exp(_largest(above, guess, slope)[0])

    def _if_gaussian(self, amount):
        """How far the total would be above the budget if all fits were Gaussian."""
        run = RandomRunsDP(GaussianDP(amount), self.eta, self.gamma)
        last = [GaussianDP(self.amount(self.share))] if self.last else []
        return excess(compose([run, *last]), self.target)

    def _guess(self):
        """Logarithm of the mu of a run of Gaussian fits, without the last one."""
        alone = GaussianDP(self.amount(1.0 - self.share)).epsilon_at(self.target.delta)

        def above(log_mu):
            law = RandomRunsDP(GaussianDP(math.exp(log_mu)), self.eta, self.gamma)
            return law.epsilon_at(self.target.delta) - alone

        most = math.log(self.base)
        return brentq(above, most - _GRID_REACH, most)


def _largest(above, guess, slope):
    """Logarithm of nearly the largest amount within the budget, and the slope there.

    Parameters
    ----------
    above : callable
        Of an amount: how far the logarithm of delta is above that of the budget.

    guess : float
        Logarithm of an amount.

    slope : float
        Of ``above`` by it, roughly.
    """
    at, below, over = guess, None, None
    for _ in range(_LIMIT_STEPS):
        found = above(math.exp(at))
        if found <= 0.0:
            below = at, found
        else:
            over = at, found
        if found <= 0.0 and (found > -_TOLERANCE_DELTA or (over and over[0] - at < _TOLERANCE_MU)):
            break
        if below and over:  # profiles of points are steps, which straight lines do not find
            slope = (over[1] - below[1]) / (over[0] - below[0])
            share = (-_TOLERANCE_DELTA / 2 - below[1]) / (over[1] - below[1])
            at = below[0] + min(max(share, _GRID_INSIDE), 1.0 - _GRID_INSIDE) * (
                over[0] - below[0]
            )
        else:
            at -= min(max((found + _TOLERANCE_DELTA / 2) / slope, -1.0), 1.0)
    if below is None:
        raise ValueError(
            "epsilon must be larger, or n_iter_mean smaller, so that every part of the search "
            "gets a share."
        )
    return below[0], slope


def check_rows_of_runs(n_units, point):
    """Refuse a search whose fits tell nothing, and warn of one where they tell little.

    Parameters
    ----------
    n_units : int
        Public number of rows of a fit, or of users.

    point : ApproxDP
        Its budget.
    """
    pure = point.delta == 0.0
    amount = point.epsilon if pure else point.gaussian_target().mu
    kind = "epsilon" if pure else "mu"
    sizes = f"{n_units} {units_of(point)} for the fit of each run, at {kind}={amount:.3g},"
    if n_units * amount < defaults.TOO_FEW:
        fewer = "" if pure else ", or n_iter_mean smaller"  # which costs nothing if it is pure
        raise ValueError(
            f"epsilon must be larger{fewer}: {sizes} cannot show which is best. Choose by prior "
            f"knowledge or public data; got {point.epsilon:.3g} per run."
        )
    if n_units * amount < defaults.FEW:
        warn_user(
            f"{sizes} hardly show which is best. A choice by prior knowledge or public data may "
            "be better."
        )
