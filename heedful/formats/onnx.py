"""Models as ONNX graphs, which other runtimes run: of any batch and length, named as transformers' exporter does."""

from __future__ import annotations

import json
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

from heedful.attention import Context, Everything, standing
from heedful.errors import Failure, Refusal
from heedful.formats import CONFIG, SAMPLE, SPEC, hf_models, image_processors, onnx_recurrent
from heedful.formats.layout_registry import layout_for
from heedful.formats.onnx_samples import sample_program
from heedful.models.heads_asked import NEXT, word_asked
from heedful.models.specs import LanguageSpec
from heedful.models.text.encoder_decoder import EncoderDecoder
from heedful.models.vision.image_spec import ClassifierSpec, ImageSpec

OUTPUTS = {"states": ("last_hidden_state",), "pooled": ("pooler_output",), "answer": ("start_logits", "end_logits")}
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
    """Tokens in, and which of them are there, perhaps the segments that they are of too; what is asked of them out."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model
        self.spans = word_asked(model.spec) == "answer"  # type: ignore[arg-type]

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor | None = None) -> Any:
        told = {} if token_type_ids is None else {"segments": token_type_ids}
        scores = self.model(input_ids, positions=standing(attention_mask > 0), **told)
        return tuple(scores.unbind(-1)) if self.spans else scores


class Encodes(nn.Module):
    """A source in, and which of its tokens are there; what it says out: B S -> B S M."""

    def __init__(self, model: EncoderDecoder) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        return self.model.encode(input_ids, standing(attention_mask > 0)).states


class Decodes(Encodes):
    """A target, what the source says, and which of its tokens are there in; scores out: B T -> B T V."""

    def forward(  # type: ignore[override]
        self, input_ids: Tensor, encoder_attention_mask: Tensor, encoder_hidden_states: Tensor
    ) -> Tensor:
        places = standing(encoder_attention_mask > 0)
        return self.model.decode(input_ids, Context(encoder_hidden_states, Everything(), places))


class Sees(nn.Module):
    """Images in, each channel on one scale as their processor gives them; scores or vectors out."""

    scale: Tensor

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model
        spec: Any = model.spec
        scale = torch.tensor([spec.mean, spec.deviation] if spec.mean else [[0.0], [1.0]])
        self.register_buffer("scale", scale[:, :, None, None].to(next(model.parameters())))

    def forward(self, pixel_values: Tensor) -> Tensor:
        mean, deviation = self.scale.unbind(0)
        return self.model(pixel_values * deviation + mean)


def write(model: nn.Module, folder: Path) -> nn.Module:
    """A model as graphs into a folder, with its spec, its config and a program that asks it; gives what was written."""
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise Refusal(f"the layout 'onnx' needs {' and '.join(missing)}; install them with: pip install heedful[onnx]")
    model = hf_models.framing(model)
    spec: Any = model.spec
    for name, graph in graphs(model).items():
        export(graph, folder / f"{name}.onnx")
    (folder / SPEC).write_text(spec.model_dump_json(indent=1) + "\n", encoding="utf-8")
    (folder / CONFIG).write_text(json.dumps(config_of(spec), indent=2, sort_keys=True) + "\n", encoding="utf-8")
    if isinstance(spec, ImageSpec):
        image_processors.write(spec, folder)
    (folder / SAMPLE).write_text(sample_program(model), encoding="utf-8")
    return model


def config_of(spec: Any) -> dict[str, Any]:
    """What a config.json says of a model: as transformers has it, where a layout can, and else what we call it."""
    try:
        config = dict(layout_for(spec)[1])
    except Refusal:
        config = {"model_type": spec.family, **spec.model_dump(exclude_none=True)}
    if labels := getattr(spec, "labels", None):
        config["id2label"] = {str(at): label for at, label in enumerate(labels)}
    return config


def graphs(model: nn.Module) -> dict[str, Graph]:
    """The files of a model, each with what it holds."""
    spec: Any = model.spec
    if isinstance(spec, ClassifierSpec):
        weight = next(model.parameters())
        images = torch.zeros(BATCH, spec.channels, spec.high, spec.wide, dtype=weight.dtype, device=weight.device)
        output = "logits" if spec.classes else "last_hidden_state"
        return {"model": Graph(Sees(model), {"pixel_values": images}, (output,), {"pixel_values": ("batch",)})}
    if isinstance(model, EncoderDecoder) and word_asked(spec) == NEXT:
        return two_graphs(model)
    if onnx_recurrent.serves(model):
        parts = onnx_recurrent.graphs(model)
        return {name: Graph(*part, onnx_recurrent.axes(name, model)) for name, part in parts.items()}
    if not isinstance(spec, LanguageSpec):
        raise Refusal(
            f"a model of family {spec.family!r} is not written as ONNX, only those that read texts or tell classes are"
        )
    for key in ("letters", "bias"):
        if (word := str(getattr(spec, key, None) or "")) and (key == "letters" or word.startswith("camtl")):
            raise Refusal(f"a model of model.{key}={word} is not written as ONNX; train one without it")
    tokens = torch.ones(BATCH, LENGTH, dtype=torch.long, device=next(model.parameters()).device)
    inputs = {"input_ids": tokens, "attention_mask": torch.ones_like(tokens)}
    if getattr(spec, "segments", 0) > 1:
        inputs["token_type_ids"] = torch.zeros_like(tokens)
    outputs = OUTPUTS.get(word_asked(spec), ("logits",))
    return {"model": Graph(Reads(model), inputs, outputs, dict.fromkeys(inputs, AXES))}


def two_graphs(model: EncoderDecoder) -> dict[str, Graph]:
    """The files of a model that reads a source and writes a target."""
    weight = next(model.parameters())
    source = torch.ones(BATCH, LENGTH, dtype=torch.long, device=weight.device)
    target = torch.ones(BATCH, LENGTH + 1, dtype=torch.long, device=weight.device)
    states = torch.zeros(BATCH, LENGTH, model.spec.width, dtype=weight.dtype, device=weight.device)  # type: ignore[union-attr,arg-type]
    read = {"input_ids": source, "attention_mask": torch.ones_like(source)}
    written = {"input_ids": target, "encoder_attention_mask": torch.ones_like(source), "encoder_hidden_states": states}
    along = {"input_ids": ("batch", "target")} | dict.fromkeys([*written][1:], ("batch", "source"))
    return {
        "encoder_model": Graph(Encodes(model), read, ("last_hidden_state",), dict.fromkeys(read, ("batch", "source"))),
        "decoder_model": Graph(Decodes(model), written, ("logits",), along),
    }


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
                output_names=[*graph.outputs],
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
