"""One layer's norm and MLP taken out of a model, and what an operation does there: how many are launched, by torch's
profiler; which bytes each reads and writes, from the tensors it is given and gives; how long all take together."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.profiler import ProfilerActivity, profile
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from engine.labs.base import spread
from engine.model import fuse
from engine.settings import Refusal

if TYPE_CHECKING:
    from engine.model import LanguageModel

os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # the profiler tells standard error of each start and stop otherwise

LINEARS = ("gate_proj", "up_proj", "down_proj")
COMPILED = "cpp_fused"
"""Part of the names that inductor gives its kernels for processors."""
ROUNDS = 40
SECONDS = 1.5
BOOKKEEPING = {
    "alias", "as_strided", "detach", "empty", "empty_like", "empty_strided", "expand", "item", "lift_fresh", "narrow",
    "permute", "resize_", "resolve_conj", "resolve_neg", "result_type", "select", "slice", "split", "split_with_sizes",
    "squeeze", "t", "transpose", "unbind", "unsqueeze", "view", "_unsafe_view", "_reshape_alias", "reshape",
    "_local_scalar_dense", "is_nonzero", "chunk", "to", "set_",
}  # fmt: skip
"""Torch's operations that compute nothing: they make room, or look at the same numbers in another shape."""


class Block(nn.Module):
    """A norm and the MLP behind it, as a layer calls them."""

    def __init__(self, norm: nn.Module, mlp: nn.Module) -> None:
        super().__init__()
        self.norm, self.mlp = norm, mlp

    def forward(self, hidden: Tensor) -> Tensor:
        """`(1, rows, hidden)` to the same."""
        given: Tensor = self.mlp(self.norm(hidden))
        return given


def gated(model: LanguageModel) -> nn.Module | None:
    """The MLP of the model's middle layer, if it is one with a gate: gate, up and down, three linears."""
    found = [
        module for module in model.network.modules()
        if all(isinstance(getattr(module, name, None), nn.Linear) for name in LINEARS)
    ]  # fmt: skip
    return found[len(found) // 2] if found else None


def block_of(model: LanguageModel, rows: int) -> tuple[Block, Tensor]:
    """The middle layer's norm and MLP, the model's own modules, and the `(1, rows, hidden)` that a paper of so many
    tokens brings there. Raises `Refusal("no_gated_mlp")`."""
    from engine.cache import RunCache
    from engine.labs.papers import of_length
    from engine.model.tap import Pass

    mlp = gated(model)
    if mlp is None:
        raise Refusal("no_gated_mlp", model=model.facts.model)
    tokens = max(rows, 8)
    ids = [token.id for token in model.text.prompt(of_length(model, tokens)).tokens]
    norms: list[tuple[nn.Module, Tensor, Tensor]] = []
    found: list[tuple[nn.Module, Tensor]] = []

    def normed(module: nn.Module, given: tuple[Any, ...], result: Tensor) -> None:
        norms[:] = [(module, given[0], result)]

    def reached(_: nn.Module, given: tuple[Any, ...]) -> None:
        found.extend((norm, hidden) for norm, hidden, result in norms if result is given[0])

    hooks = [
        module.register_forward_hook(normed) for module in model.network.modules()
        if "norm" in type(module).__name__.lower() and isinstance(getattr(module, "weight", None), nn.Parameter)
    ]  # fmt: skip
    hooks.append(mlp.register_forward_pre_hook(reached))
    try:
        model.forward([ids], Pass([RunCache(model.shape, tokens)], tokens))
    finally:
        for hook in hooks:
            hook.remove()
    if not found:
        raise Refusal("no_gated_mlp", model=model.facts.model)
    norm, hidden = found[0]
    return Block(norm, mlp), hidden[:, -rows:].clone()


def compared(block: Block, hidden: Tensor, more: Mapping[str, Callable[[], Tensor]] | None = None) -> dict[str, Any]:
    """A block that is arranged (`engine.model.fuse`), its operations apart and joined, and `more` ways to the same
    result: `{"rows", "hidden", "inner": sizes, "ways": {way: {"calls", "kernels", "allocated": see `counted`, "steps":
    see `steps_of`, none of `more`, "seconds": spread, "difference": largest absolute one to separate}}}`."""
    from engine.labs.timing import alternate

    def separate() -> Tensor:
        with fuse.apart():
            return block(hidden)  # type: ignore[no-any-return]

    ways: dict[str, Callable[[], Tensor]] = {"separate": separate, "fused": lambda: block(hidden), **(more or {})}
    with torch.inference_mode():
        results = {way: work().float() for way, work in ways.items()}
        counts = {way: counted(work, hidden.device) for way, work in ways.items()}
        taken = alternate(ways, hidden.device, rounds=ROUNDS, seconds=SECONDS)
    steps = {way: steps_of(ways[way], block) for way in ("separate", "fused")}
    told = {
        way: {
            **counts[way], "steps": steps.get(way), "seconds": spread(taken[way]),
            "difference": float((results[way] - results["separate"]).abs().max()),
        }
        for way in ways
    }  # fmt: skip
    down: Any = block.mlp.down_proj
    return {"rows": hidden.shape[1], "hidden": hidden.shape[2], "inner": down.in_features, "ways": told}


def counted(work: Callable[[], object], device: torch.device) -> dict[str, int]:
    """`{"calls": of Python's that compute something, "kernels": operations that they come down to, each a loop over
    numbers of its own, "allocated": bytes that were asked for}`, from a profile of `work` done once."""
    work()
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as watched:
        work()
    assert watched.profiler is not None
    memory = [event for event in watched.profiler.kineto_results.events() if event.name() == "[memory]"]
    roots = [event for event in watched.events() or [] if event.cpu_parent is None]
    kernels = [_kernels(call, device.type) for root in roots for call in _calls(root)]
    return {
        "calls": sum(1 for count in kernels if count),
        "kernels": sum(kernels),
        "allocated": sum(max(0, event.nbytes()) for event in memory),
    }


def _plain(name: str) -> str:
    return name.removeprefix("aten::")


def _calls(event: Any) -> Iterator[Any]:
    """The operations of torch's, or compiled kernels, that an event is or that are called directly within it."""
    if event.name.startswith("aten::") or COMPILED in event.name:
        yield event
    else:
        for child in event.cpu_children:
            yield from _calls(child)


@cache
def _composite(device: str) -> frozenset[str]:
    """Torch's operations that have no kernel of their own on a device: they call others."""
    listed = torch._C._dispatch_get_registrations_for_dispatch_key
    composite, own = (
        {name.removeprefix("aten::").split(".")[0] for name in listed(key)}
        for key in ("CompositeImplicitAutograd", device.upper())
    )
    return frozenset(composite - own)


def _kernels(event: Any, device: str) -> int:
    """How many operations that compute something one comes down to: itself, or those it calls."""
    name = _plain(event.name)
    if name in _composite(device):
        return sum(_kernels(child, device) for child in event.cpu_children)
    return int(name not in BOOKKEEPING)


def steps_of(work: Callable[[], object], block: Block) -> list[dict[str, Any]]:
    """Every operation of `work` that computes something, in order: `{"op": torch's name, "weight": names of the
    weights it reads, "weights", "reads", "writes": bytes of weights read, of other tensors read, of tensors written,
    "shape": of what it writes, "call": the number of Python's call that it belongs to}`.

    Without inference mode torch takes composite operations apart before they are seen.
    """
    calls = _Calls()
    watched = _Traffic(block, calls)
    with torch.no_grad(), calls, watched:
        work()
    return watched.steps


class _Calls(TorchFunctionMode):
    """Counts what Python hands to torch; what is called within one call is not counted."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += 1
        return func(*args, **(kwargs or {}))


class _Traffic(TorchDispatchMode):
    """Notes what each operation is given and gives. A result that shares memory with what was given is a view: nothing
    is moved, unless the operation writes into it."""

    def __init__(self, block: Block, calls: _Calls) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.steps: list[dict[str, Any]] = []
        self._calls = calls
        self._weights = [(name, *_range(weight)) for name, weight in block.named_parameters()]

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        given = {id(one): one for one in tree_leaves((args, kwargs)) if isinstance(one, Tensor)}.values()
        gives = [one for one in tree_leaves(result) if isinstance(one, Tensor)]
        held = {one.untyped_storage().data_ptr() for one in given}
        name = func._schema.name.removeprefix("aten::")
        writes = func._schema.is_mutable or any(one.untyped_storage().data_ptr() not in held for one in gives)
        if given and writes and name not in BOOKKEEPING:
            weights = {id(one): names for one in given if (names := self._names(one))}
            self.steps.append({
                "op": name.rstrip("_"), "weight": [name for names in weights.values() for name in names],
                "weights": sum(_bytes(one) for one in given if id(one) in weights),
                "reads": sum(_bytes(one) for one in given if id(one) not in weights),
                "writes": sum(map(_bytes, gives)), "shape": list(gives[0].shape), "call": self._calls.count,
            })  # fmt: skip
        return result

    def _names(self, tensor: Tensor) -> list[str]:
        """Which weights a tensor lies in, or holds."""
        start, stop = _range(tensor)
        names = [name for name, first, end in self._weights if first < stop and start < end]
        return [name.removesuffix(".weight").rpartition(".")[2] for name in names]


def _range(tensor: Tensor) -> tuple[int, int]:
    return tensor.data_ptr(), tensor.data_ptr() + _bytes(tensor)


def _bytes(tensor: Tensor) -> int:
    return tensor.numel() * tensor.element_size()
