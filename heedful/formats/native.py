"""The store: models as folders, in our own layout or in another's. Nothing in a folder is executed."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import nn

from heedful.errors import Refusal
from heedful.formats import CARD, CONFIG, GENERATION, GRAPHS, PROCESSOR, SAMPLE, SETTINGS, SPEC, TOKENIZER, WEIGHTS
from heedful.formats.weights import check_depths, compare, state
from heedful.models import Spec, check_size, imagine, spec_as_written
from heedful.registry import Registry
from heedful.safe.json_and_tensors import LARGEST, cure, read_json
from heedful.safe.opening import content, everything, inside
from heedful.safe.sealed_folders import MANIFEST, fault, seal, write_folder, write_tensors

if TYPE_CHECKING:
    from heedful.tokenizers import Tokenizer

CARRIED = (CARD, "task.json", "modules.json", "sentence_bert_config.json", "1_Pooling/config.json")
CHECK = "HEEDFUL_CHECK"  # in the environment: 0 leaves the sums of models out
HEADS = {SPEC, CONFIG, *GRAPHS}  # one of which every model has
WRITTEN = HEADS | {f"{name}.data" for name in GRAPHS} | {WEIGHTS, TOKENIZER, MANIFEST, *CARRIED, "1_Pooling"}
WRITTEN |= {SETTINGS, GENERATION, PROCESSOR, SAMPLE}
LAYOUTS: Registry[Callable[[nn.Module, Path], nn.Module]] = Registry(
    "layout",
    "heedful.folders",
    {
        "heedful": "heedful.formats.native:write_model",
        "hf": "heedful.formats.hf_models:write",
        "onnx": "heedful.formats.onnx:write",
    },
)


def write_model(model: nn.Module, folder: Path) -> nn.Module:
    """Spec and weights into a folder that exists; gives the model as it was written."""
    assert isinstance(model.spec, Spec)
    (folder / SPEC).write_text(model.spec.model_dump_json(indent=1) + "\n", encoding="utf-8")
    write_tensors(state(model), folder / WEIGHTS)
    return model


def save(model: nn.Module, folder: str | Path, layout: str = "heedful", overwrite: bool = False) -> None:
    """Writes a model to a new or empty folder, whole or not at all; with `overwrite` in the place of another model.

    `layout` is our own, "hf" for Hugging Face's, or "onnx".
    """
    LAYOUTS.named(layout)
    if not isinstance(getattr(model, "spec", None), Spec):
        cure = "save its weights with safetensors.torch.save_model"
        raise Refusal(f"a {type(model).__name__} is no model of heedful's, which nothing could read again; {cure}")

    def write(aside: Path) -> None:
        fill(model, aside, layout)
        finish(aside)

    write_folder(vacant(folder, overwrite), write)


def vacant(folder: str | Path, overwrite: bool = False) -> Path:
    """Where a new model goes; refused where something else is: all but an empty folder, or a model to `overwrite`."""
    place = Path(folder).resolve()
    if not place.exists():
        return place
    if not place.is_dir():
        raise Refusal(f"{folder} is a file; choose another folder")
    names = {str(path.relative_to(place)) for path in everything(place)}
    if names and not overwrite:
        raise Refusal(f"{folder} exists; choose another folder or remove it first")
    whole = names & set(GRAPHS) or (WEIGHTS in names and names & HEADS)
    if names - WRITTEN or (names and not whole):
        other = min(names - WRITTEN, default="no model")
        raise Refusal(f"{folder} holds {other}, and only a folder of a model alone is overwritten; choose another")
    if place == Path.cwd() or place.is_mount():
        raise Refusal(f"{folder} cannot be replaced while it is in use; name a folder that is not there yet")
    return place


def fill(model: nn.Module, folder: Path, layout: str) -> nn.Module:
    """A model in a layout, and its tokenizer, into a folder that exists; gives the model as it was written."""
    written = LAYOUTS.named(layout)(model, folder)
    tokenizer: Any = getattr(written, "tokenizer", None)
    if tokenizer is not None:
        tokenizer.write(folder / TOKENIZER)
    return written


def convert(source: str | Path, folder: str | Path, layout: str) -> tuple[str, int]:
    """Writes the model of a folder to a new one in another layout; gives its kind there and how many weights it has."""
    LAYOUTS.named(layout)
    if any(os.path.lexists(model_folder(source) / name) for name in GRAPHS):
        raise Refusal(f"{source} holds ONNX graphs, which are not read back; convert the folder that they were made of")
    if layout == ("heedful" if is_native(model_folder(source)) else "hf"):
        raise Refusal(f"{source} is in the layout {layout!r} already; copy the folder, or give another --to")
    place = vacant(folder)
    model, count = load(source), 0

    def write(aside: Path) -> None:
        nonlocal count
        count = weights(fill(model, aside, layout))
        if count == weights(model):  # one that a part was left out of is no longer used so
            carry(model_folder(source), aside)
        finish(aside)

    write_folder(place, write)
    assert isinstance(model.spec, Spec)
    kind = read_json(place / CONFIG)["model_type"] if layout == "hf" else model.spec.family
    return str(kind), count


def finish(folder: Path) -> None:
    """Seals a folder in our own layout; those in others' are for tools that know nothing of manifests."""
    if is_native(folder):
        seal(folder, without=[CARD])


def check_sums(place: Path, *only: str) -> None:
    """Refuses a folder whose files, or `only` some of them, are not as its manifest says; older ones have none."""
    if is_native(place) and os.path.lexists(place / MANIFEST) and os.environ.get(CHECK) != "0":
        said = fault(place, only)
        if said:
            cure = f"copy or train it again, or remove {place / MANIFEST} if you changed it on purpose"
            raise Refusal(f"{place}: {said}; {cure}")


def weights(model: nn.Module) -> int:
    """How many weights a model has."""
    return sum(parameter.numel() for parameter in model.parameters())


def carry(source: Path, folder: Path) -> None:
    """Takes along what says how a model is used: the files are the same in every layout."""
    for name in CARRIED:
        if os.path.lexists(source / name):
            inside((source / name).parent)
            (folder / name).parent.mkdir(exist_ok=True)
            try:
                data = content(inside(source / name), LARGEST)
            except (OSError, ValueError) as error:
                raise Refusal(f"{source / name} cannot be read: {error}; copy it again") from None
            (folder / name).write_bytes(data)


def is_native(place: Path) -> bool:
    """Whether a folder has a spec.json, as our own do."""
    return os.path.lexists(place / SPEC)


def is_public(place: Path) -> bool:
    """Whether a folder has a config.json, as those of others do."""
    return os.path.lexists(place / CONFIG)


def model_folder(folder: str | Path) -> Path:
    """The folder itself or the `model/` in it, whichever holds a model."""
    from heedful.formats import hub

    folder = hub.snapshot(str(folder)) if hub.is_named(folder) else Path(folder)
    if os.path.lexists(folder / SPEC) or is_public(folder):
        return folder
    if os.path.lexists(folder / "model" / SPEC):
        return inside(folder / "model")
    if not folder.exists():
        raise Refusal(f"{folder} does not exist; name a run folder or the model/ in it")
    if not folder.is_dir():
        raise Refusal(f"{folder} is a file; name a run folder or the model/ in it")
    known = "name a run folder or the model/ in it, or finish the run with --resume"
    raise Refusal(f"{folder} holds no model; {cure(folder) or known}")


def load(folder: str | Path, check: bool = True) -> nn.Module:
    """The model of a folder, ready to be asked, with the `tokenizer` that lies there.

    The folder is one of a run, the `model/` in it, or one in the layout of Hugging Face's transformers; the hub's is
    named by `hub:owner/name`. Weights stay in their file until they are used, so that memory holds them once. Files of
    our own layout are first read once to `check` their sums, which HEEDFUL_CHECK=0 in the environment leaves out too.
    """
    from heedful.formats import hf_models
    from heedful.tokenizers import hf_folders

    place = model_folder(folder)
    if check:
        check_sums(place)
    if any(os.path.lexists(place / name) for name in GRAPHS):
        from heedful.formats.onnx_runner import read_graphs

        model = read_graphs(place, read_spec(place / SPEC))
    else:
        model = native(place) if is_native(place) else hf_models.read_model(place)
    if hf_folders.is_there(place):
        vars(model)["tokenizer"] = Beside(place)
    return model.eval()


def native(place: Path) -> nn.Module:
    """The model of a folder in our own layout."""
    from heedful.formats.placing import place_weights
    from heedful.safe.mapped_weights import Files

    spec, files = read_spec(place / SPEC), Files([place / WEIGHTS])
    check_depths(spec, len(files.where), str(place / SPEC))
    compare(state(imagine(spec)), files.described, str(place / WEIGHTS))  # before any memory is asked for
    check_size(spec)
    return place_weights(spec, {name: files.tensor(name) for name in files.where})


class Beside:
    """The tokenizer that lies beside a model, read when it is first used: weights are read where it is broken too."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @cached_property
    def read(self) -> Tokenizer:
        """The tokenizer itself."""
        from heedful.tokenizers import hf_folders

        return hf_folders.read_folder(self.folder)

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
        return spec_as_written(values)
    except Refusal as refused:
        raise Refusal(f"{path}: {refused}") from None
