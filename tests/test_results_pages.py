"""The pages of `results/` say what there is and what is left."""

import re
from dataclasses import replace

import pandas as pd
import pytest

from lib import grids, paths, results
from tools import results_pages


@pytest.fixture
def page_of_one_run(tmp_path):
    rows = [{"profile": "small", "recipe": "small_tfidf", "seed": 0, "run_id": "a"}]
    rows[0] |= {"notebook": "02_simcse", "corpus": "wiki1m_head", "steps": 0}
    rows[0] |= {"stsb_dev_spearman_last": 1.5, "sts7_test_avg_last": 2.5}
    rows[0] |= {"machine": "a processor", "train_seconds": 1800.0, "dev_seconds": 1800.0}
    pd.DataFrame(rows).to_csv(tmp_path / "02_simcse.csv", index=False)
    results_pages.write_pages(tmp_path)
    return [(tmp_path / name).read_text() for name in ("README.md", "rows.md")]


def test_the_page_counts_what_is_there(page_of_one_run):
    page, _ = page_of_one_run
    grid = grids.read("simcse_small")
    assert (
        "| [02_simcse](02_simcse.csv) | 1 | 0 | small | wiki1m_head 1 | a processor | 1.0 |" in page
    )
    assert f"| simcse_small | 1 of {len(grid.cells)} | 1 | 1 of 5 | {grid.source} |" in page
    begun, none = (line for line in page.splitlines() if line.startswith("* "))
    assert begun == "* begun: simcse_small."
    assert "simcse_small_rates" in none and "una" not in none


def test_the_page_of_rows_has_the_scores_and_names_what_has_no_run(page_of_one_run):
    _, page = page_of_one_run
    cells = grids.read("simcse_small").cells
    assert "| TF-IDF | 1 | 1.50 | 1.50 | 2.50 | 2.50 |" in page  # untrained: best and last are one
    lost = next(line for line in page.splitlines() if line.startswith("No run: "))
    named = lost.removeprefix("No run: ").removesuffix(".").split("; ")
    assert named == [cell.row for cell in cells if cell.row != "TF-IDF"]


def test_what_a_row_lacks_is_counted_by_seed():
    grid = grids.read("simcse_small")
    trained, raw = (next(c for c in grid.cells if c.row == r) for r in ("SimCSE", "as pre-trained"))
    grid = replace(grid, cells=(trained, raw), seeds=(42, 0, 1))
    none = pd.DataFrame({"row": [], "seed": []})
    assert results_pages.lacking(grid, none) == {"SimCSE": 3, "as pre-trained": 1}
    some = pd.DataFrame({"row": ["SimCSE", "SimCSE", "as pre-trained"], "seed": [42, 1, 7]})
    assert results_pages.lacking(grid, some) == {"SimCSE": 1}


def test_the_committed_pages_are_those_of_the_committed_rows():
    page, rows = results_pages.pages()
    assert (paths.RESULTS / "README.md").read_text() == page
    assert (paths.RESULTS / "rows.md").read_text() == rows
    runs_of = re.findall(r"\]\(\w+\.csv\) \| (\d+) \|", page)
    assert sum(map(int, runs_of)) == len(results.every_run())
