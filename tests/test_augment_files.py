"""Aligned files: resumable, complete or absent; and the command line of every method that needs no
model."""

import gzip
import os
import subprocess
import sys

import pytest
from tiny import tiny_sentences

from lib import data, paths
from lib.augment import AUGMENTATIONS
from lib.augment.output import write_aligned
from lib.commands.augment import METHODS, arguments, change_of, key_of, main
from lib.data import files, read_aligned

LINES = [*tiny_sentences(25), "", "the last ."]


def upper(part: list[str], first: int) -> list[str]:
    return [f"{first + i} {line.upper()}" for i, line in enumerate(part)]


def visible(folder) -> list[str]:
    return sorted(p.name for p in folder.iterdir() if not p.name.startswith("."))


EXPECTED = [f"{i} {line.upper()}" if line else "" for i, line in enumerate(LINES)]


def test_edas_operation_of_a_line_does_not_depend_on_where_the_work_was_cut():
    words = str(paths.MINI / "thesaurus.tsv")
    options = arguments(["eda", "in.txt", "out.txt", "--rate", "0.3", "--synonyms", words])
    whole = change_of(options, LINES)(LINES, 0)
    parts = [change_of(options, LINES)(LINES[a:b], a) for a, b in ((0, 3), (3, 10), (10, None))]
    assert [line for part in parts for line in part] == whole != LINES


def test_lines_stay_aligned_and_blank_lines_blank(tmp_path):
    write_aligned(LINES, tmp_path / "new" / "out.txt", lambda: upper, "k", chunk=4)
    assert read_aligned(tmp_path / "new" / "out.txt") == EXPECTED
    assert visible(tmp_path / "new") == ["out.txt"]


@pytest.mark.parametrize("tear", ["", "half a li", "7 A WHOLE LINE\nhalf"])
def test_an_interrupted_file_goes_on_where_it_stood(tmp_path, tear):
    out, seen = tmp_path / "out.txt", []

    def failing(part: list[str], first: int) -> list[str]:
        if first >= 8:
            raise KeyboardInterrupt
        return upper(part, first)

    def counting(part: list[str], first: int) -> list[str]:
        seen.append(first)
        return upper(part, first)

    with pytest.raises(KeyboardInterrupt):
        write_aligned(LINES, out, lambda: failing, "one", chunk=4)
    assert visible(tmp_path) == ["out.txt.one.partial"]
    with open(tmp_path / "out.txt.one.partial", "a") as f:
        f.write(tear)
    write_aligned(LINES, out, lambda: counting, "one", chunk=4)
    assert seen == [8, 12, 16, 20, 24] and read_aligned(out) == EXPECTED
    assert visible(tmp_path) == ["out.txt"]
    write_aligned(LINES, out, lambda: counting, "two", chunk=4)
    assert seen[5:] == [0, 4, 8, 12, 16, 20, 24], "another key begins anew"


@pytest.mark.parametrize("change", [lambda p, f: p[:3], lambda p, f: ["a\nb"] * len(p)])
def test_a_method_that_splits_or_joins_lines_is_refused(tmp_path, change):
    with pytest.raises(ValueError, match="split or joined from line 1 on"):
        write_aligned(LINES, tmp_path / "o.txt", lambda: change, "k", chunk=4)
    assert visible(tmp_path) == []


KILLED = """
import os, sys
from lib.augment.output import write_aligned
def change(part, first):
    if first >= 6:
        os.kill(os.getpid(), 9)
    return [f"{first + i} x" for i in range(len(part))]
write_aligned([str(i) for i in range(60)], __import__("pathlib").Path(sys.argv[1]), lambda: change, "k", chunk=2)
"""


def test_a_killed_process_loses_no_finished_chunk(tmp_path):
    out = tmp_path / "out.txt"
    done = subprocess.run([sys.executable, "-c", KILLED, str(out)], cwd=paths.ROOT, check=False)
    assert done.returncode == -9 and not out.exists()
    seen = []

    def change(part: list[str], first: int) -> list[str]:
        seen.append(first)
        return [f"{first + i} x" for i in range(len(part))]

    write_aligned([str(i) for i in range(60)], out, lambda: change, "k", chunk=2)
    assert seen[0] == 6 and read_aligned(out) == [f"{i} x" for i in range(60)]


def test_two_processes_do_not_write_one_file(tmp_path):
    out, begun = tmp_path / "out.txt", tmp_path / "out.txt.k.partial"
    begun.touch()
    with files.locked(out), pytest.raises(OSError, match="another process is writing"):
        write_aligned(LINES, out, lambda: upper, "k")
    assert begun.exists(), "it belongs to the process that writes"


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
        assert (
            f"{name.removeprefix('./')} is a file that is read" in error and error.count("\n") == 1
        )
    assert (tmp_path / "in.txt").read_text() == "a cat sat .\n"


def test_what_the_method_reads_is_never_written_over(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.txt").write_text("a cat sat .\n")
    (tmp_path / "t.txt").write_text("cat\tpet\n")
    assert main(["una", "in.txt", "t.txt", "--fit-on", "t.txt", "--force", "--quiet"]) == 2
    assert main(["eda", "in.txt", "t.txt", "--synonyms", "t.txt", "--force", "--quiet"]) == 2
    assert (tmp_path / "t.txt").read_text() == "cat\tpet\n"
    assert capsys.readouterr().err.count("t.txt is a file that is read") == 2


def test_a_file_that_is_there_stays_without_force(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.txt").write_text("a cat sat .\n")
    (tmp_path / "o.txt").write_text("my notes\n")
    request = ["crop", "in.txt", "o.txt", "--quiet"]
    assert main(request) == 2 and "o.txt is there: name another" in capsys.readouterr().err
    assert (tmp_path / "o.txt").read_text() == "my notes\n"
    assert main([*request, "--force"]) == 0 and (tmp_path / "o.txt").read_text() != "my notes\n"


def test_an_output_that_is_a_link_is_written_where_it_leads(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.txt").write_text("a cat sat .\n")
    (tmp_path / "o.txt").symlink_to("far/o.txt")
    assert main(["swap", "in.txt", "o.txt", "--quiet"]) == 0
    assert (tmp_path / "o.txt").is_symlink() and (tmp_path / "far" / "o.txt").is_file()


@pytest.mark.parametrize("method", ["una", "eda", *AUGMENTATIONS])
def test_every_method_on_the_command_line(method, tmp_path):
    lines = data.corpus("mini")[:60]
    lines[30] = ""
    (tmp_path / "in.txt.gz").write_bytes(gzip.compress("\n".join([*lines, ""]).encode()))
    options = ["--radius", "30"] if method == "una" else ["--rate", "0.8"]
    if method == "eda" or "synonyms" in method:
        options += ["--synonyms", "data/mini/thesaurus.tsv"]
    for name, seed in (("a", "1"), ("b", "1"), ("c", "2")):
        files_ = [str(tmp_path / "in.txt.gz"), str(tmp_path / f"{name}.txt")]
        assert main([method, *files_, "--seed", seed, "--quiet", *options]) == 0
    a, b, c = (read_aligned(tmp_path / f"{name}.txt") for name in "abc")
    assert len(a) == 60 and a == b != c and a[30] == ""
    assert all(line for i, line in enumerate(a) if i != 30)
    assert sum(x != y for x, y in zip(a, lines, strict=True)) > 20


def test_una_can_be_fitted_on_another_corpus(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.txt").write_text("a cat sat\n")
    (tmp_path / "corpus.txt").write_text("a dog ran\nthe bird flew\n")
    assert main(["una", "in.txt", "o.txt", "--fit-on", "corpus.txt", "--quiet"]) == 0
    (line,) = read_aligned(tmp_path / "o.txt")
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
        (["crop", "in.txt", "o.txt", "--seed", "-1"], "seed must not be negative"),
        (["una", "in.txt", "o.txt", "--beta", "nan"], "beta must not be negative, got nan"),
        (["sda", "in.txt", "o.txt", "--share", "2"], "share must be in [0, 1]"),
        (["sda", "in.txt", "o.txt", "--model", "blank.txt"], "no spaCy pipeline"),
        (["crop", "in.txt", "o.txt.gz"], "o.txt.gz: plain text is written"),
        (["crop", "in.txt", "."], "name a .txt file"),
        (["crop", "in.txt", "in.txt/o.txt"], "in.txt"),
        (["crop", "loop.txt", "o.txt"], "no file loop.txt"),
        (["crop", "in.txt", "loop.txt"], "loop.txt"),
        (["crop", "utf16.txt", "o.txt"], "utf16.txt, line 1: NUL bytes or the mark of UTF-16"),
        (["sda", "cr.txt", "o.txt"], "cr.txt, line 2: a carriage return inside"),
        (["sda", "long.txt", "o.txt"], "long.txt, line 2: longer than 1,000,000 bytes"),
        (["replace_synonyms", "in.txt", "o.txt", "--synonyms", ""], "no thesaurus"),
    ],
)
def test_wrong_requests_are_one_sentence(arguments, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.txt").write_text("a cat .\n")
    (tmp_path / "blank.txt").write_text("\n\n")
    (tmp_path / "utf16.txt").write_bytes("a cat .\n".encode("utf-16"))
    (tmp_path / "cr.txt").write_bytes(b"a cat .\na dog .\ra bird .\n")
    (tmp_path / "long.txt").write_text("a cat .\n" + "a " * 500_001 + "\n")
    (tmp_path / "loop.txt").symlink_to("loop.txt")
    assert main([*arguments, "--quiet"]) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1 and not (tmp_path / "o.txt").exists()


def test_another_thesaurus_or_corpus_begins_anew(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.tsv").write_text("big\tlarge\n")
    (tmp_path / "in.txt").write_text("a big dog\n")
    options = arguments(["replace_synonyms", "in.txt", "o.txt", "--synonyms", "t.tsv"])
    before = key_of(options, LINES)
    assert before == key_of(options, LINES) != key_of(options, LINES[:-1])
    (tmp_path / "t.tsv").write_text("big\thuge\n")
    assert key_of(options, LINES) != before


def test_help_lists_the_methods_loads_little_and_fits_any_encoding():
    for verb, expected in (("augment", METHODS), ("data", ["fetch", "check"])):
        command = [sys.executable, "-m", "lib", verb, "--help"]
        done = subprocess.run(command, cwd=paths.ROOT, capture_output=True, text=True, check=True)
        assert all(f"    {name}" in done.stdout for name in expected)
    done = subprocess.run(
        [sys.executable, "-m", "lib", "augment", "una", "--help"],
        cwd=paths.ROOT,
        env={**os.environ, "PYTHONIOENCODING": "cp1252"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0 and "\\u03b2: mean share" in done.stdout  # redirected on Windows
    code = "import sys; from lib.commands import augment, small; print(*sys.modules)"
    command = [sys.executable, "-c", code]
    loaded = subprocess.run(command, cwd=paths.ROOT, capture_output=True, text=True, check=True)
    slow = {"torch", "spacy", "nltk", "transformers", "pandas", "sklearn"}
    assert not slow & set(loaded.stdout.split())


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


def test_double_negation_with_nouns_is_asked_for_by_name(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.txt").write_text("The dogs are big animals.\nShe reads books.\n")
    call = ["sda", "in.txt", "--rule", "double_negation", "--quiet"]
    assert main([*call, "plain.txt"]) == main([*call, "nouns.txt", "--nouns"]) == 0
    assert "no big animals" in (tmp_path / "nouns.txt").read_text()
    assert "no big animals" not in (tmp_path / "plain.txt").read_text()
