"""Registries (plug-ins): parts by name, imported when they are first asked for, also from packages of one's own."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, EntryPoints, distributions
from inspect import getsource
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from heedful.errors import Refusal, unknown_word

Part = TypeVar("Part")


class Registry(Mapping[str, Part], Generic[Part]):
    """Registry of parts by name: "module:attribute" each, so that knowing all names imports none of them.

    Names come from this table, from `register`, or from the entry points of installed packages, and never from a file;
    no package can stand in for a part that heedful has itself.
    """

    def __init__(
        self, what: str, group: str, known: Mapping[str, str | Part], former: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        self.what, self.group, self.former = what, group, former
        self.known: dict[str, str | Part] = dict(known)

    def register(self, name: str) -> Callable[[Part], Part]:
        """Decorator for a part of one's own."""
        if name in self:
            raise Refusal(f"{self.what} {name!r} is known already; register yours by another name")

        def keep(part: Part) -> Part:
            self.known[name] = part
            return part

        return keep

    @property
    def outside(self) -> dict[str, EntryPoint]:
        """The parts that installed packages bring."""
        return {one.name: one for one in packages().select(group=self.group) if one.name not in self.known}

    def __iter__(self) -> Iterator[str]:
        yield from (*self.known, *self.outside)

    def __len__(self) -> int:
        return len(self.known) + len(self.outside)

    def __contains__(self, name: object) -> bool:
        return name in self.known or name in self.outside

    def __getitem__(self, name: str) -> Part:
        if name not in self.known:
            if name not in self.outside:
                raise KeyError(name)
            self.check_brought_once(name)
            self.known[name] = self.brought(self.outside[name])
        found = self.known[name]
        if isinstance(found, str):
            found = self.known[name] = import_part(found)
        return found

    def check_brought_once(self, name: str) -> None:
        """Refuses a name that several packages bring, for different parts."""
        places = {one.value: package_of(one) for one in packages().select(group=self.group, name=name)}
        if len(places) > 1:
            said = f"{self.what} {name!r} is brought by the packages {' and '.join(places.values())}"
            raise Refusal(f"{said}; remove all of them but one")

    def brought(self, one: EntryPoint) -> Part:
        """The part that an installed package brings; a package that cannot be imported is refused by its name."""
        try:
            part: Part = one.load()
        except Exception as error:  # whatever the package's own code raises
            why = f"{type(error).__name__}: {error}"
            said = f"{self.what} {one.name!r} of the package {package_of(one)} cannot be imported ({why})"
            raise Refusal(f"{said}; mend the package or remove it") from error
        return part

    def named(self, name: str) -> Part:
        """The part of a name; one that nobody knows is refused with all that are known."""
        if name not in self and name in self.former:
            raise Refusal(f"the {self.what} {name!r} is called {self.former[name]!r} now; write that")
        if name not in self:
            raise unknown_word(self.what, name, self)
        return self[name]


def import_part(place: str) -> Any:
    """What stands at a place, "module:attribute"."""
    module, _, attribute = place.partition(":")
    return getattr(import_module(module), attribute)


def package_of(one: EntryPoint) -> str:
    """The name of the package that brings a part."""
    return one.dist.name if one.dist else one.module


@cache
def packages() -> EntryPoints:
    """The entry points of all installed packages, looked for once."""
    return EntryPoints(one for package in distributions() for one in package.entry_points)


def lazily(package: str) -> Callable[[str], Any]:
    """A package's `__getattr__` (PEP 562): what stands under its `if TYPE_CHECKING:` is imported when first used."""
    module = sys.modules[package]
    places = {
        alias.asname or alias.name: (str(line.module), alias.name)
        for block in ast.parse(getsource(module)).body
        if isinstance(block, ast.If)
        for line in block.body
        if isinstance(line, ast.ImportFrom)
        for alias in line.names
    }

    def getattr_of(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        place, attribute = places[name]
        found = getattr(import_module(place), attribute)
        setattr(module, name, found)
        return found

    return getattr_of
