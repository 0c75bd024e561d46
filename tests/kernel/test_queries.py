"""Noisy answers to a limited number of queries: their noise, their budget and their copies."""

import copy
import math
import pickle
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse, stats

from skdp.audit import recording
from skdp.exceptions import BudgetExceededError
from skdp.kernel._queries import QueryAnswers, QueryPlan
from skdp.privacy import ApproxDP

SECRET = bytes(range(32))


class Linear:
    """A function of the first feature that counts its calls; at module level, to be pickled."""

    def __init__(self, slope=0.0):
        self.slope = slope
        self.n_rows = 0

    def __call__(self, X):
        self.n_rows += X.shape[0]
        column = X[:, [0]]
        return self.slope * np.ravel(column.toarray() if sparse.issparse(column) else column)


def answers_of(predict=None, n_queries=10, secret=SECRET, delta=0.0, **settings):
    target = settings.pop("guarantee", ApproxDP(1.0, delta))
    plan = QueryPlan.plan(target, n_queries=n_queries, bound=settings.pop("bound", 1.0))
    defaults = {"sensitivity": 0.5, "error": 0.0, "secret": secret}
    return QueryAnswers(plan, predict or Linear(), **{**defaults, **settings})


def rows_of(n, start=0, width=3):
    X = np.zeros((n, width))
    X[:, 1] = np.arange(start, start + n) + 1.0
    return X


# The noise.


@pytest.mark.parametrize("sensitivity", [0.01, 0.5])
@pytest.mark.parametrize(
    ("delta", "n_queries", "law"),
    [
        (0.0, 4000, stats.laplace(scale=4000 / 2.0)),  # budgets add up: 2 over 4000 each
        # c(2, 1e-5) = 1.993812446, and squares add up.
        (1e-5, 4000, stats.norm(scale=1.993812446 * math.sqrt(4000))),
    ],
)
def test_the_noise_has_the_law_that_all_queries_together_need(delta, n_queries, law, sensitivity):
    answers = answers_of(
        n_queries=n_queries, guarantee=ApproxDP(2.0, delta), sensitivity=sensitivity, bound=10.0
    )
    noise = answers.answer(rows_of(n_queries)) / sensitivity
    assert stats.kstest(noise, law.cdf).pvalue > 1e-6
    # Neither does it depend on its place: neighbours are not related.
    assert abs(stats.pearsonr(noise[1:], noise[:-1]).statistic) < 5.5 / math.sqrt(n_queries)
    signs = np.sign(noise[: n_queries // 2]) * np.sign(noise[n_queries // 2 :])
    assert abs(signs.mean()) < 5.5 / math.sqrt(n_queries / 2)


@pytest.mark.parametrize("n_queries", [1, 2, 4, 8, 100])
@pytest.mark.parametrize(
    # Of a Gaussian alone at delta=1e-5. Laplace is as quiet at 4.7, 7.0 and 7.9 queries.
    ("epsilon", "deviation"),
    [(0.1, 30.749566), (1.0, 3.730631635), (2.0, 1.993812446)],
)
def test_the_quieter_noise_is_taken(epsilon, deviation, n_queries):
    law = QueryPlan.plan(ApproxDP(epsilon, 1e-5), n_queries=n_queries).law
    assert QueryPlan.plan(ApproxDP(epsilon), n_queries=n_queries).law.kind == "laplace"
    if n_queries < 5:
        assert law.kind == "laplace"
        assert_allclose(law.scale, n_queries / epsilon)
    else:
        assert law.kind == "gaussian"
        assert_allclose(law.scale, math.sqrt(n_queries) * deviation)


def test_values_are_projected_before_the_noise_and_not_after():
    far = rows_of(1)
    far[0, 0] = 1e6
    noise = answers_of(Linear(0.0)).answer(far)[0]
    step = 2.0**-8  # below a hundredth of the sensitivity
    for slope, end in ((1.0, 1.0), (-1.0, -1.0), (3e-7, 0.3)):
        assert_allclose(answers_of(Linear(slope)).answer(far)[0] - noise, end, atol=step)
    many = answers_of(n_queries=100).answer(rows_of(100))
    assert np.abs(many).max() > 20.0


def test_a_sensitivity_beyond_the_projection_costs_nothing():
    for change in (2.0, 50.0):
        answers = answers_of(sensitivity=change).answer(rows_of(10))
        assert_array_equal(answers, answers_of(sensitivity=2.0).answer(rows_of(10)))
    assert (answers_of(sensitivity=1.0).answer(rows_of(10)) != answers).any()


# The worst neighbours. The scale of the noise is read off.


def noise_scale(answers):
    """Scale of the noise of fresh ``answers``, of which it spends one."""
    with recording() as transcript:
        answers.answer(np.ones((1, 2)))
    return transcript[0].scale


def test_the_error_of_the_values_is_covered_by_noise():
    with_error = noise_scale(answers_of(n_queries=1, error=0.05))
    without = noise_scale(answers_of(n_queries=1))
    # Values that are off by 0.05 on either side are up to 0.6 apart instead of 0.5.
    assert_allclose(with_error - without, 0.1, rtol=1e-6)


# Equal rows.


def test_equal_rows_have_equal_answers_and_cost_nothing():
    predict = Linear(0.3)
    answers = answers_of(predict, n_queries=4)
    X = np.array([[0.5, 1.0], [0.25, 0.0], [0.5, 1.0], [0.5, 2.0]])
    first = answers.answer(X)
    assert first[0] == first[2]
    assert len(set(first)) == 3
    assert answers.remaining == 1
    for _ in range(3):
        assert_array_equal(answers.answer(X[::-1]), first[::-1])
        assert answers.answer(X[1:2]) == first[1]
    assert answers.remaining == 1
    assert predict.n_rows == 3


def test_a_row_is_the_same_in_any_form():
    dense = np.array([[0.0, 1.5, 0.0, -2.0], [0.0, 0.0, 0.0, 0.0], [3.0, 0.0, 0.0, 0.0]])
    negative = np.where(dense == 0.0, -0.0, dense)
    data = [1.0, 0.5, -2.0, 0.0, -0.0, 1.0, 2.0]  # unsorted, in two parts, with stored zeros
    columns, starts = [1, 1, 3, 0, 2, 0, 0], [0, 4, 5, 7]
    untidy = sparse.csr_array((data, columns, starts), shape=(3, 4))
    forms = [
        negative,
        np.asfortranarray(dense),
        dense.astype(">f8"),
        np.repeat(dense, 2, axis=1)[:, ::2],
        sparse.csr_array(dense),
        sparse.csr_matrix(dense),
        untidy,
    ]
    answers = answers_of(Linear(0.1), n_queries=3)
    first = answers.answer(dense)
    for form in forms:
        assert_array_equal(answers.answer(form), first)
        # Their noise is equal too, should another process answer.
        assert_array_equal(answers_of(Linear(0.1), n_queries=3).answer(form), first)
    assert untidy.nnz == 7  # left as it was


def test_different_rows_have_different_noise():
    one = np.eye(3)
    rows = np.vstack([one, -one, 2 * one, one[[0]] + one[[1]], np.zeros((1, 3))])
    assert len(set(answers_of(n_queries=11).answer(rows))) == 11
    # A longer row of the same entries, and the next float, are other rows.
    wide = answers_of(n_queries=11).answer(np.hstack([rows, np.zeros((11, 1))]))
    assert not set(wide) & set(answers_of(n_queries=11).answer(rows))
    near = answers_of(n_queries=2).answer(np.array([[1.0], [np.nextafter(1.0, 2.0)]]))
    assert near[0] != near[1]


def test_another_key_makes_other_noise():
    X = rows_of(10)
    here, there = (answers_of(secret=bytes([i]) * 16).answer(X) for i in range(2))
    assert (here != there).all()
    assert_array_equal(answers_of(secret=bytes(16)).answer(X), here)


def test_a_value_does_not_depend_on_what_else_is_asked():
    class Batchwise:
        """Predictions that differ in the last bits with the size of the batch."""

        def __call__(self, X):
            return X[:, 0] + 0.2 * len(X)

    X = np.random.default_rng(1).normal(size=(10, 2))
    together = answers_of(Batchwise()).answer(X)
    alone = [answers_of(Batchwise()).answer(X[i : i + 1])[0] for i in range(10)]
    assert_array_equal(together, alone)


# The budget.


def test_a_batch_beyond_the_budget_is_refused_as_a_whole():
    predict = Linear()
    answers = answers_of(predict, n_queries=5)
    first = answers.answer(rows_of(3))
    with pytest.raises(BudgetExceededError, match=r"Left: 2 of n_queries=5.*No row"):
        answers.answer(rows_of(6))
    assert (answers.remaining, predict.n_rows) == (2, 3)
    assert_array_equal(answers.answer(rows_of(5))[:3], first)
    assert answers.remaining == 0
    for X in (rows_of(1, start=5), rows_of(6)):
        with pytest.raises(BudgetExceededError, match=r"Left: 0 of n_queries=5[.]"):
            answers.answer(X)
    assert predict.n_rows == 5
    assert_array_equal(answers.answer(rows_of(3)), first)


@pytest.mark.parametrize("prepare", [lambda a: None, lambda a: a.answer(rows_of(1))])
@pytest.mark.parametrize(
    "duplicate",
    [copy.copy, copy.deepcopy, lambda a: pickle.loads(pickle.dumps(a))],
    ids=["copy", "deepcopy", "pickle"],
)
def test_copies_draw_on_one_budget(duplicate, prepare):
    answers = answers_of(n_queries=4)
    prepare(answers)
    twin = duplicate(answers)
    third = duplicate(twin)
    first = answers.answer(rows_of(2))
    assert twin.remaining == third.remaining == 2
    assert_array_equal(twin.answer(rows_of(2)), first)
    twin.answer(rows_of(1, start=2))
    third.answer(rows_of(1, start=3))
    for one in (answers, twin, third):
        assert one.remaining == 0
        with pytest.raises(BudgetExceededError):
            one.answer(rows_of(1, start=4))


def test_another_process_goes_on_from_the_count():
    answers = answers_of(Linear(0.2), n_queries=3)
    X = rows_of(3)
    X[:, 0] = 1.0
    first = answers.answer(X[:2])
    code = (
        "import pickle, sys; sys.path[:0] = sys.argv[1:]; import test_queries as t;"
        "a = pickle.load(sys.stdin.buffer); X = t.rows_of(4); X[:, 0] = 1.0; left = a.remaining;"
        "values = a.answer(X[:3])\n"
        "try: a.answer(X)\n"
        "except ValueError as error: refused = type(error).__name__\n"
        "sys.stdout.buffer.write(pickle.dumps((left, values, refused, a)))"
    )
    folders = map(str, Path(__file__).parents[:2])  # of this file and of what it imports
    done = subprocess.run(
        [sys.executable, "-c", code, *folders], input=pickle.dumps(answers), capture_output=True
    )
    assert done.returncode == 0, done.stderr.decode()
    left, values, refused, returned = pickle.loads(done.stdout)
    assert (left, refused) == (1, "BudgetExceededError")
    assert_array_equal(values[:2], first)
    # What comes back brings its answers along.
    assert answers.remaining == returned.remaining == 0
    assert_array_equal(answers.answer(X), values)


def test_threads_draw_on_one_budget():
    class Slow(Linear):
        def __call__(self, X):
            threading.Event().wait(1e-4)
            return super().__call__(X)

    answers = answers_of(Slow(), n_queries=50)
    copies = [copy.copy(answers) for _ in range(8)]
    start = threading.Barrier(8)
    got, refused = {}, []

    def ask(i):
        rng = np.random.default_rng(i)
        start.wait()
        for number in rng.permutation(60):
            try:
                value = copies[i].answer(rows_of(1, start=number))[0]
            except BudgetExceededError:
                refused.append(number)
            else:
                got.setdefault(number, set()).add(value)

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(got) == 50
    assert all(len(values) == 1 for values in got.values())
    assert set(refused) == set(range(60)) - set(got)
    assert answers.remaining == 0


# What is shown.


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_queries": 0}, "n_queries must be a positive"),
        ({"bound": math.inf}, "bound must be a positive"),
        ({"sensitivity": 0.0}, "sensitivity must be a positive"),
        ({"error": -1.0}, "error must be a non-negative"),
        ({"guarantee": ApproxDP(0.0)}, "epsilon must be a positive"),
        ({"guarantee": 1.0}, "guarantee must be an ApproxDP"),
        ({"secret": b"short"}, "secret must be 16 to 64 bytes"),
    ],
)
def test_bad_settings_are_refused_by_name(settings, message):
    with pytest.raises(ValueError, match=message) as error:
        answers_of(**settings)
    assert "short" not in str(error.value)
