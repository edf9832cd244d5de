"""Every cell of every grid is a run from end to end, tried at mini on a little text."""

import math

import pytest

from lib import data, experiment, grids, paths, untrained
from lib.files import write_text

NAMES = sorted(path.stem for path in paths.GRIDS.glob("*.yaml"))
LITTLE = {"max_steps": 2, "eval_every": 1, "batch_size": 16}


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_every_cell_runs_from_text_to_score(little, name):
    grid = grids.read(name).at("mini", (7,))
    assert grid.cells or grids.read(name).profile == "chinese"
    a_line_each, done = little / "paraphrase.txt", []
    write_text(a_line_each, "\n".join(reversed(data.corpus("mini"))) + "\n")
    for cell in grid.cells:
        if (method := cell.set["method"]) in untrained.METHODS:
            record = untrained.run(grid.notebook, method, "mini", model=cell.model)
            assert math.isfinite(record.metrics["mini_dev_spearman_last"]), cell.row
            continue
        parameters = {**cell.set, **LITTLE, "output_dir": str(little)}
        if cell.set.get("max_steps") == 0:
            parameters["max_steps"] = 0
        if experiment.resolve("mini", **cell.set)[1].positive.kind == "file":
            parameters["positive_file"] = str(a_line_each)
        if "synonyms" in parameters:
            parameters["synonyms"] = "data/mini/thesaurus.tsv"
        record = experiment.run(grid.notebook, profile_name="mini", seed=7, **parameters)
        assert record.metrics["steps"] == parameters["max_steps"], cell.row
        assert math.isfinite(record.metrics["mini_dev_spearman_last"]), cell.row
        done.append(record.id)
    alone = sum(cell.set["method"] in untrained.METHODS for cell in grid.cells)
    assert len(done) == len(grid.cells) - alone
