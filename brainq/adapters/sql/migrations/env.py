"""The script that alembic runs, on the connection from `upgrade`, or on `sqlalchemy.url` if alembic's own command is
used.
"""

from __future__ import annotations

from alembic import context
from sqlalchemy import Connection

from brainq.adapters.sql.engine import make_engine, transaction
from brainq.adapters.sql.migrations.upgrade import VERSION_TABLE, is_in_metadata
from brainq.adapters.sql.tables import metadata


def _run(connection: Connection) -> None:
    context.configure(
        connection=connection,
        target_metadata=metadata,
        version_table=VERSION_TABLE,
        include_object=is_in_metadata,
        render_as_batch=connection.dialect.name == "sqlite",
    )
    with context.begin_transaction():
        context.run_migrations()


given: Connection | None = context.config.attributes.get("connection")
if given is not None:
    _run(given)
else:
    engine = make_engine(context.config.get_main_option("sqlalchemy.url") or "")
    with transaction(engine) as own:
        _run(own)
    engine.dispose()
