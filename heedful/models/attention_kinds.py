"""Every kind of attention that a word names: what its class says of it, and what its weights look like."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from pydantic import ValidationError
from torch import Tensor, nn

from heedful.attention import Causal, Everything, Mask, MultiHead
from heedful.attention.card import Card
from heedful.errors import Refusal, unknown_word
from heedful.inputs.positions import waves
from heedful.models import part_tables, part_words
from heedful.models.refusals import refusal
from heedful.outputs import Attended

SENTENCE = "the cat sat on the mat and the dog sat by the door until the cat and the dog ran out"
BY_MODEL = (*part_words.FILLED, "length", "both_ways", "bias", "groups")  # filled in: no word needs to say them
BY_KEY = ("bias", "stack", "project", "join")  # roles that have a key of their own
UNSEEN = ("join", "loss")  # roles that change nobody's weights by themselves
DRAWN = ("mechanism", "mask", "bias")  # roles that are told by their weights
SMALL = {"size": 4, "row": 5, "rank": 6, "landmarks": 6, "clusters": 3, "buckets": 4, "back": 0}  # for a sentence
SMALL |= {"farthest": 6, "ramp": 2, "edges": 3, "factor": 1, "points": 3, "memory": 3, "everywhere": 2, "stride": 3}
SHARP = 3.0  # times as large queries and keys as a model begins with: where it looks can be seen

SHARED = "keys and values that are shared save memory, above all while writing, and no time of learning"
GROUPED = Card(
    "GQA: Training Generalized Multi-Query Transformer Models from Multi-Head Checkpoints (Ainslie et al., 2023)",
    2023,
    "T^2",
    limits=f"groups divide the heads; {SHARED}",
)
MULTI_QUERY = Card(
    "Fast Transformer Decoding: One Write-Head is All You Need (Shazeer, 2019)", 2019, "T^2", limits=SHARED
)


@dataclass(frozen=True)
class Kind:
    """A kind of attention by its word, and the part that it names."""

    name: str
    role: str  # "mechanism": how weights are made; "mask": softmax among fewer; "bias": what is added; and so on
    part: Any
    said: str = ""  # by which key and value, where it is no word of a part
    told: Card | None = None  # of what is no class of its own

    @property
    def card(self) -> Card:
        """What its class says of it, or what is told of it where it has none."""
        card: Card = self.told or self.part.card
        return card

    @property
    def about(self) -> str:
        """What it is, in the words of its class."""
        return inspect.cleandoc(self.part.__doc__)

    @property
    def key(self) -> str:
        """The key of a spec that takes its word."""
        if self.said:
            return self.said.split("=")[0]
        return f"model.{self.role}" if self.role in BY_KEY else "model.mechanism"

    def word(self, **chosen: int) -> str:
        """The word with all that a user can choose: `performer(features=128)`; what must be chosen is size=128."""
        if self.said:
            return self.said.split("=")[1]
        takes = {name: one.default for name, one in part_words.arguments(self.part).items() if name not in BY_MODEL}
        takes = {name: 128 if value is inspect.Parameter.empty else value for name, value in takes.items()}
        takes |= {name: value for name, value in chosen.items() if name in takes}
        given = ", ".join(f"{name}={value!r}" for name, value in takes.items())
        return f"{self.name}({given})" if given else self.name

    def chosen(self, **numbers: int) -> dict[str, Any]:
        """The same as a key and value for a spec of a model, its numbers as numbers."""
        word = self.word(**numbers)
        return {self.key.removeprefix("model."): int(word) if word.isdecimal() else word}

    def to_json(self) -> dict[str, Any]:
        """The kind as JSON's own types."""
        return {"name": self.name, "kind": self.role, "key": self.key, "word": self.word(), **vars(self.card)}

    def can_be_drawn(self) -> None:
        """Refuses what works on heads that have looked already."""
        if self.role in UNSEEN:
            raise Refusal(f"{self.name} changes no weights, and has no picture; leave --out out")

    def model(self) -> nn.Module:
        """A small model with it, for the words of SENTENCE, as it begins."""
        from heedful.models import build  # which knows all families, and is no part of what a word is

        torch.manual_seed(0)
        sizes: dict[str, Any] = {"width": 32, "heads": 2, "depth": 2, "length": 32, "pool": "each"}
        if self.role == "project":
            sizes["heads"] = 4  # enough to share something
        made: nn.Module = build("predictor", vocab=4 + len(SENTENCE.split()), classes=2, **sizes | self.chosen(**SMALL))
        with torch.no_grad():
            for path, one in made.named_parameters():
                if path.endswith("to_qkv.weight"):
                    one.mul_(SHARP)
        return made.eval()

    def weights(self, causal: bool = False) -> Tensor:
        """The weights that it gives the words of SENTENCE, for two heads: H T T. Queries and keys are by chance."""
        torch.manual_seed(0)
        heads, width, count = 2, 16, len(SENTENCE.split())
        q, k = queries_and_keys(heads, width)
        word = self.word(**SMALL)
        mechanism, bias = "softmax", None
        mask: Mask = Everything()
        if self.role == "bias":
            bias = part_words.choose("bias", word, part_tables.BIASES, heads=heads, both_ways=True, length=count)
            if isinstance(table := getattr(bias, "table", None), nn.Parameter):  # which begins as next to nothing
                nn.init.normal_(table)
        else:
            mechanism, mask = word, part_tables.mask(word, heads) or Everything()
        sight = ((Causal() if causal else Everything()) & mask).over(q[:, 0], bias=bias)
        with torch.no_grad():
            return part_tables.mechanism(mechanism, heads, width, count).weights(q, k, sight)[0]


def every() -> dict[str, Kind]:
    """All of them by their words, whatever their role; what is plain is no kind."""
    roles: dict[str, Mapping[str, Any]] = {
        "mechanism": part_tables.MECHANISMS,
        "mask": part_tables.MASKS,
        "pair": part_tables.PAIRS,
        "bias": part_tables.BIASES,
        "project": part_tables.PROJECTIONS,
        "join": part_tables.JOINS,
        "stack": part_tables.STACKS,
    }
    return {
        name: Kind(name, role, part)
        for role, table in roles.items()
        for name, part in table.items()
        if getattr(part, "card", None) is not None
    }


def beside() -> dict[str, Kind]:
    """Kinds that are no word of a part: other keys of a spec say them."""
    made = (
        Kind("grouped", "project", MultiHead, "model.groups=2", GROUPED),
        Kind("multi_query", "project", MultiHead, "model.groups=1", MULTI_QUERY),
        Kind("pma", "pool", Attended, "model.pool=attention"),
    )
    return {kind.name: kind for kind in made}


def kind_named(name: str, among: Mapping[str, Kind] | None = None) -> Kind:
    """The kind of a name, of these or of all that are words."""
    kinds = every() if among is None else among
    if name not in kinds:
        raise unknown_word("kind of attention", name, kinds)
    return kinds[name]


def tokens() -> Tensor:
    """SENTENCE as ids behind those of special tokens, the same word the same: 1 T."""
    spoken = SENTENCE.split()
    return torch.tensor([[4 + spoken.index(word) for word in spoken]])


def queries_and_keys(heads: int, width: int) -> tuple[Tensor, Tensor]:
    """Those of SENTENCE: words have vectors by chance, the same word the same, and places make them a little unlike."""
    spoken = SENTENCE.split()
    vectors = {word: torch.randn(heads, width) for word in sorted(set(spoken))}
    places = waves(torch.arange(len(spoken))[None], width, torch.float32)  # 1 T D
    x = torch.stack([vectors[word] for word in spoken], 1)[None] + places  # 1 H T D
    return x, x


def instead(model: nn.Module, word: str) -> nn.Module:
    """A trained model with another mechanism in its place, and the weights that it learned with the first.

    What the mechanism draws by chance is the same whenever it is asked for.
    """
    from heedful.models import assemble  # which knows all families

    spec: Any = model.spec
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            other = assemble(type(spec)(**spec.model_dump() | {"mechanism": word}))
        missing, _ = other.load_state_dict(model.state_dict(), strict=False)
    except ValidationError as error:
        raise refusal(error, "model", type(spec)) from None
    except RuntimeError:  # a projection of another size
        missing = ["project"]
    if own := [name for name in missing if not name.endswith(("directions", "centres"))]:
        where = "" if kind_named(part_words.parse(word)[0]).card.causal else " where nothing hides the future"
        raise Refusal(
            f"model.mechanism={word} has weights of its own ({own[0]}) that this model never learned; "
            f"train with it{where}"
        )
    return other.train(model.training)
