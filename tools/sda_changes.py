"""How many sentences of the papers' Wikipedia text each rule of SDA changes, and by how much,
beside the discrete baselines of its Table 8, random edits and the said-that prefix:
`data/sda/changed.csv`, numbers without a sentence.

Command line: `python -m tools.sda_changes`, with the real data at hand.
"""

import sys
from collections.abc import Mapping, Sequence

import pandas as pd
from nltk import edit_distance

from lib import data, paths
from lib.augment import augment
from lib.augment.sda import parse
from lib.augment.tfidf import terms_of
from lib.data.files import write_text
from lib.runs.profiles import profile_named

PATH = paths.DATA / "sda" / "changed.csv"
RULES = {"PI": "punctuation", "MV": "modal_verbs", "DN": "double_negation", "NEG": "negation"}
TABLE_8 = {
    "random punctuation": ("punctuate", 0.1),
    "word repetition": ("repeat", 0.32),
    "word deletion 10 %": ("delete", 0.1),
    "cropping 10 %": ("crop", 0.1),
    "mask 15 %": ("mask", 0.15),
}
RATES = (0.05, 0.1, 0.2, 0.3, 0.5)


def changes(old: Sequence[str], new: Sequence[str]) -> dict[str, float]:
    """Share of the sentences that differ in a word or mark, in percent; the mean edit distance in
    words and marks over all of them; and its mean as a share of a sentence's length.

    Example:
        >>> changes(["Dogs bark.", "No."], ["Dogs do not bark.", "No."])
        {'changed': 50.0, 'words': 1.0, 'share': 0.333}
    """
    pairs = [(terms_of(a), terms_of(b)) for a, b in zip(old, new, strict=True)]
    table = pd.DataFrame(
        [(len(a), edit_distance(a, b)) for a, b in pairs], columns=["length", "words"]
    )
    share = table["words"] / table["length"].clip(lower=1)
    return {
        "changed": round(100 * float(table["words"].gt(0).mean()), 1),
        "words": round(float(table["words"].mean()), 2),
        "share": round(float(share.mean()), 3),
    }


def versions(sentences: Sequence[str]) -> Mapping[str, list[str]]:
    """The sentences after each rule, as a training with seed 0 of its rules has them, after double
    negation with "no" before nouns, and after what has no grammar; a mask counts as one word."""
    made = parse.rewrite(sentences, list(RULES.values()))
    found = {name: made[rule] for name, rule in RULES.items()}
    found["DN, version 2"] = parse.rewrite(sentences, "double_negation", nouns=True)[
        "double_negation"
    ]
    for name, (kind, rate) in TABLE_8.items():
        found[name] = [t.replace("[MASK]", "MASK") for t in augment(kind, sentences, rate)]
    found["said-that prefix"] = augment("prefix", sentences, 1.0)
    for rate in RATES:
        found[f"random edits {100 * rate:.0f} %"] = augment("edit", sentences, rate)
    return found


def table(data_dir: str | None = None) -> pd.DataFrame:
    """A row a version, of the training text of the profile `small`.

    Raises:
        FileNotFoundError: the text is not here.
    """
    small = profile_named("small")
    sentences = list(data.corpus(small.corpus, data_dir, small.n_sentences))
    found = {name: changes(sentences, new) for name, new in versions(sentences).items()}
    return pd.DataFrame.from_dict(found, orient="index").rename_axis("version")


def main() -> int:
    """Write the table."""
    write_text(PATH, table().to_csv())
    return 0


if __name__ == "__main__":
    sys.exit(main())
