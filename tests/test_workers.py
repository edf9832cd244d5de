"""Runs at once: shares of the cores, outcomes, a killed process, Ctrl-C."""

import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest
from tiny import hear_interrupts

from lib.runs import workers

HERE = Path(__file__).parent


def meet(folder: Path, name: str, n: int) -> None:
    """Wait, at most a minute, until `n` different names have been said: no process does all."""
    (folder / f"seen {name}").touch()
    for _ in range(600):
        if len(list(folder.iterdir())) >= n:
            break
        time.sleep(0.1)


def share(task: tuple[Path, int]) -> tuple[int, str, list[int]]:
    """What a process sees of its share."""
    meet(task[0], str(os.getpid()), 2)
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    return os.getpid(), os.environ["OMP_NUM_THREADS"], cores


def gpu(task):
    """The GPU of this process, told when `n` have been said."""
    folder, n = task
    seen = os.environ["CUDA_VISIBLE_DEVICES"]
    meet(folder, seen, n)
    return seen


def square_or_die(number: int) -> int:
    """What a process does until memory is short."""
    if number == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return number**2


def test_each_item_has_its_outcome_and_each_process_its_share(tmp_path):
    before = dict(os.environ)
    items = [(tmp_path, number) for number in range(6)]
    found = dict(workers.at_once(share, items, 2))
    assert sorted(found) == items
    processes = {process for process, *_ in found.values()}
    assert len(processes) == 2 and os.getpid() not in processes
    if hasattr(os, "sched_getaffinity"):
        cores = {process: tuple(own) for process, _, own in found.values()}
        available = len(os.sched_getaffinity(0))
        assert {len(own) for own in cores.values()} <= {max(1, available // 2), -(-available // 2)}
        if available > 1:
            assert set.intersection(*map(set, cores.values())) == set()
    assert os.environ == before


@pytest.mark.parametrize(
    ("available", "jobs", "shares"),
    [
        ({0, 1, 2, 3}, 2, [[0, 2], [1, 3]]),
        ({4, 5, 6}, 2, [[4, 6], [5]]),
        ({0, 1}, 3, [[0], [1], [0]]),
    ],
)
def test_cores_are_dealt_out(monkeypatch, available, jobs, shares):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: available, raising=False)
    assert [workers._cores(number, jobs) for number in range(jobs)] == shares


@pytest.mark.parametrize(
    ("left_by_a_scheduler", "gpus", "shares"),
    [("", 2, {"0", "1"}), ("", 1, {""}), ("2,GPU-5f", 2, {"2", "GPU-5f"}), ("7", 1, {"7"})],
)
def test_each_process_has_one_of_the_gpus_left_to_it(
    monkeypatch, tmp_path, left_by_a_scheduler, gpus, shares
):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", left_by_a_scheduler)
    tasks = [(tmp_path, len(shares))] * 4
    assert {seen for _, seen in workers.at_once(gpu, tasks, 2, gpus)} == shares


def test_a_killed_process_is_told_and_none_is_waited_for():
    with pytest.raises(RuntimeError, match=r"was killed.*fewer --jobs"):
        list(workers.at_once(square_or_die, range(6), 2))


INTERRUPTED = """
import sys, time
from contextlib import suppress
from pathlib import Path
from lib.runs import workers

def work(number):
    Path(sys.argv[1], str(number)).touch()
    time.sleep(600)

if __name__ == "__main__":
    list(workers.at_once(work, range(9), 2))
"""


@contextmanager
def at_work(folder):
    """A session of processes, two of which have begun to work."""
    (folder / "script.py").write_text(INTERRUPTED)
    (folder / "marks").mkdir()
    command = [sys.executable, str(folder / "script.py"), str(folder / "marks")]
    process = subprocess.Popen(
        command,
        env={**os.environ, "PYTHONPATH": str(HERE.parent)},
        start_new_session=True,
        preexec_fn=hear_interrupts,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 240
    while len(list((folder / "marks").iterdir())) < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    yield process
    deadline = time.monotonic() + 120
    while living(process.pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    left = living(process.pid)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    assert left == []


def test_ctrl_c_ends_all_processes_at_once(tmp_path):
    with at_work(tmp_path) as process:
        os.killpg(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=120)
        assert process.returncode != 0 and "KeyboardInterrupt" in errors
        assert len(list((tmp_path / "marks").iterdir())) == 2


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_processes_end_with_the_one_that_started_them(tmp_path, how):
    with at_work(tmp_path) as process:
        os.kill(process.pid, how)
        process.wait(timeout=120)


def living(group: int) -> list[int]:
    """Processes of a group that still do something."""
    found = []
    for process in psutil.process_iter(["status"]):
        with suppress(ProcessLookupError, psutil.Error):
            if os.getpgid(process.pid) == group and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process.pid)
    return found
