"""A port that is taken is said before anything starts."""

from __future__ import annotations

import socket

import pytest

from brainq.app.devserver.ports import free_port, listener_at, require_free_port
from brainq.errors import SetupError


def test_a_free_port_is_fine() -> None:
    require_free_port("127.0.0.1", free_port(), "Flower", "--port")


def test_a_listener_is_where_it_is_wanted_or_at_a_free_port_and_keeps_it() -> None:
    with listener_at("127.0.0.1", 0) as first:
        port = first.getsockname()[1]
        with listener_at("127.0.0.1", port) as second:
            assert second.getsockname()[1] not in (0, port)
        with pytest.raises(SetupError, match="is taken"):
            require_free_port("127.0.0.1", port, "Flower", "--port")
    with listener_at("127.0.0.1", port) as again:
        assert again.getsockname()[1] == port


def test_a_taken_port_is_named_with_who_wants_it_and_what_to_do() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(
            SetupError, match=rf"Flower cannot listen on port {port} of 127\.0\.0\.1, which is taken; .*--port"
        ):
            require_free_port("127.0.0.1", port, "Flower", "--port")
