"""Who records releases, for tests."""

from contextlib import contextmanager

from skdp.mechanisms import Released, released_values


@contextmanager
def recorded_releases(instead=None):
    """List of all that is released within, in order; linear terms of objectives pass by.

    Parameters
    ----------
    instead : iterable of ndarray, default=None
        What goes on in place of each release, as from another run.
    """
    found = []
    played = None if instead is None else iter(instead)

    def listener(released):
        if not isinstance(released, Released):
            return None
        found.append(released)
        return None if played is None else next(played)

    token = released_values.set(listener)
    try:
        yield found
    finally:
        released_values.reset(token)
