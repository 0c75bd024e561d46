"""What a report lists as public, and who declared it."""

import inspect

import numpy as np
from sklearn.frozen import FrozenEstimator

from skdp._validation import is_auto, shown
from skdp.inspection._report_subject import is_ours
from skdp.inspection._report_texts import declares_classes, one_in
from skdp.learner import StatedGuarantee

__all__ = ["public_of"]

# What stands elsewhere in a report, or says nothing about the data.
_ELSEWHERE = {
    *("epsilon", "delta", "adjacency", "random_state", "ledger", "n_jobs", "verbose", "engine"),
    *("steps", "estimator", "regressor", "transformers", "transformer_list", "param_grid"),
    *(
        "memory",
        "param_distributions",
        "transformer_weights",
        "copy",
        "guarantee",
        "coef",
        "features",
    ),
}
# What bounds a contribution, or could give somebody away: told also where it is the default.
_BOUNDS = {
    *("x_norm", "x_l1_norm", "y_bounds", "y_search_range", "bounds", "categories", "horizon"),
    *("classes", "class_weight", "topology", "contributions_per_user", "max_calls_per_user"),
    *("search_range", "row_key", "n_queries", "public", "feature_names"),
}
_NOTES = {
    "x_norm": "how large the numbers of a row may be together (the root of the sum of their "
    "squares); a row that exceeds it is scaled down",
    "search_range": "bounds of the columns are looked for within it; values beyond it count as "
    "its nearest end",
    "classes": "labels that are not among them are refused",
    "topology": "which nodes send to which",
    "y_bounds": "targets beyond them are clipped",
    "bounds": "values beyond them are clipped",
    "horizon": "the largest number of contributions to the stream",
    "contributions_per_user": "how many a user makes; nothing can check it",
    "max_calls_per_user": "what a user contributes to further calls is left out",
    "public": "steps for which the caller answers",
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
        note = "how many there are is not protected: the promise is about what they say"
        value = "public, and not read by this report"
        found.append(_entry(f"number of {guarantee.unit}s", value, "library", note))
    found += _of_the_budget("", subject.fitted)
    if not isinstance(subject.fitted, StatedGuarantee):  # steps have budgets of their own
        for path, step, _ in subject.steps:
            step = _thawed(step)
            if isinstance(step, StatedGuarantee):  # others may mean something else by epsilon
                found += _of_the_budget(path, step)
    found += _of_the_data(subject.fitted)
    alone = [] if subject.kind == "evaluation" else [("", subject.fitted)]
    chosen = getattr(subject.fitted, "best_params_", {})
    for path, step in alone + [(path, step) for path, step, _ in subject.steps]:
        step = _thawed(step) if path else step
        found += _of_parameters(path, step, {name.split("__")[-1] for name in chosen})
    found += [
        _entry("declared public", caveat, "caller", "no guarantee covers what it tells")
        for caveat in guarantee.caveats
        if "public" in caveat
    ]
    return found


_SIZES = {
    "epsilon": "how much may be learned of one unit, at most",
    "max_epsilon": "how much may be learned of one unit, at most",
    "delta": "how rare cases must be in which more is learned",
    "mi_budget": "how much may be learned of one unit on average, in nats",
}


def _thawed(step):
    return step.estimator if isinstance(step, FrozenEstimator) else step


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
                text = f"{text} ({one_in(value)})"
            yield _entry(prefix + name, text, whose, _SIZES[name])


def _of_the_data(fitted):
    """What is read off the data, and treated as public."""
    n_columns = getattr(fitted, "n_features_in_", None)
    if n_columns is not None:
        names = getattr(fitted, "feature_names_in_", None)
        value = f"{n_columns}, without names"
        if names is not None:
            value = f"{n_columns}: {_short(', '.join(map(str, names)))}"
        note = "how many there are, their names and their order"
        yield _entry("columns", value, "data", note)
    classes = getattr(fitted, "classes_", None)
    if classes is None:
        return
    is_declared = declares_classes(fitted)
    labels = _short(", ".join(map(str, np.asarray(classes, dtype=object).tolist())))
    note = "" if is_declared else "those that occur"
    if is_declared is False:
        note += "; classes= would declare them"
    yield _entry("labels", labels, "caller" if is_declared else "data", note)


def _of_parameters(path, step, chosen):
    if step is None or isinstance(step, str):
        return
    given, defaults = _parameters(step), _defaults(type(step))
    prefix, others = f"{path}: " if path else "", []
    notes = _NOTES if is_ours(step) else {}
    for name, value in given.items():
        is_default = name in defaults and _same(value, defaults[name])
        text = _value(value)
        if name == "classes" and (value is None or hasattr(step, "classes_")):
            continue  # the labels say so
        if path and name in chosen:
            note = "chosen by the search, within its budget, among what the caller named"
            yield _entry(prefix + name, text, "library", note)
            continue
        whose = "default" if is_default else "caller"
        if is_auto(value) and not is_ours(step):
            note = f"what {type(step).__name__} makes of it this report does not know"
            yield _entry(prefix + name, text, whose, note)
        elif is_auto(value):
            others.append((name, text, "library"))
        elif not is_default or (name in _BOUNDS and value not in (None, ())):
            yield _entry(prefix + name, text, whose, notes.get(name, ""))
        else:
            others.append((name, text, "default"))
    rules = [name for name, _, whose in others if whose == "library"]
    if rules:
        note = "computed by rules from public and from released numbers"
        yield _entry(f"{prefix}rules", _short(", ".join(rules)), "library", note, True)
    rest = [f"{name}={text}" for name, text, whose in others if whose == "default"]
    if rest:
        note = "settings of the method"
        value = _short(", ".join(rest), 300)
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
    return _short(shown(value))


def _short(text, most=120):
    return text if len(text) <= most else f"{text[: most - 3]}..."
