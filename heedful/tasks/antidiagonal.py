"""Does a model that reverses look where it should: at the last symbol first, at the first one last?"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from heedful.looking import look
from heedful.looking.page import Figures
from heedful.tasks.task import Batch, device_of, to


def antidiagonal(model: nn.Module, batches: Iterable[Batch]) -> Figures:
    """The head, or mean of a layer's heads, whose largest mean cross-attention lies most often on the anti-diagonal.

    Each batch holds sequences of one length n, each followed by an end. Over a batch's mean map, row t should look most
    at column n - 1 - t; the share is over the rows of all lengths.
    """
    hits: dict[str, int] = {}
    rows = samples = 0
    for batch in batches:
        means = mean_maps(model, batch)
        n = batch["source"].shape[1] - 1
        expected = torch.arange(n - 1, -1, -1)
        for name, mean in means.items():
            hits[name] = hits.get(name, 0) + int((mean[:n].argmax(-1) == expected).sum())
        rows, samples = rows + n, samples + len(batch["source"])
    name = max(hits, key=lambda name: hits[name])
    share = f"{100 * hits[name] / rows:.1f} %"
    note = f"of {rows} positions in {name}, over the mean maps of {samples:,} unseen sequences, length by length"
    return Figures("Where it looks", (("largest mean cross-attention on the anti-diagonal", share, note),))


@torch.no_grad()
def mean_maps(model: nn.Module, batch: Batch) -> dict[str, Tensor]:
    """The mean cross-attention map (T S) of each head and of each layer over a batch of equal lengths."""
    batch = to(batch, device_of(model))
    with look(model) as seen:
        model(batch["source"], batch["target"])
    maps: dict[str, Tensor] = {}
    for path in seen.paths:
        if path.endswith("cross"):
            mean = seen.weights(path).mean(0).cpu()  # H T S
            maps |= {f"{path}, head {head}": mean[head] for head in range(len(mean))}
            maps[f"{path}, mean of heads"] = mean.mean(0)
    return maps
