"""Bounds from one run with canaries: the published numbers, kept and broken promises."""

import math
import re

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.neighbors import KernelDensity, KNeighborsClassifier, KNeighborsRegressor

from skdp.audit import estimate_epsilon_one_run
from skdp.audit._black_box import guessing_epsilon, guessing_p_value
from skdp.linear_model import DPLogisticRegression
from skdp.privacy import ApproxDP


class TestFormula:
    def test_published_numbers(self):
        assert_allclose(guessing_epsilon(1000, 1000, 731), 0.8806, atol=5e-5)

    def test_without_delta_it_is_a_binomial_test(self):
        # Of 10 coins that are right with probability 3/4: all ten, or at least nine.
        p, three = 0.75, math.log(3)
        assert_allclose(guessing_p_value(10, 10, 10, three, 0.0), p**10)
        assert_allclose(guessing_p_value(10, 10, 9, three, 0.0), p**10 + 10 * p**9 * (1 - p))
        assert guessing_p_value(10, 10, 0, three, 0.0) == 1.0

    @pytest.mark.parametrize("level", [0.05, 1e-6])
    def test_the_level_is_kept_by_randomised_response(self, level):
        epsilon, n = 1.0, 200
        bounds = [guessing_epsilon(n, n, v, level=level) for v in range(n + 1)]
        p = 1 / (1 + math.exp(-epsilon))
        law = [math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)]
        above = sum(weight for weight, bound in zip(law, bounds, strict=True) if bound > epsilon)
        assert 0.1 * level < above <= level
        assert bounds == sorted(bounds) and bounds[100] == 0.0


class Coins(BaseEstimator, RegressorMixin):
    """Randomised response about each number that may be among the training data."""

    def __init__(self, epsilon, m, seed=0):
        self.epsilon, self.m, self.seed = epsilon, m, seed

    def fit(self, X, y):
        there = np.isin(np.arange(self.m), np.asarray(X)[:, 0])
        p = 1 / (1 + math.exp(-self.epsilon))
        self.told_ = there == (np.random.default_rng(self.seed).random(self.m) < p)
        return self

    def predict(self, X):
        return self.told_[np.asarray(X)[:, 0].astype(int)]


def canaries(m):
    base = np.full((1, 1), -1.0), np.ones(1)
    return *base, np.arange(m)[:, None].astype(float), np.ones(m)


class TestBounds:
    @pytest.mark.parametrize("epsilon", [0.5, 2.0])
    def test_randomised_response_is_bounded_tightly(self, epsilon):
        claims = {"guarantee": ApproxDP(epsilon, adjacency="add-remove"), "n_guesses": 10_000}
        found = estimate_epsilon_one_run(
            Coins(epsilon, 10_000), *canaries(10_000), random_state=0, **claims
        )
        assert 0.85 * epsilon < found.epsilon < epsilon
        assert not found.violated and 0 < found.mu < epsilon
        claims["guarantee"] = ApproxDP(0.7 * epsilon, adjacency="add-remove")
        release = Coins(epsilon, 10_000)
        assert estimate_epsilon_one_run(
            release, *canaries(10_000), random_state=0, **claims
        ).violated

    def test_kept_promises_raise_no_alarm(self):
        claim = ApproxDP(1.0, adjacency="add-remove")
        options = {"guarantee": claim, "confidence": 1 - 1e-9}
        for seed in range(20):
            model = Coins(1.0, 300, seed)
            found = estimate_epsilon_one_run(model, *canaries(300), random_state=seed, **options)
            assert found.epsilon <= 1.0 and not found.violated

    def test_the_system_draws_the_coins(self):
        found = {
            estimate_epsilon_one_run(Coins(50.0, 200), *canaries(200), n_guesses=200).event
            for _ in range(5)
        }
        assert len(found) > 1

    @pytest.mark.parametrize("kind", ["dense", "sparse"])
    def test_neighbours_that_remember(self, kind):
        rng = np.random.default_rng(0)
        canary = rng.normal(size=(200, 3))
        X = canary + 1e-6  # an unseen canary is next to a record of another label
        y, labels = np.zeros(200, dtype=int), np.ones(200, dtype=int)
        if kind == "sparse":
            X, canary = sparse.csr_array(X), sparse.csr_array(canary)
        options = {"confidence": 0.999, "random_state": 0}
        claim = ApproxDP(1.0, adjacency="add-remove")
        for model in (KNeighborsClassifier(1), KNeighborsRegressor(1)):
            found = estimate_epsilon_one_run(
                model, X, y, canary, labels, guarantee=claim, **options
            )
            assert found.violated and found.epsilon > 1.5

    def test_without_labels_and_with_a_score(self):
        def nearest(model, X, y):
            return model.score_samples(X)

        X, _, canary, _ = canaries(200)
        for score in (None, nearest):
            found = estimate_epsilon_one_run(
                KernelDensity(bandwidth=0.1), X, None, canary, None, score=score, random_state=0
            )
            assert found.epsilon > 2.0

    def test_one_of_ours_with_little_privacy_and_with_more(self):
        # Every canary has a coordinate of its own, and the wrong label.
        X, y = np.zeros((2, 60)), np.array([0, 1])
        canary, labels = np.eye(60), np.ones(60, dtype=int)
        for epsilon in (1.0, 1e6):
            model = DPLogisticRegression(
                epsilon=epsilon, classes=[0, 1], x_norm=1.0, random_state=0, C=10.0
            )
            found = estimate_epsilon_one_run(
                model, X, y, canary, labels, y_others=1 - labels, random_state=0
            )
            assert (found.epsilon > 1.0) == (epsilon == 1e6)


class TestBadInput:
    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"n_guesses": 41}, "n_guesses must be at most the 40 canaries; got 41."),
            ({"n_guesses": 0}, "n_guesses must be a positive int; got 0."),
            ({"confidence": 1}, "confidence must be less than 1; got 1."),
            ({"delta": -1}, "delta must be at least 0 and less than 1; got -1."),
            ({"score": 1}, "score must be None or callable; got 1."),
            ({"guarantee": 1}, "guarantee must be None or a guarantee; got 1."),
            ({"guarantee": ApproxDP(1.0)}, "for 'add-remove' neighbours; got 'replace-one'"),
            ({"y_others": [1]}, "y_others must have as many rows as X_canaries, 40; got 1."),
            ({"score": lambda model, X, y: 1.0}, "one number for each of 40 rows; got shape ()."),
            ({"confidence": 1 - 1e-15}, "X_canaries must have about"),
        ],
    )
    def test_parameters(self, options, message):
        with pytest.raises(ValueError, match=re.escape(message)):
            estimate_epsilon_one_run(Coins(1.0, 40), *canaries(40), **options)

    def test_what_cannot_be_fitted(self):
        with pytest.raises(ValueError, match="with a method fit; got an object of type int"):
            estimate_epsilon_one_run(1, *canaries(40))

    def test_too_few_canaries_and_how_many_are_needed(self):
        claim = ApproxDP(3.0, adjacency="add-remove")
        with pytest.raises(ValueError, match=r"about (\d+) rows.*got 40 guesses") as caught:
            estimate_epsilon_one_run(Coins(1.0, 40), *canaries(40), guarantee=claim)
        needed = int(re.search(r"about (\d+) rows", str(caught.value))[1])
        # All right: e^3 / (1 + e^3) to that power.
        least = math.log(0.05 / 4) / math.log(1 / (1 + math.exp(-3)))
        assert least <= needed < 1.2 * least
