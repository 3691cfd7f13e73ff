"""Redis, SQL and leases, as one process reaches them."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable
from functools import cached_property

from brainq.beats import Beats
from brainq.brain import Brain
from brainq.contracts.effect import Effect
from brainq.errors import SetupError
from brainq.finalize.order import StepOrder
from brainq.finalize.steps import steps_of
from brainq.settings import Settings
from brainq.state.approvals import RedisApprovals
from brainq.state.auxiliary import RedisAuxiliary
from brainq.state.budgets import RedisBudgets
from brainq.state.calls import RedisCalls
from brainq.state.connection import Client, make_client
from brainq.state.events import RedisEvents
from brainq.state.finals import RedisFinals
from brainq.state.holds import RedisHolds
from brainq.state.index import RedisIndex
from brainq.state.keys import Keys
from brainq.state.lanes import RedisLanes
from brainq.state.mailbox import RedisMailbox
from brainq.state.outbox import NoOutbox, Outbox, PublishingOutbox
from brainq.state.outside import RedisOutside
from brainq.state.runtime import RedisRuntime
from brainq.state.sessions import RedisSessions
from brainq.state.snapshots import RedisSnapshots
from brainq.state.stops import RedisStops
from brainq.state.turns import RedisTurns
from brainq.state.typed_scripts import Scripts
from brainq.store.store import Store
from brainq.wiring.bells import doorbells

# When nobody has taken up the finalizer for this long, the sweeper sends the result itself.
UNSERVED_S = 15.0


class Services:
    """What the machines of one process reach the world by, each built when first used.

    serves   the effects of the calls that run in this process; a doorbell of any other is dropped
    """

    def __init__(
        self,
        settings: Settings,
        brain: Brain,
        *,
        redis_url: str = "",
        owner: str = "",
        serves: Iterable[Effect] = Effect,
    ) -> None:
        self.settings = settings
        self.brain = brain
        self.serves = frozenset(serves)
        self.owner = owner or f"{socket.gethostname()}-{os.getpid()}"
        self._redis_url = redis_url

    @cached_property
    def client(self) -> Client:
        return make_client(self.redis_url)

    @cached_property
    def redis_url(self) -> str:
        """Where Redis is: as was said, else the server that `brainq dev` runs on this data directory.

        Raises SetupError when there is neither.
        """
        if self._redis_url:
            return self._redis_url
        if self.settings.redis_url is not None:
            return self.settings.redis_url.get_secret_value()
        from brainq.devserver.embedded import running_url

        url = running_url(self.settings.data_dir / "redis")
        if not url:
            raise SetupError(
                "no Redis: BRAINQ_REDIS_URL is not set (such as redis://127.0.0.1:6379/0), and no `brainq dev` "
                f"runs on {self.settings.data_dir.absolute()}; start it there, or set BRAINQ_REDIS_URL"
            )
        return url

    @cached_property
    def keys(self) -> Keys:
        return Keys(self.settings.prefix)

    @cached_property
    def outbox(self) -> Outbox:
        if self.settings.doorbell == "transactional":
            return NoOutbox()
        # Celery costs half a second to import, and transactional doorbells do without it.
        from brainq.broker.app import make_app
        from brainq.broker.dispatch import publish_doorbell

        app = make_app(self.settings, name="brainq-doorbells")
        return PublishingOutbox(self.client, self.keys, lambda bell: publish_doorbell(app, bell))

    @cached_property
    def scripts(self) -> Scripts:
        return Scripts(self.client, self.keys, doorbells(self.settings))

    @cached_property
    def store(self) -> Store:
        return Store.open(self.settings.sql_url.get_secret_value())

    @cached_property
    def turns(self) -> RedisTurns:
        return RedisTurns(
            self.scripts,
            self.keys,
            self.outbox,
            lease_s=self.settings.lease_s,
            keep_session_s=self.settings.keep_session_s,
            grace_s=self.settings.cancel_grace_s,
            first_step=self.order.first,
        )

    @cached_property
    def calls(self) -> RedisCalls:
        return RedisCalls(
            self.scripts, self.keys, self.outbox, lease_s=self.settings.lease_s, serves=sorted(self.serves)
        )

    @cached_property
    def auxiliary(self) -> RedisAuxiliary:
        return RedisAuxiliary(self.scripts, self.keys, self.outbox)

    @cached_property
    def lanes(self) -> RedisLanes:
        return RedisLanes(self.scripts, self.keys, self.outbox, lease_s=self.settings.lease_s)

    @cached_property
    def finals(self) -> RedisFinals:
        return RedisFinals(
            self.scripts,
            self.keys,
            self.outbox,
            lease_s=self.settings.lease_s,
            keep_turn_s=self.settings.keep_turn_s,
            complete=self.brain.complete,
        )

    @cached_property
    def budgets(self) -> RedisBudgets:
        return RedisBudgets(self.scripts, self.keys)

    @cached_property
    def index(self) -> RedisIndex:
        return RedisIndex(
            self.scripts,
            self.keys,
            self.outbox,
            rering_s=self.settings.rering_s,
            failing_s=self.settings.result_after_failing_s,
            unserved_s=max(UNSERVED_S, self.settings.result_after_failing_s),
            grace_s=self.settings.cancel_grace_s,
            lease_s=self.settings.lease_s,
        )

    @cached_property
    def events(self) -> RedisEvents:
        return RedisEvents(self.client, self.keys)

    @cached_property
    def runtime(self) -> RedisRuntime:
        return RedisRuntime(self.scripts, self.keys)

    @cached_property
    def snapshots(self) -> RedisSnapshots:
        return RedisSnapshots(self.client, self.keys, self.calls)

    @cached_property
    def beats(self) -> Beats:
        return Beats(self.settings.beat_s)

    @cached_property
    def judge_beats(self) -> Beats:
        """Judgements' leases are in SQL: a slow database must not keep those in Redis from being renewed."""
        return Beats(self.settings.beat_s)

    @cached_property
    def order(self) -> StepOrder:
        return StepOrder(steps_of(self.brain, self.brain.final_steps))

    @cached_property
    def mailbox(self) -> RedisMailbox:
        return RedisMailbox(self.scripts, self.keys)

    @cached_property
    def holds(self) -> RedisHolds:
        return RedisHolds(self.scripts, self.keys, self.outbox, keep_session_s=self.settings.keep_session_s)

    @cached_property
    def approvals_state(self) -> RedisApprovals:
        return RedisApprovals(self.scripts, self.keys, self.outbox)

    @cached_property
    def sessions(self) -> RedisSessions:
        return RedisSessions(
            self.scripts, self.keys, self.outbox, keep_session_s=self.settings.keep_session_s
        )

    @cached_property
    def outside(self) -> RedisOutside:
        return RedisOutside(self.scripts, self.keys, self.outbox)

    @cached_property
    def stops(self) -> RedisStops:
        return RedisStops(self.redis_url, self.keys.stops, self.beats.beat_now)
