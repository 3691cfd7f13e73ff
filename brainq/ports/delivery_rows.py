"""Deliveries to webhooks in SQL."""

from __future__ import annotations

from typing import Protocol

from brainq.contracts.webhook import Claimed


class DeliveryRows(Protocol):
    """A table of jobs on the database's own clock. Fitted by `store.repositories.deliveries.Deliveries`.

    claim   what is due for this url, for nobody else for `lease_s`; None when nothing is
    done    it was taken
    fail    try again after `again_after_s`, or never (`dead`); `tries` is the number `claim` gave, and nothing
            changes if the row is settled, or a later try has it
    """

    def claim(self, url: str, lease_s: float) -> Claimed | None: ...
    def done(self, row: int) -> bool: ...
    def fail(self, row: int, tries: int, error: str, again_after_s: float, dead: bool) -> bool: ...
