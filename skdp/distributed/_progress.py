"""Callbacks of scikit-learn, where it has them."""

try:  # scikit-learn 1.9
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands in where scikit-learn has no callbacks."""

        def _init_callback_context(self, **_):
            return None

    def with_callbacks(method):
        """Return the method."""
        return method


__all__ = ["CallbackSupportMixin", "Progress", "with_callbacks"]


class Progress:
    """Tells callbacks of scikit-learn how far a fit is; rows are not for them."""

    def __init__(self, estimator, context):
        self.estimator, self.context = estimator, context
        if context is not None:
            context.call_on_fit_task_begin(estimator=estimator)

    def __call__(self, n_rounds):
        if self.context is not None:
            block = self.context.subcontext(task_name=f"{n_rounds} rounds")
            block.call_on_fit_task_begin(estimator=self.estimator)
            block.call_on_fit_task_end(estimator=self.estimator)

    def close(self):
        if self.context is not None:
            self.context.call_on_fit_task_end(estimator=self.estimator)
