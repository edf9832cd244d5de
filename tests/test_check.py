"""Start-up checks: each problem is found and says what to do."""

import json
import subprocess
import sys

import pytest

from tools import check


def test_this_environment_is_ready() -> None:
    found = check.problems(("test", "classroom"))
    assert not [line for line in found if "memory" not in line], found


def test_an_old_and_a_new_python_are_named_with_the_way_out() -> None:
    assert check.python((3, 11)) == check.python((3, 13)) == []
    for version in ((3, 9), (3, 14)):
        (line,) = check.python(version)
        assert f"Python 3.{version[1]} is not supported" in line and "make setup" in line


def test_missing_packages_and_other_versions_are_named(tmp_path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        'dependencies = [\n    "numpy",\n   '
        ' "no_such_thing",\n]\n[project.optional-dependencies]\nextra = ["absent"]\n'
    )
    (tmp_path / "constraints.txt").write_text("numpy==0.0.1\nno-such-thing==1\n")
    missing, other = check.packages(root=tmp_path)
    assert "no-such-thing" in missing and "absent" not in missing and "make setup" in missing
    assert "numpy" in other and "instead of 0.0.1" in other
    with pytest.raises(ValueError, match="no extra nonsense: there are extra"):
        check.packages(("nonsense",), tmp_path)


def test_another_checkout_is_found(tmp_path) -> None:
    assert check.installation() == []
    (line,) = check.installation(tmp_path)
    assert "another checkout" in line and str(tmp_path) in line


COMMAND = ["/elsewhere/bin/python", "-m", "ipykernel_launcher", "-f", "{connection_file}"]
ELSEWHERE = json.dumps({"argv": COMMAND, "display_name": "Python 3", "language": "python"})


@pytest.mark.parametrize(
    ("content", "found"), [(ELSEWHERE, COMMAND[0]), ("{", "python3 cannot be read")]
)
def test_a_kernel_of_another_environment_or_damaged_is_found(
    tmp_path, monkeypatch, content, found
) -> None:
    spec = tmp_path / "kernels" / "python3"
    spec.mkdir(parents=True)
    (spec / "kernel.json").write_text(content)
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
    (line,) = check.kernel()
    assert found in line


def test_too_little_memory_or_disk_is_found(tmp_path) -> None:
    assert check.memory(4.0) == [] and "0.5 GiB of memory" in check.memory(0.5)[0]
    assert (
        check.disk(tmp_path, 5.0) == []
        and "CSE_OUTPUTS" in check.disk(tmp_path / "not" / "yet", 0.2)[0]
    )


def test_the_command_line(capsys, monkeypatch) -> None:
    monkeypatch.setattr(check, "problems", lambda extras: [])
    assert check.main([]) == 0 and "ready" in capsys.readouterr().out
    monkeypatch.setattr(check, "problems", lambda extras: ["this: do that"])
    assert check.main([]) == 1 and "* this: do that\n1 problem found" in capsys.readouterr().out
    monkeypatch.undo()
    assert check.main(["nonsense"]) == 2 and "there are" in capsys.readouterr().err


def test_it_needs_nothing_but_python(tmp_path) -> None:
    """With an interpreter that sees no package at all it still says what to do."""
    command = [sys.executable, "-I", "-S", str(check.ROOT / "tools" / "check.py")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 1 and "is not installed in" in done.stdout and not done.stderr
