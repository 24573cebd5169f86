"""Text generation: GPT-2 124M on this CPU, or GPT-2 and Llama 1.1B on a GPU, beside transformers' generate."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from importlib import import_module, util
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import Tensor, nn

from heedful.bench.measure import Case, interleave
from heedful.decoding.generate import generate
from heedful.errors import Failure
from heedful.models import build
from heedful.terminal import say

PEERS = ("transformers",)  # where it is not installed, speeds alone are told
LENGTH = 32  # of a prompt
NEW, NEW_BY_GPU = 64, 200
BATCHES = (1, 64)
SIZES: dict[str, dict[str, Any]] = {
    "GPT-2 124M": {"family": "gpt", "size": "gpt2", "end": None},
    "Llama 1.1B": {
        "family": "llama",
        "vocab": 32000,
        "width": 2048,
        "depth": 16,
        "heads": 32,
        "groups": 8,
        "hidden": 8192,
        "length": 2048,
        "end": None,
    },
}
Contenders = dict[str, Callable[[], list[list[int]]]]


def cases(rounds: int, said: Callable[[], object]) -> Iterator[tuple[Case, str]]:
    """Every case, with the name of the contender that the others are compared to: transformers, where it is there."""
    torch.manual_seed(0)
    on_gpu = torch.cuda.is_available()
    new = NEW_BY_GPU if on_gpu else NEW
    for how in (by_gpu, by_compiler) if on_gpu else (by_cpu,):  # what takes a compiler comes last
        for name in SIZES if on_gpu else list(SIZES)[:1]:
            ours = model(name, on_gpu)
            other = in_transformers(ours) if util.find_spec("transformers") else None
            for batch in BATCHES if on_gpu else BATCHES[:1]:
                title = f"{name}, {'bfloat16' if on_gpu else 'float32'}, batch {batch}, {LENGTH} in and {new} out"
                contenders = how(ours, other, prompts(ours, batch))
                compare(title, contenders, batch, new)
                yield Case(title, "tokens", batch * new, interleave(contenders, rounds, 0, said)), list(contenders)[-1]


def prompts(ours: nn.Module, batch: int) -> Tensor:
    """Random prompts: B S."""
    vocab = ours.spec.vocab  # type: ignore[union-attr]
    return torch.randint(0, vocab, (batch, LENGTH), device=next(ours.parameters()).device)  # type: ignore[arg-type]


def model(name: str, on_gpu: bool) -> nn.Module:
    """A model with random weights, so large that its texts are not one token again and again, and without an end."""
    made = build(**SIZES[name]).eval()
    with torch.no_grad():
        for path, weight in made.named_parameters():
            if weight.dim() > 1 and path.startswith("decoder"):
                weight.mul_(3.0)
    return made.to("cuda", torch.bfloat16) if on_gpu else made


def in_transformers(ours: nn.Module) -> Any:
    """The same model as transformers reads it."""
    from heedful.formats.native import save

    transformers: Any = import_module("transformers")
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    with TemporaryDirectory() as folder:
        save(ours, f"{folder}/model", layout="hf")
        made = transformers.AutoModelForCausalLM.from_pretrained(f"{folder}/model", dtype=next(ours.parameters()).dtype)
    made.generation_config.eos_token_id = None
    made.generation_config.pad_token_id = 0
    return made.to(next(ours.parameters()).device).eval()


def by_cpu(ours: nn.Module, other: Any, prompts: Tensor) -> Contenders:
    """heedful with exact and with rounded weights, and transformers."""
    rows = prompts.tolist()
    contenders: Contenders = {
        "heedful": lambda: generate(ours, rows, NEW),
        "heedful, weights=float16": lambda: generate(ours, rows, NEW, weights="float16"),
    }
    return contenders | ({"transformers generate": by_transformers(other, prompts, NEW)} if other else {})


def by_gpu(ours: nn.Module, other: Any, prompts: Tensor) -> Contenders:
    """heedful as it is called and captured, greedily and by chance, and transformers as it is called."""
    contenders = {
        "heedful": by_heedful(ours, prompts),
        "heedful, steps=captured, sampled": by_heedful(ours, prompts, steps="captured", temperature=0.8, top_k=50),
        "heedful, steps=captured": by_heedful(ours, prompts, steps="captured"),
    }
    return contenders | ({"transformers generate": by_transformers(other, prompts, NEW_BY_GPU)} if other else {})


def by_compiler(ours: nn.Module, other: Any, prompts: Tensor) -> Contenders:
    """heedful captured and compiled, and transformers with its static cache, which it compiles."""
    torch.compiler.reset()  # what was compiled for one batch would serve another, and slowly
    contenders = {
        "heedful, steps=captured": by_heedful(ours, prompts, steps="captured"),
        "heedful, steps=compiled": by_heedful(ours, prompts, steps="compiled"),
    }
    if other:
        static = by_transformers(other, prompts, NEW_BY_GPU, cache_implementation="static")
        contenders["transformers, static + compiled"] = static
    return contenders


def by_heedful(ours: nn.Module, prompts: Tensor, **how: Any) -> Callable[[], list[list[int]]]:
    """heedful's generate."""
    rows = prompts.tolist()
    return lambda: generate(ours, rows, NEW_BY_GPU, **how)


def by_transformers(other: Any, prompts: Tensor, new: int, **how: Any) -> Callable[[], list[list[int]]]:
    """transformers' generate."""
    words = {"do_sample": False, "max_new_tokens": new, "min_new_tokens": new, **how}

    def run() -> list[list[int]]:
        with torch.inference_mode():
            found: Tensor = other.generate(prompts, attention_mask=torch.ones_like(prompts), **words)
        return found[:, prompts.shape[1] :].tolist()

    return run


def compare(title: str, contenders: Contenders, batch: int, new: int) -> None:
    """Runs each twice to warm it, sees that all write as much, and says how much of it is the same."""
    first: list[list[int]] = []
    for name, run in contenders.items():
        began = time.perf_counter()
        run()
        warmed = time.perf_counter() - began
        wrote = run()
        if [len(row) for row in wrote] != [new] * batch:
            raise Failure(f"{name} wrote {[len(row) for row in wrote]} tokens and not {new}; nothing can be compared")
        first = first or wrote
        same = sum(a == b for row, other in zip(wrote, first, strict=True) for a, b in zip(row, other, strict=True))
        say(f"{title}: {name}: {warmed:.1f} s at first, {same / batch / new:.1%} of its tokens those of the first")
