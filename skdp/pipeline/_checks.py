"""Checks of a pipeline's steps, before anything is fitted or charged."""

import inspect

from skdp._validation import shown
from skdp.pipeline._walk import passes

__all__ = ["OWN", "check_defaults", "check_names", "check_own_budget", "check_steps"]

OWN = ("epsilon", "delta", "adjacency", "ledger", "random_state")


def check_names(names, reserved):
    """Check names of steps as scikit-learn does."""
    if not all(isinstance(name, str) for name in names):
        raise ValueError(f"steps must have names that are strings; got {shown(names)}.")
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise ValueError(f"steps must have names of their own; got {shown(repeated)} twice.")
    taken = sorted(set(names) & set(reserved))
    if taken:
        raise ValueError(f"steps must not have the name of a parameter; got {shown(taken)}.")
    if any("__" in name or not name for name in names):
        raise ValueError(f"steps must have names without '__'; got {shown(names)}.")


def check_steps(steps, reserved):
    """Check the list of steps: pairs of a name and an estimator."""
    if not isinstance(steps, list | tuple) or not steps:
        raise ValueError(
            f"steps must be a list of pairs (name, estimator), not empty; got {shown(steps)}."
        )
    for pair in steps:
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise ValueError(f"steps must be pairs (name, estimator); got {shown(pair)}.")
    check_names([name for name, _ in steps], reserved)
    for position, (name, step) in enumerate(steps):
        if passes(step) and step != "drop":
            continue
        if inspect.isclass(step) or not hasattr(step, "fit"):
            raise TypeError(f"Step {name!r} must be an estimator, an instance; got {shown(step)}.")
        if position < len(steps) - 1 and not hasattr(step, "transform"):
            raise TypeError(
                f"Step {name!r} must be a transformer, as it is not the last; got {shown(step)}."
            )


def check_own_budget(leaf, model, *, names=OWN):
    """Refuse a budget of a step's own: it would be spent beside that of the pipeline."""
    step, path = leaf.estimator, leaf.path
    what = f"Step {path!r}, a {type(step).__name__},"
    whole = "the pipeline has one {name} for all steps. Give it to the pipeline"
    check_defaults(step, model, what, f"step {path!r}", whole, names=names)


def check_defaults(estimator, model, what, path, whole, *, names=OWN):
    """Check that parameters are the defaults, which stand for those of a whole.

    Parameters
    ----------
    estimator : estimator

    model : estimator
        The whole, of which a part may state the same adjacency.

    what, path : str
        The part, in messages.

    whole : str
        Why, with ``{name}`` for the parameter.

    names : tuple of str, default=OWN
    """
    defaults = inspect.signature(type(estimator).__init__).parameters
    for name in names:
        if name not in defaults:
            raise ValueError(
                f"{what} has no parameter {name}, so that it takes no part of a budget."
            )
        own, default = getattr(estimator, name), defaults[name].default
        same = own is default or (type(own) is type(default) and own == default)
        if same or (name == "adjacency" and own == model.adjacency):
            continue
        raise ValueError(
            f"{name} of {path} must be the default, {default!r}: {whole.format(name=name)}; "
            f"got {shown(own)}."
        )
