"""The command line of every augmentation of text: aligned files, complete or absent."""

import gzip

import pytest
from tiny import python

from lib import data, paths
from lib.augment import AUGMENTATIONS, augment, edits
from lib.commands import augment as command
from lib.commands.augment import EDA, main
from lib.data import read_aligned


def test_edas_operation_of_a_line_follows_from_its_number(tmp_path):
    lines, words = data.corpus("mini")[:20], str(paths.MINI / "thesaurus.tsv")
    (tmp_path / "in.txt").write_text("\n".join(lines) + "\n")
    files = [str(tmp_path / "in.txt"), str(tmp_path / "new" / "out.txt")]
    assert main(["eda", *files, "--rate", "0.3", "--synonyms", words]) == 0
    expected = [augment(EDA[i % 4], [x], 0.3, 0, words, i)[0] for i, x in enumerate(lines)]
    assert read_aligned(tmp_path / "new" / "out.txt") == expected != lines
    assert [p.name for p in (tmp_path / "new").iterdir()] == ["out.txt"]


@pytest.mark.parametrize("name", ["./sub/../in.txt", "link.txt", "hard.txt"])
def test_the_text_itself_is_never_written_over(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.txt").write_text("a cat sat .\n")
    (tmp_path / "sub").mkdir()
    (tmp_path / "link.txt").symlink_to("in.txt")
    (tmp_path / "hard.txt").hardlink_to("in.txt")
    for force in ([], ["--force"]):
        assert main(["crop", "in.txt", name, *force]) == 2
        error = capsys.readouterr().err
        assert (
            f"{name.removeprefix('./')} is a file that is read" in error and error.count("\n") == 1
        )
    assert (tmp_path / "in.txt").read_text() == "a cat sat .\n"


def test_what_the_method_reads_is_never_written_over(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.txt").write_text("a cat sat .\n")
    (tmp_path / "t.txt").write_text("cat\tpet\n")
    assert main(["una", "in.txt", "t.txt", "--fit-on", "t.txt", "--force"]) == 2
    assert main(["eda", "in.txt", "t.txt", "--synonyms", "t.txt", "--force"]) == 2
    assert (tmp_path / "t.txt").read_text() == "cat\tpet\n"
    assert capsys.readouterr().err.count("t.txt is a file that is read") == 2


def test_a_file_that_is_there_stays_without_force(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.txt").write_text("a cat sat .\n")
    (tmp_path / "o.txt").write_text("my notes\n")
    request = ["crop", "in.txt", "o.txt"]
    assert main(request) == 2 and "o.txt is there: name another" in capsys.readouterr().err
    assert (tmp_path / "o.txt").read_text() == "my notes\n"
    assert main([*request, "--force"]) == 0 and (tmp_path / "o.txt").read_text() != "my notes\n"


def test_an_output_that_is_a_link_is_written_where_it_leads(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.txt").write_text("a cat sat .\n")
    (tmp_path / "o.txt").symlink_to("far/o.txt")
    assert main(["swap", "in.txt", "o.txt"]) == 0
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
        assert main([method, *files_, "--seed", seed, *options]) == 0
    a, b, c = (read_aligned(tmp_path / f"{name}.txt") for name in "abc")
    assert len(a) == 60 and a == b != c and a[30] == ""
    assert all(line for i, line in enumerate(a) if i != 30)
    assert sum(x != y for x, y in zip(a, lines, strict=True)) > 20


def test_una_can_be_fitted_on_another_corpus(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.txt").write_text("a cat sat\n")
    (tmp_path / "corpus.txt").write_text("a dog ran\nthe bird flew\n")
    assert main(["una", "in.txt", "o.txt", "--fit-on", "corpus.txt"]) == 0
    (line,) = read_aligned(tmp_path / "o.txt")
    assert line != "a cat sat" and len(line.split()) == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["crop", "none.txt", "o.txt"], "no file none.txt"),
        (["una", "blank.txt", "o.txt"], "holds no sentence"),
        (["delete", "in.txt", "o.txt", "--rate", "2"], "rate must be in"),
        (["eda", "in.txt", "o.txt", "--synonyms", "no.tsv"], "no thesaurus"),
        (["crop", "in.txt", "o.txt", "--seed", "-1"], "seed not negative"),
        (["una", "in.txt", "o.txt", "--radius", "0"], "radius ≥ 1"),
        (["una", "in.txt", "o.txt", "--beta", "nan"], "beta ≥ 0"),
        (["sda", "in.txt", "o.txt", "--share", "2"], "share must be in [0, 1]"),
        (["sda", "in.txt", "o.txt", "--model", "blank.txt"], "no spaCy pipeline"),
        (["crop", "in.txt", "o.txt.gz"], "o.txt.gz: plain text is written"),
        (["crop", "in.txt", "."], "name a .txt file"),
    ],
)
def test_wrong_requests_are_one_sentence(arguments, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.txt").write_text("a cat .\n")
    (tmp_path / "blank.txt").write_text("\n\n")
    assert main([*arguments]) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1 and not (tmp_path / "o.txt").exists()


def test_help_fits_any_encoding():
    done = python("-m", "lib", "augment", "una", "--help", PYTHONIOENCODING="cp1252")
    assert done.returncode == 0 and "\\u03b2: mean share" in done.stdout  # redirected on Windows


def test_an_interruption_is_one_sentence(tmp_path, monkeypatch, capsys):
    (tmp_path / "in.txt").write_text("a cat .\n")
    monkeypatch.setattr(
        command, "augment", lambda *a, **k: (_ for _ in ()).throw(KeyboardInterrupt)
    )
    assert main(["crop", str(tmp_path / "in.txt"), str(tmp_path / "o.txt")]) == 130
    assert "interrupted" in capsys.readouterr().err
    assert [p.name for p in tmp_path.iterdir()] == ["in.txt"]


def test_without_wordnet_the_default_thesaurus_says_what_to_do(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("nltk.data.path", [])
    edits._wordnet.cache_clear()
    (tmp_path / "in.txt").write_text("a cat .\n")
    assert main(["eda", str(tmp_path / "in.txt"), str(tmp_path / "o.txt")]) == 2
    error = capsys.readouterr().err
    assert "nltk.downloader wordnet" in error and "--synonyms data/mini/thesaurus.tsv" in error
    assert error.count("\n") == 1


def test_double_negation_with_nouns_is_asked_for_by_name(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.txt").write_text("The dogs are big animals.\nShe reads books.\n")
    call = ["sda", "in.txt", "--rule", "double_negation"]
    assert main([*call, "plain.txt"]) == main([*call, "nouns.txt", "--nouns"]) == 0
    assert "no big animals" in (tmp_path / "nouns.txt").read_text()
    assert "no big animals" not in (tmp_path / "plain.txt").read_text()
