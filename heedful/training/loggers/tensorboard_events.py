"""TensorBoard: what a run comes to as its events, in `tensorboard/` within the run's folder."""

from __future__ import annotations

from pathlib import Path

from heedful.looking.page import Samples
from heedful.training.callbacks import Logger


class TensorBoard(Logger):
    """TensorBoard events; what was written after the step that a run goes on at is left out by its viewer."""

    def __init__(self, folder: Path, step: int = 0) -> None:
        from torch.utils.tensorboard import SummaryWriter

        super().__init__(folder, step)
        self.board = SummaryWriter(str(folder / "tensorboard"), purge_step=step)

    def on_log(self, step: int, values: dict[str, float]) -> None:
        for name, value in values.items():
            if name != "samples_a_second":  # of the machine and not of the run
                self.board.add_scalar(f"train/{name}", value, step)

    def on_evaluate(self, step: int, split: str, scores: dict[str, float]) -> None:
        for name, value in scores.items():
            self.board.add_scalar(f"{split}/{name}", value, step)

    def on_samples(self, step: int, samples: Samples) -> None:
        shown = [f"{name:>10s}  {cell}" for row in samples.rows for name, cell in zip(samples.header, row, strict=True)]
        self.board.add_text("samples", "\n".join(f"    {line}" for line in shown), step)

    def on_close(self, finished: bool) -> None:
        self.board.close()
