"""Upgrade a database to the schema's newest revision, and check which revisions this brainq works with."""

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

BASELINE = "0013"  # A new database begins with this revision. No migration leads to it from an older one.
HEAD = "0013"
# A name of our own, because the database may also contain an application's alembic_version.
VERSION_TABLE = "brainq_schema"
NEW_DATABASE = "set BRAINQ_SQL_URL to a new database, and start with an empty Redis"
_ADVISORY_LOCK = 0x62726169_6E710001  # "brainq" and a 1
_SELECT = text(f"SELECT version_num FROM {VERSION_TABLE}")
_alembic = threading.Lock()  # alembic keeps its context in module globals


def revision(engine: Engine) -> str | None:
    """Return the database's revision, with one SELECT. Returns None for an empty database."""
    with engine.connect() as connection:
        try:
            return connection.execute(_SELECT).scalar()
        except (OperationalError, ProgrammingError):
            connection.rollback()  # On Postgres a failed statement ends its transaction.
            if not inspect(connection).has_table(VERSION_TABLE):
                return None
            # Another process has created the table since. Any other error occurs again and is then raised.
            return connection.execute(_SELECT).scalar()


def why_not_upgradable(found: str | None) -> tuple[str, str] | None:
    """Return why no migration leads from this revision to HEAD, as a predicate of the schema, and the remedy.

    Returns None if one does.
    """
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
    """Upgrade the schema to HEAD. Returns True if anything was done. It takes one SELECT if there is nothing to do.

    Several processes may call it at once: one migrates, and the others wait for its lock. Raises SetupError if the
    schema is newer than this brainq, or older than the baseline.
    """
    if revision(engine) == HEAD:
        return False
    with _alembic, transaction(engine) as connection:
        if engine.dialect.name != "postgresql":
            return _upgrade_inside(connection)  # On SQLite the transaction itself is the lock.
        with without_time_limits(connection):
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_ADVISORY_LOCK})")
            return _upgrade_inside(connection)


def alembic_config(connection: Connection) -> Config:
    """Return a configuration without an ini file: these migrations, on this connection and in its transaction."""
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    return config


def is_in_metadata(_object: object, name: str | None, kind: str, *_: object) -> bool:
    """Return whether alembic should compare this object with the tables.

    Only migrations create the full-text search.
    """
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
    """Return the revision as `revision` does, but look for the table first, because a failing SELECT would end a
    Postgres transaction."""
    if not inspect(connection).has_table(VERSION_TABLE):
        return None
    return connection.execute(_SELECT).scalar()
