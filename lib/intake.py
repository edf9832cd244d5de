"""Finished runs from another machine: each is checked, and taken into `outputs/`.

`python -m lib runs import ARCHIVE` takes the `runs.tar.gz` that a bundle's `run.sh` leaves.
"""

import json
import math
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd
from filelock import Timeout
from huggingface_hub import try_to_load_from_cache

from lib import archives, data, paths, runs
from lib.augment import sda
from lib.data import files
from lib.runs import baselines as untrained
from lib.runs import inputs as identity
from lib.runs.profiles import profile
from lib.training import checkpoint

IMPORTED, HERE_ALREADY, REFUSED = "imported", "here already", "refused"
LIST = "runs.json"
NEEDED = ("params.json", "env.json", "metrics.json")
CHECKPOINTS = ("best", "last")
MODEL_FILES = {".safetensors", ".json", ".txt", ".model", ".jinja"}
SHOWN = 3
TIMES = re.compile(r".*_seconds|peak_rss_gib|sentences_per_second")
SETS = {"dev": ("mini", "stsb", "cnsd"), "test": ("mini", "sts7", "cnsd")}
_RECORDED = ("run_id", "recipe", "seed", "results_version", "data")
_DEPENDS_ON = {  # a hash of a run's data: the parameters by which its data is found here
    "corpus": ("corpus", "n_sentences"),
    "model": ("backbone", "profile", "vectors"),
    "dev": ("dev",),
    "test": ("test",),
    "transfer": (),
    "positive_file": ("positive_file",),
    "synonyms": ("synonyms",),
    "parser": ("parser",),
    "rules": (),
    "english": ("parser",),
}


@dataclass(frozen=True)
class Arrival:
    """What became of one run of an archive.

    Attributes:
        run: `<notebook>/<run id>`.
        state: `IMPORTED`, `HERE_ALREADY` or `REFUSED`.
        note: why it was refused, or in what it differs from the run that is here.
        unchecked: of its data, what is not here to be compared.
    """

    run: str
    state: str
    note: str = ""
    unchecked: tuple[str, ...] = ()


def take(archive: Path, outputs: Path | None = None, data_dir: str | None = None) -> list[Arrival]:
    """Take the finished runs of an archive into the outputs folder; what became of each.

    A run is refused if a file is missing, damaged or not listed, if its id is not that of its
    parameters and data, if it is of another `RESULTS_VERSION`, or if data that is here has another
    hash than it recorded. A finished run that is here already stays as it is.

    Args:
        outputs: None is `paths.outputs()`.

    Raises:
        FileNotFoundError: no such archive.
        ValueError: it is unsafe, or no archive of runs.
    """
    if not archive.is_file():
        raise FileNotFoundError(f"no file {archive}: `run.sh` of a bundle leaves a runs.tar.gz")
    outputs, here = outputs or paths.outputs(), Here(data_dir)
    most = max(archives.MOST_BYTES, 3 * archive.stat().st_size)
    with files.scratch_folder(outputs / "import") as folder:
        archives.extract(archive, folder, most)
        listed = _listed(archive, folder)
        found = [path.relative_to(folder) for path in folder.rglob("*") if path.is_file()]
        names = {"/".join(path.parts[:2]) for path in found if path != Path(LIST)}
        return [
            _taken(folder, name, listed.get(name), outputs, here)
            for name in sorted(names | listed.keys())
        ]


def _listed(archive: Path, folder: Path) -> dict[str, dict[str, str]]:
    """The runs of an archive, and the hashes of their files, by its own list."""
    try:
        found = _json(folder / LIST)["runs"]
        assert isinstance(found, dict)
        assert all(isinstance(one, dict) for one in found.values())
    except (ValueError, KeyError, AssertionError) as error:
        raise ValueError(
            f"{archive} has no list of runs, {LIST}: it is no archive that `run.sh` left"
        ) from error
    return found


def _taken(
    folder: Path, name: str, hashes: dict[str, str] | None, outputs: Path, here: "Here"
) -> Arrival:
    try:
        _check_files(folder, name, hashes)
        source = folder / name
        record = _record(source, outputs)
        unchecked = _check_data(record, here)
        note = _placed(source, record)
    except Timeout:
        return Arrival(name, REFUSED, "it is being trained here just now: import it again later")
    except ValueError as error:
        return Arrival(name, REFUSED, " ".join(str(error).split()))
    return Arrival(name, IMPORTED if note is None else HERE_ALREADY, note or "", unchecked)


def _check_files(folder: Path, name: str, hashes: dict[str, str] | None) -> None:
    """Refuse a run that has not exactly the files that are listed."""
    if not re.fullmatch(r"\w[\w.-]*/\w[\w.-]*", name):
        raise ValueError("its name is no <notebook>/<run id>")
    if hashes is None:
        raise ValueError(f"it does not stand in {LIST}")
    found = {
        path.relative_to(folder / name).as_posix(): path
        for path in (folder / name).rglob("*")
        if path.is_file()
    }
    for file in sorted({*found, *hashes, *NEEDED}):
        if file not in found:
            raise ValueError(f"{file} is missing")
        if not _is_of_a_run(file) or file not in hashes:
            raise ValueError(f"{file} is no file of a finished run that {LIST} names")
        if files.sha256(found[file]) != hashes[file]:
            raise ValueError(f"{file} is not the file that was packed up: its SHA-256 is another")


def _is_of_a_run(file: str) -> bool:
    first, _, rest = file.partition("/")
    if not rest:
        return file in (*NEEDED, "history.csv")
    return first in CHECKPOINTS and Path(rest).suffix in MODEL_FILES


def _json(path: Path) -> dict[str, Any]:
    def refuse(word: str) -> None:
        raise ValueError(f"{word} is no number of JSON")

    try:
        found = json.loads(path.read_text(encoding="utf-8"), parse_constant=refuse)
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(f"{path.name} is no JSON ({error})") from error
    if not isinstance(found, dict):
        raise ValueError(f"{path.name} is no JSON object")
    return found


def _record(source: Path, outputs: Path) -> runs.Run:
    """The run in a folder, as it would be here.

    Raises:
        ValueError: its files are not those of a run of today, or its id is another.
    """
    params, env, metrics = (_json(source / name) for name in NEEDED)
    _check_content(params, env, metrics)
    history = source / "history.csv"
    if history.exists():
        try:
            pd.read_csv(history)
        except (ValueError, OSError) as error:
            raise ValueError(f"history.csv is no table ({error})") from error
    own = {name: value for name, value in params.items() if name not in _RECORDED}
    notebook, recipe, seed = source.parent.name, params["recipe"], params["seed"]
    record = runs.Run(notebook, recipe, seed, own, params["data"], outputs)
    for name in (params["run_id"], source.name):
        if record.id != name:
            raise ValueError(f"its parameters and data make the id {record.id}, it says {name}")
    return record


def _check_content(params: dict, env: dict, metrics: dict) -> None:
    version = params.get("results_version")
    if version != runs.RESULTS_VERSION:
        raise ValueError(
            f"its results_version is {version}, here it is {runs.RESULTS_VERSION}: run it with"
            " today's code"
        )
    kinds = {"run_id": str, "recipe": str, "seed": int, "profile": str, "data": dict}
    for name, kind in kinds.items():
        if not isinstance(params.get(name), kind):
            raise ValueError(f"params.json has no {name}")
    profile(params["profile"])
    if not all(isinstance(digest, str) for digest in params["data"].values()):
        raise ValueError("params.json: the hashes in data have to be text")
    if not isinstance(env.get("versions", {}), dict):
        raise ValueError("env.json has no versions of packages")
    for name, value in metrics.items():
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float | None)
            or (value is not None and not math.isfinite(value))
        ):
            raise ValueError(f"metrics.json: {name} is no number")


def _check_data(record: runs.Run, here: "Here") -> tuple[str, ...]:
    """Compare what the run read with what is here; the names of what is not here."""
    unchecked = []
    for name, digest in record.data.items():
        if name not in _DEPENDS_ON:
            raise ValueError(f"params.json: data has the unknown entry {name!r}")
        ours = here.hashes(name, record.params)
        if ours is None:
            unchecked.append(name)
        elif digest not in ours:
            raise ValueError(f"its {name} is not the one that is here, by their SHA-256")
    return tuple(unchecked)


@dataclass
class Here:
    """The data of this machine, each part of which is read once."""

    data_dir: str | None = None
    known: dict[str, set[str] | None] = field(default_factory=dict)

    def hashes(self, name: str, params: Mapping[str, Any]) -> set[str] | None:
        """What an entry of a run's `data` may be with the data that is here; None if it is not."""
        chosen = {parameter: params.get(parameter) for parameter in _DEPENDS_ON[name]}
        key = json.dumps([name, chosen], sort_keys=True)
        if key not in self.known:
            try:
                self.known[key] = self._read(name, chosen)
            except (OSError, ValueError, ImportError, LookupError, TypeError):
                self.known[key] = None
        return self.known[key]

    def _read(self, name: str, params: Mapping[str, Any]) -> set[str] | None:
        if name == "corpus":
            return self._texts(str(params["corpus"]), params["n_sentences"])
        if name == "model":
            if params["backbone"] is None:  # without training: word vectors, or no encoder
                used = untrained.model_of(profile(params["profile"]), params["vectors"])
                return {"", *_models(used)}
            return _models(params["backbone"])
        if name in SETS:
            return {self._graded(name, params[name])}
        if name == "transfer":
            return {identity.transfer_hash(self.data_dir)}
        if name == "positive_file":
            return {files.sha256(_project_path(params["positive_file"]))}
        if name == "synonyms":
            source = params["synonyms"]
            return {
                identity.synonyms_hash(
                    source if source == "wordnet" else str(_project_path(source))
                )
            }
        if name == "rules":
            return {str(sda.VERSION)}
        return {identity.rules_hashes(params["parser"])[name]}

    def _graded(self, split: str, name: str) -> str:
        if name not in SETS[split]:
            raise LookupError(f"there is no {split} set {name!r}")
        usual = profile("mini")
        chosen = replace(usual, dev=name) if split == "dev" else replace(usual, test=name)
        return identity.graded_hashes(chosen, self.data_dir)[split]

    def _texts(self, name: str, n: int) -> set[str]:
        """Of a text that was taken whole, in its order, or in part, in the order of the drawing."""
        if n == 0:
            return {identity.text_hash([])}
        if name not in data.CORPORA:
            _project_path(name)
        try:
            whole = data.corpus(name, self.data_dir)
        except ValueError:  # only a sample is here
            return {identity.text_hash(data.corpus(name, self.data_dir, n))}
        if not 0 < n <= len(whole):
            return set()
        drawn = (whole[row] for row in data.sample(len(whole), n))
        return {identity.text_hash(drawn), identity.text_hash(whole)}


def _models(name: str) -> set[str]:
    """The hash of an encoder of the project or a package, or the revision in the Hub's cache."""
    path = Path(identity.model_path(name))
    if path.is_dir():
        return {identity.model_hash(str(path))}
    config = try_to_load_from_cache(name, "config.json")
    if not isinstance(config, str):
        raise FileNotFoundError(f"{name} is not in the Hub's cache")
    return {f"{name}@{Path(config).parent.name}"}


def _project_path(name: str) -> Path:
    """A file of the project by its name in it; what lies elsewhere is not looked at."""
    path = (paths.ROOT / name).resolve()
    if not path.is_relative_to(paths.ROOT) or not path.is_file():
        raise FileNotFoundError(f"the project has no file {name}")
    return path


def _placed(source: Path, record: runs.Run) -> str | None:
    """Copy a run to its place; None if that was done, else in what the run there differs from it.

    `metrics.json` comes last, so that an interrupted copy is no finished run.
    """
    with files.locked(record.folder, timeout=0):
        if (ours := record.metrics) is not None:
            return _differences(ours, _json(source / "metrics.json"))
        checkpoint.discard(record.folder)
        for name in CHECKPOINTS:
            files.remove(record.folder / name)
            if (source / name).is_dir():
                with files.written(record.folder / name) as temporary:
                    shutil.copytree(source / name, temporary)
        for name in ("params.json", "env.json", "history.csv", "metrics.json"):
            if (source / name).is_file():
                files.write_bytes(record.folder / name, (source / name).read_bytes())
    return None


def _differences(ours: Mapping[str, float], theirs: Mapping[str, float | None]) -> str:
    """The metrics in which two runs of one id differ, times and memory aside; "" if in none."""
    found = []
    for name in sorted({*ours, *theirs}):
        here, there = ours.get(name), theirs.get(name)
        here = None if here is None or math.isnan(here) else here
        if here != there and not TIMES.fullmatch(name):
            found.append(f"{name} is {here} here, {there} there")
    more = [f"and {len(found) - SHOWN} more metrics"] if len(found) > SHOWN else []
    return "; ".join(found[:SHOWN] + more)
