"""Paraphrases and back-translations from sequence-to-sequence models, for corpora of any size.

Source: UNA (Shu & Lampos 2024, appendix C.1): PEGASUS paraphrases (Zhang et al. 2020), en → fr →
en with the OPUS-MT models (Tiedemann & Thottingal 2020); ConSERT's extension uses the same round
trip.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from transformers import AutoModelForSeq2SeqLM

from lib.encoder.pretrained import explained, read_tokenizer


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
            `lib.encoder.pretrained.explained`.

    Example:
        >>> Generator([Step("no/such/folder")], torch.device("cpu"))
        Traceback (most recent call last):
        FileNotFoundError: cannot load the model 'no/such/folder': it is no folder...
    """

    def __init__(self, steps: Sequence[Step], device: torch.device, batch_tokens: int = 4096):
        self.steps, self.device, self.batch_tokens = list(steps), device, batch_tokens
        self.loaded = [_load(step.model, device) for step in self.steps]

    def __call__(self, sentences: Sequence[str]) -> list[str]:
        """One output a sentence, in order; where a model writes nothing, the sentence itself."""
        texts, written = list(sentences), [True] * len(sentences)
        for step, (model, tokenizer) in zip(self.steps, self.loaded, strict=True):
            texts = self._apply(step, model, tokenizer, texts)
            written = [before and bool(text) for before, text in zip(written, texts, strict=True)]
        return [text if ok else s for text, ok, s in zip(texts, written, sentences, strict=True)]

    @torch.inference_mode()
    def _apply(self, step: Step, model, tokenizer, sentences: list[str]) -> list[str]:
        inputs = [step.prefix + s for s in sentences]
        lengths = np.array(
            [
                len(ids)
                for ids in tokenizer(inputs, truncation=True, max_length=step.max_length)[
                    "input_ids"
                ]
            ]
        )
        result = [""] * len(sentences)
        for rows in _batches(lengths, self.batch_tokens):
            batch = tokenizer(
                [inputs[i] for i in rows],
                truncation=True,
                max_length=step.max_length,
                padding=True,
                return_tensors="pt",
                return_token_type_ids=False,
            ).to(self.device)
            written = model.generate(
                **batch,
                num_beams=step.beams,
                max_length=step.max_length,
                do_sample=False,
                early_stopping=True,
            )
            for i, text in zip(
                rows, tokenizer.batch_decode(written, skip_special_tokens=True), strict=True
            ):
                result[i] = " ".join(text.split())
        return result


def _batches(lengths: np.ndarray, batch_tokens: int) -> Iterator[list[int]]:
    """Row numbers by length, longest first: a batch that does not fit into memory fails at once."""
    batch: list[int] = []
    for i in np.argsort(-lengths, kind="stable").tolist():
        if batch and (len(batch) + 1) * lengths[batch[0]] > batch_tokens:
            yield batch
            batch = []
        batch.append(i)
    if batch:
        yield batch


def _load(name: str, device: torch.device):
    dtype = torch.float16 if device.type == "cuda" else torch.float32
    try:
        tokenizer = read_tokenizer(name)
        with explained(name):
            model, report = AutoModelForSeq2SeqLM.from_pretrained(
                name, dtype=dtype, trust_remote_code=False, output_loading_info=True
            )
    except ImportError as error:
        raise ImportError(f"{name} needs more packages: pip install -e '.[generate]'") from error
    if lost := _lost(report):
        raise ValueError(f"{name!r} lacks weights, {lost[0]} among {len(lost)}: bring it again")
    return model.to(device).eval(), tokenizer


def _lost(report: dict) -> list[str]:
    """Names of weights that the file lacks or has in another shape, without those that are
    computed."""
    names = {str(name) for name in report.get("missing_keys", ())}
    names |= {str(entry[0]) for entry in report.get("mismatched_keys", ())}
    computed = ("embed_positions.weight", "final_logits_bias")
    return sorted(name for name in names if not name.endswith(computed))
