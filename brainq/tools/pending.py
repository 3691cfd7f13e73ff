"""What a tool returns in place of a result that will come from outside."""

from __future__ import annotations

import math
from dataclasses import dataclass

from brainq.errors import InvalidInput

DEFAULT_PENDING_S = 86_400.0
MAX_TOKEN_CHARS = 500


@dataclass(frozen=True, slots=True)
class Pending:
    """The call parks until `client.complete_call(token, ...)` or `fail_call`, from any process, once.

    token       `ctx.outside_token()`, or a name of your own that nobody else uses, such as a job id. One of your own
                can be completed only after the tool has returned; one from `outside_token()` at once
    timeout_s   how long to wait at most; the call then times out. The turn's time limit stands still meanwhile

    Raises InvalidInput.
    """

    token: str
    timeout_s: float = DEFAULT_PENDING_S

    def __post_init__(self) -> None:
        if not 0 < len(self.token) <= MAX_TOKEN_CHARS:
            raise InvalidInput("token", f"use 1 to {MAX_TOKEN_CHARS} characters, such as ctx.outside_token()")
        if not (math.isfinite(self.timeout_s) and self.timeout_s > 0):
            raise InvalidInput("timeout_s", f"{self.timeout_s!r} must be finite and above 0 seconds")
