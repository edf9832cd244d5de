"""Is a grid file right? Every key and value, before anything is trained; each error names file,
cell and key."""

import math
import reprlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lib import experiment, paths, untrained
from lib.data.readers import yaml_value
from lib.profiles import profile

MOST_SEED = 2**32
_TEXTS = ("source", "notebook", "profile", "metric", "table", "column")
_NEEDED = ("source", "notebook", "profile", "metric", "seeds", "cells")
_KEYS = {*_TEXTS, *_NEEDED, "factor", "common"}
_CELL_KEYS = {"row", "column", "set", "smaller"}
_OTHERS: dict[str, type] = {"model": str, "corpus": str, "max_steps": int, "n_sentences": int}


def load(path: Path) -> dict[str, Any]:
    """The content of a grid file, every key known and every value of its type.

    Raises:
        ValueError: it is not; the message names file, cell and key.
    """
    try:
        content = yaml_value(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    _check_keys(str(path), content, _KEYS, _NEEDED)
    for name in _TEXTS:
        _check(path, name, content.get(name, ""), str)
    factor = content.get("factor", 1)
    if isinstance(factor, bool) or not isinstance(factor, int | float) or not math.isfinite(factor):
        raise ValueError(f"{path}: factor must be a number, got {reprlib.repr(factor)}")
    _check_seeds(path, content["seeds"])
    _check_values(f"{path}: common", content.get("common", {}))
    _check(path, "cells", content["cells"], list)
    if not content["cells"]:
        raise ValueError(f"{path}: cells: there is none")
    for number, cell in enumerate(content["cells"], 1):
        _check_cell(f"{path}: cell {number}", cell)
    return content


def _check(where: object, name: str, value: object, kind: type) -> None:
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        words = {str: "text (quote it)", list: "a list", int: "a whole number"}[kind]
        raise ValueError(f"{where}: {name} must be {words}, got {reprlib.repr(value)}")


def _check_keys(where: str, content: object, known: set[str], needed: tuple[str, ...] = ()) -> None:
    if not isinstance(content, dict):
        raise ValueError(f"{where}: keys and values expected, got {reprlib.repr(content)}")
    if unknown := [key for key in content if key not in known]:
        listed = ", ".join(sorted(known))
        raise ValueError(f"{where}: unknown key {reprlib.repr(unknown[0])}; there are {listed}")
    if missing := [key for key in needed if key not in content]:
        raise ValueError(f"{where}: the key {missing[0]!r} is missing")


def _check_seeds(path: Path, seeds: object) -> None:
    _check(path, "seeds", seeds, list)
    assert isinstance(seeds, list)
    for seed in seeds:
        _check(path, "seeds", seed, int)
        if not 0 <= seed < MOST_SEED:
            raise ValueError(f"{path}: seeds must be from 0 to 2**32 - 1, got {seed}")
    if not seeds or len(set(seeds)) != len(seeds):
        raise ValueError(f"{path}: seeds must be distinct and at least one, got {seeds}")


def _check_values(where: str, values: object) -> None:
    """Parameters: names that are text, values that are no list and no mapping."""
    if not isinstance(values, dict):
        raise ValueError(f"{where} must be keys and values, got {reprlib.repr(values)}")
    for name, value in values.items():
        if not isinstance(name, str):
            raise ValueError(f"{where}: {reprlib.repr(name)} is no parameter")
        if not isinstance(value, str | int | float | bool | None):
            raise ValueError(f"{where}: {name} must be one value, got {reprlib.repr(value)}")


def _check_cell(where: str, cell: object) -> None:
    _check_keys(where, cell, _CELL_KEYS, ("row",))
    assert isinstance(cell, dict)
    for name in ("row", "column"):
        _check(where, name, cell.get(name, ""), str)
    try:
        cell["row"].format(seed=0)
    except (LookupError, ValueError, AttributeError) as error:
        reason = f"row {cell['row']!r} may hold {{seed}} and no other braces"
        raise ValueError(f"{where}: {reason}") from error
    _check_values(f"{where}: set", cell.get("set", {}))
    if cell.get("smaller", {}) is not None:
        _check_values(f"{where}: smaller", cell.get("smaller", {}))


def check_runs(path: Path, content: Mapping[str, Any], cells: list[tuple[str, Mapping]]) -> None:
    """Does every cell, (row, parameters), lead to a run?

    Raises:
        ValueError: notebook, profile or table are not there, or a cell has no method, a parameter
            that there is not, or a value out of its range.
    """
    if not (paths.NOTEBOOKS / f"{content['notebook']}.ipynb").is_file():
        raise ValueError(f"{path}: there is no notebook {content['notebook']!r}")
    if (table := content.get("table")) and not (paths.PAPERS / f"{table}.csv").is_file():
        raise ValueError(f"{path}: data/papers has no table {table!r}")
    try:
        profile(content["profile"])
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    for row, values in cells:
        where = f"{path}: cell {row!r}"
        if not isinstance(values.get("method"), str):
            method = reprlib.repr(values.get("method"))
            raise ValueError(f"{where}: method must be named, got {method}")
        for name, kind in _OTHERS.items():
            if values.get(name) is not None:
                _check(where, name, values[name], kind)
        if values["method"] in untrained.METHODS:
            own = {"model"} if values["method"] in untrained.OF_AN_ENCODER else set()
            if idle := sorted({"model", "corpus", "n_sentences"} - own & values.keys()):
                raise ValueError(
                    f"{where}: {values['method']} trains nothing and takes no {idle[0]}; the"
                    " profile's is used where it needs one"
                )
            continue
        try:
            experiment.resolve(content["profile"], **values)
        except (ValueError, TypeError) as error:
            raise ValueError(f"{where}: {error}") from error
