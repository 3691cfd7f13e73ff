"""Where `brainq token` finds its tokens, and how it shows them."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from brainq.cli.output import STATUS_STYLES, styled
from brainq.cli.pages.layout import PageTable, fact, key, words
from brainq.contracts.rows import TokenRow
from brainq.observe.logs import without_password
from brainq.settings.deployment import load_settings
from brainq.store.engine import require_file
from brainq.store.store import Store

TOKENS_REQUIRED_NOTE = (
    "from now on every gateway on this database asks for a token, that of `brainq dev` and its page too, "
    "also when all are revoked: give the page one that reads"
)
NO_LIVE_TOKEN_NOTE = (
    "no token is live, and gateways on this database go on asking for one: all callers are answered 401. "
    "Make another with `brainq token create NAME --sessions PREFIX --verb VERB`; only another database "
    "(BRAINQ_SQL_URL or BRAINQ_DATA_DIR), without tokens, asks for none"
)


@contextmanager
def open_token_store(*, make: bool = False) -> Generator[tuple[Store, str]]:
    """The store, and where it is. Raises SetupError where there is none and `make` does not allow to make one."""
    url = load_settings().sql_url.get_secret_value()
    if not make:
        require_file(url)
    with Store.open(url) as store:
        yield store, without_password(url)


def token_json(row: TokenRow) -> dict[str, Any]:
    return {
        "id": row.token_id,
        "name": row.name,
        "sessions": row.sessions,
        "verbs": row.verbs,
        "state": row.state,
        "created_at": row.created_at.isoformat(),
        "expires_at": _instant(row.expires_at),
        "last_used_at": _instant(row.last_used_at),
        "revoked_at": _instant(row.revoked_at),
    }


def describe_token(row: TokenRow) -> str:
    """One line: which token it is, and what it may."""
    where = "all sessions" if row.sessions == ("*",) else f"sessions {', '.join(row.sessions)}"
    until = f", until {row.expires_at:%Y-%m-%d %H:%M} UTC" if row.expires_at and row.state == "live" else ""
    return f"token {row.token_id} of {row.name!r} for {', '.join(row.verbs)} in {where}{until}"


def tokens_table(rows: Sequence[TokenRow]) -> PageTable:
    table = PageTable()
    for row in rows:
        table.add(
            {
                key("id"): row.token_id,
                words("name", 6): row.name,
                fact("state", 5): styled(row.state, STATUS_STYLES),
                words("sessions", 4): ", ".join(row.sessions),
                words("verbs", 3): ", ".join(row.verbs),
                fact("expires", 2): _minute(row.expires_at),
                fact("last used", 1): _minute(row.last_used_at),
            }
        )
    return table


def _instant(at: datetime | None) -> str | None:
    return at.isoformat() if at else None


def _minute(at: datetime | None) -> str:
    return f"{at:%Y-%m-%d %H:%M}" if at else ""
