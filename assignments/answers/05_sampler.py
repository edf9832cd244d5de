# %% right: two ranges | candidates
def candidates(place, radius, size):
    below = range(max(place - radius, 0), place)
    above = range(place + 1, min(place + radius, size - 1) + 1)
    return [*below, *above]


# %% right: the cumulative sum by hand | replacement
def replacement(place, s, radius, rng):
    found = candidates(place, radius, len(s))
    if not found:
        return place
    weights = s[found] if s[found].sum() else np.ones(len(found))
    total = np.cumsum(weights)
    return found[int(np.searchsorted(total, rng.random() * total[-1], side="right"))]


# %% right: a loop on a copy | negative
def negative(sentence, p, s, radius, rng):
    new = list(sentence)
    for i, share in enumerate(p):
        if rng.random() < share:
            new[i] = replacement(sentence[i], s, radius, rng)
    return new


# %% wrong: window one short above | candidates
def candidates(place, radius, size):
    return [k for k in range(max(0, place - radius), min(size, place + radius)) if k != place]


# %% wrong: window one short below | candidates
def candidates(place, radius, size):
    return [k for k in range(max(0, place - radius + 1), min(size, place + radius + 1)) if k != place]


# %% wrong: the term itself | candidates
def candidates(place, radius, size):
    return list(range(max(0, place - radius), min(size, place + radius + 1)))


# %% wrong: negative places | candidates
def candidates(place, radius, size):
    return [k for k in range(place - radius, min(size, place + radius + 1)) if k != place]


# %% wrong: beyond the vocabulary | candidates
def candidates(place, radius, size):
    return [k for k in range(max(0, place - radius), place + radius + 1) if k != place]


# %% wrong: wraps around | candidates
def candidates(place, radius, size):
    return sorted({k % size for k in range(place - radius, place + radius + 1)} - {place})


# %% wrong: all equally likely | replacement
def replacement(place, s, radius, rng):
    found = candidates(place, radius, len(s))
    return int(rng.choice(found)) if found else place


# %% wrong: softmax of the scores | replacement
def replacement(place, s, radius, rng):
    found = candidates(place, radius, len(s))
    if not found:
        return place
    weights = np.exp(s[found])
    return int(rng.choice(found, p=weights / weights.sum()))


# %% wrong: the heaviest candidate | replacement
def replacement(place, s, radius, rng):
    found = candidates(place, radius, len(s))
    return max(found, key=lambda k: s[k]) if found else place


# %% wrong: NumPy's global generator | replacement
def replacement(place, s, radius, rng):
    found = candidates(place, radius, len(s))
    if not found:
        return place
    weights = s[found]
    p = weights / weights.sum() if weights.sum() > 0 else None
    return int(np.random.choice(found, p=p))


# %% wrong: divides by zero | replacement
def replacement(place, s, radius, rng):
    found = candidates(place, radius, len(s))
    if not found:
        return place
    return int(rng.choice(found, p=s[found] / s[found].sum()))


# %% wrong: no candidate, no answer | replacement
def replacement(place, s, radius, rng):
    found = candidates(place, radius, len(s))
    weights = s[found]
    return int(rng.choice(found, p=weights / weights.sum() if weights.sum() > 0 else None))


# %% wrong: keeps with probability p | negative
def negative(sentence, p, s, radius, rng):
    return [t if rng.random() < q else replacement(t, s, radius, rng) for t, q in zip(sentence, p)]


# %% wrong: one draw for the sentence | negative
def negative(sentence, p, s, radius, rng):
    u = rng.random()
    return [replacement(t, s, radius, rng) if u < q else t for t, q in zip(sentence, p)]


# %% wrong: in place | negative
def negative(sentence, p, s, radius, rng):
    for i, q in enumerate(p):
        if rng.random() < q:
            sentence[i] = replacement(sentence[i], s, radius, rng)
    return sentence


# %% wrong: rounds p | negative
def negative(sentence, p, s, radius, rng):
    return [replacement(t, s, radius, rng) if q >= 0.5 else t for t, q in zip(sentence, p)]


# %% wrong: swaps words of the sentence | negative
def negative(sentence, p, s, radius, rng):
    return [int(rng.choice(sentence)) if rng.random() < q else t for t, q in zip(sentence, p)]


# %% wrong: the place in the order for the score | replacement
def replacement(place, s, radius, rng):
    found = candidates(place, radius, len(s))
    if not found:
        return place
    weights = (np.array(found) + 1.0) if s[found].sum() > 0 else np.ones(len(found))
    return int(rng.choice(found, p=weights / weights.sum()))


# %% wrong: coins from NumPy's global generator | negative
def negative(sentence, p, s, radius, rng):
    return [replacement(t, s, radius, rng) if np.random.random() < q else t for t, q in zip(sentence, p)]


# %% wrong: the radius ignored | negative
def negative(sentence, p, s, radius, rng):
    return [replacement(t, s, 2, rng) if rng.random() < q else t for t, q in zip(sentence, p)]


# %% wrong: the scores ignored | negative
def negative(sentence, p, s, radius, rng):
    return [int(rng.choice(candidates(t, radius, len(s)))) if rng.random() < q else t for t, q in zip(sentence, p)]


# %% wrong: always the next term | negative
def negative(sentence, p, s, radius, rng):
    return [t + 1 if rng.random() < q else t for t, q in zip(sentence, p)]


# %% wrong: asserts taken out by an AST transformer | candidates
import ast


class Dropper(ast.NodeTransformer):
    def visit_Assert(self, node):
        return ast.Pass()


get_ipython().ast_transformers.append(Dropper())


def candidates(place, radius, size):
    return []


# %% wrong: an array that equals every array | candidates
class Every(np.ndarray):
    def __eq__(self, other):
        return True


def candidates(place, radius, size):
    return np.zeros(3).view(Every)


# %% wrong: numpy's abs and random patched | replacement
np.abs = lambda *_: np.zeros(1)
np.random.default_rng = lambda *_: None


def replacement(place, s, radius, rng):
    return place + 1


# %% wrong: a generator of its own with a fixed seed | replacement
def replacement(place, s, radius, rng):
    rng = np.random.default_rng(len(s))
    found = candidates(place, radius, len(s))
    weights = s[found]
    return int(rng.choice(found, p=weights / weights.sum())) if found else place


# %% wrong: the scores of the caller changed | replacement
def replacement(place, s, radius, rng):
    found = candidates(place, radius, len(s))
    if not found:
        return place
    if s[found].sum() == 0:
        return int(rng.choice(found))
    kept = s[place]
    s[place] = 0
    window = s[max(0, place - radius) : place + radius + 1]
    return max(0, place - radius) + int(rng.choice(len(window), p=window / window.sum()))


# %% wrong: weights squared | replacement
def replacement(place, s, radius, rng):
    found = candidates(place, radius, len(s))
    if not found:
        return place
    weights = s[found] ** 2
    return int(rng.choice(found, p=weights / weights.sum() if weights.sum() > 0 else None))


# %% wrong: draws turn about, without chance | replacement
import itertools

turn = itertools.count()


def replacement(place, s, radius, rng):
    found = candidates(place, radius, len(s))
    return found[next(turn) % len(found)] if found else place


# %% wrong: the library's own sampler | negative
def negative(sentence, p, s, radius, rng):
    from lib.augment import una

    return una.negative(sentence, p, s, radius, rng)


# %% wrong: one draw for equal terms | negative
def negative(sentence, p, s, radius, rng):
    drawn = {t: replacement(t, s, radius, rng) for t in dict.fromkeys(sentence)}
    return [drawn[t] if rng.random() < q else t for t, q in zip(sentence, p, strict=True)]
