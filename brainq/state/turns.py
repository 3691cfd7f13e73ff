"""Turns in Redis: submit, claim, look, commit, end. Fits `turn.ports.Turns`."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from brainq.contracts.claim import PlannedCall, TurnClaim
from brainq.contracts.limits import Limits
from brainq.contracts.message import Message
from brainq.contracts.status import Ending, StopReason
from brainq.contracts.turn import TurnRequest
from brainq.contracts.usage import Spend
from brainq.contracts.view import TurnView
from brainq.state.keys import Keys
from brainq.state.outbox import Outbox
from brainq.state.script_values import plan_json
from brainq.state.script_values import used as _used
from brainq.state.scripts import Scripts
from brainq.state.turn_view import read_view


class RedisTurns:
    """The turn operations over one Redis, each one script."""

    def __init__(
        self, scripts: Scripts, keys: Keys, outbox: Outbox, *, lease_s: float, keep_session_s: float
    ) -> None:
        self._run = scripts
        self._client = scripts.client
        self._keys = keys
        self._outbox = outbox
        self._lease_ms = int(lease_s * 1000)
        self._keep_session_ms = int(keep_session_s * 1000)
        # With the fence, which belongs to one claim, a number tells a request from its repetition.
        self._numbers = itertools.count(1)

    def submit(
        self, request: TurnRequest, limits: Limits, *, look_after_s: float, lost_reason: str = ""
    ) -> tuple[str, int]:
        """Queue an accepted turn: ("ACTIVE", 0), ("QUEUED", how many are ahead) or ("EXISTS", 0)."""
        sid, tid = request.session_id, request.turn_id
        key = self._keys.turn(sid, tid)
        # First the index, then the turn: a crash between the two leaves something the sweeper drops, not a
        # turn that no sweeper looks at.
        self._run.index_put(index=self._keys.index, member=f"{sid} {tid}", after_ms=int(look_after_s * 1000))
        reply = self._run.turn_submit(
            session=self._keys.of_session(sid, "session"),
            waiting=self._keys.of_session(sid, "waiting"),
            turn=key,
            spec=key + ":spec",
            budget=key + ":budget",
            events=key + ":events",
            sid=sid,
            tid=tid,
            spec_json=request.model_dump_json(exclude_defaults=True),
            timeout_ms=int(limits.timeout_s * 1000),
            max_steps=limits.max_steps,
            max_tool_calls=limits.tool_calls,
            max_reflections=limits.max_reflections,
            max_context_tokens=limits.max_context_tokens,
            max_total_tokens=limits.max_total_tokens or "",
            max_cost_usd=limits.max_cost_usd or "",
            lost_reason=lost_reason,
        )
        self._outbox.flush(sid)
        return reply[0], int(reply[1]) if reply[0] == "QUEUED" else 0

    def claim(self, session_id: str, turn_id: str, fence: int, owner: str) -> TurnClaim | str:
        """The turn's ownership, or why the doorbell is dropped."""
        key = self._keys.turn(session_id, turn_id)
        reply = self._run.turn_claim(
            turn=key,
            budget=key + ":budget",
            history=self._keys.of_session(session_id, "history"),
            notices=self._keys.of_session(session_id, "notices"),
            events=key + ":events",
            spends=key + ":spends",
            owner=owner,
            fence=fence,
            lease_ms=self._lease_ms,
        )
        if reply[0] == "DROP":
            return reply[1]
        return TurnClaim(session_id, turn_id, owner, int(reply[1]), int(reply[2]))

    def beat(self, claim: TurnClaim) -> str:
        reply = self._run.turn_beat(
            turn=self._keys.turn(claim.session_id, claim.turn_id),
            owner=claim.owner,
            fence=claim.fence,
            lease_ms=self._lease_ms,
        )
        return reply[0]

    def look(self, claim: TurnClaim) -> TurnView:
        """What the owner needs to decide and to prepare, in one round trip."""
        return read_view(self._client, self._keys, claim)

    def begin(
        self, claim: TurnClaim, messages: Sequence[Message], context_hash: str, earlier: int = 0
    ) -> bool:
        """Put the user's message (the last one given) into the session's history; False: the turn was lost."""
        reply = self._run.turn_begin(
            turn=self._keys.turn(claim.session_id, claim.turn_id),
            history=self._keys.of_session(claim.session_id, "history"),
            session=self._keys.of_session(claim.session_id, "session"),
            owner=claim.owner,
            fence=claim.fence,
            context_hash=context_hash,
            earlier=earlier,
            items=[message.model_dump_json(exclude_defaults=True) for message in messages],
        )
        return reply[0] != "LOST"

    def begin_step(
        self,
        claim: TurnClaim,
        estimate_tokens: int,
        tokens: int,
        estimate_usd: float | None,
        shown: Sequence[str] = (),
    ) -> tuple[str, int, int] | str:
        """("GO", step, attempt), or what is spent (`steps`, `tokens`, `cost`), or `LOST`.

        estimate_tokens  input, as it is compared with the bill later
        tokens           the most the step is thought to take, its reply included where that is bounded
        shown            names of the tools chosen for this turn; the first choice stands
        """
        key = self._keys.turn(claim.session_id, claim.turn_id)
        reply = self._run.step_begin(
            turn=key,
            budget=key + ":budget",
            events=key + ":events",
            spends=key + ":spends",
            owner=claim.owner,
            fence=claim.fence,
            asked=f"{claim.fence}:{next(self._numbers)}",
            estimate=estimate_tokens,
            tokens=tokens,
            shown=" ".join(shown),
            estimate_usd="" if estimate_usd is None else repr(estimate_usd),
        )
        if reply[0] == "GO":
            return "GO", int(reply[1]), int(reply[2])
        return reply[1] if reply[0] == "SPENT" else "LOST"

    def tell_delta(self, claim: TurnClaim, step: int, attempt: int, text: str) -> bool:
        key = self._keys.turn(claim.session_id, claim.turn_id)
        reply = self._run.step_delta(
            turn=key,
            events=key + ":events",
            owner=claim.owner,
            fence=claim.fence,
            step=step,
            attempt=attempt,
            part=f"{claim.fence}:{next(self._numbers)}",
            text=text,
        )
        return reply[0] == "OK"

    def commit_calls(
        self,
        claim: TurnClaim,
        step: int,
        message: Message,
        plan: Sequence[PlannedCall],
        spend: Spend,
        tail: str,
        block_tools: Sequence[str] = (),
    ) -> tuple[str, ...] | None:
        """Commit a reply that asks for calls. The calls that now wait for lanes; None when the turn was lost."""
        sid, key = claim.session_id, self._keys.turn(claim.session_id, claim.turn_id)
        reply = self._run.step_commit(
            turn=key,
            session=self._keys.of_session(sid, "session"),
            budget=key + ":budget",
            trace=key + ":trace",
            history=self._keys.of_session(sid, "history"),
            events=key + ":events",
            guard=key + ":guard",
            blocked=key + ":blocked",
            spends=key + ":spends",
            sid=sid,
            tid=claim.turn_id,
            owner=claim.owner,
            fence=claim.fence,
            step=step,
            item=message.model_dump_json(exclude_defaults=True),
            calls=plan_json(plan),
            block=" ".join(block_tools),
            tail=tail,
            **_used(spend),
        )
        self._outbox.flush(sid)
        return None if reply[0] == "LOST" else tuple(reply[1].split())

    def end(
        self,
        claim: TurnClaim,
        *,
        ending: Ending,
        stop_reason: StopReason,
        text: str,
        error: str,
        answer: Message | None,
        marker: Message | None,
        open_status: str,
        open_text: str,
        first_step: str,
        spend: Spend | None,
        tail: str,
    ) -> tuple[str, tuple[str, ...]] | None:
        """End the turn. The session's next turn (or "") and the calls whose lanes are to be freed; None: lost."""
        sid, key = claim.session_id, self._keys.turn(claim.session_id, claim.turn_id)
        reply = self._run.turn_end(
            session=self._keys.of_session(sid, "session"),
            waiting=self._keys.of_session(sid, "waiting"),
            turn=key,
            budget=key + ":budget",
            trace=key + ":trace",
            history=self._keys.of_session(sid, "history"),
            events=key + ":events",
            notices=self._keys.of_session(sid, "notices"),
            spends=key + ":spends",
            base=self._keys.turns_base(sid),
            sid=sid,
            tid=claim.turn_id,
            owner=claim.owner,
            fence=claim.fence,
            ending=ending.value,
            stop_reason=stop_reason.value,
            text=text,
            failure=error,
            item=answer.model_dump_json(exclude_defaults=True) if answer else "",
            marker=marker.model_dump_json(exclude_defaults=True) if marker else "",
            open_status=open_status,
            open_text=open_text,
            first_step=first_step,
            tail=tail,
            **_used(spend),
            keep_session_ms=self._keep_session_ms,
        )
        self._outbox.flush(sid)
        return None if reply[0] == "LOST" else (reply[1], tuple(reply[2].split()))

    def cancel(self, session_id: str, turn_id: str, reason: str, first_step: str) -> tuple[str, str]:
        """("CANCELLED" | "REQUESTED" | "ENDED" | "GONE", state)."""
        key = self._keys.turn(session_id, turn_id)
        reply = self._run.turn_cancel(
            waiting=self._keys.of_session(session_id, "waiting"),
            turn=key,
            events=key + ":events",
            sid=session_id,
            tid=turn_id,
            reason=reason,
            first_step=first_step,
        )
        self._outbox.flush(session_id)
        return reply[0], reply[1] if len(reply) > 1 else ""
