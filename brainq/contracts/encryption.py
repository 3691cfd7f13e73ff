"""Content at rest under one's own keys: what a codec does, how a value names its key, and what operators see of keys.

A value is `bqe1:KEYID:...`, with base64 of nonce, ciphertext and tag behind the second colon. The key is a tenant's,
which is that of the row's session (`ids.tenant_of`). Reading needs the value alone.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol, Self

from brainq.errors import ContentNotKept, SetupError, Unreachable

MARK = "bqe1:"
"""Begins every value that is encoded."""
ENCODED = re.compile(r"bqe1:([0-9a-f]{12}|clear):([A-Za-z0-9+/]*={0,2})")
IN_CLEAR = "clear"
"""In place of a key: content is written as it is. As a first line of the file of keys it ends encryption."""
SHREDDED = "[shredded]"
"""What is read in place of a text whose key was removed for good."""
OWNER_SEPARATOR = "@"
"""Between a file's hash and its tenant, in the name of an encrypted file: each tenant has one of its own."""
KEY_CACHE_S = 10.0
"""How long a process goes on with a tenant's key without asking for it again."""
KeyState = Literal["current", "old", "leaving", "shredded"]


class ContentKeyMissing(Unreachable):
    """Content in SQL is under a key that this process does not have, or has otherwise. It is waited for as SQL is:
    nothing is lost, and what waits goes on once the key is there.

    key_id   of the tenant's key, or the name of the operator's
    remedy   the message, which logs show: it names keys and files, and quotes nothing
    """

    def __init__(self, key_id: str, problem: str) -> None:
        super().__init__(problem)
        self.key_id = key_id
        self.remedy = problem


class ContentShredded(ContentNotKept):
    """The content was encrypted under a tenant's key that was removed for good (`brainq keys shred`)."""


class ContentCodec(Protocol):
    """Encodes what people, models and tools wrote, on its way to SQL, and decodes it on its way back. Thread-safe."""

    @property
    def writes(self) -> bool:
        """Whether new values are encrypted; False while it only reads what is."""
        ...

    def encode(self, session_id: str, text: str) -> str:
        """Under the current key of the session's tenant. Raises ContentKeyMissing, and what SQL raises."""
        ...

    def decode(self, value: str) -> str:
        """Text in the clear is itself. Raises ContentKeyMissing, ContentShredded, and what SQL raises."""
        ...

    def encode_bytes(self, session_id: str, data: bytes) -> bytes: ...

    def decode_bytes(self, value: bytes) -> bytes: ...

    def removed(self, tenant: str) -> tuple[str, ...]:
        """The ids of the tenant's keys that were removed for good. Raises ContentKeyMissing where another of its keys
        cannot be used here."""
        ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class KeyPlace:
    """Where keys are.

    file   the operator's keys, one a line, `KEY_ID:base64 of 32 bytes`; the first is the current one
    url    SQLAlchemy url of the database of the tenants' keys, each wrapped by one of these
    """

    file: str
    url: str

    @classmethod
    def of(cls, file: str, url: str, sql_url: str) -> Self | None:
        """None without a file. Without an url: a file beside a SQLite's, for a key is written down while a transaction
        has the content's; or the same Postgres. Raises SetupError where url is that very file."""
        if not file:
            return None
        if url.startswith("sqlite") and url.partition("?")[0] == sql_url.partition("?")[0]:
            raise SetupError(
                "BRAINQ_KEYS_URL is the file of BRAINQ_SQL_URL: a key is written down while a transaction has the "
                "content's file, which has one writer; name another file, or leave it unset for one beside it"
            )
        if url or not sql_url.startswith("sqlite"):
            return cls(file, url or sql_url)
        path, question, query = sql_url.partition("?")
        stem, extension = os.path.splitext(path)
        return cls(file, f"{stem}.keys{extension}{question}{query}")


@dataclass(frozen=True, slots=True)
class TenantKey:
    """One key of one tenant, without the key.

    tenant         what its sessions begin with, such as `acme:`; `:` of sessions without a colon
    generation     1 for the tenant's first
    operator_key   the name of the operator's key that wraps it
    state          `current`: new values are under it; `old`: only old ones are; `leaving`: it is being shredded;
                   `shredded`: it is gone, and so is what was under it
    """

    key_id: str
    tenant: str
    generation: int
    operator_key: str
    state: KeyState
    created_at: datetime


@dataclass(frozen=True, slots=True)
class ReencryptProgress:
    """How far a re-encryption is.

    rows      rows that were written anew
    left      rows that were not yet under the current key when it began
    table     the one that it is at
    """

    rows: int
    left: int
    table: str


def key_id_of(value: str) -> str | None:
    """The id of the key that a value is under; None for one in the clear. Pure."""
    found = ENCODED.fullmatch(value) if value.startswith(MARK) else None
    return None if found is None or found[1] == IN_CLEAR else found[1]
