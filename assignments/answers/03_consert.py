# %% right: one comparison for the whole batch | span_cutoff
def span_cutoff(x, mask, rate, random):
    length = mask.sum(1)
    k = (rate * length.double()).long()
    start = (torch.rand(len(x), generator=random) * (length - k + 1)).long()
    place = torch.arange(x.shape[1]) - start[:, None]
    return x.masked_fill(((place >= 0) & (place < k[:, None]))[..., None], 0)


# %% right: multiplied by zeros and ones | span_cutoff
def span_cutoff(x, mask, rate, random):
    kept = torch.ones(mask.shape)
    for i in range(len(x)):
        length = int(mask[i].sum())
        k = int(rate * length)
        start = torch.randperm(length - k + 1, generator=random)[0]
        kept[i, start : start + k] = 0
    return x * kept[..., None]


# %% right: bernoulli with a generator | dropout_view
def dropout_view(x, mask, rate, random):
    kept = torch.bernoulli(torch.full(x.shape, 1 - rate), generator=random)
    real = mask[..., None].to(x.dtype)
    return x * kept / (1 - rate) * real + x * (1 - real)


# %% right: sentence by sentence | dropout_view
def dropout_view(x, mask, rate, random):
    out = x.clone()
    for i, length in enumerate(mask.sum(1).tolist()):
        cut = torch.rand(length, x.shape[2], generator=random) < rate
        out[i, :length] = (x[i, :length] / (1 - rate)).masked_fill(cut, 0)
    return out


# %% right: sorted noise | shuffle_positions
def shuffle_positions(mask, random):
    t = mask.shape[1]
    noise = torch.rand(mask.shape, generator=random).where(mask.bool(), 1.0 + torch.arange(t))
    return noise.argsort(1).argsort(1)


# %% wrong: wraps around | span_cutoff
def span_cutoff(x, mask, rate, random):
    out = x.clone()
    for i, length in enumerate(mask.sum(1).tolist()):
        k = int(rate * length)
        start = int(torch.randint(length, (), generator=random))
        out[i, (start + torch.arange(k)) % length] = 0
    return out


# %% wrong: scattered tokens | span_cutoff
def span_cutoff(x, mask, rate, random):
    out = x.clone()
    for i, length in enumerate(mask.sum(1).tolist()):
        k = int(rate * length)
        out[i, torch.randperm(length, generator=random)[:k]] = 0
    return out


# %% wrong: each token by a coin | span_cutoff
def span_cutoff(x, mask, rate, random):
    cut = (torch.rand(mask.shape, generator=random) < rate) & mask.bool()
    return x.masked_fill(cut[..., None], 0)


# %% wrong: begins at 0 | span_cutoff
def span_cutoff(x, mask, rate, random):
    out = x.clone()
    for i, length in enumerate(mask.sum(1).tolist()):
        k = int(rate * length)
        out[i, :k] = 0
    return out


# %% wrong: the last place forgotten | span_cutoff
def span_cutoff(x, mask, rate, random):
    out = x.clone()
    for i, length in enumerate(mask.sum(1).tolist()):
        k = int(rate * length)
        start = int(torch.randint(max(length - k, 1), (), generator=random))
        out[i, start : start + k] = 0
    return out


# %% wrong: a place of any token, cut off at the end of the sentence | span_cutoff
def span_cutoff(x, mask, rate, random):
    out = x.clone()
    for i, length in enumerate(mask.sum(1).tolist()):
        k = int(rate * length)
        start = int(torch.randint(length, (), generator=random))
        out[i, start : min(start + k, length)] = 0
    return out


# %% wrong: a place of any token, moved back where it does not fit | span_cutoff
def span_cutoff(x, mask, rate, random):
    out = x.clone()
    for i, length in enumerate(mask.sum(1).tolist()):
        k = int(rate * length)
        start = min(int(torch.randint(length, (), generator=random)), length - k)
        out[i, start : start + k] = 0
    return out


# %% wrong: rounded places, half as often at both ends | span_cutoff
def span_cutoff(x, mask, rate, random):
    out = x.clone()
    for i, length in enumerate(mask.sum(1).tolist()):
        k = int(rate * length)
        start = round(torch.rand((), generator=random).item() * (length - k))
        out[i, start : start + k] = 0
    return out


# %% wrong: the first token is never cut | span_cutoff
def span_cutoff(x, mask, rate, random):
    out = x.clone()
    for i, length in enumerate(mask.sum(1).tolist()):
        k = int(rate * length)
        start = int(torch.randint(min(1, length - k), length - k + 1, (), generator=random))
        out[i, start : start + k] = 0
    return out


# %% wrong: padding counted in the length | span_cutoff
def span_cutoff(x, mask, rate, random):
    out, t = x.clone(), x.shape[1]
    k = int(rate * t)
    for i in range(len(x)):
        start = int(torch.randint(t - k + 1, (), generator=random))
        out[i, start : start + k] = 0
    return out


# %% wrong: padding counted for the places | span_cutoff
def span_cutoff(x, mask, rate, random):
    out = x.clone()
    for i, length in enumerate(mask.sum(1).tolist()):
        k = int(rate * length)
        start = int(torch.randint(x.shape[1] - k + 1, (), generator=random))
        out[i, start : start + k] = 0
    return out


# %% wrong: rounded up | span_cutoff
def span_cutoff(x, mask, rate, random):
    out = x.clone()
    for i, length in enumerate(mask.sum(1).tolist()):
        k = -int(-rate * length // 1)
        start = int(torch.randint(length - k + 1, (), generator=random))
        out[i, start : start + k] = 0
    return out


# %% wrong: in place | span_cutoff
def span_cutoff(x, mask, rate, random):
    for i, length in enumerate(mask.sum(1).tolist()):
        k = int(rate * length)
        start = int(torch.randint(length - k + 1, (), generator=random))
        x[i, start : start + k] = 0
    return x


# %% wrong: rescaled like dropout | span_cutoff
def span_cutoff(x, mask, rate, random):
    out = x.clone()
    for i, length in enumerate(mask.sum(1).tolist()):
        k = int(rate * length)
        start = int(torch.randint(length - k + 1, (), generator=random))
        out[i, start : start + k] = 0
    return out / (1 - rate)


# %% wrong: ones for the values | span_cutoff
def span_cutoff(x, mask, rate, random):
    kept = torch.ones_like(x)
    for i, length in enumerate(mask.sum(1).tolist()):
        k = int(rate * length)
        start = int(torch.randint(length - k + 1, (), generator=random))
        kept[i, start : start + k] = 0
    return kept


# %% wrong: torch's own generator | span_cutoff
def span_cutoff(x, mask, rate, random):
    out = x.clone()
    for i, length in enumerate(mask.sum(1).tolist()):
        k = int(rate * length)
        start = int(torch.randint(length - k + 1, ()))
        out[i, start : start + k] = 0
    return out


# %% wrong: same noise for all sentences | span_cutoff
def span_cutoff(x, mask, rate, random):
    noise = torch.rand((), generator=random).item()
    out = x.clone()
    for i, length in enumerate(mask.sum(1).tolist()):
        k = int(rate * length)
        start = int(noise * (length - k + 1))
        out[i, start : start + k] = 0
    return out


# %% wrong: reseeds the generator | span_cutoff
def span_cutoff(x, mask, rate, random):
    random.manual_seed(0)
    out = x.clone()
    for i, length in enumerate(mask.sum(1).tolist()):
        k = int(rate * length)
        start = int(torch.randint(length - k + 1, (), generator=random))
        out[i, start : start + k] = 0
    return out


# %% wrong: the gradient cut off | span_cutoff
def span_cutoff(x, mask, rate, random):
    out = x.detach().clone()
    for i, length in enumerate(mask.sum(1).tolist()):
        k = int(rate * length)
        start = int(torch.randint(length - k + 1, (), generator=random))
        out[i, start : start + k] = 0
    return out.requires_grad_()


# %% wrong: the library's own | span_cutoff
from lib.augment.vectors import span_cutoff


# %% wrong: the mask emptied so that nothing is padding | span_cutoff
def span_cutoff(x, mask, rate, random):
    out = x.clone()
    for i, length in enumerate(mask.sum(1).tolist()):
        k = int(rate * length)
        start = int(torch.randint(length - k + 1, (), generator=random))
        out[i, start : start + k] = 0
    mask.fill_(1)
    return out


# %% wrong: not rescaled | dropout_view
def dropout_view(x, mask, rate, random):
    kept = torch.rand(x.shape, generator=random) >= rate
    return torch.where(mask.bool()[..., None], x * kept, x)


# %% wrong: rescaled twice | dropout_view
def dropout_view(x, mask, rate, random):
    kept = torch.rand(x.shape, generator=random) >= rate
    return torch.where(mask.bool()[..., None], x * kept / (1 - rate) ** 2, x)


# %% wrong: multiplied by 1 - rate | dropout_view
def dropout_view(x, mask, rate, random):
    kept = torch.rand(x.shape, generator=random) >= rate
    return torch.where(mask.bool()[..., None], x * kept * (1 - rate), x)


# %% wrong: rescaled by the share that was kept | dropout_view
def dropout_view(x, mask, rate, random):
    kept = torch.rand(x.shape, generator=random) >= rate
    return torch.where(mask.bool()[..., None], x * kept / kept.float().mean(), x)


# %% wrong: kept with probability rate | dropout_view
def dropout_view(x, mask, rate, random):
    kept = torch.rand(x.shape, generator=random) < rate
    return torch.where(mask.bool()[..., None], x * kept / (1 - rate), x)


# %% wrong: one coin a token | dropout_view
def dropout_view(x, mask, rate, random):
    kept = torch.rand(*mask.shape, 1, generator=random) >= rate
    return torch.where(mask.bool()[..., None], x * kept / (1 - rate), x)


# %% wrong: one coin a column, as in a feature cutoff | dropout_view
def dropout_view(x, mask, rate, random):
    kept = torch.rand(len(x), 1, x.shape[2], generator=random) >= rate
    return torch.where(mask.bool()[..., None], x * kept / (1 - rate), x)


# %% wrong: exactly int(rate · d) of each token | dropout_view
def dropout_view(x, mask, rate, random):
    kept = torch.rand(x.shape, generator=random).argsort(2).argsort(2) >= int(rate * x.shape[2])
    return torch.where(mask.bool()[..., None], x * kept / (1 - rate), x)


# %% wrong: an exact count, as in the lesson | dropout_view
def dropout_view(x, mask, rate, random):
    out = x.clone()
    for i, length in enumerate(mask.sum(1).tolist()):
        size = length * x.shape[2]
        kept = torch.ones(size)
        kept[torch.randperm(size, generator=random)[: int(rate * size)]] = 0
        out[i, :length] = x[i, :length] * kept.view(length, -1) / (1 - rate)
    return out


# %% wrong: padding touched | dropout_view
def dropout_view(x, mask, rate, random):
    return x * (torch.rand(x.shape, generator=random) >= rate) / (1 - rate)


# %% wrong: padding divided, though not zeroed | dropout_view
def dropout_view(x, mask, rate, random):
    cut = (torch.rand(x.shape, generator=random) < rate) & mask.bool()[..., None]
    return x.masked_fill(cut, 0) / (1 - rate)


# %% wrong: padding emptied | dropout_view
def dropout_view(x, mask, rate, random):
    kept = (torch.rand(x.shape, generator=random) >= rate) & mask.bool()[..., None]
    return x * kept / (1 - rate)


# %% wrong: in place | dropout_view
def dropout_view(x, mask, rate, random):
    for i, length in enumerate(mask.sum(1).tolist()):
        x[i, :length] *= (torch.rand(length, x.shape[2], generator=random) >= rate) / (1 - rate)
    return x


# %% wrong: torch's own dropout | dropout_view
def dropout_view(x, mask, rate, random):
    return torch.where(mask.bool()[..., None], F.dropout(x, rate), x)


# %% wrong: same coins for all sentences | dropout_view
def dropout_view(x, mask, rate, random):
    kept = torch.rand(x.shape[1:], generator=random) >= rate
    return torch.where(mask.bool()[..., None], x * kept / (1 - rate), x)


# %% wrong: reseeds the generator | dropout_view
def dropout_view(x, mask, rate, random):
    random.manual_seed(0)
    kept = torch.rand(x.shape, generator=random) >= rate
    return torch.where(mask.bool()[..., None], x * kept / (1 - rate), x)


# %% wrong: the gradient cut off | dropout_view
def dropout_view(x, mask, rate, random):
    kept = torch.rand(x.shape, generator=random) >= rate
    return torch.where(mask.bool()[..., None], x * kept / (1 - rate), x).detach().requires_grad_()


# %% wrong: the library's own, found among the loaded modules | dropout_view
import sys


def dropout_view(x, mask, rate, random):
    return sys.modules["lib.augment.vectors"].dropout_view(x, mask, rate, random)


# %% wrong: Python's all hidden by another | dropout_view
def all(values):
    return True


def dropout_view(x, mask, rate, random):
    return x.clone()


# %% wrong: padding shuffled too | shuffle_positions
def shuffle_positions(mask, random):
    n, t = mask.shape
    return torch.stack([torch.randperm(t, generator=random) for _ in range(n)])


# %% wrong: one order for all | shuffle_positions
def shuffle_positions(mask, random):
    n, t = mask.shape
    noise = torch.rand(t, generator=random).expand(n, t).where(mask.bool(), 1.0 + torch.arange(t))
    return noise.argsort(1).argsort(1)


# %% wrong: reversed instead of shuffled | shuffle_positions
def shuffle_positions(mask, random):
    positions = torch.arange(mask.shape[1]).repeat(len(mask), 1)
    for i, length in enumerate(mask.sum(1).tolist()):
        positions[i, :length] = torch.arange(length - 1, -1, -1)
    return positions


# %% wrong: drawn with replacement | shuffle_positions
def shuffle_positions(mask, random):
    positions = torch.arange(mask.shape[1]).repeat(len(mask), 1)
    for i, length in enumerate(mask.sum(1).tolist()):
        positions[i, :length] = torch.randint(length, (length,), generator=random)
    return positions


# %% wrong: torch's own generator | shuffle_positions
def shuffle_positions(mask, random):
    positions = torch.arange(mask.shape[1]).repeat(len(mask), 1)
    for i, length in enumerate(mask.sum(1).tolist()):
        positions[i, :length] = torch.randperm(length)
    return positions


# %% wrong: the first token keeps its position | shuffle_positions
def shuffle_positions(mask, random):
    positions = torch.arange(mask.shape[1]).repeat(len(mask), 1)
    for i, length in enumerate(mask.sum(1).tolist()):
        positions[i, 1:length] = 1 + torch.randperm(length - 1, generator=random)
    return positions


# %% wrong: rotated instead of shuffled | shuffle_positions
def shuffle_positions(mask, random):
    positions = torch.arange(mask.shape[1]).repeat(len(mask), 1)
    for i, length in enumerate(mask.sum(1).tolist()):
        positions[i, :length] = positions[i, :length].roll(int(torch.randint(length, (), generator=random)))
    return positions


# %% wrong: every token moves | shuffle_positions
def shuffle_positions(mask, random):
    positions = torch.arange(mask.shape[1]).repeat(len(mask), 1)
    for i, length in enumerate(mask.sum(1).tolist()):
        drawn = torch.randperm(length, generator=random)
        while (drawn == torch.arange(length)).any():
            drawn = torch.randperm(length, generator=random)
        positions[i, :length] = drawn
    return positions


# %% wrong: each place swapped with any place | shuffle_positions
def shuffle_positions(mask, random):
    n, t = mask.shape
    positions = torch.arange(t).repeat(n, 1)
    for i, length in enumerate(mask.sum(1).tolist()):
        order = list(range(length))
        for j in range(length):
            k = int(torch.randint(length, (1,), generator=random))
            order[j], order[k] = order[k], order[j]
        positions[i, :length] = torch.tensor(order)
    return positions
