"""Models from folders and from the Hub: read as what they say they are, or refused in one
sentence."""

import json
import shutil
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
import torch
from huggingface_hub import constants
from safetensors.torch import load_file, save_file
from tiny import WORDS, tiny_bert, tiny_sentences, word_tokenizer
from transformers import (
    AutoConfig,
    AutoModelForPreTraining,
    BertConfig,
    BertModel,
    T5Config,
    T5EncoderModel,
    T5Model,
)

from lib.encoder import Encoder
from lib.encoder.load import fitting_pooling

SENTENCES = [*tiny_sentences(6), " ".join(WORDS * 2)]
LFS = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 3\n"


@pytest.fixture(scope="module")
def bert(tmp_path_factory) -> Path:
    return tiny_bert(tmp_path_factory.mktemp("bert"))


@pytest.fixture
def folder(bert, tmp_path) -> Path:
    return Path(shutil.copytree(bert, tmp_path / "model"))


def config(folder: Path, **changes) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def weights(folder: Path, change: Callable[[dict], dict]) -> None:
    path = folder / "model.safetensors"
    save_file(change(load_file(path)), path, metadata={"format": "pt"})


def cut(folder: Path, name: str, n: int) -> None:
    path = folder / name
    path.write_bytes(path.read_bytes()[:n])


def without_tokenizer(folder: Path) -> None:
    for name in ("tokenizer.json", "vocab.txt", "tokenizer_config.json"):
        (folder / name).unlink(missing_ok=True)


def fewer_rows(folder: Path) -> None:
    config(folder, vocab_size=40)
    weights(folder, lambda s: {k: v[:40] if "word_emb" in k else v for k, v in s.items()})


def with_head(folder: Path, content: bytes | dict | None = None, **settings) -> None:
    (folder / "sentence_encoder.json").write_text(json.dumps({"head": "tanh", **settings}))
    if isinstance(content, dict):
        save_file(content, folder / "head.safetensors")
    elif content is not None:
        (folder / "head.safetensors").write_bytes(content)


LAST = "encoder.layer.1.output.dense.weight"
DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "a tensor missing": (
        lambda f: weights(f, lambda s: {k: v for k, v in s.items() if k != LAST}),
        f"1 tensors missing, too many or of another shape, {LAST}",
    ),
    "mis-shaped": (lambda f: config(f, intermediate_size=64), "of another shape, encoder"),
    "not a number": (
        lambda f: weights(f, lambda s: s | {LAST: s[LAST] * torch.nan}),
        f"{LAST} holds numbers that are not finite",
    ),
    "unknown model type": (lambda f: config(f, model_type="zzz"), "`zzz`"),
    "truncated weights": (lambda f: cut(f, "model.safetensors", 5000), "files are damaged"),
    "no weights": (lambda f: (f / "model.safetensors").unlink(), "no file named model.safetensors"),
    "tokenizer in Git LFS": (lambda f: (f / "tokenizer.json").write_text(LFS), "are damaged"),
    "no tokenizer": (without_tokenizer, "has no tokenizer"),
    "tokenizer of another model": (fewer_rows, "tokenizer is of another model: 62"),
    "unknown setting": (lambda f: with_head(f, pool="cls"), "no field 'pool'"),
    "wrong head": (lambda f: with_head(f, head="mlp"), "head must be one of none"),
    "settings are no JSON": (lambda f: (f / "sentence_encoder.json").write_text("{"), "is no JSON"),
    "no head": (lambda f: with_head(f, eval_head=True), "head.safetensors"),
    "head without settings": (
        lambda f: (f / "head.safetensors").write_bytes(b""),
        "sentence_encoder.json, which says what head.safetensors is, is missing",
    ),
    "not a number in the head": (
        lambda f: with_head(f, {"0.weight": torch.ones(32, 32) / 0, "0.bias": torch.ones(32)}),
        "0.weight holds numbers that are not finite",
    ),
}


def refusal(name: Path | str, kinds=(ValueError, FileNotFoundError), **options) -> str:
    """The sentence with which a model is refused."""
    with pytest.raises(kinds) as caught:
        Encoder.load(name, **options)
    text = str(caught.value)
    assert "\n" not in text and str(name) in text
    return text


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_model_is_one_sentence(folder, damage, capfd) -> None:
    spoil, message = DAMAGES[damage]
    spoil(folder)
    assert message in refusal(folder)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("architecture", [T5Model, T5EncoderModel])
def test_an_encoder_decoder_is_refused_whole_and_in_part(architecture, tmp_path) -> None:
    sizes = {"d_model": 16, "d_kv": 8, "d_ff": 16, "num_layers": 1, "num_heads": 2}
    architecture(T5Config(vocab_size=80, **sizes)).save_pretrained(tmp_path)
    assert "encoder-decoder" in refusal(tmp_path)


def test_program_code_beside_a_model_is_never_run(folder, tmp_path) -> None:
    trace = tmp_path / "ran"
    (folder / "code.py").write_text(f"open({str(trace)!r}, 'w').close()\n")
    config(
        folder, model_type="own", auto_map={"AutoConfig": "code.Config", "AutoModel": "code.Model"}
    )
    assert "program code of its own" in refusal(folder)
    with pytest.raises(ValueError, match="program code of its own"):
        fitting_pooling(folder)
    assert not trace.exists()


SIZES = {"vocab_size": 80, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
WIDE = {**SIZES, "intermediate_size": 48, "max_position_embeddings": 40}


@pytest.mark.parametrize("family", ["bert", "roberta", "albert", "electra", "distilbert", "gpt2"])
def test_heads_of_the_pre_training_are_left_out_in_silence(family, tmp_path, capfd) -> None:
    model = AutoModelForPreTraining.from_config(AutoConfig.for_model(family, **SIZES)).eval()
    model.save_pretrained(tmp_path / "model")
    word_tokenizer("<s>", "</s>", "<pad>", 32).save_pretrained(tmp_path / "model")
    capfd.readouterr()
    encoder = Encoder.load(tmp_path / "model", pooling="mean")
    encoder.save(tmp_path / "saved")
    assert capfd.readouterr() == ("", "")
    batch = encoder.tokenizer(SENTENCES[0], return_tensors="pt", return_token_type_ids=False)
    with torch.no_grad():
        expected = model.base_model(**batch).last_hidden_state.mean(1).numpy()
    assert np.allclose(encoder.encode(SENTENCES[:1], precision="fp32"), expected, atol=1e-5)


def test_old_names_of_layer_norm_and_stored_positions_are_no_damage(folder) -> None:
    expected = Encoder.load(folder).encode(SENTENCES)

    def old(state: dict) -> dict:
        def name(k: str) -> str:
            return k.replace("Norm.weight", "Norm.gamma").replace("Norm.bias", "Norm.beta")

        renamed = {f"bert.{name(k)}": v for k, v in state.items()}
        return renamed | {"bert.embeddings.position_ids": torch.arange(32)[None]}

    weights(folder, old)
    assert np.array_equal(Encoder.load(folder).encode(SENTENCES), expected)


# --- sentence-transformers -------------------------------------------------------------


def module(i: int, kind: str, path: str = "") -> dict:
    return {"idx": i, "name": f"{i}", "path": path, "type": f"sentence_transformers.models.{kind}"}


TRANSFORMER, POOLING = module(0, "Transformer"), module(1, "Pooling", "1_Pooling")
NORMALIZE = module(2, "Normalize", "2_Normalize")


def modules(folder: Path, pooling: dict, *more: dict, **transformer) -> Path:
    """Make a sentence-transformers model of a plain folder."""
    (folder / "1_Pooling").mkdir(exist_ok=True)
    files = {
        "modules.json": [TRANSFORMER, POOLING, *more],
        "1_Pooling/config.json": {"word_embedding_dimension": 32, **pooling},
        "sentence_bert_config.json": transformer,
    }
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content))
    return folder


def on_the_hub(folder: Path, cache: Path, name: str = "someone/model") -> str:
    """Put a folder into a Hub cache, as a download does; returns the id."""
    revision = "0" * 40
    repository = cache / f"models--{name.replace('/', '--')}"
    shutil.copytree(folder, repository / "snapshots" / revision)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(revision)
    return name


@pytest.fixture
def cache(tmp_path, monkeypatch) -> Path:
    """An empty Hub cache, and no network."""
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    return tmp_path / "hub"


POOLINGS = {
    "old mean": ({"pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True}, "mean"),
    "old none": ({"pooling_mode_cls_token": False}, "mean"),
    "new cls": ({"pooling_mode": "cls"}, "cls"),
    "new last": ({"pooling_mode": ["lasttoken"]}, "last_token"),
}


@pytest.mark.parametrize("spelling", POOLINGS)
def test_the_vectors_are_sentence_transformers(folder, cache, spelling) -> None:
    sentence_transformers = pytest.importorskip("sentence_transformers")
    pooling, expected = POOLINGS[spelling]
    modules(folder, pooling, NORMALIZE, max_seq_length=9, do_lower_case=False)
    theirs = sentence_transformers.SentenceTransformer(str(folder), device="cpu").encode(SENTENCES)
    for name in (folder, on_the_hub(folder, cache)):
        encoder = Encoder.load(name)
        assert encoder.settings["pooling"] == encoder.settings["eval_pooling"] == expected
        ours = encoder.encode(SENTENCES, precision="fp32")
        assert np.allclose(ours / np.linalg.norm(ours, axis=1, keepdims=True), theirs, atol=1e-5)
        assert Encoder.load(name, pooling="last2_mean").settings["eval_pooling"] == "last2_mean"


def test_a_folder_that_sentence_transformers_writes_is_read(folder, tmp_path) -> None:
    st = pytest.importorskip("sentence_transformers")
    parts = pytest.importorskip("sentence_transformers.models")
    transformer = parts.Transformer(str(folder), max_seq_length=7)
    model = st.SentenceTransformer(modules=[transformer, parts.Pooling(32, "mean")], device="cpu")
    model.save(str(tmp_path / "theirs"))
    ours = Encoder.load(tmp_path / "theirs").encode(SENTENCES, precision="fp32")
    assert np.allclose(ours, model.encode(SENTENCES), atol=1e-5)


def test_lower_casing_is_sentence_transformers(tmp_path) -> None:
    st = pytest.importorskip("sentence_transformers")
    folder = tiny_bert(tmp_path / "cased")
    for name in ("tokenizer.json", "tokenizer_config.json"):
        path = folder / name
        path.write_text(path.read_text().replace('"lowercase": true', '"lowercase": false'))
        path.write_text(path.read_text().replace('"do_lower_case": true', '"do_lower_case": false'))
    texts = ["A DOG runs .", "Two Cats"]
    vectors = []
    for lower in (False, True):
        modules(folder, {"pooling_mode": "mean"}, do_lower_case=lower)
        vectors.append(Encoder.load(folder).encode(texts, precision="fp32"))
        theirs = st.SentenceTransformer(str(folder), device="cpu").encode(texts)
        assert np.allclose(vectors[-1], theirs, atol=1e-5)
    assert not np.allclose(*vectors, atol=1e-2)


# Flags of 1_Pooling, more modules, and what the refusal speaks of.
WITHOUT_COUNTERPART: dict[str, tuple[dict, list, str]] = {
    "max": ({"pooling_mode_max_tokens": True}, [], "max_tokens"),
    "two": ({"pooling_mode": ["cls", "mean"]}, [], "cls + mean"),
    "dense": ({"pooling_mode": "mean"}, [module(2, "Dense", "2_Dense")], "Dense"),
}


@pytest.mark.parametrize("case", WITHOUT_COUNTERPART)
def test_what_has_no_counterpart_is_refused_unless_a_pooling_is_named(folder, case) -> None:
    flags, more, message = WITHOUT_COUNTERPART[case]
    modules(folder, flags, *more)
    text = refusal(folder)
    assert message in text and "pass pooling=" in text
    assert Encoder.load(folder, pooling="mean").encode(SENTENCES).shape == (len(SENTENCES), 32)


@pytest.mark.parametrize("setting", [{"default_prompt_name": "query"}, {"truncate_dim": 8}])
def test_a_prompt_and_cut_vectors_are_refused(folder, setting) -> None:
    modules(folder, {})
    (folder / "config_sentence_transformers.json").write_text(json.dumps(setting))
    assert next(iter(setting)) in refusal(folder)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("modules.json", "{}", "must hold a list"),
        ("modules.json", None, "modules.json, which says what 1_Pooling is, is missing"),
        ("1_Pooling/config.json", None, "1_Pooling/config.json"),
        ("sentence_bert_config.json", '{"max_seq_length": "x"}', "invalid literal"),
    ],
)
def test_a_damaged_description_is_one_sentence(folder, name, content, message) -> None:
    path = modules(folder, {}) / name
    path.unlink() if content is None else path.write_text(content)
    assert message in refusal(folder)


def test_a_saved_encoder_is_the_same_by_its_hub_id(folder, cache, tmp_path) -> None:
    """Head and settings too."""
    encoder = Encoder.load(folder, pooling="mean", head="tanh", eval_head=True, seed=5)
    encoder.save(tmp_path / "saved")
    again = Encoder.load(on_the_hub(tmp_path / "saved", cache))
    assert again.settings == encoder.settings
    assert np.array_equal(again.encode(SENTENCES), encoder.encode(SENTENCES))


@pytest.mark.parametrize("beside", ["mlp", "pooler", "linear"])
def test_a_layer_after_the_backbone_is_named_and_the_pooler_offered(tmp_path, beside) -> None:
    """`mlp` is what SimCSE's own train.py writes, `pooler` what its converter makes of it."""
    torch.manual_seed(0)
    model = BertModel(BertConfig(**WIDE, initializer_range=0.3)).eval()
    model.save_pretrained(tmp_path)
    word_tokenizer("<s>", "</s>", "<pad>", 32).save_pretrained(tmp_path)

    def own(state: dict) -> dict:
        heads = {k.replace("pooler.", f"{beside}."): v for k, v in state.items() if "pooler" in k}
        return heads | {f"bert.{k}": v for k, v in state.items() if "pooler" not in k}

    weights(tmp_path, own)
    config(tmp_path, architectures=["BertForCL"])
    with (
        pytest.warns(UserWarning, match="pooler is left out")
        if beside != "linear"
        else nullcontext()
    ):
        plain = Encoder.load(tmp_path)
    batch = plain.tokenizer(SENTENCES[0], return_tensors="pt", return_token_type_ids=False)
    with torch.no_grad():
        output = model(**batch)
    first = output.last_hidden_state[:, 0].numpy()
    assert np.allclose(plain.encode(SENTENCES[:1], precision="fp32"), first, atol=1e-5)
    if beside == "linear":
        assert "has no pooler" in refusal(tmp_path, pooling="pooler")
        return
    through = Encoder.load(tmp_path, pooling="pooler")
    expected = output.pooler_output.numpy()
    assert np.allclose(through.encode(SENTENCES[:1], precision="fp32"), expected, atol=1e-5)
    through.save(tmp_path / "saved")
    again = Encoder.load(tmp_path / "saved").encode(SENTENCES[:1], precision="fp32")
    assert np.allclose(again, expected, atol=1e-5)
