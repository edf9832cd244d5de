"""Aligned files: resumable, complete or absent; and the command line of every method that needs no model."""

import gzip

import pytest
from tiny import tiny_sentences

from lib import data
from workflow.augment import main
from workflow.files import read_aligned, write_aligned

LINES = [*tiny_sentences(25), "", "the last ."]


def upper(part: list[str], first: int) -> list[str]:
    return [f"{first + i} {line.upper()}" for i, line in enumerate(part)]


EXPECTED = [f"{i} {line.upper()}" if line else "" for i, line in enumerate(LINES)]


def test_lines_stay_aligned_and_blank_lines_blank(tmp_path):
    write_aligned(LINES, tmp_path / "new" / "out.txt", upper, {}, chunk=4)
    assert read_aligned(tmp_path / "new" / "out.txt") == EXPECTED
    assert [p.name for p in (tmp_path / "new").iterdir()] == ["out.txt"]


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
        write_aligned(LINES, tmp_path / "out.txt", failing, {"seed": 1}, chunk=4)
    assert not (tmp_path / "out.txt").exists()
    with open(tmp_path / "out.txt.partial", "a") as f:
        f.write(tear)
    with pytest.raises(ValueError, match=r"another seed: delete it, or name another output"):
        write_aligned(LINES, tmp_path / "out.txt", counting, {"seed": 2}, chunk=4)
    with pytest.raises(ValueError, match="another lines, sha256"):
        write_aligned(LINES[:-1], tmp_path / "out.txt", counting, {"seed": 1}, chunk=4)
    write_aligned(LINES, tmp_path / "out.txt", counting, {"seed": 1}, chunk=4)
    assert seen == [8, 12, 16, 20, 24] and read_aligned(tmp_path / "out.txt") == EXPECTED
    assert [p.name for p in tmp_path.iterdir()] == ["out.txt"]


def test_another_number_of_lines_is_refused(tmp_path):
    with pytest.raises(ValueError, match="4 lines became 3 from line 5 on"):
        write_aligned(LINES, tmp_path / "o.txt", lambda p, f: upper(p, f)[: 3 if f else 4], {}, chunk=4)


METHODS = ("una", "crop", "delete", "mask", "repeat", "punctuate", "swap", "eda", "replace_synonyms", "insert_synonyms")


@pytest.mark.parametrize("method", METHODS)
def test_every_method_on_the_command_line(method, tmp_path):
    lines = data.corpus("mini")[:60]
    lines[30] = ""
    with gzip.open(tmp_path / "in.txt.gz", "wt") as f:
        f.write("\n".join(lines) + "\n")
    options = ["--synonyms", "data/mini/thesaurus.tsv"] if method == "eda" or "synonyms" in method else []
    options += ["--radius", "30"] if method == "una" else []
    options += ["--rate", "0.4"] if method in ("mask", "delete", "crop") else []
    for name, seed in (("a", "1"), ("b", "1"), ("c", "2")):
        arguments = [method, str(tmp_path / "in.txt.gz"), str(tmp_path / name), "--seed", seed, "--quiet", *options]
        assert main(arguments) == 0
    a, b, c = (read_aligned(tmp_path / name) for name in "abc")
    assert len(a) == 60 and a == b != c and a[30] == "" and all(line for i, line in enumerate(a) if i != 30)
    assert sum(x != y for x, y in zip(a, lines, strict=True)) > 20


def test_una_can_be_fitted_on_another_corpus(tmp_path):
    (tmp_path / "in.txt").write_text("a cat sat\n")
    (tmp_path / "corpus.txt").write_text("a dog ran\nthe bird flew\n")
    assert (
        main(
            ["una", str(tmp_path / "in.txt"), str(tmp_path / "o"), "--fit-on", str(tmp_path / "corpus.txt"), "--quiet"]
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
        (["paraphrase", "in.txt", "o.txt", "--model", "no/folder"], "cannot load 'no/folder'"),
        (["back-translate", "in.txt", "o.txt", "--model", "x"], "2 step(s)"),
    ],
)
def test_wrong_requests_are_one_sentence(arguments, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.txt").write_text("a cat .\n")
    (tmp_path / "blank.txt").write_text("\n\n")
    assert main([*arguments, "--quiet"]) == 1
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1 and not (tmp_path / "o.txt").exists()


def test_another_thesaurus_under_the_same_name_is_noticed(tmp_path, monkeypatch):
    from workflow import augment as command

    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.txt").write_text("a big dog\n" * 5)
    (tmp_path / "t.tsv").write_text("big\tlarge\n")
    request = ["replace_synonyms", "in.txt", "o.txt", "--synonyms", "t.tsv", "--quiet"]
    with monkeypatch.context() as patch:
        patch.setattr(command, "augment", lambda *a: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            main(request)
    (tmp_path / "t.tsv").write_text("big\thuge\n")
    assert main(request) == 1 and not (tmp_path / "o.txt").exists()
