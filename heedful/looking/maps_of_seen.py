"""Attention maps of what was seen in a forward: the weights of every layer, with words on both axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from heedful.looking.look import Seen
from heedful.looking.maps import Map


def maps(seen: Seen, words: Callable[[str], tuple[Sequence[str], Sequence[str]]]) -> tuple[Map, ...]:
    """All that was seen of a batch of one; `words` gives a path's words, who looks and what is looked at.

    An attention that several layers share was called by each: its calls are numbered.
    """
    made = []
    for path in seen.paths:
        rows, columns = words(path)
        for call in range(seen.calls(path)):
            name = path if seen.calls(path) == 1 else f"{path}[{call}]"
            weights = seen.weights(path, call=call)[0].detach().float().cpu()
            made.append(Map(name, weights, fitting(rows, weights.shape[-2]), fitting(columns, weights.shape[-1])))
    return tuple(made)


def fitting(words: Sequence[str], count: int) -> tuple[str, ...]:
    """The words, where there are as many; else numbers: a kind may look from or at nodes of its own that none names."""
    return tuple(words) if len(words) == count else tuple(f"node {at}" for at in range(count))
