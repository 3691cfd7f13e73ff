"""What a submit may say beside its session and message, and what a list of turns is filtered by, as one type each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, TypedDict

from brainq.contracts.file import File
from brainq.contracts.history import Sort
from brainq.contracts.message import Message
from brainq.contracts.model_options import ModelOptions, OptionsFields
from brainq.contracts.tool import ClientTool
from brainq.contracts.turn import Limits, LimitsFields, LimitsOverride, OnBusy, Priority, TurnKind
from brainq.gates.answer_schema import OutputSchema

Cancelled = Literal["cancelled", "requested", "ended"]
"""What a cancel did: the turn had not begun, it was asked to stop, or there was nothing to cancel."""


WaitFor = Literal["ended", "parked", "people", "outside", "client"]
"""What `TurnHandle.wait` waits for: the end; any park; or one that waits for people, for an outside result, or for the
client's own tools."""


class SubmitOptions(TypedDict, total=False):
    """The keyword arguments of `Client.submit`, which explains them."""

    request_key: str | None
    turn_id: str | None
    model: str | None
    provider: str | None
    system_prompt: str | None
    skill_context: str | None
    output_schema: OutputSchema | None
    cwd: str | None
    limits: Limits | LimitsOverride | LimitsFields | None
    options: ModelOptions | OptionsFields | None
    show_citations: bool | None
    prompt_id: str | None
    prompt_version: str | None
    prompt_tags: tuple[str, ...] | list[str]
    metadata: dict[str, Any] | None
    on_busy: OnBusy
    priority: Priority
    kind: TurnKind
    seed: Literal["session", "empty"]
    readiness: bool | None
    attachments: Sequence[File | Mapping[str, Any]]
    greeting: str | None
    history: Sequence[Message | Mapping[str, Any]]
    client_tools: Sequence[ClientTool | Mapping[str, Any]]
    brain: str | None


class TurnFilters(TypedDict, total=False):
    """What `Client.turns` takes beside a page's `limit` and `before`; says there what each is."""

    session: str | None
    state: str | None
    session_prefixes: Sequence[str] | None
    brain: str | None
    ending: str | None
    stop_reason: str | None
    failing: bool
    min_cost_usd: float | None
    since: datetime | None
    until: datetime | None
    text: str
    strategy: str | None
    search: str
    sort: Sort
    metadata: Mapping[str, Any] | None
    prompt_tags: Sequence[str]
