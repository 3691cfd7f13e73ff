from __future__ import annotations

from brainq.contracts.file import File
from brainq.contracts.message import Message
from brainq.engine.turn.step_request import CACHED_S, BlobCache
from tests.support.blobs import BlobsInMemory, png

FILES = [File(png(shade), name=f"{shade}.png") for shade in range(3)]
SIZE = len(FILES[0].data)


def showing(*files: File) -> list[Message]:
    return [Message(role="user", content="?", attachments=tuple(file.attachment for file in files))]


def kept() -> BlobsInMemory:
    blobs = BlobsInMemory()
    blobs.keep("s1", "t", FILES)
    return blobs


def test_sql_is_asked_once_and_not_at_all_without_files() -> None:
    blobs = kept()
    cache = BlobCache(blobs)
    assert cache.blobs_for("s1", [Message(role="user", content="hi")]) == {}
    for _ in range(2):
        assert cache.blobs_for("s1", showing(*FILES[:2])) == {file.attachment.sha256: file.data for file in FILES[:2]}
    assert len(blobs.loaded) == 2


def test_another_session_is_not_shown_what_is_cached() -> None:
    blobs = kept()
    cache = BlobCache(blobs)
    assert cache.blobs_for("s1", showing(FILES[0]))
    assert cache.blobs_for("s2", showing(FILES[0])) == {}
    assert len(blobs.loaded) == 2, "it was looked for, as if nobody had it"


def test_the_least_used_leave_when_it_is_full() -> None:
    blobs = kept()
    cache = BlobCache(blobs, most_bytes=2 * SIZE + 5)
    for file in (FILES[0], FILES[1], FILES[0], FILES[2]):
        assert cache.blobs_for("s1", showing(file))
    blobs.loaded.clear()
    cache.blobs_for("s1", showing(FILES[0]))
    assert blobs.loaded == []
    cache.blobs_for("s1", showing(FILES[1]))
    assert blobs.loaded == [FILES[1].attachment.sha256]


def test_what_sql_has_let_go_is_not_shown_for_long() -> None:
    now = [0.0]
    blobs = kept()
    cache = BlobCache(blobs, clock=lambda: now[0])
    cache.blobs_for("s1", showing(FILES[0]))
    blobs.kept.clear()
    now[0] = CACHED_S - 1
    assert cache.blobs_for("s1", showing(FILES[0]))
    now[0] = CACHED_S + 1
    assert cache.blobs_for("s1", showing(FILES[0])) == {}
