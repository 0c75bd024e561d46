"""Bounds of kernel ridge regression as printed: values by hand, and what is wrong with them."""

import math

from numpy.testing import assert_allclose

from skdp.kernel.papers import (
    epsilon_rule,
    printed_approximation_bound,
    printed_relative_risk_bound,
    printed_risk_bound,
)
from skdp.kernel.papers import ridge_rate as rate

ROOT = math.sqrt(2.0 * math.pi)


def test_constants_are_those_of_the_print():
    # By hand: M = 2, kappa = 2, r = 1, source = 3, so that kappa^2 + kappa^0 + 2 = 7.
    numbers = dict(r=1.0, source=3.0, kappa=2.0, y_bound=2.0)
    expected = 8.0 * ROOT * 4.0 / 10.0 + 0.25 * 7.0 * 9.0
    assert_allclose(printed_approximation_bound(100, 0.25, **numbers), expected)
    # 24 * 4 * 16 * 9 = 13824.
    constant = 13824.0 / 0.25 + 8.0 * ROOT * 4.0 * 2.0 + 63.0
    assert_allclose(printed_relative_risk_bound(100, 0.5, **numbers), constant / 10.0)
    constant += 63.0
    corrected = printed_relative_risk_bound(100, 0.5, corrected=True, **numbers)
    assert_allclose(corrected, constant / 10.0)
    constant = 8.0 * (1.0 + ROOT) * 4.0 + 13824.0 + 63.0
    assert_allclose(printed_risk_bound(1000, **numbers), constant / 10.0)
    # Below r = 1/2 the rates are slower: r = 1/4 has 2/7 and 2/9.
    assert_allclose(printed_risk_bound(1000, r=0.25), 1000 ** (-2 / 9) * (8 + 8 * ROOT + 96 + 4))
    # kappa^(4r-2) and kappa^(4r-4) at kappa = 2 are 1/2 and 1/8 then.
    assert_allclose(
        printed_approximation_bound(1e300, 0.04, r=0.25, kappa=2.0), 0.2 * 2.625, rtol=1e-12
    )


def test_the_printed_epsilon_is_too_large_for_the_theorem_beside_it():
    # The term 8 M^2 eps of its proof alone outgrows the claim, with the corrected rule it fits.
    many = 10**9
    assert 8.0 * epsilon_rule(many, misprinted=True) > printed_risk_bound(many)
    for n_samples in (10, 10**5, many, 10**15):
        assert 8.0 * epsilon_rule(n_samples) < printed_risk_bound(n_samples)
    slope = math.log(printed_risk_bound(10**6) / printed_risk_bound(10**12)) / math.log(10**6)
    assert_allclose(slope, rate())
