"""What the page is made of: it asks nobody else for anything, and puts what was said into the document as text only."""

from __future__ import annotations

import re
from hashlib import sha256

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
