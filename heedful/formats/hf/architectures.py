"""What is asked of models, as layouts tell it: by the end of a class's name, with the names of its classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from heedful.formats.foreign_config import Config
from heedful.formats.layout import Layout
from heedful.formats.name_rules import Rule, Same
from heedful.models.heads_asked import NEXT, AskedSpec, word_asked
from heedful.models.part_words import parse

READING = {  # of a class, by the end of its name
    "ForSequenceClassification": "classes",
    "ForTokenClassification": "tags",
    "ForQuestionAnswering": "answer",
}
SEVERAL = "multi_label_classification"
DROPS = ("classifier_dropout", "hidden_dropout")  # the keys of an output's own dropout


class Asked(Layout):
    """The layout of a model that writes, or is asked something else in place of what comes next."""

    stem: ClassVar[str]  # with which the names of its classes begin
    writes: ClassVar[str]  # with which that of one that writes ends
    drops: ClassVar[tuple[str, float]] = ("tags", 0.1)  # the output that has a dropout of its own, and what it is
    answers: ClassVar[Mapping[str, Mapping[str, str]]]  # by output: our names of its tensors, and theirs

    @property
    def ends(self) -> tuple[str, ...]:
        return tuple(end for end, word in READING.items() if word in self.answers)

    def asked(self, config: Config, dropout: float) -> dict[str, Any]:
        """What is asked; nothing is told of a model that writes."""
        end = next((end for end in self.ends if "".join(config.classes()[:1]).endswith(end)), None)
        if end is None:
            return {}
        config.harmless("architectures", *DROPS)
        word = READING[end]
        named = labels(config) if word in ("classes", "tags") else {}
        share = next((config.number(key) for key in DROPS if config.take(key, None) is not None), self.drops[1])
        dropped = word == self.drops[0] and share != dropout
        return named | {"output": f"{word}(dropout={share!r})" if dropped else word}

    def asking(self, spec: AskedSpec) -> dict[str, Any]:
        """The same as a config.json tells it."""
        word = word_asked(spec)
        ends = {one: end for end, one in READING.items()} | {NEXT: self.writes}
        said: dict[str, Any] = {"architectures": [self.stem + ends[word]]}
        if word == self.drops[0]:
            said[DROPS[0]] = parse(spec.output)[1].get("dropout", spec.dropout)
        return said | labels_of(spec)

    def answering(self, spec: AskedSpec) -> list[Rule]:
        """The rules of what answers."""
        return [Same(*names) for names in self.answers.get(word_asked(spec), {}).items()]


def labels(config: Config) -> dict[str, Any]:
    """How many classes there are, their names where somebody has named them, and whether several may hold at once."""
    several = {"multi_label": True} if config.take("problem_type", None) == SEVERAL else {}
    named = config.take("id2label", None)
    if named is None:
        return {"classes": config.whole("num_labels", 2), **several}
    if not isinstance(named, dict) or set(named) != {str(at) for at in range(len(named))}:
        raise config.refusal("id2label", "it should name the classes 0, 1, ...")
    names = [str(named[str(at)]) for at in range(len(named))]
    return {"classes": len(names), "labels": None if names == usual(len(names)) else names, **several}


def usual(count: int) -> list[str]:
    """The names of classes that nobody has named."""
    return [f"LABEL_{at}" for at in range(count)]


def label_maps(names: Sequence[str]) -> dict[str, Any]:
    """Names of classes as a config.json tells them, both ways; of a name twice, such as ImageNet's crane, the last."""
    return {
        "id2label": {str(at): name for at, name in enumerate(names)},
        "label2id": {n: at for at, n in enumerate(names)},
    }


def labels_of(spec: AskedSpec) -> dict[str, Any]:
    """The classes of a spec as a config.json tells them, where it has some."""
    if word_asked(spec) not in ("classes", "tags"):
        return {}
    return label_maps(spec.labels or usual(spec.classes or 0)) | ({"problem_type": SEVERAL} if spec.multi_label else {})
