"""The robustness benchmark: its instruments find planted faults, and find none where there is
none."""

import json
import os
import random
import time
from pathlib import Path

import pytest

from benchmarks.robustness import __main__ as report
from benchmarks.robustness import fuzz, kills, races
from benchmarks.robustness.common import Count
from lib.data import files

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")


def whole(folder: Path) -> None:
    for name in ("a", "b", "c"):
        files.write_text(folder / name, name * 100)


def appended(folder: Path) -> None:
    for name in ("a", "b"):
        with open(folder / name, "a") as f:
            f.write(name)
    files.write_text(folder / "done", "")


def littered(folder: Path) -> None:
    scratch = folder / f"scratch-{os.getpid()}"
    scratch.write_text("half")
    files.write_text(folder / "a", "a")
    scratch.unlink()


def jammed(folder: Path) -> None:
    (folder / "busy").mkdir()
    files.write_text(folder / "a", "a")
    (folder / "busy").rmdir()


@pytest.mark.parametrize(
    ("work", "fault"),
    [(whole, None), (appended, "wrong"), (littered, "leftovers"), (jammed, "stuck")],
)
def test_a_campaign_of_kills_finds_what_is_planted(work, fault, tmp_path, capfd) -> None:
    count = kills.campaign(kills.Work("planted", work), 8, random.Random(0), tmp_path)
    assert count.tries == 8 and count.kills > 3
    assert (count.defects == 0) if fault is None else getattr(count, fault)


def test_a_race_finds_a_lost_row(tmp_path) -> None:
    def add(folder: Path, number: int) -> None:
        path = folder / "table"
        rows = path.read_text() if path.exists() else ""
        files.write_text(path, rows + f"{number}\n")

    def careful(folder: Path, number: int) -> None:
        with files.locked(folder / "table"):
            add(folder, number)

    def careless(folder: Path, number: int) -> None:
        (folder / f"has-read-{number}").touch()
        while len(list(folder.glob("has-read-*"))) < 3:
            time.sleep(0.001)
        files.write_text(folder / "table", f"{number}\n")

    def complete(folder: Path) -> bool:
        return sorted((folder / "table").read_text().split()) == ["0", "1", "2"]

    assert races.run(races.Race("", 3, careless, complete), 2, tmp_path / "careless").wrong == 2
    assert races.run(races.Race("", 3, careful, complete), 2, tmp_path / "careful").defects == 0


def test_damaged_files_are_refused_or_read_and_a_silent_reader_is_found(
    tmp_path, monkeypatch
) -> None:
    counts = list(fuzz.fuzz_readers(12, random.Random(0), tmp_path))
    assert sum(count.refused for count in counts) > 50
    assert [count for count in counts if count.defects] == []
    silent = fuzz.Format("silent", "a.txt", "a\n" * 9, lambda path: path.read_bytes())
    loud = fuzz.Format("loud", "a.txt", "a\n" * 9, lambda path: {}["no sentence"])
    monkeypatch.setattr(fuzz, "formats", lambda: [silent, loud])
    found = list(fuzz.fuzz_readers(30, random.Random(0), tmp_path))
    assert found[0].wrong and found[1].tracebacks == 30


def test_the_table_adds_up() -> None:
    rows = [Count("a", tries=2, kills=1, wrong=1).row(), Count("b", tries=3, tracebacks=2).row()]
    content = {"made": {"a": "today"}, "rows": rows}
    lines = report.markdown(content).splitlines()
    assert lines[-1] == "| **all** | 5 | 1 | 0 | 0 | 1 | 0 | 0 | 2 |" and "* a: today" in lines


def test_a_campaign_run_alone_leaves_the_others_in_the_table(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(report, "TARGET", tmp_path)
    old = report.with_others(
        [Count("kill: a", tries=2).row(), Count("race: b", tries=3).row()], "yesterday"
    )
    (tmp_path / "robustness.json").write_text(json.dumps(old))
    new = report.with_others([Count("race: b", tries=4).row()], "today")
    assert new["made"] == {"kill": "yesterday", "race": "today"}
    assert [(row["campaign"], row["tries"]) for row in new["rows"]] == [
        ("kill: a", 2),
        ("race: b", 4),
    ]
