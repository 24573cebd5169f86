"""Shell completion: what a word may become, by its place, and that bash asks it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from heedful.cli import VERBS, known_names
from heedful.cli.completion_verb import SCRIPTS, candidates, words_of
from heedful.data.readers.reader import Files, Made
from heedful.decoding.search_spec import Decoding
from heedful.metrics import METRICS
from heedful.models import FAMILIES
from heedful.models.part_tables import BIASES, MASKS, MECHANISMS, PAIRS, STACKS
from heedful.training.callbacks import LOGGERS
from heedful.training.spec import recipes
from heedful.training.spec.training_spec import TrainingSpec
from tests.cli.conftest import Program

ROOT = Path(__file__).parents[2]


def after(line: str) -> list[str]:
    *before, current = words_of(line)
    return [*candidates(before, current)]


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("heedful", [*VERBS, "--help", "--version"]),
        ("heedful tra", ["train"]),
        ("heedful train re", ["resnet", "reverse"]),
        ("heedful train reverse training.opt", ["training.optimiser="]),
        ("heedful train reverse training.optimiser=ad", ["training.optimiser=adafactor", "training.optimiser=adamw"]),
        ("heedful train reverse training.compile=", ["training.compile=false", "training.compile=true"]),
        ("heedful train --device ", ["cpu", "cuda", "mps"]),
        ("heedful train vit --res", ["--resume"]),
        ("heedful train vit model.mechanism=so", ["model.mechanism=softmax"]),
        ("heedful plan vit model.pat", ["model.patch="]),  # of the recipe's own family
        ("heedful attention ", ["list", "explain"]),
        ("heedful attention explain perf", ["performer"]),
        ("heedful eval runs/a model.", ["model.mechanism="]),
        ("heedful predict runs/a", []),  # a path, which the shell knows
        ("heedful nonsense ", []),
    ],
)
def test_a_word_is_completed_by_its_place(line: str, wanted: list[str]) -> None:
    assert after(line) == wanted


def test_names_that_are_read_in_the_source_are_those_of_the_program() -> None:
    assert known_names.recipes() == recipes.names()
    for prefix, kind in (("training.", TrainingSpec), ("decoding.", Decoding), ("data.", Files), ("data.", Made)):
        assert {f"{prefix}{name}" for name in kind.model_fields} <= set(known_names.keys("reverse"))
    for key, registries in {
        "model.mechanism": (MECHANISMS, MASKS, PAIRS),
        "model.bias": (BIASES,),
        "model.stack": (STACKS,),
        "model.family": (FAMILIES,),
        "training.loggers": (LOGGERS,),
        "metrics": (METRICS,),
    }.items():
        assert known_names.values(key) == sorted({name for registry in registries for name in registry})


def test_bash_completes_with_the_script_that_is_printed(tmp_path: Path) -> None:
    program = tmp_path / "heedful"
    program.write_text(f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -m heedful "$@"\n')
    program.chmod(0o755)
    lines = ["heedful train rev", "heedful train vit model.mechanism=so"]
    ask = "".join(
        f"COMP_LINE='{line}' COMP_POINT={len(line)}; _heedful; echo \"${{COMPREPLY[*]}}\"\n" for line in lines
    )
    told = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", SCRIPTS["bash"] + ask], env=told, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["reverse", "softmax"]  # behind = the word begins anew


def test_a_script_is_printed_for_each_shell_and_for_no_other(heedful: Program) -> None:
    for shell in ("bash", "zsh", "fish"):
        assert f"heedful completion {shell} --line" in heedful("completion", shell).out
    refused = heedful("completion", "tcsh")
    assert refused.status == 2 and "unknown shell 'tcsh'" in refused.err
