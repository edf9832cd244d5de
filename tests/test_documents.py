"""README, glossary and the walk: pages beside the executed notebooks, and what they say of a run."""

import re
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pytest

from lib import data, documents, glossary, pages, paths
from lib.training.batches import Feed
from lib.encoder.pretrained import read_tokenizer
from lib.training.recipe import recipe

LINK = re.compile(r'href="(?![a-z]+:)([^"#]*)(?:#([^"]*))?"')


@pytest.fixture
def written(tmp_path: Path) -> dict[str, str]:
    """The pages by their names."""
    return {page.name: page.read_text() for page in documents.write_documents(tmp_path)}


def test_every_term_of_the_glossary_can_be_linked_to(written: dict[str, str]) -> None:
    page = written["glossary.html"]
    terms = glossary.read(glossary.PAGE.read_text(encoding="utf-8"))
    addresses = [glossary.address(name) for term in terms for name in term.names]
    assert re.findall(r'<dt id="([^"]+)"', page) == addresses and len(addresses) > 50
    assert "{term}" not in page and "{glossary}" not in page
    asked = {anchor for file, anchor in LINK.findall(page) if not file and "term-" in anchor}
    assert asked and asked <= set(addresses)


def test_links_of_the_readme_lead_to_pages_and_files(
    written: dict[str, str], tmp_path: Path
) -> None:
    files = {unquote(file) for file, _ in LINK.findall(written["readme.html"]) if file}
    assert {"glossary.html", "07_results/07_results.html"} <= files
    made = {"index.html", *pages.DOCUMENTS.values()}
    executed = {f"{path.stem}/{path.stem}.html" for path in paths.NOTEBOOKS.glob("*.ipynb")}
    assert all((tmp_path / file).exists() for file in files - made - executed)


def test_a_notebook_links_to_the_pages(tmp_path: Path) -> None:
    text = '<a href="../book/glossary.md#term-anchor">a</a> <a href="../README.md">b</a>'
    moved = pages.linked(text, tmp_path / "01_infonce" / "01_infonce.html")
    assert LINK.findall(moved) == [("../glossary.html", "term-anchor"), ("../readme.html", "")]


def test_the_sentence_of_the_walk_is_in_the_first_batch_and_has_that_negative() -> None:
    text = (paths.ROOT / "book" / "walk.md").read_text(encoding="utf-8")
    sentence, negative = (
        " ".join(quoted.split())
        for quoted in re.findall(r'\*"((?:By a glacier|by a sides)[^"]*)"\*', text)
    )
    line = int(re.search(r"line ([\d,]+) of 24,015", text)[1].replace(",", ""))  # type: ignore[index]
    corpus, tokenizer = data.corpus("mini"), read_tokenizer(str(paths.MINI_BERT))
    assert len(corpus) == 24_015 and corpus[line - 1] == sentence

    feed = Feed.of(corpus, recipe("mini_una"), tokenizer, seed=42)
    _, rows = next(feed.order.from_step(0))
    batch = feed.batch(0)
    roles = dict(zip(batch.sizes, batch.ids.split(list(batch.sizes.values())), strict=True))
    (place,) = np.flatnonzero(rows == line - 1)
    assert tokenizer.decode(roles["negative"][place], skip_special_tokens=True) == negative
    assert [step for step in range(15) if "negative" in feed.batch(step).sizes] == [0, 5, 10]
