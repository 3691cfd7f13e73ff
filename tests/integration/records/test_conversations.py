"""What a process knows of a history is, at each step, what is in Redis: whatever happened to it meanwhile."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from brainq.adapters.redis import conversations as module
from brainq.adapters.redis.connection import Client, make_client
from brainq.adapters.redis.conversations import MAX_READ_MESSAGES, Command, Conversations
from brainq.contracts.conversation import Conversation
from brainq.contracts.message import Message
from brainq.runtime.text.estimate import with_sizes

KEY = "bq:{s1}:history"


class Session:
    """A history, its stamp and its trimmed count, as scripts keep them."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.stamp, self.trimmed, self.said = "1", 0, 0

    def say(self, count: int = 1) -> None:
        self.said += count
        for number in range(self.said - count, self.said):
            item = Message(role="user", content=f"message {number}", turn=f"t-{number // 3}")
            self.client.rpush(KEY, item.model_dump_json(exclude_defaults=True))

    def trim(self, count: int) -> None:
        self.client.ltrim(KEY, count, -1)
        self.trimmed += count

    def compact(self, drop: int) -> None:
        self.client.ltrim(KEY, drop, -1)
        self.client.lpush(KEY, '{"role":"user","content":"so far"}')
        self.trimmed += drop - 1
        self.stamp += "1"

    def begin_anew(self) -> None:
        self.client.delete(KEY)
        self.stamp, self.trimmed = self.stamp + "0", 0

    def read(self, by: Conversations) -> Conversation:
        known = by.known(KEY)
        (items,) = self.client.many([by.read(KEY, known)])
        return by.conversation(KEY, known, self.stamp, self.trimmed, items)

    def whole(self) -> Conversation:
        return self.read(Conversations(self.client))


@pytest.fixture
def session(redis_url: str) -> Iterator[Session]:
    client = make_client(redis_url)
    yield Session(client)
    client.delete(KEY)
    client.close()


def asked_of(command: Command) -> int:
    """From which place on messages are read."""
    return int(command[2])


def test_only_what_was_added_is_read_again(session: Session) -> None:
    conversations = Conversations(session.client)
    session.say(5)
    first = session.read(conversations)
    assert first == session.whole()
    assert [message.content for message in first.messages] == [f"message {n}" for n in range(5)]
    assert first.begins == {"t-0": 0, "t-1": 3}
    session.say(2)
    assert asked_of(conversations.read(KEY, conversations.known(KEY))) == 4  # the newest known one, and on
    second = session.read(conversations)
    assert second == session.whole()
    assert all(now is before for now, before in zip(second.messages, first.messages, strict=False))
    assert session.read(conversations) is second


def test_nothing_said_is_nothing_known(session: Session) -> None:
    assert session.read(Conversations(session.client)) == Conversation()


def test_messages_trimmed_away_in_front_are_forgotten_and_no_other_is_read_again(session: Session) -> None:
    conversations = Conversations(session.client)
    session.say(6)
    before = session.read(conversations)
    session.trim(2)
    session.say()
    after = session.read(conversations)
    assert after == session.whole()
    assert after.messages[0] is before.messages[2]
    session.trim(5)
    assert session.read(conversations) == session.whole()


def test_a_compacted_history_is_read_anew(session: Session) -> None:
    conversations = Conversations(session.client)
    session.say(6)
    session.read(conversations)
    session.compact(1)  # one goes and one comes: neither its length nor its end tells
    after = session.read(conversations)
    assert after == session.whole()
    assert after.messages[0].content == "so far"


def test_what_redis_lost_is_not_remembered(session: Session) -> None:
    conversations = Conversations(session.client)
    session.say(6)
    session.read(conversations)
    session.client.ltrim(KEY, 0, 3)  # what was written last was not on its disk
    assert session.read(conversations) == session.whole()
    session.say(4)
    assert session.read(conversations) == session.whole()
    session.begin_anew()
    session.say(1)
    assert session.read(conversations) == session.whole()


def test_a_very_long_history_is_read_in_part(session: Session) -> None:
    conversations = Conversations(session.client)
    session.say(MAX_READ_MESSAGES - 2)
    session.read(conversations)
    session.say(5)
    long = session.read(conversations)
    assert long == session.whole()
    assert (long.older, len(long.messages), long.length) == (3, MAX_READ_MESSAGES, MAX_READ_MESSAGES + 3)
    session.trim(3)
    assert session.read(conversations) == session.whole()


def test_of_many_histories_those_read_last_are_kept(session: Session) -> None:
    conversations = Conversations(session.client, max_bytes=10_000)
    session.say(5)
    session.read(conversations)
    assert conversations.known(KEY).end == 5
    session.say(5)
    assert session.read(conversations) == session.whole()
    assert conversations.known(KEY).end == 0  # 10 messages take more
    assert session.read(conversations) == session.whole()


@pytest.mark.parametrize("seed", range(20))
def test_two_processes_read_the_same_whatever_happens(session: Session, seed: int) -> None:
    chance = random.Random(seed)
    processes = [Conversations(session.client), Conversations(session.client)]
    for _ in range(40):
        match chance.randint(0, 9):
            case 0:
                session.trim(chance.randint(0, 4))
            case 1:
                session.compact(chance.randint(0, 4))
            case 2:
                session.begin_anew()
            case _:
                session.say(chance.randint(1, 3))
        read = session.read(chance.choice(processes))
        assert read == session.whole()
        assert read == with_sizes(read.messages)


@pytest.mark.parametrize("trims", [False, True])
def test_a_history_takes_what_is_kept_of_it(session: Session, trims: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long it has grown: else a long session would put every other out, and then itself."""
    monkeypatch.setattr(module, "MAX_READ_MESSAGES", 10)
    conversations = Conversations(session.client, max_bytes=20 * (module.BYTES_A_MESSAGE + 100))
    for _ in range(50):
        if trims and session.said >= 5:
            session.trim(1)
        session.say()
        session.read(conversations)
    known = conversations.known(KEY)
    kept = 5 if trims else 10
    assert len(known.conversation.messages) == kept
    assert 0 < known.taken_bytes - kept * module.BYTES_A_MESSAGE < kept * 200
    assert session.read(conversations) is known.conversation
