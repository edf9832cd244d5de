"""Damaged and senseless input, seeded: it is refused with a sentence, or it makes no difference
that could be known.

Some damage cannot be known: another digit in a score, another letter in a sentence. It counts as
accepted. What must be refused is said by the campaign: archives whose checksum fails, files cut
within a line, text with NUL or in UTF-16, models with a tensor too few. A result from such input
counts as wrong.
"""

import contextlib
import gzip
import io
import json
import lzma
import os
import random
import shutil
import tarfile
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import yaml
from safetensors.torch import load_file, save_file
from tqdm import tqdm

from benchmarks.robustness.common import Count, is_sentence, sentences, small_model
from lib import data, paths
from lib.data import fetch, readers
from lib.encoder import Encoder
from lib.runs import experiment, grids, job, notebooks
from lib.training.recipe import FIELDS, recipes

Rng = random.Random
NASTY = [
    None,
    True,
    False,
    "",
    " ",
    "none",
    "auto",
    "nein",
    "0,1",
    "abc",
    -1,
    0,
    1,
    2,
    0.5,
    1e2,
    1.5,
]
NASTY += [
    -0.0,
    float("nan"),
    float("inf"),
    -float("inf"),
    10**6,
    2**70,
    1e300,
    [],
    [1],
    {},
    {"a": 1},
    (),
    b"x",
    "\0",
]


def judged(
    count: Count, act: Callable[[], object], must_fail: bool = False
) -> BaseException | None:
    """Act on one input and count how it ends; the error, if it is one that no user should see."""
    count.tries += 1
    try:
        with (
            contextlib.redirect_stderr(io.StringIO()),
            contextlib.redirect_stdout(io.StringIO()),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("ignore")
            act()
    except SystemExit as end:
        sentence = isinstance(end.code, str) or end.code in (1, 2)
        count.refused += sentence
        count.tracebacks += not sentence
        return None
    except Exception as error:
        sentence = is_sentence(error)
        count.refused += sentence
        count.tracebacks += not sentence
        return None if sentence else error
    count.accepted += not must_fail
    count.wrong += must_fail
    return None


# --- readers -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Format:
    """One kind of file: what it is called, a good content, how it is read; no line may be a file,
    too."""

    name: str
    file: str
    content: str
    read: Callable[[Path], object]
    may_be_empty: bool = False


def formats() -> list[Format]:
    """Every format that a reader may hand in."""
    lines = sentences(40)
    pairs = list(zip(lines[::2], lines[1::2], strict=True))
    graded = [(f"{(i * 37) % 51 / 10:.1f}", a, b) for i, (a, b) in enumerate(pairs)]
    stsb = "".join(f"g\tf\ty\t{i}\t{s}\t{a}\t{b}\n" for i, (s, a, b) in enumerate(graded))
    sick = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\n"
    sick += "".join(f"{i}\t{a}\t{b}\t{s}\n" for i, (s, a, b) in enumerate(graded))
    kinds = "score\tkind\tsentence1\tsentence2\n"
    kinds += "".join(f"{s}\tparaphrase\t{a}\t{b}\n" for s, a, b in graded)
    cnsd = "".join(f"{i}||{a}||{b}||{s}\n" for i, (s, a, b) in enumerate(graded))
    sst = "".join(f"{line}\t{i % 2}\n" for i, line in enumerate(lines))
    trec = "".join(f"NUM:count {line}\n" for line in lines)
    mrpc = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n"
    mrpc += "".join(f"{i % 2}\t1\t2\t{a}\t{b}\n" for i, (a, b) in enumerate(pairs))
    text = "".join(f"{line}\n" for line in lines)
    both = "".join(f"{a}\t{b}\n" for a, b in pairs)

    def form_of(form: str) -> Callable[[Path], object]:
        return partial(readers.graded_file, name="a set", form=form)

    def with_gold(path: Path) -> object:
        gold = path.with_name("STS.gs.x.txt")
        gold.write_text("".join(f"{score}\n" for score, _, _ in graded))
        return readers.sts_subset(path, gold, "a set")

    return [
        Format("STS input and gold", "STS.input.x.txt", both, with_gold),
        Format("STS-B", "sts-dev.csv", stsb, form_of("STS-B")),
        Format("SICK", "SICK_train.txt", sick, form_of("SICK-R")),
        Format("pairs with kinds", "sts_dev.tsv", kinds, form_of("mini")),
        Format("CNSD", "cnsd-sts-dev.txt", cnsd, form_of("CNSD")),
        Format("sentences", "rt-polarity.pos", text, readers.sentences_file),
        Format("SST-2", "sentiment-dev", sst, partial(readers.labelled_file, task="SST2")),
        Format("TREC", "TREC_10.label", trec, partial(readers.labelled_file, task="TREC")),
        Format(
            "MRPC", "msr_paraphrase_test.txt", mrpc, partial(readers.labelled_file, task="MRPC")
        ),
        Format("text", "corpus.txt", text, data.corpus),
        Format("aligned text", "aligned.txt", text, readers.read_aligned, may_be_empty=True),
        Format("text, gzip", "corpus.txt.gz", text, data.corpus),
        Format("text, xz", "corpus.txt.xz", text, data.corpus),
    ]


def packed(name: str, content: bytes) -> bytes:
    """Content as the file name's ending says."""
    if name.endswith(".gz"):
        return gzip.compress(content, mtime=0)
    return lzma.compress(content) if name.endswith(".xz") else content


def damaged(rng: Rng, content: bytes) -> tuple[bytes, str]:
    """The content after one kind of damage, and its name."""
    position = rng.randrange(max(len(content), 1))
    kind = rng.choice(
        ("flip", "cut", "delete", "insert", "NUL", "UTF-16", "CR only", "empty", "twice", "line")
    )
    if kind == "flip":
        wrong = bytes([content[position] ^ (1 << rng.randrange(8))]) if content else b""
        return content[:position] + wrong + content[position + 1 :], kind
    if kind == "cut":
        return content[:position], kind
    if kind == "delete":
        return content[:position] + content[position + rng.randint(1, 50) :], kind
    if kind == "insert":
        return content[:position] + rng.randbytes(rng.randint(1, 20)) + content[position:], kind
    if kind == "NUL":
        return content[:position] + b"\0" + content[position:], kind
    if kind == "UTF-16":
        return (
            content.decode("utf-8", "replace").encode(
                rng.choice(("utf-16", "utf-16-le", "utf-16-be"))
            ),
            kind,
        )
    if kind == "CR only":
        return content.replace(b"\n", b"\r"), kind
    if kind == "twice":
        return content + content[position:], kind
    if kind == "line":
        rows = content.split(b"\n")
        rng.shuffle(rows)
        return b"\n".join(rows), kind
    return b"", kind


def fuzz_readers(tries: int, rng: Rng, folder: Path) -> Iterator[Count]:
    """Each format, damaged before or after it is packed."""
    for form in formats():
        count = Count(f"fuzz: reading {form.name}")
        path = folder / form.file
        good = form.content.encode()
        for _ in range(tries):
            inside, kind = damaged(rng, good)
            content = packed(form.file, inside)
            must_fail = inside != good and kind in ("NUL", "UTF-16", "CR only", "empty")
            must_fail &= not (form.may_be_empty and kind == "empty")
            if form.file.endswith((".gz", ".xz")) and rng.random() < 0.7:
                content, kind = damaged(rng, packed(form.file, good))
                must_fail = False
            path.write_bytes(content)
            judged(count, partial(form.read, path), must_fail)
        yield count


def fuzz_archives_read(tries: int, rng: Rng, folder: Path) -> Count:
    """A damaged archive is refused, or gives what was in it."""
    count = Count("fuzz: damaged .gz and .xz give the same text or none")
    lines = sentences(40)
    text = "".join(f"{line}\n" for line in lines).encode()
    for _ in range(tries):
        name = rng.choice(("a.txt.gz", "a.txt.xz"))
        content, kind = damaged(rng, packed(name, text))
        if kind == "CR only" or kind == "UTF-16":
            continue
        (folder / name).write_bytes(content)
        lines_read: list[str] = []
        judged(
            count,
            lambda lines_read=lines_read, name=name: lines_read.extend(
                readers.read_lines(folder / name)
            ),
        )
        count.wrong += bool(lines_read) and lines_read not in (lines, lines * 2)
    return count


# --- grids, parameters, command lines ----------------------------------------------------------


def fuzz_grids(tries: int, rng: Rng, folder: Path) -> Count:
    """Grid files with values of other kinds, damaged text, and keys too many or too few."""
    count = Count("fuzz: grid files")
    sources = [path.read_text(encoding="utf-8") for path in sorted(paths.GRIDS.glob("*.yaml"))]
    path = folder / "fuzzed.yaml"
    for _ in range(tries):
        text = rng.choice(sources)
        if rng.random() < 0.5:
            content, _kind = damaged(rng, text.encode())
            path.write_bytes(content)
        else:
            tree = yaml.safe_load(text)
            spoil(rng, tree)
            path.write_text(yaml.safe_dump(tree), encoding="utf-8")
        judged(count, lambda: [list(g.runs()) for g in [grids.read(path)]])
    return count


def spoil(rng: Rng, tree: object) -> None:
    """Replace, remove or add something somewhere in a tree of dicts and lists, in place."""
    nodes = [tree]
    for node in nodes:
        children = (
            node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
        )
        nodes.extend(child for child in children if isinstance(child, dict | list))
    node = rng.choice(nodes)
    plain = [value for value in NASTY if not isinstance(value, tuple | bytes)]
    if isinstance(node, dict) and node:
        key = rng.choice(list(node))
        action = rng.random()
        if action < 0.6:
            node[key] = rng.choice(plain)
        elif action < 0.8:
            del node[key]
        else:
            node[rng.choice(("profil", "sed", 3, "cell", "methods"))] = rng.choice(plain)
    elif isinstance(node, list) and node:
        node[rng.randrange(len(node))] = rng.choice(plain)


def fuzz_recipes(tries: int, rng: Rng) -> Count:
    """Recipe fields with any value: refused when the recipe is made, or of the field's own type and
    range."""
    count = Count("fuzz: recipe fields")
    fields = list(FIELDS)
    names = sorted(recipes())
    for _ in range(tries):
        changes = {rng.choice(fields): rng.choice(NASTY) for _ in range(rng.randint(1, 2))}
        method = rng.choice(names)
        error = judged(count, lambda c=changes, m=method: job.resolve("mini", m, **c))
        if error is not None:
            print(method, changes, repr(error)[:200])
    return count


def fuzz_runs(tries: int, rng: Rng, folder: Path) -> Count:
    """Whole runs of two steps with one senseless value: refused with a sentence, or run."""
    count = Count("fuzz: parameters of whole runs")
    model = small_model(folder / "model")
    (folder / "text.txt").write_text("\n".join(sentences(60)) + "\n", encoding="utf-8")
    fields = [name for name in FIELDS if name != "backbone"]
    fields += ["seed", "n_sentences", "device", "precision", "corpus", "model", "data_dir"]
    os.environ["CSE_OUTPUTS"] = str(folder / "outputs")
    for _ in range(tries):
        parameters = {
            "batch_size": 16,
            "max_steps": 2,
            "eval_every": 1,
            "device": "cpu",
            "precision": "fp32",
        }
        parameters |= {"model": str(model), "corpus": str(folder / "text.txt")}
        parameters |= {rng.choice([*fields, "max_steps"]): rng.choice(NASTY)}
        method = rng.choice(("simcse", "una", "consert", "sda"))
        error = judged(count, lambda g=parameters, m=method: experiment.run("fuzz", m, "mini", **g))
        if error is not None:
            print(method, parameters, repr(error)[:200])
        shutil.rmtree(folder / "outputs", ignore_errors=True)
    return count


def fuzz_values(tries: int, rng: Rng) -> Count:
    """`-p NAME VALUE` on the notebooks' own parameters: the declared type, or a sentence."""
    count = Count("fuzz: -p values")
    every = sorted(paths.NOTEBOOKS.glob("[0-9]*.ipynb"))
    texts = [
        "010",
        "1:30",
        "yes",
        "Question: what?",
        "[dog]",
        "1e-3",
        "None",
        "null",
        "~",
        "0x1f",
        "1_000",
        "'a'",
    ]
    texts += [str(value) for value in NASTY] + [
        "{a: 1}",
        "a: b",
        "- a",
        "%",
        "@x",
        "2026-01-01",
        "é",
        "\t",
        "=",
        "!!x",
    ]
    for _ in range(tries):
        notebook = rng.choice(every)
        name = rng.choice(list(notebooks.parameter_kinds(notebook)))
        text = rng.choice(texts)
        judged(count, lambda n=notebook, a=name, t=text: notebooks.read_parameters(n, [(a, t)]))
    return count


# --- models and archives -----------------------------------------------------------------------


def fuzz_models(tries: int, rng: Rng, folder: Path) -> Count:
    """A model folder with something wrong in it: refused, and never random weights."""
    count = Count("fuzz: model folders")
    good = small_model(folder / "good")
    for _ in range(tries):
        bad = folder / "bad"
        shutil.rmtree(bad, ignore_errors=True)
        shutil.copytree(good, bad)
        must_fail = spoil_model(rng, bad)
        error = judged(count, lambda bad=bad: Encoder.load(bad).encode(["A dog barks."]), must_fail)
        if error is not None:
            print(repr(error)[:300])
    return count


def spoil_model(rng: Rng, folder: Path) -> bool:
    """Damage a model folder in place; whether that can be known."""
    weights, config = folder / "model.safetensors", folder / "config.json"
    kind = rng.randrange(9)
    if kind < 3:
        tensors = load_file(weights)
        name = rng.choice(sorted(tensors))
        tensor = tensors.pop(name)
        if kind == 1:
            tensors[f"renamed.{name}"] = tensor
        if kind == 2:
            tensors[name] = tensor.repeat(*([2] * tensor.ndim))
        save_file(tensors, weights, metadata={"format": "pt"})
        return True
    if kind == 3:
        content = weights.read_bytes()
        weights.write_bytes(content[: rng.randrange(len(content))])
        return True
    if kind == 4:
        weights.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n")
        return True
    if kind == 5:
        tree = json.loads(config.read_text())
        tree["num_hidden_layers"] += rng.choice((-1, 1))
        config.write_text(json.dumps(tree))
        return True
    if kind == 6:
        for path in folder.glob("*token*"):
            path.unlink()
        (folder / "vocab.txt").unlink(missing_ok=True)
        return True
    path = rng.choice([p for p in sorted(folder.iterdir()) if p.suffix in (".json", ".txt")])
    content, damage = damaged(rng, path.read_bytes())
    path.write_bytes(content)
    return path == config and damage in ("NUL", "UTF-16", "empty")


def fuzz_archives(tries: int, rng: Rng, folder: Path) -> Count:
    """Archives of evaluation sets: bombs, links, names that point outside, damage. None is the data
    expected."""
    count = Count("fuzz: archives to unpack")
    for number in range(tries):
        target = folder / f"target-{number}"
        target.mkdir()
        path = folder / "senteval.tar"
        with tarfile.open(path, rng.choice(("w", "w:gz", "w:xz"))) as tar:
            for _ in range(rng.randint(1, 4)):
                tar.addfile(*member(rng))
        if rng.random() < 0.4:
            path.write_bytes(damaged(rng, path.read_bytes())[0])
        judged(count, partial(fetch.fetch, target, folder, ("senteval.tar",)), must_fail=True)
        count.leftovers += bool(list(target.iterdir())) or (folder / "outside").exists()
        shutil.rmtree(target)
    return count


def member(rng: Rng) -> tuple[tarfile.TarInfo, io.BytesIO]:
    """A member of an archive, of a kind that is not welcome."""
    deep = "/".join(["a"] * rng.choice((3, 300, 2000)))
    names = [
        "STS/STS12-en-test/x",
        "../outside",
        "/outside",
        "C:\\x",
        deep,
        "a\\..\\..\\outside",
        "",
        ".",
        "é\ud800",
    ]
    info = tarfile.TarInfo(rng.choice(names[:-1]) or "a")
    info.type = rng.choice(
        (tarfile.REGTYPE, tarfile.REGTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE)
    )
    info.linkname = rng.choice(("x", "../outside"))
    size = rng.choice((0, 10, 3_000_000)) if info.isreg() else 0
    info.size = size
    return info, io.BytesIO(bytes(size))


def main(tries: int, seed: int) -> list[Count]:
    """Every campaign; `tries` inputs to a format of file, fewer where an input costs seconds."""
    rng = Rng(seed)
    counts: list[Count] = []
    with tempfile.TemporaryDirectory(prefix="robustness-") as base:
        folder = Path(base)
        for count in tqdm(fuzz_readers(tries, rng, folder), desc="readers", total=len(formats())):
            counts.append(count)
        jobs: list[Callable[[], Count]] = [
            lambda: fuzz_archives_read(tries, rng, folder),
            lambda: fuzz_grids(2 * tries, rng, folder),
            lambda: fuzz_recipes(4 * tries, rng),
            lambda: fuzz_values(3 * tries, rng),
            lambda: fuzz_models(max(1, tries // 4), rng, folder),
            lambda: fuzz_runs(max(1, tries // 5), rng, folder),
            lambda: fuzz_archives(max(1, tries // 2), rng, folder),
        ]
        for job in tqdm(jobs, desc="more"):
            counts.append(job())
    return counts
