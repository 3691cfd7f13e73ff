"""What a model's service bills of replies that broke off: counted, and held against the turn's limits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from brainq import Brain, Fallback, Limits, ScriptedProvider
from brainq.adapters.celery.names import TURNS_QUEUE
from brainq.contracts.model import ModelChunk, ModelRequest, TokenUsage
from brainq.contracts.status import Ending, StopReason
from brainq.contracts.turn import TurnResult
from brainq.engine.models.costs import cost_usd
from brainq.engine.models.scripted import fails, says
from tests.integration.engine.models.wire_server import Exchange, WireServer
from tests.support.pump import Pump

MODEL = "claude-sonnet-4-6"
PIECE = "so it goes on and on and on, word by word, until it is cut. "
PIECES = 400
MOST_PIECES = 20_000
WRITTEN = PIECES * len(PIECE) // 4
INPUT = {"input_tokens": 900, "cache_read_input_tokens": 4_000, "cache_creation_input_tokens": 100}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[WireServer]:
    with WireServer() as made:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", made.url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
        yield made


def delta(index: int, **given: str) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": given}


def cut(exchange: Exchange) -> None:
    """Thinks, speaks, writes a call, each for as long; then the connection is gone."""
    exchange.begin()
    exchange.event({"type": "message_start", "message": {"model": MODEL, "usage": INPUT | {"output_tokens": 1}}})
    blocks: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({"type": "thinking", "thinking": ""}, delta(0, type="thinking_delta", thinking=PIECE)),
        ({"type": "text", "text": ""}, delta(1, type="text_delta", text=PIECE)),
        ({"type": "tool_use", "id": "t", "name": "write"}, delta(2, type="input_json_delta", partial_json=PIECE)),
    ]
    for index, (block, piece) in enumerate(blocks):
        exchange.event({"type": "content_block_start", "index": index, "content_block": block})
        for _ in range(PIECES):
            exchange.event(piece)
    exchange.close_connection = True


def before_its_first_word(exchange: Exchange) -> None:
    exchange.begin()
    exchange.event({"type": "message_start", "message": {"model": MODEL, "usage": INPUT}})
    exchange.close_connection = True


def whole(exchange: Exchange) -> None:
    exchange.begin()
    exchange.event({"type": "message_start", "message": {"model": MODEL, "usage": INPUT}})
    exchange.event(delta(0, type="text_delta", text="Well."))
    exchange.event({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}})
    exchange.event({"type": "message_stop"})
    exchange.finish()


def asked(pumps: Callable[..., Pump], model: Any = f"anthropic:{MODEL}", **limits: Any) -> TurnResult:
    pump = pumps(Brain("writer", model, limits=Limits(**limits)))
    handle = pump.submit("s1", "Write it.")
    result = pump.finish(handle)
    facts = pump.wiring.store.spends.of_turn(handle.turn_id)
    assert facts == list(result.spends), "SQL has them as the result does"
    if result.cost_usd is not None:
        assert result.cost_usd == pytest.approx(sum(spend.cost_usd or 0 for spend in result.spends))
    return result


def test_what_was_streamed_and_what_the_service_had_told_is_charged(
    server: WireServer, pumps: Callable[..., Pump]
) -> None:
    server.answers = [cut, whole]
    result = asked(pumps)
    lost, step = result.spends
    assert (lost.kind, lost.model, lost.estimated) == ("lost", MODEL, True)
    assert (step.kind, step.estimated) == ("step", False)
    assert (lost.input_tokens, lost.cache_read_tokens, lost.cache_creation_tokens) == (5_000, 4_000, 100)
    assert 3 * WRITTEN <= lost.output_tokens <= 3.5 * WRITTEN, "thoughts, text and the call's arguments"
    usage = TokenUsage(
        input_tokens=5_000, output_tokens=lost.output_tokens, cache_read_tokens=4_000, cache_creation_tokens=100
    )
    assert lost.cost_usd == pytest.approx(cost_usd("anthropic", MODEL, usage))


def test_after_a_lost_attempt_no_other_is_begun_that_could_pass_the_limit(
    server: WireServer, pumps: Callable[..., Pump]
) -> None:
    server.answers = [cut, cut, cut]
    result = asked(pumps, max_cost_usd=0.05)
    assert (result.ending, result.stop_reason) == (Ending.COMPLETED, StopReason.MAX_COST)
    assert len(server.bodies) == len(result.spends) == 1, "two attempts more would have been billed"
    assert result.cost_usd is not None
    assert result.cost_usd > 0.05, "the one call by which it is passed is known"


def test_a_limit_of_tokens_is_held_in_the_same_way(server: WireServer, pumps: Callable[..., Pump]) -> None:
    server.answers = [cut, cut, cut]
    result = asked(pumps, max_total_tokens=6_000)
    assert (result.stop_reason, len(server.bodies)) == (StopReason.MAX_TOTAL_TOKENS, 1)


def test_tries_inside_one_attempt_are_charged_and_held_to_the_limit_too(
    server: WireServer, pumps: Callable[..., Pump]
) -> None:
    server.answers = [before_its_first_word, before_its_first_word, whole]
    result = asked(pumps)
    assert [(spend.kind, spend.input_tokens) for spend in result.spends] == [
        ("lost", 5_000),
        ("lost", 5_000),
        ("step", 5_000),
    ]
    server.answers = [before_its_first_word] * 8
    server.bodies.clear()
    result = asked(pumps, max_total_tokens=11_000)
    assert result.stop_reason is StopReason.MAX_TOTAL_TOKENS
    assert (len(server.bodies), len(result.spends)) == (3, 3), "eight tries would have been billed"


def test_the_last_attempt_that_breaks_off_is_charged_with_the_ending(pumps: Callable[..., Pump]) -> None:
    result = asked(pumps, ScriptedProvider([fails("stream", after_text=PIECE * 40)], name="own"))
    assert (result.ending, result.stop_reason) == (Ending.FAILED, StopReason.MODEL_ERROR)
    written = len(PIECE) * 40 // 4
    assert [(spend.model, spend.output_tokens, spend.estimated) for spend in result.spends] == [
        ("own", written, True)
    ] * 3


def test_a_members_own_name_stands_where_it_was_lost(pumps: Callable[..., Pump]) -> None:
    first = ScriptedProvider([fails("stream", after_text=PIECE)], name="one")
    result = asked(pumps, Fallback([first, ScriptedProvider([says("Well.")], name="two")]))
    assert [(spend.kind, spend.model) for spend in result.spends] == [("lost", "one"), ("step", "two")]


def test_a_member_that_was_lost_before_another_answered_in_the_same_attempt_is_charged(
    pumps: Callable[..., Pump],
) -> None:
    first = ScriptedProvider([fails("timeout")], name="one")
    result = asked(pumps, Fallback([first, ScriptedProvider([says("Well.")], name="two")]))
    assert [(spend.kind, spend.model, spend.estimated) for spend in result.spends] == [
        ("lost", "one", True),
        ("step", "two", False),
    ]


def test_what_was_told_while_it_was_written_is_charged_by_whoever_takes_the_turn(pumps: Callable[..., Pump]) -> None:
    told: list[str] = []

    class LosesItsTurn(ScriptedProvider):
        """Its turn is cancelled, and taken by another worker, while it speaks."""

        def generate_stream(self, request: ModelRequest) -> Iterator[ModelChunk]:
            turn = first.wiring.state.keys.turn("s1", request.turn_id)
            for _ in range(MOST_PIECES):
                yield ModelChunk(text=PIECE)
                known: Any = first.wiring.state.redis.hget(turn, "under_way")
                if "output_tokens" in known:
                    told.append(known)
                    break
            second.client.cancel(request.session_id, request.turn_id)
            second.drain(TURNS_QUEUE)
            yield ModelChunk(text=PIECE)

    brain = Brain("talks", LosesItsTurn([], name="own"))
    first, second = pumps(brain, owner="one"), pumps(brain, owner="two")
    result = first.finish(first.submit("s1", "Talk."))
    assert told, "it was lost in the middle"
    assert result.ending is Ending.CANCELLED
    (lost,) = result.spends
    assert (lost.kind, lost.model, lost.estimated) == ("lost", "own", True)
    assert lost.output_tokens >= len(PIECE) // 4


@pytest.mark.parametrize("has_spoken", [False, True])
def test_a_request_whose_worker_is_gone_is_charged_as_it_was_reserved(
    pumps: Callable[..., Pump], monkeypatch: pytest.MonkeyPatch, has_spoken: bool
) -> None:
    def price(provider: str, model: str, usage: TokenUsage) -> float:
        return 0.001 * usage.total

    class Gone(ScriptedProvider):
        """Another worker takes its turn while it answers, before or after its first words were told."""

        def generate_stream(self, request: ModelRequest) -> Iterator[ModelChunk]:
            turn = first.wiring.state.keys.turn("s1", request.turn_id)
            before: Any = first.wiring.state.redis.hget(turn, "under_way")
            for _ in range(MOST_PIECES if has_spoken else 0):
                yield ModelChunk(text=PIECE)
                if first.wiring.state.redis.hget(turn, "under_way") != before:
                    break
            second.client.cancel(request.session_id, request.turn_id)
            second.drain(TURNS_QUEUE)
            yield ModelChunk(text=PIECE)

    monkeypatch.setattr("brainq.app.wiring.machines.cost_usd", price)
    brain = Brain("talks", Gone([], name="own"), limits=Limits(max_output_tokens=1_000_000))
    first, second = pumps(brain, owner="one"), pumps(brain, owner="two")
    first.wiring.beats.stop()  # what it reports by its heartbeats would come before its first words
    (lost,) = first.finish(first.submit("s1", "Talk.")).spends
    assert (lost.kind, lost.model, lost.output_tokens, lost.estimated) == ("lost", "own", 1_000_000, True)
    assert lost.input_tokens > 0
    assert lost.cost_usd == pytest.approx(0.001 * lost.usage.total)
