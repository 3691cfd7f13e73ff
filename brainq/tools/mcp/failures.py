"""How a call of a server's tool can go wrong, by what is known of its effect."""

from __future__ import annotations


class ServerFailure(Exception):
    """`str(failure)` is told to the model; it holds nothing of the server's configuration."""

    retryable = False


class Answered(ServerFailure):
    """The server itself said that the call failed, and how."""


class NotOpen(ServerFailure):
    """There is no connection: the server did not start, or may not be started again yet."""

    retryable = True


class NeverRan(ServerFailure):
    """The server refused the request before the tool began. `retryable`: another session may take it."""

    def __init__(self, words: str, *, retryable: bool = False) -> None:
        super().__init__(words)
        self.retryable = retryable


class NotSent(NeverRan):
    """No server took the request. What else is in flight on the connection goes on."""

    def __init__(self, words: str) -> None:
        super().__init__(words, retryable=True)


class Doubtful(ServerFailure):
    """The request went out, and no answer says what became of it.

    is_lost      neither does the connection hold
    may_repeat   False: the same would happen again
    """

    def __init__(self, words: str, *, is_lost: bool, may_repeat: bool = True) -> None:
        super().__init__(words)
        self.is_lost = is_lost
        self.may_repeat = may_repeat


class Unreadable(Doubtful):
    """An answer came, and it cannot be read."""
