"""A job: everything that one run is, in one object that is made once and handed on; and the
profiles, how large an experiment is. What to train is a recipe, how much of it a profile."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from pydantic import create_model

from lib import paths
from lib.checked import Checked, closest, made, setting
from lib.encoder.device import resolve_device, resolve_precision
from lib.encoder.load import fitting_pooling
from lib.runs import inputs
from lib.runs.folder import Run
from lib.training.forward import Group, compiles
from lib.training.loop import MOST_STEPS
from lib.training.recipe import FIELDS, Recipe, recipe, recipes

PREFIXES = ("mini_", "light_", "small_", "paper_")
PATHS = ("backbone", "positive_file", "synonyms", "parser")


@dataclass(frozen=True)
class Profile:
    """Data, encoder and length of a run.

    Attributes:
        name: `mini`, shipped data; `light` and `small`, real data with the smaller and the larger
            shipped encoder; `full`, the papers' setting; `chinese`, that of SDA's Table 7.
        recipes: first part of the recipes' names at this size.
        model: encoder to start from; None takes the recipe's own backbone.
        corpus: training text, a name of `lib.data.corpus`; n_sentences: how many of it (None: all).
        max_steps: None trains the recipe's epochs.
        eval_every: steps between dev scores; None takes the recipe's.
        dev: `mini`, `stsb` or `cnsd`; test: `mini`, `sts7` or `cnsd`.
        scoring: precision of the embeddings that are scored; `auto`, bf16 where that is quicker,
            moves a score of midi-BERT by less than 0.01.
    """

    name: str
    recipes: str
    model: str | None
    corpus: str
    n_sentences: int | None
    max_steps: int | None
    eval_every: int | None
    dev: str
    test: str
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
        Profile("mini", "mini", _MINI, "mini", None, 15, 5, "mini", "mini"),
        Profile("light", "light", _MINI, "wikipedia", 50_000, 60, 20, "stsb", "sts7"),
        Profile("small", "small", _MIDI, "wiki1m_head", None, 300, 50, "stsb", "sts7", "auto"),
        Profile("full", "paper", None, "wiki1m", None, None, None, "stsb", "sts7"),
        Profile("chinese", "paper", None, "simclue", None, None, None, "cnsd", "cnsd"),
    )
}


def profile(name: str) -> Profile:
    """The profile called `name`.

    Raises:
        ValueError: no such profile.
    """
    if name not in PROFILES:
        hint = closest(name, PROFILES) or f": choose one of {', '.join(PROFILES)}"
        raise ValueError(f"unknown profile {name!r}{hint}")
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
            raise ValueError(
                f"{name} is no parameter: name a recipe in method, an encoder in model"
            )
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
        """The job on the training text that is here (`inputs.with_text_at_hand`)."""
        if self.steps == 0:
            return self
        at_hand = inputs.with_text_at_hand(self.profile, self.settings.data_dir)
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
        return inputs.sentences_of(self.profile, self.settings.data_dir)

    @cached_property
    def compiled(self) -> bool:
        """Whether the training is compiled."""
        steps = self.recipe.steps(len(self.sentences)) if self.steps is None else self.steps
        asked = self.settings.compile
        return steps > 0 and compiles(asked, self.device, steps, self.recipe, Group.processes())

    @property
    def inputs(self) -> list[inputs.Input]:
        """What it reads."""
        return inputs.inputs(self.profile, self.recipe, self.steps, self.settings.data_dir)

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
        nothing = {"corpus": inputs.text_hash(())}
        return nothing | {one.name: one.digest() for one in self.inputs}

    def record(self) -> Run:
        """Its run, finished or not."""
        of, name = self.settings, self.recipe.name
        return Run(self.notebook, name, of.seed, self.parameters(), self.hashes(), of.output_dir)


def resolve(
    profile_name: str, method: str, model: str | None = None, max_steps=None, **parameters: Any
) -> tuple[Profile, Recipe, int | None]:
    """Profile, recipe and steps of the job that these parameters name, as `Job.of`."""
    job = Job.of("", method, profile_name, model=model, max_steps=max_steps, **parameters)
    return job.profile, job.recipe, job.steps


def is_causal(model: str) -> bool:
    """Whether a model's first token sees itself alone, so that [CLS] is no place to read a sentence
    from; not of a model that is not on this machine, as nothing is fetched here (`bring`)."""
    with suppress(OSError, ValueError, ImportError):
        return fitting_pooling(inputs.folder_of(model)) == "last_token"
    return False


def bring(model: object) -> None:
    """Fetch the configuration of a Hub model that a run is about to load, so that `is_causal` knows
    it; whoever loads a model that cannot be had is told."""
    if model:
        with suppress(OSError, ValueError, ImportError):
            fitting_pooling(inputs.model_path(str(model)))


def of_profile(used: Profile, sentences: int) -> dict[str, object]:
    """What an id says of a profile."""
    found = {"profile": used.name, "corpus": used.corpus, "n_sentences": sentences}
    return found | {"dev": used.dev, "test": used.test}


def portable_parameters(of: Recipe) -> dict[str, object]:
    """`Recipe.parameters` with the project's own paths as they are in any checkout."""
    values = of.parameters()
    return values | {n: inputs.portable(str(values[n])) for n in PATHS if n in values}


def _on_text(used: Profile, settings: Settings) -> Profile:
    corpus, n = settings.corpus or used.corpus, settings.n_sentences
    if corpus == used.corpus:
        n = n or used.n_sentences
    return replace(used, corpus=corpus, n_sentences=n)


def _recipe_name(method: str, used: Profile, model: str) -> str:
    name = f"{used.recipes}_{method}"
    if method.startswith(PREFIXES):
        return method
    if name in recipes() or used.recipes != "paper":
        return name
    if used.name == "chinese":
        return f"{name}_zh"
    return f"{name}_roberta" if "roberta" in model else f"{name}_bert"


# --- a notebook's parameters


def parameters(namespace: Mapping[str, Any]) -> dict[str, Any]:
    """The notebook's parameters as they stand now; a name or a value that is wrong stops it here.

    Called in the first cell after the one tagged `parameters`, which holds nothing but typed
    assignments. papermill puts injected values in a cell of its own between the two.

    Args:
        namespace: `globals()` of the notebook.

    Raises:
        ValueError: a parameter was injected that the parameters cell does not name, e.g. by a
            typing error; a value that is not of the declared type or that no run can have.

    Example:
        >>> parameters({"__annotations__": {"beta": float}, "beta": 0.3})
        {'beta': 0.3}
    """
    declared = namespace.get("__annotations__")
    if not declared:
        raise ValueError("parameters() must be called after the parameters cell, `name: type = …`")
    fields: Any = {name: (kind, None) for name, kind in declared.items()}
    kind = create_model("Parameters", __base__=Checked, **fields)
    given = {name: namespace[name] for name in declared if name in namespace}
    made(kind, {**given, **dict.fromkeys(_injected(namespace) - declared.keys())}, "this notebook")
    if "method" in given:
        own = {n: given[n] for n in given if n in FIELDS or n in Settings.model_fields}
        Job.of("", given["method"], given["profile"], **own)
    elif "profile" in given:
        profile(given["profile"])
    return given


def _injected(namespace: Mapping[str, Any]) -> set[str]:
    """The names in the cell that papermill puts after the notebook's own, if it did."""
    cells = [str(cell) for cell in namespace.get("In", []) if str(cell).startswith("# Parameters")]
    return set(re.findall(r"^(\w+) = ", cells[-1], re.MULTILINE)) if cells else set()
