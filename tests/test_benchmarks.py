"""The comparison with peers: data, scores and peers on sets that come with the libraries."""

import csv
import dataclasses
import importlib
import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, r2_score, roc_auc_score
from sklearn.utils import Bunch

import skdp

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


def users_benchmark():
    """The script, which is no part of the folder's package."""
    spec = importlib.util.spec_from_file_location("users_benchmark", FOLDER / "users.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


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


def test_few_numbers_stand_in_rules():
    sys.path.insert(0, str(FOLDER))
    try:
        defaults = importlib.import_module("defaults")
    finally:
        sys.path.remove(str(FOLDER))
    found = defaults.counted(Path(skdp.__file__).parents[1])
    assert sum(map(len, found.values())) <= 100, found
    places = {"linear", "kernel", "network", "pipeline"}
    assert {f"_defaults/{place}.py" for place in places} <= set(found)


def test_the_whole_of_rcv1_is_split_and_hashed_as_the_sample(monkeypatch):
    sys.path.insert(0, str(FOLDER))
    try:
        with skdp.config_context():  # the script sets its own
            benchmark = importlib.import_module("distributed_paper")
    finally:
        sys.path.remove(str(FOLDER))
    rng = np.random.default_rng(0)
    places = np.repeat(np.arange(4), 50), rng.choice(47_236, 200, replace=False)
    rows = sparse.csr_array((rng.random(200), places), shape=(4, 47_236))
    labels = sparse.csr_array(np.array([[0, 1], [1, 0], [1, 1], [0, 0]], dtype=np.uint8))
    asked = []

    def stub(subset):
        asked.append(subset)
        kept = slice(3) if subset == "train" else slice(3, 4)
        names = np.array(["C15", "CCAT"], dtype=object)
        return Bunch(data=rows[kept], target=labels[kept], target_names=names)

    monkeypatch.setattr(benchmark, "fetch_rcv1", stub)
    data = benchmark.rcv1(whole=True)
    X, y, X_test, y_test = (getattr(data, field.name) for field in dataclasses.fields(data)[:4])
    assert asked == ["train", "test"]
    assert X.shape == (3, 4096) and X_test.shape == (1, 4096)
    assert y.tolist() == [1, 0, 1] and y_test.tolist() == [0]
    # Signs are random: hashing keeps squared norms on average, and these rows' to a third.
    squares = [part.multiply(part).sum(axis=1) for part in (X, rows[:3])]
    np.testing.assert_allclose(*squares, rtol=0.3)
