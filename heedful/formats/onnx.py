"""Models as ONNX graphs, which other runtimes run: of any batch and any length."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from heedful.attention import Context, Padding
from heedful.errors import Failure, Refusal
from heedful.formats import onnx_recurrent
from heedful.models.heads_asked import NEXT, word_asked
from heedful.models.specs import LanguageSpec
from heedful.models.text.encoder_decoder import EncoderDecoder

NEEDED = ("onnx", "onnxscript")
AXES = ("batch", "length")
BATCH, LENGTH = 2, 3  # of what is traced; torch may take sizes of 1, or two that are the same, to be meant for good


@dataclass(frozen=True)
class Graph:
    """A part to be written as one file: what it is given, by name and axis, and what comes out."""

    part: nn.Module
    inputs: dict[str, Tensor]
    outputs: tuple[str, ...]
    axes: Mapping[str, tuple[str, ...]]  # those that may be of any size, from the first on


class Reads(nn.Module):
    """Tokens in, scores out."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, tokens: Tensor) -> Tensor:
        return self.model(tokens)


class ReadsSegments(Reads):
    """Tokens and the segments that they are of in, scores out."""

    def forward(self, tokens: Tensor, segments: Tensor) -> Tensor:  # type: ignore[override]
        return self.model(tokens, segments=segments)


class Encodes(nn.Module):
    """A source in, what it says out: B S -> B S M."""

    def __init__(self, model: EncoderDecoder) -> None:
        super().__init__()
        self.model = model

    def forward(self, source: Tensor) -> Tensor:
        return self.model.encode(source).states


class Decodes(Encodes):
    """A target, what the source says, and the source itself for its padding in; scores out: B T -> B T V."""

    def forward(self, target: Tensor, states: Tensor, source: Tensor) -> Tensor:  # type: ignore[override]
        present = Padding((source != self.model.special.pad).sum(-1))
        return self.model.decode(target, Context(states, present))


def write(model: nn.Module, folder: Path) -> nn.Module:
    """A model as `model.onnx`, or an encoder-decoder as `encoder.onnx` and `decoder.onnx`, into a folder."""
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise Refusal(f"the layout 'onnx' needs {' and '.join(missing)}; install them with: pip install heedful[onnx]")
    for name, graph in graphs(model).items():
        export(graph, folder / f"{name}.onnx")
    return model


def graphs(model: nn.Module) -> dict[str, Graph]:
    """The files of a model, each with what it holds."""
    spec: Any = model.spec
    weight = next(model.parameters())
    tokens = torch.ones(BATCH, LENGTH, dtype=torch.long, device=weight.device)
    if isinstance(model, EncoderDecoder) and word_asked(spec) == NEXT:
        target = torch.ones(BATCH, LENGTH + 1, dtype=torch.long, device=weight.device)
        states = torch.zeros(BATCH, LENGTH, spec.width, dtype=weight.dtype, device=weight.device)
        written = {"target": target, "states": states, "source": tokens}
        axes = {"target": ("batch", "target"), "states": ("batch", "source"), "source": ("batch", "source")}
        return {
            "encoder": Graph(Encodes(model), {"source": tokens}, ("states",), axes),
            "decoder": Graph(Decodes(model), written, ("scores",), axes),
        }
    if onnx_recurrent.serves(model):
        parts = onnx_recurrent.graphs(model)
        return {name: Graph(*part, onnx_recurrent.AXES) for name, part in parts.items()}
    if not isinstance(spec, LanguageSpec):
        raise Refusal(f"a model of family {spec.family!r} is not written as ONNX, only those that read texts are")
    if getattr(spec, "letters", 0):
        raise Refusal("a model that knows how tokens are spelt is not written as ONNX; train one without model.letters")
    inputs = {"tokens": tokens}
    if getattr(spec, "segments", 0) > 1:
        inputs["segments"] = torch.zeros_like(tokens)
    part = (ReadsSegments if "segments" in inputs else Reads)(model)
    return {"model": Graph(part, inputs, ("scores",), dict.fromkeys(inputs, AXES))}


def export(graph: Graph, path: Path) -> None:
    """Writes a graph; one in which torch has taken a size for good is a failure."""
    shapes = {name: dict(enumerate(axes)) for name, axes in graph.axes.items()}
    modes = {part: part.training for part in graph.part.modules()}
    graph.part.eval()
    try:
        with quietly(), torch.no_grad():
            program: Any = torch.onnx.export(
                graph.part,
                tuple(graph.inputs.values()),
                input_names=list(graph.inputs),
                output_names=list(graph.outputs),
                dynamic_shapes=tuple(shapes[name] for name in graph.inputs),
                dynamo=True,
                verbose=False,
            )
            for value in program.model.graph.inputs:
                if any(isinstance(value.shape[axis], int) for axis in shapes[value.name]):
                    raise Failure(f"{path.name}: torch would write {value.name} for one size alone; this is a fault")
            program.save(str(path))
    finally:
        for part, training in modes.items():
            part.training = training


@contextmanager
def quietly() -> Iterator[None]:
    """Inside, torch does not say what its exporter is at, nor that it will change."""
    logger = logging.getLogger("torch.onnx")
    children = [logging.getLogger(name) for name in logging.root.manager.loggerDict if name.startswith("torch.onnx")]
    levels = {one: one.level for one in (logger, *children)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for one in levels:
            one.setLevel(logging.ERROR)
        try:
            yield
        finally:
            for one, level in levels.items():
                one.setLevel(level)
