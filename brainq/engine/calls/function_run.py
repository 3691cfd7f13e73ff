"""Runs of the functions behind calls.

A run converts the function's result or error to an outcome, and decides whether the function ended before it was cut
off. A call runs in a separate thread if its caller's thread cannot be abandoned.
"""

from __future__ import annotations

import asyncio
import contextvars
import json
import logging
import math
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

from pydantic import TypeAdapter
from pydantic_core import PydanticSerializationError, to_jsonable_python

from brainq.contracts.call import (
    ChildTurn,
    ServerTask,
    ToolDenied,
    ToolFailure,
    ToolOutcome,
    ToolSuccess,
    ToolTimeout,
    ToolUnknown,
)
from brainq.contracts.file import File
from brainq.engine.tools.context import RunContext
from brainq.engine.tools.results import (
    OutcomeUnknown,
    Partial,
    Pending,
    RefusedArguments,
    ToolError,
    WithFiles,
    split_files,
)
from brainq.engine.tools.tool import Tool
from brainq.runtime.observe.threads import start_thread
from brainq.runtime.observe.tracebacks import print_user_traceback, where_raised
from brainq.runtime.text.failures import failure_name, failure_text, leaves, only_leaf
from brainq.runtime.text.shorten import beginning
from brainq.runtime.text.surrogates import clean, clean_json

_log = logging.getLogger("brainq.calls")
_OUTCOMES: TypeAdapter[ToolOutcome] = TypeAdapter(ToolOutcome)
_OWN_WORDS = ToolError | OutcomeUnknown | RefusedArguments
MAX_RESULT_CHARS = 256_000
MAX_ERROR_CHARS = 2_000
MAX_WARNED_TYPES = 100
_warned_types: set[str] = set()
COOPERATIVE_GRACE_S = 0.25  # for tools that take a RunContext and can watch their token
GRACE_S = 0.05  # for other tools, whose end may coincide with the deadline

CallReturn = ToolOutcome | Pending | ChildTurn | ServerTask
"""How a function returned: with an outcome, or with a request that its call waits for a result from outside."""
OnCut = Callable[[ToolTimeout], object]
OnLate = Callable[[ToolOutcome], object]
Abandon = Callable[[Callable[[], str]], None]
"""A callback that answers the doorbell of a call whose function still occupies its thread. It receives the function
that settles the call, and answers with what that function returns or raises. It is called from another thread."""


def jsonable(value: Any) -> Any:
    """Return `value` as plain JSON data. Models, dataclasses, dates, sets and bytes are converted in the usual way. Any
    other type is converted with `str()`, and a warning is logged once for each such type.

    A value whose JSON is longer than MAX_RESULT_CHARS is replaced by the beginning of its text and a note. Raises
    ValueError if the value has no JSON form, such as a list that contains itself.
    """
    if value is None or (isinstance(value, bool | int) and -(2**63) <= value < 2**63):
        return value
    if type(value) is str and len(value) <= MAX_RESULT_CHARS and value.isascii():
        return value
    if isinstance(value, str):
        text = clean(str(value))
        return text if len(text) <= MAX_RESULT_CHARS else _cut_result(text)
    text = _json_text(value)
    if len(text) > MAX_RESULT_CHARS:
        return _cut_result(text)
    return json.loads(text, parse_constant=str)  # NaN and infinities do not exist in JSON and become words


def one_line(error: BaseException) -> str:
    """Return the error as one line: `TypeName: message`, or the errors in a group, cut to MAX_ERROR_CHARS."""
    return beginning(clean(failure_text(error)), MAX_ERROR_CHARS)


def _json_text(value: Any) -> str:
    try:
        try:
            plain = to_jsonable_python(value, fallback=_text_of_other, bytes_mode="utf8")
        except (UnicodeError, PydanticSerializationError):  # bytes that are not UTF-8, or half an emoji in a key
            plain = to_jsonable_python(clean_json(value), fallback=_text_of_other, bytes_mode="base64")
        return clean(json.dumps(plain, ensure_ascii=False))
    except (ValueError, TypeError, RecursionError) as error:
        raise ValueError(f"it returned, but the result has no JSON form: {error}") from error


def _text_of_other(value: Any) -> str:
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    if kind not in _warned_types and len(_warned_types) < MAX_WARNED_TYPES:
        _warned_types.add(kind)
        _log.warning(
            "a tool returned a %s, which has no JSON form: the model reads its str(); return a text, a number, a list, "
            "a dict, a dataclass or a pydantic model",
            kind,
        )
    return str(value)


def _cut_result(text: str) -> str:
    marker = f"\n[cut: the first {{}} of {len(text)} characters]"
    shown = MAX_RESULT_CHARS - len(marker) - 8
    return text[:shown] + marker.format(shown)


def raised_error(error: BaseException) -> BaseException:
    """Return the error that decides the outcome. For an exception group this is the OutcomeUnknown that it contains, or
    else its only error if it contains just one. Otherwise it is the error itself."""
    doubts = [leaf for leaf in leaves(error) if isinstance(leaf, OutcomeUnknown)]
    return doubts[0] if doubts else only_leaf(error)


def outcome_of_raise(
    error: BaseException, latency_ms: int, *, block_tool: bool
) -> ToolFailure | ToolUnknown | ToolDenied:
    """Return the outcome of a call whose function raised `error`. ToolError and OutcomeUnknown keep their message, and
    RefusedArguments becomes a denial. Any other error is shown as one line."""
    if isinstance(error, RefusedArguments):
        return ToolDenied(reason="validation", message=jsonable(str(error)), latency_ms=latency_ms)
    if isinstance(error, OutcomeUnknown):
        return ToolUnknown(message=_error_words(error), why=OutcomeUnknown.__name__, latency_ms=latency_ms)
    own = isinstance(error, ToolError)
    return ToolFailure(
        error=_error_words(error) if own else one_line(error),
        error_type=failure_name(error),
        latency_ms=latency_ms,
        retryable=getattr(error, "retryable", False) is True,
        block_tool=block_tool,
        own_words=own,
        where=where_raised(error),
    )


def _error_words(error: ToolError | OutcomeUnknown) -> str:
    return jsonable(str(error.text)).strip() or one_line(error)


def checked_child_turn(child: ChildTurn) -> ChildTurn:
    """Return the child turn with plain JSON options. Raises ValueError if a field is invalid."""
    if not (math.isfinite(child.timeout_s) and child.timeout_s > 0):
        raise ValueError(f"the timeout_s of a ChildTurn is {child.timeout_s!r}; use finite seconds above 0")
    options = jsonable(child.options)
    if not isinstance(options, dict):
        raise ValueError("the options of a ChildTurn must be a dict of at most 256,000 characters as JSON")
    return replace(child, options=options)


def dump_return(ended: CallReturn) -> dict[str, Any]:
    """Return the result as JSON, for the way from a tool process to its parent."""
    if isinstance(ended, Pending):
        return {"pending": {"token": ended.token, "timeout_s": ended.timeout_s}}
    if isinstance(ended, ServerTask):
        return {"server_task": asdict(ended)}
    if isinstance(ended, ChildTurn):
        return {
            "child_turn": {
                "message": ended.message,
                "session_id": ended.session_id,
                "timeout_s": ended.timeout_s,
                "options": ended.options,
                "brain": ended.brain,
            }
        }
    return {"outcome": ended.model_dump(mode="json")}


def load_return(body: dict[str, Any]) -> CallReturn:
    """Rebuild the result from the JSON of `dump_return`."""
    if "pending" in body:
        return Pending(**body["pending"])
    if "server_task" in body:
        return ServerTask(**body["server_task"])
    if "child_turn" in body:
        return ChildTurn(**body["child_turn"])
    return _OUTCOMES.validate_python(body["outcome"])


@dataclass(eq=False, slots=True)
class FunctionRun:
    """One run of a call's function. If the function ends before it is cut off, its end decides the call. If it ends
    afterwards, its outcome is passed to `on_late`, once.

    ended   how the call ended; None until that is decided
    """

    context: RunContext
    on_late: OnLate | None = None
    ended: CallReturn | None = None
    _started: float = field(default_factory=time.monotonic)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def returned(self, value: Any) -> CallReturn | None:
        """Handle the returned value. Returns how the call ended, or None if it was cut off before.

        This runs in the function's thread, so the conversion to JSON counts towards the call's time.
        """
        ended: CallReturn
        try:
            if isinstance(value, Pending | ServerTask):
                ended = value
            elif isinstance(value, ChildTurn):
                ended = checked_child_turn(value)
            else:
                is_partial = isinstance(value, Partial)
                plain, files = (value.value if is_partial else value), ()
                if isinstance(plain, File | WithFiles):
                    plain, files = split_files(plain)
                plain = jsonable(plain)
                if files:
                    self.context.replace_files(files)
                ended = ToolSuccess(
                    value=plain,
                    partial=is_partial,
                    latency_ms=self._elapsed_ms(),
                    block_tool=self.context.outputs().block_tool,
                )
        except BaseException as error:  # a `__str__` of the user may raise anything
            return self.raised(error)
        return self._end(ended)

    def raised(self, error: BaseException) -> CallReturn | None:
        """Handle an error that the function raised. Returns what `returned` does. After the deadline any error except
        ToolError, OutcomeUnknown and RefusedArguments counts as a timeout, because a tool that watches its token gives
        up by raising."""
        error = raised_error(error)
        if not isinstance(error, _OWN_WORDS | asyncio.CancelledError):
            print_user_traceback(error, f"call {self.context.call_id} of turn {self.context.turn_id} raised")
        block_tool = self.context.outputs().block_tool
        outcome = outcome_of_raise(error, self._elapsed_ms(), block_tool=block_tool)
        if not self.context.token.is_expired or isinstance(error, _OWN_WORDS):
            return self._end(outcome)
        # At least 1 ms, because 0 means that the function never started.
        timeout = ToolTimeout(after_ms=max(1, outcome.latency_ms), latency_ms=outcome.latency_ms)
        # A cancelled function did not end by itself, so its error says nothing about what it has done.
        return self._end(timeout, timeout if isinstance(error, asyncio.CancelledError) else outcome)

    def never_started(self) -> None:
        """End the call of a function that was not called in time and will not be called."""
        self._end(ToolTimeout(after_ms=0))

    def cut(self, settle: OnCut | None = None) -> CallReturn:
        """End the call as a timeout, unless it has ended already. Returns how the call ended.

        settle   called with the timeout. If the function ends meanwhile, it waits for `settle`, so that its late result
                 is reported afterwards
        """
        with self._lock:
            if self.ended is None:
                self.context.seal()
                elapsed_ms = self._elapsed_ms()
                timeout = ToolTimeout(after_ms=max(1, elapsed_ms), still_running=True, latency_ms=elapsed_ms)
                self.ended = timeout
                if settle is not None:
                    settle(timeout)
            return self.ended

    def _end(self, ended: CallReturn, if_late: ToolOutcome | None = None) -> CallReturn | None:
        """Set how the call ended. If it was cut off before, report `if_late`, or else `ended`, as late."""
        with self._lock:
            if self.ended is None:
                self.ended = ended
                return ended
        if self.on_late is not None:
            try:
                self.on_late(if_late or self._late(ended))
            except Exception as error:
                _log.error(
                    "a late outcome was not recorded turn_id=%s call_id=%s error=%s",
                    self.context.turn_id,
                    self.context.call_id,
                    one_line(error),
                )
        return None

    def _late(self, ended: CallReturn) -> ToolOutcome:
        # A call that was cut off no longer waits for a result from outside, so only the end of its function matters.
        if isinstance(ended, Pending | ChildTurn | ServerTask):
            elapsed_ms = self._elapsed_ms()
            return ToolTimeout(after_ms=max(1, elapsed_ms), latency_ms=elapsed_ms)
        return ended

    def _elapsed_ms(self) -> int:
        return round((time.monotonic() - self._started) * 1000)


@dataclass(frozen=True, slots=True)
class CancelGrace:
    """The time that a function has to end after its token has expired. After the deadline, a tool that takes a
    RunContext has 0.25 s and any other tool has 0.05 s. After a cancel, a tool that takes a RunContext or has an effect
    has at least `cancel_s`, because its outcome is worth waiting for."""

    cancel_s: float = COOPERATIVE_GRACE_S

    def seconds_for(self, tool: Tool, *, is_cancelled: bool) -> float:
        usual = GRACE_S if tool.context_param is None else COOPERATIVE_GRACE_S
        if is_cancelled and (tool.context_param is not None or not tool.spec.effect.is_read):
            return max(usual, self.cancel_s)
        return usual


def run_in_own_thread(work: Callable[[Abandon], str]) -> str:
    """Run `work` in a new thread, and return or raise what it does, or what it passes to its `abandon`."""
    answer: Future[str] = Future()
    run = contextvars.copy_context().run  # spans of the caller become the parents of spans in the new thread

    def abandon(settle: Callable[[], str]) -> None:
        _set_answer(answer, settle)

    def serve() -> None:
        _set_answer(answer, lambda: work(abandon))

    start_thread("brainq-call", partial(run, serve))
    return answer.result()


def _set_answer(answer: Future[str], work: Callable[[], str]) -> None:
    try:
        did = work()
    except BaseException as error:
        if not answer.done():
            answer.set_exception(error)
    else:
        if not answer.done():  # if it is done, the thread was abandoned, and its function has ended only now
            answer.set_result(did)
