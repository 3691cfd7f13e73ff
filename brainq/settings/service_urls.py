"""URLs of services as settings have them: checked where they enter, so that every process refuses the same ones."""

from __future__ import annotations

from pydantic import SecretStr

from brainq.errors import SetupError
from brainq.settings.redis_url import parse_sentinel_url

REDIS_SCHEMES = ("redis://", "rediss://", "unix://", "sentinel://")
BROKER_SCHEMES = (*REDIS_SCHEMES, "amqp://", "amqps://", "memory://")


def checked_url(value: SecretStr | None, schemes: tuple[str, ...]) -> SecretStr | None:
    """Return the URL of a Redis or a broker. Raises ValueError, which quotes nothing of it."""
    if value is not None and not value.get_secret_value().startswith(schemes):
        raise ValueError(f"must begin with one of {', '.join(schemes)}")
    if value is not None and value.get_secret_value().startswith("sentinel://"):
        try:
            parse_sentinel_url(value.get_secret_value())
        except SetupError as wrong:
            raise ValueError(str(wrong)) from None
    return value


def pooled_url(given: SecretStr, pooled: bool | None) -> str:
    """Return a SQL URL with the option `pooled`, if it is Postgres' and does not have that option already."""
    url = given.get_secret_value()
    if pooled is None or not url.startswith("postgres") or "pooled=" in url.rpartition("@")[2].partition("?")[2]:
        return url
    return f"{url}{'&' if '?' in url.rpartition('@')[2] else '?'}pooled={str(pooled).lower()}"
