"""Text data sets as sparse rows of token counts."""

from functools import partial
from numbers import Integral

import numpy as np
from scipy import sparse
from sklearn.datasets import fetch_20newsgroups_vectorized, load_svmlight_file
from sklearn.preprocessing import normalize

from skdp._validation import boolean
from skdp.datasets._files import DataSet, parts_of

_NEWSGROUPS = (
    "alt.atheism, comp.graphics, comp.os.ms-windows.misc, comp.sys.ibm.pc.hardware, "
    "comp.sys.mac.hardware, comp.windows.x, misc.forsale, rec.autos, rec.motorcycles, "
    "rec.sport.baseball, rec.sport.hockey, sci.crypt, sci.electronics, sci.med, sci.space, "
    "soc.religion.christian, talk.politics.guns, talk.politics.mideast, talk.politics.misc, "
    "talk.religion.misc"
)
NEWSGROUPS = _NEWSGROUPS.split(", ")
TECHNICAL = [name.startswith(("comp.", "sci.")) for name in NEWSGROUPS]

# Tokens that scikit-learn's CountVectorizer finds in the training part.
NEWSGROUPS_TOKENS = {False: 130_107, True: 101_631}
IMDB_TOKENS = 74_849

NEWS = DataSet(
    page="http://qwone.com/~jason/20Newsgroups/ (counts of tokens in the svmlight format)",
    x_norm=1.0,
    DESCR="""20 Newsgroups, by date

18,846 messages to twenty newsgroups, of about 1993: 11,314 for training and 7,532 later ones for
testing. The task is to tell the group, or whether it is a technical one (comp.* and sci.*) or
another.

A row holds log(1 + count) of each token, scaled to Euclidean norm 1; a message without known
tokens is a row of zeros. This looks at one message at a time. Inverse document frequencies would
not: they are counts over all messages, and private ones would cost budget. The list of tokens is
the exception: it was made from the training part and is taken to be public, as it was published
with the set.

K. Lang, "NewsWeeder: learning to filter netnews", ICML 1995. Divided by date by J. Rennie,
http://qwone.com/~jason/20Newsgroups/
""",
)
IMDB = DataSet(
    page="https://ai.stanford.edu/~amaas/data/sentiment/ (its documentation tells how)",
    x_norm=1.0,
    DESCR="""IMDB reviews of films

50,000 reviews with a clear opinion, 25,000 for training and 25,000 of other films for testing;
half of either part is in favour. The task is to tell which.

A row holds log(1 + count) of each token, scaled to Euclidean norm 1; a review without known
tokens is a row of zeros. This looks at one review at a time. Inverse document frequencies would
not: they are counts over all reviews, and private ones would cost budget. The list of tokens is
the exception: it was made from the training part and is taken to be public.

Reviews of one film may be up to 30, and nothing tells who wrote them.

A. Maas, R. Daly, P. Pham, D. Huang, A. Ng and C. Potts, "Learning word vectors for sentiment
analysis", ACL 2011.
""",
)


def fetch_newsgroups20(
    subset="train",
    *,
    binary=False,
    stripped=False,
    n_features=None,
    data_home=None,
    timeout=None,
    return_X_y=False,
):
    """Load the 20 newsgroups messages (classification) as sparse rows of norm 1.

    The files ``newsgroups20/newsgroups20_train.svm`` and ``..._test.svm`` (or
    ``newsgroups20/newsgroups20_stripped_train.svm`` and ``..._test.svm``), optionally compressed
    with bzip2 (``.bz2``), are read from the folder in the environment variable ``SKDP_DATA``.
    They contain token counts in svmlight format, with columns from 1. If they are missing,
    scikit-learn fetches the messages and counts the tokens (same counts, other row order).

    Parameters
    ----------
    subset : {"train", "test", "all"}, default="train"
        Subset to load, split by date; "all" is the training set followed by the test set.

    binary : bool, default=False
        If True, the target is 1 for the nine technical groups (``comp.*`` and ``sci.*``) and 0
        for the others. If False, it is the number of the group.

    stripped : bool, default=False
        If True, remove headers, signatures and quotations, which reveal much about the group.

    n_features : int, default=None
        Number of columns into which the tokens are hashed. The column and the sign of a token
        depend only on its number. Private noise grows with the number of columns, so fewer may
        be better. Without noise, 4,096 columns cost a logistic regression three points of
        accuracy in the binary task, and 16,384 less than one. None disables hashing (130,107
        columns, or 101,631 if stripped).

    data_home, timeout, return_X_y
        See `fetch_adult`. The timeout applies to each subset.

    Returns
    -------
    sklearn.utils.Bunch
        Bunch with ``data`` (CSR matrix of 64-bit floats, one row per message), ``target``
        (ndarray of positions in ``target_names``), ``classes`` (these positions),
        ``target_names``, ``x_norm`` (1, a bound on row norms up to rounding), and ``DESCR``. All
        except data and target are public: they are fixed in the code.

    References
    ----------
    Weinberger, Dasgupta, Langford, Smola and Attenberg, "Feature hashing for large scale
    multitask learning", ICML 2009.

    Examples
    --------
    >>> from skdp.datasets import fetch_newsgroups20
    >>> news = fetch_newsgroups20(binary=True, n_features=4096)  # doctest: +SKIP
    >>> news.data.shape, news.target_names  # doctest: +SKIP
    ((11314, 4096), ['other', 'technical'])
    """
    parts = parts_of(subset)
    _check_n_features(n_features)
    boolean(binary=binary)
    boolean(stripped=stripped)
    n_tokens = NEWSGROUPS_TOKENS[bool(stripped)]

    def load(part):
        return NEWS.load(
            partial(_read, n_tokens=n_tokens, labels=range(20)),
            partial(
                fetch_20newsgroups_vectorized,
                subset=part,
                remove=("headers", "footers", "quotes") if stripped else (),
                data_home=data_home,
                normalize=False,
                return_X_y=True,
            ),
            timeout,
            [f"newsgroups20/newsgroups20_{'stripped_' if stripped else ''}{part}.svm.bz2"],
        )

    X, target = _stacked(map(load, parts), n_features)
    if binary:
        target = np.array(TECHNICAL)[target].astype(np.int64)
    names = ["other", "technical"] if binary else list(NEWSGROUPS)
    classes = list(range(len(names)))
    return NEWS.bunch(X, target, return_X_y, target_names=names, classes=classes)


def fetch_imdb(subset="train", *, n_features=None, return_X_y=False):
    """Load the IMDB movie reviews (binary classification) as sparse rows of norm 1.

    The files ``imdb/imdb_train.svm`` and ``imdb/imdb_test.svm``, optionally compressed with bzip2
    (``.bz2``), must be in the folder in the environment variable ``SKDP_DATA``. They contain
    token counts in svmlight format, with columns from 1 and labels -1 and 1. scikit-learn has no
    fetcher for them; see the Notes.

    Parameters
    ----------
    subset : {"train", "test", "all"}, default="train"
        Subset to load, in the original split; "all" is the training set followed by the test
        set.

    n_features : int, default=None
        Number of columns into which the tokens are hashed, as in `fetch_newsgroups20`. None
        disables hashing (74,849 columns).

    return_X_y
        See `fetch_adult`.

    Returns
    -------
    sklearn.utils.Bunch
        Bunch with ``data`` (CSR matrix of 64-bit floats, one row per review), ``target`` (ndarray
        of 0 and 1), ``classes`` (0 and 1), ``target_names`` ("negative" and "positive"),
        ``x_norm`` (1, a bound on row norms up to rounding), and ``DESCR``. All except data and
        target are public: they are fixed in the code.

    Notes
    -----
    To create the files, download the archive from
    https://ai.stanford.edu/~amaas/data/sentiment/, replace ``<br />`` by a space, count the
    tokens of the labelled reviews with a
    `~sklearn.feature_extraction.text.CountVectorizer` fitted on the training set, and save each
    subset with ``sklearn.datasets.dump_svmlight_file(X, y, path, zero_based=False)``.

    Examples
    --------
    >>> from skdp.datasets import fetch_imdb
    >>> reviews = fetch_imdb(n_features=4096)  # doctest: +SKIP
    >>> reviews.data.shape, reviews.target_names  # doctest: +SKIP
    ((25000, 4096), ['negative', 'positive'])
    """
    parts = parts_of(subset)
    _check_n_features(n_features)
    read = partial(_read, n_tokens=IMDB_TOKENS, labels=(-1, 1))
    files = [[f"imdb/imdb_{part}.svm.bz2"] for part in parts]
    X, labels = _stacked([IMDB.load(read, files=names) for names in files], n_features)
    names = ["negative", "positive"]
    target = (labels > 0).astype(np.int64)
    return IMDB.bunch(X, target, return_X_y, target_names=names, classes=[0, 1])


def _check_n_features(n_features):
    whole = isinstance(n_features, Integral) and not isinstance(n_features, bool)
    if n_features is not None and not (whole and 0 < n_features < 2**31):
        raise ValueError(f"n_features must be a positive integer or None; got {n_features!r}.")


def _read(path, n_tokens, labels):
    damaged = ValueError(
        f"{path} must contain counts of {n_tokens} tokens and labels in svmlight format; it is "
        "damaged or belongs to another data set."
    )
    # Columns count from 1; that column 1 occurs must not decide it.
    try:
        counts, target = load_svmlight_file(str(path), n_features=n_tokens, zero_based=False)
    except ValueError as error:
        raise damaged from error
    usable = np.isin(target, labels).all() and np.isfinite(counts.data).all()
    if not usable or (counts.data < 0.0).any():
        raise damaged
    return counts, target.astype(np.int64)


def _stacked(parts, n_features):
    """log(1 + count), hashed where asked for, scaled to norm 1, each row on its own; labels."""
    counts, target = zip(*parts, strict=True)
    rows = sparse.vstack(counts, format="csr", dtype=np.float64)
    rows.data = np.log1p(rows.data)
    if n_features is not None:
        rows = sparse.csr_matrix(rows @ _hashing(rows.shape[1], n_features))
    rows = normalize(rows, copy=False)
    rows.sort_indices()
    rows.indices = rows.indices.astype(np.int32, copy=False)
    rows.indptr = rows.indptr.astype(np.int32, copy=False)
    return rows, np.concatenate(target)


def _hashing(n_tokens, n_features):
    """Matrix with one entry of 1 or -1 a row, whose place and sign the row's number gives."""
    mixed = _splitmix64(n_tokens)
    columns = (mixed >> np.uint64(1)) % np.uint64(n_features)
    signs = 1.0 - 2.0 * (mixed & np.uint64(1)).astype(np.float64)
    return sparse.csr_matrix(
        (signs, columns.astype(np.int32), np.arange(n_tokens + 1, dtype=np.int32)),
        shape=(n_tokens, n_features),
    )


def _splitmix64(n):
    """First ``n`` numbers of the generator of Steele, Lea and Flood (OOPSLA 2014), seed 0."""
    z = np.arange(1, n + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
