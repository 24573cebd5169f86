"""A hundred real kills and more, over every recipe: `make prove` writes what they came to into docs/reliability.md."""

import argparse
import platform
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from heedful.training.resume_proof import choose_cuts, verify
from heedful.training.spec import recipes
from tests.training.runs import BY_TOKENS
from tests.training.test_resume import MORE

CUTS, STEPS = 4, 54
AT_ONCE = 2
BRIEF = {
    "data": "toy",
    "data.samples": 200,
    "data.held_out": 16,
    "model.dropout": 0.1,
    "training.steps": STEPS,
    "training.batch": 8,
    "training.accumulate": 2,
    "training.average": 0.9,
    "training.warmup": 5,
    "training.log_every": 4,
    "training.evaluate_every": 9,
    "training.save_every": 5,
}
WORDS = BY_TOKENS | {"data.merge_dropout": 0.1, "objective.consistency": 1.0}

HEADER = f"""# Reliability

`make prove` trains each recipe twice on its toy data: once whole, and once killed {CUTS} times with `kill -9`, by turns
when it comes to a random step and at a random file operation after one (inside a save, a line of the metrics, a
rename), each time going on with `--resume`. Then every byte of the two folders is compared: weights, optimiser,
averages, checkpoints with their manifests, `metrics.jsonl`, `model/`, `result.json` and the report. All runs have
dropout, accumulation and a moving average of the weights; those on text have BPE-dropout and R-Drop too.
`heedful verify-resume RECIPE` does the same with any recipe, data and settings.

"""


def proved(recipe: str) -> tuple[int, int, str]:
    """How often a run was killed at a step and inside a save, and what came of it."""
    own = {key.replace("__", "."): value for key, value in MORE.get(recipe, {}).items() if key.startswith("data__")}
    changes = BRIEF | (WORDS if recipes.values(recipe)["task"] == "translation" else own)
    words = [recipe, *(f"{key}={value}" for key, value in changes.items()), "--device", "cpu"]
    said: list[str] = []
    with TemporaryDirectory() as folder:
        differs = verify(words, Path(folder), choose_cuts(CUTS, STEPS, len(recipe)), said.append)
    kills = [line for line in said if line.startswith("killed")]
    inside = sum("file operation" in line for line in kills)
    return len(kills) - inside, inside, differs or "bit-equal"


def main() -> None:
    """Kills, compares, and writes the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path)
    out = parser.parse_args().out
    rows, total, equal = [], 0, True
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for recipe, (at, inside, came) in zip(recipes.names(), pool.map(proved, recipes.names()), strict=True):
            total, equal = total + at + inside, equal and came == "bit-equal"
            rows.append(f"| `{recipe}` | {at} | {inside} | {came} |")
            print(rows[-1], file=sys.stderr, flush=True)
    where = f"{platform.system()}, Python {platform.python_version()}, torch {torch.__version__}, CPU"
    table = "| recipe | kills at a step | kills at a file operation | result |\n| --- | --- | --- | --- |\n"
    told = f"{HEADER}{total} kills; {where}.\n\n{table}" + "\n".join(rows) + "\n"
    if out:
        out.write_text(told, encoding="utf-8")
    if not equal or total < 100:
        sys.exit(f"not proved: {total} kills")


if __name__ == "__main__":
    main()
