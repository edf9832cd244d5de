"""Sphinx's settings for the course as a web site, which `make book` builds."""

from docutils.nodes import SkipNode
from latex2mathml.converter import convert

project = "Contrastive sentence embeddings"
author = "the authors of the course"
copyright = f"{author}, CC BY 4.0"
extensions = ["myst_nb"]
exclude_patterns = ["files/**"]
nb_execution_mode = "off"
nb_ipywidgets_js: dict = {}
myst_enable_extensions = ["dollarmath", "amsmath"]
myst_heading_anchors = 3
html_theme = "sphinx_book_theme"
html_title = project
html_static_path = ["_static"]
html_css_files = ["course.css"]
html_theme_options = {"home_page_in_toc": True, "show_toc_level": 2, "use_download_button": False}
html_math_renderer = "mathml"
html_show_sourcelink = False
suppress_warnings = ["mystnb.unknown_mime_type", "myst.header"]


def _drawn(display: str):
    def visit(translator, node):
        mathml = convert(node.astext(), display=display)
        translator.body.append(
            mathml if display == "inline" else f'<div class="math">{mathml}</div>'
        )
        raise SkipNode

    return visit


def setup(app):
    """Equations as MathML, which browsers draw without a script from a network."""
    app.add_html_math_renderer("mathml", (_drawn("inline"), None), (_drawn("block"), None))
