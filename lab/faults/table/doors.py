"""What brainq asks of others' servers: a model that answers without end, and an MCP server that restarts."""

from __future__ import annotations

import signal
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

from brainq import Client, Ending, StopReason, ToolTraceEntry, TraceStatus, TurnHandle
from lab.faults.effects import LOOK_EVERY_S, wait_for
from lab.faults.fault import Fault, Pace
from lab.faults.load import TIMEOUT_S
from lab.faults.stage import Stage
from tests.support.mcp_servers.restarting import GONE, RestartedShop

ROOM_BYTES = 100_000_000
"""What Redis may need more while a model answers twice as much."""
ANSWERS_S = 120.0
CALLERS, RESTARTS = 6, 20
NOT_FOUND = 404


class HugeAnswer(Fault):
    name = "huge-answer"
    title = "a model answers 200 MB: Redis' memory stays bounded, submits go on, the turn says why it ends"
    kind = "doors"
    completes = True

    def __init__(self, pace: Pace) -> None:
        super().__init__(pace)
        self.sent = 0

    def inject(self, stage: Stage) -> None:
        before, refused = _memory(stage), stage.producer.submitted.refused
        handle = stage.client.submit(
            f"huge-{id(self)}", "Tell me all.", brain="teller", limits={"timeout_s": TIMEOUT_S}
        )
        most = 0
        with ThreadPoolExecutor(1) as waiting:
            ending = waiting.submit(handle.result, ANSWERS_S)
            while not ending.done():
                most = max(most, _memory(stage) - before)
                time.sleep(LOOK_EVERY_S)
        result = ending.result()
        assert most < ROOM_BYTES, f"Redis grew by {most:,} bytes"
        assert stage.producer.submitted.refused == refused, "submits were refused"
        assert (result.ending, result.stop_reason) == (Ending.COMPLETED, StopReason.LENGTH), result
        assert "BRAINQ_MAX_REPLY_BYTES" in f"{result.text} {result.error}", result.text
        self.sent = sum(int(line["sent"]) for line in stage.effects.lines() if line["place"] == "huge")

    def fired(self, stage: Stage) -> int:
        """Return how many bytes of the answer were read, if these are more than a reply may have."""
        return self.sent if self.sent > stage.wiring.settings.max_reply_bytes else 0


def _memory(stage: Stage) -> int:
    return int("".join(stage.redis.command("INFO", "memory")).split("used_memory:")[1].split()[0])


class McpRestarts(Fault):
    name = "mcp-restarts"
    title = f"an MCP server restarted {RESTARTS} times, half of them SIGKILL, with four bodies for its 404"
    kind = "doors"
    completes = True

    def __init__(self, pace: Pace) -> None:
        super().__init__(pace)
        self.restarts = 0
        self.called: list[TurnHandle] = []
        self.stops: list[tuple[float, float]] = []

    def inject(self, stage: Stage) -> None:
        over = threading.Event()
        callers = [threading.Thread(target=self._call, args=(stage.client, over)) for _ in range(CALLERS)]
        for caller in callers:
            caller.start()
        try:
            for number in range(1, RESTARTS + 1):
                self._restart(stage.mcp_shop, number)
            made = len(stage.mcp_shop.orders())
            wait_for(lambda: len(stage.mcp_shop.orders()) > made + CALLERS, "orders come after the last restart")
        finally:
            over.set()
            for caller in callers:
                caller.join(ANSWERS_S)

    def _restart(self, shop: RestartedShop, number: int) -> None:
        made = len(shop.orders())
        wait_for(lambda: len(shop.orders()) > made + 1, "orders come")
        began = time.time()
        shop.stop(signal.SIGKILL if number % 2 else signal.SIGTERM)
        self.stops.append((began * 1000, time.time() * 1000))
        shop.start(number % len(GONE))
        self.restarts += 1

    def _was_in_flight(self, call: ToolTraceEntry) -> bool:
        """Return whether a call in doubt ran while the server ended. Redis' clock is this machine's."""
        is_in_flight = [call.started_at_ms <= over and call.ended_at_ms >= began for began, over in self.stops]
        return call.status is not TraceStatus.UNKNOWN or any(is_in_flight)

    def _call(self, client: Client, over: threading.Event) -> None:
        while not over.is_set():
            handle = client.submit(f"mcp-{len(self.called)}-{threading.get_ident()}", "Order.", brain="caller")
            self.called.append(handle)
            assert handle.result(ANSWERS_S).ending is Ending.COMPLETED

    def fired(self, stage: Stage) -> int:
        """How often it was restarted. Raises AssertionError for an order that was made twice, or never, or is not what
        its turn says of it."""
        made, answered = Counter(stage.mcp_shop.orders()), stage.mcp_shop.answers()
        wrong: list[str] = []
        for handle in self.called:
            trace = stage.wiring.state.calls.trace(handle.session_id, handle.turn_id)
            ended, orders = [entry.status for entry in trace], made[handle.turn_id]
            seen = [status for sku, status in answered if sku == handle.turn_id]
            if not is_true(ended, orders, seen) or not all(map(self._was_in_flight, trace)):
                wrong.append(f"{handle.turn_id}: {', '.join(ended)}, made {orders} times, answers {seen}")
            self.unknown += ended.count(TraceStatus.UNKNOWN)
        assert not wrong, wrong
        return self.restarts


def is_true(ended: list[TraceStatus], made: int, answers: list[int]) -> bool:
    """Whether the words for a turn's calls are what the server knows of its order: some that failed, of which nothing
    ran, and then one that was made or is in doubt. In doubt is a call only if a request for it had no whole answer.

    answers   a 0 for each request that came, and the status of each answer that began
    """
    *before, last = ended
    if any(status is not TraceStatus.FAILED for status in before):
        return False
    if last is not TraceStatus.UNKNOWN:
        return last is TraceStatus.COMPLETED and made == 1
    is_refused = bool(answers) and answers.count(0) * 2 == len(answers) and set(answers) <= {0, NOT_FOUND}
    return made <= 1 and not is_refused
