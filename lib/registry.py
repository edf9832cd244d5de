"""Tables of methods by name: a method is registered where it is written."""

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

T = TypeVar("T", bound=Callable[..., Any])


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

    def register(self, name: str) -> Callable[[T], T]:
        """A decorator that enters a function or a class as `name`.

        Raises:
            ValueError: there is one of this name.
        """
        if name in self:
            raise ValueError(f"there is a method called {name!r} already")

        def entered(method: T) -> T:
            self[name] = method
            return method

        return entered


class Names:
    """The names of several registries as one; a method that is registered later is among them."""

    def __init__(self, *parts: Any):
        self.parts = parts

    def __iter__(self) -> Iterator[str]:
        return (name for part in self.parts for name in part)

    def __contains__(self, name: object) -> bool:
        return any(name in part for part in self.parts)
