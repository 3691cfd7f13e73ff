"""Whether SQL answers, and its schema is this brainq's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from brainq.cli.checks.check import Check, fail, ok, warn
from brainq.cli.reach import without_password
from brainq.errors import BrainqError
from brainq.settings import Settings


def check_sql(settings: Settings) -> Iterator[Check]:
    """Looks only: neither a database file nor a schema is made."""
    from brainq.store.engine import make_engine
    from brainq.store.migrations import HEAD, revision

    url = settings.sql_url.get_secret_value()
    shown = without_password(url)
    sqlite = url.removeprefix("sqlite:///")
    if sqlite != url and not Path(sqlite).exists():
        yield warn(
            "sql", f"{shown} is not there yet", "the first worker or submit makes it, or `brainq db upgrade`"
        )
        return
    try:
        engine = make_engine(url)
    except BrainqError as error:
        yield fail("sql", str(error), "correct BRAINQ_SQL_URL")
        return
    try:
        found = revision(engine)
    except Exception as error:
        said = str(error).splitlines()[0]
        yield fail("sql", f"{shown} does not answer: {said}", "start it, or correct BRAINQ_SQL_URL")
        return
    finally:
        engine.dispose()
    yield ok("sql", f"{engine.dialect.name} at {shown}")
    if found == HEAD:
        yield ok("schema", f"revision {found}")
    else:
        yield fail("schema", f"revision {found or 'none'}, brainq needs {HEAD}", "run `brainq db upgrade`")
