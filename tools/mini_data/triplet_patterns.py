"""Families of patterns that make the triplets and nothing else.

The syntax is that of `patterns.py`. Every pattern names the two people A and B, whose exchange
changes the meaning. A family's source says what else it speaks of: `act` (V, O: an action), `thing`
(O), `count` (N, S: so many of something, or N alone), `state` (X, J: something and how it was).
"""

from __future__ import annotations

from tools.mini_data.patterns import Family, patterns_of

LINES = """
@promise act
    {A} promised {B} to {VP:base}. => {A} did not promise {B} to {VP:base}.
    {A} gave {B} {A:his} word that {A:he} would {VP:base}. => {A} did not give {B} {A:his} word that {A:he} would {VP:base}.
    {B} {B:has} {A:poss} solemn promise to {VP:base}.
@persuasion act
    {A} talked {B} into {VP:ing}. => {A} could not talk {B} into {VP:ing}.
    {A} won {B} over to the idea of {VP:ing}. => {A} did not win {B} over to the idea of {VP:ing}.
    {B} gave in to {A} and agreed to {VP:base}.
@obstacle act
    {A} kept {B} from {VP:ing}. => {A} did not keep {B} from {VP:ing}.
    {A} made it impossible for {B} to {VP:base}. => {A} made it possible for {B} to {VP:base}.
    {B} was about to {VP:base}, but {A} put a stop to it.
@lesson act
    {A} showed {B} how to {VP:base}. => {A} never showed {B} how to {VP:base}.
    {B} learnt from {A} how to {VP:base}. => {B} did not learn from {A} how to {VP:base}.
    It was from {A} that {B} picked up the art of {VP:ing}.
@rivalry act
    {A} was quicker than {B} at {VP:ing}. => {A} was no quicker than {B} at {VP:ing}.
    {B} could not keep up with {A} when it came to {VP:ing}. => {B} could keep up with {A} when it came to {VP:ing}.
    At {VP:ing}, {A} left {B} far behind.
@suspicion act
    {A} suspects {B} of having secretly {VP:pp}. => {A} does not suspect {B} of having secretly {VP:pp}.
    {A:poss} suspicion is that {B} secretly {VP:past}. => It is not {A:poss} suspicion that {B} secretly {VP:past}.
    If {A} has guessed right, it was {B} who secretly {VP:past}.
@apology act
    {A} apologised to {B} for having forgotten to {VP:base}. => {A} did not apologise to {B} for having forgotten to {VP:base}.
    {A} told {B} how sorry {A:he} was to have forgotten to {VP:base}. => {A} did not tell {B} how sorry {A:he} was to have forgotten to {VP:base}.
    "Forgive me, I forgot to {VP:base}," {A} said to {B}.
@reminder act
    {A} reminded {B} to {VP:base}. => {A} did not remind {B} to {VP:base}.
    {B} was reminded by {A} that it was time to {VP:base}. => {B} was not reminded by {A} that it was time to {VP:base}.
    "Remember to {VP:base}," {A} called out to {B}.
@deputy act
    {A} {VP:past} on behalf of {B}. => {A} did not {VP:base} on behalf of {B}.
    Acting for {B}, {A} {VP:past}. => Acting for {B}, {A} did not {VP:base}.
    {B} had {A} as a stand-in, who {VP:past}.
@bet act N
    {A} bet {B} {N} euros that nobody would {VP:base}. => {A} did not bet {B} {N} euros that nobody would {VP:base}.
    {A} must pay {B} {N} euros if anybody {VP:s}. => {A} need not pay {B} {N} euros if anybody {VP:s}.
    {B} will win {N} euros from {A} as soon as anyone {VP:s}.
@dream act
    {A} dreamt that {B} was {VP:ing}. => {A} did not dream that {B} was {VP:ing}.
    In {A:poss} dream, {B} was {VP:ing}. => In {A:poss} dream, {B} was not {VP:ing}.
    While {A} lay asleep, {A:he} had a vision of {B} {VP:ing}.
@trust act
    {A} put {B} in charge of {VP:ing}. => {A} did not put {B} in charge of {VP:ing}.
    {A} left it to {B} to {VP:base}. => {A} did not leave it to {B} to {VP:base}.
    {B} was entrusted by {A} with the task of {VP:ing}.
@annoyance act
    {A} was annoyed with {B} for {VP:ing} without asking. => {A} was not annoyed with {B} for {VP:ing} without asking.
    It bothered {A} that {B} had {VP:pp} without asking. => It did not bother {A} that {B} had {VP:pp} without asking.
    Much to {A:poss} annoyance, {B} {VP:past} without asking.
@reward act N
    {A} rewarded {B} with {N} coins for {VP:ing}. => {A} did not reward {B} with {N} coins for {VP:ing}.
    {B} earned {N} coins from {A} by {VP:ing}. => {B} did not earn {N} coins from {A} by {VP:ing}.
    For {VP:ing}, {B} got {N} coins out of {A:poss} purse.
@legacy thing
    {A} inherited {O} from {B}. => {A} did not inherit {O} from {B}.
    {B} left {O} to {A} in {B:his} will. => {B} did not leave {O} to {A} in {B:his} will.
    {O} came to {A} as a legacy from {B}.
@secret thing
    {A} hid {O} from {B}. => {A} did not hide {O} from {B}.
    {A} made sure that {B} would not find {O}. => {A} made sure that {B} would find {O}.
    {O} {O:was} kept out of {B:poss} sight by {A}.
@bidding thing N
    {A} outbid {B} for {O} by {N} euros. => {A} did not outbid {B} for {O} by {N} euros.
    {B} lost the bidding for {O} to {A} by {N} euros. => {B} did not lose the bidding for {O} to {A} by {N} euros.
    {A:poss} offer for {O} was {N} euros above {B:poss}.
@choice thing
    {A} advised {B} to choose {O}. => {A} did not advise {B} to choose {O}.
    {A} suggested to {B} that {O} would be the best choice. => {A} did not suggest to {B} that {O} would be the best choice.
    {A:poss} tip for {B} was to go for {O}.
@portrait thing
    {A} drew {B} holding {O}. => {A} did not draw {B} holding {O}.
    A sketch by {A} shows {B} with {O} in {B:his} hands. => No sketch by {A} shows {B} with {O} in {B:his} hands.
    In {A:poss} drawing, {B} is clutching {O}.
@pardon thing
    {A} forgave {B} for losing {O}. => {A} did not forgive {B} for losing {O}.
    {A} no longer held it against {B} that {O} had gone missing. => {A} still held it against {B} that {O} had gone missing.
    {B} was pardoned by {A} for the loss of {O}.
@errand thing
    {A} sent {B} to fetch {O}. => {A} did not send {B} to fetch {O}.
    {B} was sent off by {A} to get {O}. => {B} was not sent off by {A} to get {O}.
    {A} had {B} run and bring {O}.
@debt count S
    {A} {A:+owe} {B} {N} {S}. => {A} {A:does} not owe {B} {N} {S}.
    {A} {A:has} yet to give {N} {S} back to {B}. => {A} {A:does} not have to give {N} {S} back to {B}.
    {B} {B:is} still waiting for {A} to return {N} {S}.
@lead count S
    {A} {A:has} {N} more {S} than {B}. => {A} {A:does} not have {N} more {S} than {B}.
    {B} {B:has} {N} fewer {S} than {A}. => {B} {B:does} not have {N} fewer {S} than {A}.
    {B} would need another {N} {S} to catch up with {A}.
@delay count P
    {A} waited {N} hours for {B} {P}. => {A} did not wait {N} hours for {B} {P}.
    {B} kept {A} waiting {P} for {N} hours. => {B} did not keep {A} waiting {P} for {N} hours.
    {N} hours went by {P} before {B} finally joined {A}.
@queue count P
    {A} stood {N} steps behind {B} {P}. => {A} did not stand {N} steps behind {B} {P}.
    {B} was {N} steps ahead of {A} {P}. => {B} was not {N} steps ahead of {A} {P}.
    {N} steps in front of {A}, {B} was standing {P}.
@service count
    {A} joined the team {N} weeks before {B}. => {A} did not join the team {N} weeks before {B}.
    {B} joined the team {N} weeks after {A}. => {B} did not join the team {N} weeks after {A}.
    When {B} joined the team, {A} had been part of it for {N} weeks.
@message state
    {A} let {B} know that {X} was {J}. => {A} did not let {B} know that {X} was {J}.
    {B} heard from {A} that {X} was {J}. => {B} did not hear from {A} that {X} was {J}.
    The news that {X} was {J} reached {B} through {A}.
@inquiry state
    {A} asked {B} whether {X} was {J}. => {A} did not ask {B} whether {X} was {J}.
    {A} wanted to hear from {B} if {X} was {J}. => {A} did not want to hear from {B} if {X} was {J}.
    {A:poss} question to {B} was whether {X} was {J}.
@doubt state
    {A} doubted {B:poss} claim that {X} was {J}. => {A} did not doubt {B:poss} claim that {X} was {J}.
    {A} did not believe {B}, who insisted that {X} was {J}. => {A} believed {B}, who insisted that {X} was {J}.
    {B} claimed that {X} was {J}, but {A} had {A:his} doubts.
"""


def _families() -> dict[str, Family]:
    found = {}
    for block in LINES.split("@")[1:]:
        head, _, lines = block.partition("\n")
        name, source, *slots = head.split()
        found[name] = Family(name, source, patterns_of(name, lines), slots="".join(slots))
    return found


TRIPLET_FAMILIES = _families()
