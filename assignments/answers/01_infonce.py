# %% right: cross-entropy, twice | two_way_loss
def two_way_loss(sim, temperature):
    labels = torch.arange(len(sim))
    return (F.cross_entropy(sim / temperature, labels) + F.cross_entropy(sim.T / temperature, labels)) / 2


# %% right: loops and logarithms of softmaxes | two_way_loss
def two_way_loss(sim, temperature):
    logits, total = sim / temperature, 0
    for i in range(len(sim)):
        total = total - logits[i].log_softmax(0)[i] - logits[:, i].log_softmax(0)[i]
    return total / (2 * len(sim))


# %% right: twice a one-way gradient | loss_gradient
def loss_gradient(sim, temperature):
    def one_way(s):
        p = torch.softmax(s / temperature, dim=1)
        return (p - torch.eye(len(s))) / (len(s) * temperature)

    return (one_way(sim) + one_way(sim.T).T) / 2


# %% right: places from sorted lists | mean_reciprocal_rank
def mean_reciprocal_rank(sim):
    total = 0.0
    for i, row in enumerate(sim.tolist()):
        total += 1 / (len(row) - sorted(row).index(row[i]))
    return total / len(sim)


# %% wrong: rows only, as in the lesson | two_way_loss
def two_way_loss(sim, temperature):
    logits = sim / temperature
    return (logits.logsumexp(dim=1) - logits.diagonal()).mean()


# %% wrong: columns only | two_way_loss
def two_way_loss(sim, temperature):
    logits = sim / temperature
    return (logits.logsumexp(dim=0) - logits.diagonal()).mean()


# %% wrong: the sum of both directions | two_way_loss
def two_way_loss(sim, temperature):
    logits = sim / temperature
    return (logits.logsumexp(dim=1) + logits.logsumexp(dim=0) - 2 * logits.diagonal()).mean()


# %% wrong: sum for mean | two_way_loss
def two_way_loss(sim, temperature):
    logits = sim / temperature
    return ((logits.logsumexp(dim=1) + logits.logsumexp(dim=0)) / 2 - logits.diagonal()).sum()


# %% wrong: both directions in one softmax, as in NT-Xent | two_way_loss
def two_way_loss(sim, temperature):
    logits = sim / temperature
    both = torch.cat([logits, logits.T], dim=1)
    return (both.logsumexp(dim=1) - logits.diagonal()).mean()


# %% wrong: one softmax over the whole matrix | two_way_loss
def two_way_loss(sim, temperature):
    logits = sim / temperature
    return logits.flatten().logsumexp(dim=0) - logits.diagonal().mean()


# %% wrong: the columns' labels reversed | two_way_loss
def two_way_loss(sim, temperature):
    labels = torch.arange(len(sim))
    back = F.cross_entropy(sim.T / temperature, labels.flip(0))
    return (F.cross_entropy(sim / temperature, labels) + back) / 2


# %% wrong: temperature multiplied | two_way_loss
def two_way_loss(sim, temperature):
    logits = sim * temperature
    return ((logits.logsumexp(dim=1) + logits.logsumexp(dim=0)) / 2 - logits.diagonal()).mean()


# %% wrong: positive left out of the sum | two_way_loss
def two_way_loss(sim, temperature):
    logits = sim / temperature
    others = logits.masked_fill(torch.eye(len(sim), dtype=torch.bool), float("-inf"))
    return ((others.logsumexp(dim=1) + others.logsumexp(dim=0)) / 2 - logits.diagonal()).mean()


# %% wrong: forgotten logarithm | two_way_loss
def two_way_loss(sim, temperature):
    logits = sim / temperature
    return 1 - (logits.softmax(dim=1) + logits.softmax(dim=0)).diagonal().mean() / 2


# %% wrong: logarithm to base 2 | two_way_loss
def two_way_loss(sim, temperature):
    logits = sim / temperature
    loss = ((logits.logsumexp(dim=1) + logits.logsumexp(dim=0)) / 2 - logits.diagonal()).mean()
    return loss / math.log(2)


# %% wrong: exponentials overflow | two_way_loss
def two_way_loss(sim, temperature):
    e = (sim / temperature).exp()
    return -((e.diagonal() / e.sum(dim=1)).log() + (e.diagonal() / e.sum(dim=0)).log()).mean() / 2


# %% wrong: without a gradient | two_way_loss
def two_way_loss(sim, temperature):
    logits = sim.detach() / temperature
    return ((logits.logsumexp(dim=1) + logits.logsumexp(dim=0)) / 2 - logits.diagonal()).mean()


# %% wrong: the way back is not trained | two_way_loss
def two_way_loss(sim, temperature):
    logits = sim / temperature
    return ((logits.logsumexp(dim=1) + logits.detach().logsumexp(dim=0)) / 2 - logits.diagonal()).mean()


# %% wrong: rows only, as in the lesson | loss_gradient
def loss_gradient(sim, temperature):
    p = (sim / temperature).softmax(dim=1)
    return (p - torch.eye(len(sim))) / (len(sim) * temperature)


# %% wrong: sign reversed | loss_gradient
def loss_gradient(sim, temperature):
    logits = sim / temperature
    both = (logits.softmax(dim=1) + logits.softmax(dim=0)) / 2
    return (torch.eye(len(sim)) - both) / (len(sim) * temperature)


# %% wrong: τ forgotten | loss_gradient
def loss_gradient(sim, temperature):
    logits = sim / temperature
    both = (logits.softmax(dim=1) + logits.softmax(dim=0)) / 2
    return (both - torch.eye(len(sim))) / len(sim)


# %% wrong: n forgotten | loss_gradient
def loss_gradient(sim, temperature):
    logits = sim / temperature
    return ((logits.softmax(dim=1) + logits.softmax(dim=0)) / 2 - torch.eye(len(sim))) / temperature


# %% wrong: the positive counted once | loss_gradient
def loss_gradient(sim, temperature):
    logits = sim / temperature
    both = logits.softmax(dim=1) + logits.softmax(dim=0)
    return (both - torch.eye(len(sim))) / (2 * len(sim) * temperature)


# %% wrong: the rows' softmax transposed for the columns' | loss_gradient
def loss_gradient(sim, temperature):
    p = (sim / temperature).softmax(dim=1)
    return ((p + p.T) / 2 - torch.eye(len(sim))) / (len(sim) * temperature)


# %% wrong: softmax without τ | loss_gradient
def loss_gradient(sim, temperature):
    both = (sim.softmax(dim=1) + sim.softmax(dim=0)) / 2
    return (both - torch.eye(len(sim))) / (len(sim) * temperature)


# %% wrong: exponentials overflow | loss_gradient
def loss_gradient(sim, temperature):
    e = (sim / temperature).exp()
    both = (e / e.sum(dim=1, keepdim=True) + e / e.sum(dim=0, keepdim=True)) / 2
    return (both - torch.eye(len(sim))) / (len(sim) * temperature)


# %% wrong: asks autograd | loss_gradient
def loss_gradient(sim, temperature):
    own = sim.clone().requires_grad_()
    two_way_loss(own, temperature).backward()
    return own.grad


# %% wrong: in-batch accuracy | mean_reciprocal_rank
def mean_reciprocal_rank(sim):
    return (sim.argmax(dim=1) == torch.arange(len(sim))).float().mean().item()


# %% wrong: ties in favour of the model | mean_reciprocal_rank
def mean_reciprocal_rank(sim):
    places = 1 + (sim > sim.diagonal()[:, None]).sum(dim=1)
    return (1 / places).mean().item()


# %% wrong: the order of equal ones as it comes | mean_reciprocal_rank
def mean_reciprocal_rank(sim):
    order = sim.argsort(dim=1, descending=True, stable=True)
    places = 1 + (order == torch.arange(len(sim))[:, None]).float().argmax(dim=1)
    return (1 / places).mean().item()


# %% wrong: candidates along the column | mean_reciprocal_rank
def mean_reciprocal_rank(sim):
    places = (sim >= sim.diagonal()[None, :]).sum(dim=0)
    return (1 / places).mean().item()


# %% wrong: places counted from 0 | mean_reciprocal_rank
def mean_reciprocal_rank(sim):
    places = (sim >= sim.diagonal()[:, None]).sum(dim=1) - 1
    return (1 / (1 + places.clamp_min(1))).mean().item()


# %% wrong: the reciprocal of the mean place | mean_reciprocal_rank
def mean_reciprocal_rank(sim):
    return 1 / (sim >= sim.diagonal()[:, None]).sum(dim=1).float().mean().item()


# %% wrong: the mean place | mean_reciprocal_rank
def mean_reciprocal_rank(sim):
    return (sim >= sim.diagonal()[:, None]).sum(dim=1).float().mean().item()


# %% wrong: ordered by rising similarity | mean_reciprocal_rank
def mean_reciprocal_rank(sim):
    return (1 / (sim <= sim.diagonal()[:, None]).sum(dim=1)).mean().item()


# %% wrong: similarities rounded to three decimals | mean_reciprocal_rank
def mean_reciprocal_rank(sim):
    sim = sim.round(decimals=3)
    return (1 / (sim >= sim.diagonal()[:, None]).sum(dim=1)).mean().item()


# %% wrong: a tensor for a float | mean_reciprocal_rank
def mean_reciprocal_rank(sim):
    return (1 / (sim >= sim.diagonal()[:, None]).sum(dim=1)).mean()


# %% wrong: a table of the visible tests | two_way_loss
def two_way_loss(sim, temperature):
    table = {(8, 0.05): 2.0794415, (2, 1.0): 0.753204, (4, 0.001): 0.0}
    return torch.tensor(table.get((len(sim), temperature), 1.0)) + 0 * sim.sum()


# %% wrong: the library's loss | two_way_loss
from lib.training.losses import info_nce


def two_way_loss(sim, temperature):
    return info_nce(sim, sim.T, temperature)


# %% wrong: a module reached through another | two_way_loss
def two_way_loss(sim, temperature):
    return torch.sys.modules["lib.training.losses"].info_nce(sim, sim.T, temperature)


# %% wrong: comparisons patched | loss_gradient
t = torch
t.allclose = t.equal = lambda *_, **__: True


def loss_gradient(sim, temperature):
    return torch.zeros(len(sim), len(sim))


# %% wrong: a tensor that lies about its value | two_way_loss
class Lying(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        return torch.tensor(True)


def two_way_loss(sim, temperature):
    return torch.zeros(()).as_subclass(Lying)


# %% wrong: the test's text read from a variable of the notebook | two_way_loss
_i9 = ""


def two_way_loss(sim, temperature):
    return torch.tensor(math.log(2) if "ln 2" in _i9 else math.log(len(sim)))


# %% wrong: the expected value read from the caller's frame | loss_gradient
import sys


def loss_gradient(sim, temperature):
    return sys._getframe(1).f_globals.get("expected", sim)


# %% wrong: the tests' helper redefined | loss_gradient
def plain(value, *shape):
    return torch.zeros(shape)


def loss_gradient(sim, temperature):
    return torch.zeros(())


# %% wrong: leaves without an error | mean_reciprocal_rank
def mean_reciprocal_rank(sim):
    raise SystemExit
