"""What a running tool is given besides its arguments."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from pydantic import JsonValue

from brainq.contracts.snapshot import BudgetSnapshot
from brainq.contracts.turn import Citation
from brainq.tools.deadline import DeadlineToken


@dataclass(frozen=True, slots=True)
class SideOutputs:
    """What a tool left beside its result, each in the order it came and without repeats."""

    local_citations: tuple[Citation, ...] = ()
    web_citations: tuple[Citation, ...] = ()
    rendered_paths: tuple[str, ...] = ()
    block_tool: bool = False


@dataclass(slots=True)
class _Collected:
    local: dict[Citation, None] = field(default_factory=dict[Citation, None])
    web: dict[Citation, None] = field(default_factory=dict[Citation, None])
    rendered: dict[str, None] = field(default_factory=dict[str, None])
    block_tool: bool = False


class RunContext:
    """One call of a tool: who asks, how long it may take, and where to leave citations.

    A tool gets it by annotating one parameter with `RunContext`; the model never sees that parameter.
    Safe to use from several threads. Once the call was cut off it takes nothing more: what a late function
    still cites is dropped, as its result is.

    attempt   1, or more when an idempotent call runs again after its worker was lost
    budget    the turn's budget when the call began, where it is known
    """

    __slots__ = (
        "_collected",
        "_lock",
        "_sealed",
        "attempt",
        "budget",
        "call_id",
        "cwd",
        "metadata",
        "session_id",
        "step",
        "token",
        "turn_id",
    )

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
        self._collected = _Collected()
        self._lock = threading.Lock()
        self._sealed = False

    @property
    def idempotency_key(self) -> str:
        """The same for every attempt of this call; hand it to services that take such keys."""
        return f"{self.turn_id}:{self.call_id}"

    def cite_local(self, path: str, title: str = "", quote: str = "") -> None:
        """Say that the answer rests on a local file."""
        citation = Citation(source=path, title=title, quote=quote)
        with self._lock:
            if not self._sealed:
                self._collected.local[citation] = None

    def cite_web(self, url: str, title: str = "", quote: str = "") -> None:
        """Say that the answer rests on a web page."""
        citation = Citation(source=url, title=title, quote=quote)
        with self._lock:
            if not self._sealed:
                self._collected.web[citation] = None

    def rendered(self, path: str) -> None:
        """Say that a file was made for the user to see."""
        with self._lock:
            if not self._sealed:
                self._collected.rendered[path] = None

    def block_tool(self) -> None:
        """Deny every later call of this tool in the turn."""
        with self._lock:
            if not self._sealed:
                self._collected.block_tool = True

    def outputs(self) -> SideOutputs:
        """What was left here so far."""
        with self._lock:
            collected = self._collected
            return SideOutputs(
                tuple(collected.local),
                tuple(collected.web),
                tuple(collected.rendered),
                collected.block_tool,
            )

    def absorb(self, outputs: SideOutputs) -> None:
        """Add what the same call left in a context of another process."""
        with self._lock:
            if self._sealed:
                return
            self._collected.local.update(dict.fromkeys(outputs.local_citations))
            self._collected.web.update(dict.fromkeys(outputs.web_citations))
            self._collected.rendered.update(dict.fromkeys(outputs.rendered_paths))
            self._collected.block_tool = self._collected.block_tool or outputs.block_tool

    def seal(self) -> None:
        """Take nothing more. The executor calls it when it cuts a call off."""
        with self._lock:
            self._sealed = True
