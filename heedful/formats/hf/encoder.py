"""What the layouts of encoders share: what is asked of them, by the class that wrote them, and the names of classes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from torch import Tensor

from heedful.formats.foreign_config import Config
from heedful.formats.hf.architectures import READING, labels, labels_of
from heedful.formats.hf.config_words import ACTIVATIONS, activation, with_dropout
from heedful.formats.layout import Layout
from heedful.formats.name_rules import Rule, Same, Stacked
from heedful.models.part_words import parse

ASKED = {
    "Model": "states",
    "ForMaskedLM": "masked",
    "ForPreTraining": "masked",
    **READING,
}
CLASSES = {word: end for end, word in reversed(ASKED.items())} | {"pooled": "Model"}
Inside = Mapping[str, str | tuple[str, ...]]
OLDER = {"gamma": "weight", "beta": "bias"}  # of norms, as the first files name them


class Encoder(Layout):
    """The layout of an encoder of text."""

    stem: ClassVar[str]  # with which the names of its classes begin
    numbers: ClassVar[Mapping[str, tuple[str, int]]]  # ours: their key, and what it is where it is not given
    bent: ClassVar[tuple[str, str]]  # the key of the activation, and what it is
    drops: ClassVar[tuple[str, str, float]]  # the keys of dropout and of that of weights, and what they are
    dropping: ClassVar[Mapping[str, str]] = {}  # by output: the key of its own dropout
    share: ClassVar[float | None] = None  # which that is; none: that of the model
    ids: ClassVar[tuple[int | None, int | None, int | None]] = (0, None, None)  # of padding, begin and end
    idle: ClassVar[Sequence[str]] = ()  # keys that nothing is computed with
    inputs: ClassVar[Mapping[str, str]] = {}
    block: ClassVar[tuple[str, str]]  # a block's path, ours and theirs
    inside: ClassVar[Inside]  # and what is in it; several names: one below the other
    outputs: ClassVar[Mapping[str, Mapping[str, str]]]  # by output

    # ------------------------------------------------------------------ config

    def spec(self, config: Config, there: Mapping[str, Tensor]) -> dict[str, Any]:
        config.only("position_embedding_type", "absolute")
        config.harmless(*self.idle)
        drop, weights, usual = self.drops
        pad, begin, end = self.ids
        said: dict[str, Any] = {ours: config.whole(*theirs) for ours, theirs in self.numbers.items()}
        said |= {
            "dropout": config.number(drop, usual),
            "mechanism": with_dropout("softmax", config.number(weights, usual)),
            "feedforward": config.among(self.bent[0], ACTIVATIONS, self.bent[1]),
            "tied": config.flag("tie_word_embeddings", True),
            "pad": config.id("pad_token_id", pad),
            "begin": config.id("bos_token_id", begin),
            "end": config.ids("eos_token_id", end),
        }
        word = self.asked(config, there)
        if word == "masked":
            config.only("tie_word_embeddings", True)
        known = labels(config) if word in ("classes", "tags") else {}
        return said | known | {"output": self.own_dropout(word, config, said["dropout"])}

    def asked(self, config: Config, there: Mapping[str, Tensor]) -> str:
        """The word of the output."""
        known = {self.stem + end: word for end, word in ASKED.items()}
        config.harmless("architectures")
        made = config.classes() or [f"{self.stem}Model"]
        if made[0] not in known:
            raise config.refusal("architectures", f"known: {', '.join(known)}")
        pooled = known[made[0]] == "states" and any(name.startswith(f"{self.prefix}pooler.") for name in there)
        return "pooled" if pooled else known[made[0]]

    def own_dropout(self, word: str, config: Config, usual: float) -> str:
        """The word of an output with its own dropout, where that is another than the model's."""
        key = self.dropping.get(word)
        config.harmless(*self.dropping.values())
        if key is None or config.take(key, self.share) is None:
            return word
        share = config.number(key, self.share)
        return word if share == usual else f"{word}(dropout={share!r})"

    def config(self, spec: Any) -> dict[str, Any]:
        word, given = parse(spec.output)
        drop, weights, _ = self.drops
        said = {theirs: getattr(spec, ours) for ours, (theirs, _) in self.numbers.items()}
        said |= {
            self.numbers["hidden"][0]: spec.hidden or 4 * spec.width,
            "architectures": [self.stem + CLASSES[word]],
            "model_type": self.kind,
            self.bent[0]: activation(spec.feedforward),
            drop: spec.dropout,
            weights: parse(spec.mechanism)[1].get("dropout", 0.0),
            "tie_word_embeddings": spec.tied,
            "pad_token_id": spec.pad,
            "bos_token_id": spec.begin,
            "eos_token_id": spec.end,
        }
        if word in self.dropping:
            said[self.dropping[word]] = given.get("dropout", None if self.share is None else spec.dropout)
        return said | labels_of(spec)

    # ------------------------------------------------------------------ names

    def named(self, names: Iterable[str]) -> dict[str, str]:
        ends = "|".join(OLDER)
        return {
            name: re.sub(rf"(?<=Norm\.)({ends})$", lambda end: OLDER[end[0]], ours)
            for name, ours in super().named(names).items()
        }

    def table(self, spec: Any) -> Sequence[Rule]:
        both = "{kind}"
        made: list[Rule] = [Same(ours, self.prefix + theirs) for ours, theirs in self.inputs.items()]
        here, there = self.block
        for ours, theirs in self.inside.items():
            if isinstance(theirs, str):
                made.append(Same(f"{here}.{ours}.{both}", f"{self.prefix}{there}.{theirs}.{both}"))
            else:
                rows = {f"{self.prefix}{there}.{one}.{both}": spec.width for one in theirs}
                made.append(Stacked(f"{here}.{ours}.{both}", rows))
        return made + [Same(*names) for names in self.outputs.get(parse(spec.output)[0], {}).items()]
