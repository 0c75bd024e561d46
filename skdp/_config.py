"""Global settings, in the style of scikit-learn."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

# Processes begin with it, so that those which a process starts know what it knows.
_default = {"known_seeds": os.environ.get("SKDP_KNOWN_SEEDS", "") == "1"}
# Within `config_context`, and there in its own thread or task only.
_here: ContextVar[dict[str, bool] | None] = ContextVar("config", default=None)


def get_config() -> dict[str, bool]:
    """Return the current settings.

    Returns
    -------
    dict
        Settings by name; see `set_config`.

    See Also
    --------
    set_config, config_context : Change settings.

    Examples
    --------
    >>> import skdp
    >>> with skdp.config_context(known_seeds=True):
    ...     skdp.get_config()
    {'known_seeds': True}
    """
    here = _here.get()
    return dict(_default if here is None else here)


def set_config(*, known_seeds: bool | None = None) -> None:
    """Change settings for the rest of the process or of the enclosing `config_context`.

    Parameters
    ----------
    known_seeds : bool, default=None
        If True, a fit with ``random_state`` does not emit a `~skdp.exceptions.PrivacyWarning`. Use
        it for tests and figures, whose fits must be reproducible and protect nobody. A fit with a
        ledger still warns, because it spends budget without getting privacy. None keeps the
        current setting. At the start of a process it is True if the environment variable
        ``SKDP_KNOWN_SEEDS`` is 1, and False otherwise.

    Raises
    ------
    ValueError
        If a value is not a boolean.

    See Also
    --------
    config_context : Change settings for a block.

    Notes
    -----
    The change also applies to other threads of the process. Worker processes, such as those of
    ``n_jobs=2``, have their own settings and start from the environment variable.
    """
    changed = _changed(known_seeds)
    if _here.get() is None:
        _default.update(changed)
    else:
        _here.set(changed)


@contextmanager
def config_context(*, known_seeds: bool | None = None) -> Iterator[None]:
    """Change settings within a block and restore them at its end.

    Parameters
    ----------
    known_seeds : bool, default=None
        See `set_config`, which raises the same errors. None keeps the current setting.

    See Also
    --------
    set_config : Change settings permanently.

    Notes
    -----
    Blocks can be nested. They apply to the current thread or asynchronous task only. Fits in other
    threads, and in worker processes such as those of ``n_jobs=2``, still warn, unless the
    environment variable ``SKDP_KNOWN_SEEDS=1`` was set before the processes started.

    Examples
    --------
    >>> import numpy as np
    >>> import skdp
    >>> X, y = np.linspace(-1, 1, 100).reshape(-1, 1), np.repeat([0, 1], 50)
    >>> with skdp.config_context(known_seeds=True):  # for a figure: the noise is known
    ...     models = [skdp.DPLogisticRegression(random_state=7).fit(X, y) for _ in range(2)]
    >>> bool(models[0].coef_ == models[1].coef_)
    True
    >>> models[0].guarantee_.caveats
    ('random_state: noise can be recomputed',)
    """
    token = _here.set(_changed(known_seeds))
    try:
        yield
    finally:
        _here.reset(token)


def _changed(known_seeds: bool | None) -> dict[str, bool]:
    """Return the current settings, updated by the given ones."""
    if known_seeds is None:
        return get_config()
    if not isinstance(known_seeds, bool):
        raise ValueError(
            f"known_seeds must be True, False or None; got a {type(known_seeds).__name__}."
        )
    return {"known_seeds": known_seeds}
