"""The limits of models' services, as the whole fleet keeps them."""

from __future__ import annotations

from typing import Protocol

from brainq.contracts.rate import RateSaid, RateWait, TokenCount


class RateLimits(Protocol):
    """Places among the requests of a minute. Fitted by `state.rates.RedisRates`.

    `name` is a model at one account: `provider:model`, and ` #` with a word for the account where there is one.
    """

    def holds(self, name: str) -> bool:
        """Whether anything limits it, as far as this process knows. Asks nobody."""
        ...

    def take(
        self,
        name: str,
        place: str,
        ticket: str,
        tokens: int,
        most_wait_s: float,
        rank: int = ...,
        estimated: int = ...,
    ) -> RateWait | None:
        """Take a place: None, or how long `ticket` waits in line for it. With the same `place` it is taken once.
        Whoever waits asks again when its time has come, and may be told of another: tenants take turns in the line.
        A ticket, and a place, begin with their tenant's session. Of a tenant's the lower `rank`, 0 to 9, goes first.
        Those of the `tokens` that are `estimated` count as the service has counted others."""
        ...

    def leave(self, stands: str) -> None:
        """Whoever `stands` names, the count's name and a ticket on two lines, wants no place any more."""
        ...

    def settle(
        self,
        name: str,
        place: str,
        used: int | TokenCount | None,
        answered_s: float | None,
        said: RateSaid,
    ) -> bool:
        """What came of it: tokens that were used, how long ago the answer began, and what it said of limits. Whether
        the fleet keeps to that."""
        ...

    def report(self, name: str, place: str, count: TokenCount, is_all: bool) -> None:
        """What a stream that goes on has told: `count.used` tokens with what its reply may yet have. `is_all`: no more
        than that can come."""
        ...
