"""`python -m benchmarks.robustness` kills, fuzzes and races, and writes the table; a campaign takes
its name.

The whole takes an hour or two on two cores: `python -m benchmarks.robustness kills --tries 3` is a
    short look.
"""

import argparse
import json
import os
import sys
from datetime import UTC, datetime

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"

import torch

from benchmarks.robustness import fuzz, kills, races
from benchmarks.robustness.common import Count
from lib import paths
from lib.data import files
from lib.runs import folder

TARGET = paths.BENCHMARKS / "results"
DEFAULT_TRIES = {"kills": 18, "fuzz": 760, "races": 100}
COLUMNS = ("tries", "kills", "refused", "accepted", "wrong", "stuck", "leftovers", "tracebacks")


def markdown(content: dict) -> str:
    """The table, with totals."""
    rows = [Count(**row) for row in content["rows"]]
    lines = [
        "# Kills, damaged input, races",
        "",
        (
            "Made by `python -m benchmarks.robustness`. *Refused* is a sentence that names what is"
            " wrong; *accepted* is input that gave a result, among it damage that cannot be known,"
            " such as another letter. The last four columns count defects."
        ),
        "",
        *(f"* {kind}: {made}" for kind, made in sorted(content["made"].items())),
        "",
        "| campaign | " + " | ".join(COLUMNS) + " |",
        "|---|" + "--:|" * len(COLUMNS),
    ]
    total = Count("**all**", *(sum(getattr(row, name) for row in rows) for name in order()))
    for row in [*rows, total]:
        lines.append(
            f"| {row.campaign} | " + " | ".join(f"{getattr(row, c):,}" for c in COLUMNS) + " |"
        )
    return "\n".join(lines) + "\n"


def with_others(rows: list[dict], made: str) -> dict:
    """The new rows, and those of the kinds of campaign that were not run this time; of each kind
    how it was made."""
    path = TARGET / "robustness.json"
    known = (
        json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"made": {}, "rows": []}
    )
    kinds = dict.fromkeys((_kind(row) for row in rows), made)
    kept = [row for row in known["rows"] if _kind(row) not in kinds]
    return {"made": known["made"] | kinds, "rows": [*kept, *rows]}


def _kind(row: dict) -> str:
    return row["campaign"].partition(":")[0]


def order() -> list[str]:
    """The counted fields, in the order of `Count`."""
    return [name for name in Count.__dataclass_fields__ if name != "campaign"]


def main(arguments: list[str] | None = None) -> int:
    """Exit status: 0 if nothing is wrong."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.robustness", description=__doc__)
    parser.add_argument(
        "campaign", nargs="*", choices=[[], *DEFAULT_TRIES], help="kills, fuzz, races (all)"
    )
    parser.add_argument("--tries", type=int, help=f"of each kind (usually {DEFAULT_TRIES})")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--no-file", action="store_true", help="print the table only")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    campaigns = options.campaign or list(DEFAULT_TRIES)
    tries = {name: options.tries or DEFAULT_TRIES[name] for name in campaigns}
    counts: list[Count] = []
    if "fuzz" in campaigns:
        counts += fuzz.main(tries["fuzz"], options.seed)
    if "kills" in campaigns:
        counts += kills.main(tries["kills"], options.seed)
    if "races" in campaigns:
        counts += races.main(tries["races"])
    environment = folder.environment()
    today = datetime.now(UTC).date().isoformat()
    made = (
        f"{today}, {environment['cpu']}, commit {str(environment['commit'])[:10]}, seed"
        f" {options.seed}"
    )
    content = with_others([count.row() for count in counts], made)
    text = markdown(content)
    print(text)
    if not options.no_file:
        files.write_json(TARGET / "robustness.json", content)
        files.write_text(TARGET / "robustness.md", text)
    return int(any(count.defects for count in counts))


if __name__ == "__main__":
    sys.exit(main())
