"""Every folder of the project, once.

`ROOT` is the checkout. Paths that an environment variable can move are functions, so
that a variable set after the import still counts.
"""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = ROOT / "notebooks"
DATA = ROOT / "data"
MINI = DATA / "mini"
MINI_BERT = DATA / "mini-bert"
MIDI_BERT = DATA / "midi-bert"
SIBLINGS = {
    "BERT": DATA / "mini-bert-30m",
    "ALBERT": DATA / "mini-albert",
    "RoBERTa": DATA / "mini-roberta",
    "Llama": DATA / "mini-llama",
}
MINI_SPACY = DATA / "mini-spacy"
PAPERS = DATA / "papers"
PUBLIC = DATA / "public"
RESULTS = ROOT / "results"
GRIDS = ROOT / "workflow" / "grids"


def outputs() -> Path:
    """Folder of runs and executed notebooks: `CSE_OUTPUTS`, else `outputs/` of the project."""
    return Path(os.environ.get("CSE_OUTPUTS") or ROOT / "outputs").resolve()


def data_dirs(data_dir: str | Path | None = None) -> list[Path]:
    """Folders in which real data is looked for, in order.

    The explicit `data_dir` stands alone when it is given; otherwise `CSE_DATA`, then the
    project's own `data/`.
    """
    if data_dir:
        return [Path(data_dir).expanduser().resolve()]
    mine = os.environ.get("CSE_DATA")
    return [Path(mine).expanduser().resolve(), DATA] if mine else [DATA]
