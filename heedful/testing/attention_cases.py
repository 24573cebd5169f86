"""What the laws of attention are measured on: masks, biases, groups, widths and sights, all at toy size."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from heedful.attention import (
    Attention,
    Join,
    MultiHead,
    Rotary,
    Sight,
)
from heedful.attention.mechanisms import Mechanism
from heedful.blocks import Block, FeedForward, Stack
from heedful.errors import Refusal
from heedful.models import part_words
from heedful.testing.toy_masks import BATCH, BIASES, EXACT, HEADS, KEY, LENGTH, LONGEST, SIGHTS, VALUE, WIDTH, masks

Make = Callable[[], Mechanism]
Part = TypeVar("Part", bound=nn.Module)


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
        return SIGHTS[self.sight](masks()[self.mask], bias if bias is None else stir(bias).to(dtype))


def every() -> dict[str, list[Any]]:
    """All values of every part of a case, one axis each."""
    return {
        "mask": list(masks()),
        "bias": list(BIASES),
        "groups": [HEADS, 2, 1],
        "value": [KEY, VALUE],
        "sight": list(SIGHTS),
    }


def pairwise(every: list[tuple[Any, ...]], seed: str) -> Iterator[tuple[Any, ...]]:
    """As many of a product's rows, in an order by chance, as it takes to see every two values of two axes together."""
    random.Random(seed).shuffle(every)
    met: set[Any] = set()
    for values in every:
        pairs: set[Any] = set(itertools.combinations(enumerate(values), 2)) or {values}
        if not pairs <= met:
            met |= pairs
            yield values


def stir(module: Part) -> Part:
    """The module, its parameters moved far enough from their start that each of them matters."""
    coins = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for p in module.parameters():
            p.add_(torch.randn(p.shape, generator=coins, dtype=p.dtype) * 0.5)
    return module


def queries_keys_values(case: Case, sight: Sight, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor, Tensor]:
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
        torch.testing.assert_close(a, b, **(tolerance or EXACT), msg=partial(describe, f"{label}, {what}"))


def describe(what: str, said: str) -> str:
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
                make()(*queries_keys_values(case, sight), sight)
            except Refusal as refused:
                found[f"{part} {value}"] = str(refused)
    return found


def cases_not_refused(axes: Mapping[str, Iterable[Any]], refused: Collection[str]) -> Iterator[Case]:
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
    return stir(Stack(blocks, nn.LayerNorm(WIDTH))).double()


def states(batch: int = BATCH, length: int = LENGTH) -> Tensor:
    """States of tokens, as a leaf that takes gradient: B T M."""
    coins = torch.Generator().manual_seed(5)
    return torch.randn(batch, length, WIDTH, generator=coins, dtype=torch.float64).requires_grad_()
