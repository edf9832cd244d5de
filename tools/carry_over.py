"""Carry the rows of results version 1 over: prove each id by version 1's rule, then write it by
today's.

Command line: `python tools/carry_over.py` (CSE_DATA=folder of the sets). Version 1 recorded the
precision as the word `auto`, hashed of an encoder its `*.safetensors` alone, and knew neither
batches without length buckets nor the hashes of the dev and test sets. A row keeps its numbers
and gets

* `precision` and `scoring`: what `auto` was on its machine, bf16 on a processor with AMX tiles,
  else fp32.
  The untrained rows bear it out: of mini-BERT, STS-B dev is 66.3627 in the row, and on another
  processor 66.3665 in bf16, 66.3715 in fp32; of MiniLM 86.7265, 86.7269 and 86.7170;
* `bucket`: True, as all batches were;
* `results_version`: 1, and `rules`: the version of SDA's rules if it used them;
* `run_id`: that of these parameters by today's rule, without the hashes that version 1 did not take
  (`tools.verify`).

A row whose id does not come out by version 1's rule stops the script before anything is written.
"""

import hashlib
import json
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from lib import data, files, identity, paths, runs
from lib.augment.sda import parse
from lib.files import write_text
from lib.profiles import profile
from lib.recipes import FIELDS

RULES = 2
PRECISION = {"Intel(R) Xeon(R) Processor": "bf16", "Intel(R) Xeon(R) Processor @ 2.50GHz": "fp32"}
OF_A_METHOD = ("profile", "corpus", "n_sentences", "test")
TYPES: dict[str, Any] = {name: place.declared.type for name, place in FIELDS.items()}


def first_parameters(row: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of a row as version 1 hashed them."""
    kinds = {name: kind for name, kind in TYPES.items() if name not in ("name", "source")}
    kinds |= dict.fromkeys(("profile", "corpus", "dev", "test", "precision"), str)
    kinds |= dict.fromkeys(("max_steps", "n_sentences"), int)
    if is_method(row):
        kinds = {name: kinds[name] for name in OF_A_METHOD}
    return {
        name: kind(row[name])
        for name, kind in kinds.items()
        if name in row and not pd.isna(row[name])
    }


def is_method(row: Mapping[str, Any]) -> bool:
    """Whether a row is of a method without training."""
    return bool(pd.isna(row["precision"]))


def first_hashes(row: Mapping[str, Any], params: Mapping[str, Any]) -> dict[str, str]:
    """The hashes of a row's data as version 1 took them."""
    trained = params.get("max_steps") != 0
    hashes = {"corpus": text_hash(params["corpus"], params["n_sentences"] if trained else 0)}
    name = encoder_of(row, params)
    hashes["model"] = first_model_hash(identity.model_path(name)) if name else ""
    for field in ("positive_file", "synonyms"):
        path = Path(identity.model_path(str(params.get(field, ""))))
        if path.is_file():
            hashes[field] = files.sha256(path)
    if "parser" in params:
        hashes |= {"parser": parser_digest(params["parser"]), "rules": str(RULES)}
    return hashes


def encoder_of(row: Mapping[str, Any], params: Mapping[str, Any]) -> str:
    """The encoder of a row; "" for a method that has none."""
    if not is_method(row):
        return str(params["backbone"])
    uses = str(row["recipe"]).endswith(("word_vectors", "sif"))
    return str(profile(params["profile"]).model) if uses else ""


@cache
def sentences_of(corpus: str) -> tuple[str, ...]:
    return tuple(data.corpus(corpus))


@cache
def text_hash(corpus: str, n: int) -> str:
    if not n:
        return identity.text_hash([])
    sentences = sentences_of(corpus)
    return identity.text_hash(
        sentences[i] for i in data.sample(len(sentences), n if n < len(sentences) else None)
    )


@cache
def parser_digest(name: str) -> str:
    return parse.pipeline_digest(parse.load(identity.model_path(name)))


@cache
def first_model_hash(folder: str) -> str:
    """sha256 of a model folder's `*.safetensors`."""
    digest = hashlib.sha256()
    for path in sorted(Path(folder).glob("*.safetensors")):
        digest.update(files.sha256(path).encode())
    return digest.hexdigest()


@cache
def graded_hashes(profile_name: str) -> dict[str, str]:
    return identity.graded_hashes(profile(profile_name), None)


@cache
def model_hash(folder: str) -> str:
    return identity.model_hash(folder)


@cache
def transfer_hash() -> str:
    return identity.transfer_hash()


def digits(version: int, recipe: str, seed: int, params: Mapping, hashes: Mapping) -> str:
    """`runs.run_id` under a results version."""
    content = [version, {"params": dict(params), "data": dict(hashes)}]
    text = json.dumps(content, sort_keys=True, default=str)
    return f"{recipe}-{hashlib.sha256(text.encode()).hexdigest()[:8]}-s{seed}"


def carried_over(row: Mapping[str, Any]) -> dict[str, Any]:
    """What changes in a row, its new id among it.

    Raises:
        ValueError: version 1's rule gives another id than the row has.
    """
    params, seed = first_parameters(row), int(row["seed"])
    hashes = first_hashes(row, params)
    if (first := digits(1, row["recipe"], seed, params, hashes)) != row["run_id"]:
        raise ValueError(
            f"{row['run_id']} is {first} by version 1's rule: the data or the encoder is"
            " another one"
        )
    new: dict[str, Any] = {"results_version": 1}
    if is_method(row):
        new["dev"] = profile(params["profile"]).dev
    else:
        precision = PRECISION[row["machine"]]
        new |= {"precision": precision, "scoring": precision, "bucket": True}
    if name := encoder_of(row, params):
        hashes["model"] = model_hash(identity.model_path(name))
    hashes |= graded_hashes(params["profile"])
    if "transfer_pooling" in params:
        hashes["transfer"] = transfer_hash()
    if params.get("max_steps") == 0:
        hashes = {
            k: v for k, v in hashes.items() if k in ("corpus", "model", "dev", "test", "transfer")
        }
    if "rules" in hashes:
        new["rules"] = RULES
    described = params | {
        name: value for name, value in new.items() if name not in ("results_version", "rules")
    }
    new["run_id"] = digits(runs.RESULTS_VERSION, row["recipe"], seed, described, hashes)
    return new


def main() -> None:
    """Carry every file of `results/` over."""
    tables = {path: pd.read_csv(path) for path in sorted(paths.RESULTS.glob("*.csv"))}
    tables = {path: table for path, table in tables.items() if "results_version" not in table}
    new_tables = {}
    for path, table in tables.items():
        changes = [carried_over(row) for row in table.to_dict("records")]
        fresh = pd.DataFrame(changes, index=table.index)
        for name in fresh:
            old = (
                table[name].astype(object)
                if name in table
                else pd.Series(index=table.index, dtype=object)
            )
            table[name] = fresh[name].astype(object).where(fresh[name].notna(), old)
            if name in ("results_version", "rules"):
                table[name] = table[name].astype("Int64")
        order = ["recipe", "profile", "max_steps", "seed", "run_id"]
        new_tables[path] = table.sort_values(order, kind="stable")
    for path, table in new_tables.items():
        write_text(path, table.to_csv(index=False, float_format="%.8g"))
        print(f"{path.name}: {len(table)} ids proved and written anew")


if __name__ == "__main__":
    main()
