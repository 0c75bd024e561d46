"""How estimators look in notebooks: with their guarantee."""

from typing import Any

import numpy as np

from skdp._views import card
from skdp.privacy import Guarantee
from skdp.privacy._guarantees import brief
from skdp.privacy._guarantees import parts as parts_of


class GuaranteeView:
    """Mixin: views of an estimator show its guarantee."""

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
        """Further parts of the view of what is fitted, as HTML."""
        return ()

    def _planned_title(self):
        """What is said before there is a guarantee."""
        return ""

    def _view_children(self):
        """Kind of diagram, and the estimators in it with their names; none of a single one."""
        return "single", ()

    def _sk_visual_block_(self):
        """Tell scikit-learn what to draw: within its own pipelines and searches, too."""
        kind, children = self._view_children()
        guarantee = getattr(self, "guarantee_", None)
        told = brief(guarantee) if isinstance(guarantee, Guarantee) else None
        return Block(self, kind, children, told)

    def _get_params_html(self, *args, **kwargs):
        """Parameters as scikit-learn lists them, arrays as lists.

        Version 1.7.0 asks for the truth value of what is not the default.
        """
        parameters = self.get_params(deep=False)  # type: ignore[attr-defined]
        for name, value in parameters.items():
            if isinstance(value, np.ndarray):
                parameters[name] = value.tolist()
        copied = type(self)(**parameters)
        return super(GuaranteeView, copied)._get_params_html(*args, **kwargs)  # type: ignore[misc]

    def _get_fitted_attr_html(self, doc_link=""):
        """Fitted attributes as scikit-learn 1.9 lists them, with a guarantee that is whole."""
        listed = super()._get_fitted_attr_html(doc_link)  # type: ignore[misc]
        for entry in listed.values():
            if isinstance(entry.get("value"), Guarantee):
                # Arrays are not cut in the middle of an element.
                entry["value"] = np.array(Sentence(entry["value"]), dtype=object)
        return listed


class Sentence:
    """A guarantee whose representation is its text.

    Parameters
    ----------
    guarantee : Guarantee
    """

    def __init__(self, guarantee):
        self.guarantee = guarantee

    def __repr__(self):
        return str(self.guarantee)


class Block:
    """A box of scikit-learn's diagram, as ``_sk_visual_block_`` is to return it.

    Parameters
    ----------
    estimator : estimator

    kind : {"single", "serial", "parallel"}

    children : sequence of (str, estimator)
        What is drawn within the box.

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
