"""Runs to go on with: progress that is none, tensors that do not fit, and links by which something else is written."""

import torch

from tests.formats.malice.good import Bad
from tests.formats.malice.tools import PICKLE, Spoil, holds, in_checkpoint, leads, of_size, pipe, says, tensors

STEP = "checkpoints/step-00000002"
NOT_OURS = rf"{STEP} is not of this run: .*; remove it to go on from what was saved before$"
NO_OTHER = rf"{STEP} is not whole: .*, and there is no other; remove .* to begin at step 0$"
OUT = r"is a link that leads out of the folder; put what it leads to in its place$"


def begun(spoil: Spoil, said: str = NOT_OURS) -> Bad:
    return Bad(spoil, said, "begun", "resume")


def manifest(content: str | bytes) -> Bad:
    return begun(in_checkpoint(holds("manifest.json", content), sealed=False), NO_OTHER)


def progress(**values: object) -> Bad:
    return begun(in_checkpoint(says("progress.json", **values)))


def part(name: str, change: object) -> Bad:
    return begun(in_checkpoint(tensors(change, f"{name}.safetensors")))  # type: ignore[arg-type]


def first(found: dict[str, torch.Tensor]) -> str:
    return next(name for name in sorted(found) if found[name].dim() == 2)


RESUMED = {
    "progress before the beginning": progress(step=-(10**9)),
    "progress beyond the end": progress(step=10**18),
    "progress beyond numbers": progress(step=10**30),
    "progress in words": progress(step="__import__('os')"),
    "progress that scores in words": progress(best_score="inf"),
    "progress that is more": progress(__class__="os.system"),
    "progress that is no number": begun(in_checkpoint(holds("progress.json", '{"step": NaN}'))),
    "a manifest that is a pickle": manifest(PICKLE),
    "a manifest that leads out": manifest('{"step": 2, "files": {"../../../../outside/spec.json": {"bytes": 1}}}'),
    "a manifest that leads far out": manifest('{"step": 2, "files": {"/dev/zero": {}, "..": {}}}'),
    "a manifest of no step": manifest('{"step": "__import__", "files": {}}'),
    "a deep manifest": manifest("[" * 10**6),
    "a manifest of gigabytes": begun(in_checkpoint(of_size("manifest.json", 8 << 30, b"{"), sealed=False), NO_OTHER),
    "a manifest of another step": begun(in_checkpoint(says("manifest.json", step=10**18), sealed=False), NOT_OURS),
    "progress that is a pickle": begun(in_checkpoint(holds("progress.json", PICKLE))),
    "progress that leads to another's": begun(in_checkpoint(leads("progress.json", "../../run.yaml")), OUT),
    "progress that leads out": begun(in_checkpoint(leads("progress.json", "../../../outside/run.yaml")), OUT),
    "the best is a pickle": begun(in_checkpoint(holds("best.safetensors", PICKLE))),
    "the best is of whole numbers": part("best", lambda found: found.update({first(found): found[first(found)].int()})),
    "the best lacks one": part("best", lambda found: found.pop(first(found))),
    "the average is of another shape": part("average", lambda found: found.update({first(found): torch.zeros(3, 3)})),
    "the weights are of another shape": part("model", lambda found: found.update({first(found): torch.zeros(3, 3)})),
    "the optimiser is of another shape": part(
        "optimiser", lambda found: found.update({first(found): torch.zeros(10**4, 10)})
    ),
    "the optimiser is of another kind": part(
        "optimiser", lambda found: found.update({first(found): found[first(found)].double()})
    ),
    "the optimiser knows no name": part("optimiser", lambda found: found.update({"os.system": torch.zeros(())})),
    "the optimiser knows another name": part("optimiser", lambda found: found.update({"../a/step": torch.zeros(())})),
    "the optimiser counts in truths": part(
        "optimiser", lambda found: found.update({name: torch.tensor(True) for name in found if name.endswith("/step")})
    ),
    "the log is of another shape": part("log", lambda found: found.update(losses=torch.zeros(3))),
    "the log is gone": begun(in_checkpoint(lambda place: (place / "log.safetensors").unlink())),
    "a pipe for the weights": begun(
        in_checkpoint(pipe("model.safetensors"), sealed=False), r"model.safetensors is no plain file; remove it"
    ),
    "checkpoints lead out": begun(leads("checkpoints", "OUTSIDE/checkpoints"), rf"checkpoints {OUT}"),
    "a checkpoint leads out": begun(leads(STEP, "OUTSIDE/checkpoints/step-00000002"), rf"{STEP} {OUT}"),
    "the log of metrics leads out": begun(leads("metrics.jsonl", "OUTSIDE/metrics.jsonl"), rf"metrics.jsonl {OUT}"),
    "what is written aside leads out": begun(leads(".metrics.jsonl.aside", "OUTSIDE/run.yaml"), rf"aside {OUT}"),
    "what is written aside is a pipe": begun(pipe(".timing.jsonl.aside"), r"aside is no plain file; remove it"),
    "the board leads out": begun(leads("tensorboard", "OUTSIDE"), rf"tensorboard {OUT}"),
    "the run's spec leads out": begun(leads("run.yaml", "OUTSIDE/run.yaml"), rf"run.yaml {OUT}"),
    "the run's spec is a tag": begun(
        holds("run.yaml", "!!python/object/apply:os.system [x]"), r"run.yaml cannot be read"
    ),
    "the result leads out": begun(leads("result.json", "OUTSIDE/result.json"), rf"result.json {OUT}"),
    "lines that are none": Bad(
        holds("metrics.jsonl", '[1]\n{"step": "x"}\n' + "[" * 10**5), r"line 1: it is no object", "begun", "lines"
    ),
    "a last line that a kill cut short": Bad(
        holds("metrics.jsonl", '{"step": 1}\n' + "[" * 10**5), "", "begun", "lines"
    ),
    "times that are none": Bad(
        holds("timing.jsonl", '{"step": 1, "seconds": "__import__"}\n{"step": 2}\n'),
        r"line 1: 'seconds' is",
        "run",
        "table",
    ),
}
