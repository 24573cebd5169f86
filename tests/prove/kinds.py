"""Does each kind of attention learn? `make prove` lets a two-layer model sort with every one, into docs/attention.md.

`python -m tests.prove.kinds --kinds linear,bigbird --out docs/attention.md` asks a few of them; what is known of the
others stays as it was, and `--kinds none` writes the page alone. `--seconds 120` is how long each learns: time of one
core, so that what else the machine does counts for nothing, or with `--threads 2` that of the clock, on free cores.
"""

import argparse
import json
import math
import platform
import sys
import time
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

import heedful
from heedful.data.toys.series_sets import SYMBOLS
from heedful.looking import look
from heedful.models import part_words
from heedful.models.attention_kinds import Kind
from heedful.objectives.head_terms import HeadTerms
from heedful.objectives.objective import Loss, combine
from heedful.tasks import kinds
from heedful.training.optimiser import optimiser_of
from heedful.training.spec.training_spec import TrainingSpec

LENGTH, BATCH, TESTED, ENOUGH = 64, 32, 500, 0.95
FIRST = 4  # the id of the first symbol, behind the special tokens
MODEL = {"width": 64, "depth": 2, "heads": 4, "hidden": 128, "length": LENGTH, "pool": "each", "position": "sine"}
SMALL = {  # for T = 64
    "size": 16, "row": 8, "rank": 32, "landmarks": 32, "clusters": 2, "summary": 4, "buckets": 8, "features": 64,
    "edges": 32,
}  # fmt: skip
OWN = {  # of one kind alone: such that it hides or weighs at this length, and two layers of it may still reach all
    "reformer": {"size": 32, "rounds": 1},
    "window": {"size": 32},
    "bigbird": {"size": 4},
    "local2d": {"size": 4, "row": 16, "memory": 6},
    "multiscale": {"size": 4},
    "poolingformer": {"far": 32},
    "span": {"farthest": 32, "ramp": 8},
    "bp": {"size": 4},
}
NOTHING = 1e-12  # of a weight
TRAINING = TrainingSpec(optimiser="muon", rate=8e-3, warmup=100)
EVERY = 50  # steps after which it is asked whether it has learned
RECORD = "attention.json"  # beside the page: what was found, kind by kind

HEADER = f"""# Kinds of attention, and which of them learn

This page is written by `make prove`. A two-layer encoder (width {MODEL["width"]}, {MODEL["heads"]} heads, sines for
positions) reads {LENGTH} symbols of {len(SYMBOLS)} and says at each place which one stands there when they are sorted.
It learns for at most two minutes of one core's time, or of two cores' where the table says so, on sequences that are
never the same. A kind has learned where
{100 * ENOUGH:.0f} % of the tokens of {TESTED} unseen sequences are right. Sizes are such that what hides does hide
at this length: "sees" is the share of all pairs of rows and columns that have any weight, before anything is learned.

`heedful attention explain NAME` says more of each.

| kind | what it is | tier | cost | causal | asked with | sees | tokens right | learned in | paper |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
"""


def batch(count: int, coins: torch.Generator) -> tuple[Tensor, Tensor]:
    """Sequences of symbols, and the same in order: B T each."""
    x = torch.randint(0, len(SYMBOLS), (count, LENGTH), generator=coins)
    return x + FIRST, x.sort(-1).values


@torch.no_grad()
def right(model: nn.Module) -> float:
    """The share of tokens of unseen sequences that a model has right."""
    x, y = batch(TESTED, torch.Generator().manual_seed(10**6))
    model.eval()
    found = torch.cat([model(part) for part in x.split(100)]).argmax(-1) == y
    model.train()
    return float(found.double().mean())


def clock() -> float:
    """Seconds of the one thread that works, or of the clock where several do."""
    return time.process_time() if torch.get_num_threads() == 1 else time.monotonic()


def numbers(kind: Kind) -> dict[str, int]:
    """The numbers that a kind is asked with: those of its word that are not left as they are."""
    takes = {} if kind.said else part_words.arguments(kind.part)
    return {name: value for name, value in (SMALL | OWN.get(kind.name, {})).items() if name in takes}


def made(kind: Kind) -> nn.Module:
    """A model with this kind, as it begins; a loss is no part of one."""
    torch.manual_seed(1)
    said = MODEL | (kind.chosen(**numbers(kind)) if kind.role != "loss" else {})
    return heedful.build("predictor", vocab=FIRST + len(SYMBOLS), classes=len(SYMBOLS), **said)


@torch.no_grad()
def seen(kind: Kind) -> list[Tensor]:
    """Which pairs have any weight, for each attention of a model with this kind: B H T S each."""
    model = made(kind).eval()
    with look(model) as found:
        model(batch(4, torch.Generator().manual_seed(1))[0])
    return [found.weights(path).abs() > NOTHING for path in found.paths]


def share(kind: Kind) -> float:
    """The share of pairs that have any weight."""
    every = seen(kind)
    return float(sum(one.sum() for one in every) / sum(one.numel() for one in every))


def judged(model: nn.Module, x: Tensor, y: Tensor, kind: Kind) -> Tensor:
    """The loss of a batch; where the kind is a loss on heads, with that."""
    if kind.role != "loss":
        return cross_entropy(model(x).flatten(0, 1), y.flatten())
    terms = HeadTerms(**{kind.name: float(kind.word())})
    judge = lambda: {"loss": Loss(cross_entropy(model(x).flatten(0, 1), y.flatten()), torch.ones(()))}  # noqa: E731
    return combine(terms.losses(judge, model))


def learned(kind: Kind, seconds: float) -> dict[str, Any]:
    """What a model with this kind comes to in so many seconds; it stops when it has learned."""
    model = made(kind)
    optimiser = optimiser_of(model, TRAINING)
    coins, began, step, score = torch.Generator().manual_seed(1), clock(), 0, 0.0
    while (spent := clock() - began) < seconds and score < ENOUGH:
        fallen = (1 + math.cos(math.pi * spent / seconds)) / 2
        for group in optimiser.param_groups:
            group["lr"] = TRAINING.rate * min(1.0, (step + 1) / TRAINING.warmup) * fallen
        x, y = batch(BATCH, coins)
        optimiser.zero_grad()
        judged(model, x, y, kind).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        step += 1
        if step % EVERY == 0:
            score = right(model)
    asked = {"word": kind.word(**numbers(kind)), "cores": torch.get_num_threads()}
    return {"tokens": max(score, right(model)), "seconds": round(spent, 1), "steps": step, **asked}


def told(name: str, found: dict[str, Any] | None) -> tuple[str, str]:
    """How many tokens a kind has right, and how long it took, or why it did not learn."""
    if name in NEVER:
        return "not asked", NEVER[name]
    if found is None:
        return "not asked yet", ""
    spent = f"{found['seconds']:.0f} s, {found['steps']:,} steps{', two cores' if found['cores'] > 1 else ''}"
    learned = found["tokens"] >= ENOUGH
    return f"{100 * found['tokens']:.1f} %", spent if learned else f"not in {spent}: {WHY.get(name, 'unknown')}"


def page(found: dict[str, dict[str, Any]], where: str) -> str:
    """The table of all kinds, those that were not asked yet among them."""
    rows = []
    for kind in kinds.every().values():
        card, (score, spent) = kind.card, told(kind.name, found.get(kind.name))
        causal = "yes" if card.causal else "no"
        said = kind.said or ", ".join(f"{name}={value}" for name, value in numbers(kind).items())
        told_of = (
            kind.role,
            card.tier,
            card.cost,
            causal,
            said,
            f"{100 * share(kind):.0f} %",
            score,
            spent,
            card.paper,
        )
        rows.append(f"| `{kind.name}` | {' | '.join(told_of)} |")
    return HEADER + "\n".join(rows) + f"\n\nMeasured on {where}.\n"


NEVER = {  # what cannot be asked
    "pma": "one answer for a whole sequence, and sorting wants one for each place; `heedful train sets` learns with it",
}
WHY = {  # why a kind cannot learn to sort, or not in time, where that is known
    "hard_coded": "two layers of it reach a handful of neighbours",
    "blocks": "it sees nothing beyond its block",
    "local": "it sees nothing of what comes after its block",
}


def main() -> None:
    """Asks the kinds that are named, or all, and writes the page and what it is made of."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--kinds", default="")
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--threads", type=int, choices=(1, 2), default=1)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    record = given.out.with_name(RECORD)
    found = json.loads(record.read_text(encoding="utf-8")) if record.exists() else {}
    asked = [] if given.kinds == "none" else given.kinds.split(",") if given.kinds else [*kinds.every()]
    asked = [name for name in asked if name not in NEVER]
    for name in asked:
        found[name] = learned(kinds.kind_named(name), given.seconds)
        print(f"{name}: {found[name]}", file=sys.stderr, flush=True)
        record.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    where = f"{platform.system()}, torch {torch.__version__}, CPU"
    given.out.write_text(page(found, where), encoding="utf-8")
    short = [name for name, one in found.items() if one["tokens"] < ENOUGH and name not in WHY]
    if short:
        sys.exit(f"not learned, and nobody says why: {', '.join(short)}")


if __name__ == "__main__":
    main()
