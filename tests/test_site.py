"""The course as a web site: links, pages, search (`make test-slow`); on a phone
(`make test-browser`)."""

import re
from pathlib import Path

import nbformat
import pytest

from lib import paths
from lib.runs import notebooks
from tools import site

LINK = re.compile(r"(?<!!)\]\(([^)#\s]*)(#[^)\s]*)?\)")


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    return site.build(tmp_path_factory.mktemp("book")).parent


def text_of(notebook: Path) -> str:
    cells = nbformat.read(notebook, as_version=4).cells
    return "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")


@pytest.mark.parametrize("notebook", notebooks.find_all(), ids=lambda path: path.stem)
def test_every_link_of_a_notebook_leads_somewhere(notebook: Path) -> None:
    glossary = (paths.ROOT / "book" / "glossary.md").read_text(encoding="utf-8")
    terms = {"#term-" + re.sub(r"[^\w.]+", "-", line).strip("-") for line in glossary.splitlines()}
    for target, anchor in LINK.findall(text_of(notebook)):
        if target and not re.match(r"[a-z]+:", target):
            assert (notebook.parent / target).exists(), target
        if target.endswith("glossary.md") and anchor:
            assert anchor in terms, f"{target}{anchor}"


@pytest.mark.slow
def test_the_site_has_its_pages_and_loads_nothing_from_a_network(built) -> None:
    """`build` itself fails at a broken link, a missing anchor, and what a network would bring."""
    names = {f"notebooks/{path.stem}" for path in notebooks.find_all()}
    others = {"index", "search", "README", "assignments/README", "data/README"}
    others |= {"book/index", "book/results", "book/glossary", "results/verdicts"}
    found = {p.relative_to(built).with_suffix("").as_posix() for p in built.rglob("*.html")}
    assert names | others <= found
    assert not list(built.glob("assignments/source")), "the solutions are no part of the site"
    front = (built / "book" / "index.html").read_text(encoding="utf-8")
    assert all(f'href="../{name}.html"' in front for name in names) and "<img" in front
    page = (built / "notebooks" / "01_infonce.html").read_text(encoding="utf-8")
    assert page.count("<math") > 10 and "$$" not in page
    results = (built / "book" / "results.html").read_text(encoding="utf-8")
    assert "una_table_1" in results and ".7614</td>" in results


def test_cells_that_a_notebook_folds_are_folded_on_the_site() -> None:
    cell = nbformat.v4.new_code_cell("1")
    cell.metadata.jupyter = {"source_hidden": True, "outputs_hidden": True}
    node = site.read_notebook(nbformat.writes(nbformat.v4.new_notebook(cells=[cell])))
    assert node.cells[0].metadata.tags == ["hide-input", "hide-output"]


def test_a_folded_function_and_the_folded_cell_that_calls_it_have_one_bar() -> None:
    cells = [nbformat.v4.new_code_cell(one) for one in ("def f(): ...", "f()", "f", "open", "f")]
    for cell in [*cells[:3], cells[4]]:
        cell.metadata.jupyter = {"source_hidden": True}
    cells[1].outputs = [nbformat.v4.new_output("stream", text="1")]
    cells[2].metadata.mystnb = {"code_prompt_show": "Show a solution"}
    node = site.read_notebook(nbformat.writes(nbformat.v4.new_notebook(cells=cells)))
    assert [cell.source for cell in node.cells] == ["def f(): ...\n\n\nf()", "f", "open", "f"]


def test_sentences_that_a_folded_cell_says_have_no_bar() -> None:
    said = nbformat.v4.new_output("display_data", {"text/markdown": "It is so.", "text/plain": ""})
    drawn = nbformat.v4.new_output("display_data", {"image/png": "", "text/plain": ""})
    cells = [nbformat.v4.new_code_cell("f", outputs=out) for out in ([said], [said, drawn], [])]
    for cell in cells:
        cell.metadata.tags = ["hide-input", "hide-output"]
    node = site.read_notebook(nbformat.writes(nbformat.v4.new_notebook(cells=cells)))
    assert node.cells[0].metadata.tags == ["hide-output", "remove-input"]
    assert all("hide-input" in cell.metadata.tags for cell in node.cells[1:])


def test_a_folder_of_something_else_is_left_alone(tmp_path) -> None:
    (tmp_path / "html").mkdir()
    (tmp_path / "html" / "mine.txt").write_text("mine")
    with pytest.raises(ValueError, match="something else"):
        site.build(tmp_path)
    assert (tmp_path / "html" / "mine.txt").is_file()


def test_broken_links_are_found(tmp_path) -> None:
    missing = '<a href="b.html">b</a> <a href="#x">x</a> <img src="c.png"> <p id="y">'
    (tmp_path / "a.html").write_text(missing)
    network = '<a href="a.html#y">y</a> <script src="https://cdn.example/x.js"></script>'
    (tmp_path / "d.html").write_text(network)
    found = site.broken(tmp_path)
    assert len(found) == 4 and found[3].startswith("d.html")
    assert "a.html: b.html is not there" in found


@pytest.mark.browser
@pytest.mark.parametrize("width", [390, 1000, 1440])
def test_pages_fit_the_screen(built, browser, screenshots, width) -> None:
    page = browser.new_page(viewport={"width": width, "height": 900})
    for path in ("book/index", "notebooks/01_infonce", "book/results"):
        page.goto((built / f"{path}.html").as_uri())
        page.screenshot(path=screenshots / f"book_{Path(path).name}_{width}.png")
        wide = page.evaluate(
            "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
        assert wide <= 1, f"{path} is {wide} pixels wider than the screen"
    page.goto((built / "notebooks" / "01_infonce.html").as_uri())
    left = "e => e.firstElementChild.getBoundingClientRect().x - e.getBoundingClientRect().x"
    assert min(page.locator("div.math").evaluate_all(f"all => all.map({left})")) >= 0
    assert page.evaluate("document.fonts.load('16px \"STIX Two Math\"').then(f => f.length)") == 1
    stretched = "e => e.clientWidth * e.naturalHeight / (e.clientHeight * e.naturalWidth)"
    figures = page.locator(".cell_output img:visible").evaluate_all(f"all => all.map({stretched})")
    assert figures and all(abs(ratio - 1) < 0.02 for ratio in figures)
    page.close()
