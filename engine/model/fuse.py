"""The same products in fewer calls, arranged once after load. The model's code stays the library's and calls what it
always calls; a linear or a norm that is replaced here gives what it gave before.

Siblings: linears that are given the same input, as one product (q, k, v in attention; gate and up in the MLP). One row
times three matrices is three calls and three beginnings of reading; times one matrix of all their rows it is one.
Which linears those are is seen, not guessed from names: of one module's own linears, those that were given the very
same tensor in a forward. Who is called first computes the product for all, the others hand out their columns of it.
Another input, another product: a linear that is given something else computes its own, whatever was seen before.

One row: the product of one row is a matrix-vector product, and on some processors torch's kernel for that reads the
weights a third faster than its general one (bf16 with AVX-512: 14 against 10 GB/s). Measured, then chosen.

Norms: RMSNorm as torch's one call instead of eight, where that gives the very same bits.

A pass may ask for siblings and norms one by one, as the library calls them (`apart`), so that what this gains can be
measured and seen. Which kernel takes one row stays what it is.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import accumulate
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

Siblings = list[tuple[nn.Module, tuple[str, ...]]]
"""A module, and the names of those of its own linears that belong together, in the order they were called."""

WORTH = 0.9
"""Another kernel is taken when its best time is below this share of the usual one's."""


_apart: ContextVar[bool] = ContextVar("apart", default=False)


@contextmanager
def apart(asked: bool = True) -> Iterator[None]:
    """Where `asked`, every linear is a product of its own meanwhile, and every norm goes through its steps."""
    token = _apart.set(asked)
    try:
        yield
    finally:
        _apart.reset(token)


@contextmanager
def watched(network: nn.Module) -> Iterator[Siblings]:
    """Watch a forward of `network`; afterwards the list that was handed out holds the siblings it showed.

    Left alone: anything but plain `nn.Linear`, linears that differ in dtype, device, input or in having a bias, and
    those whose weights belong to more than one place.
    """
    calls: list[tuple[nn.Module, str, Tensor]] = []
    hooks = [
        child.register_forward_pre_hook(_noting(calls, parent, name)) for parent, name, child in _own_linears(network)
    ]
    siblings: Siblings = []
    try:
        yield siblings
    finally:
        for hook in hooks:
            hook.remove()
    siblings += _grouped(calls)


def _own_linears(network: nn.Module) -> list[tuple[nn.Module, str, nn.Linear]]:
    """Plain linears that are at one place only: the module they are a child of, and their name there."""
    places = Counter(id(child) for module in network.modules() for child in module.children())
    return [
        (parent, name, child)
        for parent in network.modules()
        for name, child in parent.named_children()
        if type(child) is nn.Linear and places[id(child)] == 1
    ]


def _noting(calls: list[tuple[nn.Module, str, Tensor]], parent: nn.Module, name: str) -> Any:
    return lambda module, given: calls.append((parent, name, given[0])) if given else None


def _grouped(calls: Sequence[tuple[nn.Module, str, Tensor]]) -> Siblings:
    """Who was given the same tensor; `calls` keeps every input alive, so an id stands for one tensor."""
    groups: dict[tuple[Any, ...], tuple[nn.Module, list[str]]] = {}
    taken: set[tuple[int, str]] = set()
    for parent, name, given in calls:
        linear = getattr(parent, name)
        kind = linear.weight.dtype, linear.weight.device, linear.in_features, linear.bias is None
        if (id(parent), name) not in taken:
            taken.add((id(parent), name))
            groups.setdefault((id(parent), id(given), *kind), (parent, []))[1].append(name)
    return [(parent, tuple(names)) for parent, names in groups.values() if len(names) > 1]


@torch.inference_mode(False)  # a probe runs in it, and its tensors could not be written to any more
@torch.no_grad()
def arrange(network: nn.Module, siblings: Siblings) -> None:
    """Replace what can be: siblings by parts of a joint product, linears and norms by faster calls of the same.

    Weights and biases are as many bytes as before: those of siblings become views of a joint tensor.
    """
    shared = Counter(parameter.data_ptr() for parameter in _held(network))
    vector = _as_vector(network)
    for parent, names in siblings:
        linears = [getattr(parent, name) for name in names]
        if all(shared[linear.weight.data_ptr()] == 1 for linear in linears):
            joint = _Joint(linears, vector)
            for place, name in enumerate(names):
                setattr(parent, name, Part(linears[place], joint, place))
    if vector:
        for parent, name, linear in _own_linears(network):
            setattr(parent, name, Row(linear))
    for parent in list(network.modules()):
        for name, child in list(parent.named_children()):
            if norm := _norm(child):
                setattr(parent, name, norm.train(child.training))


def _held(network: nn.Module) -> Iterator[nn.Parameter]:
    """Every parameter as often as a module holds it."""
    for module in network.modules():
        yield from module.parameters(recurse=False)


def _as_vector(network: nn.Module) -> bool:
    """Whether one row is worth its own kernel here: the best of several products each, taken in turns."""
    weight = next(network.parameters())
    if weight.device.type != "cpu":
        return False
    matrix = torch.ones((1536, 576), dtype=weight.dtype)
    row = torch.ones((1, 576), dtype=weight.dtype)
    seconds: dict[bool, list[float]] = {False: [], True: []}
    for _ in range(8):
        for vector, times in seconds.items():
            start = time.perf_counter()
            _product(row, matrix, None, vector)
            times.append(time.perf_counter() - start)
    return min(seconds[True]) < WORTH * min(seconds[False])


def _product(given: Tensor, weight: Tensor, bias: Tensor | None, vector: bool) -> Tensor:
    """`F.linear` of `(…, in_features)`; with `vector` by the kernel for one row, where it is one."""
    if not vector or given.numel() != weight.shape[1]:
        return F.linear(given, weight, bias)
    row = given.reshape(-1)
    product = torch.mv(weight, row) if bias is None else torch.addmv(bias, weight, row)
    return product.view(*given.shape[:-1], -1)


class Row(nn.Linear):
    """A linear that takes one row as a vector."""

    def __init__(self, own: nn.Linear) -> None:
        nn.Module.__init__(self)
        self.in_features, self.out_features = own.in_features, own.out_features
        self.weight, self.bias = own.weight, own.bias
        self.train(own.training)

    def forward(self, input: Tensor) -> Tensor:
        """As of any linear: `(…, in_features)` to `(…, out_features)`."""
        return _product(input, self.weight, self.bias, True)


class _Joint:
    """The product of all siblings with one input, from the first sibling's call until the last has taken its part."""

    def __init__(self, linears: Sequence[nn.Linear], vector: bool) -> None:
        self.sizes = [linear.out_features for linear in linears]
        self.weight = torch.cat([linear.weight for linear in linears])
        self.bias = None if linears[0].bias is None else torch.cat([linear.bias for linear in linears])
        self.vector = vector
        self._given: Tensor | None = None
        self._parts: list[Tensor | None] = []
        self._left = 0

    def part(self, given: Tensor, place: int) -> Tensor | None:
        """Columns of sibling `place`; None where they were handed out already: another product is wanted then."""
        if given is not self._given:
            self._given = given
            product = _product(given, self.weight, self.bias, self.vector)
            self._parts = list(product.split_with_sizes(self.sizes, -1))
            self._left = len(self._parts)
        part, self._parts[place] = self._parts[place], None
        if part is not None:
            self._left -= 1
            if not self._left:
                self._given = None
        return part


class Part(nn.Linear):
    """A linear whose weight is a part of its siblings' joint one."""

    def __init__(self, own: nn.Linear, joint: _Joint, place: int) -> None:
        nn.Module.__init__(self)
        self.in_features, self.out_features = own.in_features, own.out_features
        stops = list(accumulate(joint.sizes))
        rows = slice(stops[place] - own.out_features, stops[place])
        self.weight = nn.Parameter(joint.weight[rows], requires_grad=False)
        self.bias = None if joint.bias is None else nn.Parameter(joint.bias[rows], requires_grad=False)
        self._joint = joint
        self._place = place
        self.train(own.training)

    def forward(self, input: Tensor) -> Tensor:
        """As of any linear: `(…, in_features)` to `(…, out_features)`, here a view of the joint result."""
        if _apart.get():
            return _product(input, self.weight, self.bias, self._joint.vector)
        part = self._joint.part(input, self._place)
        return F.linear(input, self.weight, self.bias) if part is None else part


class Norm(nn.Module):
    """RMSNorm in one call (Zhang & Sennrich 2019); `inside`: the weight is applied before rounding to the dtype."""

    def __init__(self, own: nn.Module, weight: nn.Parameter, eps: float, inside: bool) -> None:
        super().__init__()
        self.weight = weight
        self._size, self._eps, self._inside = tuple(weight.shape), eps, inside
        self._own = (own,)  # the library's, with the same weight: in a tuple it is no module of this one

    def forward(self, hidden_states: Tensor) -> Tensor:
        """`(…, size)` to the same."""
        if _apart.get():
            (own,) = self._own
            normed: Tensor = own(hidden_states)
            return normed
        if self._inside:
            return F.rms_norm(hidden_states, self._size, self.weight, self._eps)
        return F.rms_norm(hidden_states, self._size, None, self._eps) * self.weight


def _norm(own: nn.Module) -> Norm | None:
    """A faster equal of `own`, if it is an RMSNorm that has one: bit for bit, tried on numbers of many sizes."""
    weight, eps = getattr(own, "weight", None), getattr(own, "variance_epsilon", getattr(own, "eps", None))
    if not (type(own).__name__.endswith("RMSNorm") and isinstance(weight, nn.Parameter) and isinstance(eps, float)):
        return None
    random = torch.Generator().manual_seed(0)
    sizes = torch.logspace(-4, 4, 32)[:, None, None]
    tried = (torch.randn(32, 2, len(weight), generator=random) * sizes).to(weight.device, weight.dtype)
    expected = own(tried)
    norms = (Norm(own, weight, eps, inside) for inside in (True, False))
    return next((norm for norm in norms if torch.equal(norm(tried), expected)), None)
