"""`python -m lib grid una_small`: train what is missing of `workflow/grids/una_small.yaml`.

Finished runs are skipped, an interrupted one is taken up. `--jobs 10` trains ten runs at once,
on one GPU or on several. Machines share a grid by `--seeds` and `--rows`, or processes each run by
`accelerate launch --num_processes 4 -m lib grid una_table_1`, negatives gathered.
"""

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lib.commands import reporting
from lib.settings import check_whole_number

if TYPE_CHECKING:  # --help waits for none of these
    import pandas as pd
    from tqdm import tqdm

    from lib.grids import Grid


@reporting
def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status 1 if a run failed, or with `--plan` if one cannot start."""
    options = _options(arguments)
    from tqdm import tqdm

    from lib import grids, results
    from lib.distributed import is_main_process

    grid = _grid(options)
    if options.list:
        for cell, seed in grid.runs():
            print(f"{cell.row} · {cell.column} · seed {seed} · {dict(cell.set)}")
        return 0
    if options.plan:
        return _print_plan(grid, options.data_dir, options.device)
    grids.check(grid)
    grid = grids.on_text_at_hand(grid, options.data_dir)
    machine = {"data_dir": options.data_dir, "device": options.device}
    if options.table:
        return _write_table(grid, options.table, machine)
    with tqdm(total=len(list(grid.runs())), unit="run", disable=options.jobs == 1) as bar:
        done, failed = grids.train(grid, machine, partial(_say, bar), options.jobs)
    if done and grid.profile != "mini" and options.max_steps is None and is_main_process():
        print(f"wrote {results.save(grid.notebook, only=done)}")
    if failed:
        print(f"{len(failed)} of {len(done) + len(failed)} runs failed", file=sys.stderr)
    return int(bool(failed))


def _say(bar: "tqdm", line: str) -> None:
    """A line on stdout, and a step of the bar on stderr."""
    bar.update()
    with bar.external_write_mode(nolock=True):
        print(line, flush=True)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m lib grid", description="Run a grid; finished runs are skipped."
    )
    parser.add_argument("grid", help="a file, or a name in workflow/grids/")
    parser.add_argument(
        "--profile", default="", help="mini, light, small, full or chinese (default: the grid's)"
    )
    parser.add_argument(
        "--seeds", type=int, nargs="+", default=[], help="only these (default: the grid's)"
    )
    parser.add_argument("--max-steps", type=int, help="of every run")
    parser.add_argument("--rows", nargs="+", default=[], help="only these")
    parser.add_argument(
        "--jobs",
        type=int,
        default=1,
        help="runs at once, dealt out over several GPUs, on one as many as its memory holds",
    )
    parser.add_argument("--data-dir")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--list", action="store_true", help="print the runs, train nothing")
    parser.add_argument(
        "--plan", action="store_true", help="print what each run needs and takes, train nothing"
    )
    parser.add_argument(
        "--table",
        type=Path,
        help="a CSV file: the finished runs under outputs/ beside the paper's figures (those of"
        " results/ stand in the book); train nothing",
    )
    options = parser.parse_args(arguments)
    check_whole_number("--jobs", options.jobs, 1, 1_000)
    return options


def _grid(options: argparse.Namespace) -> "Grid":
    """The grid at the profile, seeds, steps and rows that were asked for."""
    from dataclasses import replace

    from lib import grids

    steps = {} if options.max_steps is None else {"max_steps": options.max_steps}
    grid = grids.read(options.grid).at(options.profile, tuple(options.seeds), **steps)
    if not grid.cells:
        raise ValueError(f"{options.grid} has no rows at the profile {grid.profile}")
    if unknown := set(options.rows) - {cell.row for cell in grid.cells}:
        raise ValueError(f"{options.grid} has no rows {sorted(unknown)}")
    if options.rows:
        grid = replace(grid, cells=tuple(cell for cell in grid.cells if cell.row in options.rows))
    return grid


def _write_table(grid: "Grid", path: Path, machine: dict[str, Any]) -> int:
    from lib import grids, paths
    from lib.files import write_text

    if path.suffix != ".csv":
        raise ValueError(f"--table writes CSV: call the file {path.with_suffix('.csv').name}")
    table, older = grids.table_of(grid, machine)
    write_text(path, table.to_csv(index=False, float_format="%.4f"))
    print(table.to_string(index=False, float_format=lambda value: f"{value:.2f}", na_rep="–"))
    if older:
        print(older)
    empty = table.loc[table["n"] == 0, "row"]
    if len(empty):
        print(f"no finished run under {paths.outputs()} of: {'; '.join(empty)}", file=sys.stderr)
    return int(len(empty) > 0)


def _print_plan(grid: "Grid", data_dir: str | None, device: str) -> int:
    """What each run takes on stdout, what is missing on stderr."""
    from lib import plan
    from lib.data import FETCH

    grid_plan = plan.plan(grid, data_dir, device, partial(print, file=sys.stderr, flush=True))
    shown = grid_plan.drop(columns=["missing", "stand_in"])
    print(shown.to_string(index=False, float_format=lambda value: f"{value:.1f}", na_rep="–"))
    ready = int((grid_plan["missing"] == "").sum())
    print(f"\n{ready} of {len(grid_plan)} runs can start; {_minutes(grid_plan)}.")
    missing = sorted({text for line in grid_plan["missing"] for text in line.split("; ") if text})
    if missing:
        print("missing:\n" + "\n".join(f"  {text}" for text in missing), file=sys.stderr)
        if all(FETCH in text for text in missing):
            print(f"`{FETCH}` brings all of it", file=sys.stderr)
    return int(bool(missing))


def _minutes(grid_plan: "pd.DataFrame") -> str:
    """What is known of a grid's duration, in words."""
    minutes, unknown = grid_plan["minutes"].sum(), int(grid_plan["minutes"].isna().sum())
    if unknown == len(grid_plan):
        return "how long they take is unknown before their encoder and texts are here"
    words = f"about {minutes:.0f} minutes one after another"
    if grid_plan["stand_in"].any():
        words += ", timed on the shipped corpus in place of the missing one"
    return words + (f"; unknown for {unknown} runs" if unknown else "")
