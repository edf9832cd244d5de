"""`python -m lib bundle OUT --grid una_small`: a grid for a machine without a network, as a folder
to copy there, whose `run.sh` runs it.

`python -m lib runs import ARCHIVE` takes the finished runs that it leaves.
"""

import argparse
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lib import bundle, wheels
from lib.commands import reporting
from lib.wheels import Target


@reporting
def main(arguments: Sequence[str] | None = None) -> int:
    """Print the parts, and what the other machine must have."""
    options = _options(arguments)
    if not (options.minutes > 0 and math.isfinite(options.minutes)):
        raise ValueError(f"--minutes must be above 0, got {options.minutes:g}")
    has = None if options.freeze is None else wheels.frozen(options.freeze)
    target = Target(options.python, options.machine, has)
    manifest = bundle.write(
        options.out,
        options.grid,
        options.profile,
        target=target,
        minutes=options.minutes,
        limit=options.limit and bundle.size(options.limit),
        with_wheels=options.wheels,
        with_torch=options.torch,
        data_dir=options.data_dir,
    )
    print(_table(manifest, options.out))
    print(f"the target must have {_needs(manifest, target)}")
    print(f"copy {options.out} there and start it: sh {options.out.name}/run.sh")
    return 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m lib bundle",
        description="Pack a grid with all it needs for a machine without a network.",
    )
    parser.add_argument("out", type=Path, help="folder to write, new or empty")
    parser.add_argument(
        "--grid", nargs="+", required=True, help="files, or names in workflow/grids/"
    )
    parser.add_argument(
        "--profile", default="", help="mini, light, small, full or chinese (default: the grids')"
    )
    parser.add_argument("--limit", help="size of the largest part, such as 60MB (default: none)")
    parser.add_argument(
        "--minutes", type=float, default=60, help="run.sh interrupts the runs then (default: 60)"
    )
    parser.add_argument("--freeze", type=Path, help="the target's `pip freeze`, as a file")
    here = "{}.{}".format(*sys.version_info[:2])
    parser.add_argument("--python", default=here, help=f"the target's (default: {here})")
    parser.add_argument("--machine", default="x86_64", choices=wheels.MACHINES)
    parser.add_argument(
        "--wheels",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="bring the packages that the target lacks (default: yes)",
    )
    parser.add_argument("--torch", action="store_true", help="bring torch, too, which is large")
    parser.add_argument("--data-dir")
    return parser.parse_args(arguments)


def _table(manifest: dict[str, Any], out: Path) -> str:
    parts = [part for archive in manifest["archives"] for part in archive["parts"]]
    parts += [
        {"name": path.name, "bytes": path.stat().st_size}
        for path in (out / bundle.MANIFEST, out / "run.sh")
    ]
    lines = [f"{part['name']:<28}{part['bytes'] / 1e6:>10.2f} MB" for part in parts]
    total = sum(part["bytes"] for part in parts) / 1e6
    lines.append(f"{len(parts)} files, {total:.1f} MB, {manifest['runs']} runs: {out}")
    return "\n".join(lines)


def _needs(manifest: dict[str, Any], target: Target) -> str:
    """What the other machine must have."""
    python = (
        f"Python {manifest['wheels']} with pip" if manifest["wheels"] else "Python 3.11 to 3.13"
    )
    torch = (target.has or {}).get("torch")
    known = (
        f" (its freeze has torch {torch})" if torch and "torch" in str(manifest["needs"]) else ""
    )
    return ", ".join([python, *manifest["needs"]]) + known
