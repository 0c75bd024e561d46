"""Numbers of learning on kernels: targets in [-1, 1], features of norm one.

Worths are of R^2 over ten sets, at 1,000 to 20,000 rows and an epsilon of 0.1 to 3.
"""

from skdp._defaults._default import Default

__all__ = [
    "ALLOWED",
    "BOUNDS_SHARE",
    "CAP",
    "FEATURES",
    "FEWEST_FEATURES",
    "GAMMA_MATERN",
    "GAMMA_RBF",
    "LARGE_PENALTY",
    "LEVEL",
    "LEVEL_SHARE",
    "MOMENTUM",
    "MOST_FEATURES",
    "NOISE_VARIANCE",
    "OFFSET",
    "ONLINE_FEATURES",
    "ONLINE_OFFSET",
    "ONLINE_ROWS",
    "PURE_FEATURES",
    "PURE_FEWEST_FEATURES",
    "PURE_ROWS",
    "PURE_TARGET_ROWS",
    "SHARE",
    "STEPS",
    "TARGET_ROWS",
    "TYPICAL_ROWS",
]

# Noisy gradients on features, with a delta.
FEATURES = Default(
    1 / 2,
    "Random features, in units of mu times the number of rows: second moments show no more.",
    "1/3: -.001, and -.028 at 1,000 rows and epsilon 0.5",
)
FEWEST_FEATURES = Default(40, "Random features at least: of fewer, kernels are too rough.")
MOST_FEATURES = Default(1000, "Random features at most: time grows with their square.")
STEPS = Default(48, "Noisy gradients; the later half of the iterates is averaged.", "32: -.005")
MOMENTUM = Default(
    0.8,
    "Largest momentum: how far weak directions can get.",
    "0.7: -.001, and -.006 at 20,000 rows and epsilon 3",
)
ALLOWED = Default(
    0.1,
    "Variance that noise may add to a prediction, beside that of the targets.",
    ".07: -.004; .15: -.005",
)
TARGET_ROWS = Default(
    20,
    "Mu times the number of rows at which mean and mean square of the targets have half of the "
    "budget: their noise falls with its square.",
    "40: -.003",
)
OFFSET = Default(
    0.4,
    "Deviation of the mean of a target about the middle of its bounds, as supposed.",
    ".0175 at 1,000 rows and epsilon 0.1; .001 in the mean",
)
LEVEL_SHARE = Default(
    0.02,
    "Of the budget, for the mean of predictions, which caps draw to the median.",
    ".007 where it is left out",
)
LEVEL = Default(
    0.04,
    "Square of how far caps draw that mean, beside the targets' variance: a fifth of a deviation.",
    ".09 if the mean is trusted in full, all of it at few rows",
)
SHARE = Default(
    0.1,
    "Of the budget, for a release that helps the main one: second moments; without a delta the "
    "level, and bounds of the target.",
)
BOUNDS_SHARE = Default(0.05, "Of the squared mu, for bounds of the target: two quantiles.")

# A random linear term in the objective, without a delta. Rows are counted times epsilon.
PURE_FEATURES = Default(0.15, "Random features, beside the number of rows to the power 2/3.")
PURE_FEWEST_FEATURES = Default(12, "Random features at least.")
PURE_ROWS = Default(
    120,
    "Rows at which weights of noise alone would be as long as the targets' deviation.",
    "60: .0005 more, but 12 of 100 cells below the mean in place of 9",
)
PURE_TARGET_ROWS = Default(
    50,
    "Rows at which mean and mean square of the targets have 0.63 of epsilon.",
    "20: -.024, 100: -.012 at 1,000 rows and epsilon 0.1",
)
TYPICAL_ROWS = Default(10_000, "Number of rows that is supposed where it is private.")

# Noise on minimisers, and exact kernels that answer queries.
CAP = Default(
    0.25, "Cap of residuals where nothing is released of the targets: an eighth of the range."
)
NOISE_VARIANCE = Default(0.015, "Variance that noise may add to a prediction, at large penalties.")
LARGE_PENALTY = Default(
    500, "Penalty below which that falls in proportion, as the error that penalties make does."
)

# Kernels whose rows are in [-1, 1]^d.
GAMMA_RBF = Default(3, "Over d: exp(-2) at the mean squared distance of uniform rows.")
GAMMA_MATERN = Default(1.5, "Over the root of d: the same of distances.")

# Streams.
ONLINE_FEATURES = Default(
    200, "Random features whose noise is not Gaussian or comes at each step."
)
ONLINE_OFFSET = Default(
    100, "Offset of the time of noisy sums, in units of the least: early functions are noisy."
)
ONLINE_ROWS = Default(
    14_000,
    "Horizon times mu whose root caps residuals at 1, and at half of that at most.",
    "five sets, 1,000 and 5,000 rows, epsilon 1, with a delta: .04 by the rule before, "
    "which was of five numbers, and .19 by this",
)
