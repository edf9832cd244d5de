"""An exported encoder: its vectors in sentence-transformers, its card, and the search with it."""

import json

import numpy as np
import pytest
import yaml

from lib import paths
from lib.encoder import Encoder
from workflow import experiment, share

SENTENCES = ["A dog barks at the door.", "The market fell on Monday.", "A hound is barking.", "She plays the violin."]


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    base = tmp_path_factory.mktemp("share")
    run = experiment.run("02_simcse", "simcse", max_steps=2, batch_size=8, output_dir=str(base))
    return run, share.export(run.folder, base / "my-model")


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
    assert f"| temperature | {params['temperature']} |" in text and "None" not in text and "nan" not in text


def test_an_exported_folder_is_read_with_its_pooling(exported, tmp_path) -> None:
    run, folder = exported
    assert (
        Encoder.load(folder).settings["eval_pooling"]
        == "mean"
        == Encoder.load(run.folder / "best").settings["eval_pooling"]
    )
    as_written = (folder / "1_Pooling" / "config.json").read_text()
    for modes, pooling in (({"pooling_mode_cls_token": True}, "cls"), ({"pooling_mode": "lasttoken"}, "last_token")):
        (folder / "1_Pooling" / "config.json").write_text(json.dumps(modes))
        assert Encoder.load(folder).settings["pooling"] == pooling
    (folder / "1_Pooling" / "config.json").write_text(as_written)


def test_search_is_the_order_of_cosines(exported) -> None:
    encoder = Encoder.load(paths.MINI_BERT, eval_pooling="mean", pooling="mean")
    found = share.search(encoder.encode, SENTENCES, "A dog is barking.", 4)
    query, *rest = encoder.encode(["A dog is barking.", *SENTENCES]).astype(float)
    slow = sorted(
        ((v @ query / np.linalg.norm(v) / np.linalg.norm(query)), s) for v, s in zip(rest, SENTENCES, strict=True)
    )
    assert [s for _, s in found] == [s for _, s in reversed(slow)] and found[0][1] == "A hound is barking."
    assert [c for c, _ in found] == pytest.approx([c for c, _ in reversed(slow)])
    with pytest.raises(ValueError, match="no sentences"):
        share.search(encoder.encode, [], "x")


def test_the_command_line(exported, tmp_path, capsys) -> None:
    run, folder = exported
    (tmp_path / "lines.txt").write_text("\n".join(SENTENCES))
    share.main(["export", str(run.folder), str(tmp_path / "again")])
    share.main(["search", str(folder), str(tmp_path / "lines.txt"), "A dog is barking.", "-n", "1"])
    from sentence_transformers import SentenceTransformer

    a, b = SentenceTransformer(str(folder), device="cpu").encode(["A dog is barking.", "A hound is barking."])
    cosine = float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))
    printed = float(capsys.readouterr().out.splitlines()[-1].split()[0])
    assert printed == pytest.approx(cosine, abs=0.01), "searched with the pooling that was exported"
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.txt").write_text("mine")
    with pytest.raises(SystemExit, match="is no exported encoder"):
        share.main(["export", str(run.folder), str(tmp_path / "thesis")])
    assert (tmp_path / "thesis" / "chapter.txt").read_text() == "mine"
    share.main(["export", str(run.folder), str(tmp_path / "again")])
    with pytest.raises(SystemExit, match="not a finished run"):
        share.main(["export", str(tmp_path), str(tmp_path / "x")])
    with pytest.raises(SystemExit, match="error"):
        share.main(["search", str(folder), str(tmp_path / "none.txt"), "x"])
