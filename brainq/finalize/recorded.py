"""From an ended turn to what extractors, learners and judges are given. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from brainq.contracts.message import Message
from brainq.contracts.recorded import RecordedTurn
from brainq.contracts.view import EndedTurn
from brainq.finalize.result import citations, with_citations


def recorded_turn(
    turn: EndedTurn, messages: Sequence[Message], context_pack_json: str | None, step_key: str
) -> RecordedTurn:
    """`messages` are the turn's own; the list of sources under the answer is taken off again: it is ours."""
    local, web = citations(turn, "local"), citations(turn, "web")
    text = turn.text
    if local or web:
        text = text.removesuffix(with_citations("", local, web))
    return RecordedTurn(
        turn_id=turn.request.turn_id,
        session_id=turn.request.session_id,
        user_message=turn.request.user_message,
        text=text,
        ending=turn.ending,
        stop_reason=turn.stop_reason,
        messages=tuple(messages),
        context_pack_json=context_pack_json,
        tools=turn.tools,
        citations=(*local, *web),
        turn_number=turn.turn_number,
        step_key=step_key,
        traceparent=turn.request.traceparent,
    )
