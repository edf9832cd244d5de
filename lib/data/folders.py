"""Where real data is looked for: the explicit `data_dir`, else `CSE_DATA` and then the project's
`data/`.

Evaluation sets lie in the SentEval layout (`STS/`, `SICK/`, `MR/`, …) under `senteval/`, in the
folder itself or under `SentEval/data/downstream/`.
"""

from pathlib import Path

from lib import paths

TAR: str = "senteval.tar"
WIKI1M: str = "wiki1m_for_simcse.txt"
FETCH: str = "python -m lib data fetch"
SENTEVAL_ROOTS = ("senteval", "", "SentEval/data/downstream", "data/downstream", "downstream")
WIKI1M_ROOTS = ("", "corpus")


def find(
    relative: str, data_dir: str | Path | None, roots: tuple[str, ...] = ("",), fetched: bool = True
) -> Path:
    """The first file of this name in the folders that are searched; an error says where it was
    looked for."""
    bases = paths.data_dirs(data_dir)
    for base in bases:
        for root in roots:
            if (base / root / relative).is_file():
                return base / root / relative
    where = ", ".join(str(base / roots[0] / relative) for base in bases)
    remedy = f"`{FETCH}` brings it, or set" if fetched else f"it is not part of `{FETCH}`, so set"
    raise FileNotFoundError(
        f"{relative} is missing (looked for {where}): {remedy} CSE_DATA to a folder that has it"
    )


def find_senteval(relative: str, data_dir: str | Path | None) -> Path:
    """As `find`, for a file in the SentEval layout."""
    return find(relative, data_dir, SENTEVAL_ROOTS)
