"""Wrong grid files: one sentence that names file, cell and key, before anything is trained."""

import pytest

from lib import grids

GOOD = """
source: a table of our own
notebook: 04_una
profile: mini
metric: mini_test_spearman_last
seeds: [42, 010]
common: {max_steps: 3}
cells:
  - {row: a, set: {method: una, radius: 1e-2, lr: 5e-4}}
  - {row: b, set: {method: simcse, positive: crop, positive_rate: 0.1}}
"""


def read(folder, text: str) -> grids.Grid:
    (folder / "own.yaml").write_bytes(text if isinstance(text, bytes) else text.encode())
    return grids.read(folder / "own.yaml")


def test_numbers_are_decimal_and_words_are_text(tmp_path) -> None:
    grid = read(tmp_path, GOOD.replace("row: a", "row: yes").replace("row: b", "row: 1:30"))
    assert grid.seeds == (42, 10) and [cell.row for cell in grid.cells] == ["yes", "1:30"]
    assert dict(grid.cells[0].set) == {"max_steps": 3, "method": "una", "radius": 0.01, "lr": 5e-4}


WRONG = {
    "seeds text": ("seeds: [42, 010]", 'seeds: "42"', r"seeds must be a list, got '42'"),
    "seeds of texts": ("[42, 010]", '["42"]', r"seeds must be a whole number, got '42'"),
    "seeds of dicts": ("[42, 010]", "[{a: 1}]", r"seeds must be a whole number, got \{'a': 1\}"),
    "seeds sexagesimal": ("[42, 010]", "[1:30]", r"seeds must be a whole number, got '1:30'"),
    "seeds bool": ("[42, 010]", "[true]", "seeds must be a whole number, got True"),
    "seeds negative": ("[42, 010]", "[-1]", "seeds must be from 0 to"),
    "seeds none": ("[42, 010]", "[]", "seeds must be distinct and at least one"),
    "seeds twice": ("[42, 010]", "[1, 1]", "seeds must be distinct"),
    "key misspelt": ("source:", "sauce:", "unknown key 'sauce'"),
    "key missing": ("metric: mini_test_spearman_last\n", "", "the key 'metric' is missing"),
    "key twice": ("profile: mini", "profile: mini\nprofile: full", "'profile' stands twice"),
    "profile a number": (
        "profile: mini",
        "profile: 1",
        r"profile must be text \(quote it\), got 1",
    ),
    "profile unknown": ("profile: mini", "profile: tiny", "unknown profile 'tiny'"),
    "notebook unknown": ("04_una", "04_uma", "there is no notebook '04_uma'"),
    "table unknown": ("profile: mini", "profile: mini\ntable: nix", "has no table 'nix'"),
    "factor": ("profile: mini", "profile: mini\nfactor: ten", "factor must be a number, got 'ten'"),
    "common a list": ("{max_steps: 3}", "[1]", r"common must be keys and values, got \[1\]"),
    "column a number": ("profile: mini", "profile: mini\ncolumn: 3", "column must be text"),
    "cells a text": ("cells:\n", "cells: x\nx:\n", "unknown key 'x'"),
    "cell a text": ("  - {row: b,", "  - b\n  - {row: b,", "cell 2: keys and values expected"),
    "cell without row": ("{row: a, ", "{", "cell 1: the key 'row' is missing"),
    "cell key": ("{row: a, ", "{row: a, sat: 1, ", "cell 1: unknown key 'sat'"),
    "row a number": ("row: a", "row: 0.1", r"cell 1: row must be text \(quote it\), got 0.1"),
    "row null": ("row: a", "row: ~", "cell 1: row must be text"),
    "an encoder for a method without one": (
        "{method: una, radius: 1e-2, lr: 5e-4}",
        "{method: tfidf, model: data/mini-bert}",
        "cell 'a': tfidf trains nothing and takes no model",
    ),
    "a text for a method without training": (
        "{method: una, radius: 1e-2, lr: 5e-4}",
        "{method: sif, model: data/mini-bert, corpus: wikipedia}",
        "cell 'a': sif trains nothing and takes no corpus",
    ),
    "row with braces": ("row: a", 'row: "{beta}"', "may hold {seed} and no other braces"),
    "twice": ("row: b", "row: a", r"\('a', ''\)\] stands twice"),
    "no method": ("method: una, ", "", "cell 'a': method must be named, got None"),
    "method a number": ("method: una", "method: 1", "cell 'a': method must be named, got 1"),
    "method a list": ("method: una", "method: [una]", "method must be one value"),
    "method unknown": ("method: una", "method: uno", "cell 'a': .*uno"),
    "field misspelt": ("radius:", "radios:", "cell 'a': .*'radios': did you mean 'radius'"),
    "field of a run": ("radius: 1e-2", "seed: 3", "cell 'a': .*'seed'"),
    "value a text": ("max_steps: 3", "max_steps: three", "max_steps must be a whole number"),
    "value a bool": ("max_steps: 3", "max_steps: true", "max_steps must be a whole number"),
    "recipe value": ("lr: 5e-4", "lr: high", "cell 'a': .*lr.*'high'"),
    "recipe range": ("positive_rate: 0.1", "positive_rate: 7", "cell 'b': .*positive_rate"),
    "recipe bool": ("lr: 5e-4", "whiten: yes", "cell 'a': .*whiten.*'yes'"),
    "value a mapping": ("lr: 5e-4", "lr: {a: 1}", "cell 1: set: lr must be one value"),
    "parameter a number": ("lr: 5e-4", "3: 4", "cell 1: set: 3 is no parameter"),
    "smaller": ("{row: a, ", "{row: a, smaller: [1], ", "cell 1: smaller must be keys and values"),
    "no YAML": ("seeds: [", "seeds: [[", "own.yaml: while parsing"),
    "tag": ("profile: mini", "profile: !!python/name:os.system x", "own.yaml: could not determine"),
}


@pytest.mark.parametrize(("old", "new", "message"), WRONG.values(), ids=WRONG)
def test_a_wrong_grid_is_one_sentence(tmp_path, old, new, message) -> None:
    assert old in GOOD
    with pytest.raises(ValueError, match=message) as caught:
        read(tmp_path, GOOD.replace(old, new, 1))
    assert str(tmp_path / "own.yaml") in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "content", ["", "[]", "text", "1", b"\xff\xfe", "\0", "[" * 10_000, "&a [*a]"]
)
def test_what_is_no_grid_at_all_is_one_sentence(tmp_path, content) -> None:
    with pytest.raises(ValueError) as caught:
        read(tmp_path, content)
    assert str(tmp_path / "own.yaml") in str(caught.value) and "\n" not in str(caught.value)
