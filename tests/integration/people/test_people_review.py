"""Review and compaction turns: a history of their own, and only their outcome in the session's."""

from __future__ import annotations

from typing import Any

from brainq.contracts.model import ModelReply, ModelRequest
from brainq.contracts.status import Ending, StopReason
from brainq.engine.brain.brain import Brain
from brainq.engine.models.scripted import calls, says
from brainq.errors import ProviderError
from tests.support.people import Pumps, Watched, brain_of, history, lose_redis
from tests.support.pump import Pump

OUTCOME = "[A review of this conversation came to this result:]\nall is well"


def talked(pump: Pump) -> None:
    pump.finish(pump.submit("s1", "My cat is called Mia."))


def reviewer(**options: Any) -> Watched:
    """The first turn it sees is a chat; reviews look at something, then find that all is well."""

    class Reviewer(Watched):
        def _follow(self, request: Any) -> Any:
            asked = [m.content for m in request.messages if m.role == "user" and m.turn == request.turn_id]
            if asked[0] != "Look back.":
                return says("noted")
            return calls(("look", {"name": "a"}), text="Hm.") if request.step == 1 else says("all is well")

    return Reviewer(**options)


def _summary(_: ModelRequest) -> ModelReply:
    return says("They talked of boats.")


def forget(pump: Pump) -> None:
    client: Any = pump.wiring.state.redis
    client.flushall()


def test_a_review_begins_with_what_was_said_and_leaves_only_its_outcome(pumps: Pumps) -> None:
    model = reviewer()
    pump = pumps(brain_of(model))
    talked(pump)
    handle = pump.submit("s1", "Look back.", kind="review")
    result = pump.finish(handle)
    assert (result.ending, result.text, result.steps) == (Ending.COMPLETED, "all is well", 2)
    assert model.shown(2, handle.turn_id) == [
        ("user", "My cat is called Mia."),
        ("assistant", "noted"),
        ("user", "Look back."),
        ("assistant", "Hm."),
        ("tool", "saw a"),
    ]
    assert [m.content for m in history(pump)] == ["My cat is called Mia.", "noted", OUTCOME]
    after = pump.submit("s1", "Thanks.")
    pump.finish(after)
    assert [text for _, text in model.shown(1, after.turn_id)] == ["My cat is called Mia.", "noted", OUTCOME, "Thanks."]


def test_a_review_may_begin_with_nothing(pumps: Pumps) -> None:
    model = reviewer()
    pump = pumps(brain_of(model))
    talked(pump)
    handle = pump.submit("s1", "Look back.", kind="review", seed="empty")
    pump.finish(handle)
    assert model.shown(1, handle.turn_id) == [("user", "Look back.")]
    assert [m.content for m in history(pump)][-1] == OUTCOME


def test_a_review_of_an_idle_session_that_redis_has_let_go(pumps: Pumps) -> None:
    model = reviewer()
    pump = pumps(brain_of(model))
    talked(pump)
    forget(pump)
    handle = pump.submit("s1", "Look back.", kind="review")
    pump.finish(handle)
    assert model.shown(1, handle.turn_id) == [
        ("user", "My cat is called Mia."),
        ("assistant", "noted"),
        ("user", "Look back."),
    ]


def test_sql_gives_back_only_the_outcome(pumps: Pumps) -> None:
    model = reviewer()
    pump = pumps(brain_of(model))
    talked(pump)
    pump.finish(pump.submit("s1", "Look back.", kind="review"))
    forget(pump)
    after = pump.submit("s1", "Thanks.")
    pump.finish(after)
    shown = [text for _, text in model.shown(1, after.turn_id)]
    assert "all is well" in shown
    assert shown[-1] == "Thanks."
    assert not {"Look back.", "Hm.", "saw a"} & set(shown)


def test_a_review_that_is_cancelled_leaves_nothing(pumps: Pumps) -> None:
    pump = pumps(brain_of(reviewer()))
    talked(pump)
    handle = pump.submit("s1", "Look back.", kind="review")
    pump.drain("brainq.turns")
    handle.cancel()
    result = pump.finish(handle)
    assert (result.ending, result.last_agent_message) == (Ending.CANCELLED, "Hm.")
    assert [m.content for m in history(pump)] == ["My cat is called Mia.", "noted"]


def test_a_review_reads_input_and_keeps_it_to_itself(pumps: Pumps) -> None:
    model = reviewer()
    pump = pumps(brain_of(model))
    talked(pump)
    handle = pump.submit("s1", "Look back.", kind="review")
    handle.steer("at the cat", client_message_id="m1")
    pump.finish(handle)
    assert handle.receipt("m1").state == "consumed"
    assert [m.content for m in history(pump)] == ["My cat is called Mia.", "noted", OUTCOME]


def test_a_review_begins_anew_after_redis_lost_it(pumps: Pumps) -> None:
    model = reviewer()
    pump = pumps(brain_of(model))
    talked(pump)
    handle = pump.submit("s1", "Look back.", kind="review")
    pump.drain("brainq.turns")
    lose_redis(pump)
    assert pump.finish(handle).text == "all is well"
    assert [m.content for m in history(pump) if m.turn == handle.turn_id] == [OUTCOME]


def test_the_review_of_a_long_conversation_is_compacted_by_itself(pumps: Pumps) -> None:
    """What it shortens is its own copy: the session's conversation stays whole."""
    model = reviewer(auxiliary=_summary)
    pump = pumps(brain_of(model))
    for number in range(6):
        pump.finish(pump.submit("s1", f"Early {number}. " + "boats " * 400))
    before = len(history(pump))
    handle = pump.submit("s1", "Look back.", kind="review", limits={"max_context_tokens": 2_000})
    assert pump.finish(handle).text == "all is well"
    assert len(history(pump)) == before + 1
    assert any("They talked of boats." in m.content for r in model.requests[-2:] for m in r.messages)


def test_a_compaction_replaces_the_older_messages(pumps: Pumps) -> None:
    model = Watched(says("noted"), later="noted", auxiliary=_summary)
    pump = pumps(brain_of(model))
    for number in range(10):
        pump.finish(pump.submit("s1", f"Early {number}. " + "boats " * 400))
    before, asked = len(history(pump)), len(model.requests)
    handle = pump.client.session("s1").compact()
    result = pump.finish(handle)
    assert (result.ending, result.text) == (Ending.COMPLETED, "The conversation was compacted.")
    assert result.stop_reason is StopReason.ANSWERED
    assert [s.kind for s in result.spends] == ["compaction"]
    after = history(pump)
    assert len(after) < before
    assert "They talked of boats." in after[0].content
    assert not any(m.turn == handle.turn_id and m.role == "user" and not m.extra for m in after)
    assert len(model.requests) == asked, "no step was asked for"


def test_a_short_conversation_is_not_compacted(pumps: Pumps) -> None:
    model = Watched(says("noted"), auxiliary=lambda _: says("short"))
    pump = pumps(brain_of(model))
    talked(pump)
    result = pump.finish(pump.client.session("s1").compact())
    assert result.text.startswith("There was nothing to compact")
    assert [m.content for m in history(pump)] == ["My cat is called Mia.", "noted"]
    forget(pump)
    assert pump.finish(pump.client.session("s1").compact()).ending is Ending.COMPLETED
    assert pump.finish(pump.submit("s1", "And now?")).text == "later"


def test_a_compaction_turn_leaves_nothing_in_sql_history(pumps: Pumps) -> None:
    model = Watched(says("noted"), auxiliary=lambda _: says("short"))
    pump = pumps(brain_of(model))
    talked(pump)
    pump.finish(pump.client.session("s1").compact())
    forget(pump)
    after = pump.submit("s1", "Thanks.")
    pump.finish(after)
    assert [text for _, text in model.shown(1, after.turn_id)] == ["My cat is called Mia.", "noted", "Thanks."]


def test_what_reads_a_conversation_is_of_the_brain_that_has_it(pumps: Pumps) -> None:
    """Another brain's service is not shown what was said to this one."""
    desk = Watched(says("desk"), later="desk", auxiliary=_summary)
    lab = Watched(says("lab"), later="lab", auxiliary=_summary)
    pump = pumps([Brain("desk", desk, "Help."), Brain("lab", lab, "Help.")])
    for number in range(10):
        pump.finish(pump.submit("s1", f"Early {number}. " + "boats " * 400, brain="lab"))
    handle = pump.client.session("s1").compact("key")
    result = pump.finish(handle)
    assert [spend.kind for spend in result.spends] == ["compaction"]
    assert result.warnings == ()
    review = pump.submit("s1", "Look back.", kind="review")
    assert pump.finish(review).text == "lab"
    assert desk.requests == []
    pump.finish(pump.submit("s1", "Hello."))
    assert len(desk.requests) == 1, "what talks and names no brain is the default one's"
    assert pump.client.session("s1").compact("key").turn_id == handle.turn_id


def test_what_names_its_brain_keeps_it(pumps: Pumps) -> None:
    desk, lab = Watched(says("desk"), later="desk"), Watched(says("lab"), later="lab")
    pump = pumps([Brain("desk", desk, "Help."), Brain("lab", lab, "Help.")])
    pump.finish(pump.submit("s1", "Hello.", brain="lab"))
    assert pump.finish(pump.submit("s1", "Look back.", kind="review", brain="desk")).text == "desk"


def test_a_summary_that_no_model_wrote_is_warned_of(pumps: Pumps) -> None:
    def refuses(_: ModelRequest) -> ModelReply:
        raise ProviderError("openai: HTTP 400: no summaries here", kind="refused", retryable=False)

    pump = pumps(brain_of(Watched(says("noted"), later="noted", auxiliary=refuses)))
    for number in range(10):
        pump.finish(pump.submit("s1", f"Early {number}. " + "boats " * 400))
    result = pump.finish(pump.client.session("s1").compact())
    assert result.text == "The conversation was compacted."
    (warning,) = (one for one in result.warnings if "summary" in one)
    assert warning == (
        "no model wrote the summary of older messages, so rules wrote a shorter one: "
        "openai: HTTP 400: no summaries here"
    )
