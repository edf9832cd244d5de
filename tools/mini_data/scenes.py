"""Samplers: draw a scene, that is a family of patterns with every slot filled sensibly.

A scene knows what may stand instead of each filler (`options`), so that `build.py` can change one
detail and keep the sentence sensible. `frame` is what the scene is about before its slots are
filled; frames belong to one split only.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from tools.mini_data import lexicon as lx
from tools.mini_data.lexicon import Event, Noun, Text, Topic, Value, Verb
from tools.mini_data.patterns import FAMILIES, Family

Values = dict[str, Value]
Options = dict[str, list[Value]]
ADJUNCTS = ("T", "P", "M")
GENDER = {
    word: gender
    for gender, words in {
        "she": """mother grandmother sister girl bride actress seamstress nun queen widow housekeeper milkmaid nurse
        ballerina businesswoman babysitter policewoman""",
        "he": """father brother boy king priest monk bishop policeman fisherman salesman headmaster knight emperor
        bricklayer shepherd welder roofer general soldier""",
    }.items()
    for word in words.split()
}


@dataclass(frozen=True)
class Scene:
    """A family with its slots filled."""

    family: Family
    topic: str
    frame: str
    values: dict[str, Value]
    options: Options = field(default_factory=dict)
    adjectives: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """Identifier of the scene: its frame and the words that fill it."""
        fillers = (
            f"{k}={v.lemma if isinstance(v, Verb) else v.text()}"
            for k, v in sorted(self.values.items())
        )
        return f"{self.frame}({', '.join(fillers)})"

    def changed(self, **values: Value) -> Scene:
        return replace(self, values={**self.values, **values})


def texts(words: list[str] | tuple[str, ...]) -> list[Value]:
    return [Text.parse(word) for word in words]


def half(rows: tuple | list, split: str | None) -> list:
    """The rows a split may use: every second one; all when `split` is None."""
    return list(rows) if split is None else list(rows[("dev", "test").index(split) :: 2])


def person(rng: random.Random, noun: str, det: str | None = None) -> Noun:
    det = det or rng.choices(["the", "a", "our"], [70, 22, 8])[0]
    return Noun(noun, "sg", det, gender=GENDER.get(noun) or rng.choice(["he", "she"]))


def named(rng: random.Random, split: str | None) -> Noun:
    name, gender = rng.choice(lx.names(split))
    return Noun(name, "name", "", gender=gender)


def anyone(rng: random.Random, split: str | None, name_rate: float = 0.6) -> Noun:
    return (
        named(rng, split)
        if rng.random() < name_rate
        else person(rng, rng.choice(lx.people(split)), "the")
    )


def agent(rng: random.Random, topic: Topic, split: str | None, plurals: bool) -> Noun:
    """The agent of an event; `plurals` allows "three nurses"."""
    noun = rng.choice(topic.people)
    if topic.animate == "animal":
        return Noun(noun, "sg", rng.choices(["the", "a"], [3, 1])[0])
    roll = rng.random()
    if roll < 0.2:
        return named(rng, split)
    if plurals and roll < 0.27:
        return Noun(noun, "pl", "", number=rng.choice(lx.NUMBERS[:5]))
    return person(rng, noun)


def dressed(rng: random.Random, noun: Noun, adjectives: tuple[str, ...]) -> Noun:
    """The object with a determiner and, often, an adjective or a number."""
    adj = rng.choice(adjectives) if adjectives and rng.random() < 0.45 else ""
    if noun.kind == "sg" and not adj and rng.random() < 0.12 and " of " not in noun.noun:
        return Noun(noun.noun, "pl", "", number=rng.choice(lx.NUMBERS[:5]))
    dets = {
        "sg": (["the", "a"], [7, 3]),
        "pl": (["the", "some"], [7, 3]),
        "mass": (["the", "some"], [8, 2]),
    }
    return replace(noun, det=rng.choices(*dets[noun.kind])[0], adj=adj)


def second_verb(verb: Verb) -> Verb:
    return Verb(verb.lemma, "" if "_" in verb.other else verb.other)


def pick_event(rng: random.Random, family: Family, topic: Topic) -> Event:
    events = [e for e in topic.events if e.objects] if family.transitive else topic.events
    return rng.choice([e for e in events if not (family.deliberate and e.verb.lemma in lx.MISHAPS)])


def event_scene(rng: random.Random, family: Family, split: str | None) -> Scene:
    """A scene from `topics.txt`."""
    fit = [
        t
        for t in lx.topics()
        if split in (None, t.split) and not (family.persons and t.animate == "animal")
    ]
    if family.deliberate:
        fit = [t for t in fit if t.name != "crime"]
    topic = rng.choice(fit)
    event = pick_event(rng, family, topic)
    values: Values = {"V": event.verb}
    options: Options = {}
    frame = f"{topic.name}.{event.verb.lemma}"
    if event.objects:
        values["O"] = dressed(rng, rng.choice(event.objects), event.adjectives)
        options["O"] = list(event.objects)
    if family.agent:
        values["A"] = agent(rng, topic, split, plurals=not family.persons)
        options["A"] = [person(rng, p, "the") for p in topic.people]
    fill_adjuncts(rng, family, topic, event, values, options)
    if "B" in family.slots:
        first = values["A"]
        assert isinstance(first, Noun)
        values["B"] = person(rng, rng.choice([p for p in topic.people if p != first.noun]), "the")
        if rng.random() < 0.3 and topic.animate == "person":
            values["B"] = rng.choice(
                [n for n in (named(rng, split) for _ in range(9)) if n.noun != first.text()]
            )
        options["B"] = options["A"]
    if "W" in family.slots:
        other = rng.choice([e for e in topic.events if e.objects and e is not event])
        values |= {"W": second_verb(other.verb), "Q": replace(rng.choice(other.objects), det="the")}
        options["Q"] = [replace(o, det="the") for o in other.objects]
    if "D" in family.slots:
        values["D"], options["D"] = Text(rng.choice(lx.DURATIONS)), texts(lx.DURATIONS)
    if "J" in family.slots:
        values["J"], options["J"] = (
            mood(rng, lx.HINDRANCES),
            [mood(rng, [m]) for m in lx.HINDRANCES],
        )
    return Scene(family, topic.name, frame, values, options, event.adjectives)


def mood(rng: random.Random, words: list[str]) -> Text:
    word = rng.choice(words)
    return Text(word, lx.exact_synonym("adj", word) or "")


def fill_adjuncts(
    rng: random.Random, family: Family, topic: Topic, event: Event, values: Values, options: Options
) -> None:
    """Time, place and manner, at most two of them (a family of habits always has its time)."""
    times = {"past": lx.PAST_TIMES, "future": lx.FUTURE_TIMES, "habit": lx.HABIT_TIMES}.get(
        family.time
    )
    chosen = [k for k, rate in (("T", 0.5), ("P", 0.5), ("M", 0.4)) if rng.random() < rate]
    if family.time == "habit":
        chosen = ["T", *(k for k in chosen if k == "P")]
    elif len(chosen) == 3:
        chosen.remove(rng.choice(chosen))
    pools = {
        "T": times,
        "P": topic.places if family.place else None,
        "M": event.adjuncts if family.manner else None,
    }
    for slot in ADJUNCTS:
        pool = pools[slot]
        if pool:
            options[slot] = texts(pool)
            if slot in chosen:
                values[slot] = rng.choice(options[slot])


def when(
    rng: random.Random, times: list[str], rate: float, values: Values, options: Options
) -> None:
    options["T"] = texts(times)
    if rng.random() < rate:
        values["T"] = rng.choice(options["T"])


def two_people(rng: random.Random, split: str | None) -> tuple[Noun, Noun]:
    first = anyone(rng, split)
    second = anyone(rng, split)
    while second.noun == first.noun:
        second = anyone(rng, split)
    return first, second


def person_scene(rng: random.Random, family: Family, split: str | None) -> Scene:
    verb, adjuncts = rng.choice(half(lx.tables()["person_verb"], split))
    lemma, _, other = verb.partition("/")
    a, o = two_people(rng, split)
    options: Options = {
        "M": texts(lx.cells(adjuncts, ";")),
        "A": [anyone(rng, split) for _ in range(6)],
    }
    options["O"] = [anyone(rng, split) for _ in range(6)]
    values: Values = {"A": a, "V": Verb(lemma, other), "O": o}
    if rng.random() < 0.6:
        values["M"] = rng.choice(options["M"])
    when(rng, lx.PAST_TIMES, 0.5, values, options)
    return Scene(family, "people", f"person.{lemma}", values, options)


def gift_scene(rng: random.Random, family: Family, split: str | None) -> Scene:
    rows = [row[0] for row in half(lx.tables()["gift"], split)]
    a, b = two_people(rng, split)
    thing = rng.choice(rows)
    values: Values = {"A": a, "B": b, "O": Text(thing)}
    options: Options = {"O": texts(rows), "A": [anyone(rng, split) for _ in range(6)]}
    when(rng, lx.PAST_TIMES, 0.6, values, options)
    return Scene(family, "giving", f"{family.name}.{thing}", values, options)


def sale_scene(rng: random.Random, family: Family, split: str | None) -> Scene:
    rows = [row[0] for row in half(lx.tables()["sale"], split)]
    a, b = two_people(rng, split)
    thing = rng.choice(rows)
    values: Values = {
        "A": a,
        "B": b,
        "O": Text(thing),
        "N": Text(str(rng.choice(range(20, 900, 5)))),
    }
    options: Options = {"O": texts(rows), "N": texts([str(n) for n in range(20, 900, 35)])}
    when(rng, lx.PAST_TIMES, 0.5, values, options)
    return Scene(family, "selling", f"sale.{thing}", values, options)


def age_scene(rng: random.Random, family: Family, split: str | None) -> Scene:
    a, b = named(rng, split), named(rng, split)
    while b.noun == a.noun:
        b = named(rng, split)
    values: Values = {"A": a, "B": b, "N": Text(rng.choice(lx.NUMBERS))}
    frame = f"age.{a.noun}.{b.noun}"
    return Scene(
        family,
        "age",
        frame,
        values,
        {"N": texts(lx.NUMBERS), "A": [named(rng, split) for _ in range(4)]},
    )


def definition_scene(rng: random.Random, family: Family, split: str | None) -> Scene:
    word, genus, rest = rng.choice(half(lx.tables()["definition"], split))
    values: Values = {"X": Text(word), "G": Text(genus), "F": Text(rest)}
    return Scene(family, "definition", f"definition.{word}", values)


def order_scene(rng: random.Random, family: Family, split: str | None) -> Scene:
    degrees, dimension, items = rng.choice(half(lx.tables()["order"], split))
    things = lx.cells(items, ",")
    low, high = sorted(rng.sample(range(len(things)), 2))
    more, less = degrees.split("/")
    values: Values = {
        "A": Text(things[high]),
        "B": Text(things[low]),
        "C": Text(more),
        "K": Text(less),
    }
    return Scene(
        family, f"compare {dimension}", f"order.{dimension}.{things[low]}.{things[high]}", values
    )


def state_scene(rng: random.Random, family: Family, split: str | None) -> Scene:
    noun, adjective, opposite, place = rng.choice(half(lx.tables()["state"], split))
    values: Values = {
        "X": Text(noun),
        "J": Text.parse(adjective),
        "K": Text(opposite),
        "P": Text(place),
    }
    if " " in adjective.partition("/")[2]:
        values["J"] = Text(adjective.partition("/")[0])
    places = [row[3] for row in half(lx.tables()["state"], split) if row[0] == noun]
    if rng.random() < 0.5:
        values["J"], values["K"] = Text(opposite), Text(adjective.partition("/")[0])
    return Scene(family, f"state {noun}", f"state.{noun}", values, {"P": texts(places)})


def thing_scene(rng: random.Random, family: Family, split: str | None) -> Scene:
    things, places = rng.choice(half(lx.tables()["thing"], split))
    thing = rng.choice(lx.cells(things, ","))
    values: Values = {
        "X": Text(thing),
        "Y": Text(thing.partition(" ")[2]),
        "P": Text(rng.choice(lx.cells(places, ","))),
    }
    return Scene(
        family, f"place {places}", f"thing.{thing}", values, {"P": texts(lx.cells(places, ","))}
    )


def preference_scene(rng: random.Random, family: Family, split: str | None) -> Scene:
    row = rng.choice(half(lx.tables()["preference"], split))
    x, y = rng.sample(row_cells := lx.cells(row[0], ","), 2)
    values: Values = {"A": anyone(rng, split), "X": Text(x), "Y": Text(y)}
    rest = [t for t in row_cells if t not in (x, y)]
    options: Options = {"Y": texts(rest), "A": [anyone(rng, split) for _ in range(5)]}
    return Scene(family, f"preference {row_cells[0]}", f"preference.{x}.{y}", values, options)


def feeling_scene(rng: random.Random, family: Family, split: str | None) -> Scene:
    reason, noun = rng.choice(half(lx.tables()["feeling"], split))
    values: Values = {
        "A": anyone(rng, split),
        "J": mood(rng, lx.MOODS),
        "R": Text(reason),
        "S": Text(noun),
    }
    options: Options = {
        "J": [mood(rng, [m]) for m in lx.MOODS],
        "A": [anyone(rng, split) for _ in range(5)],
    }
    return Scene(family, "feeling", f"feeling.{reason}", values, options)


def too_scene(rng: random.Random, family: Family, split: str | None) -> Scene:
    thing, adjective, passive, active = rng.choice(half(lx.tables()["too"], split))
    values: Values = {"X": Text(thing), "J": Text(adjective), "Z": Text(passive), "Y": Text(active)}
    return Scene(family, f"too {thing}", f"too.{thing}.{passive}", values)


def instrument_scene(rng: random.Random, family: Family, split: str | None) -> Scene:
    tool, action = rng.choice(half(lx.tables()["instrument"], split))
    return Scene(family, "tools", f"instrument.{tool}", {"X": Text(tool), "Y": Text(action)})


def advice_scene(rng: random.Random, family: Family, split: str | None) -> Scene:
    rows = half(lx.tables()["advice"], split)
    action = rng.choice(rng.choice(rows))
    values: Values = {"A": anyone(rng, split), "X": Text(action)}
    options: Options = {"A": [anyone(rng, split) for _ in range(5)]}
    return Scene(family, "advice", f"advice.{action}", values, options)


def opinion_scene(rng: random.Random, family: Family, split: str | None) -> Scene:
    thing, judgement, opposite = rng.choice(half(lx.tables()["opinion"], split))
    values: Values = {"A": anyone(rng, split), "X": Text(thing), "J": Text.parse(judgement)}
    if rng.random() < 0.4:
        values["J"] = Text(opposite)
    return Scene(
        family,
        f"opinion {thing}",
        f"opinion.{thing}",
        values,
        {"A": [anyone(rng, split) for _ in range(5)]},
    )


def company_scene(rng: random.Random, family: Family, split: str | None) -> Scene:
    rows = [row[0] for row in half(lx.tables()["company"], split)]
    a, b = rng.sample(rows, 2)
    numbers = lx.NUMBERS if family.name == "takeover" else lx.NUMBERS[:8]
    values: Values = {"A": Noun(a, "name"), "N": Text(rng.choice(numbers))}
    options: Options = {
        "N": texts(numbers),
        "A": [Noun(r, "name") for r in rows if r not in (a, b)],
    }
    if family.name == "takeover":
        values["B"] = Noun(b, "name")
        return Scene(family, "takeover", f"takeover.{a}.{b}", values, options)
    cities = half(lx.CITIES, split)
    values["P"], options["P"] = Text(f"in {rng.choice(cities)}"), texts([f"in {c}" for c in cities])
    when(rng, lx.FUTURE_TIMES, 0.5, values, options)
    return Scene(family, "jobs", f"jobs.{a}", values, options)


def team_scene(rng: random.Random, family: Family, split: str | None) -> Scene:
    rows = [Noun(row[0], "pl", "") for row in half(lx.tables()["team"], split)]
    a, b = rng.sample(rows, 2)
    scores = [f"{w}:{loser}" for w in range(1, 6) for loser in range(w)]
    values: Values = {"A": a, "B": b, "S": Text(rng.choice(scores))}
    cities = half(lx.CITIES, split)
    options: Options = {"S": texts(scores), "P": texts([f"in {c}" for c in cities])}
    if rng.random() < 0.4:
        values["P"] = rng.choice(options["P"])
    when(rng, lx.PAST_TIMES, 0.5, values, options)
    return Scene(family, "match", f"match.{a.noun}.{b.noun}", values, options)


def commodity_scene(rng: random.Random, family: Family, split: str | None) -> Scene:
    row = rng.choice(half(lx.tables()["commodity"], split))
    values: Values = {"X": Text.parse(row[0]), "N": Text(rng.choice(lx.NUMBERS))}
    options: Options = {"N": texts(lx.NUMBERS)}
    when(rng, [t for t in lx.PAST_TIMES if t.startswith(("last", "in"))], 1.0, values, options)
    return Scene(family, "prices", f"price.{row[0]}", values, options)


def disaster_scene(rng: random.Random, family: Family, split: str | None) -> Scene:
    subject, verb = rng.choice(half(lx.tables()["disaster"], split))
    cities = half(lx.CITIES, split)
    values: Values = {"X": Text.parse(subject), "Y": Text.parse(verb)}
    values["P"] = Text(rng.choice(cities))
    options: Options = {"P": texts(cities)}
    when(rng, lx.PAST_TIMES, 1.0, values, options)
    return Scene(family, "disaster", f"disaster.{subject}", values, options)


def mayor_scene(rng: random.Random, family: Family, split: str | None) -> Scene:
    cities = half(lx.CITIES, split)
    a, city = named(rng, split), rng.choice(cities)
    options: Options = {"A": [named(rng, split) for _ in range(6)], "P": texts(cities)}
    values: Values = {"A": a, "P": Text(city)}
    when(rng, lx.PAST_TIMES, 1.0, values, options)
    return Scene(family, "mayor", f"mayor.{a.noun}.{city}", values, options)


def journey_scene(rng: random.Random, family: Family, split: str | None) -> Scene:
    cities = half(lx.JOURNEYS, split)
    a, b = rng.sample(cities, 2)
    vehicles = ["train", "bus", "night train", "coach", "express"]
    values: Values = {
        "A": Text(a),
        "B": Text(b),
        "X": Text(rng.choice(vehicles)),
        "N": Text(rng.choice(lx.NUMBERS[:12])),
    }
    options: Options = {
        "X": texts(vehicles),
        "N": texts(lx.NUMBERS[:12]),
        "B": texts([c for c in cities if c != a]),
    }
    return Scene(family, "journey", f"journey.{a}.{b}", values, options)


WEATHER = """heavy rain/a lot of rain; snow/snowfall; thick fog/dense fog; bright sunshine/plenty of sun;
strong wind/strong gusts; hail/hailstones; frost/temperatures below zero; thunder and lightning/a thunderstorm;
light drizzle/a little rain; extreme heat/very high temperatures"""


def forecast_scene(rng: random.Random, family: Family, split: str | None) -> Scene:
    cities = half(lx.CITIES, split)
    city, kinds = rng.choice(cities), [" ".join(w.split()) for w in WEATHER.split(";")]
    values: Values = {"P": Text(city), "X": Text.parse(rng.choice(kinds))}
    options: Options = {"P": texts(cities), "X": texts(kinds)}
    when(
        rng,
        [
            t
            for t in lx.FUTURE_TIMES
            if t not in ("next month", "next year", "next spring", "in October")
        ],
        1.0,
        values,
        options,
    )
    return Scene(family, "weather", f"forecast.{city}", values, options)


def cause_scene(rng: random.Random, family: Family, split: str | None) -> Scene:
    cause, effect = rng.choice(half(lx.tables()["cause"], split))
    return Scene(family, "cause", f"cause.{effect}", {"X": Text.parse(cause), "Y": Text(effect)})


def condition_scene(rng: random.Random, family: Family, split: str | None) -> Scene:
    positive, negative, result, same = rng.choice(half(lx.tables()["condition"], split))
    values: Values = {"X": Text(positive), "Y": Text(negative), "Z": Text(result, same)}
    return Scene(family, "condition", f"condition.{positive}", values)


SAMPLERS: dict[str, Callable[[random.Random, Family, str | None], Scene]] = {
    name.removesuffix("_scene"): function
    for name, function in list(globals().items())
    if name.endswith("_scene")
}


def sample(rng: random.Random, split: str | None = None, family: str | None = None) -> Scene:
    """A random scene; of `split` only when given, of one family when given."""
    if family is None:
        family = rng.choices(list(FAMILIES), [f.weight for f in FAMILIES.values()])[0]
    chosen = FAMILIES[family]
    return SAMPLERS[chosen.source](rng, chosen, split)
