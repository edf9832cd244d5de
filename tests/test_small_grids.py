"""Every cell of the grids on real data is a run from end to end, tried at mini on a little text."""

import math

import pytest

from lib import experiment, grids, paths, untrained

NAMES = sorted(path.stem for path in paths.GRIDS.glob("*_small*.yaml"))
LITTLE = {"max_steps": 2, "eval_every": 1, "batch_size": 16}


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_every_cell_runs_from_text_to_score(little, name):
    grid = grids.read(name).at("mini", (7,))
    done = []
    for cell in grid.cells:
        if cell.set["method"] in untrained.METHODS:
            continue
        parameters = {**cell.set, **LITTLE, "output_dir": str(little)}
        if cell.set.get("max_steps") == 0:
            parameters["max_steps"] = 0
        if "synonyms" in parameters:
            parameters["synonyms"] = "data/mini/thesaurus.tsv"
        record = experiment.run(grid.notebook, profile_name="mini", seed=7, **parameters)
        assert record.metrics["steps"] == parameters["max_steps"], cell.row
        assert math.isfinite(record.metrics["mini_dev_spearman_last"]), cell.row
        done.append(record.id)
    assert len(done) >= len(grid.cells) - len(untrained.METHODS)
