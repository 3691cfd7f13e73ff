"""Several cells on one Redis Cluster: where each of them is, and a tenant that moves between them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from redis.exceptions import ConnectionError as RedisGone
from rich.console import Console

from brainq.adapters.redis.slot_primary import Shard, SlotPrimary, primary_of, slot_of
from brainq.cli.pages.fleet import print_cells
from brainq.client.cells import read_cells
from brainq.client.client import Client
from brainq.client.connection import cells_of
from brainq.contrib.cells.doctor import CellSlot, better_tag, check_cells, check_nodes
from brainq.runtime.settings.cluster_url import parse_cluster_url
from brainq.runtime.settings.deployment import load_settings
from tests.contrib.cells.test_move import go_on
from tests.contrib.cells.two import TENANT, TwoCells, parked_tenant
from tests.support.cluster import RedisCluster

NODES = [("10.0.0.1", 1), ("10.0.0.2", 1), ("10.0.0.3", 1)]
SHARDS = [Shard(((at * 5462, min(16383, at * 5462 + 5461)),), node, (node,)) for at, node in enumerate(NODES)]


@pytest.fixture
def two(whole: RedisCluster, tmp_path: Path) -> Iterator[TwoCells]:
    with TwoCells(tmp_path, (whole.url, whole.url)) as cells:
        yield cells


def test_each_cell_has_its_slot_and_node(two: TwoCells, whole: RedisCluster) -> None:
    with Client(load_settings(cells=two.cells), two.a.wiring.brains) as client:
        state = read_cells(cells_of(client))
    for name, cell in zip("ab", state.cells, strict=True):
        slot = slot_of(f"bq.{name}")
        assert (cell.slot, cell.node) == (slot, f"127.0.0.1:{whole.primary_port(slot)}")
    console = Console(width=120, record=True)
    print_cells(console, state)
    assert f"slot {slot_of('bq.a')} on {state.cells[0].node}" in console.export_text()


def test_a_tenant_moves_between_cells_whose_keys_have_other_prefixes(two: TwoCells, whole: RedisCluster) -> None:
    made = parked_tenant(two)
    before = two.rows("a")
    assert two.mover().move(TENANT, "b").phase == "done"
    assert two.rows("b") == before
    two.assert_here("b", 2)
    assert two.keys("a") == []
    assert all(name.startswith("{bq.b}:{acme:") for name in two.keys("b"))
    go_on(two, "b", made)


def test_what_is_outside_the_sessions_keys_moves_to_the_other_prefix(two: TwoCells) -> None:
    """A token of another service, a server's task, and a turn's place in the queue of a budget."""
    sides = [two.side(name) for name in "ab"]
    redis, token = two.a.wiring.state.redis, hashlib.sha256(b"foreign").hexdigest()[:32]
    turn = "{bq.a}:{acme:9}:moving:t:t9"
    redis.hset(turn, mapping={"line": "{bq.a}:{money}:line:all/day", "line_place": 7})
    redis.hset(f"{turn}:trace", "c1-0:token", "foreign")
    redis.set(f"{{bq.a}}:outside:{token}", "acme:9 t9 c1-0", px=60_000)
    redis.zadd("{bq.a}:tasks:read_only:b", {json.dumps({"call": "acme:9 t9 c1-0"}): 9})
    sides[0].keys.copy_to(sides[1].keys, TENANT)
    sides[0].keys.copy_outside(sides[1].keys, TENANT)
    there: Any = two.b.wiring.state.redis
    assert there.get(f"{{bq.b}}:outside:{token}") == "acme:9 t9 c1-0"
    assert there.zcard("{bq.b}:tasks:read_only:b") == 1
    assert there.hget("{bq.b}:{acme:9}:moving:t:t9", "line") == "{bq.b}:{money}:line:all/day"
    assert there.zscore("{bq.b}:{money}:line:all/day", "acme:9 t9") == 7
    for side in sides:
        side.close()


def test_doctor_names_the_node_that_two_cells_share_and_a_tag_that_is_on_another(
    two: TwoCells, whole: RedisCluster
) -> None:
    settings = load_settings(cells=two.cells)
    shards = SlotPrimary(parse_cluster_url(whole.url)).shards()
    apart = primary_of(shards, slot_of("bq.a")) != primary_of(shards, slot_of("bq.b"))
    checks = {check.name: check for check in check_cells(settings)}
    assert checks["nodes"].level == ("ok" if apart else "warn")
    assert checks["a redis"].level == checks["b redis"].level == "ok", "each is asked at its own slot"


def cell(tag: str) -> CellSlot:
    return CellSlot(tag, SHARDS)


def tags_on(node: int, count: int) -> list[str]:
    names = (f"bq.{letter}{number}" for letter in "ab" for number in range(1000))
    found = (name for name in names if primary_of(SHARDS, slot_of(name)) == NODES[node])
    return [next(found) for _ in range(count)]


def test_cells_on_different_nodes_are_right() -> None:
    found = check_nodes({str(at): cell(tags_on(at, 1)[0]) for at in range(3)})
    assert found.level == "ok"
    assert "on 10.0.0.3:1" in found.said


def test_each_cell_too_many_gets_a_tag_on_a_node_with_the_fewest() -> None:
    first, second, third = tags_on(0, 3)
    found = check_nodes({"a": cell(first), "b": cell(second), "c": cell(third)})
    assert found.level == "warn"
    proposed = [word.removeprefix("?tag=") for word in found.remedy.split() if word.startswith("?tag=")]
    assert [tag.rpartition(".")[0] for tag in proposed] == [second, third]
    assert {primary_of(SHARDS, slot_of(tag)) for tag in proposed} == set(NODES[1:])


def test_more_cells_than_nodes_need_more_nodes() -> None:
    tags = {str(at): cell(tags_on(at, 1)[0]) for at in range(3)} | {"x": cell(tags_on(0, 2)[1])}
    found = check_nodes(tags)
    assert (found.level, found.remedy) == ("warn", "add primaries to the cluster")
    assert better_tag(cell(tags_on(0, 1)[0]), {NODES[0]: 2, NODES[1]: 1, NODES[2]: 1}) is None


def test_a_cluster_without_a_node_that_answers_says_so() -> None:
    slot = SlotPrimary(parse_cluster_url("redis+cluster://127.0.0.1:1/?tag=bq"))
    with pytest.raises(RedisGone, match="no node of slot"):
        slot.shards()
