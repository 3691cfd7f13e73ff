"""Images and files over HTTP: sent as base64, fetched by the turn they belong to."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from brainq.contracts.file import File
from tests.integration.gateway.test_turns import problem, submit
from tests.support.blobs import png
from tests.support.gateways import GatewayThread
from tests.support.pump import Pump

PICTURE = File(png(), name="plan ü.png")
SHA = PICTURE.attachment.sha256
SENT = {"data": base64.b64encode(png()).decode(), "name": PICTURE.name}


def test_what_was_sent_can_be_fetched_and_never_runs_in_a_browser(gateway: GatewayThread, pump: Pump) -> None:
    page = {"data": f"data:text/html;base64,{base64.b64encode(b'<script>').decode()}", "name": "a.html"}
    turn_id = submit(gateway, attachments=[SENT, page])
    pump.finish(pump.client.handle(turn_id))
    said = gateway.http.get(f"/v1/turns/{turn_id}/transcript").json()["messages"]
    sent, html = said[0]["attachments"]
    assert (sent["name"], sent["media_type"], sent["size"]) == (PICTURE.name, "image/png", len(png()))

    image = gateway.http.get(f"/v1/turns/{turn_id}/files/{sent['sha256']}")
    assert (image.content, image.headers["content-type"]) == (png(), "image/png")
    assert image.headers["content-disposition"] == "inline; filename*=UTF-8''plan%20%C3%BC.png"
    other = gateway.http.get(f"/v1/turns/{turn_id}/files/{html['sha256']}")
    assert other.content == b"<script>"
    assert other.headers["content-disposition"].startswith("attachment")
    for answer in (image, other):
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["content-security-policy"].startswith("sandbox")
    (turn,) = gateway.http.get("/v1/sessions/s1/history").json()["turns"]
    assert [one["sha256"] for one in turn["attachments"]] == [sent["sha256"], html["sha256"]]


def test_a_file_is_its_turns_alone(gateway: GatewayThread, pump: Pump) -> None:
    turn_id = submit(gateway, attachments=[SENT])
    other = submit(gateway, session="s2")
    unknown = problem(gateway.http.get(f"/v1/turns/{other}/files/{'0' * 64}"), 404, "not-found")
    there = problem(gateway.http.get(f"/v1/turns/{other}/files/{SHA}"), 404, "not-found")
    assert there["detail"].replace(SHA, "") == unknown["detail"].replace("0" * 64, "")
    assert gateway.http.get(f"/v1/turns/{turn_id}/files/{SHA}").status_code == 200
    for open_turn in (turn_id, other):
        pump.finish(pump.client.handle(open_turn))


@pytest.mark.parametrize(
    ("attachments", "said"),
    [
        (
            [{"data": "https://169.254.169.254/latest"}],
            "attachments[0].data: it is an address",
        ),
        ([{"data": "aGk=", "media_type": "image/png"}], "attachments[0].media_type: it is image/png"),
        ([{"sha256": SHA, "data": "aGk="}], "sha256"),
    ],
)
def test_what_is_refused(gateway: GatewayThread, attachments: Any, said: str) -> None:
    body = {"session_id": "s1", "user_message": "look", "attachments": attachments}
    answer = gateway.http.post("/v1/turns", json=body)
    assert answer.status_code == 422, answer.text
    assert said in answer.text


def test_input_may_have_files(gateway: GatewayThread, pump: Pump) -> None:
    turn_id = submit(gateway)
    answer = gateway.http.post(f"/v1/turns/{turn_id}/input", json={"attachments": [SENT]})
    assert answer.status_code in (200, 202), answer.text
    pump.finish(pump.client.handle(turn_id))
    said = gateway.http.get(f"/v1/turns/{turn_id}/transcript").json()["messages"]
    assert [one["sha256"] for message in said for one in message["attachments"]] == [SHA]
