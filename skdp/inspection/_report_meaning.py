"""What the promise of a report means against an attacker, in numbers and in words."""

import math
from contextlib import suppress

from skdp.exceptions import NoConversionError
from skdp.inspection._attacker import (
    PRIORS,
    best_guess,
    excess_loss,
    largest_posterior,
    power_of_tests,
)
from skdp.inspection._report_texts import (
    factor,
    is_no_limit,
    is_void,
    one_in,
    rounded_up,
    times_delta,
)
from skdp.privacy import ApproxDP, user_guarantee

__all__ = ["DELTA", "WHY_TEN_TIMES", "attacker_of", "delta_of", "finite", "how_sure", "yardstick"]

DELTA = 1e-6  # where a guarantee names none
_LEVEL = 0.05
_ROWS = (1, 2, 5)  # of somebody who has several
_SUSPICION = 0.1  # of examples
_TIMES = 10.0  # an exception may be so many times as likely as delta, and costs log(10 / 9)
# Between delta and that probability: which one is meant where both stand in a report.
WHY_TEN_TIMES = (
    "Delta itself is not the probability that this limit fails. Epsilon and delta alone "
    "give no limit on confidence that fails as rarely as delta; this one fails at most ten times "
    "as often."
)
_YARDSTICK = (0.1, 1.0, 3.0, 10.0)


def delta_of(guarantee):
    """Delta at which epsilon is quoted: the one that is claimed, or one in a million.

    Parameters
    ----------
    guarantee : Guarantee

    Returns
    -------
    float
    """
    if isinstance(guarantee, ApproxDP):
        return guarantee.delta
    return 0.0 if math.isfinite(guarantee.epsilon_at(0.0)) else DELTA


def finite(value):
    """A number, None for infinity.

    Parameters
    ----------
    value : float

    Returns
    -------
    float or None
    """
    return value if math.isfinite(value) else None


def attacker_of(subject):
    """Part of a report.

    Parameters
    ----------
    subject : Subject

    Returns
    -------
    dict
    """
    guarantee = subject.guarantee
    delta = delta_of(guarantee)
    rare = _rare(guarantee)
    loss = finite(excess_loss(guarantee, rare))
    return {
        "sentence": _sentence(subject),
        "exception": _exception(guarantee, rare, delta, loss),
        "largest_loss": loss,
        "posteriors": [
            {
                "prior": prior,
                "posterior": largest_posterior(guarantee, prior, rare),
                # The opposite is a suspicion, too, of which the same is proven.
                "at_least": max(0.0, 1.0 - largest_posterior(guarantee, 1.0 - prior, rare)),
                "except_with_probability": rare,
                "guess_right": best_guess(guarantee, prior),
            }
            for prior in PRIORS
        ],
        "test": {"level": _LEVEL, "power": power_of_tests(guarantee, _LEVEL)},
        "several_rows": list(_several(guarantee)),
    }


def _rare(guarantee):
    """Probability of the outcomes that no bound on odds holds for; 0 where there are none."""
    if math.isfinite(guarantee.epsilon_at(0.0)):
        return 0.0
    delta = delta_of(guarantee)
    return min(_TIMES * (delta or DELTA), 0.5 * (1.0 + delta))


def _sentence(subject):
    unit = subject.guarantee.unit
    told = (
        f"Assume the worst: an attacker who knows all other {unit}s, all settings, and this "
        "report. The numbers follow from the promise alone, for whatever is asked about one "
        f"{unit}, and for this result alone. Most attackers get less far."
    )
    if is_void(subject.guarantee.caveats):
        told += " They hold only against those who do not know the noise."
    return told


def _exception(guarantee, rare, delta, loss):
    unit = guarantee.unit
    if loss is None:
        return "No limit is proven."
    if all(is_no_limit(largest_posterior(guarantee, prior, rare)) for prior in PRIORS):
        return "So large an epsilon sets no limit: an attacker may become certain."
    if not rare:
        return (
            "There is no exception: whatever the result, the odds of a suspicion grow by a factor "
            f"of {factor(loss)} at most, which is exp(epsilon)."
        )
    times = times_delta(rare, delta)
    why = f" {WHY_TEN_TIMES}" if times else ""
    return (
        f"The exception has a probability of at most {one_in(rare)}{times}. "
        "Then nothing is promised, and an attacker may become certain. It lies in the noise of "
        f"this one result, and is there for each suspicion about each {unit}: of 100,000 {unit}s "
        "with one suspicion each it can be expected to happen to "
        f"{_expected(1e5 * rare)} at most.{why} A looser limit fails less often. In "
        f"this table the odds of a suspicion grow by a factor of {factor(loss)} at most, and for "
        f"this limit the exception is proven. It is exp({rounded_up(loss)}): this number takes "
        "the place of epsilon here."
    )


def _expected(count):
    return rounded_up(count, 3) if count < 1000.0 else f"{math.ceil(count):,}"


def _several(guarantee):
    """How sure somebody with several rows may make an attacker."""
    if guarantee.unit != "record":
        return
    for rows in _ROWS:
        with suppress(NoConversionError):
            # One row is what the report is about; the promise for more follows from it.
            found = guarantee if rows == 1 else user_guarantee(guarantee, rows)
            delta = delta_of(found)
            yield {
                "rows": rows,
                "epsilon": finite(found.epsilon_at(delta)),
                "delta": delta,
                **how_sure(found),
            }


def how_sure(guarantee):
    """What a promise means for a suspicion of 10 %.

    Parameters
    ----------
    guarantee : Guarantee

    Returns
    -------
    dict
    """
    rare = _rare(guarantee)
    return {
        "prior": _SUSPICION,
        "posterior": largest_posterior(guarantee, _SUSPICION, rare),
        "except_with_probability": rare,
        "guess_right": best_guess(guarantee, _SUSPICION),
    }


def yardstick():
    """What some epsilons mean for the same suspicion, where delta is 0.

    Returns
    -------
    list of dict
    """
    return [
        {"epsilon": epsilon, "factor": math.exp(epsilon), **how_sure(ApproxDP(epsilon))}
        for epsilon in _YARDSTICK
    ]
