"""Golden runs: a refactor leaves every recipe's short toy run byte-equal, before and after, on this very machine.

`make golden BASE=COMMIT` runs each recipe at that commit and in the working tree, on one thread each, and compares
`metrics.jsonl` and all weights byte by byte. No sums are kept: they would be those of one processor and one torch.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

HERE = Path(__file__).resolve()
ROOT = HERE.parents[2]


def produce(out: Path, wanted: list[str]) -> None:
    """Runs the recipes of the tree that is first on the path, each into a folder of its own."""
    import torch

    from tests.training import runs  # the tree's own: what a short run is may be said in other keys there

    torch.set_num_threads(1)
    for recipe in wanted or runs.recipes.names():
        runs.train(runs.short(recipe), out / recipe)
        print(f"  {out.name}: {recipe}", flush=True)


def started(tree: Path, out: Path, wanted: list[str]) -> subprocess.Popen[bytes]:
    """A process that produces the runs of a tree; it imports nothing of another one."""
    out.mkdir()
    place = os.environ | {"PYTHONPATH": str(tree), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-P", "-W", "ignore", str(HERE), "--produce", str(out), *wanted]
    return subprocess.Popen(command, cwd=tree, env=place, stderr=subprocess.DEVNULL)


def checked_out(commit: str, into: Path) -> Path:
    """The files of a commit in a folder, without a word to git's own list of work trees."""
    into.mkdir()
    packed = subprocess.run(["git", "-C", str(ROOT), "archive", commit], check=True, stdout=subprocess.PIPE)
    subprocess.run(["tar", "-x", "-C", str(into)], check=True, input=packed.stdout)
    return into


def files(run: Path) -> dict[str, bytes]:
    """What must be equal of a run: its metrics and every tensor that it wrote."""
    kept = [run / "metrics.jsonl", *sorted(run.rglob("*.safetensors"))]
    return {str(path.relative_to(run)): path.read_bytes() for path in kept}


def compare(before: Path, after: Path) -> list[str]:
    """What differs between the runs of two trees, a line for each recipe that does."""
    told = []
    for recipe in sorted({path.name for folder in (before, after) for path in folder.iterdir()}):
        if not (before / recipe).exists() or not (after / recipe).exists():
            told.append(f"{recipe}: only {'after' if (after / recipe).exists() else 'before'}")
            continue
        one, two = files(before / recipe), files(after / recipe)
        apart = sorted(name for name in one.keys() | two.keys() if one.get(name) != two.get(name))
        told += [f"{recipe}: {', '.join(apart)}"] if apart else []
    return told


def main() -> None:
    """Compares the working tree with a commit; status 1 where a byte differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base", help="the commit before")
    parser.add_argument("--produce", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("recipes", nargs="*", help="these alone, and not all")
    asked = parser.parse_args()
    if asked.produce:
        return produce(asked.produce, asked.recipes)
    if not asked.base:
        parser.error("name the commit before: --base COMMIT")
    with TemporaryDirectory() as name:
        folder = Path(name)
        trees = {"before": checked_out(asked.base, folder / "tree"), "after": ROOT}
        runs = {when: started(tree, folder / when, asked.recipes) for when, tree in trees.items()}
        failed = [when for when, process in runs.items() if process.wait()]
        if failed:
            sys.exit(f"the runs {' and '.join(failed)} ended in an error; run one of its recipes to see it")
        apart, count = compare(folder / "before", folder / "after"), len(list((folder / "after").iterdir()))
    if apart:
        sys.exit("\n".join(["byte-equal no more:", *apart]))
    print(f"{count} runs are byte-equal to {asked.base}: metrics.jsonl and all weights")


if __name__ == "__main__":
    main()
