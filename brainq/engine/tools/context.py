"""RunContext: the context of a running tool, and the file changes that it reports."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from pydantic import JsonValue

from brainq.contracts.call import Progress, check_progress, new_outside_token
from brainq.contracts.claim import CallRef
from brainq.contracts.file import File
from brainq.contracts.turn import Citation
from brainq.contracts.view import BudgetSnapshot
from brainq.engine.tools.deadline import DeadlineToken
from brainq.engine.tools.results import ToolError
from brainq.errors import InvalidInput
from brainq.runtime.observe.logs import logger
from brainq.runtime.text.surrogates import clean

MAX_CHANGES = 200
MAX_CHANGE_CHARS = 1_000_000
MAX_TOO_LARGE = 1_000
MAX_PATH_CHARS = 4_096
READY_POLL_S = 0.2
_TOKEN_NOT_STORED = "The token of this call could not be stored just now. That is not the call's fault."
log = logger("brainq.tools")


@dataclass(frozen=True, slots=True)
class FileChange:
    """One change of one file. None means that the file did not exist, or was deleted. `too_large` means that the
    contents were not kept."""

    path: str
    before: str | None = None
    after: str | None = None
    too_large: bool = False

    def row(self) -> dict[str, str]:
        """Return the form that is kept with the turn. None is left out."""
        if self.too_large:
            return {"path": self.path, "too_large": "1"}
        texts = {"before": self.before, "after": self.after}
        return {"path": self.path} | {name: text for name, text in texts.items() if text is not None}

    @classmethod
    def from_row(cls, row: dict[str, str]) -> FileChange:
        return cls(row["path"], row.get("before"), row.get("after"), "too_large" in row)


def check_change(path: str, before: str | None, after: str | None) -> FileChange:
    """Return the change. Raises InvalidInput for an invalid path, or contents that are not text."""
    values: dict[str, object] = {"path": path, "before": before, "after": after}
    for name, value in values.items():
        if not (isinstance(value, str) or (value is None and name != "path")):
            raise InvalidInput(name, f"is a {type(value).__name__}; record_change takes text")
    if not 0 < len(path) <= MAX_PATH_CHARS:
        raise InvalidInput("path", f"use 1 to {MAX_PATH_CHARS} characters")
    return FileChange(clean(path), None if before is None else clean(before), None if after is None else clean(after))


@dataclass(slots=True)
class ChangeCollector:
    """The changes of one call, in order. Beyond the limits, each path is kept once, without its contents."""

    kept: list[FileChange] = field(default_factory=list[FileChange])
    _chars: int = 0
    _full: int = 0
    _too_large: set[str] = field(default_factory=set[str])

    def add(self, change: FileChange) -> None:
        chars = len(change.path) + len(change.before or "") + len(change.after or "")
        if not change.too_large and self._full < MAX_CHANGES and self._chars + chars <= MAX_CHANGE_CHARS:
            self._full += 1
            self._chars += chars
            self.kept.append(change)
        elif change.path not in self._too_large and len(self._too_large) < MAX_TOO_LARGE:
            self._too_large.add(change.path)
            self.kept.append(FileChange(change.path, too_large=True))


@dataclass(frozen=True, slots=True)
class SideOutputs:
    """The outputs of a tool beside its result, each in order. Changes may repeat, the others do not."""

    local_citations: tuple[Citation, ...] = ()
    web_citations: tuple[Citation, ...] = ()
    rendered_paths: tuple[str, ...] = ()
    block_tool: bool = False
    changes: tuple[FileChange, ...] = ()
    files: tuple[File, ...] = ()


NO_OUTPUTS = SideOutputs()


@dataclass(slots=True)
class _OutputCollector:
    local: dict[Citation, None] = field(default_factory=dict[Citation, None])
    web: dict[Citation, None] = field(default_factory=dict[Citation, None])
    rendered: dict[str, None] = field(default_factory=dict[str, None])
    block_tool: bool = False
    changes: ChangeCollector = field(default_factory=ChangeCollector)
    files: tuple[File, ...] = ()


class RunContext:
    """One call of a tool: its ids, its time limit, and the place for citations.

    A tool gets it by annotating one parameter with `RunContext`; the model never sees that parameter. It is safe to use
    from several threads. After the call was cut off it accepts nothing more: late citations of the function are
    dropped, as its result is.

    attempt: 1, or more if an idempotent call runs again after its worker was lost.
    budget: the turn's budget when the call began, if it is known.
    brain: the name of the tool's brain.
    is_ready: returns whether the turn is ready now. None if that is unknown.
    outside_token: the call's token, if it is known already.
    give_token: records that the call gives a new token away, and returns the token to use.
    on_progress: called with each `progress` at once. If None, the call's heartbeat reads the newest.
    """

    def __init__(
        self,
        *,
        session_id: str,
        turn_id: str,
        call_id: str,
        token: DeadlineToken,
        step: int = 1,
        attempt: int = 1,
        budget: BudgetSnapshot | None = None,
        cwd: str | None = None,
        metadata: dict[str, JsonValue] | None = None,
        brain: str = "",
        is_ready: Callable[[], bool] | None = None,
        outside_token: str = "",
        give_token: Callable[[str], str] | None = None,
        on_progress: Callable[[Progress], None] | None = None,
    ) -> None:
        self.session_id = session_id
        self.turn_id = turn_id
        self.call_id = call_id
        self.token = token
        self.step = step
        self.attempt = attempt
        self.budget = budget
        self.cwd = cwd
        self.metadata = metadata
        self.brain = brain
        self._is_ready = is_ready
        self._outside_token = outside_token
        self._give_token = give_token
        self._on_progress = on_progress
        self.newest_progress: Progress | None = None
        self._collected: _OutputCollector | None = None  # most calls leave nothing
        self._lock = threading.Lock()
        self._giving = threading.Lock()
        self._sealed = False

    @property
    def idempotency_key(self) -> str:
        """The idempotency key of this call for services. It is the same for every attempt."""
        return f"{self.turn_id}:{self.call_id}"

    def cite_local(self, path: str, title: str = "", quote: str = "") -> None:
        """Cite a local file as a source of the answer."""
        self.absorb(SideOutputs(local_citations=(Citation(source=path, title=title, quote=quote),)))

    def cite_web(self, url: str, title: str = "", quote: str = "") -> None:
        """Cite a web page as a source of the answer."""
        self.absorb(SideOutputs(web_citations=(Citation(source=url, title=title, quote=quote),)))

    def rendered(self, path: str) -> None:
        """Report a file that was made for the user."""
        self.absorb(SideOutputs(rendered_paths=(path,)))

    def block_tool(self) -> None:
        """Deny every later call of the tool in this turn."""
        self.absorb(SideOutputs(block_tool=True))

    def progress(self, done: float, total: float | None = None, message: str = "") -> None:
        """Report the progress of the call. This is cheap: readers get the newest report with the call's next heartbeat,
        every 3 s.

        Raises InvalidInput unless both are finite numbers.
        """
        self.newest_progress = check_progress(done, total, message)
        if self._on_progress is not None:
            self._on_progress(self.newest_progress)

    def record_change(self, path: str, before: str | None, after: str | None) -> None:
        """Record the contents of a file before and after a change, for the turn's diff. None means that it did not
        exist, or was deleted.

        A call may record 200 changes with 1,000,000 characters in all. Beyond that only the path is kept. Raises
        InvalidInput for anything but text.
        """
        self.absorb(SideOutputs(changes=(check_change(path, before, after),)))

    def outside_token(self) -> str:
        """Return the token for `Pending`, which names this call and cannot be guessed. It is the same at each use.

        Its holder can complete the call, so give it to no one else. Raises ToolError while Redis is unavailable.
        """
        with self._giving:  # not the other lock: a call that is cut off does not wait for Redis
            if not self._outside_token:
                token = new_outside_token(CallRef(self.session_id, self.turn_id, self.call_id))
                self._outside_token = token if self._give_token is None else self._store_token(self._give_token, token)
            return self._outside_token

    def _store_token(self, give_token: Callable[[str], str], token: str) -> str:
        try:
            return give_token(token)
        except Exception as failure:
            log.warning("token not noted", failure=failure, turn_id=self.turn_id, call_id=self.call_id)
            raise ToolError(_TOKEN_NOT_STORED, retryable=True) from failure

    def is_ready(self) -> bool:
        """Return whether the turn has no hold now. Also returns False while that is unknown."""
        try:
            return self._is_ready is None or self._is_ready()
        except Exception as failure:
            # The tool waits for people; a short outage of a server must not end that.
            log.warning("readiness not known", failure=failure, turn_id=self.turn_id, call_id=self.call_id)
            return False

    def wait_ready(self, timeout_s: float | None = None) -> bool:
        """Wait until the turn has no hold. Returns False if `timeout_s` or the call's own time is up before."""
        ends_at = _ends_at(timeout_s)
        while True:
            if self.is_ready():
                return True
            remaining_s = ends_at - time.monotonic()
            if remaining_s <= 0 or self.token.wait(min(READY_POLL_S, remaining_s)):
                return False

    async def wait_ready_async(self, timeout_s: float | None = None) -> bool:
        """Wait like `wait_ready`, in async functions: the event loop continues meanwhile."""
        ends_at = _ends_at(timeout_s)
        while True:
            if await asyncio.to_thread(self.is_ready):
                return True
            remaining_s = ends_at - time.monotonic()
            if remaining_s <= 0 or await self.token.wait_async(min(READY_POLL_S, remaining_s)):
                return False

    def outputs(self) -> SideOutputs:
        """Return the outputs so far."""
        with self._lock:
            collected = self._collected
            if collected is None:
                return NO_OUTPUTS
            return SideOutputs(
                tuple(collected.local),
                tuple(collected.web),
                tuple(collected.rendered),
                collected.block_tool,
                tuple(collected.changes.kept),
                collected.files,
            )

    def absorb(self, outputs: SideOutputs) -> None:
        """Add outputs of the call, or of its context in another process."""
        with self._lock:
            if self._sealed:
                return
            collected = self._collected = self._collected or _OutputCollector()
            collected.local.update(dict.fromkeys(outputs.local_citations))
            collected.web.update(dict.fromkeys(outputs.web_citations))
            collected.rendered.update(dict.fromkeys(outputs.rendered_paths))
            collected.block_tool = collected.block_tool or outputs.block_tool
            for change in outputs.changes:
                collected.changes.add(change)
            collected.files = outputs.files or collected.files

    def replace_files(self, files: Sequence[File]) -> None:
        """Replace the returned files with these. The executor calls it."""
        with self._lock:
            if not self._sealed:
                self._collected = self._collected or _OutputCollector()
                self._collected.files = tuple(files)

    def seal(self) -> None:
        """Accept nothing more. The executor calls it when it cuts a call off."""
        with self._lock:
            self._sealed = True


def _ends_at(timeout_s: float | None) -> float:
    return float("inf") if timeout_s is None else time.monotonic() + timeout_s
