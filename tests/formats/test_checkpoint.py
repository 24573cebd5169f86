"""The checkpoints of a run: how many are kept, and what a crash leaves of them."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from heedful.errors import Refusal
from heedful.safe import sealed_folders
from heedful.training import checkpoint
from heedful.training.checkpoint import Progress
from heedful.training.loop import Loop
from tests.formats.crashes import crash_at, full, listing
from tests.training.runs import killed_at, short, train

MADE = {"torch": "2"}


def parts(step: int) -> dict[str, dict[str, torch.Tensor]]:
    return {"model": {"a": torch.full((3,), step)}, "best": {}, "log": {"losses": torch.tensor(step)}}


def write(folder: Path, step: int, keep: int = 2) -> Path:
    return checkpoint.write(folder, Progress(step), parts(step), keep, MADE)


def steps(folder: Path) -> list[int]:
    """The step of each checkpoint, all of them read whole."""
    read = [checkpoint.read_checkpoint(place) for place in checkpoint.all_of(folder)]
    for progress, found in read:
        assert found.keys() == {"model", "best", "log"}
        assert found["model"]["a"].tolist() == [progress.step] * 3
    return [progress.step for progress, _ in read]


@pytest.mark.parametrize("keep", [1, 2, 5])
def test_the_last_few_are_kept(tmp_path: Path, keep: int) -> None:
    for step in range(10, 80, 10):
        write(tmp_path, step, keep)
    assert steps(tmp_path) == list(range(10, 80, 10))[-keep:]
    assert len(os.listdir(tmp_path)) == keep


def test_checkpoints_are_in_the_order_of_their_steps(tmp_path: Path) -> None:
    for step in (7, 99_999_999, 100_000_000):
        write(tmp_path, step, keep=5)
    assert steps(tmp_path) == [7, 99_999_999, 100_000_000]


def test_progress_reads_back_as_plain_json(tmp_path: Path) -> None:
    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is no JSON")

    for progress in (Progress(3), Progress(9, best_step=6, best_score=-0.25, since_best=2)):
        place = checkpoint.write(tmp_path, progress, parts(3), 2, MADE)
        json.loads((place / "progress.json").read_text(), parse_constant=refuse)
        assert checkpoint.read_checkpoint(place)[0] == progress


def test_what_is_no_checkpoint_is_ignored(tmp_path: Path) -> None:
    write(tmp_path, 10)
    for name in (".step-00000020.77.aside", "step-30", "step-00000040.part", "step-0000005x", "other"):
        (tmp_path / name).mkdir()
    assert steps(tmp_path) == [10]


def test_there_is_none_where_there_is_no_folder(tmp_path: Path) -> None:
    assert checkpoint.all_of(tmp_path / "nowhere") == []


POINTS = [
    *[(sealed_folders, "save_file", call) for call in (1, 2, 3)],
    (Path, "write_text", 1),
    *[(os, "fsync", call) for call in (1, 5, 6)],  # four files, the folder, the folder above
    *[(Path, "rename", call) for call in (1, 2)],  # into place, and the oldest out of it
    (shutil, "rmtree", 3),
]


@pytest.mark.parametrize(("owner", "name", "call"), POINTS)
def test_a_crash_leaves_the_earlier_ones_whole(tmp_path: Path, owner: Any, name: str, call: int) -> None:
    for step in (10, 20):
        write(tmp_path, step)
    with crash_at(owner, name, call):
        write(tmp_path, 30)
    assert steps(tmp_path) in ([10, 20], [10, 20, 30], [20, 30])
    write(tmp_path, 30)
    write(tmp_path, 40)
    assert sorted(os.listdir(tmp_path)) == ["step-00000030", "step-00000040"]  # and nothing that the crash had left
    assert steps(tmp_path) == [30, 40]


def test_a_disk_that_is_full_leaves_the_earlier_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, 10)
    monkeypatch.setattr(sealed_folders, "save_file", full)
    with pytest.raises(OSError, match="disk full"):
        write(tmp_path, 20)
    assert os.listdir(tmp_path) == ["step-00000010"] and steps(tmp_path) == [10]


@pytest.mark.parametrize("lost", ["progress.json", "model.safetensors"])
def test_a_checkpoint_that_lost_a_file_is_refused_by_its_name(tmp_path: Path, lost: str) -> None:
    place = write(tmp_path / "run" / "checkpoints", 10)
    (place / lost).write_bytes(b"")
    with pytest.raises(Refusal, match=f"{lost} cannot be read"):
        checkpoint.read_checkpoint(place)


def test_a_run_keeps_as_many_as_it_was_told(tmp_path: Path) -> None:
    train(short("reverse", training__keep=3, training__save_every=5), tmp_path / "run")
    names = [place.name for place in checkpoint.all_of(tmp_path / "run" / "checkpoints")]
    assert names == ["step-00000015", "step-00000020", "step-00000023"]


def test_a_run_passes_over_a_checkpoint_that_was_never_finished(tmp_path: Path) -> None:
    spec, out = short("reverse"), tmp_path / "run"
    with killed_at(Loop, "step", 17):
        train(spec, out)
    stray = out / "checkpoints" / ".step-00000021.77.aside"
    stray.mkdir()
    (stray / "model.safetensors").write_bytes(b"half")
    train(spec, out, resume=True)
    train(spec, tmp_path / "other")
    assert not stray.exists()
    assert listing(out / "checkpoints") == listing(tmp_path / "other" / "checkpoints")
