"""Train the project's small English spaCy pipeline on the UD English EWT treebank and score it.

`python data/mini-spacy/build.py` does it all; the README beside this file says what comes out.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from spacy.tokens import Doc
from spacy.vocab import Vocab


class Sentence(NamedTuple):
    """One sentence of a CoNLL-U file; `heads` are positions in the sentence, a root's is its own."""

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

    Comment lines, empty nodes (`1.1`) and enhanced dependencies are left out. The words of a multiword token
    stand without a space between them, and the last takes the space of the token.

    Args:
        block: the sentence's lines.

    Returns:
        The sentence.

    Raises:
        ValueError: a multiword token is not its words in a row, or a line has not ten columns.

    Example:
        >>> block = "# text = Go!\\n1\\tGo\\tgo\\tVERB\\tVB\\t_\\t0\\troot\\t_\\tSpaceAfter=No\\n2\\t!\\t!\\tPUNCT\\t.\\t_\\t1\\tpunct\\t_\\t_"
        >>> parse_sentence(block).heads
        [0, 0]
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
    _, words, lemmas, pos, tags, morphs, heads, deps, _, _ = (list(column) for column in zip(*rows, strict=True))
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
    for block in path.read_text(encoding="utf-8").split("\n\n"):
        if block.strip():
            yield parse_sentence(block)


def to_doc(sentence: Sentence, vocab: Vocab) -> Doc:
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


def group(sentences, vocab, seed):
    rng = random.Random(seed)
    left = []
    docs = []
    room = 0
    for s in sentences:
        if room and not s.opens_document:
            docs[-1].append(s); room -= 1
        else:
            docs.append([s]); room = rng.choice((1, 2, 3)) if rng.random() < 0.15 else 0
    for d in docs:
        yield Doc.from_docs([to_doc(s, vocab) for s in d], ensure_whitespace=True) if len(d) > 1 else to_doc(d[0], vocab)


@spacy.registry.callbacks("mini_spacy.tokenizer")
def tokenizer_callback():
    def adapt(nlp):
        t = nlp.tokenizer
        t.prefix_search = compile_prefix_regex([*RUNS, *nlp.Defaults.prefixes]).search
        t.suffix_search = compile_suffix_regex([*nlp.Defaults.suffixes, *RUNS]).search
        t.rules = {k: v for k, v in t.rules.items() if k != "and/or"}
        for w in WHOLE:
            t.add_special_case(w, [{"ORTH": w}])
        return nlp
    return adapt

def main():
    D = paths.data_dirs()[0] / "treebank" / "ud_ewt"
    W = Path("/tmp/ms/w"); W.mkdir(exist_ok=True)
    v = spacy.blank("en").vocab
    DocBin(docs=list(group(read_conllu(D / "en_ewt-ud-train_rebuilt.conllu"), v, 0)), store_user_data=False).to_disk(W / "train.spacy")
    DocBin(docs=[to_doc(s, v) for s in read_conllu(D / "en_ewt-ud-dev.conllu")]).to_disk(W / "dev.spacy")
    train(Path(sys.argv[1]), Path(sys.argv[2]), overrides={"paths.train": str(W / "train.spacy"), "paths.dev": str(W / "dev.spacy"), **({"paths.vectors": sys.argv[3]} if len(sys.argv) > 3 else {})})
