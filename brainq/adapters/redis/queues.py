"""Take messages from the lists of queues, for workers that run without Celery."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import redis

from brainq.adapters.redis.connection import UNAVAILABLE_ERRORS, Client, pack_command

MAX_WAIT_S = 2.0  # under the client's socket timeout


class Message(NamedTuple):
    """A message, and the key of the list that it was taken from."""

    key: str
    text: str


class QueueReader:
    """A connection of its own, on which one thread at a time waits for messages. `wake` may be called by any thread."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._connection: Any = None
        self._id = 0

    def pop(self, keys: Sequence[str], wait_s: float) -> Message | None:
        """Take the oldest message of the first list that has one.

        Waits up to `wait_s` seconds, at most 2. Returns None if none came, or if it was woken. Raises redis' errors,
        after which the next call connects anew.
        """
        try:
            connection = self._connection or self._connect()
            command = ("BLMPOP", min(wait_s, MAX_WAIT_S), len(keys), *keys, "RIGHT")
            connection.send_packed_command((pack_command(command),), check_health=False)
            reply = connection.read_response()
        except BaseException:
            self.close()
            raise
        return None if reply is None else Message(reply[0], reply[1][0])

    def put_back(self, message: Message) -> None:
        """Return a message to its list, where it is the next one to be taken."""
        self._client.many([("RPUSH", message.key, message.text)])

    def wake(self) -> None:
        """End the wait of `pop`, if it waits at this moment and the service permits it."""
        if self._id:
            with suppress(*UNAVAILABLE_ERRORS):
                self._client.replies([("CLIENT", "UNBLOCK", self._id)])

    def close(self) -> None:
        """Close the connection. To be called by the thread that waits on it, or after that has ended."""
        connection, self._connection, self._id = self._connection, None, 0
        if connection is not None:
            connection.disconnect()

    def _connect(self) -> Any:
        pool: Any = self._client.connection_pool
        connection = pool.connection_class(**pool.connection_kwargs)
        connection.connect()
        connection.send_packed_command((pack_command(("CLIENT", "ID")),), check_health=False)
        with suppress(redis.ResponseError):  # a service that does not permit it lets a wait end by itself
            self._id = int(connection.read_response())
        self._connection = connection
        return connection
