import bz2
import os
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.datasets import dump_svmlight_file
from support.downloads import no_network

from skdp.datasets import _text, fetch_imdb, fetch_newsgroups20

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

FOLDER = Path(os.environ.get("SKDP_DATA", ""))
needs_newsgroups = pytest.mark.skipif(
    not (FOLDER / "newsgroups20" / "newsgroups20_train.svm.bz2").is_file(),
    reason="SKDP_DATA does not name a folder with the 20 Newsgroups files",
)
needs_imdb = pytest.mark.skipif(
    not (FOLDER / "imdb" / "imdb_train.svm.bz2").is_file(),
    reason="SKDP_DATA does not name a folder with the IMDB files",
)


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
def tiny(tmp_path, monkeypatch):
    """A folder with a few rows of each file, and no other source."""
    for name, rows in FILES.items():
        path = tmp_path / f"{name}.bz2"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(bz2.compress(svmlight(rows).encode()))
    monkeypatch.setenv("SKDP_DATA", str(tmp_path))
    monkeypatch.setattr(_text, "fetch_20newsgroups_vectorized", no_network)
    return tmp_path


@each_set
def test_rows_are_logarithms_of_counts_of_norm_one(tiny, fetch, rows, n_tokens):
    for part in ("train", "test"):
        data = fetch(part).data
        assert sparse.issparse(data) and data.format == "csr"
        assert data.dtype == np.float64
        assert data.indices.dtype == data.indptr.dtype == np.int32
        assert data.has_canonical_format
        assert_allclose(data.toarray(), dense(rows[part], n_tokens), rtol=1e-14)


@each_set
def test_a_row_does_not_depend_on_the_others(tiny, fetch, rows, n_tokens):
    for options in ({}, {"n_features": 3}):
        train, test, both = (fetch(part, **options).data for part in ("train", "test", "all"))
        assert_array_equal(both.toarray(), np.vstack([train.toarray(), test.toarray()]))
        for name in FILES:
            if name.endswith("_train.svm") and FILES[name] is rows["train"]:
                alone = bz2.compress(svmlight(rows["train"][1:2]).encode())
                original = (tiny / f"{name}.bz2").read_bytes()
                (tiny / f"{name}.bz2").write_bytes(alone)
                assert_array_equal(fetch(**options).data.toarray(), train.toarray()[1:2])
                (tiny / f"{name}.bz2").write_bytes(original)


def test_the_groups_are_numbered_in_the_order_of_their_names(tiny):
    news = fetch_newsgroups20("all")
    assert news.target.tolist() == [1, 7, 11, 19, 15, 14]
    assert news.target.dtype == np.int64
    assert news.target_names == sorted(news.target_names) and news.classes == list(range(20))
    assert news.target_names[11] == "sci.crypt"


def test_the_binary_target_tells_technical_groups(tiny):
    news, groups = fetch_newsgroups20("all", binary=True), fetch_newsgroups20("all")
    names = [groups.target_names[i] for i in groups.target]
    expected = [int(name.split(".")[0] in ("comp", "sci")) for name in names]
    assert news.target.tolist() == expected == [1, 0, 1, 0, 0, 1]
    assert news.classes == [0, 1] and news.target_names == ["other", "technical"]


def test_stripped_messages_have_files_of_their_own(tiny):
    news = fetch_newsgroups20(stripped=True)
    assert_allclose(news.data.toarray(), dense(STRIPPED["train"], 101_631), rtol=1e-14)


def test_reviews_in_favour_are_class_1(tiny):
    assert fetch_imdb("all").target.tolist() == [0, 1, 1, 0]
    assert fetch_imdb().target_names == ["negative", "positive"]


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


@each_set
def test_unpacked_files_will_do(tiny, fetch, rows, n_tokens):
    expected = fetch("all")
    for packed in tiny.glob("*/*.bz2"):
        packed.with_suffix("").write_bytes(bz2.decompress(packed.read_bytes()))
        packed.unlink()
    assert_array_equal(fetch("all").data.toarray(), expected.data.toarray())
    assert_array_equal(fetch("all").target, expected.target)


def test_files_made_as_the_notes_say_are_read(tiny):
    counts = np.zeros((2, 74_849))
    counts[0, [3, 74_848]], counts[1, 0] = [1.0, 2.0], 5.0
    path = tiny / "imdb" / "imdb_train.svm"
    path.with_name("imdb_train.svm.bz2").unlink()
    dump_svmlight_file(sparse.csr_matrix(counts), [1, -1], str(path), zero_based=False)
    reviews = fetch_imdb()
    expected = [(1, {3: 1, 74_848: 2}), (-1, {0: 5})]
    assert_allclose(reviews.data.toarray(), dense(expected, 74_849), rtol=1e-14)
    assert reviews.target.tolist() == [1, 0]


@each_set
def test_hashed_columns_are_sums_of_signed_columns(tiny, fetch, rows, n_tokens):
    n_features = 7
    # What becomes of each column is read off rows with one token.
    image = _text._hashing(n_tokens, n_features).toarray()
    assert_array_equal(np.abs(image).sum(axis=1), 1.0)
    assert_array_equal(np.unique(image), [-1.0, 0.0, 1.0])
    for part in ("train", "test"):
        hashed = fetch(part, n_features=n_features)
        assert hashed.data.shape == (len(rows[part]), n_features)
        assert hashed.data.indices.dtype == np.int32 and hashed.data.has_canonical_format
        expected = dense(rows[part], n_tokens) @ image
        norms = np.linalg.norm(expected, axis=1, keepdims=True)
        expected = np.divide(expected, norms, out=np.zeros_like(expected), where=norms > 0)
        assert_allclose(hashed.data.toarray(), expected, atol=1e-14)


def test_hashed_rows_are_sorted():
    counts = sparse.random(20, 1_000, density=0.1, random_state=0, format="csr")
    rows = _text._rows(counts, 64)
    # A matrix without the remembered answer, so that it is looked up.
    fresh = sparse.csr_matrix((rows.data, rows.indices, rows.indptr), shape=rows.shape)
    assert fresh.has_canonical_format


def test_the_hash_is_the_published_one():
    # The first numbers of splitmix64 from seed 0, as its users print them.
    first = [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F, 0xF88BB8A8724C81EC]
    assert [int(number) for number in _text._splitmix64(4)] == first
    # Longer lists begin alike, so train, test and stripped parts agree about a column.
    assert_array_equal(_text._splitmix64(4), _text._splitmix64(1_000)[:4])


def test_the_hash_spreads_columns_and_signs():
    image = _text._hashing(130_107, 1_024)
    loads = np.bincount(image.indices, minlength=1_024)
    # 1,023 degrees of freedom: mean 1,023, standard deviation 45. The hash is fixed, so this is
    # one draw; five standard deviations would be a poor one.
    chi2 = ((loads - loads.mean()) ** 2 / loads.mean()).sum()
    assert abs(chi2 - 1_023.0) < 5 * 45.3
    assert abs(image.data.sum()) < 5 * np.sqrt(130_107)
    # Signs do not follow from places.
    by_column = np.asarray(image.sum(axis=0)).ravel()
    assert_allclose(by_column.var(), 130_107 / 1_024, rtol=0.25)


def test_hashing_keeps_inner_products_on_average():
    rng = np.random.default_rng(0)
    n_tokens, n_features = 20_000, 256
    X = sparse.random(60, n_tokens, density=0.005, random_state=rng, format="csr")
    exact = (X @ X.T).toarray()
    hashed = X @ _text._hashing(n_tokens, n_features)
    error = (hashed @ hashed.T).toarray() - exact
    # Weinberger et al., Lemma 2: no bias, and a variance of at most 2 |x|^2 |y|^2 / n_features.
    norms = np.sqrt(np.diag(exact))
    scaled = error[np.triu_indices(60, 1)] / np.outer(norms, norms)[np.triu_indices(60, 1)]
    assert abs(scaled.mean()) < 0.02
    assert np.mean(scaled**2) < 2.0 / n_features


def test_scikit_learn_is_asked_when_the_files_are_not_there(tiny, monkeypatch):
    asked = []

    def fetch(*, subset, remove, data_home, normalize, return_X_y):
        assert data_home == "home" and normalize is False and return_X_y
        asked.append((subset, remove))
        rows, n_tokens = (STRIPPED, 101_631) if remove else (NEWS, 130_107)
        counts = sparse.lil_matrix((len(rows[subset]), n_tokens), dtype=np.int64)
        for i, (_, row) in enumerate(rows[subset]):
            for column, count in row.items():
                counts[i, column] = count
        return counts.tocsr(), np.array([label for label, _ in rows[subset]])

    options = [{"binary": True}, {"stripped": True}, {"n_features": 5}]
    expected = [fetch_newsgroups20("all", **option) for option in options]
    monkeypatch.setattr(_text, "fetch_20newsgroups_vectorized", fetch)
    monkeypatch.delenv("SKDP_DATA")
    for option, bunch in zip(options, expected, strict=True):
        again = fetch_newsgroups20("all", data_home="home", **option)
        assert_array_equal(again.data.toarray(), bunch.data.toarray())
        assert_array_equal(again.target, bunch.target)
        assert again.data.indices.dtype == np.int32
    everything = ("headers", "footers", "quotes")
    assert asked[:4] == [("train", ()), ("test", ()), ("train", everything), ("test", everything)]


@pytest.mark.parametrize("fetch", [fetch_newsgroups20, fetch_imdb])
def test_without_any_source_one_sentence_says_what_to_do(fetch, tmp_path, monkeypatch):
    monkeypatch.setattr(_text, "fetch_20newsgroups_vectorized", no_network)
    monkeypatch.delenv("SKDP_DATA", raising=False)
    with pytest.raises(OSError, match=r"SKDP_DATA \(not set\)") as refusal:
        fetch("test")
    assert "_test.svm.bz2" in str(refusal.value) and "from http" in str(refusal.value)
    monkeypatch.setenv("SKDP_DATA", str(tmp_path / "empty"))
    with pytest.raises(OSError, match="SKDP_DATA") as refusal:
        fetch()
    assert str(tmp_path / "empty") in str(refusal.value)


@pytest.mark.parametrize(
    "text",
    ["-1 3:-2\n", "-1 0:2\n", "-1 74850:1\n", "2 3:1\n", "-1 3:nan\n", "-1 3:inf\n", "-1 a:b\n"],
)
def test_damaged_files_are_refused(tiny, text):
    (tiny / "imdb" / "imdb_train.svm.bz2").write_bytes(bz2.compress(text.encode()))
    with pytest.raises(ValueError, match="must hold counts of 74849 tokens and labels"):
        fetch_imdb()


@pytest.mark.parametrize(
    ("fetch", "options", "message"),
    [
        (fetch_imdb, {"subset": "dev"}, "subset must be one of 'train', 'test', 'all'; got 'dev'"),
        (fetch_imdb, {"n_features": 0}, "n_features must be a positive integer or None; got 0"),
        (fetch_imdb, {"n_features": True}, "n_features must be a positive integer or None"),
        (fetch_newsgroups20, {"n_features": 2.5}, "n_features must be a positive integer or None"),
        (fetch_newsgroups20, {"subset": None}, "subset must be one of"),
        (fetch_newsgroups20, {"binary": "yes"}, "binary must be True or False; got 'yes'"),
        (fetch_newsgroups20, {"stripped": 1}, "stripped must be True or False; got 1"),
    ],
)
def test_other_options_are_refused(tiny, fetch, options, message):
    with pytest.raises(ValueError, match=message):
        fetch(**options)


@needs_newsgroups
def test_the_real_messages_have_the_published_numbers():
    train, test = fetch_newsgroups20(), fetch_newsgroups20("test")
    assert train.data.shape == (11_314, 130_107) and train.data.nnz == 1_787_565
    assert test.data.shape == (7_532, 130_107)
    assert np.bincount(train.target).min() == 377 and np.bincount(train.target).max() == 600
    for bunch in (train, test, fetch_newsgroups20("test", n_features=1_024)):
        assert_allclose(sparse.linalg.norm(bunch.data, axis=1), 1.0, rtol=1e-13)
    names = Path(FOLDER / "newsgroups20" / "target_names.txt")
    if names.is_file():
        assert names.read_text().split() == train.target_names


@needs_imdb
def test_the_real_reviews_have_the_published_numbers():
    X, y = fetch_imdb(return_X_y=True)
    assert X.shape == (25_000, 74_849) and X.nnz == 3_431_196
    assert np.bincount(y).tolist() == [12_500, 12_500]
    assert_allclose(sparse.linalg.norm(X, axis=1), 1.0, rtol=1e-13)
