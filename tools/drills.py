"""What does one change cost? Four drills, each in a scratch copy of the files that git tracks.

* `typo`: a word is corrected in the prose of a notebook;
* `negative`: a hard negative is added, a sentence with two nouns of the next one;
* `seed`: a grid gets one more seed, whose runs are simulated: those of another seed, with noise;
* `temperature`: the mini recipes are taught with the temperature 0.07 instead of 0.05.

Command line: `python -m tools.drills [NAME …]` prints how many files each of them changes, how many
    tests it runs, and the tests that fail because of it. `--tests PATH …` runs these instead.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lib import paths, results
from lib.data import files
from lib.runs import finished
from lib.runs.folder import RESULTS_VERSION

NOTEBOOK, GRID, OLD_SEED, NEW_SEED = "04_una", "una_small", 42, 99
OF_THE_MACHINE = ("machine", "device", "threads", "commit", "dirty")


@dataclass(frozen=True)
class Outcome:
    """What a drill changed, how many tests ran, and which of them fail because of it."""

    files: list[str]
    tests: int
    failures: list[str]


@dataclass(frozen=True)
class Copy:
    """The tracked files of this checkout in another folder, under a git of their own.

    Attributes:
        folder: where they are; tests: what is run instead of a drill's own tests, if anything.
    """

    folder: Path
    tests: Sequence[str] = ()

    @classmethod
    def of(cls, folder: Path, tests: Sequence[str] = ()) -> "Copy":
        """Copy the files as they are now, committed or not."""
        listed = subprocess.check_output(["git", "ls-files", "-z"], cwd=paths.ROOT, text=True)
        for name in filter(None, listed.split("\0")):
            if (paths.ROOT / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(paths.ROOT / name, folder / name)
        copy = cls(folder, tests)
        copy.git("init", "-q")
        copy.git("add", "-A")
        me = ("-c", "user.name=drill", "-c", "user.email=drill@localhost")
        copy.git(*me, "commit", "-q", "-m", "before the drill")
        return copy

    def git(self, *arguments: str) -> str:
        """What a command of git prints."""
        command = ["git", "-c", "core.hooksPath=/dev/null", *arguments]
        return subprocess.check_output(command, cwd=self.folder, text=True)

    def python(self, *arguments: str) -> subprocess.CompletedProcess:
        """Run Python on the copy's own modules."""
        own = {"PYTHONPATH": str(self.folder), "HF_HUB_OFFLINE": "1"}
        own["CSE_OUTPUTS"] = str(self.folder / "outputs")
        command, env = [sys.executable, *arguments], os.environ | own
        return subprocess.run(command, cwd=self.folder, env=env, capture_output=True, text=True)

    def replace(self, name: str, old: str, new: str) -> None:
        """Change one place of a file, which must be there once."""
        text = (self.folder / name).read_text(encoding="utf-8")
        if text.count(old) != 1:
            raise ValueError(
                f"{name} holds {text.count(old)} times what the drill changes: {old!r}"
            )
        (self.folder / name).write_text(text.replace(old, new), encoding="utf-8")

    def naming(self, *words: str) -> list[str]:
        """The files of tests that name one of these words."""
        found = re.compile("|".join(map(re.escape, words)))
        tests = sorted((self.folder / "tests").rglob("test_*.py"))
        return [
            str(t.relative_to(self.folder)) for t in tests if found.search(t.read_text("utf-8"))
        ]

    def pytest(self, tests: Sequence[str]) -> tuple[int, list[str]]:
        """How many tests ran, and the names of those that failed."""
        done = self.python("-m", "pytest", "-q", "-rfE", "--no-header", "--tb=no", *tests)
        last = done.stdout.strip().rpartition("\n")[2]
        counts = re.findall(r"(\d+) (?:passed|failed|error)", last)
        if not counts:
            raise RuntimeError(f"pytest: {(done.stdout + done.stderr)[-2000:]}")
        failed = re.findall(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", done.stdout, re.MULTILINE)
        return sum(map(int, counts)), failed

    def outcome(self, tests: Sequence[str]) -> Outcome:
        """Run the tests, take the change back, and leave out what fails without it too."""
        self.git("add", "-A")
        changed = self.git("diff", "--cached", "--name-only").split("\n")[:-1]
        if not changed:
            raise ValueError("the drill has changed nothing")
        ran, failed = self.pytest(self.tests or tests)
        self.git("reset", "-q", "--hard")
        self.git("clean", "-q", "-d", "-x", "--force", "outputs")
        anyway = self.pytest(failed)[1] if failed else []
        return Outcome(changed, ran, [test for test in failed if test not in anyway])


def typo(copy: Copy) -> Outcome:
    """Change a word in many paragraphs of a notebook: no test may repeat its prose."""
    path = copy.folder / "notebooks/04_una.ipynb"
    notebook = json.loads(path.read_text(encoding="utf-8"))
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            cell["source"] = [
                line if re.search(r"[`$#<|\[]", line) else line.replace(" the ", " that ")
                for line in cell["source"]
            ]
    text = json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"
    path.write_text(text, encoding="utf-8")
    return copy.outcome(copy.naming("NOTEBOOKS", "ipynb"))


def negative(copy: Copy) -> Outcome:
    """Add a hard negative: one registered function, one recipe, one test."""
    copy.git("apply", str(Path(__file__).with_name("drills_negative.patch")))
    return copy.outcome(copy.naming("NEGATIVES", "recipes()", "swapped_nouns"))


def seed(copy: Copy) -> Outcome:
    """Add a seed to a grid, simulate its runs, collect them and write the pages anew."""
    grid = f"workflow/grids/{GRID}.yaml"
    copy.replace(grid, "seeds: [42, ", f"seeds: [{NEW_SEED}, 42, ")
    for command in (
        ("-c", "from tools import drills; drills.simulate()"),
        ("-m", "tools.table"),
        ("-m", "tools.results_pages"),
    ):
        if (done := copy.python(*command)).returncode:
            raise RuntimeError(f"{' '.join(command)}: {done.stderr[-2000:]}")
    return copy.outcome(copy.naming("RESULTS", "results.", "GRIDS", "grids."))


def simulate() -> None:
    """Commit a run of the new seed for each row of the grid, as if the grid had been trained."""
    random = np.random.default_rng(NEW_SEED)
    members = []
    found, steps = results.rows(GRID).query(f"seed == {OLD_SEED}"), results.steps(GRID)
    for _, row in found.drop(columns="notebook").iterrows():
        values = json.loads(row.dropna().to_json())
        values |= {"seed": NEW_SEED, "results_version": RESULTS_VERSION}
        values["data"] = json.loads(values["data"])
        values["run_id"] = f"{row['run_id'].rpartition('-s')[0]}-s{NEW_SEED}"
        place = values.pop("row"), values.pop("column", "")
        members.append((GRID, *place, values["run_id"]))
        machine = {name: values.pop(name) for name in OF_THE_MACHINE if name in values}
        scores = [name for name in values if "spearman" in name or "avg" in name]
        metrics = {name: values.pop(name) + random.normal(0, 0.3) for name in scores}
        folder = paths.outputs() / NOTEBOOK / values["run_id"]
        history = steps[steps["run_id"] == row["run_id"]].drop_duplicates("step")
        history = history.drop(columns=["row", "seed", "run_id"])
        files.write_text(folder / "history.csv", history.to_csv(index=False))
        versions = {"torch": values.pop("torch", None)}
        files.write_json(folder / "params.json", values)
        files.write_json(folder / "env.json", machine | {"versions": versions})
        files.write_json(folder / "metrics.json", metrics)
    finished.save_grid(members)


def temperature(copy: Copy) -> Outcome:
    """Teach with another temperature: one line of the mini recipes."""
    path = copy.folder / "lib/training/recipes.yaml"
    head, base, rest = path.read_text("utf-8").partition("\n  mini:\n")
    rest = rest.replace("temperature: 0.05", "temperature: 0.07", 1)
    path.write_text(head + base + rest, encoding="utf-8")
    return copy.outcome(["tests", "lib"])


DRILLS: dict[str, Callable[[Copy], Outcome]] = {
    drill.__name__: drill for drill in (typo, negative, seed, temperature)
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a line for each drill, and below it the names of the files and of the failing tests."""
    parser = argparse.ArgumentParser(prog="python -m tools.drills", description="Cost of a change.")
    parser.add_argument("drills", nargs="*", metavar="NAME", help=f"{', '.join(DRILLS)}")
    parser.add_argument("--tests", nargs="+", default=[], help="run these instead")
    chosen = parser.parse_args(arguments)
    if unknown := sorted(set(chosen.drills) - DRILLS.keys()):
        parser.error(f"no drill {unknown[0]!r}: choose among {', '.join(DRILLS)}")
    with tempfile.TemporaryDirectory() as folder:
        copy = Copy.of(Path(folder), chosen.tests)
        print(f"{'drill':<14}{'files':>6}{'tests':>7}{'failures':>10}")
        for name in chosen.drills or DRILLS:
            outcome = DRILLS[name](copy)
            print(f"{name:<14}{len(outcome.files):>6}{outcome.tests:>7}", end="")
            print(f"{len(outcome.failures):>10}", flush=True)
            for line in (*outcome.files, *outcome.failures):
                print(f"    {line}")


if __name__ == "__main__":
    main()
