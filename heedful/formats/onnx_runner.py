"""ONNX graphs as models (onnxruntime): asked and scored as the models that they were made of, not looked into."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from heedful.attention import Context, Everything, Memory, standing
from heedful.errors import Refusal
from heedful.formats import GRAPHS
from heedful.models import imagine
from heedful.models.heads_asked import NEXT, word_asked
from heedful.models.specs import Spec
from heedful.models.vision.image_spec import ImageSpec
from heedful.models.writer import Beginning, Writer
from heedful.safe.opening import inside, size_of

LARGEST = 1 << 31  # bytes of a graph; larger ones have their weights in a file beside them


class Graph:
    """A graph of a file, as onnxruntime runs it on a CPU."""

    def __init__(self, path: Path) -> None:
        if find_spec("onnxruntime") is None:
            raise Refusal(f"{path} is run by onnxruntime; install it with: pip install heedful[onnx]")
        try:
            if size_of(inside(path)) > LARGEST:
                raise ValueError("it is larger than 2 GB")
            self.session: Any = import_module("onnxruntime").InferenceSession(path, providers=["CPUExecutionProvider"])
        except Refusal:
            raise
        except Exception as error:  # onnxruntime has classes of its own for each fault
            said = (str(error).splitlines() or ["not whole"])[0][:200]
            raise Refusal(f"{path} cannot be read as ONNX: {said}; convert the model again") from None
        self.wanted = {one.name: np.dtype(TYPES.get(one.type, "float32")) for one in self.session.get_inputs()}

    def __deepcopy__(self, memo: Any) -> Graph:
        raise Refusal("an ONNX graph is only run, and never changed; name the folder of the model that it was made of")

    def __call__(self, **given: Tensor | None) -> Tensor:
        """What comes out, several outputs side by side in the last axis; inputs that the graph has not are left out."""
        there = {name: one for name, one in given.items() if name in self.wanted and one is not None}
        fed = {name: one.detach().cpu().numpy().astype(self.wanted[name], copy=False) for name, one in there.items()}
        made = self.session.run(None, fed)
        found = [torch.from_numpy(one) for one in made]
        return found[0] if len(found) == 1 else torch.stack(found, -1)


TYPES = {"tensor(int64)": "int64", "tensor(float16)": "float16", "tensor(double)": "float64"}


class GraphModel(nn.Module):
    """A model of one graph: texts or images in, what is asked of them out."""

    def __init__(self, spec: Spec, graph: Graph) -> None:
        super().__init__()
        self.spec, self.graph = spec, graph
        self.place = nn.Parameter(torch.zeros(1), requires_grad=False)  # says where it answers


class GraphReader(GraphModel):
    """Tokens in, those that are not there at positions below 0; what is asked of them out: B T -> B T K or B K."""

    def forward(
        self,
        tokens: Tensor,
        positions: Tensor | None = None,
        segments: Tensor | None = None,
        tasks: Tensor | None = None,
    ) -> Tensor:
        pad = getattr(self.spec, "pad", None)
        there = positions >= 0 if positions is not None else tokens != (-1 if pad is None else pad)
        told = torch.zeros_like(tokens) if segments is None else segments
        return self.graph(input_ids=tokens, attention_mask=there, token_type_ids=told).to(tokens.device)


class GraphSeer(GraphModel):
    """Images of numbers from 0 to 1 in, scores or vectors out: B C H W -> B K."""

    def forward(self, images: Tensor) -> Tensor:
        spec: Any = self.spec
        scaled = images
        if spec.mean:
            mean, deviation = torch.tensor([spec.mean, spec.deviation], device=images.device)[..., None, None]
            scaled = (images - mean) / deviation
        return self.graph(pixel_values=scaled).to(images.device)


class GraphWriter(Writer):
    """A model that writes, of one graph or of two: all that was written is read again for every token."""

    def __init__(self, spec: Spec, graphs: Mapping[str, Graph]) -> None:
        super().__init__()
        self.spec, self.graphs = spec, graphs
        self.place = nn.Parameter(torch.zeros(1), requires_grad=False)  # says where it answers
        self.outputs = nn.Identity()  # scores are what the graph gives
        plan: Any = imagine(spec)  # knows its special tokens and how long it may write, and has no weights
        plan.encode = self.encode
        vars(self)["plan"] = plan
        self.special, self.reads = plan.special, plan.reads

    def begin(self, batch: Mapping[str, Tensor]) -> Beginning:
        made: Beginning = vars(self)["plan"].begin(batch)
        return made

    def room(self, context: Beginning) -> int:
        room: int = vars(self)["plan"].room(context)
        return room

    def memory(self, beams: int = 1) -> Memory | None:
        return None

    def encode(self, source: Tensor, positions: Tensor | None = None) -> Context:
        """What a source says: B S -> B S M."""
        places = standing(source != self.special.pad) if positions is None else positions
        states = self.graphs[GRAPHS[1]](input_ids=source, attention_mask=places >= 0).to(source.device)
        return Context(states, Everything(), places)

    def states(
        self, tokens: Tensor, context: Context, memory: Memory | None = None, positions: Tensor | None = None
    ) -> Tensor:
        if "source" not in self.reads:
            there = torch.ones_like(tokens) if positions is None else positions >= 0
            return self.graphs[GRAPHS[0]](input_ids=tokens, attention_mask=there).to(tokens.device)
        assert context.positions is not None
        read = {"encoder_attention_mask": context.positions >= 0, "encoder_hidden_states": context.states}
        return self.graphs[GRAPHS[2]](input_ids=tokens, **read).to(tokens.device)

    def forward(self, *given: Tensor) -> Tensor:
        """Scores of the token after each of a text, or of a target behind its source."""
        if "source" in self.reads:
            source, target = given
            return self.states(target, self.encode(source))
        return self.states(given[0], Context(given[0].new_empty(len(given[0]), 0, 0), Everything()))


def read_graphs(folder: Path, spec: Spec) -> nn.Module:
    """The model of a folder of graphs."""
    found = {name: Graph(folder / name) for name in GRAPHS if (folder / name).exists()}
    if isinstance(spec, ImageSpec) and GRAPHS[0] in found:
        return GraphSeer(spec, found[GRAPHS[0]])
    if word_asked(spec) == NEXT and (GRAPHS[0] in found or len(found) == 2):
        return GraphWriter(spec, found)
    if GRAPHS[0] in found:
        return GraphReader(spec, found[GRAPHS[0]])
    raise Refusal(f"{folder} lacks a graph of such a model; convert it again")
