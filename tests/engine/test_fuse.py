"""Fewer calls, the same products: what is joined, that nothing changes but the calls, and that nothing is kept.

That greedy ids are the library's in fp32 is in `test_answers.py`, for every kind of model; here once more with the
kernel for one row, which not every machine takes by itself.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode
from transformers import LlamaConfig, PreTrainedConfig, PreTrainedModel
from transformers.models.gemma3.modeling_gemma3 import Gemma3RMSNorm
from transformers.models.llama.modeling_llama import LlamaRMSNorm

from engine.model import LanguageModel, fuse, wrap
from engine.model.tap import Pass
from engine.run import Halt, admit, answer
from engine.settings import Settings
from engine.trace import Decoded
from tests.engine import tiny
from tests.engine.test_answers import generated, ids_of

pytestmark = pytest.mark.slow

QKV, GATE_UP = ("q_proj", "k_proj", "v_proj"), ("gate_proj", "up_proj")
BIASED = LlamaConfig(**tiny.SIZES, num_key_value_heads=2, attention_bias=True, mlp_bias=True)
TIED = LlamaConfig(**tiny.SIZES, num_key_value_heads=2, tie_word_embeddings=True)


@pytest.fixture(params=[False, True], ids=["product", "vector"])
def vector(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Both choices of the kernel for one row, whatever this machine would take."""
    monkeypatch.setattr(fuse, "_as_vector", lambda network: request.param)
    return bool(request.param)


def products(network: nn.Module) -> list[Any]:
    return [module._joint for module in network.modules() if isinstance(module, fuse.Part)]


def siblings(network: PreTrainedModel) -> fuse.Siblings:
    with fuse.watched(network) as found, torch.inference_mode():
        network(input_ids=torch.arange(5)[None], use_cache=False)
    return found


def resident(network: nn.Module) -> int:
    """Bytes of the memory that weights and buffers lie in, each piece of it once."""
    tensors = [*network.parameters(), *network.buffers()]
    pieces = {tensor.untyped_storage().data_ptr(): tensor.untyped_storage().nbytes() for tensor in tensors}
    return sum(pieces.values())


@pytest.mark.parametrize(
    ("kind", "each"),
    [("llama", [QKV, GATE_UP]), ("qwen3", [QKV, GATE_UP]), ("gemma3", [QKV, GATE_UP]), ("gpt2", []), ("neox", [])],
)
def test_siblings_are_those_that_are_given_the_same(kind: str, each: list[tuple[str, ...]]) -> None:
    network = tiny.network(kind)
    assert [names for _, names in siblings(network)] == each * 3
    assert not any(module._forward_pre_hooks for module in network.modules())


def test_watching_ends_with_an_error_too() -> None:
    network = tiny.network("llama")
    with pytest.raises(IndexError), fuse.watched(network):
        network(input_ids=torch.tensor([[10**6]]))
    assert not any(module._forward_pre_hooks for module in network.modules())


def sit(model: LanguageModel, settings: Settings) -> tuple[int, ...]:
    return answer(model, settings).output_ids


@pytest.mark.parametrize("kind", tiny.KINDS)
def test_greedy_ids_stay_those_of_generate(kind: str, vector: bool) -> None:
    model = wrap(tiny.network(kind), tiny.tokenizer(), name=kind)
    assert any(isinstance(module, fuse.Row) for module in model.network.modules()) == vector
    settings = tiny.raw()
    assert sit(model, settings) == generated(kind, ids_of(kind, settings), "sdpa", do_sample=False)


@pytest.mark.parametrize("config", [BIASED, TIED, *(tiny.CONFIGS[kind]() for kind in tiny.KINDS)])
def test_not_a_byte_of_weights_more_and_the_same_logits(config: PreTrainedConfig, vector: bool) -> None:
    own, network = tiny.from_config(config), tiny.from_config(config)
    ids = torch.arange(7)[None]
    fuse.arrange(network, siblings(network))
    with torch.inference_mode():
        for given in (ids, ids[:, :1]):
            torch.testing.assert_close(network(given).logits, own(given).logits, atol=2e-5, rtol=2e-5)
    assert resident(network) == resident(own)
    assert [name for name, _ in network.named_parameters()] == [name for name, _ in own.named_parameters()]
    assert all(map(torch.equal, network.state_dict().values(), own.state_dict().values()))
    assert products(network) or config.model_type in ("gpt2", "gpt_neox")


def test_weights_are_ordinary_ones_and_a_change_of_one_is_a_change_of_the_product() -> None:
    network = wrap(tiny.network("llama"), tiny.tokenizer(), name="llama").network
    attention = network.model.layers[0].self_attn
    assert not attention.q_proj.weight.is_inference()
    with torch.no_grad():
        attention.k_proj.weight[:] = 0
    given = torch.randn(2, 32)
    assert attention.q_proj(given).abs().max() > 0 and attention.k_proj(given).abs().max() == 0


def test_facts_are_those_of_the_weights_as_they_came() -> None:
    own = tiny.network("llama")
    facts = tiny.model("llama").facts
    assert facts.parameters == sum(parameter.numel() for parameter in own.parameters())
    assert facts.weight_bytes == resident(own)


def test_biases_are_joined_too() -> None:
    network = tiny.from_config(BIASED)
    for parameter in network.parameters():
        parameter.data.normal_(std=0.3, generator=torch.Generator().manual_seed(parameter.numel()))
    fuse.arrange(network, siblings(network))
    attention = network.model.layers[0].self_attn
    given = torch.randn(1, 4, 32)
    for part in (attention.q_proj, attention.k_proj, attention.v_proj):
        assert part.bias.abs().sum() > 0
        torch.testing.assert_close(part(given), nn.functional.linear(given, part.weight, part.bias))


def test_tied_weights_stay_tied(vector: bool) -> None:
    network = tiny.from_config(TIED)
    fuse.arrange(network, siblings(network))
    assert isinstance(network.lm_head, fuse.Row) == vector
    assert network.lm_head.weight is network.model.embed_tokens.weight


def test_weights_that_others_hold_as_well_are_left_alone() -> None:
    network = tiny.network("llama")
    first, second = network.model.layers[0].self_attn, network.model.layers[1].self_attn
    first.k_proj.weight = second.k_proj.weight
    fuse.arrange(network, siblings(network))
    joined = {name for name, module in network.named_modules() if isinstance(module, fuse.Part)}
    assert not {name for name in joined if "layers.0.self_attn" in name or "layers.1.self_attn" in name}
    assert "model.layers.2.self_attn.k_proj" in joined and "model.layers.0.mlp.up_proj" in joined


class Odd(nn.Module):
    """Uses its linears as no model does."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(4, 3), nn.Linear(4, 5)
        self.unbiased, self.other = nn.Linear(4, 3, bias=False), nn.Linear(4, 2)

    def forward(self, given: Tensor) -> list[Tensor]:
        return [self.a(given), self.unbiased(given), self.b(given), self.other(given + 1)]


@pytest.fixture
def odd() -> tuple[Odd, Any]:
    torch.manual_seed(0)
    made = Odd()
    with fuse.watched(made) as found:
        made(torch.ones(1, 4))
    assert [names for _, names in found] == [("a", "b")]
    fuse.arrange(made, found)
    return made, products(made)[0]


def same(part: nn.Linear, given: Tensor) -> None:
    torch.testing.assert_close(part(given), nn.functional.linear(given, part.weight, part.bias))


def test_another_input_is_another_product(odd: tuple[Odd, Any], vector: bool) -> None:
    made, product = odd
    with torch.inference_mode():
        first, second = torch.randn(2, 4), torch.randn(1, 4)
        same(made.a, first)
        same(made.b, second)  # not what its sibling was given
        same(made.a, first)
        same(made.a, first)  # twice before its sibling
        same(made.b, first)
        same(made.b, first)
        same(made.a, second)
        same(made.b, second.clone())  # equal, yet another tensor
        same(made.a, second)
        same(made.b, second)
    assert product._given is None


def test_two_siblings_cost_one_product(odd: tuple[Odd, Any]) -> None:
    made, product = odd
    given = torch.randn(2, 4)
    with torch.inference_mode(), FlopCounterMode(display=False) as counter:
        made.a(given)
        assert counter.get_total_flops() == 2 * 2 * 4 * (3 + 5)
        assert product._given is given
        made.b(given)
        assert counter.get_total_flops() == 2 * 2 * 4 * (3 + 5)
    assert product._given is None and product._parts == [None, None]


def test_nothing_of_a_pass_is_kept_whatever_ended_it() -> None:
    model = tiny.model("llama")
    tiny.sit("llama", tiny.raw())
    assert all(product._given is None for product in products(model.network))
    run = tiny.exam("llama", tiny.raw())
    cache, _ = run.allocate()

    def halt(index: int, seconds: float) -> None:
        raise Halt

    with pytest.raises(Halt):
        model.forward([run.ids], Pass([cache], len(run.ids), halt))
    assert all(product._given is None and not any(product._parts) for product in products(model.network))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_norm_is_replaced_by_its_equal(dtype: torch.dtype) -> None:
    own = LlamaRMSNorm(48, eps=1e-5).to(dtype)
    own.weight.data.normal_(generator=torch.Generator().manual_seed(1))
    faster = fuse._norm(own)
    assert faster is not None and faster.weight is own.weight
    for rows in (1, 30, 200):
        given = 5 * torch.randn(rows, 1, 48, dtype=dtype)
        assert torch.equal(faster(given), own(given))


class HalvedRMSNorm(LlamaRMSNorm):
    def forward(self, hidden_states: Tensor) -> Tensor:
        halved: Tensor = super().forward(hidden_states) / 2
        return halved


def test_a_norm_that_does_something_else_is_left_alone() -> None:
    assert fuse._norm(Gemma3RMSNorm(48)) is None  # multiplies by 1 + weight
    assert fuse._norm(HalvedRMSNorm(48)) is None


def test_on_other_devices_one_row_is_not_measured() -> None:
    assert fuse._as_vector(nn.Linear(2, 2, device="meta")) is False
    assert fuse._as_vector(nn.Linear(2, 2)) in (True, False)


def test_runs_are_answered_together_as_alone(vector: bool) -> None:
    model = wrap(tiny.network("llama"), tiny.tokenizer(), name="llama")
    papers = [tiny.raw(tiny.PAPER[:stop]) for stop in (9, 30, 61)]
    alone = [list(sit(model, paper)) for paper in papers]
    runs = [admit(str(number), paper, model, 0.0, now=lambda: 0.0) for number, paper in enumerate(papers)]
    tiny.drive(runs)
    assert [run.chosen for run in runs] == alone


@pytest.mark.parametrize("kind", tiny.KINDS)
def test_apart_everything_is_called_as_the_library_calls_it_and_the_words_stay(kind: str, vector: bool) -> None:
    model = wrap(tiny.network(kind), tiny.tokenizer(), name=kind)
    settings = tiny.raw(fused=False)
    assert sit(model, settings) == generated(kind, ids_of(kind, settings), "sdpa", do_sample=False)
    given = torch.randn(1, 3, 32)
    own = {name: module for name, module in tiny.network(kind).named_modules() if isinstance(module, LlamaRMSNorm)}
    for name, module in model.network.named_modules():
        with torch.inference_mode(), fuse.apart():
            if isinstance(module, fuse.Norm) and name in own and len(module.weight) == 32:
                assert torch.equal(module(given), own[name](given))
            if isinstance(module, fuse.Part) and module.in_features == 32:
                torch.testing.assert_close(module(given), nn.functional.linear(given, module.weight, module.bias))
                assert module._joint._given is None, "no joint product was made"
    assert not fuse._apart.get()


def test_runs_of_both_kinds_are_answered_beside_each_other_as_alone(vector: bool) -> None:
    model = wrap(tiny.network("llama"), tiny.tokenizer(), name="llama")
    papers = [tiny.raw(tiny.PAPER[: 20 + 9 * n], fused=bool(n % 2), max_new_tokens=5 + n) for n in range(4)]
    alone = [list(sit(model, paper)) for paper in papers]
    runs = [admit(str(number), paper, model, 0.0, now=lambda: 0.0) for number, paper in enumerate(papers)]
    told = tiny.drive(runs)
    assert [run.chosen for run in runs] == alone
    together = {event.together for events in told.values() for event in events if isinstance(event, Decoded)}
    assert together == {1, 2}, "a pass goes one way for all of its runs"


def test_an_error_does_not_leave_the_linears_apart() -> None:
    def fail(index: int, seconds: float) -> None:
        assert fuse._apart.get()
        raise Halt

    run = tiny.exam("llama", tiny.raw(fused=False))
    cache, _ = run.allocate()
    with pytest.raises(Halt):
        run.model.forward([run.ids], Pass([cache], len(run.ids), fail, ways=[run.way]))
    assert not fuse._apart.get()
