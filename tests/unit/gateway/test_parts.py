"""The gateway's small parts: the table of verbs, problems, places, `Prefer`."""

from __future__ import annotations

import asyncio
import json
from typing import get_type_hints

import pytest
from fastapi.routing import APIRoute

from brainq import errors
from brainq.app.access import Caller, Verb
from brainq.client.options import SubmitOptions
from brainq.client.schedules import NOT_SCHEDULED
from brainq.contracts.turn import LimitsOverride
from brainq.errors import (
    ERROR_KINDS,
    BrainqError,
    ErrorKind,
    InvalidInput,
    NotFound,
    ScheduleNotFound,
    SessionBusy,
    SetupError,
    TurnNotFound,
    Unreachable,
    kind_of,
)
from brainq.gateway.app import COMMON_RESPONSES, OPENAI_ROUTERS, ROUTERS
from brainq.gateway.edge.access import VERBS
from brainq.gateway.edge.authentication import LOCAL_CALLER
from brainq.gateway.edge.limits import StreamLimiter
from brainq.gateway.edge.problems import REJECTIONS, RequestRejected, error_response, problem_of
from brainq.gateway.edge.request import CACHED_S, CachedCall
from brainq.gateway.rest.bodies import SubmitBody, TurnLimits
from brainq.gateway.rest.event_stream import requested_wait_s
from brainq.gateway.rest.schedules import ScheduleBody
from brainq.gateway.rest.turn_control import decider_name


def routes() -> set[str]:
    return {
        f"{method} {route.path_format}"
        for router in (*ROUTERS, *OPENAI_ROUTERS)
        for route in router.routes
        if isinstance(route, APIRoute)
        for method in route.methods or ()
    }


def test_every_route_names_its_verb_and_every_verb_a_route() -> None:
    assert routes() == set(VERBS)
    looking = {verb for route, verb in VERBS.items() if route.startswith("GET ")}
    assert looking == {Verb.READ, Verb.OPERATE, Verb.METRICS}
    assert all(verb is not Verb.READ for route, verb in VERBS.items() if not route.startswith("GET "))


def test_a_submit_takes_what_the_client_takes() -> None:
    # The key is a header, and what a turn is called is brainq's to say: an id that is taken would tell of another's.
    ours = set(SubmitBody.model_fields) - {"session_id", "user_message"}
    assert ours == set(get_type_hints(SubmitOptions)) - {"request_key", "turn_id"}
    scheduled = set(ScheduleBody.model_fields) & set(get_type_hints(SubmitOptions))
    assert scheduled == ours - set(NOT_SCHEDULED)
    assert set(TurnLimits.model_fields) == set(LimitsOverride.model_fields)


def test_every_error_of_brainq_has_a_kind_of_its_own() -> None:
    own = {error for error in vars(errors).values() if isinstance(error, type) and issubclass(error, BrainqError)}
    # What is not there is one kind: of whatever sort it is, an answer must not tell another tenant's from nobody's.
    not_there = {error for error in own if issubclass(error, NotFound)} - {NotFound}
    assert own - not_there == set(ERROR_KINDS)
    words = [kind.word for kind in (*ERROR_KINDS.values(), *REJECTIONS.values())]
    assert len(words) == len(set(words))
    told = {kind.status for kind in (*ERROR_KINDS.values(), *REJECTIONS.values())}
    assert told - set(COMMON_RESPONSES) == {409, 410}


@pytest.mark.parametrize("kind", [*ERROR_KINDS.values(), *REJECTIONS.values()], ids=lambda kind: kind.word)
def test_what_may_work_later_says_when(kind: ErrorKind) -> None:
    if kind.status in (429, 503):
        assert kind.retry_after_s


def test_an_error_without_a_kind_is_told_as_the_nearest_above() -> None:
    class Odd(errors.StaleTurn):
        pass

    assert kind_of(Odd("a", "b")) is ERROR_KINDS[errors.StaleTurn]


def test_a_problem_names_the_field_and_what_to_send_again() -> None:
    told = problem_of(InvalidInput("limits.max_steps", "too many; use 3"))
    assert (told.type, told.status, told.field) == ("urn:brainq:problem:invalid-input", 422, "limits.max_steps")
    assert told.detail == "limits.max_steps: too many; use 3"
    away = error_response(Unreachable("Redis at 10.0.0.7 is away", request_key="k1"))
    assert away.headers["retry-after"]
    assert away.headers["content-type"] == "application/problem+json"
    assert b'"request_key":"k1"' in away.body
    assert b"10.0.0.7" not in away.body
    assert problem_of(SessionBusy("s1", "turn-1")).live_turn_id == "turn-1"
    assert "secret" not in problem_of(SetupError("BRAINQ_SQL_URL: secret")).detail


def test_what_is_not_there_and_what_is_anothers_are_told_alike() -> None:
    bodies = {
        error_response(kind(why)).body
        for kind in (NotFound, TurnNotFound, ScheduleNotFound)
        for why in ("no turn 'a' in SQL", "not the caller's")
    }
    assert len(bodies) == 1


def test_a_problem_may_quote_what_no_codec_encodes() -> None:
    told = error_response(InvalidInput("options.\ud800", "there is no option '\ud800'")).body
    assert json.loads(bytes(told))["field"] == "options.\N{REPLACEMENT CHARACTER}"


def test_a_refusal_may_say_its_own_time() -> None:
    assert error_response(RequestRejected("too-many-requests", "slowly", retry_after_s=7)).headers["retry-after"] == "7"
    assert error_response(RequestRejected("unauthorized", "who?")).headers["www-authenticate"] == "Bearer"


async def _places() -> None:
    streams = StreamLimiter(limit=3, limit_a_caller=2)
    first, second = streams.enter("a"), streams.enter("a")
    with pytest.raises(RequestRejected) as of_caller:
        streams.enter("a")
    with streams.enter("b"), pytest.raises(RequestRejected) as of_all:
        streams.enter("c")
    assert (of_caller.value.kind.word, of_all.value.kind.word) == ("too-many-streams", "streams-full")
    first.release()
    first.release()
    assert len(streams) == 1
    streams.stop()
    assert second.stopping.is_set()
    with pytest.raises(RequestRejected) as stopping:
        streams.enter("a")
    assert stopping.value.kind.word == "stopping"


def test_places_are_counted_for_each_and_for_all() -> None:
    import asyncio

    asyncio.run(_places())


@pytest.mark.parametrize(
    ("prefer", "wait_s"),
    [
        ("", 0),
        ("wait=10", 10),
        ("respond-async, wait=10", 10),
        ("WAIT = 10; foo", 10),
        ('wait="7"', 7),
        ("wait=1000", 60),
        ("wait=-1", 0),
        ("wait=ten", 0),
        ("wait", 0),
        ("return=minimal", 0),
        ('x="wait=5"', 0),
        ("await=5", 0),
        ('a="x, wait=5", wait=6', 6),
        pytest.param("," * 1_000_000 + "wait=5", 5, id="as many as there is room for"),
    ],
)
def test_a_wish_to_wait_is_read_and_bounded(prefer: str, wait_s: float) -> None:
    assert requested_wait_s(prefer, 60.0) == wait_s


def test_who_asks_whether_it_is_ready_at_once_is_answered_by_one_look_that_is_believed_for_a_second() -> None:
    looks: list[int] = []
    now = [0.0]

    async def look() -> None:
        looks.append(len(looks))
        await asyncio.sleep(0)
        if len(looks) > 1:
            raise Unreachable("Redis is away")

    async def asked() -> None:
        readiness = CachedCall(look, lambda: now[0])
        await asyncio.gather(*(readiness.get() for _ in range(50)))
        now[0] += CACHED_S / 2
        await readiness.get()
        assert looks == [0]
        now[0] += CACHED_S
        failed = await asyncio.gather(*(readiness.get() for _ in range(50)), return_exceptions=True)
        assert {type(failure) for failure in failed} == {Unreachable}
        assert looks == [0, 1], "a failure is believed as long"

    asyncio.run(asked())


def test_the_record_says_which_caller_decided() -> None:
    caller = Caller("acme-web", ("acme:",), frozenset({Verb.DECIDE}))
    assert decider_name(caller, "ann") == "acme-web: ann"
    assert decider_name(caller, "") == "acme-web"
    assert decider_name(LOCAL_CALLER, "ann") == "ann"
