"""`brainq fleet`: what runs turns, at this moment."""

from __future__ import annotations

from brainq.cli.options import App, AsJson


def fleet(as_json: AsJson = False, app: App = "") -> None:
    """Show what runs turns: workers, queues, lanes, what was given up.

    Nobody is asked: a worker says every few seconds that it is alive, and the rest stands in Redis and SQL. What is
    wrong, and what to do, says `brainq doctor`.

    \b
    Examples:
      brainq fleet
      brainq fleet --json
    """
    from brainq.cli.fleet_page import print_fleet
    from brainq.cli.output import print_json, stdout
    from brainq.cli.reach import operator

    with operator() as client:
        seen = client.fleet()
    if as_json:
        print_json(seen.model_dump(mode="json"))
    else:
        print_fleet(stdout(), seen)
