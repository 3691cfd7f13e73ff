"""What nodes say about a slot's primary, in every form that servers and managed services use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import redis
from redis.exceptions import NoPermissionError

from brainq.adapters.redis.slot_primary import Shard, SlotPrimary, primary_of, read_shards, read_slots
from brainq.runtime.settings.cluster_url import parse_cluster_url

ASKED = ("seed", 6000)
HERE, THERE = ("10.0.0.1", 6379), ("10.0.0.2", 6379)


def node(role: str = "master", **fields: Any) -> list[Any]:
    """A node of CLUSTER SHARDS, as RESP2 has it: names and values in turn."""
    given: dict[str, Any] = {"id": "x", "port": 6379, "ip": "10.0.0.1", "endpoint": "10.0.0.1", "role": role}
    given |= {"health": "online"} | fields
    return [part for name, value in given.items() if value is not ... for part in (name, value)]


def shards(*nodes: list[Any], slots: Sequence[int] = (0, 16383)) -> list[Any]:
    return [["slots", list(slots), "nodes", list(nodes)]]


@pytest.mark.parametrize(
    ("fields", "tls", "expected"),
    [
        ({}, False, HERE),
        ({"endpoint": "redis-1.example"}, False, ("redis-1.example", 6379)),
        ({"endpoint": "::1", "ip": "::1"}, False, ("::1", 6379)),
        ({"endpoint": ""}, False, HERE),
        ({"endpoint": "?"}, False, HERE),
        ({"endpoint": None}, False, HERE),
        ({"endpoint": ...}, False, HERE),
        ({"endpoint": None, "ip": ""}, False, ("seed", 6379)),
        ({"endpoint": "?", "ip": ...}, False, ("seed", 6379)),
        ({"tls-port": 6380}, True, ("10.0.0.1", 6380)),
        ({"tls-port": 6380}, False, HERE),
        ({"port": ..., "tls-port": 6380}, True, ("10.0.0.1", 6380)),
        ({"health": ...}, False, HERE),
    ],
)
def test_shards_name_the_primary_in_every_form(fields: dict[str, Any], tls: bool, expected: tuple[str, int]) -> None:
    found = read_shards(shards(node("replica", ip="10.0.0.2", endpoint="10.0.0.2"), node(**fields)), ASKED, tls=tls)
    assert primary_of(found, 7) == expected


@pytest.mark.parametrize("health", ["fail", "loading"])
def test_a_primary_that_is_not_healthy_is_none(health: str) -> None:
    assert primary_of(read_shards(shards(node(health=health)), ASKED, tls=False), 7) is None


def test_a_shard_may_have_several_ranges_or_none() -> None:
    several = read_shards(shards(node(), slots=(0, 1, 7, 7)), ASKED, tls=False)
    assert [primary_of(several, slot) for slot in (0, 1, 2, 7, 8)] == [HERE, HERE, None, HERE, None]
    assert primary_of(read_shards(shards(node(), slots=()), ASKED, tls=False), 0) is None


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        (["10.0.0.1", 6379], HERE),
        (["10.0.0.1", 6379, "id"], HERE),
        (["10.0.0.1", 6379, "id", []], HERE),
        (["redis-1.example", 6379, "id", ["ip", "10.0.0.1"]], ("redis-1.example", 6379)),
        ([None, 6379, "id", ["ip", "10.0.0.1"]], HERE),
        (["?", 6379, "id", ["hostname", "x", "ip", "10.0.0.1"]], HERE),
        ([None, 6379, "id", []], ("seed", 6379)),
        (["", 6379, "id", None], ("seed", 6379)),
    ],
)
def test_slots_name_the_primary_first(place: list[Any], expected: tuple[str, int]) -> None:
    found = read_slots([[0, 5, ["other", 1, "id", []]], [6, 16383, place, ["10.0.0.2", 6379, "id", []]]], ASKED)
    assert primary_of(found, 7) == expected
    assert found[1].nodes == (expected, THERE)


class Told(SlotPrimary):
    """Stands for a cluster of which each node says what it is given here."""

    def __init__(self, said: dict[tuple[str, int], Any]) -> None:
        super().__init__(parse_cluster_url(f"redis+cluster://{','.join(f'{h}:{p}' for h, p in said)}/?tag=bq"))
        self.said, self.asked = said, list[tuple[str, int]]()

    def _shards(self, node: tuple[str, int]) -> list[Shard]:
        self.asked.append(node)
        said = self.said.get(node, ConnectionRefusedError())
        if isinstance(said, Exception):
            raise said
        return [Shard(((0, 16383),), said, tuple(self.said))]


A, B, C = ("a", 1), ("b", 2), ("c", 3)


@pytest.mark.parametrize("_again", range(6))
def test_a_node_that_was_cut_off_does_not_outvote_the_others(_again: int) -> None:
    assert Told({A: A, B: B, C: B}).discover_master("") == B


def test_two_nodes_that_agree_are_enough() -> None:
    cluster = Told({A: B, B: B, C: B})
    assert cluster.discover_master("") == B
    assert len(cluster.asked) == 2


def test_the_only_node_that_answers_is_believed() -> None:
    assert Told({A: ConnectionRefusedError(), B: B, C: redis.TimeoutError()}).discover_master("") == B


def test_nodes_that_are_learned_are_asked_when_the_seeds_are_gone() -> None:
    cluster = Told({A: A, B: A, C: A})
    cluster.seeds = [A]
    assert cluster.discover_master("") == A
    cluster.said = {A: ConnectionRefusedError(), B: B, C: B}
    assert cluster.discover_master("") == B


def test_while_no_node_names_one_the_connection_fails() -> None:
    with pytest.raises(redis.ConnectionError, match="no node names the primary of slot"):
        Told({A: None, B: None, C: ConnectionRefusedError()}).discover_master("")


@pytest.mark.parametrize("refusal", [redis.AuthenticationError("WRONGPASS"), NoPermissionError("no")])
def test_a_login_that_is_refused_is_told_at_once(refusal: Exception) -> None:
    with pytest.raises(type(refusal)):
        Told({A: refusal, B: refusal}).discover_master("")
