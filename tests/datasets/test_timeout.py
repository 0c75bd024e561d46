"""Fetchers with a time limit, for machines whose network is absent, silent or very slow."""

import os
import re
import socket
import threading

import numpy as np
import pytest

from skdp.datasets import (
    _adult,
    _california_housing,
    _covertype,
    _diabetes130,
    _text,
    fetch_adult,
    fetch_california_housing,
    fetch_covertype,
    fetch_diabetes130,
    fetch_newsgroups20,
)

FETCHERS = {
    fetch_adult: (_adult, "fetch_openml"),
    fetch_california_housing: (_california_housing, "fetch_from_scikit_learn"),
    fetch_covertype: (_covertype, "fetch_covtype"),
    fetch_diabetes130: (_diabetes130, "fetch_openml"),
    fetch_newsgroups20: (_text, "fetch_20newsgroups_vectorized"),
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


@pytest.fixture
def dripping_server():
    """A port that answers with a byte at a time and comes to no end."""
    closed = threading.Event()
    server = socket.create_server(("127.0.0.1", 0))
    server.settimeout(0.1)

    def drip():
        while not closed.is_set():
            try:
                connection, _ = server.accept()
            except TimeoutError:
                continue
            with connection:
                while not closed.wait(0.02):
                    connection.send(b"H")

    thread = threading.Thread(target=drip)
    thread.start()
    yield server.getsockname()[1]
    closed.set()
    thread.join()
    server.close()


@each_fetcher
def test_a_source_that_never_answers_is_given_up(fetch, monkeypatch):
    answer = threading.Event()
    monkeypatch.setattr(*FETCHERS[fetch], lambda *args, **kwargs: answer.wait(60.0))
    with pytest.raises(OSError, match=re.escape("TimeoutError: not done after 0.05 seconds")):
        fetch(timeout=0.05)
    answer.set()


@each_fetcher
def test_with_a_limit_no_time_is_lost_between_attempts(fetch, monkeypatch):
    asked = []

    def fail(*args, **kwargs):
        asked.append((kwargs.get("n_retries"), kwargs.get("delay")))
        raise RuntimeError("no network")

    monkeypatch.setattr(*FETCHERS[fetch], fail)
    for timeout in (60.0, None):
        with pytest.raises(OSError, match="RuntimeError: no network"):
            fetch(timeout=timeout)
    assert asked == [(1, 0.05), (None, None)]


@each_fetcher
@pytest.mark.parametrize("timeout", [0, -1.0, np.inf, np.nan, "3"])
def test_the_limit_is_checked_before_anything_is_fetched(fetch, timeout):
    with pytest.raises(ValueError, match="timeout must be a positive, finite number; got "):
        fetch(timeout=timeout)


def test_a_server_that_sends_a_byte_at_a_time_is_given_up(network, dripping_server, tmp_path):
    network(dripping_server)
    with pytest.raises(OSError, match=re.escape("not done after 0.3 seconds")):
        fetch_adult(timeout=0.3, data_home=tmp_path)


@pytest.mark.filterwarnings("ignore:A network error occurred:UserWarning")
def test_a_refused_connection_is_the_end(network, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    network(port)
    with pytest.raises(OSError, match="URLError"):
        fetch_adult(timeout=60.0, data_home=tmp_path)


def test_what_arrives_in_time_is_taken(monkeypatch):
    labels = np.array([1, 2])
    monkeypatch.setattr(_covertype, "fetch_covtype", lambda **kwargs: (np.ones((2, 54)), labels))
    assert fetch_covertype(timeout=60.0).target.tolist() == [1, 2]
