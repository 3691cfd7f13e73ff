"""What a tool leaves in its context."""

from __future__ import annotations

from brainq.contracts.turn import Citation
from brainq.tools.context import RunContext, SideOutputs
from brainq.tools.deadline import DeadlineToken


def context() -> RunContext:
    return RunContext(session_id="s", turn_id="turn", call_id="c2-1", token=DeadlineToken(60), attempt=2)


def test_the_idempotency_key_is_the_same_for_every_attempt() -> None:
    assert context().idempotency_key == "turn:c2-1"


def test_outputs_keep_their_order_and_no_repeats() -> None:
    run = context()
    run.cite_local("b.md", "B")
    run.cite_local("a.md")
    run.cite_local("b.md", "B")
    run.cite_web("https://example.org/", quote="q")
    run.rendered("/tmp/plot.png")
    run.rendered("/tmp/plot.png")
    run.block_tool()

    assert run.outputs() == SideOutputs(
        (Citation(source="b.md", title="B"), Citation(source="a.md")),
        (Citation(source="https://example.org/", quote="q"),),
        ("/tmp/plot.png",),
        True,
    )


def test_a_sealed_context_takes_nothing_more() -> None:
    run, other = context(), context()
    run.cite_local("kept")
    other.cite_web("https://example.org/")
    run.seal()

    run.cite_local("late")
    run.cite_web("late")
    run.rendered("late")
    run.block_tool()
    run.absorb(other.outputs())

    assert run.outputs() == SideOutputs((Citation(source="kept"),))


def test_outputs_of_another_process_are_added() -> None:
    run, other = context(), context()
    run.cite_local("a")
    other.cite_local("a")
    other.cite_local("b")
    other.block_tool()

    run.absorb(other.outputs())

    assert run.outputs() == SideOutputs((Citation(source="a"), Citation(source="b")), block_tool=True)
