"""Blobs in a dict, and pictures that are small enough to read in a failing test."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from brainq.contracts.file import File
from brainq.contracts.message import Attachment

if TYPE_CHECKING:
    from brainq.adapters.sql.repositories.blobs import Blobs
else:
    Blobs = object  # a child process of the tests must not import SQLAlchemy


class BlobsInMemory(Blobs):
    """A store of files in a dict. `loaded` has what was read, in order; `fails` is raised instead."""

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], bytes] = {}
        self.loaded: list[str] = []
        self.fails: Exception | None = None

    def keep(self, session_id: str, turn_id: str, files: Sequence[File]) -> Sequence[str]:
        if self.fails is not None:
            raise self.fails
        had = set(self.kept)
        for file in files:
            self.kept[session_id, file.attachment.sha256] = file.data
        return [sha256 for _, sha256 in set(self.kept) - had]

    def take_back(self, turn_id: str, hashes: Sequence[str]) -> None:
        """Do nothing, because files are kept by session only."""

    def lend(self, session_id: str, turn_id: str, given: Sequence[Attachment]) -> None:
        assert all((session_id, one.sha256) in self.kept for one in given)

    def drop(self, turn_id: str) -> None:
        """Do nothing, because files are kept by session only."""

    def load(self, session_id: str, hashes: Iterable[str]) -> Mapping[str, bytes]:
        if self.fails is not None:
            raise self.fails
        wanted = sorted(hashes)
        self.loaded += wanted
        return {one: self.kept[session_id, one] for one in wanted if (session_id, one) in self.kept}


def png(shade: int = 0) -> bytes:
    """Return a picture of one pixel, which depends on `shade`."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    head = struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)
    pixel = zlib.compress(bytes([0, shade]))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", pixel) + chunk(b"IEND", b"")


def pdf() -> bytes:
    return b"%PDF-1.4\n1 0 obj<</Type/Catalog>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF\n"
