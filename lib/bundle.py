"""A grid for a machine without a network: code, text, encoders and wheels in parts, and one script
that runs them.

`python -m lib bundle OUT --grid NAME` writes the folder; `lib.node` is what its `run.sh` does, and
`lib.intake` takes the finished runs that it leaves.
"""

import gzip
import lzma
import math
import re
import subprocess
import tarfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import spacy
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from transformers.utils import cached_file

from lib import data, paths, runs, wheels
from lib.augment.wordnet import wordnet_files
from lib.data import corpora, files, sets
from lib.encoder.pretrained import explained
from lib.runs import baselines as untrained
from lib.runs import experiment, grids
from lib.runs import inputs as identity
from lib.runs.grids import Cell, Grid
from lib.runs.profiles import profile
from lib.training.recipe import Recipe
from lib.wheels import Target

MANIFEST = "manifest.json"
LEAST = 10**6
CODE = ("lib", "workflow/grids", "data/papers", "pyproject.toml", "constraints.txt")
LICENCES = ("LICENSE", "LICENSES.md")
DRAWN = ("wikipedia", "wiki1m", "wiki1m_head", "wiki_slice", "simclue")
_UNITS = {"": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}


@dataclass
class Contents:
    """What goes into a bundle: place in the bundle's project → file here.

    Attributes:
        texts: training texts, and how many of their sentences; None: all.
        packages: optional ones that these grids need.
        parsers: spaCy's, as recipes name them; pipelines: those of them that are packages, which no
            index has, so that the target must.
        transfer: whether the transfer tasks are scored.
    """

    code: dict[str, Path] = field(default_factory=dict)
    data: dict[str, Path] = field(default_factory=dict)
    models: dict[str, Path] = field(default_factory=dict)
    wheels: dict[str, Path] = field(default_factory=dict)
    texts: dict[str, int | None] = field(default_factory=dict)
    packages: set[str] = field(default_factory=set)
    parsers: set[str] = field(default_factory=set)
    pipelines: set[str] = field(default_factory=set)
    transfer: bool = False

    def groups(self) -> dict[str, dict[str, Path]]:
        """What is packed together."""
        return {name: getattr(self, name) for name in ("code", "data", "models", "wheels")}


def size(text: str) -> int:
    """Bytes that a text such as "60MB" or "1.5 GiB" names.

    Raises:
        ValueError: it names no size, or one below 1 MB.

    Example:
        >>> size("60MB")
        60000000
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?) ?([A-Za-z]*)", text.strip())
    if match is None or match[2].upper() not in _UNITS:
        raise ValueError(f"--limit {text}: a size is expected, such as 60MB")
    found = int(float(match[1]) * _UNITS[match[2].upper()])
    if found < LEAST:
        raise ValueError(f"--limit {text}: a part has to hold at least 1MB")
    return found


# --- what goes in


def chosen_grid(name: str, profile_name: str, data_dir: str | None) -> Grid:
    """A grid as `lib grid` would run it here.

    Raises:
        FileNotFoundError, ValueError: as `grids.read` and `grids.check`; no row at this profile.
    """
    grid = grids.read(name).at(profile_name)
    if not grid.cells:
        raise ValueError(f"{name} has no rows at the profile {grid.profile}")
    grids.check(grid)
    return grids.on_text_at_hand(grid, data_dir)


def add_code(contents: Contents, names: Iterable[str], notebooks: Iterable[str]) -> None:
    """The code that git tracks, the grids, and the notebooks that they name.

    Raises:
        ValueError: this is no git checkout, or `lib/` holds files that git does not know.
    """
    wanted = [*CODE, *LICENCES, *(f"notebooks/{name}.ipynb" for name in notebooks)]
    if unknown := _git("ls-files", "-z", "--others", "--exclude-standard", "lib"):
        raise ValueError(f"git does not track {unknown[0]}: `git add` it, or move it out of lib/")
    contents.code |= {name: paths.ROOT / name for name in _git("ls-files", "-z", *wanted)}
    for name in names:
        path = Path(name) if name.endswith(".yaml") else paths.GRIDS / f"{name}.yaml"
        contents.code[grid_place(name)] = path


def grid_place(name: str) -> str:
    """Where a grid's file lies in the bundle."""
    return f"workflow/grids/{name}.yaml" if not name.endswith(".yaml") else f"own/{Path(name).name}"


def _git(*arguments: str) -> list[str]:
    command = ["git", *arguments]
    try:
        done = subprocess.run(command, cwd=paths.ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise ValueError(
            f"{paths.ROOT} is no git checkout, and git knows which files are the project's code:"
            " clone it to bundle it"
        ) from error
    return [name for name in done.stdout.split("\0") if name]


def add_grid(contents: Contents, grid: Grid, data_dir: str | None = None) -> None:
    """All that the runs of a grid read, but the training texts, which are noted in `texts`.

    Raises:
        FileNotFoundError: something is not here.
        ValueError: something lies where the other machine has no such place.
    """
    usual = profile(grid.profile)
    identity.graded_hashes(usual, data_dir)  # they are here, and whole
    for name, split in ((usual.dev, "dev"), (usual.test, "test")):
        _add_data(contents, sets.graded_files(name, split, data_dir), data_dir)
    for cell in grid.cells:
        try:
            _add_cell(contents, grid, cell, data_dir)
        except (OSError, ValueError) as error:
            kind = FileNotFoundError if isinstance(error, OSError) else ValueError
            raise kind(f"row {cell.row!r}: {error}") from error
    if contents.transfer:
        identity.transfer_hash(data_dir)
        _add_data(contents, sets.transfer_files(data_dir), data_dir)
    for parser in sorted(contents.parsers):
        _add_parser(contents, parser)


def _add_cell(contents: Contents, grid: Grid, cell: Cell, data_dir: str | None) -> None:
    method = str(cell.set["method"])
    if method in untrained.METHODS:
        usual = profile(grid.profile)
        _add_text(contents, data.at_hand(usual.corpus, data_dir), usual.n_sentences)
        if method in untrained.OF_AN_ENCODER:
            _add_model(contents, untrained.name_of(usual, cell.model))
        return
    chosen, wanted, steps = experiment.resolve(grid.profile, **cell.set)  # type: ignore[arg-type]
    contents.transfer |= bool(wanted.evaluation.transfer_pooling)
    if wanted.encoder.lora_rank:
        contents.packages.add("peft")
    _add_model(contents, wanted.encoder.backbone)
    if steps != 0:
        aligned = wanted.positive.kind == "file"
        text = data.at_hand(chosen.corpus, data_dir)
        _add_text(contents, text, None if aligned else chosen.n_sentences)
        _add_words(contents, wanted)


def _add_words(contents: Contents, wanted: Recipe) -> None:
    """What a recipe reads beside the training text: its positives, a thesaurus, a parser."""
    params, own = identity.parameters(wanted), wanted.positive
    if "positive_file" in params:
        path = identity.positives_path(wanted)
        contents.data[_inside(path, f"positive_file {own.file!r}")] = path
    if "synonyms" in params and own.synonyms == "wordnet":
        contents.data |= {f"nltk/corpora/wordnet/{path.name}": path for path in wordnet_files()}
    elif "synonyms" in params:
        identity.synonyms_hash(own.synonyms)
        path = Path(identity.model_path(own.synonyms))
        contents.data[_inside(path, f"synonyms {own.synonyms!r}")] = path
    if "parser" in params:
        contents.parsers.add(own.parser)


def _add_parser(contents: Contents, name: str) -> None:
    """A parser of the project, and the list of verbs that the rules read beside any."""
    identity.rules_hashes(name)  # it is here, and whole
    verbs = paths.MINI_SPACY / "verbs.txt"
    contents.models[_inside(verbs, "the list of verbs")] = verbs
    if spacy.util.is_package(name):
        contents.pipelines.add(name)
    else:
        folder = Path(identity.model_path(name)) if name else paths.MINI_SPACY
        _add_folder(contents, folder, f"parser {name!r}")


def _add_text(contents: Contents, name: str, n: int | None) -> None:
    before = contents.texts.get(name, 0)
    contents.texts[name] = None if n is None or before is None else max(n, before)


def add_texts(contents: Contents, scratch: Path, data_dir: str | None = None) -> None:
    """The training texts: whole files, or of a large one the sentences that are drawn of it.

    Args:
        scratch: folder for the files that are made here.

    Raises:
        FileNotFoundError, ValueError: as `data.corpus`; a text outside the project.
    """
    for name, n in contents.texts.items():
        sentences = data.corpus(name, data_dir, n)
        if n is None or name not in DRAWN:
            if name not in data.CORPORA:
                contents.data[_inside(Path(name), f"corpus {name!r}", as_named=name)] = Path(name)
            else:
                _add_data(contents, data.corpus_files(name, data_dir), data_dir)
            continue
        path = scratch / f"{name}.txt.xz"
        path.write_bytes(lzma.compress("".join(f"{line}\n" for line in sentences).encode()))
        if data.read_lines(path) != sentences:
            raise ValueError(f"corpus {name!r}: a sentence of it is no line of text")
        contents.data[f"data/{corpora.DRAWN.format(name)}"] = path


def _add_data(contents: Contents, found: Iterable[Path], data_dir: str | None) -> None:
    """Files of the folders in which real data is looked for, which lie alike in the bundle."""
    bases = paths.data_dirs(data_dir)
    for path in found:
        base = next(base for base in (*bases, paths.DATA) if path.is_relative_to(base))
        place = Path("data") / path.relative_to(base)
        contents.data[place.as_posix()] = path
        for folder in path.absolute().parents:
            if (folder / sets.OWN_SETS).is_file():
                contents.data[(place.parent / sets.OWN_SETS).as_posix()] = folder / sets.OWN_SETS


def _inside(path: Path, what: str, as_named: str = "") -> str:
    """A file's place in the project, which is its place in the bundle's."""
    absolute = path.resolve()
    if not absolute.is_relative_to(paths.ROOT) or Path(as_named).is_absolute():
        raise ValueError(
            f"{what} is named by a place that the other machine does not have: copy it into"
            f" {paths.DATA} and name it from there, as data/mini-bert is"
        )
    return absolute.relative_to(paths.ROOT).as_posix()


def _add_folder(contents: Contents, folder: Path, what: str) -> None:
    """A model's folder without what its training left there."""
    place = Path(_inside(folder, what))
    for path in sorted(folder.rglob("*")):
        unused = path.suffix == ".bin" and any(path.parent.glob("*.safetensors"))
        if path.is_file() and path.name not in identity.OF_TRAINING and not unused:
            contents.models[(place / path.relative_to(folder)).as_posix()] = path


def _add_model(contents: Contents, name: str) -> None:
    """An encoder: a folder of the project, a package, or what the Hub's cache holds of it."""
    found = Path(identity.model_path(name))
    if name in identity.PACKAGED and found.is_dir():
        contents.packages.add(identity.PACKAGED[name].replace("_", "-"))
    elif found.is_dir():
        _add_folder(contents, found, f"model {name!r}")
    else:
        _add_cached(contents, name)


def _add_cached(contents: Contents, name: str) -> None:
    """A model of the Hub, as its cache holds it, in the layout of a cache."""
    with explained(name):
        config = cached_file(name, "config.json", local_files_only=True)
    folder = Path(str(config)).parent
    weights = sorted(folder.glob("*.safetensors")) or sorted(folder.glob("*.bin"))
    if not weights:
        raise FileNotFoundError(
            f"the weights of {name} are not in the Hub's cache: `python -m lib evaluate {name}`"
            " brings them"
        )
    others = [path for path in folder.rglob("*") if path.suffix in identity.OF_A_MODEL]
    cache = folder.parents[1]
    for path in sorted({*weights, *others, cache / "refs" / "main"}):
        if path.is_file() and path.name not in identity.OF_TRAINING:
            contents.models[f"hub/{cache.name}/{path.relative_to(cache).as_posix()}"] = path


# --- parts


def pack(group: Mapping[str, Path], name: str, folder: Path, limit: int | None) -> list[dict]:
    """Write files as archives `name.tar.gz`, none above `limit` bytes; what the manifest says of
    them.

    Files share an archive as long as it stays below the limit. An archive that does not, because of
    one large file, is cut into parts `name.tar.gz.001` and so on, which `cat` puts together. The
    same files give the same bytes.
    """
    members_of: list[dict[str, Path]] = []
    room: list[float] = []
    for place, path in sorted(group.items()):
        length = path.stat().st_size + 1024  # with its header, padded
        fitting = (number for number, left in enumerate(room) if length <= left)
        if (number := next(fitting, -1)) < 0:
            number = len(room)
            members_of.append({})
            room.append(math.inf if limit is None else 0.99 * limit - 10240)
        members_of[number][place] = path
        room[number] -= length
    archives = []
    for number, members in enumerate(members_of, 1):
        title = f"{name}.tar.gz" if len(members_of) == 1 else f"{name}-{number}.tar.gz"
        _write_archive(members, folder / title)
        parts = split(folder / title, limit)
        archives.append({"name": title, "parts": [_described(part) for part in parts]})
    return archives


def _described(path: Path) -> dict[str, object]:
    return {"name": path.name, "bytes": path.stat().st_size, "sha256": files.sha256(path)}


def _write_archive(members: Mapping[str, Path], path: Path) -> None:
    with (
        path.open("wb") as file,
        gzip.GzipFile("", "wb", 6, file, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as tar,
    ):
        for place, source in members.items():
            member = tarfile.TarInfo(place)
            member.size = source.stat().st_size
            with source.open("rb") as content:
                tar.addfile(member, content)


def split(path: Path, limit: int | None) -> list[Path]:
    """A file, or its parts `<name>.001` and so on if it is larger than `limit` bytes; then it is
    gone."""
    if limit is None or path.stat().st_size <= limit:
        return [path]
    found = []
    with path.open("rb") as file:
        for number in range(1, -(-path.stat().st_size // limit) + 1):
            found.append(path.with_name(f"{path.name}.{number:03d}"))
            with found[-1].open("wb") as part:
                left = limit
                while left and (piece := file.read(min(left, 2**20))):
                    part.write(piece)
                    left -= len(piece)
    path.unlink()
    return found


# --- the folder


def write(
    out: Path,
    names: list[str],
    profile_name: str = "",
    *,
    target: Target,
    minutes: float,
    limit: int | None = None,
    with_wheels: bool = True,
    with_torch: bool = False,
    data_dir: str | None = None,
    download: wheels.Download | None = None,
) -> dict[str, Any]:
    """Write a bundle: parts, `manifest.json` and `run.sh`.

    Args:
        out: a folder that is empty or not there.
        names: of grids, as `grids.read` takes them; profile_name: as `Grid.at`.
        minutes: after which `run.sh` interrupts the runs, if it is not told otherwise.
        limit: most bytes of a file.
        with_torch: bundle torch, too, which is large.
        download: as `wheels.gather`.

    Returns:
        The manifest.

    Raises:
        FileExistsError: `out` holds something.
        FileNotFoundError, ValueError: something that the grids need is not here, or cannot be had.
    """
    if out.exists() and not (out.is_dir() and not any(out.iterdir())):
        raise FileExistsError(f"{out} is there already: name another folder, or remove it")
    if len({grid_place(name) for name in names}) < len(names):
        raise ValueError(f"--grid {' '.join(names)}: two of them have one name")
    chosen = [chosen_grid(name, profile_name, data_dir) for name in names]
    contents = Contents()
    add_code(contents, names, dict.fromkeys(grid.notebook for grid in chosen))
    for grid in chosen:
        add_grid(contents, grid, data_dir)
    wanted = wheels.roots(contents.packages)
    _check_torch(wanted, target, with_torch)
    made = out.with_name(f"{out.name}-made")
    with files.written(out) as folder, files.scratch_folder(made) as scratch:
        folder.mkdir()
        add_texts(contents, scratch, data_dir)
        files.write_json(scratch / runs.COMMIT, runs.commit())
        contents.code[runs.COMMIT] = scratch / runs.COMMIT
        if with_wheels:
            without = () if with_torch else ("torch",)
            brought = wheels.gather(wanted, target, scratch / "wheels", without, download)
            contents.wheels = {f"wheels/{path.name}": path for path in brought}
        modules = wheels.import_names(wanted) | {p.replace("-", "_") for p in contents.packages}
        manifest = {
            "grids": _words(names, chosen),
            "runs": sum(len(list(grid.runs())) for grid in chosen),
            "results_version": runs.RESULTS_VERSION,
            **runs.commit(),
            "wheels": target.minor if contents.wheels else None,
            "modules": sorted(modules | contents.pipelines),
            "needs": _needs(wanted, contents, target),
            **_packed(contents, folder, limit),
        }
        files.write_json(folder / MANIFEST, manifest)
        script = run_script(names, target, files.sha256(folder / MANIFEST), minutes)
        (folder / "run.sh").write_text(script, encoding="utf-8")
        (folder / "run.sh").chmod(0o755)
    return manifest


def _check_torch(wanted: Iterable[Requirement], target: Target, with_torch: bool) -> None:
    """Refuse a target that is known to have no torch."""
    if target.has is None or "torch" in target.has or with_torch:
        return
    version = next(str(one.specifier) for one in wanted if one.name == "torch")
    raise ValueError(
        f"--freeze: the target has no torch: install torch{version} there, or bundle it with"
        " --torch"
    )


def _needs(wanted: Iterable[Requirement], contents: Contents, target: Target) -> list[str]:
    """What the target must have, or get, as it is not in the bundle."""
    brought = {wheels.name_of(path) for path in contents.wheels.values()}
    lacking = [
        str(one)
        for one in wanted
        if canonicalize_name(one.name) not in brought and not wheels.is_there(one, target)
    ]
    return lacking + [f"spaCy's {name}" for name in sorted(contents.pipelines)]


def _words(names: list[str], chosen: list[Grid]) -> list[list[str]]:
    """What follows `python -m lib grid` for each grid."""
    places = [grid_place(name) if name.endswith(".yaml") else name for name in names]
    return [[place, "--profile", grid.profile] for place, grid in zip(places, chosen, strict=True)]


def _packed(contents: Contents, folder: Path, limit: int | None) -> dict[str, Any]:
    """Write the parts; what the manifest says of them and of each file in them."""
    archives: list[dict] = []
    hashes: dict[str, str] = {}
    for name, group in contents.groups().items():
        if group:
            archives += pack(group, name, folder, limit)
            hashes |= {place: files.sha256(path) for place, path in sorted(group.items())}
    return {"archives": archives, "files": hashes}


def run_script(names: list[str], target: Target, digest: str, minutes: float) -> str:
    """`run.sh`, which holds `lib.node`.

    Args:
        digest: SHA-256 of the manifest.
    """
    folder = paths.ROOT / "lib"
    text = (folder / "templates" / "run.sh").read_text(encoding="utf-8")
    values = {"GRIDS": " ".join(names), "PYTHON": target.minor, "DIGEST": digest}
    values |= {"MINUTES": f"{minutes:g}"}
    for name, value in values.items():
        text = text.replace(f"@{name}@", " ".join(value.split()))
    return text.replace("@PROGRAM@", (folder / "node.py").read_text(encoding="utf-8").rstrip())
