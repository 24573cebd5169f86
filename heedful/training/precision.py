"""In which precision matrix products are made, and how the loss is scaled where that is float16."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch
from torch import Tensor
from torch.optim import Optimizer

from heedful.errors import Refusal
from heedful.training.spec.training_spec import TrainingSpec

DTYPES = {
    "float32": torch.float32,
    "tf32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
    "float64": torch.float64,
}
FIRST = 2.0**10  # scale of a loss: of a sum over many tokens, which is larger than the mean that torch's 2^16 is for
LEAST = 2.0**-16  # scale below which gradients are not large but broken


def working_dtype(training: TrainingSpec, device: torch.device) -> torch.dtype:
    """The precision of the matrix products; one that the device lacks is refused."""
    lacking = {"cpu": ("tf32",), "mps": ("tf32", "float16", "float64")}.get(device.type, ())
    if training.dtype in lacking:
        why = "is a GPU's, and this run is on the CPU" if device.type == "cpu" else "is not for a GPU of Apple's"
        raise Refusal(f"training.dtype={training.dtype} {why}; use float32 or bfloat16")
    if training.dtype == "auto":
        return torch.bfloat16 if device.type == "cuda" else torch.float32
    return DTYPES[training.dtype]


class Precision:
    """Autocast to lower precision, TF32, and the scale that keeps float16's gradients from vanishing.

    The loss is multiplied before it goes backwards, gradients are divided before the step, and a step whose
    gradients overflowed is left out (Micikevicius et al., 2018).
    """

    def __init__(self, training: TrainingSpec, device: torch.device) -> None:
        self.device, self.dtype = device, working_dtype(training, device)
        self.tf32 = training.dtype == "tf32"
        self.scaler = torch.amp.GradScaler(device.type, init_scale=FIRST, enabled=self.dtype == torch.float16)

    @contextlib.contextmanager
    def products(self) -> Iterator[None]:
        """TF32 for all products of float32 within, where it was asked for."""
        before = torch.get_float32_matmul_precision()
        if self.tf32:
            torch.set_float32_matmul_precision("high")
        try:
            yield
        finally:
            torch.set_float32_matmul_precision(before)

    def autocast(self) -> torch.autocast:
        """Lower precision where it was asked for."""
        low = self.dtype in (torch.bfloat16, torch.float16)
        return torch.autocast(self.device.type, self.dtype if low else torch.bfloat16, enabled=low)

    def backward(self, loss: Tensor) -> None:
        """Adds the gradients of a loss, scaled, to the weights'."""
        self.scaler.scale(loss).backward()

    def unscale(self, optimiser: Optimizer) -> None:
        """Gradients as they are without the scale; whether one overflowed is kept for the step."""
        self.scaler.unscale_(optimiser)

    def step(self, optimiser: Optimizer) -> None:
        """The optimiser's step, unless a gradient overflowed."""
        self.scaler.step(optimiser)
        self.scaler.update()

    @property
    def lost(self) -> bool:
        """Whether gradients overflowed at every scale that was tried."""
        return self.scaler.is_enabled() and self.scaler.get_scale() < LEAST

    def state(self) -> dict[str, Tensor]:
        """The scale and how long it has been good, as tensors."""
        kept = self.scaler.state_dict()
        if not kept:
            return {}
        return {"scale": torch.tensor(kept["scale"]), "grown": torch.tensor(kept["_growth_tracker"])}

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """Puts the scale back."""
        if self.scaler.is_enabled():
            kept = {"scale": float(tensors["scale"]), "_growth_tracker": int(tensors["grown"])}
            self.scaler.load_state_dict(self.scaler.state_dict() | kept)
