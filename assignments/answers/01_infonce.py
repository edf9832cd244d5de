# %% right: loops over rows | cosine_matrix
def cosine_matrix(a, b):
    return torch.stack([torch.stack([F.cosine_similarity(x, y, dim=0) for y in b]) for x in a])


# %% right: cross-entropy | info_nce
def info_nce(z1, z2, temperature):
    return F.cross_entropy(cosine_matrix(z1, z2) / temperature, torch.arange(len(z1)))


# %% right: F.normalize and counting | cosine_matrix
def cosine_matrix(a, b):
    return F.normalize(a, dim=1).mm(F.normalize(b, dim=1).t())


# %% right: counting by hand | in_batch_accuracy
def in_batch_accuracy(sim):
    hits = sum(int(row.max() == row[i]) for i, row in enumerate(sim))
    return hits / len(sim)


# %% wrong: no normalisation | cosine_matrix
def cosine_matrix(a, b):
    return a @ b.T


# %% wrong: normalised along the batch | cosine_matrix
def cosine_matrix(a, b):
    return F.normalize(a, dim=0) @ F.normalize(b, dim=0).T


# %% wrong: one length for the whole matrix | cosine_matrix
def cosine_matrix(a, b):
    return (a / a.norm()) @ (b / b.norm()).T


# %% wrong: normalises the caller's tensors | cosine_matrix
def cosine_matrix(a, b):
    with torch.no_grad():
        a /= a.norm(dim=1, keepdim=True)
        b /= b.norm(dim=1, keepdim=True)
    return a @ b.T


# %% wrong: gradient cut off | cosine_matrix
def cosine_matrix(a, b):
    return F.normalize(a.detach(), dim=1) @ F.normalize(b.detach(), dim=1).T


# %% wrong: result transposed | cosine_matrix
def cosine_matrix(a, b):
    return F.normalize(b, dim=1) @ F.normalize(a, dim=1).T


# %% wrong: sum for mean | info_nce
def info_nce(z1, z2, temperature):
    sim = cosine_matrix(z1, z2) / temperature
    return (sim.logsumexp(dim=1) - sim.diagonal()).sum()


# %% wrong: softmax down the columns | info_nce
def info_nce(z1, z2, temperature):
    sim = cosine_matrix(z1, z2) / temperature
    return (sim.logsumexp(dim=0) - sim.diagonal()).mean()


# %% wrong: transposed labels | info_nce
def info_nce(z1, z2, temperature):
    sim = cosine_matrix(z1, z2) / temperature
    return F.cross_entropy(sim, torch.arange(len(z1)).flip(0))


# %% wrong: forgotten minus log | info_nce
def info_nce(z1, z2, temperature):
    return (cosine_matrix(z1, z2) / temperature).softmax(dim=1).diagonal().mean()


# %% wrong: temperature multiplied | info_nce
def info_nce(z1, z2, temperature):
    return F.cross_entropy(cosine_matrix(z1, z2) * temperature, torch.arange(len(z1)))


# %% wrong: positive left out of the sum | info_nce
def info_nce(z1, z2, temperature):
    sim = cosine_matrix(z1, z2) / temperature
    others = sim.masked_fill(torch.eye(len(sim), dtype=torch.bool), float("-inf"))
    return (others.logsumexp(dim=1) - sim.diagonal()).mean()


# %% wrong: exponentials overflow | info_nce
def info_nce(z1, z2, temperature):
    e = (cosine_matrix(z1, z2) / temperature).exp()
    return -(e.diagonal() / e.sum(dim=1)).log().mean()


# %% wrong: logarithm to base 2 | info_nce
def info_nce(z1, z2, temperature):
    return F.cross_entropy(cosine_matrix(z1, z2) / temperature, torch.arange(len(z1))) / math.log(2)


# %% wrong: accuracy by column | in_batch_accuracy
def in_batch_accuracy(sim):
    return (sim.argmax(dim=0) == torch.arange(len(sim))).float().mean().item()


# %% wrong: a count, not a share | in_batch_accuracy
def in_batch_accuracy(sim):
    return float((sim.argmax(dim=1) == torch.arange(len(sim))).sum())
