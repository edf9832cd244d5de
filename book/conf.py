"""Sphinx's settings for the course as a web site, which `make book` builds. The source is the
checkout itself, so a page links to others and to files as it does there:

    python -m sphinx -b html -c book . FOLDER
"""

from importlib.resources import files

from docutils.nodes import SkipNode

from tools import pages, site

project = "Contrastive sentence embeddings"
author = "the authors of the course"
copyright = f"{author}, CC BY 4.0"
extensions = ["myst_nb"]
root_doc = "book/index"
include_patterns = [
    "book/*.md",
    "notebooks/[0-9][0-9]_*.ipynb",
    "notebooks/solutions/*.ipynb",
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "LICENSES.md",
    "assignments/README.md",
    "benchmarks/README.md",
    "data/README.md",
    "data/midi-bert/README.md",
    "data/mini*/README.md",
    "data/papers/README.md",
    "data/public/README.md",
    "data/sda/README.md",
    "results/LOG.md",
    "results/README.md",
    "results/rows.md",
    "results/verdicts.md",
]
exclude_patterns = [".*", "outputs", "my"]  # not even looked into
nitpick_ignore_regex = [
    ("myst", r"assignments/source/.*"),  # they hold the solutions
    ("myst", r"term-.*"),  # the glossary's entries, which are no headings; `tools.site` checks them
]
templates_path = ["_templates"]
nb_custom_formats = {".ipynb": "tools.site.read_notebook"}
nb_execution_mode = "off"
nb_code_prompt_show = "Show the {type}"
nb_code_prompt_hide = "Hide the {type}"
nb_render_markdown_format = "myst"  # tables and formulas in what cells say
nb_ipywidgets_js: dict = {}
myst_enable_extensions = ["dollarmath", "amsmath"]
myst_heading_anchors = 3
myst_heading_slug_func = "tools.site.anchor"
html_theme = "sphinx_book_theme"
html_title = project
html_static_path = ["_static", str(files("ziamath") / "fonts" / "STIXTwoMath-Regular.ttf")]
html_css_files = ["course.css"]
html_theme_options = {"home_page_in_toc": True, "show_toc_level": 2, "use_download_button": False}
html_additional_pages = {"index": "home.html"}
html_math_renderer = "mathml"
html_show_sourcelink = False
suppress_warnings = ["mystnb.unknown_mime_type", "myst.header"]


def _drawn(display: str):
    def visit(translator, node):
        mathml = pages.mathml(node.astext(), display)
        translator.body.append(
            mathml if display == "inline" else f'<div class="math">{mathml}</div>'
        )
        raise SkipNode

    return visit


def _fill(_app, docname: str, source: list[str]) -> None:
    """What code writes into two pages of this folder."""
    if docname == "book/index":
        source[0] = source[0].replace("{{cards}}", site.cards())
    if docname == "book/results":
        source[0] = source[0].replace("{{results}}", site.results())


def setup(app):
    """Equations as MathML, which browsers draw without a script from a network."""
    app.add_html_math_renderer("mathml", (_drawn("inline"), None), (_drawn("block"), None))
    app.connect("source-read", _fill)
