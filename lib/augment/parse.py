"""Parses of a corpus with spaCy: only the components that the rules of SDA need, in several processes, kept on disk.

A corpus is cut into chunks, each parsed in batches of sentences of like length and stored as one `DocBin`; a second
call with the same text and pipeline reads them, and an interrupted one goes on at the first that is missing.
"""

import hashlib
import multiprocessing
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from functools import cache
from pathlib import Path

import numpy as np
import spacy
from spacy.language import Language
from spacy.tokens import Doc, DocBin
from tqdm import tqdm

from lib import paths
from lib.augment import sda
from lib.data import sha256, write_bytes

UNUSED = ("ner", "senter", "textcat", "entity_ruler", "entity_linker")
ATTRIBUTES = ("TAG", "POS", "DEP", "HEAD", "LEMMA", "SPACY")


def load(model: str | Path = "") -> Language:
    """A spaCy pipeline without the components that parsing does not need.

    Args:
        model: an installed package ("en_core_web_sm"), a folder, or "" for the shipped `data/mini-spacy`.

    Raises:
        ValueError: there is none of that name, or it has no tagger, parser or lemmatiser.
    """
    name = str(model or paths.MINI_SPACY)
    try:
        nlp = spacy.load(name, exclude=UNUSED)
    except OSError as error:
        raise ValueError(
            f"no spaCy pipeline {name!r}: run `python -m spacy download {name}`, or name none for the shipped one"
        ) from error
    lacking = [n for n, kinds in _NEEDED.items() if not any(k in nlp.pipe_names for k in kinds)]
    if lacking:
        raise ValueError(f"{name!r} has {', '.join(nlp.pipe_names) or 'no component'}, but no {' or '.join(lacking)}")
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
    chunk: int = 2000,
    progress: bool = False,
) -> Iterator[Doc]:
    """The parse of each sentence, in order; a blank sentence is an empty `Doc`.

    Args:
        sentences: one sentence each, without line breaks.
        model: as `load`.
        folder: where parses are kept, in a folder named after the text and the pipeline; None: nowhere.
        workers: processes.
        chunk: sentences to a file.

    Raises:
        ValueError: as `load`, or `workers` or `chunk` below 1.

    Example:
        >>> [token.tag_ for token in next(parse(["Dogs bark."]))]
        ['NNS', 'VBP', '.']
    """
    if workers < 1 or chunk < 1:
        raise ValueError(f"workers and chunk must be at least 1, got {workers} and {chunk}")
    nlp = load(model)
    parts = [list(sentences[i : i + chunk]) for i in range(0, len(sentences), chunk)]
    files: list[Path | None] = [None] * len(parts)
    if folder is not None:
        target = Path(folder) / f"{_digest_text(sentences)}-{pipeline_digest(nlp)}-{chunk}"
        files = [target / f"{i:05d}.spacy" for i in range(len(parts))]
    missing = [i for i, file in enumerate(files) if file is None or not file.exists()]
    spawn = multiprocessing.get_context("spawn")
    several = workers > 1 and len(missing) > 1
    with ProcessPoolExecutor(workers, mp_context=spawn) if several else nullcontext() as pool:
        jobs = ([parts[i] for i in missing], [str(model)] * len(missing))
        fresh = iter(pool.map(_parsed, *jobs) if pool else map(_parsed, *jobs))
        with tqdm(total=len(sentences), unit="sentence", unit_scale=True, disable=not progress) as bar:
            for i, (part, file) in enumerate(zip(parts, files, strict=True)):
                if i in missing:
                    content = next(fresh)
                    if file is not None:
                        file.parent.mkdir(parents=True, exist_ok=True)
                        write_bytes(file, content)
                else:
                    content = file.read_bytes()  # type: ignore[union-attr]
                yield from DocBin().from_bytes(content).get_docs(nlp.vocab)
                bar.update(len(part))


def rewrite(
    sentences: Sequence[str],
    rule: str,
    seed: int = 0,
    share: float = 1.0,
    model: str | Path = "",
    folder: str | Path | None = None,
    workers: int = 1,
    progress: bool = False,
    numbers: Sequence[int] | None = None,
) -> list[str]:
    """Every sentence after a rule of SDA; each has its own generator, seeded by `seed` and its number.

    Args:
        rule: of `lib.augment.sda.RULES`.
        share: probability that the rule is tried on a sentence; the others stay.
        model, folder, workers, progress: as `parse`.
        numbers: number of each sentence in its corpus; None: 0, 1, 2 …

    Raises:
        ValueError: unknown rule, or a share outside [0, 1].

    Example:
        >>> rewrite(["Dogs bark."], "negation")
        ['Dogs do not bark.']

    Source: Zhu et al. 2024 (SDA), §4; share: Fig. 5 (a).
    """
    if rule not in sda.RULES:
        raise ValueError(f"unknown rule {rule!r}: choose one of {', '.join(sda.RULES)}")
    if not 0 <= share <= 1:
        raise ValueError(f"share must be in [0, 1], got {share}")
    docs = parse(sentences, model, folder, workers, progress=progress)
    result = []
    for number, sentence, doc in zip(numbers or range(len(sentences)), sentences, docs, strict=True):
        tried = share == 1 or np.random.default_rng((seed, number, 1)).random() < share
        result.append(sda.apply(rule, doc, seed, number).text if tried else sentence)
    return result


@cache
def _pipeline(model: str) -> Language:
    return load(model)


def _parsed(sentences: list[str], model: str) -> bytes:
    """A chunk's `DocBin`."""
    nlp = _pipeline(model)
    order = sorted(range(len(sentences)), key=lambda i: len(sentences[i]))
    docs: list[Doc] = [Doc(nlp.vocab)] * len(sentences)
    for i, doc in zip(order, nlp.pipe((sentences[i] for i in order), batch_size=128), strict=True):
        docs[i] = doc
    return DocBin(attrs=ATTRIBUTES, docs=docs).to_bytes()


def _digest_text(sentences: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(sentences).encode()).hexdigest()[:12]


def pipeline_digest(nlp: Language) -> str:
    """First twelve digits of a sha256 of a pipeline's name, version, spaCy's version and its files."""
    digest = hashlib.sha256(f"{nlp.meta['lang']} {nlp.meta['name']} {nlp.meta['version']} {spacy.__version__}".encode())
    for file in sorted(p for p in Path(nlp.path or paths.ROOT / "none").rglob("*") if p.is_file()):
        digest.update(sha256(file).encode())
    return digest.hexdigest()[:12]
