"""The glossary, and whether notebooks introduce its terms at their first use."""

import re

import nbformat
import pytest
from nbformat.v4 import new_markdown_cell, new_notebook

from lib import course
from tools import glossary
from tools.glossary import Term

KNOWN = tuple(
    Term(names, "…")
    for names in (
        ('"all" aggregation',),
        ("[CLS]",),
        ("anchor",),
        ("chance",),
        ("collapse",),
        ("cosine similarity", "cosine"),
        ("hard negative",),
        ("head", "projection head"),
        ("in-batch negatives",),
        ("negative",),
        ("seven STS tasks",),
        ("simultaneous interval",),
        ("STS",),
        ("STS-B",),
    )
)
LINK = "[anchor](../book/glossary.md#term-anchor)"


def notebook(*cells: str) -> nbformat.NotebookNode:
    """A notebook of these Markdown cells."""
    return new_notebook(cells=list(map(new_markdown_cell, cells)))


@pytest.mark.parametrize(
    ("cells", "terms"),
    [
        (["An anchor."], ["anchor"]),
        ([f"An {LINK}, and the anchors."], []),
        ([f"An anchor: the {LINK}."], ["anchor"]),
        (["One", f"An {LINK}.", "Anchors"], []),
        (["An **anchor** is one. Anchor."], []),
        (["**Anchors**: these."], []),
        (["**Anchor.** This."], []),
        (["An *anchor*."], ["anchor"]),
        (["**Anchor and candidate**"], ["anchor"]),
        (["An [anchor](../book/glossary.md#term-head)."], ["anchor"]),
        (["[What is searched for](../book/glossary.md#term-anchor): the anchor."], []),
        (["# Anchor\n\n`anchor`, $anchor$ ![anchor](anchor.png) [anchor](02_anchor.ipynb)"], []),
        (["<details>An anchor.</details>"], ["anchor"]),
        (["| a |\n|---|\n| anchor |"], ["anchor"]),
        (["## References\n\n* A. *Anchors.*"], []),
        (["## Exercises\n\n1. An anchor."], ["anchor"]),
        (["# An anchor", "**You will learn** anchors", "No anchor."], ["anchor"]),
        (["# A\n\nAn anchor.", "**You will learn** more", "Nothing."], []),
        (["Anchorage, re-anchor"], []),
        (["A hard\nnegative."], ["hard negative"]),
        (["A *hard* negative."], ["hard negative"]),
        (["Hard-negatives and a negative."], ["hard negative", "negative"]),
        (["An in-batch negative."], ["in-batch negatives"]),
        (["STS-B"], ["STS-B"]),
        (["STS12 to STS16"], []),
        (["The seven STS\nsets"], ["seven STS tasks"]),
        (["The [CLS] vector"], ["[CLS]"]),
        (["The [[CLS]](../book/glossary.md#term-CLS) vector, [CLS]"], []),
        (["Its cosines"], ["cosine similarity"]),
        (["The [cosine](../book/glossary.md#term-cosine-similarity)"], []),
        (["By chance; a loss at *chance*"], ["chance"]),
        (["Nothing but chance"], []),
        (["Twelve heads of attention; heads"], []),
        (["A small head"], ["head"]),
        (["A [head](../book/glossary.md#term-projection-head)"], []),
        (["Everything collapses; a collapse"], ["collapse"]),
        (['Over all, "all"'], ['"all" aggregation']),
        (["Simultaneous 95 % intervals"], ["simultaneous interval"]),
    ],
)
def test_a_term_is_introduced_at_its_first_use(cells, terms) -> None:
    assert [use.term for use in glossary.unintroduced(notebook(*cells), KNOWN)] == terms


def test_a_link_to_the_glossary_leads_to_a_term() -> None:
    made = notebook(f"{LINK} [b](../book/glossary.md#term-b) [c](../book/glossary.md)", "`d`")
    assert glossary.dead_links(made, KNOWN) == ["../book/glossary.md#term-b"]


def test_the_glossary_is_sorted_and_each_term_is_defined_once() -> None:
    terms = glossary.terms()
    assert len(terms) > 50
    keys = [glossary.order(term.name) for term in terms]
    assert keys == sorted(keys)
    assert [
        term.name for term in terms if not re.fullmatch(r"\S.{20,}[.!?]", term.definition)
    ] == []
    addresses = [glossary.address(name).lower() for term in terms for name in term.names]
    assert len(set(addresses)) == len(addresses)
    assert set(glossary.FORMS) <= {term.name for term in terms}


def test_the_glossary_refers_to_its_own_terms() -> None:
    names = {name for term in glossary.terms() for name in term.names}
    text = " ".join(term.definition for term in glossary.terms())
    referred = re.findall(r"\{term\}`(?:[^`<]*<)?([^`<>]+)>?`", text)
    assert referred and set(referred) <= names


@pytest.mark.parametrize("path", course.notebooks(), ids=lambda path: path.stem)
def test_links_to_the_glossary_lead_to_terms(path) -> None:
    assert glossary.dead_links(nbformat.read(path, as_version=4)) == []
