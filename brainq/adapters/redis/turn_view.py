"""Reads of a turn: what its owner needs before it decides, and what the finalizer needs of an ended turn.

Each is one round trip.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

from redis.exceptions import ResponseError

from brainq.adapters.redis.connection import Client, Command, as_mapping
from brainq.adapters.redis.conversations import CachedHistory, Conversations
from brainq.adapters.redis.keys import Keys
from brainq.contracts.build import FORMATS_READ
from brainq.contracts.claim import TurnClaim
from brainq.contracts.ids import call_order
from brainq.contracts.message import Message
from brainq.contracts.model import Spend, TokenUsage
from brainq.contracts.people import TurnInput
from brainq.contracts.rate import QueueTicket
from brainq.contracts.status import REPLY_STOP_REASONS, Awaits, Ending, StopReason, TurnState
from brainq.contracts.turn import TurnRequest
from brainq.contracts.view import EndedTurn, TurnView
from brainq.engine.tools.context_pack import context_hash, opening_pack
from brainq.errors import SetupError

MAX_INPUTS = 100  # The maximum number of inputs that one step reads. The next step reads the rest.
MAX_DELTAS = 5_000
MAX_TEXT_MESSAGES = 200  # The number of messages that are searched for the newest text of a model.
MAX_OPENING_CALLS = 2  # memory and the context pack
OPENING_CALL_PREFIX = "c0-"
PROBLEM_PREFIX = "problem:"  # The prefix of the fields that count replies on which the turn could not act.

_TURN_FIELDS = (
    *("state", "awaits", "step", "thinking_step", "lost_attempts", "died_alone", "died_how", "cancel", "cancel_reason"),
    *("begun", "write_epoch", "created_at", "active_at", "n_calls", "absorbed", "lost_reason", "opening_until"),
    *("aux_reflection", "aux_compaction", "shown", "number", "isolated", "compacted", "flag", "trimmed"),
    *("history_stamp", "rung_at", "parked_ms", "max_wait_ms", "stands", "hooks_due"),
)
_BUDGET_FIELDS = (
    *("deadline", "steps_used", "steps_max", "input_tokens", "output_tokens", "cache_read_tokens"),
    *("cache_creation_tokens", "cost_usd"),
)
_SESSION_FIELDS = ("turns", "known_input", "known_estimate", "trimmed", "history_stamp")
_OPENING_FIELDS = ("tool", "status", "msg")
_OPENING = tuple(f"{OPENING_CALL_PREFIX}{i}:{field}" for i in range(MAX_OPENING_CALLS) for field in _OPENING_FIELDS)


@dataclass(slots=True)
class ViewReplies:
    """The raw replies to `view_reads`, and the part of the session's history that was cached when
    they were requested."""

    known: CachedHistory
    replies: list[Any]


def view_reads(keys: Keys, session_id: str, turn_id: str, known: CachedHistory) -> list[Command]:
    """Return the commands whose replies form a view."""
    key = keys.turn(session_id, turn_id)
    return [
        ("HMGET", key, *_TURN_FIELDS),
        ("HMGET", key + ":budget", *_BUDGET_FIELDS),
        ("GET", key + ":spec"),
        ("HGETALL", key + ":guard"),
        ("SMEMBERS", key + ":blocked"),
        ("HMGET", keys.of_session(session_id, "session"), *_SESSION_FIELDS),
        ("LRANGE", key + ":mailbox", 0, MAX_INPUTS - 1),
        Conversations.read(keys.of_session(session_id, "history"), known),
        *opening_reads(key),
    ]


def read_view(
    client: Client, keys: Keys, conversations: Conversations, claim: TurnClaim, seen: ViewReplies
) -> TurnView:
    """Return all data for decisions and preparations. Reads more only if the history has changed unexpectedly."""
    sid, key = claim.session_id, keys.turn(claim.session_id, claim.turn_id)
    history_key, known = keys.of_session(sid, "history"), seen.known
    # These are removed from the view, because they may be long and a claim lives as long as a model call.
    found, seen.replies = seen.replies, []
    for reply in found:
        if isinstance(reply, ResponseError):
            raise reply
    turn_row, budget_row, spec, guard, blocked, session_row, inputs, items, *opening = found
    turn = dict(zip(_TURN_FIELDS, turn_row, strict=True))
    session = dict(zip(_SESSION_FIELDS, session_row, strict=True))
    budget = dict(zip(_BUDGET_FIELDS, budget_row, strict=True))
    begun = turn["begun"] == "1"
    if begun and turn["isolated"] == "1":
        # A review began with the session's messages up to then, if it may see them, and continues separately.
        history_key, counted = key + ":history", turn
        known = conversations.known(history_key)
        (items,) = client.many([conversations.read(history_key, known)])
    else:
        counted = session
    stamp, trimmed = counted["history_stamp"] or "", int(counted["trimmed"] or 0)
    return TurnView(
        request=TurnRequest.from_stored(spec),
        state=TurnState(turn["state"]),
        awaits=Awaits(turn["awaits"]),
        now_ms=claim.now_ms,
        deadline_ms=int(budget["deadline"]),
        created_at_ms=int(turn["created_at"]),
        active_at_ms=int(turn["active_at"]),
        step=int(turn["step"]),
        thinking_step=int(turn["thinking_step"] or 0),
        steps_used=int(budget["steps_used"] or 0),
        steps_max=int(budget["steps_max"]),
        lost_attempts=int(turn["lost_attempts"] or 0),
        cancel=turn["cancel"] == "1",
        cancel_reason=turn["cancel_reason"] or "",
        begun=begun,
        turn_number=int(turn["number"] or 0) or int(session["turns"] or 0) + 1,
        write_epoch=int(turn["write_epoch"] or 0),
        succeeded={fingerprint: int(epoch) for fingerprint, epoch in as_mapping(guard).items()},
        blocked=frozenset(blocked),
        history=conversations.conversation(history_key, known, stamp, trimmed, items),
        usage=read_usage(budget),
        cost_usd=float(budget["cost_usd"] or 0),
        lost_reason=turn["lost_reason"] or "",
        open_calls=int(turn["n_calls"] or 0) > 0 and turn["absorbed"] != turn["step"],
        opened=turn["opening_until"] is not None,
        opening=read_opening(opening) if turn["opening_until"] is not None else {},
        reflected_step=int(turn["aux_reflection"] or 0),
        compaction_tried_at=int(turn["aux_compaction"] or 0),
        known=(int(session["known_input"] or 0), int(session["known_estimate"] or 0)),
        shown=frozenset((turn["shown"] or "").split()),
        compacted=turn["compacted"] == "1",
        flag=turn["flag"] or "",
        quarantine_deaths=int(turn["died_alone"] or 0),
        died_how=turn["died_how"] or "",
        inputs=tuple(TurnInput.from_stored(item) for item in inputs),
        rung_at_ms=int(turn["rung_at"] or 0),
        parked_ms=int(turn["parked_ms"] or 0),
        max_wait_ms=int(turn["max_wait_ms"]) if turn["max_wait_ms"] else None,
        queue_ticket=QueueTicket.parse(turn["stands"]) if turn["stands"] else None,
        hooks_due=tuple((turn["hooks_due"] or "").split()),
    )


def read_step_text(client: Client, keys: Keys, session_id: str, turn_id: str) -> str:
    """Return the published text of the newest attempt at a step, or "" once the step has ended."""
    events = keys.named("events", session_id, turn_id)
    deltas: list[str] = []
    for _, fields in cast("list[tuple[str, dict[str, str]]]", client.xrevrange(events, count=MAX_DELTAS)):
        if fields["kind"] in ("step.started", "step.ended"):
            break
        if fields["kind"] == "text.delta":
            deltas.append(json.loads(fields["data"])["text"])
    return "".join(reversed(deltas))


def read_newest_text(client: Client, keys: Keys, session_id: str, turn_id: str, isolated: bool) -> str:
    """Return the newest text of a live turn's model: of the reply that is being written, or else of the last reply with
    text."""
    text = read_step_text(client, keys, session_id, turn_id)
    if text:
        return text
    history = keys.history(session_id, turn_id, isolated=isolated)
    for item in reversed(cast(list[str], client.lrange(history, -MAX_TEXT_MESSAGES, -1))):
        message = Message.from_stored(item)
        if message.role == "assistant" and message.turn == turn_id and message.content:
            return message.content
    return ""


def opening_reads(turn_key: str) -> list[Command]:
    """Return the commands whose replies `read_opening` reads."""
    return [("HMGET", turn_key + ":trace", *_OPENING)]


def read_opening(replies: Sequence[Sequence[str | None]]) -> dict[str, str]:
    """Return the results of the successful opening calls: tool -> its text."""
    values, size = replies[0], len(_OPENING_FIELDS)
    found = [values[start : start + size] for start in range(0, len(values), size)]
    return {
        tool: Message.from_stored(message).content
        for tool, status, message in found
        if tool and message and status == "completed"
    }


def read_usage(budget: dict[str, Any]) -> TokenUsage:
    """Return the token counts in a budget hash."""
    return TokenUsage(
        input_tokens=int(budget.get("input_tokens") or 0),
        output_tokens=int(budget.get("output_tokens") or 0),
        cache_read_tokens=int(budget.get("cache_read_tokens") or 0),
        cache_creation_tokens=int(budget.get("cache_creation_tokens") or 0),
    )


def ended_reads(turn_key: str) -> list[Command]:
    """Return the commands whose replies `read_ended_turn` reads."""
    return [
        ("HGETALL", turn_key),
        ("HGETALL", turn_key + ":budget"),
        ("GET", turn_key + ":spec"),
        ("LRANGE", turn_key + ":sources", 0, -1),
        ("HGETALL", turn_key + ":trace"),
        ("LRANGE", turn_key + ":spends", 0, -1),
    ]


ENDED_TRACE = 4  # The position of the read of the trace.


def read_ended_turn(found: Sequence[Any], complete: Callable[[TurnRequest], TurnRequest]) -> EndedTurn | None:
    """Return the ended turn that these replies describe.

    Returns None for a turn that has not ended, or that is not in Redis.

    `complete` fills unset fields of its request with the brain's values.
    """
    turn, budget, spec, sources, trace, spends = found
    turn, budget, trace = as_mapping(turn), as_mapping(budget), as_mapping(trace)
    if int(turn.get("format") or 1) not in FORMATS_READ:
        raise SetupError(f"its state is of format {turn['format']}, which this build does not read; use a newer one")
    if not turn.get("ending") or not spec:
        return None
    named = {field.split(":")[0]: tool for field, tool in trace.items() if field.endswith(":tool")}
    tools = {call: named[call] for call in sorted(named, key=call_order)}  # A hash has no order, so sort the calls.
    # Memory and context that were loaded before the first step do not count as tool use by the model.
    ran = [
        tool
        for call, tool in tools.items()
        if f"{call}:started_at" in trace and not call.startswith(OPENING_CALL_PREFIX)
    ]
    brought = read_opening([[trace.get(field) for field in _OPENING]])
    created = int(turn["created_at"])
    started = int(turn.get("active_at") or created)
    return EndedTurn(
        request=complete(TurnRequest.from_stored(spec)),
        ending=Ending(turn["ending"]),
        stop_reason=StopReason(turn["stop_reason"]),
        text=turn.get("text", ""),
        error=turn.get("error", ""),
        steps=int(turn.get("step") or 0) + (turn.get("stop_reason") in REPLY_STOP_REASONS),
        tool_calls=int(budget.get("tool_calls_used") or 0),
        tools=tuple(dict.fromkeys(ran)),
        usage=read_usage(budget),
        cost_usd=float(budget.get("cost_usd") or 0),
        cost_known="cost_usd" in budget,
        sources=tuple(json.loads(source) for source in sources),
        context_hash=context_hash(brought),
        prompt_hash=turn.get("prompt_hash", ""),
        turn_number=int(turn.get("number") or 0),
        elapsed_ms=int(turn["closing_at"]) - started,
        failing_error=turn.get("fin_error", "") if int(turn.get("fin_failing_since") or 0) else "",
        notes=(turn["fin_note"],) if "fin_note" in turn else (),
        problems={
            field.removeprefix(PROBLEM_PREFIX): int(count)
            for field, count in turn.items()
            if field.startswith(PROBLEM_PREFIX)
        },
        context_full=int(turn.get("context_full") or 0),
        unsummarised=turn.get("unsummarised", ""),
        spends=tuple(Spend.from_stored(spend) for spend in spends),
        opening_failed={
            tool: trace.get(f"{call}:status", "")
            for call, tool in tools.items()
            if call.startswith(OPENING_CALL_PREFIX) and trace.get(f"{call}:status") != "completed"
        },
        context_pack_json=opening_pack(brought),
        last_agent_message=turn.get("last_agent_message"),
        diff=turn.get("diff"),
        parked_ms=int(turn.get("parked_ms") or 0),
        created_at_ms=int(turn["created_at"]),
        ended_at_ms=int(turn["closing_at"]),
        wait_ms=int(turn.get("active_at") or turn["closing_at"]) - created,
        pin=turn.get("pin", ""),
        builds=tuple(turn.get("builds", "").split()),
        format=int(turn.get("format") or 1),
    )
