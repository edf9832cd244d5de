"""The course as a web site: links, images, search, pages (`make test-slow`); on a phone
(`make test-browser`)."""

import html
import re
import runpy
from pathlib import Path

import pytest

from lib import pages, paths
from tools import glossary, site


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    return site.build(tmp_path_factory.mktemp("book")).parent


@pytest.mark.slow
def test_there_is_a_page_for_every_notebook_the_results_and_the_glossary(built) -> None:
    names = {f"notebooks/{path.stem}" for path in paths.NOTEBOOKS.glob("[0-9][0-9]_*.ipynb")}
    others = {"index", "search", "README", "CONTRIBUTING", "assignments/README", "data/README"}
    others |= {f"book/{name}" for name in ("index", "results", "glossary", "walk")}
    found = {p.relative_to(built).with_suffix("").as_posix() for p in built.rglob("*.html")}
    assert len(names) == 7 and names | others <= found
    assert 'url=book/index.html"' in (built / "index.html").read_text(encoding="utf-8")
    front = (built / "book" / "index.html").read_text(encoding="utf-8")
    assert all(f'href="../{name}.html"' in front for name in names)
    titles = [pages.summary(path) for path in paths.NOTEBOOKS.glob("[0-9][0-9]_*.ipynb")]
    text = html.unescape(re.sub(r"<[^>]+>", "", front))
    text = text.translate(str.maketrans("‘’“”", "''\"\""))  # Sphinx sets them
    assert all(title in text and question in text for title, question in titles)


@pytest.mark.slow
def test_links_lead_to_pages_and_files_as_they_do_in_the_checkout(built) -> None:
    """`build` itself finds the broken ones."""
    walk = (built / "book" / "walk.html").read_text(encoding="utf-8")
    assert 'href="../CONTRIBUTING.html"' in walk
    [losses] = re.findall(r'href="\.\./(_downloads/\w+/losses\.py)"', walk)
    assert (built / losses).read_bytes() == (paths.ROOT / "lib" / "losses.py").read_bytes()
    first = (built / "notebooks" / "01_infonce.html").read_text(encoding="utf-8")
    assert 'href="02_simcse.html"' in first and 'href="../README.html"' in first
    assert 'href="glossary.html#term-hard-negative"' in walk
    data = (built / "data" / "README.html").read_text(encoding="utf-8")
    assert 'href="mini-spacy/README.html"' in data and 'href="papers/README.html"' in data


@pytest.mark.slow
def test_the_glossary_has_the_addresses_that_notebooks_link_to(built) -> None:
    page = (built / "book" / "glossary.html").read_text(encoding="utf-8")
    names = [name for term in glossary.terms() for name in term.names]
    assert re.findall(r'<dt id="(term-[^"]+)"', page) == list(map(glossary.address, names))


@pytest.mark.slow
def test_solutions_of_the_assignments_are_no_part_of_the_site(built) -> None:
    page = (built / "assignments" / "README.html").read_text(encoding="utf-8")
    assert "07_backbone" in page and not re.search(r'href="[^"]*07_backbone', page)
    assert not list(built.glob("assignments/source")) and not list(built.rglob("07_backbone*"))


@pytest.mark.slow
def test_equations_and_figures_of_the_notebooks_are_drawn_without_a_network(built) -> None:
    page = (built / "notebooks" / "01_infonce.html").read_text(encoding="utf-8")
    assert "attachment:" not in page and 'src="data:image/png;base64,' in page
    assert page.count("<math") > 10 and "<img" in page and "cdn." not in page
    assert "$$" not in page and "mathjax.js" not in page.lower() and "tex-mml" not in page.lower()


def test_cells_that_a_notebook_folds_are_folded_on_the_site() -> None:
    path = paths.NOTEBOOKS / "01_infonce.ipynb"
    node = site.read_notebook(path.read_text(encoding="utf-8"))
    folded = [cell.id for cell in node.cells if "source_hidden" in cell.metadata.get("jupyter", {})]
    tagged = [cell.id for cell in node.cells if "hide-input" in cell.metadata.get("tags", [])]
    assert folded == tagged and "draw-circles" in tagged


@pytest.mark.slow
def test_the_search_finds_words_of_the_notebooks(built) -> None:
    index = (built / "searchindex.js").read_text(encoding="utf-8")
    assert "04_una" in index and "anisotropi" in index


@pytest.mark.slow
def test_the_results_have_the_papers_figures(built) -> None:
    text = (built / "book" / "results.html").read_text(encoding="utf-8")
    assert "una_table_1" in text and "76.14 |" in text


def test_a_folder_of_something_else_is_left_alone(tmp_path) -> None:
    (tmp_path / "html").mkdir()
    (tmp_path / "html" / "mine.txt").write_text("mine")
    with pytest.raises(ValueError, match="something else"):
        site.build(tmp_path)
    assert (tmp_path / "html" / "mine.txt").is_file()


def test_a_site_that_was_being_built_is_no_strangers(tmp_path, monkeypatch) -> None:
    """Stopped in the middle, by a kill or by Sphinx, the next call begins anew."""

    def stopped(command, **_):
        Path(command[-1]).mkdir()
        (Path(command[-1]) / "half.html").write_text("half")
        raise KeyboardInterrupt

    monkeypatch.setattr(site.subprocess, "run", stopped)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            site.build(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_broken_links_are_found(tmp_path) -> None:
    (tmp_path / "a.html").write_text(
        '<a href="b.html">b</a> <a href="#x">x</a> <img src="c.png"> <p id="y">'
    )
    (tmp_path / "d.html").write_text(
        '<a href="a.html#y">y</a> <script src="https://cdn.example/x.js"></script>'
    )
    found = site.broken(tmp_path)
    assert (
        len(found) == 4 and found[3].startswith("d.html") and "a.html: b.html is not there" in found
    )


@pytest.mark.browser
@pytest.mark.parametrize(("name", "width", "height"), [("phone", 390, 844), ("desktop", 1400, 900)])
def test_pages_fit_the_screen(built, browser, screenshots, name, width, height) -> None:
    page = browser.new_page(viewport={"width": width, "height": height})
    for path in ("book/index", "notebooks/01_infonce", "book/results"):
        stem = Path(path).name
        page.goto((built / f"{path}.html").as_uri())
        page.screenshot(path=screenshots / f"book_{stem}_{name}.png")
        wide = page.evaluate(
            "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
        assert wide <= 1, f"{stem} is {wide} pixels wider than the screen"
    page.close()


def included(pattern: str) -> list[Path]:
    return [path for path in paths.ROOT.glob(pattern) if path.suffix in (".md", ".ipynb")]


def test_a_linked_page_is_a_page_of_the_site() -> None:
    """Sphinx finds that, too, but only `make test-slow` builds the site."""
    settings = runpy.run_path(str(paths.ROOT / "book" / "conf.py"))["include_patterns"]
    pages_there = {path for pattern in settings for path in included(pattern)}
    assert len(pages_there) > 20
    for page in sorted(pages_there):
        text = re.sub(r"`[^`\n]*`", "", page.read_text(encoding="utf-8"))
        for target in re.findall(r"\]\(([^)#:\s]+\.md)[)#]", text):
            linked = (page.parent / target).resolve()
            assert linked in pages_there, f"{page.relative_to(paths.ROOT)}: {target}"
