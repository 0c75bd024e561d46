"""Steps that prepare, the division of a budget among steps, and evaluations."""

from skdp._defaults._default import Default

__all__ = [
    "DELTA",
    "FAR",
    "LEAST_TAIL",
    "N_COMPONENTS",
    "N_SPLINES",
    "PREPARING",
    "PURE",
    "SLOPE",
    "SPLINES_FROM",
    "SQUARES",
    "STEEPNESS",
    "WIDEST_TAIL",
]

PREPARING = Default(
    0.1,
    "Of a squared mu, or of an epsilon that is pure, for what prepares: bounds, categories, the "
    "number of rows; and of delta for names of one record. Half of it for medians, which are "
    "robust.",
    "0.001 +- 0.001 of accuracy with a half of it or twice as much, 0.0007 of log-loss.",
)
DELTA = Default(1e-6, "A public parameter.")
LEAST_TAIL = Default(
    0.01, "Quantile at which bounds are asked for if rows are many.", "0 with .02"
)
WIDEST_TAIL = Default(0.25, "Quartiles are the innermost quantiles that bounds are made of.")
STEEPNESS = Default(
    100.0,
    "Next to a spike the area sine grows so many times faster than far from it.",
    "0.002 +- 0.001 of log-loss if columns with spikes are not bent, 0 with 10.",
)
N_SPLINES = Default(
    8,
    "What hats miss falls with the square of their number, and noise grows with it.",
    "0.001 of log-loss against 6 to 12 by the size of the signal.",
)
SPLINES_FROM = Default(
    30.0,
    "Rows times mu for each column below which it stays a straight line: with less, noise is more "
    "than what lines miss.",
    "0 where rows are many.",
)
PURE = Default(
    0.1,
    "Mu of a Gaussian budget whose noise a model of a hundred coefficients has at a pure epsilon "
    "of 1: one over their root.",
)
N_COMPONENTS = Default(512, "A public parameter: the error of a kernel is one over its root, .04.")
SLOPE = Default(
    4.0,
    "Of scores that are no probabilities, on their way to places among bins: those from -1 to 1 "
    "fill nearly all.",
)
FAR = Default(
    12.0, "Mean squared errors at which influences on R^2 are cut: hardly any normal one is."
)

SQUARES = Default(
    0.15,
    "Budget of the sum of squares, which only tells how much a loss varies, over that of its sum.",
    "Not measured by itself.",
)
