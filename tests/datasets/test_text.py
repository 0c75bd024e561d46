import bz2

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from skdp.datasets import fetch_imdb, fetch_newsgroups20

# Counts {column: count} of each message, columns from 0; the last training message is empty.
NEWS = {
    "train": [(1, {0: 1, 4: 3, 130_106: 2}), (7, {4: 1}), (11, {2: 5, 3: 1}), (19, {})],
    "test": [(15, {1: 2, 3: 1}), (14, {3: 7})],
}
STRIPPED = {
    "train": [(1, {0: 1, 101_630: 2}), (7, {4: 1})],
    "test": [(15, {1: 2})],
}
FILMS = {
    "train": [(-1, {0: 1, 74_848: 4}), (1, {5: 2})],
    "test": [(1, {9: 1}), (-1, {})],
}
FILES = {
    **{f"newsgroups20/newsgroups20_{part}.svm": rows for part, rows in NEWS.items()},
    **{f"newsgroups20/newsgroups20_stripped_{part}.svm": rows for part, rows in STRIPPED.items()},
    **{f"imdb/imdb_{part}.svm": rows for part, rows in FILMS.items()},
}
EACH = [
    pytest.param(fetch_newsgroups20, NEWS, 130_107, id="newsgroups20"),
    pytest.param(fetch_imdb, FILMS, 74_849, id="imdb"),
]
each_set = pytest.mark.parametrize(("fetch", "rows", "n_tokens"), EACH)


def svmlight(rows):
    lines = [
        " ".join([str(label), *(f"{column + 1}:{count}" for column, count in counts.items())])
        for label, counts in rows
    ]
    return "\n".join(lines) + "\n"


def dense(rows, n_tokens):
    """log(1 + count) over its norm, one message at a time."""
    out = np.zeros((len(rows), n_tokens))
    for row, (_, counts) in zip(out, rows, strict=True):
        for column, count in counts.items():
            row[column] = np.log(1.0 + count)
        row /= np.sqrt((row**2).sum()) or 1.0
    return out


@pytest.fixture
def tiny(tmp_path, monkeypatch, scikit_learn):
    """A folder with a few rows of each file, and no other source."""
    for name, rows in FILES.items():
        path = tmp_path / f"{name}.bz2"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(bz2.compress(svmlight(rows).encode()))
    monkeypatch.setenv("SKDP_DATA", str(tmp_path))
    scikit_learn(fetch_newsgroups20, "fetch_20newsgroups_vectorized")
    return tmp_path


@pytest.fixture
def image(tiny):
    """``image(n_features)``: what becomes of each column, read off reviews of one token."""
    rows = [(1, {column: 1}) for column in range(74_849)]
    path = tiny / "imdb" / "imdb_train.svm"

    def read(n_features):
        packed = path.with_name("imdb_train.svm.bz2")
        original = packed.read_bytes()
        packed.write_bytes(bz2.compress(svmlight(rows).encode(), 1))
        found = fetch_imdb(n_features=n_features).data
        packed.write_bytes(original)
        return found

    return read


@each_set
def test_rows_are_logarithms_of_counts_of_norm_one(tiny, fetch, rows, n_tokens):
    for part in ("train", "test"):
        data = fetch(part).data
        assert sparse.issparse(data) and data.format == "csr"
        assert data.dtype == np.float64
        assert data.indices.dtype == data.indptr.dtype == np.int32
        assert data.has_canonical_format
        assert_allclose(data.toarray(), dense(rows[part], n_tokens), rtol=1e-14)


def test_the_groups_are_numbered_in_the_order_of_their_names(tiny):
    news = fetch_newsgroups20("all")
    assert news.target.tolist() == [1, 7, 11, 19, 15, 14]
    assert news.target.dtype == np.int64
    assert news.target_names == sorted(news.target_names) and news.classes == list(range(20))
    assert news.target_names[11] == "sci.crypt"


@each_set
def test_the_bunch_is_complete_and_does_not_share_its_constants(tiny, fetch, rows, n_tokens):
    bunch = fetch()
    X, y = fetch(return_X_y=True)
    assert_array_equal(X.toarray(), bunch.data.toarray())
    assert_array_equal(y, bunch.target)
    assert len(bunch.classes) == len(bunch.target_names)
    assert bunch.x_norm == 1.0
    assert "taken to be public" in " ".join(bunch.DESCR.split())
    bunch.target_names.clear()
    assert fetch().target_names


@pytest.mark.parametrize(
    "text",
    ["-1 3:-2\n", "-1 0:2\n", "-1 74850:1\n", "2 3:1\n", "-1 3:nan\n", "-1 3:inf\n", "-1 a:b\n"],
)
def test_damaged_files_are_refused(tiny, text):
    (tiny / "imdb" / "imdb_train.svm.bz2").write_bytes(bz2.compress(text.encode()))
    with pytest.raises(ValueError, match="must contain counts of 74849 tokens and labels"):
        fetch_imdb()
