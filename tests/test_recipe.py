"""Recipes: what a field may hold, what the papers say it holds, and what a run is recorded by."""

import math

import numpy as np
import pandas as pd
import pytest

from lib import paths
from lib.checked import metadata_of
from lib.runs import Job, grids
from lib.training import recipe as module
from lib.training.recipe import FIELDS, Recipe, default_of, recipe, recipes

SETTINGS = pd.read_csv(paths.PAPERS / "settings.csv", dtype=str, keep_default_na=False)
KINDS = {name: Recipe.model_fields[name].annotation for name in FIELDS}
PAPERS = [name for name in recipes() if name.startswith("paper_")]
TABLES = sorted(path.stem for path in paths.GRIDS.glob("*_table_*.yaml"))


def printed(name: str) -> dict[str, object]:
    """What `data/papers/settings.csv` says of a recipe."""
    rows = SETTINGS[SETTINGS["recipe"] == name]
    pairs = zip(rows["field"], rows["value"], strict=True)
    return {f: text == "True" if KINDS[f] is bool else KINDS[f](text) for f, text in pairs}


@pytest.mark.parametrize("name", ["pooling", "temperature", "batch_size", "bucket"])
def test_no_field_takes_a_value_of_another_type(name: str) -> None:
    """A name, a number, a whole number and a choice."""
    kind = KINDS[name]
    wrong: list[object] = [None, [], {}, math.nan, math.inf, b"x", np.array([1.0, 2.0])]
    wrong += [] if kind is str else ["none", "0,1", "0.1", ""]
    wrong += [True] if kind in (int, float) else [1, 0.5, np.int64(1)]
    wrong += [0.5] if kind is int else []
    for value in wrong:
        with pytest.raises(ValueError, match=name) as caught:
            recipe("mini_simcse", **{name: value})
        assert "\n" not in str(caught.value), value


def test_numbers_are_taken_as_the_type_that_the_field_has() -> None:
    changed = recipe("mini_simcse", batch_size=1e2, lr=1, max_length=np.int64(16))
    found = changed.batch_size, changed.lr, changed.max_length
    assert found == (100, 1.0, 16) and [type(v) for v in found] == [int, float, int]


@pytest.mark.parametrize(
    ("name", "wrong"), [("temperature", 0.0), ("dropout", 1.0), ("radius", 1.5), ("batch_size", 1)]
)
def test_a_value_outside_its_range_is_one_sentence(name: str, wrong: float) -> None:
    with pytest.raises(ValueError, match=name) as caught:
        recipe("mini_una", **{name: wrong})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["positive", "negative", "pooling"])
def test_an_unknown_name_is_told_what_there_is_and_the_nearest(name: str) -> None:
    known = next(value for value in metadata_of(Recipe, name)["among"] if value)
    with pytest.raises(ValueError, match=f"{name} must be one of.*did you mean '{known}'"):
        recipe("mini_simcse", **{name: f"{known}x"})


def test_an_unknown_field_and_an_unknown_recipe_are_told_the_nearest() -> None:
    with pytest.raises(ValueError, match="no field 'temprature': did you mean 'temperature'"):
        recipe("mini_simcse", temprature=1.0)
    with pytest.raises(ValueError, match="unknown recipe 'mini_simcs': did you mean 'mini_simcse'"):
        recipe("mini_simcs")


@pytest.mark.parametrize("head", ["tanh:3:3", "simclr:0:4", "simclr:a:4"])
def test_a_head_that_there_is_not(head: str) -> None:
    with pytest.raises(ValueError, match="head"):
        recipe("mini_simcse", head=head)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"positive": "crop"}, "changes nothing"),
        ({"view1": "shuffle", "rate1": 0.2}, "has no effect"),
        ({"positive": "identical", "view1": "shuffle"}, "encodes once"),
        ({"loss": "simsiam"}, "need each other"),
        ({"negative": "una", "negative_mode": "margin", "loss": "nt_xent"}, "info_nce"),
        ({"negative": "una", "negative_mode": "margin", "queue": 1.0}, "queue=0"),
        ({"head": "bn_mlp", "chunk_size": 4}, "batch norm"),
        ({"dropout2": 0.1, "chunk_size": 4}, "dropout2"),
        ({"chunk_size": 4, "view1": "shuffle"}, "chunk_size"),
        ({"positive": "sda", "negative": "sda", "rule": "negation"}, "hard negatives"),
        ({"loss": "scd", "head": "scd", "noise": 1.0}, "has no negatives"),
        ({"loss": "scd", "head": "scd", "negative": "una"}, "has no negatives"),
    ],
)
def test_fields_that_contradict_each_other(changes: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        recipe("mini_simcse", **changes)


def test_a_rate_goes_with_its_view_unless_it_is_given() -> None:
    consert = recipe("mini_consert")
    assert consert.rate1 > 0 and consert.changed(view1="shuffle").rate1 == 0
    assert consert.changed(view1="span_cutoff", rate1=0.3).views[0] == ("span_cutoff", 0.3)


# --- what the papers and their authors' code say


@pytest.mark.parametrize("name", PAPERS)
def test_a_papers_recipe_is_what_its_paper_and_code_say(name: str) -> None:
    values = printed(name)
    assert {field: recipe(name).values()[field] for field in values} == values


@pytest.mark.parametrize("name", PAPERS)
def test_nothing_that_a_papers_recipe_uses_is_without_a_source(name: str) -> None:
    used = recipe(name)
    changed = {n for n, value in used.values().items() if value != default_of(n)}
    assert set(printed(name)) | {"include_self"} == {*used.in_use(), *changed, "include_self"}


def test_the_settings_name_a_place_for_every_value_and_each_value_once() -> None:
    assert set(SETTINGS["recipe"]) == set(PAPERS)
    assert not SETTINGS.duplicated(["recipe", "field"]).any()
    assert SETTINGS["source"].str.strip().ne("").all()


@pytest.mark.parametrize("name", TABLES)
def test_a_papers_table_trains_its_recipe_but_for_what_its_cells_say(name: str) -> None:
    """A default that no paper states reaches a table only where it is listed here."""
    own = {
        "synonyms": "wordnet",
        "representation_strength": 0.1,
        "dn_nouns": False,
        "include_self": False,
        "head_init": "torch",
        "rate1": 0.0,
        "rate2": 0.0,
    }
    grid = grids.read(name)
    for cell in grid.cells:
        job = grids.job_of(grid, cell, 42, {})
        assert isinstance(job, Job)
        known = {**own, **printed(job.recipe.name), **cell.set, "backbone": job.recipe.backbone}
        odd = {k: v for k, v in job.recipe.in_use().items() if v != known.get(k)}
        assert odd == {}, cell.row


# --- the file of recipes


def test_the_later_base_wins_and_the_recipe_over_all(monkeypatch) -> None:
    bases = {"one": {"lr": 0.1, "epochs": 2, "batch_size": 8}, "two": {"lr": 0.2, "epochs": 3}}
    row = {"source": "s", "base": ["one", "two"], "epochs": 4}
    content = {"bases": bases, "recipes": {"a": row}}
    monkeypatch.setattr(module.yaml, "safe_load", lambda text: content)
    found = recipes.__wrapped__()["a"]
    assert (found.lr, found.epochs, found.batch_size) == (0.2, 4, 8)
