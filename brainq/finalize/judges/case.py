"""What a judge reads of a turn. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from brainq.contracts.judgement import JudgeCase
from brainq.contracts.message import Message
from brainq.contracts.recorded import RecordedTurn
from brainq.finalize.words import cut

MOST_RESULT_CHARS = 2_000  # of one tool result
MOST_MESSAGE_CHARS = 8_000  # of any other message, of the question, and of the answer
MOST_TRANSCRIPT_CHARS = 40_000
MOST_FACTS = 50
MOST_FACT_CHARS = 1_000
_NOTE_KEYS = ("text", "excerpt")


def judge_case(turn: RecordedTurn) -> JudgeCase:
    """The case of a turn: bounded, whatever the turn was."""
    return JudgeCase(
        turn_id=turn.turn_id,
        session_id=turn.session_id,
        question=cut(turn.user_message, MOST_MESSAGE_CHARS),
        answer=cut(turn.text, MOST_MESSAGE_CHARS),
        transcript=transcript_of(turn.messages),
        relevant_facts=relevant_facts(turn),
        system_prompt=cut(turn.system_prompt, MOST_MESSAGE_CHARS),
        history=transcript_of(turn.history),
    )


def transcript_of(messages: Iterable[Message]) -> str:
    """One `[role] text` line a message; the middle is left out where all is too much.

    Line breaks become spaces, so that no text can begin a line of its own and speak in another role.
    """
    lines = [line for message in messages if (line := _line(message))]
    if sum(map(len, lines)) + len(lines) <= MOST_TRANSCRIPT_CHARS:
        return "\n".join(lines)
    # The question says what it was about, the end what the answer rests on.
    first, rest = lines[0], lines[1:]
    room = MOST_TRANSCRIPT_CHARS - len(first) - 50
    kept: list[str] = []
    for line in reversed(rest):
        room -= len(line) + 1
        if room < 0:
            break
        kept.append(line)
    left_out = len(rest) - len(kept)
    return "\n".join([first, f"({left_out} messages are left out here)", *reversed(kept)])


def _line(message: Message) -> str:
    most = MOST_RESULT_CHARS if message.role == "tool" else MOST_MESSAGE_CHARS
    said = cut(" ".join(message.content.split()), most)
    if message.calls:
        said = f"{said} (calls {', '.join(call.name for call in message.calls)})".strip()
    return f"[{message.role}] {said}" if said else ""


def relevant_facts(turn: RecordedTurn) -> tuple[str, ...]:
    """The facts the answer should rest on: those the context pack names, and what its citations quote.

    The pack's `relevant_facts` (texts, or objects with a `text`); where it has none, the `text` or `excerpt` of its
    `notes`. A pack that is not such JSON has none.
    """
    pack = _pack(turn.context_pack_json)
    facts = list(_texts(pack.get("relevant_facts"), ("text",))) or list(_texts(pack.get("notes"), _NOTE_KEYS))
    facts += [citation.quote for citation in turn.citations]
    tidy = (cut(" ".join(fact.split()), MOST_FACT_CHARS) for fact in facts)
    return tuple(dict.fromkeys(fact for fact in tidy if fact))[:MOST_FACTS]


def _pack(text: str | None) -> dict[str, Any]:
    try:
        found: Any = json.loads(text or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _texts(rows: Any, keys: tuple[str, ...]) -> Iterator[str]:
    for row in rows if isinstance(rows, list) else []:
        said: Any = next((row[key] for key in keys if row.get(key)), None) if isinstance(row, dict) else row
        if isinstance(said, str):
            yield said
