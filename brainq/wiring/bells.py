"""Where the scripts' doorbells go."""

from __future__ import annotations

from brainq.broker import names
from brainq.broker.envelope import template, traced
from brainq.contracts.effect import Effect
from brainq.settings import Settings
from brainq.state.keys import Keys
from brainq.state.scripts import Doorbell, Doorbells


def doorbells(settings: Settings, *, traces: bool = False) -> Doorbells:
    """Where scripts put doorbells: the broker's own lists, or each session's outbox.

    traces   they say where their turn's trace goes on
    """

    def of(task: str, queue: str, priority: int = 0) -> str:
        text = template(task, queue, priority)
        return traced(text) if traces else text

    tasks = {
        "turns": (names.TURN_ADVANCE, names.TURNS_QUEUE),
        "finalize": (names.FINALIZE_STEP, names.FINALIZE_QUEUE),
        "judges": (names.JUDGE_RUN, names.JUDGES_QUEUE),
    }
    tasks |= {effect.value: (names.CALL_RUN, names.tool_queue(effect)) for effect in Effect}
    direct = settings.doorbell == "transactional"
    queues = {
        word: Doorbell(names.queue_key(settings, queue) if direct else "", of(task, queue))
        for word, (task, queue) in tasks.items()
    }
    queues["finalize_later"] = Doorbell(
        names.later_key(settings, names.FINALIZE_QUEUE) if direct else "",
        of(names.FINALIZE_STEP, names.FINALIZE_QUEUE, names.LATER_PRIORITY),
    )
    return Doorbells(
        queues=queues,
        traces=traces,
        bells_key=Keys(settings.prefix).bells,
        index_key=Keys(settings.prefix).index,
        outbox_prefix=settings.prefix,
        lanes_prefix=Keys(settings.prefix).lanes,
        lane_lease_ms=int(settings.lease_s * 1000),
        rering_ms=int(settings.rering_s * 1000),
    )
