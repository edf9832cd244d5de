"""The pictures of the README that code makes.

Command line: `python -m tools.front` takes `book/pictures/notebook.png`, a part of a notebook as a
reader sees it, with the Chromium of this machine. `make table` draws `book/pictures/search.svg`
from the stored searches of notebook 01.
"""

import io
import textwrap
from pathlib import Path

import nbformat
import pandas as pd
from jinja2 import Environment
from PIL import Image

from lib import data, paths
from lib.data.files import write_bytes
from tools import pages
from tools.browser import chromium

FOLDER = paths.ROOT / "book" / "pictures"
TEMPLATE = Path(__file__).with_name("search.svg.j2")
QUERY = 5  # of the twelve, from 1: not the one that notebook 01 lets its readers predict
LINE = 30  # characters
SHOWN = {  # the programs in the searches, as two lines of a column's head
    "word counts": ("word", "counts"),
    "midi-BERT, pre-trained": ("midi-BERT,", "pre-trained"),
    "midi-BERT, after SimCSE": ("midi-BERT,", "+ SimCSE"),
    "all-MiniLM-L6-v2": ("all-Mini-", "LM-L6-v2"),
}
KINDS = {  # of sentences that each query has: what it is called, ink and tint
    "same meaning": ("+ same meaning, other words", "#009E73", "#D3EFE5"),
    "decoy": ("− same words, other meaning", "#D55E00", "#FBE3D3"),
}
NOTEBOOK, FIRST, LAST = "01_infonce", "infonce", "my-info-nce"  # from a heading to a cell
WIDTH = 800


def places(kind: str) -> pd.DataFrame:
    """Query (1 to 12) × program → the place at which a search finds the query's sentence of a kind,
    1 being the first."""
    collection = data.handwritten()
    wanted = {i: collection.index(text) for i, text in enumerate(data.planted()[kind], 1)}
    found = pd.read_csv(paths.MINI / "searches.csv")
    found = found[found["sentence"] == found["query"].map(wanted)]
    return found.pivot(index="query", columns="encoder", values="place")[list(SHOWN)]


def search_picture() -> str:
    """One query of notebook 01 as an SVG: where each program has the sentence that means the same
    and the decoy, and the median over all twelve queries."""
    planted = data.planted().iloc[QUERY - 1]
    rows, below = [], 122
    for kind, (name, ink, tint) in KINDS.items():
        found = places(kind).loc[QUERY]
        rows.append(_row(name, textwrap.wrap(planted[kind], LINE), found, (below, ink, tint)))
        below += rows[-1]["height"]
    (_, ink, tint), median = KINDS["same meaning"], places("same meaning").median()
    rows.append(_row("+ same meaning, median", ["of twelve queries"], median, (below, ink, tint)))
    told = "; ".join(
        f"{row['name'].removeprefix('+ ')}: {', '.join(place['number'] for place in row['places'])}"
        for row in rows
    )
    programs = [
        {"x": 365 + 97 * i, "lines": lines, "bold": "SimCSE" in name}
        for i, (name, lines) in enumerate(SHOWN.items())
    ]
    template = Environment(autoescape=True).from_string(TEMPLATE.read_text(encoding="utf-8"))
    return template.render(
        query=planted["query"],
        among=f"{len(data.handwritten()):,}",
        description=f"Places with {', '.join(SHOWN)}, for the query {planted['query']} {told}.",
        programs=programs,
        rows=rows,
        height=below + rows[-1]["height"],
    )


def _row(name: str, lines: list[str], found: pd.Series, look: tuple[int, str, str]) -> dict:
    below, ink, tint = look
    shown = [{"number": f"{place:,g}", "first": place == 1} for place in found]
    return {
        "name": name,
        "lines": lines,
        "places": shown,
        "y": below,
        "ink": ink,
        "tint": tint,
        "height": 44 + 22 * len(lines),
    }


def notebook_picture() -> bytes:
    """Some cells of a notebook's page as PNG."""
    from playwright.sync_api import sync_playwright  # an extra, which the drawing does without

    source = nbformat.read(paths.NOTEBOOKS / f"{NOTEBOOK}.ipynb", as_version=4)
    with sync_playwright() as start:
        browser = start.chromium.launch(executable_path=chromium())
        page = browser.new_page(viewport={"width": WIDTH, "height": 800}, device_scale_factor=1.5)
        page.set_content(pages.html(source, NOTEBOOK, paths.NOTEBOOKS))
        first = page.locator(f"[id='cell-id={FIRST}'] h2").bounding_box()
        last = page.locator(f"[id='cell-id={LAST}']").bounding_box()
        if first is None or last is None:
            raise ValueError(f"{NOTEBOOK} has no cells {FIRST} and {LAST}")
        height = last["y"] + last["height"] - first["y"]
        png = page.screenshot(
            full_page=True, clip={"x": 0, "y": first["y"], "width": WIDTH, "height": height}
        )
        shot = Image.open(io.BytesIO(png))
        browser.close()
    packed = io.BytesIO()
    shot.convert("RGB").quantize(128).save(packed, "PNG", optimize=True)
    return packed.getvalue()


def main() -> None:
    """Take the picture that needs a browser."""
    write_bytes(FOLDER / "notebook.png", notebook_picture())


if __name__ == "__main__":
    main()
