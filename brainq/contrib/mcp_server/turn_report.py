"""Reports of a turn, which are the structured content of the tools, with their schema, tool results and errors."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, cast

from mcp_types import CallToolResult, ContentBlock, ResourceLink, TextContent
from pydantic import BaseModel, Field, JsonValue

from brainq.app.access import Verb
from brainq.client.async_handle import AsyncTurnHandle
from brainq.contracts.people import Approval
from brainq.contracts.status import Ending, StopReason
from brainq.contracts.turn import TurnResult
from brainq.contrib.mcp_server.following import pending_approvals
from brainq.contrib.mcp_server.requests import McpRequest
from brainq.errors import BrainqError
from brainq.gateway.edge.problems import RequestRejected, problem_of
from brainq.gateway.rest.bodies import Answer
from brainq.gateway.rest.event_stream import result_if_ready
from brainq.gateway.rest.turns import turn_status

ANSWER_DEFINITION = "answer"
REQUIRED = ("turn_id", "session", "state")
PROBLEM_META = "brainq/problem"
LINKS_SINCE = "2025-06-18"
"""The first version of the protocol that has links in tool results."""


class PendingApproval(Answer):
    """A call that waits for an approval. `args_hash` binds a decision to these arguments."""

    approval_id: str
    tool: str
    effect: str
    reason: str = ""
    arguments: dict[str, JsonValue] | None = None
    args_hash: str
    expires_at: str


class FileLink(Answer):
    """A file of a tool's result. The resource `uri` has its bytes."""

    uri: str
    name: str
    media_type: str
    size: int = Field(ge=0)
    tool: str


class TurnReport(Answer):
    """A turn's outcome or state.

    session      the session, which continues the conversation
    state        queued, active, parked or closing; or completed, timed_out, cancelled or failed
    text         the answer, or the reason if the turn did not complete
    parsed       the answer as JSON, if the brain has a schema for its answers
    stop_reason  the reason why the turn stopped
    files        the files of the turn's tools
    last_event   the number of the last event that was read; `watch` continues after it
    next         what you can do if the turn has not ended
    """

    turn_id: str
    session: str
    state: str
    text: str = ""
    parsed: JsonValue = None
    stop_reason: str = ""
    error: str = ""
    warnings: tuple[str, ...] = ()
    waits_for: tuple[PendingApproval, ...] = ()
    files: tuple[FileLink, ...] = ()
    last_event: int = Field(default=0, ge=0)
    next: str = ""

    def compact(self) -> dict[str, Any]:
        """Return the report as JSON without empty fields."""
        fields = self.model_dump(mode="json")
        return {name: fields[name] for name in fields if name in REQUIRED or fields[name] not in ("", None, 0, [])}

    @property
    def is_failure(self) -> bool:
        failed = self.state in (Ending.FAILED, Ending.TIMED_OUT, Ending.CANCELLED)
        return failed or self.stop_reason == StopReason.INVALID_OUTPUT


async def report_turn(request: McpRequest, handle: AsyncTurnHandle, last_event: int = 0) -> TurnReport:
    """Return the current report of a turn. Raises TurnRejected."""
    result = await result_if_ready(handle)
    if result is not None:
        files = await _file_links(handle) if result.tool_calls else ()
        return _final_report(result, files, last_event)
    pending = await pending_approvals(handle)
    return TurnReport(
        turn_id=handle.turn_id,
        session=handle.session_id,
        state=(await turn_status(handle)).state,
        waits_for=tuple(map(_pending_approval, pending)),
        last_event=last_event,
        next=_next_action(pending, may_decide=Verb.DECIDE in request.caller.verbs),
    )


def report_schema(answers: dict[str, Any] | None) -> dict[str, Any]:
    """Return the JSON schema of a TurnReport whose `parsed` fits the schema `answers`."""
    schema = TurnReport.model_json_schema(mode="serialization")
    schema["required"] = list(REQUIRED)
    if answers is not None:
        schema["properties"]["parsed"] = {"anyOf": [{"$ref": f"#/$defs/{ANSWER_DEFINITION}"}, {"type": "null"}]}
        schema.setdefault("$defs", {})[ANSWER_DEFINITION] = _rebase_references(answers)
    return schema


def _rebase_references(value: Any) -> Any:
    """Return a schema with its references changed to its place in the whole schema."""
    if isinstance(value, dict):
        return {
            name: f"#/$defs/{ANSWER_DEFINITION}{each[1:]}"
            if name == "$ref" and isinstance(each, str) and (each == "#" or each.startswith("#/"))
            else _rebase_references(each)
            for name, each in cast("dict[str, Any]", value).items()
        }
    return [_rebase_references(each) for each in cast("list[Any]", value)] if isinstance(value, list) else value


async def _file_links(handle: AsyncTurnHandle) -> tuple[FileLink, ...]:
    """Return the files of the turn's calls, each once."""
    found: dict[str, FileLink] = {}
    for call in await handle.calls():
        for file in call.attachments:
            link = FileLink(
                uri=f"brainq://turns/{handle.turn_id}/files/{file.sha256}",
                name=file.name or file.sha256[:12],
                media_type=file.media_type,
                size=file.size,
                tool=call.tool,
            )
            found.setdefault(file.sha256, link)
    return tuple(found.values())


def _final_report(result: TurnResult, files: tuple[FileLink, ...], last_event: int) -> TurnReport:
    return TurnReport(
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


def _pending_approval(approval: Approval) -> PendingApproval:
    return PendingApproval(
        approval_id=approval.id,
        tool=approval.tool,
        effect=approval.effect.value,
        reason=approval.reason,
        arguments=approval.arguments,
        args_hash=approval.args_hash,
        expires_at=approval.expires_at.isoformat(),
    )


def _next_action(pending: Sequence[Approval], *, may_decide: bool) -> str:
    if pending and may_decide:
        return "The turn waits for approvals. Ask your user, call approve or deny, and then call result."
    if pending:
        return "The turn waits for an approval by somebody else. Call result later."
    return "The turn continues by itself. Call result with wait_s to wait for it, or watch to see what it does."


def tool_result(request: McpRequest, answer: BaseModel) -> CallToolResult:
    """Return an answer as structured content, as text for clients that read only text, and as links to files."""
    links: list[ContentBlock] = []
    if isinstance(answer, TurnReport) and request.context.protocol_version >= LINKS_SINCE:
        links += [
            ResourceLink(name=file.name, uri=file.uri, mime_type=file.media_type, size=file.size)
            for file in answer.files
        ]
    structured = answer.compact() if isinstance(answer, TurnReport) else answer.model_dump(mode="json")
    return CallToolResult(
        content=[TextContent(text=json.dumps(structured, ensure_ascii=False)), *links],
        structured_content=structured,
        is_error=isinstance(answer, TurnReport) and answer.is_failure,
    )


def tool_error(error: BrainqError | RequestRejected) -> CallToolResult:
    """Return an error that the model can act on. Programs find the problem in `_meta`."""
    problem = problem_of(error)
    return CallToolResult(
        content=[TextContent(text=f"{problem.title}: {problem.detail}")],
        is_error=True,
        _meta={PROBLEM_META: problem.model_dump(exclude_none=True)},
    )
