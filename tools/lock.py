"""The lock files' hashes: every file of a pinned version, whatever platform it is for, as the package index lists them.

`make lock` writes them anew, after a version in `requirements.lock` or `docs.lock` was changed. All else in those files
stays as it is.
"""

import html
import re
import sys
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from packaging.utils import InvalidSdistFilename, InvalidWheelFilename, parse_sdist_filename, parse_wheel_filename
from packaging.version import InvalidVersion, Version

INDEX = "https://pypi.org/simple"
LOCKS = tuple(Path(__file__).parents[1] / name for name in ("requirements.lock", "docs.lock"))
PIN = re.compile(r"([a-z0-9-]+)==([^\s\\]+)")
LINK = re.compile(r'<a [^>]*href="[^"#]*/([^"#/]+)#sha256=([0-9a-f]{64})')
SERVED = (r"none-any|manylinux\S*x86_64", r"none-any|manylinux\S*aarch64", r"none-any|macosx\S*(arm64|universal2)")


def version_of(file: str) -> Version | None:
    """The version that a wheel or a source archive is of; none of what pip would not take."""
    try:
        return parse_wheel_filename(file)[1] if file.endswith(".whl") else parse_sdist_filename(file)[1]
    except (InvalidWheelFilename, InvalidSdistFilename, InvalidVersion):
        return None


def hashed(pin: re.Match[str]) -> str:
    """The lines of a pinned package, with the hash of each file of that version."""
    name, version = pin.groups()
    with urllib.request.urlopen(f"{INDEX}/{name}/", timeout=60) as page:
        links = LINK.findall(html.unescape(page.read().decode()))
    files = {file: digest for file, digest in links if version_of(file) == Version(version)}
    for platform in SERVED:
        if not any(re.search(platform, file) or not file.endswith(".whl") for file in files):
            sys.exit(f"{name}=={version} has no file for {platform}")
    return " \\\n    ".join([f"{name}=={version}", *(f"--hash=sha256:{digest}" for digest in sorted(files.values()))])


def main() -> None:
    """Rewrites the locks, or those whose names are given."""
    for lock in LOCKS:
        if len(sys.argv) == 1 or lock.name in sys.argv[1:]:
            rewrite(lock)


def rewrite(lock: Path) -> None:
    """Rewrites one lock."""
    lines = [line for line in lock.read_text(encoding="utf-8").splitlines() if not line.startswith("    --hash=")]
    pins = [PIN.match(line) for line in lines]
    with ThreadPoolExecutor(8) as pool:
        made = pool.map(lambda line, pin: hashed(pin) if pin else line, lines, pins)
        lock.write_text("\n".join(made) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
