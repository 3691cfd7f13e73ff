"""Bugs of tombstones, and of moving a tenant to another cell."""

from __future__ import annotations

from ops.mutants.bug import Bug

MOVES = ("tests/integration/cells/test_move.py",)
ORDER = ("tests/integration/cells/test_move_order.py",)
CRASHES = ("tests/integration/cells/test_move_crashes.py",)

BUGS = (
    Bug(
        "a turn begins in the cell that its tenant has left",
        "brainq/state/lua/turn_submit.lua",
        "if word then return word:sub(1, 1) == ' ' and {'MOVING'}",
        "if word and state then return word:sub(1, 1) == ' ' and {'MOVING'}",
        ("tests/lua/test_turn_submit.py",),
    ),
    Bug(
        "a turn that came too late for the copy stays in the old cell",
        "brainq/people/lost_turns.py",
        'if word == "MOVED":\n            self.tenants.send_turn',
        'if word == "GONE":\n            self.tenants.send_turn',
        MOVES,
    ),
    Bug(
        "whoever decides while a tenant is copied is told that its turn has ended",
        "brainq/people/approvals.py",
        'if word == "GONE" and current.state == "pending":',
        'if word == "GONE" and current.state == "void":',
        MOVES,
    ),
    Bug(
        "input that is sent after a move passes what waited for it",
        "brainq/people/inputs.py",
        "if has_come and known is None:",
        "if has_come and known is not None:",
        ORDER,
    ),
    Bug(
        "a tenant's mark is taken away while its input waits in SQL",
        "brainq/upkeep/sweeper.py",
        "if self.lost_turns.bring_in(tenant) and self.inputs.bring_in(tenant):",
        "if self.lost_turns.bring_in(tenant):",
        ORDER,
    ),
    Bug(
        "a front asks the cell that a turn has left",
        "brainq/cells/routing.py",
        "if cell != self._tenants.cell_of(key):",
        "if not cell:",
        MOVES,
    ),
    Bug(
        "sessions of a tenant that moves are not hidden",
        "brainq/state/lua/tenant_hide.lua",
        "redis.call('RENAMENX', root .. part, root .. 'moving:' .. part)",
        "redis.call('COPY', root .. part, root .. 'moving:' .. part)",
        ("tests/lua/test_tenant_hide.py",),
    ),
    Bug(
        "a move is undone without showing the sessions again",
        "brainq/cells/side.py",
        "        self.keys.show(tenant)\n        self.tombstones.arrive(tenant, self.name)",
        "        self.tombstones.arrive(tenant, self.name)",
        MOVES,
    ),
    Bug(
        "a turn that is submitted right after a move begins before one that waited while its tenant moved",
        "brainq/people/lost_turns.py",
        "        if place is None or not place.has_come:\n            return place\n",
        "        if place is None or place.epoch:\n            return None if place and place.has_come else place\n",
        ORDER,
    ),
    Bug(
        "what came too late for the copy is sent after the new cell was opened",
        "brainq/cells/move.py",
        "self._source.send_new(self._target, tenant)",
        "0",
        ORDER,
    ),
    Bug(
        "a move that died in the middle of flipping does not name the new cell in the directory",
        "brainq/cells/move.py",
        "if not self._mover.directory.flip(tenant, placement.cell, placement.epoch):",
        "if not self._source.is_open_for(tenant) and not placement.cell:",
        CRASHES,
    ),
)
