"""A port that is taken is said before anything starts."""

from __future__ import annotations

import socket

import pytest

from brainq.devserver.probe import free_port, require_free_port
from brainq.errors import SetupError


def test_a_free_port_is_fine() -> None:
    require_free_port("127.0.0.1", free_port(), "Flower", "--port")


def test_a_taken_port_is_named_with_who_wants_it_and_what_to_do() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(SetupError, match=rf"port {port} on 127\.0\.0\.1 is taken, and Flower .*--port"):
            require_free_port("127.0.0.1", port, "Flower", "--port")
