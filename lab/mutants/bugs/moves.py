"""Bugs of tombstones, and of moving a tenant to another cell."""

from __future__ import annotations

from lab.mutants.bug import Bug

MOVES = ("tests/contrib/cells/test_move.py",)
ORDER = ("tests/contrib/cells/test_move_order.py",)
CRASHES = ("tests/contrib/cells/test_move_crashes.py",)
DIED = (f"{CRASHES[0]}::test_a_move_that_died_after_each_of_its_acts_is_taken_up_again",)
FROZEN = (f"{CRASHES[0]}::test_a_mover_that_was_frozen_after_any_of_its_acts_changes_nothing_of_what_another_did",)
READS = ("tests/contrib/cells/test_move_reads.py",)
SIDE = ("tests/contrib/cells/test_side.py",)

BUGS = (
    Bug(
        "a turn begins in the cell that its tenant has left",
        "brainq/adapters/redis/lua/turn_submit.lua",
        "if word then return word:sub(1, 1) == ' ' and {'MOVING'}",
        "if word and state then return word:sub(1, 1) == ' ' and {'MOVING'}",
        ("tests/lua/test_turn_submit.py",),
    ),
    Bug(
        "a turn that came too late for the copy stays in the old cell",
        "brainq/engine/people/turn_queue.py",
        'if word == "MOVED":\n            self.tenants.send_turn',
        'if word == "GONE":\n            self.tenants.send_turn',
        MOVES,
    ),
    Bug(
        "whoever decides while a tenant is copied is told that its turn has ended",
        "brainq/engine/people/approvals.py",
        'if word == "GONE" and current.state == "pending":',
        'if word == "GONE" and current.state == "void":',
        MOVES,
    ),
    Bug(
        "input that is sent after a move passes what waited for it",
        "brainq/engine/people/inputs.py",
        "if has_come and known is None:",
        "if has_come and known is not None:",
        ORDER,
    ),
    Bug(
        "a tenant's mark is taken away while its input waits in SQL",
        "brainq/engine/people/lost_turns.py",
        "if self.lost_turns.bring_in(tenant) and self.inputs.bring_in(tenant):",
        "if self.lost_turns.bring_in(tenant):",
        ORDER,
    ),
    Bug(
        "a front asks the cell that a turn has left",
        "brainq/contrib/cells/routing.py",
        "if cell != self._tenants.cell_of(key):",
        "if not cell:",
        MOVES,
    ),
    Bug(
        "sessions of a tenant that moves are not hidden",
        "brainq/adapters/redis/lua/tenant_hide.lua",
        "redis.call('RENAMENX', root .. part, root .. 'moving:' .. part)",
        "redis.call('COPY', root .. part, root .. 'moving:' .. part)",
        ("tests/lua/test_tenants.py",),
    ),
    Bug(
        "a move is undone without showing the sessions again",
        "brainq/contrib/cells/side.py",
        "        self.keys.show(tenant)\n        yield\n        self.tombstones.arrive(tenant, self.name)",
        "        self.tombstones.arrive(tenant, self.name)",
        MOVES,
    ),
    Bug(
        "a turn that is submitted right after a move begins before one that waited while its tenant moved",
        "brainq/engine/people/turn_queue.py",
        "        if place is None or not place.has_come:\n            return place\n",
        "        if place is None or place.epoch:\n            return None if place and place.has_come else place\n",
        ORDER,
    ),
    Bug(
        "what came too late for the copy is sent after the new cell was opened",
        "brainq/contrib/cells/move.py",
        "self._source.send_new(self._target, tenant)",
        "0",
        ORDER,
    ),
    Bug(
        "a move that died in the middle of flipping does not name the new cell in the directory",
        "brainq/contrib/cells/move.py",
        "if not self._mover.directory.flip(tenant, placement.cell, placement.epoch):",
        "if not self._source.is_open_for(tenant) and not placement.cell:",
        CRASHES,
    ),
    Bug(
        "moves: an older copy is left where the next one goes",
        "brainq/contrib/cells/move.py",
        "        self._do_owned(self._target.clear(self._source, self._tenant))\n        self._upto",
        "        self._upto",
        MOVES,
    ),
    Bug(
        "moves: a mover that was frozen opens a cell",
        "brainq/contrib/cells/move.py",
        "        while True:\n            self._own()\n            try:",
        "        while True:\n            try:",
        FROZEN,
    ),
    Bug(
        "moves: a mover that was frozen copies on",
        "brainq/contrib/cells/move.py",
        "            for page in self._source.rows.pages(table, self._tenant):\n"
        "                self._own()\n"
        "                self._target",
        "            for page in self._source.rows.pages(table, self._tenant):\n                self._target",
        FROZEN,
    ),
    Bug(
        "moves: a mover that was frozen copies its keys over what is there",
        "brainq/contrib/cells/move.py",
        "        self._own()\n        copied",
        "        copied",
        FROZEN,
    ),
    Bug(
        "moves: a mover that was frozen takes jobs away",
        "brainq/contrib/cells/move.py",
        "            self._own()\n            self._source.rows.remove_jobs",
        "            self._source.rows.remove_jobs",
        FROZEN,
    ),
    Bug(
        "moves: a mover whose lease another has goes on",
        "brainq/contrib/cells/move.py",
        "        if self._is_lost.is_set() or time.monotonic() - self._kept_at > LEASE_S:",
        "        if self._is_lost.is_set() and time.monotonic() - self._kept_at > LEASE_S:",
        FROZEN,
    ),
    Bug(
        "moves: a session that people paused is resumed",
        "brainq/contrib/cells/side.py",
        "if self.sessions.why_paused(session_id) == PAUSED_WHY:",
        "if self.sessions.is_paused(session_id):",
        MOVES,
    ),
    Bug(
        "moves: sessions that waited stay paused",
        "brainq/contrib/cells/side.py",
        "                self.sessions.resume(session_id)",
        "                pass",
        MOVES,
    ),
    Bug(
        "moves: a waiting turn begins while its tenant is about to move",
        "brainq/contrib/cells/side.py",
        "            self.sessions.pause(session_id, PAUSED_WHY)",
        "            pass",
        MOVES,
    ),
    Bug(
        "moves: lanes are copied twice",
        "brainq/adapters/redis/tenant_keys.py",
        "if other._client.hsetnx(other._keys.lane_holders, holder, json.dumps(names)):",
        "if other._client.hset(other._keys.lane_holders, holder, json.dumps(names)) + 1:",
        MOVES,
    ),
    Bug(
        "moves: lanes are copied in the order of their holders",
        "brainq/adapters/redis/tenant_keys.py",
        "ordered = sorted(held, key=lambda holder: (places.get(holder, 0), holder))",
        "ordered = sorted(held)",
        MOVES,
    ),
    Bug(
        "moves: another tenant's place in a lane goes",
        "brainq/adapters/redis/tenant_keys.py",
        "self._client.lrem(self._keys.lane(lane), 0, holder)",
        "self._client.delete(self._keys.lane(lane))",
        MOVES,
    ),
    Bug(
        "moves: a row that changed after it was copied is not noticed",
        "brainq/contrib/cells/move.py",
        "if digest != there[name]]",
        "if digest.rows != there[name].rows]",
        MOVES,
    ),
    Bug(
        "moves: rows that change are copied for ever",
        "brainq/contrib/cells/move.py",
        "        if self._copies >= MOST_COPIES:",
        "        if self._copies >= MOST_COPIES * 9:",
        MOVES,
    ),
    Bug(
        "moves: keys that the copy lacks are not noticed",
        "brainq/contrib/cells/move.py",
        'return "flipping" if keys[0] == keys[1] else "copying"',
        'return "flipping"',
        MOVES,
    ),
    Bug(
        "moves: the directory is flipped before the new cell is open",
        "brainq/contrib/cells/move.py",
        "        self._do_owned(self._target.open_for(tenant))\n"
        "        self._own()\n"
        "        if not self._mover.directory.flip(tenant, placement.cell, placement.epoch):",
        "        if not self._mover.directory.flip(tenant, placement.cell, placement.epoch) or "
        "self._do_owned(self._target.open_for(tenant)):",
        DIED,
    ),
    Bug(
        "moves: the old cell's rows go while fronts still look there",
        "brainq/contrib/cells/move.py",
        "        time.sleep(self._mover.linger_s)\n        self._own()\n",
        "",
        READS,
    ),
    Bug(
        "moves: Redis knows of a move before SQL does",
        "brainq/contrib/cells/side.py",
        '        self.tombstones.put(tenant, "", epoch)\n'
        "        yield\n"
        '        self.words.put(tenant, Placement("", epoch))',
        '        self.words.put(tenant, Placement("", epoch))\n'
        "        yield\n"
        '        self.tombstones.put(tenant, "", epoch)',
        SIDE,
    ),
    Bug(
        "moves: a lease that ended with its process is waited for",
        "brainq/contrib/cells/move.py",
        "                self.moves.take(row.tenant, self.owner, 0.0)  #",
        "                self.moves.take(row.tenant, self.owner, 99.0)  #",
        ("tests/contrib/cells/test_move_command.py",),
    ),
    Bug(
        "moves: a tenant goes to a cell that another run has not chosen",
        "brainq/contrib/cells/move.py",
        'if row.to_cell != to_cell and row.phase != "undoing":',
        'if row.phase == "done":',
        ("tests/contrib/cells/test_move_command.py",),
    ),
    Bug(
        "moves: a tombstone that Redis lost stays lost",
        "brainq/adapters/redis/tenant_keys.py",
        "if tenant not in known or known[tenant].epoch < placement.epoch:",
        "if tenant in known and known[tenant].epoch < placement.epoch:",
        MOVES,
    ),
    Bug(
        "moves: a word of a move that SQL forgot stays",
        "brainq/adapters/redis/tenant_keys.py",
        "if tenant not in tombstones:\n                word",
        "if tenant in tombstones:\n                word",
        MOVES,
    ),
)
