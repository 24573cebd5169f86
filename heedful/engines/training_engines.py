"""Training engines: which of them serve a model that learns; it may be compiled, its steps captured, or both."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, cast

import torch
from torch import nn

from heedful.engines.engine import ENGINES, Engine

if TYPE_CHECKING:
    from heedful.engines.buckets import Shape

MOST = 64  # shapes that are compiled; torch goes on without compiling after 8, where not told


class Compiled(Engine):
    """The model as torch compiles it, for each shape of batch by itself; what comes of it is the same every time."""

    def refuses(self, model: nn.Module) -> str:
        if any("_orig_mod" in part._modules or part._compiled_call_impl is not None for part in model.modules()):
            return "compiled is for a model that torch has not compiled yet; take it as it is"
        return ""


@dataclass(frozen=True)
class Learning:
    """How a model is run while it learns: by which engines, and in which shapes they have their batches."""

    compiled: bool
    captured: bool

    @classmethod
    def of(cls, model: nn.Module, compiled: bool, captured: bool) -> Learning:
        """Engine selection: those that are asked for and serve the model."""
        compiled, captured = (
            asked and not ENGINES.named(name)().refuses(model)
            for name, asked in (("compiled", compiled), ("cuda_graphs", captured))
        )
        return cls(compiled, captured)

    def learner(self, model: nn.Module) -> nn.Module:
        """The module that learns, with the model's own parameters."""
        return static(model) if self.compiled else model

    def repeatable(self) -> contextlib.AbstractContextManager[None]:
        """Inside, a step comes out the same every time."""
        return repeatable() if self.compiled else contextlib.nullcontext()

    def shape(self, longest: int) -> Shape:
        """How batches are filled up, where each of their shapes is a graph of its own."""
        if not (self.compiled or self.captured):
            return lambda batch: batch
        from heedful.engines import buckets

        return partial(buckets.fill_for_compiler if self.compiled else buckets.fill_for_graphs, longest=longest)


def static(model: nn.Module) -> nn.Module:
    """The model, compiled anew for each shape of batch, always to the same kernels: none is chosen by a stopwatch."""
    torch._dynamo.config.recompile_limit = max(torch._dynamo.config.recompile_limit, MOST)
    return cast(nn.Module, torch.compile(model, dynamic=False, options={"deterministic": True}))


@contextlib.contextmanager
def repeatable() -> Iterator[None]:
    """Inside, what is compiled adds in the same order every time; on a GPU it would else take what comes first."""
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # as torch asks for, for products to be so too
    before = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before[0], warn_only=before[1])
