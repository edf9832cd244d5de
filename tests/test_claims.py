"""What the papers claim and what our rows say of it."""

import math
from functools import cache

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from lib import paths, results
from lib.results import claims
from lib.results.statistics import power_of
from lib.runs import Job, grids
from lib.runs.job import portable_parameters
from tools.pretrain_ablation import TECHNIQUES
from tools.table import PRETRAINING, appendix, front_page, pretraining

CLAIMS = claims.read()
each = pytest.mark.parametrize("claim", CLAIMS, ids=lambda c: f"{c.table}-{c.row}-{c.baseline}")


@each
def test_a_claim_has_two_printed_cells_and_a_grid_in_the_papers_setting(claim):
    assert claims.printed(claim) > 0, "a claim 'greater', or one that harms with sign -1"
    assert (paths.GRIDS / f"{claim.full}.yaml").is_file()
    assert claim.where and claim.claim and claim.sign in (-1, 1)


@each
def test_a_claim_has_rows_of_ours_or_says_what_a_test_would_need(claim):
    assert bool(claim.rows) != bool(claim.untested)
    if not claim.rows:
        return
    rows = [{c.row for c in grids.read(claim.rows.format(size)).cells} for size in claims.SIZES]
    assert any(
        set(claims.pair(claim, z)) <= names for z, names in zip(claims.SIZES, rows, strict=True)
    )


QUOTED = {"sda_table_4": {"head", "lr", "batch_size"}}  # SimCSE's figure there is its own paper's


def run_of(grid, cell):
    """The parameters of a cell's runs, with their text; the schedule of dev scores is not one."""
    job = Job.of("", profile_name=grid.profile, **cell.set)
    values = portable_parameters(job.recipe) | {"corpus": job.profile.corpus, "eval_every": None}
    return {name: value for name, value in values.items() if value is not None}


@cache
def every_grid():
    return [grids.read(path) for path in sorted(paths.GRIDS.glob("*.yaml"))]


def varied(above, below):
    """The parameters in which two runs differ; how a head begins comes with the head."""
    names = above.keys() | below.keys()
    return {n for n in names if above.get(n) != below.get(n)} - {"head_init", "head_per_view"}


def is_cell(cell, name):
    """Whether a claim names the cell: by its row, or by row and column."""
    row, _, column = name.partition(":")
    return cell.row == row and (not column or cell.column == column)


@pytest.mark.parametrize(
    "claim", [c for c in CLAIMS if c.rows], ids=lambda c: f"{c.table}-{c.row}-{c.baseline}"
)
def test_our_rows_differ_in_what_the_papers_differ_in_and_stand_on_the_same(claim):
    """Family of the encoder, kind of text, and all that the two rows do not share."""
    made = [grid for grid in every_grid() if grid.table == claim.table]
    theirs = {
        row: [run_of(grid, cell) for grid in made for cell in grid.cells if is_cell(cell, row)]
        for row in (claim.row, claim.baseline)
    }
    assert not any("roberta" in run["backbone"] for found in theirs.values() for run in found)
    differences = [varied(a, b) for a in theirs[claim.row] for b in theirs[claim.baseline]]
    for size in claims.SIZES:
        grid = grids.read(claim.rows.format(size))
        ours = {cell.row: run_of(grid, cell) for cell in grid.cells}
        row, baseline = claims.pair(claim, size)
        if not {row, baseline} <= ours.keys():
            continue
        own = varied(ours[row], ours[baseline])
        assert own in [found - QUOTED.get(claim.table, set()) for found in differences]
        text = {run["corpus"] == "sts_unlabelled" for found in theirs.values() for run in found}
        assert {ours[name]["corpus"] == "sts_unlabelled" for name in (row, baseline)} == text
        for name in {"view1", "rate1", "view2", "rate2", "positive", "negative"} - own:
            assert ours[baseline].get(name) in [r.get(name) for r in theirs[claim.baseline]], name


def test_the_two_rows_of_a_claim_were_trained_in_one_precision():
    """Scoring may differ: bf16 moves a mean of seven tasks by less than a hundredth."""
    found = {c.rows.format(z): c for c in CLAIMS if c.rows for z in claims.SIZES}
    found = {name: results.rows(name) for name in found}
    for claim in CLAIMS:
        if grid := claims.grid_of(claim, found):
            pair = found[grid][found[grid]["row"].isin(claims.pair(claim, grid.split("_")[1]))]
            assert pair["precision"].nunique() == 1, claim.claim


@pytest.mark.parametrize("table", ["una_table_c3", "sda_table_8"])
def test_of_these_tables_all_rows_that_we_have_run_are_in_the_list(table):
    listed = {c.row_ours for c in CLAIMS if c.table == table and c.rows}
    plain = {"una_table_c3": ("EDA", "MODALS", "PCA"), "sda_table_8": ("cropping", "word", "mask")}
    names = {"una_table_c3": "una_light", "sda_table_8": "sda_light"}
    made = {row for row in results.rows(names[table])["row"] if row.startswith(plain[table])}
    assert made <= listed


@pytest.mark.parametrize(
    ("table", "row", "difference"),
    [
        ("una_table_1", "bert_una", 76.14 - 75.32),
        ("una_table_c3", "eda_synonym_replacement", 75.32 - 67.51),
        ("una_table_c4", "alpha_5:UNA", 82.35 - 79.29),
        ("una_table_d7", "mean:Paraphrasing & UNA", 76.98 - 75.16),
        ("sda_table_8", "mask_15", 82.45 - 62.21),
        ("una_table_c3", "pca_jittering", 75.88 - 75.32),
        ("consert_ext_table_6", "consert_simsiam", 72.25 - 71.48),
        ("consert_ext_table_1", "projection_head", 76.88 - 75.44),
    ],
)
def test_the_papers_differences_are_those_of_their_tables(table, row, difference):
    (claim,) = [c for c in CLAIMS if (c.table, c.row) == (table, row)]
    assert claims.printed(claim) == pytest.approx(difference)


def test_the_mean_of_the_slides_tasks():
    (claim,) = [c for c in CLAIMS if c.row == "bert_base:avg"]
    assert claims.printed(claim) == pytest.approx(75.11 - 64.23, abs=0.01)


def test_verdicts_are_those_of_the_committed_rows():
    table = claims.judged(CLAIMS)
    tested = table[table["seeds"] > 0]
    assert len(tested) >= 20
    for line, claim in zip(table.itertuples(), CLAIMS, strict=True):
        if not line.seeds:
            assert line.verdict == "not tested" and math.isnan(line.ours)
            continue
        rows = results.rows(line.grid)
        wide = rows.pivot_table(index="seed", columns="row", values=f"{claim.metric}_best")
        row, baseline = claims.pair(claim, line.grid.rpartition("_")[2])
        gap = claim.sign * (wide[row] - wide[baseline]).dropna()
        together = (tested["paper"] == line.paper).sum()
        half = stats.t.isf(0.025 / together, len(gap) - 1) * gap.std() / math.sqrt(len(gap))
        assert (line.ours, line.half_width) == pytest.approx((gap.mean(), half))
        power = power_of(line.could_be_seen, len(gap), gap.std(), comparisons=together)
        assert power == pytest.approx(0.8)
        low, high = gap.mean() - half, gap.mean() + half
        below = high < claims.printed(claim)
        expected = "not found at the printed size" if below else "undecided"
        if low > 0:
            expected = "smaller" if below else "confirmed"
        elif high < 0:
            expected = "reversed"
        assert line.verdict == expected


def test_intervals_of_one_paper_of_one_claim_and_of_the_last_checkpoint():
    tested = claims.judged(CLAIMS)[lambda t: t["seeds"] > 0]
    alone = claims.judged(CLAIMS, comparisons=1).loc[tested.index]
    many = claims.judged(CLAIMS, comparisons=100).loc[tested.index]
    assert (many["half_width"] > tested["half_width"]).all()
    widths = tested["half_width"] / alone["half_width"]
    assert (widths > 1.5).groupby(tested["paper"]).all().to_dict() == {
        paper: count > 1 for paper, count in tested["paper"].value_counts().items()
    }
    last = claims.judged(CLAIMS, "last").loc[tested.index]
    assert (last["ours"] != tested["ours"]).any() and (last["printed"] == tested["printed"]).all()


def test_small_answers_where_it_has_five_seeds_else_light():
    claim = next(c for c in CLAIMS if c.rows == "una_{}")
    assert claims.pair(claim, "small")[1] == "SimCSE, UNA's loss" != claims.pair(claim, "light")[1]
    names = [*claims.pair(claim, "small"), *claims.pair(claim, "light")]
    one, two, four, five = (
        pd.DataFrame({"row": np.repeat(names, n), "seed": [*range(n)] * len(names)}).assign(
            **{f"{claim.metric}_last": 1.0}
        )
        for n in (1, 2, 4, 5)
    )
    plain = five[five["row"] != "SimCSE, UNA's loss"]
    assert claims.grid_of(claim, {"una_small": four, "una_light": two}) == "una_light"
    assert claims.grid_of(claim, {"una_small": five, "una_light": two}) == "una_small"
    assert claims.grid_of(claim, {"una_small": plain, "una_light": two}) == "una_light"
    apart = five.assign(seed=five["seed"] + (five["row"] == claim.row_ours))
    assert claims.grid_of(claim, {"una_small": apart, "una_light": two}) == "una_light"
    assert claims.grid_of(claim, {"una_small": four, "una_light": one}) is None
    assert claims.grid_of(claim._replace(rows=""), {}) is None


def test_the_page_of_verdicts_is_what_make_table_writes():
    page = (paths.RESULTS / "verdicts.md").read_text(encoding="utf-8")
    for marker, content in appendix().items():
        assert f"<!-- {marker}: begin -->\n{content}\n<!-- {marker}: end -->" in page
    assert all(f" | {claim.claim} | " in page for claim in CLAIMS) and " nan " not in page


def test_every_technique_of_the_pretraining_has_a_name_and_a_line_in_the_data_page():
    techniques = set(pd.read_csv(paths.RESULTS / "pretraining.csv")["technique"])
    assert techniques == set(PRETRAINING) <= set(TECHNIQUES)
    assert pretraining() in (paths.DATA / "README.md").read_text(encoding="utf-8")


def test_the_front_page_is_what_make_table_writes():
    page = (paths.ROOT / "README.md").read_text(encoding="utf-8")
    for marker, content in front_page().items():
        assert f"<!-- {marker}: begin -->\n{content}\n<!-- {marker}: end -->" in page
    judged = claims.judged(CLAIMS)
    reversed_by_us = set(judged[judged["verdict"] == "reversed"]["paper"])
    assert reversed_by_us == {"consert_ext"}, "the page says so"
    told = [line.split(" | ")[-1] for line in front_page()["three claims"].splitlines()[2:5]]
    assert told == ["not found at the printed size |", "confirmed |", "confirmed |"]
