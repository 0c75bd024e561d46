"""A privacy report for data protection officers: one page, with details below it."""

import inspect
import json
import math
import os
import platform
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.utils.validation import check_is_fitted

from skdp import __version__, privacy
from skdp._validation import is_auto, short_repr
from skdp.exceptions import NoConversionError
from skdp.inspection import _report_page as page
from skdp.inspection import _report_texts as texts
from skdp.inspection._additive_effects import flat_steps
from skdp.inspection._coefficient_summary import coefficient_summary
from skdp.learner import StatedGuarantee
from skdp.linear_model._summary import CONFIDENCE
from skdp.pipeline import guarantee_of
from skdp.pipeline._wrappers import WRAPPERS, is_wrapper
from skdp.preprocessing._column_kinds import ColumnsFromRows
from skdp.privacy import Guarantee

_NORMS = "Hardt and Talwar, STOC 2010, section 4"
_COSINES = f"{_NORMS}; Awan and Slavkovic, JASA 2021"
# What each noise is, and its theorem.
NOISES = {
    "laplace": (
        "Laplace noise in each number, in whole steps of a public size",
        "Dwork, McSherry, Nissim and Smith, TCC 2006, proposition 1",
    ),
    "k_norm": (
        "K-norm noise (density falls with exp(-length / scale)), in whole public steps",
        _NORMS,
    ),
    "k_norm_pairs": (
        "K-norm noise (density falls with exp(-length / scale) of the longest pair of a cosine "
        "and a sine), in whole public steps",
        _COSINES,
    ),
    "k_norm_rows": ("K-norm noise in the row of each class, in whole public steps", _COSINES),
    "gaussian": (
        "Gaussian noise in each number, in whole steps of a public size",
        "Balle and Wang, ICML 2018, theorem 8",
    ),
    "gaussian_shares": (
        "Gaussian noise in each number, of which each node draws a share, in whole steps",
        "Kairouz, Liu and Steinke, ICML 2021, theorem 1",
    ),
    "laplace_shares": (
        "discrete Laplace noise in each number, of which each node draws a share, in whole steps",
        "Dwork, McSherry, Nissim and Smith, TCC 2006, proposition 1",
    ),
    "threshold": (
        "Gaussian noise on counts, of which names above a public threshold leave",
        "Korolova, Kenthapadi, Mishra and Ntoulas, WWW 2009",
    ),
    "exponential": (
        "chosen at random, favouring better candidates (exponential mechanism)",
        "McSherry and Talwar, FOCS 2007; Dong, Durfee and Rogers, ICML 2020",
    ),
}
_OF_EACH = "those of the mechanisms that these are made by"
_ROW = dict.fromkeys(
    ("step", "purpose", "times", "noise", "scale", "sensitivity", "size", "guarantee", "share")
)


def releases_of(facts, guarantee, step=None):
    """Rows of a report for the account of a fit; one row for a fit that has none.

    Parameters
    ----------
    facts : tuple of Fact

    guarantee : Guarantee
        Of the whole fit.

    step : str, default=None

    Returns
    -------
    list of (dict, Guarantee or None)
        Each with the guarantee of one release.
    """
    rows = [_row(fact, guarantee, step) for fact in facts]
    return rows or [stated("all that was released", guarantee, step)]


def stated(purpose, guarantee, step=None, share=None):
    """Row for releases of which no more is known than what they satisfy together."""
    is_known = isinstance(guarantee, Guarantee)
    row = _ROW | dict(
        step=step,
        purpose=purpose,
        noise="as its guarantee states",
        guarantee=guarantee._claim() if is_known else str(guarantee),
        share=share,
        theorem=(guarantee.source if is_known else "") or _OF_EACH,
    )
    return row, None


def _row(fact, guarantee, step):
    one = fact.guarantee
    if isinstance(one, float):
        one = privacy.BoundedRangeDP((one,), adjacency=guarantee.adjacency)
    noise, theorem = NOISES.get(fact.noise, (fact.noise, _OF_EACH))
    scale, ends = _one_number(fact.scales)
    row = _ROW | dict(
        step=step,
        purpose=fact.purpose or "a noisy answer",
        times=fact.times,
        noise=f"{noise}; its scale goes from {ends}" if ends else noise,
        scale=scale,
        sensitivity=_one_number(fact.sensitivities)[0],
        size=fact.size,
        guarantee="part of the whole" if one is None else _claim_of_one(one),
        theorem=getattr(one, "source", "") or theorem,
    )
    return row, one


def _one_number(bounds):
    """A number that was always the same, or the largest of several with a text of both ends."""
    if bounds is None:
        return None, ""
    low, high = bounds
    if high - low <= 1e-6 * abs(high):
        return high, ""
    return None, f"{low:.3g} to {high:.3g}"


def _claim_of_one(guarantee):
    is_range = isinstance(guarantee, privacy.BoundedRangeDP) and guarantee.then is None
    if is_range and len(guarantee.epsilons) == 1:
        (epsilon,) = guarantee.epsilons
        return f"{epsilon:.4g}-differential privacy; so is the range of its log-odds"
    return guarantee._claim()


def with_shares(rows, *, is_pure):
    """Rows with their shares of the whole: of epsilon, or of mu^2.

    Of a pure release ``mu^2`` is ``epsilon^2``, and a selection of range ``epsilon`` has a quarter
    of that: what they cost among many others. Where something has no size of its own, nothing has
    a share.

    Parameters
    ----------
    rows : list of (dict, Guarantee or None)

    is_pure : bool

    Returns
    -------
    list of dict
    """
    sizes, rows = [_size(one, is_pure) for _, one in rows], [row for row, _ in rows]
    if None not in sizes and all(row["share"] is None for row in rows):
        weights = [size * row["times"] for size, row in zip(sizes, rows, strict=True)]
        total = math.fsum(weights)
        for weight, row in zip(weights, rows, strict=True):
            row["share"] = weight / total if total > 0.0 else None
    return rows


def _size(guarantee, is_pure):
    if guarantee is None:
        return None
    if isinstance(guarantee, privacy.BoundedRangeDP):
        epsilon = math.fsum(guarantee.epsilons)
        return epsilon if is_pure else epsilon**2 / 4.0
    epsilon = guarantee.epsilon_at(0.0)
    if math.isfinite(epsilon) and not isinstance(guarantee, privacy.GaussianDP):
        return epsilon if is_pure else epsilon**2
    behind = guarantee.refined if isinstance(guarantee, privacy.ApproxDP) else guarantee
    return None if is_pure or not isinstance(behind, privacy.GaussianDP) else behind.mu**2


def _kind_of(fitted):
    """What a report calls it: what its class says by ``_report_kind``."""
    if isinstance(fitted, Pipeline | ColumnTransformer | FeatureUnion):
        return "pipeline"
    if hasattr(fitted, "cv_results_") and not isinstance(fitted, StatedGuarantee):
        return "search"
    return getattr(type(fitted), "_report_kind", "estimator")


@dataclass(frozen=True)
class Subject:
    """What a report is about.

    Parameters
    ----------
    fitted : object
        As it was given, without a `~sklearn.frozen.FrozenEstimator` around it.

    kind : str

    guarantee : Guarantee

    steps : list of (str, object, str)
        Path, estimator and role.
    """

    fitted: Any
    kind: str
    guarantee: Guarantee
    steps: list[tuple[str, Any, str]] = field(default_factory=list)

    @property
    def holds_private_numbers(self):
        """Whether it, or a step, holds private numbers and has to stay with the curator."""
        steps = [step for _, step, _ in self.steps]
        return any(getattr(one, "_holds_private_numbers", False) for one in [self.fitted, *steps])

    @property
    def third_party(self):
        """Types of what has learned and is not of this package, of which nothing is known here."""
        return sorted({_type_of(one) for one in _learners(self.fitted) if not is_ours(one)})

    @property
    def others(self):
        """What is said of them; empty where there are none."""
        return texts.not_of_skdp(self.third_party)

    def as_dict(self):
        """Part of the report."""
        return {
            "kind": self.kind,
            "name": "",
            "steps": [
                {"name": path, "type": _type_of(step), "role": role, "does": _does(step)}
                for path, step, role in self.steps
            ],
            "type": _type_of(self.fitted),
            "does": _does(self.fitted),
            "third_party": self.third_party,
        }


def is_ours(step):
    """Whether it is of a class of this package itself: what a subclass does nobody here knows."""
    return type(step).__module__.partition(".")[0] == "skdp"


def _thawed(step):
    """What is frozen, and anything else as it is."""
    while type(step) is FrozenEstimator:
        step = step.estimator
    return step


def _learners(fitted):
    """Yield what states a guarantee of its own, wherever it stands."""
    fitted = _thawed(fitted)
    own = getattr(type(fitted), "_report_kind", "")
    if isinstance(fitted, StatedGuarantee) or own == "evaluation":
        yield fitted
    parts = [part for _, part in _parts(fitted) or ()]
    if hasattr(fitted, "best_params_") or own == "search":
        parts += [getattr(fitted, "best_estimator_", None), fitted.estimator]
    for part in parts:
        yield from _learners(part)


def subject_of(fitted, public=()):
    """Find out what a report is about.

    Parameters
    ----------
    fitted : estimator or Evaluation

    public : tuple of str, default=()
        See `~skdp.pipeline.guarantee_of`.

    Returns
    -------
    Subject
    """
    fitted = _thawed(fitted)
    kind = _kind_of(fitted)
    if kind == "evaluation":
        return Subject(fitted, kind, fitted.guarantee_)
    if isinstance(fitted, type) or not hasattr(fitted, "get_params"):
        raise ValueError(
            f"fitted must be a fitted estimator or an Evaluation; got {short_repr(fitted)}."
        )
    if isinstance(fitted, StatedGuarantee) and hasattr(fitted, "guarantee_"):
        guarantee = fitted.guarantee_
    else:
        check_is_fitted(fitted)
        guarantee = guarantee_of(fitted, public=public)
    return Subject(fitted, kind, guarantee, list(_steps(fitted, public)))


def _type_of(step):
    return step if isinstance(step, str) else type(step).__name__


def _does(step):
    """What a step is for: the first line of what its class says of itself."""
    if step is None or isinstance(step, str):
        return ""
    return (inspect.getdoc(type(_thawed(step))) or "").partition("\n")[0].replace("`", "").strip()


def leaves_of(fitted, public=(), path=""):
    """Yield (path, estimator, role) of what stands in a fitted estimator, itself if alone."""
    parts = _parts(fitted)
    if parts is None:
        yield path, fitted, _role(fitted, path, public)
        return
    if is_wrapper(fitted):
        yield path, fitted, "public"
    for name, part in parts:
        yield from leaves_of(part, public, f"{path}__{name}" if path else name)


def _steps(fitted, public):
    """Steps as the report lists them: none of what stands alone."""
    if hasattr(fitted, "best_estimator_"):
        if fitted.best_estimator_ is not None:
            yield from leaves_of(fitted.best_estimator_, public, "best_estimator_")
    elif _parts(fitted) is not None:
        yield from leaves_of(fitted, tuple(getattr(fitted, "public", public)))


def _parts(step):
    """Names and parts of a container, None of what is none."""
    if isinstance(step, ColumnTransformer):
        parts = getattr(step, "transformers_", step.transformers)
        return [(name, part) for name, part, _ in parts]
    if isinstance(step, FeatureUnion):
        return step.transformer_list
    if _kind_of(step) == "pipeline":
        return getattr(step, "steps_", step.steps)
    if is_wrapper(step):
        known = WRAPPERS[type(step)]
        return [(known.parameter, known.inner(step, fitted=True))]
    return None


def _role(step, path, public):
    if step is None or isinstance(step, str):
        return "passthrough"
    if path in public:
        return "public"
    if isinstance(step, FrozenEstimator):
        return "frozen"
    return "private" if isinstance(step, StatedGuarantee) else "public"


def ledger_of(fitted, ledger):
    """What a ledger holds: the one that is given, or that of the estimator if it can be opened.

    Parameters
    ----------
    fitted : object

    ledger : BudgetLedger or path, default=None

    Returns
    -------
    dict or None
    """
    if ledger is not None:
        return _balance(ledger)
    with suppress(OSError, ValueError, RuntimeError):
        return _balance(getattr(fitted, "ledger", None))


def _balance(ledger):
    if ledger is None:
        return None
    if isinstance(ledger, str | os.PathLike):
        ledger = privacy.BudgetLedger(ledger)
    if not isinstance(ledger, privacy.BudgetLedger):
        raise ValueError(
            f"ledger must be a BudgetLedger, its path or None; got {short_repr(ledger)}."
        )
    told = ledger._summary()
    return {
        "name": Path(ledger.path).name if ledger.path else "in memory, not in a file",
        "unit": told.spent.unit,
        "adjacency": told.spent.adjacency,
        "budget": _point(told.budget, at_length=True),
        "spent": _point(told.spent, at_length=True),
        "left": [{"delta": one.delta, "epsilon": one.epsilon} for one in told.left],
        "by_label": [_line("label", one) for one in told.by_label],
        "by_day": [_line("day", one) for one in told.by_day],
        "means": [
            {"what": "spent", **texts.how_sure(told.spent)},
            {"what": "budget", **texts.how_sure(told.budget)},
        ],
    }


def _line(name, line):
    return {name: line.name, "charges": line.charges, "guarantee": _point(line.guarantee)}


def _point(guarantee, at_length=False):
    told, delta = f"epsilon={texts.rounded_up(guarantee.epsilon, 6)}", guarantee.delta
    if not delta:
        return told
    return f"{told} at delta={delta:.6g}" + (f" ({texts.one_in(delta)})" if at_length else "")


# What stands elsewhere in a report, or says nothing about the data.
_ELSEWHERE = {
    *("epsilon", "delta", "adjacency", "random_state", "ledger", "n_jobs", "verbose", "engine"),
    *("steps", "estimator", "regressor", "transformers", "transformer_list", "param_grid"),
    *("memory", "param_distributions", "transformer_weights", "copy", "guarantee", "coef"),
    "features",
}
# What bounds a contribution, or could give somebody away: told also where it is the default.
_BOUNDS = {
    *("x_norm", "x_l1_norm", "y_bounds", "y_search_range", "bounds", "categories", "horizon"),
    *("classes", "class_weight", "topology", "contributions_per_user", "max_calls_per_user"),
    "user_calls",
    *("search_range", "row_key", "n_queries", "public", "feature_names"),
}
_NOTES = {
    "x_norm": "largest row norm (root of the sum of squares); a longer row is scaled down",
    "search_range": "bounds of the columns are searched within this range; values beyond it are "
    "clipped to its ends",
    "classes": "other labels are refused",
    "topology": "which node sends to which",
    "y_bounds": "targets beyond them are clipped",
    "bounds": "values beyond them are clipped",
    "horizon": "the largest number of contributions to the stream",
    "contributions_per_user": "number of contributions of a user; cannot be checked",
    "max_calls_per_user": "number of calls in which a user counts",
    "user_calls": "with 'counted', further contributions of a user are left out; with 'stated', "
    "this is not checked",
    "public": "steps for which the caller takes responsibility",
}


def public_of(subject):
    """Entries of a report, in the order of the steps.

    Parameters
    ----------
    subject : Subject

    Returns
    -------
    list of dict
    """
    guarantee, found = subject.guarantee, []
    if guarantee.adjacency == "replace-one" and subject.kind != "local":
        note = (
            f"the number is not protected; the promise is about the values in a {guarantee.unit}"
        )
        value = "public, and not read by this report"
        found.append(_entry(f"number of {guarantee.unit}s", value, "library", note))
    found += _of_the_budget("", subject.fitted)
    if not isinstance(subject.fitted, StatedGuarantee):  # steps have budgets of their own
        for path, step, _ in subject.steps:
            step = _thawed(step)
            if isinstance(step, StatedGuarantee):  # others may mean something else by epsilon
                found += _of_the_budget(path, step)
    found += _of_the_data(subject.fitted)
    found += _of_kinds(getattr(subject.fitted, "best_estimator_", subject.fitted))
    alone = [] if subject.kind == "evaluation" else [("", subject.fitted)]
    chosen = getattr(subject.fitted, "best_params_", {})
    for path, step in alone + [(path, step) for path, step, _ in subject.steps]:
        step = _thawed(step) if path else step
        found += _of_parameters(path, step, {name.split("__")[-1] for name in chosen})
    found += [
        _entry("declared public", caveat, "caller", "no guarantee covers what it reveals")
        for caveat in guarantee.caveats
        if "public" in caveat
    ]
    return found


_SIZES = {
    "epsilon": "how much may be learned of one unit, at most",
    "max_epsilon": "how much may be learned of one unit, at most",
    "delta": "probability with which more may be learned",
    "mi_budget": "how much may be learned of one unit on average, in nats",
}


def _entry(what, value, declared_by, note="", technical=False):
    told = {"what": what, "value": value, "declared_by": declared_by, "note": note}
    return told | ({"technical": True} if technical else {})


def _of_the_budget(path, fitted):
    """Who chose how much may be told."""
    prefix = f"{path}: " if path else ""
    defaults = _defaults(type(fitted))
    for name in _SIZES:
        if name in defaults and hasattr(fitted, name):
            value = getattr(fitted, name)
            whose = "default" if _same(value, defaults[name]) else "caller"
            whose = "library" if is_auto(value) else whose
            text = _value(value)
            if name == "delta" and isinstance(value, float) and value > 0.0:
                text = f"{text} ({texts.one_in(value)})"
            yield _entry(prefix + name, text, whose, _SIZES[name])


def _of_the_data(fitted):
    """What is read off the data, and treated as public."""
    n_columns = getattr(fitted, "n_features_in_", None)
    if n_columns is not None:
        names = getattr(fitted, "feature_names_in_", None)
        value = f"{n_columns}, without names"
        if names is not None:
            value = f"{n_columns}: {_short(', '.join(map(str, names)))}"
        note = "their number, names and order"
        yield _entry("columns", value, "data", note)
    classes = getattr(fitted, "classes_", None)
    if classes is None:
        return
    is_declared = texts.declares_classes(fitted)
    labels = _short(", ".join(map(str, np.asarray(classes, dtype=object).tolist())))
    note = "" if is_declared else "those that occur"
    if is_declared is False:
        note += "; classes= would declare them"
    yield _entry("labels", labels, "caller" if is_declared else "data", note)


def _of_kinds(fitted, path=""):
    """Which columns the parts of a ColumnTransformer take, and who said so."""
    fitted = _thawed(fitted)
    for name, part in _parts(fitted) or ():
        yield from _of_kinds(part, f"{path}__{name}" if path else name)
    if not isinstance(fitted, ColumnTransformer):
        return
    told: dict = {}
    for name, _, columns in fitted.transformers:
        columns = [columns] if isinstance(columns, str) else columns
        if isinstance(columns, list | tuple) and columns:  # others do not say which
            whose = "data" if isinstance(columns, ColumnsFromRows) else "caller"
            told.setdefault(whose, []).append(f"{name}: {', '.join(map(str, columns))}")
    prefix = f"{path}: " if path else ""
    for whose, parts in told.items():
        note = "which columns are of which kind"
        note += ", by their dtypes" if whose == "data" else ""
        yield _entry(f"{prefix}kinds of columns", _short("; ".join(parts)), whose, note)


def _of_parameters(path, step, chosen):
    if step is None or isinstance(step, str):
        return
    defaults, prefix = _defaults(type(step)), f"{path}: " if path else ""
    notes, rules, rest = _NOTES if is_ours(step) else {}, [], []
    for name, value in _parameters(step).items():
        is_default = name in defaults and _same(value, defaults[name])
        whose, text = "default" if is_default else "caller", _value(value)
        if name == "classes" and (value is None or hasattr(step, "classes_")):
            continue  # the labels say so
        if path and name in chosen:
            note = "chosen by the search within its budget, from the candidates of the caller"
            yield _entry(prefix + name, text, "library", note)
        elif is_auto(value) and not is_ours(step):
            note = f"this report does not know how {type(step).__name__} uses it"
            yield _entry(prefix + name, text, whose, note)
        elif is_auto(value):
            rules.append(name)
        elif not is_default or (name in _BOUNDS and value not in (None, ())):
            yield _entry(prefix + name, text, whose, notes.get(name, ""))
        else:
            rest.append(f"{name}={text}")
    if rules:
        note = "computed by rules from public and released numbers"
        yield _entry(f"{prefix}rules", _short(", ".join(rules)), "library", note, True)
    if rest:
        value, note = _short(", ".join(rest), 300), "settings of the method"
        yield _entry(f"{prefix}other parameters", value, "default", note, True)


def _parameters(step):
    if hasattr(step, "get_params"):
        given = step.get_params(deep=False)
    else:
        names = _defaults(type(step))
        given = {name: getattr(step, name) for name in names if hasattr(step, name)}
    return {name: value for name, value in given.items() if name not in _ELSEWHERE}


def _defaults(kind):
    try:
        parameters = inspect.signature(kind).parameters.values()
    except (TypeError, ValueError):
        return {}
    return {one.name: one.default for one in parameters if one.default is not one.empty}


def _same(value, default):
    try:
        return bool(value is default or (type(value) is type(default) and value == default))
    except (TypeError, ValueError):
        return False


def _value(value):
    """Text of a parameter, in which functions have their names and no addresses."""
    if callable(value):
        return getattr(value, "__qualname__", type(value).__name__)
    return _short(short_repr(value))


def _short(text, most=120):
    return text if len(text) <= most else f"{text[: most - 3]}..."


_DELTAS = (1e-9, 1e-6, 1e-3)


def report_of(subject, ledger, about):
    """Data of a report.

    Parameters
    ----------
    subject : Subject

    ledger : BudgetLedger or path, default=None

    about : dict
        What the caller says of the data, of their use and of whoever answers for it.

    Returns
    -------
    dict
    """
    guarantee = subject.guarantee
    delta = texts.delta_of(guarantee)
    epsilon = texts.finite(guarantee.epsilon_at(delta))
    attacker = texts.attacker_of(subject)
    releases = _releases(subject)
    names_theorems = all(one["theorem"] != _OF_EACH for one in releases)
    layers = texts.layers(subject, epsilon, names_theorems=names_theorems)
    data = {
        "schema": "privacy_report",
        "version": "1.2",
        "made": {
            "skdp": __version__,
            "scikit-learn": sklearn.__version__,
            "python": platform.python_version(),
            "date": f"{datetime.now(UTC):%Y-%m-%d}",
        },
        "subject": subject.as_dict(),
        "stated": about,
        "headline": texts.headline(subject, epsilon, delta, attacker),
        "guarantee": _guarantee(guarantee, epsilon, delta),
        "attacker": attacker,
        "yardstick": texts.yardstick(),
        "public": public_of(subject),
        "releases": releases,
        "accounting": _accounting(subject),
        "ledger": ledger_of(subject.fitted, ledger),
        "floating_point": list(texts.floating_point(subject, _noises(subject))),
        "randomness": list(texts.randomness(subject)),
        "not_covered": _named(("what", "why"), texts.not_covered(subject)),
        "nist_sp_800_226": _named(("layer", "status", "text"), layers),
        "glossary": _named(("term", "meaning"), texts.GLOSSARY.items()),
    }
    learners = [subject.fitted, *(step for _, step in _parts(subject.fitted) or ())]
    own = [one.report_notes() for one in learners if hasattr(one, "report_notes")]
    notes = [str(note) for told in own for note in told]
    more = {"notes": notes, "coefficients": _coefficients(subject.fitted)}
    return data | {name: told for name, told in more.items() if told}


def _coefficients(fitted):
    """How sure each coefficient of a model is; nothing of models without intervals."""
    if not hasattr(flat_steps(fitted)[-1], "summary_"):
        return {}
    try:
        summary = coefficient_summary(fitted)
    except ValueError:  # steps that it does not know
        summary = flat_steps(fitted)[-1].summary_
    ends = summary.conf_int().tolist()
    numbers = zip(
        summary.names,
        summary.estimates.tolist(),
        summary.standard_errors.tolist(),
        ends,
        summary.p_values.tolist(),
        strict=True,
    )
    rows = [
        {"name": name, "estimate": estimate, "standard_error": error}
        | ({} if math.isnan(low) else {"from": low, "to": high, "p": p})
        for name, estimate, error, (low, high), p in numbers
    ]
    return {"level": CONFIDENCE, "rows": rows, "remarks": list(summary.remarks)}


def _named(names, rows):
    return [dict(zip(names, row, strict=True)) for row in rows]


def _guarantee(guarantee, epsilon, delta):
    deltas = sorted({*_DELTAS, delta}, reverse=True)
    return {
        "unit": guarantee.unit,
        "adjacency": guarantee.adjacency,
        "epsilon": epsilon,
        "delta": delta,
        "definition": guarantee._definition,
        "sentence": str(guarantee),
        "mechanism": guarantee.mechanism,
        "source": guarantee.source,
        "caveats": list(guarantee.caveats),
        "curve": [{"delta": d, "epsilon": texts.finite(guarantee.epsilon_at(d))} for d in deltas],
        "conversions": list(_conversions(guarantee)),
    }


def _conversions(guarantee):
    """The same promise in other currencies."""
    if isinstance(guarantee, privacy.MutualInformationPrivacy):
        yield {"name": "mutual information in bits", "value": guarantee.bits}
    with suppress(NoConversionError):
        yield {"name": "mu of Gaussian differential privacy", "value": guarantee.to_gdp().mu}
    with suppress(NoConversionError):
        rho = guarantee.to_zcdp().rho
        yield {"name": "rho of zero-concentrated differential privacy", "value": rho}


def _facts_of(step):
    """Account of a step; what is frozen was released, too."""
    return getattr(getattr(step, "estimator", step), "_facts", ())


def _noises(subject):
    """Kinds of the noise that accounts name."""
    steps = [getattr(subject.fitted, "_facts", ())]
    steps += [_facts_of(step) for _, step, _ in subject.steps]
    return {fact.noise for facts in steps for fact in facts}


def _releases(subject):
    is_pure = math.isfinite(subject.guarantee.epsilon_at(0.0))
    if subject.kind == "search":
        return _releases_of_search(subject, is_pure)
    rows = []
    leaves = leaves_of(subject.fitted) if subject.steps else [("", subject.fitted, "")]
    for path, step, _ in leaves:
        step = getattr(step, "estimator", step)  # what is frozen was released, too
        guarantee = getattr(step, "guarantee_", subject.guarantee if not path else None)
        if guarantee is not None and not (path and guarantee.delta_at(0.0) == 0.0):
            rows += releases_of(getattr(step, "_facts", ()), guarantee, path or None)
    if not rows and subject.guarantee.delta_at(0.0) > 0.0:
        rows = [stated("all that was released", subject.guarantee)]
    return with_shares(rows, is_pure=is_pure)


def _releases_of_search(subject, is_pure):
    """By stages; of the choice, the score and the last fit there are accounts."""
    search, guarantee = subject.fitted, subject.guarantee
    own = getattr(search, "_facts", ())
    last: list = []
    for path, step, _ in subject.steps:
        facts = _facts_of(step)
        last += releases_of(facts, guarantee, path) if facts else []
    if hasattr(search, "stages_"):
        before = search.stages_[:-1]
        points = ", ".join(f"epsilon {stage.epsilon:.4g}" for stage in before)
        rows = [stated("fits of the stages before the last", points)] if before else []
        scores = releases_of(own, guarantee, "scores")
        return [row for row, _ in [*rows, *last, *scores]]
    stages = getattr(search, "budget_", None)
    if stages is None:
        return [stated("all fits of the search", guarantee)[0], *(row for row, _ in last)]
    choices = [one for one in own if one.noise == "exponential"]
    scores = [one for one in own if one.noise != "exponential"]
    accounts = {
        "choice": releases_of(choices, guarantee),
        "score": releases_of(scores, guarantee),
        "refit": last,
    }
    found = []
    for name, share, text in stages:
        known = accounts.get(name)
        if not known or known[0][0]["times"] is None:
            found.append(stated(_STAGES.get(name, name), text, name, _part(share))[0])
            continue
        for row in with_shares(known, is_pure=is_pure):
            row["step"] = row["step"] or name
            row["share"] = None if row["share"] is None else _part(row["share"] * share)
            found.append(row)
    return found


_STAGES = {
    "fits": "all fits that were compared",
    "fit of a run": "fit of one run; the number of runs is secret",
    "score of a run": "score of one run, on other rows than its fit",
    "choice": "which candidate has the smallest loss",
    "score": "score of the chosen candidate",
    "refit": "last fit, on all rows",
}


def _part(share):
    return min(max(float(share), 0.0), 1.0)


def _accounting(subject):
    guarantee = subject.guarantee
    is_point = isinstance(guarantee, privacy.ApproxDP)
    behind = guarantee.refined if is_point else guarantee
    slack = None
    if subject.others:
        text = f"{subject.others}: how its losses add up was not checked."
        total = str(guarantee)
        return {"method": "not known", "text": text, "total": total, "slack": slack}
    of_few = _OF_FEW.get(subject.kind, "")
    if any(noise.endswith("_shares") for noise in _noises(subject)):
        of_few = "Each answer is a sum over all nodes, and the data of one {unit} are in all of "
        "them."
    if behind is None and guarantee.delta > 0.0 and subject.kind == "network":
        method = "Gaussian noise in shares: one proof for all releases"
        text = (
            "The mu of Gaussian releases adds up in squares. Rounded shares differ slightly from "
            "Gaussian noise; epsilon and delta include this difference."
        )
    elif behind is None:
        method = "one release, or releases whose epsilons add up"
        text = "Epsilon and delta are those of the proof. The epsilons of several releases add up."
    else:
        method = behind._accounting
        claimed = "The proof is stronger than epsilon and delta" if is_point else "The promise is"
        text = (
            f"{claimed}: {_within(behind._claim())}. The losses of several answers are composed "
            "from their full privacy profiles and rounded up."
        )
        if is_point:
            slack = texts.finite(max(0.0, guarantee.epsilon - behind.epsilon_at(guarantee.delta)))
    text = f"{text} {of_few.format(unit=guarantee.unit)}".strip()
    return {"method": method, "text": text, "total": str(guarantee), "slack": slack}


def _within(sentence):
    """A sentence that stands within another."""
    begins = ("A ", "At ", "The ")
    within = sentence[0].lower() + sentence[1:] if sentence.startswith(begins) else sentence
    return within.replace(", followed by A ", ", followed by a ")


# Where one unit moves few of the releases that are listed.
_OF_FEW = {
    "network": "The counts are for all nodes of this process. The data of one {unit} are in the "
    "messages of its own node.",
    "stream": "The counts are for the whole stream. The proof counts those that depend on one "
    "{unit}.",
    "local": "The counts are for all users who sent something. The noise in each message protects "
    "its sender.",
    "search": "Shares of stages that read different rows do not add up: the most expensive of "
    "them counts.",
}


@dataclass(frozen=True, eq=False, repr=False)
class PrivacyReport:
    """Privacy report of a fitted model for data protection officers; see `privacy_report`.

    Privacy: made of public and of released numbers only, so that it may be stored, mailed and
    published.

    Parameters
    ----------
    data : dict
        The report as plain values, by the schema that `report_schema` returns.
    """

    data: dict[str, Any]

    def to_text(self) -> str:
        """Return the report as plain text, in lines of at most 80 characters.

        Returns
        -------
        str
        """
        return page.as_text(self.data)

    def to_markdown(self) -> str:
        """Return the report as Markdown.

        Returns
        -------
        str
        """
        return page.as_markdown(self.data)

    def to_html(self) -> str:
        """Return the report as an HTML page that stands alone, without scripts.

        Returns
        -------
        str
        """
        return page.as_html(self.data)

    def to_json(self) -> str:
        """Return the report as JSON, by the schema that `report_schema` returns.

        Returns
        -------
        str
        """
        return json.dumps(self.data, indent=2, ensure_ascii=False, allow_nan=False) + "\n"

    def save(self, path) -> None:
        """Write the report to a file, in the form that the name asks for.

        Parameters
        ----------
        path : str or path-like
            Ends with ``.txt``, ``.md``, ``.html`` or ``.json``.
        """
        path = Path(path)
        forms = {
            ".txt": self.to_text,
            ".md": self.to_markdown,
            ".html": self.to_html,
            ".json": self.to_json,
        }
        if path.suffix not in forms:
            raise ValueError(
                f"path must end with {', '.join(forms)}; got {short_repr(str(path))}."
            )
        path.write_text(forms[path.suffix](), encoding="utf-8")

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        return f"PrivacyReport of {self.data['subject']['type']}"

    def _repr_html_(self) -> str:
        return page.as_fragment(self.data)


def privacy_report(
    fitted, ledger=None, *, public=(), dataset=None, purpose=None, responsible=None
):
    """Report the privacy guarantee of a fitted model, or of scores: one page, with details.

    For data protection officers and others who are responsible for the data. The first page says
    what the result is, who is protected, how confident an attacker can become, the cost, and who
    is responsible. Details follow: what is treated as public and who declared it so, each release
    with its noise, theorem and share of the budget, what the ledger holds, what is not covered,
    and a line for each layer of the evaluation pyramid of NIST SP 800-226.

    Privacy: made of public and of released numbers only. No row is read, and it costs nothing. Of
    a class outside this package, a subclass among them, neither is known, and the report says so.

    Parameters
    ----------
    fitted : estimator or Evaluation
        Fitted: an estimator of this package, or a pipeline, column transformer or search of
        scikit-learn's own around such; or what `~skdp.metrics.dp_evaluate` returns.

    ledger : BudgetLedger or path, default=None
        Ledger of the data set, whose balance the report states. None takes the ledger of
        ``fitted``, if it has one that can be opened.

    public : tuple of str, default=()
        Steps of a pipeline of scikit-learn's own for which the caller takes responsibility, see
        `~skdp.pipeline.guarantee_of`.

    dataset, purpose, responsible : str, default=None
        Which data these are, what the result is for, and who answers for it: printed as given, and
        not checked. None prints "not stated", with room for the name of who is ``responsible``.

    Returns
    -------
    PrivacyReport

    Raises
    ------
    ValueError
        If something is not covered by a guarantee; the message names it.

    See Also
    --------
    skdp.pipeline.guarantee_of : The guarantee alone.

    References
    ----------
    Near, Darais, Lefkovitz and Howarth, "Guidelines for evaluating differential privacy
    guarantees", NIST SP 800-226, 2025. Kairouz, Oh and Viswanath, "The composition theorem for
    differential privacy", ICML 2015, for the power of tests.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPLogisticRegression
    >>> from skdp.inspection import privacy_report
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(1000, 3))
    >>> report = privacy_report(DPLogisticRegression(epsilon=0.5).fit(X, X[:, 0] > 0))
    >>> report.data["guarantee"]["epsilon"]
    0.5
    >>> [round(one["posterior"], 3) for one in report.data["attacker"]["posteriors"]]
    [0.016, 0.155, 0.622]
    >>> print(str(report).splitlines()[0])
    Privacy report: DPLogisticRegression
    """
    if isinstance(public, str):
        raise ValueError(f"public must be a tuple of steps; got {short_repr(public)}.")
    about = {"dataset": dataset, "purpose": purpose, "responsible": responsible}
    for name, text in about.items():
        if not isinstance(text, str | None):
            raise ValueError(f"{name} must be a string or None; got {short_repr(text)}.")
    return PrivacyReport(report_of(subject_of(fitted, tuple(public)), ledger, about))


def report_schema():
    """JSON schema (draft 2020-12) of the ``data`` of a `PrivacyReport`, with its version.

    Returns
    -------
    dict

    Examples
    --------
    >>> from skdp.inspection import report_schema
    >>> report_schema()["properties"]["version"]
    {'enum': ['1.0', '1.1', '1.2']}
    """
    return json.loads(page.resource("privacy_report.schema.json"))
