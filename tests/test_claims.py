"""What the papers claim and what our rows say of it."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from lib import claims, grids, paths, results

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
    for size in claims.SIZES:
        rows = {cell.row for cell in grids.read(f"{claim.rows}_{size}").cells}
        assert {claim.row_ours, claim.baseline_ours} <= rows, size


@pytest.mark.parametrize(
    ("table", "row", "difference"),
    [
        ("una_table_1", "bert_una", 76.14 - 75.32),
        ("una_table_c3", "eda_synonym_replacement", 75.32 - 67.51),
        ("una_table_c4", "alpha_5:UNA", 82.35 - 79.29),
        ("una_table_d7", "mean:Paraphrasing & UNA", 76.98 - 75.16),
        ("sda_table_8", "mask_15", 82.45 - 62.21),
        ("consert_ext_table_6", "consert_simsiam", 72.25 - 71.48),
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
        gap = claim.sign * (wide[claim.row_ours] - wide[claim.baseline_ours]).dropna()
        together = (tested["paper"] == line.paper).sum()
        half = stats.t.isf(0.025 / together, len(gap) - 1) * gap.std() / math.sqrt(len(gap))
        assert (line.ours, line.half_width) == pytest.approx((gap.mean(), half))
        low, high = gap.mean() - half, gap.mean() + half
        expected = "holds" if low > 0 else "fails" if high < 0 else "undecided"
        if expected == "undecided" and high < claims.printed(claim):
            expected = "smaller"
        assert line.verdict == expected


def test_small_answers_where_it_has_two_seeds_else_light():
    claim = next(c for c in CLAIMS if c.rows == "una")
    names = [claim.row_ours, claim.baseline_ours]
    one = pd.DataFrame({"row": names, "seed": [0, 0]})
    two = pd.DataFrame({"row": np.repeat(names, 2), "seed": [0, 1, 0, 1]})
    assert claims.grid_of(claim, {"una_small": one, "una_light": two}) == "una_light"
    assert claims.grid_of(claim, {"una_small": two, "una_light": two}) == "una_small"
    assert claims.grid_of(claim, {"una_small": one, "una_light": one}) is None
    assert claims.grid_of(replace(claim, rows=""), {}) is None


NUMBERS = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen"
NUMBERS += " fifteen sixteen seventeen eighteen nineteen twenty"


def test_the_front_page_counts_the_verdicts():
    count = claims.judged(CLAIMS)["verdict"].value_counts()
    word = {name: NUMBERS.split()[n] for name, n in count.items()}
    readme = " ".join((paths.ROOT / "README.md").read_text(encoding="utf-8").split())
    assert f"{count.sum() - count['not tested']} differences on which the conclusions" in readme
    assert (
        f"{word['holds'].capitalize()} hold, {word['fails']} fails, {word['smaller']} are smaller"
        f" than printed, {word['undecided']} are undecided"
    ) in readme
    assert len(readme.split()) <= 700
