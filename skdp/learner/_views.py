"""Notebook views of estimators that show their guarantee."""

from typing import Any

import numpy as np

from skdp._views import card
from skdp.privacy import Guarantee
from skdp.privacy._guarantees import brief
from skdp.privacy._guarantees import parts as parts_of


class GuaranteeView:
    """Mixin that shows the guarantee in the notebook view of an estimator."""

    @property
    def _repr_html_(self):
        view = super()._repr_html_  # type: ignore[misc]  # none where text is to be displayed
        return lambda: self._with_guarantee(view())

    def _repr_mimebundle_(self, **kwargs):
        views = super()._repr_mimebundle_(**kwargs)  # type: ignore[misc]
        if "text/html" in views:
            views["text/html"] = self._with_guarantee(views["text/html"])
        return views

    def _with_guarantee(self, view):
        guarantee = getattr(self, "guarantee_", None)
        title, told = self._planned_title(), ()
        if isinstance(guarantee, Guarantee):
            title = f"Guarantee of this {type(self).__name__}: {guarantee._claim()}"
            told = (*parts_of(guarantee), *self._view_parts())
        return f"<div>{view}{card(title, *told) if title else ''}</div>"

    def _view_parts(self):
        """Return further HTML parts of the view of a fitted estimator."""
        return ()

    def _planned_title(self):
        """Return the title before there is a guarantee."""
        return ""

    def _view_children(self):
        """Return the kind of diagram and its named estimators; none for a single one."""
        return "single", ()

    def _sk_visual_block_(self):
        """Return the block of scikit-learn's diagrams, also within its own meta-estimators."""
        kind, children = self._view_children()
        guarantee = getattr(self, "guarantee_", None)
        told = brief(guarantee) if isinstance(guarantee, Guarantee) else None
        return Block(self, kind, children, told)

    def _get_params_html(self, *args, **kwargs):
        """Return the parameters as scikit-learn lists them, with arrays as lists.

        Version 1.7.0 evaluates the truth value of non-default parameters.
        """
        parameters = self.get_params(deep=False)  # type: ignore[attr-defined]
        for name, value in parameters.items():
            if isinstance(value, np.ndarray):
                parameters[name] = value.tolist()
        copied = type(self)(**parameters)
        return super(GuaranteeView, copied)._get_params_html(*args, **kwargs)  # type: ignore[misc]

    def _get_fitted_attr_html(self, doc_link=""):
        """Return fitted attributes as scikit-learn 1.9 lists them, with the full guarantee."""
        listed = super()._get_fitted_attr_html(doc_link)  # type: ignore[misc]
        for entry in listed.values():
            if isinstance(entry.get("value"), Guarantee):
                # Arrays are not cut in the middle of an element.
                entry["value"] = np.array(Sentence(entry["value"]), dtype=object)
        return listed


class Sentence:
    """Wrapper of a guarantee whose representation is its text.

    Parameters
    ----------
    guarantee : Guarantee
    """

    def __init__(self, guarantee):
        self.guarantee = guarantee

    def __repr__(self):
        return str(self.guarantee)


class Block:
    """Box of scikit-learn's diagram, as returned by ``_sk_visual_block_``.

    Parameters
    ----------
    estimator : estimator

    kind : {"single", "serial", "parallel"}

    children : sequence of (str, estimator)
        Estimators inside the box.

    caption : str or None
        Line below the name.
    """

    def __init__(self, estimator, kind, children, caption):
        self.kind = kind
        self.name_caption = caption
        self.dash_wrapped = True
        self.estimators: Any = estimator
        self.names: Any = type(estimator).__name__
        self.name_details: Any = str(estimator)
        if kind != "single":
            self.estimators = [child for _, child in children]
            self.names = [
                f"{name}: {child if isinstance(child, str) else type(child).__name__}"
                for name, child in children
            ]
            self.name_details = [str(child) for child in self.estimators]

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return None  # what other versions of scikit-learn would ask for
