"""Recorded sessions of real models over the real wires, streamed, from model servers that nobody here wrote."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

import pytest

from examples.airline.aimock import CUT_EVERY, FAULTS, Aimock, fixtures_of, why_not
from examples.airline.model import steps_of
from examples.airline.playing import Report, replay, running_stage
from examples.airline.recorded import RecordedSession, RecordedStep, load_sessions, recorded_path
from examples.airline.replay import is_good
from examples.airline.wire import Wire, WireName
from tests.integration.engine.models.llmock_server import LlmockServer

RECORDED = recorded_path()
REASON = why_not()
pytestmark = pytest.mark.needs(RECORDED.is_file(), "recorded sessions")
needs_aimock = pytest.mark.needs(REASON is None, REASON)
either_wire = pytest.mark.parametrize("name", get_args(WireName))


def steps(sessions: list[RecordedSession]) -> list[RecordedStep]:
    return [step for session in sessions for turn in session.turns for step in steps_of(turn)]


def assert_as_recorded(report: Report, sessions: list[RecordedSession]) -> None:
    assert {checked.session.session_id: checked.problems for checked in report.mismatched} == {}
    assert report.turns == sum(len(session.turns) for session in sessions)
    assert report.doubled == 0
    assert report.unknown == 0


@needs_aimock
@pytest.mark.full
@pytest.mark.timeout(900)
@either_wire
def test_all_recorded_sessions_though_the_model_server_fails_and_cuts(name: WireName) -> None:
    sessions = load_sessions(RECORDED)
    with (
        Aimock(fixtures_of(sessions, cut_every=CUT_EVERY), FAULTS) as server,
        running_stage(RECORDED, wire=server.wire(name)) as stage,
    ):
        report = replay(stage, sessions, in_flight=64)
        answered, faults = server.answered(), server.faults()
    assert_as_recorded(report, sessions)
    assert min(faults[action] for action in ("rateLimit", "drop", "disconnect")) > 10, faults
    assert (answered["429"], answered["500"]) == (faults["rateLimit"], faults["drop"])
    cuts = answered["destroyed"] - faults["disconnect"]
    assert cuts > len(steps(sessions)) // CUT_EVERY // 2, answered
    # On a busy machine a worker may lose its lease, and the next owner asks for the step again.
    assert len(steps(sessions)) <= answered["200"] <= len(steps(sessions)) * 1.01, answered


@needs_aimock
@pytest.mark.full
@pytest.mark.timeout(600)
@either_wire
def test_a_step_that_another_worker_asks_again_gets_the_same_reply(name: WireName) -> None:
    sessions = load_sessions(RECORDED)[::4]
    with (
        Aimock(fixtures_of(sessions), ("--chaos-latency=300",)) as server,
        running_stage(RECORDED, kills=True, wire=server.wire(name)) as stage,
    ):
        report = replay(stage, sessions, in_flight=32, kill_every_s=5.0)
        answered = server.answered()
    assert is_good(report, 5.0), [checked.problems for checked in report.mismatched]
    assert answered["destroyed"] > 0, "no worker was killed while it was asking"


def sample() -> list[RecordedSession]:
    """Short sessions: some with several writes in one reply, one with an emoji, and a few of any kind."""
    sessions = sorted(load_sessions(RECORDED), key=lambda session: len(steps([session])))
    crowded = [session for session in sessions if session.writes_together > 1][:3]
    emoji = next(
        session
        for session in sessions
        if any(ord(character) > 0xFFFF for step in steps([session]) for character in step.text)
    )
    chosen = [*crowded, emoji, *sessions[: len(sessions) // 2 : 40]]
    return list({session.session_id: session for session in chosen}.values())


@pytest.fixture(scope="module")
def llmock() -> Iterator[LlmockServer]:
    server = LlmockServer(chunk_delay_ms=0)
    try:
        server.wait_ready()
        yield server
    finally:
        server.stop()


def behaviors(session: RecordedSession, *, cut: bool) -> list[dict[str, Any]]:
    """The session's replies. Its first request is told to wait, and then refused, or else answered in part only."""
    of_session = {"model": session.session_id}
    replies: list[dict[str, Any]] = [
        {
            "type": "reply",
            "text": step.text,
            "tool_calls": [{"name": call.tool, "arguments": call.arguments} for call in step.calls],
            "match": of_session,
        }
        for step in steps([session])
    ]
    wait = {"type": "fail", "status": 429, "retry_after": 0.3, "match": of_session}
    if not cut:
        return [wait, {"type": "fail", "status": 500, "match": of_session}, *replies]
    fault = {"type": "stream_fault", "kind": "truncate", "after_chunks": 2, "match": of_session}
    return [wait, fault, replies[0], *replies]  # the stream that is cut uses up a reply


@either_wire
def test_a_sample_from_a_server_that_judges_its_client(llmock: LlmockServer, name: WireName) -> None:
    sessions = sample()
    llmock.reset()
    for number, session in enumerate(sessions):
        llmock.behave(*behaviors(session, cut=number % 2 == 0))
    wire = Wire(name, llmock.base_url(name))
    with running_stage(RECORDED, wire=wire) as stage:
        report = replay(stage, sessions)
    assert_as_recorded(report, sessions)
    assert llmock.pending() == []
    assert llmock.findings() == []
    requests = llmock.requests()
    assert all(request["stream"] for request in requests)
    assert len(requests) == len(steps(sessions)) + 2 * len(sessions)
