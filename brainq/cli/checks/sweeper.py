"""Whether somebody looks at turns that need it: lost doorbells, dead workers, deadlines."""

from __future__ import annotations

from brainq.preflight.check import Check, ok, warn
from brainq.settings import Settings
from brainq.state.connection import make_client
from brainq.state.index import overdue_s
from brainq.state.keys import Keys

LATE_S = 15.0


def check_sweeper(settings: Settings, url: str) -> Check:
    client = make_client(url)
    try:
        late_s = overdue_s(client, Keys(settings.prefix))
    finally:
        client.close()
    if late_s < LATE_S:
        return ok("sweeper", f"the oldest look at a turn has been due for {late_s:.1f} s")
    return warn(
        "sweeper",
        f"a look at a turn has been due for {late_s:.0f} s: lost doorbells and dead workers are healed late",
        "coordinators do that: start one, or more of them, `brainq worker coordinator`",
    )
