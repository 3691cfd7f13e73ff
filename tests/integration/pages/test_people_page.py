"""The code of docs/guides/people.md, docs/guides/tool-selection.md and docs/operate/fairness.md runs as they say."""

from __future__ import annotations

import importlib
import re
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from brainq import Brain, Effect, make_tool
from brainq.contracts.status import TraceStatus
from tests.support.pump import Pump
from tests.support.wait import wait_until

DOCS = Path(__file__).parents[3] / "docs"


def blocks(page: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(), re.DOTALL)


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Brain:
    """The page's brain, in the directory that the page's other code runs in."""
    (tmp_path / "shop.py").write_text(blocks("guides/people.md")[1])
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return importlib.import_module("shop").brain


@pytest.fixture
def pump(pumps: Callable[..., Pump], shop: Brain, monkeypatch: pytest.MonkeyPatch) -> Pump:
    """Workers of the shop, whose servers the page's `Client()` finds in the environment."""
    made = pumps(shop, app="shop:brain")
    monkeypatch.setenv("BRAINQ_APP", "shop:brain")
    for name in ("redis_url", "sql_url"):
        monkeypatch.setenv(f"BRAINQ_{name.upper()}", getattr(made.settings, name).get_secret_value())
    return made


@contextmanager
def working(pump: Pump) -> Generator[None]:
    """Doorbells are answered, and turns swept, while the page's code runs."""
    over = threading.Event()

    def work() -> None:
        while not over.is_set():
            if not pump.drain():
                pump.sweep()
                over.wait(0.01)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    except BaseException as failure:
        did = [(bell.task, bell.args, word) for bell, word in pump.bells]
        failure.add_note(f"The workers {'work' if thread.is_alive() else 'died'}; what they did: {did}")
        raise
    finally:
        over.set()
        thread.join()


def test_what_waits_for_a_person_is_approved_in_five_lines(pump: Pump, capsys: pytest.CaptureFixture[str]) -> None:
    handle = pump.submit("monday", "A refund, please")
    pump.drain()
    exec(compile(blocks("guides/people.md")[0], "people.md", "exec"), {})
    assert capsys.readouterr().out == "refund {'order': 'A1', 'amount': 120} a large refund\n"
    assert pump.finish(handle).text == "It is done."


def test_a_tenants_turn_begins_while_anothers_wait(
    pump: Pump, pumps: Callable[..., Pump], shop: Brain, capsys: pytest.CaptureFixture[str]
) -> None:
    pumps(shop, max_live_turns=4).sweep_part("publish the capacity")  # as a coordinator does
    names: dict[str, Any] = {}
    exec(compile(blocks("operate/fairness.md")[0], "fairness.md", "exec"), names)
    assert capsys.readouterr().out
    states = {turn.session_id: turn.state for turn in pump.client.turns(limit=40)}
    assert len(states) == 31
    assert states["beta:1"] == "active"
    assert states["acme:29"] == "queued"


def test_a_turn_is_held_steered_and_approved(pump: Pump, capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {}
    with working(pump):
        exec(compile(blocks("guides/people.md")[2], "people.md", "exec"), names)
    assert capsys.readouterr().out == "It is done.\n"
    handle = names["handle"]
    assert handle.session_id == "tuesday"
    (refund,) = pump.wiring.state.calls.trace("tuesday", handle.turn_id)
    assert (refund.tool, refund.status) == ("refund", TraceStatus.COMPLETED)
    kinds = [event.kind for event in pump.client.handle(handle.turn_id).events()]
    assert {"hold.placed", "hold.released", "approval.requested"} <= set(kinds)
    exec(compile(blocks("guides/people.md")[3], "people.md", "exec"), names)  # what was said
    assert capsys.readouterr().out.startswith(f"{handle.turn_id}-c1-0 refund {{")
    assert (names["messages"], names["more"], names["older"]) == (
        pump.client.handle(handle.turn_id).transcript(),
        (),
        (),
    )


def test_a_web_handler_decides_once(pump: Pump) -> None:
    names: dict[str, Any] = {}
    exec(compile(blocks("guides/people.md")[4], "people.md", "exec"), names)
    with names["client"], working(pump):
        handle = pump.submit("monday", "A refund, please")
        (shown,) = wait_until(lambda: names["waiting"]("monday"), "the approval is listed")
        assert shown["arguments"] == {"order": "A1", "amount": 120}
        decide = names["decide"]
        assert decide("none-c1-0", shown["args_hash"], True, "ann")[0] == 404
        code, decided = decide(shown["id"], shown["args_hash"], False, "ann")
        assert (code, decided["state"]) == (200, "denied")
        assert decide(shown["id"], shown["args_hash"], True, "bob")[0] == 409
        assert handle.result(timeout_s=60).text == "It is done."
    (refund,) = pump.wiring.state.calls.trace("monday", handle.turn_id)
    assert refund.status is TraceStatus.DENIED


def test_what_comes_from_outside_ends_the_call(pump: Pump, capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {}
    with working(pump):
        exec(compile(blocks("guides/people.md")[5], "people.md", "exec"), names)
    assert capsys.readouterr().out == "It is done.\n"
    handle = names["handle"]
    assert pump.wiring.state.runtime.results("wednesday", handle.turn_id)["c1-0"] == '{"ordered":12}'


def test_the_caller_runs_a_tool_of_its_own(pump: Pump, capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {}
    with working(pump):
        exec(compile(blocks("guides/people.md")[6], "people.md", "exec"), names)
    assert capsys.readouterr().out == "It is done.\n"
    results = pump.wiring.state.runtime.results("thursday", names["handle"].turn_id)
    assert list(results.values()) == ["It rains in Oslo.", "It rains in Bern."]


def test_a_conversation_is_brought_along(pump: Pump, capsys: pytest.CaptureFixture[str]) -> None:
    with working(pump):
        exec(compile(blocks("guides/people.md")[7], "people.md", "exec"), {})
    assert capsys.readouterr().out == "Say refund, pears or helper.\n"


def test_a_selection_is_given_as_the_page_says() -> None:
    def hand_over() -> str:
        """Hand over to a person."""
        return "done"

    (code,) = blocks("guides/tool-selection.md")
    names: dict[str, Any] = {"many": [make_tool(hand_over, effect=Effect.READ_ONLY)]}
    exec(compile(code, "tool-selection.md", "exec"), names)
    selection = names["brain"].selection
    assert (selection.max_tools_per_turn, selection.pinned) == (64, ("hand_over",))
