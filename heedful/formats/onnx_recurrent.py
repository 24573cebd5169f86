"""Recurrent translators as ONNX graphs: the encoder, and one step of the decoder with the state that it hands on.

A loop that is traced would be frozen at its length. So layers that read a source become ONNX's own operators, which
know of lengths, and what writes is one step: whoever searches calls it again with the state that came out.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from heedful.attention import Causal, Context, Everything, Padding
from heedful.attention.recurrent_state import RecurrentState
from heedful.blocks.recurrent_networks import WEIGHTS, Layers, Recurrent
from heedful.models.encoder_protocol import Encoder
from heedful.models.writer import Decoder

BATCH, LENGTH, VERSION = 2, 3, 14  # of what is traced; and of the operators
OPERATORS: Mapping[str, tuple[str, tuple[int, ...]]] = {  # ONNX's, and the order of its gates by the places of torch's
    "rnn": ("RNN", (0,)),
    "gru": ("GRU", (1, 0, 2)),
    "lstm": ("LSTM", (0, 3, 1, 2)),
}


def serves(model: nn.Module) -> bool:
    """Whether a model reads and writes by recurrent layers: an encoder of them, and a decoder of them."""
    parts = dict(model.named_children())
    reader, writer = parts.get("encoder"), parts.get("decoder")
    if not isinstance(reader, Encoder) or not isinstance(writer, Decoder):
        return False
    return has_layers(reader) and isinstance(writer.memory(), RecurrentState)


def has_layers(part: nn.Module) -> bool:
    """Whether there are recurrent layers in a part."""
    return any(isinstance(one, Layers) for one in part.modules())


def with_layers(model: Any, side: str, make: Callable[[Recurrent], nn.Module]) -> Any:
    """A copy of a model in which other layers stand in the places of the fused ones of one side."""
    made = copy.deepcopy(model)
    for part in list(getattr(made, side).modules()):
        for name, child in list(part.named_children()):
            if isinstance(child, Recurrent):
                setattr(part, name, make(child))
    return made


SAMPLE = """tokenizer = Tokenizer.from_file(str(here / "tokenizer.json"))
read, write = (onnxruntime.InferenceSession(here / f"{{name}}_model.onnx") for name in ("encoder", "decoder"))
source, ids = np.array([[*tokenizer.encode(sys.argv[1]).ids, {end}]]), [{begin}]
states, state = read.run(None, {{"input_ids": source}})
kept = {{"encoder_hidden_states": states, "encoder_attention_mask": np.ones_like(source)}}
while ids[-1] != {end} and len(ids) < 99:
    given = {{"input_ids": np.array([ids[-1:]]), "state": state, **kept}}
    scores, state = write.run(None, {{one.name: given[one.name] for one in write.get_inputs()}})
    ids.append(int(scores[0].argmax()))
print(tokenizer.decode(ids[1:]))
"""


class OperatorLayers(nn.Module):
    """Recurrent layers as ONNX's operators, each of whole sequences with their lengths: B T I -> B T M, B P L M."""

    def __init__(self, layers: Recurrent) -> None:
        super().__init__()
        self.ways, self.width, self.depth = layers.ways, layers.width, layers.depth
        self.operator, order = OPERATORS[layers.cell]
        named = dict(layers.layers.named_parameters())
        for layer in range(self.depth):
            for weight in WEIGHTS:
                each = [named[f"{weight}_l{layer}{back}"].detach() for back in ("", "_reverse")[: self.ways]]
                parts = [torch.cat([one.chunk(len(order))[at] for at in order]) for one in each]
                self.register_buffer(f"{weight}_{layer}", torch.stack(parts))

    def forward(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        ended = []
        for layer in range(self.depth):
            x, last = self.layer(x, lengths.int(), [self.get_buffer(f"{one}_{layer}") for one in WEIGHTS])
            ended.append(last)
        return x, torch.cat(ended, 2)

    def layer(self, x: Tensor, lengths: Tensor, weights: list[Tensor]) -> tuple[Tensor, Tensor]:
        """One layer, both ways where it reads so: what it says, and its last state."""
        read, recalled, *biases = weights
        batch, length = x.shape[:2]
        parts = 2 if self.operator == "LSTM" else 1
        shapes = [(length, self.ways, batch, self.width), *[(self.ways, batch, self.width)] * parts]
        attributes: dict[str, Any] = {"hidden_size": self.width}
        attributes |= {"direction": "bidirectional" if self.ways == 2 else "forward"}
        attributes |= {"linear_before_reset": 1} if self.operator == "GRU" else {}
        said, *states = torch.onnx.ops.symbolic_multi_out(
            self.operator,
            (x.transpose(0, 1), read, recalled, torch.cat(biases, 1), lengths),
            attrs=attributes,
            dtypes=[x.dtype] * (1 + parts),
            shapes=shapes,
            version=VERSION,
        )
        return said.permute(2, 0, 1, 3).flatten(2), torch.stack(list(states)).permute(2, 0, 1, 3)


class ReadsSource(nn.Module):
    """A source in, padded behind its end; what there is to see, and the first state, out: B S -> B S M, B P L M."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = with_layers(model, "encoder", OperatorLayers)

    def forward(self, input_ids: Tensor) -> tuple[Tensor, Tensor]:
        context = self.model.context({"source": input_ids})
        across = context.sight(Causal().over(input_ids[:, :1]))
        return context.states, self.model.decoder.begun(context, across)


class WritesToken(nn.Module):
    """The newest token and the state before it in; out come scores of the next one and a state: B V, B P L M.

    Where it looks at the source, it is given what there is to see, and which of it is there.
    """

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = with_layers(model, "decoder", Recurrent.definition)

    def forward(
        self,
        input_ids: Tensor,
        state: Tensor,
        encoder_hidden_states: Tensor | None = None,
        encoder_attention_mask: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        memory, decoder = RecurrentState(), self.model.decoder
        memory.hold(decoder, state)
        seen = state.new_zeros(state.shape[0], 1, 1) if encoder_hidden_states is None else encoder_hidden_states
        there = None if encoder_attention_mask is None else Padding(encoder_attention_mask.sum(-1))
        scores = decoder.decode(input_ids, Context(seen, there or Everything()), memory)
        return scores[:, -1], memory.sums[decoder]


def graphs(model: Any) -> dict[str, tuple[nn.Module, dict[str, Tensor], tuple[str, ...]]]:
    """The files of a translator: what each holds, what it is given, and what comes out."""
    weight, decoder = next(model.parameters()), model.decoder
    source = torch.ones(BATCH, LENGTH, dtype=torch.long, device=weight.device)
    given = {"input_ids": source[:, :1], "state": weight.new_zeros(BATCH, *decoder.layers.shape)}
    if decoder.spec.looks:
        every = model.encoder.spec.context == "states"
        given["encoder_hidden_states"] = weight.new_zeros(BATCH, LENGTH if every else 1, decoder.width)
        given |= {"encoder_attention_mask": source} if every else {}
    return {
        "encoder_model": (ReadsSource(model), {"input_ids": source}, ("last_hidden_state", "state")),
        "decoder_model": (WritesToken(model), given, ("logits", "next_state")),
    }


def axes(name: str, model: Any) -> dict[str, tuple[str, ...]]:
    """Which axes of what a file is given may be of any size."""
    if name == "encoder_model":
        return {"input_ids": ("batch", "source")}
    along = ("batch", "source") if model.encoder.spec.context == "states" else ("batch",)
    return {"input_ids": ("batch",), "state": ("batch",)} | dict.fromkeys(SEEN, along)


SEEN = ("encoder_hidden_states", "encoder_attention_mask")
