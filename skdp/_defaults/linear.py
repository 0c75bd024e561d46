"""The numbers of linear classifiers.

Worths are of 13 sets of 1,000 and 5,000 rows at epsilon 1, with a delta and without, as
``benchmarks/defaults.py linear`` prints them, with the standard error over sets.
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
    "LIKELY_SCALE",
    "MARGIN",
    "MARGIN_SIGNAL",
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
    0.02,
    "Of the budget, for the norm of rows; all that it has to tell is which of 15 norms.",
    "0 on rows of norm 1, where -0.001 +- 0.001 of accuracy is its price; 0.007 to 0.02 "
    "without on short rows.",
)
NORM_NOISE = Default(0.1, "Share of the rows that noise in their number may be, for the norm.")
NORM_WORTH = Default(1.5, "Rows, over epsilon, that may be clipped for the root of 2 less noise.")
MOST_CLIPPED = Default(0.1, "Share of the rows that may be clipped: what it biases stays.")
SCALE_SHARE = Default(
    0.03,
    "Of the budget, for the scale of the scores.",
    "0.004 +- 0.002 of log-loss with a half of it; 0.002 +- 0.001 of accuracy with double.",
)
LIKELY_SCALE = Default(
    0.7,
    "Scale of the scores of a descent where none is released: noise makes them longer.",
    "0.002 +- 0.002 of log-loss with a half of it, 0.005 +- 0.003 with twice as much.",
)

# Descents along noisy gradients.
GRAM_SHARE = Default(
    0.1,
    "Of the squared mu, for the second moments of the rows.",
    "0.003 +- 0.002 of log-loss with twice as much; 0 with half.",
)
CAP = Default(
    0.85,
    "Largest residual of a row of typical norm, of two classes, over that of a row of which "
    "nothing is known: noise is in proportion to it.",
    "0.004 +- 0.002 of accuracy with a half or twice as much.",
)
CAP_OF_MANY = Default(
    0.6,
    "The same for more classes, whose residuals share their norm.",
    "0.004 +- 0.002 of accuracy with a half of it, 0.006 +- 0.003 with twice as much.",
)
CLEAR_SIGNAL = Default(
    75,
    "Signal a feature from which on caps rise by its fourth root: what they bias stays.",
    "0 with a half or twice as much at 5,000 rows; 0.008 of log-loss with 200 at 20,000 "
    "rows and epsilon 3.",
)
FEWEST_STEPS = Default(
    12,
    "Noisy gradients at least.",
    "0.002 +- 0.0004 of accuracy with twice as many; 0 with half.",
)
MOST_STEPS = Default(150, "Noisy gradients at most: they take time.")
MOMENTUM = Default(0.5, "Of the last step in the next one.")
BLIND_SLOWNESS = Default(
    6,
    "Of a descent that sees nothing, over the squared signal: weights of noise alone stay short.",
    "0.002 +- 0.001 of accuracy and 0.007 +- 0.005 of log-loss with twice as much.",
)
TIME = Default(
    90,
    "Of a descent that sees, in signals over the root of the number of features.",
    "0.001 +- 0.0003 of accuracy with twice as much; 0 with half.",
)
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

# Noisy objectives and minimisers, for rows of norm 1.
PENALTY = Default(
    0.06,
    "Penalty of two classes, a feature, over 2 / epsilon.",
    "0.003 +- 0.001 of accuracy with a half of it; 0.001 +- 0.001 with twice as much.",
)
PENALTY_POWER = Default(
    0.2,
    "Power of the signal by which it falls.",
    "0.001 of accuracy and 0.003 of log-loss with 0 and a PENALTY of 0.04.",
)
PENALTY_OF_MANY = Default(
    16,
    "Penalty of more classes, over what curvature costs.",
    "0.006 +- 0.004 of log-loss with twice as much, 0.003 +- 0.003 with half.",
)
SLOPE_CAP = Default(
    0.4,
    "Largest slope of the logistic loss: noise is in proportion to it.",
    "0.005 +- 0.002 of accuracy with a half of it, 0.010 +- 0.003 with twice as much.",
)
CAP_SIGNAL = Default(
    480, "Signal from which on that rises by its cube root: what it biases stays."
)
MARGIN = Default(
    4,
    "Margin of more classes: slopes of unknown rows are nearly the largest then.",
    "0.011 of accuracy and 0.013 of log-loss without, at epsilon 0.1 to 3; 0 with a half.",
)
MARGIN_SIGNAL = Default(
    280,
    "Signal over which the margin is the cube root, at most.",
    "0.005 of accuracy and 0.010 of log-loss with the largest margin always.",
)
OUTPUT_PENALTY = Default(3, "Penalty at which noise moves a score by a third.")
SHARP_HINGE = Default(
    0.05, "Width of the hinge's bend with output perturbation, whose noise it does not change."
)

# Classes that are counted.
COUNT_SIGNAL = Default(
    30,
    "Over epsilon times rows, the share for counts of one class: noise moves shares by 0.06.",
    "0.0007 +- 0.0006 of accuracy with twice as much; 0 with half.",
)
LEAST_SHARE = Default(
    0.2,
    "Share of a class, at least, in units of equal shares.",
    "0 with a half or twice as much.",
)
LEAST_OF_TWO = Default(0.02, "Share of one of two classes, at least.")
