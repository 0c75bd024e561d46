"""Searches among candidates, among random draws, and for the least epsilon."""

from skdp._defaults._default import Default

__all__ = [
    "FEW",
    "FIRST_NOISE",
    "HELD_OUT",
    "N_ITER_MEAN",
    "REFIT",
    "REGRET",
    "SCORE",
    "SEARCH",
    "TOO_FEW",
]

# Worths are of accuracy over six sets of 5,000 rows at epsilon 1 and 3, eight candidates.
HELD_OUT = Default(
    0.2,
    "Of the rows, for scores and the choice.",
    "0.0065 +- 0.004 with half of them in random searches, while grids gain 0.0095 +- 0.006; "
    "0.001 with twice as many.",
)
REGRET = Default(
    0.2,
    "What a row may lose more with a candidate than with the best, before it counts in full: of "
    "the range of a loss. Good candidates differ by less in most rows, and noise is in "
    "proportion.",
    "Not measured: errors of 0 and 1 do not show it.",
)
SEARCH = Default(
    0.15,
    "Of the budget, times the root of the number of candidates, for all but the last fit.",
    "0.002 +- 0.001 with twice as much; half of it gains 0.006 +- 0.0025 among eight candidates.",
)
SCORE = Default(
    0.1,
    "Of what the rows that compare have, for the score of the winner: noise of a tenth of the "
    "budget is far below the error of the rows.",
    "0 with a half of it or twice as much.",
)
REFIT = Default(
    0.75,
    "Of the budget of a random search, for the last fit.",
    "0.005 +- 0.005 with .5; .9 gains 0.0035 +- 0.0026, and fits of runs are refused sooner.",
)
N_ITER_MEAN = Default(10, "A public parameter: candidates that a random search tries.")
FEW = Default(
    200.0,
    "Rows of a fit times its mu, or its epsilon, below which it tells little.",
)
TOO_FEW = Default(60.0, "Where it tells nothing: the noise of a mean is a sixtieth of its range.")
FIRST_NOISE = Default(
    0.4,
    "Noise of the first score of a search for epsilon, in units of one over the root of the rows: "
    "below what the binomial error is at most, one half. With more, noise stops the search by "
    "luck.",
)
