"""SQL: whether it answers, and whether its schema is this brainq's."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

from brainq.observe.urls import without_password
from brainq.preflight.check import Check, fail, ok, warn
from brainq.preflight.sql import check_sql as check_answer
from brainq.settings import Settings


def check_sql(settings: Settings) -> Generator[Check, None, bool]:
    """Looks only: neither a database file nor a schema is made. True: what is in it can be read."""
    from brainq.store.engine import make_engine
    from brainq.store.migrations import HEAD, revision

    url = settings.sql_url.get_secret_value()
    answer = check_answer(url)
    sqlite = url.removeprefix("sqlite:///")
    if answer.level == "ok" and sqlite != url and not Path(sqlite).exists():
        yield warn(
            "sql",
            f"{without_password(url)} is not there yet",
            "the first worker or submit makes it, or `brainq db upgrade`",
        )
        return False
    yield answer
    if answer.level != "ok":
        return False
    engine = make_engine(url)
    try:
        found = revision(engine)
    finally:
        engine.dispose()
    if found == HEAD:
        yield ok("schema", f"revision {found}")
    else:
        yield fail("schema", f"revision {found or 'none'}, brainq needs {HEAD}", "run `brainq db upgrade`")
    return found == HEAD
