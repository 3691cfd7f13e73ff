"""The fleet as a page; its brains and its webhooks' deliveries as tables."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from brainq.cli.output import EFFECT_STYLES, STATUS_STYLES, clean, counted, duration, styled
from brainq.cli.pages.layout import PageTable, fact, key, print_head, print_section, words
from brainq.contracts.brain import BrainDescription
from brainq.contracts.fleet import Fleet, FleetCapacity
from brainq.contracts.webhook import DeliveryRow

# The fleet as a page of the terminal.

MIB = 1024 * 1024


def print_fleet(console: Console, fleet: Fleet) -> None:
    turns, lanes, given_up = fleet.turns, fleet.lanes, fleet.given_up
    limit = f" of {fleet.redis.max_bytes / MIB:,.0f} MiB" if fleet.redis.max_bytes else ""
    round_s = fleet.sweeper.last_round_s
    swept = "no round within a day" if round_s is None else f"last round {duration(round_s * 1000)} ago"
    more = "" if turns.is_whole else ", of the newest; there are more"
    lapsed = _counts({"lapsed": lanes.lapsed})
    print_head(
        console,
        [
            (
                "turns",
                Text(
                    _counts(
                        {name: getattr(turns, name) for name in ("active", "parked", "queued", "closing", "accepted")}
                    )
                    + more
                ),
            ),
            ("room", Text(_capacity_text(fleet.room))),
            ("people", Text(f"{counted(turns.approvals, 'approval')} asked for")),
            (
                "lanes",
                Text(
                    f"{lanes.held} held, {counted(lanes.waiting, 'call')} waiting" + f", {lapsed}" * bool(lanes.lapsed)
                ),
            ),
            ("sweeper", Text(f"{swept}; the oldest look is due for {duration(fleet.sweeper.overdue_s * 1000)}")),
            ("given up", Text(_counts(given_up.model_dump()), "red" if any(given_up.model_dump().values()) else "")),
            (
                "redis",
                Text(f"{fleet.redis.version}, {fleet.redis.used_bytes / MIB:,.1f} MiB{limit}, {fleet.redis.policy}"),
            ),
        ],
    )
    pools = PageTable(key("pool"), fact("workers", 3, right=True), fact("busy", 2), words("names", 1))
    for pool in fleet.pools:
        names = ", ".join(clean(worker.name, lines=False) for worker in pool.workers)
        alive = Text(str(len(pool.workers)), "" if pool.workers else "red")
        pools.add(pool.name, alive, f"{pool.busy} of {pool.threads}", Text(names, "dim"))
    print_section(console, "pools", pools)
    if fleet.queues:
        queues = PageTable(key("queue"), fact("depth", 2, right=True), fact("oldest", 1))
        for queue in fleet.queues:
            age = "" if queue.oldest_age_s is None else duration(queue.oldest_age_s * 1000)
            queues.add(queue.name.removeprefix("brainq."), str(queue.depth), age)
        print_section(console, "queues", queues)
    if fleet.models:
        models = PageTable(key("model"), fact("in a minute", 2), fact("waiting", 2, right=True), words("", 1))
        for model in fleet.models:
            limits = f"{model.taken} of {model.requests or 'any number of'} requests"
            tokens = f", {model.tokens} tokens at most" if model.tokens else ""
            stopped = f"stopped for {duration(model.stopped_s * 1000)}" if model.stopped_s else ""
            models.add(clean(model.name, lines=False), limits + tokens, str(model.waiting), Text(stopped, "red"))
        print_section(console, "models", models)


def _capacity_text(room: FleetCapacity) -> str:
    size = "not yet known" if room.size is None else f"{room.live} of {room.size} live, {room.share} a tenant"
    size += "".join(f"; brain {brain.name} {brain.live} of {brain.cap}" for brain in room.brains)
    return size + f"; {counted(room.tenants_waiting, 'tenant')} waiting" * bool(room.tenants_waiting)


def _counts(numbers: dict[str, int]) -> str:
    """`3 active, 1 parked`; `none` where all are 0."""
    return ", ".join(f"{number} {name.replace('_', ' ')}" for name, number in numbers.items() if number) or "none"


# Brains as a table.


def brains_table(brains: Sequence[BrainDescription]) -> PageTable:
    table = PageTable(key("brain"), fact("default", 1), fact("model", 2), fact("live at most", 2), words("tools", 3))
    for brain in brains:
        tools = Text(", ").join(Text(tool.name, EFFECT_STYLES[tool.effect.value]) for tool in brain.tools)
        table.add(
            brain.name,
            "yes" if brain.is_default and len(brains) > 1 else "",
            brain.model,
            str(brain.max_live_turns or ""),
            tools,
        )
    return table


# How `brainq webhook list` shows deliveries.


def deliveries_table(rows: Sequence[DeliveryRow]) -> PageTable:
    table = PageTable(
        key("id"),
        fact("state", 6),
        fact("event", 5),
        fact("turn", 4),
        fact("tries", 2, right=True),
        words("to", 1),
        words("error", 3),
    )
    for row in rows:
        table.add(
            str(row.row),
            styled(row.state, STATUS_STYLES),
            row.event,
            row.turn_id,
            str(row.tries),
            clean(row.url, lines=False),
            clean(row.error or "", lines=False),
        )
    return table
