"""A report by hand, with texts that would steer a page if it let them."""

from copy import deepcopy

HOSTILE = "<script>alert('x')</script> \x1b[2J \u202etxt | **b** [a](b)\nline"

SAMPLE = {
    "schema": "privacy_report",
    "version": "1.0",
    "made": {"skdp": "0.1", "scikit-learn": "1.9.1", "python": "3.11.7", "date": "2026-11-23"},
    "subject": {
        "kind": "pipeline",
        "type": "DPPipeline",
        "name": "",
        "steps": [
            {"name": "scale", "type": "DPQuantileScaler", "role": "private"},
            {"name": "model", "type": "DPLogisticRegression", "role": "private"},
        ],
    },
    "headline": "This model tells little about any one record: epsilon 1, delta 1e-06.",
    "guarantee": {
        "unit": "record",
        "adjacency": "replace-one",
        "epsilon": 1.0,
        "delta": 1e-6,
        "definition": "approximate differential privacy",
        "sentence": "(epsilon=1, delta=1e-06)-differential privacy when replacing one record.",
        "mechanism": "gradient descent",
        "source": "Balle and Wang 2018, theorem 8",
        "caveats": ["random_state: noise can be recomputed"],
        "curve": [{"delta": 1e-9, "epsilon": 1.31234}, {"delta": 0.0, "epsilon": None}],
        "conversions": [{"name": "mu of Gaussian differential privacy", "value": 0.23}],
    },
    "attacker": {
        "sentence": "What the release tells about one record is bounded, whatever else is known.",
        "posteriors": [
            {"prior": p, "posterior": q, "except_with_probability": 1e-5, "guess_right": g}
            for p, q, g in ((0.01, 0.0268, 0.99), (0.1, 0.2321, 0.9), (0.5, 0.7311, 0.5498))
        ],
        "test": {"level": 0.05, "power": 0.081},
    },
    "public": [
        {
            "what": "x_norm",
            "value": "1.0",
            "declared_by": "default",
            "note": "longer rows are scaled",
        },
        {"what": "classes", "value": "'no', 'yes'", "declared_by": "data", "note": ""},
    ],
    "releases": [
        {
            "step": "scale",
            "purpose": "quantiles of 6 columns",
            "times": 12,
            "noise": "exponential mechanism",
            "scale": None,
            "sensitivity": 1.0,
            "size": 1,
            "guarantee": "0.02-differential privacy (pure)",
            "share": 0.2,
            "theorem": "McSherry and Talwar 2007, theorem 6",
        },
        {
            "step": "model",
            "purpose": "sums of gradients",
            "times": 40,
            "noise": "Gaussian on a lattice",
            "scale": 123.4,
            "sensitivity": 2.0,
            "size": 1400,
            "guarantee": "0.0162-Gaussian differential privacy",
            "share": 0.8,
            "theorem": "Dong, Roth and Su 2022, corollary 2",
        },
    ],
    "accounting": {
        "method": "exact composition of Gaussian losses",
        "text": "The squares of mu add up over all releases.",
        "total": "0.23-Gaussian differential privacy",
        "slack": 0.0,
    },
    "ledger": {
        "name": "budget.db",
        "unit": "record",
        "adjacency": "replace-one",
        "budget": "epsilon=2, delta=1e-05",
        "spent": "epsilon=1.1 at delta=1e-05",
        "sure": [
            {"of": "spent", "posterior": 0.751, "except_with_probability": 0.0},
            {"of": "budget", "posterior": 0.8809, "except_with_probability": 1e-4},
        ],
        "left": [{"delta": 0.0, "epsilon": 0.8}, {"delta": 1e-6, "epsilon": 1.0}],
        "by_label": [{"label": "first model", "charges": 2, "guarantee": "epsilon=1.1"}],
        "by_day": [{"day": "2026-11-23", "charges": 2, "guarantee": "epsilon=1.1"}],
    },
    "floating_point": ["Noise lives on a lattice: the low bits of a float tell nothing."],
    "randomness": ["Noise came from the operating system."],
    "not_covered": [{"what": "timing", "why": "How long a fit takes may depend on the rows."}],
    "nist_sp_800_226": [
        {"layer": "unit and definition", "status": "covered", "text": "One record."},
        {"layer": "data collection and access", "status": "not covered", "text": "Not known."},
    ],
    "glossary": [{"term": "epsilon", "meaning": "How much a release can tell of one record."}],
}


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
