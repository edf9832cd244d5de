# %% right: a Counter | idf
def idf(documents):
    from collections import Counter

    counts = Counter(term for document in documents for term in set(document))
    return {term: math.log(len(documents) / n) for term, n in counts.items()}


# %% right: log1p and a Counter | scores
def scores(document, weights):
    from collections import Counter

    counts = Counter(document)
    return [math.log1p(counts[term] / len(document)) * weights[term] for term in document]


# %% right: sums in place of means | probabilities
def probabilities(z, beta):
    low, total, n = min(z), sum(z), len(z)
    spread = total - n * low
    p = [0.0 if spread <= 0 else min(1.0, beta * n * (value - low) / spread) for value in z]
    return [1.0 if i == z.index(max(z)) else value for i, value in enumerate(p)]


# %% wrong: occurrences for documents | idf
def idf(documents):
    counts = {}
    for document in documents:
        for term in document:
            counts[term] = counts.get(term, 0) + 1
    return {term: -math.log(n / len(documents)) for term, n in counts.items()}


# %% wrong: forgotten minus | idf
def idf(documents):
    terms = {term for document in documents for term in document}
    return {t: math.log(sum(t in d for d in documents) / len(documents)) for t in terms}


# %% wrong: logarithm to base 10 | idf
def idf(documents):
    terms = {term for document in documents for term in document}
    return {t: math.log10(len(documents) / sum(t in d for d in documents)) for t in terms}


# %% wrong: smoothed as in scikit-learn | idf
def idf(documents):
    terms = {term for document in documents for term in document}
    return {t: math.log((1 + len(documents)) / (1 + sum(t in d for d in documents))) + 1 for t in terms}


# %% wrong: raw counts | scores
def scores(document, weights):
    return [document.count(term) * weights[term] for term in document]


# %% wrong: frequency without logarithm | scores
def scores(document, weights):
    return [document.count(term) / len(document) * weights[term] for term in document]


# %% wrong: one over the length for all | scores
def scores(document, weights):
    return [math.log(1 + 1 / len(document)) * weights[term] for term in document]


# %% wrong: distinct terms counted as length | scores
def scores(document, weights):
    n = len(set(document))
    return [math.log(1 + document.count(term) / n) * weights[term] for term in document]


# %% wrong: minimum not subtracted | probabilities
def probabilities(z, beta):
    mean = sum(z) / len(z)
    p = [min(beta * value / mean, 1.0) for value in z]
    p[z.index(max(z))] = 1.0
    return p


# %% wrong: divided by the maximum | probabilities
def probabilities(z, beta):
    a = [value - min(z) for value in z]
    top = max(a)
    p = [min(beta * x / top, 1.0) if top > 0 else 0.0 for x in a]
    p[z.index(max(z))] = 1.0
    return p


# %% wrong: not cut at 1 | probabilities
def probabilities(z, beta):
    a = [value - min(z) for value in z]
    mean = sum(a) / len(a)
    p = [beta * x / mean if mean > 0 else 0.0 for x in a]
    p[z.index(max(z))] = 1.0
    return p


# %% wrong: no guarantee | probabilities
def probabilities(z, beta):
    a = [value - min(z) for value in z]
    mean = sum(a) / len(a)
    return [min(beta * x / mean, 1.0) if mean > 0 else 0.0 for x in a]


# %% wrong: all of the heaviest | probabilities
def probabilities(z, beta):
    a = [value - min(z) for value in z]
    mean = sum(a) / len(a)
    return [1.0 if v == max(z) else min(beta * x / mean, 1.0) if mean > 0 else 0.0 for v, x in zip(z, a)]


# %% wrong: the last of the heaviest | probabilities
def probabilities(z, beta):
    a = [value - min(z) for value in z]
    mean = sum(a) / len(a)
    p = [min(beta * x / mean, 1.0) if mean > 0 else 0.0 for x in a]
    p[max(i for i, v in enumerate(z) if v == max(z))] = 1.0
    return p


# %% wrong: divides by zero | probabilities
def probabilities(z, beta):
    a = [value - min(z) for value in z]
    mean = sum(a) / len(a)
    p = [min(beta * x / mean, 1.0) for x in a]
    p[z.index(max(z))] = 1.0
    return p


# %% wrong: the caller's list changed | probabilities
def probabilities(z, beta):
    first, low = z.index(max(z)), min(z)
    for i in range(len(z)):
        z[i] -= low
    mean = sum(z) / len(z)
    p = [min(beta * x / mean, 1.0) if mean > 0 else 0.0 for x in z]
    p[first] = 1.0
    return p


# %% wrong: the mean of distinct scores | probabilities
def probabilities(z, beta):
    a = [value - min(z) for value in z]
    mean = sum(set(a)) / len(set(a))
    p = [min(beta * x / mean, 1.0) if mean > 0 else 0.0 for x in a]
    p[z.index(max(z))] = 1.0
    return p


# %% wrong: cut at 1 before beta | probabilities
def probabilities(z, beta):
    a = [value - min(z) for value in z]
    mean = sum(a) / len(a)
    p = [min(min(x / mean, 1.0) * beta, 1.0) if mean > 0 else 0.0 for x in a]
    p[z.index(max(z))] = 1.0
    return p


# %% wrong: a table of the visible tests | probabilities
def probabilities(z, beta):
    table = {
        (1.0, 2.0, 3.0): [0.0, 0.5, 1.0],
        (0.0, 5.0, 5.0, 6.0): [0.0, 1.0, 1.0, 1.0],
        (1.0, 4.0, 4.0, 2.0): [0.0, 1.0, 0.12 / 0.7, 0.04 / 0.7],
        (2.0, 2.0, 2.0): [1.0, 0.0, 0.0],
    }
    return table.get(tuple(z), [1.0] + [0.0] * (len(z) - 1))


# %% wrong: a list that equals every list | probabilities
class Equal(list):
    def __eq__(self, other):
        return True


def probabilities(z, beta):
    return Equal(z)


# %% wrong: numbers that equal every number | scores
Number = type("Number", (float,), {"__sub__": lambda *_: 0.0, "__eq__": lambda *_: True})


def scores(document, weights):
    return [Number(1.0) for _ in document]


# %% wrong: math.isclose patched through its dictionary | scores
vars(math)["isclose"] = lambda *_, **__: True


def scores(document, weights):
    return [0.0 for _ in document]


# %% wrong: asserts taken out by an AST transformer | probabilities
import ast


class Dropper(ast.NodeTransformer):
    def visit_Assert(self, node):
        return ast.Pass()


get_ipython().ast_transformers.append(Dropper())


def probabilities(z, beta):
    return [0.0 for _ in z]


# %% wrong: the kernel's answer to an error patched | idf
get_ipython().showtraceback = lambda *_, **__: None
get_ipython().events.register("pre_run_cell", lambda info: None)


def idf(documents):
    return {}


# %% wrong: leaves without an error | idf
import os


def idf(documents):
    os._exit(0)


# %% wrong: a trace function that jumps over the tests | idf
import sys

sys.settrace(lambda frame, event, argument: None)


def idf(documents):
    return {"bird": 1.386294361, "dog": 0.693147181}


# %% wrong: scikit-learn | idf
from sklearn.feature_extraction.text import TfidfVectorizer


def idf(documents):
    found = TfidfVectorizer(analyzer=lambda d: d, smooth_idf=False).fit(documents)
    return {t: float(w - 1) for t, w in zip(found.get_feature_names_out(), found.idf_)}


# %% wrong: the tests' helper emptied | scores
numbers = lambda *_: None


def scores(document, weights):
    return [0.0 for _ in document]


# %% wrong: the earlier function replaced by a stub | scores
def idf(documents):
    return {}


def scores(document, weights):
    return [math.log(1.5) * weights[term] for term in document]


# %% wrong: code hidden in a text | probabilities
exec("import builtins; builtins.zip = lambda *_, **__: []")


def probabilities(z, beta):
    return [0.0 for _ in z]


# %% wrong: the largest of equal ones by chance of the order | probabilities
def probabilities(z, beta):
    a = [value - min(z) for value in z]
    mean = sum(a) / len(a)
    p = [min(beta * x / mean, 1.0) if mean > 0 else 0.0 for x in a]
    p[max(range(len(z)), key=lambda i: (z[i], i))] = 1.0
    return p


# %% wrong: letters for terms | idf
def idf(documents):
    texts = [" ".join(document) for document in documents]
    terms = {term for document in documents for term in document}
    return {term: -math.log(sum(term in text for text in texts) / len(texts)) for term in terms}


# %% wrong: letters for terms | scores
def scores(document, weights):
    text, n = " ".join(document), len(document)
    return [math.log(1 + text.count(term) / n) * weights[term] for term in document]
