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
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
import pandas as pd
import torch

from assignments import guard
from lib import paths
from lib.data.files import is_foreign, write_text
from tools.markers import fill

FOLDER = paths.ROOT / "assignments"
_ANSWER = re.compile(r"^# %% (right|wrong): (.+?) \| (\w+)\s*$", re.MULTILINE)


@dataclass(frozen=True)
class Answer:
    """An answer to one function of an assignment: the code that takes its cell's place, and what it
    is."""

    right: bool
    what: str
    function: str
    code: str


def names() -> list[str]:
    """The assignments there are."""
    return sorted(path.name for path in (FOLDER / "source").iterdir() if path.is_dir())


def source(name: str) -> nbformat.NotebookNode:
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
    cells = zip(*(pieces[i::4] for i in range(4)), strict=True)
    written = [
        Answer(kind == "right", what, function, code.strip())
        for kind, what, function, code in cells
    ]
    known = {meta["grade_id"] for _, meta in _graded(source(name)) if meta["solution"]}
    if unknown := {answer.function for answer in written} - known:
        raise ValueError(
            f"{name}: no function {sorted(unknown)}; the assignment asks for {sorted(known)}"
        )
    return written


def _graded(notebook: nbformat.NotebookNode) -> Iterator[tuple[nbformat.NotebookNode, dict]]:
    for cell in notebook.cells:
        yield cell, cell.metadata["nbgrader"]


def points(
    notebook: nbformat.NotebookNode, codes: dict[str, str] | None = None, inspect: bool = True
) -> pd.DataFrame:
    """Execute an assignment's cells in this process and count, as nbgrader does: a test cell that
    raises gives nothing. The guard stands before students' code as in `nbgrader autograde`. The
    experiment, which no machine grades, is left out.

    Args:
        codes: code by function name, in place of the cell of that name.
        inspect: False runs students' cells without reading them first.

    Returns:
        One line a test cell: `test`, `points`, `of`, and `message` of what was raised.

    Raises:
        RuntimeError: a cell that is not the students' fails.
    """
    locked = {m["grade_id"]: c.source for c, m in _graded(notebook) if not m["solution"]}
    handed_in = filled(notebook, codes or {})
    prepared = guard.prepared(handed_in, locked, inspect)
    namespace: dict[str, object] = {"__name__": "assignment"}
    lines = []
    guard.begin()
    for cell, meta in _graded(prepared):
        if cell.cell_type != "code" or meta["grade_id"] == "experiment":
            continue
        message = ""
        torch.manual_seed(0), np.random.seed(0)
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                exec(compile(cell.source, f"<{meta['grade_id']}>", "exec"), namespace)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            message = f"{type(error).__name__}: {error}"
        if meta["grade"]:
            got = 0 if message else meta["points"]
            lines.append({"test": meta["grade_id"], "points": got, "of": meta["points"]})
            lines[-1]["message"] = message
        elif message and not meta["solution"]:
            raise RuntimeError(f"{meta['grade_id']}: {message}")
    guard.end()
    return pd.DataFrame(lines)


def refused(name: str, code: str, function: str) -> list[str]:
    """Why the guard does not run an answer to a function; empty if it does.

    Args:
        code: the cell in place of the function's own.
    """
    notebook = source(name)
    locked = {m["grade_id"]: c.source for c, m in _graded(notebook) if not m["solution"]}
    return guard.refused(filled(notebook, {function: code}), locked).get(function, [])


def caught(name: str) -> pd.DataFrame:
    """Every written answer to an assignment and what it gets: right, what, function, points, of,
    `failed` tests, `refused` (why the guard did not run it)."""
    notebook = source(name)
    lines = []
    for answer in answers(name):
        got = points(notebook, {answer.function: answer.code})
        failed = ", ".join(got.loc[got["points"] < got["of"], "test"])
        lines.append({"right": answer.right, "what": answer.what, "function": answer.function})
        lines[-1] |= {
            "points": int(got["points"].sum()),
            "of": int(got["of"].sum()),
            "failed": failed,
            "refused": "; ".join(refused(name, answer.code, answer.function)),
        }
    return pd.DataFrame(lines)


def table(results: dict[str, pd.DataFrame]) -> str:
    """Markdown: wrong answers × the tests that catch them.

    Args:
        results: `caught` by name of the assignment.
    """
    parts = []
    for name, tried in results.items():
        wrong, right = tried[~tried["right"]], tried[tried["right"]]
        lost = int((wrong["points"] < wrong["of"]).sum())
        full = int((right["points"] == right["of"]).sum())
        parts.append(
            f"**{name}**: {full} of {len(right)} right answers get all {tried['of'].iloc[0]}"
            " points; "
        )
        parts[-1] += (
            f"{lost} of {len(wrong)} wrong ones lose some.\n\n| wrong answer | function | points |"
            " caught by |\n"
        )
        parts[-1] += "|---|---|--:|---|\n" + "".join(
            f"| {w.what} | `{w.function}` | {w.points} | {_by(w)} |\n" for w in wrong.itertuples()
        )
    return "\n".join(parts)


def _by(answer: Any) -> str:
    """What catches an answer: the guard, with its first reason, or tests."""
    if answer.refused:
        return f"*not run:* {answer.refused.split('; ')[0]}"
    return answer.failed or "–"


def filled(notebook: nbformat.NotebookNode, codes: dict[str, str]) -> nbformat.NotebookNode:
    """A copy of a notebook with the code of some functions, by name, in their cells."""
    copy = nbformat.from_dict(json.loads(json.dumps(notebook)))
    for cell, meta in _graded(copy):
        if meta["solution"] and meta["grade_id"] in codes:
            cell.source = codes[meta["grade_id"]]
    return copy


def submissions(name: str) -> dict[str, dict[str, str]]:
    """Three students' answers to an assignment, by student: all right, one wrong answer a function,
    none."""
    students: dict[str, dict[str, str]] = {"ada": {}, "ben": {}, "cleo": {}}
    for cell, meta in _graded(source(name)):
        if meta["solution"]:
            own = re.split(r"\*\*(?:Rubric|For the teacher)\.\*\*", cell.source)[0].strip()
            students["ada"][meta["grade_id"]] = own
    for answer in answers(name):
        if answer.right:
            students["ada"][answer.function] = answer.code
        else:  # the first, an honest mistake
            students["ben"].setdefault(answer.function, answer.code)
    return students


def hold_course(
    folder: Path,
    assignments: list[str] | None = None,
    say: Callable[[str], None] = print,
    more: Mapping[str, dict[str, str]] | None = None,
) -> pd.DataFrame:
    """A course from release to feedback with nbgrader's own commands: three students hand in, and
    those of `more` (code by function name, by student), all are graded.

    `folder` gets `release/` (what students get), `submitted/`, `autograded/`, `feedback/` (what
    they get back) and `gradebook.db`; a made-up course that is there is begun anew.

    Returns:
        One line a student and assignment: `assignment`, `student`, `score`, `max_score` by
            nbgrader's gradebook.

    Raises:
        ValueError: no such assignment, or the folder holds something that this function did not
            make.
        RuntimeError: a command of nbgrader fails; the message is its own.
    """
    for name in assignments or names():
        source(name)
    mark = folder / ".made-up-course"
    if is_foreign(folder, mark.name):
        raise ValueError(
            f"{folder} is not empty and holds no made-up course: name another folder with --out"
        )
    for part in (
        "source",
        "release",
        "downloaded",
        "submitted",
        "autograded",
        "feedback",
        "gradebook.db",
        "__pycache__",
    ):
        path = folder / part
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    folder.mkdir(parents=True, exist_ok=True)
    mark.touch()
    for file in ("nbgrader_config.py", "guard.py"):
        shutil.copy(FOLDER / file, folder)
    for name in assignments or names():
        shutil.copytree(FOLDER / "source" / name, folder / "source" / name)
        _nbgrader(folder, "generate_assignment", name)
        released = nbformat.read(folder / "release" / name / f"{name}.ipynb", as_version=4)
        for student, codes in {**submissions(name), **(more or {})}.items():
            handed_in = folder / "downloaded" / name / "archive" / f"{student}__{name}.ipynb"
            write_text(handed_in, nbformat.writes(filled(released, codes)))
        for command in ("zip_collect", "autograde", "generate_feedback"):
            _nbgrader(folder, command, name)
        say(f"{name}: released, collected, graded, feedback written")
    return grades(folder)


def grades(folder: Path) -> pd.DataFrame:
    """What the gradebook of a course folder says, written into its `grades.csv` too.

    Returns:
        One line a student and assignment: `assignment`, `student`, `score`, `max_score`.

    Raises:
        RuntimeError: nbgrader fails; the message is its own.
    """
    _nbgrader(folder, "export", "--to", "grades.csv")
    return pd.read_csv(folder / "grades.csv").rename(columns={"student_id": "student"})[
        ["assignment", "student", "score", "max_score"]
    ]


def _nbgrader(folder: Path, command: str, *words: str) -> None:
    arguments = [sys.executable, "-m", "nbgrader", command, *words, "--log-level=WARN"]
    beside = os.pathsep.join(
        [str(Path(sys.executable).parent), os.environ.get("PATH", "")]
    )  # nbgrader calls alembic
    environment = {**os.environ, "PATH": beside}
    done = subprocess.run(
        arguments, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        said = done.stderr + done.stdout
        log = folder / f"nbgrader-{command}.log"
        write_text(log, said)
        raise RuntimeError(
            f"nbgrader {command} {' '.join(words)}: {_cause(said)}\nall of it: {log}"
        )


def _cause(said: str) -> str:
    """The errors in what nbgrader said, each with the lines that belong to it; its last words if it
    named none. Warnings (of changed checksums, for one) are harmless and left out."""
    blocks = re.split(r"^(?=\[.*?\b(?:DEBUG|INFO|WARNING|ERROR|CRITICAL)\])", said, flags=re.M)
    errors = [b.strip() for b in blocks if re.match(r"\[.*?\b(?:ERROR|CRITICAL)\]", b)]
    return "\n".join(error[-2000:] for error in errors)[:8000] or said[-2000:]


def main(arguments: list[str] | None = None) -> None:
    """`check` tries every written answer, `table` writes what came out into the teacher's page,
    `course` holds one."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.classroom", description="Check the assignments."
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("check", help="points of every written answer").add_argument(
        "names", nargs="*"
    )
    verbs.add_parser("table", help="write them into assignments/README.md")
    hold = verbs.add_parser(
        "course", help="release, collect, grade and give feedback, with three made-up students"
    )
    hold.add_argument("names", nargs="*")
    hold.add_argument("--out", type=Path, default=paths.outputs() / "classroom")
    options = parser.parse_args(arguments)
    try:
        if options.verb == "check":
            print(
                pd.concat([caught(name) for name in options.names or names()]).to_string(
                    index=False
                )
            )
        elif options.verb == "table":
            written = table({name: caught(name) for name in names()})
            fill(FOLDER / "README.md", "caught", written.removesuffix("\n"))
        else:
            grades = hold_course(options.out, options.names)
            print(grades.pivot(index="assignment", columns="student", values="score").to_string())
            print(
                f"for students: {options.out / 'release'}; what they get back:"
                f" {options.out / 'feedback'}"
            )
    except (ValueError, RuntimeError) as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
