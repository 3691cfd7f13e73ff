"""The keys of content at rest, over all cells: `Operator().keys`."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from brainq.adapters.sql.audit import record_act
from brainq.adapters.sql.erase import SqlErasure, scrub
from brainq.adapters.sql.store import Store
from brainq.contracts.act import NewAct
from brainq.contracts.encryption import SETTLE_S, ContentKeyMissing, ReencryptProgress, TenantKey
from brainq.contracts.erasure import ErasureScope
from brainq.contracts.ids import PREFIX_BOUNDARY, check_prefixes
from brainq.contrib.encryption.database import EncodedDatabase
from brainq.contrib.encryption.envelope import EnvelopeCodec
from brainq.contrib.encryption.reencrypt import Reencryption
from brainq.errors import InvalidInput, NotFound, SetupError
from brainq.runtime.observe.logs import logger

TURNS_AT_ONCE = 1000
log = logger("brainq.client")
NO_KEYS = (
    "content is not encrypted: write a key with `brainq keys new op-1 > content-keys`, and set BRAINQ_CONTENT_KEYS to "
    "that file for every process"
)


class ContentKeys:
    """An operator's actions on the content keys.

    stores   the databases of all cells, by name

    Each method raises SetupError if BRAINQ_CONTENT_KEYS is not set, and ContentKeyMissing if a key is not available
    here.
    """

    def __init__(self, stores: Sequence[tuple[str, Store]]) -> None:
        self._stores = stores

    def list(self) -> tuple[TenantKey, ...]:
        """Return all keys by tenant and generation, including removed ones."""
        return tuple(key for codec in self._codecs() for key in codec.listed())

    def in_clear(self) -> Mapping[str, int]:
        """Return the number of rows and files that are not encrypted, by table. Reads all of them."""
        return self._counted(Reencryption.in_clear)

    def left(self) -> Mapping[str, int]:
        """Return the number of rows and files that are not under their tenant's current key, by table. Reads all of
        them."""
        return self._counted(Reencryption.left)

    def rotate(self, tenant: str | None = None) -> int:
        """Create a new key for new values, for one tenant or for all. Returns the number of new keys.

        Old values stay readable with their old keys until `reencrypt` rewrites them. Other processes use the new key
        within ten seconds.
        """
        wanted = None if tenant is None else check_tenant(tenant)
        made = 0
        for codec in self._codecs():
            for name in sorted({key.tenant for key in codec.listed() if key.state == "current"}):
                if wanted in (None, name):
                    codec.rotate(name)
                    made += 1
        if wanted is not None and not made:
            raise NotFound(f"tenant {wanted!r} has no key: it gets one with its first content")
        return self._recorded("rotate keys", made, tenant)

    def rewrap(self) -> int:
        """Wrap the tenants' keys with the first key of the operator's file, so that the other lines can be deleted.

        Returns the number of rewrapped keys.

        If there are any, this takes eleven seconds, because a process uses its copy of the file for ten seconds and may
        still wrap a new tenant's key with the old one.
        """
        codecs = self._codecs()
        done = sum(_rewrap_all(codec) for codec in codecs)
        if done:
            time.sleep(max(0.0, max(codec.cache_s for codec in codecs) + SETTLE_S))
            done += sum(_rewrap_all(codec) for codec in codecs)
        return self._recorded("rewrap keys", done)

    def reencrypt(self, watch: Callable[[ReencryptProgress], None] = lambda _: None) -> int:
        """Re-encrypt every value with its tenant's current key, or decrypt it if the first line of the file is `clear`.

        Returns the number of rewritten rows and files.

        It may run next to live workers, and may be interrupted and run again. Values under a key that is being shredded
        stay unchanged. Raises ContentKeyMissing after all readable values are done.
        """
        done, missing = 0, None
        for database, codec in self._databases():
            try:
                done += Reencryption(database, codec).run(watch)
            except ContentKeyMissing as problem:
                missing = missing or problem
            if still := scrub(database):
                log.warning("old values are not gone from the files yet", why=still)
        if missing is not None:
            raise missing
        return done

    def shred(self, tenant: str) -> int:
        """Remove a tenant's keys permanently, so that its content can never be read again. Returns the number of keys.

        This takes eleven seconds, because processes cache a key for ten. Raises InvalidInput while the tenant has turns
        that have not ended. `erase` ends them, and removes the keys as well.
        """
        name = check_tenant(tenant)
        open_turns = [turn for _, store in self._stores for turn in self._open_turns(store, name)]
        if open_turns:
            raise InvalidInput(
                "tenant",
                f"{name!r} has {len(open_turns)} turns that have not ended, such as {open_turns[0]}; end them, or run "
                f"`brainq erase --tenant {name}`, which ends them and removes its keys with all else",
            )
        return self._recorded("shred keys", KeysLeaving(self._codecs(), name).shred(), tenant)

    def check(self) -> None:
        """Raise ContentKeyMissing for the first key that cannot be unwrapped here."""
        for codec in self._codecs():
            codec.check()

    def _recorded(self, act: str, count: int, tenant: str | None = None) -> int:
        if count:
            record_act(self._stores[0][1], NewAct(act, tenant or ""))
        return count

    def _counted(self, count: Callable[[Reencryption], Mapping[str, int]]) -> Mapping[str, int]:
        found = Counter[str]()
        for database, codec in self._databases():
            found.update(count(Reencryption(database, codec)))
        return dict(found)

    def _open_turns(self, store: Store, tenant: str) -> list[str]:
        if tenant == PREFIX_BOUNDARY:
            found, after = list[str](), 0
            while page := store.turns.unended(after, TURNS_AT_ONCE):
                found += [row.turn_id for row in page if PREFIX_BOUNDARY not in row.session_id]
                after = page[-1].row
            return found
        return [turn for _, turn in SqlErasure(store.database, ErasureScope.of(None, tenant)).open_turns()]

    def _databases(self) -> Iterator[tuple[EncodedDatabase, EnvelopeCodec]]:
        for _, store in self._stores:
            codec = codec_of(store)
            if codec is None or not isinstance(store.database, EncodedDatabase):
                raise SetupError(NO_KEYS)
            codec.operator_keys.read()
            yield store.database, codec

    def _codecs(self) -> list[EnvelopeCodec]:
        """Return one codec for each database of keys."""
        return list({codec.place.url: codec for _, codec in self._databases()}.values())


class KeysLeaving:
    """A tenant's keys that are being removed.

    No new value uses them: values that are written meanwhile use a new key, which stays.
    """

    def __init__(self, codecs: Sequence[EnvelopeCodec], tenant: str) -> None:
        self._all = codecs  # These include the databases whose keys were shredded earlier.
        self._codecs = [codec for codec in codecs if codec.keys.leave(tenant)]
        self._tenant = tenant
        self._gone_at = time.monotonic() + max((codec.cache_s for codec in codecs), default=0.0) + SETTLE_S

    def shred(self) -> int:
        """Wait until no process can still have a key in its cache, then remove the keys. Returns their number."""
        try:
            if self._codecs:
                time.sleep(max(0.0, self._gone_at - time.monotonic()))
        except BaseException:
            self.stay()
            raise
        # Remove them from all databases, because an earlier process may have died before the keys were gone from the
        # files.
        gone = sum(codec.keys.shred(self._tenant) for codec in self._all)
        for codec in self._codecs:
            codec.forget()
        return gone

    def forget_name(self) -> None:
        """Remove the tenant's name from the rows of the removed keys."""
        for codec in self._all:
            codec.keys.forget_name(self._tenant)

    def stay(self) -> None:
        """Keep the keys after all. Their values can be re-encrypted with the tenant's newer key."""
        for codec in self._codecs:
            codec.keys.stay(self._tenant)


def erase_keys(stores: Sequence[Store], tenant: str) -> int:
    """Remove the keys of an erased tenant permanently, and its name from the remaining rows. Returns the number of
    keys."""
    leaving = KeysLeaving([codec for store in stores if (codec := codec_of(store)) is not None], tenant)
    gone = leaving.shred()
    leaving.forget_name()
    return gone


def _rewrap_all(codec: EnvelopeCodec) -> int:
    done = 0
    while True:
        wrapped, others = codec.rewrap()
        done += wrapped
        if not others:
            return done


def codec_of(store: Store) -> EnvelopeCodec | None:
    codec = store.database.codec
    return codec if isinstance(codec, EnvelopeCodec) else None


def check_tenant(tenant: str) -> str:
    """Return the tenant. Raises InvalidInput unless it is the part of a session id up to the first colon."""
    if tenant == PREFIX_BOUNDARY:
        return tenant
    (name,) = check_prefixes("tenant", (tenant,))
    if name.index(PREFIX_BOUNDARY) != len(name) - 1 if PREFIX_BOUNDARY in name else True:
        raise InvalidInput(
            "tenant",
            f"{tenant!r} is not a tenant with a key; use the part of the session id up to the first colon, such as "
            "'acme:'",
        )
    return name
