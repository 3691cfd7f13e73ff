"""The finalizer pool's own processes tell webhooks, soon, once, and without a word of what was said."""

from __future__ import annotations

from tests.support.brains.obedient import script
from tests.support.receiver import Receiver
from tests.support.wait import wait_until
from tests.support.world import World

CANARY = "canary7Kq2secret"


def test_the_finalizer_pool_tells_webhooks(calm: World, sid: str, receiver: Receiver) -> None:
    handle = calm.client.submit(f"hooked:{sid}", script([("read", {"name": CANARY})], final=CANARY))
    assert handle.result(timeout_s=60).text == CANARY
    wait_until(lambda: receiver.received, "the webhook was told")
    calm.done(handle)
    wait_until(lambda: {row.state for row in calm.wiring.store.deliveries.list()} == {"done"}, "and SQL knows it")
    (got,) = receiver.received
    assert got.signed
    assert got.content["data"]["turn_id"] == handle.turn_id
    assert CANARY not in str(got)
    logs = "".join(worker.log_path.read_text() for worker in calm.fleet.workers)
    assert "hook?from" not in logs
