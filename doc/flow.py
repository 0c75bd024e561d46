"""The picture at the top of a guide: what goes in, what is released, and what it costs."""

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util.docutils import SphinxDirective

PARTS = {"in": "Goes in", "released": "Is released", "costs": "Costs"}


class Flow(SphinxDirective):
    """Three boxes in a row, or below each other on a narrow screen."""

    option_spec = dict.fromkeys(PARTS, directives.unchanged_required)

    def run(self):
        """Make containers, which other builders than HTML show as paragraphs."""
        whole = nodes.container(classes=["flow"])
        for name, title in PARTS.items():
            part = nodes.container(classes=["flow-part", f"flow-{name}"])
            part += nodes.paragraph("", "", nodes.strong(text=title))
            text, messages = self.state.inline_text(self.options[name], self.lineno)
            part += nodes.paragraph("", "", *text, *messages)
            whole += part
        return [whole]


def setup(app):
    """Register the directive."""
    app.add_directive("flow", Flow)
    return {"parallel_read_safe": True}
