r"""The text of a doorbell, in the form of Celery's Redis transport (message protocol 2).

A Lua script rings a doorbell by filling in a template and pushing it with LPUSH, in the same step as its state change.
A stock Celery 5.7 worker, `celery events` and Flower read the result like any other message. A call's task is shown
under its tool's name (Celery's `shadow`) in Flower, metrics and logs. It differs from Celery's own messages in three
ways: the body is plain JSON instead of base64, `origin` is "brainq", and `body_encoding` is missing.
tests/integration/adapters/celery/test_envelope.py compares the two.

Filling in is plain text replacement, so every value must come from the alphabet of ids, or be an integer. In Lua (`%`
must be doubled in a pattern):

    args  = '["s1","t1",3]'  ->  gsub('"', '\\"')  ->  %ARGS%       (it is inside a JSON string)
    repr  = "('s1', 't1', 3)"                        ->  %ARGSREPR%   (Flower's search reads it)
    task id, root id (the turn's id), a tag unique among messages in flight -> %TASK_ID% %ROOT_ID% %TAG%
    a call's tool  ->  %TOOL%
    with telemetry, `,"traceparent":"..."`, or nothing  ->  %TRACE%   (among the headers: `traced`)
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from functools import cache

from brainq.adapters.celery.names import CALL_RUN, SHOWN_NAME, shown_name
from brainq.contracts.ids import check_id
from brainq.errors import InvalidInput

ARGS = "%ARGS%"
ARGSREPR = "%ARGSREPR%"
TASK_ID = "%TASK_ID%"
ROOT_ID = "%ROOT_ID%"
TAG = "%TAG%"
TOOL = "%TOOL%"
TRACE = "%TRACE%"

_EMBED = {"callbacks": None, "errbacks": None, "chain": None, "chord": None}


@cache
def template(task: str, queue: str, priority: int = 0) -> str:
    """Return the envelope of a `task` for `queue`, as JSON text with placeholders."""
    headers = {
        "lang": "py",
        "task": task,
        "id": TASK_ID,
        "shadow": shown_name(TOOL) if task == CALL_RUN else None,
        "eta": None,
        "expires": None,
        "group": None,
        "group_index": None,
        "retries": 0,
        "timelimit": [None, None],
        "root_id": ROOT_ID,
        "parent_id": None,
        "argsrepr": ARGSREPR,
        "kwargsrepr": "{}",
        "origin": "brainq",
        "ignore_result": True,
        "replaced_task_nesting": 0,
        "stamped_headers": None,
        "stamps": {},
    }
    properties = {
        "correlation_id": TASK_ID,
        "reply_to": "",
        "delivery_mode": 2,
        "delivery_info": {"exchange": "", "routing_key": queue},
        "priority": priority,
        "delivery_tag": TAG,
    }
    message = {
        "body": f"[{ARGS},{{}},{_compact(_EMBED)}]",
        "content-encoding": "utf-8",
        "content-type": "application/json",
        "headers": headers,
        "properties": properties,
    }
    return _compact(message)


def with_trace_header(text: str) -> str:
    """Return a template with a place for the header `traceparent`, which instrumentations of Celery read."""
    last = '"stamps":{}'
    return text.replace(last, last + TRACE, 1)


def envelope(task: str, args: Sequence[str | int], task_id: str, queue: str, root_id: str, tool: str = "") -> str:
    """Return the complete envelope, ready for LPUSH on `queue_key(settings, queue)`. `tool` is for calls.

    Raises InvalidInput if an argument or id is not of the strict alphabet.
    """
    checked = [_argument(position, value) for position, value in enumerate(args)]
    values = {
        ARGS: _compact(checked).replace('"', '\\"'),
        ARGSREPR: _representation(checked),
        TASK_ID: check_id("task_id", task_id),
        ROOT_ID: check_id("root_id", root_id),
        TAG: secrets.token_hex(16),
        **({TOOL: _tool(tool)} if task == CALL_RUN else {}),
    }
    text = template(task, queue)
    for placeholder, value in values.items():
        text = text.replace(placeholder, value)
    return text


def _tool(name: str) -> str:
    if not SHOWN_NAME.fullmatch(shown_name(name)):
        raise InvalidInput("tool", "use 1 to 64 of A-Z a-z 0-9 _ -, starting with a letter or _")
    return name


def _argument(position: int, value: str | int) -> str | int:
    if isinstance(value, bool):
        raise InvalidInput(f"args[{position}]", "a doorbell carries ids and integers, not a bool")
    return value if isinstance(value, int) else check_id(f"args[{position}]", value)


def _representation(args: Sequence[str | int]) -> str:
    shown = ", ".join(str(value) if isinstance(value, int) else f"'{value}'" for value in args)
    return f"({shown},)" if len(args) == 1 else f"({shown})"


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))
