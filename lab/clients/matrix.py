"""The clients, their features, and the recorded results."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

HERE = Path(__file__).parent
RESULTS = HERE / "results.json"
PAGE = HERE.parents[1] / "docs" / "wires" / "clients.md"

Outcome = Literal["works", "fails", "absent", "untried"]
"""`absent`: the client, or its protocol, has no such thing; `untried`: it was not run. Then the script says why."""

FEATURES: Mapping[str, str] = {
    "answer": "a plain answer",
    "stream": "an answer as a stream",
    "tools": "tools of the client's own, with their results sent back",
    "structured": "an answer that fits a schema",
    "image": "an image from the user",
    "continue": "going on with a conversation",
    "failure": "a failed turn is reported as a failure",
    "cancel": "cancelling what runs",
    "approval": "a call that waits for an approval",
}


@dataclass(frozen=True, slots=True)
class OfficialClient:
    """A client, its script, and where it is installed.

    name     in the results, and on the command line
    title    on the page, before the version
    script   its file in `python/`, or its files in `js/`, which are run as one
    package  whose version is recorded
    place    `own`: in the project's environment; `python`, `js`: what `make py-clients`, `make js-clients` install
    wire     the page that says how its wire is spoken
    beside   features of which the client does its half: the script does the rest by a route of the gateway's own
    """

    name: str
    title: str
    package: str
    script: str
    place: Literal["own", "python", "js"]
    wire: str
    beside: frozenset[str] = frozenset()


WAITS = frozenset({"approval"})
STOPS_READING = frozenset({"cancel"})

CLIENTS = (
    OfficialClient("openai-python", "OpenAI, Python", "openai", "openai_client.py", "own", "openai", WAITS),
    OfficialClient("openai-node", "OpenAI, Node", "openai", "openai_node.mjs", "js", "openai", WAITS),
    OfficialClient("openai-browser", "OpenAI, in a page", "openai", "openai_browser.mjs", "js", "openai", WAITS),
    OfficialClient(
        "openai-agents",
        "OpenAI Agents SDK",
        "openai-agents",
        "agents_sdk.py",
        "python",
        "openai",
        WAITS | STOPS_READING,
    ),
    OfficialClient(
        "langchain", "LangChain", "langchain-openai", "langchain_client.py", "python", "openai", WAITS | STOPS_READING
    ),
    OfficialClient(
        "pydantic-ai",
        "Pydantic AI",
        "pydantic-ai-slim",
        "pydantic_ai_client.py",
        "own",
        "openai",
        WAITS | STOPS_READING,
    ),
    OfficialClient("instructor", "instructor", "instructor", "instructor_client.py", "python", "openai"),
    OfficialClient("litellm", "LiteLLM", "litellm", "litellm_client.py", "python", "openai", WAITS | STOPS_READING),
    OfficialClient(
        "ai-sdk-responses",
        "AI SDK, responses",
        "@ai-sdk/openai",
        "ai_both.mjs ai_responses.mjs",
        "js",
        "openai",
        WAITS | STOPS_READING,
    ),
    OfficialClient(
        "ai-sdk-chat",
        "AI SDK, chat",
        "@ai-sdk/openai",
        "ai_both.mjs ai_chat.mjs",
        "js",
        "openai",
        WAITS | STOPS_READING,
    ),
    OfficialClient("use-chat", "AI SDK, useChat", "ai", "use_chat.mjs", "js", "ai-sdk", STOPS_READING),
    OfficialClient("ag-ui", "AG-UI", "@ag-ui/client", "ag_ui.mjs", "js", "ag-ui", STOPS_READING),
    OfficialClient("a2a", "A2A SDK", "a2a-sdk", "a2a_client.py", "own", "a2a"),
    OfficialClient(
        "mcp-inspector", "MCP Inspector", "@modelcontextprotocol/inspector", "inspector.mjs", "js", "mcp-server"
    ),
)


@dataclass(frozen=True, slots=True)
class Seen:
    """The result of a feature. `why` says why it does not work, and is empty if it works."""

    outcome: Outcome
    why: str = ""


@dataclass(frozen=True, slots=True)
class Record:
    """The result of a client: the version that was run, and the result of each feature."""

    version: str
    features: Mapping[str, Seen]


def read_results(text: str) -> dict[str, Record]:
    """Return the records by the names of their clients."""
    found: dict[str, Any] = json.loads(text)
    return {
        name: Record(of["version"], {key: Seen(**seen) for key, seen in of["features"].items()})
        for name, of in found.items()
    }


def write_results(records: Mapping[str, Record]) -> str:
    told = {
        client.name: {
            "version": records[client.name].version,
            "features": {name: _told(records[client.name].features[name]) for name in FEATURES},
        }
        for client in CLIENTS
        if client.name in records
    }
    return json.dumps(told, indent=1, ensure_ascii=False) + "\n"


def _told(seen: Seen) -> dict[str, str]:
    return {"outcome": seen.outcome, "why": seen.why} if seen.why else {"outcome": seen.outcome}
