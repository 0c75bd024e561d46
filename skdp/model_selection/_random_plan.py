"""What a search by a random number of runs will do and cost, from public numbers alone."""

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import brentq
from sklearn.model_selection import ParameterGrid, ParameterSampler

from skdp._defaults import search as defaults
from skdp._validation import between, is_auto, level_of_the_user, shown
from skdp.model_selection._candidates import (
    OF_DELTA,
    NothingLeftError,
    check_pure,
    gaussian_point,
    needs_delta,
    planned_guarantee,
    with_params,
)
from skdp.pipeline import DPPipeline
from skdp.pipeline._division import as_point, excess
from skdp.pipeline._guarantee_of import frozen_of
from skdp.pipeline._plan import Walked
from skdp.pipeline._rows import choose_splines
from skdp.privacy import (
    ApproxDP,
    GaussianDP,
    Guarantee,
    RandomRunsDP,
    compose,
    parallel,
    random_runs_gamma,
    random_runs_mean,
)

__all__ = ["RandomPlan", "RandomPlanner", "check_rows", "drawn_params", "refit_share"]

_LIMIT_TRIED = 256  # lists of parameters up to here are looked at one by one
_BLOCK_TRIED = 64  # draws that are looked at otherwise
_LIMIT_SHARE, _TOLERANCE = 1e-6, 1e-15
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
    given = {} if is_auto(shares) else shares
    if not isinstance(given, Mapping) or not set(given) <= {"runs", "refit"}:
        raise ValueError(
            f"shares must be 'auto' or a dict from 'runs' and 'refit' to numbers; got "
            f"{shown(shares)}."
        )
    if not refit:
        return 0.0
    for name, share in given.items():
        between(_LIMIT_SHARE, 1.0 - _LIMIT_SHARE, **{f"shares[{name!r}]": share})
    if sum(given.values()) > 1.0:
        raise ValueError(f"shares must sum to at most 1; got {shown(dict(given))}.")
    return given.get("refit", 1.0 - given.get("runs", 1.0 - float(defaults.REFIT)))


@dataclass(frozen=True)
class RandomPlan:
    """What one run does, how many there may be, and what all of it costs.

    Parameters
    ----------
    eta, gamma : float
        Of the law of the number of runs.

    fit, last : ApproxDP
        Budget of the fit of a run, and of the last one; None without.

    fits, lasts : frozenset of Guarantee
        What they may be charged, each with the parameters that were looked at.

    evaluation : EvaluationPlan
        Of each run.

    guarantee : ApproxDP
        Of all of it; the budget.

    table : list of (str, float, str)
        Parts, their shares and their guarantees in words.

    frozen : tuple of Guarantee
        Of steps that were fitted before.
    """

    eta: float
    gamma: float
    fit: ApproxDP
    last: ApproxDP | None
    fits: frozenset[Guarantee]
    lasts: frozenset[Guarantee]
    evaluation: Any
    guarantee: Guarantee
    table: list[tuple[str, float, str]]
    frozen: tuple[Guarantee, ...] = ()


class RandomPlanner:
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
        Rows of a fit, None where that is private.
    """

    def __init__(self, searched, distributions, target, share, n_iter_mean, eta, size):
        self.searched, self.target, self.share, self.size = searched, target, share, size
        self.eta, self.gamma = eta, random_runs_gamma(n_iter_mean, eta)
        self.is_pure = target.delta == 0.0
        self.base = target.epsilon if self.is_pure else target.gaussian_target().mu
        self.frozen: dict = {}
        self.share_of_delta = 1.0
        self.params = self._kinds(_examples(distributions))
        self._known: dict = {}
        wholes = [self.charged(params, target, size) for params in self.params]
        if not self.is_pure and any(map(needs_delta, wholes)):
            self.share_of_delta = OF_DELTA / (n_iter_mean + 1)
        self.last = None if share == 0.0 else self._last_point()

    def plan(self):
        """Plan all parts, of which the runs take what the last fit leaves.

        Returns
        -------
        RandomPlan
        """
        amount = self._amount()
        point, evaluation = self._point(amount), self._evaluation(amount)
        fits, lasts = self._charged(point)
        told = f"the best of {random_runs_mean(self.eta, self.gamma):.6g} runs in the mean"
        total = as_point(self._total(amount), self.target, told)
        table = [
            ("fit of a run", 1.0 - self.share, str(fits[0])),
            ("score of a run", 1.0 - self.share, str(evaluation.guarantee)),
        ]
        if self.last is not None:
            table.append(("refit", self.share, str(lasts[0])))
        charged = frozenset(fits), frozenset(lasts)
        frozen = tuple(self.frozen.values())
        law = self.eta, self.gamma
        return RandomPlan(*law, point, self.last, *charged, evaluation, total, table, frozen)

    def charged(self, params, point, n_samples):
        """What a fit will be charged."""
        key = id(params), point, n_samples
        if key in self._known:
            return self._known[key]
        args = self.searched.estimator, params, point, self.searched.schema, n_samples
        found, frozen = planned_guarantee(*args)
        self.frozen |= frozen
        if found is None:
            found = ApproxDP(0.0, **self._kind())
        if self.is_pure:
            check_pure(found, params)
        self._known[key] = found
        return found

    def _charged(self, point):
        """What fits and last fits may be charged, each once."""
        count = self.searched.public_count
        fits = [self.charged(params, point, self.size) for params in self.params]
        lasts = [self.charged(params, self.last, count) for params in self.params if self.last]
        return list(dict.fromkeys(fits)), list(dict.fromkeys(lasts))

    def _kinds(self, examples):
        """One of the parameters for each kind of cost that fits may have."""
        kinds: dict = {}
        for params in examples:
            try:
                made = with_params(self.searched.estimator, params, self.target)
            except ValueError as error:
                told = str(error).replace("param_grid", "param_distributions")
                raise ValueError(told) from None
            kinds.setdefault(self._cost_of(made), params)
        return list(kinds.values())

    def _cost_of(self, made):
        """What decides on the cost of a fit: of a pipeline the costs of steps before division."""
        schema = self.searched.schema
        if not isinstance(made, DPPipeline):
            return made._planned_guarantee(schema.n_columns)
        made._check_parameters()
        walked = Walked.of(made, schema)
        choose_splines(walked.learn, walked.free, self.target, self.size)
        budget = {"epsilon": self.target.epsilon, "delta": self.target.delta} | self._kind()
        for leaf in walked.learn:
            leaf.estimator.set_params(**budget)
        steps = [
            (leaf.path, leaf.estimator._planned_guarantee(leaf.n_features))
            for leaf in walked.learn
        ]
        return (*steps, repr(made.shares), repr(made.public), *sorted(frozen_of(walked.node)))

    def _kind(self):
        return {"adjacency": self.target.adjacency}

    def _last_amount(self):
        return self.base * (self.share if self.is_pure else math.sqrt(self.share))

    def _last_point(self):
        point = self._point(self._last_amount())
        if self.share_of_delta == 1.0:
            return point
        # Of what is a point, epsilons nearly add up.
        return replace(point, epsilon=min(point.epsilon, self.share * self.target.epsilon))

    def _point(self, amount):
        if self.is_pure:
            return replace(self.target, epsilon=amount)
        try:
            return gaussian_point(amount, self.target, share_of_delta=self.share_of_delta)
        except NothingLeftError as error:
            raise ValueError(
                f"epsilon must be larger, or n_iter_mean smaller: {error}; got "
                f"{self.target.epsilon!r}."
            ) from None

    def _evaluation(self, amount):
        kind = ApproxDP if self.is_pure else GaussianDP
        return self.searched.evaluation(kind(amount, **self._kind()))

    def _total(self, amount):
        """Of the worse of both blocks: to one runs are fitted, on the other they are scored."""
        fits, lasts = self._charged(self._point(amount))
        last = [parallel(lasts)] if lasts else []  # whichever is the best
        runs = [parallel(fits), self._evaluation(amount).guarantee]
        laws = [RandomRunsDP(run, self.eta, self.gamma, **self._kind()) for run in runs]
        return parallel([compose([law, *last]) for law in laws])

    def _amount(self):
        """Epsilon or mu of a run, as large as the budget allows."""

        def above(amount):
            return excess(self._total(amount), self.target)

        if self.is_pure:
            amount = self.base * (1.0 - self.share) / (2.0 + self.eta)
            while above(amount) > 0.0:
                amount *= 1.0 - _TOLERANCE
            return amount
        # Composing costs little, dividing the budget of a pipeline much: that is done a few times.
        guess, slope = _largest(self._if_gaussian, self._guess(), _GRID_SLOPE)
        return math.exp(_largest(above, guess, slope)[0])

    def _if_gaussian(self, amount):
        """How far the total would be above the budget if all fits were Gaussian."""
        run = RandomRunsDP(GaussianDP(amount), self.eta, self.gamma)
        last = [GaussianDP(self._last_amount())] if self.last else []
        return excess(compose([run, *last]), self.target)

    def _guess(self):
        """Logarithm of the mu of a run of Gaussian fits, without the last one."""
        alone = GaussianDP(self.base * math.sqrt(1.0 - self.share)).epsilon_at(self.target.delta)

        def excess(log_mu):
            law = RandomRunsDP(GaussianDP(math.exp(log_mu)), self.eta, self.gamma)
            return law.epsilon_at(self.target.delta) - alone

        most = math.log(self.base)
        return brentq(excess, most - _GRID_REACH, most)


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
            "epsilon must be larger, or n_iter_mean smaller, for all parts of a search to have a "
            "part of it."
        )
    return below[0], slope


def check_rows(n_samples, point):
    """Refuse a search whose fits tell nothing, and warn of one where they tell little.

    Parameters
    ----------
    n_samples : int
        Public number of rows of a fit.

    point : ApproxDP
        Its budget.
    """
    pure = point.delta == 0.0
    amount = point.epsilon if pure else point.gaussian_target().mu
    sizes = (
        f"{n_samples} rows for the fit of each run, at {'epsilon' if pure else 'mu'}={amount:.3g},"
    )
    if n_samples * amount < defaults.TOO_FEW:
        fewer = "" if pure else ", or n_iter_mean smaller"  # which costs nothing if it is pure
        raise ValueError(
            f"epsilon must be larger{fewer}: {sizes} tell nothing about which is best. "
            f"Choose without the data, or by public data; got {point.epsilon:.3g} a run."
        )
    if n_samples * amount < defaults.FEW:
        warnings.warn(
            f"{sizes} tell little about which is best. A choice without the data, or by public "
            "data, may well be better.",
            UserWarning,
            stacklevel=level_of_the_user(),
        )
