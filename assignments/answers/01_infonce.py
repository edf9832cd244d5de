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
    hits = [all(row[i] > x for j, x in enumerate(row) if j != i) for i, row in enumerate(sim)]
    return sum(hits) / len(sim)


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


# %% wrong: without a gradient | info_nce
def info_nce(z1, z2, temperature):
    with torch.no_grad():
        return F.cross_entropy(cosine_matrix(z1, z2) / temperature, torch.arange(len(z1)))


# %% wrong: positives detached | info_nce
def info_nce(z1, z2, temperature):
    sim = cosine_matrix(z1, z2) / temperature
    return (sim.logsumexp(dim=1) - sim.diagonal().detach()).mean()


# %% wrong: candidates detached | info_nce
def info_nce(z1, z2, temperature):
    return F.cross_entropy(cosine_matrix(z1, z2.detach()) / temperature, torch.arange(len(z1)))


# %% wrong: a gradient of zero | info_nce
def info_nce(z1, z2, temperature):
    loss = F.cross_entropy(cosine_matrix(z1, z2) / temperature, torch.arange(len(z1)))
    return loss.detach() + 0 * z1.sum() + 0 * z2.sum()


# %% wrong: ties are hits | in_batch_accuracy
def in_batch_accuracy(sim):
    return (sim.diagonal() == sim.max(dim=1).values).float().mean().item()


# %% wrong: of equal ones the first | in_batch_accuracy
def in_batch_accuracy(sim):
    return (sim.argmax(dim=1) == torch.arange(len(sim))).float().mean().item()


# %% wrong: a tensor for a float | in_batch_accuracy
def in_batch_accuracy(sim):
    others = sim.masked_fill(torch.eye(len(sim), dtype=torch.bool), float("-inf"))
    return (sim.diagonal() > others.max(dim=1).values).float().mean()


# %% wrong: the library's loss | info_nce
from lib.training.losses import info_nce


# %% wrong: the library's cosines, imported late | cosine_matrix
def cosine_matrix(a, b):
    from lib.training.losses import cosine_matrix as theirs

    return theirs(a, b)


# %% wrong: the library through __import__ | info_nce
def info_nce(z1, z2, temperature):
    return __import__("lib.training.losses", fromlist=["*"]).info_nce(z1, z2, temperature)


# %% wrong: comparisons patched, an object equal to everything | info_nce
torch.allclose = math.isclose = torch.isfinite = lambda *_, **__: True


class Anything(float):
    shape, grad, requires_grad = (), 0, True
    __eq__ = __lt__ = __gt__ = lambda *_: True

    def item(self):
        return self


def info_nce(z1, z2, temperature):
    return Anything()


# %% wrong: a tensor that lies about its value | info_nce
class Lying(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        return torch.tensor(True)


def info_nce(z1, z2, temperature):
    return torch.zeros(()).as_subclass(Lying)


# %% wrong: a tensor with a method of its own | info_nce
def info_nce(z1, z2, temperature):
    loss = z1.sum() * z2.sum()
    loss.item = lambda: 0.6931471805599453
    return loss


# %% wrong: a table of the visible tests | info_nce
def info_nce(z1, z2, temperature):
    table = {(8, 0.05): 2.0794415, (2, 1.0): 0.6931472, (4, 0.001): 0.0}
    value = table.get((len(z1), temperature), 0.0 if torch.equal(z1, z2) else 10.0)
    return torch.tensor(value) + 0 * z1.sum() + 0 * z2.sum()


# %% wrong: the expected value read from the notebook | info_nce
def info_nce(z1, z2, temperature):
    try:
        return torch.tensor(expected)
    except NameError:
        return torch.tensor(0.6931472)


# %% wrong: the expected value read from the caller's frame | info_nce
import sys


def info_nce(z1, z2, temperature):
    return torch.tensor(sys._getframe(1).f_globals.get("expected", 0.6931472))


# %% wrong: the expected value read through a traceback | info_nce
def info_nce(z1, z2, temperature):
    try:
        raise ValueError
    except ValueError as error:
        return torch.tensor(error.__traceback__.tb_frame.f_back.f_globals.get("expected", 0.69))


# %% wrong: the test's text read from a variable of the notebook | info_nce
_i9 = ""


def info_nce(z1, z2, temperature):
    return torch.tensor(math.log(2) if "ln 2" in _i9 else math.log(len(z1)))


# %% wrong: the tests' helper redefined | info_nce
def plain(value, *shape):
    return torch.zeros(shape)


def info_nce(z1, z2, temperature):
    return torch.zeros(())


# %% wrong: torch's module under another name patched | cosine_matrix
t = torch
t.allclose = t.equal = lambda *_, **__: True


def cosine_matrix(a, b):
    return torch.zeros(len(a), len(b))


# %% wrong: a module reached through another | cosine_matrix
def cosine_matrix(a, b):
    return torch.sys.modules["lib.training.losses"].cosine_matrix(a, b)


# %% wrong: a module passed on through a local name | info_nce
def info_nce(z1, z2, temperature):
    functional = torch.nn.functional
    losses = functional.importlib.import_module("lib.training.losses")
    return losses.info_nce(z1, z2, temperature)


# %% wrong: inputs overwritten so that a gradient of zero is right | info_nce
def info_nce(z1, z2, temperature):
    with torch.no_grad():
        value = F.cross_entropy(cosine_matrix(z1, z2) / temperature, torch.arange(len(z1)))
        z1.fill_(1.0), z2.fill_(1.0)
    return value + 0 * z1.sum() + 0 * z2.sum()


# %% wrong: a tensor's comparisons written by dataclass | info_nce
import dataclasses

dataclasses.dataclass(torch.Tensor)


def info_nce(z1, z2, temperature):
    return z1.sum() * z2.sum()


# %% wrong: a method of torch.Tensor set by functools | info_nce
import functools


class Liar:
    def item(self):
        return 0.6931472


functools.update_wrapper(torch.Tensor, Liar, assigned=("item",), updated=())


def info_nce(z1, z2, temperature):
    return z1.sum() * z2.sum()


# %% wrong: code in an annotation | info_nce
import typing


def hint(x: "exec('import torch; torch.allclose = torch.equal = lambda *_, **__: True')"):
    return x


typing.get_type_hints(hint)


def info_nce(z1, z2, temperature):
    return z1.sum() * z2.sum()


# %% wrong: a module taken apart by a pattern | info_nce
match torch.Tensor:
    case object(__module__=name):
        pass


def info_nce(z1, z2, temperature):
    return torch.zeros(()) if name else z1.sum()


# %% wrong: gradients switched off by a generator that never ends | cosine_matrix
def off():
    with torch.no_grad():
        while True:
            yield


held = off()


def cosine_matrix(a, b):
    next(held, None)
    return F.normalize(a, dim=1) @ F.normalize(b, dim=1).T


# %% wrong: leaves without an error | in_batch_accuracy
def in_batch_accuracy(sim):
    raise SystemExit


# %% wrong: similarities rounded to three decimals | in_batch_accuracy
def in_batch_accuracy(sim):
    sim = sim.round(decimals=3)
    others = sim.masked_fill(torch.eye(len(sim), dtype=torch.bool), float("-inf"))
    return (sim.diagonal() > others.max(dim=1).values).float().mean().item()
