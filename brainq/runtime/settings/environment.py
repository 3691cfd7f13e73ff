"""Read `.env` into the environment, and find mistyped names of settings."""

from __future__ import annotations

import os
from collections.abc import Mapping
from difflib import get_close_matches

WARNED_NAMES = "BRAINQ_NAMES_TOLD"
"""The variable with the mistyped names for which a parent process has already printed a warning."""

TYPED_OPTIONS: dict[str, str] = {}
"""The command-line options of this process, such as `-A shop:brain`, by the setting that they set.
Errors quote them.
"""

_PREFIX = "BRAINQ_"
# A copy of the settings' names, because importing their class costs a quarter of a second. A test compares the two.
_NAMES = """
APP BUILD REDIS_URL BROKER_URL SQL_URL DATA_DIR PREFIX LEASE_S BEAT_S SWEEP_S RERING_S KEEP_TURN_S KEEP_SESSION_S
CANCEL_GRACE_S RESULT_AFTER_FAILING_S MAX_ATTEMPTS MAX_REPLY_BYTES MAX_FILE_BYTES MAX_MESSAGE_FILE_BYTES MAX_LIVE_TURNS
MAX_LIVE_TURNS_A_TENANT LIVE_TURNS_OF MAX_WAITING_TURNS_A_SESSION MAX_WAITING_TURNS_A_TENANT MAX_SCHEDULES_A_TENANT
QUARANTINE_PROCESSES WEBHOOKS RATES CONCURRENCY DOORBELL TASK_EVENTS REMOTE_CONTROL LOG_LEVEL LOG_FORMAT HTTP_HOST
HTTP_PORT HTTP_AUTH HTTP_HOSTS HTTP_A2A HTTP_MCP HTTP_PROXIES HTTP_CORS HTTP_BODY_BYTES HTTP_SLOW_S HTTP_WAIT_S
HTTP_REQUESTS_S HTTP_STREAMS HTTP_STREAMS_A_CALLER HTTP_HEARTBEAT_S HTTP_GRACE_S HTTP_CLIENT_TOOLS_S
HTTP_OPENAI_LENIENT CONCURRENCY__COORDINATOR CONCURRENCY__PARALLEL CONCURRENCY__SERIAL CONCURRENCY__FINALIZER BUDGETS
BUDGET_ZONE SCALE_MIN SCALE_MAX CELLS CELL MAX_TURNS_A_WORKER MAX_RSS_MB CONTENT_KEYS KEYS_URL SQL_POOLED STAY
"""
SETTINGS = tuple(_NAMES.split())
# Read elsewhere.
OTHER_VARIABLES = (
    "TRACEBACK",
    "EFFECTS",
    "POOLS",
    "MODEL",
    "READY_FILE",
    "OWNER_FD",
    "HTTP_FD",
    "NAMES_TOLD",
    "RENEW_FILE",
)
_SIMILARITY = 0.7


def read_env_file() -> None:
    """Add the variables of `.env` in the working directory to the environment, unless they are set.

    An empty variable counts as not set, because container tools pass `KEY=` for a key that was not given. Raises
    SetupError if the file cannot be read.
    """
    if not os.path.exists(".env"):
        return
    from dotenv import dotenv_values

    try:
        values = dotenv_values(".env")
    except (OSError, UnicodeDecodeError) as error:
        from brainq.errors import SetupError

        raise SetupError(
            f"{os.path.abspath('.env')} cannot be read: {error}; make it UTF-8 text that user {os.getuid()} may read"
        ) from None
    for name, value in values.items():
        if value and not os.environ.get(name):
            os.environ[name] = value


def mistyped_names(environment: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return names that look like a mistyped setting, each with the right name. Pure."""
    warned_of = set(environment.get(WARNED_NAMES, "").split())
    known = (*SETTINGS, *OTHER_VARIABLES)
    mistyped: list[tuple[str, str]] = []
    for name in sorted(set(environment) - warned_of):
        rest = name.upper().removeprefix(_PREFIX)
        if rest == name.upper() or rest in known:
            continue
        near = get_close_matches(rest, known, 1, _SIMILARITY)
        if near:
            mistyped.append((name, _PREFIX + near[0]))
    return mistyped
