"""How a turn is told: the structured content of every tool that is about one turn, and its schema."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from pydantic import Field, JsonValue

from brainq.access import Verb
from brainq.client.async_handle import AsyncTurnHandle
from brainq.contracts.approval import Approval
from brainq.contracts.status import Ending, StopReason
from brainq.contracts.turn import TurnResult
from brainq.http.bodies.base import Answer
from brainq.http.mcp.asked import Asked
from brainq.http.mcp.following import pending_of
from brainq.http.turns import seen
from brainq.http.waiting import known_result

ANSWER = "answer"
REQUIRED = ("turn_id", "session", "state")


class WaitsFor(Answer):
    """A call that does not start before somebody approves it. `args_hash` binds a decision to these arguments."""

    approval_id: str
    tool: str
    effect: str
    reason: str = ""
    arguments: dict[str, JsonValue] | None = None
    args_hash: str
    expires_at: str


class FileTold(Answer):
    """A file that a tool gave. `uri` is a resource: reading it gives the bytes."""

    uri: str
    name: str
    media_type: str
    size: int = Field(ge=0)
    tool: str


class TurnTold(Answer):
    """A turn, as it ended or as it stands.

    session      name it to go on with the conversation
    state        queued, active, parked, closing; or how it ended: completed, timed_out, cancelled, failed
    text         the answer; of a turn that did not complete, what became of it
    parsed       the answer as JSON, where the brain has a schema for its answers
    stop_reason  why it stopped
    files        those that the turn's tools gave
    last_event   the number of the last event that was read; `watch` goes on behind it
    next         of a turn that has not ended: what can be done
    """

    turn_id: str
    session: str
    state: str
    text: str = ""
    parsed: JsonValue = None
    stop_reason: str = ""
    error: str = ""
    warnings: tuple[str, ...] = ()
    waits_for: tuple[WaitsFor, ...] = ()
    files: tuple[FileTold, ...] = ()
    last_event: int = Field(default=0, ge=0)
    next: str = ""

    def brief(self) -> dict[str, Any]:
        """As JSON, without what says nothing."""
        said = self.model_dump(mode="json")
        return {name: said[name] for name in said if name in REQUIRED or said[name] not in ("", None, 0, [])}

    @property
    def is_failure(self) -> bool:
        failed = self.state in (Ending.FAILED, Ending.TIMED_OUT, Ending.CANCELLED)
        return failed or self.stop_reason == StopReason.INVALID_OUTPUT


async def told(asked: Asked, handle: AsyncTurnHandle, last_event: int = 0) -> TurnTold:
    """The turn as it stands now. Raises TurnRejected."""
    result = await known_result(handle)
    if result is not None:
        files = await _files(handle) if result.tool_calls else ()
        return _ended(result, files, last_event)
    pending = await pending_of(handle)
    return TurnTold(
        turn_id=handle.turn_id,
        session=handle.session_id,
        state=(await seen(handle)).state,
        waits_for=tuple(map(_waits_for, pending)),
        last_event=last_event,
        next=_next(pending, may_decide=Verb.DECIDE in asked.caller.verbs),
    )


def schema_of_told(answers: dict[str, Any] | None) -> dict[str, Any]:
    """The JSON schema of a TurnTold whose `parsed` fits `answers`, a schema with references of its own."""
    schema = TurnTold.model_json_schema(mode="serialization")
    schema["required"] = list(REQUIRED)
    if answers is not None:
        schema["properties"]["parsed"] = {"anyOf": [{"$ref": f"#/$defs/{ANSWER}"}, {"type": "null"}]}
        schema.setdefault("$defs", {})[ANSWER] = _moved(answers)
    return schema


def _moved(value: Any) -> Any:
    """With its references as they are from where it stands now."""
    if isinstance(value, dict):
        return {
            name: f"#/$defs/{ANSWER}{each[1:]}"
            if name == "$ref" and isinstance(each, str) and (each == "#" or each.startswith("#/"))
            else _moved(each)
            for name, each in cast("dict[str, Any]", value).items()
        }
    return [_moved(each) for each in cast("list[Any]", value)] if isinstance(value, list) else value


async def _files(handle: AsyncTurnHandle) -> tuple[FileTold, ...]:
    """What the turn's calls gave, each file once."""
    found: dict[str, FileTold] = {}
    for call in await handle.calls():
        for given in call.attachments:
            told = FileTold(
                uri=file_uri(handle.turn_id, given.sha256),
                name=given.name or given.sha256[:12],
                media_type=given.media_type,
                size=given.size,
                tool=call.tool,
            )
            found.setdefault(given.sha256, told)
    return tuple(found.values())


def file_uri(turn_id: str, sha256: str) -> str:
    return f"brainq://turns/{turn_id}/files/{sha256}"


def _ended(result: TurnResult, files: tuple[FileTold, ...], last_event: int) -> TurnTold:
    return TurnTold(
        turn_id=result.turn_id,
        session=result.session_id,
        state=result.ending.value,
        text=result.text,
        parsed=result.parsed,
        stop_reason=result.stop_reason.value,
        error=result.error or "",
        warnings=result.warnings,
        files=files,
        last_event=last_event,
    )


def _waits_for(approval: Approval) -> WaitsFor:
    return WaitsFor(
        approval_id=approval.id,
        tool=approval.tool,
        effect=approval.effect.value,
        reason=approval.reason,
        arguments=approval.arguments,
        args_hash=approval.args_hash,
        expires_at=approval.expires_at.isoformat(),
    )


def _next(pending: Sequence[Approval], *, may_decide: bool) -> str:
    if pending and may_decide:
        return "It waits for approvals: ask your user, and call approve or deny; then call result."
    if pending:
        return "It waits until somebody approves, who may. Call result later."
    return "It goes on by itself. Call result with wait_s to wait for it, or watch to see what it does."
