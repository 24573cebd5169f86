"""Before the Transformer: recurrent translators without attention and with it beside a Transformer, cells, and steps.

`heedful bench recurrence parts=attention,names seeds=1,2 out=runs/recurrence`: which parts, of which seeds, and where
runs are kept: what is finished there is read, and what was killed goes on. Other keys are those of the translators,
such as `data=toy`. The data are fetched by `heedful data get multi30k` and `heedful data get names`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from heedful.bench.recurrence_runs import Named, Translated, keep, tell_names, translate
from heedful.bench.sequence_steps import measure_steps
from heedful.blocks.recurrent_networks import CELLS
from heedful.errors import Refusal, unknown_word

OUT, SEEDS = "runs/recurrence", "1,2"
LIKE = (  # a Transformer of like size, on the same sub-words
    "data.languages=de-en",
    "data.tokenizer=bpe(size=4000)",
    "data.merge_dropout=0.0",
    "model.size=null",
    "model.width=256",
    "model.depth=2",
    "model.heads=4",
    "model.hidden=768",
    "model.dropout=0.2",
    "training.steps=1500",
    "training.tokens=2048",
    "training.warmup=150",
    "training.graphs=false",
    "training.evaluate_every=500",
    "training.save_every=500",
    "objective.consistency=0.0",
)
TRANSLATORS: dict[str, tuple[str, str, tuple[str, ...]]] = {  # what each is called, its recipe and what is changed
    "plain": ("recurrent", "translate-rnn", ()),
    "attention": ("recurrent with attention", "translate-rnn-attention", ()),
    "transformer": ("Transformer", "translate-multi30k", LIKE),
}
PARTS = (*TRANSLATORS, "names", "steps")
OWN = ("parts", "seeds", "out")
NAME_SEEDS = (1, 2, 3)


def cases(rounds: int, said: Callable[[], object], changes: Sequence[str]) -> Iterator[tuple[Any, str]]:
    """Each part as soon as it is measured."""
    own = dict(change.split("=", 1) for change in changes if change.split("=")[0] in OWN)
    rest = [change for change in changes if change.split("=")[0] not in OWN]
    seeds, out = seeds_of(own.get("seeds", SEEDS)), Path(own.get("out", OUT))
    for part in parts_of(own.get("parts")):
        if part == "steps":
            yield measure_steps(rounds, said), ""
        elif part == "names":
            yield from names(out, [change for change in rest if change.startswith("data=")])
        else:
            yield from translators(part, seeds, out, rest)
        said()


def translators(part: str, seeds: Sequence[int], out: Path, changes: Sequence[str]) -> Iterator[tuple[Translated, str]]:
    """A translator of each seed."""
    called, recipe, own = TRANSLATORS[part]
    for seed in seeds:
        folder = out / f"{part}-{seed}"
        asked = [*([] if "data=toy" in changes else own), f"seed={seed}", *changes]
        make = partial(translate, called, recipe, asked, folder)
        yield keep(out / f"{part}-{seed}.json", Translated, asked, make), ""


def names(out: Path, changes: Sequence[str]) -> Iterator[tuple[Named, str]]:
    """Every cell with every seed."""
    for cell in CELLS:
        for seed in NAME_SEEDS:
            folder, asked = out / f"names-{cell}-{seed}", [f"seed={seed}", *changes]
            make = partial(tell_names, cell, asked, folder)
            yield keep(out / f"names-{cell}-{seed}.json", Named, asked, make), ""


def parts_of(said: str | None) -> list[str]:
    """The parts that are asked for; all of them where none is."""
    asked = list(PARTS) if said is None else [word.strip() for word in said.split(",")]
    for word in asked:
        if word not in PARTS:
            raise unknown_word("part of bench recurrence", word, PARTS)
    return asked


def seeds_of(said: str) -> list[int]:
    """The seeds that are asked for."""
    if not all(word.strip().isdecimal() for word in said.split(",")):
        raise Refusal(f"seeds={said} are no seeds; write, for instance, seeds=1,2")
    return [int(word) for word in said.split(",")]
