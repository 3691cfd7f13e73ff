"""What the page says of a turn, and how it draws it: sentences, endings, time, ticks, many calls, what is copied."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from brainq.contracts.event import EventKind as K
from brainq.contracts.status import Ending, StopReason
from tests.support.page_modules import NODE, run
from tests.unit.gateway.test_page_modules import CALL, events

pytestmark = pytest.mark.needs(NODE, "node")

PARKED = events(
    (K.TURN_ACTIVE, {"deadline_in_ms": 60_000}),
    (K.STEP_STARTED, {"step": 1, "attempt": 1}),
    (K.APPROVAL_REQUESTED, {**CALL, "reason": "", "expires_in_ms": 1000}),
    (K.STEP_ENDED, {"step": 1, "calls": 1, "plan": [CALL], "input_tokens": 7, "output_tokens": 3, "problem": ""}),
    (K.CALL_PARKED, {"call": "c1-0", "why": "approval"}),
    (K.TURN_PARKED, {"awaits": "people"}),
)


def test_every_reason_has_words_and_only_a_whole_answer_is_good(tmp_path: Path) -> None:
    source = """
    import { endingOf } from "./core/words.js";
    told(given.map(([state, reason]) => ({ reason, ...endingOf(state, reason) })));
    """
    pairs = [(Ending.COMPLETED.value, reason.value) for reason in StopReason]
    found = run(tmp_path, source, pairs)
    assert all(one["sentence"].endswith(".") and "_" not in one["word"] for one in found)
    assert [one["reason"] for one in found if one["tone"] == "good"] == ["answered"]
    failed = run(tmp_path, source, [("failed", "invalid_output"), ("failed", "answered"), ("cancelled", "cancelled")])
    assert [one["tone"] for one in failed] == ["bad", "bad", "off"]


@pytest.mark.parametrize(
    ("error", "said"),
    [
        ("openai: HTTP 401: no such key; check the API key of openai", "OpenAI rejected the key (401)."),
        ("anthropic: HTTP 429", "Anthropic is rate limiting (429)."),
        ("openai: HTTP 503: away", "OpenAI failed (503)."),
        ("mine: HTTP 404: x", "mine does not know this model or address (404)."),
        ("the model broke at 401 Main Street", ""),
        (None, ""),
    ],
)
def test_what_a_models_service_refused_is_said_plainly(tmp_path: Path, error: str | None, said: str) -> None:
    source = 'import { modelError } from "./core/words.js";\ntold(modelError(given));'
    assert run(tmp_path, source, error) == said


STANDING = """
import { NOTHING, fold } from "./live/fold.js";
import { standingOf } from "./live/next.js";
told(standingOf(given.state, given.events.reduce(fold, NOTHING), given.known, given.now));
"""


def standing(directory: Path, state: str, told: list[dict[str, Any]], now: int, **known: Any) -> str:
    found = run(directory, STANDING, {"state": state, "events": told, "known": known, "now": now})
    return f"{found['title']}: {found['text']}"


def test_a_turn_says_in_plain_words_what_it_does_and_what_it_waits_for(tmp_path: Path) -> None:
    active = events((K.TURN_ACTIVE, {"deadline_in_ms": 60_000}))
    assert standing(tmp_path, "active", active, 51_100) == "Waiting: for a coordinator, 50 s so far."
    asked = PARKED[:2]
    assert standing(tmp_path, "active", asked, 3_200) == "Running: Step 1: the model was called, 2.0 s so far."
    approval = {"call_id": "c1-0", "tool": "refund", "state": "pending", "expires_at": "1970-01-01T00:57:10+00:00"}
    assert standing(tmp_path, "parked", PARKED, 10_000, approvals=[approval]) == (
        "Waiting: for your approval of refund, 57 min left."
    )
    assert standing(tmp_path, "parked", PARKED, 10_000) == "Waiting: for approval of read."
    ended = standing(
        tmp_path,
        "failed",
        [],
        0,
        result={"stop_reason": "model_error", "error": "openai: HTTP 401: no"},
        finalizerStep="memory",
    )
    assert ended == "Model error: OpenAI rejected the key (401). Still to be recorded: memory."


def test_parked_time_is_counted_once_and_stops_the_clock(tmp_path: Path) -> None:
    source = """
    import { NOTHING, fold } from "./live/fold.js";
    import { parkedFor, timeLeft } from "./live/figures.js";
    const turn = given.events.reduce(fold, NOTHING);
    const parked = parkedFor(turn, { parked_ms: 271_000 }, given.now);
    told([parked, timeLeft(turn, given.now), parkedFor(NOTHING, { parked_ms: 7 }, 9)]);
    """
    parked, left, of_snapshot = run(tmp_path, source, {"events": PARKED, "now": 1_600 + 272_000})
    assert parked == 272_000, "the snapshot has the wait that is open in its sum already"
    assert left == {"ms": 1_100 + 60_000 - 1_600, "isPaused": True}
    assert of_snapshot == 7


def test_a_long_wait_leaves_no_empty_half_and_no_two_ticks_read_alike(tmp_path: Path) -> None:
    source = """
    import { endOf, scaleOf } from "./live/scale.js";
    told(given.map(([from, last, waits, isOver]) => {
      const scale = scaleOf(from, endOf(from, last, waits, isOver), waits, 9);
      return { at: scale.x(last), labels: scale.ticks.map((tick) => tick.label) };
    }));
    """
    hour = 3_600_000
    wait = [{"from": 6_000, "to": hour}]
    day = [{"from": 6_000, "to": 24 * hour}]
    cases: list[Any] = [
        [0, hour, wait, False],  # parked now
        [0, 1_000, [{"from": 300, "to": 1_000}], False],  # parked a moment ago
        [0, hour + 5_000, wait, True],  # ended since
        [0, hour + 5_000, wait, False],
        [0, 24 * hour + 3_000, day, True],
        [0, 20_000, [], True],
        [0, 24 * 60_000, [], True],
    ]
    for case, found in zip(cases, run(tmp_path, source, cases), strict=True):
        is_parked = any(one["to"] >= case[1] for one in case[2])
        assert found["at"] > (0.97 if case[3] or is_parked else 0.6), case
        assert len(set(found["labels"])) == len(found["labels"]) > 1, found["labels"]


def test_many_equal_calls_are_one_bar_and_what_failed_stands_by_itself(tmp_path: Path) -> None:
    plan = [{"call": f"c1-{n}", "tool": "read", "effect": "read_only"} for n in range(128)]
    told = events(
        (K.TURN_ACTIVE, {"deadline_in_ms": 60_000}),
        (K.STEP_STARTED, {"step": 1, "attempt": 1}),
        (K.STEP_ENDED, {"step": 1, "calls": 128, "plan": plan}),
        *((K.CALL_RUNNING, {"call": one["call"], "tool": "read", "attempt": 1}) for one in plan),
        *(
            (K.CALL_ENDED, {"call": one["call"], "tool": "read", "status": "failed" if n == 7 else "completed"})
            for n, one in enumerate(plan)
        ),
    )
    source = """
    import { NOTHING, fold } from "./live/fold.js";
    import { rowsOf } from "./live/rows.js";
    const turn = given.reduce(fold, NOTHING);
    told([false, true].map((isUnfolded) => rowsOf(turn, 99_000, { isUnfolded }).find((row) => row.name === "Reads")));
    """
    folded, unfolded = run(tmp_path, source, told)
    assert sorted((bar["label"], bar["tone"]) for bar in folded["bars"]) == [
        ("read", "bad"),
        ("read \u00d7 127", "good"),
    ]
    whole = next(bar for bar in folded["bars"] if bar["tone"] == "good")
    assert len(whole["calls"]) == 127
    assert folded["lines"] == 2
    assert len(unfolded["bars"]) == 128


def test_waits_for_workers_and_each_try_of_a_step_are_seen(tmp_path: Path) -> None:
    source = """
    import { NOTHING, fold } from "./live/fold.js";
    import { rowsOf } from "./live/rows.js";
    told(given.map(({ events, now }) => rowsOf(events.reduce(fold, NOTHING), now)[0].bars));
    """
    waiting = events((K.TURN_ACTIVE, {"deadline_in_ms": 60_000}))
    retried = events(
        (K.TURN_ACTIVE, {"deadline_in_ms": 60_000}),
        (K.STEP_STARTED, {"step": 1, "attempt": 1}),
        *((K.STEP_RETRIED, {"step": 1, "attempt": 1, "kind": "server", "wait_ms": 50}) for _ in range(8)),
    )
    bars, tries = run(tmp_path, source, [{"events": waiting, "now": 51_100}, {"events": retried, "now": 3_000}])
    assert [(bar["label"], bar["to"] - bar["from"], bar["open"]) for bar in bars] == [
        ("waiting for a worker", 50_000, True)
    ]
    assert [part["tone"] for part in tries[0]["parts"]].count("bad") == 8


def test_what_is_copied_runs_and_holds_just_what_was_said(tmp_path: Path) -> None:
    said = "it's \"$HOME\" `ls` \\ 💐\n'; echo broken; '"
    given = {"session_id": "s1", "user_message": said, "brain": None, "metadata": {"a": [True, None, 1]}}
    source = """
    import { curlOf, pythonOf } from "./parts/sharing.js";
    told([curlOf(given, "http://127.0.0.1:1/v1/turns"), pythonOf(given)]);
    """
    curl, python = run(tmp_path, source, given)
    shell = 'curl() { for last; do :; done; printf %s "$last"; }\n' + curl
    sent = subprocess.run(["sh", "-c", shell], capture_output=True, text=True, check=True).stdout
    assert json.loads(sent)["user_message"] == said
    called: dict[str, Any] = {}

    class Client:
        def __enter__(self) -> Client:
            return self

        def __exit__(self, *_: object) -> None: ...

        def submit(self, session: str, message: str, **more: Any) -> Any:
            called.update(session=session, message=message, **more)
            return self

        def result(self) -> Client:
            return self

        text = "Done."

    exec(compile(python.replace("from brainq import Client", ""), "copied", "exec"), {"Client": Client})
    assert called == {"session": "s1", "message": said, "metadata": given["metadata"]}


def test_arguments_are_edited_as_what_they_are(tmp_path: Path) -> None:
    source = """
    import { fieldsOf, isExact, readFields } from "./parts/arguments.js";
    const fields = fieldsOf(given);
    told({
      fields,
      same: readFields(given, fields).value,
      wrong: readFields(given, { ...fields, amount: "much" }),
      changed: readFields(given, { ...fields, order: "1", amount: "80", ok: "false" }).value,
      exact: [isExact(given), isExact({ id: 12345678901234567890 })],
    });
    """
    given = {"order": "0012", "amount": 84.5, "ok": True, "tags": ["a"], "none": None, "text": "two\nlines"}
    found = run(tmp_path, source, given)
    assert found["same"] == given
    assert (found["fields"]["order"], found["fields"]["text"]) == ("0012", "two\nlines")
    assert found["wrong"] == {"wrong": "amount: This must be a number", "field": "amount"}
    assert found["changed"] == {**given, "order": "1", "amount": 80, "ok": False}
    assert found["exact"] == [True, False]


def test_filters_become_the_routes(tmp_path: Path) -> None:
    source = """
    import { wanted } from "./parts/filters.js";
    told(given.map((query) => wanted(query, 1_800_000_000_000)));
    """
    found = run(
        tmp_path,
        source,
        [
            {},
            {"text": "report", "sort": "cost", "time": "24h", "failing": "1"},
            {"time": "dates", "from": "2026-05-01", "to": "2026-05-01"},
            {"time": "dates", "from": "nonsense"},
        ],
    )
    assert found[0] == {}
    assert found[1] == {"search": "report", "sort": "cost", "failing": "true", "since": "2027-01-14T08:00:00.000Z"}
    assert found[2]["since"] < found[2]["until"]
    assert found[3] == {}


def test_a_list_says_why_in_plain_words(tmp_path: Path) -> None:
    source = 'import { noteOf } from "./live/next.js";\ntold(given.map(noteOf));'
    turns = [
        {"state": "completed", "stop_reason": "answered", "note": "answered", "tokens": 12},
        {"state": "failed", "stop_reason": "model_error", "note": "model_error: openai: HTTP 401: no key"},
        {"state": "completed", "stop_reason": "max_steps", "note": "max_steps"},
        {"state": "parked", "stop_reason": None, "note": "waits for a person's approval of c2-0 refund; then c2-1"},
        {"state": "failed", "stop_reason": "lost", "note": "lost: Redis lost it"},
    ]
    assert run(tmp_path, source, turns) == [
        "12 tokens",
        "OpenAI rejected the key (401).",
        "It used all of its steps before it had an answer.",
        "Waiting for approval of refund; then c2-1",
        "Redis lost it",
    ]


SHOWN = """
import { unknownIn, unknownWrites } from "./parts/unknown_writes.js";
import { turnBadge } from "./parts/bits.js";
const textOf = (node) => (typeof node === "object" ? text(node?.children ?? []) : String(node));
const text = (node) => (Array.isArray(node) ? node.map(textOf).join(" ") : node === null ? "" : textOf(node));
const turn = { turn_id: "t1", session_id: "s1" };
const said = (calls, isOver) => text(unknownWrites(unknownIn(calls), turn, isOver)).replace(/\\s+/g, " ");
told([said(given, false), said(given, true), said(given.slice(1), true), text(turnBadge("completed", "answered", 1))]);
"""


def test_an_unknown_write_says_what_it_was_and_what_to_do(tmp_path: Path) -> None:
    pay = {"call_id": "c1-0", "tool": "pay", "status": "unknown", "arguments": {"to": "ann"}, "started_at_ms": 1_000}
    live, over, none, badge = run(tmp_path, SHOWN, [pay, {**pay, "call_id": "c1-1", "status": "completed"}])
    assert 'A write may or may not have happened pay to="ann" started ' in live
    assert "Check in the service whether it happened. Then tell the model with a message below" in live
    assert "in its session" in over
    assert none == ""
    assert badge.strip() == "completed, 1\u00a0unknown\u00a0write"


def test_a_cost_that_nobody_knows_is_not_shown_as_nothing(tmp_path: Path) -> None:
    source = """
    import { costOf, costOfCalls } from "./live/figures.js";
    told({ turns: given.turns.map(([result, budget]) => costOf(result, budget)), calls: given.calls.map(costOfCalls) });
    """
    used = {"tokens_used": 9, "cost_usd": 0.0, "cost_known": False}
    priced = {"calls": 2, "unpriced_calls": 1, "cost_usd": 0.5}
    free = {"calls": 1, "unpriced_calls": 0, "cost_usd": 0.0}
    unknown = {"calls": 2, "unpriced_calls": 2, "cost_usd": 0.0}
    turns = [
        (None, used),
        (None, {**used, "cost_known": True}),
        (None, {**used, "tokens_used": 0}),
        (None, None),
        ({"cost_usd": None}, used),
    ]
    found = run(tmp_path, source, {"turns": turns, "calls": [[unknown], [unknown, priced], [free], []]})
    assert found == {"turns": [None, 0, 0, 0, None], "calls": [None, 0.5, 0, 0]}
