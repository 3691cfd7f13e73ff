"""Text of services' URLs: without passwords, for screens and logs, and hosts in their form."""

from __future__ import annotations

import re

HIDDEN = "***"
ENCODE_PASSWORD = (
    "percent-encode the password: @ is %40, : is %3A, / is %2F, ? is %3F, # is %23, & is %26, % is %25, a space is %20"
)
_PLAIN_USER = re.compile(r"[\w.+%-]*", re.ASCII)
_PASSWORD_OPTION = re.compile(r"[?&;][\w.-]*(?:pass|pwd|secret|token)[\w.-]*=", re.ASCII | re.IGNORECASE)


def host_in_url(host: str) -> str:
    """Return a host as URLs contain it: an IPv6 address in brackets."""
    return f"[{host}]" if ":" in host else host


def without_password(url: str) -> str:
    """Return `url` without any part of a password, whatever characters it has and however a driver would split it.

    Drivers end the login at the last `@`, so everything before it is hidden, except a plain user name. Options are
    hidden from the first one that is a password.
    """
    scheme, slashes, rest = url.partition("://")
    if not slashes:
        scheme, rest = "", url
    option = _PASSWORD_OPTION.search(rest)
    if option is not None:
        if "@" in rest[option.end() :]:
            return f"{scheme}{slashes}{HIDDEN}"  # it may belong to the login or to the option
        rest = rest[: option.end()] + HIDDEN
    login, at, place = rest.rpartition("@")
    if not at:
        return f"{scheme}{slashes}{rest}"
    user, colon, _ = login.partition(":")
    shown = user if _PLAIN_USER.fullmatch(user) else HIDDEN
    return f"{scheme}{slashes}{shown}{f':{HIDDEN}' if colon and shown != HIDDEN else ''}@{place}"
