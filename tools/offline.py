"""Grids for a machine without a network: `python -m tools.offline pack OUT --grid una_small` writes
a folder to copy there, `python -m tools.offline take runs.tar.gz --grid una_small` takes the
finished runs from there into `outputs/`.

The folder holds the project with all that the grids read as one archive, and `run.sh`, which
checks, unpacks and trains it.
"""

import argparse
import math
import shutil
import subprocess
import sys
import tarfile
import tomllib
from collections.abc import Mapping, Sequence
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

from filelock import Timeout
from huggingface_hub import constants

from lib import paths
from lib.augment.edits import wordnet_folder
from lib.commands import reporting
from lib.data import files, sets
from lib.runs import folder as folder_of_runs
from lib.runs import grids
from lib.runs.baseline import Baseline
from lib.runs.folder import Run
from lib.runs.grids import Cell, Grid
from lib.runs.inputs import Input

CODE = ("lib", "notebooks/*.ipynb", "workflow/grids", "data/papers")
ABOUT = ("pyproject.toml", "constraints.txt", "LICENSE", "LICENSES.md")
ARCHIVE = "project.tar.gz"
RECORD = ("params.json", "env.json", "metrics.json", "history.csv")
WEIGHTS = (".safetensors", ".json", ".txt", ".model", ".jinja")
RUN = r"""#!/bin/sh
# Trains @NAMES@ where there is no network, and leaves the finished runs in runs.tar.gz.
#
#   sh run.sh [options of `python -m lib grid`]
#
# PYTHON=/path/to/python3.12 names the interpreter, MODELS=1 packs the checkpoints up, too. A second
# call goes on where the first one stood: `timeout --signal=INT 55m sh run.sh` ends in time.

if [ -f "$(dirname "$0")/SHA256" ]; then cd "$(dirname "$0")" || exit 2; fi
here=$PWD
python=${PYTHON:-python3}
fail() { echo "error: $1" >&2; exit 2; }
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    fail "$python is not there, or older than Python 3.11: PYTHON=/path/to/python sh run.sh"
if [ ! -d project ]; then
    sha256sum --check --quiet SHA256 || fail "copy what is named above again"
    rm -rf unpacking && mkdir unpacking && cat project.tar.gz* | tar -xz -C unpacking &&
        mv unpacking project || fail "the archive cannot be unpacked: is the disk full?"
fi
if [ -d wheels ] && [ ! -d site ]; then
    "$python" -m pip install --quiet --no-index --no-deps --target installing wheels/*.whl &&
        mv installing site || fail "the wheels cannot be installed"
fi
export PYTHONPATH="$here/project:$here/site${PYTHONPATH:+:$PYTHONPATH}"
export CSE_DATA="$here/project/data" CSE_OUTPUTS="$here/outputs" HF_HUB_OFFLINE=1
if [ -d project/hub ]; then export HF_HUB_CACHE="$here/project/hub"; fi
if [ -d project/nltk ]; then export NLTK_DATA="$here/project/nltk"; fi
mkdir -p outputs
trap : INT  # the training hears it, too, and ends; what is finished is packed up below
status=0
cd project || exit 2
@COMMANDS@
cd "$here/outputs" || exit 2
for metrics in */*/metrics.json; do
    run=$(dirname "$metrics")
    [ -f "$metrics" ] && ls -d "$run"/*.json "$run"/*.csv ${MODELS:+"$run"/best "$run"/last}
done 2>/dev/null | tar -czf "$here/runs.tar.gz" -T -
echo "finished runs: $(ls -d */*/metrics.json 2>/dev/null | wc -l), in $here/runs.tar.gz"
exit $status
"""


@reporting
def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status 1 if a run was refused."""
    parser = argparse.ArgumentParser(prog="python -m tools.offline", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    packing = verbs.add_parser("pack", help="write a folder to copy to a machine without network")
    packing.add_argument("out", type=Path, help="folder to write, new or empty")
    packing.add_argument("--limit", type=megabytes, help="of a part, such as 60MB (default: none)")
    taking = verbs.add_parser("take", help="take finished runs from there into outputs/")
    taking.add_argument("archive", type=Path, help="the runs.tar.gz that run.sh left")
    for verb in (packing, taking):
        verb.add_argument("--grid", nargs="+", required=True, help="files or names, see `lib grid`")
        verb.add_argument("--profile", default="", help="mini, light, small, full (the grids' own)")
        verb.add_argument("--data-dir")
    options = parser.parse_args(arguments)
    chosen = {Path(name).name.removesuffix(".yaml"): _grid(name, options) for name in options.grid}
    if options.verb == "pack":
        return pack(options.out, chosen, options)
    return take(options.archive, list(chosen.values()), options.data_dir)


def megabytes(text: str) -> int:
    """The bytes of a size such as `60MB`."""
    number = int(text.upper().removesuffix("MB"))
    if number < 1:
        raise ValueError(text)
    return number * 10**6


def _grid(name: str, options: argparse.Namespace) -> Grid:
    """A grid as `python -m lib grid` would train it here."""
    grid = grids.read(name).at(options.profile)
    grids.check(grid)
    return grid


def _reads(grid: Grid, cell: Cell, data_dir: str | None) -> list[Input]:
    job = grids.job_of(grid, cell, grid.seeds[0], {"data_dir": data_dir})
    return job.with_text_at_hand().inputs


# --- there


def pack(out: Path, chosen: Mapping[str, Grid], options: argparse.Namespace) -> int:
    """Write the folder: the archive or its parts, their checksums, `run.sh` and the wheels.

    Raises:
        FileExistsError: `out` holds something.
        FileNotFoundError, ValueError: something that a grid reads is not here, or lies where the
            other machine has no such place.
    """
    if out.exists() and not (out.is_dir() and not any(out.iterdir())):
        raise FileExistsError(f"{out} is there already: name another folder, or remove it")
    members = _code(options.grid)
    needs: set[str] = set()
    for grid in chosen.values():
        for cell in grid.cells:
            for one in _reads(grid, cell, options.data_dir):
                _add(members, needs, one, options.data_dir)
    with files.atomic_write(out) as folder:
        folder.mkdir()
        files.write_json(folder / folder_of_runs.COMMIT, folder_of_runs.commit())
        members[folder_of_runs.COMMIT] = folder / folder_of_runs.COMMIT
        with tarfile.open(folder / ARCHIVE, "w:gz", dereference=True) as tar:
            for place, path in sorted(members.items()):
                tar.add(path, place)
        (folder / folder_of_runs.COMMIT).unlink()
        parts = _split(folder / ARCHIVE, options.limit)
        sums = "".join(f"{files.sha256(part)}  {part.name}\n" for part in parts)
        files.write_text(folder / "SHA256", sums)
        files.write_text(folder / "run.sh", _script(chosen))
    for path in sorted(path for path in out.rglob("*") if path.is_file()):
        print(f"{path.stat().st_size / 1e6:10.2f} MB  {path}")
    print("what the Python there lacks goes into wheels/, with --python-version and --platform:")
    print(f"  pip download -c constraints.txt -d {out}/wheels {' '.join(_packages())}")
    if needs:
        print(f"and what no archive holds: {', '.join(sorted(needs))}")
    print(f"copy {out} there and start it: sh {out.name}/run.sh")
    return 0


def _code(names: list[str]) -> dict[str, Path]:
    """Place in the archive → file here, of the code that git tracks and of one's own grids."""
    if unknown := _git("ls-files", "-z", "--others", "--exclude-standard", "lib"):
        raise ValueError(f"git does not track {unknown[0]}: `git add` it, or move it out of lib/")
    found = {name: paths.ROOT / name for name in _git("ls-files", "-z", *CODE, *ABOUT)}
    own = [Path(name) for name in names if name.endswith(".yaml")]
    return found | {f"workflow/grids/{path.name}": path for path in own}


def _git(*words: str) -> list[str]:
    done = subprocess.run(["git", *words], cwd=paths.ROOT, capture_output=True, text=True)
    if done.returncode:
        raise ValueError(f"{paths.ROOT} is no git checkout: clone the project to pack it")
    return [name for name in done.stdout.split("\0") if name]


def _add(members: dict[str, Path], needs: set[str], one: Input, data_dir: str | None) -> None:
    """Add the files of an input at the places where they will be looked for.

    Args:
        needs: gets the packages whose files they are, which are to be installed there.
    """
    homes = [(base, "data") for base in paths.data_dirs(data_dir)]
    homes += [(paths.ROOT, ""), (Path(constants.HF_HUB_CACHE), "hub")]
    if one.name == "synonyms" and (one.files()[0].parent / "data.noun").is_file():
        homes.insert(0, (wordnet_folder(), "nltk/corpora/wordnet"))
    for path in one.files():
        path = path.absolute()
        if "site-packages" in path.parts:
            needs.add(path.parts[path.parts.index("site-packages") + 1])
            continue
        home = next((home for home in homes if path.is_relative_to(home[0])), None)
        if home is None:
            raise ValueError(f"{one.name}: copy {path} into {paths.DATA} and name it from there")
        place = Path(home[1]) / path.relative_to(home[0])
        members[place.as_posix()] = path
        if (mark := path.with_name(sets.OWN_SETS)).is_file():
            members[place.with_name(sets.OWN_SETS).as_posix()] = mark


def _split(path: Path, limit: int | None) -> list[Path]:
    """The file, or its parts `<name>.001` and so on if it is larger than `limit` bytes."""
    if limit is None or path.stat().st_size <= limit:
        return [path]
    parts: list[Path] = []
    with path.open("rb") as file:
        while content := file.read(limit):
            parts.append(path.with_name(f"{path.name}.{len(parts) + 1:03d}"))
            parts[-1].write_bytes(content)
    path.unlink()
    return parts


def _script(chosen: Mapping[str, Grid]) -> str:
    trains = '[ $status = 130 ] || "$python" -m lib grid {} --profile {} "$@" || status=$?'
    commands = "\n".join(trains.format(name, grid.profile) for name, grid in chosen.items())
    return RUN.replace("@NAMES@", " ".join(chosen)).replace("@COMMANDS@", commands)


def _packages() -> list[str]:
    """The project's packages that this process has imported to look at the grids, and peft."""
    project = tomllib.loads((paths.ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    names = {word.partition("=")[0]: word for word in project["dependencies"]}
    brings = packages_distributions()
    loaded = {name for module in sys.modules for name in brings.get(module.split(".")[0], [])}
    return [*(names[name] for name in sorted(loaded & names.keys())), "peft"]


# --- back


def take(archive: Path, chosen: list[Grid], data_dir: str | None = None) -> int:
    """Take the finished runs of an archive into the outputs folder; 1 if one was refused, else 0.

    A run is taken if its id follows from its own parameters and data, and is one that a cell of
    these grids has with the data that is here. A finished run that is here already stays.

    Raises:
        FileNotFoundError: no such archive.
        ValueError: it is damaged or would write elsewhere; nothing is taken.
    """
    if not archive.is_file():
        raise FileNotFoundError(f"no file {archive}: run.sh leaves a runs.tar.gz")
    known: dict = {}
    counts = {"taken": 0, "here already": 0, "refused": 0}
    with files.scratch_folder(paths.outputs() / "taken") as folder:
        files.unpack(archive, folder)
        found = sorted(folder.glob("*/*/"))
        if not found:
            raise ValueError(f"{archive} holds no run")
        for run in found:
            try:
                state = _take_run(run, chosen, data_dir, known)
            except (ValueError, KeyError, TypeError, OSError) as error:
                why = "it is being trained here just now" if isinstance(error, Timeout) else error
                print(f"refused: {run.parent.name}/{run.name}: {why}", file=sys.stderr)
                state = "refused"
            counts[state] += 1
    print(", ".join(f"{n} {state}" for state, n in counts.items()) + f": {paths.outputs()}")
    return int(counts["refused"] > 0)


def _take_run(run: Path, chosen: list[Grid], data_dir: str | None, known: dict) -> str:
    """Check a run and copy it to its place; `taken` or `here already`."""
    for path in run.rglob("*"):
        name = path.relative_to(run)
        weights = len(name.parts) > 1 and name.parts[0] in ("best", "last")
        if path.is_file() and not (path.suffix in WEIGHTS if weights else str(name) in RECORD):
            raise ValueError(f"{name} is no file of a finished run")
    ran, _, metrics = (files.read_json(run / name) for name in RECORD[:3])
    numbers = [value for value in metrics.values() if value is not None]
    if not all(isinstance(value, int | float) and math.isfinite(value) for value in numbers):
        raise ValueError("metrics.json: a value is no number")
    ran.pop("resolved", None)
    told = [ran.pop(name) for name in ("run_id", "results_version", "recipe", "seed", "data")]
    run_id, version, recipe, seed, hashes = told
    record = Run(run.parent.name, recipe, seed, ran, hashes)
    if version != folder_of_runs.RESULTS_VERSION or not run.name == run_id == record.id:
        raise ValueError("its id does not follow from its parameters, data and results_version")
    _check_id(record, chosen, data_dir, known)
    with files.locked(record.folder, timeout=0):
        if record.metrics is not None:
            return "here already"
        with files.atomic_write(record.folder) as temporary:
            shutil.copytree(run, temporary)
    return "taken"


def _check_id(record: Run, chosen: list[Grid], data_dir: str | None, known: dict) -> None:
    """Refuse a run to which no cell leads, with any seed, on the data that is here.

    Args:
        known: what `_made_of` has given so far.

    Raises:
        ValueError: there is no such cell, or what it reads is not here.
    """
    how = {name: record.params.get(name) for name in ("precision", "scoring")}
    how["compile"] = bool(record.params.get("compile"))
    lacking = ""
    for grid, cell in [(each, cell) for each in chosen for cell in each.cells]:
        try:
            key = id(cell), *how.values()
            if key not in known:
                known[key] = _made_of(grid, cell, data_dir, how)
        except (OSError, ValueError) as error:
            lacking = f": {error}"
            continue
        recipe, made_of = known[key]
        found = folder_of_runs.run_id(recipe, made_of, record.seed)
        if (grid.notebook, found) == (record.notebook, record.id):
            return
    raise ValueError(f"no row of these grids has its id with the data that is here{lacking}")


def _made_of(
    grid: Grid, cell: Cell, data_dir: str | None, how: Mapping[str, Any]
) -> tuple[str, dict]:
    """A cell's recipe, and what the id of its runs is made of beside the seed.

    Args:
        how: precision, scoring and compile of the run.
    """
    machine = {"data_dir": data_dir, "device": "cpu", **how}
    job = grids.job_of(grid, cell, grid.seeds[0], machine).with_text_at_hand()
    if isinstance(job, Baseline):
        one = job.record()
        return one.recipe, {"params": one.params, "data": one.data}
    return job.recipe.name, {"params": job.parameters(), "data": job.hashes()}


if __name__ == "__main__":
    sys.exit(main(None))
