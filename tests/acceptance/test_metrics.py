"""Metrics of real pools through a real gateway in a real Prometheus: an alert fires, every panel shows something, and a
killed finalizer is not counted twice."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from brainq.app.access import Tokens, Verb
from brainq.engine.brain.brains import load_brains
from ops.grafana.dashboard import ROWS
from tests.support.brains.diary import notes, open_gate, order
from tests.support.brains.obedient import script
from tests.support.gateways import GatewayThread
from tests.support.prometheus import Prometheus
from tests.support.wait import wait_until
from tests.support.world import World

pytestmark = [
    pytest.mark.full,
    pytest.mark.needs(shutil.which("prometheus") is not None, "prometheus (Debian: prometheus)"),
]

NOT_HERE = {
    "US dollars an hour": "no model here has a price",
    "Webhooks": "there are none",
    "In line under a model's limits": "no model here has any",
    "Redis' memory: limit": "this Redis has none",
    "How long turns were parked (p95)": "none was",
}


def shown(expression: str) -> str:
    """As Grafana asks for it, with all brains and tools."""
    for variable, value in (("$__rate_interval", "10m"), ("$brain", ".*"), ("$tool", ".*")):
        expression = expression.replace(variable, value)
    return expression


def test_a_queue_that_nobody_serves_fires_its_alert_and_every_panel_shows_what_was_counted(tmp_path: Path) -> None:
    world = World(tmp_path / "world")
    token = Tokens(world.wiring.store).create("prometheus", ["*"], [Verb.METRICS]).text
    brains = load_brains(world.environment["BRAINQ_APP"])
    try:
        world.start()
        with (
            GatewayThread(world.settings, brains) as gateway,
            Prometheus(tmp_path / "prometheus", gateway.settings.http_port, token) as prometheus,
        ):
            order("usage.raise", "1")
            reads = [("read", {"name": "a"}), ("read", {"name": "b", "fail": True})]
            world.done(world.client.submit("s0", script(reads, reads), limits={"max_steps": 2}))
            world.done(world.client.submit("s1", script([("write", {"name": "a"})])))
            world.done(world.client.submit("s2", script(fail="server")))
            world.kill_all("serial")
            stuck = world.client.submit("s4", script([("write", {"name": "b"})]))
            wait_until(lambda: world.status(stuck) == "dispatched", "its call waits for a worker")
            wait_until(
                lambda: of(prometheus, "BrainqNoWorkers", "pool") == {"serial"},
                "Prometheus finds that the serial pool has no worker",
            )
            wait_until(
                lambda: of(prometheus, "BrainqQueueOld", "queue") == {"brainq.tools.local_write"},
                "Prometheus finds that its queue is old",
            )
            assert prometheus.query('up{job="brainq"} == 1')
            wait_until(lambda: ended(prometheus) == 3, "Prometheus has all turns that ended")

            world.launch_dead()
            world.done(stuck)
            wait_until(
                lambda: not {"BrainqNoWorkers", "BrainqQueueOld"} & prometheus.firing().keys(),
                "both alerts end once there is a worker",
            )
            wait_until(lambda: ended(prometheus) == 4, "Prometheus has that turn, too")
            assert empty_panels(prometheus) == set()
    finally:
        world.stop()


def ended(prometheus: Prometheus) -> int:
    return sum(int(row["value"][1]) for row in prometheus.query("sum(brainq_turns_total)"))


def of(prometheus: Prometheus, alert: str, label: str) -> set[str]:
    return {labels[label] for labels in prometheus.firing().get(alert, [])}


def empty_panels(prometheus: Prometheus) -> set[str]:
    lines = {
        f"{panel.title}: {legend}": expression
        for row in ROWS
        for panel in row.panels
        if panel.title not in NOT_HERE
        for legend, expression in panel.asked.items()
    }
    return {
        line for line, expression in lines.items() if line not in NOT_HERE and not prometheus.query(shown(expression))
    }


def test_a_finalizer_that_is_killed_after_it_counted_a_turn_is_followed_by_one_that_does_not(tmp_path: Path) -> None:
    world = World(tmp_path / "world", workers={"coordinator": 1, "parallel": 1, "finalizer": 1})
    try:
        world.start()
        order("turn_end.gate", "end")
        handle = world.client.submit("s1", script([("read", {"name": "a"})]))
        wait_until(lambda: notes("turn_end", turn=handle.turn_id), "the finalizer is in its last step")

        def total(name: str) -> float:
            cells = world.wiring.state.metrics.totals()
            return sum(value for cell, value in cells.items() if cell[0] == name)

        wait_until(lambda: total("brainq_turns") == 1, "its worker flushed what it counted")
        world.kill_all("finalizer")
        open_gate("end")
        world.launch_dead()
        world.done(handle)
        wait_until(
            lambda: world.wiring.state.metrics.totals().get(("brainq_leases_lapsed", "finalizer_step")) == 1,
            "the second worker flushed what it counted",
        )
        assert total("brainq_turns") == 1
        assert total("brainq_calls") == 1
        assert len(notes("turn_end", turn=handle.turn_id)) == 2, "the kill fired"
    finally:
        world.stop()
