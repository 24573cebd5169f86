"""Folders are there whole or not at all, and a model reads back as it was written."""

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import nn

import heedful
from heedful.errors import Refusal
from heedful.formats import native
from heedful.safe import sealed_folders
from heedful.safe.mapped_weights import File
from tests.formats.crashes import crash_at, full, listing

FAMILIES = {
    "transformer": {"vocab": 11, "position": "learned"},
    "predictor": {"channels": 2, "classes": 3, "norm": "batch"},
    "forecaster": {"channels": 2},
}


def build(family: str, seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    model = heedful.build(family, width=16, depth=1, heads=2, length=8, **FAMILIES[family])
    for parameter in model.parameters():
        nn.init.normal_(parameter)
    return model


def gpt() -> nn.Module:
    return heedful.build("gpt", vocab=11, width=16, depth=1, heads=2, length=8)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("family", FAMILIES)
def test_a_model_reads_back_bit_for_bit_and_in_its_precision(tmp_path: Path, family: str, dtype: torch.dtype) -> None:
    model = build(family).to(dtype)
    heedful.save(model, tmp_path / "model")
    again = heedful.load(tmp_path / "model")
    ours, theirs = model.state_dict(), again.state_dict()
    assert ours.keys() == theirs.keys() and again.spec == model.spec
    assert all(torch.equal(ours[name], theirs[name]) and ours[name].dtype == theirs[name].dtype for name in ours)
    assert not again.training


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_a_tensor_is_taken_where_every_number_is_finite_and_refused_by_name_elsewhere(
    tmp_path: Path, dtype: Any
) -> None:
    path, cases = tmp_path / "a.safetensors", {}
    for value in (torch.nan, torch.inf, -torch.inf):
        for at in (0, 400_001, -1):
            cases[f"{value} at {at}"] = torch.zeros(2, 300_000, dtype=dtype)
            cases[f"{value} at {at}"].view(-1)[at] = value
    cases["both"] = torch.tensor([torch.inf, -torch.inf], dtype=dtype)
    largest = torch.full((9,), torch.finfo(dtype).max, dtype=dtype)  # whose sum is not finite
    save_file(cases | {"largest": largest, "none": largest[:0], "ids": torch.arange(3)}, path)
    file = File(path)
    assert torch.equal(file.tensor("largest"), largest)
    assert file.tensor("none").numel() == 0 and file.tensor("ids")[2] == 2
    for name in cases:
        with pytest.raises(Refusal, match=f"a.safetensors: tensor '{name}' holds NaN or infinite numbers"):
            file.tensor(name)


def test_tied_weights_are_written_once_and_stay_tied(tmp_path: Path) -> None:
    heedful.save(build("transformer"), tmp_path / "model")
    with safe_open(tmp_path / "model" / "model.safetensors", framework="pt") as file:
        tables = [name for name in file.keys() if file.get_slice(name).get_shape() == [11, 16]]  # noqa: SIM118
    assert tables == ["inputs.table.weight"]
    again = heedful.load(tmp_path / "model")
    assert again.outputs.matrix.weight is again.inputs.table.weight


def test_a_model_is_safetensors_and_json_and_the_same_bytes_every_time(tmp_path: Path) -> None:
    for name in ("one", "other"):
        heedful.save(build("transformer"), tmp_path / name)
    assert set(listing(tmp_path / "one")) == {"spec.json", "model.safetensors", "manifest.json"}
    assert listing(tmp_path / "one") == listing(tmp_path / "other")


def test_a_folder_that_exists_is_never_overwritten(tmp_path: Path) -> None:
    heedful.save(build("transformer", seed=0), tmp_path / "model")
    before = listing(tmp_path)
    with pytest.raises(Refusal, match="exists; choose another folder"):
        heedful.save(build("transformer", seed=1), tmp_path / "model")
    assert listing(tmp_path) == before


@pytest.mark.parametrize("layout", ["heedful", "hf"])
def test_an_empty_folder_is_taken_with_its_permissions_and_a_model_alone_is_overwritten(
    tmp_path: Path, layout: str
) -> None:
    place = tmp_path / "model"
    place.mkdir(mode=0o700)
    (tmp_path / "link").symlink_to("model")
    heedful.save(gpt(), tmp_path / "link", layout)
    heedful.save(gpt(), place, layout, overwrite=True)
    assert place.stat().st_mode & 0o777 == 0o700 and (tmp_path / "link").is_symlink()
    heedful.load(tmp_path / "link")


@pytest.mark.parametrize("also", ["notes.txt", "1_Pooling/mine.json", ".git/config", "checkpoints/step-1/spec.json"])
@pytest.mark.parametrize("name", ["spec.json", None])
def test_no_other_folder_is_overwritten(tmp_path: Path, also: str, name: str | None) -> None:
    for one in filter(None, (name, also)):
        (tmp_path / "folder" / one).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "folder" / one).write_text("{}")
    before = listing(tmp_path)
    with pytest.raises(Refusal, match="a folder of a model alone is overwritten; choose another"):
        heedful.save(build("transformer"), tmp_path / "folder", overwrite=True)
    assert listing(tmp_path) == before


@pytest.mark.parametrize("name", ["config.json", "spec.json", "manifest.json"])
def test_a_folder_whose_files_have_names_as_those_of_a_model_and_no_weights_is_not_overwritten(
    tmp_path: Path, name: str
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / name).write_text("{}")  # as many programs keep their settings
    with pytest.raises(Refusal, match="holds no model, and only a folder of a model alone is overwritten"):
        heedful.save(build("transformer"), tmp_path / "folder", overwrite=True)
    assert (tmp_path / "folder" / name).read_text() == "{}"


def test_the_folder_that_a_program_runs_in_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Refusal, match="cannot be replaced while it is in use"):
        heedful.save(build("transformer"), ".")


def test_what_cannot_be_converted_leaves_no_folder(tmp_path: Path) -> None:
    heedful.save(build("transformer"), tmp_path / "model")
    with pytest.raises(Refusal):
        native.convert(tmp_path / "model", tmp_path / "some" / "where" / "new", "hf")
    assert os.listdir(tmp_path) == ["model"]


POINTS = [(sealed_folders, "save_file", 1), (os, "fsync", 1), (os, "fsync", 3), (Path, "rename", 1)]


@pytest.mark.parametrize(("owner", "name", "call"), POINTS)
def test_a_crash_leaves_no_half_folder(tmp_path: Path, owner: Any, name: str, call: int) -> None:
    place = tmp_path / "my [best] model"  # a name that means something else as a pattern
    with crash_at(owner, name, call):
        heedful.save(build("transformer"), place)
    assert not place.exists()
    (left,) = tmp_path.iterdir()
    left.rename(left.with_name(f".{place.name}.1.aside"))  # of another process
    heedful.save(build("transformer"), place)
    assert os.listdir(tmp_path) == [place.name]  # what the crash had left is gone
    heedful.load(place)


def test_what_was_written_aside_is_removed_when_it_cannot_be_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sealed_folders, "save_file", full)
    with pytest.raises(OSError, match="disk full"):
        heedful.save(build("transformer"), tmp_path / "model")
    assert os.listdir(tmp_path) == []


def test_another_process_may_write_beside(tmp_path: Path) -> None:
    other = tmp_path / ".other.1.aside"
    other.mkdir()
    heedful.save(build("transformer"), tmp_path / "model")
    assert sorted(os.listdir(tmp_path)) == [".other.1.aside", "model"]


def fill(name: str) -> Any:
    return lambda aside: (aside / name).write_text(name)


def test_a_folder_is_replaced_as_a_whole(tmp_path: Path) -> None:
    for name in ("old", "new"):
        sealed_folders.write_folder(tmp_path / "folder", fill(name))
    assert listing(tmp_path) == {"folder/new": b"new"}


@pytest.mark.parametrize(("owner", "name", "call"), [(Path, "rename", 1), (os, "fsync", 2)])
def test_a_crash_before_a_folder_is_replaced_leaves_the_old_one(
    tmp_path: Path, owner: Any, name: str, call: int
) -> None:
    sealed_folders.write_folder(tmp_path / "folder", fill("old"))
    with crash_at(owner, name, call):
        sealed_folders.write_folder(tmp_path / "folder", fill("new"))
    assert listing(tmp_path / "folder") == {"old": b"old"}


def test_a_folder_that_could_not_be_replaced_is_there_as_it_was(tmp_path: Path) -> None:
    sealed_folders.write_folder(tmp_path / "folder", fill("old"))
    with crash_at(Path, "rename", 2):  # after the old one was moved aside
        sealed_folders.write_folder(tmp_path / "folder", fill("new"))
    assert listing(tmp_path / "folder") == {"old": b"old"}


def test_a_folder_that_a_kill_left_aside_is_put_back(tmp_path: Path) -> None:
    sealed_folders.write_folder(tmp_path / "folder", fill("old"))
    (tmp_path / "folder").rename(tmp_path / ".folder.old.aside")
    with pytest.raises(OSError, match="disk full"):
        sealed_folders.write_folder(tmp_path / "folder", full)
    assert listing(tmp_path) == {"folder/old": b"old"}


def test_a_crash_while_a_folder_is_removed_leaves_no_half_of_it(tmp_path: Path) -> None:
    sealed_folders.write_folder(tmp_path / "folder", fill("old"))
    with crash_at(shutil, "rmtree", 2):  # the first makes room aside
        sealed_folders.remove_folder(tmp_path / "folder")
    assert not (tmp_path / "folder").exists()


def test_everything_is_on_the_disk_before_it_gets_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    flush, rename = sealed_folders.flush, Path.rename
    monkeypatch.setattr(sealed_folders, "flush", lambda path: (done.append(path.name), flush(path))[1])
    monkeypatch.setattr(Path, "rename", lambda path, to: (done.append("rename"), rename(path, to))[1])
    sealed_folders.write_folder(tmp_path / "folder", fill("file"))
    assert done == ["file", f".folder.{os.getpid()}.aside", "rename", tmp_path.name]
