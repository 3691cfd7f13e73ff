"""Every verb from a second process, while real pools run the turn that this one submitted."""

from __future__ import annotations

import json
from typing import Any

import pytest

from brainq.contracts.status import Ending, StopReason, TraceStatus
from tests.support.brains.diary import notes, open_gate
from tests.support.brains.obedient import script
from tests.support.elsewhere import Elsewhere, Refused
from tests.support.wait import wait_until
from tests.support.watch import asked, heard, parked, started, token_of, tool_texts
from tests.support.world import World

Read = tuple[str, dict[str, Any]]


def held_read(sid: str) -> Read:
    return "read", {"name": "r", "gate": f"r-{sid}"}


def test_steer_is_read_at_the_next_step(narrow: World, other: Elsewhere, sid: str) -> None:
    turn = narrow.client.submit(sid, script([held_read(sid)], final="$seen"))
    started(turn)
    first = other.handle(turn, "steer", "and pears", client_message_id="m1")
    again = other.handle(turn, "steer", "and pears", client_message_id="m1")
    assert (first["state"], again["state"], again["turn_id"]) == ("accepted", "accepted", turn.turn_id)
    open_gate(f"r-{sid}")
    shown = json.loads(turn.result(timeout_s=60).text)
    assert [m["role"] for m in shown] == ["user", "assistant", "tool", "user"]
    assert shown[-1]["text"].startswith("and pears\n")
    assert heard(turn) == [[], ["m1"]]
    receipt = other.handle(turn, "receipt", "m1")
    assert (receipt["state"], receipt["step"]) == ("consumed", 2)


def test_steer_while_the_last_step_is_answered(narrow: World, other: Elsewhere, sid: str) -> None:
    turn = narrow.client.submit(sid, script(gate=f"m-{sid}", final="done"))
    asked(turn)
    other.session(sid, "steer", "one more", client_message_id="late", expected_turn_id=turn.turn_id)
    open_gate(f"m-{sid}")
    assert turn.result(timeout_s=60).steps == 2
    assert heard(turn) == [[], ["late"]]
    with pytest.raises(Refused, match="StaleTurn"):
        other.session(sid, "steer", "too late", expected_turn_id=turn.turn_id)
    bounced = other.handle(turn, "steer", "after all", client_message_id="after")
    assert bounced["state"] == "bounced"
    after = narrow.client.handle(bounced["bounced_turn_id"]).result(timeout_s=60)
    assert after.text == "heard: after all"
    assert other.handle(turn, "steer", "after all", client_message_id="after") == bounced


def test_hold_and_release(narrow: World, other: Elsewhere, sid: str) -> None:
    turn = narrow.client.submit(sid, script([("read", {"name": "r"}), ("write", {"name": "w"})], gate=f"m-{sid}"))
    asked(turn)
    first, second = (other.handle(turn, "hold", reason) for reason in ("look first", "and again"))
    open_gate(f"m-{sid}")
    parked(turn)
    assert [row["tool"] for row in notes("start", turn=turn.turn_id)] == ["read"]
    assert [hold["reason"] for hold in other.handle(turn, "holds")] == ["look first", "and again"]
    assert other.handle(turn, "release", first) is True
    assert other.handle(turn, "release", first) is False
    parked(turn)
    assert turn.release(second) is True
    result = turn.result(timeout_s=60)
    assert (result.text, result.parked_ms > 0) == ("done", True)
    assert [row["tool"] for row in notes("start", turn=turn.turn_id)] == ["read", "write"]


def test_readiness_is_added_and_released_elsewhere(narrow: World, other: Elsewhere, sid: str) -> None:
    flag = other.session(sid, "readiness", "the files come")
    turn = narrow.client.submit(sid, script([("when_ready", {"name": "t"})], [("write", {"name": "w"})], final="$seen"))
    assert started(turn)["tool"] == "when_ready"
    assert other.release_flag(sid, flag) is True
    assert tool_texts(turn.result(timeout_s=60).text) == ["ready: True", "write w ok"]
    assert other.release_flag(sid, flag) is False
    # A turn of a session without flags is ready, and so is one whose input says so.
    unready = narrow.client.submit(sid, script([held_read(sid)], [("write", {"name": "x"})], final="$seen"))
    started(unready)
    other.handle(unready, "steer", "wait", readiness=False)
    open_gate(f"r-{sid}")
    parked(unready)
    (hold,) = other.handle(unready, "holds")
    assert hold["kind"] == "readiness"
    assert other.handle(unready, "release", hold["id"]) is True
    assert tool_texts(unready.result(timeout_s=60).text) == ["read r ok", "write x ok"]


def test_approve_deny_and_edit_the_calls_of_one_reply(narrow: World, other: Elsewhere, sid: str) -> None:
    wanted = [("sign", {"name": name}) for name in ("a", "b", "c")]
    turn = narrow.client.submit(sid, script(wanted, final="$seen"))
    parked(turn)
    pending = other.client("approvals", session=sid)
    assert [(p["arguments"]["name"], p["state"]) for p in reversed(pending)] == [(name, "pending") for name in "abc"]
    a, b, c = (p["id"] for p in reversed(pending))
    assert other.client("deny", b, "not b", by="mia")["state"] == "denied"
    assert other.client("edit", c, {"name": "d"}, by="mia")["arguments"] == {"name": "d"}
    assert other.client("approve", a, by="mia")["state"] == "approved"
    assert other.client("approve", a, by="tom")["decided_by"] == "mia"
    with pytest.raises(Refused, match="ApprovalDecided"):
        other.client("approve", b)
    texts = tool_texts(turn.result(timeout_s=60).text)
    assert texts[0] == "sign a ok"
    assert texts[1] == "Not run: a person refused it: not b."
    assert texts[2].endswith("sign d ok")
    assert "d" in texts[2].removesuffix("sign d ok")
    assert [row["name"] for row in notes("start", turn=turn.turn_id)] == ["a", "d"]
    assert [p["state"] for p in other.handle(turn, "approvals")] == ["approved", "denied", "approved"]
    assert other.client("approvals", session=sid) == []


def test_cancel_and_interrupt(narrow: World, other: Elsewhere, sid: str) -> None:
    turn = narrow.client.submit(sid, script([("sign", {"name": "a"})]))
    behind = narrow.client.submit(sid, script([("sign", {"name": "b"})]))
    last = narrow.client.submit(sid, "hello")
    parked(turn)
    assert other.handle(turn, "cancel", "enough") == "requested"
    parked(behind)
    assert other.session(sid, "interrupt", "and this") == behind.turn_id
    assert last.result(timeout_s=60).text == "heard: hello"
    for ended in (turn, behind):
        assert ended.result(timeout_s=60).ending is Ending.CANCELLED
        assert [p["state"] for p in other.handle(ended, "approvals")] == ["void"]
        narrow.all_events(ended)
    assert other.handle(turn, "cancel") == "ended"
    assert other.session(sid, "interrupt") is None


def test_pause_drop_and_resume(narrow: World, other: Elsewhere, sid: str) -> None:
    assert other.session(sid, "pause") is True
    first, second, third = (narrow.client.submit(sid, word) for word in ("one", "two", "three"))
    waiting = other.session(sid, "waiting")
    assert [turn["turn_id"] for turn in waiting] == [first.turn_id, second.turn_id, third.turn_id]
    assert other.session(sid, "drop", second.turn_id) is True
    assert (other.session(sid, "live"), other.session(sid, "is_paused")) == (None, True)
    assert other.session(sid, "resume") == first.turn_id
    assert [turn.result(timeout_s=60).text for turn in (first, third)] == ["heard: one", "heard: three"]
    assert second.result(timeout_s=60).ending is Ending.CANCELLED
    assert other.session(sid, "drop", third.turn_id) is False


def test_outside_results(narrow: World, other: Elsewhere, sid: str) -> None:
    own = f"job-{sid}"
    wanted = [("send_off", {"name": "a"}), ("send_off", {"name": "b", "own": own}), ("look_up", {"name": "c"})]
    turn = narrow.client.submit(sid, script(wanted, final="$seen"))
    for name, verb, given in (("a", "complete_call", {"n": 1}), ("b", "fail_call", "no such thing")):
        token = token_of(turn, name)
        parked(turn, "outside")
        assert other.client(verb, token, given) == "settled"
        with pytest.raises(Refused, match="TokenRefused"):
            other.client("complete_call", token, 2)
    assert token_of(turn, "b") == own
    assert other.client("complete_call", token_of(turn, "c"), "found", partial=True) in ("settled", "early")
    texts = tool_texts(turn.result(timeout_s=60).text)
    assert texts[0] == '{"n":1}'
    assert "no such thing" in texts[1]
    assert "found" in texts[2]
    assert [row.state for row in narrow.wiring.store.calls.of_turn(turn.turn_id)] == ["done", "done"]
    with pytest.raises(Refused, match="TokenRefused"):
        other.client("complete_call", "nobody's", 1)


def test_submit_with_each_on_busy(narrow: World, other: Elsewhere, sid: str) -> None:
    live = narrow.client.submit(sid, script([("sign", {"name": "a"})]))
    parked(live)
    with pytest.raises(Refused, match="SessionBusy"):
        other.client("submit", sid, "busy?", on_busy="reject")
    queued = other.client("submit", sid, "in order")
    merged = other.client("submit", sid, "and this", on_busy="merge")
    steered = other.client("submit", sid, "for the live one", on_busy="steer")
    assert (merged["turn_id"], merged["joined"]["state"]) == (queued["turn_id"], "accepted")
    assert steered["turn_id"] == live.turn_id
    jumped = other.client("submit", sid, "at once", on_busy="interrupt")
    assert live.result(timeout_s=60).ending is Ending.CANCELLED
    results = [narrow.client.handle(t["turn_id"]).result(timeout_s=60).text for t in (jumped, queued)]
    assert results == ["heard: at once", "heard: in order"]
    assert len(heard(queued["turn_id"])[0]) == 1
    sent = steered["joined"]["client_message_id"]

    def receipt() -> dict[str, Any]:
        return other.handle(live, "receipt", sent)

    wait_until(lambda: receipt()["state"] == "bounced", "it bounced")
    own = narrow.client.handle(str(receipt()["bounced_turn_id"])).result(timeout_s=60)
    assert own.text == "heard: for the live one"
    blocker = narrow.client.submit(sid, script([("sign", {"name": "b"})]))
    dropped = narrow.client.submit(sid, "never")
    parked(blocker)
    winner = other.client("submit", sid, "only me", on_busy="replace")
    assert narrow.client.handle(winner["turn_id"]).result(timeout_s=60).text == "heard: only me"
    for ended in (blocker, dropped):
        assert ended.result(timeout_s=60).ending is Ending.CANCELLED
    assert not heard(dropped)


def test_review_and_compact(narrow: World, other: Elsewhere, sid: str) -> None:
    narrow.client.submit(sid, "the question").result(timeout_s=60)
    review = other.client("submit", sid, "look at it", kind="review")
    assert narrow.client.handle(review["turn_id"]).result(timeout_s=60).text == "heard: look at it"
    after = narrow.client.submit(sid, "go on")
    after.result(timeout_s=60)
    (row,) = notes("thinking", turn=after.turn_id)
    assert "look at it" not in row["others"], "what a review was asked is not in the session's history"
    assert any("heard: look at it" in text for text in row["others"]), "but its outcome is"
    compacted = other.session(sid, "compact")
    result = narrow.client.handle(compacted["turn_id"]).result(timeout_s=60)
    assert result.ending is Ending.COMPLETED
    later = narrow.client.submit(sid, "and now")
    later.result(timeout_s=60)
    (row,) = notes("thinking", turn=later.turn_id)
    assert "compact" not in row["others"]


def test_a_child_turn_and_its_approval(narrow: World, other: Elsewhere, sid: str) -> None:
    inner = script([("sign", {"name": "a"})], final="from the child")
    turn = narrow.client.submit(sid, script([("delegate", {"message": inner})], final="$seen"))
    parked(turn, "outside")
    (pending,) = wait_until(
        lambda: [p for p in other.client("approvals") if p["turn_id"].startswith("ch-")], "the child asks"
    )
    other.client("approve", pending["id"])
    result = turn.result(timeout_s=60)
    assert tool_texts(result.text) == ["from the child"]
    child = narrow.client.handle(pending["turn_id"]).result(timeout_s=60)
    assert [spend.kind for spend in result.spends] == ["step", "child", "step"]
    (charged,) = [spend for spend in result.spends if spend.kind == "child"]
    assert (charged.input_tokens, charged.output_tokens) == (child.input_tokens, child.output_tokens)


def test_cancelling_the_parent_cancels_the_child(narrow: World, other: Elsewhere, sid: str) -> None:
    inner = script([("sign", {"name": "a"})])
    turn = narrow.client.submit(sid, script([("delegate", {"message": inner, "session": f"{sid}-child"})]))
    live = wait_until(lambda: narrow.client.session(f"{sid}-child").live(), "the child runs")
    assert live is not None
    child = narrow.client.handle(live)
    parked(child)
    other.handle(turn, "cancel")
    assert turn.result(timeout_s=60).stop_reason is StopReason.CANCELLED
    assert child.result(timeout_s=60).ending is Ending.CANCELLED


def test_the_diff_is_in_the_result_also_of_a_cancelled_turn(narrow: World, other: Elsewhere, sid: str) -> None:
    first = ("change", {"path": "a.txt", "before": "one\n", "after": "two\n"})
    again = ("change", {"path": "a.txt", "before": "two\n", "after": "three\n"})
    for last in ("done", "cancelled"):
        stuck = [("sign", {"name": "s"})] if last == "cancelled" else [("read", {"name": "r"})]
        turn = narrow.client.submit(sid, script([first], [again], stuck))
        if last == "cancelled":
            parked(turn)
            other.handle(turn, "cancel")
        result = turn.result(timeout_s=60)
        assert result.diff is not None
        assert "-one" in result.diff
        assert "+three" in result.diff
        assert "two" not in result.diff
        kinds = [event.kind.value for event in narrow.all_events(turn)]
        assert kinds.count("turn.diff") == 1
        assert kinds.index("turn.diff") < kinds.index("turn.closing")
        row = narrow.wiring.store.turns.result(turn.turn_id)
        assert row is not None
        assert row.diff == result.diff
    assert narrow.status(turn) == TraceStatus.COMPLETED
