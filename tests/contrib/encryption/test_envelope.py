"""Envelope encryption: values name their key, keys are wrapped, replaced and removed, and errors name the remedy."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from brainq.contracts.encryption import KEY_CACHE_S, ContentKeyMissing, ContentShredded, KeyPlace, key_id_of
from brainq.contrib.encryption import content_keys
from brainq.contrib.encryption.content_keys import ContentKeys
from brainq.contrib.encryption.envelope import EnvelopeCodec, new_operator_key, parse_operator_keys
from brainq.errors import SetupError
from tests.contrib.encryption.key_files import key_file, key_place
from tests.support.module_time import replace_time

SAID = "It's Zanzibarium \u2603"


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def codec(tmp_path: Path, clock: Clock) -> Iterator[EnvelopeCodec]:
    made = EnvelopeCodec(key_place(tmp_path), clock=clock)
    yield made
    made.close()


def other(tmp_path: Path, clock: Clock) -> EnvelopeCodec:
    """As another process has it."""
    place = KeyPlace(str(tmp_path / "content-keys"), f"sqlite:///{tmp_path / 'tenants.keys.db'}")
    return EnvelopeCodec(place, clock=clock)


def test_a_value_names_its_key_and_is_read_without_its_tenant(codec: EnvelopeCodec) -> None:
    value = codec.encode("acme:1", SAID)
    (key,) = codec.listed()
    assert (value.startswith(f"bqe1:{key.key_id}:"), "Zanzibarium" in value) == (True, False)
    assert (key.tenant, key.generation, key.operator_key, key.state) == ("acme:", 1, "op-1", "current")
    assert codec.decode(value) == SAID
    assert codec.encode("acme:2", SAID) != value, "each has a nonce of its own"
    assert codec.decode_bytes(codec.encode_bytes("acme:1", b"\x00png")) == b"\x00png"


def test_tenants_have_keys_of_their_own(codec: EnvelopeCodec) -> None:
    values = [codec.encode(session, SAID) for session in ("acme:1", "acme:2", "beta:1", "plain", "other")]
    assert [key.tenant for key in codec.listed()] == [":", "acme:", "beta:"]
    assert len({key_id_of(value) for value in values}) == 3


@pytest.mark.parametrize(
    "said", ["", "in the clear", "bqe1:", "bqe1:nope:xx", "bqe1:abc", "bqe1:0123456789ab:A", "bqe1:clear:/w=="]
)
def test_text_in_the_clear_is_itself(codec: EnvelopeCodec, said: str) -> None:
    assert codec.decode(said) == said


def test_another_process_reads_and_uses_the_same_key(codec: EnvelopeCodec, tmp_path: Path, clock: Clock) -> None:
    value = codec.encode("acme:1", SAID)
    second = other(tmp_path, clock)
    assert second.decode(value) == SAID
    assert key_id_of(second.encode("acme:9", SAID)) == key_id_of(value)
    second.close()


def test_a_rotation_is_noticed_within_the_bound(codec: EnvelopeCodec, tmp_path: Path, clock: Clock) -> None:
    before = codec.encode("acme:1", SAID)
    second = other(tmp_path, clock)
    second.rotate("acme:")
    assert [key.state for key in codec.listed()] == ["old", "current"]
    clock.now += KEY_CACHE_S
    after = codec.encode("acme:1", SAID)
    assert key_id_of(after) != key_id_of(before)
    assert (codec.decode(before), codec.decode(after)) == (SAID, SAID)
    second.close()


def test_a_keys_time_counts_from_before_it_was_asked_for(
    codec: EnvelopeCodec, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQL is slow, and the key is replaced once it was read."""
    codec.encode("acme:1", SAID)
    codec.forget()
    newest, asked = codec.keys.newest, list[str]()

    def slow(tenant: str) -> Any:
        asked.append(tenant)
        row = newest(tenant)
        clock.now += KEY_CACHE_S - 1
        return row

    monkeypatch.setattr(codec.keys, "newest", slow)
    codec.encode("acme:1", SAID)
    clock.now += 1
    codec.encode("acme:1", SAID)
    assert asked == ["acme:"] * 2


def test_keys_are_wrapped_anew_and_the_old_operators_key_may_go(
    codec: EnvelopeCodec, tmp_path: Path, clock: Clock
) -> None:
    value = codec.encode("acme:1", SAID)
    file = tmp_path / "content-keys"
    file.write_text(f"{new_operator_key('op-2')}\n{file.read_text()}")
    assert codec.rewrap() == (1, 0)
    assert codec.rewrap() == (0, 0), "again changes nothing"
    file.write_text(file.read_text().splitlines()[0])
    second = other(tmp_path, clock)
    assert second.decode(value) == SAID
    second.close()


def test_a_key_that_is_not_here_is_named_with_the_remedy(codec: EnvelopeCodec, tmp_path: Path, clock: Clock) -> None:
    value = codec.encode("acme:1", SAID)
    file, kept = tmp_path / "content-keys", (tmp_path / "content-keys").read_text()
    key_file(tmp_path, "op-2")
    codec.forget()
    with pytest.raises(ContentKeyMissing, match=r"'op-1' is not in .*content-keys; add its line again"):
        codec.decode(value)
    key_file(tmp_path, "op-1")
    codec.forget()
    with pytest.raises(ContentKeyMissing, match=r"'op-1' in the file is not the one that key '[0-9a-f]{12}'"):
        codec.decode(value)
    file.write_text(kept)
    codec.forget()
    assert codec.decode(value) == SAID, "nothing was lost by it"
    with pytest.raises(ContentKeyMissing, match=r"key '0{12}', which is not among the tenants' keys; restore"):
        codec.decode(f"bqe1:{'0' * 12}:{value.rpartition(':')[2]}")
    with pytest.raises(ContentKeyMissing, match="was changed"):
        codec.decode(value[:-8] + "AAAAAAA=")


def test_a_shredded_key_is_gone_from_every_process_within_the_bound(
    codec: EnvelopeCodec, tmp_path: Path, clock: Clock
) -> None:
    value, others = codec.encode("acme:1", SAID), codec.encode("beta:1", SAID)
    second = other(tmp_path, clock)
    assert second.keys.leave("acme:") == 1
    assert codec.decode(value) == SAID, "it is in the cache"
    clock.now += KEY_CACHE_S
    newer = codec.encode("acme:1", SAID)
    assert key_id_of(newer) != key_id_of(value), "nothing new is under a key that leaves"
    assert second.keys.shred("acme:") == 1
    clock.now += KEY_CACHE_S
    with pytest.raises(ContentShredded, match="of tenant 'acme:' was removed"):
        codec.decode(value)
    assert (codec.decode(newer), codec.decode(others)) == (SAID, SAID)
    assert [key.state for key in codec.listed()] == ["shredded", "current", "current"]
    second.close()


def test_a_row_moved_to_another_tenant_opens_nothing(codec: EnvelopeCodec, tmp_path: Path) -> None:
    value = codec.encode("acme:1", SAID)
    with codec.keys._engine.begin() as connection:  # pyright: ignore[reportPrivateUsage]
        connection.exec_driver_sql("UPDATE tenant_keys SET tenant = 'evil:'")
    codec.forget()
    with pytest.raises(ContentKeyMissing):
        codec.decode(value)


def test_clear_as_the_first_line_writes_in_the_clear_and_reads_both(codec: EnvelopeCodec, tmp_path: Path) -> None:
    value = codec.encode("acme:1", SAID)
    file = tmp_path / "content-keys"
    file.write_text(f"clear\n{file.read_text()}")
    codec.operator_keys.read()
    assert (codec.writes, codec.encode("acme:1", SAID), codec.decode(value)) == (False, SAID, SAID)
    looks_like = codec.encode("acme:1", value)
    assert (looks_like == value, codec.decode(looks_like)) == (False, value), "said by somebody, and no key of ours"
    assert codec.encode_bytes("acme:1", b"x") == b"x"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "has no key"),
        ("# only a comment\n", "has no key"),
        ("clear\n", "has no key"),
        ("op-1:AAAA\n", "line 1 of k is not `KEY_ID:base64 of 32 bytes`"),
        ("op-1:not base64\n", "line 1 of k is not"),
        (f"op-1:{'A' * 43}=\nop-1:{'A' * 43}=\n", "line 2 of k: each key needs a name of its own"),
        (f"op-1:{'A' * 43}=\nclear\n", "is the first line or none"),
        (f":{'A' * 43}=\n", "needs a name"),
    ],
)
def test_a_wrong_file_is_refused_without_showing_a_key(text: str, problem: str) -> None:
    with pytest.raises(SetupError, match=problem) as refused:
        parse_operator_keys(text, "k")
    assert "AAA" not in str(refused.value)


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    place = key_place(tmp_path)
    (tmp_path / "content-keys").unlink()
    with pytest.raises(SetupError, match=r"BRAINQ_CONTENT_KEYS: .* cannot be read"):
        EnvelopeCodec(place)


def test_a_key_that_a_process_wraps_by_the_file_as_it_was_is_wrapped_anew_too(
    codec: EnvelopeCodec, tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    codec.encode("acme:1", SAID)
    late = other(tmp_path, clock)
    file = tmp_path / "content-keys"
    file.write_text(f"{new_operator_key('op-2')}\n{file.read_text()}")
    verbs = ContentKeys([("", cast(Any, None))])

    def sleep(seconds: float) -> None:
        assert seconds > KEY_CACHE_S
        late.encode("beta:1", SAID)

    monkeypatch.setattr(verbs, "_codecs", lambda: [codec])
    replace_time(monkeypatch, content_keys, sleep=sleep)
    assert verbs.rewrap() == 2
    assert {key.operator_key for key in codec.listed()} == {"op-2"}
    late.close()


def test_the_keys_have_another_file_than_the_content() -> None:
    with pytest.raises(SetupError, match=r"BRAINQ_KEYS_URL is the file of BRAINQ_SQL_URL.*name another"):
        KeyPlace.of("content-keys", "sqlite:///a.db?timeout=1", "sqlite:///a.db")
