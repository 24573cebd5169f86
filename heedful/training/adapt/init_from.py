"""Initial weights (transfer learning): those of another model are taken over where names and shapes fit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from heedful.errors import Refusal
from heedful.formats import TOKENIZER, native
from heedful.formats.weights import state
from heedful.models import FAMILIES, Spec, imagine, part_words
from heedful.models import spec as spec_of
from heedful.models.ensemble import in_member
from heedful.models.heads_asked import CHOICES, NEXT
from heedful.tasks.work import Work
from heedful.training.adapt.freeze_and_lora import OUTPUTS, lies_under, others
from heedful.training.spec.run_spec import RunSpec

LEAST = 0.5  # of the weights, below which it is another model altogether
ADDED = "inputs.letters.weight"  # to any model, which is the same without it
NAMED = 4  # tensors that begin anew and are told by name
SAME = "give this one the same model.width, model.depth and other sizes"
NO_SIZE = ("dropout", "classes", "labels", "vocab", "channels", "mean", "deviation")  # keys of no tensor, or of data
ASKED = ("output", "classes", "labels", "multi_label")  # of a model, which the task says anew


def inherit(run: RunSpec, task: Work) -> dict[str, Any]:
    """The keys of the initial model of a run, without those of its output and its dropout."""
    other = native.load(run.whole_start, check=False)  # as `begin` does
    spec = other.spec
    if not isinstance(spec, Spec) or not vocab_of(other):
        raise Refusal(f"start={run.start} is no model of text; name the folder of one")
    output = part_words.parse(str((task.defaults() | run.model).get("output", NEXT)))[0]
    alone = () if output in CHOICES else ("members",)  # what is asked of one model only
    kept = spec.model_dump(exclude_none=True, exclude={*ASKED, *alone, "dropout"})
    return kept | {"vocab": task.resize_vocab(vocab_of(other))}


def check_tokens(run: RunSpec, task: Work) -> None:
    """Refuses a tokenizer whose tokens are not those for which the initial model has learned embeddings."""
    from heedful.tokenizers import hf_folders

    place, own = native.model_folder(run.whole_start), getattr(task, "tokenizer", None)
    if own is not None and hf_folders.is_there(place) and not own.continues(hf_folders.read_folder(place)):
        cure = "leave data.tokenizer out" if task.inherits else f"set data.tokenizer={place / TOKENIZER}"
        raise Refusal(
            f"start={run.start} has learned other tokens than those of data.tokenizer={run.data.tokens_of}; {cure}, "
            "or leave start out"
        )


@dataclass(frozen=True)
class Begun:
    """What a model has begun with, in words, and the names of what begins anew."""

    said: str = ""
    anew: tuple[str, ...] = ()


@torch.no_grad()
def begin(model: nn.Module, folder: Path) -> Begun:
    """Puts the weights of a run or model folder into a fresh model, and says what was taken and what begins anew."""
    other = native.load(folder)
    own, found = state(model), fitting(model, other)
    sizes = {name: tensor.numel() for name, tensor in own.items() if not name.endswith(ADDED)}
    taken = sum(size for name, size in sizes.items() if name in found) / sum(sizes.values())
    fresh = [name for name in own if name not in found]
    if taken < LEAST:
        data = remedy(model, other, fresh)
        why = f"for it learned from other images; set {data}" if data else f"so it is another model; {SAME}"
        raise Refusal(f"start={folder}: {100 * taken:.0f} % of the weights fit, {why}, or leave start out")
    for name, tensor in found.items():
        own[name].copy_(tensor)
    more = f" and {len(fresh) - NAMED:,} more" if len(fresh) > NAMED else ""
    anew = f"; anew: {', '.join(fresh[:NAMED])}{more}" if fresh else ""
    return Begun(f"{folder} ({len(found):,} of {len(own):,} tensors{anew})", tuple(fresh))


@torch.no_grad()
def begin_parts(model: nn.Module, folders: Mapping[str, str]) -> Begun:
    """Initialises parts of a model from checkpoints: each takes over all of its tensors, or is refused."""
    parts = [key for key, value in model.spec if isinstance(value, Spec)]  # type: ignore[union-attr]
    told = []
    for path, folder in folders.items():
        if path not in parts:
            known = f"start.{' or start.'.join(parts)}" if parts else "start=FOLDER, for its parts have one spec"
            raise Refusal(f"start.{path}={folder}: the model has no such part with a family of its own; give {known}")
        part = model.get_submodule(path)
        found = whole_part(part, path, folder)
        for name, tensor in state(part).items():
            tensor.copy_(found[name])
        told.append(f"{path}: {folder} ({len(found):,} tensors)")
    anew = tuple(name for name in state(model) if not any(lies_under(name, path) for path in folders))
    return Begun("; ".join(told), anew)


def whole_part(part: nn.Module, path: str, folder: str) -> dict[str, Tensor]:
    """All tensors of a part, from a folder's model or one within it; refused with the shapes where one does not fit."""
    if folder.startswith("recipe:"):
        raise Refusal(
            f"start.{path}={folder}: a part begins with a folder; train the recipe first, and name its folder"
        )
    spec: Any = part.spec
    given = {str(dict(one.spec)["family"]): one for one in models_within(native.load(folder))}  # type: ignore[arg-type]
    if spec.family not in given:
        some = " or ".join(reversed(given))
        raise Refusal(f"start.{path}={folder} gives a {some}, and this part is a {spec.family}; name the folder of one")
    other = given[spec.family]
    own, there = state(part), state(other)
    for name, tensor in own.items():
        if name not in there or there[name].shape != tensor.shape:
            shape = list(there[name].shape) if name in there else "not there"
            differ = {key: value for key, value in other.spec if getattr(spec, key) != value}  # type: ignore[union-attr]
            keys = [f"model.{path}.{key}={value}" for key, value in differ.items() if key not in NO_SIZE]
            cure = f"set {' '.join(keys)}" if keys else "name a model of the same data"
            raise Refusal(
                f"start.{path}={folder}: {name} is {shape} there and {list(tensor.shape)} here; {cure}, or leave it out"
            )
    return {name: there[name] for name in own}


def said_start(run: RunSpec) -> str:
    """The pretrained weights that a run begins with, as it names them."""
    return " ".join(f"start.{key}={value}" for key, value in run.part_starts.items()) or f"start={run.whole_start}"


def models_within(model: nn.Module) -> Iterator[nn.Module]:
    """The models that a trained one gives to parts of others: those within it, and itself."""
    for one in FAMILIES[model.spec.family].gives(model):  # type: ignore[union-attr, index]
        yield from models_within(one)
    yield model


def check_learns(run: RunSpec, model: nn.Module, begun: Begun) -> None:
    """Refuses to freeze a weight that was not taken over: it is random, and would never learn."""
    rest = others(model)
    left = {"compare=probe": rest if "probe" in run.compare else [], "training.freeze": run.training.freeze}
    left |= {"training.lora": rest if run.training.lora else []}
    could = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    for key, paths in left.items():
        for name in begun.anew:
            if name in could and any(lies_under(name, path) for path in paths):
                whole = run.whole_start
                data = remedy(model, native.load(whole), begun.anew) if whole else ""
                raise Refusal(
                    f"{said_start(run)}: {name} begins anew, and {key} would leave it as chance made it; "
                    f"{f'set {data}, or ' if data else ''}leave {key} out"
                )


def remedy(model: nn.Module, other: nn.Module, fresh: Sequence[str]) -> str:
    """The keys of the data with which all new weights but the outputs would fit; nothing where there are none."""
    from heedful.models.vision.image_spec import ImageSpec

    own, there = model.spec, other.spec
    names = [name for name in fresh if in_member(name).split(".")[0] not in OUTPUTS]
    if not names or not isinstance(own, ImageSpec) or not isinstance(there, ImageSpec):
        return ""
    shapes = {name: tensor.shape for name, tensor in state(other).items()}
    pixels = there.high if there.high == there.wide else f"[{there.high},{there.wide}]"
    for channels, size in ((True, False), (False, True), (True, True)):
        said = [f"data.channels={there.channels}"] * channels + [f"data.pixels={pixels}"] * size
        keys = ["channels", "mean", "deviation"] * channels + ["high", "wide"] * size
        try:
            made = state(imagine(spec_of(**dict(own) | {key: getattr(there, key) for key in keys})))
        except Refusal:
            continue  # such images are none for this model
        if all(name in made and made[name].shape == shapes.get(name) for name in names):
            return " and ".join(said)
    return ""


def fitting(model: nn.Module, other: nn.Module) -> dict[str, Tensor]:
    """The tensors of another model that fit into a model; tables of positions are resized to its grid."""
    from heedful.attention import ClassTable
    from heedful.inputs import LearnedGrid

    own, there = state(model), state(other)
    # Of several members, the first one's weights.
    there |= {in_member(name): tensor for name, tensor in reversed(there.items()) if in_member(name) != name}
    there |= {name: there[in_member(name)] for name in own if name not in there and in_member(name) in there}
    found = {name: there[name] for name in own if name in there and there[name].shape == own[name].shape}
    for name in own.keys() & there.keys() - found.keys():  # more tokens are known now: those before keep their rows
        rows, (before, *wide) = len(own[name]), there[name].shape
        if rows > before and [*own[name].shape[1:]] == wide and len(there[name]) == vocab_of(other):
            found[name] = torch.cat((there[name], own[name][before:]))
    tables = {path: part for path, part in other.named_modules() if isinstance(part, LearnedGrid | ClassTable)}
    for path, part in model.named_modules():
        if isinstance(part, LearnedGrid | ClassTable) and path in tables and part.fits(tables[path]):
            found[f"{path}.table"] = tables[path].resized(part.shape)
    return found


def vocab_of(model: nn.Module) -> int:
    """How many tokens a model knows; none where it is not of text."""
    known: int = getattr(model.spec, "vocab", None) or 0
    return known
