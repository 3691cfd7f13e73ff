"""Tools that return images and files: kept before the call is settled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from brainq.contracts.call import ToolSuccess
from brainq.contracts.file import File
from brainq.contracts.status import Effect, TraceStatus
from brainq.engine.brain.brain import Brain
from brainq.engine.tools.results import Partial, WithFiles
from tests.support.blobs import png
from tests.unit.engine.calls.fakes import REF, Rig

PICTURE = File(png(), name="chart.png")
SHA = PICTURE.attachment.sha256


def tool_that(brain: Brain, effect: Effect, returns: Callable[[], Any]) -> None:
    @brain.tool(effect=effect)
    def draw() -> Any:  # pyright: ignore[reportUnusedFunction]
        return returns()


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        (PICTURE, f"chart.png (image/png, {len(png())} bytes)"),
        (WithFiles({"rows": 2}, [PICTURE]), '{"rows":2}'),
        (
            Partial(WithFiles("half", [PICTURE])),
            "half\n[incomplete: the tool stopped early and returned what it had]",
        ),
    ],
)
def test_a_file_is_kept_and_the_message_refers_to_it(brain: Brain, rig: Rig, returned: Any, said: str) -> None:
    tool_that(brain, Effect.LOCAL_WRITE, lambda: returned)
    rig.claim("draw", Effect.LOCAL_WRITE)
    rig.calls.on_settle = lambda: rig.log.append(f"kept {len(rig.blobs.kept)}")
    rig.run()

    assert rig.said == said
    [settled] = rig.calls.settled
    assert settled.message.attachments == (PICTURE.attachment,)
    assert rig.blobs.kept == {(REF.session_id, SHA): png()}
    assert rig.log == ["kept 1", "settle completed"], "the bytes first"
    [(recorded, _)] = rig.intents.outcomes
    assert isinstance(recorded, ToolSuccess)
    assert recorded.attachments == (PICTURE.attachment,)


def test_an_attempt_that_died_between_the_bytes_and_the_end_is_run_again(brain: Brain, rig: Rig) -> None:
    """Its bytes are there already, once."""
    tool_that(brain, Effect.READ_ONLY, lambda: PICTURE)
    rig.claim("draw")
    died: list[bool] = []

    def dies() -> None:
        if not died:
            died.append(True)
            raise KeyboardInterrupt

    rig.calls.on_settle = dies
    with pytest.raises(KeyboardInterrupt):
        rig.run()
    assert died
    assert rig.calls.settled == []
    assert len(rig.blobs.kept) == 1
    rig.claim("draw", attempt=2)
    rig.run()
    assert rig.status is TraceStatus.COMPLETED
    assert len(rig.blobs.kept) == 1


def test_a_change_whose_files_cannot_be_kept_has_happened_all_the_same(brain: Brain, rig: Rig) -> None:
    tool_that(brain, Effect.LOCAL_WRITE, lambda: WithFiles("sent", [PICTURE]))
    rig.claim("draw", Effect.LOCAL_WRITE)
    rig.blobs.fails = ConnectionError("SQL is away")
    rig.run()
    assert rig.status is TraceStatus.COMPLETED
    assert rig.said == "sent\n[the files of this result are missing: SQL could not be reached]"


def test_a_read_whose_files_cannot_be_kept_is_run_again(brain: Brain, rig: Rig) -> None:
    tool_that(brain, Effect.READ_ONLY, lambda: PICTURE)
    rig.claim("draw")
    rig.blobs.fails = ConnectionError("SQL is away")
    with pytest.raises(ConnectionError):
        rig.run()
    assert rig.calls.settled == []


def test_a_file_over_the_limit_is_missing_and_the_model_reads_why(brain: Brain, rig: Rig) -> None:
    tool_that(brain, Effect.READ_ONLY, lambda: WithFiles("done", [File(b"x" * 1_001, name="big.txt")]))
    rig.claim("draw")
    rig.run()
    assert "'big.txt' has 1,001 bytes; a file may have 1,000" in rig.said
    assert rig.blobs.kept == {}
    assert rig.calls.settled[0].message.attachments == ()


def test_something_else_among_the_files_fails_the_call(brain: Brain, rig: Rig) -> None:
    files: Any = ["plan.png"]
    tool_that(brain, Effect.READ_ONLY, lambda: WithFiles("x", files))
    rig.claim("draw")
    rig.run()
    assert rig.status is TraceStatus.FAILED
    assert "WithFiles takes a list of File" in rig.said
