"""`python -m lib grid una_small`: train what is missing of `workflow/grids/una_small.yaml`.

Finished runs are skipped, an interrupted one is taken up. `--jobs 10` trains ten runs at once,
on one GPU or on several. Machines share a grid by `--seeds` and `--rows`, or processes each run by
`accelerate launch --num_processes 4 -m lib grid una_table_1`, negatives gathered.
"""

import argparse
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from lib.commands import reporting


@reporting
def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status 1 if a run failed, or with `--plan` if one cannot start."""
    options = _options(arguments)
    from lib.runs.grids import collect

    grid = _grid(options)
    if options.list:
        for cell, seed in grid.runs():
            column = f" · {cell.column}" if cell.column else ""
            print(f"{cell.row}{column} · seed {seed} · {dict(cell.set)}")
        return 0
    machine = {"data_dir": options.data_dir, "device": options.device}
    if options.plan:
        return _print_plan(grid, machine)
    if options.table:
        return _write_table(grid, collect(grid, machine), options.table)
    if options.against:
        return _compare(grid, collect(grid, machine), options.against, options.plot)
    return _train(grid, machine, options.jobs)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m lib grid", description="Run a grid; finished runs are skipped."
    )
    add = parser.add_argument
    add("grid", help="a file of your own, or a name in workflow/grids/")
    add("--profile", default="", help="mini, light, small or full (default: the grid's)")
    add("--seeds", type=int, nargs="+", default=[], help="only these (default: the grid's)")
    add("--max-steps", type=int, help="of every run")
    add("--rows", nargs="+", default=[], help="only these")
    add("--jobs", type=int, default=1, help="runs at once, dealt out over the GPUs there are")
    add("--data-dir")
    add("--device", default="auto")
    add("--list", action="store_true", help="print the runs, train nothing")
    add("--plan", action="store_true", help="print what each run needs and takes, train nothing")
    add("--table", type=Path, help="a CSV file: the finished runs beside the paper's figures")
    add("--against", metavar="ROW", help="differences of all rows from this one, with intervals")
    add("--plot", type=Path, help="with --against: a picture of the differences")
    options = parser.parse_args(arguments)
    if not 1 <= options.jobs <= 1_000:
        raise ValueError(f"--jobs must be from 1 to 1000, got {options.jobs}")
    return options


def _grid(options: argparse.Namespace) -> Any:
    """The grid at the profile, seeds, steps and rows that were asked for."""
    from dataclasses import replace

    from lib.checked import closest
    from lib.runs.grids import check, read

    steps = {} if options.max_steps is None else {"max_steps": options.max_steps}
    grid = read(options.grid).at(options.profile, **steps)
    rows = [cell.row for cell in grid.cells]
    for row in [*options.rows, *([options.against] if options.against else [])]:
        if row not in rows:
            raise ValueError(f"{options.grid} has no row {row!r}{closest(row, rows)}")
    if options.rows:
        grid = replace(grid, cells=tuple(cell for cell in grid.cells if cell.row in options.rows))
    if options.seeds:
        grid = replace(grid, seeds=tuple(options.seeds))
    check(grid)
    return grid


def _train(grid: Any, machine: dict[str, Any], jobs: int) -> int:
    """Train; the runs of a shipped grid on real data, at its own length, join `results/`."""
    import sys

    from tqdm import tqdm

    from lib.runs import committing, grids
    from lib.training.distributed import is_main_process

    with tqdm(total=len(list(grid.runs())), unit="run", disable=jobs == 1) as bar:
        members, failed = grids.train(grid, machine, partial(_say, bar), jobs)
    whole = grids.read(grid.path) if grid.is_shipped else None
    own = whole is not None and all(cell in whole.cells for cell in grid.cells)
    if members and own and grid.profile != "mini" and is_main_process():
        for saved in committing.save_everywhere({member[3] for member in members}):
            print(f"wrote {saved}")
        committing.add_members(members)
    if failed:
        print(f"{len(failed)} of {len(failed) + len(members)} runs failed", file=sys.stderr)
    return int(bool(failed))


def _say(bar: Any, line: str) -> None:
    """A line on stdout, and a step of the bar on stderr."""
    bar.update()
    with bar.external_write_mode(nolock=True):
        print(line, flush=True)


def _write_table(grid: Any, runs_of: Any, path: Path) -> int:
    import sys

    from lib import paths
    from lib.data.files import write_text
    from lib.runs.grids import beside_paper

    if path.suffix != ".csv":
        raise ValueError(f"--table writes CSV: call the file {path.with_suffix('.csv').name}")
    table = beside_paper(grid, runs_of)
    write_text(path, table.to_csv(index=False, float_format="%.4f"))
    print(table.to_string(index=False, float_format=lambda value: f"{value:.2f}", na_rep="–"))
    empty = table.loc[table["n"] == 0, "row"]
    if len(empty):
        print(f"no finished run under {paths.outputs()} of: {'; '.join(empty)}", file=sys.stderr)
    return int(len(empty) > 0)


def _compare(grid: Any, runs_of: Any, against: str, plot: Path | None) -> int:
    """Print, and draw, the paired differences of all rows from one."""
    from lib.results.statistics import paired_differences

    rows = dict.fromkeys(row for row in runs_of["row"] if row != against)
    if not rows:
        raise ValueError(f"no finished runs to compare with {against!r}: train the grid first")
    found = paired_differences(runs_of, grid.metric, dict.fromkeys(rows, against))
    print(f"{grid.metric} minus that of {against!r}, paired by seed, 95 % intervals together")
    print(found.to_string(float_format=lambda value: f"{value:.2f}", na_rep="–"))
    if plot:
        from lib.plots import forest

        forest(found, f"{grid.metric}, difference from {against}").savefig(
            plot, bbox_inches="tight"
        )
        print(f"wrote {plot}")
    return 0


def _print_plan(grid: Any, machine: dict[str, Any]) -> int:
    import sys

    from lib.data import FETCH
    from lib.runs.plan import plan

    def tell(text: str) -> None:
        print(text, file=sys.stderr)

    table = plan(grid, machine, tell)
    shown = table.drop(columns="missing")
    print(shown.to_string(index=False, float_format=lambda value: f"{value:.1f}", na_rep="–"))
    ready = int((table["missing"] == "").sum())
    print(f"\n{ready} of {len(table)} runs can start; {_minutes(table)}.")
    missing = sorted({text for line in table["missing"] for text in line.split("; ") if text})
    if missing:
        tell("missing:\n" + "\n".join(f"  {text}" for text in missing))
        if all(FETCH in text for text in missing):
            tell(f"`{FETCH}` brings all of it")
    return int(bool(missing))


def _minutes(table: Any) -> str:
    """What is known of a grid's duration, in words."""
    minutes, unknown = table["minutes"].sum(), int(table["minutes"].isna().sum())
    if unknown == len(table):
        return "how long they take is unknown before their encoder and texts are here"
    words = f"about {minutes:.0f} minutes one after another"
    if table["stand_in"].any():
        words += ", timed on the shipped corpus in place of the missing one"
    return words + (f"; unknown for {unknown} runs" if unknown else "")
