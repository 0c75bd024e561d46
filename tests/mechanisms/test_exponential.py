"""The exponential mechanism has its law exactly, as rational arithmetic tells it."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chi2
from support.insides import NoiseSource

from skdp._random._exact import Uniform
from skdp.audit import recording
from skdp.mechanisms import _exponential, select


def exponential(x):
    """A lower and an upper bound of exp(x) for a rational ``x <= 0``, 2**-400 apart."""
    # By its series at a small argument, then squared; whatever is cut off is cut off outwards.
    n_halvings = max(0, math.ceil(-x)).bit_length() + 8
    small, unit = x / 2**n_halvings, 2**600
    total = term = Fraction(1)
    for k in range(1, 80):
        term *= small / k
        total += term
        term = Fraction(round(term * unit), unit) if k > 8 else term
    error = Fraction(100, unit)
    low, high = total - error, total + error
    for _ in range(n_halvings):
        low = Fraction(math.floor(low * low * unit), unit)
        high = Fraction(math.ceil(high * high * unit), unit)
    assert 0 <= high - low < Fraction(1, 2**400)
    return low, high


def boundaries(utilities, rate):
    """Bounds on the running sums of probabilities, as rational numbers."""
    top = int(max(utilities))
    weights = [exponential(Fraction(rate) * (int(u) - top)) for u in utilities]
    lows, highs = (np.cumsum([pair[i] for pair in weights]).tolist() for i in (0, 1))
    return [(low / highs[-1], high / lows[-1]) for low, high in zip(lows, highs, strict=True)]


def place_at(utilities, rate, share, n_words=8):
    """What is selected where the uniform number is ``share``, of so many digits."""
    length = 63 + 64 * n_words
    digits = math.floor(share * 2**length)
    later = [(digits >> 64 * i) % 2**64 for i in range(n_words)]
    uniform = Uniform(digits >> 64 * n_words, later.pop)
    return _exponential.place(np.asarray(utilities, dtype=np.int64), rate, uniform)


CASES = [
    ([0, 0, 0], 1.0),
    ([0, -1, -2, -2, -1, 0], 0.3),
    ([5, 5, -700, 5], 1.0),
    ([-3, 2**52, 2**52 - 1], 2.0**-1),
    ([0, -(2**52), -1], 1e-15),
    ([7], 2.0),
    ([-40, -40, 0, -40], 1.0),
    ([0, 1000], 1e300),
    ([0, 1, 2, 3], 5e-324),
    (list(range(-30, 30)), 0.123456789),
]


@pytest.mark.parametrize(("utilities", "rate"), CASES, ids=range(len(CASES)))
def test_intervals_of_decision_are_those_of_rational_arithmetic(utilities, rate):
    """On both sides of each boundary, nearer and nearer to it, the neighbours are selected."""
    if rate * (max(utilities) - min(utilities)) > 1e6:  # the others have no weight to speak of
        assert place_at(utilities, rate, Fraction(1, 3)) == int(np.argmax(utilities))
        return
    ends = boundaries(utilities, rate)
    for power in (8, 40, 60, 90, 200, 300):
        step = Fraction(1, 2**power)
        for low, high in ends[:-1]:
            for share in (low - step, high + step):
                if 0 < share < 1:
                    told = {sum(end[i] <= share for end in ends) for i in (0, 1)}
                    assert place_at(utilities, rate, share) in told
                    assert len(told) == 1
    assert place_at(utilities, rate, Fraction(1, 2**500)) == 0
    assert place_at(utilities, rate, 1 - Fraction(1, 2**500)) == len(utilities) - 1


def test_floats_decide_nearly_always(monkeypatch):
    monkeypatch.setattr(_exponential, "_exact_place", lambda *_: pytest.fail("undecided"))
    utilities = np.tile(-np.abs(np.arange(2**13) - 4000), (200, 1))
    assert len(select(utilities, epsilon=1.0, spread=20, random_state=0)) == 200


def test_multiple_precision_agrees_with_floats():
    rng = np.random.default_rng(0)
    utilities = np.repeat(rng.integers(-60, 0, 60), rng.integers(1, 9, 60))
    for digits in rng.integers(0, 2**63, size=30).tolist():
        places = [
            decide(utilities, 0.37, Uniform(digits, lambda: 0))
            for decide in (_exponential.place, _exponential._exact_place)
        ]
        assert places[0] == places[1]


def test_frequencies_have_the_law():
    """Chi-square at a level of 1e-7."""
    utilities, n = np.array([0, 3, 3, -2, 1, 3]), 20_000
    drawn = select(np.tile(utilities, (n, 1)), epsilon=1.0, spread=2, random_state=5)
    expected = np.exp(utilities / 2)
    expected *= n / expected.sum()
    statistic = np.sum((np.bincount(drawn, minlength=6) - expected) ** 2 / expected)
    assert statistic < chi2(5).isf(1e-7)


@pytest.mark.parametrize("epsilon", [0.1, 1 / 3, 1.0, 1e300])
@pytest.mark.parametrize("spread", [1, 3, 2**21, 2**61])
def test_the_rate_is_never_above_epsilon_over_the_spread(epsilon, spread):
    with recording() as transcript:
        select([0, 1], epsilon=epsilon, spread=spread)
    (record,) = transcript
    assert Fraction(record.rates[0]) <= Fraction(epsilon) / spread
    assert record.rates[0] >= epsilon / spread * (1 - 1e-15)
    assert record.where.startswith("test_exponential")
    assert "utilities" not in repr(record)


def test_each_selection_has_its_own_digits_and_shape():
    source = NoiseSource(lambda n: (np.arange(n, dtype=np.uint64) * 2 + 1) << np.uint64(59))
    rows = np.zeros((16, 16), dtype=int)
    assert select(rows, epsilon=1.0, spread=1, random_state=source).tolist() == list(range(16))
    assert np.ndim(select([1, 2], epsilon=1.0, spread=1)) == 0
    alone = [select([1, 5, 2], epsilon=0.1, spread=1, random_state=seed) for seed in range(50)]
    assert set(map(int, alone)) == {0, 1, 2}
    again = [select([1, 5, 2], epsilon=0.1, spread=1, random_state=seed) for seed in range(50)]
    assert alone == again


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(utilities=[0.5, 1.0]), "utilities must be a non-empty integer array"),
        (dict(utilities=[]), "utilities must be a non-empty integer array"),
        (dict(utilities=[[[1]]]), "utilities must be a non-empty integer array"),
        (dict(utilities=[2**52 + 1, 0]), r"at most 2\*\*52"),
        (dict(spread=0), "spread must be a positive integer"),
        (dict(spread=0.5), "spread must be a positive integer"),
        (dict(epsilon=0.0), "epsilon must be a positive"),
        (dict(epsilon=math.nan), "epsilon must be a positive"),
    ],
)
def test_bad_arguments_are_refused(arguments, message):
    given = dict(utilities=[1, 2], epsilon=1.0, spread=1) | arguments
    with pytest.raises(ValueError, match=message) as told:
        select(given.pop("utilities"), **given)
    assert str(2**52 + 1) not in str(told.value)
