"""Write the mini data set: corpus.txt, paraphrase.txt, sts_dev.tsv, sts_test.tsv, triplets.tsv,
thesaurus.tsv.

    python -m tools.mini_data [--out DIR]

One seed, no dependence on hash order: every run gives the same bytes. `data/mini/README.md`
explains the files and the grading rule.
"""

from __future__ import annotations

import argparse
import random
import re
from collections import Counter
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from lib import paths
from lib.data import files, readers
from tools.mini_data import lexicon as lx
from tools.mini_data import triplets
from tools.mini_data.lexicon import Noun, Text, Value, Verb
from tools.mini_data.patterns import FAMILIES, PATTERNS, Pattern, realise
from tools.mini_data.scenes import Scene, sample

SEED = 2026
GENERATED_LINES = 23_600
PAIRS_PER_SPLIT = 1_800
SYNONYM_RATE = 0.5
MINIMAL_PAIR_RATE = 0.35
SAME_FAMILY_RATE = 0.7
SPLITS = ("dev", "test")
KINDS = (
    "paraphrase",
    "detail changed",
    "attribute changed",
    "role swapped",
    "negated",
    "same topic",
    "unrelated",
)
SHARES = dict(zip(KINDS, (0.28, 0.21, 0.08, 0.03, 0.04, 0.18, 0.18), strict=True))

# The grading rule (README.md, "How pairs are graded"): points taken from 5 for each thing that
# differs.
COST_SYNONYM = 0.2
COST_DROPPED, COST_ADJUNCT, COST_PARTICIPANT = 0.8, 1.4, 2.2
COST_NUMBER, COST_ADJECTIVE = 1.4, 1.6
LOWEST_SAME_EVENT = 2.4
ROLE_SWAPPED, NEGATED = 2.6, 2.0
SAME_TOPIC, SHARED_FILLER, HIGHEST_SAME_TOPIC = 1.0, 0.4, 1.8
UNRELATED = 0.0


@dataclass(frozen=True)
class Pair:
    """A graded pair and the scenes its two sentences describe."""

    score: float
    kind: str
    sentence1: str
    sentence2: str
    scenes: tuple[Scene, Scene]


def paraphrase(
    rng: random.Random, scene: Scene, used: Pattern, sentence: str
) -> tuple[str, bool] | None:
    """The scene in another pattern, and whether synonyms were used; None if the scene fits no other
    pattern."""
    patterns = [p for p in scene.family.fitting(scene.values) if p is not used]
    if not patterns:
        return None
    pattern = rng.choice(patterns)
    text = realise(pattern.template, scene.values, rng, SYNONYM_RATE)
    return (text, text != realise(pattern.template, scene.values)) if text != sentence else None


def first_sentence(rng: random.Random, scene: Scene) -> tuple[Pattern, str] | None:
    patterns = scene.family.fitting(scene.values)
    if not patterns:
        return None
    pattern = rng.choice(patterns)
    return pattern, realise(pattern.template, scene.values)


def stutters(sentence: str) -> bool:
    """Whether a word stands twice in a row ("rejoiced at at the training ground")."""
    return bool(re.search(r"\b(\w+) \1\b", sentence))


def handwritten() -> list[tuple[str, str]]:
    """(sentence, paraphrase) of the lines of `handwritten.txt` that have a paraphrase."""
    rows = readers.handwritten_file(paths.MINI / "handwritten.txt")
    return [(sentence, other) for sentence, other in rows if other]


# ------------------------------------------------------------------ graded pairs
def alternatives(scene: Scene, slot: str) -> list[Value]:
    present = {v.text() if not hasattr(v, "lemma") else v.lemma for v in scene.values.values()}
    nouns = {v.noun for v in scene.values.values() if isinstance(v, Noun)}
    return [
        o
        for o in scene.options.get(slot, [])
        if not isinstance(o, Verb)
        and o.text() not in present
        and getattr(o, "noun", "") not in nouns
    ]


def change_detail(rng: random.Random, scene: Scene) -> tuple[Scene, float] | None:
    """One or two details dropped, added or replaced, and their cost."""
    cost = 0.0
    for _ in range(rng.choice([1, 1, 2])):
        adjuncts: list[str] = [
            s for s in ("T", "P", "M") if s in scene.values and s in scene.options
        ]
        participants = [
            s
            for s in ("A", "O", "B", "X", "Y", "Q")
            if s in scene.values and alternatives(scene, s)
        ]
        moves = [(move, s) for move in ("drop", "replace") for s in adjuncts]
        moves += [("participant", s) for s in participants]
        if not moves:
            break
        move, slot = rng.choice(moves)
        if move == "drop":
            scene = replace(scene, values={k: v for k, v in scene.values.items() if k != slot})
            cost += COST_DROPPED
        elif choices := alternatives(scene, slot):
            scene = scene.changed(**{slot: replacement(rng, scene.values[slot], choices)})
            cost += COST_ADJUNCT if move == "replace" else COST_PARTICIPANT
        scene = replace(scene, options={k: v for k, v in scene.options.items() if k != slot})
    return (scene, cost) if cost else None


def replacement(rng: random.Random, old: Value, choices: list[Value]) -> Value:
    """A choice dressed as what it replaces: same article, adjective and number where it is a noun
    of the same kind."""
    new = rng.choice(choices)
    if isinstance(old, Noun) and isinstance(new, Noun) and "name" not in (old.kind, new.kind):
        if old.number:
            return (
                Noun(new.noun, "pl", "", number=old.number)
                if new.kind == "sg"
                else Noun(new.noun, new.kind, "the")
            )
        det = old.det if new.kind == old.kind else "the"
        return Noun(new.noun, new.kind, det, old.adj, gender=new.gender)
    return new


def change_attribute(rng: random.Random, scene: Scene) -> tuple[Scene, float] | None:
    """A number, a duration, a score or an adjective replaced by another, and its cost."""
    moves = [s for s in ("N", "D", "S") if s in scene.values] + [
        s for s in ("A", "O") if has_attribute(scene, s)
    ]
    moves += ["J"] if "J" in scene.values and scene.options.get("J") else []
    if not moves:
        return None
    slot = rng.choice(moves)
    old = scene.values[slot]
    if slot in "NDSJ":
        new = rng.choice(alternatives(scene, slot))
        return scene.changed(**{slot: new}), COST_ADJECTIVE if slot == "J" else COST_NUMBER
    assert isinstance(old, Noun)
    if old.number:
        number = rng.choice([n for n in lx.NUMBERS[:9] if n != old.number])
        return scene.changed(
            **{slot: Noun(old.noun, old.kind, "", gender=old.gender, number=number)}
        ), COST_NUMBER
    adjective = rng.choice([a for a in scene.adjectives if a != old.adj])
    return scene.changed(**{slot: lx.with_adjective(old, adjective)}), COST_ADJECTIVE


def has_attribute(scene: Scene, slot: str) -> bool:
    value = scene.values.get(slot)
    return isinstance(value, Noun) and bool(
        value.number or (value.adj and len(scene.adjectives) > 1)
    )


def swap_roles(scene: Scene) -> Scene | None:
    """The two participants (or the two events of a sequence) exchanged."""
    a, b = tuple(scene.family.swap)
    if a == "V":
        if "O" not in scene.values or "M" in scene.values:
            return None
        v, w, o, q = (scene.values[k] for k in "VWOQ")
        return scene.changed(V=w, W=v, O=q, Q=o)
    first, second = scene.values[a], scene.values[b]
    return scene.changed(**{a: second, b: first})


def same_event_pair(rng: random.Random, scene: Scene, kind: str) -> Pair | None:
    """A pair of one of the first five kinds."""
    start = first_sentence(rng, scene)
    if start is None:
        return None
    pattern, sentence = start
    if kind == "paraphrase":
        found = paraphrase(rng, scene, pattern, sentence)
        return (
            Pair(5 - COST_SYNONYM * found[1], kind, sentence, found[0], (scene, scene))
            if found
            else None
        )
    if kind == "negated":
        if not pattern.negative:
            return None
        return Pair(
            NEGATED, kind, sentence, realise(pattern.negative, scene.values), (scene, scene)
        )
    if kind == "role swapped":
        other = swap_roles(scene) if scene.family.swap else None
        if other is None:
            return None
        return Pair(
            ROLE_SWAPPED, kind, sentence, realise(pattern.template, other.values), (scene, other)
        )
    changed = (change_detail if kind == "detail changed" else change_attribute)(rng, scene)
    if changed is None:
        return None
    other, cost = changed
    patterns = other.family.fitting(other.values)
    if not patterns:
        return None
    score = max(5 - cost, LOWEST_SAME_EVENT)
    if pattern in patterns and rng.random() < MINIMAL_PAIR_RATE:
        return Pair(score, kind, sentence, realise(pattern.template, other.values), (scene, other))
    patterns = [p for p in patterns if p is not pattern] or patterns
    text = realise(rng.choice(patterns).template, other.values, rng, SYNONYM_RATE)
    return Pair(score, kind, sentence, text, (scene, other))


def two_scene_pair(rng: random.Random, scene: Scene, split: str, kind: str) -> Pair | None:
    """Two different scenes, of one topic or of different topics."""
    for _ in range(80):
        other = sample(rng, split, scene.family.name if rng.random() < SAME_FAMILY_RATE else None)
        if kind == "unrelated" and other.topic != scene.topic and not shared(scene, other):
            break
        if kind == "same topic" and other.topic == scene.topic and other.frame != scene.frame:
            break
    else:
        return None
    one, two = first_sentence(rng, scene), first_sentence(rng, other)
    if one is None or two is None:
        return None
    if kind == "unrelated":
        return Pair(UNRELATED, kind, one[1], two[1], (scene, other))
    score = min(SAME_TOPIC + SHARED_FILLER * len(shared(scene, other)), HIGHEST_SAME_TOPIC)
    return Pair(score, kind, one[1], two[1], (scene, other))


def shared(a: Scene, b: Scene) -> set[str]:
    """Participants and places that two scenes have in common."""

    def fillers(scene: Scene) -> set[str]:
        chosen = [v for k, v in scene.values.items() if k in "ABOQP"]
        return {
            v.noun if isinstance(v, Noun) else v.text()
            for v in chosen
            if isinstance(v, Noun | Text)
        }

    return fillers(a) & fillers(b)


@cache
def pairs(split: str) -> tuple[Pair, ...]:
    """The graded pairs of a split: the same list at every call."""
    rng = random.Random(f"{SEED} {split}")
    result: list[Pair] = []
    seen: set[str] = set()
    for kind, share in SHARES.items():
        # The kinds are drawn one after the other, so a change of one share leaves the kinds before
        # it as they are.
        wanted = len(result) + round(PAIRS_PER_SPLIT * share)
        while len(result) < wanted:
            scene = sample(rng, split)
            two = kind in ("same topic", "unrelated")
            pair = (
                two_scene_pair(rng, scene, split, kind)
                if two
                else same_event_pair(rng, scene, kind)
            )
            if (
                pair
                and pair.sentence1 != pair.sentence2
                and not {pair.sentence1, pair.sentence2} & seen
            ):
                if stutters(pair.sentence1) or stutters(pair.sentence2):
                    continue
                seen |= {pair.sentence1, pair.sentence2}
                result.append(pair)
    rng.shuffle(result)
    return tuple(result)


def pair_scenes(split: str) -> set[str]:
    """Keys of all scenes in a graded file."""
    return {scene.key for pair in pairs(split) for scene in pair.scenes}


def pair_frames(split: str) -> set[str]:
    """Frames (topic and verb, or row of a table) of all scenes in a graded file."""
    return {scene.frame for pair in pairs(split) for scene in pair.scenes}


# ------------------------------------------------------------------ corpus and thesaurus
@cache
def corpus() -> tuple[tuple[str, str, str], ...]:
    """(sentence, paraphrase, pattern name) of every line; none of them stands in a graded file."""
    rng = random.Random(f"{SEED} corpus")
    rows = [(sentence, other, "handwritten") for sentence, other in handwritten()]
    seen = {s for split in SPLITS for p in pairs(split) for s in (p.sentence1, p.sentence2)} | {
        row[0] for row in rows
    }
    while len(rows) < GENERATED_LINES + len(handwritten()):
        scene = sample(rng)
        start = first_sentence(rng, scene)
        if start is None or start[1] in seen or not 4 <= len(start[1].split()) <= 25:
            continue
        found = paraphrase(rng, scene, start[0], start[1])
        if found and not stutters(start[1]) and not stutters(found[0]):
            seen.add(start[1])
            rows.append((start[1], found[0], start[0].name))
    rng.shuffle(rows)
    return tuple(rows)


def thesaurus() -> list[str]:
    """Lines of thesaurus.tsv: word, part of speech, synonyms."""
    entries: dict[tuple[str, str], list[str]] = {}

    def add(word: str, pos: str, synonym: str) -> None:
        known = entries.setdefault((word.lower(), pos), [])
        if synonym.lower() not in [*known, word.lower()]:
            known.append(synonym.lower())

    for pos, table in lx.synonyms().items():
        for word, (synonym, _) in table.items():
            add(word, pos, synonym)
            add(synonym, pos, word)
    verbs = [e.verb for t in lx.topics() for e in t.events]
    verbs += [lx.Verb(*row[0].split("/")) for row in lx.tables()["person_verb"]]
    for verb in verbs:
        if "_" not in verb.other:
            add(verb.lemma, "verb", verb.other)
            add(verb.other, "verb", verb.lemma)
    return [f"{word}\t{pos}\t{', '.join(found)}" for (word, pos), found in sorted(entries.items())]


def write(path: Path, lines: list[str]) -> None:
    files.write_text(path, "\n".join(lines) + "\n")


def build(out: Path) -> None:
    """Write the six files into `out`."""
    out.mkdir(parents=True, exist_ok=True)
    for split in SPLITS:
        rows = [f"{p.score:.1f}\t{p.kind}\t{p.sentence1}\t{p.sentence2}" for p in pairs(split)]
        write(out / f"sts_{split}.tsv", ["score\tkind\tsentence1\tsentence2", *rows])
    write(out / "corpus.txt", [row[0] for row in corpus()])
    write(out / "paraphrase.txt", [row[1] for row in corpus()])
    write(out / "thesaurus.tsv", thesaurus())
    write(out / "triplets.tsv", triplets.lines())


def pattern_counts() -> Counter[str]:
    """How many corpus lines each pattern made."""
    return Counter({name: 0 for name in PATTERNS}) + Counter(row[2] for row in corpus())


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m tools.mini_data", description="Build the mini data set."
    )
    parser.add_argument("--out", type=Path, default=paths.MINI)
    out = parser.parse_args().out
    build(out)
    words = {w for row in corpus() for w in re.findall(r"[a-z]+", row[0].lower())}
    print(
        f"{len(corpus())} sentences, {len(words)} word types, {len(PATTERNS)} patterns,"
        f" {len(FAMILIES)} families"
    )
