"""One of the processes that the tests start: it trains each case for a few steps and writes what came of it.

Called by torchrun as `worker.py FOLDER`; the cases stand in FOLDER/cases.json.
"""

import json
import sys
from pathlib import Path
from typing import Any

import torch

from heedful.safe.sealed_folders import write_tensors
from heedful.training import run
from heedful.training.distributed import ranks as parallel
from heedful.training.distributed.sharded_tensors import together
from heedful.training.loop import Loop
from tests.training.runs import CPU, short


def loop_of(case: dict[str, Any], folder: Path, ranks: parallel.Ranks = parallel.ONE) -> Loop:
    ready = run.prepare(short(case["recipe"], **case["changes"]), CPU)
    return Loop(ready.run, ready.task, ready.splits, ready.model, folder, ranks)


def steps(loop: Loop, count: int) -> list[float]:
    """The losses of the next steps."""
    losses = []
    for _ in range(count):
        samples = loop.portions.samples(loop.progress.step)
        losses.append(float(loop.step(loop.portions.of(samples))))
        loop.progress.step += 1
    return losses


def work(case: dict[str, Any], folder: Path, ranks: parallel.Ranks) -> None:
    loop = loop_of(case, folder / "run", ranks)
    if (folder / "begun").exists():
        loop.restore(folder / "begun")
    losses = steps(loop, case["steps"])
    loop.check_finite()
    loop.save()
    loop.saver.wait()
    weights = together(dict(loop.model.state_dict()), ranks.first)
    with loop.averaged(), loop.layout.whole() as model:
        score = ranks.told(lambda: loop.task.score(model, loop.splits.valid)[loop.task.watch])
    if ranks.first:
        write_tensors(weights, folder / "weights.safetensors")
    (folder / f"rank-{ranks.rank}.json").write_text(json.dumps({"losses": losses, "score": score}))


def main() -> None:
    folder = Path(sys.argv[1])
    torch.set_num_threads(1)
    with parallel.join_processes(cpu=True) as ranks:
        for name, case in json.loads((folder / "cases.json").read_text()).items():
            work(case, folder / name, ranks)
    parallel.leave(0)


if __name__ == "__main__":
    main()
