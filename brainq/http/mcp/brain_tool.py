"""The tool of a brain: a turn is begun and followed, and its answer is the tool's."""

from __future__ import annotations

from mcp_types import CallToolRequestParams, CallToolResult, InputRequiredResult
from pydantic import Field

from brainq.access import Verb
from brainq.brain import Brain
from brainq.client.async_handle import AsyncTurnHandle
from brainq.contracts.turn import MAX_MESSAGE_CHARS
from brainq.http.bodies.base import Body
from brainq.http.bodies.submit import SubmitBody
from brainq.http.gateway import ID
from brainq.http.mcp.asked import Asked, read
from brainq.http.mcp.calls_in_flight import CallsInFlight, own_session
from brainq.http.mcp.deciding import ask_now, can_ask, decide, question, read_round
from brainq.http.mcp.following import follow
from brainq.http.mcp.progress import Progress
from brainq.http.mcp.results import result_of
from brainq.http.mcp.told import told
from brainq.http.streams import Place
from brainq.http.submitting import accept, require_submit

WAIT_S = 50.0
"""Less than the minute after which clients give a call up, and with it what it began."""


class AskInput(Body):
    """A message for the agent."""

    message: str = Field(
        min_length=1, max_length=MAX_MESSAGE_CHARS, description="What the agent is to do or answer."
    )
    session: str | None = Field(
        default=None,
        pattern=ID,
        description="The session of an earlier answer, to go on with that conversation. Left out: a new one.",
    )
    wait_s: float | None = Field(
        default=None,
        ge=0,
        allow_inf_nan=False,
        description=f"How many seconds to wait for the answer; {WAIT_S:g} if left out. An agent that is not done by "
        "then goes on, and `result` has its answer later.",
    )


async def ask(
    asked: Asked, brain: Brain, params: CallToolRequestParams, calls: CallsInFlight
) -> CallToolResult | InputRequiredResult:
    """Begin a turn of this brain, or go on with the one whose approvals the client's user has decided."""
    by = asked.by(Verb.SUBMIT)
    asked.by(Verb.READ)
    given = read(AskInput, "arguments", params.arguments or {})
    wait_s = min(WAIT_S if given.wait_s is None else given.wait_s, asked.here.settings.http_wait_s)
    with asked.here.streams.enter(asked.caller.counted_as) as place:
        if params.request_state is not None:
            found = read_round(params.request_state)
            with calls.cancelled_with(asked, place, found.turn_id):
                handle = await asked.turn(found.turn_id)
                if not await decide(asked, found, params.input_responses or {}):
                    return result_of(asked, await told(asked, handle, found.seq))
                return await _answer(asked, place, handle, found.seq, wait_s)
        key = calls.request_key(asked)
        body = SubmitBody(
            session_id=given.session or own_session(asked.caller, key),
            user_message=given.message,
            brain=brain.name,
        )
        require_submit(by, body)
        with calls.cancelled_with(asked, place, key):
            return await _answer(asked, place, await accept(asked.here, body, key), 0, wait_s)


async def _answer(
    asked: Asked, place: Place, handle: AsyncTurnHandle, after: int, wait_s: float
) -> CallToolResult | InputRequiredResult:
    progress = Progress(lambda done, words: asked.context.session.report_progress(done, message=words))
    while True:
        found = await follow(asked, handle, place, after, wait_s, progress)
        if not found.approvals or not can_ask(asked):
            return result_of(asked, await told(asked, handle, found.seq))
        if asked.is_modern:
            return question(handle, found.seq, found.approvals)
        if not await ask_now(asked, handle, found.seq, found.approvals, place):
            return result_of(asked, await told(asked, handle, found.seq))
        after = found.seq
