"""Training by CUDA graphs: a small model spends its time on launching kernels; a graph launches them all at once."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from heedful.attention.lowering_cache import LASTING
from heedful.engines.buckets import Batch
from heedful.engines.engine import Engine
from heedful.errors import Refusal

WARM = 3  # passes before a capture, in which the libraries choose their kernels

Losses = tuple[Tensor, Tensor, Tensor]  # of a batch: the sum, the count, and each of several


class CudaGraphs(Engine):
    """Steps of learning as CUDA graphs: on a GPU, where they are asked for."""

    def refuses(self, model: nn.Module) -> str:
        if any(one.device.type != "cuda" for one in model.parameters()):
            return "cuda_graphs are a GPU's, and the model lies on a CPU; take its steps as they are called"
        return ""


class Graphs:
    """Forward, loss and backward of each shape of batch, captured when it first comes and replayed ever after.

    Gradients are added to those of the parameters, as `backward` does. A batch comes filled up with zeros, which must
    mean nothing to its task (`buckets.captured`). A replay draws its dice from the seed that is set then.
    """

    def __init__(
        self, model: nn.Module, losses: Callable[[Batch], Losses], back: Callable[[Tensor], object], padded: bool = True
    ) -> None:
        if padded and any(isinstance(part, nn.modules.batchnorm._BatchNorm) for part in model.modules()):
            raise Refusal("training.graphs would count padding into batch norms; use another model.norm")
        self.model, self.losses, self.back = model, losses, back
        self.made: dict[tuple[tuple[str, torch.Size], ...], tuple[torch.cuda.CUDAGraph, Batch, Losses]] = {}
        self.pool = torch.cuda.graph_pool_handle()
        self.read: list[object] = []  # what lasted of masks at a capture, since a replay reads it there
        for parameter in filter(lambda one: one.requires_grad, model.parameters()):
            parameter.grad = torch.zeros_like(parameter)

    def __call__(self, batch: Batch) -> Losses:
        """The sum of the losses and their count, the gradients added to the parameters."""
        shape = tuple((name, tensor.shape) for name, tensor in batch.items())
        if shape not in self.made:
            self.made[shape] = self.capture(batch)
        graph, inputs, losses = self.made[shape]
        for name, tensor in batch.items():
            inputs[name].copy_(tensor, non_blocking=True)
        graph.replay()
        return losses

    def capture(self, batch: Batch) -> tuple[torch.cuda.CUDAGraph, Batch, Losses]:
        """The graph of a shape; gradients, and what the model counts for itself, are afterwards as they were."""
        gradients = [parameter.grad for parameter in self.model.parameters() if parameter.grad is not None]
        gradients += list(self.model.buffers())
        before, dice = [one.clone() for one in gradients], torch.cuda.get_rng_state()
        inputs = {name: tensor.cuda() for name, tensor in batch.items()}
        aside = torch.cuda.Stream()
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):
            for _ in range(WARM):
                self.backward(inputs)
        torch.cuda.current_stream().wait_stream(aside)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self.pool):
            losses = self.backward(inputs)
        self.read += LASTING.values()
        torch._foreach_copy_(gradients, before)
        torch.cuda.set_rng_state(dice)
        return graph, inputs, losses

    def backward(self, batch: Batch) -> Losses:
        """One pass forward and back."""
        loss, count, each = self.losses(batch)
        self.back(loss)
        return loss.detach(), count, each
