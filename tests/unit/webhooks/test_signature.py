"""What is sent, byte for byte."""

from __future__ import annotations

import base64
import dataclasses
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from brainq.contracts.webhook import DeliveryClaim
from brainq.engine.people.webhook_signature import message_body, message_headers, sign

DELIVERY = DeliveryClaim(
    row=7,
    message_id="msg_1",
    event="turn.ended",
    turn_id="t1",
    data_json='{"turn_id": "t1", "note": "\\u00e9"}',
    tries=1,
    created_at=datetime(2026, 11, 22, 21, 0, 0, 123000, UTC),
    now=datetime(2026, 11, 22, 21, 0, 5, 900000, UTC),
)


def test_the_signature_is_that_of_the_specification() -> None:
    """The example that the specification's own libraries are tested with."""
    secret = base64.b64decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    signed = sign(secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", b'{"test": 2432232314}')
    assert signed == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_a_later_try_has_the_same_body_and_id_and_a_new_signature() -> None:
    later = dataclasses.replace(DELIVERY, tries=2, now=datetime(2026, 11, 22, 22, 0, tzinfo=UTC))
    assert message_body(DELIVERY) == message_body(later)
    assert message_body(DELIVERY) == (
        b'{"type":"turn.ended","timestamp":"2026-11-22T21:00:00.123Z","data":{"turn_id":"t1","note":"\\u00e9"}}'
    )
    first, second = (message_headers(one, message_body(one), b"s" * 32) for one in (DELIVERY, later))
    assert first["webhook-id"] == second["webhook-id"] == "msg_1"
    assert first["webhook-timestamp"] == str(int(DELIVERY.now.timestamp()))
    assert first["webhook-signature"] != second["webhook-signature"]


def test_the_pages_receiver_takes_what_is_sent_and_nothing_else() -> None:
    page = (Path(__file__).parents[3] / "docs/wires/webhooks.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", page, re.S)
    names: dict[str, Any] = {}
    exec(code, names)
    key = b"k" * 32
    secret = "whsec_" + base64.b64encode(key).decode()
    body = message_body(DELIVERY)
    headers = message_headers(DELIVERY, body, key)
    assert names["is_genuine"](headers, body, secret) is True
    rotated = {**headers, "webhook-signature": "v1,older " + headers["webhook-signature"]}
    assert names["is_genuine"](rotated, body, secret) is True
    for wrong in ({"webhook-id": "msg_2"}, {"webhook-timestamp": "1"}, {"webhook-signature": "v1,AAAA"}):
        assert names["is_genuine"]({**headers, **wrong}, body, secret) is False
    assert names["is_genuine"](headers, body + b" ", secret) is False
    assert names["is_genuine"](headers, body, "whsec_" + base64.b64encode(b"x" * 32).decode()) is False
