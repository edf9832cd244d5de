"""An exported encoder: its vectors in sentence-transformers, its card, and the search with it."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
import yaml
from tiny import tiny_bert

from lib import data
from lib.__main__ import main as cli
from lib.encoder import Encoder
from lib.runs import experiment
from lib.runs.export import export, model_card

SENTENCES = [
    "A dog barks at the door.",
    "The market fell on Monday.",
    "A hound is barking.",
    "She plays the violin.",
]


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    base, whole = tmp_path_factory.mktemp("share"), data.mini_pairs

    def fewer(split: str) -> data.Pairs:
        pairs = whole(split)
        columns = {
            name: getattr(pairs, name)[:100]
            for name in ("sentence1", "sentence2", "scores", "kinds")
        }
        return replace(pairs, **columns)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(data, "mini_pairs", fewer)
        run = experiment.run("02_simcse", "simcse", max_steps=2, batch_size=8, output_dir=str(base))
    return run, export(run.folder, base / "my-model")


def test_sentence_transformers_gives_the_vectors_of_the_best_checkpoint(exported) -> None:
    from sentence_transformers import SentenceTransformer

    run, folder = exported
    ours = Encoder.load(run.folder / "best").encode(SENTENCES, precision="fp32")
    theirs = SentenceTransformer(str(folder), device="cpu").encode(SENTENCES)
    assert np.allclose(ours, theirs, atol=1e-5) and ours.std() > 0.01


def test_the_card_says_what_the_run_was(exported) -> None:
    run, folder = exported
    _, front, text = (folder / "README.md").read_text().split("---\n", 2)
    card = yaml.safe_load(front)
    assert "base_model" not in card and card["license"] == "cc-by-sa-4.0"
    assert card["library_name"] == "sentence-transformers"
    assert run.id in text and "mini_simcse" in text and "256 dimensions" in text
    assert f"| mini test | {run.metrics['mini_test_spearman_best']:.2f} |" in text
    assert f"| mini dev | {run.metrics['mini_dev_spearman_best']:.2f} |" in text
    params = json.loads((run.folder / "params.json").read_text())
    assert (
        f"| temperature | {params['temperature']} |" in text
        and "None" not in text
        and "nan" not in text
    )


@pytest.mark.parametrize(
    ("backbone", "model_hash", "base"),
    [("someone/bert", "someone/bert@0123", "someone/bert"), ("thesis/my-bert", "9f86d081", None)],
)
def test_the_card_names_a_model_of_the_hub_and_no_private_folder(
    exported, backbone, model_hash, base
) -> None:
    run, _ = exported
    params, metrics = (
        json.loads((run.folder / f"{stem}.json").read_text()) for stem in ("params", "metrics")
    )
    params |= {"backbone": backbone, "positive_file": "/thesis/pairs.txt"}
    params["resolved"] |= {"backbone": "/thesis/my-bert"}
    params["data"]["model"] = model_hash
    card = model_card(params, metrics, "mine", 256)
    assert yaml.safe_load(card.split("---\n")[1]).get("base_model") == base
    assert (
        "thesis" not in card and "resolved" not in card and "| positive_file | pairs.txt |" in card
    )


def test_scores_of_whitened_vectors_are_not_exported_without_whitening(exported, tmp_path) -> None:
    run, _ = exported
    whitened = shutil.copytree(run.folder, tmp_path / "whitened")
    params = json.loads((whitened / "params.json").read_text()) | {"whiten": True}
    (whitened / "params.json").write_text(json.dumps(params))
    with pytest.raises(ValueError, match="whitening"):
        export(whitened, tmp_path / "target")


@pytest.mark.parametrize(
    ("make", "arguments", "message"),
    [
        (None, ["search", "none", "lines.txt", "q"], "cannot load the model 'none'"),
        (None, ["search", "none", "absent.txt", "q"], "absent.txt"),
        (None, ["search", "none", "empty.txt", "q"], "empty.txt"),
        (None, ["export", "folder", "target"], "no finished run"),
        ("", ["export", "run", "target"], "no best"),
        ("best", ["export", "run", "lines.txt"], "lines.txt is there and is no exported encoder"),
        ("best", ["export", "run", "target"], "params.json"),
    ],
)
def test_what_is_wrong_is_one_sentence(
    make, arguments, message, tmp_path, monkeypatch, capsys
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lines.txt").write_text("one\n")
    (tmp_path / "empty.txt").write_text("\n")
    (tmp_path / "folder").mkdir()
    if make is not None:
        (tmp_path / "run").mkdir()
        for stem in ("params", "metrics", "env"):
            (tmp_path / "run" / f"{stem}.json").write_text("{")
    if make:
        tiny_bert(tmp_path / "run" / "best")
    capsys.readouterr()
    assert cli(arguments) == 2
    text = capsys.readouterr().err
    assert text.startswith("error: ") and message in text and text.count("\n") == 1
    assert not (tmp_path / "target").exists()


def test_the_command_line(exported, tmp_path, capsys) -> None:
    run, folder = exported
    (tmp_path / "lines.txt").write_text("\n".join(SENTENCES))
    cli(["export", str(run.folder), str(tmp_path / "again")])
    cli(["search", str(folder), str(tmp_path / "lines.txt"), "A dog is barking.", "-n", "1"])
    from sentence_transformers import SentenceTransformer

    a, b = SentenceTransformer(str(folder), device="cpu").encode(
        ["A dog is barking.", "A hound is barking."]
    )
    cosine = float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))
    printed = float(capsys.readouterr().out.splitlines()[-1].split()[0])
    assert printed == pytest.approx(cosine, abs=0.01), "searched with the pooling that was exported"
