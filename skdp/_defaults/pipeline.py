"""Steps that prepare, the division of a budget among steps, and evaluations."""

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
