"""Hand-annotated sentences for the rules of SDA: each token is word/tag/label/head[/lemma], heads
from 1, root 0.

Universal Dependencies first; where spaCy's English labels differ, the same sentence stands in
`CLEAR` too.
"""

from lib.augment.sda import Tree

UNIVERSAL = {
    "He travelled widely in Europe.": (
        "He/PRP/nsubj/2 travelled/VBD/root/0/travel widely/RB/advmod/2 in/IN/case/5 "
        "Europe/NNP/obl/2 ././punct/2"
    ),
    "She has a dog.": "She/PRP/nsubj/2 has/VBZ/root/0/have a/DT/det/4 dog/NN/obj/2 ././punct/2",
    "The book was written by a woman.": (
        "The/DT/det/2 book/NN/nsubj:pass/4 was/VBD/aux:pass/4/be "
        "written/VBN/root/0/write by/IN/case/7 a/DT/det/7 woman/NN/obl/4 ././punct/4"
    ),
    "Are you ready?": "Are/VBP/cop/3/be you/PRP/nsubj/3 ready/JJ/root/0 ?/./punct/3",
    "Did they win the game?": (
        "Did/VBD/aux/3/do they/PRP/nsubj/3 win/VB/root/0 the/DT/det/5 game/NN/obj/3 ?/./punct/3"
    ),
    "Who opened the door?": (
        "Who/WP/nsubj/2 opened/VBD/root/0/open the/DT/det/4 door/NN/obj/2 ?/./punct/2"
    ),
    "Close the door.": "Close/VB/root/0 the/DT/det/3 door/NN/obj/1 ././punct/1",
    "It doesn't rain.": (
        "It/PRP/expl/4 does/VBZ/aux/4/do n't/RB/advmod/4/not rain/VB/root/0 ././punct/4"
    ),
    "He is not tired.": (
        "He/PRP/nsubj/4 is/VBZ/cop/4/be not/RB/advmod/4 tired/JJ/root/0 ././punct/4"
    ),
    "I can't swim.": "I/PRP/nsubj/4 ca/MD/aux/4/can n't/RB/advmod/4/not swim/VB/root/0 ././punct/4",
    "We won't go home.": (
        "We/PRP/nsubj/4 wo/MD/aux/4/will n't/RB/advmod/4/not go/VB/root/0 home/RB/advmod/4 "
        "././punct/4"
    ),
    "They will leave tomorrow.": (
        "They/PRP/nsubj/3 will/MD/aux/3 leave/VB/root/0 tomorrow/NN/obl/3 ././punct/3"
    ),
    "He has seen the film.": (
        "He/PRP/nsubj/3 has/VBZ/aux/3/have seen/VBN/root/0/see the/DT/det/5 film/NN/obj/3 "
        "././punct/3"
    ),
    "If it rains, we stay inside.": (
        "If/IN/mark/3 it/PRP/expl/3 rains/VBZ/advcl/6/rain ,/,/punct/3 we/PRP/nsubj/6 "
        "stay/VBP/root/0 inside/RB/advmod/6 ././punct/6"
    ),
    "When the bell rang the children ran home.": (
        "When/WRB/advmod/4 the/DT/det/3 bell/NN/nsubj/4 rang/VBD/advcl/7/ring the/DT/det/6"
        " children/NNS/nsubj/7/child ran/VBD/root/0/run home/RB/advmod/7 ././punct/7"
    ),
    "She said that he lied.": (
        "She/PRP/nsubj/2 said/VBD/root/0/say that/IN/mark/5 he/PRP/nsubj/5 "
        "lied/VBD/ccomp/2/lie ././punct/2"
    ),
    "The man who called is my uncle.": (
        "The/DT/det/2 man/NN/nsubj/7 who/WP/nsubj/4 called/VBD/acl:relcl/2/call "
        "is/VBZ/cop/7/be my/PRP$/nmod:poss/7 uncle/NN/root/0 ././punct/7"
    ),
    "Nobody knows the answer.": (
        "Nobody/NN/nsubj/2 knows/VBZ/root/0/know the/DT/det/4 answer/NN/obj/2 ././punct/2"
    ),
    "There are no rules.": (
        "There/EX/expl/2 are/VBP/root/0/be no/DT/det/4 rules/NNS/nsubj/2/rule ././punct/2"
    ),
    "He's a teacher.": "He/PRP/nsubj/4 's/VBZ/cop/4/be a/DT/det/4 teacher/NN/root/0 ././punct/4",
    '"I agree," she said.': (
        "\"/``/punct/3 I/PRP/nsubj/3 agree/VBP/ccomp/7 ,/,/punct/3 \"/''/punct/3 "
        "she/PRP/nsubj/7 said/VBD/root/0/say ././punct/7"
    ),
    "The end of the story": "The/DT/det/2 end/NN/root/0 of/IN/case/5 the/DT/det/5 story/NN/nmod/2",
    "Dogs bark and cats sleep.": (
        "Dogs/NNS/nsubj/2/dog bark/VBP/root/0 and/CC/cc/5 cats/NNS/nsubj/5/cat "
        "sleep/VBP/conj/2 ././punct/2"
    ),
    "Men are playing football.": (
        "Men/NNS/nsubj/3/man are/VBP/aux/3/be playing/VBG/root/0/play football/NN/obj/3 ././punct/3"
    ),
    "He never eats meat.": (
        "He/PRP/nsubj/3 never/RB/advmod/3 eats/VBZ/root/0/eat meat/NN/obj/3 ././punct/3"
    ),
    "Do not touch it!": "Do/VB/aux/3 not/RB/advmod/3 touch/VB/root/0 it/PRP/obj/3 !/./punct/3",
    "I don't like apples.": (
        "I/PRP/nsubj/4 do/VBP/aux/4 n't/RB/advmod/4/not like/VB/root/0 apples/NNS/obj/4/apple "
        "././punct/4"
    ),
    "She went home early.": (
        "She/PRP/nsubj/2 went/VBD/root/0/go home/RB/advmod/2 early/RB/advmod/2 ././punct/2"
    ),
    "Paris is the capital of France.": (
        "Paris/NNP/nsubj/4 is/VBZ/cop/4/be the/DT/det/4 capital/NN/root/0 "
        "of/IN/case/6 France/NNP/nmod/4 ././punct/4"
    ),
    "Some people buy old books.": (
        "Some/DT/det/2 people/NNS/nsubj/3 buy/VBP/root/0 old/JJ/amod/5 "
        "books/NNS/obj/3/book ././punct/3"
    ),
    "Has he left?": "Has/VBZ/aux/3/have he/PRP/nsubj/3 left/VBN/root/0/leave ?/./punct/3",
    "The car (which he sold) was red.": (
        "The/DT/det/2 car/NN/nsubj/9 (/-LRB-/punct/6 which/WDT/obj/6 he/PRP/nsubj/6 "
        "sold/VBD/acl:relcl/2/sell )/-RRB-/punct/6 was/VBD/cop/9/be red/JJ/root/0 ././punct/9"
    ),
    "it works .": "it/PRP/nsubj/2 works/VBZ/root/0/work ././punct/2",
    "Children buy apples and pears": (
        "Children/NNS/nsubj/2/child buy/VBP/root/0 apples/NNS/obj/2/apple and/CC/cc/5 "
        "pears/NNS/conj/3/pear"
    ),
    "Why is the sky blue?": (
        "Why/WRB/advmod/5 is/VBZ/cop/5/be the/DT/det/4 sky/NN/nsubj/5 blue/JJ/root/0 ?/./punct/5"
    ),
    "I'd rather stay here, but she left.": (
        "I/PRP/nsubj/4 'd/MD/aux/4/would rather/RB/advmod/4 stay/VB/root/0 "
        "here/RB/advmod/4 ,/,/punct/9 but/CC/cc/9 she/PRP/nsubj/9 left/VBD/conj/4/leave ././punct/4"
    ),
}
# Constructions in which a simpler rule goes wrong.
HARD = {
    "When he won a prize, he left the city.": (
        "When/WRB/advmod/3 he/PRP/nsubj/3 won/VBD/advcl/8/win a/DT/det/5 prize/NN/obj/3 ,/,/punct/3"
        " he/PRP/nsubj/8 left/VBD/root/0/leave the/DT/det/10 city/NN/obj/8 ././punct/8"
    ),
    "He sold his books.": (
        "He/PRP/nsubj/2 sold/VBD/root/0/sell his/PRP$/nmod:poss/4 books/NNS/obj/2/book ././punct/2"
    ),
    "However, he scored twelve goals.": (
        "However/RB/advmod/4 ,/,/punct/4 he/PRP/nsubj/4 scored/VBD/root/0/scor "
        "twelve/CD/nummod/6 goals/NNS/obj/4/goal ././punct/4"
    ),
    "It was, however, late.": (
        "It/PRP/nsubj/6 was/VBD/cop/6/be ,/,/punct/6 however/RB/advmod/6 ,/,/punct/6 "
        "late/JJ/root/0 ././punct/6"
    ),
    "Who am I?": "Who/WP/root/0 am/VBP/cop/1/be I/PRP/nsubj/1 ?/./punct/1",
    "Among them were three women.": (
        "Among/IN/prep/3 them/PRP/pobj/1 were/VBD/ROOT/0/be three/CD/nummod/5 "
        "women/NNS/nsubj/3/woman ././punct/3"
    ),
    '"I agree," said John.': (
        "\"/``/punct/3 I/PRP/nsubj/3 agree/VBP/ccomp/6 ,/,/punct/3 \"/''/punct/3 "
        "said/VBD/root/0/say John/NNP/nsubj/6 ././punct/6"
    ),
    "It peaked at No. 1.": (
        "It/PRP/nsubj/2 peaked/VBD/root/0/peak at/IN/case/4 No/NN/obl/2 ././punct/4 1/CD/nummod/4 "
        "././punct/2"
    ),
    "He did not win any medals.": (
        "He/PRP/nsubj/4 did/VBD/aux/4/do not/RB/advmod/4 win/VB/root/0 any/DT/det/6 "
        "medals/NNS/obj/4/medal ././punct/4"
    ),
    "No one came.": "No/DT/det/2 one/NN/nsubj/3 came/VBD/root/0/come ././punct/3",
    "It no longer exists.": (
        "It/PRP/nsubj/4 no/RB/advmod/3 longer/RB/advmod/4 exists/VBZ/root/0/exist ././punct/4"
    ),
    "German troops were there.": (
        "German/JJ/amod/2 troops/NNS/nsubj/4/troop were/VBD/cop/4/be there/RB/root/0 ././punct/4"
    ),
    "12 people died.": "12/CD/nummod/2 people/NNS/nsubj/3 died/VBD/root/0/die ././punct/3",
    "He moved to Paris and became a painter.": (
        "He/PRP/nsubj/2 moved/VBD/root/0/move to/IN/case/4 Paris/NNP/obl/2 "
        "and/CC/cc/6 became/VBD/conj/2/become a/DT/det/8 painter/NN/obj/6 ././punct/2"
    ),
    "He used to live here.": (
        "He/PRP/nsubj/2 used/VBD/root/0/use to/TO/mark/4 live/VB/xcomp/2 here/RB/advmod/4 "
        "././punct/2"
    ),
    "He rewrote it.": "He/PRP/nsubj/2 rewrote/VBP/root/0/rewrote it/PRP/obj/2 ././punct/2",
}
# Two clauses, two negatives, words that only look negative.
CLAUSES = {
    "The tower was old and the bridge was closed.": (
        "The/DT/det/2 tower/NN/nsubj/4 was/VBD/cop/4/be old/JJ/root/0 and/CC/cc/9 the/DT/det/7"
        " bridge/NN/nsubj:pass/9 was/VBD/aux:pass/9/be closed/VBN/conj/4/close ././punct/4"
    ),
    "She said that he was there.": (
        "She/PRP/nsubj/2 said/VBD/root/0/say that/IN/mark/6 he/PRP/nsubj/6 was/VBD/cop/6/be "
        "there/RB/ccomp/2 ././punct/2"
    ),
    "She said that he was not there.": (
        "She/PRP/nsubj/2 said/VBD/root/0/say that/IN/mark/7 he/PRP/nsubj/7 "
        "was/VBD/cop/7/be not/RB/advmod/7 there/RB/ccomp/2 ././punct/2"
    ),
    "She said that it had no roof.": (
        "She/PRP/nsubj/2 said/VBD/root/0/say that/IN/mark/5 it/PRP/nsubj/5 "
        "had/VBD/ccomp/2/have no/DT/det/7 roof/NN/obj/5 ././punct/2"
    ),
    "If it has rained, he can stay and she must go.": (
        "If/IN/mark/4 it/PRP/expl/4 has/VBZ/aux/4/have rained/VBN/advcl/8/rain ,/,/punct/4"
        " he/PRP/nsubj/8 can/MD/aux/8 stay/VB/root/0 and/CC/cc/12 she/PRP/nsubj/12 must/MD/aux/12"
        " go/VB/conj/8 ././punct/8"
    ),
    "It fell as was feared.": (
        "It/PRP/nsubj/2 fell/VBD/root/0/fall as/IN/mark/5 was/VBD/aux:pass/5/be "
        "feared/VBN/advcl/2/fear ././punct/2"
    ),
    "He wanted to be seen.": (
        "He/PRP/nsubj/2 wanted/VBD/root/0/want to/TO/mark/5 be/VB/aux:pass/5 "
        "seen/VBN/xcomp/2/see ././punct/2"
    ),
    "He claims to have won.": (
        "He/PRP/nsubj/2 claims/VBZ/root/0/claim to/TO/mark/5 have/VB/aux/5 "
        "won/VBN/advcl/2/win ././punct/2"
    ),
    "Is he ill or was he hurt?": (
        "Is/VBZ/cop/3/be he/PRP/nsubj/3 ill/JJ/root/0 or/CC/cc/7 was/VBD/aux:pass/7/be "
        "he/PRP/nsubj:pass/7 hurt/VBN/conj/3 ?/./punct/3"
    ),
    "The man who was seen": (
        "The/DT/det/2 man/NN/root/0 who/WP/nsubj:pass/5 was/VBD/aux:pass/5/be "
        "seen/VBN/acl:relcl/2/see"
    ),
    "I have no money and no time.": (
        "I/PRP/nsubj/2 have/VBP/root/0 no/DT/det/4 money/NN/obj/2 and/CC/cc/7 no/DT/det/7 "
        "time/NN/conj/4 ././punct/2"
    ),
    "He did not say nothing.": (
        "He/PRP/nsubj/4 did/VBD/aux/4/do not/RB/advmod/4 say/VB/root/0 nothing/NN/obj/4 ././punct/4"
    ),
    "He is not no fool.": (
        "He/PRP/nsubj/5 is/VBZ/cop/5/be not/RB/advmod/5 no/DT/det/5 fool/NN/root/0 ././punct/5"
    ),
    "He did not read and did not sell any books.": (
        "He/PRP/nsubj/4 did/VBD/aux/4/do not/RB/advmod/4 read/VB/root/0 and/CC/cc/8"
        " did/VBD/aux/8/do not/RB/advmod/8 sell/VB/conj/4 any/DT/det/10 books/NNS/obj/8/book"
        " ././punct/4"
    ),
    "None of them came.": (
        "None/NN/nsubj/4 of/IN/case/3 them/PRP/nmod/1 came/VBD/root/0/come ././punct/4"
    ),
    "He left without a word.": (
        "He/PRP/nsubj/2 left/VBD/root/0/leave without/IN/case/5 a/DT/det/5 word/NN/obl/2 "
        "././punct/2"
    ),
    "It was not only old.": (
        "It/PRP/nsubj/5 was/VBD/cop/5/be not/RB/advmod/5 only/RB/advmod/5 old/JJ/root/0 ././punct/5"
    ),
    "It has not yet begun.": (
        "It/PRP/nsubj/5 has/VBZ/aux/5/have not/RB/advmod/5 yet/RB/advmod/5 "
        "begun/VBN/root/0/begin ././punct/5"
    ),
    "As he is ill and she has left, they can stay.": (
        "As/IN/mark/4 he/PRP/nsubj/4 is/VBZ/cop/4/be ill/JJ/advcl/12 and/CC/cc/8 she/PRP/nsubj/8"
        " has/VBZ/aux/8/have left/VBN/conj/4/leave ,/,/punct/4 they/PRP/nsubj/12 can/MD/aux/12"
        " stay/VB/root/0 ././punct/12"
    ),
    "Nobody knows nothing.": "Nobody/NN/nsubj/2 knows/VBZ/root/0/know nothing/NN/obj/2 ././punct/2",
    "He did not win with no help.": (
        "He/PRP/nsubj/4 did/VBD/aux/4/do not/RB/advmod/4 win/VB/root/0 with/IN/case/7 "
        "no/DT/det/7 help/NN/obl/4 ././punct/4"
    ),
    "It is said that she had only left.": (
        "It/PRP/expl/3 is/VBZ/aux:pass/3/be said/VBN/root/0/say that/IN/mark/8 "
        "she/PRP/nsubj/8 had/VBD/aux/8/have only/RB/advmod/8 left/VBN/ccomp/3/leave ././punct/3"
    ),
    "He wins no matter what.": (
        "He/PRP/nsubj/2 wins/VBZ/root/0/win no/DT/det/4 matter/NN/obl/2 what/WP/nmod/4 ././punct/2"
    ),
    "She was re-elected.": (
        "She/PRP/nsubj/4 was/VBD/cop/3/be re-/JJ/advcl/4 elected/VBD/root/0/elect ././punct/4"
    ),
}
# Complements and subjects that are clauses; the last is none, though Universal Dependencies call it
# xcomp.
COMPLEMENTS = {
    "He wants to leave.": (
        "He/PRP/nsubj/2 wants/VBZ/root/0/want to/TO/mark/4 leave/VB/xcomp/2 ././punct/2"
    ),
    "What he said is true.": (
        "What/WP/obj/3 he/PRP/nsubj/3 said/VBD/csubj/5/say is/VBZ/cop/5/be true/JJ/root/0 "
        "././punct/5"
    ),
    "He became famous.": "He/PRP/nsubj/2 became/VBD/root/0/become famous/JJ/xcomp/2 ././punct/2",
}
CLEAR = {
    "The tower was old and the bridge was closed.": (
        "The/DT/det/2 tower/NN/nsubj/3 was/VBD/ROOT/0/be old/JJ/acomp/3 and/CC/cc/3 the/DT/det/7"
        " bridge/NN/nsubjpass/9 was/VBD/auxpass/9/be closed/VBN/conj/3/close ././punct/3"
    ),
    "She said that he was not there.": (
        "She/PRP/nsubj/2 said/VBD/ROOT/0/say that/IN/mark/5 he/PRP/nsubj/5 "
        "was/VBD/ccomp/2/be not/RB/neg/5 there/RB/advmod/5 ././punct/2"
    ),
    "He did not say nothing.": (
        "He/PRP/nsubj/4 did/VBD/aux/4/do not/RB/neg/4 say/VB/ROOT/0 nothing/NN/dobj/4 ././punct/4"
    ),
    "He claims to have won.": (
        "He/PRP/nsubj/2 claims/VBZ/ROOT/0/claim to/TO/aux/5 have/VB/aux/5 won/VBN/xcomp/2/win "
        "././punct/2"
    ),
    "The book was written by a woman.": (
        "The/DT/det/2 book/NN/nsubjpass/4 was/VBD/auxpass/4/be "
        "written/VBN/ROOT/0/write by/IN/agent/4 a/DT/det/7 woman/NN/pobj/5 ././punct/4"
    ),
    "Are you ready?": "Are/VBP/ROOT/0/be you/PRP/nsubj/1 ready/JJ/acomp/1 ?/./punct/1",
    "It doesn't rain.": (
        "It/PRP/nsubj/4 does/VBZ/aux/4/do n't/RB/neg/4/not rain/VB/ROOT/0 ././punct/4"
    ),
    "He is not tired.": "He/PRP/nsubj/2 is/VBZ/ROOT/0/be not/RB/neg/2 tired/JJ/acomp/2 ././punct/2",
    "The man who called is my uncle.": (
        "The/DT/det/2 man/NN/nsubj/5 who/WP/nsubj/4 called/VBD/relcl/2/call "
        "is/VBZ/ROOT/0/be my/PRP$/poss/7 uncle/NN/attr/5 ././punct/5"
    ),
    "There are no rules.": (
        "There/EX/expl/2 are/VBP/ROOT/0/be no/DT/det/4 rules/NNS/attr/2/rule ././punct/2"
    ),
    "He's a teacher.": "He/PRP/nsubj/2 's/VBZ/ROOT/0/be a/DT/det/4 teacher/NN/attr/2 ././punct/2",
    "Paris is the capital of France.": (
        "Paris/NNP/nsubj/2 is/VBZ/ROOT/0/be the/DT/det/4 capital/NN/attr/2 "
        "of/IN/prep/4 France/NNP/pobj/5 ././punct/2"
    ),
    "He never eats meat.": (
        "He/PRP/nsubj/3 never/RB/neg/3 eats/VBZ/ROOT/0/eat meat/NN/dobj/3 ././punct/3"
    ),
    "Why is the sky blue?": (
        "Why/WRB/advmod/2 is/VBZ/ROOT/0/be the/DT/det/4 sky/NN/nsubj/2 blue/JJ/acomp/2 ?/./punct/2"
    ),
}


def tree(text: str, annotation: str) -> Tree:
    """The annotated sentence; white space as in `text`."""
    rows, place = [], 0
    for token in annotation.split():
        word, tag, label, head, *lemma = (
            token.split("/") if token[0] != "/" else ["/", *token[2:].split("/")]
        )
        assert text.startswith(word, place), (text, word)
        place += len(word)
        space = text[place : place + 1] if text[place : place + 1] == " " else ""
        place += len(space)
        rows.append((word, space, tag, label, lemma[0] if lemma else word.lower(), int(head)))
    assert place == len(text)
    words, spaces, tags, labels, lemmas, heads = zip(*rows, strict=True)
    return Tree(
        words, spaces, tags, labels, lemmas, [h - 1 if h else i for i, h in enumerate(heads)]
    )
