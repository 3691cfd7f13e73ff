"""A client's connection to Redis and SQL. Every verb goes through it."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, NoReturn, TypeVar

from brainq.adapters.redis.connection import redis_refusal
from brainq.adapters.sql.audit import record_act
from brainq.adapters.sql.refusals import sql_refusal
from brainq.app.wiring import Wiring, services
from brainq.app.wiring.cells import Cells
from brainq.contracts.act import NewAct
from brainq.contracts.answers import Answers
from brainq.errors import BrainqError, CellUnreachable, Unreachable
from brainq.runtime.observe.logs import logger
from brainq.runtime.settings.deployment import Settings

if TYPE_CHECKING:
    from brainq.client.async_client import AsyncClient
    from brainq.client.client import Client

T = TypeVar("T")
FindCell = Callable[[Cells], Wiring]
NOTHING_DONE = (False, None, 0, "ended")
"""The return values of a verb that changed nothing, so no act is recorded."""
NO_ACT = Literal[
    "the turn has a row",
    "the input has a row",
    "the turn records its hold",
    "a worker's own move",
    "a dry run changes nothing",
    "a report of progress",
]
"""The reasons why a verb that writes leaves no row in the audit log."""
log = logger("brainq.client")


@dataclass(frozen=True, slots=True, eq=False)
class Connection:
    """The single path from a verb to Redis and SQL.

    Only this class looks up a session's cell and follows a tenant that moves, translates failures into public errors,
    and records acts in the audit log. `work` may run several times, so draw ids before it.
    """

    cells: Cells

    @property
    def settings(self) -> Settings:
        return self.cells.home.settings

    def read(
        self, work: Callable[[Wiring], T], *, session: str = "", settles: bool = False, find: FindCell | None = None
    ) -> T:
        """Run work that changes nothing: in the cell of `session`, in the cell that `find` returns, or in the home
        cell.

        settles: record the cell of an unknown tenant first, because the work begins something for it.
        """
        cells = self.cells
        try:
            if find is not None:
                return cells.follow(session, lambda: work(find(cells)))
            if session:
                locate = cells.settle if settles else cells.of_session
                return cells.follow(session, lambda: work(locate(session)))
            return work(cells.home)
        except Exception as failure:
            raise_public(failure)

    def do(
        self,
        work: Callable[[Wiring], T],
        act: NewAct | NO_ACT,
        *,
        session: str = "",
        settles: bool = False,
        find: FindCell | None = None,
        request_key: str = "",
        client_message_id: str = "",
    ) -> T:
        """Run work that changes something, as `read` does, then record the act unless nothing was changed.

        act: the row for the audit log, or the reason why there is none.
        request_key, client_message_id: the id under which a repeated submit or input is recognized as the same one.
            Unreachable carries it.
        """
        try:
            result = self.read(work, session=session, settles=settles, find=find)
        except Unreachable as away:
            raise with_retry_id(away, request_key, client_message_id) from away.__cause__
        self._record_done(act, result)
        return result

    def read_all(self, work: Callable[[Cells], T]) -> T:
        """Run work that reads several cells."""
        try:
            return self.cells.follow("", lambda: work(self.cells))
        except Exception as failure:
            raise_public(failure)

    def ask(
        self, question: Callable[[Wiring], T], session: str | None = None, prefixes: Sequence[str] | None = None
    ) -> Answers[T]:
        """Run a read in every cell that may have data of this session, or of sessions with one of these prefixes."""
        return self.read_all(lambda cells: cells.ask(question, session, prefixes))

    def do_in_each(self, work: Callable[[Wiring], T], act: NewAct | NO_ACT) -> Sequence[T]:
        """Run the same work in every cell, and record the act once."""
        return self.do_in_all(lambda cells: cells.do_in_each(work), act)

    def do_in_all(self, work: Callable[[Cells], T], act: NewAct | NO_ACT) -> T:
        """Run work that changes something in several cells, then record the act as `do` does."""
        result = self.read_all(work)
        self._record_done(act, result)
        return result

    def _record_done(self, act: NewAct | NO_ACT, result: object) -> None:
        if isinstance(act, NewAct) and result not in NOTHING_DONE:
            self.record(act)

    def record(self, act: NewAct) -> None:
        """Write an act's row in the cell of its session, or in the home cell. The reason is omitted if the turn's brain
        keeps content out of SQL."""
        try:
            wiring = self.cells.settle(act.session_id) if act.session_id else self.cells.home
            if act.reason and act.turn_id:
                owner = wiring if act.session_id else self.cells.of_turn(act.turn_id)
                if owner.turn_brains.redacts(act.turn_id):
                    act = replace(act, reason="")
            record_act(wiring.store, act)
        except Exception as failure:
            log.error("audit log not written, but the act itself was carried out", act=act.act, failure=failure)


class InSession:
    """A base of objects that belong to one session. The cell is looked up at each use, because the tenant may move."""

    _connection: Connection
    session_id: str

    def _read(self, work: Callable[[Wiring], T]) -> T:
        return self._connection.read(work, session=self.session_id)

    def _do(self, work: Callable[[Wiring], T], act: NewAct | NO_ACT) -> T:
        return self._connection.do(work, act, session=self.session_id)


def connection_of(client: Client | AsyncClient | InSession) -> Connection:
    return client._connection  # pyright: ignore[reportPrivateUsage]


def cells_of(client: Client | AsyncClient | InSession) -> Cells:
    return connection_of(client).cells


def wiring_of(client: Client | AsyncClient | InSession) -> Wiring:
    """Return the cell of a handle's session, or the home cell of a client."""
    cells = cells_of(client)
    return cells.of_session(client.session_id) if isinstance(client, InSession) else cells.home


@contextmanager
def translate_unreachable() -> Generator[None]:
    """Translate failures of the body into public errors, as `Connection.read` does."""
    try:
        yield
    except Exception as failure:
        raise_public(failure)


def raise_public(failure: Exception) -> NoReturn:
    """Raise the failure as a public error."""
    shown = public_error(failure)
    if shown is failure:
        raise failure
    raise shown from failure


def public_error(failure: Exception) -> Exception:
    """Return a failure as a public error: Unreachable if Redis or SQL does not answer, otherwise the failure itself."""
    if isinstance(failure, BrainqError) or not services.is_unavailable(failure):
        return failure
    return Unreachable(_unreachable_message(failure))


def with_retry_id(away: Unreachable, request_key: str, client_message_id: str) -> Unreachable:
    """Return the error with the id under which a repeated submit or input is recognized as the same one."""
    if request_key and not away.request_key:
        return _with_remedy(
            away,
            f"It is unknown whether the turn was accepted. Submit it again with request_key={request_key!r}; it "
            "cannot run twice",
            request_key=request_key,
        )
    if client_message_id and not away.client_message_id:
        return _with_remedy(
            away,
            "It is unknown whether the input was accepted. Send it again with "
            f"client_message_id={client_message_id!r}; it cannot count twice",
            client_message_id=client_message_id,
        )
    return away


def _with_remedy(away: Unreachable, remedy: str, **ids: str) -> Unreachable:
    if isinstance(away, CellUnreachable):
        return CellUnreachable(away.cell, f"{away.why}. {remedy}", **ids)
    return Unreachable(f"{away}. {remedy}", **ids)


def _unreachable_message(failure: Exception) -> str:
    if services.is_redis_unavailable(failure) and (refusal := redis_refusal(failure)) is not None:
        return f"Redis {refusal.reason}; {refusal.remedy}"
    if services.is_sql_unavailable(failure) and (refusal := sql_refusal(failure)) is not None:
        return f"SQL {refusal.reason}; {refusal.remedy}"
    where, remedy = _service_and_remedy(failure)
    return f"{where} does not answer ({_failure_reason(failure)}); {remedy}"


def _service_and_remedy(failure: Exception) -> tuple[str, str]:
    if services.is_redis_unavailable(failure):
        return "Redis", "start Redis or correct BRAINQ_REDIS_URL, then try again"
    if services.is_sql_unavailable(failure):
        return "SQL", "start the database or correct BRAINQ_SQL_URL, then try again"
    return "Redis, SQL or the disk", "`brainq doctor` shows which; try again when it is back"


def _failure_reason(failure: Exception) -> str:
    """Return SQLite's own message, which quotes no content, or the type of any other failure."""
    driver = getattr(failure, "orig", None)
    return str(driver) if type(driver).__module__ == "sqlite3" else type(failure).__name__
