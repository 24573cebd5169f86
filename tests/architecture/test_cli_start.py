"""The program answers before it loads anything heavy, and the wheel carries all that it needs."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def python(*arguments: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done


def test_help_answers_without_importing_anything_heavy():
    done = python("-X", "importtime", "-m", "heedful", "--help")
    loaded = {line.rpartition("|")[2].strip().split(".")[0] for line in done.stderr.splitlines() if "|" in line}
    assert "train" in done.stdout
    assert "heedful" in loaded
    assert loaded.isdisjoint({"torch", "numpy", "matplotlib", "tensorboard", "tokenizers", "transformers"})


def test_help_takes_less_than_half_a_second_of_a_processor():
    before = os.times()
    python("-m", "heedful", "--help")
    after = os.times()
    assert after.children_user + after.children_system - before.children_user - before.children_system < 0.5


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    python("-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", str(folder), ".")
    [built] = folder.iterdir()
    return built


def test_the_wheel_is_pure_python(wheel):
    assert wheel.name.startswith("heedful-")
    assert wheel.name.endswith("-py3-none-any.whl")


def test_the_wheel_carries_every_file_of_the_package(wheel):
    package = ROOT / "heedful"
    ours = {
        path.relative_to(ROOT).as_posix()
        for path in package.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    carried = {name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("heedful/")}
    assert carried == ours
    assert "heedful/recipes/reverse.yaml" in carried
