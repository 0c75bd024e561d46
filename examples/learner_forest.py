"""
A custom private learner: random forest
=======================================

Splits are drawn at random from public ranges, so they do not depend on the rows. One noisy sum
counts the classes in the leaves of all trees.
"""

# %%
from dataclasses import replace
from functools import partial

import numpy as np
from scipy import sparse
from sklearn.base import ClassifierMixin

from skdp.learner import PrivateEstimator, Sequence, SumRelease


class RandomForest(ClassifierMixin, PrivateEstimator):
    """Forest of trees with public splits and private leaves.

    Parameters
    ----------
    bounds : (float, float), default=(0.0, 1.0)
        Public range of every feature, from which thresholds are drawn.

    n_trees, depth : int
        Number and depth of trees. A row is in one leaf of each tree, so more trees give smoother
        predictions and more noise.

    seed : int, default=0
        Seed of the splits, which are public.

    classes : array-like, default=None
        Public list of labels. None uses the labels in ``y`` and treats them as public.
    """

    def __init__(
        self,
        epsilon=1.0,
        delta=0.0,
        *,
        bounds=(0.0, 1.0),
        n_trees=20,
        depth=5,
        seed=0,
        classes=None,
        adjacency="replace-one",
        random_state=None,
        ledger=None,
    ):
        super().__init__(
            epsilon, delta, adjacency=adjacency, random_state=random_state, ledger=ledger
        )
        self.bounds, self.n_trees, self.depth, self.seed = bounds, n_trees, depth, seed
        self.classes = classes

    def plan(self, public):
        # A row adds one 1 in each tree: its vector has these norms.
        release = partial(
            SumRelease.plan,
            size=self.n_trees * 2**self.depth * len(public.classes),
            l1_norm=float(self.n_trees),
            l2_norm=float(np.sqrt(self.n_trees)),
        )
        return Sequence.plan(public.target, release=release, n_samples=public.n_samples)

    def learn(self, data, run):
        leaves = self._leaves(data.X)
        n_classes, n_leaves = len(data.classes), self.n_trees * 2**self.depth
        columns = (leaves * n_classes + data.y[:, np.newaxis]).ravel()
        rows = np.repeat(np.arange(len(leaves)), self.n_trees)
        shape = (len(leaves), n_leaves * n_classes)
        votes = sparse.csr_array((np.ones(len(rows)), (rows, columns)), shape=shape)
        counts = run(replace(data, X=votes)).total.reshape(-1, n_classes)
        self.counts_ = np.maximum(counts, 0.0)

    def _leaves(self, X):
        """Return the index of the leaf of each row in each tree, over all trees."""
        rng = np.random.default_rng(self.seed)
        # Splits of one depth are the same in a tree: an oblivious tree.
        features = rng.integers(X.shape[1], size=(self.n_trees, self.depth))
        thresholds = rng.uniform(*self.bounds, size=features.shape)
        X = X.toarray() if sparse.issparse(X) else X
        is_right = X[:, features] > thresholds
        own = is_right @ (1 << np.arange(self.depth))
        return own + np.arange(self.n_trees) * 2**self.depth

    def predict_proba(self, X):
        """Return probabilities: the mean over trees of the class shares in a row's leaves."""
        leaves = self._leaves(self.validated(X))
        counts = self.counts_ + 1.0
        shares = counts / counts.sum(axis=1, keepdims=True)
        return shares[leaves].mean(axis=1)

    def predict(self, X):
        """Return the most probable class of each row."""
        codes = self.predict_proba(X).argmax(axis=1)
        return self.classes_[codes]
