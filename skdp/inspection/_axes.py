"""Axes of displays: the given ones or those of a new figure."""

import numpy as np

from skdp._validation import short_repr


class OneAxes:
    """Mixin for displays on one matplotlib Axes."""

    def _axes(self, ax, title, height=4.2):
        """Store and return the axes; None creates a figure, ``height`` inches high."""
        import matplotlib.pyplot as plt

        if ax is None:
            ax = plt.subplots(figsize=(6.4, height), layout="constrained")[1]
        if title is not None:
            ax.set_title(title)
        self.ax_, self.figure_ = ax, ax.figure
        return ax


def checked_axes(ax, n, what):
    """Check and return an array of ``n`` matplotlib Axes."""
    from matplotlib.axes import Axes

    axes = np.asarray(ax, dtype=object).ravel()
    if len(axes) != n or not all(isinstance(one, Axes) for one in axes):
        raise ValueError(f"ax must hold {what}, or be None; got {short_repr(ax)}.")
    return axes
