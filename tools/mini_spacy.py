"""Train the project's small English spaCy pipeline on the UD English EWT treebank, score it, fill
in the README.

    python -m tools.mini_spacy [--out DIR] [--data DIR] [--score-only]

The treebank is looked for in `treebank/ud_ewt` of the folder that CSE_DATA names.
`data/mini-spacy/README.md` is the model card.
"""

import argparse
import json
import random
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import spacy
import srsly
from spacy.cli.train import train
from spacy.language import Language
from spacy.tokens import Doc, DocBin
from spacy.training import Example
from spacy.util import compile_prefix_regex, compile_suffix_regex, load_config
from spacy.vocab import Vocab

from lib import paths
from lib.data import files
from tools.markers import fill

TREEBANK = Path("treebank") / "ud_ewt"
PARTS = {
    "train": "en_ewt-ud-train_rebuilt.conllu",
    "dev": "en_ewt-ud-dev.conllu",
    "test": "en_ewt-ud-test.conllu",
}
SCORES = {
    "uas": "dep_uas",
    "las": "dep_las",
    "tag": "tag_acc",
    "pos": "pos_acc",
    "morph": "morph_acc",
    "lemma": "lemma_acc",
    "token_f": "token_f",
}
SEED = 0
RUNNING_TEXT_SHARE = 0.15
SPACE_SHARE = 0.05
SPACES = ("  ", "  ", "  ", "   ", "\n", " \n", "\t")

# What the treebank keeps whole and spaCy's English rules split, and the reverse.
RUNS = (r"[!?]{2,}", r"={2,}", r"_{2,}", r"\*{2,}", r"~{2,}", r"<{2,}", r">{2,}")
WHOLE = ("e-mail", "E-mail", "e-mails", "E-mails", "etc.")
SPLIT = ("and/or",)

NO_TREE = 2**32 - 1


class Sentence(NamedTuple):
    """One sentence of a CoNLL-U file; `heads` are positions in the sentence, a root's is its
    own."""

    text: str
    words: list[str]
    spaces: list[bool]
    tags: list[str]
    pos: list[str]
    morphs: list[str]
    lemmas: list[str]
    heads: list[int]
    deps: list[str]
    opens_document: bool = False


def parse_sentence(block: str) -> Sentence:
    """Read one sentence.

    Comment lines, empty nodes (`1.1`) and enhanced dependencies are left out. The words of a
    multiword token stand without a space between them, and the last takes the space of the token.

    Args:
        block: the sentence's lines.

    Returns:
        The sentence.

    Raises:
        ValueError: a multiword token is not its words in a row, or a line has not ten columns.

    Example:
        >>> rows = ["1 Go go VERB VB _ 0 root _ SpaceAfter=No", "2 ! ! PUNCT . _ 1 punct _ _"]
        >>> lines = ["# text = Go!", *(row.replace(" ", "\\t") for row in rows)]
        >>> sentence = parse_sentence("\\n".join(lines))
        >>> sentence.words, sentence.spaces, sentence.heads
        (['Go', '!'], [False, True], [0, 0])
    """
    text, opens_document = "", False
    rows: list[list[str]] = []
    spaces: list[bool] = []
    ranges: list[tuple[int, int, str, bool]] = []
    for line in block.splitlines():
        if line.startswith("#"):
            if line.startswith("# text = "):
                text = line.removeprefix("# text = ")
            opens_document |= line.startswith("# newdoc")
            continue
        columns = line.split("\t")
        if len(columns) != 10:
            raise ValueError(f"{len(columns)} columns, not 10: {line!r}")
        space = "SpaceAfter=No" not in columns[9].split("|")
        if "-" in columns[0]:
            first, last = map(int, columns[0].split("-"))
            ranges.append((first, last, columns[1], space))
        elif "." not in columns[0]:
            rows.append(columns)
            spaces.append(space)
    for first, last, form, space in ranges:
        if "".join(row[1] for row in rows[first - 1 : last]) != form:
            raise ValueError(f"the words of {form!r} do not add up to it")
        spaces[first - 1 : last] = [False] * (last - first) + [space]
    _, words, lemmas, pos, tags, morphs, heads, deps, _, _ = (
        list(column) for column in zip(*rows, strict=True)
    )
    return Sentence(
        text,
        words,
        spaces,
        tags,
        pos,
        ["" if morph == "_" else morph for morph in morphs],
        lemmas,
        [int(head) - 1 if head != "0" else i for i, head in enumerate(heads)],
        ["ROOT" if dep == "root" else dep for dep in deps],
        opens_document,
    )


def read_conllu(path: Path) -> Iterator[Sentence]:
    """Read a CoNLL-U file, sentence by sentence.

    Args:
        path: the file.

    Yields:
        The sentences, in order.

    Raises:
        ValueError: as `parse_sentence`.

    Example:
        >>> import os
        >>> [sentence.text for sentence in read_conllu(Path(os.devnull))]
        []
    """
    for block in path.read_text(encoding="utf-8").split("\n\n"):
        if block.strip():
            yield parse_sentence(block)


def to_doc(sentence: Sentence, vocab: Vocab) -> Doc:
    """A sentence as a spaCy document with every annotation; its text is the sentence's.

    Args:
        sentence: the sentence.
        vocab: vocabulary of the document.

    Returns:
        The document; no space follows its last word.

    Example:
        >>> sentence = Sentence(
        ...     "Go!", ["Go", "!"], [False, True], ["VB", "."], ["VERB", "PUNCT"], ["", ""],
        ...     ["go", "!"], [0, 0], ["ROOT", "punct"]
        ... )
        >>> to_doc(sentence, Vocab()).text
        'Go!'
    """
    return Doc(
        vocab,
        words=sentence.words,
        spaces=[*sentence.spaces[:-1], False],
        tags=sentence.tags,
        pos=sentence.pos,
        morphs=sentence.morphs,
        lemmas=sentence.lemmas,
        heads=sentence.heads,
        deps=sentence.deps,
    )


def join(sentences: Iterable[Sentence], vocab: Vocab) -> Doc:
    """One document of several sentences, a space between them.

    Example:
        >>> sentence = Sentence("Go", ["Go"], [True], ["VB"], ["VERB"], [""], ["go"], [0], ["ROOT"])
        >>> [span.text for span in join([sentence, sentence], Vocab()).sents]
        ['Go', 'Go']
    """
    docs = [to_doc(sentence, vocab) for sentence in sentences]
    return Doc.from_docs(docs, ensure_whitespace=True) if len(docs) > 1 else docs[0]


def running_text(
    sentences: Iterable[Sentence], share: float = RUNNING_TEXT_SHARE, seed: int = SEED
) -> list[list[Sentence]]:
    """Group sentences so that the parser sees where one ends and the next begins.

    Args:
        sentences: sentences in the treebank's order.
        share: share of the groups that take up to three of the sentences that follow in the same
            text.
        seed: which groups.

    Returns:
        Groups of one to four sentences; every sentence is in one.

    Example:
        >>> one = Sentence("Go", ["Go"], [True], ["VB"], ["VERB"], [""], ["go"], [0], ["ROOT"])
        >>> [len(group) for group in running_text([one] * 3, share=0)]
        [1, 1, 1]
    """
    rng = random.Random(seed)
    groups: list[list[Sentence]] = []
    room = 0
    for sentence in sentences:
        if room and not sentence.opens_document:
            groups[-1].append(sentence)
            room -= 1
        else:
            groups.append([sentence])
            room = rng.choice((1, 2, 3)) if rng.random() < share else 0
    return groups


def insert_space(sentence: Sentence, position: int, space: str) -> Sentence:
    """Put white space in front of a word, as spaCy tokenises it: what exceeds one blank is a token
    of its own.

    Args:
        sentence: the sentence.
        position: the word; a blank or nothing must stand in front of it.
        space: white space other than a single blank.

    Returns:
        A sentence whose token of white space (tag `_SP`) depends on the word before it, or on the
        first word.

    Example:
        >>> two = Sentence(
        ...     "a b", ["a", "b"], [True, True], ["DT", "NN"], ["DET", "NOUN"], ["", ""],
        ...     ["a", "b"], [1, 1], ["det", "ROOT"]
        ... )
        >>> wider = insert_space(two, 1, "  ")
        >>> wider.text, wider.words, wider.heads
        ('a  b', ['a', ' ', 'b'], [2, 0, 2])
    """
    token = space.removeprefix(" ") if position else space
    before = list(sentence.spaces[:position])
    if position:
        before[-1] = token != space

    def insert(old: list[Any], new: Any) -> list[Any]:
        return [*old[:position], new, *old[position:]]

    heads = insert(
        [head + (head >= position) for head in sentence.heads], position - 1 if position else 1
    )
    words = insert(sentence.words, token)
    spaces = [*before, False, *sentence.spaces[position:]]
    return sentence._replace(
        text="".join(
            word + " " * blank for word, blank in zip(words, spaces, strict=True)
        ).rstrip(),
        words=words,
        spaces=spaces,
        tags=insert(sentence.tags, "_SP"),
        pos=insert(sentence.pos, "SPACE"),
        morphs=insert(sentence.morphs, ""),
        lemmas=insert(sentence.lemmas, token),
        heads=heads,
        deps=insert(sentence.deps, "dep"),
    )


def with_spaces(
    sentences: Iterable[Sentence], share: float = SPACE_SHARE, seed: int = SEED
) -> list[Sentence]:
    """Put white space into some sentences: the treebank has none, other texts have.

    Args:
        sentences: sentences.
        share: share of the sentences that get one token of white space.
        seed: which sentences, where and what.

    Returns:
        The sentences, those chosen through `insert_space`.

    Example:
        >>> one = Sentence("Go", ["Go"], [True], ["VB"], ["VERB"], [""], ["go"], [0], ["ROOT"])
        >>> with_spaces([one], share=0) == [one]
        True
    """
    rng = random.Random(seed)
    out = []
    for sentence in sentences:
        if rng.random() < share:
            places = [0, *(i + 1 for i, blank in enumerate(sentence.spaces[:-1]) if blank)]
            sentence = insert_space(sentence, rng.choice(places), rng.choice(SPACES))
        out.append(sentence)
    return out


def whole_texts(sentences: Iterable[Sentence]) -> list[list[Sentence]]:
    """Group the sentences of each text of the treebank."""
    groups: list[list[Sentence]] = []
    for sentence in sentences:
        if sentence.opens_document or not groups:
            groups.append([])
        groups[-1].append(sentence)
    return groups


@spacy.registry.callbacks("mini_spacy.tokenizer")
def treebank_tokenizer() -> Callable[[Language], Language]:
    """Callback that adapts spaCy's English tokeniser to what the treebank splits; it is stored with
    the pipeline."""

    def adapt(nlp: Language) -> Language:
        tokenizer: Any = nlp.tokenizer
        tokenizer.prefix_search = compile_prefix_regex(
            [*RUNS, *(nlp.Defaults.prefixes or ())]
        ).search
        tokenizer.suffix_search = compile_suffix_regex(
            [*(nlp.Defaults.suffixes or ()), *RUNS]
        ).search
        tokenizer.rules = {
            form: rule for form, rule in tokenizer.rules.items() if form not in SPLIT
        }
        for form in WHOLE:
            tokenizer.add_special_case(form, [{"ORTH": form}])
        return nlp

    return adapt


def score(nlp: Language, tokens: Iterable[Doc], references: Iterable[Doc]) -> dict[str, float]:
    """Scores of a pipeline, in per cent to two decimals.

    Args:
        nlp: the pipeline.
        tokens: tokenised documents.
        references: the same with the treebank's tokens and annotation.

    Returns:
        name of `SCORES` → score, an F1 where the two tokenisations differ: a token of the treebank
        that the pipeline cuts otherwise counts as missed. UAS and LAS ignore punctuation.
    """
    found = nlp.evaluate([Example(*pair) for pair in zip(tokens, references, strict=True)])
    return {name: round(100 * found[key], 2) for name, key in SCORES.items()}


def evaluate(nlp: Language, sentences: list[Sentence]) -> dict[str, dict[str, float]]:
    """Scores of a pipeline on a part of the treebank.

    Args:
        nlp: the pipeline.
        sentences: annotated sentences.

    Returns:
        `gold`: scores on the treebank's tokens; `own`: on the pipeline's; `sentence_f`: F1 of the
            sentences found, each
        a document (below 100 where one is split), and when each text of the treebank is parsed in
        one piece.

    Example:
        >>> nlp = spacy.load(paths.MINI_SPACY)  # doctest: +SKIP
        >>> sentences = list(read_conllu(Path("en_ewt-ud-dev.conllu")))  # doctest: +SKIP
        >>> evaluate(nlp, sentences)["own"]["las"]  # doctest: +SKIP
    """
    references = [to_doc(sentence, nlp.vocab) for sentence in sentences]
    tokens = [Doc(nlp.vocab, words=s.words, spaces=[*s.spaces[:-1], False]) for s in sentences]
    texts = [join(group, nlp.vocab) for group in whole_texts(sentences)]
    apart, together = (
        nlp.evaluate([Example(nlp.make_doc(doc.text), doc) for doc in docs])["sents_f"]
        for docs in (references, texts)
    )
    return {
        "gold": score(nlp, tokens, references),
        "own": score(nlp, [nlp.make_doc(doc.text) for doc in references], references),
        "sentence_f": {"apart": round(100 * apart, 2), "together": round(100 * together, 2)},
    }


def needed_strings(nlp: Language) -> list[str]:
    """Strings that a loaded pipeline looks up: those of blank English, the labels and the
    lemmatiser's replacements.

    The embeddings are hashed, so no other word of the treebank has to stay.

    Example:
        >>> "running" in needed_strings(spacy.load(paths.MINI_SPACY))  # doctest: +SKIP
        False
    """
    strings = set(spacy.blank("en").vocab.strings)
    for name in nlp.pipe_names:
        strings |= {
            label for label in getattr(nlp.get_pipe(name), "labels", ()) if isinstance(label, str)
        }
    lemmatizer: Any = nlp.get_pipe("trainable_lemmatizer")
    trees = srsly.msgpack_loads(lemmatizer.trees.to_bytes())["trees"]
    reached = list(lemmatizer.cfg["labels"])
    while reached:
        tree = trees[reached.pop()]
        strings |= {nlp.vocab.strings[tree[name]] for name in ("orig", "subst") if name in tree}
        reached += [
            tree[name]
            for name in ("prefix_tree", "suffix_tree")
            if tree.get(name, NO_TREE) != NO_TREE
        ]
    return sorted(strings - {""})


def ship(trained: Path, folder: Path) -> None:
    """Write a trained pipeline into a folder that holds other files too, part by part under a
    temporary name.

    Paths, the training callback and every string not needed are left out.

    Args:
        trained: what `spacy.cli.train` wrote.
        folder: where the pipeline goes.
    """
    nlp = spacy.load(trained)
    nlp.config["paths"] = {name: None for name in nlp.config["paths"]}
    nlp.config["initialize"]["before_init"] = None
    nlp.meta.update(
        name="mini",
        version="1.0.0",
        description="Small English pipeline trained on UD English EWT",
        license="CC BY-SA 4.0",
        performance={},
    )
    folder.mkdir(parents=True, exist_ok=True)
    temporary = files.temporary_name(folder / "pipeline")
    nlp.to_disk(temporary)
    files.write_json(temporary / "vocab" / "strings.json", needed_strings(nlp))
    for part in sorted(temporary.iterdir()):
        target = folder / part.name
        if target.is_dir():
            shutil.rmtree(target)
        part.replace(target)
    temporary.rmdir()


def table(scores: dict[str, Any]) -> str:
    """The README's table of `scores.json`."""
    lines = [
        "| part | tokens | UAS | LAS | tags | parts of speech | features | lemmas | tokens, F1 |"
        " sentences, F1 |",
        "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for part in ("dev", "test"):
        for tokens, title in (("own", "its own"), ("gold", "the treebank's")):
            figures = [f"{figure:.1f}" for figure in scores[part][tokens].values()]
            if tokens == "own":
                figures.append("{apart:.1f} · {together:.1f}".format(**scores[part]["sentence_f"]))
            else:
                figures[-1:] = ["–", "–"]
            lines.append(f"| {part} | {title} | {' | '.join(figures)} |")
    return "\n".join(lines)


def find_treebank(data_dir: str | None = None) -> Path:
    """Folder of the treebank's CoNLL-U files.

    Args:
        data_dir: folder that holds `treebank/ud_ewt`; default: those of `lib.paths.data_dirs`.

    Raises:
        FileNotFoundError: the files are in none of the folders.
    """
    for folder in paths.data_dirs(data_dir):
        if all((folder / TREEBANK / name).is_file() for name in PARTS.values()):
            return folder / TREEBANK
    raise FileNotFoundError(
        f"no {TREEBANK.as_posix()} with {', '.join(PARTS.values())}; set CSE_DATA or --data"
    )


def fit(treebank: dict[str, list[Sentence]], config: Path, work: Path) -> Path:
    """Train a pipeline.

    Args:
        treebank: sentences of `train` and `dev`.
        config: training configuration.
        work: folder for the documents and the pipelines.

    Returns:
        Folder of the pipeline that scores best on dev.
    """
    vocab = spacy.blank("en").vocab
    documents = {
        "train": [join(group, vocab) for group in running_text(with_spaces(treebank["train"]))],
        "dev": [to_doc(sentence, vocab) for sentence in treebank["dev"]],
    }
    for part, docs in documents.items():
        DocBin(docs=docs, store_user_data=False).to_disk(work / f"{part}.spacy")
    train(
        config,
        work / "out",
        overrides={f"paths.{part}": str(work / f"{part}.spacy") for part in documents},
    )
    return work / "out" / "model-best"


def infinitives(sentences: Iterable[Sentence]) -> list[str]:
    """The distinct lemmas of verbs, sorted: lower-case letters only, at least two.

    Example:
        >>> infinitives([])
        []
    """
    found = {
        lemma
        for s in sentences
        for lemma, tag, pos in zip(s.lemmas, s.tags, s.pos, strict=True)
        if pos == "VERB"
        and tag.startswith("VB")
        and len(lemma) > 1
        and lemma.isascii()
        and lemma.isalpha()
    }
    return sorted(lemma for lemma in found if lemma.islower())


def main(argv: list[str] | None = None) -> None:
    """Train, ship, score and fill in the README, as the command line says."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=paths.MINI_SPACY,
        help="folder of the pipeline (default: data/mini-spacy)",
    )
    parser.add_argument(
        "--data", help="folder that holds treebank/ud_ewt (default: CSE_DATA, then data/)"
    )
    parser.add_argument(
        "--config", type=Path, default=paths.MINI_SPACY / "train.cfg", help="training configuration"
    )
    parser.add_argument(
        "--trained", type=Path, help="pipeline already trained by `spacy train`: do not train"
    )
    parser.add_argument(
        "--score-only",
        action="store_true",
        help="score the pipeline in --out: neither train nor ship",
    )
    arguments = parser.parse_args(argv)
    folder = find_treebank(arguments.data)
    treebank = {part: list(read_conllu(folder / name)) for part, name in PARTS.items()}
    written = arguments.out / "scores.json"
    training = json.loads(written.read_text())["training"] if written.is_file() else {}
    if not arguments.score_only:
        with tempfile.TemporaryDirectory() as work:
            start = time.monotonic()
            trained = arguments.trained or fit(treebank, arguments.config, Path(work))
            if not arguments.trained:
                training = {"minutes": round((time.monotonic() - start) / 60)}
            training["max_steps"] = load_config(arguments.config)["training"]["max_steps"]
            ship(trained, arguments.out)
    files.write_text(arguments.out / "verbs.txt", "\n".join(infinitives(treebank["train"])) + "\n")
    nlp = spacy.load(arguments.out)
    scores = {part: evaluate(nlp, treebank[part]) for part in ("dev", "test")}
    files.write_json(written, {**scores, "training": training, "spacy": spacy.__version__})
    if (readme := arguments.out / "README.md").is_file():
        fill(readme, "scores", table(scores))


if __name__ == "__main__":
    main()
