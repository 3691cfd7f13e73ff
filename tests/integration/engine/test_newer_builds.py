"""What a newer build has written: its additional fields are left out, wherever stored JSON is read."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sqlalchemy import Table, select, update

from brainq.adapters.sql.tables.turn_tables import transcripts, turns
from brainq.contracts.status import Ending
from tests.support.brains import obedient
from tests.support.brains.obedient import script
from tests.support.pump import Pump

NEWER = {"newer": {"than": "this build"}}
PACKAGES = ("adapters", "client", "contracts", "engine", "fleet")
READS_OTHERS = {"brainq/client/http/parsing.py", "brainq/engine/tools/mcp/stdio_transport.py"}
"""Files that read the JSON of a gateway or an MCP server."""


def test_every_reader_of_stored_json_leaves_out_unknown_fields() -> None:
    paths = [path for name in PACKAGES for path in Path("brainq", name).rglob("*.py")]
    found = [(path.as_posix(), *reader) for path in paths for reader in readers_in(path)]
    strict = [f"{path}:{line}" for path, line, is_lenient in found if path not in READS_OTHERS and not is_lenient]
    assert len(found) > 20
    assert strict == []


def readers_in(path: Path) -> list[tuple[int, bool]]:
    """Return the line of each place that names a reader, called or passed on, and whether it leaves fields out."""
    names, nodes = ("validate_json", "model_validate_json", "from_stored"), list(ast.walk(ast.parse(path.read_text())))
    lenient = {id(node.func) for node in nodes if isinstance(node, ast.Call) and ignores_more(node)}
    found = [node for node in nodes if isinstance(node, ast.Attribute) and node.attr in names]
    return [(node.lineno, node.attr == "from_stored" or id(node) in lenient) for node in found]


def ignores_more(call: ast.Call) -> bool:
    return any(given.arg == "extra" and ast.unparse(given.value) == "'ignore'" for given in call.keywords)


def test_a_turn_with_fields_of_a_newer_build_ends_and_is_read(pumps: Callable[..., Pump]) -> None:
    pump = pumps(obedient.brain)
    first = pump.submit("s1", script([("read", {"name": "a"})], final="first"))
    pump.drain()
    handle = pump.submit("s1", script([("read", {"name": "b"})], final="second"))
    changed = 0
    while True:
        changed += extend_redis(pump) + extend_sql(pump, turns, "request_json", "result_json")
        changed += extend_sql(pump, transcripts, "message_json")
        if (bell := pump.take()) is None:
            break
        pump.answer(bell)
    assert changed > 10
    result = handle.result(timeout_s=60)
    assert (result.ending, result.text) == (Ending.COMPLETED, "second")
    assert [len(pump.client.handle(each.turn_id).calls()) for each in (first, handle)] == [1, 1]


def extend_redis(pump: Pump) -> int:
    """Add a field to each model that Redis keeps as JSON: requests, messages, outcomes and results."""
    redis: Any = pump.wiring.state.redis
    changed = 0
    for key in redis.keys("*:spec"):
        redis.set(key, extended(redis.get(key)), keepttl=True)
        changed += 1
    for key in redis.keys("*:history"):
        for place, item in enumerate(redis.lrange(key, 0, -1)):
            redis.lset(key, place, extended(item))
            changed += 1
    return changed


def extend_sql(pump: Pump, table: Table, *columns: str) -> int:
    engine = pump.wiring.store.database.engine
    changed = 0
    with engine.begin() as connection:
        for row in connection.execute(select(table)).mappings().all():
            where = [column == row[column.name] for column in table.primary_key.columns]
            values = {name: extended(row[name]) for name in columns if row[name]}
            changed += connection.execute(update(table).where(*where).values(values)).rowcount if values else 0
    return changed


def extended(text: str) -> str:
    return json.dumps({**json.loads(text), **NEWER})
