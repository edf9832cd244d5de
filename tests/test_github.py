"""What only other machines run: the files parse, and no tracked file is too large for GitHub."""

from pathlib import Path

import pytest
import yaml

from lib import paths
from tools import sizes

FILES = [
    *sorted((paths.ROOT / ".github").glob("*/*.yml")),
    paths.ROOT / ".pre-commit-config.yaml",
    paths.ROOT / "binder" / "environment.yml",
    *sorted((paths.ROOT / "workflow" / "profiles").glob("*/config.yaml")),
]


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_every_file_parses(path: Path) -> None:
    assert isinstance(yaml.safe_load(path.read_text(encoding="utf-8")), dict)


def test_a_file_that_is_too_large_is_named(tmp_path: Path, capsys) -> None:
    small, large = tmp_path / "small", tmp_path / "large"
    for path, size in ((small, sizes.LIMIT), (large, sizes.LIMIT + 1)):
        with path.open("wb") as file:
            file.truncate(size)
    assert sizes.main([str(small), str(tmp_path / "gone")]) == 0
    assert sizes.main([str(small), str(large)]) == 1
    assert capsys.readouterr().err == f"{large}: 48.0 MiB, more than 48\n"


def test_no_tracked_file_is_too_large() -> None:
    if not (paths.ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    assert sizes.main([]) == 0
