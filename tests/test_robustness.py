"""The robustness benchmark: its instruments find planted faults, and find none where there is
none."""

import os
import random
from pathlib import Path

import pytest

from benchmarks.robustness import fuzz, kills
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


@pytest.mark.parametrize(("work", "fault"), [(whole, None), (appended, "wrong")])
def test_a_campaign_of_kills_finds_what_is_planted(work, fault, tmp_path, capfd) -> None:
    count = kills.campaign(kills.Work("planted", work), 8, random.Random(0), tmp_path)
    assert count.tries == 8 and count.kills > 3
    assert (count.defects == 0) if fault is None else getattr(count, fault)


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
