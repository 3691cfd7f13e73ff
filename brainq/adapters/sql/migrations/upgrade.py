"""How a database is brought to the schema's newest revision, and which revisions this brainq works with."""

from __future__ import annotations

import re
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection, Engine, inspect, text
from sqlalchemy.exc import OperationalError, ProgrammingError

from brainq.adapters.sql.engine import transaction, without_time_limits
from brainq.errors import SetupError

if TYPE_CHECKING:
    from alembic.config import Config

BASELINE = "0013"  # what a new database begins with; nothing leads here from an older revision
HEAD = "0013"
VERSION_TABLE = "brainq_schema"  # of our own: the database may hold an application's alembic_version too
NEW_DATABASE = "set BRAINQ_SQL_URL to a new database, and start with an empty Redis"
_ADVISORY_LOCK = 0x62726169_6E710001  # "brainq" and a 1
_SELECT = text(f"SELECT version_num FROM {VERSION_TABLE}")
_alembic = threading.Lock()  # alembic keeps its context in module globals


def revision(engine: Engine) -> str | None:
    """The database's revision, by one SELECT; None for an empty database."""
    with engine.connect() as connection:
        try:
            return connection.execute(_SELECT).scalar()
        except (OperationalError, ProgrammingError):
            connection.rollback()  # on Postgres a failed statement ends its transaction
            if not inspect(connection).has_table(VERSION_TABLE):
                return None
            # Another process has made the table since; any other trouble comes again, and out of here.
            return connection.execute(_SELECT).scalar()


def why_not_upgradable(found: str | None) -> tuple[str, str] | None:
    """Why no migration leads from this revision to HEAD, as a predicate of the schema, and the remedy; None if one
    does."""
    if found is not None and found > HEAD:
        return f"is at revision {found}, newer than this brainq's {HEAD}", "install the newer brainq"
    if found is not None and found < BASELINE:
        return f"is at revision {found}, older than {BASELINE}, the oldest that can be upgraded", NEW_DATABASE
    return None


def require_current(engine: Engine) -> None:
    """Raise SetupError unless the schema is the one this brainq was written for."""
    found = revision(engine)
    _require_upgradable(found)
    if found != HEAD:
        raise SetupError(
            f"the SQL schema is at revision {found or 'none'}, brainq needs {HEAD}; run `brainq db upgrade` "
            "or open the store with migrate=True"
        )


def upgrade(engine: Engine) -> bool:
    """Bring the schema to HEAD; True if anything was done. One SELECT when there is nothing to do.

    Safe from several processes at once: one migrates, the others wait for its lock and find the work done.
    Raises SetupError when the schema is newer than this brainq, or older than the baseline.
    """
    if revision(engine) == HEAD:
        return False
    with _alembic, transaction(engine) as connection:
        if engine.dialect.name != "postgresql":
            return _upgrade_inside(connection)  # SQLite: the transaction itself is the lock
        with without_time_limits(connection):
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_ADVISORY_LOCK})")
            return _upgrade_inside(connection)


def alembic_config(connection: Connection) -> Config:
    """A configuration without an ini file: these migrations, on this connection and in its transaction."""
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    return config


def is_in_metadata(_object: object, name: str | None, kind: str, *_: object) -> bool:
    """Whether alembic should compare this with the tables: full-text search is made by migrations alone."""
    if kind == "table":
        return not re.search(r"_fts(_(data|idx|docsize|config))?$", name or "")
    return not (kind == "column" and name == "search") and not re.fullmatch(r"ix_\w+_search", name or "")


def _require_upgradable(found: str | None) -> None:
    problem = why_not_upgradable(found)
    if problem is not None:
        raise SetupError(f"the SQL schema {'; '.join(problem)}")


def _upgrade_inside(connection: Connection) -> bool:
    from alembic import command

    found = _revision_inside(connection)
    if found == HEAD:
        return False
    _require_upgradable(found)
    command.upgrade(alembic_config(connection), "head")
    return True


def _revision_inside(connection: Connection) -> str | None:
    """Like `revision`, but looks for the table first: a failing SELECT would end a Postgres transaction."""
    if not inspect(connection).has_table(VERSION_TABLE):
        return None
    return connection.execute(_SELECT).scalar()
