"""What must not be committed."""

import re
import subprocess
from pathlib import Path

import pytest

from lib import paths

MACHINE_PATH = re.compile(
    r"(?<![\w.])/(?:work|root|home/\w+|Users/\w+|tmp/\w+)/[\w.-]|[A-Z]:\\+Users"
)
TEXT = {"", ".py", ".md", ".toml", ".txt", ".yml", ".yaml", ".cff", ".ipynb", ".json", ".tsv"}
TEXT |= {".csv", ".cfg"}


def relative(path: Path) -> str:
    return path.relative_to(paths.ROOT).as_posix()


def checkout() -> list[Path]:
    """Files that are, or would be, committed."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=paths.ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("not a git checkout")
    return [
        paths.ROOT / name
        for name in listed.stdout.split("\0")
        if name and (paths.ROOT / name).is_file()
    ]


def test_no_path_of_a_machine_in_any_text() -> None:
    found = []
    for path in checkout():
        if path.suffix in TEXT and path.stat().st_size < 5_000_000:
            try:
                text = path.read_text(encoding="utf-8")
            except UnicodeDecodeError:
                continue
            found += [f"{relative(path)}: {match.group()}" for match in MACHINE_PATH.finditer(text)]
    assert found == []


def test_no_file_is_too_large_for_github() -> None:
    assert [relative(path) for path in checkout() if path.stat().st_size > 48 * 2**20] == []


def test_outputs_and_fetched_data_are_not_committed() -> None:
    names = [relative(path) for path in checkout()]
    allowed = {"outputs/.gitkeep"}
    assert [
        name for name in names if name.startswith(("outputs/", ".venv/")) and name not in allowed
    ] == []
    assert [
        name for name in names if name.startswith(("data/senteval", "data/wiki1m", "data/corpus/"))
    ] == []
