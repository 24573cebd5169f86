"""Does a model that reverses look where it should: at the last symbol first, at the first one last?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from heedful.data.collate import Batch, to
from heedful.data.encoded_pairs import Encoded
from heedful.looking import look
from heedful.looking.page import Figures
from heedful.models.numerics import device_of
from heedful.models.writer import teacher_forced
from heedful.pipelines.pairs_learned import PairCollate, PairsLearned
from heedful.views.finding import Finding


def reversing(model: nn.Module, samples: Sequence[Encoded], results: Any, learned: PairsLearned) -> Finding | None:
    """Where a model looks that learned to reverse; nothing where any target is another than its source backwards."""
    if not all(sample.target == sample.source[::-1] for sample in samples):
        return None
    collate: PairCollate[PairsLearned] = PairCollate()
    lengths = sorted({len(sample.source) for sample in samples})
    groups = [[sample for sample in samples if len(sample.source) == length] for length in lengths]
    return antidiagonal(model, [collate.batch(group, learned) for group in groups])


def antidiagonal(model: nn.Module, batches: Iterable[Batch]) -> Finding | None:
    """The head, or mean of a layer's heads, whose largest mean cross-attention lies most often on the anti-diagonal.

    Each batch holds sequences of one length n, each followed by an end. Over a batch's mean map, row t should look most
    at column n - 1 - t; the share is over the rows of all lengths.
    """
    hits: Counter[tuple[str, str]] = Counter()
    rows = samples = 0
    for batch in batches:
        n = batch["source"].shape[1] - 1
        expected = torch.arange(n - 1, -1, -1)
        for place, mean in mean_maps(model, batch).items():
            hits[place] += int((mean[:n].argmax(-1) == expected).sum())
        rows, samples = rows + n, samples + len(batch["source"])
    if not hits:  # it looks at nothing by weights
        return None
    (layer, head), count = hits.most_common(1)[0]
    name = f"{layer}, {'mean of heads' if head == 'mean' else f'head {head}'}"
    note = f"of {rows} positions in {name}, over the mean maps of {samples:,} unseen sequences, length by length"
    row = ("largest mean cross-attention on the anti-diagonal", f"{100 * count / rows:.1f} %", note)
    return Finding(Figures("Where it looks", (row,)), layer, head)


@torch.no_grad()
def mean_maps(model: nn.Module, batch: Batch) -> dict[tuple[str, str], Tensor]:
    """The mean cross-attention map (T S) of each layer and head, and of each layer, over a batch of equal lengths."""
    batch = to(batch, device_of(model))
    model.eval()
    with look(model) as seen:
        teacher_forced(model, batch)
    maps: dict[tuple[str, str], Tensor] = {}
    for path in seen.paths:
        if path.endswith("cross"):
            mean = seen.weights(path).mean(0).cpu()  # H T S
            maps |= {(path, str(head)): mean[head] for head in range(len(mean))}
            maps[path, "mean"] = mean.mean(0)
    return maps
