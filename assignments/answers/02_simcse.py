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
def loss_without_dropout(z, temperature):
    u = z / z.norm(dim=1, keepdim=True)
    return F.cross_entropy(u @ u.T / temperature, torch.arange(len(z)))


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
def loss_without_dropout(z, temperature):
    u = F.normalize(z, dim=1)
    return (u @ u.T / temperature).logsumexp(dim=1).mean()


# %% wrong: no normalisation | loss_without_dropout
def loss_without_dropout(z, temperature):
    return (z @ z.T / temperature).logsumexp(dim=1).mean() - 1 / temperature


# %% wrong: positive left out of the sum | loss_without_dropout
def loss_without_dropout(z, temperature):
    u = F.normalize(z, dim=1)
    sim = (u @ u.T / temperature).masked_fill(torch.eye(len(z), dtype=torch.bool), float("-inf"))
    return sim.logsumexp(dim=1).mean() - 1 / temperature


# %% wrong: sum for mean | loss_without_dropout
def loss_without_dropout(z, temperature):
    u = F.normalize(z, dim=1)
    return ((u @ u.T / temperature).logsumexp(dim=1) - 1 / temperature).sum()


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
