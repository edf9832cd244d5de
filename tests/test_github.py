"""What only other machines run: the files parse."""

from pathlib import Path

import pytest
import yaml

from lib import paths

FILES = [
    *sorted((paths.ROOT / ".github").glob("*/*.yml")),
    paths.ROOT / ".pre-commit-config.yaml",
    paths.ROOT / "binder" / "environment.yml",
    *sorted((paths.ROOT / "workflow" / "profiles").glob("*/config.yaml")),
]


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_every_file_parses(path: Path) -> None:
    assert isinstance(yaml.safe_load(path.read_text(encoding="utf-8")), dict)
