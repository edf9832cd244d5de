"""Values that are checked when an object is made, each error one sentence with the nearest
name; and tables of methods by name."""

import os
import reprlib
from collections.abc import Callable, Iterable, Iterator
from difflib import get_close_matches
from itertools import chain
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

M = TypeVar("M", bound=Callable[..., Any])
T = TypeVar("T", bound=BaseModel)


def closest(name: object, known: Iterable[str], otherwise: str = "") -> str:
    """The end of an error message: the known name that is most like `name`; if none is, all of them
    after the words `otherwise`, or nothing.

    Example:
        >>> closest("una_", ["una", "sda"]), closest("x", ["una"])
        (": did you mean 'una'?", '')
        >>> closest("x", ["una", "sda"], "there are")
        ': there are una, sda'
    """
    names = [other for other in known if other]
    if close := get_close_matches(str(name), names, 1):
        return f": did you mean {close[0]!r}?"
    return f": {otherwise} {', '.join(names)}" if otherwise else ""


def setting(default: Any, *, among=None, when=None, later=False, **bounds: float) -> Any:
    """A field of a `Checked` class.

    Args:
        among: the names that it may hold; a registry is looked at when a value is checked, so that
            a method that is registered later is known.
        when: the attribute of the object that lets the field have an effect, where it is neither 0,
            empty nor "none", or "attribute=value|value"; None: it always has.
        later: the field came after the first results, which leave it out of their ids where it has
            its default.
        bounds: `ge`, `gt`, `le`, `lt`, as pydantic's `Field` takes them.
    """
    extra: dict[str, Any] = {"among": among, "when": when, "later": later}
    return Field(default, json_schema_extra=extra, **bounds)  # type: ignore[call-overload]


class Checked(BaseModel):
    """A frozen object whose values have the declared types and ranges.

    Nothing is rounded or guessed. A whole number may be written 1e2, a number 3, and a NumPy scalar
    counts as the number it holds. Booleans, strings, NaN and infinity are not accepted as numbers.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    @field_validator("*", mode="before")
    @classmethod
    def _plain(cls, value: Any, info: Any) -> Any:
        kind = cls.model_fields[info.field_name].annotation
        if hasattr(value, "item") and getattr(value, "ndim", None) == 0:
            value = value.item()
        if isinstance(value, os.PathLike):
            return os.fspath(value)
        if isinstance(value, float) and not abs(value) < 1e300:
            raise ValueError(f"{info.field_name} must be a number, got {value!r}")
        if kind in (int, int | None) and isinstance(value, float) and value.is_integer():
            return int(value)
        return value

    @field_validator("*", mode="after")
    @classmethod
    def _known(cls, value: Any, info: Any) -> Any:
        among = metadata_of(cls, info.field_name).get("among")
        if among is not None and value not in among:
            names = ", ".join(map(repr, among))
            hint = closest(value, among)
            raise ValueError(f"{info.field_name} must be one of {names}, got {value!r}{hint}")
        return value


def metadata_of(kind: type[BaseModel], name: str) -> dict[str, Any]:
    """What `setting` says of a field beside its type, default and bounds."""
    return kind.model_fields[name].json_schema_extra or {}  # type: ignore[return-value]


def validated(kind: type[T], values: Any, called: str) -> T:
    """An object of these values.

    Args:
        called: what it is called in an error message, "a recipe".

    Raises:
        ValueError: an unknown name, or a value that is not allowed; one sentence.
    """
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        raise ValueError(_sentence(kind, error.errors()[0], called)) from None


def _sentence(kind: type[BaseModel], error: Any, called: str) -> str:
    if error["type"] == "value_error":
        return str(error["ctx"]["error"])
    name = str(error["loc"][0]) if error["loc"] else called
    if error["type"] == "missing":
        return f"{called} needs {name!r}"
    if error["type"] == "extra_forbidden":
        return f"{called} has no field {name!r}{closest(name, kind.model_fields)}"
    wanted = error["msg"].removeprefix("Input should be ").replace("a valid ", "a ")
    wanted = wanted.replace("integer", "whole number").replace("a string", "text")
    wanted = wanted.replace("a boolean", "True or False")
    return f"{name} must be {wanted}, got {reprlib.repr(error['input'])}"


class Registry(dict[str, Callable[..., Any]]):
    """The methods of one kind by the names that a recipe knows them by.

    What a recipe may hold, what the command line lists and what an error message suggests are read
    from here: to add a method is to write one function below its name.

    Example:
        >>> EDITS = Registry()
        >>> @EDITS.register("reverse")
        ... def reverse(words):
        ...     return words[::-1]
        >>> list(EDITS), EDITS["reverse"](["a", "b"])
        (['reverse'], ['b', 'a'])
    """

    def __init__(self) -> None:
        super().__init__()
        self.parsing: set[str] = set()  # the names of those that read the parser

    def register(self, name: str, parses: bool = False) -> Callable[[M], M]:
        """A decorator that enters a function or a class as `name`.

        Args:
            parses: it reads the recipe's parser, which then belongs to what a run reads.

        Raises:
            ValueError: there is one of this name.
        """
        if name in self:
            raise ValueError(f"there is a method called {name!r} already")
        if parses:
            self.parsing.add(name)

        def entered(method: M) -> M:
            self[name] = method
            return method

        return entered


class Names:
    """The names of several registries as one; a method that is registered later is among them."""

    def __init__(self, *parts: Any):
        self.parts = parts

    def __iter__(self) -> Iterator[str]:
        return chain.from_iterable(self.parts)
