"""The rules for the effects of people's verbs: holds, approvals, outside results, cancels."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

from tests.support.model.known import Known
from tests.support.model.rules import require

_ASKS = {
    "": {"pending", "void"},  # planned and refused as a repeat by one script
    "pending": {"approved", "denied", "expired", "void"},
    "approved": set[str](),
    "denied": set[str](),
    "expired": set[str](),
    "void": set[str](),
}
_LIFTS_HOLDS = {"hold_release", "step_begin"}
_SETTLED = {"completed", "failed", "denied", "timed_out", "timed_out_late", "cancelled", "unknown"}


class PeopleRules:
    """The rules for people's verbs.

    They check each script's reply before the state is compared, and each changed turn.
    """

    def __init__(self, turns: Mapping[str, Known]) -> None:
        self._turns = turns
        self._decisions: Counter[str] = Counter()
        self._completions: Counter[str] = Counter()
        self._approved: dict[str, str] = {}

    def check(self, name: str, given: Mapping[str, Any], reply: list[str], now_ms: int) -> None:
        """Raise BrokenRule if the reply is wrong. The turns are still as they were before the script ran."""
        if claimed := _claimed(name, given, reply):
            known, (call, effect) = self._turns[given["turn"]], claimed
            require(not known.cancel, "a call of a cancelled turn was claimed", _holder(known, call))
            if effect != "read_only":
                standing = [hold for hold in known.standing().values() if _stands(hold, now_ms)]
                require(not standing, "a call was claimed while a hold stands", call, *standing)
        if name == "approval_decide" and reply[0] in ("APPROVED", "DENIED"):
            holder = _holder(self._turns[given["turn"]], given["call"])
            self._decisions[holder] += 1
            require(self._decisions[holder] == 1, "an approval was decided twice", holder, reply[0])
            if reply[0] == "APPROVED":
                edit = given["edit"]
                self._approved[holder] = json.loads(edit)["hash"] if edit else given["expect"]
        if name == "outside_complete" and reply[0] in ("SETTLED", "EARLY", "LATE"):
            token = given["token"]
            self._completions[token] += 1
            require(self._completions[token] == 1, "a call was completed twice", token, reply[0])

    def moved(self, name: str, where: str, known: Known, new: Known) -> None:
        """Raise BrokenRule if holds or approvals changed in a way that is not allowed."""
        if known.holds != new.holds and name not in _LIFTS_HOLDS:
            gone = known.standing().keys() - new.standing().keys()
            require(not gone, f"{where}: a hold is gone", *gone)
        old = known.asks + [""] * (len(new.asks) - len(known.asks))
        for was, ask, status in zip(old, new.asks, new.statuses, strict=True):
            if was != ask:
                require(ask in _ASKS[was], f"{where}: no such move of an approval", was, ask)
            asked = ask == "pending" and status in _SETTLED
            require(not asked, f"{where}: an approval of a settled call is pending", status)

    def may_start(self, known: Known, call: str, arguments: Mapping[str, Any]) -> None:
        """Raise BrokenRule unless the function of this call may start now."""
        holder = _holder(known, call)
        require(
            known.state == "active" and not known.cancel,
            "a function started in a turn that does not want it",
            holder,
            known.state,
            known.cancel,
        )
        status, ask = known.status(call), known.ask(call)
        require(status == "running", "a function started without its claim", holder, status)
        require(ask in ("", "approved"), "a call started without its approval", holder, ask)
        if ask:
            approved, label = self._approved.get(holder), arguments["hash"]
            require(approved == label, "a call started with other arguments than approved", approved, label)


def _claimed(name: str, given: Mapping[str, Any], reply: list[str]) -> tuple[str, str] | None:
    """Return the call that the script claimed, and its effect."""
    if name == "call_claim" and reply[0] == "GO":
        return given["call"], reply[4]
    return (reply[1], reply[6]) if reply[0] == "CALL" else None


def _holder(known: Known, call: str) -> str:
    return f"{known.session_id} {known.turn_id} {call}"


def _stands(hold: Mapping[str, Any], now_ms: int) -> bool:
    return now_ms < hold["ends"] or hold["policy"] != "release"
