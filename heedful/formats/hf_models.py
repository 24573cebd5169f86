"""Models in the layouts of others: folders as Hugging Face's transformers reads and writes them."""

from __future__ import annotations

import copy
import json
import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor, nn

from heedful.errors import Refusal
from heedful.formats import CONFIG, GENERATION, INDEX, SETTINGS, WEIGHTS, image_processors
from heedful.formats.foreign_config import Config
from heedful.formats.layout import Layout
from heedful.formats.layout_registry import PUBLISHED, layout_for, layout_of
from heedful.formats.name_rules import Rule, rules_of
from heedful.formats.placing import place_weights
from heedful.formats.weights import check_depths, state
from heedful.models import Spec, check_size, imagine
from heedful.models import spec as spec_of
from heedful.models.heads_asked import NEXT, word_asked
from heedful.models.specs import BEGIN, END
from heedful.models.vision.image_spec import ImageSpec
from heedful.safe.json_and_tensors import cure, read_json
from heedful.safe.mapped_weights import Files
from heedful.safe.sealed_folders import write_tensors
from heedful.tokenizers.templates import Ending

ENDS = "Model", "ForPreTraining", "LMHeadModel", "ForCausalLM", "ForConditionalGeneration", "ForImageClassification"
BEGINNINGS = ("decoder_start_token_id", "forced_bos_token_id")  # which older folders have in config.json


def read_model(folder: Path) -> nn.Module:
    """The model of a folder with a config.json. Nothing is executed, and no number is read before all names fit."""
    config = Config(beginnings(folder) | read_json(folder / CONFIG), str(folder / CONFIG))
    layout, files = layout_of(config), weights_of(folder)
    if layout.kind in image_processors.OWN:
        seen = image_processors.read_processor(folder, layout.kind, config.whole("num_channels", 3))
        config = Config({**config.values, **seen}, config.where)
    there = {ours: theirs for theirs, ours in layout.named(files.where).items()}
    described = files.described
    spec = read_spec(layout, config, {name: described[theirs] for name, theirs in there.items()}, ends_of(folder))
    check_depths(spec, len(there), config.where)
    own = state(imagine(spec))
    rules = rules_of(own, layout.table(spec))
    ties = layout.ties(spec)
    compare(layout, rules, own, {name: described[theirs] for name, theirs in there.items()}, ties, str(folder))
    tell_left(layout, spec, rules, there, str(folder))
    check_size(spec)
    check_tied(ties, rules, files, there, str(folder))
    if layout.compared:
        check_constants(layout, spec, files, there, str(folder))
    tensors = {}
    for name, rule in rules.items():
        tensors[name] = rule.read([files.tensor(there[one]) for one in rule.names])
        for one in rule.names if rule.copies else ():
            files.forget(there[one])
    return place_weights(spec, tensors)


def beginnings(folder: Path) -> dict[str, Any]:
    """What answers begin with, where a generation_config.json says it."""
    there = read_json(folder / GENERATION) if os.path.lexists(folder / GENERATION) else {}
    return {key: there[key] for key in BEGINNINGS if there.get(key) is not None}


def weights_of(folder: Path) -> Files:
    """The files that hold a folder's weights: one, or those that an index names."""
    if os.path.lexists(folder / WEIGHTS):
        return Files([folder / WEIGHTS])
    if not os.path.lexists(folder / INDEX):
        raise Refusal(f"{folder} has no {WEIGHTS}; {cure(folder) or 'copy the folder again'}")
    names = read_json(folder / INDEX).get("weight_map")
    if not isinstance(names, dict) or not all(isinstance(name, str) for name in names.values()):
        raise Refusal(f"{folder / INDEX} does not say which tensor is in which file; copy the folder again")
    for name in names.values():
        if Path(name).name != name or not name.endswith(".safetensors") or "\0" in name:
            raise Refusal(f"{folder / INDEX} names {name[:100]!r}, which is no safetensors file of the folder")
    files = Files(folder / name for name in sorted(set(names.values())))
    for name, file in names.items():
        if name not in files.where or files.where[name].path.name != file:
            raise Refusal(f"{folder / file}: tensor {name[:100]!r} is missing, which {INDEX} says is there")
    return files


def ends_of(folder: Path) -> dict[str, Any]:
    """The ids that end a text by the generation_config.json of a folder: where it is there, it knows better."""
    path = folder / GENERATION
    if not os.path.lexists(path):
        return {}
    ends = Config(read_json(path), str(path)).ids("eos_token_id")
    return {} if ends is None else {"end": ends}


def read_spec(
    layout: Layout, config: Config, there: Mapping[str, Tensor], ends: Mapping[str, Any] = MappingProxyType({})
) -> Spec:
    """The spec that a config.json tells of; `ends` are what another file says of the end of a text."""
    values = layout.spec(config, there)
    if "architectures" not in config.read and not all(one.endswith(ENDS) for one in config.classes()):
        known = ", ".join((*ENDS, *layout.ends))
        raise config.refusal("architectures", f"of this family those are read that end in {known}")
    values |= {key: value for key, value in ends.items() if key in values}
    config.finish()
    try:
        return spec_of(layout.family, **values)
    except Refusal as refused:
        raise Refusal(f"{config.where}: {refused}") from None


def compare(
    layout: Layout,
    rules: Mapping[str, Rule],
    own: Mapping[str, Tensor],
    there: Mapping[str, Tensor],
    ties: Mapping[str, str],
    where: str,
) -> None:
    """Refuses a folder whose tensors are not the ones of its config.json, naming the first."""
    wanted = {
        theirs: shape
        for name, rule in rules.items()
        for theirs, shape in zip(rule.names, rule.shapes(tuple(own[name].shape)), strict=True)
    }
    for name in sorted(wanted.keys() - there.keys()):
        raise Refusal(f"{where}: tensor {name!r} is missing; is the config.json of another model?")
    for name in sorted(there.keys() - wanted.keys()):
        if not layout.is_ignored(name) and name not in ties:
            raise Refusal(f"{where}: tensor {name[:100]!r} is unexpected; is the config.json of another model?")
    for name, shape in wanted.items():
        if tuple(there[name].shape) != shape:
            said = f"tensor {name!r} is {list(there[name].shape)}, not {list(shape)}"
            raise Refusal(f"{where}: {said}; is the config.json of another model?")
        if not there[name].is_floating_point():
            raise Refusal(f"{where}: tensor {name!r} holds {there[name].dtype}, which are no weights; copy it again")


def tell_left(layout: Layout, spec: Spec, rules: Mapping[str, Rule], there: Mapping[str, str], where: str) -> None:
    """Warns of tensors that were learned for an output that the model has not: they are lost when it is saved."""
    own = {name for rule in rules.values() for name in rule.names}
    left = sorted({name.rpartition(".")[0] for name in there if layout.is_left(name) and name not in own})
    if left:
        warnings.warn(
            f"{where}: {' and '.join(left)} are left out: {word_asked(spec)!r} is asked without them", stacklevel=4
        )


def check_tied(
    ties: Mapping[str, str], rules: Mapping[str, Rule], files: Files, there: Mapping[str, str], where: str
) -> None:
    """Refuses a tensor that a file holds beside the one that it is tied to, where the two differ."""
    own = {name for rule in rules.values() for name in rule.names}
    for name, other in ties.items():
        if name in there and name not in own:
            one, two = files.tensor(there[name]), files.tensor(there[other])
            same = torch.equal(one, two)
            files.forget(there[name])
            files.forget(there[other])
            if not same:
                raise Refusal(
                    f"{where}: tensors {name!r} and {other!r} differ, and config.json says that they are one; "
                    "set tie_word_embeddings to false in it"
                )


def check_constants(layout: Layout, spec: Spec, files: Files, there: Mapping[str, str], where: str) -> None:
    """Refuses tensors that a layout reckons where a file has others; none larger than the file's is reckoned."""
    with torch.device("meta"):
        shapes = {name: one.shape for name, one in layout.constants(spec).items() if name in there}
    unlike = [name for name, shape in shapes.items() if files.tensor(there[name]).shape != shape]
    reckoned = layout.constants(spec) if shapes and not unlike else {}
    for name in shapes:
        found = files.tensor(there[name]).float()
        if name in unlike or not torch.allclose(found, reckoned.get(name, found), rtol=0, atol=1e-3):
            raise Refusal(f"{where}: tensor {name!r} is not what such a model has in its place; copy the folder again")


def write(model: nn.Module, folder: Path) -> nn.Module:
    """config.json and weights into a folder that exists, so that transformers reads them; gives what was written."""
    assert isinstance(model.spec, Spec)
    if model.spec.family in PUBLISHED:
        model = PUBLISHED[model.spec.family](model)
    model = framing(model)
    assert isinstance(model.spec, Spec)
    layout, config = layout_for(model.spec)
    tensors = layout.constants(model.spec)
    own = state(model)
    for name, rule in rules_of(own, layout.table(model.spec)).items():
        tensors |= zip(rule.names, rule.write(own[name]), strict=True)
    said: dict[str, Any] = config | {"dtype": str(next(iter(own.values())).dtype).removeprefix("torch.")}
    if isinstance(model.spec, ImageSpec):  # others look for the scale of pixels beside config.json alone
        image_processors.write(model.spec, folder)
        said = {key: value for key, value in said.items() if key not in image_processors.PIXELS.values()}
    (folder / CONFIG).write_text(json.dumps(said, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    if word_asked(model.spec) == NEXT and (how := layout.generation(model.spec)):
        (folder / GENERATION).write_text(json.dumps(how, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    write_tensors(tensors, folder / WEIGHTS, {"format": "pt"})
    if getattr(model, "tokenizer", None) is not None:
        (folder / SETTINGS).write_text(json.dumps(settings(model), indent=2) + "\n", encoding="utf-8")
    return model


def framing(model: nn.Module) -> nn.Module:
    """A model that is asked of a text, with a tokenizer of ours, such that others put around it what is read here."""
    tokenizer: Any = getattr(model, "tokenizer", None)
    assert isinstance(model.spec, Spec)
    if word_asked(model.spec) == NEXT or tokenizer is None or not tokenizer.ours:
        return model
    other = copy.copy(model)
    vars(other)["tokenizer"] = Ending(tokenizer, END, BEGIN)
    return other


def settings(model: nn.Module) -> dict[str, Any]:
    """What transformers asks of a tokenizer beside its tokenizer.json: special tokens, and the longest text."""
    tokenizer: Any = model.tokenizer
    names = {at: name for name, at in tokenizer.layout.known.items()}
    ids = {"bos_token": "begin", "eos_token": "end", "pad_token": "pad"}
    named = {theirs: names.get(first(getattr(model.spec, ours, None))) for theirs, ours in ids.items()}
    known = {key: name for key, name in named.items() if name is not None}
    return {"tokenizer_class": tokenizer.theirs, "model_max_length": model.spec.length, **known}  # type: ignore[union-attr]


def first(ids: int | list[int] | None) -> int | None:
    """The first of several ids."""
    return ids[0] if isinstance(ids, list) else ids
