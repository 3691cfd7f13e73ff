"""docs/wires/http.md: its examples run, and its tables are the code's."""

from __future__ import annotations

import json
import re
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from brainq import Approvals, Brain, Effect, ScriptedProvider
from brainq.contracts.model import ModelReply, ModelRequest
from brainq.engine.models.scripted import calls, says
from brainq.errors import ERROR_KINDS
from brainq.gateway.edge.problems import REJECTIONS
from brainq.runtime.settings.http import HttpSettings
from tests.support.gateways import GatewayThread
from tests.support.pump import Pump
from tests.support.sse import read
from tests.support.verbs import DOCUMENTED_VERBS
from tests.support.wait import wait_until

PAGE = (Path(__file__).parents[3] / "docs" / "wires" / "http.md").read_text()


def listed(section: str, word: str) -> dict[str, str]:
    """The words of a section's lists, each with the word that heads its list."""
    text = PAGE.split(f"\n## {section}\n")[1].split("\n## ")[0]
    lists = re.findall(r"^- \*\*(\w+)\*\*: (.+)$", text, re.MULTILINE)
    return {found: head for head, line in lists for found in re.findall(word, line)}


def test_the_routes_are_those_of_the_table_of_verbs() -> None:
    assert listed("Every route", r"`([A-Z]+ /[^`]+)`") == dict(DOCUMENTED_VERBS)


def test_the_problems_are_those_of_both_tables() -> None:
    told = re.findall(r"^- `([a-z-]+)` \((\d+)\)", PAGE, re.MULTILINE)
    kinds = [*ERROR_KINDS.values(), *REJECTIONS.values()]
    assert {word: int(status) for word, status in told} == {kind.word: kind.status for kind in kinds}


def test_the_settings_are_all_there_with_their_defaults() -> None:
    told = dict(re.findall(r"^- `(BRAINQ_HTTP_\w+)` \(([^()]+)\)", PAGE, re.MULTILINE))
    assert set(told) == {f"BRAINQ_{name.upper()}" for name in HttpSettings.model_fields}
    for name, field in HttpSettings.model_fields.items():
        shown = told[f"BRAINQ_{name.upper()}"]
        expected = field.default
        if not isinstance(expected, str):
            expected = str(expected).lower() if isinstance(expected, bool) else f"{expected:.10g}"
        assert shown == (f"`{expected}`" if expected else shown)
        assert expected or shown in ("none", "any")


def answer(request: ModelRequest) -> ModelReply:
    if request.step == 1 and request.messages[-1].content == "restock apples":
        return calls(("restock", {"item": "apples"}))
    return says("There are 3 apples.")


def shop() -> Brain:
    brain = Brain("shop", ScriptedProvider(rules=answer), approvals=Approvals(effects=(Effect.LOCAL_WRITE,)))

    @brain.tool(effect=Effect.LOCAL_WRITE)
    def restock(item: str) -> str:  # pyright: ignore[reportUnusedFunction]
        "Restock."
        return f"{item}: now 8"

    return brain


def test_the_examples_run(pumps: Callable[..., Pump], tmp_path: Path) -> None:
    start, submit, stream, again, result, talk, decide, hold, lists = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    brain = shop()
    pump, driven = pumps(brain), threading.Event()

    def drive() -> None:
        while not driven.wait(0.02):
            pump.drain()

    with GatewayThread(pump.settings, brain) as gateway:
        given = start.replace("http://127.0.0.1:8321", gateway.url)

        def run(block: str, **names: str) -> Any:
            told = "\n".join(f"{name}={value}" for name, value in names.items())
            done = subprocess.run(
                ["bash", "-euo", "pipefail", "-c", f"{given}\n{told}\n{block}"],
                capture_output=True,
                text=True,
                timeout=60,
                check=True,
            )
            return done.stdout

        driver = threading.Thread(target=drive)
        driver.start()
        try:
            assert '"text":"There are 3 apples."' in run(submit)
            # The stream lasts until the turn ends, and that waits for a person: approve from beside it.
            person = threading.Thread(target=_approve_first, args=(gateway, run, decide))
            person.start()
            events = read(run(stream + 'echo\necho "data: \\"$TURN\\""\necho\n').encode())
            person.join(60)
            turn = str(events.pop())
            assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
            assert read(run(again, TURN=turn).encode()) == events[3:]
            assert '"stop_reason":"answered"' in run(result, TURN=turn)
            said = run(talk, TURN=turn)
            assert '"state":"bounced"' in said
            (became,) = set(re.findall(r'"bounced_turn_id":"([^"]+)"', said))
            gateway.http.get(f"/v1/turns/{became}/result", headers={"Prefer": "wait=30"}).raise_for_status()
        finally:
            driven.set()
            driver.join()
        live = pump.submit("shop:2", "count pears")
        open_, failing, found, sessions = read_lines(run(lists))
        assert [seen["turn_id"] for seen in open_["turns"]] == [live.turn_id]
        assert failing == {"turns": [], "next": None, "cells_away": []}
        assert found == {"turns": [], "next": None, "cells_away": []}
        assert {seen["session_id"] for seen in sessions["sessions"]} >= {"shop:2"}
        said = run(hold, LIVE=f"/v1/turns/{live.turn_id}")
        assert '{"released":true}' in said
        assert f'"live":"{live.turn_id}"' in said
        assert '{"cancelled":"' in said


def read_lines(said: str) -> list[Any]:
    """JSON values, one behind the other."""
    decoder, found = json.JSONDecoder(), []
    while said := said.lstrip():
        value, end = decoder.raw_decode(said)
        found.append(value)
        said = said[end:]
    return found


def _approve_first(gateway: GatewayThread, run: Callable[..., str], decide: str) -> None:
    waiting = wait_until(lambda: gateway.http.get("/v1/approvals").json()["approvals"], "a call waits for a person")
    assert '"state":"approved"' in run(decide, CALL=waiting[0]["id"])
