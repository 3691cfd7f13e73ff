"""What is known of a tool outside the process that runs it."""

from __future__ import annotations

from typing import Any, Literal

from brainq.contracts.base import Wire
from brainq.contracts.effect import Effect

Isolation = Literal["thread", "process"]
"""Where a tool's function runs: in a thread of the worker, or in a child process of it."""


class ToolSpec(Wire):
    """A tool as the model and the scheduler see it.

    parameters   JSON schema (an object) of the arguments
    timeout_s    the longest one call may take, counted from when its function starts
    idempotent   True: a rescue may run a started call again, with the same idempotency key
    resources    templates such as `note:{path}`, `item:{order.sku}` or `cart:{session}`; filled from the call they
                 name lanes (non-read calls) or keep two reads out of one wave (READ_ONLY calls)
    deny_repeats   True: the same call again, after it brought a result and with no change made since, is denied. So
                 it is for READ_ONLY and idempotent tools, whatever stands here
    isolation    `thread` abandons a function that misses its deadline; `process` kills it
    """

    name: str
    description: str = ""
    parameters: dict[str, Any]
    effect: Effect = Effect.DESTRUCTIVE
    timeout_s: float = 45.0
    idempotent: bool = False
    resources: tuple[str, ...] = ()
    isolation: Isolation = "thread"
    deny_repeats: bool = False

    @property
    def is_guarded(self) -> bool:
        """Whether a repeat that can bring nothing new is denied."""
        return self.deny_repeats or self.idempotent or self.effect.is_read
