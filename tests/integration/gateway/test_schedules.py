"""/v1/schedules: turns that begin at a time, made and looked at over HTTP."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

from brainq.app.access import Verb
from brainq.app.wiring.sweeper import make_schedule_runner
from tests.integration.gateway.test_door import token
from tests.integration.gateway.test_turns import problem
from tests.support.gateways import GatewayThread
from tests.support.pump import Pump

URL = "/v1/schedules"
DAILY = {"name": "acme:daily", "session_id": "acme:{date}", "user_message": "hello", "when": "0 7 * * *"}
ONCE = {"name": "acme:once", "session_id": "acme:1", "user_message": "hello", "at": "2026-01-05T09:00:00+01:00"}
OF_THE_BRAIN: tuple[dict[str, Any], ...] = (
    {"model": "scripted:x"},
    {"provider": "scripted"},
    {"system_prompt": "obey"},
    {"skill_context": "obey"},
    {"cwd": "/"},
    {"limits": {"max_steps": 99}},
    {"options": {"temperature": 0.5}},
)
WRONG: tuple[tuple[dict[str, Any], str], ...] = (
    ({"when": None}, "when"),
    ({"at": "2031-01-05T09:00:00Z"}, "when"),
    ({"when": "often"}, "when"),
    ({"when": "0 0 30 2 *"}, "when"),
    ({"when": 5}, "when"),
    ({"when": None, "at": "2031-01-05T09:00:00"}, "at"),
    ({"when": None, "at": 1_700_000_000}, "at"),
    ({"when": None, "at": "1700000000"}, "at"),
    ({"when": None, "at": "0001-01-01T00:00:00+14:00"}, "at"),
    ({"when": None, "at": "9999-12-31T23:59:59-14:00"}, "at"),
    ({"zone": "Nowhere"}, "zone"),
    ({"zone": "Europe"}, "zone"),
    ({"zone": ""}, "zone"),
    ({"name": "a b"}, "name"),
    ({"session_id": "acme:{day}"}, "session_id"),
    ({"session_id": "acme:" + "{date}" * 20}, "session_id"),
    ({"attachments": []}, "attachments"),
    ({"in_s": 5}, "when"),
    ({"limits": {"max_steps": 0}}, "limits.max_steps"),
)
PAGE = Path(__file__).parents[3] / "docs/guides/scheduling.md"


def made(gateway: GatewayThread, headers: Any = None, **said: Any) -> dict[str, Any]:
    answer = gateway.http.post(URL, json=DAILY | said, headers=headers)
    assert answer.status_code == 200, answer.text
    return answer.json()


def names(page: dict[str, Any]) -> list[str]:
    return [each["name"] for each in page["schedules"]]


def test_what_is_due_becomes_a_turn_and_the_same_again_changes_nothing(gateway: GatewayThread, pump: Pump) -> None:
    body = ONCE | {"metadata": {"a": 1}}
    first = gateway.http.post(URL, json=body)
    assert first.json() == {"name": "acme:once", "paused": False, "next_at": "2026-01-05T08:00:00Z"}
    assert make_schedule_runner(pump.wiring).run() == 1
    assert gateway.http.post(URL, json=body).json()["next_at"] is None
    assert make_schedule_runner(pump.wiring).run() == 0
    pump.drain()
    seen = gateway.http.get(f"{URL}/acme:once").json()
    assert (seen["when"], seen["note"]) == ("at 2026-01-05 08:00:00 UTC", "")
    turn = seen["last_turn_id"]
    assert gateway.http.get(f"/v1/turns/{turn}/result").json()["text"] == "Read: hello"
    assert pump.client.handle(turn).request().metadata == {"a": 1}


def test_one_is_paused_resumed_set_anew_and_removed(gateway: GatewayThread) -> None:
    made(gateway)
    assert gateway.http.post(f"{URL}/acme:daily/pause").json()["paused"] is True
    assert gateway.http.post(f"{URL}/acme:daily/resume").json()["paused"] is False
    made(gateway, when=3600, zone="Europe/Berlin", on_running="queue", missed="skip")
    seen = gateway.http.get(f"{URL}/acme:daily").json()
    told = [seen[name] for name in ("when", "zone", "on_running", "missed", "session_id")]
    assert told == ["every 3600 s", "Europe/Berlin", "queue", "skip", "acme:{date}"]
    assert gateway.http.delete(f"{URL}/acme:daily").json() == {"changed": True}
    problem(gateway.http.delete(f"{URL}/acme:daily"), 404, "not-found")


def test_a_list_is_of_ones_own_page_by_page(gateway: GatewayThread, pump: Pump) -> None:
    all_, acme, evil = token(pump, "all", "*"), token(pump, "acme", "acme:"), token(pump, "evil", "evil:")
    for name in ("acme:c", "acme:a", "acme:b"):
        made(gateway, acme, name=name)
    made(gateway, evil, name="evil:a", session_id="evil:1")
    made(gateway, all_, name="acme:bb", session_id="evil:1")
    first = gateway.http.get(URL, params={"limit": 2}, headers=acme).json()
    rest = gateway.http.get(URL, params={"limit": 2, "after": first["next"]}, headers=acme).json()
    assert [names(first), names(rest), rest["next"]] == [["acme:a", "acme:b"], ["acme:c"], None]
    assert names(gateway.http.get(URL, headers=evil).json()) == ["evil:a"]
    assert len(names(gateway.http.get(URL, headers=all_).json())) == 5


def test_one_whose_session_is_anothers_is_not_there_whatever_its_name(gateway: GatewayThread, pump: Pump) -> None:
    all_, acme = token(pump, "all", "*"), token(pump, "acme", "acme:")
    made(gateway, all_, name="acme:x", session_id="evil:1", user_message="secret")
    requests = [("GET", ""), ("POST", "/pause"), ("POST", "/resume"), ("DELETE", "")]
    told = {
        name: [gateway.http.request(method, f"{URL}/{name}{end}", headers=acme) for method, end in requests]
        for name in ("acme:x", "acme:nobodys")
    }
    assert [answer.status_code for answer in told["acme:x"]] == [404] * 4
    assert [answer.text for answer in told["acme:x"]] == [answer.text for answer in told["acme:nobodys"]]
    problem(gateway.http.post(URL, json=DAILY | {"name": "acme:x"}, headers=acme), 404, "not-found")
    assert pump.client.find_schedule("acme:x").user_message == "secret"


def test_a_schedule_may_say_what_a_submit_may(gateway: GatewayThread, pump: Pump) -> None:
    headers = token(pump, "acme", "acme:", Verb.SUBMIT)
    refused = [(said, "configure") for said in OF_THE_BRAIN] + [({"on_busy": "replace"}, "steer")]
    for said, verb in refused:
        told = problem(gateway.http.post(URL, json=DAILY | said, headers=headers), 403, "forbidden")
        assert f"the verb '{verb}'" in told["detail"], said
    assert pump.client.schedules() == ()
    made(gateway, token(pump, "more", "acme:", Verb.SUBMIT, Verb.CONFIGURE), limits={"max_steps": 2})


def test_who_may_only_submit_is_not_shown_what_it_asks(gateway: GatewayThread, pump: Pump) -> None:
    made(gateway, token(pump, "all", "*"), user_message="secret")
    headers = token(pump, "acme", "acme:", Verb.SUBMIT)
    problem(gateway.http.get(f"{URL}/acme:daily", headers=headers), 403, "forbidden")
    assert set(gateway.http.post(f"{URL}/acme:daily/pause", headers=headers).json()) == {"name", "paused", "next_at"}


def test_what_is_wrong_is_422_and_names_its_field(gateway: GatewayThread, pump: Pump) -> None:
    for said, field in WRONG:
        told = problem(gateway.http.post(URL, json=DAILY | said), 422, "invalid-input")
        assert told["field"] == field, said
    assert pump.client.schedules() == ()


def test_the_examples_on_the_page_run(gateway: GatewayThread, pump: Pump) -> None:
    (block,) = re.findall(r"```sh\n(.*?)```", PAGE.read_text(), re.DOTALL)
    given = f"BASE={gateway.url}\nJSON='Content-Type: application/json'\n"
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", given + block.replace("curl -s", "curl -sf")],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert '"paused":true' in done.stdout
    assert done.stdout.endswith('{"changed":true}')
    assert pump.client.schedules() == ()


def test_a_tenant_has_as_many_as_the_deployment_allows(pump: Pump) -> None:
    settings = pump.settings.model_copy(update={"max_schedules_a_tenant": 1})
    with GatewayThread(settings, pump.wiring.brains) as gateway:
        made(gateway)
        answer = gateway.http.post(URL, json=DAILY | {"name": "acme:other"})
        problem(answer, 409, "schedules-full")
        made(gateway, name="other:daily", session_id="other:1")
        assert gateway.http.delete(f"{URL}/acme:daily").json() == {"changed": True}
        made(gateway, name="acme:other")
