"""Whether SQL answers, and its schema is not newer than this brainq."""

from __future__ import annotations

from pathlib import Path

from brainq.errors import BrainqError
from brainq.observe.urls import without_password
from brainq.preflight.check import Check, fail, ok
from brainq.preflight.room import check_room
from brainq.store.engine import make_engine, require_fts5
from brainq.store.migrations import HEAD, revision


def check_sql(url: str) -> Check:
    """Looks only: neither a database file nor a schema is made. An older schema is fine: workers upgrade it."""
    shown = without_password(url)
    sqlite = Path(url.removeprefix("sqlite:///"))
    try:
        if url.startswith("sqlite:///") and not sqlite.exists():
            require_fts5()
            room = check_room(sqlite.parent)
            made = ok("sql", f"{shown} is not there yet, and will be made")
            return made if room.level == "ok" else fail("sql", room.said, room.remedy)
        engine = make_engine(url)
    except BrainqError as error:
        return fail("sql", str(error), "correct BRAINQ_SQL_URL")
    try:
        found = revision(engine)
    except Exception as error:
        return fail("sql", f"{shown} does not answer ({_why(error)})", "start it, or correct BRAINQ_SQL_URL")
    finally:
        engine.dispose()
    if found is not None and found > HEAD:
        return fail(
            "sql",
            f"the schema at {shown} is at revision {found}, newer than this brainq's {HEAD}",
            "install the newer brainq",
        )
    return ok("sql", f"{engine.dialect.name} at {shown}")


def _why(error: Exception) -> str:
    """The driver's own first line, without SQLAlchemy's frame around it."""
    return str(getattr(error, "orig", None) or error).strip().partition("\n")[0]
