from pandas.testing import assert_frame_equal
from statsmodels.datasets import fair as records

from skdp.datasets import fetch_fair


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
    assert "affairs" not in fair.frame  # of which the target is made
    assert set(fair.bounds) | set(fair.categories) == set(fair.feature_names)
    assert not set(fair.bounds) & set(fair.categories)

    fair.bounds.clear()
    fair.categories["occupation"].clear()
    assert len(fetch_fair().bounds) == 6 and len(fetch_fair().categories["occupation"]) == 6


def test_bounds_and_types_do_not_depend_on_the_rows(monkeypatch):
    whole = fetch_fair()
    few = records.load_pandas()
    few.data = few.data.iloc[:3]
    monkeypatch.setattr(records, "load_pandas", lambda: few)
    part = fetch_fair()
    assert len(part.data) == 3 and part.data.dtypes.equals(whole.data.dtypes)
    assert part.bounds == whole.bounds and part.categories == whole.categories
