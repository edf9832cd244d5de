"""What `precision="auto"` means is one precision everywhere: in encoding and in training."""

import numpy as np
import pytest
import torch
from tiny import same, tiny_encoder, tiny_recipe, tiny_sentences, trained, weights

from lib.encoder.device import resolve_precision

OTHER = {"fp32": "bf16", "bf16": "fp32"}


def test_embeddings_are_those_of_the_precision(tmp_path, auto_precision) -> None:
    encoder, sentences = tiny_encoder(tmp_path), tiny_sentences(20)
    found = encoder.encode(sentences)
    assert np.array_equal(found, encoder.encode(sentences, precision=auto_precision))
    other = encoder.encode(sentences, precision=OTHER[auto_precision])
    assert not np.array_equal(found, other) and np.allclose(found, other, atol=0.1)


def test_trained_weights_are_those_of_the_precision(tmp_path, auto_precision) -> None:
    def run(precision: str) -> dict[str, torch.Tensor]:
        text = tiny_sentences(32)
        encoder, _ = trained(tmp_path, tiny_recipe(), text, max_steps=3, precision=precision)
        return weights(encoder)

    found = run("auto")
    assert same(found, run(auto_precision))
    assert not same(found, run(OTHER[auto_precision]))


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_a_precision_that_is_named_is_not_another(auto_precision, precision) -> None:
    assert resolve_precision(precision) == precision and resolve_precision() == auto_precision
