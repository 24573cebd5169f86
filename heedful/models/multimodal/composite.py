"""Encoder-decoder of any two families: a translator, a captioner, a reader of handwriting; each part has its own keys.

`model.encoder.family=resnet model.encoder.width=16 model.decoder.family=transformer_decoder`: any encoder that is
registered, here or in a file of one's own, docks to any decoder. Where the states of the one are not as wide as those
that the other looks at, a linear bridge joins them; where they are, there is none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

import torch
from pydantic import BeforeValidator, SerializeAsAny, ValidationError, ValidationInfo, model_validator
from torch import Tensor, nn

from heedful.attention import Context, Memory, Padding
from heedful.errors import Refusal, unknown_word
from heedful.models import FAMILIES, assemble
from heedful.models.encoder_protocol import Encoder
from heedful.models.family import Family, itself
from heedful.models.refusals import refusal
from heedful.models.specs import Spec, Special
from heedful.models.writer import Beginning, Decoder, Writer, longest


def part(given: Any, told: ValidationInfo) -> Any:
    """The spec of a part: whichever family it names owns the other keys, and a named size is that family's own."""
    values, where = {"family": given} if isinstance(given, str) else given, f"model.{told.field_name}"
    if not isinstance(values, Mapping):
        return given
    if "family" not in values:
        raise Refusal(f"{where} has no family; add {where}.family=..., one of {', '.join(sorted(FAMILIES))}")
    kind, size = FAMILIES.named(str(values["family"])).spec, values.get("size")
    if size is not None and str(size) not in kind.sizes:
        raise unknown_word(f"size of {values['family']}", str(size), kind.sizes)
    said = {key: value for key, value in values.items() if key != "size"}
    try:
        return kind.model_validate({**kind.sizes.get(str(size), {}), **said})
    except ValidationError as error:
        raise refusal(error, where, kind) from None


def is_a(wanted: type[nn.Module], family: str) -> bool:
    """Whether a part may be of a family: it can do what is wanted, and is left as it is once it has learned."""
    one = FAMILIES[family]
    return issubclass(one.model, wanted) and one.becomes is itself


# As any, for a field of a base class is written with the base's keys alone.
AnySpec = Annotated[SerializeAsAny[Spec], BeforeValidator(part)]


class CompositeSpec(Spec):
    """Two parts, each with its family and that family's keys."""

    family: Literal["composite"] = "composite"
    encoder: AnySpec
    """The model of the source, with a family and keys of its own."""
    decoder: AnySpec
    """The model that writes the target, with a family and keys of its own."""

    @model_validator(mode="after")
    def _parts_can_do_what_is_asked_of_them(self) -> Self:
        for key, spec, wanted in (("encoder", self.encoder, Encoder), ("decoder", self.decoder, Decoder)):
            if not is_a(wanted, spec.family):
                able = sorted(name for name in FAMILIES if is_a(wanted, name))
                raise ValueError(f"model.{key}.family={spec.family} is no {key}; choose one of {', '.join(able)}")
        return self

    @property
    def stacked(self) -> dict[str, int]:
        pairs = (("encoder", self.encoder), ("decoder", self.decoder))
        return {f"{key}.{name}": depth for key, spec in pairs for name, depth in spec.stacked.items()}

    def with_depth(self, blocks: int) -> Self:
        parts = {"encoder": self.encoder.with_depth(blocks), "decoder": self.decoder.with_depth(blocks)}
        return self.model_copy(update=parts)

    @property
    def states_per_token(self) -> int:
        return self.encoder.states_per_token + self.decoder.states_per_token

    @property
    def longest(self) -> int:
        return min(self.encoder.longest, self.decoder.longest)

    @property
    def knows_order(self) -> bool:
        return self.encoder.knows_order and self.decoder.knows_order

    @property
    def vocab(self) -> int:
        """How many tokens it writes."""
        return int(dict(self.decoder)["vocab"])

    @property
    def source_vocab(self) -> int | None:
        """How many tokens it reads, where it reads tokens."""
        known: int | None = dict(self.encoder).get("vocab")
        return known


class Composite(Writer):
    """Encoder-decoder: any encoder, and any decoder that looks at its states."""

    def __init__(self, spec: CompositeSpec) -> None:
        super().__init__()
        self.spec = spec
        encoder: Any = assemble(spec.encoder)
        decoder: Any = assemble(spec.decoder)
        self.encoder, self.decoder = encoder, decoder
        read, looked_at = encoder.width, decoder.width
        self.bridge = nn.Identity() if read == looked_at else nn.Linear(read, looked_at)

    @property
    def reads(self) -> frozenset[str]:  # type: ignore[override]
        """The fields of a batch that the encoder reads."""
        return frozenset(self.encoder.reads)

    @property
    def special(self) -> Special:  # type: ignore[override]
        """The ids of the decoder's special tokens."""
        made: Special = self.decoder.special
        return made

    @property
    def outputs(self) -> nn.Module:  # type: ignore[override]
        """The decoder's own."""
        made: nn.Module = self.decoder.outputs
        return made

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """Scores of the token after each (B T -> B T V), looking at the one field that the encoder reads."""
        (field,) = self.reads
        return self.decode(target, self.context({field: source}))

    def context(self, batch: Mapping[str, Tensor]) -> Context:
        """What the encoder says of a batch, as wide as the decoder wants it."""
        read: Context = self.encoder.encode(batch)
        return Context(self.bridge(read.states), read.mask, read.positions)

    def begin(self, batch: Mapping[str, Tensor]) -> Beginning:
        """Reads a batch; targets begin with its prompts, or with BEGIN where there are none."""
        context = self.context(batch)
        rows, columns = context.states.shape[:2]
        begin = context.states.new_full((rows, 1), self.special.begin, dtype=torch.long)
        lengths = begin[:, 0].new_full((rows,), columns)
        if context.positions is not None:
            lengths = (context.positions >= 0).sum(-1)
        elif isinstance(context.mask, Padding):
            lengths = context.mask.lengths.expand(rows)
        return Beginning.of(context, batch.get("prompt", begin), lengths)

    def states(
        self, tokens: Tensor, context: Context, memory: Memory | None = None, positions: Tensor | None = None
    ) -> Tensor:
        made: Tensor = self.decoder.states(tokens, context, memory, positions)
        return made

    def decode(
        self, tokens: Tensor, context: Context, memory: Memory | None = None, positions: Tensor | None = None
    ) -> Tensor:
        made: Tensor = self.decoder.decode(tokens, context, memory, positions)
        return made

    def memory(self, beams: int = 1) -> Memory:
        """The decoder's own kind of memory."""
        made: Memory = self.decoder.memory(beams)
        return made

    def room(self, context: Beginning) -> int:
        return longest(self.decoder) - context.prompt.shape[1] + 1


TOY = {
    "encoder": {"family": "transformer_encoder", "vocab": 11, "width": 16, "heads": 2, "depth": 1},
    "decoder": {"family": "transformer_decoder", "vocab": 11, "width": 24, "heads": 2, "depth": 1},
}
FAMILY = Family(
    CompositeSpec,
    Composite,
    TOY,
    "heedful.models.encoder_decoder_cases:Docked",
    gives=lambda model: (model.encoder, model.decoder),
)
