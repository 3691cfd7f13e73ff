"""Bugs of the clients over HTTP: what is repeated, streams that are continued, errors, and events as classes."""

from __future__ import annotations

from lab.mutants.bug import Bug

SENDING = "brainq/client/http/sending.py"
REFUSALS = "brainq/client/http/refusals.py"
STREAMS = "brainq/client/http/streams.py"
FOLLOWING = "brainq/client/following.py"
TESTS = ("tests/unit/client/test_http_sending.py",)
STREAM_TESTS = ("tests/unit/client/test_http_streams.py",)
FOLLOW_TESTS = ("tests/unit/client/test_following.py",)

BUGS = (
    Bug(
        "a repeated submit has another key",
        "brainq/client/http/async_client.py",
        'headers={"Idempotency-Key": key}, request_key=key',
        "request_key=key",
        TESTS,
    ),
    Bug(
        "a raise that may have been done is done again",
        SENDING,
        "if not (call.is_repeatable or is_undone):",
        "if False:",
        TESTS,
    ),
    Bug(
        "an answer that was cut off counts as never sent",
        SENDING,
        "is_undone, wait_s = isinstance(lost, UNSENT), pause_s",
        "is_undone, wait_s = True, pause_s",
        TESTS,
    ),
    Bug(
        "Retry-After is not kept to",
        SENDING,
        "wait_s = pause_s if refusal.retry_after_s is None else refusal.retry_after_s",
        "wait_s = pause_s",
        TESTS,
    ),
    Bug(
        "an interrupt is repeated whoever is live",
        "brainq/client/http/async_session.py",
        "if await self.live() != live:",
        "if await self.live() is None:",
        TESTS,
    ),
    Bug(
        "a refusal that passes is final",
        REFUSALS,
        "issubclass(cls, _PASSING) and status == 503, False, wait_s",
        "False, False, wait_s",
        TESTS,
    ),
    Bug(
        "a stream is continued from its beginning",
        STREAMS,
        'headers={"Last-Event-ID": str(after)}',
        'headers={"Last-Event-ID": "0"}',
        STREAM_TESTS,
    ),
    Bug(
        "an event that comes again is shown again",
        STREAMS,
        "if event is not None and event.seq > after:",
        "if event is not None:",
        STREAM_TESTS,
    ),
    Bug(
        "text with another line end is cut in two",
        STREAMS,
        '*lines, rest = (rest + chunk).split(b"\\n")',
        '*lines, rest = (rest + chunk).replace("\\u2028".encode(), b"\\n").split(b"\\n")',
        STREAM_TESTS,
    ),
    Bug(
        "a frame that was cut off is taken for whole",
        STREAMS,
        "elif not line and data:",
        "elif data:",
        STREAM_TESTS,
    ),
    Bug(
        "a stream that breaks is the caller's error",
        STREAMS,
        "        except httpx.TransportError:\n            pass  # it is opened again",
        "        except httpx.TransportError:\n            raise",
        STREAM_TESTS,
    ),
    Bug(
        "the text of a retried step is doubled",
        FOLLOWING,
        'self._newest, self.text = place, ""',
        "self._newest = place",
        FOLLOW_TESTS,
    ),
    Bug(
        "a late word of an older attempt is appended",
        FOLLOWING,
        "if place == self._newest:",
        "if True:",
        FOLLOW_TESTS,
    ),
    Bug(
        "gather gives each turn the whole time",
        FOLLOWING,
        "return tuple(handle.result(deadline.remaining_s()) for handle in listed)",
        "return tuple(handle.result(timeout_s) for handle in listed)",
        FOLLOW_TESTS,
    ),
    Bug(
        "a kind of a newer version is an error",
        "brainq/contracts/event.py",
        "if not isinstance(value, str):",
        "if True:",
        ("tests/unit/contracts/test_typed_events.py",),
    ),
)
