"""Approvals in Redis: deciding them, and how they stand."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal, cast

from brainq.contracts.approval import ApprovalState, AskState, DecideWord, EditedCall
from brainq.contracts.claim import CallRef
from brainq.state.keys import Keys
from brainq.state.outbox import Outbox
from brainq.state.typed_scripts import (
    ApprovalDecideDecided,
    ApprovalDecideEnded,
    Scripts,
)

_FIELDS = ("ask", "ask_by", "ask_why", "hash", "edited", "spec", "ask_ends", "ask_decided_at")


class RedisApprovals:
    """The approval operations over one Redis, each one script."""

    def __init__(self, scripts: Scripts, keys: Keys, outbox: Outbox) -> None:
        self._run = scripts
        self._keys = keys
        self._outbox = outbox

    def decide(
        self,
        ref: CallRef,
        *,
        args_hash: str,
        decision: Literal["approved", "denied"],
        by: str,
        why: str,
        edited: EditedCall | None = None,
    ) -> tuple[DecideWord, str]:
        """(word, detail).

        `APPROVED`, `DENIED`, `EXPIRED`; `DECIDED` with how it stands; `STALE`: the arguments are other ones;
        `ENDED` with the turn's state; `GONE`.
        """
        edit = ""
        if edited is not None:
            edit = json.dumps(
                {
                    "spec": edited.arguments_json,
                    "hash": edited.args_hash,
                    "fp": edited.fingerprint,
                    "lanes": json.dumps(edited.lanes),
                }
            )
        reply = self._run.approval_decide(
            ref.session_id,
            ref.turn_id,
            call=ref.call_id,
            expect=args_hash,
            decision=decision,
            who=by,
            comment=why,
            edit=edit,
        )
        self._outbox.flush(ref.session_id)
        match reply:
            case "APPROVED" | "DENIED" | "EXPIRED":
                return reply, ""
            case ApprovalDecideDecided():
                return "DECIDED", reply.state
            case ApprovalDecideEnded():
                return "ENDED", reply.state
            case "STALE" | "GONE":
                return reply, ""

    def states(self, refs: Sequence[CallRef]) -> list[AskState | None]:
        """How each approval stands; None where Redis does not know the call, or it needs none."""
        if not refs:
            return []
        commands: list[tuple[Any, ...]] = [("TIME",)]
        for ref in refs:
            turn = self._keys.turn(ref.session_id, ref.turn_id)
            commands.append(("HMGET", turn + ":trace", *(f"{ref.call_id}:{field}" for field in _FIELDS)))
            commands.append(("HGET", turn, "state"))
        clock, *replies = self._run.client.many(commands)
        now_ms = int(clock[0]) * 1000 + int(clock[1]) // 1000
        return [
            _state(values, state, now_ms) for values, state in zip(replies[::2], replies[1::2], strict=True)
        ]


def _state(values: Sequence[str | None], turn_state: str | None, now_ms: int) -> AskState | None:
    ask, by, why, args_hash, edited, spec, ends, decided_at = values
    if not ask:
        return None
    live = turn_state in ("active", "parked")
    left_ms = int(ends or 0) - now_ms
    if ask == "pending" and not live:
        ask = "void"
    elif ask == "pending" and left_ms <= 0:
        ask = "expired"
    arguments: dict[str, Any] | None = json.loads(spec)["arguments"] if spec else None
    return AskState(
        state=cast(ApprovalState, ask),
        by=by or "",
        why=why or "",
        args_hash=args_hash or "",
        edited=edited == "1",
        arguments=arguments,
        expires_in_ms=left_ms,
        decided_at_ms=int(decided_at) if decided_at else None,
    )


def asks_of(trace: Mapping[str, str]) -> dict[str, AskState]:
    """How the approvals of an ended turn stand, by call; from its whole trace."""
    calls = [field.removesuffix(":ask") for field in trace if field.endswith(":ask")]
    found = {call: _state([trace.get(f"{call}:{field}") for field in _FIELDS], None, 0) for call in calls}
    return {call: state for call, state in found.items() if state is not None}
