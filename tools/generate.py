"""Paraphrases and back-translations of a text file, from sequence-to-sequence models.

Command line: `python -m tools.generate paraphrase|paraphrase_t5|back_translation IN.txt OUT.txt`;
`pip install -e '.[generate]'` brings what the models' tokenizers need. Line i of OUT belongs to
line i of IN; OUT appears when it is complete, and after an interruption the same command goes on.

Source: UNA (Shu & Lampos 2024, appendix C.1): PEGASUS paraphrases (Zhang et al. 2020), en → fr →
en with the OPUS-MT models (Tiedemann & Thottingal 2020); ConSERT's extension uses the same round
trip.
"""

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tqdm import tqdm

from lib.commands import reporting
from lib.data import read_aligned
from lib.data.files import digest

CHUNK = 200


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
    "paraphrase_t5": (Step("Vamsi/T5_Paraphrase_Paws", prefix="paraphrase: ", max_length=128),),
    "back_translation": (
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
    """

    def __init__(self, steps: Sequence[Step], device: object, batch_tokens: int = 4096):
        self.steps, self.device, self.batch_tokens = list(steps), str(device), batch_tokens
        self.loaded = [_load(step.model, self.device) for step in self.steps]

    def __call__(self, sentences: Sequence[str]) -> list[str]:
        """One output a sentence, in order; where a model writes nothing, the sentence itself."""
        texts = list(sentences)
        for step, (model, tokenizer) in zip(self.steps, self.loaded, strict=True):
            written = self._apply(step, model, tokenizer, texts)
            texts = [text and new for text, new in zip(texts, written, strict=True)]
        return [text or sentence for text, sentence in zip(texts, sentences, strict=True)]

    def _apply(self, step: Step, model, tokenizer, sentences: list[str]) -> list[str]:
        """What one model writes, in batches of like length, the longest first: one that does not
        fit into memory fails at once."""
        inputs = [step.prefix + sentence for sentence in sentences]
        cut = {"truncation": True, "max_length": step.max_length, "return_token_type_ids": False}
        lengths = [len(ids) for ids in tokenizer(inputs, **cut)["input_ids"]]
        waiting = sorted(range(len(inputs)), key=lambda i: -lengths[i])
        search = {"num_beams": step.beams, "max_length": step.max_length, "do_sample": False}
        result = [""] * len(sentences)
        while waiting:
            size = max(1, self.batch_tokens // max(1, lengths[waiting[0]]))
            rows, waiting = waiting[:size], waiting[size:]
            texts = [inputs[i] for i in rows]
            batch = tokenizer(texts, padding=True, return_tensors="pt", **cut).to(self.device)
            written = model.generate(**batch, early_stopping=True, **search)
            decoded = tokenizer.batch_decode(written, skip_special_tokens=True)
            for i, text in zip(rows, decoded, strict=True):
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


def write_in_chunks(
    lines: Sequence[str], out: Path, change: Callable[[list[str]], list[str]], key: str
) -> None:
    """Write the changed lines to `out`, blank ones blank; what is done so far stands in
    `<out>.<key>.partial`, where a call with the same key goes on."""
    partial = out.with_name(f"{out.name}.{key}.partial")
    partial.touch()
    whole = partial.read_bytes().split(b"\n")[:-1]
    done = len(whole) // CHUNK * CHUNK
    with open(partial, "r+b") as file:
        file.truncate(sum(len(line) + 1 for line in whole[:done]))
        file.seek(0, os.SEEK_END)
        for start in tqdm(range(done, len(lines), CHUNK), unit="chunk"):
            part = list(lines[start : start + CHUNK])
            pairs = zip(part, change(part), strict=True)
            file.write("".join((new if old else "") + "\n" for old, new in pairs).encode())
            file.flush()
    os.replace(partial, out)


@reporting
def main(arguments: Sequence[str] | None = None) -> int:
    """Write OUT, line by line."""
    from lib.encoder.device import resolve_device

    parser = argparse.ArgumentParser(prog="python -m tools.generate", description=__doc__)
    parser.add_argument("method", choices=CHAINS)
    parser.add_argument("source", type=Path, metavar="IN.txt")
    parser.add_argument("target", type=Path, metavar="OUT.txt")
    parser.add_argument("--model", action="append", help="in place of the usual one, once a step")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--batch-tokens", type=int, default=4096)
    options = parser.parse_args(arguments)
    if options.target.exists():
        raise FileExistsError(f"{options.target} is there: name another output")
    lines, steps = read_aligned(options.source), CHAINS[options.method]
    models = options.model or [step.model for step in steps]
    if len(models) != len(steps):
        raise ValueError(f"{options.method} has {len(steps)} step(s): name --model as often")
    steps = tuple(replace(step, model=model) for step, model in zip(steps, models, strict=True))
    generator = Generator(steps, resolve_device(options.device), options.batch_tokens)
    key = digest(json.dumps([step.__dict__ for step in steps]), lines)
    write_in_chunks(lines, options.target, generator, key)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
