"""ops/redis/cluster.sh, which `docker compose --profile cluster` runs: it joins real nodes, and may run again."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cluster import RedisCluster

SCRIPT = Path(__file__).parents[3] / "ops/redis/cluster.sh"
REDIS_CLI = """#!{python}
import sys, redis
_, _, host, _, port, *command = sys.argv
with redis.Redis(host=host, port=int(port), decode_responses=True, protocol=2) as client:
    connection = client.connection_pool.get_connection()
    connection.send_command(*command)
    print(connection.read_response(), end="\\r\\n")
"""


@pytest.fixture
def nodes() -> Iterator[RedisCluster]:
    """Six nodes that do not know one another."""
    made = RedisCluster()
    try:
        for port in made.ports:
            made.serve(port)
        yield made
    finally:
        made.stop()


def join(nodes: RedisCluster, directory: Path) -> None:
    """Run the script with a redis-cli of this test."""
    program = directory / "redis-cli"
    program.write_text(REDIS_CLI.format(python=sys.executable))
    program.chmod(0o755)
    subprocess.run(
        ["sh", str(SCRIPT), *(f"127.0.0.1:{port}" for port in nodes.ports)],
        env={**os.environ, "PATH": f"{directory}:{os.environ['PATH']}"},
        check=True,
        timeout=120,
        capture_output=True,
    )


@pytest.mark.full
def test_nodes_become_one_cluster_and_stay_as_they_are_when_it_runs_again(nodes: RedisCluster, tmp_path: Path) -> None:
    join(nodes, tmp_path)
    assert sorted(nodes.primaries()) == sorted(nodes.ports[:3])
    nodes.mend()
    old = nodes.switch(0)
    before = {slot: nodes.primary_port(slot) for slot in (0, 8000, 16383)}
    join(nodes, tmp_path)
    assert {slot: nodes.primary_port(slot) for slot in (0, 8000, 16383)} == before
    assert nodes.primary_port(0) != old
