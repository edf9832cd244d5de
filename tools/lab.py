"""JupyterLab on copies of the notebooks that are the reader's own, in `my/`, which git ignores.

So `git pull` never meets a reader's work. JupyterLab comes without its pop-up of news and without
nbgrader's buttons, which are for teachers (`tools/jupyter/`).

Command line: `python -m tools.lab` (`make lab`), with any options of `jupyter lab`.
"""

import filecmp
import os
import shutil
import sys
from pathlib import Path

from lib import paths

COPIES = paths.ROOT / "my"
CONFIGURATION = Path(__file__).parent / "jupyter"


def copy(source: Path = paths.NOTEBOOKS, target: Path = COPIES) -> list[str]:
    """Copy notebooks and pictures that are new; the names of those that a reader's copy lacks.

    A copy in which the reader has worked is never written to. Of each file the version that was
    copied is kept in `.copied/`: by it one can tell a reader's work from an old version.
    """
    behind = []
    for file in sorted(source.rglob("*")):
        name = file.relative_to(source)
        if file.suffix not in (".ipynb", ".svg") or ".ipynb_checkpoints" in name.parts:
            continue
        own, copied = target / name, target / ".copied" / name
        if own.exists() and not (copied.exists() and filecmp.cmp(own, copied, shallow=False)):
            if not (copied.exists() and filecmp.cmp(file, copied, shallow=False)):
                behind.append(str(name))
            continue
        for place in (copied, own):
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, place)
    return behind


def main() -> None:
    """Make the copies and start JupyterLab in them."""
    for name in copy():
        print(f"my/{name} is yours and stays; the course has a newer one: rename yours to get it")
    known = os.environ.get("JUPYTER_CONFIG_PATH", "")
    os.environ["JUPYTER_CONFIG_PATH"] = f"{CONFIGURATION}{os.pathsep}{known}".strip(os.pathsep)
    from jupyterlab.labapp import LabApp

    folders = [f"--ServerApp.root_dir={paths.ROOT}", "--FileContentsManager.preferred_dir=my"]
    LabApp.launch_instance([*folders, *sys.argv[1:]])


if __name__ == "__main__":
    main()
