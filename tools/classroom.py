"""Assignments: are they right, and does their grading tell right answers from wrong ones?

Each assignment is a notebook `assignments/source/<name>/<name>.ipynb` in the format of nbgrader.
Answers to its functions in `assignments/answers/<name>.py`, cells like
`# %% wrong: no normalisation | cosine_matrix`, show what its tests catch. Command line:
`python -m tools.classroom course` (`make assignments`) holds a whole course with nbgrader, extra
`classroom`; `check` and `table` need it not.
"""

import argparse
import contextlib
import io
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import NamedTuple

import nbformat
import numpy as np
import pandas as pd
import torch
from nbformat import NotebookNode

from assignments import guard
from lib import paths
from tools.markers import fill

FOLDER = paths.ROOT / "assignments"
_ANSWER = re.compile(r"^# %% (right|wrong): (.+?) \| (\w+)\s*$", re.MULTILINE)
_MADE_UP = ".made-up-course"  # marks a folder that may be emptied


class Answer(NamedTuple):
    """A written answer to one function: whether it is right, what it is, the function's name, and
    the code that takes the place of its cell."""

    right: bool
    what: str
    function: str
    code: str


def names() -> list[str]:
    """The assignments there are."""
    return sorted(path.name for path in (FOLDER / "source").iterdir() if path.is_dir())


def source(name: str) -> NotebookNode:
    """An assignment with its solutions and hidden tests.

    Raises:
        ValueError: no such assignment.
    """
    if name not in names():
        raise ValueError(f"no assignment {name!r}: there are {', '.join(names())}")
    return nbformat.read(FOLDER / "source" / name / f"{name}.ipynb", as_version=4)


def answers(name: str) -> list[Answer]:
    """The written answers to an assignment's functions.

    Raises:
        ValueError: an answer is to a function that the assignment does not ask for.
    """
    pieces = _ANSWER.split((FOLDER / "answers" / f"{name}.py").read_text(encoding="utf-8"))[1:]
    written = [
        Answer(pieces[i] == "right", pieces[i + 1], pieces[i + 2], pieces[i + 3].strip())
        for i in range(0, len(pieces), 4)
    ]
    known = {meta(cell)["grade_id"] for cell in source(name).cells if meta(cell)["solution"]}
    if unknown := {answer.function for answer in written} - known:
        raise ValueError(f"{name}: no function {sorted(unknown)}; it asks for {sorted(known)}")
    return written


def meta(cell: NotebookNode) -> dict:
    """What nbgrader knows of a cell."""
    return cell.metadata["nbgrader"]


def locked(notebook: NotebookNode) -> dict[str, str]:
    """Source by name of the cells that are the teacher's."""
    return {meta(c)["grade_id"]: c.source for c in notebook.cells if not meta(c)["solution"]}


def filled(notebook: NotebookNode, codes: Mapping[str, str]) -> NotebookNode:
    """A copy of a notebook with other content in some of the cells for answers, by name."""
    copy = deepcopy(notebook)
    for cell in copy.cells:
        if meta(cell)["solution"]:
            cell.source = codes.get(meta(cell)["grade_id"], cell.source)
    return copy


def points(notebook: NotebookNode, codes: Mapping[str, str] | None = None) -> pd.DataFrame:
    """Execute an assignment's cells in this process and count, as nbgrader does: a test cell that
    raises gives nothing. The guard reads students' cells first. The experiment is left out.

    Args:
        codes: code by function name, in place of the cell of that name.

    Returns:
        One line a test cell: `test`, `points`, `of`, and `message` of what was raised.

    Raises:
        RuntimeError: a cell that is not the students' fails.
    """
    namespace: dict[str, object] = {"__name__": "assignment"}
    lines = []
    for cell in guard.prepared(filled(notebook, codes or {}), locked(notebook)).cells:
        name, message = meta(cell)["grade_id"], ""
        if cell.cell_type != "code" or name == "experiment":
            continue
        torch.manual_seed(0), np.random.seed(0)
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                exec(compile(cell.source, f"<{name}>", "exec"), namespace)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # SystemExit, too
            message = f"{type(error).__name__}: {error}"
        if meta(cell)["grade"]:
            of = meta(cell)["points"]
            got = 0 if message else of
            lines.append({"test": name, "points": got, "of": of, "message": message})
        elif message and not meta(cell)["solution"]:
            raise RuntimeError(f"{name}: {message}")
    return pd.DataFrame(lines)


def caught(name: str) -> pd.DataFrame:
    """Every written answer to an assignment and what it gets: right, what, function, points, of,
    `failed` tests, `refused` (why the guard did not run it)."""
    notebook = source(name)
    lines = []
    for answer in answers(name):
        own = {answer.function: answer.code}
        got = points(notebook, own)
        why = guard.refused(filled(notebook, own), locked(notebook)).get(answer.function, [])
        line = {"right": answer.right, "what": answer.what, "function": answer.function}
        line |= {"points": int(got["points"].sum()), "of": int(got["of"].sum())}
        line["failed"] = ", ".join(got.loc[got["points"] < got["of"], "test"])
        lines.append(line | {"refused": "; ".join(why)})
    return pd.DataFrame(lines)


def table(results: Mapping[str, pd.DataFrame]) -> str:
    """Markdown, a line a function: its wrong answers, each with the points that are left.

    Args:
        results: `caught` by name of the assignment.
    """
    lines = [
        "| assignment | function | wrong answers, and the points that each still gets |",
        "|---|---|---|",
    ]
    for name, tried in results.items():
        wrong = tried[~tried["right"]]
        for function, group in wrong.groupby("function", sort=False):
            run = [f"{w.what} ({w.points})" for w in group.itertuples() if not w.refused]
            parts = [" · ".join(run)] if run else []
            if stopped := [w.what for w in group.itertuples() if w.refused]:
                parts.append(f"*not run:* {' · '.join(stopped)}")
            of = f"{name[:2]}, of {tried['of'].iloc[0]}"
            lines.append(f"| {of} | `{function}` | {'; '.join(parts)} |")
    return "\n".join(lines)


def submissions(name: str) -> dict[str, dict[str, str]]:
    """Three students' answers to an assignment, by student: all right, one wrong answer a function,
    none."""
    ada: dict[str, str] = {}
    ben: dict[str, str] = {}
    for cell in source(name).cells:
        if meta(cell)["solution"]:
            own = re.split(r"\*\*For the teacher\.\*\*", cell.source)[0].strip()
            ada[meta(cell)["grade_id"]] = own
    for answer in answers(name):
        if answer.right:
            ada[answer.function] = answer.code
        else:  # the first, an honest mistake
            ben.setdefault(answer.function, answer.code)
    return {"ada": ada, "ben": ben, "cleo": {}}


def hold_course(
    folder: Path,
    assignments: list[str] | None = None,
    more: Mapping[str, Mapping[str, str]] | None = None,
) -> pd.DataFrame:
    """A course from release to feedback with nbgrader's own commands: three students hand in, and
    those of `more` (code by function name, by student), all are graded.

    `folder` gets `release/` (what students get), `submitted/`, `autograded/`, `feedback/` (what
    they get back) and `gradebook.db`; a made-up course that is there is begun anew.

    Returns:
        `grades` of the course.

    Raises:
        ValueError: no such assignment, or the folder holds something that this function did not
            make.
        RuntimeError: a command of nbgrader fails; the message is its own.
    """
    notebooks = {name: source(name) for name in assignments or names()}
    if folder.is_dir() and any(folder.iterdir()) and not (folder / _MADE_UP).exists():
        raise ValueError(f"{folder} is not empty and holds no made-up course: name another folder")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / _MADE_UP).touch()
    for file in ("nbgrader_config.py", "guard.py"):
        shutil.copy(FOLDER / file, folder)
    for name in notebooks:
        shutil.copytree(FOLDER / "source" / name, folder / "source" / name)
        nbgrader(folder, "generate_assignment", name)
        released = nbformat.read(folder / "release" / name / f"{name}.ipynb", as_version=4)
        archive = folder / "downloaded" / name / "archive"
        archive.mkdir(parents=True)
        for student, codes in {**submissions(name), **(more or {})}.items():
            nbformat.write(filled(released, codes), archive / f"{student}__{name}.ipynb")
        for command in ("zip_collect", "autograde", "generate_feedback"):
            nbgrader(folder, command, name)
    return grades(folder)


def grades(folder: Path) -> pd.DataFrame:
    """What `nbgrader export` writes into `grades.csv` of a course folder: one line a student and
    assignment, with `assignment`, `student`, `score`, `max_score`, `points_awaiting_a_person`,
    `state`."""
    nbgrader(folder, "export", "--to", "grades.csv")
    found = pd.read_csv(folder / "grades.csv").rename(columns={"student_id": "student"})
    return found[
        ["assignment", "student", "score", "max_score", "points_awaiting_a_person", "state"]
    ]


def nbgrader(folder: Path, command: str, *words: str) -> None:
    """Run a command of nbgrader in a course folder.

    Raises:
        RuntimeError: it fails; the message has its errors (warnings are harmless and left out) and
            names the file with all that it said.
    """
    arguments = [sys.executable, "-m", "nbgrader", command, *words, "--log-level=WARN"]
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    environment = {**os.environ, "PATH": path}  # nbgrader calls alembic
    done = subprocess.run(arguments, cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode:
        said = done.stderr + done.stdout
        log = folder / f"nbgrader-{command}.log"
        log.write_text(said, encoding="utf-8")
        blocks = re.split(r"^(?=\[.*?\b(?:DEBUG|INFO|WARNING|ERROR|CRITICAL)\])", said, flags=re.M)
        errors = [b.strip() for b in blocks if re.match(r"\[.*?\b(?:ERROR|CRITICAL)\]", b)]
        cause = "\n".join(error[-2000:] for error in errors)[:8000] or said[-2000:]
        raise RuntimeError(f"nbgrader {command} {' '.join(words)}: {cause}\nall of it: {log}")


def main(arguments: list[str] | None = None) -> None:
    """`check` tries every written answer, `table` writes what came out into the teacher's page,
    `course` holds one."""
    parser = argparse.ArgumentParser(prog="python -m tools.classroom", description=__doc__)
    parser.add_argument("verb", choices=["check", "table", "course"])
    parser.add_argument("names", nargs="*", help="assignments; without a name all")
    parser.add_argument("--out", type=Path, default=paths.outputs() / "classroom")
    options = parser.parse_args(arguments)
    chosen = options.names or names()
    try:
        if options.verb == "check":
            print(pd.concat([caught(name) for name in chosen]).to_string(index=False))
        elif options.verb == "table":
            fill(FOLDER / "README.md", "caught", table({name: caught(name) for name in names()}))
        else:
            print(hold_course(options.out, chosen).to_string(index=False))
            print(
                f"for students: {options.out}/release; what they get back: {options.out}/feedback"
            )
    except (ValueError, RuntimeError) as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
