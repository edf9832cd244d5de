"""Recipes and profiles: what a field may hold, what the papers say it holds, and what a run is
recorded by."""

import math
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from lib import experiment, grids, paths, recipes, settings
from lib.augment import AUGMENTATIONS, embeddings, representations, sda, una
from lib.data.corpora import HEAD
from lib.negatives import NEGATIVES
from lib.objective import LOSSES
from lib.profiles import PROFILES, profile
from lib.recipes import FIELDS, PARTS, RECIPES, Recipe, recipe, value_of

TYPES = {name: place.declared.type for name, place in FIELDS.items()}
CHOICES = {
    name: place.declared.metadata["choices"]
    for name, place in FIELDS.items()
    if "choices" in place.declared.metadata
}
NUMBERS = [name for name, kind in TYPES.items() if kind in (int, float)]
SETTINGS = pd.read_csv(paths.PAPERS / "settings.csv", dtype=str, keep_default_na=False)
PAPER_RECIPES = [name for name in RECIPES if name.startswith("paper_")]
PAPER_GRIDS = sorted(p.stem for p in paths.GRIDS.glob("*_table_*.yaml"))
LIGHT_GRIDS = sorted(p.stem for p in paths.GRIDS.glob("*_light.yaml"))


def printed(name: str) -> dict[str, object]:
    """What `data/papers/settings.csv` says of a recipe."""
    rows = SETTINGS[SETTINGS["recipe"] == name]
    return {f: value_of(f, v) for f, v in zip(rows["field"], rows["value"], strict=True)}


# --- one check of every field ---------------------------------------------------------------------


@pytest.mark.parametrize("name", TYPES)
def test_no_field_takes_a_value_of_another_type(name):
    wrong: list[object] = [
        None,
        [],
        ["0.1"],
        {},
        math.nan,
        math.inf,
        object(),
        b"0.1",
        np.array([1.0, 2.0]),
    ]
    if TYPES[name] is not str:
        wrong += ["none", "nein", "0,1", "abc", ""]
    if TYPES[name] is bool:
        wrong += [1, 0, 0.5, np.int64(1)]
    if name in NUMBERS:
        wrong += [True, np.False_, 1 + 2j]
    if TYPES[name] is int:
        wrong += [3.5, np.float32(3.5)]
    for value in wrong:
        with pytest.raises(ValueError, match=rf"^{name} must be .*got "):
            recipe("mini_simcse").changed(**{name: value})


def test_numbers_are_taken_as_the_type_that_the_field_has():
    recipe = recipes.recipe(
        "mini_simcse",
        batch_size=1e2,
        lr=1,
        dropout=np.float32(0.5),
        epochs=np.int64(3),
        whiten=np.True_,
    )
    names = ("batch_size", "lr", "dropout", "epochs", "whiten")
    taken = tuple(recipe.values()[name] for name in names)
    assert taken == (100, 1.0, 0.5, 3, True)
    assert [type(value) for value in taken] == [int, float, float, int, bool]
    assert recipes.recipe("mini_simcse", backbone=paths.MINI_BERT).encoder.backbone == str(
        paths.MINI_BERT
    )


@pytest.mark.parametrize(
    ("name", "wrong", "right"),
    [
        ("max_length", [-1, 0, 1, 2], [3]),
        ("dev_max_length", [-1, 1, 2], [0, 3]),
        ("test_max_length", [-1, 1, 2], [0, 3]),
        ("loss_weight", [-1, 0], [0.15]),
        ("grad_clip", [-1, 1e300], [0, 1]),
        ("patience", [-1], [0, 10]),
        ("batch_size", [-1, 0, 1, 10**12], [2, 512]),
        ("every", [-1, 0], [1]),
        ("warmup", [-1, 1.01, 1e300], [0, 0.1, 1]),
        ("weight_decay", [-1], [0, 0.01]),
        ("delta", [-1], [0, 0.5]),
        ("temperature", [-0.1, 0, 1e300], [0.01]),
        ("adam_eps", [-1, 0, 2], [1e-8]),
        ("lr", [-1e-9, 1e300], [0, 5e-7]),
        ("dropout", [-0.1, 1, 3.0], [0, 0.99]),
        ("augmented_share", [-0.1, 1.1], [0, 1]),
        ("representation_strength", [-1], [0.1]),
        ("lora_rank", [-1, 10**6], [0, 16]),
        ("eval_every", [-1, 0], [1]),
        ("epochs", [-1, 0], [1]),
        ("beta", [-0.1], [0.5]),
        ("radius", [-1, 0, 1.5], [0.0089, 1, 4000]),
        ("chunk_size", [-1], [0, 8]),
    ],
)
def test_ranges(name, wrong, right):
    for value in wrong:
        with pytest.raises(
            ValueError, match=rf"^{name} must be .*got {value!r}".replace("+", r"\+")
        ):
            recipe("mini_simcse").changed(**{name: value})
    for value in right:
        assert recipe("mini_simcse").changed(**{name: value}).values()[name] == value


@pytest.mark.parametrize("name", ["rate1", "rate2", "positive_rate"])
def test_rates_are_shares(name):
    part, value = {
        "rate1": ("view1", "dropout"),
        "rate2": ("view2", "dropout"),
        "positive_rate": ("positive", "crop"),
    }[name]
    for wrong in (-0.1, 1.1, 5):
        with pytest.raises(ValueError, match=f"{name} must be a number, in "):
            recipe("mini_simcse").changed(**{part: value, name: wrong})
    assert recipe("mini_simcse").changed(**{part: value, name: 1}).values()[name] == 1.0


def test_every_number_has_a_range_and_its_default_lies_in_it():
    ranged = [name for name, place in FIELDS.items() if "range" in place.declared.metadata]
    assert set(ranged) == set(NUMBERS)
    assert Recipe("a", "b").name == "a"


def test_the_names_a_field_may_hold_are_those_there_are():
    known = CHOICES
    assert set(known["positive"]) == {"dropout", "identical", "file", "sda", *AUGMENTATIONS}
    assert known["negative"] == ("none", *NEGATIVES)
    assert known["loss"] == tuple(LOSSES)
    assert known["pooling"] == known["eval_pooling"] == settings.POOLINGS
    assert known["also_pooling"] == known["transfer_pooling"] == ("", *settings.POOLINGS)
    assert known["view1"] == known["view2"] == embeddings.VIEWS
    assert known["representation"] == ("none", *representations.REPRESENTATIONS)
    assert (known["negative_select"], known["negative_replace"]) == (una.SELECT, una.REPLACE)
    assert set(known["rule"]) == set(sda.RULES)


@pytest.mark.parametrize("name", [*CHOICES, "head"])
def test_an_unknown_name_is_told_what_there_is(name):
    with pytest.raises(ValueError, match=f"^{name} must be .*got 'tanhh'"):
        recipe("mini_simcse").changed(**{name: "tanhh"})


@pytest.mark.parametrize(
    ("changes", "close"),
    [
        ({"positive": "crpo"}, "crop"),
        ({"schedule": "liner"}, "linear"),
        ({"head": "tanhh"}, "tanh"),
        ({"view1": "shufle"}, "shuffle"),
        ({"lossweight": 1}, "loss_weight"),
    ],
)
def test_the_closest_name_is_proposed(changes, close):
    with pytest.raises(ValueError, match=f"did you mean '{close}'"):
        recipe("mini_simcse").changed(**changes)


@pytest.mark.parametrize(
    "head", ["simclr:600", "simclr:600:512:4", "tanh:3:3", "simclr:a:b", "simsiam:-1:4", "simclr:"]
)
def test_sizes_of_a_head_are_two_numbers(head):
    with pytest.raises(ValueError, match="sizes are written as in simclr:600:512"):
        recipe("mini_simcse", head=head)


@pytest.mark.parametrize("head", ["simclr:0:512", "simclr:600:65537", "simclr:99999999999:1"])
def test_sizes_of_a_head_have_a_range(head):
    with pytest.raises(ValueError, match="whole numbers in"):
        recipe("mini_simcse", head=head)


@pytest.mark.parametrize("name", ["backbone", "parser", "synonyms"])
def test_a_name_is_not_empty(name):
    with pytest.raises(ValueError, match=f"{name} must not be empty"):
        recipe("mini_simcse").changed(**{name: " "})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rate1": 0.3}, "rate1=0.3 means nothing with view1='none'"),
        ({"view2": "shuffle", "rate2": 0.3}, "rate2=0.3 means nothing with view2='shuffle'"),
        ({"positive_rate": 0.1}, "positive_rate=0.1 means nothing with positive='dropout'"),
        ({"positive": "crop"}, "positive='crop' at positive_rate=0 changes nothing"),
        ({"view1": "token_cutoff"}, "view1='token_cutoff' at rate1=0 changes nothing"),
        ({"head": "simsiam"}, "need each other"),
        ({"loss": "simsiam"}, "need each other"),
        ({"head": "simsiam", "loss": "simsiam", "negative": "una"}, "has no negatives"),
        ({"positive": "identical", "view2": "shuffle"}, "encodes once"),
        (
            {"negative": "sda", "negative_mode": "margin", "loss": "nt_xent"},
            "form of the loss 'info_nce'",
        ),
        ({"positive": "sda", "rule": "negation", "negative": "sda"}, "hard negatives"),
        ({"chunk_size": 8, "view1": "shuffle"}, "without view1"),
        ({"chunk_size": 8, "head": "bn_mlp"}, "batch norm"),
        ({"chunk_size": 8, "head": "simclr:8:8"}, "batch norm"),
    ],
)
def test_fields_that_contradict_each_other(changes, message):
    with pytest.raises(ValueError, match=message):
        recipe("mini_simcse", **changes)


def test_a_rate_goes_with_its_view_unless_it_is_given():
    base = recipe("paper_consert")
    assert tuple(base.changed(view1=v).views.rate1 for v in ("shuffle", "dropout")) == (0.0, 0.2)
    with pytest.raises(ValueError, match="means nothing"):
        base.changed(view1="shuffle", rate1=0.2)


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("lr", "3e-5", 3e-5),
        ("lr", "1", 1.0),
        ("batch_size", "010", 10),
        ("batch_size", "1e2", 100),
        ("whiten", "true", True),
        ("whiten", "False", False),
        ("backbone", "010", "010"),
        ("positive_file", "Question: what?.txt", "Question: what?.txt"),
        ("also_pooling", "", ""),
    ],
)
def test_text_is_read_by_the_type_of_its_field(name, text, value):
    found = value_of(name, text)
    assert found == value and type(found) is type(value)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("lr", "0,1"),
        ("lr", "1:30"),
        ("lr", "nan"),
        ("lr", "1_0"),
        ("epochs", "1.5"),
        ("epochs", "yes"),
        ("whiten", "yes"),
        ("whiten", "1"),
        ("loss", "info"),
        ("bata", "1"),
    ],
)
def test_text_that_is_no_value_of_its_field(name, text):
    with pytest.raises(ValueError, match=name):
        value_of(name, text)


def test_a_wrong_value_stops_a_run_before_anything_is_loaded(tmp_path):
    with pytest.raises(ValueError, match="eval_every must be a whole number"):
        experiment.run("02_simcse", "simcse", model=str(tmp_path / "none"), eval_every=0)


# --- what the papers and their authors' code say --------------------------------------------------


@pytest.mark.parametrize("name", PAPER_RECIPES)
def test_a_papers_recipe_is_what_its_paper_and_code_say(name):
    values = printed(name)
    assert {field: recipe(name).values()[field] for field in values} == values


@pytest.mark.parametrize("name", PAPER_RECIPES)
def test_nothing_that_a_papers_recipe_uses_is_without_a_source(name):
    recipe = recipes.recipe(name)
    changed = {n for n, value in recipe.values().items() if value != FIELDS[n].default}
    assert set(printed(name)) == {*recipe.in_use(), *changed}


def test_the_settings_name_a_place_for_every_value_and_each_value_once():
    assert list(SETTINGS.columns) == ["recipe", "field", "value", "source"]
    assert set(SETTINGS["recipe"]) == set(PAPER_RECIPES)
    assert not SETTINGS.duplicated(["recipe", "field"]).any()
    assert (
        SETTINGS["source"]
        .str.contains(r"§|line|Table|Fig\.|Eq\.|lr_scheduler_type|early stopping|: ")
        .all()
    )


@pytest.mark.parametrize("name", PAPER_GRIDS)
def test_a_papers_table_trains_its_recipe_but_for_what_its_cells_say(name):
    """A default that no paper states reaches a table only where it is listed here."""
    own = {
        "synonyms": "wordnet",
        "representation_strength": 0.1,
        "dn_nouns": False,
        "head_init": "torch",
    }
    for cell in grids.read(name).cells:
        _, recipe, _ = experiment.resolve(grids.read(name).profile, **cell.set)
        known = {**own, **printed(recipe.name), **cell.set, "backbone": recipe.encoder.backbone}
        off = {"rate1": 0.0, "rate2": 0.0}
        assert {k: v for k, v in recipe.in_use().items() if v != {**off, **known}.get(k)} == {}, (
            cell.row
        )


def test_tables_whose_rows_were_trained_longer_or_weighted_otherwise():
    of = {}
    for name in ("consert_table_1", "consert_table_6"):
        for cell in grids.read(name).cells:
            of[cell.row] = experiment.resolve("full", **cell.set)[1]
    epochs = {
        row: recipe.batches.epochs for row, recipe in of.items() if recipe.positive.kind == "file"
    }
    assert epochs == {
        "sentence_aug": 30,
        "projection_head": 100,
        "ours_none": 30,
        "ours_hidden_600": 100,
    }
    assert {row for row, recipe in of.items() if recipe.objective.weight != 0.15} == {
        "consert_simsiam"
    }
    assert of["consert_simsiam"].objective.weight == 2.0
    assert all(recipe.head.init == "torch" and recipe.head.per_view for recipe in of.values())


# --- the course's own sizes -----------------------------------------------------------------------


def test_profiles_are_as_large_as_the_papers_and_the_readme_say():
    sizes = {
        p.name: (p.recipes, p.corpus, p.n_sentences, p.max_steps, p.eval_every, p.dev, p.test)
        for p in PROFILES.values()
    }
    assert sizes == {
        "mini": ("mini", "mini", None, 15, 5, "mini", "mini"),
        "light": ("mini", "wikipedia", 50_000, 60, 20, "stsb", "sts7"),
        "small": ("small", "wiki1m_head", None, 300, 50, "stsb", "sts7"),
        "full": ("paper", "wiki1m", None, None, None, "stsb", "sts7"),
        "chinese": ("paper", "simclue", None, None, None, "cnsd", "cnsd"),
    }
    page = (paths.ROOT / "book" / "use.md").read_text(encoding="utf-8")
    assert f"{profile('light').n_sentences:,} Wikipedia sentences" in page
    assert f"the first {HEAD:,} sentences" in page
    mini, midi = str(paths.MINI_BERT), str(paths.MIDI_BERT)
    assert [p.model for p in PROFILES.values()] == [mini, mini, midi, None, None]


@pytest.mark.parametrize("name", LIGHT_GRIDS)
def test_the_committed_results_are_runs_of_the_recipes_at_the_size_of_the_profile(name):
    grid = grids.read(name)
    found = grids.collect(
        grid, pd.concat([pd.read_csv(path) for path in sorted(paths.RESULTS.glob("*.csv"))])
    )
    trained = found[found["max_steps"] > 0]
    usual = trained[trained["corpus"] == profile("light").corpus]
    assert set(found["row"]) == {cell.row for cell in grid.cells}
    assert set(usual["n_sentences"]) == {profile("light").n_sentences}
    assert set(trained["seed"]) == set(grid.seeds)


def test_mini_recipes_are_made_for_speed_and_keep_their_own_ways():
    own = {
        "bucket": True,
        "drop_last": True,
        "bias_correction": True,
        "warmup_from_zero": False,
        "head_init": "bert",
    }
    own |= {
        "head_per_view": False,
        "eval_restarts": False,
        "eval_at_epoch_ends": False,
        "dn_nouns": False,
    }
    own |= {
        "dev_max_length": 0,
        "test_max_length": 0,
        "max_length": 64,
        "grad_clip": 1.0,
        "patience": 0,
    }
    for mini in (r for r in RECIPES.values() if r.name.startswith("mini_")):
        is_una = mini.name == "mini_simcse_una"
        una = {"head_init": "torch", "grad_clip": 0.0} if is_una else {}
        assert {name: mini.values()[name] for name in own} == own | una, mini.name
    assert not any(recipe(name).batches.bucket for name in PAPER_RECIPES)


# --- what a run is recorded by --------------------------------------------------------------------


def test_what_moves_numbers_is_recorded():
    base = recipe("paper_simcse_bert")
    assert "chunk_size" not in base.parameters()
    assert base.changed(chunk_size=8).parameters() == base.parameters() | {"chunk_size": 8}
    for field in ("bucket", "bias_correction", "eval_restarts"):
        assert base.changed(**{field: not base.values()[field]}).parameters() != base.parameters()
    for field in ("dev_max_length", "test_max_length"):
        assert base.changed(**{field: 32}).parameters()[field] == 32
    assert base.changed(head_init="torch").parameters()["head_init"] == "torch"
    assert "head_init" not in base.changed(head="none", head_init="torch").parameters()


def test_show_prints_every_field_in_use():
    command = [sys.executable, "-m", "lib", "recipes", "show", "paper_una_bert"]
    lines = subprocess.run(
        command, cwd=paths.ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()[1:]
    shown = dict(line.split(maxsplit=1) for line in lines if not line.endswith(":"))
    assert shown == {name: str(value) for name, value in recipe("paper_una_bert").in_use().items()}
    assert (shown["bucket"], shown["grad_clip"], shown["dev_max_length"]) == ("False", "0.0", "32")


def test_no_two_parts_share_a_name_of_papermill() -> None:
    assert len(FIELDS) == sum(len(part.declared()) for part in PARTS.values())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("base: [b]", "recipe 'x': there is no base 'b'"),
        ("optimizer: {lr: 1}", "recipe 'x': there is no 'optimizer' in 'a recipe'"),
        ("optimiser: {rate: 1}", "recipe 'x': there is no 'rate' in 'optimiser'"),
        ("optimiser: {lr: fast}", "lr must be a number"),
        ("head: {kind: no}", "head must be text"),
    ],
)
def test_what_is_wrong_in_the_file_is_named(tmp_path, text, message) -> None:
    (tmp_path / "r.yaml").write_text(f"bases: {{}}\nrecipes:\n  x:\n    source: s\n    {text}\n")
    with pytest.raises(ValueError, match=message):
        recipes._read(tmp_path / "r.yaml")


def test_the_later_base_wins_and_the_recipe_over_all(tmp_path) -> None:
    bases = "a: {optimiser: {lr: 1.0, warmup: 0.1}}\n  b: {base: [a], optimiser: {lr: 2.0}}"
    rows = "x: {source: s, base: [a, b]}\n  y: {source: s, base: [b, a], optimiser: {warmup: 0.5}}"
    (tmp_path / "r.yaml").write_text(f"bases:\n  {bases}\nrecipes:\n  {rows}\n")
    found = recipes._read(tmp_path / "r.yaml")
    assert (
        found["x"].optimiser.lr,
        found["x"].optimiser.warmup,
        found["y"].optimiser.lr,
        found["y"].optimiser.warmup,
    ) == (2.0, 0.1, 1.0, 0.5)
