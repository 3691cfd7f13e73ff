"""The page's pure parts: the fold over events, frames out of bytes, rows of a timeline, its scale, marks in text."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from brainq.contracts.event import EventKind, TimelineBar, TimelineSpan, TurnEvent, TurnTimeline
from brainq.contracts.message import Attachment
from brainq.contracts.status import Effect
from brainq.contracts.stop import checked_stop
from brainq.contracts.typed_events import FIELDS
from brainq.gateway.rest.event_stream import HEARTBEAT, event_frame
from tests.support.page_modules import NODE, run

pytestmark = pytest.mark.needs(NODE, "node")


def events(*told: tuple[EventKind, dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        TurnEvent(seq=number, kind=kind, at_ms=1_000 + number * 100, data=data).model_dump(mode="json")
        for number, (kind, data) in enumerate(told, 1)
    ]


CALL = {"call": "c1-0", "tool": "read", "effect": "read_only"}
K = EventKind
WHOLE = events(
    (K.TURN_QUEUED, {"ahead": 1}),
    (K.TURN_ACTIVE, {"deadline_in_ms": 60_000}),
    (K.STEP_STARTED, {"step": 1, "attempt": 1}),
    (K.TEXT_DELTA, {"step": 1, "attempt": 1, "text": "I beg"}),
    (K.STEP_RETRIED, {"step": 1, "attempt": 1, "kind": "stream", "wait_ms": 5}),
    (K.STEP_STARTED, {"step": 1, "attempt": 2}),
    (K.TEXT_DELTA, {"step": 1, "attempt": 1, "text": "of the attempt that was given up"}),
    (K.REASONING_DELTA, {"step": 1, "attempt": 1, "text": "thought in vain"}),
    (K.REASONING_DELTA, {"step": 1, "attempt": 2, "text": "To look "}),
    (K.REASONING_DELTA, {"step": 1, "attempt": 2, "text": "is best."}),
    (K.TEXT_DELTA, {"step": 1, "attempt": 2, "text": "I look 😀"}),
    (K.APPROVAL_REQUESTED, {**CALL, "reason": "it is signed", "expires_in_ms": 1000}),
    (K.STEP_ENDED, {"step": 1, "calls": 1, "plan": [CALL], "input_tokens": 7, "output_tokens": 3, "problem": ""}),
    (K.CALL_PARKED, {"call": "c1-0", "why": "approval"}),
    (K.TURN_PARKED, {"awaits": "people"}),
    (K.INPUT_ACCEPTED, {"input": "m1"}),
    (K.APPROVAL_DECIDED, {"call": "c1-0", "decision": "approved", "edited": True}),
    (K.TURN_RESUMED, {"parked_ms": 200}),
    (K.CALL_WAITING, {"call": "c1-0"}),
    (K.CALL_DISPATCHED, {"call": "c1-0", "attempt": 1}),
    (K.HOLD_PLACED, {"hold": "h1", "reason": "look", "kind": "hold"}),
    (K.CALL_RUNNING, {"call": "c1-0", "tool": "read", "attempt": 1}),
    (K.CALL_PROGRESS, {"call": "c1-0", "done": 1, "total": 3, "message": "rows"}),
    (K.HOLD_RELEASED, {"hold": "h1"}),
    (K.CALL_ENDED, {"call": "c1-0", "tool": "read", "status": "completed", "latency_ms": 9, "detail": ""}),
    (K.REFLECTION, {"step": 1, "stub": ""}),
    (K.COMPACTION, {"dropped": 3, "method": "rules", "tokens_before": 9, "tokens_after": 4}),
    (K.NOTICE, {"waits_for": "requests a minute of m", "wait_ms": 900}),
    (K.STEP_STARTED, {"step": 2, "attempt": 1}),
    (K.INPUT_CONSUMED, {"input": "m1", "step": 2}),
    (K.NOTICE, {"context_full": 71, "step": 2}),
    (K.BUDGET, {"spent": "steps"}),
    (K.TEXT_DELTA, {"step": 2, "attempt": 1, "text": "Done."}),
    (K.TURN_DIFF, {"diff": "+a"}),
    (K.TURN_CANCELLING, {"reason": "enough"}),
    (K.TURN_CLOSING, {"ending": "completed", "stop_reason": "answered"}),
    (K.RESULT, {"ending": "completed", "stop_reason": "answered", "elapsed_ms": 3_000}),
)

RESUMED = """
import { NOTHING, fold } from "./live/fold.js";
const whole = given.reduce(fold, NOTHING);
const others = [];
for (let cut = 0; cut <= given.length; cut += 1) {
  // A reader that resumes may be sent again what it has seen.
  const first = given.slice(0, cut).reduce(fold, NOTHING);
  const before = JSON.stringify(first);
  others.push(JSON.stringify(given.slice(Math.max(0, cut - 2)).reduce(fold, first)));
  if (JSON.stringify(first) !== before) throw new Error(`the fold changed its state at ${cut}`);
}
told({ whole, differing: others.filter((other) => other !== JSON.stringify(whole)).length });
"""


def test_a_turn_read_in_pieces_is_the_same_whole_wherever_it_is_cut(tmp_path: Path) -> None:
    told = run(tmp_path, RESUMED, WHOLE)
    assert told["differing"] == 0
    whole = told["whole"]
    assert [step["text"] for step in whole["steps"]] == ["I look 😀", "Done."]
    assert [step["thought"] for step in whole["steps"]] == ["To look is best.", ""]
    assert [step["attempt"] for step in whole["steps"]] == [2, 1]
    assert whole["contextFull"] == 71
    *_, waited = whole["asides"]
    assert waited["label"] == "Waits for requests a minute of m"
    assert waited["to"] - waited["from"] == 100, "until the step began"
    (call,) = whole["calls"].values()
    assert [span["phase"] for span in call["spans"]] == ["parked", "waiting", "queued", "running"]
    assert all(span["to"] is not None for span in call["spans"])
    assert whole["asked"]["c1-0"]["edited"] is True
    assert (whole["inputs"]["m1"]["state"], whole["inputs"]["m1"]["step"]) == ("consumed", 2)
    assert whole["deadlineAt"] == 1_200 + 60_000 + 300, "it stood still while the turn was parked"
    assert (whole["state"], whole["stopReason"], whole["diff"]) == ("completed", "answered", "+a")


def test_every_kind_of_event_is_known_to_the_sample() -> None:
    assert {event["kind"] for event in WHOLE} | {"turn.opening", "input.bounced"} == {kind.value for kind in FIELDS}


def test_frames_are_read_however_their_bytes_come(tmp_path: Path) -> None:
    sent = HEARTBEAT + b"".join(event_frame(TurnEvent.model_validate(event)) + HEARTBEAT for event in WHOLE)
    source = """
    import { frames } from "./live/sse.js";
    const bytes = Uint8Array.from(given.bytes);
    const differing = [];
    for (let size = 1; size < 90; size += 1) {
      const got = [];
      const feed = frames((data, id) => got.push([id, JSON.parse(data)]));
      for (let at = 0; at < bytes.length; at += size) feed(bytes.subarray(at, at + size));
      if (JSON.stringify(got) !== JSON.stringify(given.want)) differing.push(size);
    }
    told(differing);
    """
    want = [[str(event["seq"]), event] for event in WHOLE]
    assert run(tmp_path, source, {"bytes": list(sent), "want": want}) == []


def test_rows_have_every_part_of_a_turn_and_no_two_bars_on_one_place(tmp_path: Path) -> None:
    source = """
    import { NOTHING, fold } from "./live/fold.js";
    import { rowsOf } from "./live/rows.js";
    told(rowsOf(given.reduce(fold, NOTHING), 9_000, { lanes: { "c1-0": ["note:a"] } }));
    """
    rows = run(tmp_path, source, WHOLE)
    assert [row["name"] for row in rows] == ["Coordinator", "Reads", "People", "Finalizer"]
    assert rows[1]["hint"] == "lane note:a"
    for row in rows:
        for line in range(row["lines"]):
            bars = sorted((bar["from"], bar["to"]) for bar in row["bars"] if bar["line"] == line)
            assert all(first[1] <= second[0] for first, second in pairwise(bars)), row["key"]


def test_a_wait_for_a_models_limits_says_nothing_of_the_context(tmp_path: Path) -> None:
    source = """
    import { NOTHING, fold } from "./live/fold.js";
    import { rowsOf } from "./live/rows.js";
    const turn = given.reduce(fold, NOTHING);
    told({ full: turn.contextFull, bars: rowsOf(turn, 9_000)[0].bars });
    """
    wait = (K.NOTICE, {"waits_for": "room at the service", "wait_ms": 50})
    found = run(tmp_path, source, events((K.TURN_ACTIVE, {"deadline_in_ms": 60_000}), wait, wait))
    assert found["full"] == 0
    assert [(bar["label"], bar["tone"], bar["open"]) for bar in found["bars"]] == [
        ("waits", "wait", False),
        ("waits", "wait", True),
    ]
    assert found["bars"][1]["facts"] == [["", "Waits for room at the service"]]


@pytest.mark.parametrize(
    ("why", "said"),
    [
        ("session", "waiting for earlier turns of its session"),
        ("room", "waiting for capacity"),
        ("brain", "waiting for its brain's capacity"),
        ("paused", "waiting: its session is paused"),
    ],
)
def test_a_queued_turn_says_what_it_waits_for(tmp_path: Path, why: str, said: str) -> None:
    source = """
    import { NOTHING, fold } from "./live/fold.js";
    import { rowsOf } from "./live/rows.js";
    told(rowsOf(given.reduce(fold, NOTHING), 9_000)[0].bars.map((bar) => bar.label));
    """
    assert run(tmp_path, source, events((K.TURN_QUEUED, {"ahead": 2, "why": why}))) == [said]


def test_files_are_named_and_only_images_that_a_browser_draws_are_shown(tmp_path: Path) -> None:
    source = """
    import { files } from "./parts/files.js";
    const drawn = files("t01", given).children;
    told({
      none: files("t01", []),
      images: drawn.map((one) => one.children.filter((child) => child.tag === "img").map((child) => child.props.alt)),
      names: drawn.map((one) => one.children.at(-1).children.map((child) => child.children.join("")).join("")),
    });
    """
    kinds = [("image/png", 2_340, "plan.png"), ("image/svg+xml", 9, ""), ("application/pdf", 1_200_000, "")]
    given = [
        Attachment(sha256=f"{at}" * 64, media_type=kind, size=size, name=name).model_dump(mode="json")
        for at, (kind, size, name) in enumerate(kinds)
    ]
    found = run(tmp_path, source, given)
    assert found["none"] is None
    assert found["images"] == [["plan.png"], [], []]
    assert found["names"] == [
        "plan.png image/png, 2.3 kB",
        "an image image/svg+xml, 9 bytes",
        "a file application/pdf, 1.2 MB",
    ]


def test_a_turn_whose_events_are_gone_has_the_rows_that_its_route_tells(tmp_path: Path) -> None:
    told = TurnTimeline(
        turn_id="t01",
        session_id="s1",
        source="sql",
        began_at_ms=1_000,
        state="completed",
        now_ms=900,
        bars=(
            TimelineBar(id="step:1", kind="step", from_ms=0, to_ms=100, step=1, pool="coordinator", is_exact=False),
            TimelineBar(
                id="call:c1-0",
                kind="call",
                name="edit",
                from_ms=100,
                to_ms=500,
                call_id="c1-0",
                effect=Effect.LOCAL_WRITE,
                pool="serial",
                outcome="failed",
                spans=(TimelineSpan(kind="parked", from_ms=100, to_ms=400), TimelineSpan(kind="running", from_ms=400)),
            ),
            TimelineBar(id="parked:1", kind="parked", name="people", from_ms=100, to_ms=400),
            TimelineBar(id="finalizer", kind="finalizer", from_ms=500, to_ms=600, outcome="completed"),
            TimelineBar(id="finalizer:memory", kind="finalizer", name="memory", from_ms=600, to_ms=700, outcome="dead"),
        ),
    )
    source = """
    import { finalStepsOf, pastRows } from "./live/past.js";
    told({ ...pastRows(given), steps: finalStepsOf(given) });
    """
    found = run(tmp_path, source, told.model_dump(mode="json"))
    assert [row["name"] for row in found["rows"]] == ["Coordinator", "Local writes", "People", "Finalizer"]
    (call,) = found["rows"][1]["bars"]
    assert (call["from"], call["to"], call["tone"], call["call"]) == (1_100, 1_500, "bad", "c1-0")
    assert [part["tone"] for part in call["parts"]] == ["park", "bad"]
    assert found["waits"] == [{"from": 1_100, "to": 1_400}]
    assert [(step["step"], step["state"]) for step in found["steps"]] == [("memory", "dead")]


def test_a_long_wait_is_drawn_shorter_and_order_is_kept(tmp_path: Path) -> None:
    source = """
    import { scaleOf } from "./live/scale.js";
    const scale = scaleOf(0, 3_610_000, [{ from: 5_000, to: 3_605_000 }], 8);
    const at = [0, 2_500, 5_000, 1_000_000, 3_605_000, 3_610_000].map((ms) => scale.x(ms));
    told({ at, breaks: scale.breaks.length, plain: scaleOf(0, 10_000, [{ from: 2_000, to: 4_000 }], 8).breaks.length });
    """
    told = run(tmp_path, source, None)
    assert told["at"] == sorted(told["at"])
    assert (told["at"][0], told["at"][-1]) == (0, 1)
    assert told["at"][2] > 0.3, "what is no wait has most of the place"
    assert (told["breaks"], told["plain"]) == (1, 0)


STOPS = """
import { liftOf, subjectOf } from "./parts/stops.js";
told(given.map((one) => [subjectOf(one), liftOf(one)]));
"""


def test_a_stop_is_named_and_lifted_by_the_route_of_its_kind_name_and_tenant(tmp_path: Path) -> None:
    stops = [
        checked_stop("model", "openai:gpt-5"),
        checked_stop("tool", "a/b", "acme"),
        checked_stop("tenant", "acme"),
    ]
    assert run(tmp_path, STOPS, [stop.model_dump(mode="json") for stop in stops]) == [
        ["model openai:gpt-5", "v1/stops/model/openai%3Agpt-5"],
        ["tool a/b of tenant acme", "v1/stops/tool/a%2Fb?tenant=acme%3A"],
        ["tenant acme", "v1/stops/tenant/acme%3A"],
    ]
