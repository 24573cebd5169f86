"""How answers are searched for, in words and numbers, and the one function that does as they say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from torch import Tensor

from heedful.decoding.generated_answer import Answer
from heedful.decoding.greedy import greedy
from heedful.decoding.logits_rules import Rules
from heedful.decoding.steps import begin
from heedful.engines import Weights, runner
from heedful.models.writer import Writer

if TYPE_CHECKING:
    from heedful.decoding.truncation import Cuts

Whole = Annotated[int, Field(ge=0, lt=2**31)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
CHANCE = {"temperature": 0.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0}  # what sampling has, and where it is left alone
WEIGHED = {"beams": 1, "length_penalty": 0.0}  # the same of beam search


class Decoding(BaseModel):
    """How answers are searched for: greedily, with beams, or by chance where there is a temperature."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    beams: Annotated[int, Field(ge=1, le=1000)] = 1
    """The number of beams of beam search; 1 without a temperature is greedy search."""
    length_penalty: Annotated[Finite, Field(ge=-10.0, le=10.0)] = 0.0
    """The length penalty of beam search (GNMT's): values above 0 favour longer answers."""
    temperature: Annotated[Finite, Field(ge=0.0)] = 0.0
    """The temperature of sampling; with 0 nothing is drawn at random."""
    top_k: Whole = 0
    """Sampling draws among this many likeliest tokens; 0 keeps all."""
    top_p: Annotated[Finite, Field(gt=0.0, le=1.0)] = 1.0
    """Sampling draws among the likeliest tokens that together have this probability (nucleus sampling)."""
    min_p: Annotated[Finite, Field(ge=0.0, lt=1.0)] = 0.0
    """Sampling drops tokens below this share of the likeliest token's probability."""
    max_new_tokens: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    """The most tokens to write; if unset, 50 more than the source has."""
    repetition_penalty: Annotated[Finite, Field(gt=0.0)] = 1.0
    """The penalty for tokens that stand in the text already; 1 is none, above 1 makes them less likely."""
    no_repeat_ngram: Whole = 0
    """No run of this many tokens is written twice; 0 allows repeats."""
    weights: Weights = "float32"
    """The precision of the weights in decoding; `float16` packs them and is about twice as fast on a CPU."""
    steps: Literal["called", "captured", "compiled"] = "called"
    """How decoding steps run on a GPU: `called` one by one, `captured` as CUDA graphs, or `compiled` and captured."""

    @model_validator(mode="after")
    def _one_way_to_search(self) -> Self:
        if self.temperature and self.beams > 1:
            raise ValueError(
                f"{self.beams} beams look for the likeliest answer and a temperature of {self.temperature} draws one "
                "by chance; give beams=1 or temperature=0"
            )
        cuts = [key for key, alone in CHANCE.items() if getattr(self, key) != alone]
        if cuts and not self.temperature:
            key = cuts[0]
            raise ValueError(
                f"{key}={getattr(self, key)} is for answers drawn by chance and the temperature is 0; "
                f"give temperature=1 or {key}={CHANCE[key]:g}"
            )
        return self

    @property
    def cuts(self) -> Cuts:
        """The truncation of the chances before a token is drawn."""
        from heedful.decoding.truncation import Cuts

        return Cuts(self.temperature, self.top_k, self.top_p, self.min_p)

    @property
    def rules(self) -> Rules:
        """What holds for whatever is written."""
        return Rules(self.repetition_penalty, self.no_repeat_ngram)

    def but(self, **given: Any) -> Decoding:
        """The same with other numbers; who asks for one way to search puts the numbers of the other way aside."""
        aside = (WEIGHED if given.get("temperature") else {}) | (
            CHANCE if given.get("beams", 1) > 1 or given.get("temperature") == 0 else {}
        )
        try:
            return Decoding.model_validate(self.model_dump() | aside | given)
        except ValidationError as error:
            from heedful.models.refusals import refusal

            raise refusal(error, "", Decoding) from None


def search(
    model: Writer,
    batch: Mapping[str, Tensor],
    decoding: Decoding,
    best: int = 1,
    seed: int = 0,
    numbers: Sequence[int] | None = None,
    *,
    rules: Rules | None = None,
) -> list[list[Answer]]:
    """The `best` answers to each row of a batch (see `greedy`) as the spec says: greedy, beam or sample.

    What is read in a batch the model says: sources are filled up at the end with padding (B S), prompts to go on with
    have -1 where there is no token (B P).

    With a temperature they are that many draws, which follow from the seed and the numbers of the sources. Rules that
    are given stand in place of those of the spec.
    """
    d, rules = decoding, rules or decoding.rules
    if d.steps != "called":
        from heedful.decoding import captured_search

        return captured_search.search(model, batch, d, best, seed, numbers, rules)
    running = runner(model, d.weights)
    context = begin(running, batch)
    if d.temperature:
        from heedful.decoding.sample import sample

        cuts = d.temperature, d.top_k, d.top_p, d.min_p
        return sample(running, context, *cuts, d.max_new_tokens, seed, best, numbers=numbers, rules=rules)
    if d.beams == best == 1:
        return [[answer] for answer in greedy(running, context, d.max_new_tokens, rules=rules)]
    from heedful.decoding.beam import beam

    return beam(running, context, d.beams, best, d.max_new_tokens, d.length_penalty, rules=rules)
