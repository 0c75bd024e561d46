"""The numbers of linear classifiers.

Worths are of 13 sets of 1,000 and 5,000 rows at epsilon 1, with a delta and without, as
``benchmarks/defaults.py linear`` prints them, with the standard error over sets.
"""

# Every mechanism.

# Constant feature over the norm of a row: it costs 4 % of the noise, and a smaller one has a
# larger penalty.
CONSTANT = 0.3
# Of the budget, for the number of rows: rules read it to a power of two, or 1 % of it.
ROWS_SHARE = 0.02
# Rows where their number is private and not released.
TYPICAL_ROWS = 1000.0
# Of the budget, for the norm of rows; all that it has to tell is which of 15 norms.
# Worth: 0 on rows of norm 1, where -0.001 +- 0.001 of accuracy is its price; 0.007 to 0.02 without
# on short rows.
NORM_SHARE = ROWS_SHARE
# Rows, over epsilon, that may be clipped for the root of 2 less noise.
NORM_WORTH = 1.5
# Share of the rows that may be clipped, as what it biases stays, and that noise in their number
# may be.
MOST_CLIPPED = 0.1
# Of the budget, for the scale of the scores.
# Worth: 0.004 +- 0.002 of log-loss with a half of it; 0.002 +- 0.001 of accuracy with double.
SCALE_SHARE = 0.03
# Scale of the scores of a descent where none is released: noise makes them longer.
# Worth: 0.002 +- 0.002 of log-loss with a half of it, 0.005 +- 0.003 with twice as much.
LIKELY_SCALE = 0.7

# Descents along noisy gradients.

# Of the squared mu, for the second moments of the rows.
# Worth: 0.003 +- 0.002 of log-loss with twice as much; 0 with half.
GRAM_SHARE = 0.1
# Largest residual of a row of typical norm, of two classes, over that of a row of which nothing is
# known: noise is in proportion to it.
# Worth: 0.004 +- 0.002 of accuracy with a half or twice as much.
CAP = 0.85
# The same for more classes, whose residuals share their norm.
# Worth: 0.004 +- 0.002 of accuracy with a half of it, 0.006 +- 0.003 with twice as much.
CAP_OF_MANY = 0.6
# Signal a feature from which on caps rise by its fourth root: what they bias stays.
# Worth: 0 with a half or twice as much at 5,000 rows; 0.008 of log-loss with 200 at 20,000 rows
# and epsilon 3.
CLEAR_SIGNAL = 75.0
# Noisy gradients at least.
# Worth: 0.002 +- 0.0004 of accuracy with twice as many; 0 with half.
FEWEST_STEPS = 12.0
# Noisy gradients at most: they take time.
MOST_STEPS = 150.0
# Of the last step in the next one.
MOMENTUM = 0.5
# Of a descent that sees nothing, over the squared signal: weights of noise alone stay short.
# Worth: 0.002 +- 0.001 of accuracy and 0.007 +- 0.005 of log-loss with twice as much.
BLIND_SLOWNESS = 6.0
# Of a descent that sees, in signals over the root of the number of features.
# Worth: 0.001 +- 0.0003 of accuracy with twice as much; 0 with half.
TIME = 90.0
# Edges of the noise that all curvatures exceed where a Newton step ends a descent.
GATE = 2.0
# Of the squared mu, for the descent where a Newton step follows: that decides, and has to start
# near.
DESCENT_SHARE = 0.3
# Agreement of the rows of users, at least: of less, the noise would be what is read.
LEAST_AGREEMENT = 0.3

# Noisy objectives and minimisers, for rows of norm 1.

# Penalty of two classes, a feature, over 2 / epsilon.
# Worth: 0.003 +- 0.001 of accuracy with a half of it; 0.001 +- 0.001 with twice as much.
PENALTY = 0.06
# Power of the signal by which it falls.
# Worth: 0.001 of accuracy and 0.003 of log-loss with 0 and a PENALTY of 0.04.
PENALTY_POWER = 0.2
# Penalty of more classes, over what curvature costs.
# Worth: 0.006 +- 0.004 of log-loss with twice as much, 0.003 +- 0.003 with half.
PENALTY_OF_MANY = 16.0
# Largest slope of the logistic loss: noise is in proportion to it.
# Worth: 0.005 +- 0.002 of accuracy with a half of it, 0.010 +- 0.003 with twice as much.
SLOPE_CAP = 0.4
# Signal from which on that rises by its cube root: what it biases stays.
CAP_SIGNAL = 480.0
# Margin of more classes: slopes of unknown rows are nearly the largest then.
# Worth: 0.011 of accuracy and 0.013 of log-loss without, at epsilon 0.1 to 3; 0 with a half.
MARGIN = 4.0
# Signal over which the margin is the cube root, at most.
# Worth: 0.005 of accuracy and 0.010 of log-loss with the largest margin always.
MARGIN_SIGNAL = 280.0
# Penalty at which noise moves a score by a third.
OUTPUT_PENALTY = 3.0
# Width of the hinge's bend with output perturbation, whose noise it does not change.
SHARP_HINGE = 0.05

# Classes that are counted.

# Over epsilon times rows, the share for counts of one class: noise moves shares by 0.06.
# Worth: 0.0007 +- 0.0006 of accuracy with twice as much; 0 with half.
COUNT_SIGNAL = 30.0
# Share of a class, at least, in units of equal shares.
# Worth: 0 with a half or twice as much.
LEAST_SHARE = 0.2
# Share of one of two classes, at least.
LEAST_OF_TWO = 0.02

# Counts.

# What counts are clipped to, over their noisy mean: noise is in proportion to it.
# Worth: d^2 in means over 6 sets of 1,000 to 20,000 rows, epsilon from 0.5 to 3: 0.015 less for 2,
# 0.004 less for 8 and 0.023 less for 16 with a delta.
LARGEST_TARGET = 4.0

# Intervals. Measured by coverage and width in designs of their own, as ``benchmarks/inference.py``
# prints them.

# Of the squared mu, for what comes before the last release.
BEFORE_THE_LAST = 0.4
# Newton steps before the last, at most; their shares are as 1 to 2 to 3 to 4. A fourth of all of
# it may be for small steps before them.
N_EARLY_STEPS = 4
# How loose the bound on what a step leaves is.
LOOSENESS = 10.0
# Largest residual over the standard deviation of all, where rows are few: what is cut of skewed
# errors moves coefficients.
# Worth: at 3.5, widths are 0.75 times as large at 2,000 to 10,000 rows, and of exponential errors
# intervals of the intercept hold it in 0.73 of all cases.
RESIDUAL_CAP = 5.0
# Least eigenvalue over the edge of the noise from which on a second look is better.
SECOND_LOOK_FROM = 2.0
