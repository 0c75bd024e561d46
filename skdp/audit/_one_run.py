"""A lower bound on epsilon from a single fit, with canaries."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone, is_classifier

from skdp._validation import fraction, positive_int, probability, short_repr
from skdp.audit._black_box import (
    EpsilonEstimate,
    Profile,
    check_kinds,
    generators,
    guessing_epsilon,
    guessing_mu,
    guessing_p_value,
    profile_points,
    refuted_by_guesses,
)
from skdp.privacy import Guarantee

_SHARES = (1, 2, 4, 10)  # one in so many canaries is guessed


def estimate_epsilon_one_run(
    estimator: Any,
    X: Any,
    y: Any,
    X_canaries: Any,
    y_canaries: Any,
    *,
    X_others: Any = None,
    y_others: Any = None,
    score: Callable[[Any, Any, Any], Any] | None = None,
    n_guesses: int | None = None,
    delta: float = 0.0,
    confidence: float = 0.95,
    guarantee: Guarantee | None = None,
    random_state: Any = None,
) -> EpsilonEstimate:
    """Compute a lower bound on epsilon from one fit with random canaries.

    A fair coin decides whether each canary is in the training data or, with ``X_others`` or
    ``y_others``, which of two records is. The scores of the fitted model determine which coins to
    guess, and how. Too many correct guesses refute a small epsilon, because each coin is as
    protected as one record. This needs a single fit but is weaker than `estimate_epsilon`: it
    requires many canaries that the model memorises, such as records with wrong labels.

    Choose the canaries independently of their coins, which the operating system draws.

    Parameters
    ----------
    estimator : object with ``fit``
        A clone is fitted, with the ledger of the estimator if it has one.

    X, y : array-like or sparse matrix of n_samples rows, array-like or None
        Records always used for training. ``y`` is None if ``fit`` takes no targets.

    X_canaries, y_canaries : the same, of n_canaries rows
        Canaries. Under "add-remove" each is present or absent.

    X_others, y_others : the same, default=None
        Replacements of absent canaries, for "replace-one". None uses the values of the canaries:
        for wrong labels, pass only ``y_others``.

    score : callable, default=None
        ``score(model, X, y)`` returns a number for each row, larger for rows used for training.
        None uses the log-probability of the label, its decision function, the negative squared
        residual, or ``score_samples``.

    n_guesses : int, default=None
        Number of guesses, half at each end of the scores. None tries all canaries, one half, a
        quarter and a tenth, and corrects the confidence for it.

    delta, confidence, guarantee : float, float and Guarantee, default=0.0, 0.95 and None
        As for `estimate_epsilon`.

    random_state : None, int, RandomState or Generator, default=None
        Seed of the coins. None draws them from the operating system; anything else is for tests.

    Returns
    -------
    EpsilonEstimate

    Raises
    ------
    ValueError
        If parameters are invalid, there are too few canaries to refute anything at
        ``confidence``, or the guarantee is for another adjacency.

    References
    ----------
    Steinke, Nasr and Jagielski, "Privacy auditing with one (1) training run", NeurIPS 2023,
    theorem 5.2.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.neighbors import KNeighborsRegressor
    >>> from skdp.audit import estimate_epsilon_one_run
    >>> X = np.arange(200.0).reshape(-1, 1)
    >>> found = estimate_epsilon_one_run(
    ...     KNeighborsRegressor(1), X[::2], np.zeros(100), X[1::2], np.ones(100), random_state=0
    ... )
    >>> found.epsilon > 2  # nothing is hidden
    True
    """
    probability(delta=delta)
    fraction(confidence=confidence)
    replaced = X_others is not None or y_others is not None
    _check_kinds(estimator, score, guarantee, replaced)
    canaries = X_canaries, y_canaries
    others = X_canaries if X_others is None else X_others, y_others
    if y_others is None:
        others = others[0], y_canaries
    m = _n_rows(X_canaries=X_canaries)
    _check_rows(m, "X_canaries", y_canaries=y_canaries, X_others=X_others, y_others=y_others)
    _check_rows(_n_rows(X=X), "X", y=y)
    if (y is None) != (y_canaries is None):
        raise ValueError("y_canaries must be given if and only if y is.")
    _check_columns(X, X_canaries=X_canaries, X_others=X_others)
    sizes = _sizes(m, n_guesses)
    level = (1.0 - confidence) / len(sizes)
    profile = None if guarantee is None else profile_points(guarantee)
    _check_canaries(max(sizes), m, delta, level, profile)

    coins, ties = generators(random_state)
    seen = coins.integers(2, size=m).astype(bool)
    training = [_stacked(base, part, seen) for base, part in zip((X, y), canaries, strict=True)]
    if replaced:
        training = [_stacked(a, b, ~seen) for a, b in zip(training, others, strict=True)]
    model = clone(estimator).fit(*(part for part in training if part is not None))
    # Scores know the model and the canaries, not the coins; nor do ties depend on these.
    telling = _scores(score, model, *canaries)
    if replaced:
        telling = telling - _scores(score, model, *others)
    order = ties.permutation(m)
    order = order[np.argsort(np.nan_to_num(telling)[order], kind="stable")]
    nothing = EpsilonEstimate(0.0, 0.0, confidence, 1, delta, "nothing", None, guarantee)
    if np.isnan(telling).all():
        return replace(nothing, event="nothing, as every score is NaN")
    guesses = [(size, _n_right(order, seen, size)) for size in sizes]
    # Flipping one coin changes one record, so the run is as private toward each coin as the claim
    # says of neighbours: by removing a record, or, with others, by replacing one. All that is said
    # of one number of guesses is refuted by so many right ones or more, events within one another,
    # and needs no correction for there being a bound on epsilon, one on mu and a verdict.
    epsilons = [guessing_epsilon(m, r, v, delta=delta, level=level) for r, v in guesses]
    size, n_right = guesses[int(np.argmax(epsilons))]
    violated = None
    if profile is not None:
        violated = any(refuted_by_guesses(profile, m, r, v, level) for r, v in guesses)
    return replace(
        nothing,
        epsilon=max(epsilons),
        mu=max(guessing_mu(m, r, v, level=level) for r, v in guesses),
        event=f"{n_right} of {size} right guesses about {m} canaries",
        violated=violated,
    )


def _check_kinds(estimator: Any, score: Any, guarantee: Any, replaced: bool) -> None:
    if not hasattr(estimator, "fit") or isinstance(estimator, type):
        kind = "the class " if isinstance(estimator, type) else "an object of type "
        name = (estimator if isinstance(estimator, type) else type(estimator)).__name__
        raise ValueError(f"estimator must be an instance with a method fit; got {kind}{name}.")
    check_kinds(guarantee, score=score)
    adjacency = "replace-one" if replaced else "add-remove"
    if guarantee is not None and guarantee.adjacency != adjacency:
        raise ValueError(
            f"guarantee must be for {adjacency!r} neighbours; got {guarantee.adjacency!r}. "
            "Use X_others or y_others for 'replace-one', and neither for 'add-remove'."
        )


def _n_rows(**named: Any) -> int:
    ((name, rows),) = named.items()
    if not sparse.issparse(rows) and not hasattr(rows, "__len__"):
        raise ValueError(f"{name} must be rows; got an object of type {type(rows).__name__}.")
    return rows.shape[0] if hasattr(rows, "shape") else len(rows)


def _check_rows(m: int, of: str, **named: Any) -> None:
    for name, rows in named.items():
        n = m if rows is None else _n_rows(**{name: rows})
        if n != m:
            raise ValueError(f"{name} must have as many rows as {of}, {m}; got {n}.")


def _check_columns(X: Any, **named: Any) -> None:
    for name, rows in named.items():
        shape = np.shape(X)[1:]
        if rows is not None and np.shape(rows)[1:] != shape:
            raise ValueError(
                f"{name} must have the columns of X, shape (n, {', '.join(map(str, shape))}); "
                f"got shape {np.shape(rows)}."
            )


def _sizes(m: int, n_guesses: int | None) -> list[int]:
    """How many coins to guess; fixed before any is drawn."""
    if n_guesses is None:
        return sorted({max(1, m // share) for share in _SHARES})
    positive_int(n_guesses=n_guesses)
    if n_guesses > m:
        raise ValueError(
            f"n_guesses must be at most the {m} canaries; got {short_repr(n_guesses)}."
        )
    return [int(n_guesses)]


def _check_canaries(r: int, m: int, delta: float, level: float, profile: Profile | None) -> None:
    """Check that right guesses could refute something."""

    def enough(r: int) -> bool:
        if profile is not None:
            return refuted_by_guesses(profile, max(m, r), r, r, level)
        return bool(guessing_p_value(max(m, r), r, r, 0.0, delta) <= level)

    if enough(r):
        return
    needed = r
    while not enough(needed):
        needed += 1 + needed // 8
        if needed > 10**7:
            raise ValueError(
                f"X_canaries must have more rows than feasible for this guarantee; got {m}."
            )
    asked = "the confidence" if profile is None else "the confidence and the guarantee"
    raise ValueError(
        f"X_canaries must have about {needed} rows, all of them guessed, for {asked} given; got "
        f"{r} guesses and {m} canaries. With fewer, even correct guesses refute nothing."
    )


def _stacked(base: Any, more: Any, rows: np.ndarray) -> Any:
    """Rows of ``base``, then the chosen ones of ``more``."""
    if base is None:
        return None
    if sparse.issparse(base) or sparse.issparse(more):
        return sparse.vstack([sparse.csr_array(base), sparse.csr_array(more)[rows]]).tocsr()
    return np.concatenate([np.asarray(base), np.asarray(more)[rows]])


def _scores(
    score: Callable[[Any, Any, Any], Any] | None, model: Any, X: Any, y: Any
) -> np.ndarray:
    found = np.asarray((_fitting if score is None else score)(model, X, y), dtype=float)
    m = _n_rows(X_canaries=X)
    if found.shape != (m,):
        raise ValueError(
            f"score must return one number for each of {m} rows; got shape {found.shape}."
        )
    return found


def _fitting(model: Any, X: Any, y: Any) -> Any:
    """How well a model fits each record, by whatever it can tell."""
    if y is None:
        return model.score_samples(X)
    if not is_classifier(model):
        return -((np.asarray(y, dtype=float) - np.asarray(model.predict(X))) ** 2)
    classes = np.asarray(model.classes_)
    own = np.asarray(y)[:, None] == classes
    if hasattr(model, "predict_proba"):
        return np.log(np.maximum(np.sum(model.predict_proba(X) * own, axis=1), 1e-300))
    if hasattr(model, "decision_function"):
        decision = np.asarray(model.decision_function(X))
        if decision.ndim == 1:
            decision = np.column_stack([-decision, decision])
        return np.sum(decision * own, axis=1)
    return np.asarray(model.predict(X) == np.asarray(y), dtype=float)


def _n_right(order: np.ndarray, seen: np.ndarray, size: int) -> int:
    """Right guesses: the highest scores are of canaries that were seen, the lowest of others."""
    low, high = size // 2, size - size // 2
    return int((~seen[order[:low]]).sum() + seen[order[len(order) - high :]].sum())
