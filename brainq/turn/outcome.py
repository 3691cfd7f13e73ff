"""What one step asks, of whom, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass

from brainq.contracts.claim import StepStart
from brainq.contracts.message import Message
from brainq.contracts.tool import ToolSpec
from brainq.contracts.usage import Spend
from brainq.turn.begin import Setting
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
class ReplyCost:
    """What a reply used, and requests for it that broke off before."""

    spend: Spend
    lost: tuple[Spend, ...] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    """The loop is over: with the model's answer, or without one (`message` is None).

    spend   what the answer used
    lost    requests that broke off; None: nobody knows what became of one that is under way
    """

    end: End
    message: Message | None = None
    spend: Spend | None = None
    tail: str = ""
    lost: tuple[Spend, ...] | None = None


StepOutcome = Calls | RungAgain | Answer | None


@dataclass(frozen=True, slots=True)
class StepRequest:
    """What one step asks, of whom, and what it is begun with."""

    setting: Setting
    messages: tuple[Message, ...]
    specs: tuple[ToolSpec, ...]
    begin: StepStart
