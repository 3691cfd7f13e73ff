"""The client's verbs about money: the spend report, from SQL."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from brainq.cells.cells import Answers, Cells, listed
from brainq.client import checks
from brainq.client.connection import raises_unreachable
from brainq.client.lists import checked_instant
from brainq.contracts.spending import SPEND_FIGURES, SpendBy, SpendLine, check_spend_by

DEFAULT_SPAN = timedelta(days=30)


@raises_unreachable
class SpendVerbs:
    """What a Client does with money."""

    _cells: Cells

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
        groups, end = check_spend_by(by), checked_instant("until", until)
        asked = self._cells.ask(
            lambda wiring: wiring.store.spending.report(groups, begin, end, theirs), prefixes=theirs
        )
        return _together(groups, asked)


def _together(by: Sequence[SpendBy], asked: Answers[Sequence[SpendLine]]) -> tuple[SpendLine, ...]:
    """The same group of several cells is one line."""
    if len(asked.answers) == 1:
        return listed(asked.values[0], asked)
    lines: dict[tuple[str, ...], SpendLine] = {}
    for line in (line for lines_of_cell in asked.values for line in lines_of_cell):
        group = tuple(getattr(line, name) or "" for name in by)
        known = lines.get(group)
        lines[group] = line if known is None else known.model_copy(update=_sums(known, line))
    return listed((lines[group] for group in sorted(lines)), asked)


def _sums(one: SpendLine, other: SpendLine) -> dict[str, float]:
    return {name: getattr(one, name) + getattr(other, name) for name in SPEND_FIGURES}
