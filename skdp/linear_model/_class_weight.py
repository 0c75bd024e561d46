"""Public weights of classes: declared, never taken from the labels."""

from dataclasses import replace

from skdp._validation import between, shown

__all__ = ["check_class_weight", "with_class_weight"]

_LIMIT = 1e6


def check_class_weight(class_weight):
    """Check the parameter, as far as that needs no classes."""
    if class_weight is None:
        return
    if isinstance(class_weight, str) and class_weight == "balanced":
        raise ValueError(
            "class_weight must not be 'balanced', which counts the labels: how often each occurs "
            "is private. Declare the share that each class has or is thought to have, and pass "
            "{label: 1 / (n_classes * share)}; got 'balanced'."
        )
    if not isinstance(class_weight, dict):
        raise ValueError(
            f"class_weight must be None or a dict {{label: weight}}; got {shown(class_weight)}."
        )
    for label, weight in class_weight.items():
        between(1.0 / _LIMIT, _LIMIT, **{f"class_weight[{shown(label)}]": weight})


def with_class_weight(loss, class_weight, classes):
    """Loss in which the classes have their weights over the largest, and that one.

    Labels that are not named weigh 1, as in scikit-learn. So the loss keeps its bounds, and the
    largest weight divides the penalty: the objective is the weighted one over the largest weight.

    Parameters
    ----------
    loss : LogisticLoss, HuberHingeLoss or SoftmaxLoss

    class_weight : dict or None
        Checked.

    classes : ndarray

    Returns
    -------
    loss : same type

    heaviest : float

    Raises
    ------
    ValueError
        If there are labels without a weight, and weights without a label.
    """
    named = class_weight or {}
    weights = [float(named.get(label, 1.0)) for label in classes]
    n_named = sum(label in named for label in classes)
    if n_named < len(classes) and n_named < len(named):
        raise ValueError(
            f"class_weight must name labels that are among the classes; got {shown(class_weight)}."
        )
    heaviest = max(weights)
    if min(weights) == heaviest:
        return loss, heaviest
    return replace(loss, weights=tuple(weight / heaviest for weight in weights)), heaviest
