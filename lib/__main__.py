"""One command line for the whole course: `python -m lib VERB`; `python -m lib VERB --help` says
what a verb takes."""

import io
import sys
from pkgutil import resolve_name

VERBS = {  # the file of `lib.commands`, and what it does
    "run": "execute one notebook with parameters: run 04_una -p beta 0.3",
    "grid": "train every run behind a paper's table, resumable: grid una_small",
    "data": "fetch the real data from the Hugging Face Hub, or count what is there",
    "augment": "rewrite a text file line by line: augment una IN.txt OUT.txt",
    "evaluate": "score a model: evaluate data/mini-bert --suite mini",
    "recipes": "the papers' hyper-parameters: recipes show paper_una_bert",
    "export": "a run as a sentence-transformers folder: export RUN my-model",
    "search": "the lines of a file nearest to a query: search my-model FILE 'it'",
}


def usage():
    """The list of verbs."""
    lines = [f"  {verb:<10}{what}" for verb, what in VERBS.items()]
    return "\n".join(["usage: python -m lib VERB …", "", "Verbs, each with --help:", *lines])


def main(arguments=None):
    """Hand the words after the verb to its function; the exit status is the function's, 2 for an
    unknown verb."""
    if isinstance(sys.stdout, io.TextIOWrapper):  # cp1252 on Windows, as a rule, has no τ
        sys.stdout.reconfigure(errors="backslashreplace")
    words = list(sys.argv[1:] if arguments is None else arguments)
    if not words or words[0] in ("-h", "--help", "help"):
        print(usage())
        return 0
    if words[0] not in VERBS:
        print(f"error: there is no verb {words[0]!r}\n\n{usage()}", file=sys.stderr)
        return 2
    return resolve_name(f"lib.commands.{words[0]}:main")(words[1:])


if __name__ == "__main__":
    sys.exit(main())
