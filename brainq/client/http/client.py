"""HttpClient and what it returns: the asynchronous client's verbs, finished in the calling thread."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar, Unpack, cast

from brainq.client.http.async_client import AsyncHttpClient
from brainq.client.http.async_handle import AsyncHttpHold, AsyncHttpTurnHandle
from brainq.client.http.async_memories import AsyncHttpBudgets, AsyncHttpMemories
from brainq.client.http.async_session import AsyncHttpFlag, AsyncHttpSession
from brainq.client.http.async_verbs import AsyncHttpVerbs
from brainq.client.http.direct_only import refuse_direct_verb

if TYPE_CHECKING:
    from brainq import Approval, Event, ListedSession, ListedTurn, SubmitOptions, TurnFilters

R = TypeVar("R")
T = TypeVar("T")
P = ParamSpec("P")


def finish(work: Awaitable[R]) -> R:
    """Return the result of a coroutine over a BlockingTransport, which never waits for an event loop."""
    steps = cast("Coroutine[Any, Any, R]", work)
    try:
        steps.send(None)
    except StopIteration as ended:
        return cast("R", ended.value)
    steps.close()
    raise RuntimeError("a verb of the blocking client waited for an event loop")


def iterate(items: AsyncIterator[T]) -> Iterator[T]:
    """Iterate over an asynchronous generator over a BlockingTransport. Ending the iteration closes it."""
    try:
        while True:
            try:
                item = finish(anext(items))
            except StopAsyncIteration:
                return
            yield item
    finally:
        close = getattr(items, "aclose", None)
        if close is not None:
            finish(close())


def blocking(verb: Callable[Concatenate[Any, P], Coroutine[Any, Any, R]]) -> Callable[Concatenate[Any, P], R]:
    """Make an awaited verb, of the twin's `_twin`, a verb that blocks."""

    @wraps(verb)
    def finished(own: Any, *args: P.args, **named: P.kwargs) -> R:
        return finish(verb(own._twin, *args, **named))

    return finished


def blocking_as(
    verb: Callable[Concatenate[Any, P], Coroutine[Any, Any, R]], twin_of: Callable[[R], T]
) -> Callable[Concatenate[Any, P], T]:
    """Make an awaited verb a verb that blocks and returns the blocking twin of its answer."""

    @wraps(verb)
    def finished(own: Any, *args: P.args, **named: P.kwargs) -> T:
        return twin_of(finish(verb(own._twin, *args, **named)))

    return finished


class HttpHold:
    """A hold on a turn. As a context manager it is released at the end. See `Hold`."""

    def __init__(self, twin: AsyncHttpHold) -> None:
        self._twin = twin
        self.session_id = twin.session_id
        self.turn_id = twin.turn_id
        self.id = twin.id

    release = blocking(AsyncHttpHold.release)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


class HttpTurnHandle:
    """A TurnHandle over HTTP. `client.submit(...)` and `client.handle(turn_id)` return one.

    Its verbs are those of TurnHandle, without `request`, `delete_response` and `is_response_deleted`, which need a
    direct Client.
    """

    def __init__(self, twin: AsyncHttpTurnHandle) -> None:
        self._twin = twin
        self.session_id = twin.session_id
        self.turn_id = twin.turn_id
        self.created = twin.created
        self.joined = twin.joined

    def __repr__(self) -> str:
        return f"HttpTurnHandle(session_id={self.session_id!r}, turn_id={self.turn_id!r})"

    def events(self, after: int = 0, timeout_s: float | None = None, *, idle_s: float | None = None) -> Iterator[Event]:
        """Iterate over the events numbered above `after`, up to the final one. See `AsyncHttpTurnHandle.events`."""
        return iterate(self._twin.events(after, timeout_s, idle_s=idle_s))

    def text(self, timeout_s: float | None = None, *, idle_s: float | None = None) -> Iterator[str]:
        """Iterate over the text of the turn's newest step as it grows. See `TurnHandle.text`."""
        return iterate(self._twin.text(timeout_s, idle_s=idle_s))

    if not TYPE_CHECKING:  # a type checker would take every name for an attribute
        __getattr__ = refuse_direct_verb

    result = blocking(AsyncHttpTurnHandle.result)
    wait = blocking(AsyncHttpTurnHandle.wait)
    events_so_far = blocking(AsyncHttpTurnHandle.events_so_far)
    snapshot = blocking(AsyncHttpTurnHandle.snapshot)
    explain = blocking(AsyncHttpTurnHandle.explain)
    timeline = blocking(AsyncHttpTurnHandle.timeline)
    children = blocking(AsyncHttpTurnHandle.children)
    transcript = blocking(AsyncHttpTurnHandle.transcript)
    file = blocking(AsyncHttpTurnHandle.file)
    decision = blocking(AsyncHttpTurnHandle.decision)
    calls = blocking(AsyncHttpTurnHandle.calls)
    give_result = blocking(AsyncHttpTurnHandle.give_result)
    give_error = blocking(AsyncHttpTurnHandle.give_error)
    cancel = blocking(AsyncHttpTurnHandle.cancel)
    steer = blocking(AsyncHttpTurnHandle.steer)
    receipt = blocking(AsyncHttpTurnHandle.receipt)
    hold = blocking_as(AsyncHttpTurnHandle.hold, HttpHold)
    holds = blocking(AsyncHttpTurnHandle.holds)
    release = blocking(AsyncHttpTurnHandle.release)
    approvals = blocking(AsyncHttpTurnHandle.approvals)


class HttpFlag:
    """A readiness flag. As a context manager it is released at the end. See `Flag`."""

    def __init__(self, twin: AsyncHttpFlag) -> None:
        self._twin = twin
        self.session_id = twin.session_id
        self.id = twin.id

    release = blocking(AsyncHttpFlag.release)
    ready = release

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


class HttpSession:
    """A Session over HTTP. It keeps no state of its own."""

    def __init__(self, twin: AsyncHttpSession) -> None:
        self._twin = twin
        self.session_id = twin.session_id

    def __repr__(self) -> str:
        return f"HttpSession({self.session_id!r})"

    def submit(self, user_message: str, **options: Unpack[SubmitOptions]) -> HttpTurnHandle:
        """See `Client.submit`."""
        return HttpTurnHandle(finish(self._twin.submit(user_message, **options)))

    def flag(self, flag_id: str) -> HttpFlag:
        """Return a flag that was added elsewhere."""
        return HttpFlag(self._twin.flag(flag_id))

    live = blocking(AsyncHttpSession.live)
    history = blocking(AsyncHttpSession.history)
    waiting = blocking(AsyncHttpSession.waiting)
    drop = blocking(AsyncHttpSession.drop)
    pause = blocking(AsyncHttpSession.pause)
    resume = blocking(AsyncHttpSession.resume)
    is_paused = blocking(AsyncHttpSession.is_paused)
    why_paused = blocking(AsyncHttpSession.why_paused)
    readiness = blocking_as(AsyncHttpSession.readiness, HttpFlag)
    unread_flags = blocking(AsyncHttpSession.unread_flags)
    steer = blocking(AsyncHttpSession.steer)
    interrupt = blocking(AsyncHttpSession.interrupt)
    compact = blocking_as(AsyncHttpSession.compact, HttpTurnHandle)


class HttpMemories:
    """The memories that brains keep across turns, over HTTP. See `Memories`."""

    def __init__(self, twin: AsyncHttpMemories) -> None:
        self._twin = twin

    list = blocking(AsyncHttpMemories.list)
    forget = blocking(AsyncHttpMemories.forget)
    forget_all = blocking(AsyncHttpMemories.forget_all)


class HttpBudgets:
    """Budgets over HTTP. See `BudgetVerbs`. Who sets and raises them is the token."""

    def __init__(self, twin: AsyncHttpBudgets) -> None:
        self._twin = twin

    list = blocking(AsyncHttpBudgets.list)
    set = blocking(AsyncHttpBudgets.set)
    raise_by = blocking(AsyncHttpBudgets.raise_by)


class HttpClient:
    """Client over the gateway's HTTP API, for programs without Redis, SQL, the brain and its tools. Thread-safe.

    client = HttpClient("https://brainq.example.com", token)
    print(client.run("acme:ann", "What is on my list?", timeout_s=60).text)

    url: the address of a gateway, or of a proxy before several.
    token: of `brainq token create`. It decides which sessions the client sees, and what it may do.
    retry_s: for how long a request is repeated while no gateway answers. What may not be repeated is not.
    options: arguments of httpx.Client: timeout, verify, cert, proxy, headers and others.

    It has the verbs of Client, with the same types and errors, except for `state`, `begin_try` and `end_try`, which are
    about Redis itself. No verb takes `session_prefixes`: the token has them. Raises GatewayRefused for what only a
    gateway refuses, such as a token without a right.
    """

    def __init__(self, url: str, token: str = "", *, retry_s: float = 30.0, **options: Any) -> None:
        from brainq.client.http.sending import open_transport

        self._twin = AsyncHttpClient.over(url, open_transport(url, token, options, on_loop=False), retry_s)

    @property
    def brains(self) -> tuple[str, ...]:
        """The names of the brains, as the gateway lists them. The first is the default."""
        return finish(self._twin.brains())

    @property
    def memories(self) -> HttpMemories:
        """The memories that brains keep across turns."""
        return HttpMemories(self._twin.memories)

    @property
    def budgets(self) -> HttpBudgets:
        """The budgets of model calls by hour, day and month."""
        return HttpBudgets(self._twin.budgets)

    def submit(self, session_id: str, user_message: str, **options: Unpack[SubmitOptions]) -> HttpTurnHandle:
        """Accept a turn. Returns once SQL has it. See `Client.submit` and `AsyncHttpClient.submit`."""
        return HttpTurnHandle(finish(self._twin.submit(session_id, user_message, **options)))

    def session(self, session_id: str) -> HttpSession:
        """Return a session, to read its queue, pause it, or steer its live turn. Raises InvalidInput."""
        return HttpSession(self._twin.session(session_id))

    def iterate_turns(self, **filters: Unpack[TurnFilters]) -> Iterator[ListedTurn]:
        """Iterate over every turn that `turns` lists. Pages are read as they are needed."""
        return iterate(self._twin.iterate_turns(**filters))

    def iterate_sessions(self, prefix: str = "") -> Iterator[ListedSession]:
        """Iterate over every session that `sessions` lists. Pages are read as they are needed."""
        return iterate(self._twin.iterate_sessions(prefix))

    def iterate_approvals(self, session: str | None = None, state: str | None = "pending") -> Iterator[Approval]:
        """Iterate over every approval that `approvals` lists. Pages are read as they are needed."""
        return iterate(self._twin.iterate_approvals(session, state))

    if not TYPE_CHECKING:  # a type checker would take every name for an attribute
        __getattr__ = refuse_direct_verb

    run = blocking(AsyncHttpClient.run)
    handle = blocking_as(AsyncHttpClient.handle, HttpTurnHandle)
    find = blocking_as(AsyncHttpClient.find, HttpTurnHandle)
    turns = blocking(AsyncHttpClient.turns)
    sessions = blocking(AsyncHttpClient.sessions)
    cancel = blocking(AsyncHttpVerbs.cancel)
    approvals = blocking(AsyncHttpVerbs.approvals)
    approval = blocking(AsyncHttpVerbs.approval)
    approve = blocking(AsyncHttpVerbs.approve)
    deny = blocking(AsyncHttpVerbs.deny)
    edit = blocking(AsyncHttpVerbs.edit)
    complete_call = blocking(AsyncHttpVerbs.complete_call)
    fail_call = blocking(AsyncHttpVerbs.fail_call)
    deliveries = blocking(AsyncHttpVerbs.deliveries)
    send_again = blocking(AsyncHttpVerbs.send_again)
    schedule = blocking(AsyncHttpVerbs.schedule)
    schedules = blocking(AsyncHttpVerbs.schedules)
    find_schedule = blocking(AsyncHttpVerbs.find_schedule)
    pause_schedule = blocking(AsyncHttpVerbs.pause_schedule)
    resume_schedule = blocking(AsyncHttpVerbs.resume_schedule)
    remove_schedule = blocking(AsyncHttpVerbs.remove_schedule)
    bulk = blocking(AsyncHttpVerbs.bulk)
    start_bulk = blocking(AsyncHttpVerbs.start_bulk)
    bulk_report = blocking(AsyncHttpVerbs.bulk_report)
    stop_bulk = blocking(AsyncHttpVerbs.stop_bulk)
    stop = blocking(AsyncHttpVerbs.stop)
    lift = blocking(AsyncHttpVerbs.lift)
    stops = blocking(AsyncHttpVerbs.stops)
    versions = blocking(AsyncHttpVerbs.versions)
    ramp_build = blocking(AsyncHttpVerbs.ramp_build)
    release_build = blocking(AsyncHttpVerbs.release_build)
    audit = blocking(AsyncHttpVerbs.audit)
    spend = blocking(AsyncHttpVerbs.spend)
    fleet = blocking(AsyncHttpVerbs.fleet)
    activity = blocking(AsyncHttpVerbs.activity)
    cells = blocking(AsyncHttpVerbs.cells)
    scale = blocking(AsyncHttpVerbs.scale)
    metrics = blocking(AsyncHttpVerbs.metrics)
    ping = blocking(AsyncHttpClient.ping)
    close = blocking(AsyncHttpClient.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
