import gzip
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from pandas.testing import assert_frame_equal

from skdp import datasets
from skdp.preprocessing import make_public_preprocessor

# The first rows of each file, in its format. The rows of two files are not in the order of time.
FILES = {
    "bike_sharing/hour.csv": """\
instant,dteday,season,yr,mnth,hr,holiday,weekday,workingday,weathersit,temp,atemp,hum,windspeed,\
casual,registered,cnt
2,2011-01-01,1,0,1,1,0,6,0,1,0.22,0.2727,0.8,0,8,32,40
1,2011-01-01,1,0,1,0,0,6,0,1,0.24,0.2879,0.81,0,3,13,16
3,2011-01-01,1,0,1,2,0,6,0,1,0.22,0.2727,0.8,0,5,27,32
""",
    "ccpp/ccpp.csv": """\
AT,V,AP,RH,PE
14.96,41.76,1024.07,73.17,463.26
25.18,62.96,1020.04,59.08,444.37
5.11,39.4,1012.16,92.14,488.56
""",
    "kin40k/kin40k.csv": """\
x1,x2,x3,x4,x5,x6,x7,x8,y
-1.7034,-0.71068,0.52994,1.3529,0.38957,-1.4429,0.26322,0.28905,1.4012
-0.5417,0.2925,-0.33275,0.3692,1.5721,0.47275,1.0451,1.5134,0.28839
-0.2061,-0.73907,1.6485,0.15647,0.69674,-0.99069,0.34345,0.30304,0.30135
""",
    "california_housing/cal_housing.csv": """\
longitude,latitude,housingMedianAge,totalRooms,totalBedrooms,population,households,medianIncome,\
medianHouseValue
-122.23,37.88,41.0,880.0,129.0,322.0,126.0,8.3252,452600.0
-122.22,37.86,21.0,7099.0,1106.0,2401.0,1138.0,8.3014,358500.0
-122.24,37.85,52.0,1467.0,190.0,496.0,177.0,7.2574,500001.0
""",
    # The second flight did not leave; the fourth was to leave at 23:59 and left at 2:05 of the
    # next day; the last one left at midnight, eleven minutes late.
    "nycflights13/flights.csv": """\
year,month,day,dep_time,dep_delay,arr_time,arr_delay,carrier,tailnum,flight,origin,dest,air_time,\
distance,hour,minute
2013,10,6,517,2,830,11,UA,N14228,1545,EWR,IAH,227,1400,5,17
2013,10,6,NA,NA,NA,NA,MQ,N839MQ,3531,LGA,RDU,NA,431,NA,NA
2013,10,6,454,-6,740,-33,US,N740US,1030,EWR,CLT,76,529,4,54
2013,1,1,205,126,550,1272,B6,N516JB,707,JFK,SJU,193,1598,2,5
2013,1,1,2400,11,340,-90,B6,N516JB,739,JFK,PSE,195,1617,24,0
""",
}
FETCHERS = {
    "bike_sharing/hour.csv": datasets.fetch_bike_sharing,
    "ccpp/ccpp.csv": datasets.fetch_ccpp,
    "kin40k/kin40k.csv": datasets.fetch_kin40k,
    "california_housing/cal_housing.csv": datasets.fetch_california_housing,
    "nycflights13/flights.csv": datasets.fetch_nycflights13,
}
FEATURES = {
    "bike_sharing/hour.csv": 12,
    "ccpp/ccpp.csv": 4,
    "kin40k/kin40k.csv": 8,
    "california_housing/cal_housing.csv": 8,
    "nycflights13/flights.csv": 8,
}
# Columns after preparation: one for each bound, and one for each category.
PREPARED = FEATURES | {
    "bike_sharing/hour.csv": 4 + (4 + 2 + 12 + 24 + 2 + 7 + 2 + 4),
    "nycflights13/flights.csv": 3 + (12 + 7 + 24 + 16 + 3),
}
each_set = pytest.mark.parametrize("name", FILES)


@pytest.fixture
def tiny(tmp_path, monkeypatch, scikit_learn):
    """A folder with the first rows of each set, and no other source."""
    for name, text in FILES.items():
        path = tmp_path / f"{name}.gz"
        path.parent.mkdir()
        path.write_bytes(gzip.compress(text.encode()))
    monkeypatch.setenv("SKDP_DATA", str(tmp_path))
    scikit_learn(datasets.fetch_california_housing, "fetch_from_scikit_learn")
    return tmp_path


@each_set
def test_the_bunch_is_complete_and_does_not_share_its_constants(tiny, name):
    fetch = FETCHERS[name]
    bunch = fetch()
    X, y = fetch(return_X_y=True)
    assert_frame_equal(X, bunch.data)
    assert y.equals(bunch.target)
    assert y.dtype == np.float64
    assert bunch.feature_names == list(bunch.data.columns)
    assert len(bunch.feature_names) == FEATURES[name]
    assert list(bunch.frame.columns) == [*bunch.feature_names, y.name]
    assert bunch.frame[y.name].equals(y)
    assert sorted([*bunch.bounds, *bunch.categories]) == sorted(bunch.feature_names)
    assert set(bunch.log) <= set(bunch.bounds)
    assert bunch.indicators == []
    low, high = bunch.target_bounds
    assert low < high
    assert "bounds" in bunch.DESCR and "public" in bunch.DESCR

    before = {key: list(values) for key, values in bunch.categories.items()}
    bunch.bounds.clear()
    for values in bunch.categories.values():
        values.clear()
    bunch.log.append("age")
    again = fetch()
    assert again.bounds and again.categories == before and "age" not in again.log


@each_set
def test_the_public_pipeline_takes_one_line(tiny, name):
    bunch = FETCHERS[name]()
    prepare = make_public_preprocessor(bunch.bounds, bunch.categories, log=bunch.log, norm=None)
    out = prepare.fit_transform(bunch.data)
    assert out.shape == (len(bunch.data), PREPARED[name])
    # A row has an indicator for each categorical column: no category is unknown.
    assert_allclose(out[:, len(bunch.bounds) :].sum(axis=1), len(bunch.categories))
    assert np.abs(out).max() <= 1.0


def test_scikit_learns_averages_give_the_original_columns_of_california(
    tiny, monkeypatch, scikit_learn
):
    expected = datasets.fetch_california_housing().frame

    def fetch(*, data_home, return_X_y, as_frame):
        assert data_home == "home" and return_X_y and as_frame
        data = pd.DataFrame(
            {
                "MedInc": [8.3252, 8.3014, 7.2574],
                "HouseAge": [41.0, 21.0, 52.0],
                "AveRooms": [880 / 126, 7099 / 1138, 1467 / 177],
                "AveBedrms": [129 / 126, 1106 / 1138, 190 / 177],
                "Population": [322.0, 2401.0, 496.0],
                "AveOccup": [322 / 126, 2401 / 1138, 496 / 177],
                "Latitude": [37.88, 37.86, 37.85],
                "Longitude": [-122.23, -122.22, -122.24],
            }
        )
        return data, pd.Series([4.526, 3.585, 5.00001], name="MedHouseVal")

    scikit_learn(datasets.fetch_california_housing, "fetch_from_scikit_learn", fetch)
    monkeypatch.delenv("SKDP_DATA")
    assert_frame_equal(datasets.fetch_california_housing(data_home="home").frame, expected)


@pytest.mark.parametrize(
    ("name", "old", "new", "column"),
    [
        ("bike_sharing/hour.csv", "1,0,1,2,0,6", "1,0,1,24,0,6", "hr"),
        ("ccpp/ccpp.csv", "25.18", "warm", "AT"),
        ("ccpp/ccpp.csv", "488.56", "", "PE"),
        ("nycflights13/flights.csv", "UA", "ZZ", "carrier"),
    ],
)
def test_damaged_files_are_refused(tiny, name, old, new, column):
    assert old in FILES[name]
    damaged = gzip.compress(FILES[name].replace(old, new).encode())
    (tiny / f"{name}.gz").write_bytes(damaged)
    with pytest.raises(ValueError, match=f"column '{column}' of the file has others"):
        FETCHERS[name]()


@pytest.mark.parametrize(
    ("name", "rows", "mean"),
    [
        ("bike_sharing/hour.csv", 17_379, 189.463),
        ("ccpp/ccpp.csv", 9_568, 454.365),
        ("kin40k/kin40k.csv", 40_000, 0.0),
        ("california_housing/cal_housing.csv", 20_640, 206_855.817),
        ("nycflights13/flights.csv", 327_346, 6.895),
    ],
)
def test_the_real_files_have_the_published_numbers(name, rows, mean):
    if not (Path(os.environ.get("SKDP_DATA", "")) / f"{name}.gz").is_file():
        pytest.skip(f"SKDP_DATA does not name a folder with {name}.gz")
    bunch = FETCHERS[name]()
    assert len(bunch.data) == len(bunch.target) == rows
    assert_allclose(bunch.target.mean(), mean, atol=1e-3)
    # Public bounds that clipped many real rows would be a poor choice, though a legal one.
    for column, (low, high) in bunch.bounds.items():
        assert bunch.data[column].between(low, high).mean() > 0.99
    assert bunch.target.between(*bunch.target_bounds).mean() > 0.98
