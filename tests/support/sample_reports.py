"""A report by hand, with texts that would steer a page if it let them."""

import json
from copy import deepcopy
from pathlib import Path

HOSTILE = "<script>alert('x')</script> \x1b[2J \u202etxt | **b** [a](b)\nline"

SAMPLE = json.loads(Path(__file__).with_name("sample_report.json").read_text())


def sample(**changes):
    """The report, with some of its parts changed."""
    return deepcopy(SAMPLE) | changes


def hostile(data):
    """The same report with every text replaced by one that is out for mischief."""
    if isinstance(data, dict):
        return {key: hostile(value) for key, value in data.items()}
    if isinstance(data, list):
        return [hostile(item) for item in data]
    return HOSTILE if isinstance(data, str) else data
