"""People's actions on sessions and turns in Redis: approvals, holds and readiness flags, input, and the pausing of a
session's queue.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal, cast

from brainq.adapters.redis.script_methods import Parameter, script, script_call
from brainq.adapters.redis.scripts import ScriptCall, Scripts
from brainq.contracts.claim import CallRef
from brainq.contracts.people import (
    ApprovalState,
    ApprovalStatus,
    Brake,
    DecideResult,
    EditedCall,
    HoldSpec,
    PutResult,
    StandingHold,
    TurnInput,
)

_APPROVAL_FIELDS = ("ask", "ask_by", "ask_why", "hash", "edited", "spec", "ask_ends", "ask_decided_at")

MAX_FLAGS = 100  # The maximum number of flags that no turn has taken. More mean that no turns are submitted.
MAX_UNREAD = 200
# The unread input goes to the model as a whole. An empty mailbox accepts an input of any size.
MAX_UNREAD_BYTES = 1_000_000


def _with_detail(word: str, detail: str = "") -> tuple[str, str]:
    return word, detail


def _resumed(turn_id: str) -> tuple[bool, str]:
    return True, turn_id


def _put(word: PutResult, *details: object) -> tuple[str, ...]:
    first, second, *_ = (*details, "", "")
    return (word, str(first), "" if word == "MOVED" else str(second))


class RedisHolds:
    """The holds of turns, the readiness flags of sessions, and approvals: what keeps calls from starting."""

    def __init__(self, scripts: Scripts, *, keep_session_s: float) -> None:
        self._scripts = scripts
        self._keys = scripts.keys
        self._keep_ms = int(keep_session_s * 1000)

    def place(self, session_id: str, turn_id: str, hold: HoldSpec) -> Literal["HELD", "ALREADY", "ENDED", "GONE"]:
        """Place a hold. From then on no call with effects starts."""
        return self._place(session_id, turn_id, hold, "hold").run()

    def place_all(self, brakes: Sequence[Brake]) -> list[str | Exception]:
        """Place holds, and readiness flags that turns have taken, in one round trip. The result of a hold that could
        not be placed is its exception."""
        calls = [
            self._place(
                brake.session_id, brake.turn_id or "", brake.hold, "readiness" if brake.kind == "flag" else "hold"
            )
            for brake in brakes
        ]
        return list(self._scripts.pipeline(calls)[0])

    @script_call("hold_place", ENDED="ENDED")
    def _place(
        self, session_id: str, turn_id: str, hold: HoldSpec, hold_kind: Literal["hold", "readiness"]
    ) -> ScriptCall[Literal["HELD", "ALREADY", "ENDED", "GONE"]]: ...

    @script("hold_release", hold=Parameter("hold_id"))
    def release(self, session_id: str, turn_id: str, hold_id: str) -> Literal["RELEASED", "ABSENT", "GONE"]:
        """Release a hold."""
        ...

    def of_turn(self, session_id: str, turn_id: str) -> tuple[StandingHold, ...]:
        """Return the open holds by id. A hold whose time is over has `ends_in_ms` at 0 or below."""
        clock, text = self._scripts.client.many([("TIME",), ("HGET", self._keys.turn(session_id, turn_id), "holds")])
        now_ms = int(clock[0]) * 1000 + int(clock[1]) // 1000
        found: dict[str, Any] = json.loads(text) if text else {}
        return tuple(
            StandingHold(
                id=hold_id,
                kind=hold["kind"],
                reason=hold["reason"],
                on_timeout=hold["policy"],
                ends_in_ms=int(hold["ends"]) - now_ms,
            )
            for hold_id, hold in sorted(found.items())
        )

    def is_ready(self, session_id: str, turn_id: str) -> bool:
        """Return whether nothing keeps calls with effects from starting."""
        return not any(
            hold.ends_in_ms > 0 or hold.on_timeout != "release" for hold in self.of_turn(session_id, turn_id)
        )

    @script("flag_add", most=MAX_FLAGS)
    def add_flag(self, session_id: str, flag: HoldSpec) -> Literal["ADDED", "ALREADY", "FULL"]:
        """Add a readiness flag. `FULL` means that too many of the session's flags were not taken by a turn."""
        ...

    @script("flag_release", flag=Parameter("flag_id"), others=_with_detail)
    def release_flag(self, session_id: str, flag_id: str) -> tuple[Literal["READY", "TAKEN", "GONE"], str]:
        """Release a flag: (`READY`, ""), (`TAKEN`, the turn that holds for it) or (`GONE`, "")."""
        ...

    def unread_flags(self, session_id: str) -> tuple[str, ...]:
        """Return the flags that no turn uses yet, oldest first."""
        return tuple(
            cast(list[str], self._scripts.client.lrange(self._keys.of_session(session_id, "readiness"), 0, -1))
        )

    @script(
        "approval_decide",
        expect=Parameter("args_hash"),
        who=Parameter("by"),
        comment=Parameter("why"),
        edit=Parameter("edited"),
        others=_with_detail,
    )
    def decide_approval(
        self,
        ref: CallRef,
        *,
        args_hash: str,
        decision: Literal["approved", "denied"],
        by: str,
        why: str,
        edited: EditedCall | None = None,
    ) -> tuple[DecideResult, str]:
        """Decide an approval. Returns a word and its detail.

        `APPROVED`, `DENIED`, `EXPIRED`; `DECIDED` with the approval's state; `STALE`: the arguments have changed;
        `ENDED` with the turn's state; `GONE`.
        """
        ...

    def approvals(self, refs: Sequence[CallRef]) -> list[ApprovalStatus | None]:
        """Return the state of each approval, or None if the call is not in Redis or needs no approval."""
        if not refs:
            return []
        commands: list[tuple[Any, ...]] = [("TIME",)]
        for ref in refs:
            turn = self._keys.turn(ref.session_id, ref.turn_id)
            commands.append(("HMGET", turn + ":trace", *(f"{ref.call_id}:{field}" for field in _APPROVAL_FIELDS)))
            commands.append(("HGET", turn, "state"))
        clock, *replies = self._scripts.client.many(commands)
        now_ms = int(clock[0]) * 1000 + int(clock[1]) // 1000
        return [_read_status(values, state, now_ms) for values, state in zip(replies[::2], replies[1::2], strict=True)]


def _read_status(values: Sequence[str | None], turn_state: str | None, now_ms: int) -> ApprovalStatus | None:
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
    return ApprovalStatus(
        state=cast(ApprovalState, ask),
        by=by or "",
        why=why or "",
        args_hash=args_hash or "",
        edited=edited == "1",
        arguments=arguments,
        expires_in_ms=left_ms,
        decided_at_ms=int(decided_at) if decided_at else None,
    )


def read_approvals(trace: Mapping[str, str]) -> dict[str, ApprovalStatus]:
    """Return the status of each approval of an ended turn, by call id. `trace` must be the turn's whole trace."""
    calls = [field.removesuffix(":ask") for field in trace if field.endswith(":ask")]
    found = {
        call: _read_status([trace.get(f"{call}:{field}") for field in _APPROVAL_FIELDS], None, 0) for call in calls
    }
    return {call: state for call, state in found.items() if state is not None}


class RedisSessions:
    """The sessions' live and waiting turns and pauses, and the input for live turns. Input is put into a turn's
    mailbox: the begin of a step consumes it, and the end of the turn bounces it."""

    def __init__(self, scripts: Scripts, *, keep_session_s: float, in_cells: bool = False) -> None:
        """`in_cells`: a tenant may be in another cell."""
        self._scripts = scripts
        self._keys = scripts.keys
        self._in_cells = in_cells
        self._keep_session_ms = int(keep_session_s * 1000)

    def live(self, session_id: str) -> str:
        """Return the live turn's id, or ""."""
        return self._field(session_id, "live")

    def is_paused(self, session_id: str) -> bool:
        return self._field(session_id, "paused") == "1"

    def why_paused(self, session_id: str) -> str | None:
        """Return the reason of the pause, which may be "", or None if the session is not paused."""
        key = self._keys.of_session(session_id, "session")
        paused, why = cast("list[str | None]", self._scripts.client.hmget(key, ["paused", "paused_why"]))
        return (why or "") if paused == "1" else None

    def waiting(self, session_id: str) -> list[str]:
        """Return the ids of the waiting turns, the next one first."""
        key = self._keys.of_session(session_id, "waiting")
        return cast(list[str], self._scripts.client.lrange(key, 0, -1))

    def waiting_counts(self, session_id: str) -> tuple[int, int]:
        """Return the number of waiting turns of the session, and of the tenant's sessions that wait for capacity."""
        pipe = self._scripts.client.pipeline(transaction=False)
        pipe.llen(self._keys.of_session(session_id, "waiting"))
        pipe.zcard(self._keys.room_line(session_id))
        pipe.hget(self._keys.room, "caps")
        of_session, of_tenant, caps = pipe.execute()
        if caps:
            pipe = self._scripts.client.pipeline(transaction=False)
            for brain in caps.split():
                pipe.zcard(self._keys.capacity_deferred(brain, session_id))
            of_tenant += sum(pipe.execute())
        return of_session, of_tenant

    @script("session_pause", PAUSED=True, ALREADY=False)
    def pause(self, session_id: str, why: str = "") -> bool:
        """Keep further turns from beginning. Returns False if the session was already paused."""
        ...

    @script("session_resume", RESUMED=_resumed, ALREADY=(False, ""))
    def resume(self, session_id: str) -> tuple[bool, str]:
        """Resume a session. Returns whether it was paused, and the turn that became live, or ""."""
        ...

    @script("mailbox_put", most=MAX_UNREAD, most_bytes=MAX_UNREAD_BYTES, others=_put)
    def put_input(self, session_id: str, turn_id: str, item: TurnInput) -> tuple[PutResult, str, str]:
        """Put an input into a turn's mailbox. Returns a word and two details.

        `ACCEPTED`; `ALREADY`: its receipt, the turn's state; `SEALED`: the turn's state; `FULL`: how many inputs and
        bytes no step has read; `GONE`. The input of a tenant in another cell is not put into a mailbox: `MOVED`: the
        cell, or `MOVING` while the tenant moves.
        """
        ...

    def input_receipt(self, session_id: str, turn_id: str, client_message_id: str) -> str | None:
        """Return `accepted`, `consumed STEP` or `bounced`, or None if the input is not in Redis."""
        key = self._keys.named("receipts", session_id, turn_id)
        return cast("str | None", self._scripts.client.hget(key, client_message_id))

    def _field(self, session_id: str, name: str) -> str:
        found = self._scripts.client.hget(self._keys.of_session(session_id, "session"), name)
        return cast("str | None", found) or ""
