"""The parameters of a notebook, checked in the cell after the one that sets them."""

import re
from collections.abc import Mapping
from typing import get_args

from lib.checked import closest
from lib.runs.job import Job, Settings
from lib.runs.profiles import profile
from lib.training.recipe import FIELDS

INJECTED = "# Parameters"  # the first line of the cell that papermill puts after the notebook's own


def parameters(namespace: Mapping[str, object]) -> dict[str, object]:
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
    if not isinstance(declared, dict) or not declared:
        raise ValueError(
            "parameters() must be called after the parameters cell, whose lines read `name: type ="
            " value`"
        )
    for name in _injected(namespace):
        if name not in declared:
            hint = closest(name, declared) or f": it has {', '.join(declared)}"
            raise ValueError(f"this notebook has no parameter {name!r}{hint}")
    given = {name: namespace[name] for name in declared if name in namespace}
    for name, value in given.items():
        _check_type(name, value, declared[name])
    _check_run(given)
    return given


def _injected(namespace: Mapping[str, object]) -> list[str]:
    """The names that papermill assigned, if it did."""
    history = namespace.get("In")
    cells = [str(cell) for cell in history] if isinstance(history, list) else []
    found = [cell for cell in cells if cell.lstrip().startswith(INJECTED)]
    return re.findall(r"^(\w+) = ", found[-1], re.MULTILINE) if found else []


def _check_type(name: str, value: object, declared: object) -> None:
    kinds = get_args(declared) or (declared,)
    fits = any(kind is not bool and isinstance(value, kind) for kind in kinds)  # type: ignore[arg-type]
    if isinstance(value, bool):
        fits = bool in kinds
    whole = isinstance(value, int) and not isinstance(value, bool) and float in kinds
    if not (fits or whole):
        words = {int: "a whole number", float: "a number", bool: "True or False", str: "text"}
        wanted = [words[kind] for kind in kinds if kind in words]
        raise ValueError(f"{name} must be {' or '.join(wanted)}, got {value!r}")


def _check_run(given: Mapping[str, object]) -> None:
    """Refuse what no run can have; nothing is loaded."""
    if "profile" not in given:
        return
    used = str(given["profile"])
    profile(used)
    if "method" in given:
        known = {*FIELDS, *Settings.model_fields}
        fields = {name: value for name, value in given.items() if name in known}
        Job.of("", str(given["method"]), used, **fields)
