# pyright: basic, reportMissingImports=false
"""PyPI `a2a-sdk`: an agent that asks a brain by its card."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import httpx
from a2a.client import A2ACardResolver, Client, ClientConfig, ClientFactory
from a2a.helpers import get_artifact_text, get_data_parts, new_data_part, new_message, new_text_message
from a2a.types import CancelTaskRequest, Part, Role, SendMessageRequest, Task, TaskState
from report import HEADERS, PNG, SEEN, STORY, URL, Absent, report, running, same


@asynccontextmanager
async def agent(*, streaming: bool = False) -> AsyncGenerator[Client]:
    async with httpx.AsyncClient(timeout=60, headers=HEADERS) as http:
        card = await A2ACardResolver(http, URL).get_agent_card()
        yield ClientFactory(ClientConfig(httpx_client=http, streaming=streaming)).create(card)


async def sent(client: Client, message: Any) -> Task:
    (only,) = [response async for response in client.send_message(SendMessageRequest(message=message))]
    return only.task


async def said(client: Client, text: str, **more: Any) -> Task:
    return await sent(client, new_text_message(text, role=Role.ROLE_USER, **more))


async def answer() -> None:
    async with agent() as client:
        same(get_artifact_text((await said(client, "hello")).artifacts[0]), "You said hello.")


async def stream() -> None:
    message = new_text_message("story", role=Role.ROLE_USER)
    pieces: list[str] = []
    async with agent(streaming=True) as client:
        async for update in client.send_message(SendMessageRequest(message=message)):
            if update.HasField("artifact_update"):
                pieces += [part.text for part in update.artifact_update.artifact.parts]
    same(("".join(pieces), len(pieces) > 1), (STORY, True))


def tools() -> None:
    raise Absent("a message brings no tools; results of tools that a submit brought elsewhere are taken")


def structured() -> None:
    raise Absent("a message brings no schema; a brain with one of its own gives the artifact `parsed`")


async def image() -> None:
    parts = [Part(text="look"), Part(raw=PNG, media_type="image/png", filename="dot.png")]
    async with agent() as client:
        task = await sent(client, new_message(parts, role=Role.ROLE_USER))
        same(get_artifact_text(task.artifacts[0]), SEEN)


async def goes_on() -> None:
    async with agent() as client:
        first = await said(client, "hello")
        then = await said(client, "everything", context_id=first.context_id)
        wanted = "user: hello | assistant: You said hello. | user: everything"
        same(get_artifact_text(then.artifacts[0]), wanted)


async def failure() -> None:
    async with agent() as client:
        task = await said(client, "fail")
        same(task.status.state, TaskState.TASK_STATE_FAILED)
        same("the model refuses" in task.status.message.parts[0].text, True)


async def cancel() -> None:
    async with agent() as client, agent() as other:
        asking = asyncio.create_task(said(client, "linger"))
        task_id = await asyncio.to_thread(running)
        task = await other.cancel_task(CancelTaskRequest(id=task_id))
        same(task.status.state, TaskState.TASK_STATE_CANCELED)
        same((await asking).status.state, TaskState.TASK_STATE_CANCELED)


async def approval() -> None:
    async with agent() as client:
        task = await said(client, "refund")
        same(task.status.state, TaskState.TASK_STATE_INPUT_REQUIRED)
        (wanted,) = get_data_parts(task.status.message.parts)
        decision = {"call": wanted["call"], "decision": "approve", "args_hash": wanted["args_hash"]}
        message = new_message([new_data_part(decision)], role=Role.ROLE_USER, task_id=task.id)
        message.message_id = str(uuid4())
        same(get_artifact_text((await sent(client, message)).artifacts[0]), "Seen paid back.")


if __name__ == "__main__":
    report(
        "a2a-sdk",
        {
            "answer": answer,
            "stream": stream,
            "tools": tools,
            "structured": structured,
            "image": image,
            "continue": goes_on,
            "failure": failure,
            "cancel": cancel,
            "approval": approval,
        },
    )
