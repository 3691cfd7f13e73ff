"""Every Redis key: its name, type, fields and lifetime.

Keys of a session and its turns share the hash tag `{session}`, so every script stays in one cluster slot.

    {session}:session         hash    live (turn id or empty), turns, trimmed, known_*      session lifetime
    {session}:waiting         list    ids of turns that wait for the live one               empties itself
    {session}:history         list    messages as JSON, append-only: what the model saw     session lifetime
    {session}:notices         list    messages for the model's next step (late writes)      session lifetime
    {session}:outbox          list    doorbells to publish (outbox mode only)               empties itself
    {session}:t:TURN          hash    state, awaits, fence, owner, lease_until, step, ...   turn lifetime
    {session}:t:TURN:spec     string  the TurnRequest as JSON                               turn lifetime
    {session}:t:TURN:budget   hash    deadline, *_max, *_used, claim:*, tokens, cost        turn lifetime
    {session}:t:TURN:trace    hash    CALL:status, CALL:attempt, CALL:lease, ...            turn lifetime
    {session}:t:TURN:guard    hash    fingerprint -> write epoch in which it succeeded      turn lifetime
    {session}:t:TURN:events   stream  1-0, 2-0, 3-0 ...                                     turn lifetime
    {session}:t:TURN:sources  list    citations and rendered paths as JSON                  turn lifetime
    {session}:t:TURN:spends   list    what each model call used, as JSON                    turn lifetime
    {session}:t:TURN:rung:J   string  judge J was rung a moment ago                         seconds
    {session}:t:TURN:blocked  set     tools blocked for the rest of the turn                turn lifetime
    {session}:t:TURN:result   string  the TurnResult as JSON                                turn lifetime
    {lanes}:holders           hash    holder -> its lines as JSON                           empties itself
    {lanes}:leases            zset    holder -> lease end, of those that hold their lanes   empties itself
    {lanes}:line:NAME         list    who holds the lane (first) and who waits              empties itself
    index                     zset    "session turn" -> when the sweeper looks next         empties itself
    bells                     hash    queue -> when its newest claimed doorbell was rung    1 day
    sweeping                  string  who compares SQL with Redis just now                  seconds
    brainq.*                  list    the broker's queues                                   the broker's

"Turn lifetime": none while the turn lives; `keep_turn_s` from the end of its finalizer. "Session lifetime":
none while a turn is live; `keep_session_s` after the last one.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Keys:
    """Makes the key names under one prefix, such as `bq:`."""

    prefix: str

    def of_session(self, session_id: str, part: str) -> str:
        return f"{self.prefix}{{{session_id}}}:{part}"

    def turns_base(self, session_id: str) -> str:
        return f"{self.prefix}{{{session_id}}}:t:"

    def turn(self, session_id: str, turn_id: str) -> str:
        return f"{self.prefix}{{{session_id}}}:t:{turn_id}"

    def lane(self, name: str) -> str:
        return f"{self.prefix}{{lanes}}:line:{name}"

    @property
    def holders(self) -> str:
        return f"{self.prefix}{{lanes}}:holders"

    @property
    def lane_leases(self) -> str:
        return f"{self.prefix}{{lanes}}:leases"

    @property
    def index(self) -> str:
        return f"{self.prefix}index"

    @property
    def bells(self) -> str:
        return f"{self.prefix}bells"

    @property
    def sweeping(self) -> str:
        return f"{self.prefix}sweeping"
