"""docs/wires/chat.md: its examples, run out of the page."""

from __future__ import annotations

import functools
import http.server
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from brainq import Approvals, Brain, Effect, ScriptedProvider
from brainq.app.access import Tokens, Verb
from brainq.app.devserver.ports import free_port
from brainq.client.async_client import AsyncClient
from brainq.contracts.model import ModelReply, ModelRequest
from brainq.engine.models.scripted import calls, says
from tests.support.gateways import GatewayThread
from tests.support.js_clients import FOLDER, why_not
from tests.support.pump import Pump
from tests.support.pumping import pumping

PAGE = (Path(__file__).parents[3] / "docs" / "wires" / "chat.md").read_text()
CHROMIUM = shutil.which("chromium")
QUIET = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
)


def example(language: str, number: int = 0) -> str:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)[number]


def answer(request: ModelRequest) -> ModelReply:
    if request.step == 1 and request.messages[-1].content == "restock apples":
        return calls(("restock", {"item": "apples"}), text="I need a yes. ")
    return says(f"Well: {request.messages[-1].content}")


@pytest.fixture
def pump(pumps: Callable[..., Pump]) -> Iterator[Pump]:
    brain = Brain("shop", ScriptedProvider(rules=answer), approvals=Approvals(effects=(Effect.LOCAL_WRITE,)))

    @brain.tool(effect=Effect.LOCAL_WRITE)
    def restock(item: str) -> str:  # pyright: ignore[reportUnusedFunction]
        "Restock."
        return f"{item}: now 8"

    made = pumps(brain)
    with pumping(made):
        yield made


def test_the_chat_in_python(pump: Pump, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    said = iter(["hello", "restock apples", "y", "restock apples", "n", ""])
    names: dict[str, Any] = {"input": lambda asked: print(asked) or next(said)}  # pyright: ignore[reportUnknownLambdaType]
    exec(compile(example("python"), "docs/wires/chat.md", "exec"), names)
    names["AsyncClient"] = lambda: AsyncClient(pump.settings, pump.wiring.brains)
    names["asyncio"].run(names["chat"]("ann:1"))
    shown = capsys.readouterr().out
    assert "Well: hello" in shown
    assert shown.count("restock {'item': 'apples'}? [y/n]") == 2
    assert "Well: apples: now 8" in shown
    assert "Well: Not run: a person refused it: the user does not want it" in shown
    assert len(pump.client.session("ann:1").history()) == 3


def test_the_chat_with_an_openai_client(
    pump: Pump, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    said = iter(["hello", "and now", ""])
    key = Tokens(pump.wiring.store).create("web", ["ann:"], [Verb.SUBMIT, Verb.READ, Verb.STEER]).text
    with GatewayThread(pump.settings, pump.wiring.brains) as gateway:
        code = example("python", 1).replace("http://127.0.0.1:8321", gateway.url).replace("bq_...", key)
        made: list[Any] = []
        names: dict[str, Any] = {"input": lambda asked: next(said)}  # pyright: ignore[reportUnknownLambdaType]
        exec(compile(code, "docs/wires/chat.md", "exec"), names)
        client = names["OpenAI"]
        names["OpenAI"] = lambda **given: made.append(client(**given)) or made[-1]  # pyright: ignore[reportUnknownLambdaType]
        names["chat"]("ann:1")
        made[0].close()
    assert capsys.readouterr().out.splitlines() == ["Well: hello", "Well: and now"]
    assert [turn.text for turn in pump.client.session("ann:1").history()] == ["Well: hello", "Well: and now"]


@pytest.mark.full
@pytest.mark.needs(why_not() is None, why_not())
def test_the_chat_with_the_ai_sdk(pump: Pump) -> None:
    with GatewayThread(pump.settings, pump.wiring.brains) as gateway:
        ran = subprocess.run(
            ["node", "--input-type=module", "-e", example("js"), gateway.url, "ann:1", "hello"],
            cwd=FOLDER,
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
    assert ran.stdout == "Well: hello\n"


@pytest.mark.full
@pytest.mark.needs(CHROMIUM, "a browser: chromium")
def test_the_chat_in_a_page(pump: Pump, tmp_path: Path) -> None:
    """In a process of its own: Playwright keeps an event loop in the thread that starts it."""
    (tmp_path / "index.html").write_text(example("html"))
    serve = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(tmp_path))
    serve.log_message = lambda *said: None  # type: ignore[attr-defined]
    port = free_port()
    site = http.server.ThreadingHTTPServer(("127.0.0.1", port), serve)
    threading.Thread(target=site.serve_forever).start()
    origin = f"http://127.0.0.1:{port}"
    try:
        with GatewayThread(pump.settings, pump.wiring.brains, cors=origin) as gateway:
            ran = subprocess.run(
                [sys.executable, "-c", BROWSE, f"{origin}/?gateway={gateway.url}", str(CHROMIUM), QUIET],
                capture_output=True,
                text=True,
                timeout=90,
                check=False,
            )
    finally:
        site.shutdown()
        site.server_close()
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines() == [
        "user: hello",
        "answer: Well: hello",
        "user: restock apples",
        "answer: I need a yes. ",
        "answer: Well: apples: now 8",
        "asked: restock? calls with the effect local_write need an approval",
    ]


BROWSE = """
import sys
from playwright.sync_api import expect, sync_playwright

url, chromium, flags = sys.argv[1:]
with sync_playwright() as play:
    browser = play.chromium.launch(executable_path=chromium, args=flags.split())
    page = browser.new_page()
    asked = []
    page.on("dialog", lambda dialog: (asked.append(dialog.message), dialog.accept()))
    page.goto(url)
    for said, shown in (("hello", "Well: hello"), ("restock apples", "Well: apples: now 8")):
        page.get_by_label("Say something").fill(said)
        page.get_by_text("Send").click()
        expect(page.get_by_text(shown, exact=True)).to_be_visible(timeout=30_000)
    for line in page.locator("#chat p").all():
        print(f"{line.get_attribute('class')}: {line.text_content()}")
    print("asked:", *asked)
    browser.close()
"""
