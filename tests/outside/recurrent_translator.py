"""A recurrent translator from outside: GRUs read and write, and each word looks back (Bahdanau et al., 2015)."""

from dataclasses import replace
from typing import Literal

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from heedful.attention import Across, Causal, Context, CrossAttention, Everything, Join, Padding
from heedful.attention.mechanisms.additive import Additive
from heedful.models.encoder_decoder_cases import Sources, Targets
from heedful.models.encoder_protocol import Encoder
from heedful.models.family import Family
from heedful.models.specs import SPECIAL, Count, Spec
from heedful.models.writer import Decoder
from heedful.tasks.text.translation import TASK as TRANSLATION


class EncoderSpec(Spec):
    family: Literal["gru_reader"] = "gru_reader"
    vocab: Count
    width: Count = 64


class RecurrentEncoder(Encoder):
    """Reads a source both ways, each by a GRU."""

    reads = frozenset({"source"})

    def __init__(self, spec):
        super().__init__()
        self.spec, self.inputs = spec, nn.Embedding(spec.vocab, spec.width)
        self.cells = nn.GRU(spec.width, spec.width // 2, batch_first=True, bidirectional=True)

    @property
    def width(self):
        return self.spec.width

    def forward(self, source):  # B S -> B S M
        return self.encode({"source": source}).states

    def encode(self, batch):
        source = batch["source"]
        lengths = (source != self.pad).sum(-1)
        packed = pack_padded_sequence(self.inputs(source), lengths.cpu(), batch_first=True, enforce_sorted=False)
        states, _ = pad_packed_sequence(self.cells(packed)[0], batch_first=True, total_length=source.shape[1])
        return Context(states, Padding(lengths))


class DecoderSpec(Spec):
    family: Literal["gru_writer"] = "gru_writer"
    vocab: Count
    width: Count = 64


class RecurrentDecoder(Decoder):
    """Writes by a GRU whose state is all that it keeps of what is written, and looks at the source by that state."""

    special = SPECIAL

    def __init__(self, spec):
        super().__init__()
        self.spec, width = spec, spec.width
        self.inputs, self.cell = nn.Embedding(spec.vocab, width), nn.GRUCell(width, width)
        self.cross = CrossAttention(Across(width, 1), Additive(1, width), Join(width, width))
        self.outputs = nn.Linear(width, spec.vocab)

    @property
    def width(self):
        return self.spec.width

    def forward(self, target, states):  # B T, B S M -> B T V
        return self.decode(target, Context(states, Everything()))

    def states(self, tokens, context, memory=None, positions=None):
        sight, x = Causal().over(tokens, memory, positions=positions), self.inputs(tokens)
        shape = (len(tokens), self.width)
        kept = x.new_zeros(shape) if memory is None else memory.sum(self, shape, x)
        state, made = kept, []
        for new, there in zip(x.unbind(1), (sight.rows >= 0).expand(tokens.shape).unbind(1), strict=True):
            state = torch.where(there[:, None], self.cell(new, state), state)
            made.append(state)
        if memory is not None:
            kept.copy_(state)
        x = torch.stack(made, 1)
        return (x + self.cross(x, context.sight(sight), context)).tanh()


ENCODER = Family(EncoderSpec, RecurrentEncoder, {"vocab": 11, "width": 8}, Sources)
DECODER = Family(DecoderSpec, RecurrentDecoder, {"vocab": 11, "width": 8}, Targets)
PARTS = {"encoder": {"family": "gru_reader"}, "decoder": {"family": "gru_writer"}}
TASK = replace(TRANSLATION, name="recurrent-translation", families=("composite",), model=PARTS)
