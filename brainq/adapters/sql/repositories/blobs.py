"""Blobs: file contents stored under their hash, and the turns that have them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from sqlalchemy import bindparam, delete, exists, select

from brainq.adapters.sql.database import Database, Transaction
from brainq.adapters.sql.statements import insert_or_ignore, upsert
from brainq.adapters.sql.tables import attachments, blobs
from brainq.contracts.file import File
from brainq.contracts.message import Attachment

_A = attachments.c
_B = blobs.c
# An existing blob is written to as well, so that a concurrent deletion waits, and so that the time does not reveal
# whether another session has sent the same file.
_KEEP = upsert(blobs, ["sha256"], copied=("sha256",), changed={})
_LINK = insert_or_ignore(attachments)
_HASHES = bindparam("hashes", expanding=True)
_LOAD = (
    select(_B.sha256, _B.data)
    .where(_B.sha256.in_(_HASHES))
    .where(exists().where(_A.session_id == bindparam("session"), _A.sha256 == _B.sha256))
)
_ONE = (
    select(_A.sha256, _A.media_type, _A.size, _A.name, _B.data)
    .where(_A.turn_id == bindparam("turn"), _A.sha256 == bindparam("sha256"))
    .where(_B.sha256 == _A.sha256)
)
_OF_TURNS = _A.turn_id.in_(bindparam("turns", expanding=True))
_FILES = select(_A.sha256).where(_OF_TURNS).distinct()
_UNLINK = delete(attachments).where(_OF_TURNS)
_UNLINK_SOME = delete(attachments).where(_A.turn_id == bindparam("turn"), _A.sha256.in_(_HASHES))
_LOCK = select(_B.sha256).where(_B.sha256.in_(_HASHES)).order_by(_B.sha256).with_for_update()
_DROP = delete(blobs).where(_B.sha256.in_(_HASHES), ~exists().where(_A.sha256 == _B.sha256))


def drop_unused(connection: Transaction, hashes: Sequence[str]) -> int:
    """Effect: delete those of the given blobs that no turn has. Returns how many."""
    if not hashes:
        return 0
    # A separate statement takes the locks, so that the next statement sees all turns that have these blobs.
    connection.all(_LOCK, {"hashes": hashes})
    return connection.write(_DROP, {"hashes": hashes})


def unlink(connection: Transaction, turn_ids: Sequence[str]) -> tuple[int, int]:
    """Effect: take all files from turns, and delete those that no other turn has.

    Returns the number of deleted rows of `attachments` and of `blobs`.
    """
    of_turns = {"turns": turn_ids}
    hashes = [row["sha256"] for row in connection.all(_FILES, of_turns)]
    return connection.write(_UNLINK, of_turns), drop_unused(connection, hashes)


class Blobs:
    """The tables `blobs` and `attachments`."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self._keep = database.pick(_KEEP)
        self._link = database.pick(_LINK)

    def keep(self, session_id: str, turn_id: str, files: Sequence[File]) -> Sequence[str]:
        """Store files for a turn in one transaction. Idempotent. Returns the hashes that the turn did not have."""
        each = {file.attachment.sha256: file for file in files}
        new: list[str] = []
        if not each:
            return new
        with self._db.transaction() as connection:
            # A fixed order prevents a deadlock of two writers of the same files.
            for sha256, file in sorted(each.items()):
                connection.write(self._keep, {"sha256": sha256, "data": file.data})
                if connection.write(self._link, attachment_row(session_id, turn_id, file.attachment)):
                    new.append(sha256)
        return new

    def take_back(self, turn_id: str, hashes: Sequence[str]) -> None:
        """Take files from a turn. Idempotent."""
        if not hashes:
            return
        with self._db.transaction() as connection:
            connection.write(_UNLINK_SOME, {"turn": turn_id, "hashes": hashes})
            drop_unused(connection, hashes)

    def lend(self, session_id: str, turn_id: str, given: Sequence[Attachment]) -> None:
        """Give a turn the files that another turn of its session has."""
        for attachment in given:
            self._db.put(self._link, attachment_row(session_id, turn_id, attachment))

    def drop(self, turn_id: str) -> None:
        """Take all files from a turn. Idempotent."""
        with self._db.transaction() as connection:
            unlink(connection, [turn_id])

    def load(self, session_id: str, hashes: Iterable[str]) -> Mapping[str, bytes]:
        """Return those of the given files that the session has."""
        found = self._db.all(_LOAD, {"session": session_id, "hashes": sorted(set(hashes))})
        return {row["sha256"]: bytes(row["data"]) for row in found}

    def of_turn(self, turn_id: str, sha256: str) -> File | None:
        """Return a file of the turn, or None if the turn does not have it."""
        row = self._db.first(_ONE, {"turn": turn_id, "sha256": sha256})
        return None if row is None else File(bytes(row["data"]), row["media_type"], row["name"])


def attachment_row(session_id: str, turn_id: str, attachment: Attachment) -> dict[str, object]:
    return {
        "turn_id": turn_id,
        "sha256": attachment.sha256,
        "session_id": session_id,
        "media_type": attachment.media_type,
        "size": attachment.size,
        "name": attachment.name,
    }
