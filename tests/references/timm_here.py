"""timm where it is installed, with a stand-in for torchvision where that is not: its networks compute without it."""

import sys
from importlib import util
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, ClassVar

import pytest

ABSENT = "torchvision"


class Nothing(type):
    """A class of torchvision's that is named and never used; so are its attributes."""

    def __getattr__(cls, name: str) -> "Nothing":
        if name.startswith("_"):
            raise AttributeError(name)
        return Nothing(name, (), {})


class Empty(ModuleType):
    __path__: ClassVar[list[str]] = []

    def __getattr__(self, name: str) -> Nothing:
        if name.startswith("__"):
            raise AttributeError(name)
        setattr(self, name, Nothing(name, (), {}))
        return vars(self)[name]


class StandIn(MetaPathFinder, Loader):
    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        return ModuleSpec(name, self, is_package=True) if name.split(".")[0] == ABSENT else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return Empty(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        pass


def timm() -> Any:
    """The package; skips the test where it is not installed. Others find no torchvision afterwards, as before."""
    if util.find_spec(ABSENT) or "timm" in sys.modules:
        return pytest.importorskip("timm")
    there = StandIn()
    sys.meta_path.append(there)
    try:
        return pytest.importorskip("timm")
    finally:
        sys.meta_path.remove(there)
        for name in [name for name in sys.modules if name.split(".")[0] == ABSENT]:
            del sys.modules[name]
