"""`heedful doctor`."""

from __future__ import annotations

import json
import os
import platform
import shutil
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib import metadata
from typing import Annotated

import typer
from packaging.requirements import Requirement

from heedful.terminal import say

EXTRAS = {
    "onnx": "writes models as ONNX (`heedful convert --to onnx`)",
    "hub": "reads models from the Hugging Face hub (`hub:OWNER/NAME`)",
    "arrow": "reads Parquet, Arrow and folders that `datasets` saved",
    "wandb": "logs runs to Weights & Biases (`training.loggers=[wandb]`)",
    "mlflow": "logs runs to MLflow (`training.loggers=[mlflow]`)",
    "bench": "lets `heedful bench` measure other libraries beside heedful",
}
OLDEST = (3, 11)


@dataclass(frozen=True)
class Finding:
    """What was found of one thing: whether it will do, what is there, and what to do where something is missing."""

    name: str
    state: str  # ok, missing (optional) or wrong
    found: str
    cure: str = ""


def doctor(as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False) -> None:
    """Check this machine: Python, torch, GPU, threads, optional parts and data sets, and what to install.

    Status 1 if something that heedful needs is missing; optional parts that are missing are only listed.
    """
    findings = [*python(), *required_packages(), *devices(), *compiler(), *extras(), *data_sets()]
    if as_json:
        say(json.dumps([asdict(one) for one in findings], indent=1))
    else:
        for one in findings:
            say(f"{one.state:8s} {one.name:16s} {one.found}")
            if one.cure:
                say(f"{'':25s} {one.cure}")
    if any(one.state == "wrong" for one in findings):
        raise typer.Exit(1)


def python() -> Iterator[Finding]:
    """The version of Python, and heedful's own."""
    from heedful import __version__

    system = f"{platform.system()} {platform.machine()}"
    yield Finding("heedful", "ok", __version__)
    fine = sys.version_info[:2] >= OLDEST
    cure = "" if fine else "install Python 3.11 or newer, and heedful with it"
    yield Finding("Python", "ok" if fine else "wrong", f"{platform.python_version()} on {system}", cure)


def requirements(extra: str = "") -> list[Requirement]:
    """What the installed package asks for: always, or for one of its extras."""
    try:
        said = map(Requirement, metadata.requires("heedful") or ())
    except metadata.PackageNotFoundError:  # it runs from its source, and what is there is there
        return []
    if extra:
        return [one for one in said if one.marker and one.marker.evaluate({"extra": extra}) and not always(one)]
    return [one for one in said if always(one)]


def always(one: Requirement) -> bool:
    """Whether a requirement belongs to no extra."""
    return one.marker is None or one.marker.evaluate({"extra": ""})


def lacking(asked: list[Requirement]) -> list[str]:
    """Those of some requirements that are not met, with the version that is there."""
    found = []
    for one in asked:
        try:
            version = metadata.version(one.name)
        except metadata.PackageNotFoundError:
            found.append(str(one.name))
            continue
        if not one.specifier.contains(version, prereleases=True):
            found.append(f"{one.name}{one.specifier} (here: {version})")
    return found


def required_packages() -> Iterator[Finding]:
    """The packages without which heedful does not run."""
    if asked := requirements():
        gone = lacking(asked)
        cure = "pip install --upgrade heedful" if gone else ""
        found = f"not met: {', '.join(gone)}" if gone else f"all {len(asked)} are installed"
        yield Finding("requirements", "wrong" if gone else "ok", found, cure)


def devices() -> Iterator[Finding]:
    """Torch, the GPUs that it sees, and the threads that it uses."""
    try:
        import torch
    except ImportError as error:
        yield Finding("torch", "wrong", str(error), "pip install torch")
        return
    built = f"built for CUDA {torch.version.cuda}" if torch.version.cuda else "built for CPUs"
    yield Finding("torch", "ok", f"{torch.__version__}, {built}")
    for at in range(torch.cuda.device_count()):
        card = torch.cuda.get_device_properties(at)
        yield Finding(f"GPU {at}", "ok", f"{card.name}, {card.total_memory / 2**30:.0f} GiB")
    if not torch.cuda.is_available():
        driver = shutil.which("nvidia-smi") is not None
        cure = "install a build of torch for CUDA (pytorch.org, Get Started), and check the driver with nvidia-smi"
        found = "none that torch can use" if driver else "none found; everything runs on the CPU"
        yield Finding("GPU", "missing", found, cure if driver else "")
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count()
    named = os.environ.get("OMP_NUM_THREADS")
    why = f", as OMP_NUM_THREADS={named} says" if named else ""
    yield Finding("threads", "ok", f"{torch.get_num_threads()} on {cores} cores{why}; training.threads=N sets others")


def compiler() -> Iterator[Finding]:
    """A C++ compiler, with which text is written faster on a CPU."""
    from heedful.engines.gemv import find_compiler

    if found := find_compiler():
        yield Finding("C++ compiler", "ok", f"{found}: text is written faster on a CPU")
    else:
        yield Finding("C++ compiler", "missing", "writing text on a CPU takes torch's slower product", "install g++")


def extras() -> Iterator[Finding]:
    """The extras, and what each is for."""
    for extra, use in EXTRAS.items():
        gone = lacking(requirements(extra))
        cure = f'pip install "heedful[{extra}]"'
        found = f"{use}; not installed: {', '.join(gone)}" if gone else use
        yield Finding(f"extra {extra}", "missing" if gone else "ok", found, cure if gone else "")


def data_sets() -> Iterator[Finding]:
    """The public data sets that are here."""
    from heedful.data.public.catalogue import PUBLIC
    from heedful.data.public.download import home
    from heedful.errors import Refusal

    for name in PUBLIC:
        try:
            yield Finding(f"data {name}", "ok", str(home(name)))
        except Refusal:
            yield Finding(f"data {name}", "missing", "not here", f"heedful data get {name}")
