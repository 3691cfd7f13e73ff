"""Descriptors and threads short for seconds, in all workers of one pool, or in a gateway."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from typing import ClassVar
from urllib.error import HTTPError
from urllib.request import Request

from brainq.app.access import Tokens, Verb
from brainq.app.devserver.local_fleet import OwnedProcess, wait_until_ready
from lab.faults.effects import DIRECT, wait_for
from lab.faults.fault import Pace
from lab.faults.limits import Descriptors, Threads, no_descriptors, no_threads
from lab.faults.shortage import Shortage
from lab.faults.stage import Stage
from lab.faults.table.gateway_host import PEOPLE, HostedGateway, People

STRANGERS, STRANGER_S = 24, 0.5
EXPECTED = {HTTPStatus.NOT_FOUND, HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE}
REFUSALS = ("Too many open files", "Errno 24", "EMFILE")


class Short(Shortage):
    """All workers of `pool`."""

    pool: ClassVar[str]

    def __init__(self, pace: Pace) -> None:
        super().__init__(pace)
        self.refused = 0

    def limited(self, stage: Stage) -> Sequence[OwnedProcess]:
        return stage.fleet.of_pool(self.pool)

    def fired(self, stage: Stage) -> int:
        return self.refused


class DescriptorsShort(Short):
    """A shortage of descriptors. It fired if processes were not ready, ended, or logged refusals."""

    def __init__(self, pace: Pace) -> None:
        super().__init__(pace)
        self.limits: dict[int, Descriptors] = {}
        self.logged_before = 0

    @classmethod
    def why_not(cls) -> str:
        return no_descriptors()

    def inject(self, stage: Stage) -> None:
        self.logged_before = self._logged(stage)
        for process in self.limited(stage):
            assert process.process is not None
            self.limits[process.process.pid] = Descriptors(process.process.pid)
        super().inject(stage)
        self.refused = self._logged(stage) - self.logged_before
        self.refused += len(self.ended) + sum(not process.is_ready for process in self.limited(stage))

    def shorten(self, stage: Stage) -> None:
        for limit in self.limits.values():
            limit.shorten()

    def give_back(self, stage: Stage) -> None:
        for limit in self.limits.values():
            limit.give_back()

    def _logged(self, stage: Stage) -> int:
        texts = [process.log_path.read_text(errors="replace") for process in self.limited(stage)]
        return sum(text.count(word) for text in texts for word in REFUSALS)


class ThreadsShort(Short):
    """A shortage of threads. The kernel counts what it refused."""

    def __init__(self, pace: Pace) -> None:
        super().__init__(pace)
        self.limits: dict[int, Threads] = {}

    @classmethod
    def why_not(cls) -> str:
        return no_threads()

    def inject(self, stage: Stage) -> None:
        for process in self.limited(stage):
            assert process.process is not None
            self.limits[process.process.pid] = Threads(process.process.pid)
        super().inject(stage)

    def shorten(self, stage: Stage) -> None:
        for limit in self.limits.values():
            limit.shorten()

    def give_back(self, stage: Stage) -> None:
        self.refused = sum(limit.refused for limit in self.limits.values())
        for limit in self.limits.values():
            limit.give_back()


class DescriptorsCoordinator(DescriptorsShort):
    name = "files-coordinator"
    title = "coordinators may open no file or socket for seconds"
    pool = "coordinator"


class DescriptorsParallel(DescriptorsShort):
    name = "files-parallel"
    title = "parallel workers may open no file or socket for seconds"
    pool = "parallel"


class DescriptorsSerial(DescriptorsShort):
    name = "files-serial"
    title = "serial workers may open no file or socket for seconds"
    pool = "serial"


class DescriptorsFinalizer(DescriptorsShort):
    name = "files-finalizer"
    title = "finalizers may open no file or socket for seconds"
    pool = "finalizer"


class ThreadsCoordinator(ThreadsShort):
    name = "threads-coordinator"
    title = "coordinators may start no thread for seconds"
    pool = "coordinator"


class ThreadsParallel(ThreadsShort):
    name = "threads-parallel"
    title = "parallel workers may start no thread for seconds"
    pool = "parallel"


class ThreadsSerial(ThreadsShort):
    name = "threads-serial"
    title = "serial workers may start no thread for seconds"
    pool = "serial"


class ThreadsFinalizer(ThreadsShort):
    name = "threads-finalizer"
    title = "finalizers may start no thread for seconds"
    pool = "finalizer"


class GatewayShort(Short):
    """A gateway on this machine; people submit through it, and send again with their keys what was not accepted.
    Strangers come all at once, with connections of their own, and want threads. `unanswered`: how many got no answer
    or were told to come again."""

    gateway: HostedGateway | None = None
    people: People | None = None
    token = ""
    unanswered = 0

    def __init__(self, pace: Pace) -> None:
        super().__init__(pace)
        self.statuses: Counter[int] = Counter()

    def limited(self, stage: Stage) -> Sequence[OwnedProcess]:
        return [] if self.gateway is None else [self.gateway]

    def watched(self, stage: Stage) -> Sequence[OwnedProcess]:
        return [*stage.fleet.workers, *self.limited(stage)]

    def inject(self, stage: Stage) -> None:
        self.gateway = HostedGateway(stage.directory, None, stage.environment)
        self.gateway.launch()
        wait_until_ready([self.gateway])
        tokens, verbs = Tokens(stage.wiring.store), (Verb.SUBMIT, Verb.READ)
        self.token = tokens.create(f"strangers-{id(self)}", ["strangers:"], verbs).text
        token = tokens.create(f"people-{id(self)}", ["people:"], verbs).text
        people = self.people = People(self.gateway.url, token, stage.producer)
        people.begin()
        wait_for(lambda: len(people.accepted) > PEOPLE, "people's turns are accepted")
        super().inject(stage)

    def shorten(self, stage: Stage) -> None:
        super().shorten(stage)
        with ThreadPoolExecutor(STRANGERS) as strangers:
            self.unanswered += list(strangers.map(self._is_answered, range(STRANGERS))).count(False)

    def _is_answered(self, _: int) -> bool:
        assert self.gateway is not None
        request = Request(f"{self.gateway.url}/v1/turns/none", headers={"Authorization": f"Bearer {self.token}"})
        try:
            DIRECT.open(request, timeout=STRANGER_S).close()
        except HTTPError as answer:
            self.statuses[answer.code] += 1
            return answer.code != HTTPStatus.SERVICE_UNAVAILABLE
        except OSError:
            return False
        return True

    def heal(self, stage: Stage) -> None:
        """Check that each of the people gets another turn, and each repeated request its earlier one."""
        try:
            super().heal(stage)
            if self.people is not None:
                self.people.end()
                assert not self.people.failures, self.people.failures
            assert set(self.statuses) <= EXPECTED, self.statuses
        finally:
            if self.gateway is not None:
                self.gateway.stop()


class DescriptorsGateway(GatewayShort, DescriptorsShort):
    """A gateway that is short of descriptors, of which each new connection takes one."""

    name = "files-gateway"
    title = "a gateway may open no file or socket for seconds: people send their requests again, with their keys"

    def fired(self, stage: Stage) -> int:
        return self.unanswered


class ThreadsGateway(GatewayShort, ThreadsShort):
    name = "threads-gateway"
    title = "a gateway may start no thread for seconds: people send their requests again, with their keys"


LIMITS = (
    *(DescriptorsCoordinator, DescriptorsParallel, DescriptorsSerial, DescriptorsFinalizer, DescriptorsGateway),
    *(ThreadsCoordinator, ThreadsParallel, ThreadsSerial, ThreadsFinalizer, ThreadsGateway),
)
