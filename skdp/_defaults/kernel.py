"""Numbers of learning on kernels: targets in [-1, 1], features of norm one.

Worths are of R^2 over ten sets, at 1,000 to 20,000 rows and an epsilon of 0.1 to 3.
"""

from skdp._defaults import linear

# Noisy gradients on features, with a delta.

# Random features, in units of mu times the number of rows: second moments show no more.
# Worth: 1/3: -.001, and -.028 at 1,000 rows and epsilon 0.5.
FEATURES = 0.5
# Random features at least: of fewer, kernels are too rough.
FEWEST_FEATURES = 40.0
# Random features at most: time grows with their square.
MOST_FEATURES = 1000.0
# Noisy gradients; the later half of the iterates is averaged.
# Worth: 32: -.005.
STEPS = 48.0
# Largest momentum: how far weak directions can get.
# Worth: 0.7: -.001, and -.006 at 20,000 rows and epsilon 3.
MOMENTUM = 0.8
# Variance that noise may add to a prediction, beside that of the targets.
# Worth: .07: -.004; .15: -.005.
ALLOWED = 0.1
# Mu times the number of rows at which mean and mean square of the targets have half of the budget:
# their noise falls with its square.
# Worth: 40: -.003.
TARGET_ROWS = 20.0
# Deviation of the mean of a target about the middle of its bounds, as supposed.
# Worth: .0175 at 1,000 rows and epsilon 0.1; .001 in the mean.
OFFSET = 0.4
# Of the budget, for the mean of predictions, which caps draw to the median.
# Worth: .007 where it is left out.
LEVEL_SHARE = linear.ROWS_SHARE
# Square of how far caps draw that mean, beside the targets' variance: a fifth of a deviation.
# Worth: .09 if the mean is trusted in full, all of it at few rows.
LEVEL = 0.04
# Of the budget, for a release that helps the main one: second moments; without a delta the level,
# and bounds of the target.
SHARE = 0.1
# Of the squared mu, for bounds of the target: two quantiles.
BOUNDS_SHARE = 0.05

# A random linear term in the objective, without a delta. Rows are counted times epsilon.

# Random features, beside the number of rows to the power 2/3.
PURE_FEATURES = 0.15
# Random features at least.
PURE_FEWEST_FEATURES = 12.0
# Rows at which weights of noise alone would be as long as the targets' deviation.
# Worth: 60: .0005 more, but 12 of 100 cells below the mean in place of 9.
PURE_ROWS = 120.0
# Rows at which mean and mean square of the targets have 0.63 of epsilon.
# Worth: 20: -.024, 100: -.012 at 1,000 rows and epsilon 0.1.
PURE_TARGET_ROWS = 50.0
# Number of rows that is supposed where it is private.
TYPICAL_ROWS = 10_000.0

# Noise on minimisers, and exact kernels that answer queries.

# Cap of residuals where nothing is released of the targets: an eighth of the range.
CAP = 0.25
# Variance that noise may add to a prediction, at large penalties.
NOISE_VARIANCE = 0.015
# Penalty below which that falls in proportion, as the error that penalties make does.
LARGE_PENALTY = 500.0

# Kernels whose rows are in [-1, 1]^d.

# Over d: exp(-2) at the mean squared distance of uniform rows.
GAMMA_RBF = 3.0
# Over the root of d: the same of distances.
GAMMA_MATERN = 1.5

# Streams.

# Random features whose noise is not Gaussian or comes at each step.
ONLINE_FEATURES = 200.0
# Part of the way that weights go to the best model after each call: of rows that drift, moments
# are those of other rows.
# Worth: nine streams, epsilon 1 and 3: 0.4: 0 in the mean, and -.05 where rows drift most.
CHUNK_STEP = 0.3
# Offset of the time of noisy sums, in units of the least: early functions are noisy.
ONLINE_OFFSET = 100.0
# Horizon times mu whose root caps residuals at 1, and at half of that at most.
# Worth: five sets, 1,000 and 5,000 rows, epsilon 1, with a delta: .04 by the rule before, which
# was of five numbers, and .19 by this.
ONLINE_ROWS = 14_000.0
