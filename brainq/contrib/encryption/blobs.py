"""The files of a database with encrypted content: each tenant has its own copy of a file, under its key."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from sqlalchemy import bindparam, select

from brainq.adapters.sql.repositories.blobs import Blobs, attachment_row
from brainq.adapters.sql.tables import attachments
from brainq.contracts.encryption import OWNER_SEPARATOR
from brainq.contracts.file import File
from brainq.contracts.ids import tenant_of
from brainq.contracts.message import Attachment

_A = attachments.c
_OF_TURN = select(_A.sha256).where(_A.turn_id == bindparam("turn"))
_LENT = (
    select(_A.sha256)
    .where(_A.session_id == bindparam("session"), _A.sha256.in_(bindparam("hashes", expanding=True)))
    .limit(1)
)


class EncryptedBlobs(Blobs):
    """Blobs with encrypted content. Each tenant has its own copy of a file, under its key. The name of such a file in
    SQL contains its tenant. A file that was stored in the clear keeps its name."""

    def keep(self, session_id: str, turn_id: str, files: Sequence[File]) -> Sequence[str]:
        codec = self._db.codec
        is_encrypted = codec is not None and codec.writes
        each = {file.attachment.sha256: file for file in files}
        if not each:
            return []
        new: list[str] = []
        with self._db.transaction() as connection:
            had = {_plain(row["sha256"]) for row in connection.all(_OF_TURN, {"turn": turn_id})}
            for sha256, file in sorted(each.items()):
                if sha256 in had:
                    continue
                name = _name(session_id, sha256) if is_encrypted else sha256
                connection.write(self._keep, {"sha256": name, "data": file.data})
                if connection.write(
                    self._link, {**attachment_row(session_id, turn_id, file.attachment), "sha256": name}
                ):
                    new.append(sha256)
        return new

    def take_back(self, turn_id: str, hashes: Sequence[str]) -> None:
        super().take_back(turn_id, [name for name in self._names(turn_id) if _plain(name) in hashes])

    def lend(self, session_id: str, turn_id: str, given: Sequence[Attachment]) -> None:
        """Give a turn the files of another turn, under the names that the other turn has them."""
        for attachment in given:
            names = [attachment.sha256, _name(session_id, attachment.sha256)]
            found = self._db.first(_LENT, {"session": session_id, "hashes": names})
            name = attachment.sha256 if found is None else found["sha256"]
            self._db.write(self._link, {**attachment_row(session_id, turn_id, attachment), "sha256": name})

    def load(self, session_id: str, hashes: Iterable[str]) -> Mapping[str, bytes]:
        wanted = sorted(set(hashes))
        found = super().load(session_id, [*wanted, *(_name(session_id, one) for one in wanted)])
        return {_plain(name): data for name, data in found.items()}

    def of_turn(self, turn_id: str, sha256: str) -> File | None:
        name = next((name for name in self._names(turn_id) if _plain(name) == sha256), None)
        return None if name is None else super().of_turn(turn_id, name)

    def _names(self, turn_id: str) -> list[str]:
        return [row["sha256"] for row in self._db.all(_OF_TURN, {"turn": turn_id})]


def _name(session_id: str, sha256: str) -> str:
    return f"{sha256}{OWNER_SEPARATOR}{tenant_of(session_id)}"


def _plain(name: str) -> str:
    return name.partition(OWNER_SEPARATOR)[0]
