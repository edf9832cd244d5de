"""Sentence patterns of the mini corpus, in families of equal meaning.

A family is a list of patterns that say the same thing about the same fillers, so any two of them
are paraphrases.
Syntax of a pattern: `{A}` the text of slot A, `{V:past}` a verb form, `{VP:past}` the verb with
    object and manner,
`{A:was}` a word that agrees with A, `{A:+want}` a present-tense verb that agrees with A, `[ {P}]`
left out without a P. `=> ...` after a pattern is its negation. Slots: A agent, B second person, V
verb, O object, M manner or instrument, P place, T time, W and Q a second verb and object, J mood, D
duration; the others are explained where they are filled.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from tools.mini_data.lexicon import Noun, Text, Value, Verb, a_or_an

SLOT = re.compile(r"\{(\w+)(?::([^}]+))?\}")
OPTIONAL = re.compile(r"\[([^\]]*)\]")


@dataclass(frozen=True)
class Pattern:
    """One sentence pattern; `name` is `family/number`."""

    name: str
    template: str
    negative: str = ""

    def fits(self, values: Mapping[str, Value], alternates: str = "") -> bool:
        """Whether the pattern says exactly what is in `values`; `alternates` may stay unsaid."""
        required, optional = slots_of(self.template)
        return required <= set(values) and set(values) - set(alternates) <= required | optional


@cache
def slots_of(template: str) -> tuple[set[str], set[str]]:
    """(required, optional) slots of a template."""
    optional = _slots(" ".join(OPTIONAL.findall(template)))
    required = _slots(OPTIONAL.sub("", template))
    if "VP" in required:
        required = required - {"VP"} | {"V"}
        optional |= {"O", "M"}
    return required, optional - required


def _slots(template: str) -> set[str]:
    return {match.group(1) for match in SLOT.finditer(template)}


def realise(
    template: str, values: Mapping[str, Value], rng: random.Random | None = None, rate: float = 0.0
) -> str:
    """The sentence of a template; each slot takes its synonyms with probability `rate`."""
    other = {slot: rng is not None and rng.random() < rate for slot in sorted(values)}

    def fill(match: re.Match[str]) -> str:
        slot, form = match.group(1), match.group(2)
        if slot == "VP":
            obj, manner = values.get("O"), values.get("M")
            verb = values["V"]
            assert isinstance(verb, Verb)
            phrase = verb.text(
                form, other["V"], obj.text(other["O"]) if isinstance(obj, Noun) else ""
            )
            return f"{phrase} {manner.text(other['M'])}" if isinstance(manner, Text) else phrase
        value = values[slot]
        if isinstance(value, Verb):
            passive = form == "pp"  # a bare {V:pp} follows a form of "be" in every pattern
            return value.text(form, other[slot] and (value.other_passive or not passive))
        if form:
            assert isinstance(value, Noun)
            return value.form(form)
        return value.text(other[slot])

    def keep(match: re.Match[str]) -> str:
        return match.group(1) if _slots(match.group(1)) <= set(values) else ""

    return tidy(SLOT.sub(fill, OPTIONAL.sub(keep, template)))


def tidy(sentence: str) -> str:
    """Articles, spaces and capitals of a finished sentence."""
    sentence = a_or_an(re.sub(r"\s+", " ", sentence).strip())
    sentence = re.sub(r'([:,] ")([a-z])', lambda m: m.group(1) + m.group(2).upper(), sentence)
    sentence = re.sub(r"(\? )([a-z])", lambda m: m.group(1) + m.group(2).upper(), sentence)
    return re.sub(r'^("?)([a-z])', lambda m: m.group(1) + m.group(2).upper(), sentence)


@dataclass(frozen=True)
class Family:
    """Patterns of equal meaning and what a scene of the family needs.

    `source` names the sampler of `build.py`; `time` the list a time adjunct comes from; `slots` the
    slots beyond V, O and A; `manner` whether the tense goes with an M; `deliberate` whether only
    things done on purpose make sense; `alternates` slots that word one thing in different ways;
    `swap` the two slots whose exchange changes the meaning.
    """

    name: str
    source: str
    patterns: tuple[Pattern, ...]
    weight: float = 1.0
    time: str = ""
    slots: str = ""
    manner: bool = True
    transitive: bool = False
    persons: bool = False
    place: bool = True
    agent: bool = True
    deliberate: bool = False
    alternates: str = ""
    swap: str = ""

    def fitting(self, values: Mapping[str, Value]) -> list[Pattern]:
        return [p for p in self.patterns if p.fits(values, self.alternates)]


FAMILIES: dict[str, Family] = {}


def patterns_of(name: str, lines: str) -> tuple[Pattern, ...]:
    """The patterns of a family; one a line."""
    patterns = []
    for number, line in enumerate(filter(None, (line.strip() for line in lines.splitlines())), 1):
        template, _, negative = line.partition(" => ")
        patterns.append(Pattern(f"{name}/{number}", template, negative))
    return tuple(patterns)


def family(name: str, source: str, lines: str, **options: object) -> None:
    """Register a family of the corpus and the graded pairs."""
    FAMILIES[name] = Family(name, source, patterns_of(name, lines), **options)  # type: ignore[arg-type]


# ------------------------------------------------------------------ events of topics.txt: one agent
family("past", "event", """
    {A} {VP:past}[ {P}][ {T}]. => {A} did not {VP:base}[ {P}][ {T}].
    {T}, {A} {VP:past}[ {P}]. => {T}, {A} did not {VP:base}[ {P}].
    {P}, {A} {VP:past}[ {T}].
    {O} {O:was} {V:pp}[ {M}] by {A}[ {P}][ {T}]. => {O} {O:was} not {V:pp}[ {M}] by {A}[ {P}][ {T}].
    {T}, {O} {O:was} {V:pp}[ {M}] by {A}[ {P}]. => {T}, {O} {O:was} not {V:pp}[ {M}] by {A}[ {P}].
    It was {A} who {VP:past}[ {P}][ {T}].
    What {A} {V:past}[ {M}][ {P}][ {T}] {O:was} {O}.
""", weight=5, time="past")  # fmt: skip
family("progressive", "event", """
    {A} {A:is} {VP:ing}[ {P}]. => {A} {A:is} not {VP:ing}[ {P}].
    {O} {O:is} being {V:pp} by {A}[ {P}]. => {O} {O:is} not being {V:pp} by {A}[ {P}].
    {P}, {A} {A:is} {VP:ing}.
    At the moment, {A} {A:is} busy {VP:ing}[ {P}].
    You can see {A} {VP:ing}[ {P}].
""", weight=2.5, manner=False)  # fmt: skip
family("perfect", "event", """
    {A} {A:has} just {VP:pp}[ {P}]. => {A} {A:has} not {VP:pp} yet[ {P}].
    {O} {O:has} just been {V:pp}[ {M}] by {A}[ {P}]. => {O} {O:has} not been {V:pp}[ {M}] by {A} yet[ {P}].
    A moment ago, {A} {VP:past}[ {P}].
    It is only a minute since {A} {VP:past}[ {P}].
""", weight=1.5)  # fmt: skip
family("future", "event", """
    {A} will {VP:base}[ {P}][ {T}]. => {A} will not {VP:base}[ {P}][ {T}].
    {T}, {A} {A:is} going to {VP:base}[ {P}]. => {T}, {A} {A:is} not going to {VP:base}[ {P}].
    {O} will be {V:pp}[ {M}] by {A}[ {P}][ {T}]. => {O} will not be {V:pp}[ {M}] by {A}[ {P}][ {T}].
""", weight=1.5, time="future")  # fmt: skip
family("plan", "event", """
    {A} {A:+plan} to {VP:base}[ {P}][ {T}]. => {A} {A:does} not plan to {VP:base}[ {P}][ {T}].
    {A} {A:+intend} to {VP:base}[ {P}][ {T}]. => {A} {A:does} not intend to {VP:base}[ {P}][ {T}].
    {A:poss} plan is to {VP:base}[ {P}][ {T}].
    {T}, {A} {A:+mean} to {VP:base}[ {P}].
""", deliberate=True, time="future")  # fmt: skip
family("habit", "event", """
    {A} {VP:s}[ {P}] {T}. => {A} {A:does} not {VP:base}[ {P}] {T}.
    {T}, {A} {VP:s}[ {P}].
    {O} {O:is} {V:pp} by {A}[ {P}] {T}. => {O} {O:is} not {V:pp} by {A}[ {P}] {T}.
    {A} {A:is} in the habit of {VP:ing}[ {P}] {T}.
""", weight=1.5, time="habit", manner=False)  # fmt: skip
family("negation", "event", """
    {A} did not {VP:base}[ {P}][ {T}]. => {A} {VP:past}[ {P}][ {T}].
    {T}, {A} failed to {VP:base}[ {P}]. => {T}, {A} managed to {VP:base}[ {P}].
    {O} {O:was} not {V:pp}[ {M}] by {A}[ {P}][ {T}]. => {O} {O:was} {V:pp}[ {M}] by {A}[ {P}][ {T}].
    It is not true that {A} {VP:past}[ {P}][ {T}]. => It is true that {A} {VP:past}[ {P}][ {T}].
""", weight=1.5, time="past")  # fmt: skip
family("never", "event", """
    {A} {A:has} never {VP:pp}[ {P}]. => {A} {A:has} often {VP:pp}[ {P}].
    Never in {A:his} life {A:has} {A} {VP:pp}[ {P}].
    {O} {O:has} never been {V:pp} by {A}[ {P}]. => {O} {O:has} often been {V:pp} by {A}[ {P}].
    There was never a time when {A} {VP:past}[ {P}].
""", weight=0.8, manner=False)  # fmt: skip
family("yes_no", "event", """
    Did {A} {VP:base}[ {P}][ {T}]?
    Is it true that {A} {VP:past}[ {P}][ {T}]?
    {O:was} {O} {V:pp}[ {M}] by {A}[ {P}][ {T}]?
    Do you know whether {A} {VP:past}[ {P}][ {T}]?
""", weight=1.2, time="past")  # fmt: skip
family("who", "event", """
    Who {VP:past}[ {P}][ {T}]?
    Who was it that {VP:past}[ {P}][ {T}]?
    By whom {O:was} {O} {V:pp}[ {M}][ {P}][ {T}]?
    Can you tell me who {VP:past}[ {P}][ {T}]?
""", time="past", agent=False)  # fmt: skip
family("where", "event", """
    Where did {A} {VP:base}[ {T}]?
    In which place did {A} {VP:base}[ {T}]?
    Do you remember where {A} {VP:past}[ {T}]?
    Where {O:was} {O} {V:pp}[ {M}] by {A}[ {T}]?
""", time="past", place=False)  # fmt: skip
family("why", "event", """
    Why did {A} {VP:base}[ {P}][ {T}]?
    For what reason did {A} {VP:base}[ {P}][ {T}]?
    What made {A} {VP:base}[ {P}][ {T}]?
    Why {O:was} {O} {V:pp}[ {M}] by {A}[ {P}][ {T}]?
""", time="past")  # fmt: skip
family("request", "event", """
    Please {VP:base}[ {P}][ {T}]. => Please do not {VP:base}[ {P}][ {T}].
    Could you {VP:base}[ {P}][ {T}], please?
    Would you mind {VP:ing}[ {P}][ {T}]?
    I would be glad if you could {VP:base}[ {P}][ {T}].
""", deliberate=True, time="future", agent=False)  # fmt: skip
family("prohibition", "event", """
    Do not {VP:base}[ {P}]! => You may {VP:base}[ {P}]!
    You must not {VP:base}[ {P}]. => You must {VP:base}[ {P}].
    Nobody is allowed to {VP:base}[ {P}]. => Everybody is allowed to {VP:base}[ {P}].
    It is forbidden to {VP:base}[ {P}]. => It is permitted to {VP:base}[ {P}].
""", weight=0.8, agent=False, manner=False)  # fmt: skip
family("duty", "event", """
    {A} {A:+have} to {VP:base}[ {P}][ {T}]. => {A} {A:does} not have to {VP:base}[ {P}][ {T}].
    {A} must {VP:base}[ {P}][ {T}]. => {A} need not {VP:base}[ {P}][ {T}].
    It is {A:poss} job to {VP:base}[ {P}][ {T}]. => It is not {A:poss} job to {VP:base}[ {P}][ {T}].
    {O} must be {V:pp}[ {M}] by {A}[ {P}][ {T}].
""", deliberate=True, time="future", persons=True)  # fmt: skip
family("wish", "event", """
    {A} {A:+want} to {VP:base}[ {P}][ {T}]. => {A} {A:does} not want to {VP:base}[ {P}][ {T}].
    {A} would like to {VP:base}[ {P}][ {T}]. => {A} would not like to {VP:base}[ {P}][ {T}].
    It is {A:poss} wish to {VP:base}[ {P}][ {T}].
    {T}, {A} would love to {VP:base}[ {P}].
""", deliberate=True, time="future", persons=True)  # fmt: skip
family("ability", "event", """
    {A} can {VP:base}[ {P}]. => {A} cannot {VP:base}[ {P}].
    {A} {A:is} able to {VP:base}[ {P}]. => {A} {A:is} not able to {VP:base}[ {P}].
    {A} {A:+know} how to {VP:base}[ {P}]. => {A} {A:does} not know how to {VP:base}[ {P}].
    {VP:ing}[ {P}] is something {A} can do.
""", deliberate=True, persons=True, manner=False)  # fmt: skip
family("attempt", "event", """
    {A} tried to {VP:base}[ {P}][ {T}]. => {A} did not try to {VP:base}[ {P}][ {T}].
    {A} made an attempt to {VP:base}[ {P}][ {T}].
    An attempt was made by {A} to {VP:base}[ {P}][ {T}].
    {T}, {A} did {A:his} best to {VP:base}[ {P}].
""", deliberate=True, time="past", persons=True)  # fmt: skip
family("start", "event", """
    {A} began to {VP:base}[ {P}][ {T}]. => {A} did not begin to {VP:base}[ {P}][ {T}].
    {A} started {VP:ing}[ {P}][ {T}]. => {A} stopped {VP:ing}[ {P}][ {T}].
    {T}, {A} set about {VP:ing}[ {P}].
""", weight=0.8, time="past", manner=False)  # fmt: skip
family("stop", "event", """
    {A} {A:has} stopped {VP:ing}[ {P}]. => {A} {A:has} not stopped {VP:ing}[ {P}].
    {A} no longer {VP:s}[ {P}]. => {A} still {VP:s}[ {P}].
    {A} {A:has} given up {VP:ing}[ {P}]. => {A} {A:has} not given up {VP:ing}[ {P}].
""", weight=0.8, manner=False)  # fmt: skip
family("quote", "event", """
    "I {VP:past}[ {P}][ {T}]," said {A}. => "I did not {VP:base}[ {P}][ {T}]," said {A}.
    {A} said that {A:he} had {VP:pp}[ {P}][ {T}]. => {A} said that {A:he} had not {VP:pp}[ {P}][ {T}].
    In {A:his} own words, {A} {VP:past}[ {P}][ {T}].
    {A} explained: "I {VP:past}[ {P}][ {T}]." => {A} explained: "I never {VP:past}[ {P}][ {T}]."
""", weight=1.2, time="past", persons=True)  # fmt: skip
family("rumour", "event", """
    People say that {A} {VP:past}[ {P}][ {T}]. => People say that {A} never {VP:past}[ {P}][ {T}].
    There is a rumour that {A} {VP:past}[ {P}][ {T}].
    {A} {A:is} said to have {VP:pp}[ {P}][ {T}]. => {A} {A:is} not said to have {VP:pp}[ {P}][ {T}].
    Rumour has it that {O} {O:was} {V:pp}[ {M}] by {A}[ {P}][ {T}].
""", time="past")  # fmt: skip
family("surprise", "event", """
    To everyone's surprise, {A} {VP:past}[ {P}][ {T}]. => As everyone expected, {A} {VP:past}[ {P}][ {T}].
    It surprised everybody that {A} {VP:past}[ {P}][ {T}]. => It surprised nobody that {A} {VP:past}[ {P}][ {T}].
    Everyone was astonished when {O} {O:was} {V:pp}[ {M}] by {A}[ {P}][ {T}].
    Nobody had expected {A} to {VP:base}[ {P}][ {T}].
""", weight=0.8, time="past")  # fmt: skip
family("refusal", "event", """
    {A} refused to {VP:base}[ {P}][ {T}]. => {A} agreed to {VP:base}[ {P}][ {T}].
    {A} was not willing to {VP:base}[ {P}][ {T}]. => {A} was willing to {VP:base}[ {P}][ {T}].
    {T}, {A} would not {VP:base}[ {P}].
    {A} said no when asked to {VP:base}[ {P}][ {T}]. => {A} said yes when asked to {VP:base}[ {P}][ {T}].
""", deliberate=True, weight=0.8, time="past", persons=True, manner=False)  # fmt: skip
family("forgetting", "event", """
    {A} forgot to {VP:base}[ {P}][ {T}]. => {A} remembered to {VP:base}[ {P}][ {T}].
    {A} did not remember to {VP:base}[ {P}][ {T}]. => {A} did not forget to {VP:base}[ {P}][ {T}].
    It slipped {A:poss} mind to {VP:base}[ {P}][ {T}].
""", deliberate=True, weight=0.8, time="past", persons=True, manner=False)  # fmt: skip
family("regret", "event", """
    {A} regretted having {VP:pp}[ {P}]. => {A} did not regret having {VP:pp}[ {P}].
    {A} was sorry that {A:he} had {VP:pp}[ {P}]. => {A} was not sorry that {A:he} had {VP:pp}[ {P}].
    {A} wished {A:he} had not {VP:pp}[ {P}].
""", weight=0.6, persons=True, manner=False)  # fmt: skip
family("duration", "event", """
    It took {A} {D} to {VP:base}[ {P}]. => It did not take {A} {D} to {VP:base}[ {P}].
    {A} needed {D} to {VP:base}[ {P}]. => {A} did not need {D} to {VP:base}[ {P}].
    {A} spent {D} {VP:ing}[ {P}].
    {VP:ing}[ {P}] took {A} {D}.
""", slots="D", persons=True, manner=False, transitive=True)  # fmt: skip
family("mood", "event", """
    Although {A} was {J}, {A:he} {VP:past}[ {P}]. => Although {A} was not {J}, {A:he} {VP:past}[ {P}].
    {A} was {J} but {VP:past} all the same[ {P}].
    In spite of being {J}, {A} {VP:past}[ {P}]. => In spite of not being {J}, {A} {VP:past}[ {P}].
    {A} {VP:past}[ {P}] even though {A:he} was {J}.
""", slots="J", persons=True, manner=False)  # fmt: skip
family("agentless", "event", """
    {O} {O:was} {V:pp}[ {M}][ {P}][ {T}]. => {O} {O:was} not {V:pp}[ {M}][ {P}][ {T}].
    Somebody {VP:past}[ {P}][ {T}]. => Nobody {VP:past}[ {P}][ {T}].
    {T}, someone {VP:past}[ {P}]. => {T}, no one {VP:past}[ {P}].
""", weight=1.2, time="past", agent=False, transitive=True)  # fmt: skip
family("need", "event", """
    {O} {O:+need} to be {V:pp}[ {P}][ {T}]. => {O} {O:does} not need to be {V:pp}[ {P}][ {T}].
    Somebody has to {VP:base}[ {P}][ {T}]. => Nobody has to {VP:base}[ {P}][ {T}].
    It is necessary to {VP:base}[ {P}][ {T}]. => It is not necessary to {VP:base}[ {P}][ {T}].
""", deliberate=True, time="future", agent=False, transitive=True, manner=False)  # fmt: skip
# ------------------------------------------------------------------ events with a second person or
# a second event
family("perception", "event", """
    {B} saw {A} {VP:base}[ {P}][ {T}]. => {B} did not see {A} {VP:base}[ {P}][ {T}].
    {A} {A:was} seen {VP:ing}[ {P}][ {T}] by {B}.
    {B} watched how {A} {VP:past}[ {P}][ {T}].
    {T}, {B} noticed {A} {VP:ing}[ {P}].
""", slots="B", time="past", manner=False, swap="AB")  # fmt: skip
family("order", "event", """
    {B} told {A} to {VP:base}[ {P}]. => {B} told {A} not to {VP:base}[ {P}].
    {A} {A:was} ordered by {B} to {VP:base}[ {P}]. => {A} {A:was} ordered by {B} not to {VP:base}[ {P}].
    "{VP:base}[ {P}]!" said {B} to {A}. => "Do not {VP:base}[ {P}]!" said {B} to {A}.
    {B} gave {A} the order to {VP:base}[ {P}].
""", deliberate=True, slots="B", persons=True, manner=False, swap="AB")  # fmt: skip
family("help", "event", """
    {B} helped {A} to {VP:base}[ {P}][ {T}]. => {B} did not help {A} to {VP:base}[ {P}][ {T}].
    With the help of {B}, {A} {VP:past}[ {P}][ {T}]. => Without the help of {B}, {A} {VP:past}[ {P}][ {T}].
    {B} gave {A} a hand with {VP:ing}[ {P}][ {T}].
""", deliberate=True, slots="B", time="past", persons=True, manner=False, swap="AB")  # fmt: skip
family("permission", "event", """
    {B} allowed {A} to {VP:base}[ {P}]. => {B} did not allow {A} to {VP:base}[ {P}].
    {B} let {A} {VP:base}[ {P}]. => {B} did not let {A} {VP:base}[ {P}].
    {A} had {B:poss} permission to {VP:base}[ {P}].
""", deliberate=True, slots="B", weight=0.8, persons=True, manner=False, swap="AB")  # fmt: skip
family("thanks", "event", """
    {A} thanked {B} for {VP:ing}[ {P}]. => {A} did not thank {B} for {VP:ing}[ {P}].
    {A} was grateful to {B} for {VP:ing}[ {P}]. => {A} was not grateful to {B} for {VP:ing}[ {P}].
    {B} {VP:past}[ {P}], and {A} thanked {B:him} for it.
""", deliberate=True, slots="B", weight=0.8, persons=True, manner=False, swap="AB")  # fmt: skip
family("sequence", "event", """
    After {VP:ing}, {A} {W:past} {Q}[ {P}].
    {A} first {VP:past} and then {W:past} {Q}[ {P}].
    Before {W:ing} {Q}, {A} {VP:past}[ {P}].
    {A} {W:past} {Q}[ {P}] as soon as {A:he} had {VP:pp}.
""", slots="WQ", weight=1.5, manner=False, persons=True, swap="VW")  # fmt: skip
family("meanwhile", "event", """
    While {A} was {VP:ing}, {B} was {W:ing} {Q}[ {P}]. => While {A} was {VP:ing}, {B} was not {W:ing} {Q}[ {P}].
    {B} {W:past} {Q} as {A} {VP:past}[ {P}].
    {A} {VP:past}[ {P}]; meanwhile, {B} {W:past} {Q}.
    {B} was {W:ing} {Q} at the same time as {A} was {VP:ing}[ {P}].
""", slots="BWQ", weight=1.5, manner=False, persons=True, swap="AB")  # fmt: skip
family("instead", "event", """
    Instead of {VP:ing}, {A} {W:past} {Q}[ {P}].
    {A} did not {VP:base} but {W:past} {Q}[ {P}].
    Rather than {VP:base}, {A} {W:past} {Q}[ {P}].
    {A} was supposed to {VP:base}; {A:he} {W:past} {Q} instead[ {P}].
""", slots="WQ", weight=0.8, manner=False, persons=True, swap="VW")  # fmt: skip
# ------------------------------------------------------------------ people and people
family("person_past", "person", """
    {A} {VP:past}[ {T}]. => {A} did not {VP:base}[ {T}].
    {O} {O:was} {V:pp} by {A}[ {M}][ {T}]. => {O} {O:was} not {V:pp} by {A}[ {M}][ {T}].
    {T}, {O} {O:was} {V:pp} by {A}[ {M}]. => {T}, {O} {O:was} not {V:pp} by {A}[ {M}].
    The person whom {A} {V:past}[ {M}][ {T}] was {O}.
    It was {A} who {VP:past}[ {T}].
""", weight=3, swap="AO")  # fmt: skip
family("gift", "gift", """
    {A} gave {B} {O}[ {T}]. => {A} did not give {B} {O}[ {T}].
    {B} received {O} from {A}[ {T}]. => {B} did not receive {O} from {A}[ {T}].
    {B} {B:was} given {O} by {A}[ {T}].
    {T}, {A} handed {O} to {B}. => {T}, {A} did not hand {O} to {B}.
""", weight=2, swap="AB")  # fmt: skip
family("loan", "gift", """
    {A} lent {B} {O}[ {T}]. => {A} did not lend {B} {O}[ {T}].
    {B} borrowed {O} from {A}[ {T}]. => {B} did not borrow {O} from {A}[ {T}].
    {A} let {B} have {O} for a while[ {T}].
""", swap="AB")  # fmt: skip
family("sale", "sale", """
    {A} sold {O} to {B} for {N} euros[ {T}]. => {A} did not sell {O} to {B} for {N} euros[ {T}].
    {B} bought {O} from {A} for {N} euros[ {T}]. => {B} did not buy {O} from {A} for {N} euros[ {T}].
    {B} paid {A} {N} euros for {O}[ {T}].
    {T}, {O} changed hands from {A} to {B} for {N} euros.
""", weight=2, swap="AB")  # fmt: skip
family("family_age", "age", """
    {A} is {N} years older than {B}. => {A} is not {N} years older than {B}.
    {B} is {N} years younger than {A}.
    {A} was born {N} years before {B}. => {A} was not born {N} years before {B}.
    There are {N} years between {A} and the younger {B}.
""", weight=0.7, swap="AB")  # fmt: skip
# ------------------------------------------------------------------ definitions, comparisons,
# states
family("definition", "definition", """
    A {X} is a {G} that {F}.
    A {G} that {F} is called a {X}.
    The word "{X}" means a {G} that {F}.
    If a {G} {F}, we speak of a {X}.
    By a {X} we understand a {G} that {F}.
""", weight=1.2)  # fmt: skip
family("comparison", "order", """
    {A} is {C} than {B}. => {A} is not {C} than {B}.
    {B} is {K} than {A}. => {B} is not {K} than {A}.
    Compared with {B}, {A} is {C}.
    {A} and {B} differ: the former is {C}.
    Nobody doubts that {B} is {K} than {A}.
""", alternates="CK", weight=0.8, swap="AB")  # fmt: skip
family("state", "state", """
    The {X}[ {P}] is {J}. => The {X}[ {P}] is not {J}.
    How {J} the {X}[ {P}] is!
    Everyone finds the {X}[ {P}] {J}. => No one finds the {X}[ {P}] {J}.
    The {X}[ {P}] is anything but {K}.
    It cannot be said that the {X}[ {P}] is {K}.
""", alternates="JK", weight=1)  # fmt: skip
family("existence", "thing", """
    There is {X} {P}. => There is no {Y} {P}.
    {P} you can find {X}. => {P} you cannot find any {Y}.
    {P}, there is {X}.
    {X} can be seen {P}. => No {Y} can be seen {P}.
""", alternates="XY", weight=0.8)  # fmt: skip
family("preference", "preference", """
    {A} {A:+prefer} {X} to {Y}. => {A} {A:does} not prefer {X} to {Y}.
    {A} {A:+like} {X} more than {Y}. => {A} {A:does} not like {X} more than {Y}.
    Given the choice between {Y} and {X}, {A} always {A:+take} {X}.
    {Y}? {A} would rather have {X}.
""", weight=1.2, swap="XY")  # fmt: skip
family("feeling", "feeling", """
    {A} was {J} because {R}. => {A} was not {J} although {R}.
    {R}, so {A} was {J}.
    The reason why {A} was {J} was {S}.
    {S} made {A} {J}. => {S} did not make {A} {J}.
""", alternates="RS", weight=1)  # fmt: skip
family("too", "too", """
    {X} is too {J} to be {Z}. => {X} is not too {J} to be {Z}.
    {X} is so {J} that nobody can {Y}.
    {X} is too {J}: nobody can {Y}.
""", alternates="YZ", weight=0.5)  # fmt: skip
family("instrument", "instrument", """
    {X} is used to {Y}. => {X} is not used to {Y}.
    People use {X} to {Y}. => People do not use {X} to {Y}.
    You need {X} if you want to {Y}. => You need no {X} if you want to {Y}.
    {X} helps you to {Y}.
""", weight=0.4)  # fmt: skip
family("advice", "advice", """
    {A} should {X}[ {T}]. => {A} should not {X}[ {T}].
    It would be wise of {A} to {X}[ {T}]. => It would be unwise of {A} to {X}[ {T}].
    My advice to {A}[ {T}]: {X}.
    {A} had better {X}[ {T}]. => {A} had better not {X}[ {T}].
    If I were {A}, I would {X}[ {T}].
""", weight=1)  # fmt: skip
family("opinion", "opinion", """
    {A} thinks that {X} is {J}. => {A} does not think that {X} is {J}.
    In {A:poss} opinion, {X} is {J}.
    {A} finds {X} {J}.
    {X} is {J}, if you ask {A}.
""", weight=0.9)  # fmt: skip
# ------------------------------------------------------------------ news
family("takeover", "company", """
    {A} has bought {B} for {N} million dollars. => {A} has not bought {B} for {N} million dollars.
    {B} has been taken over by {A} for {N} million dollars.
    For {N} million dollars, {B} now belongs to {A}.
    {A} paid {N} million dollars for its rival {B}.
""", weight=1, swap="AB")  # fmt: skip
family("jobs", "company", """
    {A} will cut {N} hundred jobs {P}[ {T}]. => {A} will not cut {N} hundred jobs {P}[ {T}].
    {N} hundred workers of {A} {P} will lose their jobs[ {T}].
    {T}, {N} hundred employees {P} will be dismissed by {A}.
    {A} is laying off {N} hundred people {P}[ {T}].
""", weight=1)  # fmt: skip
family("result", "team", """
    {A} beat {B} {S}[ {P}][ {T}]. => {A} did not beat {B} {S}[ {P}][ {T}].
    {B} lost {S} to {A}[ {P}][ {T}]. => {B} did not lose {S} to {A}[ {P}][ {T}].
    {T}, {A} won {S} against {B}[ {P}].
    {B} suffered a {S} defeat by {A}[ {P}][ {T}].
""", weight=1.5, swap="AB")  # fmt: skip
family("price", "commodity", """
    The price of {X} rose by {N} percent {T}. => The price of {X} did not rise by {N} percent {T}.
    {T}, {X} became {N} percent more expensive.
    Buyers of {X} had to pay {N} percent more {T}.
    An increase of {N} percent in the price of {X} was recorded {T}.
""", weight=0.8)  # fmt: skip
family("disaster", "disaster", """
    {X} {Y} {P} {T}. => It is not true that {X} {Y} {P} {T}.
    {T}, {X} {Y} {P}.
    News has come in that {X} {Y} {P} {T}.
    It has been reported that {T}, {X} {Y} {P}.
""", weight=0.8)  # fmt: skip
family("mayor", "mayor", """
    {A} was elected mayor of {P} {T}. => {A} was not elected mayor of {P} {T}.
    The voters of {P} made {A} their mayor {T}.
    {T}, {A} won the election for mayor in {P}. => {T}, {A} lost the election for mayor in {P}.
    The new mayor of {P}, elected {T}, is {A}.
""", weight=0.8)  # fmt: skip
family("journey", "journey", """
    The {X} from {A} to {B} takes {N} hours. => The {X} from {A} to {B} does not take {N} hours.
    You need {N} hours to get from {A} to {B} by {X}.
    It is {N} hours by {X} from {A} to {B}. => It is not {N} hours by {X} from {A} to {B}.
    By {X} you can reach {B} from {A} in {N} hours.
""", weight=1, swap="AB")  # fmt: skip
family("forecast", "forecast", """
    {X} is expected in {P} {T}. => {X} is not expected in {P} {T}.
    The forecast for {P} {T} is {X}.
    People in {P} will have {X} {T}. => People in {P} will have no {X} {T}.
    {T}, {P} must prepare for {X}.
""", weight=0.8)  # fmt: skip
family("cause", "cause", """
    {X} caused {Y}. => {X} did not cause {Y}.
    {Y} was the result of {X}. => {Y} was not the result of {X}.
    {X} led to {Y}. => {X} did not lead to {Y}.
    Experts put {Y} down to {X}.
    {X} is to blame for {Y}. => {X} is not to blame for {Y}.
""", weight=0.4, swap="XY")  # fmt: skip
family("condition", "condition", """
    If {X}, {Z}. => Even if {X}, it is not true that {Z}.
    Unless {Y}, {Z}.
    {Z} if {X}.
    {Z} unless {Y}.
    Should it happen that {X}, {Z}.
""", alternates="XY", weight=0.4)  # fmt: skip

PATTERNS: dict[str, Pattern] = {
    p.name: p for f in FAMILIES.values() if f.weight for p in f.patterns
}
