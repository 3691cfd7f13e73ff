"""Validate the URLs of services in the settings, so that every process refuses the same ones."""

from __future__ import annotations

import re

from pydantic import SecretStr

from brainq.errors import SetupError
from brainq.runtime.settings.cluster_url import CLUSTER_SCHEMES, parse_cluster_url
from brainq.runtime.settings.redis_url import parse_redis_url, parse_sentinel_url, split_login
from brainq.runtime.text.service_url import ENCODE_PASSWORD

REDIS_SCHEMES = ("redis://", "rediss://", "unix://", "sentinel://", *CLUSTER_SCHEMES)
AMQP_PORTS = {"amqp": 5672, "amqps": 5671}
_AMQP_PLACE = re.compile(r"(?P<host>[^:@\[\]\s,]*|\[[0-9a-fA-F:.]+\])(?::(?P<port>\d{1,5}))?", re.ASCII)
BROKER_SCHEMES = (*REDIS_SCHEMES, "amqp://", "amqps://", "memory://")


def checked_url(value: SecretStr | None, schemes: tuple[str, ...]) -> SecretStr | None:
    """Return the URL of a Redis or a broker. Raises ValueError, without any part of a password."""
    if value is None:
        return None
    url = value.get_secret_value()
    if not url.startswith(schemes):
        raise ValueError(f"must begin with one of {', '.join(schemes)}")
    try:
        if url.startswith("sentinel://"):
            parse_sentinel_url(url)
        elif url.startswith(CLUSTER_SCHEMES):
            parse_cluster_url(url)
        elif url.startswith("amqp"):
            check_amqp_url(url)
        elif not url.startswith("memory"):
            parse_redis_url(url)
    except SetupError as wrong:
        raise ValueError(str(wrong)) from None
    return value


def check_amqp_url(url: str) -> tuple[str, int]:
    """Return the host and port of a RabbitMQ, or of the first one of several separated by semicolons."""
    found: list[tuple[str, int]] = []
    for one in url.split(";"):
        scheme, _, rest = one.partition("://")
        place = _AMQP_PLACE.fullmatch(re.split("[/?]", split_login(rest)[1])[0])
        if scheme not in AMQP_PORTS or place is None:
            raise SetupError(f"the URL has the form amqp://user:password@host:5672/vhost; {ENCODE_PASSWORD}")
        found.append((place["host"] or "localhost", int(place["port"] or AMQP_PORTS[scheme])))
    return found[0]


def pooled_url(given: SecretStr, pooled: bool | None) -> str:
    """Return a SQL URL with the option `pooled`, if it is for Postgres and does not have the option."""
    url = given.get_secret_value()
    if pooled is None or not url.startswith("postgres") or "pooled=" in url.rpartition("@")[2].partition("?")[2]:
        return url
    return f"{url}{'&' if '?' in url.rpartition('@')[2] else '?'}pooled={str(pooled).lower()}"
