"""The lock and pyproject.toml agree: what is needed is pinned, what is pinned is needed, and all of it is hashed."""

import re
import tomllib
from collections.abc import Iterable, Iterator
from importlib.metadata import requires, version
from pathlib import Path

from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name as plain

ROOT = Path(__file__).parents[2]
PLATFORMS = (
    {"sys_platform": "linux", "platform_system": "Linux", "os_name": "posix"},
    {"sys_platform": "darwin", "platform_system": "Darwin", "os_name": "posix", "platform_machine": "arm64"},
    {"sys_platform": "win32", "platform_system": "Windows", "os_name": "nt", "platform_machine": "AMD64"},
)
HASHED = re.compile(r"([a-z0-9-]+)==([^\s\\]+)(?: +--hash=sha256:[0-9a-f]{64})+")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
EXTRAS = {"test", "arrow", "onnx", "hub"}  # `bench` has peers that somebody installed, and `docs` a lock of its own
LEFT_OUT = {
    "sentence-transformers",
    "torchvision",
}  # for the package of real weights, and for timm; neither is used


def lines(name: str) -> list[str]:
    """A package a line, without comments."""
    text = (ROOT / name).read_text().replace("\\\n", "")
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def pins() -> dict[str, str]:
    found = [line.split()[0].split("==") for line in lines("requirements.lock") + lines("torch.lock")]
    assert len(dict(found)) == len(found)
    return dict(found)


def needed(said: Iterable[str], extras: Iterable[str] = ()) -> Iterator[Requirement]:
    """The requirements that hold on one of the platforms at least."""
    places = [{**default_environment(), **place, "extra": extra} for place in PLATFORMS for extra in ("", *extras)]
    for one in map(Requirement, said):
        if one.marker is None or any(map(one.marker.evaluate, places)):
            yield one


def first() -> list[Requirement]:
    project = PROJECT["project"]
    extras = [one for extra in EXTRAS for one in project["optional-dependencies"][extra]]
    said = [*project["dependencies"], *extras, *PROJECT["build-system"]["requires"]]
    return [one for one in needed(said) if one.name != project["name"]]


def all_needed() -> list[Requirement]:
    """What the project needs, and what that needs."""
    made, found, asked = first(), first(), set()
    while found:
        one = found.pop()
        if (one.name, *one.extras) not in asked:
            asked.add((one.name, *one.extras))
            more = [other for other in needed(requires(one.name) or (), one.extras) if other.name not in LEFT_OUT]
            made, found = made + more, found + more
    return made


def test_every_package_of_the_lock_has_hashes_and_torch_is_in_a_file_of_its_own() -> None:
    assert [line for line in lines("requirements.lock") if not HASHED.fullmatch(line)] == []
    assert [line.split("==")[0] for line in lines("torch.lock")] == ["torch"]


def test_what_is_needed_is_pinned_in_a_version_that_will_do() -> None:
    pinned = pins()
    unmet = {str(one) for one in all_needed() if not one.specifier.contains(pinned.get(plain(one.name), "0"), True)}
    assert unmet == set()


def test_what_is_pinned_is_needed() -> None:
    assert pins().keys() - {plain(one.name) for one in all_needed()} == set()


def test_what_is_installed_is_what_the_lock_says() -> None:
    assert {name: version(name).partition("+")[0] for name in pins()} == pins()


def test_the_lock_of_the_documentation_is_hashed_and_pins_what_the_other_does_not() -> None:
    assert [line for line in lines("docs.lock") if not HASHED.fullmatch(line)] == []
    pinned = dict(line.split()[0].split("==") for line in lines("docs.lock"))
    assert pinned.keys() & pins().keys() == set()
    for one in map(Requirement, PROJECT["project"]["optional-dependencies"]["docs"]):
        assert one.specifier.contains(pinned[plain(one.name)])
