"""JSON objects over a socket: four bytes of length, then the text."""

from __future__ import annotations

import json
import socket
import time
from typing import Any, cast

MAX_FRAME_BYTES = 64 * 1024 * 1024
_LENGTH_BYTES = 4


class FrameLostError(Exception):
    """The other side hung up, or sent something else than a frame."""


def send_frame(sock: socket.socket, body: dict[str, Any]) -> None:
    """Raises OSError if the other side is gone."""
    data = json.dumps(body).encode()
    sock.sendall(len(data).to_bytes(_LENGTH_BYTES, "big") + data)


def receive_frame(sock: socket.socket, ends_at: float | None = None) -> dict[str, Any]:
    """The next frame. Raises FrameLostError, and TimeoutError once monotonic time passes `ends_at`."""
    length = int.from_bytes(_receive(sock, _LENGTH_BYTES, ends_at), "big")
    if length > MAX_FRAME_BYTES:
        raise FrameLostError(f"a frame of {length} bytes; at most {MAX_FRAME_BYTES} are taken")
    body: object = json.loads(_receive(sock, length, ends_at))
    if not isinstance(body, dict):
        raise FrameLostError("a frame must be an object")
    return cast("dict[str, Any]", body)


def _receive(sock: socket.socket, length: int, ends_at: float | None) -> bytes:
    parts: list[bytes] = []
    missing = length
    while missing:
        if ends_at is not None:
            # 0 would mean non-blocking: what has come in time must still be read.
            sock.settimeout(max(0.001, ends_at - time.monotonic()))
        try:
            part = sock.recv(min(missing, 1 << 20))
        except TimeoutError:
            raise
        except OSError as error:
            raise FrameLostError(str(error)) from error
        if not part:
            raise FrameLostError("the other side hung up")
        parts.append(part)
        missing -= len(part)
    return b"".join(parts)
