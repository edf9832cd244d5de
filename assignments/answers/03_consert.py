# %% right: sorted noise | token_cutoff
def token_cutoff(x, mask, rate, random):
    noise = torch.rand(mask.shape, generator=random).masked_fill(mask == 0, 2.0)
    order = noise.argsort(1).argsort(1)
    k = (rate * mask.sum(1).double()).long()
    return x * (order >= k[:, None])[..., None]


# %% right: a product of masks | feature_cutoff
def feature_cutoff(x, mask, rate, random):
    n, _, d = x.shape
    rank = torch.rand(n, d, generator=random).argsort(1).argsort(1)
    cut = (rank < int(rate * d))[:, None, :] & mask.bool()[..., None]
    return x.masked_fill(cut, 0)


# %% right: sorted noise | shuffle_positions
def shuffle_positions(mask, random):
    t = mask.shape[1]
    noise = torch.rand(mask.shape, generator=random).where(mask.bool(), 1.0 + torch.arange(t))
    return noise.argsort(1).argsort(1)


# %% wrong: each token by a coin | token_cutoff
def token_cutoff(x, mask, rate, random):
    cut = (torch.rand(mask.shape, generator=random) < rate) & mask.bool()
    return x.masked_fill(cut[..., None], 0)


# %% wrong: padding counted | token_cutoff
def token_cutoff(x, mask, rate, random):
    out = x.clone()
    for i in range(len(x)):
        out[i, torch.randperm(x.shape[1], generator=random)[: int(rate * x.shape[1])]] = 0
    return out


# %% wrong: the first tokens | token_cutoff
def token_cutoff(x, mask, rate, random):
    out = x.clone()
    for i, length in enumerate(mask.sum(1).tolist()):
        out[i, : int(rate * length)] = 0
    return out


# %% wrong: in place | token_cutoff
def token_cutoff(x, mask, rate, random):
    for i, length in enumerate(mask.sum(1).tolist()):
        x[i, torch.randperm(length, generator=random)[: int(rate * length)]] = 0
    return x


# %% wrong: rescaled like dropout | token_cutoff
def token_cutoff(x, mask, rate, random):
    out = x.clone()
    for i, length in enumerate(mask.sum(1).tolist()):
        out[i, torch.randperm(length, generator=random)[: int(rate * length)]] = 0
    return out / (1 - rate)


# %% wrong: rounded up | token_cutoff
def token_cutoff(x, mask, rate, random):
    out = x.clone()
    for i, length in enumerate(mask.sum(1).tolist()):
        out[i, torch.randperm(length, generator=random)[: -int(-rate * length // 1)]] = 0
    return out


# %% wrong: torch's own generator | token_cutoff
def token_cutoff(x, mask, rate, random):
    out = x.clone()
    for i, length in enumerate(mask.sum(1).tolist()):
        out[i, torch.randperm(length)[: int(rate * length)]] = 0
    return out


# %% wrong: same noise for all sentences | token_cutoff
def token_cutoff(x, mask, rate, random):
    noise = torch.rand(mask.shape[1], generator=random).expand(mask.shape).masked_fill(mask == 0, 2.0)
    k = (rate * mask.sum(1).double()).long()
    return x * (noise.argsort(1).argsort(1) >= k[:, None])[..., None]


# %% wrong: same columns for the whole batch | feature_cutoff
def feature_cutoff(x, mask, rate, random):
    columns = torch.randperm(x.shape[2], generator=random)[: int(rate * x.shape[2])]
    out = x.clone()
    out[..., columns] = 0
    return out.where(mask.bool()[..., None], x)


# %% wrong: other columns for each token | feature_cutoff
def feature_cutoff(x, mask, rate, random):
    rank = torch.rand(x.shape, generator=random).argsort(2).argsort(2)
    return x.masked_fill((rank < int(rate * x.shape[2])) & mask.bool()[..., None], 0)


# %% wrong: padding touched | feature_cutoff
def feature_cutoff(x, mask, rate, random):
    rank = torch.rand(len(x), x.shape[2], generator=random).argsort(1).argsort(1)
    return x.masked_fill((rank < int(rate * x.shape[2]))[:, None, :], 0)


# %% wrong: in place | feature_cutoff
def feature_cutoff(x, mask, rate, random):
    for i in range(len(x)):
        columns = torch.randperm(x.shape[2], generator=random)[: int(rate * x.shape[2])]
        x[i, mask[i].bool().nonzero(), columns] = 0
    return x


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


# %% wrong: neighbouring tokens | token_cutoff
def token_cutoff(x, mask, rate, random):
    out = x.clone()
    for i, length in enumerate(mask.sum(1).tolist()):
        start = int(torch.randint(length, (), generator=random))
        out[i, (start + torch.arange(int(rate * length))) % length] = 0
    return out


# %% wrong: ones for the values | token_cutoff
def token_cutoff(x, mask, rate, random):
    kept = torch.ones_like(x)
    for i, length in enumerate(mask.sum(1).tolist()):
        kept[i, torch.randperm(length, generator=random)[: int(rate * length)]] = 0
    return kept


# %% wrong: torch's own generator | feature_cutoff
def feature_cutoff(x, mask, rate, random):
    out = x.clone()
    for i in range(len(x)):
        columns = torch.randperm(x.shape[2])[: int(rate * x.shape[2])]
        out[i, mask[i].bool().nonzero(), columns] = 0
    return out


# %% wrong: torch's own generator | shuffle_positions
def shuffle_positions(mask, random):
    positions = torch.arange(mask.shape[1]).repeat(len(mask), 1)
    for i, length in enumerate(mask.sum(1).tolist()):
        positions[i, :length] = torch.randperm(length)
    return positions


# %% wrong: neighbouring columns | feature_cutoff
def feature_cutoff(x, mask, rate, random):
    out, d = x.clone(), x.shape[2]
    for i in range(len(x)):
        start = int(torch.randint(d, (), generator=random))
        columns = (start + torch.arange(int(rate * d))) % d
        out[i, mask[i].bool().nonzero(), columns] = 0
    return out


# %% wrong: the first token keeps its position | shuffle_positions
def shuffle_positions(mask, random):
    positions = torch.arange(mask.shape[1]).repeat(len(mask), 1)
    for i, length in enumerate(mask.sum(1).tolist()):
        positions[i, 1:length] = 1 + torch.randperm(length - 1, generator=random)
    return positions


# %% wrong: the first token is never cut | token_cutoff
def token_cutoff(x, mask, rate, random):
    out = x.clone()
    for i, length in enumerate(mask.sum(1).tolist()):
        k = min(int(rate * length), length - 1)
        out[i, 1 + torch.randperm(length - 1, generator=random)[:k]] = 0
    return out


# %% wrong: the library's own | token_cutoff
from lib.augment.vectors import token_cutoff


# %% wrong: the library's own, found among the loaded modules | feature_cutoff
import sys


def feature_cutoff(x, mask, rate, random):
    return sys.modules["lib.augment.vectors"].feature_cutoff(x, mask, rate, random)


# %% wrong: the mask emptied so that nothing is padding | token_cutoff
def token_cutoff(x, mask, rate, random):
    out = x.clone()
    for i, length in enumerate(mask.sum(1).tolist()):
        out[i, torch.randperm(length, generator=random)[: int(rate * length)]] = 0
    mask.fill_(1)
    return out


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


# %% wrong: reseeds the generator | token_cutoff
def token_cutoff(x, mask, rate, random):
    random.manual_seed(0)
    out = x.clone()
    for i, length in enumerate(mask.sum(1).tolist()):
        out[i, torch.randperm(length, generator=random)[: int(rate * length)]] = 0
    return out


# %% wrong: the gradient cut off | token_cutoff
def token_cutoff(x, mask, rate, random):
    out = x.detach().clone()
    for i, length in enumerate(mask.sum(1).tolist()):
        out[i, torch.randperm(length, generator=random)[: int(rate * length)]] = 0
    return out.requires_grad_()


# %% wrong: Python's all hidden by another | feature_cutoff
def all(values):
    return True


def feature_cutoff(x, mask, rate, random):
    return x.clone()


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
