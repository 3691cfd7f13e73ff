"""Reports of bulks in Redis: written while one goes on, read by anybody, and asked to stop."""

from __future__ import annotations

from typing import Any, cast

from brainq.adapters.redis.connection import Client
from brainq.adapters.redis.keys import Keys
from brainq.contracts.bulk import BulkReport

REPORT_KEPT_MS = 7 * 86_400_000
SILENT_MS = 60_000
"""One that runs writes its report each second: after so long without a word its process is gone."""


class RedisBulks:
    """One hash a bulk, with its report and whether somebody wants it to stop."""

    def __init__(self, client: Client, keys: Keys) -> None:
        self._client = client
        self._keys = keys

    def save(self, report: BulkReport) -> bool:
        """Keep it for a week from now. Whether the bulk is to stop."""
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
        report = BulkReport.model_validate_json(text)
        if report.state == "running" and REPORT_KEPT_MS - int(remaining_ms) > SILENT_MS:
            return report.model_copy(update={"state": "lost", "error": "its process is gone"})
        return report

    def ask_stop(self, bulk_id: str) -> None:
        """Request that a running bulk stops before its next turn."""
        key = self._keys.bulk(bulk_id)
        self._client.many([("HSET", key, "stop", "1"), ("PEXPIRE", key, REPORT_KEPT_MS, "NX")])
