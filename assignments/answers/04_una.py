# %% right: a Counter | idf
def idf(documents):
    from collections import Counter

    counts = Counter(term for document in documents for term in set(document))
    return {term: math.log((len(documents) + 1) / (n + 0.5)) for term, n in counts.items()}


# %% right: a Counter keeps the order, too | bm25
def bm25(document, weights, mean_length, k=1.2, b=0.75):
    from collections import Counter

    norm = k * ((1 - b) + b * len(document) / mean_length)
    return {t: weights[t] * (k + 1) / (1 + norm / n) for t, n in Counter(document).items()}


# %% right: loops over tokens | probabilities
def probabilities(document, z, beta):
    low, spread = min(z.values()), sum(z.values()) - len(z) * min(z.values())
    heaviest = next(t for t in z if z[t] == max(z.values()))
    p = []
    for term in document:
        if term == heaviest:
            p.append(1.0)
        elif spread <= 0:
            p.append(0.0)
        else:
            p.append(min(1.0, beta * len(z) * (z[term] - low) / spread))
    return p


# %% wrong: the lesson's idf | idf
def idf(documents):
    terms = {term for document in documents for term in document}
    return {t: -math.log(sum(t in d for d in documents) / len(documents)) for t in terms}


# %% wrong: occurrences for documents | idf
def idf(documents):
    counts = {}
    for document in documents:
        for term in document:
            counts[term] = counts.get(term, 0) + 1
    return {t: math.log(1 + (len(documents) - n + 0.5) / (n + 0.5)) for t, n in counts.items()}


# %% wrong: without the 1, below 0 for common terms | idf
def idf(documents):
    terms = {term for document in documents for term in document}
    counts = {t: sum(t in d for d in documents) for t in terms}
    return {t: math.log((len(documents) - n + 0.5) / (n + 0.5)) for t, n in counts.items()}


# %% wrong: without the halves | idf
def idf(documents):
    terms = {term for document in documents for term in document}
    counts = {t: sum(t in d for d in documents) for t in terms}
    return {t: math.log(1 + (len(documents) - n) / n) for t, n in counts.items()}


# %% wrong: logarithm to base 10 | idf
def idf(documents):
    terms = {term for document in documents for term in document}
    counts = {t: sum(t in d for d in documents) for t in terms}
    return {t: math.log10(1 + (len(documents) - n + 0.5) / (n + 0.5)) for t, n in counts.items()}


# %% wrong: letters for terms | idf
def idf(documents):
    texts = [" ".join(document) for document in documents]
    counts = {t: sum(t in text for text in texts) for document in documents for t in document}
    return {t: math.log(1 + (len(texts) - n + 0.5) / (n + 0.5)) for t, n in counts.items()}


# %% wrong: the lesson's TF-IDF | bm25
def bm25(document, weights, mean_length, k=1.2, b=0.75):
    n = len(document)
    return {t: math.log(1 + document.count(t) / n) * weights[t] for t in dict.fromkeys(document)}


# %% wrong: no saturation | bm25
def bm25(document, weights, mean_length, k=1.2, b=0.75):
    norm = 1 - b + b * len(document) / mean_length
    return {t: weights[t] * document.count(t) / norm for t in dict.fromkeys(document)}


# %% wrong: each term counted once | bm25
def bm25(document, weights, mean_length, k=1.2, b=0.75):
    norm = k * (1 - b + b * len(document) / mean_length)
    return {t: weights[t] * (k + 1) / (1 + norm) for t in dict.fromkeys(document)}


# %% wrong: different terms counted as length | bm25
def bm25(document, weights, mean_length, k=1.2, b=0.75):
    norm = k * (1 - b + b * len(set(document)) / mean_length)
    counts = {t: document.count(t) for t in dict.fromkeys(document)}
    return {t: weights[t] * n * (k + 1) / (n + norm) for t, n in counts.items()}


# %% wrong: the length ratio upside down | bm25
def bm25(document, weights, mean_length, k=1.2, b=0.75):
    norm = k * (1 - b + b * mean_length / len(document))
    counts = {t: document.count(t) for t in dict.fromkeys(document)}
    return {t: weights[t] * n * (k + 1) / (n + norm) for t, n in counts.items()}


# %% wrong: b and 1 - b swapped | bm25
def bm25(document, weights, mean_length, k=1.2, b=0.75):
    norm = k * (b + (1 - b) * len(document) / mean_length)
    counts = {t: document.count(t) for t in dict.fromkeys(document)}
    return {t: weights[t] * n * (k + 1) / (n + norm) for t, n in counts.items()}


# %% wrong: k + 1 forgotten | bm25
def bm25(document, weights, mean_length, k=1.2, b=0.75):
    norm = k * (1 - b + b * len(document) / mean_length)
    counts = {t: document.count(t) for t in dict.fromkeys(document)}
    return {t: weights[t] * n / (n + norm) for t, n in counts.items()}


# %% wrong: k and b written in as numbers | bm25
def bm25(document, weights, mean_length, k=1.2, b=0.75):
    norm = 1.2 * (0.25 + 0.75 * len(document) / mean_length)
    counts = {t: document.count(t) for t in dict.fromkeys(document)}
    return {t: weights[t] * n * 2.2 / (n + norm) for t, n in counts.items()}


# %% wrong: in the order of the alphabet | bm25
def bm25(document, weights, mean_length, k=1.2, b=0.75):
    norm = k * (1 - b + b * len(document) / mean_length)
    counts = {t: document.count(t) for t in sorted(set(document))}
    return {t: weights[t] * n * (k + 1) / (n + norm) for t, n in counts.items()}


# %% wrong: letters for terms | bm25
def bm25(document, weights, mean_length, k=1.2, b=0.75):
    norm, text = k * (1 - b + b * len(document) / mean_length), " ".join(document)
    counts = {t: text.count(t) for t in dict.fromkeys(document)}
    return {t: weights[t] * n * (k + 1) / (n + norm) for t, n in counts.items()}


# %% wrong: one number a token | bm25
def bm25(document, weights, mean_length, k=1.2, b=0.75):
    norm = k * (1 - b + b * len(document) / mean_length)
    return [weights[t] * document.count(t) * (k + 1) / (document.count(t) + norm) for t in document]


# %% wrong: every token counts in the mean, as in the lesson | probabilities
def probabilities(document, z, beta):
    low = min(z.values())
    mean = sum(z[t] - low for t in document) / len(document)
    p = {t: min(beta * (v - low) / mean, 1.0) if mean > 0 else 0.0 for t, v in z.items()}
    p[max(z, key=z.get)] = 1.0
    return [p[t] for t in document]


# %% wrong: the mean of different weights | probabilities
def probabilities(document, z, beta):
    low = min(z.values())
    mean = sum({v - low for v in z.values()}) / len(set(z.values()))
    p = {t: min(beta * (v - low) / mean, 1.0) if mean > 0 else 0.0 for t, v in z.items()}
    p[max(z, key=z.get)] = 1.0
    return [p[t] for t in document]


# %% wrong: the heaviest goes at its first place only | probabilities
def probabilities(document, z, beta):
    low = min(z.values())
    mean = sum(v - low for v in z.values()) / len(z)
    p = [min(beta * (z[t] - low) / mean, 1.0) if mean > 0 else 0.0 for t in document]
    p[document.index(max(z, key=z.get))] = 1.0
    return p


# %% wrong: all of the heaviest | probabilities
def probabilities(document, z, beta):
    low, high = min(z.values()), max(z.values())
    mean = sum(v - low for v in z.values()) / len(z)
    p = {t: min(beta * (v - low) / mean, 1.0) if mean > 0 else 0.0 for t, v in z.items()}
    return [1.0 if z[t] == high else p[t] for t in document]


# %% wrong: of the heaviest the last | probabilities
def probabilities(document, z, beta):
    low = min(z.values())
    mean = sum(v - low for v in z.values()) / len(z)
    p = {t: min(beta * (v - low) / mean, 1.0) if mean > 0 else 0.0 for t, v in z.items()}
    p[max(reversed(z), key=z.get)] = 1.0
    return [p[t] for t in document]


# %% wrong: of the heaviest the first in the alphabet | probabilities
def probabilities(document, z, beta):
    low = min(z.values())
    mean = sum(v - low for v in z.values()) / len(z)
    p = {t: min(beta * (v - low) / mean, 1.0) if mean > 0 else 0.0 for t, v in z.items()}
    p[max(sorted(z), key=z.get)] = 1.0
    return [p[t] for t in document]


# %% wrong: no guarantee | probabilities
def probabilities(document, z, beta):
    low = min(z.values())
    mean = sum(v - low for v in z.values()) / len(z)
    return [min(beta * (z[t] - low) / mean, 1.0) if mean > 0 else 0.0 for t in document]


# %% wrong: minimum not subtracted | probabilities
def probabilities(document, z, beta):
    mean = sum(z.values()) / len(z)
    p = {t: min(beta * v / mean, 1.0) if mean > 0 else 0.0 for t, v in z.items()}
    p[max(z, key=z.get)] = 1.0
    return [p[t] for t in document]


# %% wrong: divided by the maximum | probabilities
def probabilities(document, z, beta):
    low = min(z.values())
    top = max(z.values()) - low
    p = {t: min(beta * (v - low) / top, 1.0) if top > 0 else 0.0 for t, v in z.items()}
    p[max(z, key=z.get)] = 1.0
    return [p[t] for t in document]


# %% wrong: not cut at 1 | probabilities
def probabilities(document, z, beta):
    low = min(z.values())
    mean = sum(v - low for v in z.values()) / len(z)
    p = {t: beta * (v - low) / mean if mean > 0 else 0.0 for t, v in z.items()}
    p[max(z, key=z.get)] = 1.0
    return [p[t] for t in document]


# %% wrong: cut at 1 before beta | probabilities
def probabilities(document, z, beta):
    low = min(z.values())
    mean = sum(v - low for v in z.values()) / len(z)
    p = {t: beta * min((v - low) / mean, 1.0) if mean > 0 else 0.0 for t, v in z.items()}
    p[max(z, key=z.get)] = 1.0
    return [min(p[t], 1.0) for t in document]


# %% wrong: divides by zero | probabilities
def probabilities(document, z, beta):
    low = min(z.values())
    mean = sum(v - low for v in z.values()) / len(z)
    p = {t: min(beta * (v - low) / mean, 1.0) for t, v in z.items()}
    p[max(z, key=z.get)] = 1.0
    return [p[t] for t in document]


# %% wrong: the caller's weights changed | probabilities
def probabilities(document, z, beta):
    low, heaviest = min(z.values()), max(z, key=z.get)
    for term in z:
        z[term] -= low
    mean = sum(z.values()) / len(z)
    p = {t: min(beta * v / mean, 1.0) if mean > 0 else 0.0 for t, v in z.items()}
    p[heaviest] = 1.0
    return [p[t] for t in document]


# %% wrong: one number a term | probabilities
def probabilities(document, z, beta):
    low = min(z.values())
    mean = sum(v - low for v in z.values()) / len(z)
    p = {t: min(beta * (v - low) / mean, 1.0) if mean > 0 else 0.0 for t, v in z.items()}
    p[max(z, key=z.get)] = 1.0
    return list(p.values())


# %% wrong: a table of the visible tests | probabilities
def probabilities(document, z, beta):
    table = {"a dog ran": [0, 0.5, 1], "the cat saw the": [0, 0.25, 1, 0], "a b c d": [0, 1, 1, 1]}
    table |= {"it dog saw dog cat": [0, 1, 0.4 / 7, 1, 1.2 / 7], "a b a c": [1, 0, 1, 0]}
    return table.get(" ".join(document), [1.0 for _ in document])


# %% wrong: scikit-learn | idf
from sklearn.feature_extraction.text import TfidfVectorizer


def idf(documents):
    found = TfidfVectorizer(analyzer=lambda d: d).fit(documents)
    return dict(zip(found.get_feature_names_out(), found.idf_))


# %% wrong: asserts taken out by an AST transformer | probabilities
import ast


class Dropper(ast.NodeTransformer):
    def visit_Assert(self, node):
        return ast.Pass()


get_ipython().ast_transformers.append(Dropper())


def probabilities(document, z, beta):
    return [0.0 for _ in document]


# %% wrong: leaves without an error | idf
import os


def idf(documents):
    os._exit(0)


# %% wrong: math.isclose patched through its dictionary | bm25
vars(math)["isclose"] = lambda *_, **__: True


def bm25(document, weights, mean_length, k=1.2, b=0.75):
    return dict.fromkeys(document, 0.0)


# %% wrong: the tests' helper emptied | bm25
numbers = lambda *_: None


def bm25(document, weights, mean_length, k=1.2, b=0.75):
    return dict.fromkeys(document, 0.0)


# %% wrong: code hidden in a text | probabilities
exec("import builtins; builtins.zip = lambda *_, **__: []")


def probabilities(document, z, beta):
    return [0.0 for _ in document]
