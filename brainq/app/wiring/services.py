"""Services that several machines of a process share: the brain of a turn, its decision record, the test for
unavailability, and the webhooks of the deployment."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, lru_cache

from brainq.adapters.redis.connection import is_redis_unavailable
from brainq.adapters.sql.engine import is_sql_unavailable
from brainq.adapters.sql.repositories.budgets import Budgets
from brainq.adapters.sql.repositories.deliveries import AnnouncingApprovals, BudgetNotices
from brainq.adapters.sql.repositories.turn_records import Decisions
from brainq.adapters.sql.repositories.turns import Turns
from brainq.adapters.sql.store import Store
from brainq.contracts.encryption import ContentKeyMissing
from brainq.contracts.evaluation import RuntimeDecisionRecord
from brainq.contracts.webhook import Webhook, parse_webhooks
from brainq.engine.brain.brain import Brain
from brainq.engine.brain.brains import Brains
from brainq.runtime.settings.deployment import Settings

CACHED_TURNS = 2048  # a turn never changes its brain


class TurnBrains:
    """The brains of turns, found by a turn's id. SQL is asked once for each turn.

    name   returns the name of a turn's brain; None for the default brain, or if the turn is not known
    """

    def __init__(self, brains: Brains, turns: Turns) -> None:
        self._brains = brains
        self._turns = turns
        self.name = lru_cache(CACHED_TURNS)(self._find_name)

    def brain(self, turn_id: str) -> Brain | None:
        """Return the brain, or None if this process does not have it."""
        return self._brains.of(self.name(turn_id))

    def redacts(self, turn_id: str) -> bool:
        """Return whether SQL keeps no content of the turn. It keeps none of an unknown turn."""
        brain = self.brain(turn_id)
        return brain is None or brain.redact_logs

    def _find_name(self, turn_id: str) -> str | None:
        request = self._turns.request(turn_id)
        return None if request is None else request.brain


@dataclass(frozen=True, slots=True)
class DecisionReader:
    """A reader of decision records, from the store of a turn's brain or from SQL."""

    brains: TurnBrains
    kept: Decisions

    def get(self, turn_id: str) -> RuntimeDecisionRecord | None:
        """Return the record, or None if there is none yet. SQL is read for turns of brains that this process does not
        have."""
        brain = self.brains.brain(turn_id)
        if brain is None or brain.decisions is None:
            return self.kept.get(turn_id)
        return brain.decisions.get(turn_id) or self.kept.get(turn_id)


def is_unavailable(failure: BaseException) -> bool:
    """Return whether the failure is trouble with Redis, SQL, the network or the disk, so that waiting may help. An
    unavailable broker does not count, because its doorbells are rung again. A missing key of content counts like an
    unavailable SQL."""
    is_away = isinstance(failure, OSError | ContentKeyMissing)
    return is_away or is_redis_unavailable(failure) or is_sql_unavailable(failure)


def configured_webhooks(settings: Settings) -> tuple[Webhook, ...]:
    return parse_webhooks(settings.webhooks.get_secret_value())


def approval_webhooks(settings: Settings, store: Store) -> AnnouncingApprovals:
    return AnnouncingApprovals(store.database, store.deliveries, configured_webhooks(settings))


def budget_rows(settings: Settings, store: Store) -> Budgets:
    webhooks = configured_webhooks(settings)
    notices = BudgetNotices(store.deliveries, webhooks)
    if not settings.in_cells:
        return Budgets(store.database, notices)
    from brainq.adapters.sql.repositories.shared_budgets import SharedBudgets, home_budgets

    home = settings.all_cells()[0].sql_url.get_secret_value()
    return SharedBudgets(store.database, notices, cell=settings.cell, home=cache(lambda: home_budgets(home, webhooks)))
