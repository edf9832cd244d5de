"""The triplets of `data/mini/triplets.tsv`: an anchor and, for it, one sentence of every kind.

They have patterns and topics of their own (`triplet_patterns.py`, `triplet_topics.txt`), so that no
text to train on is made the same way. `data/mini/README.md` gives the rule of each kind.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, field, replace
from functools import cache

from lib import paths
from tools.mini_data import lexicon as lx
from tools.mini_data.lexicon import Noun, Text, Value, Verb
from tools.mini_data.patterns import Family, realise
from tools.mini_data.scenes import Scene, texts
from tools.mini_data.triplet_patterns import TRIPLET_FAMILIES

SEED = 2026
ANCHORS_PER_FAMILY = 8
NAME_RATE = 0.25
NUMBERS = lx.NUMBERS[:12]
KINDS = ("paraphrase", "role swapped", "negated", "word changed", "same topic", "unrelated")
WOMEN = ("Edith", "Flora", "Harriet", "Bridget", "Tessa", "Nora", "Greta", "Winifred")
MEN = ("Arthur", "Benjamin", "Conrad", "Desmond", "Ernest", "Frederick", "Gilbert", "Ralph")


@dataclass(frozen=True)
class Item:
    """A line of `triplet_topics.txt`: nouns, the adjectives that suit each, and a verb if any."""

    nouns: tuple[Noun, ...]
    adjectives: tuple[str, ...]
    verb: str = ""


@dataclass
class TripletTopic:
    """A block of `triplet_topics.txt`."""

    name: str
    people: tuple[str, ...] = ()
    places: tuple[str, ...] = ()
    stock: tuple[str, ...] = ()
    items: dict[str, list[Item]] = field(default_factory=dict)


@dataclass(frozen=True)
class Anchor:
    """An anchor, its scene and a sentence of each kind."""

    sentence: str
    scene: Scene
    partners: dict[str, str]
    others: tuple[Scene, ...]


@cache
def triplet_topics() -> tuple[TripletTopic, ...]:
    """The topics of `triplet_topics.txt` in file order."""
    found: list[TripletTopic] = []
    for line in (paths.MINI / "triplet_topics.txt").read_text(encoding="utf-8").splitlines():
        if not line or line.startswith("#"):
            continue
        if line.startswith("@"):
            found.append(TripletTopic(line[1:].strip()))
            continue
        key, _, rest = line.partition(": ")
        if key in ("do", "thing", "state"):
            *verb, nouns, adjectives = rest.split("|")
            item = Item(
                tuple(lx.parse_noun(noun) for noun in lx.cells(nouns, ",")),
                lx.cells(adjectives, ","),
                "".join(verb).strip(),
            )
            found[-1].items.setdefault(key, []).append(item)
        else:
            name = {"who": "people", "where": "places", "stock": "stock"}[key]
            setattr(found[-1], name, lx.cells(rest, ","))
    return tuple(found)


def people(rng: random.Random, topic: TripletTopic) -> list[Noun]:
    """Two different people; some have a name."""
    names = rng.sample([*WOMEN, *MEN], 2)
    chosen = []
    for role, name in zip(rng.sample(topic.people, 2), names, strict=True):
        if rng.random() < NAME_RATE:
            chosen.append(Noun(name, "name", "", gender="she" if name in WOMEN else "he"))
        else:
            chosen.append(Noun(role, gender=rng.choice(["she", "he"])))
    return chosen


def sample(rng: random.Random, family: Family, topic: TripletTopic) -> Scene:
    """A scene of a family and a topic; its options are what may stand in a slot instead."""
    a, b = people(rng, topic)
    values: dict[str, Value] = {"A": a, "B": b}
    options: dict[str, list[Value]] = {}
    frame = family.name
    if family.source in ("act", "thing"):
        item = rng.choice(topic.items["do" if family.source == "act" else "thing"])
        noun = replace(rng.choice(item.nouns), adj=rng.choice(item.adjectives))
        values["O"], options["O"] = noun, dressings(item)
        frame = f"{item.verb or 'thing'}.{noun.noun}"
        if item.verb:
            values["V"] = Verb(item.verb)
    if family.source == "state":
        item = rng.choice(topic.items["state"])
        values |= {"X": item.nouns[0], "J": Text(rng.choice(item.adjectives))}
        options["J"] = texts(item.adjectives)
        frame = f"state.{item.nouns[0].noun}"
    if family.source == "count" or "N" in family.slots:
        values["N"], options["N"] = Text(rng.choice(NUMBERS)), texts(NUMBERS)
    if "S" in family.slots:
        stock = rng.choice(topic.stock)
        values["S"], options["S"] = Text(stock), texts(topic.stock)
        frame = f"stock.{stock}"
    if "P" in family.slots:
        values["P"] = Text(rng.choice(topic.places))
    return Scene(family, topic.name, f"{topic.name}.{frame}", values, options)


def dressings(item: Item) -> list[Value]:
    """Every noun of an item with each of its adjectives."""
    return [replace(noun, adj=adj) for noun in item.nouns for adj in item.adjectives]


def words(text: str) -> list[str]:
    """The words of a text, in lower case."""
    return re.findall(r"[\w'-]+", text.lower())


def word_changed(rng: random.Random, scene: Scene, template: str) -> str:
    """The scene with one word replaced: an adjective, a number, or the head of a noun phrase."""
    slot = rng.choice(sorted(scene.options))
    old = realise(template, scene.values)
    found = [realise(template, scene.changed(**{slot: v}).values) for v in scene.options[slot]]
    found = [text for text in found if differing_words(old, text) == 1]
    if not found:
        return word_changed(rng, scene, template)
    return rng.choice(found)


def differing_words(one: str, other: str) -> int:
    """In how many places two sentences of one length differ; -1 where the lengths do."""
    a, b = words(one), words(other)
    return sum(x != y for x, y in zip(a, b, strict=True)) if len(a) == len(b) else -1


def partners_of_scene(rng: random.Random, scene: Scene) -> tuple[str, dict[str, str]]:
    """The anchor and its sentences of the first four kinds."""
    patterns = scene.family.patterns
    pattern = rng.choice([p for p in patterns if p.negative])
    other = rng.choice([p for p in patterns if p is not pattern])
    swapped = scene.changed(A=scene.values["B"], B=scene.values["A"])
    return realise(pattern.template, scene.values), {
        "paraphrase": realise(other.template, scene.values),
        "role swapped": realise(pattern.template, swapped.values),
        "negated": realise(pattern.negative, scene.values),
        "word changed": word_changed(rng, scene, pattern.template),
    }


def another_scene(rng: random.Random, scene: Scene, same_topic: bool) -> Scene:
    """A scene of the same topic, but another frame, or of another topic; no person in common."""
    while True:
        family = rng.choice(list(TRIPLET_FAMILIES.values()))
        topics = [t for t in triplet_topics() if (t.name == scene.topic) == same_topic]
        other = sample(rng, family, rng.choice(topics))
        if other.frame != scene.frame and not persons(other) & persons(scene):
            return other


def persons(scene: Scene) -> set[str]:
    """The two people of a scene."""
    return {
        value.text()
        for slot, value in scene.values.items()
        if slot in ("A", "B") and isinstance(value, Noun)
    }


@cache
def anchors() -> tuple[Anchor, ...]:
    """All anchors with their sentences: the same list at every call; no sentence comes twice."""
    rng = random.Random(f"{SEED} triplets")
    result: list[Anchor] = []
    seen: set[str] = set()
    for family in TRIPLET_FAMILIES.values():
        wanted = len(result) + ANCHORS_PER_FAMILY
        topics = rng.sample(triplet_topics(), len(triplet_topics()))
        while len(result) < wanted:
            found = anchor(rng, family, topics[len(result) % len(topics)])
            sentences = [found.sentence, *found.partners.values()]
            if len({*sentences} - seen) == len(sentences):
                seen.update(sentences)
                result.append(found)
    rng.shuffle(result)
    return tuple(result)


def anchor(rng: random.Random, family: Family, topic: TripletTopic) -> Anchor:
    """An anchor of a family and a topic with a sentence of every kind."""
    scene = sample(rng, family, topic)
    sentence, partners = partners_of_scene(rng, scene)
    others = tuple(another_scene(rng, scene, same_topic) for same_topic in (True, False))
    for kind, other in zip(KINDS[-2:], others, strict=True):
        partners[kind] = realise(rng.choice(other.family.patterns).template, other.values)
    return Anchor(sentence, scene, partners, others)


def lines() -> list[str]:
    """Lines of triplets.tsv: number, anchor, kind, sentence."""
    rows = [
        f"{number}\t{found.sentence}\t{kind}\t{found.partners[kind]}"
        for number, found in enumerate(anchors(), 1)
        for kind in KINDS
    ]
    return ["number\tanchor\tkind\tsentence", *rows]
