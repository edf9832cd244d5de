"""Two to four processes at once on one folder, one results file, one output file: nothing lost,
nothing wrong."""

import json
import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pandas as pd
from tqdm import tqdm

from benchmarks.robustness import kills
from benchmarks.robustness.common import Count, child, ended, picture
from lib import runs
from lib.data import files
from lib.runs import finished


@dataclass(frozen=True)
class Race:
    """What several processes do at once, and whether the folder is right afterwards.

    Attributes:
        do: (folder, number of the process).
        right: of the folder.
        may_refuse: a process may end with a sentence and a status other than 0.
    """

    name: str
    processes: int
    do: Callable[[Path, int], object]
    right: Callable[[Path], bool]
    may_refuse: bool = False


def races(material: Path, expected: dict[str, dict[str, str]]) -> list[Race]:
    """All races; `expected` holds the pictures of undisturbed work."""

    def same(name: str) -> Callable[[Path], bool]:
        return lambda folder: picture(folder) == expected[name]

    return [
        Race(
            "one run", 3, lambda f, _: kills.train(f, material, {"method": "simcse"}), same("train")
        ),
        Race("one results file", 4, lambda f, n: one_row(f, n), all_rows),
        Race("one output, two same", 2, lambda f, _: crop(f, material, "0"), same("crop"), True),
        Race(
            "one output, two different",
            2,
            lambda f, n: crop(f, material, str(n)),
            one_of_two(expected),
            True,
        ),
        Race("one export", 2, lambda f, _: kills.exported(f, material), same("export"), True),
        Race("one cache of parses", 2, lambda f, _: kills.parsed(f, material), same("parse")),
        Race("one JSON file", 4, many_writes, whole_json),
    ]


def crop(folder: Path, material: Path, seed: str) -> None:
    """Crop a file of 45,000 lines, which takes several chunks."""
    from lib.commands import verbs

    source = str(material / "long.txt")
    if status := verbs.augment(["crop", source, str(folder / "out.txt"), "--seed", seed]):
        raise SystemExit(status)


def one_of_two(expected: dict[str, dict[str, str]]) -> Callable[[Path], bool]:
    """The output is the whole work of one of the two."""
    return lambda folder: picture(folder) in (expected["crop"], expected["crop 1"])


def one_row(folder: Path, number: int) -> None:
    """A finished run in an outputs folder of its own, collected into the table that all share."""
    os.environ["CSE_OUTPUTS"] = str(folder / f"outputs-{number}")
    run = runs.Run(
        "race", "simcse", number, {"profile": "small", "max_steps": 1, "machine": "x"}, {}
    )
    run.start()
    run.finish({"stsb_dev_spearman": float(number)})
    finished.save("race", folder / f"outputs-{number}", folder)


def all_rows(folder: Path) -> bool:
    """The table has one row of every process."""
    return sorted(pd.read_csv(folder / "race.csv")["seed"]) == [0, 1, 2, 3]


def many_writes(folder: Path, number: int) -> None:
    """Fifty times the same file."""
    for _ in range(50):
        files.write_json(folder / "a.json", {"who": number, "what": [number] * 500})


def whole_json(folder: Path) -> bool:
    """One file, whole."""
    content = json.loads((folder / "a.json").read_text())
    return len(list(folder.iterdir())) == 1 and set(content["what"]) == {content["who"]}


def run(race: Race, tries: int, scratch: Path) -> Count:
    """Start the processes together, `tries` times."""
    count = Count(f"race: {race.name}, {race.processes} processes")
    for number in range(tries):
        folder = scratch / f"race-{number}"
        folder.mkdir(parents=True)
        pids = [child(partial(race.do, folder, n)) for n in range(race.processes)]
        states = [ended(pid) for pid in pids]
        count.tries += 1
        count.refused += states.count("failed") if race.may_refuse else 0
        bad = (
            {"stuck", "killed"}
            if race.may_refuse and "ok" in states
            else {"stuck", "killed", "failed"}
        )
        count.stuck += bool(bad & set(states))
        count.wrong += not race.right(folder)
        shutil.rmtree(folder)
    return count


def main(tries: int) -> list[Count]:
    """Every race; `tries` of each."""
    with tempfile.TemporaryDirectory(prefix="robustness-") as base:
        material = kills.make_material(Path(base) / "material")
        kills.finish_material(material)
        text = (material / "text.txt").read_text(encoding="utf-8")
        (material / "long.txt").write_text(text * 281, encoding="utf-8")
        alone: dict[str, Callable[[Path], object]] = {
            "train": lambda folder: kills.train(folder, material, {"method": "simcse"}),
            "crop": lambda folder: crop(folder, material, "0"),
            "crop 1": lambda folder: crop(folder, material, "1"),
            "export": lambda folder: kills.exported(folder, material),
            "parse": lambda folder: kills.parsed(folder, material),
        }
        expected = {}
        for name, do in alone.items():
            folder = Path(base) / f"alone-{name}"
            folder.mkdir()
            if ended(child(lambda do=do, folder=folder: do(folder))) != "ok":
                raise RuntimeError(f"{name} fails alone")
            expected[name] = picture(folder)
        scratch = Path(base) / "races"
        return [run(race, tries, scratch) for race in tqdm(races(material, expected), desc="races")]
