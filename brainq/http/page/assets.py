"""What the page is made of: files beside this one, read once, under one name that changes whenever any of them does."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from html import escape
from pathlib import Path

FOLDER = Path(__file__).with_name("assets")
SHELL = "index.html"
MEDIA_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


@dataclass(frozen=True, slots=True)
class Assets:
    """`release` names these files together: what was fetched under it stays as it is. `shell` asks for all of them."""

    release: str
    shell: bytes
    files: dict[str, bytes]


@cache
def assets() -> Assets:
    """The files by their paths in the folder."""
    found = {
        path.relative_to(FOLDER).as_posix(): path.read_bytes()
        for path in sorted(FOLDER.rglob("*"))
        if path.suffix in MEDIA_TYPES
    }
    page = (FOLDER / SHELL).read_text("utf-8")
    sums = sha256(page.encode())
    for name, content in found.items():
        sums.update(f"\n{name} {sha256(content).hexdigest()}".encode())
    release = sums.hexdigest()[:16]
    return Assets(release, _filled(page, release, found).encode(), found)


def media_type(name: str) -> str:
    return f"{MEDIA_TYPES[Path(name).suffix]}; charset=utf-8"


def _filled(page: str, release: str, files: dict[str, bytes]) -> str:
    """The shell with its places filled. It names every module, so that a browser asks for all of them at once."""
    at = f"page/{release}"
    styles = "\n".join(
        f'<link rel="stylesheet" href="{escape(f"{at}/{name}")}">' for name in files if name.endswith(".css")
    )
    modules = "\n".join(
        f'<link rel="modulepreload" href="{escape(f"{at}/{name}")}">'
        for name in files
        if name.endswith(".js")
    )
    return page.replace("{{at}}", at).replace("{{styles}}", styles).replace("{{modules}}", modules)
