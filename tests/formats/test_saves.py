"""A save that is cut at any of its file operations, a disk that fails, files that are spoilt: no good one is lost."""

import errno
import os
import resource
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from heedful.cli.fault_injection import OPERATIONS
from heedful.errors import Failure, Refusal
from heedful.safe import sealed_folders
from heedful.training import checkpoint, loop, run_folder
from heedful.training.async_save import Saver, made_by
from heedful.training.checkpoint import Progress
from heedful.training.loop import Loop
from tests.training.runs import assert_same, contents, killed_at, short, train

MADE = {"torch": "2"}
ENOUGH = 200  # file operations, more than a save has


def write(folder: Path, step: int) -> Path:
    parts = {"model": {"a": torch.full((3,), step)}, "best": {}}
    return checkpoint.write(folder, Progress(step), parts, 2, MADE)


def in_a_fork(folder: Path, step: int, operation: int, happens: Callable[[], None]) -> int:
    """Saves in a copy of this process, where something happens at the nth file operation; its status."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads that the copy does not have; it uses none
        child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    count, saved, flushed = [0], sealed_folders.save_file, os.fsync

    def counted(*_: Any) -> None:
        count[0] += 1
        if count[0] == operation:
            happens()

    def half(tensors: Any, path: Path, *told: Any) -> None:
        saved(tensors, path, *told)
        data = path.read_bytes()
        path.write_bytes(data[: len(data) // 2])
        counted()  # when half of it is written
        path.write_bytes(data)

    def audit(event: str, arguments: tuple[Any, ...]) -> None:
        if event in OPERATIONS and str(arguments[0]).startswith(str(folder)):
            counted()

    sealed_folders.save_file = half
    os.fsync = lambda handle: (counted(), flushed(handle))[1]
    sys.addaudithook(audit)
    try:
        write(folder, step)
    except OSError:
        os._exit(5)
    os._exit(0)


def every_operation(folder: Path, happens: Callable[[], None], ended: int) -> Iterator[int]:
    """Goes over all file operations of a save, in a folder that holds two checkpoints before each."""
    for operation in range(1, ENOUGH):
        for old in checkpoint.all_of(folder):
            sealed_folders.remove_folder(old)
        write(folder, 10), write(folder, 20)
        status = in_a_fork(folder, 30, operation, happens)
        if status == 0:
            return
        assert status == ended
        yield operation
    raise AssertionError("a save should have come to its end")


def newest(folder: Path) -> int:
    """The step of the latest checkpoint, which is whole."""
    place, _ = checkpoint.latest(folder)
    assert place is not None and sealed_folders.fault(place) is None
    progress, parts = checkpoint.read_checkpoint(place)
    assert parts["model"]["a"].tolist() == [progress.step] * 3
    return progress.step


def test_a_crash_at_any_file_operation_of_a_save_loses_nothing(tmp_path: Path) -> None:
    found = []
    for _ in every_operation(tmp_path, lambda: os._exit(9), 9):
        found.append(newest(tmp_path))
        assert len([place for place in checkpoint.all_of(tmp_path) if sealed_folders.fault(place) is None]) >= 2
        write(tmp_path, 40)
        assert newest(tmp_path) == 40
        assert not list(tmp_path.glob(".*.aside"))  # what the crash had left is gone
    assert len(found) > 25 and found == sorted(found) and set(found) == {20, 30}


def full() -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_disk_that_is_full_at_any_file_operation_loses_nothing(tmp_path: Path) -> None:
    failed = 0
    for operation in range(1, ENOUGH):
        for old in checkpoint.all_of(tmp_path):
            sealed_folders.remove_folder(old)
        write(tmp_path, 10), write(tmp_path, 20)
        failed += in_a_fork(tmp_path, 30, operation, full) == 5
        assert newest(tmp_path) in (20, 30)
        if operation > 60:
            break
    assert failed > 20


def test_what_the_system_says_of_a_file_that_finds_no_room_is_told(tmp_path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
        with pytest.raises(OSError, match="File too large") as full:
            sealed_folders.write_tensors({"a": torch.zeros(1 << 16)}, tmp_path / "a.safetensors")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert full.value.errno == errno.EFBIG and full.value.filename == str(tmp_path / "a.safetensors")


NAMES = ("model.safetensors", "best.safetensors", "progress.json", "manifest.json")
SPOILT: dict[str, tuple[Callable[[Path], object], str]] = {
    "cut short": (
        lambda path: path.write_bytes(path.read_bytes()[:-2]),
        "bytes and not the|cannot be read|other bytes",
    ),
    "flipped": (lambda path: path.write_bytes(flipped(path.read_bytes())), "other bytes|cannot be read|not one that"),
    "missing": (lambda path: path.unlink(), "is missing"),
    "empty": (lambda path: path.write_bytes(b""), "has 0 bytes|cannot be read"),
    "a folder": (lambda path: (path.unlink(), path.mkdir()), "is missing"),
}


def flipped(data: bytes) -> bytes:
    """The same with one bit of its middle turned."""
    at = len(data) // 2
    return data[:at] + bytes([data[at] ^ 4]) + data[at + 1 :]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("how", SPOILT)
def test_what_is_spoilt_is_passed_over_and_named(tmp_path: Path, name: str, how: str) -> None:
    write(tmp_path, 10)
    place = write(tmp_path, 20)
    spoil, cause = SPOILT[how]
    spoil(place / name)
    found, faults = checkpoint.latest(tmp_path)
    assert found == tmp_path / "step-00000010"
    [fault] = faults
    assert fault.startswith(f"{place} is not whole: ") and any(part in fault for part in cause.split("|")), fault
    write(tmp_path, 15)  # the run goes on from 10 and saves again
    assert newest(tmp_path) == 15


def test_every_bit_of_a_manifest_counts_or_changes_nothing(tmp_path: Path) -> None:
    place = write(tmp_path, 20)
    own = (place / "manifest.json").read_bytes()
    for at in range(len(own)):
        (place / "manifest.json").write_bytes(own[:at] + bytes([own[at] ^ 1]) + own[at + 1 :])
        found, faults = checkpoint.latest(tmp_path)
        assert found == place or len(faults) == 1  # never an exception
    (place / "manifest.json").write_bytes(own)
    assert checkpoint.latest(tmp_path) == (place, [])


def test_the_latest_is_told_by_manifests_and_not_by_names(tmp_path: Path) -> None:
    write(tmp_path, 10), write(tmp_path, 20)
    (tmp_path / "step-00000010").rename(tmp_path / "step-00000099")
    assert [place.name for place in checkpoint.all_of(tmp_path)] == ["step-00000099", "step-00000020"]
    assert newest(tmp_path) == 20


def test_a_manifest_reaches_no_file_outside(tmp_path: Path) -> None:
    place = write(tmp_path / "checkpoints", 20)
    (tmp_path / "checkpoints" / "other").write_text("other")
    told = (place / "manifest.json").read_text().replace("best.safetensors", "../other")
    (place / "manifest.json").write_text(told)
    assert checkpoint.latest(tmp_path / "checkpoints")[0] is None


def test_the_best_is_kept_beside_the_last(tmp_path: Path) -> None:
    for step in (10, 20, 30, 40):
        checkpoint.write(tmp_path, Progress(step, best_step=10), {"model": {}}, 2, MADE)
    assert [place.name[-2:] for place in checkpoint.all_of(tmp_path)] == ["10", "30", "40"]


# ---------------------------------------------------------------------- whole runs


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    out = tmp_path_factory.mktemp("whole") / "run"
    train(short("reverse"), out)
    return contents(out)


def test_a_run_goes_on_from_the_last_good_one_and_says_why(tmp_path: Path, whole: dict[str, bytes]) -> None:
    with killed_at(Loop, "step", 17):
        train(short("reverse"), tmp_path)
    last = tmp_path / "checkpoints" / "step-00000014"
    (last / "optimiser.safetensors").write_bytes(flipped((last / "optimiser.safetensors").read_bytes()))
    with pytest.warns(UserWarning, match=r"step-00000014 is not whole: optimiser.* going on from step-00000007"):
        train(short("reverse"), tmp_path, resume=True)
    assert_same(contents(tmp_path), whole)


def test_a_run_whose_checkpoints_are_all_spoilt_is_refused(tmp_path: Path) -> None:
    with killed_at(Loop, "step", 12):
        train(short("reverse"), tmp_path)
    (tmp_path / "checkpoints" / "step-00000007" / "model.safetensors").unlink()
    with pytest.raises(Refusal, match=r"model.safetensors is missing, and there is no other; remove .* to begin"):
        train(short("reverse"), tmp_path, resume=True)


@pytest.mark.parametrize("fault", [errno.ENOSPC, errno.EROFS, errno.EACCES])
def test_a_save_that_fails_stops_the_run_with_its_cause(
    tmp_path: Path, whole: dict[str, bytes], monkeypatch: pytest.MonkeyPatch, fault: int
) -> None:
    own, calls = sealed_folders.save_file, [0]

    def failing(*arguments: Any) -> None:
        calls[0] += 1
        if calls[0] == 7:  # in the second checkpoint
            raise OSError(fault, os.strerror(fault))
        own(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(sealed_folders, "save_file", failing)
        line = (
            rf"checkpoints cannot be written: {os.strerror(fault)}; the last good checkpoint is .*-00000007; .*--resume"
        )
        with pytest.raises(Failure, match=line):
            train(short("reverse"), tmp_path)
    train(short("reverse"), tmp_path, resume=True)
    assert_same(contents(tmp_path), whole)


def test_a_run_that_goes_on_with_another_torch_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with killed_at(Loop, "step", 12):
        train(short("reverse"), tmp_path)
    monkeypatch.setattr(loop, "made_by", lambda *given: made_by(*given) | {"torch": "9.0"})
    with pytest.warns(UserWarning, match=r"was made with torch 2\..*, now 9.0: .* perhaps not to the same bits"):
        train(short("reverse"), tmp_path, resume=True)


def test_a_run_killed_between_its_last_save_and_tidying_up_leaves_no_more_than_others(tmp_path: Path) -> None:
    train(short("reverse"), tmp_path / "whole")
    with killed_at(checkpoint, "tidy", 4):  # after steps 7, 14, 21 and 23
        train(short("reverse"), tmp_path / "cut")
    assert len(checkpoint.all_of(tmp_path / "cut" / "checkpoints")) > 2
    train(short("reverse"), tmp_path / "cut", resume=True)
    assert_same(contents(tmp_path / "cut"), contents(tmp_path / "whole"))


def test_data_that_have_changed_are_told_when_a_run_goes_on(tmp_path: Path) -> None:
    file, out = tmp_path / "pairs.tsv", tmp_path / "run"
    lines = [f"{at % 7} {at % 5} {at % 3}\t{at % 3} {at % 5} {at % 7}\n" for at in range(120)]
    file.write_text("".join(lines))
    run = short("reverse", data=file)
    with killed_at(Loop, "step", 12):
        train(run, out)
    file.write_text("".join([*lines[:-1], "6 4\t4 6\n"]))
    with pytest.warns(UserWarning, match=r"was made with other data: the run goes on, but perhaps not to the same"):
        train(run, out, resume=True)


def test_the_second_trainer_is_told_who_holds_the_folder(tmp_path: Path) -> None:
    out, told = tmp_path / "run", rf"run is held by process {os.getpid()} on .*; wait for it, stop it, or"
    out.mkdir()
    with run_folder.holding(out), pytest.raises(Refusal, match=told), run_folder.holding(out):
        raise AssertionError("two hold it")
    (out / "run.yaml").touch()
    with run_folder.holding(out), pytest.raises(Refusal, match=told):
        train(short("reverse", training__steps=2), out)
    (out / "run.yaml").unlink()
    train(short("reverse", training__steps=2), out)
    assert not (out / run_folder.LOCK).exists() and not (out / run_folder.HOLDER).exists()


def test_a_holder_that_does_not_tell_is_another_process(tmp_path: Path) -> None:
    for text in ("", "{}", '{"process": "x", "host": 1}', "[1]"):
        (tmp_path / run_folder.HOLDER).write_text(text)
        assert run_folder.holder(tmp_path) == "another process"


def test_what_is_saved_is_what_was_there_when_it_was_asked_for(tmp_path: Path) -> None:
    weights, progress = torch.zeros(1000), Progress(1)
    with Saver(tmp_path, 2, MADE) as saver:
        for step in range(1, 5):
            weights.fill_(step)
            progress.step = step
            saver.save(progress, {"model": {"a": weights}})
            weights.fill_(-1)
            progress.step = -1
    found = [checkpoint.read_checkpoint(place) for place in checkpoint.all_of(tmp_path)]
    assert [(one.step, float(parts["model"]["a"].mean())) for one, parts in found] == [(3, 3.0), (4, 4.0)]
