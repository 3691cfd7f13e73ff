"""Requests to a gateway that fails: what is repeated, what is not, and what the caller gets."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from brainq import AsyncHttpClient, GatewayRefused, HttpClient, InvalidInput, Unreachable
from brainq.client.http import client as blocking
from brainq.client.http import sending
from brainq.client.http.refusals import read_refusal
from brainq.client.http.sending import BlockingTransport
from brainq.errors import (
    ERROR_KINDS,
    BudgetSpent,
    CellUnreachable,
    NotFound,
    QueueFull,
    SessionBusy,
    SetupError,
    TenantMoving,
    TurnNotFound,
)
from brainq.gateway.edge.problems import REJECTIONS, error_response, problem_of

Answer = httpx.Response | Exception
GONE = httpx.ConnectError("refused")
CUT = httpx.RemoteProtocolError("cut off")


def problem(word: str, status: int, **more: Any) -> httpx.Response:
    headers = more.pop("headers", {})
    body = {"type": f"urn:brainq:problem:{word}", "title": word, "status": status, "detail": f"{word}!"} | more
    return httpx.Response(status, json=body, headers=headers)


class Script:
    """A gateway that answers what it is told to, and keeps what it was asked."""

    def __init__(self, *answers: Answer) -> None:
        self._answers = list(answers)
        self.asked: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request)
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def bodies(self) -> list[Any]:
        return [json.loads(request.content) for request in self.asked]


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What the client would have slept, on a clock that goes on by it."""
    slept: list[float] = []

    async def sleep(self: BlockingTransport, pause_s: float) -> None:
        slept.append(pause_s)

    monkeypatch.setattr(BlockingTransport, "sleep", sleep)
    monkeypatch.setattr(sending, "monotonic", lambda: sum(slept))
    return slept


def client_of(script: Script, **options: Any) -> HttpClient:
    return HttpClient("http://gateway", "secret", transport=httpx.MockTransport(script), **options)


ACCEPTED = {"turn_id": "t-1", "session_id": "s1", "created": True}


def accepted(**more: Any) -> httpx.Response:
    return httpx.Response(202, json=ACCEPTED | more)


@pytest.mark.parametrize(
    "failure",
    [
        GONE,
        CUT,
        httpx.ReadTimeout("late"),
        httpx.Response(502),
        httpx.Response(503, text="<html>"),
        httpx.Response(504),
        problem("unreachable", 503),
        problem("stopping", 503),
        problem("tenant-moving", 503),
        problem("too-many-requests", 429),
    ],
    ids=str,
)
def test_a_submit_is_repeated_under_one_key(failure: Answer) -> None:
    script = Script(failure, accepted(created=False))
    handle = client_of(script).submit("s1", "Hello")
    first, second = script.asked
    assert first.headers["Idempotency-Key"] == second.headers["Idempotency-Key"] != ""
    assert first.content == second.content
    assert first.headers["Authorization"] == "Bearer secret"
    assert handle.created  # nobody else has this key


def test_a_key_of_ones_own_is_sent_and_says_who_was_first() -> None:
    script = Script(CUT, accepted(created=False))
    assert not client_of(script).submit("s1", "Hello", request_key="mine").created
    assert {request.headers["Idempotency-Key"] for request in script.asked} == {"mine"}


@pytest.mark.parametrize("failure", [CUT, httpx.ReadTimeout("late"), problem("unreachable", 503), httpx.Response(502)])
def test_what_may_not_be_repeated_is_not_if_it_may_have_been_done(failure: Answer) -> None:
    script = Script(failure)
    client = client_of(script)
    with pytest.raises(Unreachable, match=r"not known: look at client\.budgets"):
        client.budgets.raise_by("all", "day", 5)
    assert len(script.asked) == 1


@pytest.mark.parametrize("failure", [GONE, problem("stopping", 503), problem("too-many-streams", 429)])
def test_what_was_surely_not_done_is_repeated(failure: Answer) -> None:
    script = Script(failure, httpx.Response(200, json={"cap_usd": 7}))
    assert client_of(script).budgets.raise_by("all", "day", 5) == 7
    assert len(script.asked) == 2


def test_an_interrupt_is_repeated_only_for_the_same_turn() -> None:
    def session(live: str | None) -> httpx.Response:
        return httpx.Response(200, json={"live": live, "waiting": [], "is_paused": False, "flags": []})

    done = Script(session("t-1"), CUT, session("t-2"))
    assert client_of(done).session("s1").interrupt() == "t-1"
    assert [request.method for request in done.asked] == ["GET", "POST", "GET"]
    again = Script(session("t-1"), CUT, session("t-1"), httpx.Response(200, json={"turn_id": "t-1"}))
    assert client_of(again).session("s1").interrupt() == "t-1"


def test_input_has_an_id_by_which_it_is_repeated() -> None:
    receipt = {"client_message_id": "m", "session_id": "s1", "turn_id": "t-1", "state": "accepted"}
    script = Script(CUT, httpx.Response(200, json=receipt))
    client_of(script).session("s1").steer("Red.")
    first, second = script.bodies()
    assert first == second
    assert first["client_message_id"]


def test_retry_after_is_kept_to(pauses: list[float]) -> None:
    wait = {"Retry-After": "7"}
    script = Script(problem("unreachable", 503, headers=wait), problem("stopping", 503, headers=wait), accepted())
    client_of(script).submit("s1", "Hello")
    assert pauses == [7, 7]


def test_pauses_grow_and_end_with_the_clients_patience(pauses: list[float]) -> None:
    script = Script(*[GONE] * 50)
    with pytest.raises(Unreachable) as away:
        client_of(script, retry_s=10).submit("s1", "Hello")
    assert pauses[:6] == [0.1, 0.2, 0.4, 0.8, 1.6, 2.0]
    assert 8 <= sum(pauses) <= 10
    key = script.asked[0].headers["Idempotency-Key"]
    assert away.value.request_key == key
    assert key in str(away.value)
    assert "http://gateway" in str(away.value)


def test_the_last_refusal_is_what_the_caller_gets() -> None:
    script = Script(*[problem("tenant-moving", 503)] * 50)
    with pytest.raises(TenantMoving):
        client_of(script, retry_s=1).fleet()
    with pytest.raises(Unreachable) as away:
        client_of(Script(problem("unreachable", 503, request_key="k")), retry_s=0).fleet()
    assert away.value.request_key == "k"


@pytest.mark.parametrize("word", ["forbidden", "unauthorized", "body-too-large", "wrong-host", "bug", "no-such-route"])
def test_what_only_a_gateway_refuses_is_not_repeated(word: str) -> None:
    status = REJECTIONS[word].status
    script = Script(problem(word, status))
    with pytest.raises(GatewayRefused) as refused:
        client_of(script).fleet()
    assert (refused.value.word, refused.value.status, str(refused.value)) == (word, status, f"{word}!")


def test_an_answer_of_something_else_is_named() -> None:
    with pytest.raises(GatewayRefused, match="not from a brainq gateway") as refused:
        client_of(Script(httpx.Response(404, text="<html>nginx"))).handle("t-1")
    assert (refused.value.status, refused.value.word) == (404, "")


def test_a_certificate_that_is_not_trusted_is_no_outage() -> None:
    script = Script(httpx.ConnectError("[SSL: CERTIFICATE_VERIFY_FAILED] self-signed"))
    with pytest.raises(SetupError, match="cafile") as refused:
        client_of(script).fleet()
    assert not isinstance(refused.value, Unreachable)


@pytest.mark.parametrize("url", ["gateway", "ftp://gateway", ""])
def test_an_address_is_http(url: str) -> None:
    with pytest.raises(InvalidInput, match="url"):
        HttpClient(url)


SAMPLES = (
    QueueFull("10 turns wait", "BRAINQ_MAX_QUEUED", 10),
    SessionBusy("s1", "t-1"),
    BudgetSpent("all/day", datetime(2031, 1, 1, tzinfo=UTC)),
    InvalidInput("limits.max_steps", "it is 0; use 1 or more"),
    TurnNotFound("no turn"),
)


@pytest.mark.parametrize("error", SAMPLES, ids=lambda error: type(error).__name__)
def test_an_error_crosses_http_with_its_attributes(error: Any) -> None:
    response = error_response(error)
    body = bytes(response.body)
    refusal = read_refusal(response.status_code, response.headers.get("Retry-After", ""), body, type(error))
    assert type(refusal.error) is type(error)
    assert not refusal.is_passing
    if not isinstance(error, TurnNotFound):
        assert str(refusal.error) == str(error)
    for name in ("setting", "live_turn_id", "budget", "ends_at", "field", "problem"):
        if hasattr(error, name):
            assert getattr(refusal.error, name) == getattr(error, name)


@pytest.mark.parametrize("cls", ERROR_KINDS)
def test_every_kind_of_error_has_its_class(cls: Any) -> None:
    error = cls.__new__(cls)
    error.args = ("it went wrong",)
    for name in ("field", "problem", "request_key", "client_message_id", "live_turn_id", "state", "setting", "build"):
        setattr(error, name, "")
    for name in ("budget", "used_by", "was_given"):
        setattr(error, name, "")
    error.ends_at = "2031-01-01T00:00:00+00:00"
    shown = problem_of(error)
    body = shown.model_dump_json(exclude_none=True).encode()
    found = read_refusal(shown.status, "", body, NotFound).error
    expected = Unreachable if cls is CellUnreachable else cls
    assert type(found) is expected


def test_a_verb_that_waits_for_a_loop_is_found() -> None:
    with pytest.raises(RuntimeError, match="event loop"):
        blocking.finish(asyncio.sleep(0))


def test_a_client_on_a_loop_repeats_too() -> None:
    script = Script(problem("stopping", 503, headers={"Retry-After": "0"}), accepted())

    async def talk() -> str:
        async with AsyncHttpClient("http://gateway", transport=httpx.MockTransport(script)) as client:
            return (await client.submit("s1", "Hello")).turn_id

    assert asyncio.run(talk()) == "t-1"
