"""The OpenAPI document is whole, and the gateway keeps to it, whatever is sent."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_schema_conformance,
    status_code_conformance,
)

from brainq.gateway.wires.openai.errors import is_openai_path
from tests.integration.gateway.test_turns import submit
from tests.support.gateways import GatewayThread
from tests.support.pump import Pump
from tests.support.pumping import pumping
from tests.support.verbs import DOCUMENTED_VERBS
from tests.support.world import World

CHECKS: list[Any] = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    negative_data_rejection,
]
SAMPLE = ("POST /v1/turns",)


def test_no_request_names_a_webhook(gateway: GatewayThread) -> None:
    document = gateway.http.get("/v1/openapi.json").json()
    operations = [operation for methods in document["paths"].values() for operation in methods.values()]
    text = json.dumps([(one.get("parameters"), one.get("requestBody")) for one in operations])
    seen: set[str] = set()
    while new := set(re.findall(r"#/components/schemas/(\w+)", text)) - seen:
        seen |= new
        text += json.dumps([document["components"]["schemas"][name] for name in new])
    assert len(seen) > 5
    assert "webhook" not in text.lower()


def test_the_document_has_every_route_with_its_problems_and_who_may(gateway: GatewayThread) -> None:
    document = gateway.http.get("/v1/openapi.json").json()
    operations = {
        f"{method.upper()} {path}": operation
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    }
    assert set(operations) == set(DOCUMENTED_VERBS) | {"GET /healthz", "GET /readyz"}
    schemas = document["components"]["schemas"]
    assert {"Problem", "TurnEvent", "TurnResult", "Approval", "SubmitBody", "Receipt"} <= set(schemas)
    assert "HTTPValidationError" not in schemas
    assert document["components"]["securitySchemes"]["token"]["scheme"] == "bearer"
    for route, operation in operations.items():
        assert operation["security"] == ([{"token": []}] if route in DOCUMENTED_VERBS else []), route
        assert operation["description"], route
        for status in ("401", "403", "404", "422", "429", "500", "503") if route in DOCUMENTED_VERBS else ("503",):
            content = operation["responses"][status]["content"]
            kind, shape = (
                ("application/json", "ErrorBody")
                if is_openai_path(route.split(" ")[1])
                else ("application/problem+json", "Problem")
            )
            assert content == {kind: {"schema": {"$ref": f"#/components/schemas/{shape}"}}}, (route, status)


def test_a_page_has_a_bound_that_suits_an_answer(gateway: GatewayThread) -> None:
    paths = gateway.http.get("/v1/openapi.json").json()["paths"]
    limits = {
        path: parameter["schema"]
        for path, methods in paths.items()
        for parameter in methods.get("get", {}).get("parameters", ())
        if parameter["name"] == "limit"
    }
    assert {path for path in paths if path.endswith(("/transcript", "/calls", "/history"))} <= set(limits)
    for path, schema in limits.items():
        most = 100 if is_openai_path(path) else 1_000  # OpenAI's own
        assert (schema["default"] <= 200, schema["maximum"]) == (True, most), path


def hold_to_its_word(url: str, turn_id: str, examples: int, routes: Collection[str] = ()) -> int:
    """Ask all routes, or these, `examples` times as the document says and as often as it forbids; how many were 2xx."""
    document = httpx.get(f"{url}/v1/openapi.json", verify=False).json()
    for methods in document["paths"].values():
        for operation in methods.values():
            operation["security"] = []  # this gateway has no token yet, and asks nobody
    schema = schemathesis.openapi.from_dict(document)
    accepted = 0

    def asked(operation: Any, mode: GenerationMode) -> Callable[[], None]:
        calm = settings(
            max_examples=examples,
            deadline=None,
            database=None,
            phases=(Phase.generate,),
            suppress_health_check=(HealthCheck.too_slow, HealthCheck.filter_too_much),
            derandomize=True,
        )

        @calm
        @given(case=operation.as_strategy(generation_mode=mode))
        def ask(case: Any) -> None:
            nonlocal accepted
            if mode is GenerationMode.POSITIVE and "turn_id" in case.path_parameters:
                case.path_parameters["turn_id"] = turn_id  # one that is there, of a session that is
            answer = case.call(base_url=url, timeout=120)
            accepted += answer.status_code < 300
            # 413 refuses, too, which schemathesis does not count.
            refused = answer.status_code == httpx.codes.REQUEST_ENTITY_TOO_LARGE
            checks = [check for check in CHECKS if not (refused and check is negative_data_rejection)]
            case.validate_response(answer, checks=checks)

        return ask

    for found in schema.get_all_operations():
        operation: Any = found.ok()  # pyright: ignore[reportAttributeAccessIssue]
        if routes and f"{operation.method.upper()} {operation.path}" not in routes:
            continue
        asked(operation, GenerationMode.POSITIVE)()
        # Of a route that takes no parameter and no body there is nothing that the document forbids.
        with suppress(Unsatisfiable):
            asked(operation, GenerationMode.NEGATIVE)()
    return accepted


def test_a_sample_of_what_may_be_sent_is_answered_as_the_document_says(
    gateways: Callable[..., GatewayThread], pump: Pump
) -> None:
    gateway = gateways(requests_s=10_000, wait_s=0.05, heartbeat_s=0.05)
    turn_id = submit(gateway)
    pump.finish(pump.client.handle(turn_id))
    with pumping(pump):
        assert hold_to_its_word(gateway.url, turn_id, examples=2, routes=SAMPLE) > 0


@pytest.mark.full
def test_whatever_is_sent_is_answered_as_the_document_says_while_the_pools_run(tmp_path: Path) -> None:
    world = World(tmp_path)
    try:
        world.start()
        handle = world.client.submit("s1", "hello", limits={"max_steps": 1})
        with GatewayThread(
            world.settings, world.wiring.brains, requests_s=10_000, wait_s=0.5, body_bytes=100_000_000
        ) as gateway:
            httpx.post(f"{gateway.url}/v1/turns/{handle.turn_id}/cancel").raise_for_status()
            world.done(handle)
            assert hold_to_its_word(gateway.url, handle.turn_id, examples=25) > 100
    finally:
        world.stop()
