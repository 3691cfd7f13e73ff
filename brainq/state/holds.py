"""Holds in Redis: of a turn, and the readiness flags a session keeps for turns to come."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from typing import Any, Literal, cast

from brainq.contracts.hold import HoldSpec, StandingHold
from brainq.contracts.kept import Brake
from brainq.state.keys import Keys
from brainq.state.outbox import Outbox
from brainq.state.script_values import hold_ms
from brainq.state.typed_scripts import FlagReleaseTaken, HoldPlaceEnded, Scripts

MOST_FLAGS = 100  # that no turn has taken: more means that nobody submits


class RedisHolds:
    """The hold operations over one Redis, each one script."""

    def __init__(self, scripts: Scripts, keys: Keys, outbox: Outbox, *, keep_session_s: float) -> None:
        self._run = scripts
        self._keys = keys
        self._outbox = outbox
        self._keep_ms = int(keep_session_s * 1000)

    def place(
        self, session_id: str, turn_id: str, hold: HoldSpec
    ) -> Literal["HELD", "ALREADY", "ENDED", "GONE"]:
        """`HELD`, `ALREADY`, `ENDED` or `GONE`. From then on no call that changes something starts."""
        return _place(self._run, session_id, turn_id, hold, "hold")

    def place_all(self, brakes: Sequence[Brake]) -> list[str | Exception]:
        """`place` for holds, and for flags that turns have taken, sent together; instead of a word what was refused."""
        return list(self._run.together([partial(_put_back, brake=brake) for brake in brakes]))

    def release(self, session_id: str, turn_id: str, hold_id: str) -> Literal["RELEASED", "ABSENT", "GONE"]:
        """`RELEASED`, `ABSENT` or `GONE`."""
        reply = self._run.hold_release(session_id, turn_id, hold=hold_id)
        self._outbox.flush(session_id)
        return reply

    def of(self, session_id: str, turn_id: str) -> tuple[StandingHold, ...]:
        """The holds that stand, by their id. Those whose time is up stand with `ends_in_ms` at 0 or below."""
        clock, text = self._run.client.many(
            [("TIME",), ("HGET", self._keys.turn(session_id, turn_id), "holds")]
        )
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
        """Whether nothing keeps calls that change something from starting."""
        return not any(
            hold.ends_in_ms > 0 or hold.on_timeout != "release" for hold in self.of(session_id, turn_id)
        )

    def add_flag(self, session_id: str, flag: HoldSpec) -> Literal["ADDED", "ALREADY", "FULL"]:
        """`ADDED`, `ALREADY`, or `FULL`: too many flags no turn has taken."""
        return self._run.flag_add(
            session_id,
            flag=flag.id,
            timeout_ms=hold_ms(flag),
            policy=flag.on_timeout,
            reason=flag.reason,
            most=MOST_FLAGS,
            keep_ms=self._keep_ms,
        )

    def release_flag(self, session_id: str, flag_id: str) -> tuple[Literal["READY", "TAKEN", "GONE"], str]:
        """(`READY`, ""), (`TAKEN`, the turn that holds for it) or (`GONE`, "")."""
        reply = self._run.flag_release(session_id, flag=flag_id)
        return ("TAKEN", reply.turn) if isinstance(reply, FlagReleaseTaken) else (reply, "")

    def unread_flags(self, session_id: str) -> tuple[str, ...]:
        """The flags no turn has taken yet, oldest first."""
        return tuple(
            cast(list[str], self._run.client.lrange(self._keys.of_session(session_id, "readiness"), 0, -1))
        )


def _place(
    run: Scripts, session_id: str, turn_id: str, hold: HoldSpec, kind: Literal["hold", "readiness"]
) -> Literal["HELD", "ALREADY", "ENDED", "GONE"]:
    reply = run.hold_place(
        session_id,
        turn_id,
        hold=hold.id,
        timeout_ms=hold_ms(hold),
        policy=hold.on_timeout,
        reason=hold.reason,
        hold_kind=kind,
    )
    return "ENDED" if isinstance(reply, HoldPlaceEnded) else reply


def _put_back(run: Scripts, brake: Brake) -> str:
    kind = "readiness" if brake.kind == "flag" else "hold"
    return _place(run, brake.session_id, brake.turn_id or "", brake.hold, kind)
