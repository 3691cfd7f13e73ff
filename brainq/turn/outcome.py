"""What one step asks, of whom, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass

from brainq.contracts.hold import HoldSpec
from brainq.contracts.limits import Limits
from brainq.contracts.message import Message
from brainq.contracts.tool import ToolSpec
from brainq.contracts.usage import Spend, TokenUsage
from brainq.providers.base import Provider
from brainq.turn.decide import End


@dataclass(frozen=True, slots=True)
class Calls:
    """The reply asked for calls and is committed."""


@dataclass(frozen=True, slots=True)
class RungAgain:
    """Something came before the step: the opening wave, or a compaction. The turn is rung again when that is
    done; `did` says what it was."""

    did: str


@dataclass(frozen=True, slots=True)
class Answer:
    """The loop is over: with the model's answer, or without one (`message` is None)."""

    end: End
    message: Message | None = None
    spend: Spend | None = None
    tail: str = ""


StepOutcome = Calls | RungAgain | Answer | None


@dataclass(frozen=True, slots=True)
class StepRequest:
    """What one step asks, of whom.

    limits        the turn's
    estimate      of its input
    worst         what it is thought to take at most
    turn_number   which turn of its session this is, counted from 1
    drained       how many inputs of the mailbox it reads; `inputs` are their messages
    readiness     the newest word of theirs about it: `ready`, a hold, or "" for none
    full          how much of the context it fills, in per cent, where that is worth a warning; else 0
    """

    provider: Provider
    model: str
    messages: tuple[Message, ...]
    specs: tuple[ToolSpec, ...]
    limits: Limits
    estimate: int
    worst: TokenUsage
    turn_number: int
    drained: int = 0
    inputs: tuple[Message, ...] = ()
    readiness: HoldSpec | str = ""
    full: int = 0
