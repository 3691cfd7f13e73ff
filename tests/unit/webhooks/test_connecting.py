"""A connection has one deadline, whatever of it takes long."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from brainq.engine.people.webhook_post import open_connection

SHORT_S = 0.3
LONG_S = 30.0  # what each of the stages would take by itself


@pytest.fixture
def listening() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def takes_no_longer(host: str, port: int, trust: ssl.SSLContext | None = None) -> None:
    began = time.monotonic()
    with pytest.raises(TimeoutError):
        open_connection(host, port, trust, SHORT_S)
    assert time.monotonic() - began < LONG_S / 2


def test_a_name_that_nobody_answers_for(monkeypatch: pytest.MonkeyPatch) -> None:
    over = threading.Event()

    def never(*_: Any, **__: Any) -> Any:
        over.wait(LONG_S)
        return []

    monkeypatch.setattr(socket, "getaddrinfo", never)
    try:
        takes_no_longer("slow.example", 80)
    finally:
        over.set()


def test_addresses_that_do_not_answer_share_the_time(listening: socket.socket, monkeypatch: pytest.MonkeyPatch) -> None:
    port = listening.getsockname()[1]
    with ExitStack() as stack:
        full = stack.enter_context(socket.socket())
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for _ in range(3):  # its queue is full: who connects waits
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(full.getsockname())
        silent, good = (
            (socket.AF_INET, socket.SOCK_STREAM, 0, "", ("127.0.0.1", at)) for at in (full.getsockname()[1], port)
        )
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [silent] * 4)  # pyright: ignore[reportUnknownArgumentType, reportUnknownLambdaType]
        takes_no_longer("many.example", 80)
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [silent, good])  # pyright: ignore[reportUnknownArgumentType, reportUnknownLambdaType]
        with open_connection("many.example", 80, None, LONG_S / 10) as found:
            assert found.getpeername()[1] == port


def test_a_server_that_speaks_no_tls(listening: socket.socket) -> None:
    takes_no_longer("127.0.0.1", listening.getsockname()[1], ssl.create_default_context())


def test_what_fails_at_once_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody(*_: object, **__: object) -> None:
        raise socket.gaierror

    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with pytest.raises(ConnectionRefusedError):
        open_connection("127.0.0.1", port, None, LONG_S)
    monkeypatch.setattr(socket, "getaddrinfo", nobody)
    with pytest.raises(socket.gaierror):
        open_connection("nowhere.invalid", 80, None, LONG_S)
