"""Generation through tiny sequence-to-sequence models, saved to folders and loaded as any other."""

import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from tiny import tiny_sentences, tiny_tokenizer
from transformers import AutoConfig, AutoModelForSeq2SeqLM, AutoTokenizer

from lib.data import read_aligned
from tools.generate import CHUNK, Generator, Step, main, write_in_chunks

CPU = torch.device("cpu")
SENTENCES = [*tiny_sentences(13), "a cat ."]
WIDTHS = {"d_model": 16, "encoder_ffn_dim": 24, "decoder_ffn_dim": 24, "init_std": 0.5}
LAYERS = {"encoder_layers": 2, "decoder_layers": 2, "max_position_embeddings": 256}
HEADS = {"encoder_attention_heads": 2, "decoder_attention_heads": 2, "forced_eos_token_id": 3}
SHAPES = {
    "t5": {"d_model": 16, "d_kv": 8, "d_ff": 24, "num_layers": 2, "num_heads": 2},
    "marian": {**WIDTHS, **LAYERS, **HEADS},
    "pegasus": {**WIDTHS, **LAYERS, **HEADS},
}


def build(kind: str, folder: Path) -> Path:
    """A 2-layer model with random weights."""
    tokenizer = tiny_tokenizer(folder)
    ends = {"pad_token_id": 0, "eos_token_id": 3, "decoder_start_token_id": 0, "bos_token_id": 2}
    torch.manual_seed(0)
    config = AutoConfig.for_model(kind, vocab_size=len(tokenizer), **SHAPES[kind], **ends)
    AutoModelForSeq2SeqLM.from_config(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def models(tmp_path_factory) -> dict[str, str]:
    base = tmp_path_factory.mktemp("models")
    return {kind: str(build(kind, base / kind)) for kind in ("pegasus", "t5", "marian")}


@pytest.mark.parametrize("kind", ["pegasus", "t5", "marian"])
def test_batches_give_what_single_sentences_give(models, kind):
    step = Step(models[kind], prefix="the " if kind == "t5" else "", beams=3, max_length=14)
    small, one = Generator([step], CPU, batch_tokens=60), Generator([step], CPU, batch_tokens=1)
    written = small(SENTENCES)
    assert len(written) == len(SENTENCES) and all(written) and written == one(SENTENCES)
    assert len(set(written)) > 1 and not any("[PAD]" in w or "[SEP]" in w for w in written)


def test_the_beam_is_transformers_own(models):
    model = AutoModelForSeq2SeqLM.from_pretrained(models["marian"])
    tokenizer = AutoTokenizer.from_pretrained(models["marian"])
    given = tokenizer(SENTENCES[0], return_tensors="pt", return_token_type_ids=False)
    best = model.generate(**given, num_beams=4, max_length=14, do_sample=False, early_stopping=True)
    expected = " ".join(tokenizer.decode(best[0], skip_special_tokens=True).split())
    ours = Generator([Step(models["marian"], beams=4, max_length=14)], CPU)(SENTENCES[:1])
    assert ours == [expected or SENTENCES[0]]


def test_a_chain_feeds_one_model_with_the_other(models):
    first, second = (Step(models[kind], "", 2, 12) for kind in ("marian", "pegasus"))
    middle = Generator([first], CPU)(SENTENCES)
    assert Generator([first, second], CPU)(SENTENCES) == Generator([second], CPU)(middle)


def test_nothing_written_keeps_the_sentence(models, monkeypatch):
    answers = iter([["", "b"], ["", "z"], ["invented", "y"]])
    monkeypatch.setattr(Generator, "_apply", lambda *_: next(answers))
    assert Generator([Step(models["t5"])], CPU)(["a", "b"]) == ["a", "b"]
    assert Generator([Step(models["t5"])] * 2, CPU)(["a", "b"]) == ["a", "y"]


def test_a_model_of_another_kind_is_one_sentence(models, tmp_path, capsys):
    folder = shutil.copytree(models["marian"], tmp_path / "bert")
    (folder / "config.json").write_text('{"model_type": "bert"}')
    (tmp_path / "in.txt").write_text("a cat .\n")
    request = ["paraphrase", str(tmp_path / "in.txt"), str(tmp_path / "o.txt")]
    capsys.readouterr()
    assert main([*request, "--model", str(folder), "--device", "cpu"]) == 2
    last = capsys.readouterr().err.strip().splitlines()[-1]
    assert last.startswith("error: cannot load") and str(folder) in last
    assert not (tmp_path / "o.txt").exists()


def test_missing_weights_are_not_made_up(models, tmp_path):
    folder = shutil.copytree(models["marian"], tmp_path / "damaged")
    weights = load_file(folder / "model.safetensors")
    kept = {name: tensor for name, tensor in weights.items() if "encoder.layers.1.fc1" not in name}
    assert len(kept) < len(weights)
    save_file(kept, folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(ValueError, match=r"lacks weights, .*encoder\.layers\.1\.fc1"):
        Generator([Step(str(folder))], CPU)


@pytest.mark.parametrize(
    ("method", "kinds"),
    [
        ("paraphrase", ["pegasus"]),
        ("paraphrase_t5", ["t5"]),
        ("back_translation", ["marian", "marian"]),
    ],
)
def test_command_line(models, method, kinds, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.txt").write_text("\n".join([*SENTENCES, "", "a dog ."]) + "\n")
    chosen = [argument for kind in kinds for argument in ("--model", models[kind])]
    assert main([method, "in.txt", "out.txt", "--device", "cpu", *chosen]) == 0
    found = read_aligned(tmp_path / "out.txt")
    assert len(found) == 16 and found[14] == "" and all(found[:14])
    assert main([method, "in.txt", "out.txt", *chosen]) == 2, "it is there"


def test_a_model_a_step_is_named(tmp_path, capsys):
    (tmp_path / "in.txt").write_text("a cat .\n")
    files = [str(tmp_path / "in.txt"), str(tmp_path / "o.txt")]
    assert main(["back_translation", *files, "--model", "x"]) == 2
    assert "2 step(s)" in capsys.readouterr().err


@pytest.mark.parametrize("tear", ["", "half a li", "A WHOLE LINE\nhalf"])
def test_an_interrupted_file_goes_on_where_it_stood(tmp_path, tear):
    lines, out, seen = [*map(str, range(3 * CHUNK)), "", "end"], tmp_path / "out.txt", []

    def upper(part: list[str]) -> list[str]:
        if len(seen) == 2:
            raise KeyboardInterrupt
        seen.append(part[0])
        return [f"x {line}" for line in part]

    with pytest.raises(KeyboardInterrupt):
        write_in_chunks(lines, out, upper, "one")
    assert not out.exists() and seen.pop() == str(CHUNK)
    with open(tmp_path / "out.txt.one.partial", "a") as file:
        file.write(tear)
    with pytest.raises(KeyboardInterrupt):
        write_in_chunks(lines, out, upper, "one")
    assert seen == ["0", str(2 * CHUNK)]
    write_in_chunks(lines, out, lambda part: [f"x {line}" for line in part], "one")
    assert read_aligned(out) == [f"x {line}" if line else "" for line in lines]
    assert [p.name for p in tmp_path.iterdir()] == ["out.txt"]
