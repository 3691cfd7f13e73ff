"""The page's files: their addresses, their headers, and the contrast of their colours."""

from __future__ import annotations

import re
from hashlib import sha256
from typing import Any

import pytest

from brainq.gateway.page.routes import CONTENT_SECURITY_POLICY, FOLDER, PageAssets, load_assets

LONGEST = 300
VENDOR = "vendor/"
MODULES = sorted(
    name for path in FOLDER.rglob("*.js") if not (name := path.relative_to(FOLDER).as_posix()).startswith(VENDOR)
)
PARSER = FOLDER / VENDOR / "markdown-it"


def text_of(name: str) -> str:
    return (FOLDER / name).read_text()


def test_the_shell_asks_for_every_file_under_one_name_and_has_no_script_of_its_own() -> None:
    made = load_assets()
    shell = made.shell.decode()
    for name in made.files:
        assert f"page/{made.release}/{name}" in shell, name
    assert set(re.findall(r"<script[^>]*>(.*?)</script>", shell)) == {""}
    assert not re.search(r"\son\w+=|style=|https?://|\{\{", shell)


def test_another_file_is_another_release(monkeypatch: pytest.MonkeyPatch) -> None:
    before = load_assets()
    monkeypatch.setattr("brainq.gateway.page.routes.MEDIA_TYPES", {".css": "text/css", ".js": "text/javascript"})
    made: PageAssets = load_assets.__wrapped__()
    assert made.release != before.release


@pytest.mark.parametrize("name", MODULES)
def test_a_module_is_one_concept_that_imports_its_own_kind_alone(name: str) -> None:
    text = text_of(name)
    assert len(text.splitlines()) <= LONGEST
    assert text.startswith("/**"), "it begins with what it is"
    for imported in re.findall(r'from "([^"]+)"|import\("([^"]+)"\)', text):
        target = imported[0] or imported[1]
        assert target.startswith("."), target
        assert ((FOLDER / name).parent / target).resolve().is_file(), target
    # A comment may speak of the web; code asks nobody but its own gateway.
    code = re.sub(r"/\*.*?\*/|^\s*//.*$", "", text, flags=re.DOTALL | re.MULTILINE)
    assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(|new Function|srcdoc", code)
    assert not re.search(r"[\"'`]https?://\w", code)


def test_what_others_wrote_is_as_it_was_published_and_says_its_licence() -> None:
    code = (PARSER / "markdown-it.js").read_bytes()
    about = (PARSER / "README.md").read_text()
    assert sha256(code).hexdigest() in about
    version = re.match(rb"/\*! markdown-it (\S+) ", code)
    assert version is not None
    assert f"# markdown-it {version[1].decode()}\n" in about
    licences = (PARSER / "LICENSE").read_text()
    inside = ("markdown-it", "linkify-it", "mdurl", "uc.micro", "entities", "punycode.js")
    assert all(re.search(rf"^== {re.escape(name)} \d", licences, re.MULTILINE) for name in inside)
    assert not re.search(rb"innerHTML|document\b|fetch\(|eval\(|new Function|sourceMappingURL|import\(", code)
    assert [path.name for path in (FOLDER / VENDOR).iterdir()] == ["markdown-it"]


def test_the_policy_lets_in_nothing_from_elsewhere() -> None:
    assert "'unsafe" not in CONTENT_SECURITY_POLICY
    assert "default-src 'none'" in CONTENT_SECURITY_POLICY
    sources = {word for part in CONTENT_SECURITY_POLICY.split(";") for word in part.split()[1:]}
    assert sources == {"'none'", "'self'", "'script'", "blob:"}
    assert CONTENT_SECURITY_POLICY.count("blob:") == 1
    assert "img-src 'self' blob:" in CONTENT_SECURITY_POLICY


def test_styles_bring_nothing_from_elsewhere() -> None:
    for path in FOLDER.rglob("*.css"):
        assert not re.search(r"url\(|@import", path.read_text()), path


@pytest.mark.parametrize("view", [name for name in MODULES if name.startswith("views/")])
def test_a_view_with_approvals_asks_what_their_tools_do(view: str) -> None:
    text = text_of(view)
    assert "approvalCards(" not in text or "askForBrains(update)" in text


TOKENS = (FOLDER / "style" / "1_tokens.css").read_text()
SHEETS = "".join(path.read_text() for path in sorted((FOLDER / "style").glob("*.css")))
COLOURS: dict[str, tuple[str, str]] = {
    name: (light, dark) for name, light, dark in re.findall(r"--([\w-]+): light-dark\((#\w{6}), (#\w{6})\)", TOKENS)
}
GROUNDS = ("ground", "panel", "sunken", "hover")
AS_TEXT = sorted(set(re.findall(r"(?<![\w-])color: var\(--([\w-]+)", SHEETS)) & set(COLOURS))
LEAST = 4.5


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def test_contrast_is_counted_as_wcag_does() -> None:
    assert contrast("#ffffff", "#000000") == pytest.approx(21.0)  # pyright: ignore[reportUnknownMemberType]
    assert 4.5 < contrast("#767676", "#ffffff") < 4.6


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_text_is_read_on_every_ground(scheme: int) -> None:
    assert {"soft", "text", "bad", "park"} <= set(AS_TEXT)
    low: dict[Any, float] = {
        (name, ground): round(found, 2)
        for name in AS_TEXT
        for ground in GROUNDS
        if (found := contrast(COLOURS[name][scheme], COLOURS[ground][scheme])) < LEAST
    }
    assert not low


@pytest.mark.parametrize(("scheme", "text"), [(0, "#ffffff"), (1, "#17120a")], ids=["light", "dark"])
def test_a_count_is_read_on_its_amber(scheme: int, text: str) -> None:
    assert "background: var(--park); color: light-dark(#fff, #17120a)" in SHEETS
    assert contrast(COLOURS["park"][scheme], text) >= LEAST
