"""Images and files through whole turns: from whoever sends them to the model, and back out of the records."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import text

from brainq import AttachmentNotFound, Brain, Effect, File, InvalidInput, RunContext, ScriptedProvider, WithFiles
from brainq.adapters.sql.prune import prune
from brainq.contracts.message import Message
from brainq.contracts.model import ModelReply, ModelRequest
from brainq.engine.models.scripted import calls, says
from brainq.engine.tools.results import Pending
from brainq.workers.tasks.register import submit_foreign
from tests.integration.engine.test_engine_redacted import sql_text
from tests.support.blobs import png
from tests.support.parts import forget
from tests.support.pump import Pump

Pumps = Callable[..., Pump]
PICTURE = File(png(), name="plan.png")
CHART = File(png(9), name="chart.png")
SHA = PICTURE.attachment.sha256


class Sees:
    """A model that notes what it is shown; `replies` are said in order."""

    def __init__(self, *replies: Any) -> None:
        self.requests: list[ModelRequest] = []
        self._replies = list(replies)
        self.before: dict[int, Callable[[], object]] = {}

    def __call__(self, request: ModelRequest) -> ModelReply:
        self.requests.append(request)
        if meanwhile := self.before.get(len(self.requests)):
            meanwhile()
        return self._replies.pop(0) if self._replies else says("seen")

    def shown(self, at: int = -1) -> list[tuple[str, str, bytes | None]]:
        """(role, name, bytes) of the attachments of a request."""
        request = self.requests[at]
        return [
            (message.role, one.name, request.blobs.get(one.sha256))
            for message in request.messages
            for one in message.attachments
        ]


def brain_of(model: Sees, **more: Any) -> Brain:
    brain = Brain("eyes", ScriptedProvider(rules=model), **more)

    @brain.tool(effect=Effect.READ_ONLY)
    def draw() -> WithFiles:  # pyright: ignore[reportUnusedFunction]
        return WithFiles("drawn", [CHART])

    @brain.tool(effect=Effect.NETWORK)
    def order(ctx: RunContext) -> Pending:  # pyright: ignore[reportUnusedFunction]
        return Pending(ctx.outside_token())

    return brain


def counted(pump: Pump, table: str) -> int:
    with pump.wiring.store.engine.connect() as connection:
        return int(connection.execute(text(f"SELECT count(*) FROM {table}")).scalar_one())


def test_a_model_is_shown_what_the_user_sent_and_what_its_tool_made(pumps: Pumps) -> None:
    model = Sees(calls(("draw", {})), says("two pictures"))
    pump = pumps(brain_of(model))
    handle = pump.submit("s1", "What is on it?", attachments=[PICTURE])
    assert pump.finish(handle).text == "two pictures"

    assert model.shown(0) == [("user", "plan.png", png())]
    assert model.shown(1) == [("user", "plan.png", png()), ("tool", "chart.png", png(9))]
    asked, _, drawn, _ = handle.transcript()
    assert asked.attachments == (PICTURE.attachment,)
    assert (drawn.content, drawn.attachments) == ("drawn", (CHART.attachment,))
    assert [handle.file(one.sha256) for one in (PICTURE.attachment, CHART.attachment)] == [PICTURE, CHART]
    assert handle.calls()[0].attachments == (CHART.attachment,)
    (turn,) = pump.client.session("s1").history()
    assert (turn.user_message, turn.attachments) == ("What is on it?", (PICTURE.attachment,))


def test_neither_redis_nor_a_celery_message_has_the_bytes(pumps: Pumps) -> None:
    canary = b"canary4711 in a file"
    pump = pumps(brain_of(Sees(calls(("draw", {})))))
    handle = pump.submit("s1", "Look.", attachments=[File(canary)])
    client: Any = pump.wiring.state.redis
    pump.drain("brainq.turns")

    def values() -> str:
        found: list[Any] = []
        for key in client.scan_iter():
            kind = client.type(key)
            read = {"string": client.get, "hash": client.hgetall, "stream": client.xrange}.get(kind)
            found.append(client.lrange(key, 0, -1) if kind == "list" else read(key) if read else "")
        return str(found)

    seen = values()
    assert handle.turn_id in seen
    assert "canary4711" not in seen
    assert base64.b64encode(canary).decode()[:12] not in seen
    assert File(canary).attachment.sha256 in seen
    pump.finish(handle)


def test_the_same_picture_in_two_turns_is_one_row_and_is_read_from_sql_once(pumps: Pumps) -> None:
    model = Sees()
    pump = pumps(brain_of(model))
    for session in ("s1", "s1", "s2"):
        pump.finish(pump.submit(session, "Look.", attachments=[PICTURE]))
    assert (counted(pump, "blobs"), counted(pump, "attachments")) == (1, 3)
    assert model.shown(1) == [("user", "plan.png", png())] * 2, "a later turn sees the earlier one's, too"
    again = pump.submit("s1", "Look.", attachments=[PICTURE], request_key="k")
    assert pump.submit("s1", "Look.", attachments=[PICTURE], request_key="k").turn_id == again.turn_id
    assert counted(pump, "attachments") == 4, "sent again it is the same turn, with the same files"
    pump.finish(again)


def test_a_hash_gives_no_session_what_another_has(pumps: Pumps) -> None:
    model = Sees()
    pump = pumps(brain_of(model))
    theirs = pump.submit("tenant-a", "Look.", attachments=[PICTURE])
    pump.finish(theirs)
    reference: Any = PICTURE.attachment.model_dump()
    told: Any = {"role": "user", "content": "Before.", "attachments": [reference]}
    for forged in ({"attachments": [reference]}, {"history": [told]}):
        with pytest.raises(InvalidInput, match=r"sha256: there is no such field"):
            pump.submit("tenant-b", "Look.", **forged)
    with pytest.raises(InvalidInput, match="a Message refers to files"):
        pump.submit("tenant-b", "Look.", history=[Message(role="user", content="x", attachments=(PICTURE.attachment,))])
    mine = pump.submit("tenant-b", "Look.")
    pump.finish(mine)
    with pytest.raises(AttachmentNotFound):
        mine.file(SHA)
    # Were a reference to come in some other way: the bytes are read for the session, not for the hash.
    assert pump.wiring.store.blobs.load("tenant-b", [SHA]) == {}


def test_input_in_the_middle_of_a_turn_may_have_files(pumps: Pumps) -> None:
    model = Sees(calls(("draw", {})), says("done"), says("late"))
    pump = pumps(brain_of(model))
    handle = pump.submit("s1", "Go.")
    model.before[1] = lambda: handle.steer("", attachments=[PICTURE], client_message_id="m1")
    pump.finish(handle)
    assert model.shown(1) == [("tool", "chart.png", png(9)), ("user", "plan.png", png())]
    receipt = handle.steer("And this?", attachments=[CHART])
    assert receipt.state == "bounced"
    assert receipt.bounced_turn_id is not None
    late = pump.client.handle(receipt.bounced_turn_id)
    pump.finish(late)
    assert model.shown(2)[-1] == ("user", "chart.png", png(9))
    assert late.file(CHART.attachment.sha256) == CHART, "the turn that it became has it, too"


def test_a_message_that_goes_into_another_turn_takes_its_files_along(pumps: Pumps) -> None:
    model = Sees()
    pump = pumps(brain_of(model))
    first = pump.submit("s1", "Wait.")
    second = pump.submit("s1", "One.")
    joined = pump.submit("s1", "Two.", on_busy="merge", attachments=[PICTURE])
    assert joined.turn_id == second.turn_id
    pump.finish(first)
    pump.finish(second)
    assert model.shown() == [("user", "plan.png", png())]


def test_a_conversation_may_bring_files(pumps: Pumps) -> None:
    model = Sees()
    pump = pumps(brain_of(model))
    before = [{"role": "user", "content": "", "attachments": [PICTURE]}, {"role": "assistant", "content": "A hull."}]
    handle = pump.submit("s1", "And now?", history=before)
    pump.finish(handle)
    assert model.shown() == [("user", "plan.png", png())]


def test_a_result_from_outside_may_be_a_file(pumps: Pumps) -> None:
    model = Sees(calls(("order", {})), says("thanks"))
    pump = pumps(brain_of(model))
    handle = pump.submit("s1", "Order.")
    pump.drain()
    (call,) = handle.calls()
    assert call.park == "outside"
    given = tokens_of(pump, handle.turn_id)
    assert pump.client.complete_call(given, WithFiles("here", [CHART])) == "settled"
    assert pump.finish(handle).text == "thanks"
    assert model.shown() == [("tool", "chart.png", png(9))]


def tokens_of(pump: Pump, turn_id: str) -> str:
    client: Any = pump.wiring.state.redis
    trace = client.hgetall(pump.wiring.state.keys.turn("s1", turn_id) + ":trace")
    return str(next(value for name, value in trace.items() if name.endswith(":token")))


def test_of_a_picture_that_was_pruned_a_later_turn_reads_a_line(pumps: Pumps) -> None:
    model = Sees()
    pump = pumps(brain_of(model))
    old = pump.submit("s1", "Look.", attachments=[PICTURE])
    pump.finish(old)
    pump.finish(pump.submit("s9", "The newest turn stays."))
    with pump.wiring.store.engine.connect() as connection:
        connection.execute(
            text("UPDATE turns SET accepted_at = '2020-01-01 00:00:00.000', ended_at = '2020-01-01 00:00:00.000'")
        )
    assert prune(pump.wiring.store, 86_400.0)["blobs"] == 1
    fresh = pumps(brain_of(model))  # another process: nothing is cached there
    fresh.finish(fresh.submit("s1", "And now?"))
    assert model.shown() == [("user", "plan.png", None)]


def test_with_redact_logs_files_go_when_the_turn_has_ended(pumps: Pumps) -> None:
    canary = "canary4711"
    model = Sees(calls(("draw", {})), says("seen"))
    pump = pumps(brain_of(model, redact_logs=True))
    handle = pump.submit("s1", "Look.", attachments=[File(png(), name=f"{canary}.png")])
    assert canary in sql_text(pump.wiring.store)
    pump.finish(handle)
    assert model.shown()[0][2] == png()
    assert (counted(pump, "blobs"), counted(pump, "attachments")) == (0, 0)
    assert canary not in sql_text(pump.wiring.store)


def test_what_redis_has_let_go_is_shown_again(pumps: Pumps) -> None:
    model = Sees()
    pump = pumps(brain_of(model))
    for session_id in ("s1", "other"):
        pump.finish(pump.submit(session_id, "Look.", attachments=[PICTURE]))
    pump.finish(pump.submit("s1", "", attachments=[CHART]))
    before = model.requests[-1].messages
    client: Any = pump.wiring.state.redis
    forget(pump)
    client.flushall()
    fresh = pumps(brain_of(model))  # another process: nothing is cached there
    fresh.finish(fresh.submit("s1", "And now?"))
    users = [(m.content, m.attachments) for m in model.requests[-1].messages if m.role == "user"]
    assert users == [*((m.content, m.attachments) for m in before if m.role == "user"), ("And now?", ())]
    assert model.shown() == [("user", "plan.png", png()), ("user", "chart.png", png(9))]


@pytest.mark.parametrize(
    ("attachments", "refusal"),
    [
        ([File(b"x" * 2_000, name="big.txt")], r"attachments: 'big.txt' has 2,000 bytes; .*BRAINQ_MAX_FILE_BYTES"),
        ([File(b"x" * 900), File(b"y" * 900)], r"attachments: they have 1,800 bytes together"),
        ([{"data": "https://example.org/a.png"}], r"attachments\[0\].data: .*fetches nothing"),
        ([{"data": "aGk=", "media_type": "image/png"}], r"attachments\[0\].media_type: it is image/png"),
        ("plan.png", "attachments: use a list of File"),
    ],
)
def test_what_is_wrong_is_refused_before_anything_is_kept(pumps: Pumps, attachments: Any, refusal: str) -> None:
    pump = pumps(brain_of(Sees()), max_file_bytes=1_000, max_message_file_bytes=1_500)
    with pytest.raises(InvalidInput, match=refusal):
        pump.submit("s1", "Look.", attachments=attachments)
    assert (counted(pump, "blobs"), counted(pump, "turns")) == (0, 0)
    handle = pump.submit("s1", "Wait.")
    with pytest.raises(InvalidInput, match=refusal):
        handle.steer("And this?", attachments=attachments)
    pump.finish(handle)


def test_a_producer_without_brainq_sends_small_files_as_base64(pumps: Pumps) -> None:
    model = Sees()
    pump = pumps(brain_of(model))
    item = {"data": base64.b64encode(png()).decode(), "name": "plan.png"}
    fields = {"session_id": "s1", "turn_id": "t-1", "user_message": "Look.", "attachments": [item]}
    assert submit_foreign(pump.wiring, (), fields) == "t-1"
    pump.finish(pump.client.handle("t-1"))
    assert model.shown() == [("user", "plan.png", png())]
    large = {"data": base64.b64encode(b"x" * 1_000_001).decode()}
    assert submit_foreign(pump.wiring, (), {**fields, "turn_id": "t-2", "attachments": [large]}) == "rejected"
    [row] = [row for row in pump.wiring.store.turns.list() if row.turn_id == "t-2"]
    assert "a file may have 1,000,000" in str(row.reject_reason)
