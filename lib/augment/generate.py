"""Paraphrases and back-translations from sequence-to-sequence models, for corpora of any size.

Source: UNA (Shu & Lampos 2024, appendix C.1): PEGASUS paraphrases (Zhang et al. 2020), en → fr →
en with the OPUS-MT models (Tiedemann & Thottingal 2020); ConSERT's extension uses the same round
trip.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Step:
    """One model that turns a sentence into a sentence.

    Attributes:
        model: Hugging Face id or folder; prefix: text put before every sentence.
        beams: width of the beam search, of which the best is taken; max_length: tokens read and
            written.
    """

    model: str
    prefix: str = ""
    beams: int = 10
    max_length: int = 60


CHAINS: dict[str, tuple[Step, ...]] = {
    "paraphrase": (Step("tuner007/pegasus_paraphrase"),),
    "paraphrase-t5": (Step("Vamsi/T5_Paraphrase_Paws", prefix="paraphrase: ", max_length=128),),
    "back-translate": (
        Step("Helsinki-NLP/opus-mt-en-fr", beams=5, max_length=128),
        Step("Helsinki-NLP/opus-mt-fr-en", beams=5, max_length=128),
    ),
}


class Generator:
    """A chain of models; half precision on a GPU.

    Args:
        steps: as in `CHAINS`.
        device: as `lib.encoder.resolve_device` gives it.
        batch_tokens: source tokens in a batch, padding included.

    Raises:
        FileNotFoundError, PermissionError, ImportError, ValueError: as
            `lib.encoder.load.explained`.

    Example:
        >>> Generator([Step("no/such/folder")], "cpu")
        Traceback (most recent call last):
        FileNotFoundError: cannot load the model 'no/such/folder': it is no folder...
    """

    def __init__(
        self, steps: Sequence[Step], device: "torch.device | str", batch_tokens: int = 4096
    ):
        self.steps, self.device, self.batch_tokens = list(steps), device, batch_tokens
        self.loaded = [_load(step.model, str(device)) for step in self.steps]

    def __call__(self, sentences: Sequence[str]) -> list[str]:
        """One output a sentence, in order; where a model writes nothing, the sentence itself."""
        texts = list(sentences)
        for step, (model, tokenizer) in zip(self.steps, self.loaded, strict=True):
            texts = [
                text and new
                for text, new in zip(texts, self._apply(step, model, tokenizer, texts), strict=True)
            ]
        return [text or sentence for text, sentence in zip(texts, sentences, strict=True)]

    def _apply(self, step: Step, model, tokenizer, sentences: list[str]) -> list[str]:
        """What one model writes, in batches of like length, the longest first: one that does not
        fit into memory fails at once."""
        inputs = [step.prefix + sentence for sentence in sentences]
        cut = {"truncation": True, "max_length": step.max_length}
        lengths = [len(ids) for ids in tokenizer(inputs, **cut)["input_ids"]]
        waiting = sorted(range(len(inputs)), key=lambda i: -lengths[i])
        result = [""] * len(sentences)
        while waiting:
            size = max(1, self.batch_tokens // max(1, lengths[waiting[0]]))
            rows, waiting = waiting[:size], waiting[size:]
            batch = tokenizer(
                [inputs[i] for i in rows],
                padding=True,
                return_tensors="pt",
                return_token_type_ids=False,
                **cut,
            ).to(self.device)
            written = model.generate(
                **batch,
                num_beams=step.beams,
                max_length=step.max_length,
                do_sample=False,
                early_stopping=True,
            )
            texts = tokenizer.batch_decode(written, skip_special_tokens=True)
            for i, text in zip(rows, texts, strict=True):
                result[i] = " ".join(text.split())
        return result


def _load(name: str, device: str):
    import torch
    from transformers import AutoModelForSeq2SeqLM

    from lib.encoder.load import explained, read_tokenizer

    dtype = torch.float16 if device.startswith("cuda") else torch.float32
    try:
        with explained(name):
            tokenizer = read_tokenizer(name)
            model, report = AutoModelForSeq2SeqLM.from_pretrained(
                name, dtype=dtype, trust_remote_code=False, output_loading_info=True
            )
    except ImportError as error:
        raise ImportError(f"{name} needs more packages: pip install -e '.[generate]'") from error
    computed = ("embed_positions.weight", "final_logits_bias")
    lost = sorted(key for key in map(str, report["missing_keys"]) if not key.endswith(computed))
    if lost:
        raise ValueError(f"{name!r} lacks weights, {lost[0]} among {len(lost)}: bring it again")
    return model.to(device).eval(), tokenizer
