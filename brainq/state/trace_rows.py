"""The trace of a turn, from its hash."""

from __future__ import annotations

import json
from collections.abc import Mapping

from brainq.contracts.effect import Effect
from brainq.contracts.ids import call_place
from brainq.contracts.message import Message
from brainq.contracts.status import TraceStatus
from brainq.contracts.trace import ToolTraceEntry

PARTS = (
    *(
        "tool",
        "effect",
        "status",
        "wave",
        "attempt",
        "hash",
        "lanes",
        "dispatched_at",
        "started_at",
        "ended_at",
    ),
    *("latency", "waits_at", "owner", "repairs", "retryable", "detail", "park", "msg"),
)
"""What is read of a call: the fields `CALL:part` of the hash."""


def read_trace(fields: Mapping[str, str]) -> tuple[ToolTraceEntry, ...]:
    """Every call of a turn, in the order the model made them."""
    rows: dict[str, dict[str, str]] = {}
    for field, value in fields.items():
        call, part = field.split(":", 1)
        rows.setdefault(call, {})[part] = value
    entries = [_entry(call, row) for call, row in rows.items()]
    return tuple(sorted(entries, key=lambda entry: call_place(entry.call_id)))


def read_results(fields: Mapping[str, str]) -> tuple[Message, ...]:
    """The tool messages of calls that have ended in a step that has not, and of those of step 0."""
    return tuple(
        Message.model_validate_json(value) for field, value in fields.items() if field.endswith(":msg")
    )


def _entry(call: str, row: Mapping[str, str]) -> ToolTraceEntry:
    return ToolTraceEntry(
        call_id=call,
        tool=row["tool"],
        effect=Effect(row["effect"]),
        status=TraceStatus(row["status"]),
        step=call_place(call)[0],
        wave=int(row["wave"]),
        attempt=int(row["attempt"]),
        args_hash=row["hash"],
        lanes=tuple(json.loads(row["lanes"])),
        dispatched_at_ms=int(row.get("dispatched_at", 0)),
        started_at_ms=int(row.get("started_at", 0)),
        ended_at_ms=int(row.get("ended_at", 0)),
        latency_ms=int(row.get("latency", 0)),
        lane_wait_ms=_lane_wait_ms(row),
        owner=row.get("owner", ""),
        repairs=int(row.get("repairs", 0)),
        retryable=row.get("retryable") == "1",
        detail=row.get("detail", ""),
        park=row.get("park", "") if row["status"] == TraceStatus.PARKED else "",
    )


def _lane_wait_ms(row: Mapping[str, str]) -> int:
    since, until = row.get("waits_at"), row.get("dispatched_at")
    return max(0, int(until) - int(since)) if since and until else 0


def outside_of(fields: Mapping[str, str]) -> dict[str, str]:
    """How the non-read calls ended that somebody outside completed: call -> `success`, `failure` or `unknown`."""
    calls = [field.removesuffix(":completed_by") for field in fields if field.endswith(":completed_by")]
    kinds = {
        TraceStatus.COMPLETED: "success",
        TraceStatus.FAILED: "failure",
        TraceStatus.UNKNOWN: "unknown",
    }
    return {
        call: kinds[TraceStatus(fields[f"{call}:status"])]
        for call in calls
        if fields[f"{call}:status"] in kinds and fields[f"{call}:effect"] != Effect.READ_ONLY
    }
