"""What a tool's function gets: its context, its pack and its deadline."""

from __future__ import annotations

import asyncio
import json
import math
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brainq.contracts.call import parse_outside_token
from brainq.contracts.claim import CallRef
from brainq.contracts.memory import RetrievedMemory
from brainq.contracts.turn import Citation
from brainq.engine.tools.context import FileChange, RunContext, SideOutputs
from brainq.engine.tools.context_pack import merge_preferences, pack_json, read_pack
from brainq.engine.tools.deadline import DeadlineToken
from brainq.engine.tools.results import ToolError

# What a tool leaves in its context.


def context(is_ready: Callable[[], bool] | None = None, limit_s: float = 60.0) -> RunContext:
    return RunContext(
        session_id="s", turn_id="turn", call_id="c2-1", token=DeadlineToken(limit_s), attempt=2, is_ready=is_ready
    )


def test_the_idempotency_key_is_the_same_for_every_attempt() -> None:
    assert context().idempotency_key == "turn:c2-1"


def test_outputs_keep_their_order_and_no_repeats() -> None:
    run = context()
    run.cite_local("b.md", "B")
    run.cite_local("a.md")
    run.cite_local("b.md", "B")
    run.cite_web("https://example.org/", quote="q")
    run.rendered("/tmp/plot.png")
    run.rendered("/tmp/plot.png")
    run.block_tool()

    assert run.outputs() == SideOutputs(
        (Citation(source="b.md", title="B"), Citation(source="a.md")),
        (Citation(source="https://example.org/", quote="q"),),
        ("/tmp/plot.png",),
        True,
    )


def test_a_sealed_context_takes_nothing_more() -> None:
    run, other = context(), context()
    run.cite_local("kept")
    run.record_change("kept", None, "x")
    other.cite_web("https://example.org/")
    other.record_change("late", None, "x")
    run.seal()

    run.cite_local("late")
    run.cite_web("late")
    run.rendered("late")
    run.block_tool()
    run.record_change("late", None, "x")
    run.absorb(other.outputs())

    assert run.outputs() == SideOutputs((Citation(source="kept"),), changes=(FileChange("kept", None, "x"),))


def test_outputs_of_another_process_are_added() -> None:
    run, other = context(), context()
    run.cite_local("a")
    other.cite_local("a")
    other.cite_local("b")
    other.block_tool()
    run.record_change("a", None, "1")
    other.record_change("a", "1", "2")

    run.absorb(other.outputs())

    assert run.outputs() == SideOutputs(
        (Citation(source="a"), Citation(source="b")),
        block_tool=True,
        changes=(FileChange("a", None, "1"), FileChange("a", "1", "2")),
    )


def test_a_token_that_redis_cannot_note_is_no_fault_of_the_tool_s() -> None:
    """The model reads neither a driver's error nor an address, and may try again."""

    def away(token: str) -> str:
        raise ConnectionError("Error 111 connecting to redis.example:6379")

    run = RunContext(session_id="s", turn_id="turn", call_id="c1-0", token=DeadlineToken(60), give_token=away)
    with pytest.raises(ToolError) as raised:
        run.outside_token()
    assert raised.value.retryable
    assert "token of this call could not be stored" in raised.value.text
    assert "redis" not in raised.value.text


def test_the_outside_token_is_one_an_attempt_and_names_the_call() -> None:
    run = context()
    with ThreadPoolExecutor(8) as asking:
        tokens = {asking.submit(run.outside_token).result() for _ in range(20)}
    assert len(tokens) == 1
    assert parse_outside_token(tokens.pop()) == CallRef("s", "turn", "c2-1")
    assert context().outside_token() != context().outside_token()


class Ready:
    """Says no `times` times, or raises where `fails`, and then yes."""

    def __init__(self, times: int, *, fails: bool = False) -> None:
        self.left = times
        self.fails = fails

    def __call__(self) -> bool:
        self.left -= 1
        if self.left >= 0 and self.fails:
            raise ConnectionError("Redis is away")
        return self.left < 0


def wait(run: RunContext, how: str, timeout_s: float | None = None) -> bool:
    return run.wait_ready(timeout_s) if how == "plain" else asyncio.run(run.wait_ready_async(timeout_s))


BOTH = pytest.mark.parametrize("how", ["plain", "async"])


@BOTH
@pytest.mark.parametrize("fails", [False, True])
def test_waiting_ends_when_the_turn_is_ready(how: str, fails: bool, caplog: pytest.LogCaptureFixture) -> None:
    ready = Ready(2, fails=fails)
    assert wait(context(ready), how)
    assert ready.left == -1
    assert ("readiness not known" in caplog.text) is fails


@BOTH
def test_waiting_ends_with_its_own_time(how: str) -> None:
    ready = Ready(10_000)
    assert not wait(context(ready), how, timeout_s=0.0)
    assert ready.left == 9_999, "it was asked once"
    assert not wait(context(ready), how, timeout_s=0.05)


@BOTH
def test_waiting_ends_with_the_call(how: str) -> None:
    assert not wait(context(Ready(10_000), limit_s=0.05), how)
    cancelled = context(Ready(10_000), limit_s=600.0)
    timer = threading.Timer(0.05, cancelled.token.cancel, args=("cancelled",))
    timer.start()
    assert not wait(cancelled, how)
    timer.join()


@BOTH
def test_a_context_made_by_hand_is_ready(how: str) -> None:
    assert wait(context(), how)


# The context pack: read, merged with what memory knows.


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
ENTRIES = st.lists(st.sampled_from(["Short answers", "short  ANSWERS", "No meat", " no meat ", ""]) | JSON, max_size=6)
SAID = st.lists(st.sampled_from(["Short answers", "NO MEAT", "Rises early", "rises  early", " "]), max_size=4)


def memory(preferences: list[str] | None = None, habits: list[str] | None = None) -> RetrievedMemory:
    return RetrievedMemory(preferences=tuple(preferences or ()), habits=tuple(habits or ()))


@pytest.mark.parametrize(
    ("text", "pack"),
    [
        ('{"a": [1, "x"]}', {"a": [1, "x"]}),
        ("", {}),
        (" \n", {}),
        ("plain words", {"text": "plain words"}),
        ("[1, 2]", {"text": "[1, 2]"}),
        ('{"a": ', {"text": '{"a": '}),
        ('{"a": NaN}', {"a": "NaN"}),
        ("[" * 100_000, {"text": "[" * 100_000}),
        ('{"a": 1e999}', {"text": '{"a": 1e999}'}),
        ('{"a": ' + "[" * 5_000 + "]" * 5_000 + "}", {"text": '{"a": ' + "[" * 5_000 + "]" * 5_000 + "}"}),
        ("9" * 5000, {"text": "9" * 5000}),
    ],
)
def test_reading(text: str, pack: dict[str, Any]) -> None:
    assert read_pack(text) == pack


@pytest.mark.parametrize(
    ("pack", "found", "merged"),
    [
        ({}, memory(), {}),
        ({"facts": 1}, memory(), {"facts": 1}),
        ({"preferences": []}, memory(), {"preferences": []}),
        ({}, memory(["Tea"], ["Walks"]), {"preferences": ["Tea", "Walks"]}),
        (
            {"preferences": ["No  meat", {"diet": 1}, "Tea"], "facts": 1},
            memory(["tea ", "NO meat"], ["Walks", "walks"]),
            {"preferences": ["No  meat", {"diet": 1}, "Tea", "Walks"], "facts": 1},
        ),
        ({"preferences": "Tea"}, memory(["Walks"]), {"preferences": ["Tea", "Walks"]}),
        ({"preferences": None}, memory(["Walks"]), {"preferences": ["Walks"]}),
        ({"preferences": {"a": 1}}, memory(["Walks"]), {"preferences": [{"a": 1}, "Walks"]}),
    ],
)
def test_merging(pack: dict[str, Any], found: RetrievedMemory, merged: dict[str, Any]) -> None:
    assert merge_preferences(pack, found) == merged


@settings(deadline=None)  # other tests share the machine
@given(st.dictionaries(st.text(max_size=5), JSON, max_size=3), ENTRIES, SAID, SAID)
def test_merge_rules(rest: dict[str, Any], own: list[Any], preferences: list[str], habits: list[str]) -> None:
    pack = rest | {"preferences": own}
    before = json.dumps(pack)
    merged = merge_preferences(pack, memory(preferences, habits))
    assert json.dumps(pack) == before, "the pack given is not changed"
    assert {key: value for key, value in merged.items() if key != "preferences"} == {
        key: value for key, value in rest.items() if key != "preferences"
    }
    entries: list[Any] = merged["preferences"]
    keys = [" ".join(entry.casefold().split()) for entry in entries if isinstance(entry, str)]
    assert len(keys) == len(set(keys)), "no string twice"
    others = [entry for entry in entries if not isinstance(entry, str)]
    assert others == [entry for entry in own if not isinstance(entry, str)], "other entries stay"
    every = [*own, *(text.strip() for text in (*preferences, *habits))]
    rest_of = iter(every)
    assert all(any(one == entry for one in rest_of) for entry in entries), "the order is kept"
    for text in (*preferences, *habits):
        assert not text.strip() or " ".join(text.casefold().split()) in keys, "nothing found is lost"
    assert merge_preferences(merged, memory(preferences, habits)) == merged, "merging again adds nothing"


def test_one_text_for_equal_packs() -> None:
    assert pack_json({"b": 1, "a": ["é", "\ud800"]}) == '{"a":["é","\ufffd"],"b":1}'
    with pytest.raises(ValueError, match="JSON"):
        pack_json({"a": object()})
    with pytest.raises(ValueError, match="JSON"):
        pack_json({"a": float("nan")})


@settings(deadline=None)  # other tests share the machine
@given(st.dictionaries(st.text(), JSON))
def test_a_pack_survives_its_text(pack: dict[str, Any]) -> None:
    text = pack_json(pack)
    assert text.encode()
    assert pack_json(read_pack(text)) == text


# The token a tool watches.


def test_a_token_expires_in_so_many_seconds() -> None:
    token = DeadlineToken(30.0)

    assert 0 < token.remaining_s <= 30.0
    assert not token.is_expired
    assert token.reason == ""


def test_time_that_is_up_expires_it() -> None:
    token = DeadlineToken(0)

    assert (token.is_expired, token.is_cancelled, token.reason) == (True, False, "deadline")
    assert token.remaining_s == 0.0
    assert token.wait(60.0)


def test_the_first_cancel_stays() -> None:
    token = DeadlineToken(60)

    token.cancel("the user said stop")
    token.cancel("again")

    assert (token.is_expired, token.is_cancelled, token.reason) == (True, True, "the user said stop")
    assert token.remaining_s == 0.0


def test_wait_ends_at_the_deadline() -> None:
    started = time.monotonic()
    assert DeadlineToken(0.02).wait(60.0)
    assert time.monotonic() - started < 30.0


def test_wait_that_ends_early_says_there_is_time_left() -> None:
    assert not DeadlineToken(60.0).wait(0.001)


def test_cancel_wakes_a_waiting_thread() -> None:
    token = DeadlineToken(60.0)
    answers: list[bool] = []
    waiting = threading.Thread(target=lambda: answers.append(token.wait(60.0)))
    waiting.start()
    token.cancel("stop")
    waiting.join(60)
    assert answers == [True]


def test_cancel_from_another_thread_wakes_a_waiting_task() -> None:
    token = DeadlineToken(60.0)

    async def wait() -> bool:
        threading.Thread(target=token.cancel, args=("stop",)).start()
        return await token.wait_async(60.0)

    assert asyncio.run(asyncio.wait_for(wait(), 10.0))


def test_wait_async_ends_at_the_deadline() -> None:
    assert asyncio.run(DeadlineToken(0.01).wait_async(60.0))
    assert not asyncio.run(DeadlineToken(60.0).wait_async(0.001))


def test_its_end_may_be_known_later() -> None:
    token = DeadlineToken(math.inf)
    assert not token.is_expired
    token.ends_at = time.monotonic() + 60.0
    assert 0 < token.remaining_s <= 60.0
    token.ends_at = time.monotonic()
    assert token.is_expired


def test_a_cancel_before_its_end_is_known_stands() -> None:
    token = DeadlineToken(math.inf)
    token.cancel("stop")
    token.ends_at = time.monotonic() + 60.0
    assert (token.is_expired, token.reason) == (True, "stop")


def test_listeners_are_called_once_and_can_be_taken_away() -> None:
    token = DeadlineToken(60.0)
    heard: list[str] = []
    token.on_cancel(lambda: heard.append("stays"))
    remove = token.on_cancel(lambda: heard.append("removed"))
    remove()
    remove()

    token.cancel("a")
    token.cancel("b")
    token.on_cancel(lambda: heard.append("too late, so at once"))

    assert heard == ["stays", "too late, so at once"]


def test_a_listener_that_raises_keeps_no_other_from_being_called() -> None:
    token, heard = DeadlineToken(60.0), list[str]()

    def raises() -> None:
        raise RuntimeError("mine")

    token.on_cancel(raises)
    token.on_cancel(lambda: heard.append("the engine's"))
    with pytest.raises(RuntimeError, match="mine"):
        token.cancel()
    assert (token.is_cancelled, heard) == (True, ["the engine's"])
