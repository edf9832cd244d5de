"""`tools.size` finds the floors of a package."""

from graphlib import CycleError

import pytest

from tools import size


def package(folder, files):
    """A package of these files, each with its text."""
    for name, text in files.items():
        (folder / "pack" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "pack" / name).write_text(text)
    return folder / "pack"


def test_floors_are_the_longest_chain_of_rooms(tmp_path):
    files = {
        "paths.py": "import os",
        "data/read.py": "from pack import paths",
        "data/sets.py": "from pack.data import read",
        "train.py": "def f():\n    from pack.data.sets import x",
        "plots.py": "import pack.paths",
    }
    found = size.floors(package(tmp_path, files))
    assert found == [{"paths"}, {"data", "plots"}, {"train"}]


def test_two_rooms_that_import_each_other_have_no_floor(tmp_path):
    files = {"a.py": "from pack.b import x", "b.py": "from pack import a"}
    with pytest.raises(CycleError):
        size.floors(package(tmp_path, files))
