"""SimCSE in one file: sentence embeddings that are learnt from plain text, without any labels.

The idea (Gao, Yao and Chen, 2021): encode every sentence twice. Dropout switches off other units
each time, so the two vectors z and z' of a sentence differ a little. Train the encoder to find, for
each z, its own z' among those of all the sentences in the batch:

    loss_i = -log  exp(cos(z_i, z'_i) / temperature)  /  sum_j exp(cos(z_i, z'_j) / temperature)

That pulls the two vectors of one sentence together and pushes different sentences apart.

    python simcse.py            # the shipped text and encoder: no network, two CPU cores, a minute

    python simcse.py --model bert-base-uncased --data wiki1m_for_simcse.txt --dev sts-dev.csv \
        --batch-size 64 --steps 0 --lr 3e-5 --dropout 0.1 --max-length 32 --pooling cls \
        --eval-every 125 --bf16      # the published setting, on a GPU

Read it from top to bottom: text, encoder, loss, score, training, command line.
"""

import argparse
import random
import sys
import time
from collections.abc import Callable, Iterator
from copy import deepcopy
from itertools import count, islice
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import AutoModel, AutoTokenizer, logging

HERE = Path(__file__).resolve().parent
STSB = {"sentence1": 5, "sentence2": 6, "score": 4}  # the columns of the STS Benchmark's files
Pair = tuple[str, str, float]


def read_lines(path: Path) -> list[str]:
    """The lines of a text file that are not blank."""
    if not path.is_file():
        raise ValueError(f"{path} is missing: give the path of a text file")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not a text file in UTF-8: save it as one") from None
    return [line for line in text.split("\n") if line.strip()]


def read_pairs(path: Path) -> list[Pair]:
    """Pairs of sentences with the similarity that people gave them; a header may name columns."""
    rows = [line.split("\t") for line in read_lines(path)]
    first, second, score = STSB.values()
    if rows and set(STSB) <= set(rows[0]):
        first, second, score = map(rows.pop(0).index, STSB)
    try:
        pairs = [(row[first], row[second], float(row[score])) for row in rows]
    except (IndexError, ValueError):
        raise ValueError(f"{path}: a line is not two sentences and a score") from None
    if len(pairs) < 2:
        raise ValueError(f"{path} has {len(pairs)} graded pairs, and a ranking needs at least two")
    return pairs


def shuffled(n: int, seed: int, epoch: int) -> list[int]:
    """The numbers 0 … n-1 in the random order of one epoch."""
    return random.Random(f"{seed}, {epoch}").sample(range(n), n)


def batches(sentences: list[str], size: int, seed: int) -> Iterator[list[str]]:
    """Batches of sentences without end, in a new order every epoch.

    What does not fill a batch at the end of an epoch is left out: the loss depends on how many
    sentences it has to choose from.
    """
    for epoch in count():
        order = shuffled(len(sentences), seed, epoch)
        for start in range(0, len(order) - size + 1, size):
            yield [sentences[row] for row in order[start : start + size]]


class Encoder(nn.Module):
    """A pre-trained transformer: a list of n sentences in, a matrix (n, d) out.

    In training the vector of a sentence is its [CLS] token after one more layer, the head. After
    training the head is thrown away, and the vector is the mean of all tokens or [CLS] itself.
    """

    def __init__(self, options: argparse.Namespace):
        super().__init__()
        self.options = options
        rates = ("hidden_dropout_prob", "attention_probs_dropout_prob")
        dropout = dict.fromkeys(rates, options.dropout)
        try:
            self.tokenizer = AutoTokenizer.from_pretrained(options.model)
            self.backbone = AutoModel.from_pretrained(
                options.model, dtype=torch.float32, add_pooling_layer=False, **dropout
            )
        except (OSError, TypeError):
            wanted = "the folder or the Hugging Face id of an encoder such as BERT or RoBERTa"
            raise ValueError(f"{options.model} cannot be loaded: give {wanted}") from None
        width = self.backbone.config.hidden_size
        torch.manual_seed(options.seed)
        linear = nn.Linear(width, width)
        nn.init.normal_(linear.weight, std=0.02)  # as BERT's own layers begin
        nn.init.zeros_(linear.bias)
        self.head = nn.Sequential(linear, nn.Tanh())
        self.to(options.device)

    def forward(self, sentences: list[str]) -> Tensor:
        """Vectors (n, d) of any length: the loss and the score compare only their directions."""
        longest = self.options.max_length if self.training else None  # None: all the model can read
        tokens = self.tokenizer(
            sentences, truncation=True, max_length=longest, padding=True, return_tensors="pt"
        ).to(self.options.device)
        ids, mask = tokens["input_ids"], tokens["attention_mask"]  # (n, t); mask is 0 on padding
        with torch.autocast(ids.device.type, torch.bfloat16, enabled=self.options.bf16):
            states = self.backbone(input_ids=ids, attention_mask=mask)[0]  # (n, t, d), last layer
            if self.training:
                return self.head(states[:, 0]).float()
        if self.options.pooling == "cls":
            return states[:, 0].float()
        return (states * mask[:, :, None]).float().sum(1) / mask.sum(1, keepdim=True)


def info_nce(z1: Tensor, z2: Tensor, temperature: float) -> Tensor:
    """InfoNCE of two views (n, d): which row of z2 belongs to each row of z1?

    It is the cross-entropy of a classifier with n classes, so guessing costs ln n. Further rows of
    z2 are further classes, which are never right.
    """
    cosines = F.normalize(z1, dim=1) @ F.normalize(z2, dim=1).T  # (n, n), own pairs on the diagonal
    return F.cross_entropy(cosines / temperature, torch.arange(len(z1), device=z1.device))


def simcse_loss(encoder: Encoder, sentences: list[str]) -> Tensor:
    """SimCSE: every sentence twice in one batch, where each row has a dropout mask of its own."""
    z1, z2 = encoder(sentences + sentences).chunk(2)
    return info_nce(z1, z2, encoder.options.temperature)


Loss = Callable[[Encoder, list[str]], Tensor]  # ConSERT, UNA and SDA are other functions like it


def ranks(values: Tensor) -> Tensor:
    """The rank of each value, from 1; equal values share the mean of their ranks."""
    _, group, size = torch.unique(values, return_inverse=True, return_counts=True)
    highest = size.cumsum(0)  # rank in each group of equal values
    return (highest - (size - 1) / 2)[group]


def spearman(x: Tensor, y: Tensor) -> float:
    """Spearman's rank correlation × 100: how far do x and y put the pairs in the same order?"""
    return 100 * torch.corrcoef(torch.stack([ranks(x), ranks(y)]).double())[0, 1].item()


@torch.no_grad()
def embed(encoder: Encoder, sentences: list[str], size: int = 128) -> Tensor:
    """Vectors (n, d) without dropout; sentences of similar length share a batch."""
    encoder.eval()
    order = sorted(range(len(sentences)), key=lambda row: len(sentences[row]))
    chunks = (order[start : start + size] for start in range(0, len(order), size))
    vectors = torch.cat([encoder([sentences[row] for row in chunk]) for chunk in chunks]).cpu()
    return vectors[torch.tensor(order).argsort()]


def evaluate(encoder: Encoder, pairs: list[Pair]) -> float:
    """Spearman × 100 between the cosines of the pairs and the similarities that people gave."""
    first, second, scores = zip(*pairs, strict=True)
    cosines = F.cosine_similarity(embed(encoder, list(first)), embed(encoder, list(second)))
    return spearman(cosines, torch.tensor(scores))


def train(
    encoder: Encoder, sentences: list[str], pairs: list[Pair], loss_of: Loss = simcse_loss
) -> list[float]:
    """The loss of every step; on return the encoder has the weights that scored best on `pairs`."""
    o = encoder.options
    total = o.steps or len(sentences) // o.batch_size
    optimizer = torch.optim.AdamW(encoder.parameters(), weight_decay=0.0, fused=True)
    best, weights = evaluate(encoder, pairs), deepcopy(encoder.state_dict())
    losses, start = [], time.perf_counter()
    print(f"step {0:5}/{total}   dev Spearman {best:5.2f}", flush=True)
    torch.manual_seed(o.seed)  # of the dropout masks
    for step, batch in enumerate(islice(batches(sentences, o.batch_size, o.seed), total), 1):
        encoder.train()
        optimizer.param_groups[0]["lr"] = o.lr * (total - step + 1) / total  # falls to 0
        loss = loss_of(encoder, batch)
        loss.backward()
        nn.utils.clip_grad_norm_(encoder.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.detach())
        if step % o.eval_every == 0 or step == total:
            if not loss.isfinite():
                raise ValueError(f"loss {loss} at step {step}: lower --lr or raise --temperature")
            seconds, score = time.perf_counter() - start, evaluate(encoder, pairs)
            print(f"step {step:5}/{total}   dev Spearman {score:5.2f}   loss {loss:.3f}", end="")
            print(f"   {seconds:.0f} s", flush=True)
            if score > best:
                best, weights = score, deepcopy(encoder.state_dict())
    encoder.load_state_dict(weights)
    return [loss.item() for loss in losses]


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """The settings; the defaults train the shipped encoder on the shipped sentences."""
    show = argparse.ArgumentDefaultsHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0], formatter_class=show)
    add = parser.add_argument
    add("--model", default=str(HERE / "data/mini-bert"), help="folder or Hugging Face id")
    add("--data", type=Path, default=HERE / "data/mini/corpus.txt", help="one sentence a line")
    add("--dev", type=Path, default=HERE / "data/mini/sts_dev.tsv", help="graded pairs")
    add("--out", type=Path, default=HERE / "outputs/simcse", help="folder for the trained encoder")
    add("--batch-size", type=int, default=128, help="sentences in a batch")
    add("--steps", type=int, default=60, help="batches to train on; 0: once through the text")
    add("--lr", type=float, default=5e-4, help="learning rate of the first step")
    add("--temperature", type=float, default=0.05, help="how sharply the loss tells cosines apart")
    add("--dropout", type=float, default=0.2, help="the share of units that are switched off")
    add("--max-length", type=int, default=64, help="tokens of a sentence that training reads")
    add("--pooling", choices=["mean", "cls"], default="mean", help="the vector after training")
    add("--eval-every", type=int, default=20, help="steps between two scores")
    add("--seed", type=int, default=42, help="of order, head and dropout")
    add("--device", default="cuda" if torch.cuda.is_available() else "cpu", help="cpu or cuda")
    add("--bf16", action="store_true", help="compute in bfloat16, which is faster on a GPU")
    return parser.parse_args(arguments)


def run(options: argparse.Namespace, loss_of: Loss = simcse_loss) -> list[float]:
    """The losses of a training; the trained encoder is saved in the folder `--out`."""
    logging.disable_progress_bar()  # of transformers, which would show one for loading the weights
    sentences, pairs = read_lines(options.data), read_pairs(options.dev)
    if options.steps < 0 or options.eval_every < 1:
        raise ValueError("--steps must be at least 0, and --eval-every at least 1")
    if not 2 <= options.batch_size <= len(sentences):
        has = f"{options.data} has {len(sentences)} sentences, --batch-size is {options.batch_size}"
        raise ValueError(f"{has}: a batch needs at least two, and the text at least one batch")
    encoder = Encoder(options)
    losses = train(encoder, sentences, pairs, loss_of)
    encoder.backbone.save_pretrained(options.out)
    encoder.tokenizer.save_pretrained(options.out)
    print(f"The encoder with the best score is saved in {options.out}")
    return losses


if __name__ == "__main__":
    try:
        run(parse())
    except ValueError as error:
        sys.exit(f"simcse.py: {error}")
