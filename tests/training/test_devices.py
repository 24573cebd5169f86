"""Devices: each is asked for by its name, refused where it is not there, and threads are no more than may run."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from heedful.decoding.sample import draw
from heedful.errors import Refusal
from heedful.models.numerics import exact
from heedful.training import devices
from heedful.training.distributed import ranks
from heedful.training.precision import Precision
from heedful.training.spec.training_spec import TrainingSpec


@pytest.fixture
def two_gpus(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A machine with two GPUs, as far as torch is asked about them; gives those that were made the current one."""
    current: list[int] = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "set_device", current.append)
    return current


def test_the_second_gpu_is_taken_and_made_the_current_one(two_gpus: list[int]) -> None:
    assert devices.device("cuda:1") == torch.device("cuda", 1) and two_gpus == [1]
    assert devices.device("cuda") == torch.device("cuda") and devices.device() == torch.device("cuda")


@pytest.mark.usefixtures("two_gpus")
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("cuda:2", "--device cuda:2 was asked for, and the last of 2 is cuda:1"),
        ("cuda:one", "write cpu, cuda, cuda:1 or mps"),
        ("cpu:1", "write cpu, cuda, cuda:1 or mps"),
        ("mps", "no Mac with a GPU of Apple's"),
        ("gpu", "unknown device 'gpu'"),
    ],
)
def test_a_device_that_is_not_there_is_refused(name: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    with pytest.raises(Refusal, match=said):
        devices.device(name)


def test_a_gpu_of_apples_computes_in_what_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    place = devices.device("mps")
    assert place.type == "mps" and devices.name_of(place) == "GPU of Apple's"
    assert Precision(TrainingSpec(steps=1, batch=1), place).dtype == torch.float32
    for dtype in ("float16", "float64", "tf32"):
        with pytest.raises(Refusal, match=f"training.dtype={dtype} is not for a GPU of Apple's"):
            Precision(TrainingSpec(steps=1, batch=1, dtype=dtype), place)


def test_what_is_exact_is_in_float64_and_drawn_tokens_lie_where_the_scores_do() -> None:
    assert exact(torch.ones(2, dtype=torch.bfloat16)).dtype == torch.float64
    assert draw(torch.tensor([[0.0, 50.0]]), torch.tensor([0.5])).tolist() == [1]


def test_one_gpu_for_several_processes_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranks, "is_launched", lambda: True)
    with pytest.raises(Refusal, match="each of several processes has a GPU of its own, and not cuda:1"):
        ranks.own_device(torch.device("cuda", 1))


@pytest.mark.parametrize(
    ("quota", "cores"), [("250000 100000", 2), ("50000 100000", 1), ("max 100000", None), ("-1", None), ("400000", 4)]
)
def test_a_container_uses_as_many_threads_as_it_may(quota, cores, tmp_path, monkeypatch):
    (tmp_path / "cpu.max").write_text(f"{quota}\n")
    chosen: list[int] = []
    monkeypatch.setattr(devices, "QUOTAS", (tmp_path / "none", tmp_path / "cpu.max"))
    monkeypatch.setattr(torch, "get_num_threads", lambda: 64)
    monkeypatch.setattr(torch, "set_num_threads", chosen.append)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    devices.device("cpu")
    assert chosen == ([] if cores is None else [cores])
    monkeypatch.setenv("OMP_NUM_THREADS", "7")  # whoever said how many has the say
    devices.device("cpu")
    assert len(chosen) == (cores is not None)


def test_threads_that_wait_sleep_where_torch_is_loaded_after_heedful() -> None:
    found = importlib.util.find_spec("torch")
    assert found is not None and found.origin is not None
    libraries = [str(path) for path in Path(found.origin).parent.glob("lib/lib*omp*") if "gomp" in path.name]
    if not libraries:  # another system, whose OpenMP tells its settings in other words
        pytest.skip("torch brings no libgomp here")
    told = {**os.environ, "OMP_DISPLAY_ENV": "TRUE", "PYTHONPATH": os.pathsep.join(sys.path)}
    told.pop("OMP_WAIT_POLICY", None)
    program = f"import heedful, ctypes; ctypes.CDLL({libraries[0]!r})"
    for said, more in (("PASSIVE", {}), ("ACTIVE", {"OMP_WAIT_POLICY": "ACTIVE"})):
        words = [sys.executable, "-c", program]
        done = subprocess.run(words, env=told | more, capture_output=True, text=True, check=True)
        assert f"OMP_WAIT_POLICY = '{said}'" in done.stderr
