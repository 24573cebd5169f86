"""Llama (Touvron et al., 2023) and what is built like it: Mistral, Qwen2 and Qwen3 are other numbers in the spec."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from heedful.models.family import Family
from heedful.models.text.gpt import GPT, DecoderSpec, ReadingGPT

SMALL_EPS, LONG = {"norm": "rms(eps=1e-06)"}, {"position": "rotary(base=1000000.0)"}
LLAMA2 = {"vocab": 32000, "pad": None, "begin": 1, "end": 2}
LLAMA3 = {"vocab": 128256, "pad": None, "begin": 128000, "end": 128001}
QWEN = {"vocab": 151936, "pad": None, "begin": 151643, "end": 151643, "tied": True, **SMALL_EPS, **LONG}


def numbers(width: int, depth: int, heads: int, groups: int, hidden: int, length: int) -> dict[str, Any]:
    """The numbers of a size by name."""
    return {"width": width, "depth": depth, "heads": heads, "groups": groups, "hidden": hidden, "length": length}


class LlamaSpec(DecoderSpec):
    """Numbers and words of a model like Llama: a window is a word of `mechanism`, biases and norms are switches."""

    sizes: ClassVar[dict[str, dict[str, Any]]] = {
        "llama-1.1b": numbers(2048, 22, 32, 4, 5632, 2048) | LLAMA2,  # TinyLlama's
        "llama2-7b": numbers(4096, 32, 32, 32, 11008, 4096) | LLAMA2,
        "llama3-8b": numbers(4096, 32, 32, 8, 14336, 8192) | LLAMA3 | {"position": "rotary(base=500000.0)"},
        "llama3.1-8b": numbers(4096, 32, 32, 8, 14336, 131072) | LLAMA3 | {"position": "rotary_by_parts"},
        "llama3.2-1b": numbers(2048, 16, 32, 8, 8192, 131072)
        | {**LLAMA3, "position": "rotary_by_parts(stretch=32.0)", "tied": True},
        "mistral-7b": numbers(4096, 32, 32, 8, 14336, 32768) | {**LLAMA2, "mechanism": "window(size=4096)"},
        "qwen2-0.5b": numbers(896, 24, 14, 2, 4864, 131072) | {**QWEN, "project_bias": True},
        "qwen3-0.6b": numbers(1024, 28, 16, 8, 3072, 40960) | {**QWEN, "key": 128, "key_norm": True},
    }
    family: Literal["llama"] = "llama"
    position: str = "rotary"
    norm: str = "rms(eps=1e-05)"
    feedforward: str = "gated(bias=False)"
    project_bias: bool = False
    join_bias: bool = False
    tied: bool = False


class Llama(GPT):
    """A GPT whose parts are others: rotary positions, norms by the root mean square, gated feed-forwards."""


FAMILY = Family(LlamaSpec, Llama, {"vocab": 11}, "heedful.models.cases:Continuations", reading=ReadingGPT)
