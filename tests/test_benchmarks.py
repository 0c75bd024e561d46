"""The comparison with peers: data, scores and peers on sets that come with the libraries."""

import csv
import importlib
import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, r2_score, roc_auc_score

from skdp.privacy import ApproxDP, gaussian_delta, gaussian_mu, user_guarantee

FOLDER = Path(__file__).parents[1] / "benchmarks"
NAMES = ("compare", "comparison", "data", "descent", "exchange", "regression", "report")
NAMES += ("scores", "table")
BUNDLED = ("breast cancer", "fair", "digits", "diabetes")


@pytest.fixture(scope="module")
def peers():
    """The modules of the folder, which is no package that is installed."""
    sys.path.insert(0, str(FOLDER))
    try:
        return {name: importlib.import_module(f"peers.{name}") for name in NAMES}
    finally:
        sys.path.remove(str(FOLDER))


@pytest.mark.parametrize("name", BUNDLED)
def test_splits_are_disjoint_and_the_same_again(peers, name):
    split = peers["data"].split
    first, again, other = split(name, 200, 3), split(name, 200, 3), split(name, 200, 4)
    np.testing.assert_array_equal(first.X, again.X)
    np.testing.assert_array_equal(first.y_test, again.y_test)
    assert list(first.raw.index) != list(other.raw.index)
    assert not set(first.raw.index) & set(first.raw_test.index)
    assert len(first.X) == len(first.y) == len(first.raw) == 200
    # Fewer rows are the first of more, and the test rows do not depend on them.
    most = split(name, None, 3)
    np.testing.assert_array_equal(most.y[:200], first.y)
    np.testing.assert_array_equal(most.y_test, first.y_test)
    assert len(most.raw) > 200


@pytest.mark.parametrize("name", BUNDLED)
def test_rows_are_within_what_is_declared(peers, name):
    split = peers["data"].split(name, None, 0)
    for X in (split.X, split.X_test):
        if split.y_bounds is None:
            norms = np.linalg.norm(X, axis=1)
            assert np.all(norms <= 1.0 + 1e-12)
            assert np.median(norms) > 0.99
        else:
            assert np.abs(X).max() <= 1.0
            assert np.ptp(X, axis=0).min() > 0.1
    if split.y_bounds is not None:
        low, high = split.y_bounds
        assert np.mean((split.y < low) | (split.y > high)) < 0.01


def test_each_column_has_one_public_description_in_round_numbers(peers):
    for name in BUNDLED:
        table = peers["data"].SETS[name]()
        named = [*table.bounds, *table.categories, *table.indicators]
        assert sorted(named) == sorted(table.data)
        assert all(low < high for low, high in table.bounds.values())
        ends = [*table.bounds.values(), *([table.y_bounds] if table.y_bounds else [])]
        # Three digits are of a codebook or a guess; extremes of measurements have more.
        assert all(np.isclose(end, float(f"{end:.3g}"), atol=0.0) for pair in ends for end in pair)


def test_scores_are_those_of_scikit_learn(peers):
    scores = peers["scores"]
    rng = np.random.default_rng(0)
    for n_classes in (2, 3):
        y = rng.integers(n_classes, size=300)
        X = rng.standard_normal((300, 4)) + 0.5 * y[:, np.newaxis]
        X[:100] = np.round(X[:100])  # ties
        model = LogisticRegression().fit(X, y)
        values = model.predict_proba(X)
        found = scores.classification_scores(y, values, model.classes_, np.arange(n_classes))
        expected = roc_auc_score(y, values[:, 1] if n_classes == 2 else values, multi_class="ovr")
        assert found["auc"] == pytest.approx(expected)
        assert found["accuracy"] == pytest.approx(model.score(X, y))
        assert found["log_loss"] == pytest.approx(log_loss(y, values))
    y, predicted = rng.standard_normal((2, 50))
    assert scores.regression_scores(y, predicted)["r2"] == pytest.approx(r2_score(y, predicted))


def test_a_class_that_a_model_does_not_know_costs_what_a_certain_mistake_costs(peers):
    values = np.array([[0.25, 0.75], [0.5, 0.5], [1.0, 0.0]])
    labels, y = np.array(["a", "b", "c"]), np.array(["a", "b", "c"])
    found = peers["scores"].classification_scores(y, values, np.array(["a", "c"]), labels)
    expected = -np.log([0.25, 1e-15, 1e-15]).mean()
    assert found["log_loss"] == pytest.approx(expected)


@pytest.mark.parametrize("solver", ["ada_ssp", "boosted_ada_ssp"])
def test_regression_from_noisy_moments_is_least_squares_at_a_large_budget(peers, solver):
    split = peers["data"].split("diabetes", None, 0)
    public = dict(y_bounds=split.y_bounds, delta=1e-5, rng=np.random.default_rng(0))
    fit = getattr(peers["regression"], solver)
    predicted = fit(split.X, split.y, split.X_test, epsilon=1e9, **public)
    rows, test = (np.column_stack([X, np.ones(len(X))]) for X in (split.X, split.X_test))
    expected = test @ np.linalg.lstsq(rows, split.y)[0]
    # Cut to the public bounds.
    np.testing.assert_allclose(predicted, np.clip(expected, *split.y_bounds), atol=0.5)
    noisy = fit(split.X[:200], split.y[:200], split.X_test, epsilon=1.0, **public)
    assert np.all((noisy >= split.y_bounds[0]) & (noisy <= split.y_bounds[1]))
    assert np.abs(noisy - predicted).max() > 1.0


def test_regression_from_noisy_moments_has_the_noise_of_its_budget(peers, monkeypatch):
    """Rows that are no rows: moments and products are noise, of releases of equal mu."""
    regression = peers["regression"]
    mu, d = 0.7, 300
    moments = regression._noisy_moments(np.zeros((1, d)), mu, np.random.default_rng(0), 40.0, 2.0)
    np.testing.assert_array_equal(moments, moments.T)
    # xx' - zz' for orthogonal unit rows has the Frobenius norm sqrt(2), each pair counted twice.
    off = moments[np.triu_indices(d, 1)]
    assert off.std() == pytest.approx(1.0 / mu, rel=0.025)  # 44,850 values: 7 errors
    # The penalty makes them positive.
    assert np.linalg.eigvalsh(moments)[0] > 0.0

    monkeypatch.setattr(regression, "_noisy_moments", lambda *_: np.eye(d))
    monkeypatch.setattr(regression, "_rows", lambda X: np.zeros((len(X), d)))
    monkeypatch.setattr(regression, "_predicted", lambda X, weights, y_bounds: weights)
    public = dict(y_bounds=(-1.0, 1.0), epsilon=1.0, delta=1e-5, rng=np.random.default_rng(0))
    nothing = np.zeros((1, 1)), np.zeros(1), np.zeros((1, 1))
    sigma = 2.0 / gaussian_mu(epsilon=1.0, delta=1e-5)
    products = [regression.ada_ssp(*nothing, **public) for _ in range(50)]
    assert np.std(products) == pytest.approx(np.sqrt(3.0) * sigma, rel=0.041)  # 15,000 values
    rounds = [regression.boosted_ada_ssp(*nothing, n_rounds=4, **public) for _ in range(50)]
    # Six releases; the weights have the noise of four rounds.
    assert np.std(rounds) == pytest.approx(np.sqrt(6.0) * 2.0 * sigma, rel=0.041)


def test_the_descents_of_a_grid_spend_the_whole_budget_and_no_more(peers):
    """The noise of a step without a gradient: its standard deviation, and mu of all steps."""
    n_steps, cap, epsilon, delta = 4, 0.7, 1.0, 1e-5
    mu = gaussian_mu(epsilon=epsilon, delta=delta)
    # Rows of zeros: weights are noise only, of the last of steps of length cap * n_rows.
    weights = peers["descent"]._descend(
        np.zeros((10, 50_000)),
        np.zeros_like,
        np.array([mu]),
        np.array([[10.0 * cap, cap]]),
        n_steps,
        np.random.default_rng(0),
    )["last"]
    sigma = weights.std() / np.sqrt(n_steps)
    # 50,000 values: seven standard errors are 2.2 %.
    assert sigma == pytest.approx(2.0 * cap * np.sqrt(n_steps) / mu, rel=0.022)
    spent = 2.0 * cap / sigma * np.sqrt(n_steps)
    assert gaussian_delta(epsilon=epsilon, mu=spent) == pytest.approx(delta, rel=0.35)


def test_a_gradient_in_a_descent_is_cut(peers):
    """One row of slope one: the first step has the length of the cap."""
    row = np.array([[3.0, 4.0]])
    weights = peers["descent"]._descend(
        row, np.ones_like, np.array([1e12]), np.array([[0.5, 0.5]]), 1, np.random.default_rng(0)
    )["last"]
    np.testing.assert_allclose(weights[:, 0, 0], [-0.3, -0.4], atol=1e-6)


def test_a_table_goes_on_where_it_stopped(peers, tmp_path, monkeypatch, capsys):
    path = tmp_path / "table.csv"
    options = ["--sets", "breast cancer", "--sizes", "200", "full", "--epsilons", "1"]
    options += ["--methods", "ours", "constant", "--jobs", "1", "--out", str(path), "--draws"]

    def run(draws):
        monkeypatch.setattr(sys, "argv", ["table.py", *options, str(draws)])
        peers["table"].main()
        return path.read_text().splitlines()

    first = run(1)
    longer = run(2)
    assert longer[: len(first)] == first
    assert run(2) == longer
    lines = list(csv.DictReader(longer))
    # Two sizes, two draws; ours with two values of delta, and the constant once.
    assert len(lines) == 2 * 2 * 3
    assert all(0.0 < float(line["accuracy"]) <= 1.0 and not line["error"] for line in lines)
    assert {line["n_train"] for line in lines} == {"200", "398"}
    capsys.readouterr()
    monkeypatch.setattr(sys, "argv", ["report.py", str(path)])
    peers["report"].main()
    mean = np.mean([float(line["accuracy"]) for line in lines if line["method"] == "constant"])
    assert f"{mean:.3f}" in capsys.readouterr().out


def test_a_report_counts_where_another_one_is_ahead_draw_by_draw(peers):
    """Splits differ by much, methods on the same split by little."""
    import pandas as pd

    rng = np.random.default_rng(0)
    lines = []
    for draw in range(20):
        split = rng.normal(0.8, 0.1)
        for method, ahead in {"ours": 0.0, "peer": 0.01, "tuned": -0.01, "worst": -0.1}.items():
            for setting in ("a", "b") if method == "tuned" else ("",):
                score = split + ahead + rng.normal(0.0, 0.002) + 0.02 * (setting == "b")
                cell = dict(kind="binary", set="fair", n="1000", epsilon=1.0, delta=0.0)
                lines.append(cell | dict(method=method, draw=draw, setting=setting, auc=score))
    report = peers["report"]
    table = report.by_score(pd.DataFrame(lines), "auc")
    gaps = {
        name: report.differences(table, "ours", name, "auc").iloc[0]
        for name in ("peer", "tuned", "worst")
    }
    assert gaps["peer"]["gap"] == pytest.approx(-0.01, abs=0.003)
    assert gaps["peer"]["error"] == pytest.approx(0.002 * np.sqrt(2 / 20), rel=0.6)
    assert gaps["tuned"]["gap"] == pytest.approx(-0.01, abs=0.003)  # the setting "b"
    assert gaps["worst"]["gap"] == pytest.approx(0.1, abs=0.003)


def users_benchmark():
    """The script, which is no part of the folder's package."""
    spec = importlib.util.spec_from_file_location("users_benchmark", FOLDER / "users.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("n_rows", [1, 2, 4])
def test_bounded_rows_of_a_user_lose_what_users_do(n_rows):
    users = users_benchmark()
    part = users.epsilon_of_rows(1.0, n_rows)
    whole = user_guarantee(ApproxDP(part, users.DELTA).gaussian_target(), n_rows)
    assert whole.epsilon_at(users.DELTA) == pytest.approx(1.0, rel=1e-6)
    assert (part == pytest.approx(1.0, rel=1e-9)) == (n_rows == 1)


def test_users_are_compared_on_one_split_and_score_by_row_and_by_user(capsys):
    users, rng = users_benchmark(), np.random.default_rng(0)
    groups = np.append(np.arange(60), rng.integers(0, 60, 100))
    X = rng.uniform(-0.5, 0.5, (160, 3))
    for bounds in (None, (-1.0, 1.0)):
        y = X[:, 0] > 0.0 if bounds is None else X[:, 0]
        task = users.Task("made up", X, y, groups, bounds)
        users.table(task, [1.0], 2)
        told = capsys.readouterr().out
        assert "160 rows, 60 users, 2.7 rows each" in told
        names = ["not private", "rows", "users", "1 row a user", "2 rows a user", "4 rows a user"]
        assert [name for name in names if f" {name} " in told] == names
    task = users.Task("made up", X, X[:, 0] > 0.0, groups)

    class Known:
        def predict(self, X):
            return np.arange(len(X)) > 0  # wrong on the first of two rows of a user

        def predict_proba(self, X):
            return np.column_stack([np.full(len(X), 0.5)] * 2)

    y, owner = np.array([True, True, True, False]), np.array([1, 1, 2, 3])
    accuracy, by_user, _, loss = task.score(Known(), X[:4], y, owner)
    assert (accuracy, by_user) == (pytest.approx(1 / 2), pytest.approx((1 / 2 + 1 + 0) / 3))
    assert loss == pytest.approx(np.log(2.0))


def test_the_pages_have_the_tables_that_the_command_prints(peers, monkeypatch, capsys):
    compare = peers["compare"]
    monkeypatch.setattr(sys, "argv", ["compare.py"])
    compare.main()
    parts = []
    for name in ("peers", "peers_tables"):
        page = (FOLDER.parent / "doc" / f"{name}.rst").read_text(encoding="utf-8")
        parts += [page.split(".. begin peers\n")[1].split(".. end peers\n")[0].strip()]
    assert "\n\n".join(parts) == capsys.readouterr().out.strip()
    figures = {path.stem for path in (FOLDER.parent / "doc" / "_static" / "peers").glob("*.png")}
    assert figures == {name.replace(" ", "-") for name in compare.SETS}


def test_what_peers_get_has_public_bounds_and_no_label_of_a_test_row(peers, tmp_path):
    for name in ("fair", "diabetes"):
        split = peers["data"].split(name, 200, 0)
        peers["exchange"].write_rows(tmp_path / "rows.npz", split)
        with np.load(tmp_path / "rows.npz") as file:
            rows = dict(file)
        of_test = {key for key, values in rows.items() if len(split.y_test) in values.shape[:1]}
        assert of_test == {"X_test", "numbers_test", "codes_test"}
        for end in ("", "_test"):
            assert np.all(
                (rows["low"] <= rows[f"numbers{end}"]) & (rows[f"numbers{end}"] <= rows["high"])
            )
            assert len(rows[f"codes{end}"]) == len(rows[f"numbers{end}"]) == len(rows[f"X{end}"])
        if split.y_bounds is not None:
            assert np.all((rows["x_low"] <= rows["X"]) & (rows["X"] <= rows["x_high"]))


def test_a_peer_is_ahead_by_two_errors_of_the_best_setting(peers):
    import pandas as pd

    comparison, lines = peers["comparison"], []
    rng = np.random.default_rng(0)
    ahead = {
        "ours": 0.0,
        "ours, add-remove": 0.02,
        "diffprivlib": -0.01,
        "DP-SGD": 0.01,
        "DP-SGD, tuned": 0.03,
    }
    for draw in range(5):
        level = rng.normal(0.8, 0.1)  # of a split
        for method, gain in ahead.items():
            for setting in ("a", "b") if "tuned" in method else ("",):
                worse = 0.1 * (setting == "b")
                cell = dict(set="adult", method=method, setting=setting, draw=draw, error=None)
                cell |= dict(epsilon=1.0, delta=0.0 if method == "diffprivlib" else 1e-5)
                value = level + gain - worse + rng.normal(0.0, 1e-4)
                lines.append(cell | dict(accuracy=value, auc=np.nan, r2=np.nan))
    cells = comparison.ahead(pd.DataFrame(lines)).set_index("method")
    assert list(cells.index) == ["DP-SGD", "DP-SGD, tuned"]
    assert list(cells["also"]) == [False, True]
    assert cells.loc["DP-SGD, tuned", "gap"] == pytest.approx(0.03, abs=1e-3)
