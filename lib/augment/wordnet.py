"""WordNet's synonyms, read by NLTK from its own download or from a system package."""

import io
import re
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path

from nltk.corpus.reader.wordnet import WordNetCorpusReader
from nltk.data import path as nltk_path

_PARTS = ("noun", "verb", "adj", "adv")
_FILES = (
    *(f"{kind}.{part}" for kind in ("data", "index") for part in _PARTS),
    *(f"{part}.exc" for part in _PARTS),
    "lexnames",
)
_DIRECTORIES = ("/usr/share/wordnet", "/usr/share/wordnet/dict", "/usr/local/share/wordnet/dict")


def wordnet_folder() -> Path:
    """The folder with WordNet's `data.noun`: NLTK's download, or a system package's.

    Raises:
        FileNotFoundError: there is none; the message names the command that brings it.
    """
    folders = [Path(p) / "corpora" / "wordnet" for p in nltk_path] + [Path(p) for p in _DIRECTORIES]
    for folder in folders:
        if (folder / "data.noun").exists():
            return folder
    raise FileNotFoundError(
        "WordNet is not here: run `python -m nltk.downloader wordnet` (or install the system"
        " package wordnet-base), or name another thesaurus: synonyms='data/mini/thesaurus.tsv'"
        " (--synonyms data/mini/thesaurus.tsv)"
    )


def wordnet_files() -> list[Path]:
    """The files that are read of WordNet.

    Raises:
        FileNotFoundError: as `wordnet_folder`.
    """
    folder = wordnet_folder()
    return [folder / name for name in _FILES if (folder / name).is_file()]


class _WordNet(WordNetCorpusReader):
    """NLTK's reader, which also opens packages without the list of lexicographer files: synonyms
    need no names."""

    def open(self, file: str):
        """A file of WordNet; numbered names stand in for a `lexnames` that is not there."""
        if file == "lexnames" and not (Path(str(self._root)) / file).exists():
            return io.StringIO("".join(f"{i:02d}\tfile.{i}\t0\n" for i in range(45)))
        return super().open(file)

    def map_wn(self, version: str = "wordnet") -> None:
        """No map to another version of WordNet: only the multilingual part would use it."""


@cache
def wordnet() -> Callable[[str], list[str]]:
    """Lower-case synonyms of a lower-case word, in WordNet's order and without the word itself.

    Raises:
        FileNotFoundError: as `wordnet_folder`.
    """
    folder = str(wordnet_folder())
    if folder not in nltk_path:
        nltk_path.append(folder)  # NLTK opens files below its own folders only
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the multilingual part, which is not asked for
        reader = _WordNet(folder, None)

    def lookup(word: str) -> list[str]:
        names = (
            n.replace("_", " ").lower()
            for synset in reader.synsets(word)
            for n in synset.lemma_names()
        )
        return list(dict.fromkeys(n for n in names if n != word and re.fullmatch(r"[a-z' -]+", n)))

    return lookup
