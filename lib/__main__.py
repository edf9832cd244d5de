"""One command line for the whole course: `python -m lib VERB`; `python -m lib VERB --help` says
what a verb takes."""

import io
import sys
from importlib import import_module

VERBS = {
    "course": (
        "lib.commands.course",
        "execute every notebook at the mini profile, as `make course` does",
    ),
    "run": ("lib.commands.run", "execute one notebook with parameters: run 04_una -p beta 0.3"),
    "grid": (
        "lib.commands.grid",
        "train every run behind a paper's table, resumable: grid una_small",
    ),
    "data": (
        "lib.commands.data",
        "fetch the real data from the Hugging Face Hub, or count what is there",
    ),
    "augment": (
        "lib.commands.augment",
        "rewrite a text file line by line: augment una IN.txt OUT.txt",
    ),
    "evaluate": (
        "lib.commands.evaluate",
        "score any model on the STS tasks: evaluate data/mini-bert",
    ),
    "recipes": (
        "lib.commands.recipes",
        "the hyper-parameters of the papers: recipes show paper_una_bert",
    ),
    "export": (
        "lib.commands.export",
        "a finished run as a sentence-transformers folder: export RUN my-model",
    ),
    "search": (
        "lib.commands.search",
        "the lines of a file nearest to a query: search my-model FILE 'a query'",
    ),
}


def usage():
    """The list of verbs."""
    lines = ["usage: python -m lib VERB …", "", "Verbs, each with its own --help:"]
    return "\n".join(lines + [f"  {verb:<10}{help_text}" for verb, (_, help_text) in VERBS.items()])


def make_printable():
    """Let stdout write what its encoding lacks as an escape (τ as \\u03c4): output that is
    redirected on Windows is cp1252 as a rule, and a letter must not stop the work."""
    if isinstance(sys.stdout, io.TextIOWrapper):  # stderr does so from the start
        sys.stdout.reconfigure(errors="backslashreplace")


def main(arguments=None):
    """Hand the words after the verb to its module; the exit status is the module's, 2 for an
    unknown verb."""
    make_printable()
    words = list(sys.argv[1:] if arguments is None else arguments)
    if not words or words[0] in ("-h", "--help", "help"):
        print(usage())
        return 0
    if words[0] not in VERBS:
        print(f"error: there is no verb {words[0]!r}\n\n{usage()}", file=sys.stderr)
        return 2
    return import_module(VERBS[words[0]][0]).main(words[1:])


if __name__ == "__main__":
    sys.exit(main())
