import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose
from pandas.testing import assert_frame_equal
from statsmodels.datasets import fair as records

from skdp.datasets import _fair, fetch_fair
from skdp.preprocessing import make_public_preprocessor


def test_the_records_have_the_published_counts():
    fair = fetch_fair()
    assert fair.data.shape == (6_366, 8)
    assert fair.target.value_counts().to_dict() == {0: 4_313, 1: 2_053}
    # Public bounds that clipped real rows would be a poor choice, though a legal one.
    for name, (low, high) in fair.bounds.items():
        assert fair.data[name].between(low, high).all()


def test_the_bunch_is_complete_and_does_not_share_its_constants():
    fair = fetch_fair()
    X, y = fetch_fair(return_X_y=True)
    assert_frame_equal(X, fair.data)
    assert y.equals(fair.target)
    assert fair.feature_names == list(fair.data.columns)
    assert list(fair.frame.columns) == [*fair.feature_names, "affair"]
    assert fair.classes == [0, 1] and fair.target_names == ["no affair", "affair"]
    assert fair.indicators == []
    assert set(fair.bounds) | set(fair.categories) == set(fair.feature_names)
    assert not set(fair.bounds) & set(fair.categories)

    fair.bounds.clear()
    fair.categories["occupation"].clear()
    assert len(fetch_fair().bounds) == 6 and len(fetch_fair().categories["occupation"]) == 6


def test_bounds_and_types_do_not_depend_on_the_rows(monkeypatch):
    whole = fetch_fair()
    few = records.load_pandas().data.iloc[:3]
    monkeypatch.setattr(_fair, "_records", lambda: few)
    part = fetch_fair()
    assert len(part.data) == 3 and part.data.dtypes.equals(whole.data.dtypes)
    assert part.bounds == whole.bounds and part.categories == whole.categories


def test_the_time_spent_in_affairs_is_no_feature():
    assert "affairs" not in fetch_fair().frame


def test_the_public_pipeline_takes_one_line():
    fair = fetch_fair()
    out = make_public_preprocessor(fair.bounds, fair.categories).fit_transform(fair.data)
    assert out.shape == (6_366, 18)
    assert_allclose(np.linalg.norm(out, axis=1), 1.0)


@pytest.mark.parametrize(("column", "value"), [("occupation", 7.0), ("age", np.nan)])
def test_damaged_records_are_refused(column, value, monkeypatch):
    damaged = records.load_pandas().data
    damaged.loc[5, column] = value
    monkeypatch.setattr(_fair, "_records", lambda: damaged)
    with pytest.raises(ValueError, match=f"column '{column}' of the file has others"):
        fetch_fair()


def test_without_statsmodels_the_message_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "statsmodels.datasets", None)
    with pytest.raises(ImportError, match='skdp with its extra "data"'):
        fetch_fair()
