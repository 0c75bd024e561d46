"""No error but a refusal before the charge, whatever the configuration."""

import pytest
from support.fits import attempt


@pytest.mark.slow
def test_random_valid_configurations_are_fitted_without_an_error_or_a_warning(repetitions):
    results = [attempt(seed) for seed in range(repetitions(2000, 150))]
    assert [told for result, told in results if result == "broken"] == []
    refused = [told for result, told in results if result == "refused"]
    assert len(refused) <= len(results) / 50, refused
