"""Checks a built site: every link leads somewhere within it, and no page asks another machine for anything.

`python tools/docs_check.py build/site` prints what is wrong, and ends with status 1 if anything is.
"""

import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {  # attributes by which a browser fetches something when it shows a page
    "img": ("src", "srcset"),
    "script": ("src",),
    "iframe": ("src",),
    "source": ("src", "srcset"),
    "video": ("src", "poster"),
    "audio": ("src",),
    "object": ("data",),
    "embed": ("src",),
    "form": ("action",),
    "link": ("href",),
}
NOT_LOADED = {"canonical", "next", "prev", "alternate", "edit"}  # links of a page's head that nothing is fetched by
OUTSIDE = re.compile(r"^(https?:)?//")
STYLED = re.compile(r"url\(\s*['\"]?([^'\")]+)|@import\s+['\"]([^'\"]+)")


class Page(HTMLParser):
    """What a page fetches, what it links to, and the anchors that it has."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Notes what one tag says."""
        told = {name: value or "" for name, value in attrs}
        self.anchors |= {told[name] for name in ("id", "name") if name in told}
        if tag == "a" and "href" in told:
            self.links.append(told["href"])
        if tag == "link" and NOT_LOADED & set(told.get("rel", "").split()):
            return
        self.fetched += [told[name].split()[0] for name in LOADED.get(tag, ()) if told.get(name)]
        self.fetched += [one for pair in STYLED.findall(told.get("style", "")) for one in pair if one]


def faults(site: Path) -> Iterator[str]:
    """What is wrong with a site, a line each."""
    pages = {path.resolve(): Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}
    if not pages:
        yield f"{site} holds no pages"
    for path, page in pages.items():
        here = path.relative_to(site.resolve()).as_posix()
        yield from (f"{here} asks another machine for {one}" for one in page.fetched if OUTSIDE.match(one))
        for link in (*page.links, *page.fetched):
            if not leads_somewhere(link, path, site.resolve(), pages):
                yield f"{here} links to {link}, which is not there"
    for style in site.rglob("*.css"):
        found = [
            one for pair in STYLED.findall(style.read_text(encoding="utf-8")) for one in pair if OUTSIDE.match(one)
        ]
        yield from (f"{style.relative_to(site)} asks another machine for {one}" for one in found)


def leads_somewhere(link: str, path: Path, site: Path, pages: dict[Path, Page]) -> bool:
    """Whether a link leads to a file of the site, and to an anchor that it has; others' sites are not asked."""
    parts = urlsplit(link)
    if parts.scheme or parts.netloc or link.startswith("data:"):
        return True
    place = (
        path
        if not parts.path
        else (site if parts.path.startswith("/") else path.parent) / unquote(parts.path).lstrip("/")
    )
    place = (place / "index.html" if place.is_dir() else place).resolve()
    if not place.exists():
        return False
    return not parts.fragment or place not in pages or unquote(parts.fragment) in pages[place].anchors


def main() -> None:
    """Prints what is wrong with the site that is named."""
    found = list(faults(Path(sys.argv[1])))
    print("\n".join(found) or f"{sys.argv[1]}: every link leads somewhere, and nothing is asked of other machines")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
