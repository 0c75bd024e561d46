"""What the regression sets share: a table with a codebook, and what comes of it."""

from sklearn.utils import Bunch

from skdp.datasets._files import damaged_column, finite_numbers

__all__ = ["make_bunch", "read_table"]


def read_table(pandas, path, columns):
    """Read the named columns of a file."""
    frame = pandas.read_csv(path)
    lacking = [column for column in columns if column not in frame.columns]
    if lacking:
        raise ValueError(f"{path} must have a header line with {columns}; it lacks {lacking}.")
    return frame[columns]


def make_bunch(data, target, *, bounds, target_bounds, DESCR, return_X_y, categories=None, log=()):
    """Put together what every fetcher returns, with types that do not depend on the file."""
    categories = {name: list(values) for name, values in (categories or {}).items()}
    data, target = _typed(data, bounds, categories), finite_numbers(target)
    if return_X_y:
        return data, target
    return Bunch(
        data=data,
        target=target,
        frame=data.assign(**{target.name: target}),
        feature_names=list(data.columns),
        bounds=dict(bounds),
        categories=categories,
        indicators=[],
        log=list(log),
        target_bounds=target_bounds,
        DESCR=DESCR,
    )


def _typed(data, bounds, categories):
    """Give the columns their types, and refuse what the codebook does not know."""
    typed = {name: finite_numbers(data[name]) for name in bounds}
    for name, values in categories.items():
        if not data[name].isin(values).all():
            raise ValueError(damaged_column(name))
        typed[name] = data[name].astype(type(values[0]))
    return data.assign(**typed)
