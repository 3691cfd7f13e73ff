"""Bugs of moving all keys to another Redis, and of several cells on one Redis Cluster."""

from __future__ import annotations

from lab.mutants.bug import Bug

MOVE = "brainq/adapters/redis/server_move.py"
KEYS = "brainq/adapters/redis/key_contents.py"
DOCTOR = "brainq/contrib/cells/doctor.py"
MOVES = ("tests/integration/fleet/test_redis_move.py",)
CELLS = ("tests/contrib/cells/test_cluster_cells.py",)

BUGS = (
    Bug(
        "server moves: a lease is nothing to wait for", MOVE, "float(until or 0) > now", "float(until or 0) < 0", MOVES
    ),
    Bug("server moves: a frozen worker is not noticed", MOVE, " | self._listening()", "", MOVES),
    Bug(
        "server moves: a held lane is not noticed",
        MOVE,
        'return held + [f"the lanes of {holder}" for holder in lanes]',
        "return held",
        MOVES,
    ),
    Bug(
        "server moves: the old server opens again",
        MOVE,
        '"moved", self.target.shown, by)',
        '"moved", "", by, 1)',
        MOVES,
    ),
    Bug(
        "server moves: whoever looks makes the mark of the old server end",
        "brainq/adapters/redis/sweeper.py",
        '("GETEX", key, "PX", EPOCH_KEPT_MS)',
        '("PEXPIRE", key, EPOCH_KEPT_MS), ("GET", key)',
        MOVES,
    ),
    Bug("server moves: other keys are written over", MOVE, "if not mark and (names :=", "if mark and (names :=", MOVES),
    Bug("server moves: clocks may differ", MOVE, "> MOST_SKEW_MS:", "> MOST_SKEW_MS * 100:", MOVES),
    Bug(
        "server moves: what the old server deleted meanwhile stays",
        MOVE,
        "changed += self._delete_others()",
        "changed += 0",
        MOVES,
    ),
    Bug("server moves: nothing is compared", MOVE, "if not changed:\n                return", "return", MOVES),
    Bug("server moves: keys lose their lifetimes", KEYS, "if content.expires_ms != NO_LIFETIME:", "if False:", MOVES),
    Bug(
        "server moves: a trimmed stream begins again",
        KEYS,
        'value.last_id, "ENTRIESADDED"',
        'b"9-0", "ENTRIESADDED"',
        MOVES,
    ),
    Bug(
        "server moves: a turn waits in the queue of the old prefix",
        KEYS,
        'return content._replace(value={**content.value, b"line": source.name_in(target, line)})',
        "return content",
        MOVES,
    ),
    Bug(
        "cells of a cluster: a token has the prefix of the old cell",
        "brainq/adapters/redis/tenant_keys.py",
        "return other._keys.prefix + name.removeprefix(self._keys.prefix)",
        "return name",
        CELLS,
    ),
    Bug("cells of a cluster: a tag is on a node with others", DOCTOR, "used.get(node, 0) == fewest", "node", CELLS),
    Bug("cells of a cluster: two proposals are alike", DOCTOR, "{nodes[name]: -1, found[1]: 1}", "{}", CELLS),
)
