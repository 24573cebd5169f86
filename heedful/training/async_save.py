"""Saving beside the steps: what is to be kept is copied, and written by a thread while the model learns on."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from heedful.errors import Failure
from heedful.training import checkpoint
from heedful.training.checkpoint import Progress, Tensors
from heedful.training.devices import name_of


class Saver:
    """Writes the checkpoints of a run, one at a time; on leaving its `with`, the last one is written."""

    def __init__(self, folder: Path, keep: int, made: dict[str, Any]) -> None:
        self.folder, self.keep, self.made = folder, keep, made
        self.pool = ThreadPoolExecutor(1, "saving")
        self.begun: Future[Path] | None = None

    def save(self, progress: Progress, parts: dict[str, Tensors]) -> None:
        """Copies what a run is made of and begins to write it; waits for what is still being written."""
        self.wait()
        copied = {part: {name: copy(tensor) for name, tensor in some.items()} for part, some in parts.items()}
        self.begun = self.pool.submit(checkpoint.write, self.folder, replace(progress), copied, self.keep, self.made)

    def wait(self) -> None:
        """Returns when all is written; where it could not be, says why and what there is."""
        begun, self.begun = self.begun, None
        if begun is None:
            return
        try:
            begun.result()
        except OSError as error:
            why = f"{self.folder} cannot be written: {error.strerror or error}"
            raise Failure(f"{why}; {self.last()}; mend that and go on with --resume") from None

    def last(self) -> str:
        """The last checkpoint, in words."""
        saved = checkpoint.all_of(self.folder)
        return f"the last good checkpoint is {saved[-1]}" if saved else "nothing was saved before it"

    def __enter__(self) -> Saver:
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        try:
            self.wait()
        except Failure:
            if kind is None or not issubclass(kind, Exception):
                raise
        finally:
            self.pool.shutdown()


def copy(tensor: torch.Tensor) -> torch.Tensor:
    """A copy in the processor's memory, which no later step changes."""
    return tensor.detach().to("cpu", copy=True)


def made_by(device: torch.device, processes: int) -> dict[str, Any]:
    """What the bits of a run depend on beside its spec: where one of these changes, they may."""
    kind = name_of(device) if device.type != "cpu" else "CPU"
    return {"torch": torch.__version__, "device": kind, "threads": torch.get_num_threads(), "processes": processes}


def what_changed(then: dict[str, Any], now: dict[str, Any]) -> str | None:
    """What has changed since a checkpoint was made, in words; none where the run goes on to the same bits."""
    told = [
        "other data" if key == "samples" else f"{key} {then[key]}, now {now[key]}"
        for key in now
        if key in then and then[key] != now[key]
    ]
    return ", ".join(told) or None
