# %% right: einsum | mean_pool
def mean_pool(states, mask):
    return torch.einsum("ntd,nt->nd", states, mask.float()) / mask.sum(1, keepdim=True)


# %% right: one batch of twice the size | two_views
def two_views(encoder, ids, mask):
    before = encoder.training
    encoder.train()
    both, twice = torch.cat([ids, ids]), torch.cat([mask, mask])
    pooled = mean_pool(encoder(both, twice), twice)
    encoder.train(before)
    return pooled.chunk(2)


# %% right: sentence by sentence | mean_pool
def mean_pool(states, mask):
    return torch.stack([row[kept.bool()].mean(0) for row, kept in zip(states, mask)])


# %% right: cross entropy with each sentence as its own class | loss_without_dropout
def loss_without_dropout(z, temperature, same):
    u = z / z.norm(dim=1, keepdim=True)
    logits = (u @ u.T / temperature).masked_fill(same ^ torch.eye(len(z), dtype=torch.bool), float("-inf"))
    return F.cross_entropy(logits, torch.arange(len(z)))


# %% wrong: padding counted | mean_pool
def mean_pool(states, mask):
    return states.mean(1)


# %% wrong: padding in the denominator | mean_pool
def mean_pool(states, mask):
    return (states * mask[..., None]).mean(1)


# %% wrong: sum for mean | mean_pool
def mean_pool(states, mask):
    return (states * mask[..., None]).sum(1)


# %% wrong: first token | mean_pool
def mean_pool(states, mask):
    return states[:, 0]


# %% wrong: states changed in place | mean_pool
def mean_pool(states, mask):
    states *= mask[..., None]
    return states.sum(1) / mask.sum(1, keepdim=True)


# %% wrong: dropout off | two_views
def two_views(encoder, ids, mask):
    before = encoder.training
    encoder.eval()
    views = mean_pool(encoder(ids, mask), mask), mean_pool(encoder(ids, mask), mask)
    encoder.train(before)
    return views


# %% wrong: one encoding used twice | two_views
def two_views(encoder, ids, mask):
    before = encoder.training
    encoder.train()
    z = mean_pool(encoder(ids, mask), mask)
    encoder.train(before)
    return z, z.clone()


# %% wrong: mode not restored | two_views
def two_views(encoder, ids, mask):
    encoder.train()
    return mean_pool(encoder(ids, mask), mask), mean_pool(encoder(ids, mask), mask)


# %% wrong: left in evaluation mode | two_views
def two_views(encoder, ids, mask):
    encoder.train()
    views = mean_pool(encoder(ids, mask), mask), mean_pool(encoder(ids, mask), mask)
    encoder.eval()
    return views


# %% wrong: second view without gradient | two_views
def two_views(encoder, ids, mask):
    before = encoder.training
    encoder.train()
    one = mean_pool(encoder(ids, mask), mask)
    with torch.no_grad():
        two = mean_pool(encoder(ids, mask), mask)
    encoder.train(before)
    return one, two


# %% wrong: noise on top of the pooled vector | two_views
def two_views(encoder, ids, mask):
    z = mean_pool(encoder(ids, mask), mask)
    return z, z + 0.01 * torch.randn_like(z)


# %% wrong: numerator forgotten | loss_without_dropout
def loss_without_dropout(z, temperature, same):
    u = F.normalize(z, dim=1)
    copies = same & ~torch.eye(len(z), dtype=torch.bool)
    return (u @ u.T / temperature).masked_fill(copies, -torch.inf).logsumexp(dim=1).mean()


# %% wrong: no normalisation | loss_without_dropout
def loss_without_dropout(z, temperature, same):
    copies = same & ~torch.eye(len(z), dtype=torch.bool)
    return (z @ z.T / temperature).masked_fill(copies, -torch.inf).logsumexp(dim=1).mean() - 1 / temperature


# %% wrong: i itself left out, its copies counted | loss_without_dropout
def loss_without_dropout(z, temperature, same):
    u = F.normalize(z, dim=1)
    sim = (u @ u.T / temperature).masked_fill(torch.eye(len(z), dtype=torch.bool), float("-inf"))
    return sim.logsumexp(dim=1).mean() - 1 / temperature


# %% wrong: sum for mean | loss_without_dropout
def loss_without_dropout(z, temperature, same):
    u = F.normalize(z, dim=1)
    copies = same & ~torch.eye(len(z), dtype=torch.bool)
    return ((u @ u.T / temperature).masked_fill(copies, -torch.inf).logsumexp(dim=1) - 1 / temperature).sum()


# %% wrong: dropout in one view only | two_views
def two_views(encoder, ids, mask):
    before = encoder.training
    encoder.train()
    one = mean_pool(encoder(ids, mask), mask)
    encoder.eval()
    two = mean_pool(encoder(ids, mask), mask)
    encoder.train(before)
    return one, two


# %% wrong: only the outer module's mode restored | two_views
def two_views(encoder, ids, mask):
    before = encoder.training
    encoder.train()
    views = mean_pool(encoder(ids, mask), mask), mean_pool(encoder(ids, mask), mask)
    encoder.training = before
    return views


# %% wrong: a seed for each view | two_views
def two_views(encoder, ids, mask):
    before = encoder.training
    encoder.train()
    torch.manual_seed(1)
    one = mean_pool(encoder(ids, mask), mask)
    torch.manual_seed(2)
    two = mean_pool(encoder(ids, mask), mask)
    encoder.train(before)
    return one, two


# %% wrong: seeds that count up | two_views
import itertools

seeds = itertools.count()


def two_views(encoder, ids, mask):
    before = encoder.training
    encoder.train()
    torch.manual_seed(next(seeds))
    views = mean_pool(encoder(ids, mask), mask), mean_pool(encoder(ids, mask), mask)
    encoder.train(before)
    return views


# %% wrong: without a gradient | loss_without_dropout
@torch.no_grad()
def loss_without_dropout(z, temperature, same):
    u = F.normalize(z, dim=1)
    copies = same & ~torch.eye(len(z), dtype=torch.bool)
    return (u @ u.T / temperature).masked_fill(copies, -torch.inf).logsumexp(dim=1).mean() - 1 / temperature


# %% wrong: candidates detached | loss_without_dropout
def loss_without_dropout(z, temperature, same):
    u = F.normalize(z, dim=1)
    copies = same & ~torch.eye(len(z), dtype=torch.bool)
    sim = (u @ u.detach().T / temperature).masked_fill(copies, -torch.inf)
    return sim.logsumexp(dim=1).mean() - 1 / temperature


# %% wrong: the library's two-view loss | loss_without_dropout
from lib.training import losses


def loss_without_dropout(z, temperature, same):
    return losses.info_nce(z, z, temperature)


# %% wrong: the library's loss through importlib | loss_without_dropout
import importlib


def loss_without_dropout(z, temperature, same):
    return importlib.import_module("lib.training.losses").info_nce(z, z, temperature)


# %% wrong: dropout of its own on the pooled vector | two_views
def two_views(encoder, ids, mask):
    z = mean_pool(encoder(ids, mask), mask)
    return F.dropout(z, 0.1), F.dropout(z, 0.1)


# %% wrong: dropout of its own on the states | two_views
def two_views(encoder, ids, mask):
    states = encoder(ids, mask)
    return mean_pool(F.dropout(states, 0.1), mask), mean_pool(F.dropout(states, 0.1), mask)


# %% wrong: a hook on every module | two_views
def noise(module, given, states):
    return states + 0.01 * torch.randn_like(states) if torch.is_tensor(states) else states


nn.modules.module.register_module_forward_hook(noise)


def two_views(encoder, ids, mask):
    return mean_pool(encoder(ids, mask), mask), mean_pool(encoder(ids, mask), mask)


# %% wrong: the tests' toy encoder replaced | two_views
Toy.forward = lambda self, ids, mask: torch.randn(len(ids), ids.shape[1], 16) + 0 * self.layer.weight.sum()


def two_views(encoder, ids, mask):
    return mean_pool(encoder(ids, mask), mask), mean_pool(encoder(ids, mask), mask)


# %% wrong: the mask read as a length | mean_pool
def mean_pool(states, mask):
    return torch.stack([row[: int(kept.sum())].mean(0) for row, kept in zip(states, mask)])


# %% right: the encoder called with keywords | two_views
def two_views(encoder, ids, mask):
    before = encoder.training
    encoder.train()
    views = tuple(mean_pool(states=encoder(ids=ids, mask=mask), mask=mask) for _ in range(2))
    encoder.train(before)
    return views


# %% right: only the modules of dropout in training mode | two_views
def two_views(encoder, ids, mask):
    before = [(part, part.training) for part in encoder.modules() if isinstance(part, nn.Dropout)]
    for part, _ in before:
        part.train()
    views = mean_pool(encoder(ids, mask), mask), mean_pool(encoder(ids, mask), mask)
    for part, mode in before:
        part.train(mode)
    return views


# %% right: the lesson's loss without the copies | loss_without_dropout
def cosines(z):
    u = F.normalize(z, dim=1)
    return u @ u.T


def loss_without_dropout(z, temperature, same):
    others = ((cosines(z) - 1) / temperature).masked_fill(same, -torch.inf).exp()
    return (1 + others.sum(1)).log().mean()


# %% wrong: copies counted as negatives | loss_without_dropout
def loss_without_dropout(z, temperature, same):
    z = F.normalize(z, dim=1)
    others = ((z @ z.T - 1) / temperature).fill_diagonal_(-torch.inf).exp()
    return (1 + others.sum(1)).log().mean()


# %% wrong: all pairs of the same sentence left out, i itself too | loss_without_dropout
def loss_without_dropout(z, temperature, same):
    u = F.normalize(z, dim=1)
    return (u @ u.T / temperature).masked_fill(same, -torch.inf).logsumexp(dim=1).mean() - 1 / temperature


# %% wrong: a logit of 0 for the copies | loss_without_dropout
def loss_without_dropout(z, temperature, same):
    u = F.normalize(z, dim=1)
    copies = same & ~torch.eye(len(z), dtype=torch.bool)
    return (u @ u.T / temperature).masked_fill(copies, 0.0).logsumexp(dim=1).mean() - 1 / temperature


# %% wrong: repeated sentences taken out of the batch | loss_without_dropout
def loss_without_dropout(z, temperature, same):
    first = same.int().argmax(1) == torch.arange(len(z))
    u = F.normalize(z[first], dim=1)
    return (u @ u.T / temperature).logsumexp(dim=1).mean() - 1 / temperature


# %% wrong: equal vectors taken for copies | loss_without_dropout
def loss_without_dropout(z, temperature, same):
    u = F.normalize(z, dim=1)
    copies = (u @ u.T > 0.9999) & ~torch.eye(len(z), dtype=torch.bool)
    return (u @ u.T / temperature).masked_fill(copies, -torch.inf).logsumexp(dim=1).mean() - 1 / temperature


# %% wrong: exponentials overflow | loss_without_dropout
def loss_without_dropout(z, temperature, same):
    u = F.normalize(z, dim=1)
    kept = ~same | torch.eye(len(z), dtype=torch.bool)
    return ((u @ u.T / temperature).exp() * kept).sum(1).log().mean() - 1 / temperature


# %% wrong: the caller's matrix changed | loss_without_dropout
def loss_without_dropout(z, temperature, same):
    u = F.normalize(z, dim=1)
    copies = same.fill_diagonal_(False)
    return (u @ u.T / temperature).masked_fill(copies, -torch.inf).logsumexp(dim=1).mean() - 1 / temperature
