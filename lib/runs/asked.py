"""What a notebook was asked for: its parameters, checked, and how they differ from the default."""

import re
from collections.abc import Mapping
from typing import Any

from pydantic import create_model

from lib.checked import Checked, validated
from lib.runs.job import Job, RunSettings, portable_parameters
from lib.runs.profiles import Profile, profile_named
from lib.training.recipe import FIELDS, Recipe

SHARED = ("model", "device", "data_dir", "output_dir")


def resolve(
    profile_name: str, method: str, model: str | None = None, max_steps=None, **parameters: Any
) -> tuple[Profile, Recipe, int | None]:
    """Profile, recipe and steps of the job that these parameters name, as `Job.of`."""
    job = Job.of("", method, profile_name, model=model, max_steps=max_steps, **parameters)
    return job.profile, job.recipe, job.steps


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
    unknown = dict.fromkeys(_injected(namespace) - declared.keys())
    validated(kind, given | unknown, "this notebook")
    if "method" in given:
        own = {n: given[n] for n in given if n in FIELDS or n in RunSettings.model_fields}
        Job.of("", given["method"], given["profile"], **own)
    elif "profile" in given:
        profile_named(given["profile"])
    return given


def split(given: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """A notebook's parameters in two: what all of its runs share, and what is asked of one.

    Returns:
        `model`, `device`, `data_dir` and `output_dir`; and the fields of the recipe and the text.

    Example:
        >>> split({"seed": 42, "device": "cpu", "beta": 0.3, "n_seeds": 5})
        ({'device': 'cpu'}, {'beta': 0.3})
    """
    shared = {name: value for name, value in given.items() if name in SHARED}
    return shared, {n: v for n, v in given.items() if n in (*FIELDS, "corpus", "n_sentences")}


def departures(
    given: Mapping[str, Any], fields: Mapping[str, Any], method: str, **default: Any
) -> list[str]:
    """How a notebook's run differs from its default one, a phrase for each difference.

    Args:
        given: the notebook's parameters, as `parameters` returns them.
        fields: those of its recipe and text, as `split` returns them.
        method, default: of the default run, of the same profile and with `fields` of its own.

    Raises:
        ValueError: as `Job.of`.

    Example:
        >>> departures({"profile": "mini", "seed": 1}, {"beta": 0.3}, "una")
        ['seed = 1 (default 42)', 'beta = 0.3 (default 0.5)']
    """
    own = {name: given.get(name) for name in ("seed", "model", "max_steps")}
    asked = Job.of("", given.get("method", method), given["profile"], **own | {**fields})
    told = {"profile": given["profile"]} | _told(asked)
    usual = {"profile": "mini"} | _told(Job.of("", method, given["profile"], **default))
    return [f"{n} = {v} (default {usual[n]})" for n, v in told.items() if v != usual[n]]


def _told(job: Job) -> dict[str, object]:
    used = {"corpus": job.profile.corpus, "n_sentences": job.profile.n_sentences}
    run = {"seed": job.settings.seed, "max_steps": job.steps}
    return run | used | job.recipe.values() | portable_parameters(job.recipe)


def _injected(namespace: Mapping[str, Any]) -> set[str]:
    """The names in the cell that papermill puts after the notebook's own, if it did."""
    cells = [str(cell) for cell in namespace.get("In", []) if str(cell).startswith("# Parameters")]
    return set(re.findall(r"^(\w+) = ", cells[-1], re.MULTILINE)) if cells else set()
