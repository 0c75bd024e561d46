"""Frames of Spark: the driver reads those that are not cached, and workers add the others."""

import os
import shutil
import sys

import numpy as np
import pandas as pd
import pytest
import sklearn
from numpy.testing import assert_array_equal

from skdp import DPLogisticRegression

sql = pytest.importorskip("pyspark.sql", reason="pyspark is an extra, and needs a Java")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs a Java"),
    pytest.mark.filterwarnings("ignore"),  # of the engine
]


@pytest.fixture(scope="module")
def spark():
    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "3",
    }
    builder = sql.SparkSession.builder.master("local[2]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    yield session
    session.stop()


@pytest.mark.parametrize("is_cached", [False, True])
def test_a_model_of_an_ordered_frame_is_that_of_the_rows(spark, is_cached):
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(rng.uniform(-1, 1, (7000, 3)) / 2, columns=list("abc"))
    rows["ill"], rows["place"] = rows["a"] + rng.normal(0, 0.2, 7000) > 0, np.arange(7000)
    shuffled = rows.sample(frac=1.0, random_state=0)
    frame = spark.createDataFrame(shuffled).orderBy("place").drop("place")
    frame = frame.cache() if is_cached else frame
    expected = DPLogisticRegression(1.0, 1e-6, random_state=0)
    expected.fit(rows[list("abc")], rows["ill"])
    # Each pass takes Spark a second, so that only a cached frame is read for each sum.
    with sklearn.config_context(working_memory=0 if is_cached else 1024):
        model = DPLogisticRegression(1.0, 1e-6, random_state=0).fit(frame, "ill")
    assert_array_equal(model.coef_, expected.coef_)
    assert model.guarantee_ == expected.guarantee_
