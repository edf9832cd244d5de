"""`python -m lib grid una_small`: train what is missing of `workflow/grids/una_small.yaml`.

Finished runs are skipped, an interrupted one is taken up. `--jobs 10` trains ten runs at once,
on one GPU or on several. Machines share a grid by `--seeds` and `--rows`, or processes each run by
`accelerate launch --num_processes 4 -m lib grid una_table_1`, negatives gathered.
"""

import argparse
import sys
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from lib.commands import reporting, verb_parser


@reporting
def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status 1 if a run failed, or with `--plan` if one cannot start."""
    options = _options(arguments)
    from lib.runs.grids import collect
    from lib.runs.plan import plan

    grid, machine = _grid(options), {"data_dir": options.data_dir, "device": options.device}
    if options.plan:
        table = plan(grid, machine)
        lacking = table.pop("missing")
        _show(table)
        sentences = dict.fromkeys(chain.from_iterable(lacking))
        for sentence in sentences:
            print("missing:", sentence)
        return int(bool(sentences))
    if options.table:
        return _write_table(grid, collect(grid), options.table)
    if options.against:
        return _compare(grid, collect(grid), options.against, options.plot)
    return _train(grid, machine, options.jobs)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = verb_parser("grid", "Run a grid; finished runs are skipped.")
    add = parser.add_argument
    add("grid", help="a file of your own, or a name in workflow/grids/")
    add("--profile", default="", help="mini, light, small or full (default: the grid's)")
    add("--seeds", type=int, nargs="+", default=[], help="only these (default: the grid's)")
    add("--max-steps", type=int, help="of every run")
    add("--rows", nargs="+", default=[], help="only these")
    add("--jobs", type=int, default=1, help="runs at once, dealt out over the GPUs there are")
    add("--data-dir", help="folder of the real data (default: CSE_DATA, then data/)")
    add("--device", default="auto", help="cpu, cuda or mps (default: the best there is)")
    add("--plot", type=Path, help="with --against: a picture of the differences")
    add = parser.add_mutually_exclusive_group().add_argument
    add("--plan", action="store_true", help="the runs, minutes and what is missing; train nothing")
    add("--table", type=Path, help="a CSV file: the finished runs beside the paper's figures")
    add("--against", metavar="ROW", help="differences of all rows from this one, with intervals")
    return parser.parse_args(arguments)


def _grid(options: argparse.Namespace) -> Any:
    """The grid at the profile, seeds, steps and rows that were asked for."""
    from lib.checked import closest
    from lib.runs.grids import check, read

    if options.jobs < 1:
        raise ValueError(f"--jobs must be at least 1, got {options.jobs}")
    if options.table and options.table.suffix != ".csv":
        raise ValueError(f"--table {options.table}: a table is a .csv file")
    if options.plot and not options.against:
        raise ValueError("--plot draws what --against compares: name its row, too")
    steps = {} if options.max_steps is None else {"max_steps": options.max_steps}
    grid = read(options.grid).at(options.profile, **steps)
    rows = [cell.row for cell in grid.cells]
    for row in [*options.rows, *filter(None, [options.against])]:
        if row not in rows:
            hint = closest(row, dict.fromkeys(rows), "it has")
            raise ValueError(f"{options.grid} has no row {row!r}{hint}")
    named = [*options.rows, options.against] if options.rows else rows
    chosen = [cell for cell in grid.cells if cell.row in named]
    grid = grid.changed(cells=chosen, seeds=options.seeds or grid.seeds)
    check(grid)
    return grid


def _show(table: Any) -> None:
    print(table.to_string(index=False, float_format=lambda value: f"{value:.2f}", na_rep="–"))


def _train(grid: Any, machine: dict[str, Any], jobs: int) -> int:
    """Train; the runs of a shipped grid on real data, at its own length, join `results/`."""
    from tqdm import tqdm

    from lib.runs import finished, grids
    from lib.training.forward import is_main_process

    with tqdm(total=len(list(grid.runs())), unit="run", disable=jobs == 1) as bar:

        def say(line: str) -> None:
            bar.clear()
            print(line, flush=True)
            bar.update()

        members, failed = grids.train(grid, machine, say, jobs)
    whole = grids.read(grid.path).cells if grid.is_shipped else []
    own = all(cell in whole for cell in grid.cells)
    if members and own and grid.profile != "mini" and is_main_process():
        print("wrote", *finished.save_grid(members))
    if failed:
        print(f"{len(failed)} of {len(failed) + len(members)} runs failed", file=sys.stderr)
    return int(bool(failed))


def _write_table(grid: Any, runs_of: Any, path: Path) -> int:
    from lib.data.files import write_text
    from lib.runs.grids import beside_paper

    table = beside_paper(grid, runs_of)
    write_text(path, table.to_csv(index=False, float_format="%.4f"))
    _show(table)
    return int((table["n"] == 0).any())


def _compare(grid: Any, runs_of: Any, against: str, plot: Path | None) -> int:
    """Print, and draw, the paired differences of all rows from one."""
    from lib.results.statistics import paired_differences

    rows = dict.fromkeys(row for row in runs_of["row"] if row != against)
    if not rows:
        raise ValueError(f"no finished runs to compare with {against!r}: train the grid first")
    found = paired_differences(runs_of, grid.metric, dict.fromkeys(rows, against))
    print(f"{grid.metric} minus that of {against!r}, paired by seed, 95 % intervals together")
    _show(found.reset_index())
    if plot:
        from lib.plots import forest

        title = f"{grid.metric}, difference from {against}"
        forest(found, title).savefig(plot, bbox_inches="tight")
    return 0
