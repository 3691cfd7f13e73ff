"""Beside the steps, in Redis: the wave a turn begins with, reflections, and the compaction of the history."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Literal

from pydantic import JsonValue

from brainq.contracts.claim import PlannedCall, TurnClaim
from brainq.contracts.message import Message
from brainq.contracts.model import Spend
from brainq.state.keys import Keys
from brainq.state.outbox import Outbox
from brainq.state.script_values import as_json, json_or_none, plan_json, spends_json, usage_arguments
from brainq.state.typed_scripts import AuxBeginSpent, Scripts


class RedisAuxiliary:
    """The operations beside a turn's steps, each one script. Fits `ports.redis_turns.Auxiliary`."""

    def __init__(self, scripts: Scripts, keys: Keys, outbox: Outbox) -> None:
        self._run = scripts
        self._keys = keys
        self._outbox = outbox

    def open(
        self, claim: TurnClaim, plan: Sequence[PlannedCall], opening_s: float
    ) -> Literal["OPENED", "ALREADY", "LOST"]:
        """Open the wave of step 0: `OPENED`, `ALREADY` or `LOST`. Once open, the turn awaits its calls."""
        reply = self._run.turn_open(
            claim.session_id,
            claim.turn_id,
            owner=claim.owner,
            fence=claim.fence,
            calls=plan_json(plan),
            opening_ms=int(opening_s * 1000),
        )
        self._outbox.flush(claim.session_id)
        return reply

    def skip_opening(self, session_id: str, turn_id: str) -> Literal["SKIPPED", "ALREADY", "EARLY"]:
        """Go on without what the opening wave has not brought: `SKIPPED`, `ALREADY` or `EARLY`."""
        reply = self._run.opening_skip(session_id, turn_id)
        self._outbox.flush(session_id)
        return reply

    def begin(
        self,
        claim: TurnClaim,
        kind: Literal["reflection", "compaction"],
        mark: str,
        tokens: int,
        usd: float | None,
        under_way: Sequence[Spend] = (),
    ) -> Literal["GO", "DONE", "SPENT", "LOST"]:
        """Mark a `reflection` or `compaction` as tried: `GO`, `DONE` (tried before), `SPENT` or `LOST`.

        tokens, usd   the most it is thought to cost: held against the budget
        under_way     what is charged if its worker is lost
        """
        reply = self._run.aux_begin(
            claim.session_id,
            claim.turn_id,
            owner=claim.owner,
            fence=claim.fence,
            kind=kind,
            mark=mark,
            tokens=tokens,
            usd=usd,
            under_way=spends_json(under_way or None),
        )
        return "SPENT" if isinstance(reply, AuxBeginSpent) else reply

    def commit_note(
        self, claim: TurnClaim, kind: str, note: Message | None, spend: Spend | None, data: Mapping[str, JsonValue]
    ) -> bool:
        """Put a note of the runtime into the history and ring for the step itself; False: the turn was lost."""
        reply = self._run.aux_commit(
            claim.session_id,
            claim.turn_id,
            owner=claim.owner,
            fence=claim.fence,
            kind=kind,
            item=json_or_none(note),
            data=json.dumps(dict(data)),
            **usage_arguments(spend),
        )
        self._outbox.flush(claim.session_id)
        return reply == "COMMITTED"

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
    ) -> Literal["COMPACTED", "CHANGED", "LOST"]:
        """Replace the `drop` oldest of `expect` messages by `front`: `COMPACTED`, `CHANGED` or `LOST`.

        mark     how full the context is afterwards, tokens
        forget   fingerprints of reads whose results are gone from the context: they may be repeated
        """
        reply = self._run.history_compact(
            claim.session_id,
            claim.turn_id,
            owner=claim.owner,
            fence=claim.fence,
            expect=expect,
            drop=drop,
            mark=mark,
            forget=forget,
            items=[as_json(message) for message in front],
            data=json.dumps(dict(data)),
            **usage_arguments(spend),
        )
        self._outbox.flush(claim.session_id)
        return reply
