"""The cost of model calls, and the number of tool calls, by tenant, brain, model, tool and day."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Literal, get_args

from brainq.contracts.base import Wire
from brainq.errors import InvalidInput

SpendBy = Literal["day", "tenant", "brain", "model", "kind", "tool"]
SPEND_BY: tuple[SpendBy, ...] = get_args(SpendBy)
_OF_MODEL_CALLS = frozenset({"model", "kind"})
SPEND_FIGURES = (
    *("calls", "failed_calls", "input_tokens", "output_tokens", "cache_read_tokens", "cache_creation_tokens"),
    *("cost_usd", "estimated_usd", "unpriced_calls"),
)


class SpendLine(Wire):
    """One group of a spend report.

    The fields by which the report is grouped are set: `day`, `tenant`, `brain`, `model`, `kind`, `tool`.

    day: the UTC day on which the turn was accepted, as 2026-11-27.
    tenant: the prefix of its sessions: `acme:`, or `:` for sessions without a colon.
    brain: "" for a turn that never began.
    kind: the purpose of the model call: step, lost, reflection, compaction, memory, judge.
    calls: model calls, or tool calls if grouped by `tool`.
    failed_calls: tool calls that did not complete.
    cost_usd: US dollars of the calls with a price. Tokens that a service did not count are estimated.
    estimated_usd: the part of `cost_usd` that is estimated.
    unpriced_calls: calls of models whose price is unknown. They add no money.
    """

    day: str | None = None
    tenant: str | None = None
    brain: str | None = None
    model: str | None = None
    kind: str | None = None
    tool: str | None = None
    calls: int = 0
    failed_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_creation_tokens: int = 0
    cost_usd: float = 0.0
    estimated_usd: float = 0.0
    unpriced_calls: int = 0


def check_spend_by(by: Sequence[str]) -> tuple[SpendBy, ...]:
    """Return the grouping of a report, each word once. Raises InvalidInput for unknown words, and for words that cannot
    be combined."""
    words = [by] if isinstance(by, str) else list(by)
    known: tuple[SpendBy, ...] = tuple(word for word in SPEND_BY if word in words)
    for word in words:
        if word not in SPEND_BY:
            raise InvalidInput("by", f"{word!r} is not one of {', '.join(SPEND_BY)}")
    if "tool" in known and _OF_MODEL_CALLS & set(known):
        raise InvalidInput("by", "tool calls have no model; group by tool with day, tenant or brain")
    return known


def spend_csv(by: Sequence[SpendBy], lines: Sequence[SpendLine]) -> str:
    """Return the report as CSV with a header. A name that a spreadsheet would read as a formula gets an apostrophe in
    front."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow([*by, *SPEND_FIGURES])
    for line in lines:
        names = [_plain_cell(getattr(line, name) or "") for name in by]
        writer.writerow([*names, *(getattr(line, name) for name in SPEND_FIGURES)])
    return text.getvalue()


def _plain_cell(text: str) -> str:
    return "'" + text if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text
