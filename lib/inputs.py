"""What a run reads, in one list: each input gives its files, or says what is missing."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import spacy
from huggingface_hub import try_to_load_from_cache

from lib import data, experiment, identity, paths, profiles, untrained
from lib.data import sets
from lib.profiles import Profile


@dataclass(frozen=True)
class Input:
    """One thing that a run reads.

    Attributes:
        name: `dev`, `test`, `model`, `corpus`, …
        files: its files on this machine; the errors say what is missing and what brings it.
    """

    name: str
    files: Callable[[], list[Path]]

    def missing(self) -> str | None:
        """Why it cannot be read, in one sentence; None if it can."""
        try:
            self.files()
        except (OSError, ValueError, ImportError, LookupError) as error:
            return str(error).split("\n")[0]
        return None


def of_cell(
    profile_name: str, parameters: Mapping[str, Any], data_dir: str | None = None
) -> list[Input]:
    """What the run of a grid's cell reads.

    Args:
        parameters: of the cell, its method among them.

    Example:
        >>> found = of_cell("mini", {"method": "sda"})
        >>> [one.name for one in found]
        ['dev', 'test', 'model', 'corpus', 'parser']
        >>> found[3].files()[0].name
        'corpus.txt'
    """
    method = str(parameters["method"])
    if method in untrained.METHODS:
        profile = profiles.profile(profile_name)
        found = [*_sets(profile, data_dir), Input("corpus", lambda: _text(profile, data_dir))]
        if method in untrained.OF_AN_ENCODER:
            model = untrained.name_of(profile, parameters.get("model"))
            found.append(Input("model", lambda: _model(model)))
        return found
    profile, recipe, steps = experiment.resolve(profile_name, **parameters)
    own = recipe.positive
    found = [*_sets(profile, data_dir), Input("model", lambda: _model(recipe.encoder.backbone))]
    if recipe.evaluation.transfer_pooling:
        found.append(Input("transfer", lambda: sets.transfer_files(data_dir)))
    if steps == 0:
        return found
    found.append(Input("corpus", lambda: _text(profile, data_dir)))
    in_use = identity.parameters(recipe)
    if "positive_file" in in_use:
        found.append(Input("positive_file", lambda: [identity.positives_path(recipe)]))
    if "synonyms" in in_use:
        found.append(Input("synonyms", lambda: _thesaurus(own.synonyms)))
    if "parser" in in_use:
        found.append(Input("parser", lambda: _parser(own.parser)))
    return found


def _sets(profile: Profile, data_dir: str | None) -> list[Input]:
    return [
        Input("dev", lambda: sets.graded_files(profile.dev, "dev", data_dir)),
        Input("test", lambda: sets.graded_files(profile.test, "test", data_dir)),
    ]


def _text(profile: Profile, data_dir: str | None) -> list[Path]:
    """The training text; where neither Wikipedia text is here, the one that can be fetched."""
    name = data.at_hand(profile.corpus, data_dir)
    try:
        return data.corpus_files(name, data_dir)
    except FileNotFoundError:
        if name != "wikipedia":
            raise
        return data.corpus_files("wiki1m", data_dir)


def _model(name: str) -> list[Path]:
    """The files of an encoder: a folder, an installed package, or a model in the Hub's cache."""
    folder = Path(identity.model_path(name))
    if folder.is_dir():
        return _folder(folder)
    try:
        config = try_to_load_from_cache(name, "config.json")
    except ValueError:  # a path, which is no id of the Hub
        config = None
    if not isinstance(config, str):
        raise FileNotFoundError(
            f"the encoder {name!r} is no folder and not in the Hub's cache: where there is a"
            f" network, `python -m lib evaluate {name}` brings it"
        )
    branch = Path(config).parents[2] / "refs" / "main"
    return [*_folder(Path(config).parent), *([branch] if branch.is_file() else [])]


def _folder(folder: Path) -> list[Path]:
    """The files of a model without what its training left there, and its weights in one format."""
    found = []
    for path in sorted(folder.rglob("*")):
        doubled = path.suffix == ".bin" and any(path.parent.glob("*.safetensors"))
        if path.is_file() and path.name not in identity.OF_TRAINING and not doubled:
            found.append(path)
    return found


def _thesaurus(name: str) -> list[Path]:
    if name == "wordnet":
        from lib.augment.wordnet import wordnet_files  # NLTK takes two seconds to import

        return wordnet_files()
    identity.synonyms_hash(name)
    return [Path(identity.model_path(name))]


def _parser(name: str) -> list[Path]:
    """The files of a spaCy pipeline, and the list of verbs that the rules read beside any."""
    folder = Path(identity.model_path(name)) if name else paths.MINI_SPACY
    if not folder.is_dir():
        if not spacy.util.is_package(name):
            raise FileNotFoundError(
                f"no spaCy pipeline {name!r}: run `python -m spacy download {name}`"
            )
        folder = spacy.util.get_package_path(name)
    return [*_folder(folder), paths.MINI_SPACY / "verbs.txt"]
