"""The configuration of a brain's parts, its prompt templates, and its description for those who submit turns."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Literal, Protocol, cast

from pydantic import Field, field_validator

from brainq.contracts.base import Wire
from brainq.contracts.ids import check_id
from brainq.contracts.memory import AutonomousResearchLearner, MemoryExtractor, MemoryRetriever
from brainq.contracts.status import Effect
from brainq.contracts.tool import ToolSpec
from brainq.errors import InvalidInput

MAX_APPROVAL_S = 31_536_000.0  # a year
MAX_CHILD_DEPTH = 100
MAX_CHILD_TURNS = 10_000
AfterUntrusted = Literal["ask", "ask_in_session"] | None
"""Whether a call that changes something needs an approval once the turn (`ask`) or the session (`ask_in_session`) has
read a result of an untrusted tool. None means that it needs none."""
ThinkLevelName = Literal["off", "low", "medium", "high"]
"""A ThinkLevel as a plain word."""


@dataclass(frozen=True, slots=True)
class Memory:
    """The memory of a brain across turns. `Memory()` uses the built-in parts, on brainq's own SQL tables.

    retriever: finds known facts at the start of a turn: `sql` (full-text search), or your own.
    extractor: chooses what is worth remembering from an ended turn: `model` (with rules if the model fails) or `rules`.
    learner: records topics, sources and open questions of an ended turn: `rules`.
    scope: maps a session's id to the owner of its memories, such as a user's id. By default each session has its own
        memories.
    """

    retriever: MemoryRetriever | Literal["sql"] | None = "sql"
    extractor: MemoryExtractor | Literal["model", "rules"] | None = "model"
    learner: AutonomousResearchLearner | Literal["rules"] | None = "rules"
    scope: Callable[[str], str] | None = None

    def scope_of(self, session_id: str) -> str:
        return session_id if self.scope is None else self.scope(session_id)


class ToolRanker(Protocol):
    """A scorer of tools against a query.

    It returns one number for each tool, in order. A higher score is a better match.
    """

    def rank(self, query: str, specs: Sequence[ToolSpec]) -> Sequence[float]: ...


@dataclass(frozen=True, slots=True)
class Selection:
    """The choice of tools that a model sees if the brain has more than `max_tools_per_turn`.

    pinned: the names of tools that are always shown.
    ranking: `bm25` ranks by words, offline. `embedding` ranks by meaning, and needs the extra `brainq[embeddings]`. It
        may also be your own ToolRanker.
    """

    max_tools_per_turn: int = 64
    pinned: tuple[str, ...] = ()
    ranking: ToolRanker | Literal["bm25", "embedding"] = "bm25"


@dataclass(frozen=True, slots=True)
class Context:
    """The settings for the contents of a model call beside the conversation.

    pack_tool: the READ_ONLY tool that is called with the user's message when a turn begins, if the brain has one of
        this name. Its result is shown to the model as data.
    opening_s: how long a turn waits for memory and pack together, in seconds. It then continues without them.
    auto_compact: whether a summary replaces older messages when the context is nearly full.
    """

    pack_tool: str | None = "get_context_pack"
    opening_s: float = 10.0
    auto_compact: bool = True


@dataclass(frozen=True, slots=True)
class Approvals:
    """The calls of a brain that a person must approve before they start, in addition to what its tools require.

    effects: every call with one of these effects needs an approval, except calls of tools with `approval=False`.
    timeout_s: how long a call waits for a person, in seconds, before it is denied. It also applies to approvals that a
        tool requires. The turn's time limit is paused meanwhile.

    Raises InvalidInput.
    """

    effects: tuple[Effect, ...] = ()
    timeout_s: float = 3_600.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "effects", _checked_effects(self.effects))
        object.__setattr__(self, "timeout_s", _checked_wait(self.timeout_s))


@dataclass(frozen=True, slots=True)
class Children:
    """The limits for turns that a turn starts in other sessions.

    max_depth: how deep children may nest. 1 allows children, but none of their own. 0 allows none.
    max_turns: how many turns one turn may start. 0 allows none.

    Raises InvalidInput.
    """

    max_depth: int = 3
    max_turns: int = 8

    def __post_init__(self) -> None:
        _check_number("max_depth", self.max_depth, MAX_CHILD_DEPTH)
        _check_number("max_turns", self.max_turns, MAX_CHILD_TURNS)


def _checked_effects(given: object) -> tuple[Effect, ...]:
    # An Effect is itself a str, and would be split into letters.
    if isinstance(given, str) or not isinstance(given, tuple | list):
        raise InvalidInput("effects", f"{given!r} must be a tuple of Effects, such as (Effect.DESTRUCTIVE,)")
    for effect in cast("tuple[object, ...]", given):
        if not isinstance(effect, Effect):
            known = ", ".join(f"Effect.{member.name}" for member in Effect)
            raise InvalidInput("effects", f"{effect!r} is not an Effect; use some of {known}")
    return tuple(dict.fromkeys(cast("tuple[Effect, ...]", given)))


def _checked_wait(given: object) -> float:
    if isinstance(given, bool) or not isinstance(given, int | float):
        raise InvalidInput("timeout_s", f"{given!r} is not a number of seconds; use one such as 3600.0")
    if not (math.isfinite(given) and 0 < given <= MAX_APPROVAL_S):
        raise InvalidInput("timeout_s", f"{given!r} must be above 0 and at most {MAX_APPROVAL_S:.0f} seconds (a year)")
    return float(given)


def _check_number(field: str, given: object, most: int) -> None:
    if isinstance(given, bool) or not isinstance(given, int) or not 0 <= given <= most:
        raise InvalidInput(field, f"{given!r} must be a whole number from 0 to {most}")


class PromptTemplate(Wire):
    """A system prompt that turns select by `prompt_id`.

    text: the system prompt. `{session_id}`, `{turn_number}` and `{prompt_version}` are filled in, and `{key}` from the
        turn's metadata.
    version, tags: recorded with each turn that selects it. The turn's own version takes precedence, and its own tags
        come first.
    judges: the names of judges: `faithfulness`, `relevance`, or one of the brain's own.
    """

    id: str = Field(min_length=1, max_length=200)
    text: str
    version: str = Field(default="1", max_length=200)
    tags: tuple[Annotated[str, Field(max_length=200)], ...] = Field(default=(), max_length=100)
    judges: tuple[str, ...] = ()

    @field_validator("judges")
    @classmethod
    def _judges(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(check_id("judges", name) for name in value)


class ThinkLevel(StrEnum):
    """The level that sets how often a brain reflects.

    Every level above OFF reflects after a failed call, and `PERIODS` in engine/turn/reflection.py has the number of
    steps between other reflections.
    """

    OFF = "off"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


class ReflectionResult(Wire):
    """The result of a reflection. There is always one, even if no reflection was possible.

    text: what the model reads before its next step. Empty in a stub.
    stub: why there is no text: `budget`, `deadline` or `model`. Empty if a model reflected.
    """

    step: int
    text: str = ""
    stub: str = ""


class ToolDescription(Wire):
    """A tool that the brain's model may call."""

    name: str
    effect: Effect
    description: str


class BrainDescription(Wire):
    """A brain of the deployment.

    model: `provider:model`, or the name of the brain's own Provider.
    is_default: whether it runs the turns that name no brain.
    tools: in the order they were added.
    max_live_turns: how many of its turns may be live at once, or None for no cap.
    """

    name: str
    model: str
    is_default: bool
    tools: tuple[ToolDescription, ...]
    max_live_turns: int | None = None
