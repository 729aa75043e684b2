"""What a model is made of, in the numbers its memory and its work follow from. Standard library only.

`engine.plan.read` turns a `config.json` (as the transformers library writes it, or with the old names) into an
`Architecture`; how the layers of a family look is in `engine.plan.families`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from engine.trace import Facts

Kind = Literal["full", "sliding", "chunked", "linear"]


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer. Sizes are in values (numbers), not bytes; matrices are counted apart from the small rest because only
    they do the work, and only they are squeezed to fewer bits."""

    kind: Kind
    heads: int = 0
    """Query heads; 0 in a linear layer."""
    kv_heads: int = 0
    head_size: int = 0
    """Values of a query and a key of one head."""
    value_size: int = 0
    """Values of a value of one head."""
    window: int = 0
    """Positions such a layer sees (itself included); 0 where it sees all."""
    latent: int = 0
    """Values per position of the latent all heads' K and V are made from (MLA); 0 where there is none."""
    expand: int = 0
    """Weights of the matrix that makes all heads' K and V from it; part of `projections`."""
    state: int = 0
    """Values a linear layer keeps, however long the context: its recurrent state …"""
    convolution: int = 0
    """… and the inputs its short convolution still needs."""
    mix: int = 0
    """Multiplications and additions per position of a linear layer beside its matrices."""
    projections: int = 0
    """Weights of the matrices that make queries, keys, values and the attention's output."""
    mlp: int = 0
    """Weights of the MLP's matrices, all experts and the router."""
    mlp_active: int = 0
    """Those of them one token goes through."""
    expert: int = 0
    """Weights of one expert's matrices; 0 in a dense layer."""
    experts: int = 0
    experts_active: int = 0
    experts_shared: int = 0
    """Experts every token goes through besides; a shared MLP counts as one."""
    inner: int = 0
    """Values per position between the MLP's matrices (all experts one token goes through)."""
    gated: bool = True
    """Whether the MLP has three matrices (gate, up, down) and not two."""
    small: int = 0
    """Weights of norms, biases, sinks, convolutions."""
    small_idle: int = 0
    """Those of them that belong to experts one token does not go through."""
    normed: int = 0
    """Values per position that go through a norm."""

    @property
    def weights(self) -> int:
        return self.projections + self.mlp + self.small

    @property
    def weights_active(self) -> int:
        return self.projections + self.mlp_active + self.small - self.small_idle

    @property
    def kv_values(self) -> int:
        """Values of K and V of one position, all KV heads."""
        return self.kv_heads * (self.head_size + self.value_size)


@dataclass(frozen=True, slots=True)
class Architecture:
    """A model of a known family. `parameters` is exact: a test builds the same in the library and counts."""

    family: str
    layers: tuple[Layer, ...]
    hidden: int
    vocabulary: int
    context: int
    """Most positions the model was made for; 0 where the config does not say."""
    tied: bool
    """Whether the embedding is the vocabulary's matrix too."""
    intermediate: int
    dtype: str
    """As the config names it; empty where it does not."""
    outside: int = 0
    """Weights outside the layers besides embedding and vocabulary matrix: last norm, learned positions, biases."""
    rotary: int = 0
    """Values of the tables that turn queries and keys, kept beside the weights in fp32 by the library."""
    scale: int = 0
    """Values kept beside the weights in their own dtype (Gemma's scale of the embedding)."""
    assumed: tuple[str, ...] = ()
    """Fields the config left out and this took from the library's class for the family."""

    @property
    def embedding(self) -> int:
        return self.vocabulary * self.hidden

    @property
    def head(self) -> int:
        """Weights of the vocabulary's matrix that are its own."""
        return 0 if self.tied else self.embedding

    @property
    def parameters(self) -> int:
        return self.embedding + self.head + self.outside + sum(layer.weights for layer in self.layers)

    @property
    def active_parameters(self) -> int:
        """Weights one token goes through: all but the experts that are not chosen."""
        return self.embedding + self.head + self.outside + sum(layer.weights_active for layer in self.layers)

    @property
    def first(self) -> Layer:
        """The first layer with attention: what one asks for heads. A model without any has a plain one here."""
        return next((layer for layer in self.layers if layer.heads), Layer("full", 1, 1, 1, 1))

    @property
    def kinds(self) -> dict[Kind, int]:
        """How many layers there are of each kind, in the order they come."""
        return dict(Counter(layer.kind for layer in self.layers))

    @property
    def window(self) -> int:
        return max((layer.window for layer in self.layers), default=0)


def agrees(architecture: Architecture, facts: Facts) -> bool:
    """Whether a run's model has these sizes, to the last parameter."""
    first = architecture.first
    return (
        architecture.parameters == facts.parameters
        and [layer.window for layer in architecture.layers]
        == [facts.window if kind == "sliding" else 0 for kind in facts.layer_kinds]
        and (first.heads, first.kv_heads, first.head_size, architecture.hidden, architecture.vocabulary)
        == (facts.heads, facts.kv_heads, facts.head_size, facts.hidden_size, facts.vocabulary)
    )
