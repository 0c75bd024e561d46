import pytest
from support.downloads import no_network


@pytest.fixture
def scikit_learn(monkeypatch):
    """``scikit_learn(fetch, name, stand_in)``: what a fetcher has instead of one of theirs."""

    def replace(fetch, name, stand_in=no_network):
        monkeypatch.setitem(fetch.__globals__, name, stand_in)

    return replace
