"""The client's verbs about money: the spend report, from SQL."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from brainq.client import checks
from brainq.client.connection import raises_unreachable
from brainq.client.lists import checked_instant
from brainq.contracts.spending import SpendLine, check_spend_by
from brainq.wiring import Wiring

DEFAULT_SPAN = timedelta(days=30)


@raises_unreachable
class SpendVerbs:
    """What a Client does with money."""

    _wiring: Wiring

    def spend(
        self,
        *,
        by: Sequence[str] = ("day",),
        since: datetime | None = None,
        until: datetime | None = None,
        session_prefixes: Sequence[str] | None = None,
    ) -> tuple[SpendLine, ...]:
        """What model calls have cost, one line a group: of turns accepted from `since` on and before `until`.

        by       of day, tenant, brain, model and kind. With `tool` tool calls are counted, by tool, day, tenant, brain
        since    by default 30 days ago
        session_prefixes   only of sessions that begin with one of these prefixes, such as ("acme:",)

        A turn is in it once its finalizer has logged it, and until it is pruned. Raises InvalidInput.
        """
        begin = checked_instant("since", since) or datetime.now(UTC) - DEFAULT_SPAN
        theirs = checks.session_prefixes(session_prefixes)
        report = self._wiring.store.spending.report
        return tuple(report(check_spend_by(by), begin, checked_instant("until", until), theirs))
