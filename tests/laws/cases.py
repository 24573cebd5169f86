"""What every law is proved on: each mechanism's word, masks, biases, groups, widths and sights, all at toy size."""

from __future__ import annotations

import functools
import itertools
import json
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

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
from heedful.models import part_tables, part_words

BATCH, HEADS, LENGTH, KEY, VALUE, WIDTH = 3, 6, 7, 4, 5, 8
LONGEST = 72  # sequence that is asked about anywhere
EXACT = {"rtol": 0.0, "atol": 1e-10}  # of the laws, which are proved in float64
GOLDEN = Path(__file__).with_name("refusals.json")
MECHANISMS = sorted(part_tables.MECHANISMS)


@functools.cache
def masks(length: int = LENGTH) -> dict[str, Mask]:
    """Every mask, for a batch of BATCH sequences of `length` and HEADS heads; some leave rows with nothing to see."""
    coins = torch.Generator().manual_seed(length)

    def some(*shape):
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
    word: functools.partial(part_words.choose, "bias", word, part_tables.BIASES, heads=HEADS, length=LONGEST)
    for word in part_tables.BIASES
    if word not in BIASES
}


def itself(mask: Mask, bias: Bias | None) -> Sight:
    return mask.over(torch.empty(BATCH, LENGTH), bias=bias)


def another(mask: Mask, bias: Bias | None) -> Sight:
    return mask.across(torch.empty(BATCH, LENGTH), torch.tensor([[2, 0, 6, 4, 4]]), bias)


def scattered(mask: Mask, bias: Bias | None) -> Sight:
    """Rows and columns that stand elsewhere in each sequence, some columns not written."""
    places = torch.stack([torch.randperm(LENGTH, generator=torch.Generator().manual_seed(b)) for b in range(BATCH)])
    return Sight(mask, places[:, 2:], places.flip(0).masked_fill(places == 3, -1), BATCH, bias)


def remembered(mask: Mask, bias: Bias | None) -> Sight:
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


def every() -> dict[str, list]:
    """All values of every part of a case, one axis each."""
    return {
        "mask": list(masks()),
        "bias": list(BIASES),
        "groups": [HEADS, 2, 1],
        "value": [KEY, VALUE],
        "sight": list(SIGHTS),
    }


@functools.cache
def refused(word: str) -> set[str]:
    """The parts that a mechanism refuses, by the golden table."""
    return set(json.loads(GOLDEN.read_text(encoding="utf-8"))["mechanisms"].get(word, {}))


def obeys(word: str, *parts: str) -> bool:
    """Whether a mechanism takes all of these parts, by the golden table."""
    return refused(word).isdisjoint(parts)


def cases(word: str, **chosen: Iterable) -> Iterator[Case]:
    """The cases that a mechanism obeys, of the product of the axes chosen, less what the golden table says it refuses.

    Softmax, on which all else is built, is asked every one of them; the others are asked every pair of parts, or a few
    where they are made like one that was asked, or have no other road than their definition.
    """
    axes = {part: [value for value in values if obeys(word, f"{part} {value}")] for part, values in chosen.items()}
    every = itertools.product(*axes.values())
    chosen_ones = (
        every if word == "softmax" else itertools.islice(paired(list(every), word), 20 if alike(word) else None)
    )
    for values in chosen_ones:
        case = Case(**dict(zip(axes, values, strict=True)))
        if obeys(word, *case.parts()):
            yield case


def alike(word: str) -> bool:
    """Whether a mechanism is of tier B, or has its forward and weights from one before it, as Performer from linear."""
    if word in part_tables.MECHANISMS and part_tables.MECHANISMS[word].card.tier == "B":
        return True
    known, kind = part_tables.MECHANISMS, part_tables.MECHANISMS.get(word)
    before = [known[name] for name in itertools.takewhile(lambda name: name != word, known)]
    return kind is not None and any(one.forward is kind.forward and one.weights is kind.weights for one in before)


def paired(every: list[tuple], seed: str) -> Iterator[tuple]:
    """As many of a product's rows, in an order by chance, as it takes to see every two values of two axes together."""
    random.Random(seed).shuffle(every)
    met: set[tuple] = set()
    for values in every:
        pairs = set(itertools.combinations(enumerate(values), 2)) or {values}
        if not pairs <= met:
            met |= pairs
            yield values


def few_of(word: str, every: Iterable, most: int = 2) -> list:
    """All of them for softmax; a few of them for another mechanism, and another few for the next."""
    every = list(every)
    return (
        every if word == "softmax" else random.Random(word).sample(every, min(1 if alike(word) else most, len(every)))
    )


def everywhere(word: str) -> Iterator[Case]:
    """Masks, biases, groups, widths and sights together: for softmax masks times biases times each of the rest."""
    axes = every()
    if word != "softmax":
        yield from cases(word, **axes)
        return
    yield from cases(word, **axes | {"bias": PLAIN, "value": [VALUE], "sight": ["itself"]})
    yield from cases(
        word, **axes | {"bias": sorted({*BIASES} - {*PLAIN}), "groups": [2], "value": [VALUE], "sight": ["itself"]}
    )
    yield from cases(word, **axes | {"value": [KEY], "bias": ["none", "table"], "sight": ["itself"]})
    yield from cases(word, **axes | {"bias": PLAIN, "groups": [2], "value": [VALUE], "sight": [*SIGHTS][1:]})


def stirred(module: nn.Module) -> nn.Module:
    """The module, its parameters moved far enough from their start that each of them matters."""
    coins = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for p in module.parameters():
            p += torch.randn(p.shape, generator=coins, dtype=p.dtype) * 0.5
    return module


def toy(word: str) -> str:
    """A mechanism's word with its numbers so small that they matter to toys: `linformer(rank=3)`."""
    if word not in part_tables.MECHANISMS:
        return word
    takes = part_words.arguments(part_tables.MECHANISMS[word]).values()
    large = [one.name for one in takes if isinstance(one.default, int) and one.default > LENGTH]
    return f"{word}({', '.join(f'{name}=3' for name in large)})"


def mechanism(word: str, width: int = KEY, dtype: torch.dtype = torch.float64) -> Mechanism:
    return stirred(part_tables.mechanism(toy(word), HEADS, width, LONGEST)).to(dtype)  # type: ignore[return-value]


def asked(case: Case, sight: Sight, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values for a case, as leaves that take gradient."""
    coins = torch.Generator().manual_seed(2)
    rows, columns = sight.rows.shape[-1], sight.columns.shape[-1]
    shapes = ((HEADS, rows, KEY), (case.groups, columns, KEY), (case.groups, columns, case.value))

    def draw(s):
        return torch.randn(sight.batch, *s, generator=coins, dtype=torch.float64).to(dtype)

    q, k, v = (draw(s).requires_grad_() for s in shapes)
    return q, k, v


def parameters(*modules: nn.Module | None) -> list[nn.Parameter]:
    return [p for m in modules if m is not None for p in m.parameters()]


def probe(y: Tensor) -> Tensor:
    """A direction in which to take gradients: random, and the same for equal shapes."""
    return torch.randn(y.shape, generator=torch.Generator().manual_seed(3), dtype=torch.float64).to(y.dtype)


def gradients(y: Tensor, leaves: Sequence[Tensor], along: Tensor | None = None) -> tuple[Tensor, ...]:
    return torch.autograd.grad(
        y, leaves, probe(y) if along is None else along, retain_graph=True, materialize_grads=True
    )


def agree(one: Tensor, two: Tensor, leaves: Sequence[Tensor], label: object, **tolerance: float) -> None:
    """Both are the same, and so are their gradients."""
    pairs = [(one, two), *zip(gradients(one, leaves), gradients(two, leaves), strict=True)]
    for number, (a, b) in enumerate(pairs):
        if a.shape == b.shape and a.dtype == b.dtype and torch.allclose(a, b, **(tolerance or EXACT)):
            continue  # most are, and it takes longer to say what is apart
        what = "value" if number == 0 else f"gradient of leaf {number - 1}"
        torch.testing.assert_close(a, b, **(tolerance or EXACT), msg=lambda m, what=what: f"{label}, {what}: {m}")


def attention(word: str, groups: int = 2, position: Rotary | None = None) -> Attention:
    """Attention whose keys and values have widths of their own."""
    project = MultiHead(WIDTH, HEADS, groups, key=KEY, value=VALUE, position=position)
    return Attention(project, part_tables.mechanism(toy(word), HEADS, KEY, LONGEST), Join(HEADS * VALUE, WIDTH))


def stack(
    word: str, groups: int = 2, position: Rotary | None = None, depth: int = 2, kind: type[Block] = Block
) -> Stack:
    torch.manual_seed(4)
    blocks = (kind(WIDTH, attention(word, groups, position), FeedForward(WIDTH, 11)) for _ in range(depth))
    return stirred(Stack(blocks, nn.LayerNorm(WIDTH))).double()  # type: ignore[return-value]


def states(batch: int = BATCH, length: int = LENGTH) -> Tensor:
    coins = torch.Generator().manual_seed(5)
    return torch.randn(batch, length, WIDTH, generator=coins, dtype=torch.float64).requires_grad_()
