"""The command line: every verb has a module, a help that a newcomer can read, and one sentence for
what is wrong."""

import warnings
from pkgutil import resolve_name

import pytest
from tiny import python

from lib.__main__ import VERBS, main
from lib.commands import reporting


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_a_module_and_a_line(verb: str, capsys) -> None:
    assert callable(resolve_name(f"lib.commands.{verb}:main"))
    assert main([]) == 0
    assert f"\n  {verb} " in capsys.readouterr().out


@pytest.mark.parametrize("verb", VERBS)
def test_help_does_not_wait_for_torch(verb: str) -> None:
    code = f"import sys; from lib.__main__ import main; main(['{verb}', '--help'])"
    code = f"import atexit, sys; atexit.register(lambda: print('torch' in sys.modules)); {code}"
    said = python("-c", code).stdout
    assert f"python -m lib {verb}" in said and said.endswith("False\n")


def test_a_warning_is_one_line(capsys) -> None:
    assert reporting(lambda arguments: warnings.warn("odd", stacklevel=1) or 0)([]) == 0
    assert capsys.readouterr().err == "warning: odd\n"


def test_an_unknown_verb_is_named_and_the_known_ones_are_listed(capsys) -> None:
    assert main(["trian"]) == 2
    printed = capsys.readouterr()
    assert "trian" in printed.err and all(verb in printed.err for verb in VERBS)


@pytest.mark.parametrize(
    ("error", "status", "text"),
    [
        (ValueError("two\n lines"), 2, "error: two lines\n"),
        (FileNotFoundError("no x"), 2, "error: no x\n"),
        (KeyboardInterrupt(), 130, "interrupted: to resume a grid or a run, repeat the command\n"),
    ],
)
def test_what_a_user_can_cause_is_one_sentence(error, status, text, capsys) -> None:
    def fails(arguments):
        raise error

    assert reporting(fails)([]) == status and capsys.readouterr().err == text


def test_a_part_of_no_recipes_name_is_named(capsys) -> None:
    assert main(["recipes", "list", "xyz"]) == 2 and "'xyz'" in capsys.readouterr().err


def test_a_method_takes_no_option_without_effect(tmp_path, capsys) -> None:
    with pytest.raises(SystemExit):
        main(["augment", "crop", "in.txt", "out.txt", "--synonyms", "x.tsv"])
    assert "--synonyms" in capsys.readouterr().err


def test_a_fault_of_ours_keeps_its_traceback() -> None:
    with pytest.raises(KeyError):
        reporting(lambda arguments: {}["x"])([])


def test_from_a_shell_status_and_streams_are_those_of_the_verb() -> None:
    done = python("-m", "lib", "recipes", "show", "mini_simsce")
    assert done.returncode == 2 and done.stdout == ""
    assert "mini_simsce" in done.stderr and done.stderr.count("\n") == 1
