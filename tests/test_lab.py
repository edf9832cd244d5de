"""The reader's own copies of the notebooks, which `make lab` opens."""

import subprocess
from pathlib import Path

import pytest

from lib import paths
from tools import lab


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A folder with one notebook and one picture."""
    folder = tmp_path / "notebooks"
    (folder / "pictures").mkdir(parents=True)
    (folder / "pictures" / "one.svg").write_text("<svg/>")
    (folder / "ruff.toml").write_text("")
    (folder / "01_a.ipynb").write_text("first version")
    return folder


def test_work_is_never_written_to(source: Path, tmp_path: Path) -> None:
    my = tmp_path / "my"
    assert lab.copy(source, my) == []
    names = {str(path.relative_to(my)) for path in my.rglob("*.*") if ".copied" not in str(path)}
    assert names == {"01_a.ipynb", "pictures/one.svg"}

    (source / "01_a.ipynb").write_text("second version")
    assert lab.copy(source, my) == [] and (my / "01_a.ipynb").read_text() == "second version"

    (my / "01_a.ipynb").write_text("work")
    assert lab.copy(source, my) == []
    (source / "01_a.ipynb").write_text("third version")
    assert lab.copy(source, my) == ["01_a.ipynb"]
    assert (my / "01_a.ipynb").read_text() == "work"

    (my / "01_a.ipynb").rename(my / "mine.ipynb")
    assert lab.copy(source, my) == [] and (my / "01_a.ipynb").read_text() == "third version"


def test_git_ignores_the_copies_and_their_links_hold(tmp_path: Path) -> None:
    if (paths.ROOT / ".git").exists():
        ask = ["git", "check-ignore", "-q", "my/01_infonce.ipynb"]
        assert subprocess.run(ask, cwd=paths.ROOT, check=False).returncode == 0
    assert lab.COPIES.parent == paths.NOTEBOOKS.parent  # so `../book/…` leads to the same place
    lab.copy(target=tmp_path)
    kinds = ("**/*.ipynb", "pictures/*.svg")
    for file in (file for kind in kinds for file in paths.NOTEBOOKS.glob(kind)):
        if ".ipynb_checkpoints" not in file.parts:
            assert (tmp_path / file.relative_to(paths.NOTEBOOKS)).is_file()
