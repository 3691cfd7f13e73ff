"""Tokens, which authenticate programs over HTTP: their text, and creating, listing, revoking and checking them."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import inf

from brainq.adapters.sql.audit import record_act
from brainq.adapters.sql.engine import is_sql_unavailable
from brainq.adapters.sql.repositories.tokens import USED_EVERY_S
from brainq.adapters.sql.store import Store
from brainq.app.access.caller import Caller, Verb, check_name, check_verbs
from brainq.contracts.act import NewAct
from brainq.contracts.ids import check_prefixes
from brainq.contracts.rows import TokenRow
from brainq.errors import InvalidInput, Unreachable
from brainq.runtime.observe.logs import logger

_TEXT = re.compile(r"bq_([0-9a-f]{12})_([A-Za-z0-9_-]{43})", re.ASCII)
_ID_BYTES = 6
_SECRET_BYTES = 32
log = logger("brainq.access")
KEPT_S = 5.0
"""The seconds for which a check stays valid without an SQL query. A revoked token is rejected after that."""
AWAY_S = 900.0
"""The seconds for which a gateway of several cells continues to admit known callers while the home cell's SQL does not
answer.
"""
MAX_CACHED_TOKENS = 10_000
MAX_LIFETIME_S = 10 * 365 * 86_400.0


@dataclass(frozen=True, slots=True)
class TokenText:
    """A token: `bq_<id>_<secret>`. The id is public; the secret is 256 random bits, and not in the repr."""

    token_id: str
    secret: str = field(repr=False)

    @classmethod
    def new(cls) -> TokenText:
        return cls(secrets.token_hex(_ID_BYTES), secrets.token_urlsafe(_SECRET_BYTES))

    @classmethod
    def read(cls, text: str) -> TokenText | None:
        """Read a token. Returns None if the text is not one."""
        found = _TEXT.fullmatch(text)
        return None if found is None else cls(found[1], found[2])

    def write(self) -> str:
        return f"bq_{self.token_id}_{self.secret}"

    def hashed(self) -> str:
        """Return the stored hash of the secret. SHA-256 is fast, and 256 random bits cannot be guessed."""
        return hashlib.sha256(self.secret.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class NewToken:
    """A new token. Its `text` is shown once, and cannot be read again."""

    row: TokenRow
    text: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class _CheckedToken:
    secret_hash: str = field(repr=False)
    caller: Caller
    until: float
    ends: float


class Tokens:
    """The tokens of a deployment, whose rows are in SQL. Thread-safe; `check` may wait for SQL.

    kept_s: the seconds for which a check stays valid without an SQL query.
    away_s: the additional seconds for which it stays valid while SQL is unavailable, so that the work of other cells
        continues.

    Every method raises Unreachable while SQL is unavailable: no caller is admitted on a guess.
    """

    def __init__(self, store: Store, kept_s: float = KEPT_S, *, away_s: float = 0.0) -> None:
        self._store = store
        self._rows = store.tokens
        self._kept_s = kept_s
        self._away_s = away_s
        self._quiet_until = float("-inf")
        self._lock = threading.Lock()
        self._checked: OrderedDict[str, _CheckedToken] = OrderedDict()

    def create(
        self, name: str, sessions: Sequence[str], verbs: Iterable[Verb | str], expires_in_s: float | None = None
    ) -> NewToken:
        """Create a token for these session prefixes and verbs. Without `expires_in_s` it is valid until revoked.

        Raises InvalidInput naming the field.
        """
        check_name("name", name)
        if expires_in_s is not None and not 0 < expires_in_s <= MAX_LIFETIME_S:
            raise InvalidInput(
                "expires_in_s",
                f"{expires_in_s!r} must be above 0 and at most ten years; use None for a token that never expires",
            )
        prefixes, allowed = check_prefixes("sessions", sessions), check_verbs("verbs", verbs)
        made = TokenText.new()
        with _sql_errors():
            self._rows.add(
                made.token_id, made.hashed(), name, prefixes, [verb for verb in Verb if verb in allowed], expires_in_s
            )
            row = self._rows.get(made.token_id)
        if row is None:
            raise Unreachable(
                "SQL accepted the token but does not return it; check the database, then create the token again"
            )
        record_act(self._store, NewAct("make token", name))
        return NewToken(row, made.write())

    def list(self) -> list[TokenRow]:
        """List tokens, the newest first, including expired and revoked ones."""
        with _sql_errors():
            return self._rows.list()

    def revoke(self, token: str) -> TokenRow | None:
        """Revoke a token, by its id or its whole text. Returns its row, or None if it is unknown.

        Every gateway sees it within KEPT_S.
        """
        whole = TokenText.read(token)
        token_id = token if whole is None else whole.token_id
        with self._lock:
            self._checked.pop(token_id, None)
        with _sql_errors():
            row = self._rows.get(token_id) if self._rows.revoke(token_id) else None
        if row is not None:
            record_act(self._store, NewAct("revoke token", row.token_id))
        return row

    def check(self, text: str) -> Caller | None:
        """Return the caller of a token. Returns None if the token is not valid, whatever the reason."""
        token = TokenText.read(text)
        if token is None:
            return None
        return _caller_if_genuine(self._cached(token) or self._checked_anew(token), token)

    def cached_caller(self, text: str) -> Caller | None:
        """Return the caller of a token by a cached check. Returns None if no check is cached."""
        token = TokenText.read(text)
        return None if token is None else _caller_if_genuine(self._cached(token), token)

    def is_known(self, text: str) -> bool:
        """Return whether the token was valid at its last check. It may have been revoked since."""
        token = TokenText.read(text)
        if token is None:
            return False
        with self._lock:
            cached = self._checked.get(token.token_id)
        return cached is not None and hmac.compare_digest(cached.secret_hash, token.hashed())

    def _checked_anew(self, token: TokenText) -> _CheckedToken | None:
        """Check a token in SQL. While SQL does not answer, the last check counts for `away_s`, without a query each
        time."""
        with self._lock:
            last = self._checked.get(token.token_id)
        now = time.monotonic()
        is_enough = last is not None and now < min(last.until + self._away_s, last.ends)
        if is_enough and now < self._quiet_until:
            return last
        try:
            return self._look_up(token)
        except Unreachable:
            self._quiet_until = time.monotonic() + KEPT_S
            if not is_enough:
                raise
            return last

    def _cached(self, token: TokenText) -> _CheckedToken | None:
        with self._lock:
            cached = self._checked.get(token.token_id)
        return cached if cached is not None and time.monotonic() < cached.until else None

    def _look_up(self, token: TokenText) -> _CheckedToken | None:
        looked_up_at = time.monotonic()
        with _sql_errors():
            row = self._rows.get(token.token_id)
            if row is None or not hmac.compare_digest(row.secret_hash, token.hashed()):
                return None  # the cache entry stays: a request with the id alone must not evict the owner's
            if row.state != "live":
                with self._lock:
                    self._checked.pop(token.token_id, None)
                return None
        self._note_use(row)
        caller = _caller(row)
        if caller is None:
            return None
        kept_s = self._kept_s if row.remaining_s is None else min(self._kept_s, row.remaining_s)
        ends = inf if row.remaining_s is None else looked_up_at + row.remaining_s
        cached = _CheckedToken(row.secret_hash, caller, looked_up_at + kept_s, ends)
        with self._lock:
            self._checked[token.token_id] = cached
            self._checked.move_to_end(token.token_id)
            while len(self._checked) > MAX_CACHED_TOKENS:
                self._checked.popitem(last=False)
        return cached

    def _note_use(self, row: TokenRow) -> None:
        """Record the use of a token, at most once a minute. A failed write rejects no request."""
        if row.idle_s is not None and row.idle_s < USED_EVERY_S:
            return
        try:
            self._rows.used(row.token_id)
        except Exception as failure:
            if not is_sql_unavailable(failure):
                raise
            log.warning("the use of a token could not be recorded", token_id=row.token_id, error=type(failure).__name__)


def _caller_if_genuine(cached: _CheckedToken | None, token: TokenText) -> Caller | None:
    if cached is None or not hmac.compare_digest(cached.secret_hash, token.hashed()):
        return None
    return cached.caller


def _caller(row: TokenRow) -> Caller | None:
    """Return the caller. Returns None if this version of brainq knows none of the token's verbs."""
    verbs = frozenset(verb for verb in Verb if verb in row.verbs)
    return Caller(row.name, row.sessions, verbs) if verbs else None


@contextmanager
def _sql_errors() -> Generator[None]:
    try:
        yield
    except Exception as failure:
        if not is_sql_unavailable(failure):
            raise
        raise Unreachable(
            f"SQL does not answer ({type(failure).__name__}); start it, or correct BRAINQ_SQL_URL"
        ) from failure
