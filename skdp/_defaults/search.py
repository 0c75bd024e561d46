"""Searches among candidates, among random draws, and for the least epsilon."""

# Worths are of accuracy over six sets of 5,000 rows at epsilon 1 and 3, eight candidates.

# Of the rows, for scores and the choice.
# Worth: 0.0065 +- 0.004 with half of them in random searches, while grids gain 0.0095 +- 0.006;
# 0.001 with twice as many.
HELD_OUT = 0.2
# What a row may lose more with a candidate than with the best, before it counts in full: of the
# range of a loss. Good candidates differ by less in most rows, and noise is in proportion.
# Worth: not measured: errors of 0 and 1 do not show it.
REGRET = 0.2
# Of the budget, times the root of the number of candidates, for all but the last fit.
# Worth: 0.002 +- 0.001 with twice as much; half of it gains 0.006 +- 0.0025 among eight
# candidates.
SEARCH = 0.15
# Of what the rows that compare have, for the score of the winner: noise of a tenth of the budget
# is far below the error of the rows.
# Worth: 0 with a half of it or twice as much.
SCORE = 0.1
# Of the budget of a random search, for the last fit.
# Worth: 0.005 +- 0.005 with .5; .9 gains 0.0035 +- 0.0026, and fits of runs are refused sooner.
REFIT = 0.75
# A public parameter: candidates that a random search tries.
N_ITER_MEAN = 10.0
# Rows of a fit times its mu, or its epsilon, below which it tells little.
FEW = 200.0
# Where it tells nothing: the noise of a mean is a sixtieth of its range.
TOO_FEW = 60.0
# Noise of the first score of a search for epsilon, in units of one over the root of the rows:
# below what the binomial error is at most, one half. With more, noise stops the search by luck.
FIRST_NOISE = 0.4
