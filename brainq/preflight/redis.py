"""Whether Redis answers and can hold turns, and whether a broker of its own is there."""

from __future__ import annotations

import re
import socket
from typing import Any
from urllib.parse import urlsplit

from brainq.observe.urls import without_password
from brainq.preflight.check import Check, fail, ok
from brainq.sentinel import FORM
from brainq.settings import Settings
from brainq.state.away import DISK_REMEDY, disk_is_full
from brainq.state.connection import make_client

OLDEST = (6, 2)
CONNECT_S = 2.0
_AMQP_PORTS = {"amqp": 5672, "amqps": 5671}


def check_redis(url: str, *, name: str = "redis", variable: str = "BRAINQ_REDIS_URL") -> Check:
    """Whether the Redis at `url` answers, is new enough, and may be written to."""
    shown = without_password(url)
    start = f"start it, or correct {variable}"
    try:
        client = make_client(url)
    except Exception as error:
        return fail(name, f"{shown} is not the address of a Redis: {error}", f"correct {variable}")
    try:
        info: dict[str, Any] = client.info()
        client.ping()  # refused at a full disk, where INFO is answered
    except Exception as error:
        if type(error).__name__ in ("AuthenticationError", "AuthenticationWrongNumberOfArgsError"):
            return fail(name, f"{shown} refuses the login", f"put user and password into {variable}")
        if disk_is_full(error):
            return fail(
                name, f"{shown} cannot write to its disk, so it takes no writes ({error})", DISK_REMEDY
            )
        return fail(name, f"{shown} does not answer ({type(error).__name__}: {error})", start)
    finally:
        client.close()
    # Valkey also says which Redis it is compatible with.
    spoken = str(info.get("redis_version", "0"))
    server = f"Valkey {info['valkey_version']}" if "valkey_version" in info else f"Redis {spoken}"
    if tuple(int(part) for part in re.findall(r"\d+", spoken)[:2]) < OLDEST:
        return fail(name, f"{server} at {shown} is too old", "brainq needs Redis 6.2 or newer, or Valkey")
    if str(info.get("cluster_enabled")) == "1":
        return fail(
            name,
            f"{shown} is a Redis Cluster, which brainq does not work on",
            f"put one primary into {variable}; Sentinel may watch it: {FORM}",
        )
    if info.get("role") == "slave":
        return fail(
            name,
            f"{shown} is a replica and takes no writes",
            f"put the address of its primary into {variable}",
        )
    return ok(name, f"{server} at {shown}")


def check_broker(settings: Settings) -> Check:
    """Whether BRAINQ_BROKER_URL, where it is set, leads somewhere."""
    url = settings.broker_url.get_secret_value() if settings.broker_url else ""
    scheme = urlsplit(url).scheme
    if scheme in ("redis", "rediss", "unix", "sentinel"):
        return check_redis(url, name="broker", variable="BRAINQ_BROKER_URL")
    if scheme not in _AMQP_PORTS:
        return ok("broker", without_password(url) or "the same Redis")
    parts = urlsplit(url)
    try:
        with socket.create_connection((parts.hostname or "", parts.port or _AMQP_PORTS[scheme]), CONNECT_S):
            return ok("broker", f"{without_password(url)} takes connections")
    except OSError as error:
        return fail(
            "broker",
            f"{without_password(url)} does not answer ({error})",
            "start it, or correct BRAINQ_BROKER_URL",
        )
