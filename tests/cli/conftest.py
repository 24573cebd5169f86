"""The program, called in this very process, in a folder full of things to call it with."""

import io
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from heedful.cli import main
from tests.cli.workshop import make


@dataclass(frozen=True)
class Said:
    """What the program answered."""

    status: object
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


Program = Callable[..., Said]


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("workshop")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        make(place)
    return place


@pytest.fixture
def workshop(made: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder: runs of every recipe, files of every kind, and broken ones. It is to be left as it is."""
    monkeypatch.chdir(made)
    monkeypatch.delenv("HEEDFUL_DATA", raising=False)
    return made


@pytest.fixture
def heedful(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Program:
    def call(*words: object, stdin: str | bytes = b"") -> Said:
        given = io.BytesIO(stdin.encode() if isinstance(stdin, str) else stdin)
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(given, encoding="utf-8"))
        capsys.readouterr()
        with pytest.raises(SystemExit) as left:
            main([str(word) for word in words])
        return Said(left.value.code, *capsys.readouterr())

    return call
