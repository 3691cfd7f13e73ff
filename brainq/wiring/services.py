"""What the machines of one process are built from, its webhooks, and whether a failure comes from a service
that is unavailable.
"""

from __future__ import annotations

from dataclasses import dataclass

from brainq.brain.brains import Brains
from brainq.contracts.webhook import Webhook, parse_webhooks
from brainq.leases import LeaseRenewer
from brainq.settings.deployment import Settings
from brainq.state.connection import is_redis_unavailable
from brainq.store.engine import is_sql_unavailable
from brainq.store.repositories.deliveries import AnnouncingApprovals
from brainq.store.store import Store
from brainq.wiring.people import PeopleServices
from brainq.wiring.state import RedisState
from brainq.wiring.turn_brains import TurnBrains

# Whether an exception comes from a server that cannot be reached, or cannot work just now.


def is_unavailable(failure: BaseException) -> bool:
    """True for trouble with Redis, SQL, the network or the disk: waiting may help. A broker that is away is not told
    here: its bells are rung again."""
    return is_redis_unavailable(failure) or is_sql_unavailable(failure) or isinstance(failure, OSError)


# Which webhooks a deployment has, and what tells them of approvals.


def configured_webhooks(settings: Settings) -> tuple[Webhook, ...]:
    return parse_webhooks(settings.webhooks.get_secret_value())


def approval_webhooks(settings: Settings, store: Store) -> AnnouncingApprovals:
    return AnnouncingApprovals(store.database, store.deliveries, configured_webhooks(settings))


# What the machines of one process are built from.


@dataclass(frozen=True)
class Services:
    """`owner` is this process's name in leases; `beats` renews those in Redis."""

    settings: Settings
    brains: Brains
    owner: str
    beats: LeaseRenewer
    state: RedisState
    store: Store
    people: PeopleServices
    turn_brains: TurnBrains
