"""Encryption of stored content under the operator's keys: the codec, the form of its values, and the facts about keys
that operators see.

A value is `bqe1:KEYID:...`, with base64 of nonce, ciphertext and tag after the second colon. The key belongs to the
tenant of the row's session (`ids.tenant_of`). Only the value is needed to find the key for reading.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol, Self

from brainq.errors import ContentNotKept, SetupError, Unreachable

MARK = "bqe1:"
"""The prefix of every encoded value."""
ENCODED = re.compile(r"bqe1:([0-9a-f]{12}|clear):([A-Za-z0-9+/]*={0,2})")
IN_CLEAR = "clear"
"""The word in place of a key's id for content that is written unencrypted. As the first line of the key file it turns
encryption off."""
SHREDDED = "[shredded]"
"""The text shown in place of content whose key was removed for good."""
OWNER_SEPARATOR = "@"
"""The separator of a file's hash and its tenant in the name of an encrypted file. Each tenant has its own copy."""
KEY_CACHE_S = 10.0
"""How long a process uses a tenant's key before it reads the key again."""
SETTLE_S = 1.0
"""How long after KEY_CACHE_S a value may still be written under an earlier key, in seconds."""
KeyState = Literal["current", "old", "leaving", "shredded"]


class ContentKeyMissing(Unreachable):
    """The error of content whose key this process does not have, or has in another form.

    Work waits as it does for SQL, and continues once the key is there.

    key_id: the id of the tenant's key, or the name of the operator's key.
    remedy: the message that logs show. It names keys and files, and quotes no content.
    """

    def __init__(self, key_id: str, problem: str) -> None:
        super().__init__(problem)
        self.key_id = key_id
        self.remedy = problem


class ContentShredded(ContentNotKept):
    """An error for content that cannot be decrypted, because its tenant's key was shredded (`brainq keys shred`)."""


class ContentCodec(Protocol):
    """A codec that encodes the texts of people, models and tools for SQL, and decodes them. Thread-safe."""

    @property
    def writes(self) -> bool:
        """Whether new values are encrypted. If False, the codec only decodes values that were encrypted before."""
        ...

    def encode(self, session_id: str, text: str) -> str:
        """Return the text encrypted under the current key of the session's tenant.

        Raises ContentKeyMissing, and what SQL raises.
        """
        ...

    def decode(self, value: str) -> str:
        """Return the text of a value. Text that is not encrypted is returned unchanged.

        Raises ContentKeyMissing, ContentShredded, and what SQL raises.
        """
        ...

    def encode_bytes(self, session_id: str, data: bytes) -> bytes: ...

    def decode_bytes(self, value: bytes) -> bytes: ...

    def removed(self, tenant: str) -> tuple[str, ...]:
        """Return the ids of the tenant's keys that were removed for good.

        Raises ContentKeyMissing if another of its keys cannot be used here.
        """
        ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class KeyPlace:
    """The places where keys are stored.

    file: the file of the operator's keys, one on each line as `KEY_ID:base64 of 32 bytes`. The first is the current
        one.
    url: the SQLAlchemy URL of the database of the tenants' keys, each of which is wrapped by an operator's key.
    """

    file: str
    url: str

    @classmethod
    def of(cls, file: str, url: str, sql_url: str) -> Self | None:
        """Return the places, or None without a file.

        Without a URL, the tenants' keys are in the same Postgres as the content, or in a second file beside the
        content's SQLite file: a key is written while a transaction holds the content's file. Raises SetupError if the
        URL is that of the content's SQLite file.
        """
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
    """The facts about one key of one tenant, without the key.

    tenant: the prefix of its sessions, such as `acme:`, or `:` for sessions without a colon.
    generation: 1 for the tenant's first key.
    operator_key: the name of the operator's key that wraps it.
    state: `current` for new values, `old` for existing values only, `leaving` while it is being shredded, and
        `shredded` once it and its content are gone.
    """

    key_id: str
    tenant: str
    generation: int
    operator_key: str
    state: KeyState
    created_at: datetime


@dataclass(frozen=True, slots=True)
class ReencryptProgress:
    """The progress of a re-encryption.

    rows: the rows that were rewritten.
    left: the rows that were not under the current key when it began.
    table: the current table.
    """

    rows: int
    left: int
    table: str


def key_id_of(value: str) -> str | None:
    """Return the id of the key of a value, or None if it is not encrypted."""
    found = ENCODED.fullmatch(value) if value.startswith(MARK) else None
    return None if found is None or found[1] == IN_CLEAR else found[1]
