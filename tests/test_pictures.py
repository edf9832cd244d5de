"""The drawings of the methods: complete, in one visual language, used, and readable."""

import re
from pathlib import Path
from xml.etree import ElementTree

import nbformat
import pytest
from matplotlib.colors import rgb_to_hsv, to_rgb

from lib import paths
from lib.runs import notebooks
from tools import front, pages

FOLDER = paths.NOTEBOOKS / "pictures"
PICTURES = sorted(FOLDER.glob("*.svg"))
SVG = "{http://www.w3.org/2000/svg}"
HUES = {"anchor": 202, "positive": 164, "negative": 26, "hard negative": 310, "change": 41}
LARGEST, SMALLEST = 520, 15
FRONT = [front.FOLDER / "map.svg", front.FOLDER / "search.svg"]  # the README's
each = pytest.mark.parametrize("path", PICTURES + FRONT, ids=lambda path: path.stem)


def hues(path: Path) -> set[int]:
    """Hues of a drawing's fills and strokes in degrees; greys, black and white have none."""
    text = path.read_text(encoding="utf-8")
    found = re.findall(r"""(?:fill|stroke|stop-color)\s*[:=]\s*["']?(#[0-9a-fA-F]+|[a-z]+)""", text)
    names = {name for name in found if name not in ("none", "context")}
    colours = [rgb_to_hsv(to_rgb(name)) for name in names]
    return {round(360 * hue) for hue, saturation, _ in colours if saturation > 0.12}


@each
def test_is_complete_in_itself(path: Path) -> None:
    root = ElementTree.parse(path).getroot()
    title, description = root.find(f"{SVG}title"), root.find(f"{SVG}desc")
    assert title is not None and title.text and description is not None
    assert len((description.text or "").split()) >= 12, "describe it to who cannot see it"
    assert root.get("role") == "img"
    names = {element.tag.removeprefix(SVG) for element in root.iter()}
    assert names.isdisjoint({"script", "image", "foreignObject", "animate"})
    assert "http" not in path.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")


@each
def test_fits_a_page_and_a_phone(path: Path) -> None:
    root = ElementTree.parse(path).getroot()
    _, _, width, height = map(float, (root.get("viewBox") or "").split())
    assert width == 720 and height <= LARGEST
    sizes = re.findall(r"font-size\s*[:=]\s*[\"']?([\d.]+)", path.read_text(encoding="utf-8"))
    assert sizes and min(map(float, sizes)) >= SMALLEST


@each
def test_speaks_the_common_language(path: Path) -> None:
    assert {h for h in hues(path) if min(abs(h - own) for own in HUES.values()) > 14} == set()
    first = next(e for e in ElementTree.parse(path).getroot() if e.tag == f"{SVG}rect")
    assert (first.get("fill") or "").lower() in ("#fff", "#ffffff", "white"), "for dark themes"


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
    found = front.places("same meaning")
    median = found.median()
    (words,) = re.findall(r"!\[(A search .*?)\]", (paths.ROOT / "README.md").read_text("utf-8"))
    shown = [f"{number:g}" for number in (*found.loc[front.QUERY], *median)]
    assert re.findall(r"[\d.]+\b", words)[-len(shown) :] == shown
    assert list(median) == sorted(median, reverse=True), (
        "each program is better than the one before"
    )
