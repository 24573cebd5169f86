"""Do kinds of attention learn? Long Range Arena's ListOps with each, beside the paper's scores and the majority class.

`heedful bench listops kinds=softmax,linear seconds=300 training.steps=2000`: which kinds, the most seconds that each
learns for, and any key of the recipe `listops`. `data=cifar10-pixels` is the paper's task Image.
"""

from __future__ import annotations

import re
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from heedful.data.readers.labelled_sequences import MADE, PIXELS
from heedful.data.readers.word_sequences import ListOps, Pixels
from heedful.errors import Failure, Refusal, short_of_memory, unknown_word
from heedful.formats.weights import restore
from heedful.models import attention_kinds, part_words
from heedful.training.devices import device, name_of
from heedful.training.loop import Loop
from heedful.training.prepare import Ready, prepare
from heedful.training.record import Record
from heedful.training.spec import recipes

LENGTHS = (MADE, 501, 1999)  # of the paper's expressions
SECONDS = 600.0  # of learning, for each kind
CHOSEN = {  # sizes for two thousand positions, near those of the paper's own code
    "softmax": "softmax",
    "blocks": "blocks(size=64)",
    "window": "window(size=128)",
    "strided": "strided(size=64)",
    "fixed": "fixed(size=64, summary=4)",
    "longformer": "longformer(size=128)",
    "bigbird": "bigbird(size=64)",
    "local": "local(size=64)",
    "axial": "axial(size=32)",
    "reformer": "reformer",
    "routing": "routing(clusters=32)",
    "sinkhorn": "sinkhorn(size=64)",
    "linear": "linear",
    "performer": "performer(features=256)",
    "dpfp": "dpfp",
    "linformer": "linformer(rank=256)",
    "nystromformer": "nystromformer(landmarks=128)",
    "synthesizer_dense": "synthesizer_dense",
    "synthesizer_random": "synthesizer_random",
    "synthesizer_factorised": "synthesizer_factorised(rank=32)",
    "talking_heads": "talking_heads",
}
# Test accuracy of Tay et al. (2021), "Long Range Arena", in per cent: ListOps and Image. Its local attention is blocks,
# its Sparse Transformer is strided, its Synthesizer is the dense one.
PAPER = {
    "softmax": (36.37, 42.44),
    "blocks": (15.82, 41.46),
    "linear": (16.13, 42.34),
    "reformer": (37.27, 38.07),
    "strided": (17.07, 44.24),
    "sinkhorn": (33.67, 41.23),
    "linformer": (35.70, 38.56),
    "performer": (18.01, 42.77),
    "synthesizer_dense": (36.99, 41.61),
    "longformer": (35.63, 42.22),
    "bigbird": (36.05, 40.83),
}


@dataclass(frozen=True)
class Learned:
    """The result of one kind: its accuracy on unseen sequences, and the time and memory that it took."""

    word: str
    data: str
    seed: int
    accuracy: float | None  # of the weights that were best on validation; none where it could not learn
    majority: float  # the share of the commonest class
    paper: float | None
    steps: int
    seconds: float
    where: str
    why: str = ""

    def table(self, base: str) -> str:
        """A line for people."""
        score = f"{100 * self.accuracy:6.2f} %" if self.accuracy is not None else f"none: {self.why}"
        paper = "   -  " if self.paper is None else f"{self.paper:6.2f}"
        return (
            f"{self.word:34s} {score}   paper {paper}   majority {100 * self.majority:.2f}   "
            f"{self.steps:,} steps in {self.seconds:,.0f} s on {self.where}, seed {self.seed}, {self.data}"
        )

    def to_json(self, base: str) -> dict[str, Any]:
        """The same as JSON's own types."""
        return {"case": self.word, **asdict(self)}


class Timed(Loop):
    """A loop that also ends when its seconds are over."""

    until = float("inf")

    def done(self) -> bool:
        return super().done() or time.monotonic() >= self.until


def cases(rounds: int, said: Callable[[], object], changes: Sequence[str]) -> Iterator[tuple[Learned, str]]:
    """Each kind as soon as it has learned."""
    own = dict(change.split("=", 1) for change in changes if change.startswith(("kinds=", "seconds=")))
    rest = [change for change in changes if not change.startswith(("kinds=", "seconds="))]
    if any(change.startswith("model.mechanism=") for change in rest):
        raise Refusal("bench listops asks kinds one by one; write kinds=linear in the place of model.mechanism=linear")
    for word in select_words(own.get("kinds")):
        yield learn_kind(word, seconds_of(own.get("seconds", str(SECONDS))), rest), ""
        said()


def select_words(said: str | None) -> list[str]:
    """The words of the kinds that are asked for, names among them with their sizes; all of CHOSEN where none is."""
    asked = list(CHOSEN) if said is None else [word.strip() for word in re.split(r",(?![^(]*\))", said)]
    known = [name for name, kind in attention_kinds.every().items() if kind.key == "model.mechanism"]
    for word in asked:
        if part_words.parse(word)[0] not in known:
            raise unknown_word("kind of attention", part_words.parse(word)[0], known)
    return [CHOSEN.get(word, word) for word in asked]


def seconds_of(text: str) -> float:
    """The seconds that are asked for."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not seconds > 0:
        raise Refusal(f"seconds={text} is no time; write, for instance, seconds=300")
    return seconds


def learn_kind(word: str, seconds: float, changes: Sequence[str]) -> Learned:
    """The score of a kind of attention after so many seconds, or after as many steps as the recipe says."""
    run = recipes.resolve("listops", [f"model.mechanism={word}", *changes])
    told: dict[str, Any] = {"word": word, "data": run.data.name, "seed": run.seed, "where": name_of(device())}
    told |= {"paper": published_score(part_words.parse(word)[0], run.data), "majority": 0.0}
    try:
        ready = prepare(run, device())
        commonest = Counter(line.label for line in ready.splits.train).most_common(1)[0][0]
        told["majority"] = sum(line.label == commonest for line in ready.splits.test) / len(ready.splits.test)
        return Learned(**told, **train_for(ready, seconds))
    except (
        Failure,
        RuntimeError,
    ) as error:  # no memory, or a loss without end: the others are asked all the same
        if not (isinstance(error, Failure) or short_of_memory(error)):
            raise
        why = str(error).split("\n")[0]
        return Learned(**told, accuracy=None, steps=0, seconds=0.0, why=why)


def published_score(name: str, data: ListOps | Pixels) -> float | None:
    """The paper's score of a kind, in per cent, where it has one for these data."""
    pixels = data.name == PIXELS
    if name not in PAPER or not (
        pixels or (data.name, *(dict(data)[key] for key in ("shortest", "longest"))) == LENGTHS
    ):
        return None
    return PAPER[name][pixels]


def train_for(ready: Ready, seconds: float) -> dict[str, Any]:
    """Accuracy, steps and seconds of a run that leaves nothing behind."""
    with tempfile.TemporaryDirectory() as place:
        loop = Timed(ready.run, ready.task, ready.splits, ready.model, Path(place))
        began = time.monotonic()
        loop.until = began + seconds
        with Record(Path(place), ready.run.training.steps, 0, name_of(loop.device)) as record:
            record.say(f"{ready.run.model['mechanism']}: {sum(p.numel() for p in ready.model.parameters()):,} weights")
            loop.train(record)
            spent = time.monotonic() - began
            if loop.progress.step < loop.training.steps and loop.progress.step % loop.training.evaluate_every:
                loop.evaluate(record)
        if loop.best:
            restore(loop.model, loop.best, "the best weights")
        accuracy = ready.task.score(loop.model, ready.splits.test)["accuracy"]
    return {"accuracy": accuracy, "steps": loop.progress.step, "seconds": spent}
