"""Callbacks of scikit-learn, where it has them: they hear of public numbers and see no rows."""

from contextlib import contextmanager, nullcontext

from sklearn.frozen import FrozenEstimator

from skdp._progress import heard_by

try:  # scikit-learn 1.9
    from sklearn.callback import AutoPropagatedCallback, with_callbacks
    from sklearn.callback import CallbackSupportMixin as _CallbackSupportMixin
except ImportError:

    class _CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands in where scikit-learn has no callbacks."""

        def _init_callback_context(self, **_):
            return None

    def with_callbacks(method):
        """Return the method."""
        return method

    class AutoPropagatedCallback:  # type: ignore[no-redef]
        """Stands in, too: no callback is one."""


__all__ = [
    "CallbackSupportMixin",
    "Progress",
    "begun_fit",
    "check_own_callbacks",
    "progress_of",
    "with_callbacks",
    "without_callbacks",
]


class CallbackSupportMixin(_CallbackSupportMixin):
    """Mixin: an estimator that tells callbacks of its fit.

    Privacy: pickles leave callbacks out, which may hold times, or whatever their author kept.
    """

    def __reduce_ex__(self, protocol):
        make, arguments, state, *rest = super().__reduce_ex__(protocol)
        kept = {name: value for name, value in state.items() if name != "_skl_callbacks"}
        return make, arguments, kept, *rest


def begun_fit(estimator, n_parts=None):
    """Context of a fit that begins, before anything is checked; None if nobody listens."""
    context = estimator._init_callback_context(max_subtasks=n_parts)
    listens = getattr(estimator, "_skl_callbacks", ())
    return context if listens else None


class Progress:
    """Tells callbacks how far a fit is.

    A callback is given the estimator, which has what was fitted before if anything, and where the
    fit is: names of its parts and their numbers. It is given neither rows nor targets nor a model.
    What it returns is ignored, for the guarantee is that of a whole fit.

    Parameters
    ----------
    estimator : estimator

    context : CallbackContext or None
        None tells nobody.

    public : tuple of str, default=()
        Of "rows" and "users", those whose number is public.
    """

    def __init__(self, estimator, context, *, public=()):
        self.estimator, self.context = estimator, context
        self.public = public
        if context is not None:
            context.call_on_fit_task_begin(estimator=estimator)

    def __call__(self, n_rounds):
        """Tell that rounds of a network were done."""
        if self.context is not None:
            Progress(
                self.estimator, self.context.subcontext(task_name=f"{n_rounds} rounds")
            ).close()

    def phase(self, name, n_parts):
        """Begin a phase of public length, within the fit."""
        return _Phase(self.estimator, self.context.subcontext(name, max_subtasks=n_parts), name)

    @contextmanager
    def part(self, name, step=None):
        """A part of the fit, which another estimator of ours may be: it tells of itself then."""
        if self.context is None:
            yield
            return
        context = self.context.subcontext(task_name=name)
        joined = nullcontext()
        if isinstance(step, CallbackSupportMixin) and type(step).__module__.startswith("skdp."):
            joined = context.propagate_callback_context(step)
        with joined:
            context.call_on_fit_task_begin(estimator=self.estimator)
            yield
            context.call_on_fit_task_end(estimator=self.estimator)

    def close(self):
        """Tell that the fit is done."""
        if self.context is not None:
            self.context.call_on_fit_task_end(estimator=self.estimator)


class _Phase(Progress):
    """Part of a fit whose steps are told."""

    def __init__(self, estimator, context, name):
        super().__init__(estimator, context)
        self.name = name

    def step(self):
        """Tell that one more step is done."""
        Progress(self.estimator, self.context.subcontext(self.name)).close()


@contextmanager
def progress_of(estimator, context, *, groups=None):
    """Tell callbacks of the fit within the block, from after its charge until it is stored.

    Parameters
    ----------
    estimator : estimator

    context : CallbackContext or None
        From `begun_fit`.

    groups : array-like, default=None
        Owners of the rows. How many rows they have is private then.

    Yields
    ------
    Progress
    """
    public: tuple[str, ...] = ("rows", "users") if groups is None else ("users",)
    if getattr(estimator, "adjacency", "replace-one") == "add-remove":
        public = ()
    progress = Progress(estimator, context, public=public)
    with heard_by(None if context is None else progress):
        yield progress
    progress.close()


def _parts(estimator):
    """An estimator and all that are in it, but what is frozen, which is not a copy."""
    yield estimator
    inner = estimator.get_params(deep=True)
    frozen = [name for name, value in inner.items() if isinstance(value, FrozenEstimator)]
    for name, value in inner.items():
        if not any(name == one or name.startswith(f"{one}__") for one in frozen):
            yield value


def without_callbacks(estimator):
    """Take the callbacks from a copy of an estimator and from all in it, and return it.

    Privacy: how many fits a search makes, and which of them fail, may be private.
    """
    for part in _parts(estimator):
        if not isinstance(part, type) and hasattr(part, "_skl_callbacks"):
            part.set_callbacks()
    return estimator


def check_own_callbacks(estimator, steps):
    """Refuse, before a charge, callbacks that scikit-learn refuses within those of a whole."""
    if not getattr(estimator, "_skl_callbacks", ()):
        return
    for name, step in steps:
        own = getattr(step, "_skl_callbacks", ())
        if any(isinstance(callback, AutoPropagatedCallback) for callback in own):
            raise ValueError(
                "steps must have no callbacks that a pipeline gives to its steps, such as a "
                "ProgressBar, where it has callbacks itself: set them there; got some of "
                f"{name!r}."
            )
