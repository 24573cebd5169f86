"""The recurrent decoder: its state begins with what was read, and it looks back at the source at each step, or not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, Self

import torch
from pydantic import model_validator
from torch import Tensor, nn
from torch.nn.functional import linear

from heedful.attention import Causal, Context, Everything, Memory, Sight
from heedful.attention.recurrent_state import RecurrentState
from heedful.blocks.block import Dropout
from heedful.blocks.recurrent_networks import Cell, Recurrent, RecurrentStack
from heedful.models import blueprint as parts
from heedful.models import part_tables, part_words
from heedful.models.blueprint import Blueprint
from heedful.models.family import Family
from heedful.models.specs import SPECIAL, Count
from heedful.models.text.recurrent_encoder import RecurrentSpec
from heedful.models.writer import Decoder
from heedful.outputs import NextToken

NONE = "none"
Step = Callable[[int, Tensor], Tensor]  # a place and the state before it -> the state behind it


class RecurrentDecoderSpec(RecurrentSpec):
    """Numbers and words of a recurrent decoder."""

    family: Literal["recurrent_decoder"] = "recurrent_decoder"
    heads: Count = 1
    """The number of attention heads."""
    mechanism: str = "additive"
    """The attention by which it looks at the source: additive, dot, general or any other; none means never."""
    order: Literal["after", "before"] = "after"
    """When it looks: after the state of a word is made (Luong et al., 2015), or before (Bahdanau et al., 2015)."""
    tied: bool = False
    """Whether the output shares the embedding table of the inputs."""

    @property
    def looks(self) -> bool:
        """Whether it looks at the source at each step."""
        return self.mechanism != NONE

    @property
    def cross(self) -> Blueprint:
        """What its attention is made of."""
        return Blueprint(width=self.width, heads=self.heads, mechanism=self.mechanism)

    @model_validator(mode="after")
    def _attention_can_be_made(self) -> Self:
        word = part_words.parse(self.mechanism)[0]
        if word in (*part_tables.MASKS, *part_tables.PAIRS):
            raise ValueError(
                f"model.mechanism={word} is of a sequence that looks at itself; use additive, dot, general"
            )
        if not self.looks and (self.heads > 1 or self.order == "before"):
            raise ValueError("a decoder that never looks has no heads and no order of looking; leave them out")
        if self.looks:
            with torch.device("meta"):
                parts.cross_attention(self.cross)
        return self


class RecurrentDecoder(Decoder):
    """Recurrent decoder (Sutskever et al., 2014), with attention (Bahdanau et al., 2015; Luong et al., 2015)."""

    special = SPECIAL

    def __init__(self, spec: RecurrentDecoderSpec) -> None:
        super().__init__()
        s = self.spec = spec
        self.before = s.looks and s.order == "before"
        self.inputs, self.drop = nn.Embedding(s.vocab, s.token_width), Dropout(s.dropout)
        read = s.token_width + (s.width if self.before else 0)
        self.layers = (RecurrentStack if self.before else Recurrent)(s.cell, read, s.width, s.depth, dropout=s.dropout)
        self.cross = parts.cross_attention(s.cross) if s.looks else None
        self.first = nn.Linear(s.width, self.state_width) if s.looks else None
        self.mix = nn.Linear(s.width * (1 + s.looks), s.token_width)
        self.outputs = NextToken(s.token_width, s.vocab, self.inputs if s.tied else None)

    @property
    def state_width(self) -> int:
        """How many numbers its whole state has."""
        parts, layers, width = self.layers.shape
        return parts * layers * width

    @property
    def width(self) -> int:
        """How wide the states are that it looks at; one that never looks takes the last state of all for its own."""
        return self.spec.width if self.spec.looks else self.state_width

    def forward(self, target: Tensor, states: Tensor) -> Tensor:  # B T, B S M -> B T V
        return self.decode(target, Context(states, Everything()))

    def states(
        self, tokens: Tensor, context: Context, memory: Memory | None = None, positions: Tensor | None = None
    ) -> Tensor:
        assert memory is None or isinstance(memory, RecurrentState), "a recurrent decoder hands out its own memory"
        sight = Causal().over(tokens, memory, positions=positions)
        across, x = context.sight(sight), self.drop(self.inputs(tokens))
        state = (
            self.begun(context, across) if memory is None else memory.recall(self, lambda: self.begun(context, across))
        )
        there = None if sight.counted else (sight.rows >= 0).expand(tokens.shape)
        asked, said, state = self.walk(x, state, there, context.kept() if context.made is None else context, across)
        if memory is not None:
            memory.hold(self, state)
        if self.cross is not None:  # a word is said by a state and by what was seen at its step, of all steps at once
            said = torch.cat((said, self.cross(asked, across, context)), -1)
        return self.drop(self.mix(self.drop(said)).tanh())

    def memory(self, beams: int = 1) -> Memory:
        """An empty recurrent state; beams copy their rows."""
        return RecurrentState()

    def begun(self, context: Context, across: Sight) -> Tensor:
        """The state before anything is written, of the mean of what is there to see: B P L M."""
        seen = across.dense[:, 0, -1].to(context.states.dtype).unsqueeze(-1)  # B|1 S 1
        mean = (context.states * seen).sum(1) / seen.sum(1).clamp(min=1)
        return (mean if self.first is None else self.first(mean).tanh()).unflatten(-1, self.layers.shape)

    def walk(
        self, x: Tensor, state: Tensor, there: Tensor | None, context: Context, across: Sight
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The states that look (B T M), what is said behind each token (B T M), and the last state.

        It takes one call, or a step for each token where some are padding or where what is seen is read.
        """
        if there is None and not self.before:
            said, state = self.layers(x, None, state)
            return said, said, state
        asked, made, step = [], [], self.looking_step(x, context, across) if self.before else self.plain_step(x)
        for at in range(x.shape[1]):
            asked.append(state[:, 0, -1])
            moved = step(at, state)
            state = moved if there is None else torch.where(there[:, at, None, None, None], moved, state)
            made.append(state[:, 0, -1])
        said = torch.stack(made, 1)
        return torch.stack(asked, 1) if self.before else said, said, state

    def plain_step(self, x: Tensor) -> Step:
        """The state behind a token, of the one before it."""
        return lambda at, state: self.layers(x[:, at : at + 1], None, state)[1]

    def looking_step(self, x: Tensor, context: Context, across: Sight) -> Step:
        """The same, where the state before it looks first; what words say to the gates is made of all at once."""
        layers = self.layers
        assert isinstance(layers, RecurrentStack) and self.cross is not None
        cell, project, join = layers.cells[0], self.cross.project, self.cross.join
        assert isinstance(cell, Cell)
        of_word, of_seen = cell.weight_ih.split([x.shape[-1], self.spec.width], 1)
        words = linear(x, of_word, cell.bias_ih)  # B T (G M)
        sight = across.at(across.rows.new_tensor([x.shape[1] - 1]))  # every row of a sequence sees the same
        k, v = context.answers(project, sight)
        look = self.cross.mechanism.forward  # no call: who watches is shown all steps as the one call of `states`

        def step(at: int, state: Tensor) -> Tensor:
            seen = join(look(project.queries(state[:, :1, -1], sight), k, v, sight))[:, 0]
            gates = words[:, at] + linear(seen, of_seen)
            return layers.step(gates.unflatten(-1, (cell.gates, -1)), state)

        return step


FAMILY = Family(
    RecurrentDecoderSpec, RecurrentDecoder, {"vocab": 11, "width": 8}, "heedful.models.encoder_decoder_cases:Targets"
)
