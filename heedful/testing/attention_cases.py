"""What the laws of attention are measured on: masks, biases, groups, widths and sights, all at toy size."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from heedful.attention import (
    ALiBi,
    Attention,
    Axial,
    Bias,
    BigBird,
    Blocks,
    Buckets,
    Causal,
    Documents,
    Everything,
    Fixed,
    FixedMemory,
    Given,
    Join,
    Local,
    Local2D,
    Longformer,
    Mask,
    MultiHead,
    MultiScale,
    Padding,
    Prefix,
    Rotary,
    Sight,
    Strided,
    Table,
    Turns,
    Window,
)
from heedful.attention.mechanisms import Mechanism
from heedful.blocks import Block, FeedForward, Stack
from heedful.errors import Refusal
from heedful.models import part_tables, part_words

BATCH, HEADS, LENGTH, KEY, VALUE, WIDTH = 3, 6, 7, 4, 5, 8
LONGEST = 72  # sequence that is asked about anywhere
EXACT: dict[str, Any] = {"rtol": 0.0, "atol": 1e-10}  # of the laws, which hold in float64
Make = Callable[[], Mechanism]
Part = TypeVar("Part", bound=nn.Module)


@cache
def masks(length: int = LENGTH) -> dict[str, Mask]:
    """Every mask, for a batch of BATCH sequences of `length` and HEADS heads; some leave rows with nothing to see."""
    coins = torch.Generator().manual_seed(length)

    def some(*shape: int) -> Tensor:
        return torch.rand(shape, generator=coins) < 0.6

    lengths = torch.tensor([length, length - 3, 0])
    ids = torch.randint(0, 3, (BATCH, length), generator=coins).sort(-1).values
    layout = torch.tensor([[True, False, True], [False, False, False], [True, True, False]])
    size = -(-length // 3)
    return {
        "everything": Everything(),
        "causal": Causal(),
        "window": Window(3),
        "causal & window": Causal() & Window(2),
        "padding": Padding(lengths),
        "one length for all": Padding(torch.tensor([length - 2])),
        "causal & padding": Causal() & Padding(lengths),
        "causal | prefix": Causal() | Prefix(3),
        "causal | prefixes": Causal() | Prefix(torch.tensor([0, 2, 3])),
        "documents": Documents(ids),
        "causal & documents of one": Causal() & Documents(ids[:1]),
        "blocks": Blocks(size),
        "blocks with a layout": Blocks(size, layout),
        "given": Given(some(length, length)),
        "given for each sequence": Given(some(BATCH, 1, length, length)),
        "given for each head": Given(some(1, HEADS, length, length)),
        "given for all": Given(some(BATCH, HEADS, length, length)) & Causal(),
        "~causal": ~Causal(),
        "~padding": ~Padding(lengths),
        "window | documents": Window(2) | Documents(ids),
        "(~blocks & causal) | prefix": (~Blocks(size) & Causal()) | Prefix(1),
        "turns": Turns(HEADS, Window(2), Padding(lengths), Causal()) & Prefix(5),
        "strided": Strided(HEADS, 3),
        "causal & strided": Strided(HEADS, 2) & Causal(),
        "strided of one head": Strided(1, 3),
        "fixed": Fixed(3, summary=2),
        "causal & longformer": Longformer(2, everywhere=2) & Causal(),
        "bigbird": BigBird(2, links=1),
        "axial": Axial(HEADS, 3) & Padding(lengths),
        "causal & local": Local(2, memory=3) & Causal(),
        "local of two dimensions": Local2D(2, row=3, memory=1),
        "multiscale": MultiScale(HEADS, 1),
    }


FEW = ("none", "buckets", "table of two axes")  # of the biases, where a law asks for many other things
BIASES: dict[str, Callable[[], Bias | None]] = {
    "none": lambda: None,
    "alibi": lambda: ALiBi(HEADS),
    "buckets": lambda: Buckets(HEADS, buckets=8, farthest=6),
    "buckets one way": lambda: Buckets(HEADS, buckets=4, farthest=5, both_ways=False),
    "table": lambda: Table(HEADS, (9,)),
    "table of two axes": lambda: Table(HEADS, (3, 3)),
    "alibi of one head for all": lambda: ALiBi(1),
    "table of one head for all": lambda: Table(1, (9,)),
}
PLAIN = tuple(BIASES)  # those that softmax is asked about with everything
BIASES |= {  # and whatever else a word names
    word: partial(part_words.choose, "bias", word, part_tables.BIASES, heads=HEADS, length=LONGEST)
    for word in part_tables.BIASES
    if word not in BIASES
}


def itself(mask: Mask, bias: Bias | None) -> Sight:
    """A sequence on itself."""
    return mask.over(torch.empty(BATCH, LENGTH), bias=bias)


def another(mask: Mask, bias: Bias | None) -> Sight:
    """Rows on another sequence."""
    return mask.across(torch.empty(BATCH, LENGTH), torch.tensor([[2, 0, 6, 4, 4]]), bias)


def scattered(mask: Mask, bias: Bias | None) -> Sight:
    """Rows and columns that stand elsewhere in each sequence, some columns not written."""
    places = torch.stack([torch.randperm(LENGTH, generator=torch.Generator().manual_seed(b)) for b in range(BATCH)])
    return Sight(mask, places[:, 2:], places.flip(0).masked_fill(places == 3, -1), BATCH, bias)


def remembered(mask: Mask, bias: Bias | None) -> Sight:
    """Rows on what a KV cache of fixed shape holds, and on themselves."""
    memory = FixedMemory(LENGTH + 2)
    memory.sight(mask, torch.empty(BATCH, 4), bias)
    return memory.sight(mask, torch.empty(BATCH, LENGTH - 4), bias)


SIGHTS: dict[str, Callable[[Mask, Bias | None], Sight]] = {
    "itself": itself,
    "another": another,
    "scattered": scattered,
    "remembered": remembered,
}


@dataclass(frozen=True)
class Case:
    """One thing to ask of a mechanism. Its defaults are the plainest that there is."""

    mask: str = "everything"
    bias: str = "none"
    groups: int = HEADS
    value: int = KEY
    sight: str = "itself"

    def parts(self) -> set[str]:
        """What a mechanism may refuse, part by part, as the golden table says it."""
        return {f"{name} {value}" for name, value in vars(self).items()}

    def seen(self, dtype: torch.dtype = torch.float64) -> Sight:
        """The case's sight, its bias large enough to matter."""
        torch.manual_seed(0)
        bias = BIASES[self.bias]()
        return SIGHTS[self.sight](masks()[self.mask], bias if bias is None else stirred(bias).to(dtype))


def every() -> dict[str, list[Any]]:
    """All values of every part of a case, one axis each."""
    return {
        "mask": list(masks()),
        "bias": list(BIASES),
        "groups": [HEADS, 2, 1],
        "value": [KEY, VALUE],
        "sight": list(SIGHTS),
    }


def paired(every: list[tuple[Any, ...]], seed: str) -> Iterator[tuple[Any, ...]]:
    """As many of a product's rows, in an order by chance, as it takes to see every two values of two axes together."""
    random.Random(seed).shuffle(every)
    met: set[Any] = set()
    for values in every:
        pairs: set[Any] = set(itertools.combinations(enumerate(values), 2)) or {values}
        if not pairs <= met:
            met |= pairs
            yield values


def stirred(module: Part) -> Part:
    """The module, its parameters moved far enough from their start that each of them matters."""
    coins = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for p in module.parameters():
            p.add_(torch.randn(p.shape, generator=coins, dtype=p.dtype) * 0.5)
    return module


def asked(case: Case, sight: Sight, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values for a case, as leaves that take gradient."""
    coins = torch.Generator().manual_seed(2)
    rows, columns = sight.rows.shape[-1], sight.columns.shape[-1]
    shapes = ((HEADS, rows, KEY), (case.groups, columns, KEY), (case.groups, columns, case.value))

    def draw(s: tuple[int, ...]) -> Tensor:
        return torch.randn(sight.batch, *s, generator=coins, dtype=torch.float64).to(dtype)

    q, k, v = (draw(s).requires_grad_() for s in shapes)
    return q, k, v


def parameters(*modules: nn.Module | None) -> list[nn.Parameter]:
    """What modules have to learn, where they are there."""
    return [p for m in modules if m is not None for p in m.parameters()]


def probe(y: Tensor) -> Tensor:
    """A direction in which to take gradients: random, and the same for equal shapes."""
    return torch.randn(y.shape, generator=torch.Generator().manual_seed(3), dtype=torch.float64).to(y.dtype)


def gradients(y: Tensor, leaves: Sequence[Tensor], along: Tensor | None = None) -> tuple[Tensor, ...]:
    """The gradients of a value along a direction: the probe, where none is given."""
    return torch.autograd.grad(
        y, leaves, probe(y) if along is None else along, retain_graph=True, materialize_grads=True
    )


def agree(one: Tensor, two: Tensor, leaves: Sequence[Tensor], label: object, **tolerance: Any) -> None:
    """Both are the same, and so are their gradients."""
    pairs = [(one, two), *zip(gradients(one, leaves), gradients(two, leaves), strict=True)]
    for number, (a, b) in enumerate(pairs):
        if a.shape == b.shape and a.dtype == b.dtype and torch.allclose(a, b, **(tolerance or EXACT)):
            continue  # most are, and it takes longer to say what is apart
        what = "value" if number == 0 else f"gradient of leaf {number - 1}"
        torch.testing.assert_close(a, b, **(tolerance or EXACT), msg=partial(named, f"{label}, {what}"))


def named(what: str, said: str) -> str:
    """What is said of a difference, behind what differs."""
    return f"{what}: {said}"


def refusals(make: Make) -> dict[str, str]:
    """What a mechanism refuses, part by part of a case, the rest being as plain as can be; and in which words."""
    found = {}
    for part, values in every().items():
        for value in values:
            case = Case(**{part: value})
            try:
                sight = case.seen()
                make()(*asked(case, sight), sight)
            except Refusal as refused:
                found[f"{part} {value}"] = str(refused)
    return found


def obeyed(axes: Mapping[str, Iterable[Any]], refused: Collection[str]) -> Iterator[Case]:
    """The cases of a product of axes of which nothing is refused."""
    open_axes = {part: [value for value in values if f"{part} {value}" not in refused] for part, values in axes.items()}
    for values in itertools.product(*open_axes.values()):
        case = Case(**dict(zip(open_axes, values, strict=True)))
        if case.parts().isdisjoint(refused):
            yield case


def toy_word(name: str, kind: Callable[..., Any]) -> str:
    """A mechanism's word with its numbers so small that they matter to toys: `linformer(rank=3)`."""
    takes = part_words.arguments(kind).values()
    large = [one.name for one in takes if isinstance(one.default, int) and one.default > LENGTH]
    return f"{name}({', '.join(f'{one}=3' for one in large)})"


def toy_mechanism(kind: type[Mechanism], width: int = KEY) -> Mechanism:
    """A mechanism at toy size, as a model makes it of its word."""
    made: Mechanism = part_words.choose(
        "mechanism", toy_word("part", kind), {"part": kind}, heads=HEADS, width=width, length=LONGEST
    )
    return made


def attention_of(make: Make, groups: int = 2, position: Rotary | None = None) -> Attention:
    """Attention whose keys and values have widths of their own."""
    project = MultiHead(WIDTH, HEADS, groups, key=KEY, value=VALUE, position=position)
    return Attention(project, make(), Join(HEADS * VALUE, WIDTH))


def stack_of(
    make: Make, groups: int = 2, position: Rotary | None = None, depth: int = 2, kind: type[Block] = Block
) -> Stack:
    """Blocks of a mechanism, in float64."""
    torch.manual_seed(4)
    blocks = (kind(WIDTH, attention_of(make, groups, position), FeedForward(WIDTH, 11)) for _ in range(depth))
    return stirred(Stack(blocks, nn.LayerNorm(WIDTH))).double()


def states(batch: int = BATCH, length: int = LENGTH) -> Tensor:
    """States of tokens, as a leaf that takes gradient: B T M."""
    coins = torch.Generator().manual_seed(5)
    return torch.randn(batch, length, WIDTH, generator=coins, dtype=torch.float64).requires_grad_()
