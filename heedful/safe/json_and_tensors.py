"""Files of a folder, read under the rules of `opening`: JSON, and safetensors."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from torch import Tensor

from heedful.errors import Refusal
from heedful.safe.opening import content, inside
from heedful.safe.plain_data import json_of

LARGEST = 1 << 24  # bytes of a JSON file other than a tokenizer; labels and names are all that can be many in one
PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle", ".joblib", ".npy", ".npz", ".h5", ".keras", ".msgpack")


def read_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors of a safetensors file."""
    described_in(path)
    try:
        with safe_open(path, framework="pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - no mapping
    except (SafetensorError, OSError) as error:
        raise Refusal(f"{path} cannot be read: {error}; copy or train it again") from None


def described_in(path: Path) -> dict[str, Tensor]:
    """The tensors of a safetensors file by name and shape, without their numbers."""
    from heedful.safe.safetensors_header import describe_tensors

    inside(path)
    try:
        return describe_tensors(path)
    except FileNotFoundError:
        raise Refusal(
            f"{path} does not exist, so the folder is not whole; {cure(path.parent) or 'copy or train it again'}"
        ) from None
    except (OSError, ValueError, RecursionError) as error:
        raise Refusal(f"{path} cannot be read: {error}; copy or train it again") from None


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file of a folder."""
    inside(path)
    try:
        value = json_of(content(path, LARGEST).decode("utf-8"))
    except FileNotFoundError:
        raise Refusal(f"{path} does not exist, so the folder is not whole; copy or train it again") from None
    except (OSError, ValueError, RecursionError) as error:
        raise Refusal(f"{path} cannot be read as JSON: {error}; copy or train it again") from None
    if not isinstance(value, dict):
        raise Refusal(f"{path} should hold one JSON object; copy or train it again")
    return value


def cure(folder: Path) -> str:
    """What to do about a model that is not there; where other weights lie there, why those are not read."""
    for name in sorted(os.listdir(folder)) if folder.is_dir() else [folder.name]:
        if name.lower().endswith(PICKLES):
            return (
                f"{name} is never opened, for such files can run code: load it with the tool that wrote it, "
                "and save the weights as safetensors"
            )
    return ""
