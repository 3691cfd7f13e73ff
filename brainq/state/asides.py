"""Beside the steps, in Redis: the wave a turn begins with, reflections, and the compaction of the history."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from brainq.contracts.claim import PlannedCall, TurnClaim
from brainq.contracts.message import Message
from brainq.contracts.usage import Spend
from brainq.state.keys import Keys
from brainq.state.outbox import Outbox
from brainq.state.script_values import plan_json, used
from brainq.state.scripts import Scripts


class RedisAsides:
    """The operations beside a turn's steps, each one script. Fits `turn.ports.Asides`."""

    def __init__(self, scripts: Scripts, keys: Keys, outbox: Outbox) -> None:
        self._run = scripts
        self._keys = keys
        self._outbox = outbox

    def open(self, claim: TurnClaim, plan: Sequence[PlannedCall], opening_s: float) -> str:
        """Open the wave of step 0: `OPENED`, `ALREADY` or `LOST`. Once open, the turn awaits its calls."""
        key = self._keys.turn(claim.session_id, claim.turn_id)
        reply = self._run.turn_open(
            turn=key,
            budget=key + ":budget",
            trace=key + ":trace",
            history=self._keys.of_session(claim.session_id, "history"),
            events=key + ":events",
            guard=key + ":guard",
            sid=claim.session_id,
            tid=claim.turn_id,
            owner=claim.owner,
            fence=claim.fence,
            calls=plan_json(plan),
            opening_ms=int(opening_s * 1000),
        )
        self._outbox.flush(claim.session_id)
        return reply[0]

    def skip_opening(self, session_id: str, turn_id: str) -> str:
        """Go on without what the opening wave has not brought: `SKIPPED`, `ALREADY` or `EARLY`."""
        key = self._keys.turn(session_id, turn_id)
        reply = self._run.opening_skip(
            turn=key,
            budget=key + ":budget",
            trace=key + ":trace",
            history=self._keys.of_session(session_id, "history"),
            events=key + ":events",
            guard=key + ":guard",
            sid=session_id,
            tid=turn_id,
        )
        self._outbox.flush(session_id)
        return reply[0]

    def begin(self, claim: TurnClaim, kind: str, mark: str, tokens: int, usd: float | None) -> str:
        """Mark a `reflection` or `compaction` as tried: `GO`, `DONE` (tried before), `SPENT` or `LOST`.

        tokens, usd   the most it is thought to cost: held against the budget, and charged if its worker is lost
        """
        key = self._keys.turn(claim.session_id, claim.turn_id)
        reply = self._run.aside_begin(
            turn=key,
            budget=key + ":budget",
            owner=claim.owner,
            fence=claim.fence,
            kind=kind,
            mark=mark,
            tokens=tokens,
            usd="" if usd is None else repr(usd),
        )
        return reply[0]

    def commit_note(
        self,
        claim: TurnClaim,
        kind: str,
        note: Message | None,
        spend: Spend | None,
        data: Mapping[str, JsonValue],
    ) -> bool:
        """Put a note of the runtime into the history and ring for the step itself; False: the turn was lost."""
        key = self._keys.turn(claim.session_id, claim.turn_id)
        reply = self._run.aside_commit(
            turn=key,
            budget=key + ":budget",
            history=self._keys.of_session(claim.session_id, "history"),
            events=key + ":events",
            spends=key + ":spends",
            sid=claim.session_id,
            tid=claim.turn_id,
            owner=claim.owner,
            fence=claim.fence,
            kind=kind,
            item=note.model_dump_json(exclude_defaults=True) if note else "",
            data=json.dumps(dict(data)),
            **used(spend),
        )
        self._outbox.flush(claim.session_id)
        return reply[0] == "COMMITTED"

    def compact(
        self,
        claim: TurnClaim,
        *,
        expect: int,
        drop: int,
        front: Sequence[Message],
        spend: Spend | None,
        data: Mapping[str, JsonValue],
        mark: str,
        forget: Sequence[str],
    ) -> str:
        """Replace the `drop` oldest of `expect` messages by `front`: `COMPACTED`, `CHANGED` or `LOST`.

        mark     how full the context is afterwards, tokens
        forget   fingerprints of reads whose results are gone from the context: they may be repeated
        """
        key = self._keys.turn(claim.session_id, claim.turn_id)
        reply = self._run.history_compact(
            turn=key,
            session=self._keys.of_session(claim.session_id, "session"),
            budget=key + ":budget",
            history=self._keys.of_session(claim.session_id, "history"),
            events=key + ":events",
            spends=key + ":spends",
            sid=claim.session_id,
            tid=claim.turn_id,
            owner=claim.owner,
            fence=claim.fence,
            expect=expect,
            drop=drop,
            mark=mark,
            forget=" ".join(forget),
            guard=key + ":guard",
            items=[message.model_dump_json(exclude_defaults=True) for message in front],
            data=json.dumps(dict(data)),
            **used(spend),
        )
        self._outbox.flush(claim.session_id)
        return reply[0]
