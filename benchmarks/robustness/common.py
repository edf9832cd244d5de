"""What the campaigns share: children that are killed on purpose, pictures of folders, counted
outcomes."""

import contextlib
import hashlib
import io
import json
import os
import random
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from tqdm import tqdm
from transformers import AutoTokenizer, BertConfig, BertModel

from lib import data, paths
from lib.data.readers import Pairs

STUCK_SECONDS = 120
USER_ERRORS = (ValueError, OSError, ImportError)
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
EVENTS = {
    "os.rename",
    "os.remove",
    "os.mkdir",
    "os.rmdir",
    "os.truncate",
    "os.link",
    "shutil.rmtree",
}
TIMES = {"train_seconds", "dev_seconds", "sentences_per_second", "peak_rss_gib"}


@dataclass
class Count:
    """One line of the table.

    Attributes:
        campaign: what was attacked, and how.
        tries: how often.
        kills: SIGKILLs that hit.
        wrong: results that differ from the undisturbed ones, or that came from damaged input
            without a word.
        stuck: work that could not be finished afterwards.
        leftovers: tries after which a file remained that the undisturbed work does not leave.
        tracebacks: errors that are no sentence for a user.
        refused: inputs refused with a sentence.
        accepted: inputs that gave a result.
    """

    campaign: str
    tries: int = 0
    kills: int = 0
    wrong: int = 0
    stuck: int = 0
    leftovers: int = 0
    tracebacks: int = 0
    refused: int = 0
    accepted: int = 0

    @property
    def defects(self) -> int:
        """What must be zero."""
        return self.wrong + self.stuck + self.leftovers + self.tracebacks

    def row(self) -> dict[str, object]:
        """As a line of the table."""
        return asdict(self)


def few_pairs(n: int = 120) -> None:
    """Cut the mini dev and test sets in this process, so that a run takes seconds; the code path is
    the same."""
    mini_pairs = data.mini_pairs

    def cut(split: str) -> Pairs:
        whole = mini_pairs(split)
        kinds = None if whole.kinds is None else whole.kinds[:n]
        return Pairs(whole.name, whole.sentence1[:n], whole.sentence2[:n], whole.scores[:n], kinds)

    data.mini_pairs = cut


def small_model(folder: Path) -> Path:
    """A random BERT of 2 layers × 32 with mini-BERT's tokenizer."""
    tokenizer = AutoTokenizer.from_pretrained(paths.MINI_BERT)
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=48,
        initializer_range=0.3,
    )
    with contextlib.redirect_stderr(io.StringIO()):
        BertModel(config, add_pooling_layer=False).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def child(work: Callable[[], object], before: Callable[[], None] | None = None) -> int:
    """Start `work` in a forked process with its own process group; its number."""
    pid = os.fork()
    if pid:
        return pid
    tqdm.set_lock(threading.RLock())  # the parent's would stay held by a sibling that was killed
    status = 1
    try:
        if before is not None:
            before()
        with open(os.devnull, "w") as silent, contextlib.redirect_stdout(silent):
            work()
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 2
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def ended(pid: int, seconds: float = STUCK_SECONDS) -> str:
    """How a child ended: `ok`, `killed`, `failed`, or `stuck` (it is killed then)."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            if os.WIFSIGNALED(status):
                return "killed"
            return "ok" if os.WEXITSTATUS(status) == 0 else "failed"
        time.sleep(0.005)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return "stuck"


def at_event(folder: Path, number: int, counter: Path | None = None) -> Callable[[], None]:
    """For a child: SIGKILL at its `number`-th writing event under `folder`; with a `counter`, count
    them into it."""
    inside = str(folder)
    seen = 0

    def hook(event: str, arguments: tuple) -> None:
        nonlocal seen
        writes = event == "open" and isinstance(arguments[2], int) and arguments[2] & WRITES
        if not (writes or event in EVENTS) or not str(arguments[0]).startswith(inside):
            return
        seen += 1
        if counter is not None:
            os.write(descriptor, b".")
        elif seen == number:
            os.kill(os.getpid(), signal.SIGKILL)

    descriptor = (
        os.open(counter, os.O_WRONLY | os.O_CREAT | os.O_APPEND) if counter is not None else -1
    )
    return lambda: sys.addaudithook(hook)


def events_of(work: Callable[[], object], folder: Path, counter: Path) -> tuple[int, float]:
    """How many writing events undisturbed work has, and its seconds."""
    start = time.monotonic()
    state = ended(child(work, at_event(folder, 0, counter)))
    if state != "ok":
        raise RuntimeError(f"the undisturbed work {state}")
    return counter.stat().st_size, time.monotonic() - start


def killed_after(work: Callable[[], object], seconds: float) -> str:
    """Start the work, kill it after some seconds, and say how it ended."""
    pid = child(work)
    time.sleep(seconds)
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    return ended(pid)


def picture(folder: Path) -> dict[str, str]:
    """File name → digest of its content, without times, locks and what tells the machine."""
    digests = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and not name.endswith(".lock"):
            digests[name] = hashlib.sha256(_timeless(path)).hexdigest()
    return digests


def _timeless(path: Path) -> bytes:
    content = path.read_bytes()
    if path.name == "env.json":
        return b""
    if path.name == "metrics.json":
        kept = {k: v for k, v in json.loads(content).items() if k not in TIMES}
        return json.dumps(kept, sort_keys=True).encode()
    if path.suffix == ".csv":
        lines = [line.split(",") for line in content.decode().splitlines()]
        drop = {i for i, name in enumerate(lines[0]) if name in TIMES} if lines else set()
        kept_rows = [",".join(c for i, c in enumerate(row) if i not in drop) for row in lines]
        return "\n".join(kept_rows).encode()
    return content


def is_sentence(error: BaseException) -> bool:
    """Whether an error is one that a user can act on: a known kind, with words."""
    return isinstance(error, USER_ERRORS) and len(str(error)) > 10


def sentences(n: int, seed: int = 0) -> list[str]:
    """The first lines of the shipped corpus, in an order of their own."""
    lines = data.read_lines(paths.MINI / "corpus.txt")[: 4 * n]
    return random.Random(seed).sample(lines, n)
