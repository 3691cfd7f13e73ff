"""Following a turn's events to the final one, as lines or as JSON."""

from __future__ import annotations

from dataclasses import dataclass

from brainq.cli.output import print_json, stdout
from brainq.cli.timeline import Timeline
from brainq.client.handle import TurnHandle


@dataclass(frozen=True)
class Followed:
    """Whether the final event was seen, and the model's text that was shown last."""

    final: bool
    text: str


def follow(
    handle: TurnHandle, *, after: int = 0, as_json: bool = False, timeout_s: float | None = None
) -> Followed:
    """Print events as they come. Raises ResultTimeout when `timeout_s` is up before the final one."""
    timeline = Timeline(stdout())
    if after:
        snapshot = handle.snapshot()
        for entry in snapshot.trace if snapshot else ():
            timeline.knows(entry.call_id, entry.tool, entry.effect)
    final = False
    try:
        for event in handle.events(after, timeout_s):
            if as_json:
                print_json(event.model_dump(mode="json"))
            else:
                timeline.show(event)
            final = event.is_final
    finally:
        if not as_json:
            timeline.close()
    return Followed(final, timeline.text)
