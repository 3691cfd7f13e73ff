"""Turns as resources: `brainq://turns/ID` is a turn's outcome or state, `.../transcript` its messages,
`.../files/SHA256` the bytes of a file."""

from __future__ import annotations

import base64
import re

from mcp import MCPError
from mcp_types import (
    INVALID_PARAMS,
    BlobResourceContents,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    TextResourceContents,
)

from brainq.access import Verb
from brainq.client.async_handle import AsyncTurnHandle
from brainq.contracts.file import File
from brainq.contracts.ids import TURN_ID_PATTERN, check_turn_id
from brainq.contracts.message import Message
from brainq.errors import ContentNotKept, NotFound
from brainq.gateway.edge.problems import NOT_FOUND
from brainq.gateway.rest.bodies import DEFAULT_LIST_PAGE, DEFAULT_PAGE
from brainq.gateway.rest.turn_bodies import TranscriptPage
from brainq.gateway.wires.mcp.requests import McpRequest
from brainq.gateway.wires.mcp.turn_report import report_turn

JSON_TYPE = "application/json"
_URI = re.compile(rf"brainq://turns/({TURN_ID_PATTERN[1:-1]})(/transcript|/files/([0-9a-f]{{64}}))?")


def turn_templates() -> ListResourceTemplatesResult:
    return ListResourceTemplatesResult(
        resource_templates=[
            ResourceTemplate(
                name="turn",
                uri_template="brainq://turns/{turn_id}",
                description="How a turn ended, or its state.",
                mime_type=JSON_TYPE,
            ),
            ResourceTemplate(
                name="transcript",
                uri_template="brainq://turns/{turn_id}/transcript",
                description="A turn's messages: the user's, the model's with its calls, and their results.",
                mime_type=JSON_TYPE,
            ),
            ResourceTemplate(
                name="file",
                uri_template="brainq://turns/{turn_id}/files/{sha256}",
                description="A file of a turn's messages or of its tools' results.",
            ),
        ]
    )


async def turn_resources(request: McpRequest, cursor: str | None) -> ListResourcesResult:
    """The caller's turns, the newest first. Empty where the caller lacks the verb."""
    if Verb.READ not in request.caller.verbs:
        return ListResourcesResult(resources=[])
    after = None if cursor is None else check_turn_id("cursor", cursor)
    found = await request.gateway.client.turns(
        limit=DEFAULT_LIST_PAGE, session_prefixes=request.caller.prefixes, after=after
    )
    return ListResourcesResult(
        resources=[
            Resource(
                name=turn.turn_id,
                title=turn.message or turn.turn_id,
                uri=f"brainq://turns/{turn.turn_id}",
                mime_type=JSON_TYPE,
            )
            for turn in found
        ],
        next_cursor=found[-1].turn_id if len(found) == DEFAULT_LIST_PAGE else None,
    )


async def read_resource(request: McpRequest, uri: str) -> ReadResourceResult:
    """Raises MCPError for one that does not exist, or is another caller's."""
    found = _URI.fullmatch(uri)
    if found is None:
        raise MCPError(
            INVALID_PARAMS, f"the resources are brainq://turns/TURN_ID, its /transcript and /files/SHA256; {NOT_FOUND}"
        )
    try:
        handle = await request.turn(found[1])
        if found[3]:
            return _file_resource(uri, await handle.file(found[3]))
        if found[2]:
            messages = await _all_messages(handle)
            page = TranscriptPage(turn_id=handle.turn_id, session_id=handle.session_id, messages=messages)
            text = page.model_dump_json()
        else:
            text = (await report_turn(request, handle)).model_dump_json()
    except NotFound:
        raise MCPError(INVALID_PARAMS, NOT_FOUND) from None
    except ContentNotKept as error:
        raise MCPError(INVALID_PARAMS, str(error)) from None
    return ReadResourceResult(contents=[TextResourceContents(uri=uri, mime_type=JSON_TYPE, text=text)])


def _file_resource(uri: str, file: File) -> ReadResourceResult:
    blob = base64.b64encode(file.data).decode()
    return ReadResourceResult(contents=[BlobResourceContents(uri=uri, mime_type=file.media_type, blob=blob)])


async def _all_messages(handle: AsyncTurnHandle) -> tuple[Message, ...]:
    """A resource has no pages."""
    messages: tuple[Message, ...] = ()
    while page := await handle.transcript(DEFAULT_PAGE, len(messages)):
        messages += page
        if len(page) < DEFAULT_PAGE:
            break
    return messages
