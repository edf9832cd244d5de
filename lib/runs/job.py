"""A job: everything that one run is, in one object that is made once and handed on. What to train
is a recipe, how much of it a profile."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch

from lib.checked import Checked, setting, validated
from lib.encoder.device import resolve_device, resolve_precision
from lib.encoder.load import fitting_pooling
from lib.runs.folder import Run
from lib.runs.inputs import Input, folder_of, inputs_of, model_path, portable, text_hash
from lib.runs.profiles import Profile, of_profile, profile_named, sentences_of, with_text_at_hand
from lib.training.forward import ProcessGroup, compiles
from lib.training.loop import MOST_STEPS
from lib.training.recipe import Recipe, recipe, recipes

PREFIXES = ("mini_", "light_", "small_", "paper_")
PATHS = ("backbone", "positive_file", "synonyms", "parser")


class RunSettings(Checked):
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
    settings: RunSettings

    @classmethod
    def of(cls, notebook: str, method: str, profile_name: str = "mini", **parameters: Any) -> Job:
        """The job that a notebook, a grid or a command line names.

        Args:
            method: recipe without its first part: `simcse` is `mini_simcse` at mini, `small_simcse`
                at small, `paper_simcse_bert` at full (where the backbone's family picks the
                recipe); a full recipe name is taken as it is.
            parameters: fields of `RunSettings` and of the recipe, which win over the profile; None
                means the profile's or the recipe's own.

        Raises:
            ValueError: a name that there is not, or a value outside its range.
        """
        fields = {name: value for name, value in parameters.items() if value is not None}
        for name in {"name", "source", "backbone"} & fields.keys():
            raise ValueError(f"{name} is no parameter: name a method, or an encoder in model")
        run_fields = {n: fields.pop(n) for n in RunSettings.model_fields if n in fields}
        settings, profile = validated(RunSettings, run_fields, "a run"), profile_named(profile_name)
        if profile.eval_every is not None:  # at mini at most some ten dev scores a run
            tenth = -(-(settings.max_steps or 0) // 10) if profile.name == "mini" else 0
            fields.setdefault("eval_every", max(profile.eval_every, tenth))
        base = recipe(_recipe_name(method, profile, settings.model or ""))
        if settings.model and is_causal(settings.model):
            for name in ("pooling", "eval_pooling"):
                if getattr(base, name) == "cls":
                    fields.setdefault(name, "last_token")
        trained = base.changed(backbone=settings.model or profile.model or base.backbone, **fields)
        steps = profile.max_steps if settings.max_steps is None else settings.max_steps
        return cls(notebook, _on_text(profile, settings), trained, steps, settings)

    def with_text_at_hand(self) -> Job:
        """The job on the training text that is here (`profiles.with_text_at_hand`)."""
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
        processes = ProcessGroup.processes()
        return steps > 0 and compiles(asked, self.device, steps, self.recipe, processes)

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
        seed, folder = self.settings.seed, self.settings.output_dir
        params, hashes = self.parameters(), self.hashes()
        return Run(self.notebook, self.recipe.name, seed, params, hashes, folder)


def is_causal(model: str) -> bool:
    """Whether a model's first token sees itself alone, so that [CLS] is no place to read a sentence
    from; not of a model that is not on this machine, which `fetch_configuration` fetches."""
    with suppress(OSError, ValueError, ImportError):
        return fitting_pooling(folder_of(model)) == "last_token"
    return False


def fetch_configuration(model: object) -> None:
    """Fetch the configuration of a Hub model that a run is about to load, so that `is_causal` knows
    it; whoever loads a model that cannot be had is told."""
    if model:
        with suppress(OSError, ValueError, ImportError):
            fitting_pooling(model_path(str(model)))


def portable_parameters(recipe: Recipe) -> dict[str, object]:
    """`Recipe.parameters` with the project's own paths as they are in any checkout."""
    values = recipe.parameters()
    return values | {n: portable(str(values[n])) for n in PATHS if n in values}


def _on_text(profile: Profile, settings: RunSettings) -> Profile:
    corpus, n = settings.corpus or profile.corpus, settings.n_sentences
    if corpus == profile.corpus:
        n = n or profile.n_sentences
    return replace(profile, corpus=corpus, n_sentences=n)


def _recipe_name(method: str, profile: Profile, model: str) -> str:
    name = f"{profile.recipe_prefix}_{method}"
    if method.startswith(PREFIXES):
        return method
    if name in recipes() or profile.recipe_prefix != "paper":
        return name
    if profile.name == "chinese":
        return f"{name}_zh"
    return f"{name}_roberta" if "roberta" in model else f"{name}_bert"
