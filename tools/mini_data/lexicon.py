"""Lexicon of the mini corpus: inflection, synonyms, topics, names and the adjuncts of time.

Everything is read from the text tables of `data/mini` (`topics.txt`, `synonyms.tsv`,
`tables.txt`) or stands below as a plain list. Values that fill a slot of a sentence pattern are
`Noun`, `Verb` or `Text`.
"""

# ruff: noqa: SIM905 (word lists read better as one string)

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import cache

from lib import paths

IRREGULAR = {
    line.split()[0]: (line.split()[1], line.split()[2])
    for line in """
    be was been
    beat beat beaten
    become became become
    begin began begun
    bind bound bound
    bite bit bitten
    blow blew blown
    break broke broken
    broadcast broadcast broadcast
    bring brought brought
    build built built
    burn burnt burnt
    buy bought bought
    catch caught caught
    choose chose chosen
    come came come
    cost cost cost
    cut cut cut
    deep-freeze deep-froze deep-frozen
    dig dug dug
    do did done
    draw drew drawn
    drink drank drunk
    drive drove driven
    eat ate eaten
    feed fed fed
    feel felt felt
    find found found
    forbid forbade forbidden
    freeze froze frozen
    get got got
    give gave given
    go went gone
    hang hung hung
    have had had
    hear heard heard
    hide hid hidden
    hit hit hit
    hold held held
    hurt hurt hurt
    keep kept kept
    know knew known
    lead led led
    learn learnt learnt
    leave left left
    lend lent lent
    lie lay lain
    light lit lit
    lose lost lost
    make made made
    mislay mislaid mislaid
    overtake overtook overtaken
    pay paid paid
    put put put
    read read read
    rerun reran rerun
    reset reset reset
    rewrite rewrote rewritten
    ride rode ridden
    ring rang rung
    rise rose risen
    run ran run
    saw sawed sawn
    say said said
    see saw seen
    sell sold sold
    send sent sent
    set set set
    sew sewed sewn
    shoot shot shot
    show showed shown
    shut shut shut
    sing sang sung
    sink sank sunk
    sleep slept slept
    sow sowed sown
    speak spoke spoken
    spend spent spent
    split split split
    steal stole stolen
    stick stuck stuck
    strike struck struck
    sweep swept swept
    swim swam swum
    take took taken
    teach taught taught
    tear tore torn
    tell told told
    think thought thought
    throw threw thrown
    try tried tried
    understand understood understood
    wear wore worn
    wake woke woken
    weep wept wept
    win won won
    wind wound wound
    withdraw withdrew withdrawn
    write wrote written
    """.strip().splitlines()
}
# Verbs of more than one syllable, or ending in a single consonant that doubles nevertheless.
DOUBLING = set(
    """
    ban beg chat debug lap marvel pedal wed chop clap clip dig drag drop fit grab grip hug hum jog knit mop net
    nod pat plan plug ram rap rip rob rub run scan scrub ship shop shut skip slip sip snap spot stir stop swim tap
    throb tip trap trim tug win wrap put set get cut hit sit begin forbid admit commit compel control equip expel
    occur patrol prefer refer regret permit submit transfer travel cancel label model quarrel signal tunnel kidnap
    unwrap unplug level rebel fulfil prop distil reset split
    flag
    """.split()
)
PLURALS = {
    "child": "children", "man": "men", "woman": "women", "mouse": "mice", "goose": "geese", "foot": "feet",
    "tooth": "teeth", "policeman": "policemen", "fisherman": "fishermen", "salesman": "salesmen",
    "postman": "postmen", "linesman": "linesmen", "businesswoman": "businesswomen", "milkmaid": "milkmaids",
    "person": "people", "knife": "knives", "wolf": "wolves", "thief": "thieves", "shelf": "shelves", "loaf": "loaves",
    "calf": "calves", "leaf": "leaves", "scarf": "scarves", "deer": "deer", "trout": "trout", "sheep": "sheep",
    "aircraft": "aircraft", "species": "species", "series": "series", "salmon": "salmon", "fish": "fish",
    "watchman": "watchmen", "seaman": "seamen", "airman": "airmen", "repairman": "repairmen",
    "clergyman": "clergymen", "frogman": "frogmen", "plantsman": "plantsmen", "needlewoman": "needlewomen",
    "piano": "pianos", "photo": "photos", "studio": "studios", "video": "videos", "kilo": "kilos", "solo": "solos",
    "cello": "cellos", "radio": "radios", "logo": "logos", "hypothesis": "hypotheses", "bacteria": "bacteria",
    "person next door": "people next door", "head of state": "heads of state", "ferry": "ferries", "roof": "roofs",
    "chef": "chefs", "handkerchief": "handkerchiefs", "euro": "euros", "foreman": "foremen",
}  # fmt: skip


def plural(noun: str) -> str:
    """Plural of a noun or compound: `plural("mouse") == "mice"`,
    `plural("truck driver") == "truck drivers"`."""
    if noun in PLURALS:
        return PLURALS[noun]
    head, _, last = noun.rpartition(" ")
    if " of " in noun:
        head, rest = noun.split(" of ", 1)
        return f"{plural(head)} of {rest}"
    prefix = f"{head} " if head else ""
    if last in PLURALS:
        return prefix + PLURALS[last]
    if re.search(r"[^aeiou]y$", last):
        return f"{prefix}{last[:-1]}ies"
    if re.search(r"(s|x|z|ch|sh|[^aeiou]o)$", last):
        return f"{prefix}{last}es"
    return f"{prefix}{last}s"


def inflect(lemma: str, form: str) -> str:
    """One word form of a verb: `form` is base, s, past, pp or ing. Only the first word of a phrasal
    verb changes."""
    first, _, rest = lemma.partition(" ")
    if form == "base":
        word = first
    elif form == "s":
        special = {"have": "has", "be": "is", "do": "does", "go": "goes"}
        regular = re.sub(r"([^aeiou])ys$", r"\1ies", f"{first}s")
        word = special.get(first) or (
            f"{first}es" if re.search(r"(s|x|z|ch|sh)$", first) else regular
        )
    elif form == "ing":
        if first in ("lie", "tie", "die"):
            word = f"{first[:-2]}ying"
        elif first in ("dye", "be", "see", "agree", "free"):
            word = f"{first}ing"
        else:
            word = (
                f"{first}{first[-1]}" if first in DOUBLING else re.sub(r"(?<=[^e])e$", "", first)
            ) + "ing"
    elif first in IRREGULAR:
        word = IRREGULAR[first][0 if form == "past" else 1]
    elif first.endswith("e"):
        word = f"{first}d"
    elif first in DOUBLING:
        word = f"{first}{first[-1]}ed"
    else:
        word = re.sub(r"([^aeiou])yed$", r"\1ied", f"{first}ed")
    return f"{word} {rest}".strip()


@cache
def synonyms() -> dict[str, dict[str, tuple[str, bool]]]:
    """`{pos: {word: (synonym, loose)}}` as written in `synonyms.tsv`."""
    table: dict[str, dict[str, tuple[str, bool]]] = {}
    for line in (paths.MINI / "synonyms.tsv").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            pos, word, synonym, *flag = line.split("\t")
            table.setdefault(pos, {})[word] = (synonym, bool(flag))
    return table


def exact_synonym(pos: str, word: str) -> str | None:
    """A synonym that may replace `word` in a generated paraphrase, or None."""
    synonym, loose = synonyms()[pos].get(word, ("", True))
    return None if loose else synonym


def a_or_an(text: str) -> str:
    """Turn the article "a" into "an" before a vowel sound."""
    consonant = r"(?!uni|use|usu|uti|euro|one\b|U-|u-boat|eu|once)"
    text = re.sub(rf"\b([Aa]) (?=[\"]?{consonant}[aeiouAEIO])", r"\1n ", text)
    return re.sub(
        r"\b([Aa]) (?=(hour|honest|heir|honour|X-ray|MP\b|unin|unim|unid))", r"\1n ", text
    )


@dataclass(frozen=True)
class Noun:
    """A noun phrase. `kind` is sg, pl, mass or name; `number` (a word) makes a counted plural of a
    countable noun."""

    noun: str
    kind: str = "sg"
    det: str = "the"
    adj: str = ""
    gender: str = "it"
    number: str = ""

    @property
    def is_plural(self) -> bool:
        return self.kind == "pl"

    def text(self, synonym: bool = False) -> str:
        """The phrase as it stands in a sentence, with synonyms where `synonym` asks for them."""
        if self.kind == "name":
            return self.noun
        base = self.noun
        adj = self.adj
        if synonym:
            base = exact_synonym("noun", base) or base
            adj = exact_synonym("adj", adj) or adj
        if self.is_plural and self.number:
            base = plural(base)
        return " ".join(part for part in (self.number or self.det, adj, base) if part)

    def form(self, name: str) -> str:
        """A word that agrees with the phrase: is, was, has, does, he, him, his or `+verb` (its
        present tense)."""
        if name.startswith("+"):
            return inflect(name[1:], "base" if self.is_plural else "s")
        sg = {"he": ("he", "him", "his"), "she": ("she", "her", "her"), "it": ("it", "it", "its")}
        he, him, his = ("they", "them", "their") if self.is_plural else sg[self.gender]
        words = {"he": he, "him": him, "his": his}
        agree = {"is": "are", "was": "were", "has": "have", "does": "do"}
        if name == "poss":
            text = self.text()
            return f"{text}'" if text.endswith("s") and self.is_plural else f"{text}'s"
        return words[name] if name in words else agree[name] if self.is_plural else name


@dataclass(frozen=True)
class Verb:
    """A verb and its equal in meaning; "_" in a lemma marks where the object stands."""

    lemma: str
    other: str = ""

    @property
    def other_passive(self) -> bool:
        """Whether the second wording has a plain passive ("was put up by", but not "was taken the
        skin off by")."""
        first, *rest = self.other.split() or [""]
        particles = "up out down off on over away in back into for at after".split()
        intransitive = ("go", "come", "walk", "look", "fail", "be", "rejoice", "clap")
        return (
            "_" in self.other
            or not rest
            or (len(rest) == 1 and rest[0] in particles and first not in intransitive)
        )

    def text(self, form: str, synonym: bool = False, obj: str | None = None) -> str:
        """The inflected verb, with the object in its place when one is given."""
        words = inflect(self.other if synonym and self.other else self.lemma, form)
        if obj is None:
            return re.sub(r" _", "", words)
        return words.replace("_", obj) if "_" in words else f"{words} {obj}".strip()


@dataclass(frozen=True)
class Text:
    """A fixed phrase and, after it, phrases equal in meaning."""

    base: str
    other: str = ""

    def text(self, synonym: bool = False) -> str:
        return self.other if synonym and self.other else self.base

    @classmethod
    def parse(cls, cell: str) -> Text:
        base, _, other = cell.strip().partition("/")
        return cls(base.strip(), other.strip())


Value = Noun | Verb | Text


@dataclass(frozen=True)
class Event:
    """One line of `topics.txt`: a verb with the objects, adjectives and adjuncts it goes with."""

    verb: Verb
    objects: tuple[Noun, ...]
    adjectives: tuple[str, ...]
    adjuncts: tuple[str, ...]


@dataclass
class Topic:
    """A scene of everyday life; `split` names the graded file that may use it."""

    name: str
    split: str
    animate: str
    people: list[str] = field(default_factory=list)
    places: list[str] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)


def parse_noun(word: str) -> Noun:
    """A noun of `topics.txt`: plain = countable, `+` = plural, `~` = mass."""
    word = word.strip()
    kind = {"+": "pl", "~": "mass"}.get(word[-1], "sg")
    return Noun(word.rstrip("+~"), kind)


def cells(text: str, separator: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(separator) if part.strip())


@cache
def topics() -> tuple[Topic, ...]:
    """The topics of `topics.txt` in file order."""
    found: list[Topic] = []
    for line in (paths.MINI / "topics.txt").read_text(encoding="utf-8").splitlines():
        if not line or line.startswith("#"):
            continue
        if line.startswith("@"):
            name, split, animate = line[1:].split()
            found.append(Topic(name, split, animate))
        elif line.startswith("who: "):
            found[-1].people = list(cells(line[5:], ","))
        elif line.startswith("where: "):
            found[-1].places = list(cells(line[7:], ","))
        else:
            verb, objects, adjectives, adjuncts = line.split("|")
            lemma, _, other = verb.strip().partition("/")
            nouns = (
                () if objects.strip() == "-" else tuple(parse_noun(o) for o in cells(objects, ","))
            )
            found[-1].events.append(
                Event(Verb(lemma, other), nouns, cells(adjectives, ","), cells(adjuncts, ";"))
            )
    return tuple(found)


@cache
def tables() -> dict[str, tuple[tuple[str, ...], ...]]:
    """`{section: rows of cells}` of `tables.txt`; even rows may fill dev scenes, odd rows test
    scenes."""
    sections: dict[str, list[tuple[str, ...]]] = {}
    name = ""
    for line in (paths.MINI / "tables.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("@"):
            name = line[1:].split()[0]
            sections[name] = []
        elif line and not line.startswith("#"):
            sections[name].append(tuple(cell.strip() for cell in line.split("|")))
    return {key: tuple(rows) for key, rows in sections.items()}


WOMEN = """
Anna Maria Julia Elena Sofia Laura Emma Clara Nina Fatima Aisha Yuki Mei Ingrid Olga Rosa Carmen Lucy Grace Hannah
Irene Leila Marta Nadia Paula Rachel Sara Teresa Vera Wendy Zoe Amelia Beatrice Charlotte Diana Esther Freya Gloria
Helen Isabel
""".split()
MEN = """
Tom Peter Ali David Marco Ivan Carlos Ahmed Kenji Lars Henry Oscar Paul Victor Walter Daniel Samuel Jack Leo Martin
Omar Pedro Rashid Simon Thomas Viktor William Andrew Bruno Cedric Dimitri Edgar Felix George Hugo Igor Jonas Karl
Luis Matteo
""".split()
CITIES = """
Paris Berlin Madrid Rome Vienna Lisbon Athens Oslo Prague Warsaw Dublin Helsinki Cairo Nairobi Lagos Tokyo Seoul
Delhi Mumbai Bangkok Sydney Toronto Boston Chicago Lima Bogota Havana Istanbul Hamburg Milan Lyon Geneva Kyoto Porto
Naples Glasgow Denver Montreal Krakow Zagreb
""".split()
NUMBERS = "two three four five six seven eight nine ten eleven twelve fifteen twenty thirty forty fifty sixty".split()
PAST = """
yesterday; last night; yesterday morning; last week; on Monday; on Tuesday afternoon; a few days ago; two weeks ago;
last month; on Friday evening; last summer; this morning; on Sunday; three years ago; in April; on Christmas Eve;
last winter; in 1998; on Saturday; in the middle of the night
"""
FUTURE = """
tomorrow; next week; on Thursday; this evening; tomorrow morning; next month; at the weekend; in two days; next
spring; on Wednesday afternoon; tonight; next year; in October; after the holidays
"""
HABIT = """
every morning; every day; on Mondays; every weekend; twice a week; once a month; every summer; in the evening; on
rainy days; every second Friday; before work; from time to time
"""
PAST_TIMES, FUTURE_TIMES, HABIT_TIMES = (
    [" ".join(part.split()) for part in times.split(";")] for times in (PAST, FUTURE, HABIT)
)
JOURNEYS = "Paris Berlin Madrid Rome Vienna Prague Warsaw Hamburg Milan Lyon Geneva Krakow Zagreb Lisbon Naples Porto".split()
# What people do not do on purpose or would not be asked to do: kept out of wishes, requests, thanks
# and the like.
MISHAPS = set(
    """fail miss lose injure break tear forge crash betray cry ignore delete skip bite rob steal threaten bribe hide
    burn destroy retreat""".split()
)
HINDRANCES = "tired angry nervous afraid bored lonely sad exhausted".split()
MOODS = "tired angry happy nervous afraid curious bored proud jealous grateful surprised calm lonely".split()
DURATIONS = "an hour; two hours; half a day; ten minutes; twenty minutes; three hours; forty minutes; all day".split(
    "; "
)


def names(split: str | None) -> list[tuple[str, str]]:
    """(first name, gender) of the given split; all of them when `split` is None."""
    both = [(w, "she") for w in WOMEN] + [(m, "he") for m in MEN]
    return both if split is None else both[("dev", "test").index(split) :: 2]


def people(split: str | None) -> list[str]:
    """Adult, law-abiding agents of the topics of a split, in file order, once."""
    chosen = [t for t in topics() if t.animate == "person" and split in (None, t.split)]
    return list(
        dict.fromkeys(p for t in chosen if t.name not in ("children", "crime") for p in t.people)
    )


def with_adjective(noun: Noun, adj: str) -> Noun:
    return replace(noun, adj=adj)
