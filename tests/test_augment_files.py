"""Aligned files: resumable, complete or absent; and the command line of every method that needs no
model."""

import gzip
import os
import subprocess
import sys

import pytest
import torch
from tiny import tiny_sentences

from lib import data, paths
from lib.augment.output import write_aligned
from lib.commands.augment import arguments, change_of, main
from lib.data import read_aligned

LINES = [*tiny_sentences(25), "", "the last ."]


def upper(part: list[str], first: int) -> list[str]:
    return [f"{first + i} {line.upper()}" for i, line in enumerate(part)]


def visible(folder) -> list[str]:
    return sorted(p.name for p in folder.iterdir() if not p.name.startswith("."))


EXPECTED = [f"{i} {line.upper()}" if line else "" for i, line in enumerate(LINES)]


def test_edas_operation_of_a_line_does_not_depend_on_where_the_work_was_cut():
    words = str(paths.MINI / "thesaurus.tsv")
    options = arguments(["eda", "in.txt", "out.txt", "--rate", "0.3", "--synonyms", words])
    whole = change_of(options, LINES, torch.device("cpu"))(LINES, 0)
    parts = [
        change_of(options, LINES, torch.device("cpu"))(LINES[a:b], a)
        for a, b in ((0, 3), (3, 10), (10, None))
    ]
    assert [line for part in parts for line in part] == whole != LINES


def test_lines_stay_aligned_and_blank_lines_blank(tmp_path):
    write_aligned(LINES, tmp_path / "new" / "out.txt", lambda: upper, {}, chunk=4)
    assert read_aligned(tmp_path / "new" / "out.txt") == EXPECTED
    assert visible(tmp_path / "new") == ["out.txt"]


@pytest.mark.parametrize("tear", ["", "half a li", "7 A WHOLE LINE\nhalf"])
def test_an_interrupted_file_goes_on_where_it_stood(tmp_path, tear):
    seen = []

    def failing(part: list[str], first: int) -> list[str]:
        if first >= 8:
            raise KeyboardInterrupt
        return upper(part, first)

    def counting(part: list[str], first: int) -> list[str]:
        seen.append(first)
        return upper(part, first)

    with pytest.raises(KeyboardInterrupt):
        write_aligned(LINES, tmp_path / "out.txt", lambda: failing, {"seed": 1}, chunk=4)
    assert not (tmp_path / "out.txt").exists()
    with open(tmp_path / "out.txt.partial", "a") as f:
        f.write(tear)
    with pytest.raises(ValueError, match=r"another seed: delete it, name another"):
        write_aligned(LINES, tmp_path / "out.txt", lambda: counting, {"seed": 2}, chunk=4)
    with pytest.raises(ValueError, match="another lines, sha256"):
        write_aligned(LINES[:-1], tmp_path / "out.txt", lambda: counting, {"seed": 1}, chunk=4)
    write_aligned(LINES, tmp_path / "out.txt", lambda: counting, {"seed": 1}, chunk=4)
    assert seen == [8, 12, 16, 20, 24] and read_aligned(tmp_path / "out.txt") == EXPECTED
    assert visible(tmp_path) == ["out.txt"]


def test_another_number_of_lines_is_refused(tmp_path):
    with pytest.raises(ValueError, match="4 lines became 3 from line 5 on"):
        write_aligned(
            LINES,
            tmp_path / "o.txt",
            lambda: lambda p, f: upper(p, f)[: 3 if f else 4],
            {},
            chunk=4,
        )


def test_a_line_break_in_a_line_is_refused(tmp_path):
    with pytest.raises(ValueError, match="a line break inside a line, from line 1 on"):
        write_aligned(LINES, tmp_path / "o.txt", lambda: lambda p, f: ["a\nb"] * len(p), {})
    assert not (tmp_path / "o.txt").exists()


def test_what_is_finished_is_not_done_again(tmp_path):
    def never():
        raise AssertionError("nothing is to be done")

    out = tmp_path / "out.txt"
    assert write_aligned(LINES, out, lambda: upper, {"seed": 1})
    before = out.read_bytes()
    assert not write_aligned(LINES, out, never, {"seed": 1}) and out.read_bytes() == before
    with pytest.raises(
        FileExistsError, match=r"out\.txt is there already and made with another seed.*--force"
    ):
        write_aligned(LINES, out, never, {"seed": 2})
    out.write_bytes(before + b"edited\n")
    with pytest.raises(FileExistsError, match="not of this command's making"):
        write_aligned(LINES, out, never, {"seed": 1})
    assert write_aligned(LINES, out, lambda: upper, {"seed": 2}, force=True)
    assert out.read_bytes() == before


def test_force_drops_what_another_call_has_begun(tmp_path):
    def failing(part: list[str], first: int) -> list[str]:
        if first:
            raise KeyboardInterrupt
        return [f"other {line}" for line in part]

    with pytest.raises(KeyboardInterrupt):
        write_aligned(LINES, tmp_path / "out.txt", lambda: failing, {"seed": 1}, chunk=4)
    write_aligned(LINES, tmp_path / "out.txt", lambda: upper, {"seed": 2}, chunk=4, force=True)
    assert read_aligned(tmp_path / "out.txt") == EXPECTED and visible(tmp_path) == ["out.txt"]


def test_a_kill_between_the_last_two_steps_is_finished(tmp_path, monkeypatch):
    out = tmp_path / "out.txt"
    with monkeypatch.context() as patch:
        patch.setattr(os, "unlink", lambda *a, **k: (_ for _ in ()).throw(KeyboardInterrupt))
        patch.setattr(
            "pathlib.Path.unlink", lambda *a, **k: (_ for _ in ()).throw(KeyboardInterrupt)
        )
        with pytest.raises(KeyboardInterrupt):
            write_aligned(LINES, out, lambda: upper, {})
    assert visible(tmp_path) == ["out.txt", "out.txt.partial.json"]
    assert not write_aligned(LINES, out, lambda: upper, {})
    assert visible(tmp_path) == ["out.txt"] and read_aligned(out) == EXPECTED


def test_a_request_that_fails_at_once_is_in_nobodys_way(tmp_path):
    def failing(part: list[str], first: int) -> list[str]:
        raise ValueError("no such folder")

    out = tmp_path / "out.txt"
    with pytest.raises(ValueError, match="no such folder"):
        write_aligned(LINES, out, lambda: failing, {"seed": 1})
    assert visible(tmp_path) == []
    (tmp_path / "out.txt.partial").touch()
    assert write_aligned(LINES, out, lambda: upper, {"seed": 2}) and visible(tmp_path) == [
        "out.txt"
    ]


WRITES = """
import sys, time
from lib.augment.output import write_aligned
mark = sys.argv[2]
def change(part, first):
    time.sleep(0.02)
    return [f"{first + i} {mark}" for i in range(len(part))]
write_aligned([str(i) for i in range(60)], sys.argv[1], lambda: change, {"mark": mark}, chunk=2)
"""


@pytest.mark.parametrize("marks", [("a", "a", "a"), ("a", "b", "c")])
def test_several_processes_that_write_one_file(tmp_path, marks):
    """Each waits for the other; then the same call finds it finished, another one is refused."""
    out = tmp_path / "out.txt"
    command = [sys.executable, "-c", WRITES, str(out)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "cwd": paths.ROOT}
    running = [subprocess.Popen([*command, mark], **pipes) for mark in marks]
    errors = [process.communicate()[1] for process in running]
    written = {line.split()[1] for line in read_aligned(out)}
    assert len(written) == 1
    assert read_aligned(out) == [f"{i} {mark}" for i in range(60) for mark in written]
    refused = ["made with another mark" in error for error in errors]
    assert sum(refused) == sum(mark not in written for mark in marks)
    assert [process.returncode for process in running] == [int(no) for no in refused]
    assert visible(tmp_path) == ["out.txt"]


@pytest.mark.parametrize("name", ["in.txt", "./sub/../in.txt", "link.txt", "hard.txt"])
def test_the_text_itself_is_never_written_over(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.txt").write_text("a cat sat .\n")
    (tmp_path / "sub").mkdir()
    (tmp_path / "link.txt").symlink_to("in.txt")
    (tmp_path / "hard.txt").hardlink_to("in.txt")
    for force in ([], ["--force"]):
        assert main(["crop", "in.txt", name, "--quiet", *force]) == 2
        error = capsys.readouterr().err
        assert "is a file that is read (in.txt)" in error and error.count("\n") == 1
    assert (tmp_path / "in.txt").read_text() == "a cat sat .\n"


def test_what_the_method_reads_is_never_written_over(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.txt").write_text("a cat sat .\n")
    (tmp_path / "t.tsv").write_text("cat\tpet\n")
    assert main(["una", "in.txt", "t.tsv", "--fit-on", "t.tsv", "--force", "--quiet"]) == 2
    assert main(["eda", "in.txt", "t.tsv", "--synonyms", "t.tsv", "--force", "--quiet"]) == 2
    assert (tmp_path / "t.tsv").read_text() == "cat\tpet\n"
    assert capsys.readouterr().err.count("is a file that is read (t.tsv)") == 2


def test_a_file_of_somebody_else_stays_and_a_finished_one_is_told(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.txt").write_text("a cat sat .\n")
    (tmp_path / "o.txt").write_text("my notes\n")
    request = ["crop", "in.txt", "o.txt", "--quiet"]
    assert main(request) == 2 and "not of this command's making" in capsys.readouterr().err
    assert (tmp_path / "o.txt").read_text() == "my notes\n"
    assert main([*request, "--force"]) == 0
    before = (tmp_path / "o.txt").read_bytes()
    capsys.readouterr()
    assert main(request) == 0 and "o.txt is finished already" in capsys.readouterr().out
    assert main([*request, "--rate", "0.5"]) == 2 and "another rate" in capsys.readouterr().err
    assert (tmp_path / "o.txt").read_bytes() == before


def test_an_output_that_is_a_link_is_written_where_it_leads(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.txt").write_text("a cat sat .\n")
    (tmp_path / "o.txt").symlink_to("far/o.txt")
    assert main(["swap", "in.txt", "o.txt", "--quiet"]) == 0
    assert (tmp_path / "o.txt").is_symlink() and (tmp_path / "far" / "o.txt").is_file()


METHODS = (
    "una",
    "crop",
    "delete",
    "mask",
    "repeat",
    "punctuate",
    "edit",
    "prefix",
    "swap",
    "eda",
    "replace_synonyms",
    "insert_synonyms",
)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_on_the_command_line(method, tmp_path):
    lines = data.corpus("mini")[:60]
    lines[30] = ""
    with gzip.open(tmp_path / "in.txt.gz", "wt") as f:
        f.write("\n".join(lines) + "\n")
    options = (
        ["--synonyms", "data/mini/thesaurus.tsv"] if method == "eda" or "synonyms" in method else []
    )
    options += ["--radius", "30"] if method == "una" else []
    options += ["--rate", "0.4"] if method in ("mask", "delete", "crop") else []
    options += ["--rate", "0.8"] if method == "prefix" else []
    for name, seed in (("a", "1"), ("b", "1"), ("c", "2")):
        arguments = [
            method,
            str(tmp_path / "in.txt.gz"),
            str(tmp_path / name),
            "--seed",
            seed,
            "--quiet",
            *options,
        ]
        assert main(arguments) == 0
    a, b, c = (read_aligned(tmp_path / name) for name in "abc")
    assert (
        len(a) == 60
        and a == b != c
        and a[30] == ""
        and all(line for i, line in enumerate(a) if i != 30)
    )
    assert sum(x != y for x, y in zip(a, lines, strict=True)) > 20


def test_una_can_be_fitted_on_another_corpus(tmp_path):
    (tmp_path / "in.txt").write_text("a cat sat\n")
    (tmp_path / "corpus.txt").write_text("a dog ran\nthe bird flew\n")
    assert (
        main(
            [
                "una",
                str(tmp_path / "in.txt"),
                str(tmp_path / "o"),
                "--fit-on",
                str(tmp_path / "corpus.txt"),
                "--quiet",
            ]
        )
        == 0
    )
    (line,) = read_aligned(tmp_path / "o")
    assert line != "a cat sat" and len(line.split()) == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["crop", "none.txt", "o.txt"], "no file none.txt"),
        (["una", "blank.txt", "o.txt"], "holds no sentence"),
        (["una", "in.txt", "o.txt", "--radius", "0"], "radius must be at least 1"),
        (["delete", "in.txt", "o.txt", "--rate", "2"], "rate must be in [0, 1]"),
        (["eda", "in.txt", "o.txt", "--synonyms", "no.tsv"], "no thesaurus"),
        (
            ["paraphrase", "in.txt", "o.txt", "--model", "no/folder"],
            "cannot load the model 'no/folder'",
        ),
        (["back-translate", "in.txt", "o.txt", "--model", "x"], "2 step(s)"),
        (["paraphrase", "in.txt", "o.txt", "--beams", "0"], "--beams must be at least 1"),
        (["crop", "in.txt", "o.txt", "--seed", "-1"], "--seed must be at least 0"),
        (["una", "in.txt", "o.txt", "--workers", "0"], "--workers must be at least 1"),
        (["una", "in.txt", "o.txt", "--beta", "nan"], "beta must be in [0, 1e+09], got nan"),
        (["sda", "in.txt", "o.txt", "--share", "2"], "share must be in [0, 1]"),
        (["sda", "in.txt", "o.txt", "--model", "blank.txt"], "no spaCy pipeline"),
        (["crop", "in.txt", "o.txt.gz"], "o.txt.gz: plain text is written"),
        (["crop", "in.txt", "."], "is a folder"),
        (["crop", "in.txt", "in.txt/o.txt"], "in.txt"),
        (["crop", "loop.txt", "o.txt"], "no file loop.txt"),
        (["crop", "in.txt", "loop.txt"], "loop.txt"),
        (["crop", "utf16.txt", "o.txt"], "utf16.txt, line 1: NUL bytes or the mark of UTF-16"),
        (["crop", "cr.txt", "o.txt"], "cr.txt: carriage returns"),
        (["replace_synonyms", "in.txt", "o.txt", "--synonyms", ""], "no thesaurus"),
    ],
)
def test_wrong_requests_are_one_sentence(arguments, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.txt").write_text("a cat .\n")
    (tmp_path / "blank.txt").write_text("\n\n")
    (tmp_path / "utf16.txt").write_bytes("a cat .\n".encode("utf-16"))
    (tmp_path / "cr.txt").write_bytes(b"a cat .\ra dog .\r")
    (tmp_path / "loop.txt").symlink_to("loop.txt")
    assert main([*arguments, "--quiet"]) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1 and not (tmp_path / "o.txt").exists()


def test_another_thesaurus_under_the_same_name_is_noticed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.txt").write_text("a big dog\n" * 5)
    (tmp_path / "t.tsv").write_text("big\tlarge\n")
    request = ["replace_synonyms", "in.txt", "o.txt", "--synonyms", "t.tsv", "--quiet"]
    assert main(request) == 0 and main(request) == 0
    (tmp_path / "t.tsv").write_text("big\thuge\n")
    capsys.readouterr()
    assert main(request) == 2 and "made with another files of t.tsv" in capsys.readouterr().err
    assert read_aligned(tmp_path / "o.txt") == ["a large dog"] * 5


def test_an_interruption_is_one_sentence(tmp_path, monkeypatch, capsys):
    from lib.commands import augment as command

    (tmp_path / "in.txt").write_text("a cat .\n")
    monkeypatch.setattr(command, "augment", lambda *a: (_ for _ in ()).throw(KeyboardInterrupt))
    assert main(["crop", str(tmp_path / "in.txt"), str(tmp_path / "o.txt"), "--quiet"]) == 130
    assert "the same command goes on" in capsys.readouterr().err and visible(tmp_path) == ["in.txt"]


def test_without_wordnet_the_default_thesaurus_says_what_to_do(tmp_path, monkeypatch, capsys):
    from lib.augment import wordnet

    monkeypatch.setattr(wordnet, "nltk_path", [])
    monkeypatch.setattr(wordnet, "_DIRECTORIES", ())
    wordnet.wordnet.cache_clear()
    (tmp_path / "in.txt").write_text("a cat .\n")
    assert main(["eda", str(tmp_path / "in.txt"), str(tmp_path / "o.txt"), "--quiet"]) == 2
    error = capsys.readouterr().err
    assert "nltk.downloader wordnet" in error and "--synonyms data/mini/thesaurus.tsv" in error
    assert error.count("\n") == 1


def test_double_negation_with_nouns_is_asked_for_by_name(tmp_path) -> None:
    source = tmp_path / "in.txt"
    source.write_text("The dogs are big animals.\nShe reads books.\n", encoding="utf-8")
    written = {}
    for name, options in (("without", []), ("with", ["--nouns"])):
        call = [
            "sda",
            str(source),
            str(tmp_path / name),
            "--rule",
            "double_negation",
            "--quiet",
            *options,
        ]
        assert main(call) == 0
        written[name] = (tmp_path / name).read_text(encoding="utf-8")
    assert " no " in written["with"] and " no " not in written["without"].replace(
        "no ch", ""
    ).replace("no w", "")
