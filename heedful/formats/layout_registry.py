"""Public layouts: tables between the names in the files of others and ours, and between their configs and our specs.

A new layout is a file with a `Layout` in hf/, and its line in `LAYOUTS`. `tests/formats/test_names.py` holds the law
that each is a bijection; add configs to be drawn there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import nn

from heedful.errors import Refusal, unknown_word
from heedful.formats.foreign_config import Config
from heedful.formats.layout import Layout
from heedful.formats.weights import state
from heedful.models import Spec, imagine
from heedful.models import spec as spec_of
from heedful.models.canonical import meaning
from heedful.registry import Registry


class Layouts(Registry[Layout]):
    """Layouts by the model_type of a config.json: the one instance of each class."""

    def __getitem__(self, name: str) -> Layout:
        found: Any = super().__getitem__(name)
        if isinstance(found, type):
            found = self.known[name] = found()
        return found


LAYOUTS = Layouts(
    "model_type",
    "heedful.layouts",
    {
        "gpt2": "heedful.formats.hf.gpt:GPT2",
        "llama": "heedful.formats.hf.llama:Llama",
        "mistral": "heedful.formats.hf.llama:Mistral",
        "qwen2": "heedful.formats.hf.llama:Qwen2",
        "qwen3": "heedful.formats.hf.llama:Qwen3",
        "bert": "heedful.formats.hf.bert:Bert",
        "roberta": "heedful.formats.hf.roberta:Roberta",
        "camembert": "heedful.formats.hf.roberta:Camembert",
        "distilbert": "heedful.formats.hf.distilbert:Distilbert",
        "albert": "heedful.formats.hf.albert:Albert",
        "t5": "heedful.formats.hf.t5:T5",
        "bart": "heedful.formats.hf.bart:BART",
        "mbart": "heedful.formats.hf.bart:MBART",
        "marian": "heedful.formats.hf.bart:Marian",
        "pegasus": "heedful.formats.hf.bart:Pegasus",
        "vit": "heedful.formats.hf.vit:Vit",
        "deit": "heedful.formats.hf.vit:Deit",
        "dinov2": "heedful.formats.hf.dinov2:Dinov2",
        "vit_mae": "heedful.formats.hf.mae:Mae",
        "beit": "heedful.formats.hf.beit:Beit",
        "swin": "heedful.formats.hf.swin:HFSwin",
        "resnet": "heedful.formats.hf.resnet:HFResNet",
    },
)
OTHERS: Registry[Callable[[Config], Layout]] = Registry(  # by which a config.json without a model_type is read
    "library", "heedful.libraries", {"timm": "heedful.formats.timm:layout_of"}
)
PUBLISHED: Registry[Callable[[Any], nn.Module]] = Registry(  # how a family becomes one that the layouts can say
    "family",
    "heedful.published",
    {"transformer": "heedful.formats.hf.transformer:as_public_family", "beit": "heedful.formats.hf.beit:without_coder"},
)
BY_DATA = {"vocab", "source_vocab", "classes", "labels", "tasks"}  # keys that nobody can choose


def layout_of(config: Config) -> Layout:
    """The layout that a config.json names."""
    if "model_type" not in config.values and "architecture" in config.values:
        return OTHERS["timm"](config)
    kind = config.word("model_type")
    if kind not in LAYOUTS:
        refused = unknown_word("model_type", kind[:60], LAYOUTS)
        raise Refusal(f"{config.where}: {refused}")
    return LAYOUTS[kind]


def layout_for(spec: Spec) -> tuple[Layout, dict[str, Any]]:
    """The layout in which a spec can be written, and its config; what none can say is refused by name."""
    fitting = [layout for layout in LAYOUTS.values() if layout.suits(spec)]
    if not fitting:
        families = ", ".join(sorted({layout.family for layout in LAYOUTS.values()}))
        if any(layout.family == spec.family for layout in LAYOUTS.values()):
            pool = f"model.pool={getattr(spec, 'pool', None)!r}"
            raise Refusal(f"no layout of Hugging Face's says {pool} of {spec.family!r}; save it in the native layout")
        raise Refusal(f"a model of family {spec.family!r} has no layout of Hugging Face's; these have: {families}")
    faults = {}
    for layout in fitting:
        config = layout.config(spec)
        faults[layout] = lost_fields(layout, spec, config)
        if not faults[layout]:
            return layout, config
    layout, keys = min(faults.items(), key=lambda fault: len(fault[1]))
    said = ", ".join(f"{key}={getattr(spec, key)!r}" for key in keys)
    raise Refusal(
        f"the layout {layout.kind!r} cannot say {said}; {cure(layout, spec, keys)}save it in the native layout"
    )


def cure(layout: Layout, spec: Spec, keys: dict[str, Any]) -> str:
    """With which words a model could be written in a layout, where there are such."""
    if None in keys.values() or BY_DATA & keys.keys():
        return ""
    try:
        other = spec_of(**spec.model_dump() | keys)
        if lost_fields(layout, other, layout.config(other)):
            return ""
    except Refusal:
        return ""
    return f"train it with {' '.join(f'model.{key}={value}' for key, value in keys.items())}, or "


def lost_fields(layout: Layout, spec: Spec, config: dict[str, Any]) -> dict[str, Any]:
    """The keys of a spec that read otherwise from its config, with what they read."""
    own = state(imagine(spec))
    rules = [(rule.filled(name), tensor) for name, tensor in own.items() for rule in layout.table(spec)]
    there = {name: tensor for rule, tensor in rules if rule is not None for name in rule.names}
    try:
        again = spec_of(layout.family, **layout.spec(Config(config, layout.kind), there))
    except Refusal as refused:
        raise Refusal(f"the layout {layout.kind!r} cannot say this model: {refused}") from None
    one, two = meaning(spec), meaning(again)
    return {key: getattr(again, key) for key in one if one[key] != two[key]}
