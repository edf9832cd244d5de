"""The verbs of `python -m lib`, one file each: words in, text on stdout, exit status out.

What a verb needs is imported after its words were read: `--help` waits for no torch.

Exit status: 0; 1 if the work itself failed (a notebook, a run, a count that differs); 2 for a
request that cannot be met, with one sentence on stderr that says why and what to do; 130 if
interrupted.
"""

import argparse
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from functools import wraps

Main = Callable[[Sequence[str] | None], int]
EXPECTED = (OSError, ValueError, ImportError, RuntimeError)


def verb_parser(verb: str, about: str, example: str = "") -> argparse.ArgumentParser:
    """The parser of one verb of `python -m lib`."""
    return argparse.ArgumentParser(f"python -m lib {verb}", description=about, epilog=example)


def reporting(main: Main) -> Main:
    """`main`, with what a user can cause turned into a sentence on stderr and an exit status.

    Example:
        >>> reporting(lambda arguments: int(arguments[0]))(["0"])
        0
    """

    @wraps(main)
    def reported(arguments: Sequence[str] | None = None) -> int:
        try:
            with warnings.catch_warnings():
                warnings.showwarning = _say
                return main(arguments)
        except BrokenPipeError:  # `… | head`
            sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - what is left to flush has nobody to read it
            return 0
        except EXPECTED as error:
            print(f"error: {' '.join(str(error).split())}", file=sys.stderr)
            return 2
        except KeyboardInterrupt:
            print("interrupted: to resume a grid or a run, repeat the command", file=sys.stderr)
            return 130

    return reported


def _say(message: Warning | str, *_: object, **__: object) -> None:
    print(f"warning: {message}", file=sys.stderr)
