"""Decide what a driver's error means for its statement and for its connection. Pure."""

from __future__ import annotations

import sqlite3
from typing import Literal

Fate = Literal["failed", "in the way", "unprepared", "read-only", "cut", "silent"]
"""What became of a statement that raised an error.

failed       it had no effect, and would fail again
in the way   it had no effect because of a concurrent statement of another client, and may succeed if it is repeated
unprepared   it had no effect, because a pooler has sent it to a server that does not have the prepared statement
read-only    it had no effect, because the server accepts no writes; another server may be the primary by now
cut          the connection is gone, and the statement may or may not have had its effect
silent       like `cut`, but the server did not answer in time; a repetition may take as long
"""
LEAVING: frozenset[Fate] = frozenset({"unprepared", "read-only", "cut", "silent"})
"""The fates after which the connection and all others of its age leave the pool."""
_IN_THE_WAY = frozenset({"40001", "40P01", "55P03"})  # serialization failure, deadlock, lock not available
_SQLITE_IN_THE_WAY = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
_UNPREPARED = frozenset({"26000", "42P05"})  # missing here, or another client has one with the same name
_READ_ONLY = "25006"
# Connection exceptions; shutdown, crash, "cannot connect now" and idle sessions; idle in a transaction. The server ends
# the connection after these, which psycopg may notice only at the next statement.
_CUT = ("08", "57P", "25P03")


def fate_of(error: BaseException, *, is_closed: bool = False) -> Fate:
    """Return the fate of the statement that raised `error`, a driver's error.

    is_closed   whether the connection is closed by now
    """
    if isinstance(error, sqlite3.Error):
        is_in_the_way = getattr(error, "sqlite_errorcode", 0) & 0xFF in _SQLITE_IN_THE_WAY
        return "in the way" if is_in_the_way else "failed"
    state = getattr(error, "sqlstate", None) or ""
    if state == _READ_ONLY:
        return "read-only"
    if getattr(error, "is_silence", False):
        return "silent"
    if is_closed or state.startswith(_CUT):
        return "cut"
    if state in _IN_THE_WAY:
        return "in the way"
    return "unprepared" if state in _UNPREPARED else "failed"
