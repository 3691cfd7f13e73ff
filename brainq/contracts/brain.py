"""What a brain is made of: its optional parts, its prompt templates, how much it reflects, and its description
for those who submit turns.
"""

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
"""What changes do once the turn, or the session, has read a result of an untrusted tool; None: they run."""
ThinkLevelName = Literal["off", "low", "medium", "high"]
"""A ThinkLevel as a plain word."""


@dataclass(frozen=True, slots=True)
class Memory:
    """What a brain remembers over turns. `Memory()` takes the shipped parts, over brainq's own SQL tables.

    retriever   finds what is known at the start of a turn: `sql` (full-text search), or one of your own
    extractor   picks what is worth remembering of an ended turn: `model` (rules where the model fails), `rules`
    learner     notes topics, sources and open questions of an ended turn: `rules`
    scope       from a session's id to whose memories it reads and writes, such as a user's id; by default
                each session has memories of its own
    """

    retriever: MemoryRetriever | Literal["sql"] | None = "sql"
    extractor: MemoryExtractor | Literal["model", "rules"] | None = "model"
    learner: AutonomousResearchLearner | Literal["rules"] | None = "rules"
    scope: Callable[[str], str] | None = None

    def scope_of(self, session_id: str) -> str:
        return session_id if self.scope is None else self.scope(session_id)


class ToolRanker(Protocol):
    """Scores tools against a query: one number a tool, in their order; higher is nearer."""

    def rank(self, query: str, specs: Sequence[ToolSpec]) -> Sequence[float]: ...


@dataclass(frozen=True, slots=True)
class Selection:
    """Which tools a model sees when the brain has more than `max_tools_per_turn`.

    pinned    names of tools that are always shown
    ranking   `bm25`: by words, offline; `embedding`: by meaning, needs the extra `brainq[embeddings]`; or a
              ToolRanker of your own
    """

    max_tools_per_turn: int = 64
    pinned: tuple[str, ...] = ()
    ranking: ToolRanker | Literal["bm25", "embedding"] = "bm25"


@dataclass(frozen=True, slots=True)
class Context:
    """What a model call is made of, beside the conversation.

    pack_tool       the READ_ONLY tool that is called with the user's message when a turn begins, where the
                    brain has a tool of that name; its result is shown to the model as data
    opening_s       how long a turn waits for memory and pack together, seconds; it then goes on without
    auto_compact    True: older messages are replaced by a summary when the context is nearly full
    """

    pack_tool: str | None = "get_context_pack"
    opening_s: float = 10.0
    auto_compact: bool = True


@dataclass(frozen=True, slots=True)
class Approvals:
    """Which calls of a brain a person must let through before they start, beside what its tools say themselves.

    effects     every call with one of these effects needs an approval; a tool with `approval=False` is exempt
    timeout_s   how long a call waits for a person, seconds; then it is denied. It counts for calls that need
                an approval because of their tool, too, and the turn's time limit does not run meanwhile

    Raises InvalidInput.
    """

    effects: tuple[Effect, ...] = ()
    timeout_s: float = 3_600.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "effects", _checked_effects(self.effects))
        object.__setattr__(self, "timeout_s", _checked_wait(self.timeout_s))


@dataclass(frozen=True, slots=True)
class Children:
    """How far a turn may start turns in other sessions.

    max_depth   how deep: 1 lets a turn start children, but no child one of its own; 0: no children
    max_turns   how many one turn may start; 0: none

    Raises InvalidInput.
    """

    max_depth: int = 3
    max_turns: int = 8

    def __post_init__(self) -> None:
        _check_number("max_depth", self.max_depth, MAX_CHILD_DEPTH)
        _check_number("max_turns", self.max_turns, MAX_CHILD_TURNS)


def _checked_effects(given: object) -> tuple[Effect, ...]:
    # An Effect is a text itself, and would be taken apart into letters.
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
    """A system prompt that turns name by `prompt_id`.

    text      the system prompt; `{session_id}`, `{turn_number}` and `{prompt_version}` are filled in, and
              `{key}` from the turn's metadata
    version, tags
              recorded with each turn that names it: the turn's own version comes before, its own tags stand first
    judges    names of judges: `faithfulness`, `relevance`, or one of the brain's own
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
    """How much a brain reflects. Every level above OFF reflects after a failed call; see `PERIODS` for the rest."""

    OFF = "off"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


class ReflectionResult(Wire):
    """What a reflection brought; always one, also when none could be made.

    text      what the model reads before its next step; empty in a stub
    stub      why there is no text: `budget`, `deadline`, `model`; empty when a model reflected
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

    model        `provider:model`, or the name of the brain's own Provider
    is_default   it has the turns that name no brain
    tools        in the order they were added
    max_live_turns   how many of its turns may be live at once; None: no cap
    """

    name: str
    model: str
    is_default: bool
    tools: tuple[ToolDescription, ...]
    max_live_turns: int | None = None
