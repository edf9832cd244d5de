"""What `precision="auto"` means is one precision everywhere: in encoding and in training."""

import torch
from tiny import same, tiny_recipe, tiny_sentences, trained, weights

OTHER = {"fp32": "bf16", "bf16": "fp32"}


def test_trained_weights_are_those_of_the_precision(tmp_path, auto_precision) -> None:
    def run(precision: str) -> dict[str, torch.Tensor]:
        text = tiny_sentences(32)
        encoder, _ = trained(tmp_path, tiny_recipe(), text, max_steps=3, precision=precision)
        return weights(encoder)

    found = run("auto")
    assert same(found, run(auto_precision))
    assert not same(found, run(OTHER[auto_precision]))
