"""Reports of bulks in Redis. The running bulk writes its report, and any process may read it or request a stop."""

from __future__ import annotations

from typing import Any, cast

from brainq.adapters.redis.connection import Client
from brainq.adapters.redis.keys import Keys
from brainq.contracts.bulk import BulkReport

REPORT_KEPT_MS = 7 * 86_400_000
SILENT_MS = 60_000
"""A running bulk writes its report each second. If none was written for this long, its process has died."""


class RedisBulks:
    """The reports of bulks. Each bulk has a hash with its report and a flag that requests its stop."""

    def __init__(self, client: Client, keys: Keys) -> None:
        self._client = client
        self._keys = keys

    def save(self, report: BulkReport) -> bool:
        """Store the report for a week. Returns whether a stop was requested."""
        key = self._keys.bulk(report.id)
        replies = self._client.many(
            [
                ("HSET", key, "report", report.model_dump_json()),
                ("PEXPIRE", key, REPORT_KEPT_MS),
                ("HGET", key, "stop"),
            ]
        )
        return replies[2] is not None

    def read(self, bulk_id: str) -> BulkReport | None:
        """Return the last report, with the state `lost` if its process is gone. Returns None if there is none."""
        key = self._keys.bulk(bulk_id)
        text, remaining_ms = cast("tuple[str | None, Any]", self._client.many([("HGET", key, "report"), ("PTTL", key)]))
        if text is None:
            return None
        report = BulkReport.from_stored(text)
        if report.state == "running" and REPORT_KEPT_MS - int(remaining_ms) > SILENT_MS:
            return report.model_copy(update={"state": "lost", "error": "its process is gone"})
        return report

    def ask_stop(self, bulk_id: str) -> None:
        """Request that a running bulk stops before its next turn."""
        key = self._keys.bulk(bulk_id)
        self._client.many([("HSET", key, "stop", "1"), ("PEXPIRE", key, REPORT_KEPT_MS, "NX")])
