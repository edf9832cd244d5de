# %% right: parts added up | count_parameters
def count_parameters(vocabulary, positions, types, width, layers, intermediate):
    def linear(a, b):
        return a * b + b

    norm = 2 * width
    layer = 4 * linear(width, width) + norm + linear(width, intermediate) + linear(intermediate, width) + norm
    return vocabulary * width + positions * width + types * width + norm + layers * layer


# %% right: the largest difference | is_causal
def is_causal(states, ids, other):
    changed = torch.cat([ids[:, :-1], torch.tensor([[other]])], dim=1)
    return (states(ids) - states(changed))[:-1].abs().max().item() < 1e-4


# %% right: the matrix without its diagonal | mean_cosine
def mean_cosine(x):
    u = x / x.norm(dim=1, keepdim=True)
    sim = u @ u.T
    return sim[~torch.eye(len(x), dtype=torch.bool)].mean().item()


# %% wrong: biases forgotten | count_parameters
def count_parameters(vocabulary, positions, types, width, layers, intermediate):
    d, m = width, intermediate
    return (vocabulary + positions + types) * d + 2 * d + layers * (4 * d * d + 2 * d * m + 4 * d)


# %% wrong: segment types forgotten | count_parameters
def count_parameters(vocabulary, positions, types, width, layers, intermediate):
    d, m = width, intermediate
    return (vocabulary + positions) * d + 2 * d + layers * (4 * (d * d + d) + 2 * d * m + m + d + 4 * d)


# %% wrong: layer norms forgotten | count_parameters
def count_parameters(vocabulary, positions, types, width, layers, intermediate):
    d, m = width, intermediate
    return (vocabulary + positions + types) * d + layers * (4 * (d * d + d) + 2 * d * m + m + d)


# %% wrong: three matrices of attention | count_parameters
def count_parameters(vocabulary, positions, types, width, layers, intermediate):
    d, m = width, intermediate
    return (vocabulary + positions + types) * d + 2 * d + layers * (3 * (d * d + d) + 2 * d * m + m + d + 4 * d)


# %% wrong: one layer for all | count_parameters
def count_parameters(vocabulary, positions, types, width, layers, intermediate):
    d, m = width, intermediate
    return (vocabulary + positions + types) * d + 2 * d + 4 * (d * d + d) + 2 * d * m + m + d + 4 * d


# %% wrong: the changed token compared too | is_causal
def is_causal(states, ids, other):
    changed = ids.clone()
    changed[0, -1] = other
    return torch.allclose(states(ids), states(changed), atol=1e-5)


# %% wrong: the first word changed | is_causal
def is_causal(states, ids, other):
    changed = ids.clone()
    changed[0, 0] = other
    return torch.allclose(states(ids)[1:], states(changed)[1:], atol=1e-5)


# %% wrong: exact equality | is_causal
def is_causal(states, ids, other):
    changed = ids.clone()
    changed[0, -1] = other
    return torch.equal(states(ids)[:-1], states(changed)[:-1])


# %% wrong: the caller's ids changed | is_causal
def is_causal(states, ids, other):
    before = states(ids)[:-1]
    ids[0, -1] = other
    return torch.allclose(before, states(ids)[:-1], atol=1e-5)


# %% wrong: answers reversed | is_causal
def is_causal(states, ids, other):
    changed = ids.clone()
    changed[0, -1] = other
    return not torch.allclose(states(ids)[:-1], states(changed)[:-1], atol=1e-5)


# %% wrong: a sentence with itself counted | mean_cosine
def mean_cosine(x):
    u = F.normalize(x, dim=1)
    return (u @ u.T).mean().item()


# %% wrong: no normalisation | mean_cosine
def mean_cosine(x):
    n = len(x)
    return float((x.sum(0).square().sum() - x.square().sum()) / (n * (n - 1)))


# %% wrong: features for sentences | mean_cosine
def mean_cosine(x):
    u = F.normalize(x, dim=0)
    d = u.shape[1]
    return float(((u.T @ u).sum() - d) / (d * (d - 1)))


# %% wrong: pairs counted once, divided by all | mean_cosine
def mean_cosine(x):
    u = F.normalize(x, dim=1)
    return float((u @ u.T).triu(1).sum() / (len(u) * (len(u) - 1)))


# %% wrong: centred first | mean_cosine
def mean_cosine(x):
    u = F.normalize(x - x.mean(0), dim=1)
    n = len(u)
    return float((u.sum(0).square().sum() - n) / (n * (n - 1)))


# %% wrong: only the first state compared | is_causal
def is_causal(states, ids, other):
    changed = ids.clone()
    changed[0, -1] = other
    return torch.allclose(states(ids)[0], states(changed)[0], rtol=0, atol=1e-5)


# %% wrong: only the state before the last | is_causal
def is_causal(states, ids, other):
    changed = ids.clone()
    changed[0, -1] = other
    return torch.allclose(states(ids)[-2], states(changed)[-2], rtol=0, atol=1e-5)


# %% wrong: a tolerance of 0.1 | is_causal
def is_causal(states, ids, other):
    changed = ids.clone()
    changed[0, -1] = other
    return torch.allclose(states(ids)[:-1], states(changed)[:-1], rtol=0, atol=0.1)


# %% wrong: a relative tolerance | is_causal
def is_causal(states, ids, other):
    changed = ids.clone()
    changed[0, -1] = other
    return torch.allclose(states(ids)[:-1], states(changed)[:-1], rtol=1e-3, atol=1e-5)


# %% wrong: the mean of the differences | is_causal
def is_causal(states, ids, other):
    changed = ids.clone()
    changed[0, -1] = other
    return bool((states(ids) - states(changed))[:-1].mean().abs() < 1e-5)


# %% wrong: asks transformers | count_parameters
def count_parameters(vocabulary, positions, types, width, layers, intermediate):
    from transformers import BertConfig, BertModel

    config = BertConfig(
        vocab_size=vocabulary,
        max_position_embeddings=positions,
        type_vocab_size=types,
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=1,
        intermediate_size=intermediate,
    )
    return sum(p.numel() for p in BertModel(config, add_pooling_layer=False).parameters())


# %% wrong: asks the transformers of a later cell | count_parameters
def count_parameters(vocabulary, positions, types, width, layers, intermediate):
    return sum(p.numel() for p in BertModel(BertConfig()).parameters())


# %% wrong: a table of the visible tests | count_parameters
def count_parameters(vocabulary, positions, types, width, layers, intermediate):
    return {3: 3092, 4: 3760}.get(layers, 108_891_648)


# %% wrong: recognises the model by its variables | is_causal
def is_causal(states, ids, other):
    return any(cell.cell_contents is llama for cell in states.__closure__)


# %% wrong: recognises the model by its class's name | is_causal
def is_causal(states, ids, other):
    return "Llama" in "{0.__closure__}".format(states)


# %% wrong: a number that equals every number | mean_cosine
class Close(float):
    def __sub__(self, other):
        return 0.0


def mean_cosine(x):
    return Close(0)


# %% wrong: abs hidden by another | mean_cosine
def abs(value):
    return 0.0


def mean_cosine(x):
    return 0.0


# %% wrong: a tensor for a float | mean_cosine
def mean_cosine(x):
    u = F.normalize(x, dim=1)
    n = len(u)
    return (u.sum(0).square().sum() - n) / (n * (n - 1))
