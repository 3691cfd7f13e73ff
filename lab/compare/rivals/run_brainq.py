"""brainq: its four pools with their default settings, an embedded Redis and SQLite, as `make bench` runs them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lab.bench.latency import LATENCIES_S, WIDE
from lab.bench.load import Submitted, submit
from lab.bench.outcomes import read_outcomes, wait_finished
from lab.bench.stage import Stage, forget_settings, stage
from lab.compare import turn
from lab.compare.serving import Ended, options, serve


def ended(on: Stage, turns: Sequence[Submitted]) -> Iterator[Ended]:
    for outcome in read_outcomes(on, turns):  # which checks what is said here, and more
        yield Ended(outcome.to_result_ms / 1000, turn.ANSWER, calls=4, final_steps=len(turn.FINAL_STEPS))


def main() -> None:
    given = options()
    forget_settings()
    slow = turn.MODEL_S > 0
    with stage(
        given.directory / "stage",
        task_events=given.events,
        latencies_s=LATENCIES_S if slow else None,
        concurrency=WIDE if slow else None,
    ) as on:

        def run(count: int) -> Iterator[Ended]:
            turns = submit(on.client, count).turns
            wait_finished(on, turns)
            return ended(on, turns)

        serve(run)


if __name__ == "__main__":
    main()
