"""The scripts of request keys."""

from __future__ import annotations

from typing import Any

import pytest

from tests.lua.rig import Rig

# request_try.lua and request_tried.lua: which request a client's retry is of, among others of the same content.


KEEP_MS = 900_000


class Client:
    """What its gateway notes of one client's tries."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self.drawn = 0
        self.tries = rig.keys.tries("d")

    def begin(self, number: int, state: str = "open", **given: Any) -> str:
        self.drawn += 1
        self.rig.pass_ms(10)
        options: dict[str, Any] = {"older": "", "keep_ms": KEEP_MS, "most": 5, **given}
        mark = f"k{self.drawn}"
        reply = self.rig.run("request_try", tries=self.tries, key=mark, number=number, state=state, **options)
        assert reply[0] == "KEY"
        return reply[1]

    def end(self, key: str, number: int, how: str) -> str:
        self.rig.pass_ms(10)
        return self.rig.once("request_tried", tries=self.tries, key=key, number=number, state=how)[0]


@pytest.fixture
def client(rig: Rig) -> Client:
    return Client(rig)


def test_first_tries_are_requests_of_their_own(client: Client) -> None:
    assert [client.begin(0) for _ in range(3)] == ["k1", "k2", "k3"]


def test_a_retry_of_what_was_cut_is_that_request_and_its_next_one_too(client: Client) -> None:
    first = client.begin(0)
    client.end(first, 0, "cut")
    assert client.begin(1) == first
    client.end(first, 1, "cut")
    assert client.begin(2) == first
    assert client.begin(0) != first


def test_what_was_refused_comes_again_before_what_is_open(client: Client) -> None:
    running = client.begin(0)
    refused = client.begin(0, "refused")
    assert client.begin(1) == refused
    assert client.begin(1) == running


def test_what_is_open_comes_again_before_what_was_answered(client: Client) -> None:
    answered = client.begin(0)
    running = client.begin(0)
    client.end(answered, 0, "sent")
    assert client.begin(1) == running
    assert client.begin(1) == answered


def test_the_newest_that_was_cut_and_the_oldest_that_is_open_come_first(client: Client) -> None:
    one, other = client.begin(0), client.begin(0)
    client.end(one, 0, "cut")
    client.end(other, 0, "cut")
    assert client.begin(1) == other
    old, _ = client.begin(0), client.begin(0)
    assert client.begin(1) == one
    assert client.begin(1) == old


def test_a_retry_is_of_the_try_before_it_not_of_one_as_far_on(client: Client) -> None:
    far = client.begin(0)
    client.end(far, 0, "cut")
    assert client.begin(1) == far
    near = client.begin(0)
    assert client.begin(2) == far
    assert client.begin(1) == near
    assert client.begin(1) not in (far, near)


def test_what_does_not_come_again_is_forgotten(client: Client) -> None:
    wrong = client.begin(0)
    client.end(wrong, 0, "over")
    assert client.begin(1) != wrong


def test_a_retry_of_the_previous_releases_is_known_by_its_key(client: Client) -> None:
    assert client.begin(1, older="theirs") == "theirs"
    client.end("theirs", 1, "cut")
    assert client.begin(2, older="theirs") == "theirs"


def test_only_the_newest_are_known_for_a_time(client: Client) -> None:
    first = client.begin(0)
    for _ in range(5):
        client.begin(0)
    assert client.rig.client.hlen(client.tries) == 5
    assert first not in client.rig.client.hkeys(client.tries)
    client.rig.pass_ms(KEEP_MS)
    assert client.begin(1) == f"k{client.drawn}"
    assert client.rig.client.hlen(client.tries) == 1
    assert 0 < client.rig.client.pttl(client.tries) <= KEEP_MS


# request_tried.lua: how a try ended.


def test_the_end_of_a_try_that_was_tried_again_since_is_not_the_next_ones(rig: Rig) -> None:
    client = Client(rig)
    first = client.begin(0)
    assert client.begin(1) == first
    assert client.end(first, 0, "cut") == "NONE"
    assert client.end(first, 1, "sent") == "NOTED"
    assert client.end(first, 1, "cut") == "NONE"
    assert client.end("k9", 0, "cut") == "NONE"
