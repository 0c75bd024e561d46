"""What the tables compare: our models with their defaults, peers, and lines without privacy.

A method takes a split, the values of epsilon, delta and a seed, and yields epsilon, setting and
scores: the setting is empty where nothing is tuned.
"""

import importlib.util
import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from sklearn.kernel_approximation import RBFSampler
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, Ridge, RidgeCV
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

import skdp
from peers.descent import classification_descents, regression_descents
from peers.regression import ada_ssp, boosted_ada_ssp
from peers.scores import classification_scores, regression_scores
from skdp.kernel import DPKernelRidge
from skdp.linear_model import DPLinearSVC, DPLogisticRegression

if hasattr(skdp, "set_config"):  # checkouts to compare with may be older
    skdp.set_config(known_seeds=True)  # fits are reproducible, and void of privacy

__all__ = ["DEFAULT", "METHODS", "Method", "feature_ridge", "searched"]

CLASSIFIERS = ("binary", "multiclass")
EVERY = (*CLASSIFIERS, "regression")

# Rows on which a search without privacy chooses the parameters of a kernel; all fit it then.
_MOST_SEARCHED = 5_000


@dataclass(frozen=True)
class Method:
    """How a method runs, and where.

    Parameters
    ----------
    run : callable
        Of the split, the values of epsilon, delta and a seed; yields epsilon, setting, scores.

    kinds : tuple of str
        "binary", "multiclass" or "regression".

    deltas : {"any", "pure", "approximate"} or None
        None runs without privacy: once, at an infinite epsilon.
    """

    run: Callable[..., Iterator[tuple[float, str, dict]]]
    kinds: tuple[str, ...]
    deltas: str | None = "any"

    def serves(self, kind: str, delta: float) -> bool:
        """Whether it runs on such sets at ``delta``."""
        fits = {"any": True, "pure": delta == 0.0, "approximate": delta > 0.0, None: delta == 0.0}
        return kind in self.kinds and fits[self.deltas]


def _labels(split):
    return np.unique(np.concatenate([split.y, split.y_test]))


def _classifier_scores(model, split):
    if hasattr(model, "predict_proba"):
        values, probable = model.predict_proba(split.X_test), True
    else:
        values, probable = model.decision_function(split.X_test), False
        if values.ndim == 1:
            values = np.column_stack([-values, values])
    return classification_scores(
        split.y_test, values, model.classes_, _labels(split), probable=probable
    )


def _linear(estimator, **parameters):
    def run(split, epsilons, delta, seed):
        for epsilon in epsilons:
            model = estimator(
                epsilon, delta, classes=_labels(split), random_state=seed, **parameters
            )
            yield epsilon, "", _classifier_scores(model.fit(split.X, split.y), split)

    return run


def _kernel(gamma=None, **parameters):
    def run(split, epsilons, delta, seed):
        options = dict(parameters) if gamma is None else {"gamma": gamma / split.X.shape[1]}
        for epsilon in epsilons:
            model = DPKernelRidge(
                epsilon, delta, y_bounds=split.y_bounds, random_state=seed, **options
            ).fit(split.X, split.y)
            predicted = model.predict(split.X_test)
            yield epsilon, "", regression_scores(split.y_test, predicted)

    return run


def _ours(split, epsilons, delta, seed):
    run = _linear(DPLogisticRegression) if split.y_bounds is None else _kernel()
    yield from run(split, epsilons, delta, seed)


def _linear_kernel(split, epsilons, delta, seed):
    run = _kernel(kernel="linear", x_norm=math.sqrt(split.X.shape[1]))
    yield from run(split, epsilons, delta, seed)


def _constant(split, epsilons, delta, seed):
    """The mean target, or the larger class with the frequencies as probabilities."""
    if split.y_bounds is not None:
        predicted = np.full(len(split.y_test), split.y.mean())
        yield math.inf, "", regression_scores(split.y_test, predicted)
        return
    labels, counts = np.unique(split.y, return_counts=True)
    values = np.tile(counts / counts.sum(), (len(split.y_test), 1))
    yield math.inf, "", classification_scores(split.y_test, values, labels, _labels(split))


def searched():
    """Logistic regression without privacy, C by cross-validation."""
    return GridSearchCV(
        LogisticRegression(max_iter=1000),
        {"C": [0.1, 1.0, 10.0, 100.0, 1e3, 1e4]},
        scoring=_log_loss_scorer,
        cv=3,
    )


def _best(split, epsilons, delta, seed):
    """The same features; the penalty by cross-validation."""
    if split.y_bounds is None:
        model = searched().fit(split.X, split.y)
        yield math.inf, "", _classifier_scores(model, split)
        return
    yield math.inf, "", _regressor_scores(feature_ridge(split.X, split.y, seed), split)


def _log_loss_scorer(model, X, y):
    """Mean log-likelihood; a class that the model does not know has a probability of 1e-15."""
    labels = np.unique(np.concatenate([model.classes_, y]))
    return -classification_scores(y, model.predict_proba(X), model.classes_, labels)["log_loss"]


def _regressor_scores(model, split):
    low, high = split.y_bounds
    predicted = np.clip(model.predict(split.X_test), low, high)
    return regression_scores(split.y_test, predicted)


def feature_ridge(X, y, seed):
    """Ridge on random features of rbf, with gamma and alpha that leave-one-out scores prefer."""
    d, n = X.shape[1], min(_MOST_SEARCHED, len(X))
    alphas = [1e-3, 1e-2, 0.1, 1.0, 10.0]
    found = []
    for gamma in (0.3, 1.0, 3.0, 10.0):
        sampler = RBFSampler(gamma=gamma / d, n_components=min(1000, n), random_state=seed)
        model = make_pipeline(sampler, RidgeCV(alphas)).fit(X[:n], y[:n])
        found.append((model[-1].best_score_, gamma, model))
    _, _, model = max(found)
    return make_pipeline(model[0], Ridge(model[-1].alpha_ * len(X) / n)).fit(X, y)


def _best_linear(split, epsilons, delta, seed):
    model = RidgeCV(10.0 ** np.arange(-3, 4)).fit(split.X, split.y)
    yield math.inf, "", _regressor_scores(model, split)


def _plain(split, epsilons, delta, seed):
    """StandardScaler and OneHotEncoder, and scikit-learn's defaults."""
    model = LogisticRegression(max_iter=300) if split.y_bounds is None else Ridge()
    prepare = split.plain.fit(split.raw)
    model.fit(prepare.transform(split.raw), split.y)
    test = prepare.transform(split.raw_test)
    if split.y_bounds is not None:
        yield math.inf, "", regression_scores(split.y_test, model.predict(test))
        return
    scores = classification_scores(
        split.y_test, model.predict_proba(test), model.classes_, _labels(split)
    )
    yield math.inf, "", scores


def _plain_kernel(split, epsilons, delta, seed):
    """KernelRidge(kernel="rbf") after StandardScaler, at most 5,000 rows, the target centred."""
    raw, y = split.raw[:_MOST_SEARCHED], split.y[:_MOST_SEARCHED]
    prepare = split.plain.fit(raw)
    model = KernelRidge(kernel="rbf").fit(prepare.transform(raw), y - y.mean())
    parts = np.array_split(prepare.transform(split.raw_test), 10)
    predicted = y.mean() + np.concatenate([model.predict(part) for part in parts])
    yield math.inf, "", regression_scores(split.y_test, predicted)


def _tuned(split, epsilons, delta, seed):
    run = classification_descents if split.y_bounds is None else regression_descents
    yield from run(split, epsilons, delta, seed)


def _by_moments(solver):
    def run(split, epsilons, delta, seed):
        for epsilon in epsilons:
            predicted = solver(
                split.X,
                split.y,
                split.X_test,
                y_bounds=split.y_bounds,
                epsilon=epsilon,
                delta=delta,
                rng=np.random.default_rng(seed),
            )
            yield epsilon, "", regression_scores(split.y_test, predicted)

    return run


def _diffprivlib(split, epsilons, delta, seed):
    from diffprivlib import models

    for epsilon in epsilons:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if split.y_bounds is None:
                model = models.LogisticRegression(
                    epsilon=epsilon, data_norm=1.0, random_state=seed, max_iter=300
                ).fit(_dense(split.X), split.y)
                scores = classification_scores(
                    split.y_test,
                    model.predict_proba(_dense(split.X_test)),
                    model.classes_,
                    _labels(split),
                )
            else:
                model = models.LinearRegression(
                    epsilon=epsilon,
                    bounds_X=(-1.0, 1.0),
                    bounds_y=split.y_bounds,
                    random_state=seed,
                ).fit(split.X, np.clip(split.y, *split.y_bounds))
                predicted = np.clip(model.predict(split.X_test), *split.y_bounds)
                scores = regression_scores(split.y_test, predicted)
        yield epsilon, "", scores


def _dense(X):
    return X.toarray() if sparse.issparse(X) else X


def _mechanism(name):
    return _linear(DPLogisticRegression, mechanism=name)


# Given by hand, though what "auto" is: rows are clipped to `x_norm` then.
_by_given_norm = _linear(DPLogisticRegression, intercept_scaling=0.3)

METHODS = {
    "ours": Method(_ours, EVERY),
    "ours gamma=3/d": Method(_kernel(gamma=3.0), ("regression",)),
    "ours linear kernel": Method(_linear_kernel, ("regression",)),
    "x_norm as given": Method(_by_given_norm, CLASSIFIERS),
    "svc": Method(_linear(DPLinearSVC), CLASSIFIERS),
    "objective": Method(_mechanism("objective"), CLASSIFIERS),
    "output": Method(_mechanism("output"), CLASSIFIERS),
    "gradient": Method(_mechanism("gradient"), CLASSIFIERS),
    "diffprivlib": Method(_diffprivlib, EVERY, "pure"),
    "adassp": Method(_by_moments(ada_ssp), ("regression",), "approximate"),
    "boosted adassp": Method(_by_moments(boosted_ada_ssp), ("regression",), "approximate"),
    "tuned descent": Method(_tuned, EVERY, "approximate"),
    "constant": Method(_constant, EVERY, None),
    "best": Method(_best, EVERY, None),
    "best linear": Method(_best_linear, ("regression",), None),
    "plain": Method(_plain, EVERY, None),
    "plain kernel": Method(_plain_kernel, ("regression",), None),
}

# What runs where no names are given.
DEFAULT = ["ours", "svc", "objective", "output", "gradient", "constant"]
if importlib.util.find_spec("diffprivlib"):
    DEFAULT.append("diffprivlib")
