"""Drawn opening waves, reflections and compactions, over the real scripts."""

from __future__ import annotations

import json
from random import Random

from brainq.adapters.redis.turns import RedisTurns
from brainq.contracts.claim import PlannedCall, TurnClaim
from brainq.contracts.ids import call_id
from brainq.contracts.message import Message
from brainq.contracts.model import Spend
from brainq.contracts.status import Effect
from brainq.contracts.view import TurnView
from brainq.engine.turn.owned_turn import LOST, Outcome, OwnedTurn, did_or_lost

OPENING_S = 4.0


class RandomAuxiliary:
    """A stand-in for `engine.turn.before_step.AuxiliaryWork`, with the methods that the coordinator calls."""

    def __init__(self, turns: RedisTurns) -> None:
        self._turns = turns

    def reflect(self, turn: OwnedTurn) -> Outcome | None:
        claim, view = turn.claim, turn.view
        word = self._turns.begin_auxiliary(claim, "reflection", str(view.step), 3, None)
        if word != "GO":
            return LOST if word == "LOST" else None
        note = Message(role="user", content="look again", turn=claim.turn_id, step=view.step)
        spend = Spend(kind="reflection", step=view.step, input_tokens=3)
        return did_or_lost(self._turns.commit_note(claim, "reflection", note, spend, {}), "reflected")

    def compact_now(self, turn: OwnedTurn) -> Outcome | None:
        claim, view = turn.claim, turn.view
        return outcome_of_compaction(_compact(self._turns, claim, view, view.history.length))


def outcome_of_compaction(word: str) -> Outcome | None:
    return did_or_lost(word == "COMPACTED", "compacted") if word in ("COMPACTED", "LOST") else None


def open_wave(rng: Random, turns: RedisTurns, claim: TurnClaim) -> Outcome:
    arguments = {"arguments": {"lanes": (), "write": False, "again": False, "hash": "h"}, "hash": "h", "lanes": ()}
    calls = [
        PlannedCall(
            id=call_id(0, place),
            tool="tool",
            effect=Effect.READ_ONLY,
            wave=1,
            arguments_json=json.dumps(arguments),
            args_hash="",
            fingerprint="",
            cap_ms=1000,
        )
        for place in range(rng.randint(1, 2))
    ]
    return did_or_lost(turns.open_wave(claim, calls, OPENING_S) != "LOST", "opened")


def compact(turns: RedisTurns, claim: TurnClaim, view: TurnView) -> str:
    """Replace the messages before this turn by one message."""
    before = view.history.begins.get(claim.turn_id, 0)
    return _compact(turns, claim, view, before)


def _compact(turns: RedisTurns, claim: TurnClaim, view: TurnView, drop: int) -> str:
    if drop == 0 or turns.begin_auxiliary(claim, "compaction", str(drop), 2, None) != "GO":
        return ""
    # The rules look for every input that was read: the summary says which ones it stands for.
    inputs = [name for message in view.history.messages[:drop] for name in inputs_in(message)]
    summary = Message(role="user", content="so far", extra={"note": "summary", "inputs": json.dumps(inputs)})
    return turns.compact(
        claim,
        expect=view.history.length,
        drop=drop,
        front=[summary],
        spend=Spend(kind="compaction", step=view.step, input_tokens=2),
        data={},
        mark=str(drop),
        forget=(),
    )


def inputs_in(message: Message) -> list[str]:
    """Return the inputs of a message, or of the messages that it summarises, as `ID@TURN@STEP`."""
    extra = message.extra or {}
    if "inputs" in extra:
        return json.loads(str(extra["inputs"]))
    return [f"{extra['input']}@{message.turn}@{message.step}"] if "input" in extra else []
