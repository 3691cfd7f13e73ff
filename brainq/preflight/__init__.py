"""What has to be there before a worker starts, looked at within seconds and said in a sentence each.

The command line looks before it starts workers, `brainq doctor` at any time, and a worker when it starts.
"""

from __future__ import annotations

from brainq.preflight.check import Check, fail, ok, warn
from brainq.preflight.model import check_model
from brainq.preflight.redis import check_broker, check_redis
from brainq.preflight.room import check_room
from brainq.preflight.sql import check_sql
from brainq.preflight.start import require_start

__all__ = [
    "Check",
    "check_broker",
    "check_model",
    "check_redis",
    "check_room",
    "check_sql",
    "fail",
    "ok",
    "require_start",
    "warn",
]
