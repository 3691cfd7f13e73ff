"""The bytes of attachments in SQL."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from brainq.contracts.attachment import Attachment
from brainq.contracts.file import File


class Blobs(Protocol):
    """Bytes by session and hash. Fitted by `store.repositories.blobs.Blobs`.

    keep    writes files down for a turn, before anything refers to them, and tells which it did not have; again
            changes nothing
    take_back  takes some of its files from a turn again
    lend    lets another turn of the session have what one of its turns has
    drop    takes from a turn all that it has
    load    those of these hashes that the session has; the others are left out
    """

    def keep(self, session_id: str, turn_id: str, files: Sequence[File]) -> Sequence[str]: ...
    def take_back(self, turn_id: str, hashes: Sequence[str]) -> None: ...
    def lend(self, session_id: str, turn_id: str, given: Sequence[Attachment]) -> None: ...
    def drop(self, turn_id: str) -> None: ...
    def load(self, session_id: str, hashes: Iterable[str]) -> Mapping[str, bytes]: ...
