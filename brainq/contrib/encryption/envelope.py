"""Envelope encryption of content: AES-256-GCM under a key of the tenant, which is wrapped by the operator's.

      operator's file ── wraps ──► tenant_keys ── encrypts ──► values in SQL, each of which names its key

The operator's key is read from a file and never written anywhere. A tenant's key is 32 random bytes, created with the
tenant's first value. Every value has its own nonce.
"""

from __future__ import annotations

import base64
import binascii
import os
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from brainq.adapters.sql.prepared import Record
from brainq.contracts.encryption import (
    ENCODED,
    IN_CLEAR,
    KEY_CACHE_S,
    MARK,
    ContentKeyMissing,
    ContentShredded,
    KeyPlace,
    TenantKey,
)
from brainq.contracts.ids import tenant_of
from brainq.contrib.encryption.tenant_keys import TenantKeys
from brainq.errors import SetupError
from brainq.runtime.observe.logs import logger

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

KEY_BYTES = 32
NONCE_BYTES = 12
MAX_CACHED = 4096
log = logger("brainq.store")
_BYTES_MARK = MARK.encode()
_HEAD = len(MARK) + 12 + 1  # the length in bytes of the mark, the key's id and a colon


def new_operator_key(name: str) -> str:
    """Return a new key as a line for the file of the operator's keys. Raises SetupError for a bad name."""
    line = f"{name}:{base64.b64encode(secrets.token_bytes(KEY_BYTES)).decode()}"
    parse_operator_keys(line, "KEY_ID")
    return line


def parse_operator_keys(text: str, where: str) -> tuple[str, dict[str, bytes]]:
    """Return the name of the first key, and all keys by name. Pure. Raises SetupError, which never contains a key."""
    names: list[str] = []
    keys: dict[str, bytes] = {}
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        name, _, encoded = line.partition(":")
        if line != IN_CLEAR:
            keys[name] = _decoded_key(encoded, f"line {number} of {where}")
        elif names:
            raise SetupError(f"line {number} of {where}: `{IN_CLEAR}` is the first line or none")
        if name in names or not name or name.strip() != name:
            raise SetupError(f"line {number} of {where}: each key needs a name of its own, as in `op-1:base64`")
        names.append(name)
    if not keys:
        raise SetupError(f"{where} has no key: `brainq keys new op-1 >> {where}` writes one")
    return names[0], keys


def _decoded_key(encoded: str, where: str) -> bytes:
    try:
        key = base64.b64decode(encoded.strip(), validate=True)
    except binascii.Error:
        key = b""
    if len(key) != KEY_BYTES:
        raise SetupError(f"{where} is not `KEY_ID:base64 of {KEY_BYTES} bytes`; `brainq keys new` makes such a line")
    return key


class OperatorKeys:
    """The keys in the operator's file. The file is read again after a change."""

    def __init__(self, file: str) -> None:
        self._path = Path(file)
        self._seen: tuple[int, int, int] | None = None
        self._first, self._keys = "", dict[str, bytes]()
        self.read()

    def read(self) -> None:
        """Read the file. Raises SetupError if it cannot be read or contains no keys."""
        try:
            found = self._path.stat()
            seen = (found.st_mtime_ns, found.st_size, found.st_ino)
            if seen != self._seen:
                self._first, self._keys = parse_operator_keys(self._path.read_text("utf-8"), str(self._path))
                self._seen = seen
        except (OSError, UnicodeDecodeError) as error:
            raise SetupError(
                f"BRAINQ_CONTENT_KEYS: {self._path} cannot be read ({error}); it holds the keys of all content"
            ) from None

    @property
    def current(self) -> str:
        """The name of the key that wraps new keys, or `clear` if content is not encrypted."""
        return self._first

    def get(self, name: str) -> bytes:
        """Return a key by its name. Raises ContentKeyMissing."""
        if name not in self._keys:
            raise ContentKeyMissing(
                name, f"the operator's key {name!r} is not in {self._path}; add its line again, below the first line"
            )
        return self._keys[name]


@dataclass(frozen=True, slots=True)
class _Cached:
    key_id: str
    cipher: AESGCM
    until: float


class EnvelopeCodec:
    """The codec of encrypted content; implements `contracts.encryption.ContentCodec`.

    cache_s   how long a tenant's key and the operator's file are cached
    """

    def __init__(
        self, place: KeyPlace, cache_s: float = KEY_CACHE_S, clock: Callable[[], float] = time.monotonic
    ) -> None:
        try:
            from cryptography.exceptions import InvalidTag
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM
        except ModuleNotFoundError as missing:
            raise SetupError("cryptography is not installed: pip install 'brainq[encryption]'") from missing
        self._make_cipher, self._wrong = AESGCM, InvalidTag
        self.place = place
        self.operator_keys = OperatorKeys(place.file)
        self.keys = TenantKeys(place.url)
        self.cache_s = cache_s
        self._clock = clock
        self._looked_until = clock() + cache_s
        self._current: dict[str, _Cached] = {}
        self._by_id: dict[str, _Cached] = {}

    @property
    def writes(self) -> bool:
        self._look_at_file()
        return self.operator_keys.current != IN_CLEAR

    def _look_at_file(self) -> None:
        """Read the operator's file if the cache has expired. The old keys stay in use while it is being edited."""
        now = self._clock()
        if now < self._looked_until:
            return
        self._looked_until = now + self.cache_s
        try:
            self.operator_keys.read()
        except SetupError as wrong:
            log.warning("the file of content keys is not read anew", why=str(wrong))

    def encode(self, session_id: str, text: str) -> str:
        if not text:
            return text
        if not self.writes:
            # A text that happens to look like an encrypted value must not be taken for one.
            return f"{MARK}{IN_CLEAR}:{_base64(text.encode())}" if text.startswith(MARK) else text
        key = self.current(tenant_of(session_id))
        return f"{MARK}{key.key_id}:{_base64(self._sealed(key, text.encode()))}"

    def decode(self, value: str) -> str:
        found = ENCODED.fullmatch(value) if value.startswith(MARK) else None
        if found is None:
            return value
        try:
            body = base64.b64decode(found[2])
            return (body if found[1] == IN_CLEAR else self._opened(found[1], body)).decode()
        except (binascii.Error, UnicodeDecodeError):
            return value  # The value was written before encryption was set up, so it is not one of ours.

    def encode_bytes(self, session_id: str, data: bytes) -> bytes:
        if not self.writes:
            return data
        key = self.current(tenant_of(session_id))
        return _BYTES_MARK + key.key_id.encode() + b":" + self._sealed(key, data)

    def decode_bytes(self, value: bytes) -> bytes:
        if not value.startswith(_BYTES_MARK):
            return value
        return self._opened(value[len(MARK) : _HEAD - 1].decode("ascii", "replace"), value[_HEAD:])

    def current(self, tenant: str) -> _Cached:
        """Return the key for new values of a tenant. Creates one if the tenant has none."""
        cached = self._current.get(tenant)
        if cached is not None and self._clock() < cached.until:
            return cached
        self._look_at_file()
        asked_at = self._clock()
        row = self.keys.newest(tenant)
        while row is None or row["state"] != "current":
            self.add_key(tenant, 1 if row is None else row["generation"] + 1)
            row = self.keys.newest(tenant)
        return self._remember(row, asked_at)

    def add_key(self, tenant: str, generation: int) -> bool:
        """Create a tenant's key, wrapped by the operator's current key. Returns False if another process was first."""
        if not self.writes:
            raise SetupError(f"the first line of the file of keys is `{IN_CLEAR}`: new keys are not made")
        key_id, name = secrets.token_hex(6), self.operator_keys.current
        wrapped = self._wrap(name, key_id, tenant, secrets.token_bytes(KEY_BYTES))
        return self.keys.add(key_id=key_id, tenant=tenant, generation=generation, operator_key=name, wrapped=wrapped)

    def rotate(self, tenant: str) -> None:
        """Create a new key for the tenant's new values. Every process uses it once its cache has expired."""
        self.operator_keys.read()
        row = self.keys.newest(tenant)
        self.add_key(tenant, 1 if row is None else row["generation"] + 1)
        self._current.pop(tenant, None)

    def rewrap(self) -> tuple[int, int]:
        """Wrap every tenant's key with the operator's current key.

        Returns how many were rewrapped, and how many still have another wrapping key because a process with an older
        file has just created them.
        """
        self.operator_keys.read()
        name, done, others = self.operator_keys.current, 0, 0
        if name == IN_CLEAR:
            raise SetupError(f"the first line of the file of keys is `{IN_CLEAR}`; put the new key there")
        for row in self.keys.all():
            if row["state"] == "shredded" or row["operator_key"] == name:
                continue
            wrapped = self._wrap(name, row["key_id"], row["tenant"], self._unwrap(row))
            done += self.keys.rewrap(row["key_id"], row["operator_key"], name, wrapped)
        others = sum(row["state"] != "shredded" and row["operator_key"] != name for row in self.keys.all())
        return done, others

    def listed(self) -> list[TenantKey]:
        return self.keys.listed()

    def removed(self, tenant: str) -> tuple[str, ...]:
        self.operator_keys.read()
        rows = [row for row in self.keys.all() if row["tenant"] == tenant]
        for row in rows:
            if row["state"] != "shredded":
                self._unwrap(row)
        return tuple(row["key_id"] for row in rows if row["state"] == "shredded")

    def check(self) -> None:
        """Raise ContentKeyMissing if a tenant's key cannot be unwrapped, or SetupError for a bad file."""
        self.operator_keys.read()
        for row in self.keys.all():
            if row["state"] != "shredded":
                self._unwrap(row)

    def forget(self) -> None:
        """Drop all cached keys, and read the file again."""
        self._looked_until = 0.0
        self._current.clear()
        self._by_id.clear()

    def close(self) -> None:
        self.keys.close()

    def _sealed(self, key: _Cached, data: bytes) -> bytes:
        nonce = os.urandom(NONCE_BYTES)
        return nonce + key.cipher.encrypt(nonce, data, key.key_id.encode())

    def _opened(self, key_id: str, body: bytes) -> bytes:
        cipher = self._cipher(key_id)
        try:
            return cipher.decrypt(body[:NONCE_BYTES], body[NONCE_BYTES:], key_id.encode())
        except (self._wrong, ValueError):
            raise ContentKeyMissing(
                key_id,
                f"content under key {key_id!r} was changed, or the key's row is of another database; restore both",
            ) from None

    def _cipher(self, key_id: str) -> AESGCM:
        cached = self._by_id.get(key_id)
        if cached is not None and self._clock() < cached.until:
            return cached.cipher
        self._look_at_file()
        asked_at = self._clock()
        row = self.keys.get(key_id)
        if row is None:
            raise ContentKeyMissing(
                key_id,
                f"content is under key {key_id!r}, which is not among the tenants' keys; restore their database, or "
                "set BRAINQ_KEYS_URL to it",
            )
        return self._remember(row, asked_at).cipher

    def _remember(self, row: Record, asked_at: float) -> _Cached:
        """Cache a key. Its lifetime counts from before the read, so that a key removed during the read is not kept
        longer."""
        made = _Cached(row["key_id"], self._make_cipher(self._unwrap(row)), asked_at + self.cache_s)
        for cache in (self._current, self._by_id):
            if len(cache) >= MAX_CACHED:
                cache.clear()
        self._by_id[made.key_id] = made
        if row["state"] == "current":
            self._current[row["tenant"]] = made
        return made

    def _wrap(self, name: str, key_id: str, tenant: str, key: bytes) -> str:
        nonce = os.urandom(NONCE_BYTES)
        cipher = self._make_cipher(self.operator_keys.get(name))
        return _base64(nonce + cipher.encrypt(nonce, key, f"{key_id} {tenant}".encode()))

    def _unwrap(self, row: Record) -> bytes:
        """Decrypt a tenant's key. Raises ContentShredded, ContentKeyMissing."""
        key_id, name = row["key_id"], row["operator_key"]
        if row["state"] == "shredded":
            raise ContentShredded(f"key {key_id!r} of tenant {row['tenant']!r} was removed: its content is gone")
        body = base64.b64decode(row["wrapped"])
        cipher = self._make_cipher(self.operator_keys.get(name))
        try:
            return cipher.decrypt(body[:NONCE_BYTES], body[NONCE_BYTES:], f"{key_id} {row['tenant']}".encode())
        except self._wrong:
            raise ContentKeyMissing(
                name,
                f"the operator's key {name!r} in the file is not the one that key {key_id!r} is wrapped by; put the "
                "right one back under this name",
            ) from None


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
