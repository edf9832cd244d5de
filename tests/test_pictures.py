"""The drawings of the methods: safe to show, used, and described to who cannot see them."""

import re
from pathlib import Path
from xml.etree import ElementTree

import nbformat
import pytest

from lib import paths
from lib.runs import notebooks
from tools import front, pages

FOLDER = paths.NOTEBOOKS / "pictures"
PICTURES = sorted(FOLDER.glob("*.svg"))
SVG = "{http://www.w3.org/2000/svg}"
LARGEST, SMALLEST = 520, 15
FRONT = [front.FOLDER / "map.svg", front.FOLDER / "search.svg"]  # the README's
each = pytest.mark.parametrize("path", PICTURES + FRONT, ids=lambda path: path.stem)


@each
def test_is_complete_in_itself(path: Path) -> None:
    root = ElementTree.parse(path).getroot()
    title, description = root.find(f"{SVG}title"), root.find(f"{SVG}desc")
    assert title is not None and title.text and description is not None and description.text
    names = {element.tag.removeprefix(SVG) for element in root.iter()}
    assert names.isdisjoint({"script", "image", "foreignObject", "animate"})
    assert "http" not in path.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")


def test_every_picture_is_shown_with_words_for_who_cannot_see_it() -> None:
    shown = {}
    for notebook in notebooks.find_all():
        node = nbformat.read(notebook, as_version=4)
        text = "\n".join(c.source for c in node.cells if c.cell_type == "markdown")
        for name in pages.PICTURE.findall(text):
            assert (notebook.parent / name).is_file(), f"{notebook.stem}: {name}"
            shown[Path(name).name] = notebook.stem
        assert not re.findall(r"!\[\s*\]\(", text), f"{notebook.stem}: a picture without words"
    assert {path.name for path in PICTURES} == set(shown)


def test_the_front_page_s_search_is_what_make_table_draws() -> None:
    assert (front.FOLDER / "search.svg").read_text(encoding="utf-8") == front.search_picture()
