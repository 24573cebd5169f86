"""Memory of a training step: what `heedful plan` says beforehand against the most that a GPU had allocated."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode

from heedful.attention import Causal
from heedful.blocks import Stack
from heedful.data.splits import Splits
from heedful.inputs import Tokens
from heedful.models.blueprint import Blueprint, block, last_norm, position
from heedful.objectives.cross_entropy import cross_entropy
from heedful.outputs import NextToken
from heedful.tasks import TASKS
from heedful.terminal import say
from heedful.training import memory_estimate
from heedful.training.allocation_counter import count_memory
from heedful.training.distributed.ranks import ONE
from heedful.training.loop import Loop
from heedful.training.model_spec_for_task import suit_spec
from heedful.training.spec import recipes
from heedful.training.spec.run_spec import RunSpec

BASE = ["data=toy", "model.size=base", "training.tokens=16384", "training.graphs=false", "model.dropout=0.1"]


@dataclass(frozen=True)
class Compared:
    """What was said, and what was seen, in bytes."""

    what: str
    predicted: int
    measured: int

    @property
    def off(self) -> float:
        """By which share of what was seen the forecast is too high."""
        return self.predicted / self.measured - 1


class Decoder(nn.Module):
    """A decoder of text of the size of GPT-2 small (Radford et al., 2019): 124 million weights."""

    def __init__(self) -> None:
        super().__init__()
        s = Blueprint(width=768, depth=12, heads=12, hidden=3072, length=1024, position="learned", feedforward="gelu")
        self.inputs = Tokens(50257, s.width, position(s))
        self.decoder = Stack((block(s) for _ in range(s.depth)), last_norm(s))
        self.outputs = NextToken(s.width, 50257, self.inputs.table)

    def forward(self, tokens: Tensor) -> Tensor:  # B T -> B T V
        sight = Causal().over(tokens)
        return self.outputs(self.decoder(self.inputs(tokens, sight), sight))


def compare(rows: int = 8) -> Iterator[Compared]:
    """The base translator, then the decoder on `rows` rows of 1,024 tokens, each forecast and then run on the GPU."""
    yield translator(recipes.resolve("translate", [*BASE, "training.dtype=bfloat16"]))
    yield decoder(rows)


def translator(run: RunSpec) -> Compared:
    """Two steps of a recipe on its widest batch."""
    task, splits = TASKS[run.task].open(run.data, run.seed)
    task, spec = suit_spec(run, task)
    run = run.model_copy(update={"training": run.training.model_copy(update={"parallel": "none"})})
    with memory_estimate.imagine_processes(1):
        need = memory_estimate.measure_need(run, task, splits, spec, 1)

    def steps() -> None:
        with torch.device("cuda"):
            loop: Loop = memory_estimate.loop_of(run, task, Splits(splits.train, (), ()), spec, ONE)
        samples = memory_estimate.widest(loop)
        for _ in range(2):
            loop.step(loop.portions.of(samples))

    return Compared(f"{run.model.get('family', task.families[0])}, base", need.peak, on_gpu(steps))


def decoder(rows: int) -> Compared:
    """Two steps of the decoder."""
    with (
        FakeTensorMode(allow_non_fake_inputs=True),
        memory_estimate.as_on_a_gpu(),
        count_memory() as memory,
    ):
        two_steps(rows, "cpu")
    return Compared(f"decoder, 124M, {rows} x 1024 tokens", memory.peak, on_gpu(lambda: two_steps(rows, "cuda")))


def two_steps(rows: int, device: str) -> None:
    """Two steps of AdamW in bfloat16."""
    with torch.device(device):
        model, tokens = Decoder(), torch.randint(0, 50257, (rows, 1025))
    optimiser = torch.optim.AdamW(model.parameters(), fused=True)
    for _ in range(2):
        with torch.autocast(device, torch.bfloat16):
            logits = model(tokens[:, :-1]).flatten(0, 1)
            loss = cross_entropy(logits, tokens[:, 1:].flatten(), -1)
        loss.backward()
        del logits, loss
        optimiser.step()
        optimiser.zero_grad()


def on_gpu(work: Any) -> int:
    """The most that a GPU had allocated while something was done on it."""
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    work()
    torch.cuda.synchronize()
    return int(torch.cuda.max_memory_allocated())


def main() -> None:
    """Prints what was said and seen."""
    if not torch.cuda.is_available():
        raise SystemExit("heedful: this measures a GPU, and none is found; run it where there is one")
    for row in compare():
        say(f"{row.what:<36} predicted {row.predicted / 1e9:6.3f} GB  measured {row.measured / 1e9:6.3f} GB", end="  ")
        say(f"{100 * row.off:+.1f} %")


if __name__ == "__main__":
    main()
