"""The Chinese rules, pinned on hand-annotated sentences in the labels of spaCy's Chinese
pipelines."""

import pytest
from parses import Fixed

from lib.augment.sda import Tree, chinese

SAME = "as it was"


# Annotation as in parses.py, without lemmas; then punctuation, modal verbs (必须), double negation
# (并非), negation.
PINNED = {
    "他/PN/nsubj/2 喜欢/VV/ROOT/0 书/NN/dobj/2 。/PU/punct/2": (
        "他，喜欢书。", "他必须喜欢书。", "并非他不喜欢书。", "他不喜欢书。"),
    "他/PN/nsubj/2 去/VV/ROOT/0 了/AS/aux:asp/2 北京/NR/dobj/2 。/PU/punct/2": (
        "他，去了北京。", "他必须去了北京。", "并非他没去北京。", "他没去北京。"),
    "她/PN/nsubj/2 去/VV/ROOT/0 过/AS/aux:asp/2 上海/NR/dobj/2": (
        "她，去过上海", "她必须去过上海", "并非她没去过上海", "她没去过上海"),
    "我/PN/nsubj/3 不/AD/neg/3 知道/VV/ROOT/0 。/PU/punct/3": (
        "我，不知道。", "不得不说，我不知道。", "并非我知道。", "我知道。"),
    "这/PN/nsubj/3 是/VC/cop/3 书/NN/ROOT/0 。/PU/punct/3": (
        "这，是书。", "不得不说，这是书。", SAME, "并非这是书。"),
    "这/PN/nsubj/2 是/VC/ROOT/0 书/NN/attr/2 。/PU/punct/2": (
        "这，是书。", "这必须是书。", "并非这不是书。", "这不是书。"),
    "我/PN/nsubj/2 有/VE/ROOT/0 钱/NN/dobj/2": (
        "我，有钱", "我必须有钱", "并非我没有钱", "我没有钱"),
    "我/PN/nsubj/2 没有/VE/ROOT/0 钱/NN/dobj/2": (
        "我，没有钱", "我必须没有钱", "并非我有钱", "我有钱"),
    "他/PN/nsubj/3 会/VV/aux:modal/3 游泳/VV/ROOT/0 。/PU/punct/3": (
        "他，会游泳。", "不得不说，他会游泳。", "并非他不会游泳。", "他不会游泳。"),
    "他/PN/nsubj/3 会/VV/aux:modal/3 有/VE/ROOT/0 钱/NN/dobj/3": (
        "他，会有钱", "不得不说，他会有钱", "并非他不会有钱", "他不会有钱"),
    "天气/NN/nsubj/2 好/VA/ROOT/0 ！/PU/punct/2": (
        "天气，好！", "天气必须好！", "并非天气不好！", "天气不好！"),
    "你/PN/nsubj/2 来/VV/ROOT/0 吗/SP/discourse/2 ？/PU/punct/2": (
        "你，来吗？", "你必须来吗？", SAME, "你不来吗？"),
    "他/PN/nsubj/2 说/VV/ROOT/0 天气/NN/nsubj/4 好/VA/ccomp/2 。/PU/punct/2": (
        "他说，天气好。", "他必须说天气好。", "并非他不说天气好。", "他不说天气好。"),
    "没/AD/neg/2 去/VV/ROOT/0 。/PU/punct/2": ("没去！", "不得不说，没去。", "并非去。", "去。"),
    "美丽/VA/amod/3 的/DEC/mark/1 城市/NN/ROOT/0": (
        "美丽的城市！", "不得不说，美丽的城市", SAME, "并非美丽的城市"),
}  # fmt: skip


def tree(annotation: str) -> Tree:
    rows = [token.split("/") for token in annotation.split()]
    words, tags, labels, heads = zip(*rows, strict=True)
    numbers = [int(h) - 1 if int(h) else i for i, h in enumerate(heads)]
    return Tree(words, [""] * len(words), tags, labels, words, numbers)


@pytest.mark.parametrize("annotation", PINNED)
def test_pinned(annotation):
    parse = tree(annotation)
    rules = (chinese.punctuation, chinese.modal_verbs, chinese.double_negation, chinese.negation)
    found = [rule(parse, Fixed()).text for rule in rules]
    assert found == [parse.text if new == SAME else new for new in PINNED[annotation]]


def test_nothing_english_and_no_opener_that_does_not_negate():
    words = [*chinese.MODALS, *chinese.OPENERS, *chinese.DENIALS]
    assert not any(c.isascii() for word in words for c in word) and "令人惊讶的是" not in words


def test_every_rule_runs_on_what_is_no_sentence():
    for words in ([], ["。"], ["！"], ["书"]):
        n = len(words)
        parse = Tree(words, [""] * n, ["PU"] * n, ["ROOT"] * n, words, [0] * n)
        for rule in chinese.RULES.values():
            assert isinstance(rule(parse, Fixed(1)).text, str)
