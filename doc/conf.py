"""Configuration of Sphinx. The build needs no network."""

import os
import re
import sys
from pathlib import Path

from docutils import nodes
from latex2mathml.converter import convert
from sphinx_gallery.directives import imgsgnode

sys.path.insert(0, os.path.dirname(__file__))  # where flow and gallery_order are
os.environ.setdefault("SCIPY_ARRAY_API", "1")

from gallery_order import COLORS

from skdp import __version__ as release

project = "skdp"
author = "The skdp developers"
copyright = "2026, The skdp developers"
version = release

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "matplotlib.sphinxext.plot_directive",  # pictures of displays.rst
    "flow",  # pictures at the top of guides
    "gallery_order",  # sections of examples
    "sphinx_reredirects",
]
templates_path = ["_templates"]
# gallery.rst takes the place of the index of sphinx-gallery.
exclude_patterns = ["_build", "_templates", "auto_examples/index.rst"]
toc_object_entries_show_parents = "hide"
default_role = "autolink"  # a link where the name exists, else emphasis
nitpicky = False

autosummary_generate = True
# The templates say what to show: scikit-learn's own methods are documented by scikit-learn.
numpydoc_show_class_members = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    # Files plot_*.py are run and shown. The quick start of README prints and writes a file.
    "filename_pattern": r"plot_",
    "capture_repr": (),
    "remove_config_comments": True,
    "ignore_pattern": r"(__init__|quickstart)\.py",
    "minigallery_sort_order": "gallery_order.place",
    "reset_modules": ("matplotlib", "seaborn", "gallery_order.use_colors"),
    "backreferences_dir": "api/backreferences",
    "default_thumb_file": os.path.join(os.path.dirname(__file__), "_static", "logo.svg"),
    "doc_module": ("skdp",),
    "reference_url": {"skdp": None},
    "download_all_examples": False,
    "write_computation_times": False,
    "show_signature": False,
    "plot_gallery": True,
    "parallel": 2,
}

# Pages that moved: the old name, and the new page.
redirects = {
    "api_audit": "api.html#audits",
    "api_building_blocks": "api.html#building-blocks",
    "api_datasets": "api.html#data-sets",
    "api_inspection": "api.html#reports-and-displays",
    "api_models": "api.html#estimators",
    "api_preprocessing": "api.html#preprocessing-and-pipelines",
    "api_privacy": "api.html#guarantees-and-the-ledger",
    "api_searches": "api.html#searches-and-scores",
    "api_settings": "api.html#settings-errors-and-warnings",
    "api_theory": "api.html#theory",
    "auto_examples/index": "../gallery.html",
    "calibrations_theory": "linear_models_theory.html#objective-noise",
    "choosing_theory": "pipeline_theory.html#choosing-theory",
    "citing": "about.html#cite-skdp",
    "defaults": "linear_models_theory.html#chosen-numbers",
    "distributed_measurements": "distributed_theory.html#distributed-measurements",
    "evaluation_theory": "pipeline_theory.html#evaluation-theory",
    "kernel_ridge_measurements": "kernel_ridge_theory.html#kernel-ridge-measurements",
    "kernel_ridge_paper_theory": "kernel_ridge_theory.html#kernel-ridge-paper",
    "online_kernel_measurements": "online_kernel_theory.html#online-kernel-measurements",
    "progress": "utilities.html#progress-of-long-fits",
    "raw_frame_theory": "pipeline_theory.html#preparation-theory",
    "report_theory": "guarantees_theory.html#report-theory",
}

plot_formats = [("png", 110)]
plot_rcparams = {"axes.prop_cycle": COLORS}
plot_apply_rcparams = True
plot_html_show_formats = False
plot_html_show_source_link = False
plot_include_source = True

html_theme = "pydata_sphinx_theme"
html_math_renderer = "mathml"
html_title = f"skdp {release}"
html_logo = html_favicon = "_static/logo.svg"
html_static_path = ["_static"]
html_css_files = ["style.css", "landing.css"]
html_theme_options = {
    "logo": {"text": f"skdp {release}", "alt_text": "skdp, first page"},
    "header_links_before_dropdown": 6,
    "navbar_align": "left",
    "secondary_sidebar_items": ["page-toc"],
    "show_prev_next": False,
    "footer_start": ["copyright"],
    "footer_end": [],
    "navigation_depth": 3,
    "show_nav_level": 1,
}
# Pages that stand alone have no tree beside them.
html_sidebars = {page: [] for page in ("index", "install", "tutorial")}
# The pages of the API link to its sections, because a tree of all names is too long.
html_sidebars |= {page: ["api_sections.html"] for page in ("api", "api/generated/*")}
_api = Path(__file__).with_name("api.rst").read_text(encoding="utf-8")
_headings = re.findall(r"^(.+)\n-+$", _api, flags=re.MULTILINE)
html_context = {
    "api_sections": [(title, nodes.make_id(title)) for title in _headings],
    "default_mode": "auto",  # light or dark, as the reader's system
}
html_show_sourcelink = False


def visit_math(translator, node):
    """Write a formula as MathML, which browsers show without scripts and without a network."""
    is_block = isinstance(node, nodes.math_block)
    translator.body.append(convert(node.astext(), display="block" if is_block else "inline"))
    raise nodes.SkipNode


def box_figures(app, doctree):
    """Put the figures of examples in boxes, where they scroll on narrow screens."""
    for figure in list(doctree.findall(imgsgnode)):
        if figure["alt"].startswith("plot "):  # the name of the file: the figure has no title
            figure["alt"] = figure.parent.next_node(nodes.title).astext()
        box = nodes.container(classes=["sphx-glr-figure"])
        figure.replace_self(box)
        box += figure


def setup(app):
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math, None))
    app.connect("doctree-read", box_figures)
