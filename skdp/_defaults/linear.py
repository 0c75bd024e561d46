"""The numbers of linear classifiers.

Worths are what halving or doubling a number costs at worst, over the sets of
``benchmarks/defaults.py``: accuracy, and log-loss where it says so.
"""

from skdp._defaults._default import Default

__all__ = [
    "BLIND_SLOWNESS",
    "CAP",
    "CAP_OF_MANY",
    "CAP_SIGNAL",
    "CLEAR_SIGNAL",
    "CONSTANT",
    "COUNT_SIGNAL",
    "DESCENT_SHARE",
    "FEWEST_STEPS",
    "GATE",
    "GRAM_SHARE",
    "LEAST_AGREEMENT",
    "LEAST_OF_TWO",
    "LEAST_SHARE",
    "LEAST_SPREAD",
    "LIKELY_SCALE",
    "MARGIN",
    "MARGIN_SIGNAL",
    "MEAN_SHARE",
    "MEAN_SIGNAL",
    "MOMENTUM",
    "MOST_CLIPPED",
    "MOST_STEPS",
    "NORM_NOISE",
    "NORM_SHARE",
    "NORM_WORTH",
    "OUTPUT_PENALTY",
    "PENALTY",
    "PENALTY_OF_MANY",
    "PENALTY_POWER",
    "ROWS_SHARE",
    "SCALE_SHARE",
    "SHARP_HINGE",
    "SLOPE_CAP",
    "SPREAD_SHARE",
    "TIME",
    "TYPICAL_ROWS",
]

# Every mechanism.
CONSTANT = Default(
    0.3,
    "Constant feature over the norm of a row: it costs 4 % of the noise, and a smaller one has a "
    "larger penalty.",
)
ROWS_SHARE = Default(
    0.02, "Of the budget, for the number of rows: rules read it to a power of two, or 1 % of it."
)
TYPICAL_ROWS = Default(1000, "Rows where their number is private and not released.")
NORM_SHARE = Default(
    0.02, "Of the budget, for the norm of rows; all that it has to tell is which of 15 norms."
)
NORM_NOISE = Default(0.1, "Share of the rows that noise in their number may be, for the norm.")
NORM_WORTH = Default(1.5, "Rows, over epsilon, that may be clipped for the root of 2 less noise.")
MOST_CLIPPED = Default(0.1, "Share of the rows that may be clipped: what it biases stays.")
SCALE_SHARE = Default(0.03, "Of the budget, for the scale of the scores.")
LIKELY_SCALE = Default(
    0.7, "Scale of the scores of a descent where none is released: noise makes them longer."
)

# Descents along noisy gradients.
GRAM_SHARE = Default(0.1, "Of the squared mu, for the second moments of the rows.")
CAP = Default(
    0.85,
    "Largest residual of a row of typical norm, of two classes, over that of a row of which "
    "nothing is known: noise is in proportion to it.",
)
CAP_OF_MANY = Default(0.6, "The same for more classes, whose residuals share their norm.")
CLEAR_SIGNAL = Default(
    75, "Signal a feature from which on caps rise by its fourth root: what they bias stays."
)
FEWEST_STEPS = Default(12, "Noisy gradients at least.")
MOST_STEPS = Default(150, "Noisy gradients at most: they take time.")
MOMENTUM = Default(0.5, "Of the last step in the next one.")
BLIND_SLOWNESS = Default(
    6,
    "Of a descent that sees nothing, over the squared signal: weights of noise alone stay short.",
)
TIME = Default(90, "Of a descent that sees, in signals over the root of the number of features.")
GATE = Default(
    2, "Edges of the noise that all curvatures exceed where a Newton step ends a descent."
)
DESCENT_SHARE = Default(
    0.3,
    "Of the squared mu, for the descent where a Newton step follows: that decides, and has to "
    "start near.",
)
LEAST_AGREEMENT = Default(
    0.3, "Agreement of the rows of users, at least: of less, the noise would be what is read."
)
MEAN_SIGNAL = Default(
    50, "Signal over the cube root of the number of features from which on the mean row is read."
)
MEAN_SHARE = Default(0.04, "Of the squared mu, for the mean row of many features.")
SPREAD_SHARE = Default(0.01, "Of the squared mu, for how far rows reach beside it.")
LEAST_SPREAD = Default(0.002, "Second moments beside the mean row, at least.")

# Noisy objectives and minimisers, for rows of norm 1.
PENALTY = Default(0.06, "Penalty of two classes, a feature, over 2 / epsilon.")
PENALTY_POWER = Default(0.2, "Power of the signal by which it falls.")
PENALTY_OF_MANY = Default(16, "Penalty of more classes, over what curvature costs.")
SLOPE_CAP = Default(0.4, "Largest slope of the logistic loss: noise is in proportion to it.")
CAP_SIGNAL = Default(
    480, "Signal from which on that rises by its cube root: what it biases stays."
)
MARGIN = Default(4, "Margin of more classes: slopes of unknown rows are nearly the largest then.")
MARGIN_SIGNAL = Default(280, "Signal over which the margin is the cube root, at most.")
OUTPUT_PENALTY = Default(3, "Penalty at which noise moves a score by a third.")
SHARP_HINGE = Default(
    0.05, "Width of the hinge's bend with output perturbation, whose noise it does not change."
)

# Classes that are counted.
COUNT_SIGNAL = Default(
    30, "Over epsilon times rows, the share for counts of one class: noise moves shares by 0.06."
)
LEAST_SHARE = Default(0.2, "Share of a class, at least, in units of equal shares.")
LEAST_OF_TWO = Default(0.02, "Share of one of two classes, at least.")
