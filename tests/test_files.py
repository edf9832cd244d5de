"""Files that are complete or not there."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tiny import python

from lib import paths
from lib.data import files


def left(folder):
    return sorted(p.name for p in folder.iterdir())


def test_a_file_appears_whole_or_not_at_all(tmp_path) -> None:
    path = tmp_path / "a.json"
    files.write_json(path, {"x": 1})
    with pytest.raises(TypeError):
        files.write_json(path, {"x": object()})
    with pytest.raises(RuntimeError), files.atomic_write(path) as temporary:
        temporary.write_text("half")
        raise RuntimeError
    assert path.read_text() == '{\n "x": 1\n}\n' and left(tmp_path) == ["a.json"]


def test_json_has_no_nan(tmp_path) -> None:
    with pytest.raises(ValueError, match="JSON"):
        files.write_json(tmp_path / "a.json", {"x": float("nan")})
    assert left(tmp_path) == []


def test_a_folder_takes_the_place_of_another(tmp_path) -> None:
    for content in ("old", "new"):
        with files.atomic_write(tmp_path / "best") as temporary:
            temporary.mkdir()
            (temporary / content).touch()
    assert left(tmp_path) == ["best"] and left(tmp_path / "best") == ["new"]


def test_what_a_killed_process_left_goes_with_the_next_writing(tmp_path) -> None:
    code = (
        "import os, signal, sys\nfrom lib.data import files\n"
        "with files.atomic_write(sys.argv[1]) as t:\n    t.mkdir()\n    (t / 'new').touch()\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    assert python("-c", code, tmp_path / "best").returncode == -9
    here = files.temporary_name(tmp_path / "a").name.removesuffix(f"-{os.getpid()}")
    foreign = [".a.tmp-elsewhere-1", f"{here}-9-999999999", f"{here}-notes"]
    for name in foreign:
        (tmp_path / name).touch()
    with files.atomic_write(tmp_path / "a") as own:
        own.touch()
        assert left(tmp_path) == sorted([own.name, *foreign])
        files.write_text(tmp_path / "b", "")
        assert own.exists()


def test_a_folder_that_takes_no_files_is_an_error_and_no_endless_wait() -> None:
    if not Path("/proc/self").is_dir():
        pytest.skip("no folder at hand in which even root cannot write")
    with pytest.raises(OSError, match="/proc"), files.locked("/proc/x.csv"):
        pass


def test_a_lock_lets_one_in_and_goes(tmp_path) -> None:
    path = tmp_path / "table.csv"
    code = (
        "import sys\nfrom lib.data import files\nwith files.locked(sys.argv[1], 0.1): print('in')\n"
    )
    with files.locked(path):
        outside = python("-c", code, path)
        assert "Timeout" in outside.stderr and outside.stdout == ""
    assert python("-c", code, path).stdout == "in\n" and left(tmp_path) == []


def test_no_count_is_lost_although_the_lock_is_removed_each_time(tmp_path) -> None:
    code = (
        "import sys, pathlib\nfrom lib.data import files\npath = pathlib.Path(sys.argv[1])\n"
        "for _ in range(100):\n"
        "    with files.locked(path):\n"
        "        path.write_text(str(int(path.read_text()) + 1))\n"
    )
    path = tmp_path / "count"
    path.write_text("0")
    ask = [sys.executable, "-c", code, str(path)]
    for process in [subprocess.Popen(ask, cwd=paths.ROOT) for _ in range(4)]:
        assert process.wait() == 0
    assert path.read_text() == "400" and left(tmp_path) == ["count"]
