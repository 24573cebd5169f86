"""Images a second: vision transformers, here and in timm and transformers, asked and learning.

On a GPU ViT-B/16 in bfloat16, compiled, 256 images at once; else ViT-S/16 and ViT-B/16 on the CPU, asked alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from heedful.bench.measure import Case, interleave, lacking
from heedful.decoding.steps import quiet
from heedful.engines import refresh, runner
from heedful.models import Spec, build

PEERS = ("timm", "transformers")
BASE = "heedful"
CPU: dict[str, Any] = {"sizes": ["small", "base"], "batches": [1, 16], "dtypes": ["float32", "bfloat16"]}
CUDA: dict[str, Any] = {"sizes": ["base"], "batches": [256], "dtypes": ["bfloat16"]}
NUMBERS: dict[str, dict[str, Any]] = {  # of a size, as transformers calls them
    "tiny": {"hidden_size": 192, "intermediate_size": 768, "num_attention_heads": 3},
    "small": {"hidden_size": 384, "intermediate_size": 1536, "num_attention_heads": 6},
    "base": {"hidden_size": 768, "intermediate_size": 3072, "num_attention_heads": 12},
}
PIXELS, CLASSES = 224, 1000


def cases(rounds: int, said: Callable[[], object]) -> Iterator[tuple[Case, str]]:
    """Each size, number of images and precision: asked, and on a GPU also a step of learning."""
    cuda = torch.cuda.is_available()
    place, asked = torch.device("cuda" if cuda else "cpu"), CUDA if cuda else CPU
    for size in asked["sizes"]:
        models = {name: made.to(place) for name, made in contenders(size).items()}
        for batch in asked["batches"]:
            images = torch.rand(batch, 3, PIXELS, PIXELS, device=place)
            for dtype in asked["dtypes"]:
                name = f"ViT-{size[0].upper()}/16, {batch} images, {dtype}"
                kinds = {"asked": asking, "learning": learning} if cuda else {"asked": asking}
                for kind, make in kinds.items():
                    calls = {who: make(model, images, getattr(torch, dtype)) for who, model in models.items()}
                    yield Case(f"{name}, {kind}", "images", batch, interleave(calls, rounds, 2, said)), BASE


def contenders(size: str) -> dict[str, nn.Module]:
    """The same network of each maker that is installed, with weights by chance."""
    made: dict[str, nn.Module] = {BASE: build("vit", size=f"{size}/16", channels=3, classes=CLASSES)}
    if not lacking("timm"):
        import timm  # type: ignore[import-not-found, unused-ignore]

        made["timm"] = timm.create_model(f"vit_{size}_patch16_224", num_classes=CLASSES)
    if not lacking("transformers"):
        import transformers

        config: Any = transformers.ViTConfig
        made["transformers"] = Said(transformers.ViTForImageClassification(config(**NUMBERS[size], num_labels=CLASSES)))
    return made


class Said(nn.Module):
    """A model of transformers', of which the scores alone are wanted."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, images: Tensor) -> Tensor:
        return self.model(images).logits


def ready(model: nn.Module) -> nn.Module:
    """The model as it is fastest where it lies: compiled on a GPU."""
    compiled: nn.Module = torch.compile(model) if next(model.parameters()).is_cuda else model  # type: ignore[assignment]
    return compiled


def asking(model: nn.Module, images: Tensor, dtype: torch.dtype) -> Callable[[], object]:
    """A pass forwards; heedful's as its tasks answer, with matrices that are packed on a CPU."""
    compiled, ours = ready(model.eval()), isinstance(getattr(model, "spec", None), Spec) and not images.is_cuda
    running = runner(model) if ours else compiled
    parts = list(running.modules())

    def call() -> None:
        low = torch.autocast(images.device.type, dtype, enabled=dtype != torch.float32)
        with quiet(running) if ours else torch.inference_mode(), low:
            if ours:
                refresh(parts)
            running(images)
        if images.is_cuda:
            torch.cuda.synchronize()

    return call


def learning(model: nn.Module, images: Tensor, dtype: torch.dtype) -> Callable[[], object]:
    """A step: forwards, backwards, and the optimiser's."""
    compiled = ready(model)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    answers = torch.arange(len(images), device=images.device) % CLASSES

    def call() -> None:
        model.train()
        with torch.autocast(images.device.type, dtype, enabled=dtype != torch.float32):
            loss = nn.functional.cross_entropy(compiled(images), answers)
        loss.backward()
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)
        if images.is_cuda:
            torch.cuda.synchronize()

    return call
