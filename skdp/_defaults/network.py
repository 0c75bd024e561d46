"""Networks of nodes, and users who trust nobody."""

from skdp._defaults import linear

# Worths are means over twelve sets of 1,000 and 5,000 rows on 4 and 16 nodes, epsilon .5 to 3: the
# sets on which the numbers were chosen.

# Over epsilon times the number of rows: the share of a pure budget for the numbers of the classes.
# The log-odds that nodes start from then have a standard error of about 0.1.
# Worth: 0.03 +- 0.03 of log-loss without, which has 0.012 +- 0.011 more accuracy; 0.010 +- 0.009
# with a half, 0.004 of area under the curve with twice as much.
COUNT_SIGNAL = linear.COUNT_SIGNAL
# From that ratio of signal to noise on the sum of the rows is released.
# Worth: 0.009 +- 0.004 of accuracy if never; 0.002 of log-loss with a half or twice as much.
MEAN_SIGNAL = 5.0
# Of a pure budget for the sum of the rows.
# Worth: 0.003 +- 0.002 of accuracy with a half, 0.005 +- 0.002 of area under the curve with
# double.
MEAN_SHARE = 0.2
# Smallest curvature over the largest.
# Worth: 0.066 +- 0.04 of log-loss without, with sets of 20,000 rows and epsilon 8; else 0.
FLOOR = 0.01
# Passes of noise that adds up, over the number of rows in units of the noise's norm: with as many
# again the noise of a round would hide the gradient of its rows.
# Worth: 0.003 +- 0.003 of accuracy with half of them.
PASSES = 0.2
# Of Gaussian noise all passes together know the same.
# Worth: not measured.
MOST_PASSES = 40.0
# Rows of a round of a stream over those at which the regret is least: of the last model less noise
# is left.
# Worth: 0.025 of accuracy and 0.045 of log-loss with 1, 0.006 and 0.027 with 2; 8 is as good.
STREAMING = 4.0
# Points are averaged with weights that grow with that power of the time: the variance is 16/7 of
# the mean's, and the first half of the points has a sixteenth of the weight.
AVERAGE_POWER = 3.0
# Of the root of the number of columns: the l1 norm to which rows of norm 1 are scaled where nodes
# draw shares of pure noise. Laplace noise grows with it.
# Worth: 0.009 +- 0.008 of accuracy on six sets of two classes with the root itself, 0.003 with a
# quarter of it, which is worse where rows are dense.
L1_NORM = 0.4
# Public parameters that have some value.

# Of the ball of weights, for rows of norm 1: log-odds of up to 20.
RADIUS = 20.0
# A small network.
N_NODES = 8.0
# Nats a contribution: a guess of a fair bit gains 0.22 at most.
MI_BUDGET = 0.1
