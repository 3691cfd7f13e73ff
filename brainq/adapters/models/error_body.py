"""The body of an error, in the shapes that services use.

A body is an object with `error`, that error itself, a list with one of them (Gemini), `detail` (FastAPI), a text
instead of an object (xAI, Ollama, TGI), JSON inside a text (OpenRouter's `metadata.raw`), a web page, or nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import unescape
from typing import Any

_MESSAGES = ("message", "detail", "error_description", "raw", "msg")
_CODES = ("code", "type", "status", "error_type", "reason", "error_code", "__type", "quotaid")
_STATUSES = ("code", "status", "status_code", "statuscode", "http_status_code", "raw_status_code", "http_status")
_NESTED = ("error", "errors", "innererror", "metadata", "details", "violations", "responsemetadata")
_WAITS = ("retrydelay", "retry_after", "retry_after_s", "retry_after_seconds", "retryafter")
_MAX_DEPTH = 6
_TITLE = re.compile(r"<title[^>]*>(.*?)</title>|<h1[^>]*>(.*?)</h1>", re.IGNORECASE | re.DOTALL)
_TAG = re.compile(r"<[^>]+>")
_WAIT_WORDS = re.compile(
    r"(?:again|retry|wait)(?: \w+){0,2} (?:in|after|for) "
    r"((?:\d+(?:\.\d+)?\s*(?:milliseconds?|ms|days?|hours?|minutes?|seconds?|[dhms])(?![a-z])\s*)+)",
    re.IGNORECASE,
)
_DURATION_PART = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|milli|[dhms])", re.IGNORECASE)
_UNIT_S = {"ms": 0.001, "milli": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


@dataclass(frozen=True, slots=True)
class ErrorDetail:
    """The facts in the body of an error.

    message: the text for people: the outer message, then the message of another service inside it.
    codes: the words for programs: codes, types and statuses, the outer ones first.
    status: the HTTP status in the body, 300 to 599, or None if there is none.
    param: the part of the request that the error is about, or "" if the body does not name it.
    wait_s: how many seconds the service asks us to wait, or None if it does not ask.
    """

    message: str = ""
    codes: tuple[str, ...] = ()
    status: int | None = None
    param: str = ""
    wait_s: float | None = None

    @property
    def text(self) -> str:
        """All words of the body, in lower case."""
        return " ".join((self.message, *self.codes)).lower()


def error_detail(body: Any) -> ErrorDetail:
    """Read the body of an error, as an SDK has parsed it."""
    messages: list[str] = []
    codes: list[str] = []
    facts: dict[str, Any] = {}
    for name, value in _walk(body, 0):
        if name == "message":
            messages.append(value)
        elif name == "code":
            codes.append(value)
        else:
            facts.setdefault(name, value)
    message = ": ".join(dict.fromkeys(text.strip() for text in messages if text.strip()))
    wait_s: float | None = facts.get("wait")
    return ErrorDetail(
        message,
        tuple(dict.fromkeys(codes)),
        facts.get("status"),
        facts.get("param", ""),
        wait_in_words(message) if wait_s is None else wait_s,
    )


def is_error_value(value: Mapping[str, Any]) -> bool:
    """Return whether this object, which came with HTTP 200, is an error and not part of a reply."""
    if value.get("error") or value.get("object") == "error" or value.get("type") == "error":
        return True
    return bool(value.get("detail")) and not value.keys() & {"choices", "content", "output", "type", "object"}


def wait_in_words(text: str) -> float | None:
    """Return the seconds in a text such as `try again in 1m30.5s` or `retry after 20 seconds`, or None if there are
    none."""
    found = _WAIT_WORDS.search(text)
    return None if found is None else duration_s(found[1])


def duration_s(text: str) -> float | None:
    """Return the seconds of `36s`, `1m30.5s`, `644ms` or `20 seconds`, or None for any other text."""
    parts = _DURATION_PART.findall(text)
    return sum(float(number) * _UNIT_S[unit.lower()] for number, unit in parts) if parts else None


def page_text(text: str) -> str:
    """Return the title of a web page. Any other text is returned unchanged."""
    if not text.lstrip()[:200].lower().startswith(("<!doctype", "<html", "<head", "<?xml")):
        return text
    found = _TITLE.search(text)
    return " ".join(unescape(_TAG.sub(" ", found[1] or found[2] if found else text)).split())


def _walk(body: Any, depth: int) -> Iterator[tuple[str, Any]]:
    """Yield the name (`message`, `code`, `status`, `param` or `wait`) and the value of each fact, the outer ones
    first."""
    if depth > _MAX_DEPTH:
        return
    if isinstance(body, str):
        inner = _json_in(body)
        yield from [("message", page_text(body))] if inner is None else _walk(inner, depth + 1)
    elif isinstance(body, list):
        for item in body:
            yield from _walk(item, depth + 1)
    elif isinstance(body, Mapping):
        yield from _walk_object({str(key).lower(): value for key, value in body.items()}, depth)


def _walk_object(body: dict[str, Any], depth: int) -> Iterator[tuple[str, Any]]:
    if "loc" in body:  # FastAPI's entries echo the content of the request
        yield "message", f"{body['loc']}: {body.get('msg')}"
        return
    for name in _MESSAGES:
        if body.get(name):
            yield from _walk(body[name], depth + 1)
    for name in _CODES:
        value = body.get(name)
        if isinstance(value, str) and value and not value.isdigit():
            yield "code", value
    for name in _STATUSES:
        if (status := _status(body.get(name))) is not None:
            yield "status", status
    if isinstance(body.get("param"), str):
        yield "param", body["param"]
    for name in _WAITS:
        if (wait_s := _wait(body.get(name))) is not None:
            yield "wait", wait_s
    if body.get("failed_generation") is not None or body.get("flagged_input") is not None:
        yield "code", "failed_generation" if "failed_generation" in body else "flagged_input"
    for name in _NESTED:
        if body.get(name):
            yield from _walk(body[name], depth + 1)


def _json_in(text: str) -> Any:
    """Return the JSON object or list in the text, or the text itself if it holds none."""
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict | list) else None


def _status(value: Any) -> int | None:
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) == 3:
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 300 <= value <= 599 else None


def _wait(value: Any) -> float | None:
    if isinstance(value, str):
        return duration_s(value)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0 else None
