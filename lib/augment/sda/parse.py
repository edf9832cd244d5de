"""Parses of a corpus with spaCy: only the components that the rules of SDA need, kept on disk.

A corpus is cut into chunks, each parsed in batches of sentences of like length and stored as one
`DocBin` under the hash of its sentences and of the pipeline; a second call with the same text reads
them, and an interrupted one goes on at the first that is missing. A damaged chunk is parsed again.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
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
from lib.data.files import digest, make_folder, sha256, write_bytes

UNUSED = ("ner", "senter", "textcat", "entity_ruler", "entity_linker")
_NEEDED = {
    "tagger": ("tagger", "attribute_ruler", "morphologizer"),
    "parser": ("parser", "experimental_biaffine_parser"),
    "lemmatizer": ("lemmatizer", "trainable_lemmatizer", "attribute_ruler", "tagger"),
}
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
        folder: where parses are kept; None: nowhere.
        workers: processes.
        chunk: sentences to a file.

    Raises:
        ValueError: as `load`; `workers` or `chunk` below 1.
        OSError: `folder` cannot be made.

    Example:
        >>> [token.tag_ for token in next(parse(["She sings."]))]
        ['PRP', 'VBZ', '.']
    """
    _at_least(1, workers=workers, chunk=chunk)
    yield from _parsed(load(model), sentences, folder, workers, progress, chunk)


def _at_least(least: int, **values: int) -> None:
    if any(value < least for value in values.values()):
        given = " and ".join(str(value) for value in values.values())
        raise ValueError(f"{' and '.join(values)} must be at least {least}, got {given}")


def _parsed(
    nlp: Language,
    sentences: Sequence[str],
    folder: str | Path | None = None,
    workers: int = 1,
    progress: bool = False,
    chunk: int = CHUNK,
) -> Iterator[Doc]:
    if folder is not None:
        make_folder(Path(folder), "--parses")
    pipeline = [pipeline_digest(nlp), *nlp.pipe_names, *ATTRIBUTES]
    bar = tqdm(total=len(sentences), unit="sentence", unit_scale=True, disable=not progress)
    for start in range(0, len(sentences), chunk):
        part = list(sentences[start : start + chunk])
        file = None if folder is None else Path(folder) / f"{digest(part, pipeline)}.spacy"
        docs = _kept(nlp, file, part)
        if docs is None:
            docs = _docs(nlp, part, workers)
            if file is not None:
                write_bytes(file, DocBin(attrs=ATTRIBUTES, docs=docs).to_bytes())
        yield from docs
        bar.update(len(part))
    bar.close()


def _kept(nlp: Language, file: Path | None, sentences: list[str]) -> list[Doc] | None:
    """The parses of a kept chunk; None if there is none or it is damaged."""
    if file is None or not file.is_file():
        return None
    try:
        docs = list(DocBin().from_bytes(file.read_bytes()).get_docs(nlp.vocab))
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError):
        return None
    return docs if [doc.text for doc in docs] == sentences else None


def _docs(nlp: Language, sentences: list[str], workers: int) -> list[Doc]:
    order = sorted(range(len(sentences)), key=lambda i: len(sentences[i]))
    docs: list[Doc] = [Doc(nlp.vocab)] * len(order)
    texts = (sentences[i] for i in order)
    with threadpool_limits(1):  # threads for matrices this small wait longer than they work
        parsed = nlp.pipe(texts, batch_size=128, n_process=workers)
        for i, doc in zip(order, parsed, strict=True):
            docs[i] = doc
    return docs


def rewrite(
    sentences: Sequence[str],
    rules: str | Sequence[str],
    seed: int = 0,
    share: float | Mapping[str, float] = 1.0,
    first: int = 0,
    nouns: bool = False,
    **parsing: Any,
) -> dict[str, list[str]]:
    """Every sentence after each rule of SDA, all on one parse; each has its own generator, seeded
    by (seed, number).

    Args:
        rules: of `lib.augment.sda.RULES`, or for a Chinese pipeline of
            `lib.augment.sda.chinese.RULES`.
        share: probability that a rule is tried on a sentence, one for all or one for each; the
            others stay.
        first: number of the first sentence in its corpus.
        nouns: the English double negation may put "no" before a noun, as `sda.double_negation` has
            it.
        parsing: model, folder, workers, progress, as `parse`.

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
    _at_least(1, workers=parsing.get("workers", 1))
    if not rules:
        raise ValueError(f"rules names none: choose among {', '.join(ENGLISH)}")
    if unknown := set(rules) - set(ENGLISH):
        raise ValueError(f"unknown rule {sorted(unknown)}: choose among {', '.join(ENGLISH)}")
    shares = dict(share) if isinstance(share, Mapping) else dict.fromkeys(rules, share)
    if not all(0 <= value <= 1 for value in shares.values()) or set(shares) != set(rules):
        raise ValueError(f"share must be in [0, 1], one for all rules or one for each, got {share}")
    nlp = load(parsing.pop("model", ""))
    if nlp.lang not in RULES:
        raise ValueError(
            f"there are rules for {' and '.join(RULES)}; {nlp.meta['name']} is a pipeline for"
            f" {nlp.lang}"
        )
    if nouns and nlp.lang != "en":
        raise ValueError(
            f"nouns is a choice of the English rules, {nlp.meta['name']} is for {nlp.lang}"
        )
    known = RULES[str(nlp.lang)]
    result: dict[str, list[str]] = {rule: [] for rule in rules}
    docs = _parsed(nlp, sentences, **parsing)
    for number, (sentence, doc) in enumerate(zip(sentences, docs, strict=True), first):
        drawn = np.random.default_rng((seed, number, 1)).random() if min(shares.values()) < 1 else 0
        tree = Tree.of(doc) if drawn < max(shares.values()) else None
        for rule, share in shares.items():
            tried = tree is not None and drawn < share
            new = apply(rule, tree, seed, number, known, nouns).text if tried else sentence
            result[rule].append(new)
    return result


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
