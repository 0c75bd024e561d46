"""Settings of the library in the style of scikit-learn's: which warnings are shown."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

# Processes begin with it, so that those which a process starts know what it knows.
_default = {"known_seeds": os.environ.get("SKDP_KNOWN_SEEDS", "") == "1"}
# Within `config_context`, and there in its own thread or task only.
_here: ContextVar[dict[str, bool] | None] = ContextVar("config", default=None)


def get_config() -> dict[str, bool]:
    """Return the settings as they are here and now.

    Returns
    -------
    dict
        Name to value: see `set_config`.

    See Also
    --------
    set_config, config_context : Change them.

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
    """Change settings for the rest of the process, or of the `config_context` that this is in.

    Parameters
    ----------
    known_seeds : bool, default=None
        Whether a fit with ``random_state`` is meant to be reproducible and protects nobody, as in
        tests and figures, so that no `~skdp.exceptions.PrivacyWarning` needs to say so. A fit that
        has a ledger warns all the same: it spends budget and gets no privacy for it. None leaves
        the setting as it is. At the start of a process it is True if the environment variable
        ``SKDP_KNOWN_SEEDS`` is 1, and False otherwise.

    Raises
    ------
    ValueError
        If a value is not a boolean.

    See Also
    --------
    config_context : Change them for a block.

    Notes
    -----
    Other threads of the process see it, too. Worker processes, such as those of ``n_jobs=2``, have
    settings of their own: they begin with the environment variable.
    """
    changed = _changed(known_seeds)
    if _here.get() is None:
        _default.update(changed)
    else:
        _here.set(changed)


@contextmanager
def config_context(*, known_seeds: bool | None = None) -> Iterator[None]:
    """Change settings within a block, and put them back at its end.

    Parameters
    ----------
    known_seeds : bool, default=None
        As for `set_config`, which has the same errors; None leaves it as it is.

    See Also
    --------
    set_config : Change them for good.

    Notes
    -----
    Blocks nest. They hold for the thread, or the asynchronous task, that has entered them: other
    threads, and worker processes such as those of ``n_jobs=2``, do not see them. What they fit
    then warns, unless the environment variable ``SKDP_KNOWN_SEEDS=1`` was set before they began.

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
    """Return the settings of now with those that were given."""
    if known_seeds is None:
        return get_config()
    if not isinstance(known_seeds, bool):
        raise ValueError(
            "known_seeds must be True, False, or None to leave it; "
            f"got a {type(known_seeds).__name__}."
        )
    return {"known_seeds": known_seeds}
