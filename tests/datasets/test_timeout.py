"""Fetchers with a time limit, for machines whose network is absent, silent or very slow."""

import os
import re
import threading

import pytest

from skdp.datasets import (
    fetch_adult,
    fetch_california_housing,
    fetch_covertype,
    fetch_diabetes130,
    fetch_newsgroups20,
)

FETCHERS = {
    fetch_adult: "fetch_openml",
    fetch_california_housing: "fetch_from_scikit_learn",
    fetch_covertype: "fetch_covtype",
    fetch_diabetes130: "fetch_openml",
    fetch_newsgroups20: "fetch_20newsgroups_vectorized",
}
each_fetcher = pytest.mark.parametrize("fetch", FETCHERS, ids=lambda fetch: fetch.__name__)


@pytest.fixture(autouse=True)
def no_folder(monkeypatch):
    monkeypatch.delenv("SKDP_DATA", raising=False)


@pytest.fixture
def network(monkeypatch):
    """``network(port)`` sends all requests of this process to a port of this machine."""

    def redirect(port):
        for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
            monkeypatch.delenv(name)
        monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{port}")

    return redirect


@each_fetcher
def test_a_source_that_never_answers_is_given_up(fetch, scikit_learn):
    answer = threading.Event()
    scikit_learn(fetch, FETCHERS[fetch], lambda *args, **kwargs: answer.wait(60.0))
    with pytest.raises(OSError, match=re.escape("TimeoutError: not done after 0.05 seconds")):
        fetch(timeout=0.05)
    answer.set()
