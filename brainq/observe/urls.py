"""Urls as they may be shown: without their password."""

from __future__ import annotations

import re
from urllib.parse import urlsplit, urlunsplit

_PASSWORD_IN_QUERY = re.compile(r"(?i)\b(password|sslpassword)=[^&]*")


def without_password(url: str) -> str:
    """`url` for a screen or a log: its password, also one in the query, is replaced by stars."""
    try:
        parts = urlsplit(url)
        password = parts.password
    except ValueError:
        return "an address that cannot be read"
    place = parts.netloc
    if password:
        place = f"{parts.username or ''}:***@{place.rpartition('@')[2]}"
    query = _PASSWORD_IN_QUERY.sub(r"\1=***", parts.query)
    if (place, query) == (parts.netloc, parts.query):
        return url
    return urlunsplit((parts.scheme, place, parts.path, query, parts.fragment))
