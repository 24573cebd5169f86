"""The native store: a model as safetensors and JSON. Nothing in a folder is executed."""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from heedful.checkpoints.files import write_folder, write_tensors
from heedful.checkpoints.header import described
from heedful.checkpoints.opening import content, inside
from heedful.checkpoints.plain import json_of
from heedful.errors import Refusal
from heedful.models import Spec, assemble, check_size, depths
from heedful.models import spec as spec_of

if TYPE_CHECKING:
    from heedful.text import Tokenizer

WEIGHTS, SPEC, TOKENIZER = "model.safetensors", "spec.json", "tokenizer.json"
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
    """What tensors a safetensors file of a folder holds, without their numbers."""
    inside(path)
    try:
        return described(path)
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


def state(model: nn.Module) -> dict[str, Tensor]:
    """A model's weights by name, tied ones once."""
    tensors: dict[str, Tensor] = {}
    known: set[tuple[int, tuple[int, ...]]] = set()
    for name, tensor in model.state_dict(keep_vars=True).items():
        if (id(tensor), tuple(tensor.shape)) not in known:
            known.add((id(tensor), tuple(tensor.shape)))
            tensors[name] = tensor.detach()
    return tensors


def restore(model: nn.Module, tensors: dict[str, Tensor], where: str) -> None:
    """Puts weights into a model; one that is missing, unexpected or of another shape is named."""
    own = state(model)
    compare(own, tensors, where)
    with torch.no_grad():
        for name, tensor in own.items():
            tensor.copy_(tensors[name])


def compare(own: dict[str, Tensor], tensors: dict[str, Tensor], where: str) -> None:
    """Refuses tensors that are not the ones of a model."""
    for name in sorted(own.keys() ^ tensors.keys()):
        fault = "missing" if name in own else "unexpected"
        raise Refusal(f"{where}: tensor {name!r} is {fault}; is it of another spec?")
    for name, tensor in own.items():
        shape, wanted = list(tensors[name].shape), list(tensor.shape)
        if shape != wanted:
            raise Refusal(f"{where}: tensor {name!r} is {shape}, not {wanted}; is it of another spec?")
        kinds = tensors[name].dtype, tensor.dtype
        if kinds[0] != kinds[1] and not all(kind.is_floating_point for kind in kinds):
            raise Refusal(f"{where}: tensor {name!r} holds {kinds[0]}, not {kinds[1]}; is it of another spec?")


def write_model(model: nn.Module, folder: Path) -> None:
    """Spec and weights into a folder that exists."""
    assert isinstance(model.spec, Spec)
    (folder / SPEC).write_text(model.spec.model_dump_json(indent=1) + "\n", encoding="utf-8")
    write_tensors(state(model), folder / WEIGHTS)


def save(model: nn.Module, folder: str | Path) -> None:
    """Writes a model's spec and weights to a new folder, whole or not at all."""
    if Path(folder).exists():
        raise Refusal(f"{folder} exists; choose another folder or remove it first")
    write_folder(Path(folder), lambda aside: write_model(model, aside))


def model_folder(folder: str | Path) -> Path:
    """The folder itself or the `model/` in it, whichever holds a model."""
    folder = Path(folder)
    if os.path.lexists(folder / SPEC):
        return folder
    if os.path.lexists(folder / "model" / SPEC):
        return inside(folder / "model")
    if not folder.exists():
        raise Refusal(f"{folder} does not exist; name a run folder or the model/ in it")
    known = "name a run folder or the model/ in it, or finish the run with --resume"
    raise Refusal(f"{folder} holds no model; {cure(folder) or known}")


def load(folder: str | Path) -> nn.Module:
    """The model of a run folder or of the `model/` in it, ready to be asked, with the `tokenizer` of its folder."""
    place = model_folder(folder)
    spec, there = read_spec(place / SPEC), described_in(place / WEIGHTS)
    for key, depth in depths(spec).items():
        if depth > len(there):
            raise Refusal(f"{place / SPEC}: {len(there)} tensors are too few for {key} {depth}; mend the spec")
    with torch.device("meta"):  # names and shapes, before any memory is asked for
        compare(state(assemble(spec)), there, str(place / WEIGHTS))
    check_size(spec)
    tensors = read_tensors(place / WEIGHTS)
    model = assemble(spec).to(dtype_of(tensors))
    restore(model, tensors, str(place / WEIGHTS))
    if os.path.lexists(place / TOKENIZER):
        vars(model)["tokenizer"] = Beside(place / TOKENIZER)
    return model.eval()


class Beside:
    """The tokenizer that lies beside a model, read when it is first used: weights are read where it is broken too."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @cached_property
    def read(self) -> Tokenizer:
        """The tokenizer itself."""
        from heedful.text import Tokenizer

        return Tokenizer.read(inside(self.path))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # what copying asks of every object
            raise AttributeError(name)
        return getattr(self.read, name)

    def __len__(self) -> int:
        return len(self.read)


def read_spec(path: Path) -> Spec:
    """The spec that a `spec.json` holds."""
    values = read_json(path)
    try:
        return spec_of(**{"family": None, **values})
    except Refusal as refused:
        raise Refusal(f"{path}: {refused}") from None


def dtype_of(tensors: dict[str, Tensor]) -> torch.dtype:
    """The precision in which weights were written, so that a model reads back as it was."""
    kinds = {tensor.dtype for tensor in tensors.values() if tensor.is_floating_point()}
    return kinds.pop() if len(kinds) == 1 else torch.get_default_dtype()
