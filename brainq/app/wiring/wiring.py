"""The process: its settings and brains, and the objects that are built from them at first use.

    servers    Redis (`state`), SQL (`store`), and the desks for the actions of people (`people`)
    machines   `coordinator`, `runner`, `finalizer`, `judge_runner`, `step_rerunner`, `sweeper`, `pollers`,
               `webhook_sender`

One function builds each object from the other attributes. A producer needs no machine but `people`, and a worker few,
so their modules are imported when they are built.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import TYPE_CHECKING

from brainq.adapters.redis.connection import UNAVAILABLE_ERRORS, is_redis_unavailable, redis_refusal, try_write
from brainq.adapters.sql.store import Store
from brainq.app.wiring.people import PeopleServices
from brainq.app.wiring.services import DecisionReader, TurnBrains, budget_rows
from brainq.app.wiring.state import RedisState
from brainq.contracts.budgets import parse_budgets
from brainq.contracts.build import WorkerBuild
from brainq.contracts.status import Effect
from brainq.engine.brain.brains import BrainsArgument, read_brains
from brainq.engine.brain.declared import worker_build
from brainq.engine.people.budgets import BudgetDesk
from brainq.engine.people.tenant_places import ONE_CELL, TenantPlaces
from brainq.errors import SetupError, Unreachable
from brainq.runtime.leases import LeaseRenewer, process_name
from brainq.runtime.processes.pool_threads import POOL_THREADS
from brainq.runtime.settings.cluster_url import CLUSTER_SCHEMES, as_cluster_url
from brainq.runtime.settings.deployment import Settings
from brainq.runtime.settings.extensions import load_extension
from brainq.runtime.text.service_url import without_password

if TYPE_CHECKING:
    from brainq.adapters.redis.stream_reader import StreamReaders
    from brainq.app.wiring.quarantine import Quarantine
    from brainq.app.wiring.visits import Visits
    from brainq.engine.calls.run import CallRunner
    from brainq.engine.finalize.finalizer import TurnFinalizer
    from brainq.engine.finalize.rerun import StepRerunner
    from brainq.engine.memory.judge_runner import JudgeRunner
    from brainq.engine.people.tenant_places import TenantPlaces
    from brainq.engine.people.webhook_delivery import WebhookSender
    from brainq.engine.turn.coordinator import Coordinator
    from brainq.engine.upkeep.poller import Poller
    from brainq.engine.upkeep.sweeper import Sweeper


class Wiring:
    """The objects of one process.

    redis_url   the URL of Redis; by default that of the settings, or the server that `brainq dev` runs
    owner       this process's name in leases
    serves      the effects of the calls that run in this process; doorbells of others are dropped
    """

    def __init__(
        self,
        settings: Settings,
        brains: BrainsArgument,
        *,
        redis_url: str = "",
        owner: str = "",
        serves: Iterable[Effect] = Effect,
    ) -> None:
        self.settings = settings
        self.brains = read_brains(brains)
        self.serves = frozenset(serves)
        self.owner = owner or process_name()
        self.beats = LeaseRenewer(settings.beat_s)
        # The leases of jobs are in SQL. A slow database must not delay the renewal of those in Redis.
        self.job_beats = LeaseRenewer(settings.beat_s)
        self._redis_url = redis_url
        self.redis_away = ""
        """The reason why Redis could not be reached when an Operator was opened, which then reads SQL only; otherwise
        ""."""

    @cached_property
    def redis_url(self) -> str:
        """Return the URL. Raises SetupError if there is no Redis."""
        if self._redis_url:
            return self._redis_url
        from brainq.app.devserver.redis_server import known_redis

        return known_redis(self.settings)

    @cached_property
    def state(self) -> RedisState:
        state = RedisState(self)
        state.failovers.listen()
        return state

    @cached_property
    def streams(self) -> StreamReaders:
        """Return the readers of events on an event loop."""
        from brainq.adapters.redis.stream_reader import StreamReaders

        return StreamReaders(self.redis_url, self.settings.key_prefix)

    @cached_property
    def store(self) -> Store:
        return Store.open(self.settings.sql_address, keys=self.settings.key_place)

    @property
    def is_open(self) -> bool:
        """Return whether SQL was used before."""
        return "store" in self.__dict__

    @cached_property
    def build(self) -> WorkerBuild:
        """Return what this process reports when it claims work."""
        return worker_build(self.brains, self.settings.build)

    @cached_property
    def decisions(self) -> DecisionReader:
        return DecisionReader(self.turn_brains, self.store.decisions)

    @cached_property
    def turn_brains(self) -> TurnBrains:
        return TurnBrains(self.brains, self.store.turns)

    @cached_property
    def tenants(self) -> TenantPlaces:
        """Return the placements of tenants, if there are several cells."""
        return load_extension("brainq.cells", "gate")(self) if self.settings.in_cells else ONE_CELL

    @cached_property
    def people(self) -> PeopleServices:
        return PeopleServices(self)

    @cached_property
    def budgets(self) -> BudgetDesk:
        keeper = BudgetDesk(
            rows=budget_rows(self.settings, self.store),
            counters=self.state.money,
            defaults=parse_budgets(self.settings.budgets),
            zone=self.settings.budget_zone,
            listen=self.state.stops.listen,
        )
        self.state.money.on_set(keeper.forget)
        return keeper

    @cached_property
    def quarantine(self) -> Quarantine:
        """Return the children for turns and finalizer steps that may kill their workers."""
        from brainq.app.wiring.quarantine import Quarantine

        return Quarantine(self.settings, self.redis_url, self.state.turns)

    @cached_property
    def coordinator(self) -> Coordinator:
        from brainq.app.wiring.machines import make_coordinator

        return make_coordinator(self, self.quarantine.advance)

    @cached_property
    def runner(self) -> CallRunner:
        from brainq.app.wiring.machines import make_runner

        return make_runner(self)

    @cached_property
    def finalizer(self) -> TurnFinalizer:
        from brainq.app.wiring.finalizer import make_finalizer

        return make_finalizer(self, self.quarantine.run_step)

    @cached_property
    def visits(self) -> Visits:
        from brainq.app.wiring.visits import Visits

        return Visits(self, POOL_THREADS)

    @cached_property
    def judge_runner(self) -> JudgeRunner:
        from brainq.app.wiring.finalizer import make_judge_runner

        return make_judge_runner(self)

    @cached_property
    def step_rerunner(self) -> StepRerunner:
        from brainq.app.wiring.finalizer import make_rerunner

        return make_rerunner(self)

    @cached_property
    def sweeper(self) -> Sweeper:
        from brainq.app.wiring.sweeper import make_sweeper

        return make_sweeper(self)

    @cached_property
    def pollers(self) -> tuple[Poller, ...]:
        """Return the pollers that run next to the sweeper. Returns none if there is one cell."""
        from brainq.app.wiring.machines import make_pollers

        return make_pollers(self)

    @cached_property
    def webhook_sender(self) -> WebhookSender:
        from brainq.app.wiring.finalizer import make_sender

        return make_sender(self.settings, self.store)

    def warm_up(self) -> None:
        """Open Redis and SQL now, so that the first turn does not wait for them and a wrong URL is reported at the
        start.

        Raises Unreachable if one of them does not answer, and SetupError for a wrong setting.
        """
        self._asked_of_redis(self._require_one_redis)
        self.look(sql=False)
        _ = self.store

    def _require_one_redis(self) -> None:
        is_cluster = self.redis_url.startswith(CLUSTER_SCHEMES)
        if not is_cluster and self.state.redis.server_info("cluster").get("cluster_enabled") == "1":
            url = as_cluster_url(without_password(self.redis_url))
            raise SetupError(f"Redis is a node of a Redis Cluster; set BRAINQ_REDIS_URL={url}")

    def ping(self) -> None:
        """Raise Unreachable if Redis does not answer."""
        self._asked_of_redis(self.state.redis.ping)

    def look(self, *, sql: bool) -> None:
        """Raise Unreachable if Redis does not answer or accepts no writes, or SQL if `sql` is set."""
        self._asked_of_redis(lambda: try_write(self.state.redis, self.state.keys.epoch))
        if sql:
            self.store.require_writes()

    def _asked_of_redis(self, ask: Callable[[], object]) -> None:
        try:
            ask()
        except Exception as error:
            if not isinstance(error, UNAVAILABLE_ERRORS) and not is_redis_unavailable(error):
                raise
            where = f"Redis at {without_password(self.redis_url)}"
            if (refusal := redis_refusal(error)) is not None:
                raise Unreachable(f"{where} {refusal.reason}; {refusal.remedy}") from error
            raise Unreachable(f"{where} does not answer ({type(error).__name__})") from error

    async def close_streams(self) -> None:
        """Close the event readers of this event loop, if there are any."""
        if "streams" in self.__dict__:
            await self.streams.close()

    def close(self) -> None:
        """Stop all heartbeats and close everything that was opened."""
        built = self.__dict__
        self.beats.stop()
        self.job_beats.stop()
        for name in ("runner", "quarantine", "store", "state"):
            if name in built:
                built[name].close()
