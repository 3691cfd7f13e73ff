"""Results from outside: which call waits for a token, and the result that comes for it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import cast

from brainq.contracts.claim import CallRef, SettleReply
from brainq.contracts.message import Message
from brainq.contracts.outcome import ToolOutcome
from brainq.contracts.outside_token import ref_of_token
from brainq.contracts.status import TraceStatus
from brainq.contracts.usage import Spend
from brainq.state.keys import Keys
from brainq.state.outbox import Outbox
from brainq.state.script_values import as_json, json_or_none
from brainq.state.typed_scripts import CallCompleteLate, Scripts

KEPT_AFTER_S = (
    86_400.0  # so that a result which comes too late is told so, and does not meet an unknown token
)


class RedisOutside:
    """Tokens of a tool's own, and the completion of parked calls."""

    def __init__(self, scripts: Scripts, keys: Keys, outbox: Outbox) -> None:
        self._run = scripts
        self._keys = keys
        self._outbox = outbox

    def register(self, token: str, ref: CallRef, keep_s: float) -> bool:
        """Note which call waits for this token. False: another call has it."""
        key = self._key(token)
        keep_ms = int((keep_s + KEPT_AFTER_S) * 1000)
        if self._run.client.set(key, ref.holder, nx=True, px=keep_ms):
            return True
        return self._run.client.get(key) == ref.holder

    def find(self, token: str) -> CallRef | None:
        """The call that waits, or waited, for a token of a tool's own."""
        holder = cast("str | None", self._run.client.get(self._key(token)))
        return CallRef.of_holder(holder) if holder else None

    def complete(
        self,
        ref: CallRef,
        token: str,
        *,
        status: TraceStatus,
        message: Message,
        detail: str = "",
        retryable: bool = False,
        notice: Message | None = None,
        sources: Sequence[Mapping[str, str]] = (),
        spend: Spend | None = None,
        outcome: ToolOutcome | None = None,
    ) -> SettleReply:
        """The result of a parked call, once: `SETTLED`, `EARLY`, `LATE`, `USED`, `BAD` or `GONE`.

        spend     what a child turn used; the turn of the call pays for it
        outcome   for the hook of the brain, which a worker calls
        """
        spent = ""
        if spend is not None:
            spent = json.dumps(
                {
                    "input_tokens": spend.input_tokens,
                    "output_tokens": spend.output_tokens,
                    "cache_read_tokens": spend.cache_read_tokens,
                    "cache_creation_tokens": spend.cache_creation_tokens,
                    # A text: a number would lose what it has beyond 14 digits.
                    "cost": "" if spend.cost_usd is None else repr(spend.cost_usd),
                    "spend": as_json(spend),
                }
            )
        reply = self._run.call_complete(
            ref.session_id,
            ref.turn_id,
            call=ref.call_id,
            token=token,
            # One of a tool's own was registered for the call; a child's is its turn's id. Only the others name
            # their call themselves, and anybody could write such a one.
            known=ref_of_token(token) is None,
            status=status,
            message=as_json(message),
            detail=detail,
            retryable=retryable,
            found=json.dumps([json.dumps(row) for row in sources]) if sources else "",
            notice=json_or_none(notice),
            spent=spent,
            outcome="" if outcome is None else outcome.model_dump_json(),
        )
        self._outbox.flush(ref.session_id)
        match reply:
            case "SETTLED":
                return SettleReply("SETTLED")
            case CallCompleteLate():
                return SettleReply("LATE", status=reply.status)
            case _:
                return SettleReply(reply)

    def _key(self, token: str) -> str:
        # A token may be long, and it is a secret: the key's name tells nobody what it is.
        return self._keys.outside(hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()[:32])
