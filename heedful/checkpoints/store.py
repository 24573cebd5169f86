"""The store: models as folders, in our own layout or in another's. Nothing in a folder is executed."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from heedful.checkpoints import public
from heedful.checkpoints.files import write_folder, write_tensors
from heedful.checkpoints.mapped import Files
from heedful.checkpoints.opening import inside
from heedful.checkpoints.placing import placed
from heedful.checkpoints.reading import cure, read_json
from heedful.checkpoints.weights import check_depths, compare, state
from heedful.errors import Refusal, unknown
from heedful.models import Spec, assemble, check_size
from heedful.models import spec as spec_of

if TYPE_CHECKING:
    from heedful.text import Tokenizer

WEIGHTS, SPEC, TOKENIZER = "model.safetensors", "spec.json", "tokenizer.json"


def write_model(model: nn.Module, folder: Path) -> None:
    """Spec and weights into a folder that exists."""
    assert isinstance(model.spec, Spec)
    (folder / SPEC).write_text(model.spec.model_dump_json(indent=1) + "\n", encoding="utf-8")
    write_tensors(state(model), folder / WEIGHTS)


LAYOUTS: dict[str, Callable[[nn.Module, Path], None]] = {"heedful": write_model, "hf": public.write}


def save(model: nn.Module, folder: str | Path, layout: str = "heedful") -> None:
    """Writes a model to a new folder, whole or not at all: in our own layout, or as Hugging Face's (`layout="hf"`)."""
    if layout not in LAYOUTS:
        raise unknown("layout", layout, LAYOUTS)
    if Path(folder).exists():
        raise Refusal(f"{folder} exists; choose another folder or remove it first")
    write_folder(Path(folder), lambda aside: LAYOUTS[layout](model, aside))


def model_folder(folder: str | Path) -> Path:
    """The folder itself or the `model/` in it, whichever holds a model."""
    folder = Path(folder)
    if os.path.lexists(folder / SPEC) or public.is_public(folder):
        return folder
    if os.path.lexists(folder / "model" / SPEC):
        return inside(folder / "model")
    if not folder.exists():
        raise Refusal(f"{folder} does not exist; name a run folder or the model/ in it")
    known = "name a run folder or the model/ in it, or finish the run with --resume"
    raise Refusal(f"{folder} holds no model; {cure(folder) or known}")


def load(folder: str | Path) -> nn.Module:
    """The model of a folder, ready to be asked, with the `tokenizer` that lies there.

    The folder is one of a run, the `model/` in it, or one in the layout of Hugging Face's transformers. Weights stay in
    their file until they are used, so that memory holds them once.
    """
    place = model_folder(folder)
    model = native(place) if os.path.lexists(place / SPEC) else public.read(place)
    if os.path.lexists(place / TOKENIZER):
        vars(model)["tokenizer"] = Beside(place / TOKENIZER)
    return model.eval()


def native(place: Path) -> nn.Module:
    """The model of a folder in our own layout."""
    spec, files = read_spec(place / SPEC), Files([place / WEIGHTS])
    check_depths(spec, len(files.where), str(place / SPEC))
    with torch.device("meta"):  # names and shapes, before any memory is asked for
        compare(state(assemble(spec)), files.described, str(place / WEIGHTS))
    check_size(spec)
    return placed(spec, {name: files.tensor(name) for name in files.where})


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
