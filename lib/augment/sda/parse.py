"""Parses of a corpus with spaCy: only the components that the rules of SDA need, kept on disk.

A corpus is cut into chunks, each parsed in batches of sentences of like length and stored as one
`DocBin` under the hash of its sentences and of the pipeline; a second call with the same text reads
them, and an interrupted one goes on at the first that is missing. A damaged chunk is parsed again.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import spacy
from spacy.language import Language
from spacy.tokens import Doc, DocBin
from thinc.api import NumpyOps, get_current_ops, use_ops
from threadpoolctl import threadpool_limits

from lib import paths
from lib.augment.sda import chinese
from lib.augment.sda.rules import RULES as ENGLISH
from lib.augment.sda.rules import apply
from lib.augment.sda.trees import Tree
from lib.data.files import cached, digest, sha256, write_bytes

UNUSED = ("ner", "senter", "textcat", "entity_ruler", "entity_linker")
_NEEDED = {
    "tagger": ("tagger", "attribute_ruler", "morphologizer"),
    "parser": ("parser", "experimental_biaffine_parser"),
    "lemmatizer": ("lemmatizer", "trainable_lemmatizer", "attribute_ruler", "tagger"),
}
Pipeline = str | Path | Language
Folder = str | Path | None
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
    plain = type(get_current_ops()) is NumpyOps  # its BLIS is a quarter slower than NumPy's BLAS
    try:
        with use_ops("numpy", use_blis=False) if plain else nullcontext():
            nlp = spacy.load(name, exclude=UNUSED)
    except OSError as error:
        remedy = f"run `python -m spacy download {name}`, or name the shipped one, data/mini-spacy"
        raise ValueError(f"no spaCy pipeline {name!r}: {remedy}") from error
    lacking = [n for n, kinds in _NEEDED.items() if not any(k in nlp.pipe_names for k in kinds)]
    if lacking:
        raise ValueError(f"the spaCy pipeline {name!r} has no {' or '.join(lacking)}")
    if "trainable_lemmatizer" in nlp.pipe_names and "morphologizer" in nlp.pipe_names:
        nlp.disable_pipe("morphologizer")
    return nlp


def parse(
    sentences: Sequence[str], model: Pipeline = "", folder: Folder = None, workers=1, chunk=2000
) -> Iterator[Doc]:
    """The parse of each sentence, in order; a blank sentence is an empty `Doc`.

    Args:
        sentences: one sentence each, without line breaks.
        model: as `load`, or what it returns.
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
    if workers < 1 or chunk < 1:
        raise ValueError(f"workers and chunk must be at least 1, got {workers} and {chunk}")
    nlp = model if isinstance(model, Language) else load(model)
    pipeline = [pipeline_digest(nlp), *nlp.pipe_names, *ATTRIBUTES]
    for start in range(0, len(sentences), chunk):
        part = list(sentences[start : start + chunk])
        make = partial(_docs, nlp, part, workers)
        if folder is None:
            yield from make()
        else:
            path = Path(folder) / f"{digest(part, pipeline)}.spacy"
            yield from cached(path, make, _save, partial(_load, nlp, part))


def _docs(nlp: Language, sentences: list[str], workers: int) -> list[Doc]:
    order = sorted(range(len(sentences)), key=lambda i: len(sentences[i]))
    texts = (sentences[i] for i in order)
    with threadpool_limits(1):  # threads for matrices this small wait longer than they work
        docs = list(nlp.pipe(texts, batch_size=128, n_process=workers))
    return [docs[place] for place in np.argsort(order)]


def _save(docs: list[Doc], path: Path) -> None:
    write_bytes(path, DocBin(attrs=ATTRIBUTES, docs=docs).to_bytes())


def _load(nlp: Language, sentences: list[str], path: Path) -> list[Doc]:
    try:
        docs = list(DocBin().from_bytes(path.read_bytes()).get_docs(nlp.vocab))
    except (LookupError, TypeError, AttributeError, ArithmeticError) as error:
        raise ValueError(f"{path} is damaged") from error
    if [doc.text for doc in docs] != sentences:
        raise ValueError(f"{path} has other sentences")
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
        rules: of `lib.augment.sda.RULES`; a Chinese pipeline has Chinese rules of these names.
        share: probability that a rule is tried on a sentence, one for all or one for each; the
            others stay.
        first: number of the first sentence in its corpus.
        nouns: the English double negation may put "no" before a noun, as `sda.double_negation` has
            it.
        parsing: model, folder, workers, as `parse`.

    Raises:
        ValueError: an unknown rule, a share outside [0, 1], a pipeline for another language,
            `nouns` for Chinese, or a negative seed or number.

    Example:
        >>> rewrite(["She sings."], ["negation"])
        {'negation': ['She does not sing.']}

    Source: Zhu et al. 2024 (SDA), §4; share: Fig. 5 (a).
    """
    rules = [rules] if isinstance(rules, str) else list(rules)
    shares = dict(share) if isinstance(share, Mapping) else dict.fromkeys(rules, share)
    if not all(0 <= value <= 1 for value in shares.values()):
        raise ValueError(f"share must be in [0, 1], got {share}")
    nlp = load(parsing.pop("model", ""))
    if nlp.lang not in RULES:
        raise ValueError(f"there are rules for {' and '.join(RULES)}, not for {nlp.lang}")
    if nouns and nlp.lang != "en":
        raise ValueError(f"nouns is a choice of the English rules, the pipeline is for {nlp.lang}")
    known, result = RULES[str(nlp.lang)], {rule: list[str]() for rule in rules}
    docs = parse(sentences, nlp, **parsing)
    for number, (sentence, doc) in enumerate(zip(sentences, docs, strict=True), first):
        drawn, tree = np.random.default_rng((seed, number, 1)).random(), Tree.of(doc)
        for rule in rules:
            tried = drawn < shares[rule]
            new = apply(rule, tree, seed, number, known, nouns=nouns).text if tried else sentence
            result[rule].append(new)
    return result


def pipeline_digest(nlp: Language) -> str:
    """First twelve digits of a sha256 of a pipeline's name, version and vectors, spaCy's version
    and the components."""
    about = [*(nlp.meta[name] for name in ("lang", "name", "version")), spacy.__version__]
    found = hashlib.sha256(" ".join(about).encode())
    vectors = ("vocab/vectors",) if nlp.vocab.vectors.shape[0] else ()
    for part in (*nlp.component_names, "tokenizer", "config.cfg", *vectors):
        folder = Path(nlp.path or "none") / part
        for file in sorted(p for p in (folder, *folder.rglob("*")) if p.is_file()):
            found.update(sha256(file).encode())
    return found.hexdigest()[:12]
