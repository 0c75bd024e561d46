"""Configuration of Sphinx. The build needs no network."""

import os
import sys

from docutils import nodes
from latex2mathml.converter import convert

sys.path.insert(0, os.path.dirname(__file__))  # where flow and gallery_order are
os.environ.setdefault("SCIPY_ARRAY_API", "1")

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
    "sphinx_reredirects",
    "flow",  # pictures at the top of guides
]
# Where pages have moved.
redirects = {
    "calibrations_theory": "linear_models_theory.html#objective-noise",
    "choosing_theory": "pipeline_theory.html#choosing-theory",
    "defaults": "linear_models_theory.html#chosen-numbers",
    "evaluation_theory": "pipeline_theory.html#evaluation-theory",
    "kernel_ridge_measurements": "kernel_ridge_theory.html#kernel-ridge-measurements",
    "kernel_ridge_paper_theory": "kernel_ridge_theory.html#kernel-ridge-paper",
    "raw_frame_theory": "pipeline_theory.html#preparation-theory",
    "report_theory": "guarantees_theory.html#report-theory",
}

templates_path = ["_templates"]
exclude_patterns = ["_build", "_templates"]
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
    "within_subsection_order": "gallery_order.StoryOrder",
    "backreferences_dir": "api/backreferences",
    "doc_module": ("skdp",),
    "reference_url": {"skdp": None},
    "download_all_examples": False,
    "write_computation_times": False,
    "show_signature": False,
    "plot_gallery": True,
    "parallel": 2,
}

plot_formats = [("png", 110)]
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
html_show_sourcelink = False


def visit_math(translator, node):
    """Write a formula as MathML, which browsers show without scripts and without a network."""
    is_block = isinstance(node, nodes.math_block)
    translator.body.append(convert(node.astext(), display="block" if is_block else "inline"))
    raise nodes.SkipNode


def setup(app):
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math, None))
