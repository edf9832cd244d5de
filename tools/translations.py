"""The report's own back-translations of the sentences of STS-B train, as a text of positives.

Command line: `python -m tools.translations` writes `data/stsb_train_back_translations.txt`, line by
    line beside the corpus `stsb_train`; the rows of ConSERT's extension that train on translations
    read it (`workflow/grids/consert_table_*.yaml`).

The two files are in `data/downstream/STS/STSBenchmark` of github.com/HanQingLi1228/ECLDA, without a
licence: put them into `public/back_translation` of the folder that `CSE_DATA` names.
"""

import sys
from pathlib import Path

from lib import data, paths
from lib.data import files

FOLDER = Path("public") / "back_translation"
TARGET = paths.DATA / "stsb_train_back_translations.txt"


def aligned(sentences: list[str], lines: list[str]) -> list[str]:
    """A translation for each sentence; the sentence itself where its translation is blank.

    Args:
        sentences: One side of the pairs of STS-B train.
        lines: The lines of the file of this side, of which every second one is blank.

    Raises:
        ValueError: there are not as many translations as sentences.

    Example:
        >>> aligned(["a dog runs .", "a cat sits ."], ["The dog runs.", "", " ", ""])
        ['The dog runs.', 'a cat sits .']
    """
    translations = lines[::2]
    if len(translations) != len(sentences):
        raise ValueError(f"{len(translations)} translations of {len(sentences)} sentences")
    pairs = zip(sentences, translations, strict=True)
    return [translation.strip() or sentence for sentence, translation in pairs]


def main() -> int:
    pairs = data.stsb("train")
    written = []
    for name, sentences in (("1.txt", pairs.sentence1), ("2.txt", pairs.sentence2)):
        found = [folder / FOLDER / name for folder in paths.data_dirs()]
        path = next((path for path in found if path.is_file()), None)
        if path is None:
            print(f"error: {name} is missing (looked for {found[0]})", file=sys.stderr)
            return 2
        lines = path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
        written += aligned(sentences, lines)
    files.write_text(TARGET, "\n".join(written) + "\n")
    print(f"wrote {len(written):,} lines: {TARGET}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
