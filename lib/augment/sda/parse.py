"""Parses of a corpus with spaCy: only the components that the rules of SDA need, in several
processes, kept on disk.

A corpus is cut into chunks, each parsed in batches of sentences of like length and stored as one
`DocBin`; a second call with the same text and pipeline reads them, and an interrupted one goes on
at the first that is missing. A chunk that is damaged, or holds other sentences, is parsed again.
"""

import hashlib
import json
import multiprocessing
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import spacy
from spacy.language import Language
from spacy.tokens import Doc, DocBin
from thinc.api import NumpyOps, get_current_ops, use_ops
from threadpoolctl import threadpool_limits
from tqdm import tqdm

from lib import paths
from lib.augment.sda import chinese
from lib.augment.sda.rules import RULES as ENGLISH
from lib.augment.sda.rules import apply
from lib.augment.sda.trees import Tree
from lib.data.files import make_folder, sha256, write_bytes

UNUSED = ("ner", "senter", "textcat", "entity_ruler", "entity_linker")
CHUNK = 2000
RULES = {"en": ENGLISH, "zh": chinese.RULES}
ATTRIBUTES = ("TAG", "POS", "DEP", "HEAD", "LEMMA", "SPACY")


def load(model: str | Path = "") -> Language:
    """A spaCy pipeline without the components that parsing does not need.

    Args:
        model: an installed package ("en_core_web_sm"), a folder, or "" for the shipped
            `data/mini-spacy`.

    Returns:
        The pipeline, whose matrix products are NumPy's: where several processes parse, hold each to
        one thread, as `parse` and `rewrite` do.

    Raises:
        ValueError: there is none of that name, or it has no tagger, parser or lemmatiser.
    """
    name = str(model or paths.MINI_SPACY)
    plain = (
        type(get_current_ops()) is NumpyOps
    )  # whose BLIS is a quarter slower than NumPy's own BLAS
    try:
        with use_ops("numpy", use_blis=False) if plain else nullcontext():
            nlp = spacy.load(name, exclude=UNUSED)
    except OSError as error:
        remedy = f"run `python -m spacy download {name}`, or name the shipped one, data/mini-spacy"
        raise ValueError(f"no spaCy pipeline {name!r}: {remedy}") from error
    lacking = [n for n, kinds in _NEEDED.items() if not any(k in nlp.pipe_names for k in kinds)]
    if lacking:
        raise ValueError(
            f"{name!r} has {', '.join(nlp.pipe_names) or 'no component'}, but no"
            f" {' or '.join(lacking)}"
        )
    if "trainable_lemmatizer" in nlp.pipe_names and "morphologizer" in nlp.pipe_names:
        nlp.disable_pipe("morphologizer")
    return nlp


_NEEDED = {
    "tagger": ("tagger", "attribute_ruler", "morphologizer"),
    "parser": ("parser", "experimental_biaffine_parser"),
    "lemmatizer": ("lemmatizer", "trainable_lemmatizer", "attribute_ruler", "tagger"),
}


def parse(
    sentences: Sequence[str],
    model: str | Path = "",
    folder: str | Path | None = None,
    workers: int = 1,
    chunk: int = CHUNK,
    progress: bool = False,
) -> Iterator[Doc]:
    """The parse of each sentence, in order; a blank sentence is an empty `Doc`.

    Args:
        sentences: one sentence each, without line breaks.
        model: as `load`.
        folder: where parses are kept, in a folder named after the text and the pipeline; None:
            nowhere.
        workers: processes.
        chunk: sentences to a file.

    Raises:
        ValueError: as `load`; `workers` or `chunk` below 1; the pipeline's files changed meanwhile.
        OSError: `folder` cannot be made.

    Example:
        >>> [token.tag_ for token in next(parse(["She sings."]))]
        ['PRP', 'VBZ', '.']
    """
    _at_least(1, workers=workers, chunk=chunk)
    nlp = load(model)
    if folder is not None:
        make_folder(Path(folder), "--parses")
    jobs = _jobs(sentences, nlp, str(model), folder, chunk)
    with tqdm(total=len(sentences), unit="sentence", unit_scale=True, disable=not progress) as bar:
        if _in_one(jobs, workers):
            parts: Iterator[Sequence[Doc]] = map(_parsed, jobs)
        else:
            parts = (
                list(DocBin().from_bytes(b).get_docs(nlp.vocab))
                for b in _in_processes(_packed, jobs, workers)
            )
        for docs in parts:
            yield from docs
            bar.update(len(docs))


def _at_least(least: int, **values: int) -> None:
    if any(operator.index(value) < least for value in values.values()):
        given = " and ".join(str(value) for value in values.values())
        raise ValueError(f"{' and '.join(values)} must be at least {least}, got {given}")


@dataclass(frozen=True)
class _Job:
    """A chunk of the corpus, the number of its first sentence, and where its parses are kept."""

    sentences: list[str]
    first: int
    model: str
    pipeline: str
    file: Path | None


def _jobs(
    sentences: Sequence[str], nlp: Language, model: str, folder: str | Path | None, chunk: int
) -> list[_Job]:
    target, pipeline = None, pipeline_digest(nlp)
    if folder is not None:
        kept = [sentences, nlp.pipe_names, ATTRIBUTES]
        digest = hashlib.sha256(json.dumps(kept).encode()).hexdigest()[:12]
        target = Path(folder) / f"{digest}-{pipeline}-{chunk}"
    starts = range(0, len(sentences), chunk)
    files = [target and target / f"{n:05d}.spacy" for n in range(len(starts))]
    return [
        _Job(list(sentences[i : i + chunk]), i, model, pipeline, file)
        for i, file in zip(starts, files, strict=True)
    ]


def _in_one(jobs: list[_Job], workers: int) -> bool:
    """Whether one process does: several start only where there is more than one chunk to parse."""
    return workers == 1 or sum(job.file is None or not job.file.exists() for job in jobs) < 2


def _in_processes(function: Callable[[_Job], Any], jobs: list[_Job], workers: int) -> Iterator[Any]:
    """Results in order."""
    if _in_one(jobs, workers):
        yield from map(function, jobs)
        return
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield from pool.map(function, jobs)


def rewrite(
    sentences: Sequence[str],
    rules: str | Sequence[str],
    seed: int = 0,
    share: float | Mapping[str, float] = 1.0,
    model: str | Path = "",
    folder: str | Path | None = None,
    workers: int = 1,
    progress: bool = False,
    first: int = 0,
    nouns: bool = False,
) -> dict[str, list[str]]:
    """Every sentence after each rule of SDA, all on one parse; each has its own generator, seeded
    by (seed, number).

    Args:
        rules: of `lib.augment.sda.RULES`, or for a Chinese pipeline of
            `lib.augment.sda.chinese.RULES`.
        share: probability that a rule is tried on a sentence, one for all or one for each; the
            others stay.
        model, folder, workers, progress: as `parse`.
        first: number of the first sentence in its corpus.
        nouns: the English double negation may put "no" before a noun, as `sda.double_negation` has
            it.

    Raises:
        ValueError: no rule or an unknown one, a share outside [0, 1], a pipeline for another
            language, `nouns` for Chinese, or a negative seed or number.

    Example:
        >>> rewrite(["She sings."], ["negation"])
        {'negation': ['She does not sing.']}

    Source: Zhu et al. 2024 (SDA), §4; share: Fig. 5 (a).
    """
    rules = [rules] if isinstance(rules, str) else list(rules)
    _at_least(0, seed=seed, first=first)
    _at_least(1, workers=workers)
    if not rules:
        raise ValueError(f"rules names none: choose among {', '.join(ENGLISH)}")
    if unknown := set(rules) - set(ENGLISH):
        raise ValueError(f"unknown rule {sorted(unknown)}: choose among {', '.join(ENGLISH)}")
    shares = dict(share) if isinstance(share, Mapping) else dict.fromkeys(rules, share)
    if not all(0 <= value <= 1 for value in shares.values()) or set(shares) != set(rules):
        raise ValueError(f"share must be in [0, 1], one for all rules or one for each, got {share}")
    nlp = load(model)
    if nlp.lang not in RULES:
        raise ValueError(
            f"there are rules for {' and '.join(RULES)}; {nlp.meta['name']} is a pipeline for"
            f" {nlp.lang}"
        )
    if nouns and nlp.lang != "en":
        raise ValueError(
            f"nouns is a choice of the English rules, {nlp.meta['name']} is for {nlp.lang}"
        )
    jobs = _jobs(sentences, nlp, str(model), folder, CHUNK)
    result: dict[str, list[str]] = {rule: [] for rule in rules}
    change = partial(_rewritten, shares=shares, seed=seed, first=first, nouns=nouns)
    with tqdm(total=len(sentences), unit="sentence", unit_scale=True, disable=not progress) as bar:
        for part in _in_processes(change, jobs, workers):
            for rule, lines in part.items():
                result[rule] += lines
            bar.update(len(part[rules[0]]))
    return result


def _rewritten(
    job: _Job, shares: dict[str, float], seed: int, first: int, nouns: bool
) -> dict[str, list[str]]:
    docs = _parsed(job)
    result: dict[str, list[str]] = {rule: [] for rule in shares}
    known = RULES[str(_pipeline(job.model, job.pipeline).lang)]
    every = min(shares.values()) == 1
    for number, (sentence, doc) in enumerate(
        zip(job.sentences, docs, strict=True), first + job.first
    ):
        drawn = 0.0 if every else np.random.default_rng((seed, number, 1)).random()
        tree = Tree.of(doc) if drawn < max(shares.values()) else None
        for rule, share in shares.items():
            tried = tree is not None and drawn < share
            found = apply(rule, tree, seed, number, known, nouns).text if tried else sentence
            result[rule].append(found)
    return result


@lru_cache(maxsize=2)
def _pipeline(model: str, digest: str) -> Language:
    """The pipeline of that name whose files have that digest, so that one trained anew is not taken
    for the old one."""
    nlp = load(model)
    if pipeline_digest(nlp) != digest:
        raise ValueError(
            f"the files of spaCy pipeline {model!r} changed while it was parsing: start again"
        )
    return nlp


def _parsed(job: _Job) -> Sequence[Doc]:
    """A chunk's parses, read where they are kept whole, else made and kept."""
    if (kept := _kept(job)) is not None:
        return kept
    docs = _docs(job)
    if job.file is not None:
        write_bytes(job.file, DocBin(attrs=ATTRIBUTES, docs=docs).to_bytes())
    return docs


def _packed(job: _Job) -> bytes:
    """As `_parsed`, to be sent from one process to another."""
    return DocBin(attrs=ATTRIBUTES, docs=_parsed(job)).to_bytes()


def _kept(job: _Job) -> list[Doc] | None:
    """The parses of a kept chunk; None if there is none, or it cannot be read, or holds other
    sentences."""
    if job.file is None or not job.file.is_file():
        return None
    content, vocabulary = job.file.read_bytes(), _pipeline(job.model, job.pipeline).vocab
    try:
        docs = list(DocBin().from_bytes(content).get_docs(vocabulary))
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError):
        return None
    return docs if [doc.text for doc in docs] == job.sentences else None


def _docs(job: _Job) -> Sequence[Doc]:
    nlp = _pipeline(job.model, job.pipeline)
    order = sorted(range(len(job.sentences)), key=lambda i: len(job.sentences[i]))
    docs: list[Doc] = [Doc(nlp.vocab)] * len(order)
    with threadpool_limits(
        1
    ):  # threads for matrices this small wait for each other longer than they work
        for i, doc in zip(
            order, nlp.pipe((job.sentences[i] for i in order), batch_size=128), strict=True
        ):
            docs[i] = doc
    return docs


def pipeline_digest(nlp: Language) -> str:
    """First twelve digits of a sha256 of a pipeline's name, version and vectors, spaCy's version
    and the components."""
    digest = hashlib.sha256(
        f"{nlp.meta['lang']} {nlp.meta['name']} {nlp.meta['version']} {spacy.__version__}".encode()
    )
    vectors = ("vocab/vectors",) if nlp.vocab.vectors.shape[0] else ()
    for part in (*nlp.component_names, "tokenizer", "config.cfg", *vectors):
        folder = Path(nlp.path or "none") / part
        for file in sorted(p for p in (folder, *folder.rglob("*")) if p.is_file()):
            digest.update(sha256(file).encode())
    return digest.hexdigest()[:12]
