"""How many bytes numbers take: the formats of weights and of caches, with the scales that come with few bits."""

from __future__ import annotations

from dataclasses import dataclass

from engine.settings import Refusal


@dataclass(frozen=True, slots=True)
class Format:
    """Numbers of `bits` bits each. With a `group`, every so many of them share `scale` bytes; with `tensor`, a whole
    tensor does."""

    name: str
    bits: int
    group: int = 0
    scale: int = 0
    tensor: int = 0

    def bytes(self, values: int, vectors: int = 1) -> int:
        """Bytes of `vectors` rows of `values` numbers, each row packed and scaled on its own; a tensor's scale not
        counted."""
        scales = -(-values // self.group) * self.scale if self.group else 0
        return vectors * (-(-values * self.bits // 8) + scales)


FLOAT32, BFLOAT16, FLOAT16 = Format("float32", 32), Format("bfloat16", 16), Format("float16", 16)

WEIGHTS = {
    one.name: one
    for one in (
        FLOAT32,
        BFLOAT16,
        FLOAT16,
        Format("fp8", 8, group=128 * 128, scale=4),
        Format("int8", 8, group=128, scale=2),
        Format("int4", 4, group=128, scale=2),
        Format("mxfp4", 4, group=32, scale=1),
    )
}
"""For the matrices of the layers; below 16 bits everything else stays in bfloat16. fp8: a scale in fp32 per 128 × 128
block (DeepSeek-V3); int8, int4: one in fp16 per 128 numbers (GPTQ, AWQ); mxfp4: one byte per 32 (gpt-oss)."""

CACHES = {
    one.name: one
    for one in (
        FLOAT32,
        BFLOAT16,
        FLOAT16,
        Format("fp8", 8, tensor=4),
        Format("int8", 8, group=1 << 30, scale=2),
        Format("int4", 4, group=64, scale=2),
    )
}
"""For K and V. fp8: one scale in fp32 for each layer's K and V (vLLM); int8: one in fp16 for each head's vector; int4:
one in fp16 per 64 numbers of it (transformers' quantised caches group by 64)."""

CACHES_UPPER = CACHES | {"int8": Format("int8", 8, group=32, scale=2), "int4": Format("int4", 4, group=32, scale=4)}
"""What the costlier implementations take: one scale in fp16 per 32 numbers (llama.cpp's Q8_0), and in 4 bits a zero
point beside it (Q4_1)."""

SHORT = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16", "float8": "fp8", "f32": "float32", "f16": "float16"}


def weight_format(name: str) -> Format:
    """By name or short name. Raises `Refusal("unknown_format")`."""
    return _find(name, WEIGHTS, "dtype")


def cache_format(name: str) -> Format:
    """As `weight_format`, for K and V."""
    return _find(name, CACHES, "kv-dtype")


def _find(name: str, known: dict[str, Format], field: str) -> Format:
    found = known.get(SHORT.get(name.lower(), name.lower()))
    if found is None:
        raise Refusal("unknown_format", field=field, known=", ".join(known))
    return found


UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def readable(count: int) -> str:
    """Bytes in the largest unit that leaves a number of at least 1, powers of 1,024: 42,949,672,960 is `40.0 GiB`."""
    unit = min(max(0, (abs(count).bit_length() - 1) // 10), len(UNITS) - 1)
    return f"{count} B" if unit == 0 else f"{count / 1024**unit:,.1f} {UNITS[unit]}"
