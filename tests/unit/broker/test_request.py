"""HiddenRequest against the request Celery would make."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from celery import Celery

from brainq.broker.celery57.consumer import HIDDEN, HiddenRequest


def work(text: str) -> None: ...


def test_neither_report_nor_repr_shows_the_arguments() -> None:
    app = Celery("t", set_as_current=False)
    task = app.task(work, name="t", shared=False)
    headers = {"task": "t", "id": "i", "argsrepr": "secret", "kwargsrepr": "secret"}
    body = [[], {"text": "secret"}, {}]
    message = SimpleNamespace(
        headers=headers, body="x", payload=body, delivery_info={}, properties={}, content_type="", content_encoding=""
    )
    request: Any = HiddenRequest(message, app=app, task=task)
    for safe in (True, False):
        info = request.info(safe=safe)
        assert "secret" not in str({**info, "delivery_info": None})
        assert info["args"] == info["kwargs"] == HIDDEN
    assert "secret" not in repr(request)
    assert request.kwargs == {"text": "secret"}
