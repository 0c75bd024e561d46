"""One-hot encoding with privately learned categories."""

import datetime
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from scipy import sparse
from scipy.special import ndtri

from skdp._defaults import pipeline as defaults
from skdp._grid import UP
from skdp._random._source import NoiseSource
from skdp._validation import boolean, is_auto, plain_arguments, positive_int, short_repr
from skdp.mechanisms import Lattice, NoiseLaw, escape_probability, frequent_names
from skdp.preprocessing._base import PrivateTransformer, array_of, columns_of
from skdp.privacy import ApproxDP, GaussianDP, Guarantee, compose, gaussian_mu
from skdp.rows._source_frames import total_of
from skdp.rows._users import Users

_LIMIT_ESCAPE = 1e-290  # far above where floats lose digits
_GRID_RELATIVE = 2.0**-40  # steps in which a threshold is looked for
_TOLERANCE = 1e-12  # that rounding does not pass
_GRID_STEP = 2.0**-7  # about one percent of a record, as of any other lattice


@dataclass(frozen=True)
class CategoryRelease:
    """Names of the categories of several columns that are frequent, by noisy counts.

    Privacy: a record has one category in each column, and so has a user: that of most of their
    rows. Replacing it moves two counts of a column
    by one, and adding it moves one, so that noise on the counts of all columns is Gaussian
    differential privacy. A category that is in one of two neighbours only is there with a count
    of one, and is released from that one with a small probability, which is paid for with delta,
    once for each column. One that is not in the data is never released.

    A pair of neighbours that pays in a column with probability pays there less in noise than is
    counted, so that both compose to no less than what any pair loses.

    Parameters
    ----------
    law : NoiseLaw
        Of the counts of one column, for a sensitivity of 1.

    threshold : float
        Least noisy count of a category that is released, above 1.

    n_columns : int

    guarantee : ApproxDP
        Of all columns.

    References
    ----------
    Korolova, Kenthapadi, Mishra and Ntoulas, "Releasing search queries and clicks privately",
    WWW 2009; Desfontaines, Voss, Gipson and Mandayam, "Differentially private partition
    selection", PoPETs 2022; Dong, Roth and Su, "Gaussian differential privacy", JRSS-B 2022,
    corollary 2.
    """

    law: NoiseLaw
    threshold: float
    n_columns: int
    guarantee: ApproxDP

    @classmethod
    @plain_arguments
    def plan(cls, target: ApproxDP, *, n_columns: int, min_frequency: int = 1) -> Self:
        """Release that meets a target with a positive delta.

        Parameters
        ----------
        target : ApproxDP

        n_columns : int
            Whose categories are released.

        min_frequency : int, default=1
            Public count below which the threshold is not to fall.

        Returns
        -------
        CategoryRelease

        Raises
        ------
        ValueError
            If delta is 0: what one record alone has could not be told by chance, either.

        Examples
        --------
        >>> from skdp.privacy import ApproxDP
        >>> from skdp.preprocessing._one_hot_encoder import CategoryRelease
        >>> release = CategoryRelease.plan(ApproxDP(1.0, 1e-6), n_columns=1)
        >>> round(release.threshold, 1)
        32.2
        """
        positive_int(n_columns=n_columns, min_frequency=min_frequency)
        guarantee = cls.guarantee_of(target)
        # Whatever their number: all columns share what all may cost.
        together, escape = _split(target)
        law = NoiseLaw.of("gaussian", together).repeated(n_columns)
        # Of columns that are independent, no more than this each makes that for all.
        escape = -math.expm1(math.log1p(-escape) / n_columns) * (1.0 - _TOLERANCE)
        lattice = _lattice(target)
        far = -float(ndtri(escape)) * law.scale * lattice.sensitivity * UP
        least = max(1.0 + _GRID_STEP / 2.0 + far, float(min_frequency))
        threshold = math.ceil(least / _GRID_STEP) * _GRID_STEP
        while threshold <= 1.0 or (
            escape_probability(threshold, law=law, lattice=lattice) > escape
        ):
            threshold += max(_GRID_STEP, _GRID_RELATIVE * threshold // _GRID_STEP * _GRID_STEP)
        return cls(law, threshold, n_columns, guarantee)

    @classmethod
    def guarantee_of(cls, target: ApproxDP) -> ApproxDP:
        """What any number of columns costs, which is ``target`` with what stands behind it."""
        if not isinstance(target, ApproxDP) or target.delta == 0.0:
            raise ValueError(
                "delta must be positive to learn categories; got delta=0. Without delta, a "
                "category of a single record could not be left out. State public categories "
                "instead: OneHotEncoder(categories=..., handle_unknown='ignore')."
            )
        together, escape = _split(target)
        escaping = ApproxDP(0.0, escape, adjacency=target.adjacency, unit=target.unit)
        return replace(
            target,
            refined=compose([together, escaping]),
            mechanism="Gaussian noise on the counts of categories, and a threshold",
            source="Korolova et al., WWW 2009; Dong, Roth and Su, JRSS-B 2022, corollary 2",
        )

    def __call__(
        self, counts: Sequence[Mapping[Any, int]], noise: NoiseSource
    ) -> tuple[tuple[Any, ...], ...]:
        """Release the names of frequent categories.

        Parameters
        ----------
        counts : sequence of n_columns mappings of hashable to int
            How many records have a category, of those that any record has.

        noise : NoiseSource

        Returns
        -------
        tuple of n_columns tuples
            In no public order.
        """
        if len(counts) != self.n_columns:
            raise ValueError(f"counts must have {self.n_columns} columns; got {len(counts)}.")
        lattice = _lattice(self.guarantee)
        return tuple(
            frequent_names(
                column,
                law=self.law,
                lattice=lattice,
                threshold=self.threshold,
                random_state=noise,
                purpose="names of the frequent categories of a column",
            )
            for column in counts
        )


def _split(target: ApproxDP) -> tuple[GaussianDP, float]:
    """Noise on counts, and the probability that pays for names of one record."""
    escape = defaults.PREPARING * target.delta
    if not escape > _LIMIT_ESCAPE:
        raise ValueError(
            f"delta must be larger than {_LIMIT_ESCAPE / defaults.PREPARING:g} to learn "
            f"categories; got {short_repr(target.delta)}."
        )
    mu = gaussian_mu(epsilon=target.epsilon, delta=(target.delta - escape) * (1.0 - _TOLERANCE))
    return GaussianDP(mu, adjacency=target.adjacency, unit=target.unit), escape


def _lattice(target: ApproxDP) -> Lattice:
    """Counts are on it as they are: nothing is rounded."""
    # Replacing a record moves two counts of a column by one.
    return Lattice(_GRID_STEP, math.sqrt(target.n_records_changed))


# Of these equal values are the same; equal tuples or intervals may have several texts.
_PLAIN = (str, int, float, bool, type(None))


def plain_category(value: Any) -> Any:
    """Number, text or None that stands for a value.

    Equal numbers are one category whatever their type, and so are whole numbers that floats do
    not tell apart, truth values are 1 and 0, dates and all else are their texts, times to the
    microsecond, and all kinds of missing values are None.

    Parameters
    ----------
    value : object

    Returns
    -------
    int, float, str or None
    """
    if value is None or type(value) is str:
        return value
    try:
        return None if _is_missing(value) else _plain(value)
    except Exception:  # somebody else's object
        return f"<{type(value).__name__}>"


def _is_missing(value: Any) -> bool:
    """Whether a value is not-a-number, or no time."""
    try:
        return bool(value != value)
    except TypeError:  # of pandas
        return True


def _plain(value: Any) -> int | float | str:
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    if isinstance(value, np.datetime64 | np.timedelta64):
        value = value.astype(f"{value.dtype.kind}8[us]").item()
    if isinstance(value, bool | np.bool_ | Integral):
        whole = int(value)
        try:
            return int(float(whole))  # one missing value makes floats of a column of integers
        except OverflowError:
            return hex(whole)
    if isinstance(value, Real | Decimal):
        number = float(value)
        return int(number) if number.is_integer() else number
    if isinstance(value, datetime.timedelta):  # those of pandas have nanoseconds, and other texts
        return str(datetime.timedelta(value.days, value.seconds, value.microseconds))
    if getattr(value, "nanosecond", 0):
        value = value.replace(nanosecond=0)
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        value = value.astimezone(datetime.UTC)
    return value.isoformat() if isinstance(value, datetime.date) else str(value)


def public_rank(category: Any) -> tuple:
    """Place in an order that looks at no data: numbers, then texts, then what is missing."""
    if category is None:
        return 2, 0, ""
    return (1, 0, category) if isinstance(category, str) else (0, category, "")


def _distinct(column: np.ndarray) -> tuple[Any, np.ndarray]:
    """Distinct values of a column, and which of them each entry is."""
    if column.dtype.kind in "biufUSmM":
        values, places = np.unique(column, return_inverse=True)
        return values, places.ravel()
    # Equal objects, also within others, may have two texts: which comes first must not matter.
    seen: dict = {}
    plain = [v if type(v) in _PLAIN else plain_category(v) for v in column.tolist()]
    keys = zip(map(type, plain), plain, strict=True)
    places = np.array([seen.setdefault(key, len(seen)) for key in keys], dtype=np.intp)
    return [value for _, value in seen], places


def counts_of(column: np.ndarray, users: Users | None = None) -> Counter:
    """How many rows have each category of a column, or how many users most often have it."""
    values, places = _distinct(column)
    if users is not None:
        # Different values may be one category; of as many rows, the first in a public order.
        names = sorted({plain_category(value) for value in values}, key=public_rank)
        number = {name: rank for rank, name in enumerate(names)}
        codes = np.array([number[plain_category(value)] for value in values], dtype=np.int64)
        values, places = names, users.most_frequent(codes[places])
    counts: Counter = Counter()
    found = np.bincount(places, minlength=len(values)).tolist()
    for value, count in zip(values, found, strict=True):
        if count:  # what no user votes for is not there
            counts[plain_category(value)] += count
    return counts


def _counts_in(columns: Any, place: int, users: Users | None) -> Counter:
    """`counts_of` one of several columns, in an order that does not depend on that of the rows."""
    if users is None:
        counts = total_of(columns, place, counts_of)
    else:
        counts = counts_of(columns[place], users)
    return Counter({name: counts[name] for name in sorted(counts, key=public_rank)})


def codes_in(column: np.ndarray, categories: Any) -> np.ndarray:
    """Place of each entry among the categories; their number for what is none of them."""
    table = {category: place for place, category in enumerate(categories)}
    values, places = _distinct(column)
    codes = [table.get(plain_category(value), len(table)) for value in values]
    return np.array(codes, dtype=np.int64)[places]


_LIMIT_INT32 = 2**31


class DPOneHotEncoder(PrivateTransformer):
    """One-hot encode categories that are learned with differential privacy.

    Each column becomes one indicator per frequent category, whose noisy count reaches a threshold,
    and one for all rare or unseen categories. Output columns are named ``<column>_<category>``
    and, as in scikit-learn, ``<column>_infrequent_sklearn``.

    Privacy: the names of the frequent categories satisfy ``guarantee_``, and nothing else about
    the rows is stored. A category that no row has is never released. The levels of categorical
    columns of a frame are ignored, because they may depend on single rows. Values are compared
    independently of the dtype of their column, which a single odd entry may change: 1, 1.0 and
    True are one category, and so are None and NaN.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of one fit.

    delta : float, default=1e-6
        Privacy budget of one fit. It must be positive unless all categories are public: a tenth of
        it covers categories that only one record has.

    categories : "auto", dict, or list, default="auto"
        Public lists of categories, which cost nothing: a dict keyed by column name, or a list with
        one entry per column. Columns missing from the dict, and "auto" entries of the list, are
        learned.

    min_frequency : int, default=1
        Public lower bound on the threshold.

    adjacency : {"replace-one", "add-remove"}, default="replace-one"
        Neighbouring relation.

    random_state : None, int, RandomState or Generator, default=None
        None draws noise from the operating system; any other value is for tests.

    ledger : BudgetLedger or path, default=None
        Ledger that is charged before any values of the rows are used.

    sparse_output : bool, default=True
        Whether `transform` returns a CSR matrix.

    dtype : dtype, default=float64
        Dtype of the output.

    Attributes
    ----------
    categories_ : list of ndarray of object
        Categories with an indicator for each column, in output order. Public categories are as
        given; learned ones are sorted: numbers, then text, then None for missing values. Released
        under ``guarantee_``.

    threshold_ : float
        Smallest noisy count for which a category is released; 1 if all categories are public.
        Public.

    guarantee_ : ApproxDP
        Guarantee of the fit. Public.

    x_norm_ : float
        Euclidean norm of each output row, which has one indicator per column. Use it as ``x_norm``
        of a model. Public.

    x_l1_norm_ : float
        Sum (l1 norm) of each output row. Public.

    n_features_in_ : int
        Number of columns. Public.

    feature_names_in_ : ndarray of shape ``(n_features_in_,)``
        Column names, if all are strings. Public.

    See Also
    --------
    make_private_preprocessor : Combines this encoder with private bounds of numeric columns.
    sklearn.preprocessing.OneHotEncoder : For public categories.

    Notes
    -----
    The threshold is proportional to 1 / epsilon and to the square root of the number of learned
    columns: the noise of a count has standard deviation about ``sqrt(2 n_columns) / mu``, and the
    threshold is five to six standard deviations. Drop columns in which almost every row has a
    distinct category, such as names: they only reduce the accuracy of the other columns.

    References
    ----------
    Korolova, Kenthapadi, Mishra and Ntoulas, "Releasing search queries and clicks privately",
    WWW 2009; Desfontaines, Voss, Gipson and Mandayam, "Differentially private partition
    selection", PoPETs 2022.

    Examples
    --------
    >>> from skdp.preprocessing import DPOneHotEncoder
    >>> rows = [["Bonn"]] * 500 + [["Ulm"]] * 300 + [["Celle"]]
    >>> encoder = DPOneHotEncoder(epsilon=1.0, delta=1e-6, sparse_output=False).fit(rows)
    >>> encoder.get_feature_names_out()
    array(['x0_Bonn', 'x0_Ulm', 'x0_infrequent_sklearn'], dtype=object)
    >>> encoder.transform([["Ulm"], ["Celle"], ["Aachen"]])
    array([[0., 1., 0.],
           [0., 0., 1.],
           [0., 0., 1.]])
    """

    def __init__(
        self,
        epsilon: Any = 1.0,
        delta: Any = float(defaults.DELTA),
        *,
        categories: Any = "auto",
        min_frequency: Any = 1,
        adjacency: Any = "replace-one",
        random_state: Any = None,
        ledger: Any = None,
        sparse_output: Any = True,
        dtype: Any = np.float64,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.categories = categories
        self.min_frequency = min_frequency
        self.adjacency = adjacency
        self.random_state = random_state
        self.ledger = ledger
        self.sparse_output = sparse_output
        self.dtype = dtype

    def _check_parameters(self) -> None:
        positive_int(min_frequency=self.min_frequency)
        boolean(sparse_output=self.sparse_output)
        try:
            is_real = np.dtype(self.dtype).kind in "biuf"
        except (TypeError, ValueError):  # of text in which no type can be looked for
            is_real = False
        if not is_real:
            raise ValueError(f"dtype must be a real numeric dtype; got {short_repr(self.dtype)}.")

    def _validated(self, X: Any, reset: bool) -> list[np.ndarray]:
        return columns_of(self, X, reset)

    def _plan(self, target: ApproxDP, n_units: int) -> CategoryRelease | None:
        n_learned = self._public().count(None)
        if not n_learned:
            return None
        return CategoryRelease.plan(target, n_columns=n_learned, min_frequency=self.min_frequency)

    def _learn(
        self,
        X: list[np.ndarray],
        release: CategoryRelease | None,
        noise: Any,
        users: Users | None,
    ) -> None:
        lists = self._public()
        self.threshold_ = 1.0
        if release is not None:
            learned = [j for j, listed in enumerate(lists) if listed is None]
            names = release([_counts_in(X, j, users) for j in learned], noise)
            for j, frequent in zip(learned, names, strict=True):
                lists[j] = sorted(frequent, key=public_rank)
            self.threshold_ = release.threshold
        self.categories_ = [array_of(listed) for listed in lists]
        self.x_l1_norm_ = float(self.n_features_in_)
        self.x_norm_ = self.n_features_in_**0.5

    def _transformed(self, X: list[np.ndarray]) -> Any:
        starts = np.cumsum([0, *(len(listed) + 1 for listed in self.categories_)])
        columns = zip(X, self.categories_, starts[:-1], strict=True)
        codes = np.column_stack([codes_in(own, listed) + start for own, listed, start in columns])
        n, d = codes.shape
        if not self.sparse_output:
            encoded = np.zeros((n, starts[-1]), dtype=self.dtype)
            encoded[np.arange(n)[:, np.newaxis], codes] = 1
            return encoded
        # Compiled code of scikit-learn takes short indices only.
        kind = np.int32 if max(n * d, starts[-1]) < _LIMIT_INT32 else np.int64
        ones, ends = np.ones(n * d, dtype=self.dtype), np.arange(0, n * d + 1, d, dtype=kind)
        return sparse.csr_matrix((ones, codes.ravel().astype(kind), ends), (n, starts[-1]))

    def _names_out(self, names: list) -> list:
        return [
            f"{name}_{category}"
            for name, listed in zip(names, self.categories_, strict=True)
            for category in [*listed, "infrequent_sklearn"]
        ]

    def _planned_guarantee(
        self, n_features: int | None, n_units: int | None = None, unit: str = "record"
    ) -> Guarantee:
        lists, known = self.categories, []
        if isinstance(lists, Mapping):
            known = list(lists.values()) if len(lists) == n_features else []
        elif _is_list(lists):
            known = list(lists)
        if known and not any(map(_is_learned, known)):
            return self._free(unit)
        return CategoryRelease.guarantee_of(self._target(unit))

    def _public(self) -> list:
        """Public list of each column, None where it is to be learned."""
        lists, n_columns, names = self.categories, self.n_features_in_, self._column_names
        if is_auto(lists):
            return [None] * n_columns
        if isinstance(lists, Mapping):
            if names is None:
                raise ValueError(
                    "categories must be 'auto' or a list with one entry per column if the columns "
                    f"have no names; got {short_repr(lists)}."
                )
            unknown = [name for name in lists if name not in set(names)]
            if unknown:
                raise ValueError(f"categories must name columns of X; got {short_repr(unknown)}.")
            lists = [lists.get(name) for name in names]
        if not _is_list(lists) or len(lists) != n_columns:
            raise ValueError(
                "categories must be 'auto', a dict, or a list with one entry for each of the "
                f"{n_columns} columns; got {short_repr(lists)}."
            )
        return [None if _is_learned(listed) else _distinct_list(listed) for listed in lists]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.transformer_tags.preserves_dtype = []
        return tags


def _is_learned(listed: Any) -> bool:
    return listed is None or is_auto(listed)


def _is_list(value: Any) -> bool:
    """Whether a value is a list of a known length; a text is none, nor a lone number."""
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        return False
    try:
        return len(value) >= 0  # type: ignore[arg-type]
    except TypeError:  # an array of no dimension, an iterator
        return False


def _distinct_list(listed: Any) -> list:
    if not _is_list(listed):
        raise ValueError(f"categories of a column must be a list; got {short_repr(listed)}.")
    plain = [plain_category(category) for category in listed]
    if len(set(plain)) < len(plain):
        raise ValueError(f"categories of a column must be distinct; got {short_repr(listed)}.")
    return plain
