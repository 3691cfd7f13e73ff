"""Tenants' keys: their writer dies between any two writes, and does it again."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from sqlalchemy import bindparam, update

from brainq.adapters.sql.store import Store
from brainq.adapters.sql.tables import messages
from brainq.contracts.encryption import ContentShredded
from brainq.contrib.encryption import content_keys
from brainq.contrib.encryption.content_keys import ContentKeys, KeysLeaving, codec_of
from brainq.contrib.encryption.envelope import EnvelopeCodec
from tests.contrib.encryption.key_files import key_place
from tests.integration.adapters.sql.examples import request
from tests.support.crashes import crash_everywhere
from tests.support.module_time import replace_time
from tests.support.pump import sqlite_url


@dataclass
class Keyed:
    """A store with keys; `value` was written under the first of tenant acme:."""

    store: Store
    codec: EnvelopeCodec
    folder: Path
    value: str

    def states(self) -> list[str]:
        return [key.state for key in self.codec.listed()]

    def can_read(self) -> bool:
        self.codec.forget()
        return self.codec.decode(self.value) == "hello"

    def has_left(self, text: str) -> bool:
        """Whether a file of the folder has it."""
        return any(text.encode() in path.read_bytes() for path in self.folder.rglob("*") if path.is_file())


@contextmanager
def keyed() -> Generator[Keyed]:
    with TemporaryDirectory() as name:
        folder = Path(name)
        url = sqlite_url(folder)
        with Store.open(url, migrate=False, keys=key_place(folder, "op-1")) as store:
            codec = codec_of(store)
            assert codec is not None
            store.turns.accept(request("t-1", "acme:1", "hello"))
            yield Keyed(store, codec, folder, codec.encode("acme:1", "hello"))


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(content_keys, "SETTLE_S", 0.0)
    replace_time(monkeypatch, content_keys, sleep=abs)


def test_of_a_rotation_that_died_the_newest_key_is_the_current_one_and_old_values_are_read() -> None:
    def seen(world: Keyed) -> object:
        new = world.codec.encode("acme:1", "new")
        newest = world.codec.keys.newest("acme:")
        return world.can_read(), world.states().count("current"), newest is not None and newest["key_id"] in new

    assert crash_everywhere(keyed, lambda world: world.codec.rotate("acme:"), seen) == 2
    with keyed() as world:
        world.codec.rotate("acme:")
        assert seen(world) == (True, 1, True)


def test_a_shredded_key_is_in_no_file_wherever_its_shredder_died(at_once: None) -> None:
    wrapped: list[str] = []

    def shred(world: Keyed) -> None:
        found = world.codec.keys.newest("acme:")
        if found is not None and found["wrapped"]:
            wrapped.append(found["wrapped"])
        KeysLeaving([world.codec], "acme:").shred()

    def seen(world: Keyed) -> object:
        return world.states(), world.has_left(wrapped[-1])

    def between(world: Keyed) -> None:
        assert world.states() in (["leaving"], ["shredded"])

    assert crash_everywhere(keyed, shred, seen, between) == 2
    with keyed() as world:
        shred(world)
        assert seen(world) == (["shredded"], False)


def test_a_statement_that_writes_content_names_its_session_or_its_turn() -> None:
    with keyed() as world, pytest.raises(KeyError, match="session_id"):
        world.store.database.write(update(messages).values(content=bindparam("said")), {"said": "hello"})


def test_an_interrupted_shred_leaves_keys_that_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_: float) -> None:
        raise KeyboardInterrupt

    replace_time(monkeypatch, content_keys, sleep=interrupted)
    with keyed() as world:
        leaving = KeysLeaving([world.codec], "acme:")
        assert world.states() == ["leaving"]
        with pytest.raises(KeyboardInterrupt):
            leaving.shred()
        assert world.states() == ["old"]
        assert world.can_read()


def test_keys_go_once_no_process_can_have_one_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    with keyed() as world:
        waited: list[float] = []

        def sleep(seconds: float) -> None:
            assert world.states() == ["leaving"]
            waited.append(seconds)

        replace_time(monkeypatch, content_keys, sleep=sleep)
        assert KeysLeaving([world.codec], "acme:").shred() == 1
        assert world.codec.cache_s < waited[0] <= world.codec.cache_s + content_keys.SETTLE_S
        with pytest.raises(ContentShredded):
            world.codec.decode(world.value)
        assert KeysLeaving([world.codec], "acme:").shred() == 0
        assert len(waited) == 1, "nothing leaves, so nobody waits"


def test_a_reencryption_that_died_anywhere_is_gone_on_with() -> None:
    @contextmanager
    def rotated() -> Generator[Keyed]:
        with keyed() as world:
            for number in range(2, 4):
                world.store.turns.accept(request(f"t-{number}", "acme:1", "hello", request_key=f"k{number}"))
            world.codec.rotate("acme:")
            yield world

    def run(world: Keyed) -> None:
        ContentKeys([("", world.store)]).reencrypt()

    def seen(world: Keyed) -> object:
        requests = [world.store.turns.request(f"t-{number}") for number in range(1, 4)]
        return ContentKeys([("", world.store)]).left(), [one and one.user_message for one in requests]

    assert crash_everywhere(rotated, run, seen) >= 1
