"""Sections of examples in ``gallery.rst``, and the colours of figures."""

from pathlib import Path

from sphinx.util.docutils import SphinxDirective

# Colours of Okabe and Ito, which differ for the colour-blind, in the order of matplotlib's own.
OKABE_ITO = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#000000")
COLORS = f"cycler(color={OKABE_ITO!r})"
PAGE = Path(__file__).with_name("gallery.rst")


def use_colors(gallery_conf, fname):
    """Draw an example in ``COLORS``."""
    import matplotlib as mpl

    mpl.rcParams["axes.prop_cycle"] = COLORS


def place(path):
    """Key of an example's file: where ``gallery.rst`` names it."""
    return PAGE.read_text(encoding="utf-8").index(f" {Path(path).stem}\n")


class Examples(SphinxDirective):
    """Thumbnails of the examples named in the content, and their entries in the sidebar.

    The argument is the heading in the sidebar.
    """

    required_arguments = 1
    final_argument_whitespace = True
    has_content = True

    def run(self):
        names = [name.strip() for name in self.content]
        thumbnails = (f"   ../examples/{name}.py" for name in names)
        pages = (f"   auto_examples/{name}" for name in names)
        toctree = (".. toctree::", f"   :caption: {self.arguments[0]}", "   :hidden:")
        lines = (".. minigallery::", "", *thumbnails, "", *toctree, "", *pages)
        return self.parse_text_to_nodes("\n".join(lines))


def setup(app):
    app.add_directive("examples", Examples)
    return {"parallel_read_safe": True}
