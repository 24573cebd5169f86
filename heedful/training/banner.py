"""What a run says of itself before its first step."""

from __future__ import annotations

from heedful.data.splits import Plan
from heedful.training.loop import Loop
from heedful.training.optimiser import describe_optimiser
from heedful.training.prepare import Ready


def introduction(ready: Ready, loop: Loop, resume: bool) -> str:
    """What is about to happen, in a few lines."""
    many = f", {loop.ranks.size} processes" if loop.ranks.size > 1 else ""
    weights = sum(parameter.numel() for parameter in ready.model.parameters())
    learning = sum(parameter.numel() for parameter in ready.model.parameters() if parameter.requires_grad)
    some = f", {learning:,} of them learn" if learning < weights else ""
    sizes = ", ".join(f"{len(split):,}" for split in (ready.splits.train, ready.splits.valid, ready.splits.test))
    dtype = "tf32" if loop.precision.tf32 else str(loop.precision.dtype).removeprefix("torch.")
    step, place, held = loop.progress.step, loop.device, ready.run.data.describe_cut(ready.splits)
    where = f"going on at step {step}" if step else "nothing saved yet, starting at step 0" if resume else "from step 0"
    family = ready.run.model.get("family", type(ready.model).__name__)
    lines = [
        f"{ready.run.about or ready.run.task}",
        f"model     {family}, {weights:,} weights{some}, {dtype} on {place.type}{many}",
        f"data      {ready.run.data.name}: {sizes} samples to train, choose by and test on{held}",
        f"batches   {batches(ready, loop.portions.plan)}",
        f"optimiser {describe_optimiser(loop.optimiser, ready.run.training.optimiser)}",
        f"folder    {loop.folder} ({where})",
    ]
    if loop.training.graphs and place.type == "cuda" and loop.graphs is None:
        lines.insert(-1, "graphs    none, for the weights lie in parts: kernels are launched one by one")
    if ready.start:
        lines.insert(2, f"start     {ready.start}")
    if noted := ready.task.describe_data(ready.splits):
        lines.insert(lines.index(f"batches   {batches(ready, loop.portions.plan)}"), noted)
    if ready.overlaps:
        said = ", ".join(map(str, ready.overlaps))
        lines.append(f"overlap   near-duplicates of what is learned from: {said}; the scores say less")
    if ready.run.expected:
        score = ", ".join(f"{name} {value:g}" for name, value in ready.run.expected.score.items())
        lines.append(f"expected  {score} in about {ready.run.expected.seconds:.0f} s on {ready.run.expected.where}")
    return "\n".join(lines)


def batches(ready: Ready, plan: Plan) -> str:
    """How samples are put together, and how much of that is padding."""
    training = ready.run.training
    every = len(ready.splits.train)
    size = f"{training.batch:,} samples" if training.batch < every else f"all {every:,} samples"
    size = f"at most {training.tokens:,} tokens a side" if training.tokens else size
    return f"{plan.steps:,} an epoch of {size}, {100 * plan.padding:.1f} % padding"
