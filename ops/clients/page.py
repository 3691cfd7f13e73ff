"""The page docs/wires/clients.md, from what was recorded. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from ops.clients.matrix import CLIENTS, FEATURES, OfficialClient, Record, Seen

HEAD = """\
# Clients

This page shows what official clients do with a gateway. Each row was run: the client as its maker publishes it, against
a real gateway with its four worker pools. `make clients` runs all of them again and writes this page. The version in a
row is the one that was run; older ones were not tried.
"""
TAIL = """\
`beside it`: the client did its half, and a route of the gateway's own the rest. For an approval the request waits while
a person decides elsewhere. A client that is aborted stops reading, and the turn goes on. It was then cancelled by
`POST /v1/turns/TURN/cancel`, or on the AI SDK's wire by `/stop`.

Not every row ran where its users have it. "OpenAI, in a page" ran in Node. It sent a preflight before each request as
a browser does, and held answers to a browser's rules. The Inspector ran in Node 20, though its package asks for 22.
Only its command line was run."""
WORDS = {"works": "yes", "fails": "**no**", "absent": "-", "untried": "not tried"}
SHORT = {
    "answer": "answer",
    "stream": "stream",
    "tools": "own tools",
    "structured": "schema",
    "image": "image",
    "continue": "goes on",
    "failure": "failure",
    "cancel": "cancel",
    "approval": "approval",
}


def page(records: Mapping[str, Record]) -> str:
    """The page. Raises KeyError where a client or a feature was not recorded."""
    columns = ["client", *(SHORT[name] for name in FEATURES)]
    lines = [_line(columns), _line(["---"] * len(columns))]
    lines += [_row(client, records[client.name]) for client in CLIENTS]
    meanings = [f"- **{SHORT[name]}**: {meaning}" for name, meaning in FEATURES.items()]
    notes = _notes(records)
    return "\n".join(
        [
            HEAD,
            *lines,
            "",
            "`-`: the client, or its protocol, has no such thing; the notes say why.",
            "",
            "## The columns",
            "",
            *meanings,
            "",
            TAIL,
            *(["", "## Notes", "", *notes] if notes else []),
            "",
        ]
    )


def _row(client: OfficialClient, record: Record) -> str:
    title = f"[{client.title}]({client.wire}.md) `{client.package}` {record.version}"
    return _line([title, *(_word(client, name, record.features[name]) for name in FEATURES)])


def _word(client: OfficialClient, feature: str, seen: Seen) -> str:
    return "beside it" if seen.outcome == "works" and feature in client.beside else WORDS[seen.outcome]


def _notes(records: Mapping[str, Record]) -> list[str]:
    told: list[str] = []
    for client in CLIENTS:
        features = records[client.name].features
        told += [_note(client, name, features[name]) for name in FEATURES if features[name].why]
    return told


def _note(client: OfficialClient, feature: str, seen: Seen) -> str:
    return f"- {client.title}, {SHORT[feature]}: {seen.why}"


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"
