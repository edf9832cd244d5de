"""SIGKILL at writing events and at random moments; afterwards the same work must end with the same
bytes.

A try kills the work up to three times, lets it finish, and starts it once more. Then the folder
must look as after undisturbed work: the same files with the same content (times apart), none
beside them.
"""

import os
import random
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tqdm import tqdm

from benchmarks.robustness.common import (
    Count,
    at_event,
    child,
    ended,
    events_of,
    few_pairs,
    killed_after,
    picture,
    sentences,
    small_model,
)
from lib import runs
from lib.augment.sda import parse
from lib.commands import verbs
from lib.runs import finished

TRAININGS: dict[str, dict] = {
    "SimCSE": {"method": "simcse"},
    "SimCSE, patience": {"method": "simcse", "patience": 1, "lr": 0.05},
    "UNA": {"method": "una", "every": 2},
    "paraphrases from a file": {"method": "paraphrase", "positive_file": "positives.txt"},
    "ConSERT, two views": {"method": "consert"},
    "ConSERT, LoRA": {"method": "consert", "lora_rank": 2, "lr": 0.05},
    "SimCSE, LoRA": {"method": "simcse", "lora_rank": 2, "lr": 0.05},
    "SDA, positives": {"method": "sda", "rule": "ensemble"},
    "SDA, negations": {"method": "sda_negation"},
}
AUGMENTATIONS = {
    "una": ["--radius", "50"],
    "crop": [],
    "eda": ["--synonyms", "data/mini/thesaurus.tsv"],
    "sda": ["--parses", "parses"],
}


@dataclass(frozen=True)
class Work:
    """Something that writes into a folder: `prepare` once in the empty folder, `do` as often as it
    takes."""

    name: str
    do: Callable[[Path], object]
    prepare: Callable[[Path], object] = lambda folder: None


def campaigns(material: Path) -> Iterator[Work]:
    """All that is killed; `material` holds the inputs and a small model."""
    for name, changes in TRAININGS.items():
        yield Work(f"training: {name}", lambda folder, c=changes: train(folder, material, c))
    for name, options in AUGMENTATIONS.items():
        yield Work(
            f"augmenting: {name}",
            lambda folder, n=name, o=options: augmented(folder, material, n, o),
        )
    yield Work("collecting", lambda folder: collected(folder, material))
    yield Work("exporting", lambda folder: exported(folder, material))
    yield Work(
        "exporting over an older one",
        lambda folder: exported(folder, material),
        lambda folder: exported(folder, material, "last"),
    )
    yield Work("cache of parses", lambda folder: parsed(folder, material))


def make_material(folder: Path) -> Path:
    """Sentences, positives, a small model and one finished run."""
    small_model(folder / "model")
    lines = sentences(160)
    (folder / "text.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    turned = [" ".join(reversed(line.split())) for line in lines]
    (folder / "positives.txt").write_text("\n".join(turned) + "\n", encoding="utf-8")
    return folder


def finish_material(folder: Path) -> None:
    """One finished run, in a process of its own."""
    state = ended(
        child(lambda: train(folder / "finished", folder, {"method": "simcse", "lr": 0.05}))
    )
    if state != "ok":
        raise RuntimeError(f"the run that is collected and exported {state}")


def train(folder: Path, material: Path, changes: dict) -> runs.Run:
    """Six steps of one recipe, a dev score every second step."""
    os.environ["CSE_OUTPUTS"] = str(folder)
    few_pairs()
    parameters = {"batch_size": 16, "eval_every": 2, "max_steps": 6, **changes}
    if "positive_file" in parameters:
        parameters["positive_file"] = str(material / parameters["positive_file"])
    method = parameters.pop("method")
    return runs.run(
        "kills",
        method,
        "mini",
        model=str(material / "model"),
        corpus=str(material / "text.txt"),
        device="cpu",
        precision="fp32",
        **parameters,
        checkpoint_minutes=0,
    )


def augmented(folder: Path, material: Path, method: str, options: list[str]) -> None:
    """One file augmented, unless it is there."""
    if (folder / "out.txt").exists():
        return
    os.environ["CSE_OUTPUTS"] = str(folder / "outputs")
    options = [str(folder / o) if o == "parses" else o for o in options]
    source, target = str(material / "text.txt"), str(folder / "out.txt")
    if status := verbs.augment([method, source, target, *options]):
        raise SystemExit(status)


def collected(folder: Path, material: Path) -> None:
    """The finished run collected into a table; a run on mini counts as one on real data here."""
    os.environ["CSE_OUTPUTS"] = str(folder / "outputs")
    collect = runs.collect
    finished.folder.collect = lambda *of: collect(*of).assign(profile="small")
    finished.save("kills", material / "finished", folder)


def exported(folder: Path, material: Path, checkpoint: str = "best") -> None:
    """The finished run's checkpoint as a sentence-transformers folder."""
    (run,) = (material / "finished" / "kills").glob("*-s42")
    if checkpoint != "best":
        copy = folder.parent / "as-best"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(run, copy)
        shutil.rmtree(copy / "best")
        shutil.copytree(copy / checkpoint, copy / "best")
        run = copy
    finished.export(run, folder / "model")


def parsed(folder: Path, material: Path) -> None:
    """The text parsed in eight chunks, parses kept."""
    text = (material / "text.txt").read_text(encoding="utf-8").splitlines()[:80]
    for _ in parse.parse(text, folder=folder / "parses", chunk=10):
        pass


def campaign(work: Work, tries: int, rng: random.Random, scratch: Path) -> Count:
    """Kill, finish, start once more, compare; `tries` times."""
    count = Count(f"kill: {work.name}")
    whole = scratch / "whole"
    prepared(work, whole)
    events, seconds = events_of(lambda: work.do(whole), whole, scratch / "count")
    expected = picture(whole)
    for number in range(tries):
        folder = scratch / f"try-{number}"
        prepared(work, folder)
        count.tries += 1
        for _ in range(1 + number % 3):
            count.kills += killed_once(work, folder, events, seconds, rng, number) == "killed"
        states = [ended(child(partial(work.do, folder))) for _ in range(2)]
        actual = picture(folder)
        wrong = [name for name, digest in expected.items() if actual.get(name) != digest]
        left = sorted(set(actual) - set(expected))
        if wrong or left or states != ["ok", "ok"]:
            tqdm.write(f"{work.name}, try {number}: {states}, wrong {wrong}, left {left}")
        count.stuck += states != ["ok", "ok"]
        count.wrong += bool(wrong)
        count.leftovers += bool(left)
        shutil.rmtree(folder)
    return count


def prepared(work: Work, folder: Path) -> None:
    """A new folder for the work, prepared in a process of its own."""
    folder.mkdir(parents=True)
    if ended(child(lambda: work.prepare(folder))) != "ok":
        raise RuntimeError(f"{work.name}: the preparation failed")


def killed_once(
    work: Work, folder: Path, events: int, seconds: float, rng: random.Random, number: int
) -> str:
    """Two of three kills at a writing event, the others at a random moment."""
    if number % 3 == 2:
        return killed_after(lambda: work.do(folder), rng.uniform(0.2, 0.95) * seconds)
    return ended(child(lambda: work.do(folder), at_event(folder, rng.randint(1, events))))


def main(tries: int, seed: int) -> list[Count]:
    """Every campaign; `tries` of each."""
    rng = random.Random(seed)
    counts = []
    with tempfile.TemporaryDirectory(prefix="robustness-") as base:
        material = make_material(Path(base) / "material")
        finish_material(material)
        for number, work in enumerate(tqdm(list(campaigns(material)), desc="kills")):
            scratch = Path(base) / str(number)
            scratch.mkdir()
            counts.append(campaign(work, tries, rng, scratch))
            shutil.rmtree(scratch)
    return counts
