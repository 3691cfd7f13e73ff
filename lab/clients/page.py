"""Makes the page docs/wires/clients.md from the records. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from lab.clients.matrix import CLIENTS, FEATURES, OfficialClient, Record, Seen

HEAD = """\
# Clients

Look up what an official client does with a gateway. Each row was run with the named version against a real gateway and
its worker pools; `make clients` runs them again and writes this page. A feature that a row does
not name works.
"""
TAIL = """\
`beside it`: the client did its half, and a route of the gateway the rest. A person decides an approval elsewhere, and
an aborted turn is cancelled by `POST /v1/turns/TURN/cancel`, or `/stop` on the AI SDK's wire.

"OpenAI, in a page" ran in Node with a browser's preflights and rules. Only the Inspector's command line was run, in
Node 20, though its package wants 22."""
WORDS = {"works": "yes", "fails": "**no**", "absent": "none", "untried": "not tried"}
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
    """Return the page. Raises KeyError if a client or a feature has no record."""
    meanings = [f"- **{SHORT[name]}**: {meaning}" for name, meaning in FEATURES.items()]
    notes = _notes(records)
    return "\n".join(
        [
            HEAD,
            *[_row(client, records[client.name]) for client in CLIENTS],
            "",
            "`none`: the client, or its protocol, has no such thing; the notes say why.",
            "",
            "## The features",
            "",
            *meanings,
            "",
            TAIL,
            *(["", "## Notes", "", *notes] if notes else []),
            "",
        ]
    )


def _row(client: OfficialClient, record: Record) -> str:
    """Return the row of a client, with the features that did not simply work, by their results."""
    found: dict[str, list[str]] = {}
    for name in FEATURES:
        found.setdefault(_word(client, name, record.features[name]), []).append(SHORT[name])
    others = [f"{word}: {', '.join(names)}" for word, names in found.items() if word != WORDS["works"]]
    return "; ".join([f"- [{client.title}]({client.wire}.md) `{client.package}` {record.version}", *others])


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
