"""The store: the repositories of one database."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Self

from sqlalchemy import Engine, func, select
from sqlalchemy.exc import OperationalError, SQLAlchemyError

from brainq.adapters.sql.database import Database
from brainq.adapters.sql.engine import ANSWER_S, POOL_SIZE, make_engine
from brainq.adapters.sql.list_places import ListPlaces
from brainq.adapters.sql.migrations.upgrade import require_current, upgrade
from brainq.adapters.sql.refusals import driver_message, sql_refusal, try_write
from brainq.adapters.sql.repositories.acts import Acts
from brainq.adapters.sql.repositories.approvals import Approvals
from brainq.adapters.sql.repositories.blobs import Blobs
from brainq.adapters.sql.repositories.brakes import Brakes
from brainq.adapters.sql.repositories.budgets import Budgets
from brainq.adapters.sql.repositories.calls import Calls
from brainq.adapters.sql.repositories.deliveries import Deliveries
from brainq.adapters.sql.repositories.inputs import Inputs
from brainq.adapters.sql.repositories.judgements import Judgements
from brainq.adapters.sql.repositories.knowledge import Memories, Observations
from brainq.adapters.sql.repositories.schedules import Schedules
from brainq.adapters.sql.repositories.session_log import Messages, Transcripts
from brainq.adapters.sql.repositories.spending import Spending
from brainq.adapters.sql.repositories.step_jobs import StepJobs
from brainq.adapters.sql.repositories.stops import Stops
from brainq.adapters.sql.repositories.tokens import Tokens
from brainq.adapters.sql.repositories.turn_lists import TurnLists
from brainq.adapters.sql.repositories.turn_records import Decisions, FinalizerSteps, Spends, Traces
from brainq.adapters.sql.repositories.turns import Turns
from brainq.adapters.sql.tables import turns
from brainq.contracts.encryption import MARK, KeyPlace
from brainq.errors import SetupError, Unreachable
from brainq.runtime.settings.extensions import load_extension
from brainq.runtime.text.service_url import without_password

TRY_EVERY_S = 5.0  # a test costs Postgres some milliseconds


class Store:
    """The repositories of a database, one per table. Thread-safe; open it after a fork."""

    def __init__(self, engine: Engine, keys: KeyPlace | None = None) -> None:
        self.engine = engine
        self._tries_at = 0.0
        self.database = database = make_database(engine, keys)
        self.turns = Turns(database)
        self.turn_lists = TurnLists(database)
        self.places = ListPlaces(database)
        self.messages = Messages(database)
        self.calls = Calls(database)
        self.inputs = Inputs(database)
        self.approvals = Approvals(database)
        self.brakes = Brakes(database)
        blobs: type[Blobs] = Blobs if keys is None else load_extension("brainq.encryption", "blobs")
        self.blobs = blobs(database)
        self.budgets = Budgets(database)
        self.decisions = Decisions(database)
        self.steps = FinalizerSteps(database)
        self.step_jobs = StepJobs(database, self.steps)
        self.spends = Spends(database)
        self.spending = Spending(database)
        self.traces = Traces(database)
        self.transcripts = Transcripts(database)
        self.memories = Memories(database)
        self.observations = Observations(database)
        self.judgements = Judgements(database, self.spends)
        self.acts = Acts(database)
        self.stops = Stops(database)
        self.tokens = Tokens(database)
        self.schedules = Schedules(database)
        self.deliveries = Deliveries(database)

    @classmethod
    def open(
        cls,
        url: str,
        migrate: bool = True,
        pool_size: int = POOL_SIZE,
        answer_s: float | None = ANSWER_S,
        keys: KeyPlace | None = None,
    ) -> Self:
        """Connect, and upgrade the schema (`migrate=False` only checks it).

        answer_s   seconds to wait for an answer of Postgres; None for no limit
        keys       the place of the content keys; None if content is not encrypted

        Raises Unreachable if the database does not answer; SetupError if its schema does not match, or if its content
        is encrypted and there are no keys.
        """
        engine = make_engine(url, pool_size=pool_size, answer_s=answer_s)
        try:
            if migrate:
                upgrade(engine)
            else:
                require_current(engine)
            if keys is None:
                require_clear(engine)
            return cls(engine, keys)
        except OperationalError as error:
            engine.dispose()
            raise _unreachable(engine, error) from error
        except BaseException:
            engine.dispose()
            raise

    def ping(self) -> None:
        """Raise Unreachable if the database does not answer."""
        with self._unreachable(), self.engine.connect() as connection:
            connection.exec_driver_sql("SELECT 1")

    def require_writes(self) -> None:
        """Raise Unreachable if the database does not answer or accepts no writes. A write is tested every few seconds,
        and at every call after a refusal."""
        if time.monotonic() < self._tries_at:
            self.ping()
            return
        self._tries_at = 0.0
        with self._unreachable():
            try_write(self.engine)
        self._tries_at = time.monotonic() + TRY_EVERY_S

    @contextmanager
    def _unreachable(self) -> Generator[None]:
        try:
            yield
        except (SQLAlchemyError, sqlite3.Error) as error:
            raise _unreachable(self.engine, error) from error

    def close(self) -> None:
        """Close all pooled connections."""
        self.database.close()
        self.engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def _unreachable(engine: Engine, error: Exception) -> Unreachable:
    where = f"the SQL database at {without_password(engine.url.render_as_string())}"
    refusal = sql_refusal(error)
    if refusal is None:
        return Unreachable(f"{where} does not answer: {driver_message(error)}")
    return Unreachable(f"{where} {refusal.reason} ({driver_message(error)}); {refusal.remedy}")


def make_database(engine: Engine, keys: KeyPlace | None) -> Database:
    """Return the database, with a codec if there are keys. The codec's modules are imported only then."""
    return Database(engine) if keys is None else load_extension("brainq.encryption", "database")(engine, keys)


def require_clear(engine: Engine) -> None:
    """Raise SetupError if the newest turn's request is encrypted, because a process without keys would take the
    encrypted value for the text."""
    newest = (
        select(func.substr(turns.c.request_json, 1, len(MARK)).label("begins"))
        .where(
            turns.c.state != "rejected"
        )  # The text of a rejected turn may be anything, even the mark of an encrypted value.
        .order_by(turns.c.row.desc())
        .limit(1)
    )
    found = Database(engine).first(newest, {})
    if found is not None and found["begins"] == MARK:
        raise SetupError(
            "the content of this database is encrypted, but BRAINQ_CONTENT_KEYS is not set; set it to the operator's "
            "key file"
        )
