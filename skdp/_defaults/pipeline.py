"""Steps that prepare, the division of a budget among steps, evaluations, and searches."""

# Of a squared mu, or of an epsilon that is pure, for what prepares: bounds, categories, the number
# of rows; and of delta for names of one record. Half of it for medians, which are robust.
# Worth: 0.001 +- 0.001 of accuracy with a half of it or twice as much, 0.0007 of log-loss.
PREPARING = 0.1
# A public parameter.
DELTA = 1e-6
# What all that prepares may have together, where fewer rows need more for bounds.
MOST_PREPARING = 0.5
# For medians of columns at most, where rows do not tell outer quantiles.
# Worth: 0.005 of AUC with .1 throughout, of eight sets of 1,000 rows, at an epsilon of 1.
COARSE_SHARE = 0.25
# Rows times the range of a selection with which medians are worth their budget.
# Worth: 0.04 +- 0.04 of AUC with 8, of three sets of 400 and 1,000 rows, at an epsilon of 0.3.
MEDIAN_ROWS = 5.0
# Quantile at which bounds are asked for if rows are many.
# Worth: 0 with .02.
LEAST_TAIL = 0.01
# Quartiles are the innermost quantiles that bounds are made of.
WIDEST_TAIL = 0.25
# Next to a spike the area sine grows so many times faster than far from it.
# Worth: 0.002 +- 0.001 of log-loss if columns with spikes are not bent, 0 with 10.
STEEPNESS = 100.0
# What hats miss falls with the square of their number, and noise grows with it.
# Worth: 0.001 of log-loss against 6 to 12 by the size of the signal.
N_SPLINES = 8.0
# Rows times mu for each column below which it stays a straight line: with less, noise is more than
# what lines miss.
# Worth: 0 where rows are many.
SPLINES_FROM = 30.0
# Mu of a Gaussian budget whose noise a model of a hundred coefficients has at a pure epsilon of 1:
# one over their root.
PURE = 0.1
# A public parameter: the error of a kernel is one over its root, .04.
N_COMPONENTS = 512.0
# Of scores that are no probabilities, on their way to places among bins: those from -1 to 1 fill
# nearly all.
SLOPE = 4.0
# Mean squared errors at which influences on R^2 are cut: hardly any normal one is.
FAR = 12.0

# Budget of the sum of squares, which only tells how much a loss varies, over that of its sum.
# Worth: not measured by itself.
SQUARES = 0.15
# Budgets of parts of an evaluation over that of a mean. Twice as much where a score divides by the
# part, or sums its noise over many bins; a half where the part corrects others.
# Worth: not measured by themselves.
PRECISE = 2.0
CORRECTING = 0.5

# Of the budget of a mean, for its bounds: as much as for the sum.
# Worth: not measured.
MEAN_BOUNDS = 0.5

# Searches among candidates, among random draws, and for the least epsilon.

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
