"""Doorbells: the queue messages that state-changing scripts send, and where they put them.

Transactional mode: the script itself puts the bell into the broker's list, and nothing is left to do.
Outbox mode, for a broker that is not the same Redis: the script leaves the bell in its session's outbox, and it is
published right after the script. A crash in between loses the bell, not the turn: the sweeper rings again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import cast

import redis

from brainq.adapters.redis.keys import Keys
from brainq.adapters.redis.script_text import Generated
from brainq.runtime.observe.logs import logger

log = logger("brainq.state")


@dataclass(frozen=True, slots=True)
class Doorbell:
    """The doorbell of a queue: the broker's list key (empty for the session's outbox), and the text.

    The text is a whole broker message with %ARGS% %ARGSREPR% %TASK_ID% %ROOT_ID% %TAG% to fill in, and for calls
    %TOOL%.
    """

    key: str
    text: str


@dataclass(frozen=True, slots=True)
class Doorbells:
    """The doorbells by queue word: turns, read_only, local_write, network, destructive, finalize, finalize_later,
    judges.

    A doorbell that is not answered within `rering_ms` may be lost; the index has the time of its check. `traces` is
    True if the texts have %TRACE% as well.
    """

    queues: Mapping[str, Doorbell]
    bells_key: str
    index_key: str
    outbox_prefix: str
    lanes_prefix: str
    lane_lease_ms: int
    rering_ms: int
    traces: bool = False

    def generated(self) -> Generated:
        """Return the Lua of `generated/doorbells` and `generated/index`."""
        index = f"local INDEX_KEY, RERING_MS = [==[{self.index_key}]==], {self.rering_ms}"
        return ("generated/doorbells", self._doorbells()), ("generated/index", index)

    def _doorbells(self) -> str:
        keys = [f"if queue == '{word}' then return [==[{bell.key}]==]" for word, bell in self.queues.items()]
        texts = [f"if queue == '{word}' then return {_joined(bell.text)}" for word, bell in self.queues.items()]
        return "\n".join(
            [
                f"local function bell_key(queue)\n  {' else'.join(keys)} end\nend",
                "local function bell_text(queue, ARGS, ARGSREPR, TASK_ID, ROOT_ID, TAG, TOOL, TRACE)",
                f"  {' else'.join(texts)} end\nend",
                f"local TRACES = {'true' if self.traces else 'false'}",
                f"local BELLS_KEY = [==[{self.bells_key}]==]",
                f"local OUTBOX_PREFIX = [==[{self.outbox_prefix}]==]",
                f"local LANES, LANE_LEASE_MS = [==[{self.lanes_prefix}]==], {self.lane_lease_ms}",
            ]
        )


def _joined(text: str) -> str:
    """Return a Lua expression that fills in the placeholders by concatenation, which is far cheaper than gsub."""
    parts = re.split(r"%([A-Z_]+)%", text)
    return " .. ".join(f"[==[{part}]==]" if i % 2 == 0 else part for i, part in enumerate(parts))


@dataclass(frozen=True, slots=True)
class Outbox:
    """The outbox of doorbells that scripts left for another broker. `publish` gets a broker message as JSON."""

    client: redis.Redis
    keys: Keys
    publish: Callable[[str], None]

    def flush(self, session_id: str) -> None:
        key = self.keys.of_session(session_id, "outbox")
        while bell := cast("str | None", self.client.lpop(key)):
            try:
                self.publish(bell)
            except Exception as failure:
                # The change that the bell announces is committed, so the caller must not get an error. The bell is
                # lost, and the sweeper rings again.
                log.warning("doorbell not published", why=type(failure).__name__)
                return
