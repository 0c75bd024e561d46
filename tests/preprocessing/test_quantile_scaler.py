import pickle

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.utils.estimator_checks import parametrize_with_checks

from skdp.audit import replay
from skdp.preprocessing import DPQuantileScaler
from skdp.privacy import ADJACENCIES, BudgetLedger

# Few rows: a large budget releases what the data say.
AMPLE = 1e5


@parametrize_with_checks(
    [
        DPQuantileScaler(AMPLE),
        DPQuantileScaler(adjacency="add-remove", missing="error", n_splines=3),
    ]
)
def test_sklearn_conventions(estimator, check):
    check(estimator)


def columns(n=4000, seed=0):
    """Normal, exponential, mostly zero, mostly zero and negative, constant, whole numbers."""
    rng = np.random.default_rng(seed)
    amount = np.where(rng.random(n) < 0.9, 0.0, rng.lognormal(8.0, 1.0, n))
    parts = [rng.normal(170.0, 10.0, n), rng.exponential(3.0, n), amount, -amount]
    return np.column_stack([*parts, np.full(n, 7.0), rng.integers(1, 17, n)])


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_learned_bounds_are_near_the_outer_quantiles(adjacency, delta):
    X = columns()
    scaler = DPQuantileScaler(6.0, delta, adjacency=adjacency, random_state=0).fit(X)
    low, high = scaler.bounds_.T
    inside = ((low <= X) & (high >= X)).mean(axis=0)
    assert (inside > 0.9).all()
    # An atom is a cell: what is constant has a narrow one around it.
    width = np.quantile(X, 0.99, axis=0) - np.quantile(X, 0.01, axis=0)
    assert (high - low < np.maximum(2.0 * width, 0.1)).all()
    assert scaler.guarantee_.epsilon_at(delta) <= 6.0


def test_values_are_mapped_to_the_cube_and_clipped():
    X = columns()
    scaler = DPQuantileScaler(6.0, random_state=0).fit(X)
    (low, high), scaled = scaler.bounds_[0], scaler.transform(X)[:, 0]
    assert_allclose(scaled, np.clip(2.0 * (X[:, 0] - low) / (high - low) - 1.0, -1.0, 1.0))
    assert scaled.min() == -1.0 and scaled.max() == 1.0
    hostile = np.array([[1e308], [-1e308], [np.nan]]) * np.ones(6)
    assert_array_equal(scaler.transform(hostile), [[1.0] * 6, [-1.0] * 6, [0.0] * 6])


@pytest.mark.parametrize("n_splines", [None, 1, 7, "auto"])
def test_norms_of_rows_are_bounded_as_promised(n_splines):
    X = columns()
    scaler = DPQuantileScaler(6.0, n_splines=n_splines, sparse_output=False).fit(X)
    out = scaler.transform(np.vstack([X, scaler.bounds_.T]))
    assert np.linalg.norm(out, axis=1).max() <= scaler.x_norm_ == pytest.approx(6**0.5)
    assert np.abs(out).sum(axis=1).max() <= scaler.x_l1_norm_ == pytest.approx(6.0)
    assert scaler.n_splines_ == {None: 1, "auto": 8}.get(n_splines, n_splines)
    assert out.shape[1] == 6 * scaler.n_splines_ == len(scaler.get_feature_names_out())


def test_a_search_range_may_be_given_by_name():
    X = columns(2000)[:, :2]
    frame = pd.DataFrame(X, columns=["size", "wait"])
    ranges = {"wait": (0.0, 1.0), "size": (100.0, 200.0)}
    by_name = DPQuantileScaler(AMPLE, search_range=ranges, random_state=0).fit(frame)
    in_order = DPQuantileScaler(AMPLE, search_range=[(100, 200), (0, 1)], random_state=0).fit(X)
    assert_array_equal(by_name.bounds_, in_order.bounds_)
    assert by_name.bounds_[1, 1] == 1.0  # nearly all are above the range


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        (dict(search_range=(5.0, -5.0)), "search_range must be"),
        (dict(search_range=(0.0, np.inf)), "search_range must be"),
        (dict(search_range=(-1e308, 1e308)), "search_range must be"),
        (dict(search_range=[(0, 1)] * 3), "search_range must be"),
        (dict(quantiles=(0.9, 0.1)), "quantiles must be"),
        (dict(quantiles=(0.0, 0.9)), "quantiles must be"),
        (dict(n_splines=10**5), "n_splines must be at most"),
    ],
)
def test_bad_parameters_are_refused_before_the_charge(parameters, words):
    ledger = BudgetLedger(epsilon=1e6, delta=0.1)
    scaler = DPQuantileScaler(ledger=ledger)
    scaler.set_params(**parameters)
    with pytest.raises(ValueError, match=words):
        scaler.fit(columns(500)[:, :2])
    assert not ledger.history() and "bounds_" not in vars(scaler)


@pytest.mark.parametrize("owned", [False, True])
@pytest.mark.parametrize(
    ("n", "delta", "adjacency", "method"),
    [
        (20_000, 0.0, "replace-one", "quantiles"),
        (20_000, 1e-6, "add-remove", "quantiles"),
        (1000, 1e-6, "replace-one", "medians"),
        (1000, 1e-6, "add-remove", "medians"),
        (1000, 0.0, "replace-one", "public"),
        (3, 1e-6, "replace-one", "public"),
    ],
)
@pytest.mark.filterwarnings("ignore:random_state is set")
def test_fewer_rows_are_scaled_more_coarsely_and_never_refused(n, delta, adjacency, method, owned):
    X, ledger = columns(n), BudgetLedger(epsilon=1.0, delta=1e-5)
    groups = np.arange(n) if owned else None
    # Where the number of rows is private, its noise decides.
    options = dict(adjacency=adjacency, ledger=ledger, random_state=0)
    scaler = DPQuantileScaler(0.5, delta, **options)
    scaler.fit(X, groups=groups)
    claim = scaler.guarantee_
    assert scaler.method_ == method and claim.unit == ("user" if owned else "record")
    assert len(ledger.history()) == (method != "public") == (claim.epsilon_at(delta) > 0.0)
    assert claim.epsilon_at(delta) <= 0.5
    out = scaler.transform(np.vstack([X, np.full((1, 6), np.nan), scaler.bounds_.T]))
    assert np.abs(out).max() <= 1.0 and (out[n] == 0.0).all()
    assert (out[-2] < 0.0).all() and (out[-1] > 0.0).all()


def test_medians_tell_the_place_and_spread_of_a_column():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.lognormal(6.0, 1.0, 1000), -rng.lognormal(4.0, 1.0, 1000)])
    scaler = DPQuantileScaler(0.3, 1e-6, search_range=(-1e4, 1e4), random_state=0).fit(X)
    assert scaler.method_ == "medians"
    scaled = scaler.transform(X)
    assert (np.abs(np.median(scaled, axis=0)) < 0.3).all() and (scaled.std(axis=0) > 0.2).all()


def test_where_nothing_is_released_values_are_spread_by_the_inverse_sine_of_the_range():
    X = np.array([[-1e9], [-1e3], [0.0], [np.sinh(np.arcsinh(1e3) / 2)], [1e308], [np.nan]])
    scaler = DPQuantileScaler(0.1, search_range=(-1e3, 1e3)).fit(X[:3])
    assert scaler.method_ == "public" and scaler.bounds_.tolist() == [[-1e3, 1e3]]
    assert_allclose(scaler.transform(X).ravel(), [-1.0, -1.0, 0.0, 0.5, 1.0, 0.0], atol=1e-12)


@pytest.mark.parametrize("owned", [False, True])
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize(("epsilon", "method"), [(1.0, "medians"), (30.0, "quantiles")])
def test_worst_neighbours_lose_what_is_claimed_and_no_more(epsilon, method, adjacency, owned):
    X = np.random.default_rng(0).lognormal(3.0, 1.0, (300, 2))
    groups = np.arange(300) // 3 if owned else None
    scaler = DPQuantileScaler(epsilon, 1e-5, adjacency=adjacency)
    report = replay(scaler, X, groups=groups, n=60, random_state=0)
    assert not report.findings
    # Adding or removing moves both moments by 1, or a utility of the quartiles by 3/4.
    assert report.share > (0.95 if adjacency == "replace-one" else 0.7)


def test_a_user_of_many_rows_moves_quantiles_no_further_than_one_of_a_row():
    X = np.repeat([[0.0], [1.0]], [1000, 1000], axis=0)
    groups = np.r_[np.arange(1000), np.full(1000, 1000)]
    options = dict(quantiles=(0.3, 0.7), random_state=0)
    scaler = DPQuantileScaler(AMPLE, **options).fit(X, groups=groups)
    assert (np.abs(scaler.bounds_) < 0.01).all()  # half of the rows, and one user of 1001
    assert DPQuantileScaler(AMPLE, **options).fit(X).bounds_[0, 1] > 0.99


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_nothing_of_the_rows_is_kept(adjacency):
    X = np.random.default_rng(0).uniform(1.0, 2.0, (3000, 2))
    scaler = DPQuantileScaler(6.0, adjacency=adjacency, n_splines=4).fit(X)
    stored = pickle.dumps(scaler)
    private = [*X[:200].ravel(), X.min(), X.max(), np.quantile(X, 0.01), float(len(X) - 1)]
    for number in private:
        for order in "<>":
            assert np.array(number, dtype=f"{order}f8").tobytes() not in stored
    # Bounds are edges of public cells, or follow from them.
    other = DPQuantileScaler(6.0, adjacency=adjacency, quantiles=(0.2, 0.8)).fit(X)
    edges = other._plan(other._target(), len(X)).edges
    assert np.isin(other.bounds_, edges[0]).all()


@pytest.mark.parametrize(("column", "sign"), [(2, 1.0), (3, -1.0)])
def test_next_to_a_spike_splines_are_narrow(column, sign):
    scaler = DPQuantileScaler(6.0, n_splines=5, random_state=0).fit(columns())
    spike, far = scaler.bounds_[column][:: int(sign)]
    # asinh(100 t) is a quarter, a half and so on of asinh(100).
    shares = np.sinh(np.arange(5) / 4 * np.arcsinh(100.0)) / 100.0
    X = np.zeros((5, 6))
    X[:, column] = spike + shares * (far - spike)
    hats = scaler.transform(X).toarray()[:, 5 * column : 5 * column + 5]
    assert_allclose(hats[:: int(sign)], np.eye(5), atol=1e-6)


def test_bad_rows_are_refused_without_a_value():
    text = pd.DataFrame({"size": [1.0, 2.0], "city": ["Ulm", "Bonn"]})
    with pytest.raises(ValueError, match="X must hold numbers in every column") as refused:
        DPQuantileScaler(AMPLE).fit(text)
    assert "Ulm" not in str(refused.value) and refused.value.__context__ is None
    twice = pd.DataFrame([[1.0, 2.0]] * 9, columns=["size", "size"])
    with pytest.raises(ValueError, match=r"distinct column names; got \['size'\]"):
        DPQuantileScaler(AMPLE).fit(twice)
    with pytest.raises(ValueError, match="NaN: pass missing='center'"):
        DPQuantileScaler(AMPLE, missing="error").fit([[np.nan], [1.0]])
