# %% right: by recursion | subtree
def subtree(tree, top):
    children = [i for i, head in enumerate(tree.heads) if head == top and i != top]
    return sorted([top, *(place for child in children for place in subtree(tree, child))])


# %% right: the place first | comma_before_clause
def comma_before_clause(tree):
    clauses = [i for i in range(len(tree.words)) if tree.deps[i] in {"advcl", "relcl", "ccomp"}]
    place = min(subtree(tree, clauses[0])) if clauses else 0
    if place == 0 or tree.words[place - 1] == ",":
        return list(tree.words)
    return [*tree.words[:place], ",", *tree.words[place:]]


# %% right: word by word | with_modal
def with_modal(tree):
    root = tree.deps.index("ROOT")
    if tree.tags[root] not in {"VBZ", "VBP", "VBD"} or any(tag == "MD" for tag in tree.tags):
        return [*tree.words]
    out = []
    for i, word in enumerate(tree.words):
        out += ["must", tree.lemmas[i]] if i == root else [word]
    return out


# %% wrong: children only | subtree
def subtree(tree, top):
    return [i for i in range(len(tree.words)) if i == top or tree.heads[i] == top]


# %% wrong: without the word itself | subtree
def subtree(tree, top):
    def below(i):
        while i != top and tree.heads[i] != i:
            i = tree.heads[i]
        return i == top

    return [i for i in range(len(tree.words)) if i != top and below(i)]


# %% wrong: everything to the right | subtree
def subtree(tree, top):
    return list(range(top, len(tree.words)))


# %% wrong: before the clause's head | comma_before_clause
def comma_before_clause(tree):
    words = list(tree.words)
    for i, dep in enumerate(tree.deps):
        if dep in ("advcl", "relcl", "ccomp"):
            if i > 0 and words[i - 1] != ",":
                words.insert(i, ",")
            break
    return words


# %% wrong: behind the clause's first word | comma_before_clause
def comma_before_clause(tree):
    words = list(tree.words)
    for i, dep in enumerate(tree.deps):
        if dep in ("advcl", "relcl", "ccomp"):
            first = subtree(tree, i)[0]
            if first > 0 and words[first - 1] != ",":
                words.insert(first + 1, ",")
            break
    return words


# %% wrong: at the beginning too | comma_before_clause
def comma_before_clause(tree):
    words = list(tree.words)
    for i, dep in enumerate(tree.deps):
        if dep in ("advcl", "relcl", "ccomp"):
            first = subtree(tree, i)[0]
            if words[first - 1] != ",":
                words.insert(first, ",")
            break
    return words


# %% wrong: a second comma | comma_before_clause
def comma_before_clause(tree):
    words = list(tree.words)
    for i, dep in enumerate(tree.deps):
        if dep in ("advcl", "relcl", "ccomp"):
            first = subtree(tree, i)[0]
            if first > 0:
                words.insert(first, ",")
            break
    return words


# %% wrong: relative clauses forgotten | comma_before_clause
def comma_before_clause(tree):
    words = list(tree.words)
    for i, dep in enumerate(tree.deps):
        if dep == "advcl":
            first = subtree(tree, i)[0]
            if first > 0 and words[first - 1] != ",":
                words.insert(first, ",")
            break
    return words


# %% wrong: verb left inflected | with_modal
def with_modal(tree):
    words = list(tree.words)
    root = next(i for i, head in enumerate(tree.heads) if head == i)
    if tree.tags[root] in ("VBZ", "VBP", "VBD") and "MD" not in tree.tags:
        words.insert(root, "must")
    return words


# %% wrong: behind the verb | with_modal
def with_modal(tree):
    words = list(tree.words)
    root = next(i for i, head in enumerate(tree.heads) if head == i)
    if tree.tags[root] in ("VBZ", "VBP", "VBD") and "MD" not in tree.tags:
        words[root : root + 1] = [tree.lemmas[root], "must"]
    return words


# %% wrong: the first verb | with_modal
def with_modal(tree):
    words = list(tree.words)
    for i, tag in enumerate(tree.tags):
        if tag in ("VBZ", "VBP", "VBD") and "MD" not in tree.tags:
            words[i : i + 1] = ["must", tree.lemmas[i]]
            break
    return words


# %% wrong: a second modal | with_modal
def with_modal(tree):
    words = list(tree.words)
    root = next(i for i, head in enumerate(tree.heads) if head == i)
    if tree.tags[root].startswith("V"):
        words[root : root + 1] = ["must", tree.lemmas[root]]
    return words


# %% wrong: nouns too | with_modal
def with_modal(tree):
    words = list(tree.words)
    root = next(i for i, head in enumerate(tree.heads) if head == i)
    if "MD" not in tree.tags:
        words[root : root + 1] = ["must", tree.lemmas[root]]
    return words


# %% wrong: every verb | with_modal
def with_modal(tree):
    if "MD" in tree.tags:
        return list(tree.words)
    out = []
    for word, tag, lemma in zip(tree.words, tree.tags, tree.lemmas):
        out += ["must", lemma] if tag in ("VBZ", "VBP", "VBD") else [word]
    return out


# %% wrong: past tense forgotten | with_modal
def with_modal(tree):
    words = list(tree.words)
    root = next(i for i, head in enumerate(tree.heads) if head == i)
    if tree.tags[root] in ("VBZ", "VBP") and "MD" not in tree.tags:
        words[root : root + 1] = ["must", tree.lemmas[root]]
    return words


# %% wrong: a tuple | with_modal
def with_modal(tree):
    root = next(i for i, head in enumerate(tree.heads) if head == i)
    if tree.tags[root] not in ("VBZ", "VBP", "VBD") or "MD" in tree.tags:
        return tree.words
    return tree.words[:root] + ("must", tree.lemmas[root]) + tree.words[root + 1 :]


# %% wrong: complement clauses forgotten | comma_before_clause
def comma_before_clause(tree):
    words = list(tree.words)
    for i, dep in enumerate(tree.deps):
        if dep in ("advcl", "relcl"):
            first = subtree(tree, i)[0]
            if first > 0 and words[first - 1] != ",":
                words.insert(first, ",")
            break
    return words


# %% wrong: before every clause | comma_before_clause
def comma_before_clause(tree):
    starts = {subtree(tree, i)[0] for i, dep in enumerate(tree.deps) if dep in ("advcl", "relcl", "ccomp")}
    out = []
    for i, word in enumerate(tree.words):
        out += [",", word] if i in starts and i > 0 and tree.words[i - 1] != "," else [word]
    return out


# %% wrong: before the last clause | comma_before_clause
def comma_before_clause(tree):
    words, first = list(tree.words), 0
    for i, dep in enumerate(tree.deps):
        if dep in ("advcl", "relcl", "ccomp"):
            first = subtree(tree, i)[0]
    if first > 0 and words[first - 1] != ",":
        words.insert(first, ",")
    return words


# %% wrong: the parse's own tuple | comma_before_clause
def comma_before_clause(tree):
    for i, dep in enumerate(tree.deps):
        if dep in ("advcl", "relcl", "ccomp"):
            first = subtree(tree, i)[0]
            if first > 0 and tree.words[first - 1] != ",":
                return [*tree.words[:first], ",", *tree.words[first:]]
            break
    return tree.words


# %% wrong: VBP forgotten | with_modal
def with_modal(tree):
    words = list(tree.words)
    root = next(i for i, head in enumerate(tree.heads) if head == i)
    if tree.tags[root] in ("VBZ", "VBD") and "MD" not in tree.tags:
        words[root : root + 1] = ["must", tree.lemmas[root]]
    return words


# %% wrong: any verb at the root | with_modal
def with_modal(tree):
    words = list(tree.words)
    root = next(i for i, head in enumerate(tree.heads) if head == i)
    if tree.tags[root].startswith("VB") and "MD" not in tree.tags:
        words[root : root + 1] = ["must", tree.lemmas[root]]
    return words


# %% wrong: goes on to a later clause | comma_before_clause
def comma_before_clause(tree):
    words = list(tree.words)
    for i, dep in enumerate(tree.deps):
        if dep in ("advcl", "relcl", "ccomp"):
            first = subtree(tree, i)[0]
            if first > 0 and words[first - 1] != ",":
                words.insert(first, ",")
                break
    return words


# %% wrong: xcomp and acomp are clauses | comma_before_clause
def comma_before_clause(tree):
    words = list(tree.words)
    for i, dep in enumerate(tree.deps):
        if dep in ("advcl", "relcl", "ccomp", "xcomp", "acomp"):
            first = subtree(tree, i)[0]
            if first > 0 and words[first - 1] != ",":
                words.insert(first, ",")
            break
    return words


# %% wrong: a span for a subtree | subtree
def subtree(tree, top):
    def below(i):
        while i != top and tree.heads[i] != i:
            i = tree.heads[i]
        return i == top

    found = [i for i in range(len(tree.words)) if below(i)]
    return list(range(found[0], found[-1] + 1))


# %% wrong: a table of the visible tests | subtree
def subtree(tree, top):
    return {4: [2, 3, 4], 1: list(range(4 if tree is knows else 6)), 3: [3]}[top]


# %% wrong: a table of the visible tests | with_modal
def with_modal(tree):
    if tree is stays:
        return "She must stay because it rains .".split()
    if tree is knows:
        return "The man who sings must know Anna .".split()
    return list(tree.words)


# %% wrong: looks at the parse of the test, not at the rule | comma_before_clause
def comma_before_clause(tree):
    words = list(tree.words)
    for mark in ("because", "who", "while", "that"):
        if mark in words and words.index(mark) > 0 and words[words.index(mark) - 1] != ",":
            words.insert(words.index(mark), ",")
            break
    return words


# %% wrong: two levels are deep enough | subtree
def subtree(tree, top):
    near = {i for i, head in enumerate(tree.heads) if head == top} | {top}
    return sorted(near | {i for i, head in enumerate(tree.heads) if head in near and i != head})


# %% wrong: the parses replaced | subtree
object.__setattr__(stays, "heads", (0, 1, 2, 3, 4, 5))


def subtree(tree, top):
    return [top]


# %% wrong: the reader of parses replaced | with_modal
def parse(text):
    return stays


def with_modal(tree):
    return "She must stay because it rains .".split()


# %% wrong: the library's own rules | with_modal
from lib.augment.sda import rules


def with_modal(tree):
    return rules.modal_verbs(tree)


# %% wrong: a text that equals every text | comma_before_clause
class Text(str):
    def __eq__(self, other):
        return True


def comma_before_clause(tree):
    return [Text("x")]


# %% wrong: the last verb | with_modal
def with_modal(tree):
    words = list(tree.words)
    finite = [i for i, tag in enumerate(tree.tags) if tag in ("VBZ", "VBP", "VBD")]
    if finite and "MD" not in tree.tags:
        words[finite[-1] : finite[-1] + 1] = ["must", tree.lemmas[finite[-1]]]
    return words


# %% wrong: any comma of the sentence stops the rule | comma_before_clause
def comma_before_clause(tree):
    words = list(tree.words)
    for i, dep in enumerate(tree.deps):
        if dep in ("advcl", "relcl", "ccomp"):
            first = subtree(tree, i)[0]
            if first > 0 and "," not in words:
                words.insert(first, ",")
            break
    return words


# %% wrong: the first word of that spelling | comma_before_clause
def comma_before_clause(tree):
    words = list(tree.words)
    for i, dep in enumerate(tree.deps):
        if dep in ("advcl", "relcl", "ccomp"):
            first = words.index(words[subtree(tree, i)[0]])
            if first > 0 and words[first - 1] != ",":
                words.insert(first, ",")
            break
    return words


# %% wrong: the first word of that spelling | with_modal
def with_modal(tree):
    words = list(tree.words)
    root = next(i for i, head in enumerate(tree.heads) if head == i)
    if tree.tags[root] in ("VBZ", "VBP", "VBD") and "MD" not in tree.tags:
        place = words.index(words[root])
        words[place : place + 1] = ["must", tree.lemmas[root]]
    return words
