"""Every Redis key: its name, type, fields and lifetime.

Keys of a session and its turns share the hash tag `{session}`, so every script stays in one cluster slot.

    {session}:session         hash    live (or empty), paused, trimmed, history_stamp, ...  session lifetime
    {session}:waiting         list    ids of turns that wait for the live one               empties itself
    {session}:history         list    messages as JSON, append-only: what the model saw     session lifetime
    {session}:notices         list    messages for the model's next step (late writes)      session lifetime
    {session}:flags           hash    readiness flag -> JSON                                session lifetime
    {session}:readiness       list    flags no turn has taken yet, oldest first             session lifetime
    {session}:outbox          list    doorbells to publish (outbox mode only)               empties itself
    {session}:t:TURN          hash    state, awaits, fence, owner, lease_until, trace, ...  turn lifetime
    {session}:t:TURN:spec     string  the TurnRequest as JSON                               turn lifetime
    {session}:t:TURN:budget   hash    deadline, *_max, *_used, claim:*, tokens, cost        turn lifetime
    {session}:t:TURN:trace    hash    CALL:status, CALL:attempt, CALL:lease, ...            turn lifetime
    {session}:t:TURN:guard    hash    fingerprint -> write epoch in which it succeeded      turn lifetime
    {session}:t:TURN:events   stream  1-0, 2-0, 3-0 ...                                     turn lifetime
    {session}:t:TURN:sources  list    citations and rendered paths as JSON                  turn lifetime
    {session}:t:TURN:spends   list    what each model call used, as JSON                    turn lifetime
    {session}:t:TURN:rung:J   string  job J in SQL was rung for a moment ago                seconds
    {session}:t:TURN:blocked  set     tools blocked for the rest of the turn                turn lifetime
    {session}:t:TURN:mailbox  list    input no step has read yet, as JSON                   turn lifetime
    {session}:t:TURN:receipts hash    client_message_id -> what became of the input         turn lifetime
    {session}:t:TURN:changes  list    what its calls changed, as JSON                       turn lifetime
    {session}:t:TURN:history  list    messages of a turn with a history of its own          turn lifetime
    {session}:t:TURN:result   string  the TurnResult as JSON                                turn lifetime
    {lanes}:holders           hash    holder -> its lanes as JSON                           empties itself
    {lanes}:leases            zset    holder -> lease end, of those that hold their lanes   empties itself
    {lanes}:line:NAME         list    who holds the lane (first) and who waits              empties itself
    {room}:size               hash    how many turns may be live; TENANT:, brain NAME, until  1 day
    {room}:live               zset    "session turn" of live turns that are not parked      empties itself
                                      and " BRAIN session turn" where that has a cap
    {room}:tenants            zset    tenants that wait and have a share left, in rotation  empties itself
    {room}:capped             zset    tenants that wait and have no share left                empties itself
    {room}:passed             hash    tenant -> how often a lower priority was passed       empties itself
    {room}:line:TENANT        zset    sessions whose next turn waits for room               empties itself
    {room}:for                hash    session -> the capped brain its next turn waits for   empties itself
    {room}:for:BRAIN          zset    tenants whose sessions stand aside, in rotation       empties itself
    {room}:for:BRAIN TENANT   zset    those sessions, by their places in the tenant's line  empties itself
    {room}:next:BRAIN TENANT  set     those of them that are in the line                    empties itself
    {money}:w:SCOPE/PER:START hash    granted, spent, held, n, blind, run, full, returned   its window, and a day
    {money}:trust:SCOPE       string  how many times a reservation bills were of late       40 days after its last use
    {money}:line:SCOPE/PER    zset    "session turn" that is parked for money -> its place  empties itself, or a window
    {money}:line:X:rounds     hash    tenant -> how many of its turns were parked there     its window, and a day
    {money}:call:ID           hash    what a call after a turn's end took                   1 day
    budgets                   channel a budget was set                                      -
    {LIST}:queue              zset    what waits for its tenant's turn: "session turn" for  empties itself, or 1 day
                                      `finalize`, "session turn call" for an effect
    {LIST}:tenants            zset    tenant -> the score of its last; present              empties itself, or 1 day
    index                     zset    "session turn" -> when the sweeper looks next         empties itself
    bells                     hash    queue -> when its newest claimed doorbell was rung    1 day
                                      `stops`: there are operators' stops
    outside:TOKEN             string  "session turn call" that waits for this token         as long as it may wait
    tasks:EFFECT:BRAIN        zset    server's task as JSON -> until when it is watched     as long as calls may wait
    taking:DIGEST             string  a server's task that nobody watched is just taken     seconds
    tries:DIGEST              hash    request key -> "number state at mark" of its last try 15 minutes after the last
    asked:DIGEST              string  as the previous release knows such a request          15 minutes
    bulk:ID                   hash    `report` of a bulk, as JSON; `stop`: it is to stop    7 days after its last word
    stops                     channel "session turn" of a turn that is to stop              -
    stopped                   hash    KIND NAME TENANT -> MODE ENDS JSON: operators' stops  1 day, which sweepers renew
                              channel something was stopped                                 -
    run                       string  which Redis this is: run_id and master_replid          10 seconds
    swept                     string  when a sweeper last took what is due                  1 day
    sweeping                  string  who compares SQL with Redis just now                  seconds
    wake:READER               stream  has a reader of many streams look at them again       a minute
    rate:NAME:places          zset    request -> until when it counts in its window         1 day after its last use
    rate:NAME:line            zset    TENANT N, for each who waits -> the tag of its turn   1 day after its last use
    rate:NAME:order           zset    who waits: TENANT RANK N TICKET                       1 day after its last use
    rate:NAME:tenants         zset    tenant -> the tag at which its next one may go        1 day after its last use
    rate:NAME:by              hash    tenant -> how many places it has                      1 day after its last use
    rate:NAME:due             zset    who waits -> when they are expected                   1 day after its last use
    rate:NAME:rule            hash    requests, tokens, share, present, sum, t:ID, ...      1 day after its last use
    moved                     hash    tenant key -> `CELL EPOCH` it moved to, no cell      while it is not here again
                                      while it is about to
    {session}:moving:*        as they are under `{session}:`, while the tenant moves        until it has moved
    limited                   zset    NAME of a limited model -> learned until, or 0        1 day after its last use
    limited                   channel NAME of a model whose limits were just learned        -
    epoch                     string  new when Redis was emptied                            1 day
                              hash    state, other, by: a move has closed this Redis        until it is open again
    workers                   set     names of workers that reported                       1 day
    presence                  hash    process -> the Redis that saw it, and since when not  10 minutes
    alive:PROCESS             channel that this process listens to as long as it lives      -
    worker:NAME               string  a worker's report, as JSON                           seconds
    build:NAME                string  which build the worker is of, and its brains, as JSON  seconds
    serves:QUEUE:DIGEST       string  the build whose workers read it and have that brain  1 day after its report
    builds                    hash    "BUILD BRAIN" -> the brain's digest                  90 days after its last report
    builds:seen               zset    build -> when one of its workers last reported       90 days
    released                  hash    digest -> the one that goes on with what is pinned to it  90 days
    ramp                      string  on which builds turns begin, as JSON                 90 days, which workers renew
    draining:NAME             string  the same, of one that was asked to stop               seconds
    metrics                   hash    cell -> what all processes counted, see RedisMetrics  30 days
    flushed:PROCESS           string  the number of the last batch that this process added      1 day
    brainq.*                  list    the broker's queues                                   the broker's

"Turn lifetime": none while the turn lives; `keep_turn_s` from the end of its finalizer. "Session lifetime":
none while a turn is live; `keep_session_s` after the last one.
"""

from __future__ import annotations

from brainq.contracts.ids import tenant_of

OF_SESSION = frozenset({"session", "waiting", "history", "notices", "flags", "readiness"})
"""The keys of a session, by their names in scripts."""

OF_TURN = {
    name: name
    for name in (
        *("turn", "spec", "budget", "trace", "guard", "events", "sources", "spends", "blocked"),
        *("mailbox", "receipts", "changes", "result"),
    )
} | {"own_history": "history"}
"""The keys of a turn, by their names in scripts, with their suffixes."""

GLOBAL = {
    "leases": "lane_leases",
    "index": "index",
    "swept": "swept",
    "run": "run",
    "stopped": "stopped",
    "capacity": "room",
    "limited": "limited",
    "moved": "moved",
    "metrics": "metrics",
    "presence": "presence",
}
"""The keys that belong to no session or turn, by their names in scripts, with their names in `Keys`."""

OF_CALLS = {
    **{part: f'keys.rate(model, "{part}")' for part in ("places", "line", "order", "due", "rule", "tenants", "by")},
    "counter": "f\"{keys.money('w', window.name)}:{start_ms}\"",
    "flushed": "keys.flushed(process)",
    "parked_line": 'keys.money("line", name)',
    "rung": 'f"{turn_key}:rung:{bell}"',
    "ticket": 'keys.money("call", call_id)',
    "tries": "keys.tries(digest)",
}
"""The keys that are made of arguments of a call, by their names in scripts, with the Python that makes them."""

DERIVED = {
    "sid": "session_id",
    "tid": "turn_id",
    "base": "keys.turns_base(session_id)",
    "channel": "keys.stops",
    "prefix": "keys.prefix",
    "channels": "keys.alive",
    "brains": "self._build.words",
    "declared": "self._build.declared",
    "cell_tenant": '(tenant_key(session_id) if self._in_cells else "")',
}
"""Arguments of scripts that follow from where the script runs, with the Python that makes them."""

BASES = {
    "session_key": 'f"{keys.prefix}{{{session_id}}}:"',
    "turn_key": 'f"{keys.prefix}{{{session_id}}}:t:{turn_id}"',
}
"""The prefixes of the keys of a session and of a turn, with the Python that makes them."""


def key_source(name: str) -> str:
    """Return the Python that makes the key with this name in scripts. Raises KeyError for an unknown name."""
    if name in OF_TURN:
        part = _turn_part(name)
        return f'turn_key + "{part}"' if part else "turn_key"
    if name in OF_SESSION:
        return f'session_key + "{name}"'
    return f"keys.{GLOBAL[name]}" if name in GLOBAL else OF_CALLS[name]


def _turn_part(name: str) -> str:
    return "" if name == "turn" else f":{OF_TURN[name]}"


class Keys:
    """The key names under one prefix, such as `bq:`."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.index = f"{prefix}index"
        self.bells = f"{prefix}bells"
        self.run = f"{prefix}run"
        self.swept = f"{prefix}swept"
        self.epoch = f"{prefix}epoch"
        self.sweeping = f"{prefix}sweeping"
        self.stops = f"{prefix}stops"
        self.stopped = f"{prefix}stopped"
        self.limited = f"{prefix}limited"
        self.moved = f"{prefix}moved"
        self.workers = f"{prefix}workers"
        self.budgets = f"{prefix}budgets"
        self.metrics = f"{prefix}metrics"
        self.presence = f"{prefix}presence"
        self.alive = f"{prefix}alive:"  # The prefix of the channels to which processes listen.
        self.lanes = f"{prefix}{{lanes}}:"
        self.lane_leases = f"{prefix}{{lanes}}:leases"
        self.lane_holders = f"{prefix}{{lanes}}:holders"
        self.room = f"{prefix}{{room}}:size"  # The keys of live and waiting turns have the same prefix.
        self.room_live = f"{prefix}{{room}}:live"
        self.room_capped = f"{prefix}{{room}}:capped"
        self.room_tenants = f"{prefix}{{room}}:tenants"
        self.builds = f"{prefix}builds"
        self.builds_seen = f"{prefix}builds:seen"
        self.released = f"{prefix}released"
        self.ramp = f"{prefix}ramp"
        # The capped brain that a session waits for, in the queue or deferred.
        self.room_brains = f"{prefix}{{room}}:for"

    def session(self, session_id: str) -> str:
        """Return the prefix of a session's keys."""
        return f"{self.prefix}{{{session_id}}}:"

    def of_session(self, session_id: str, part: str) -> str:
        return f"{self.prefix}{{{session_id}}}:{part}"

    def turns_base(self, session_id: str) -> str:
        return f"{self.prefix}{{{session_id}}}:t:"

    def turn(self, session_id: str, turn_id: str) -> str:
        return f"{self.prefix}{{{session_id}}}:t:{turn_id}"

    def history(self, session_id: str, turn_id: str, *, isolated: bool) -> str:
        """Return the key of the turn's message history: the session's, or the turn's own if it is isolated."""
        return self.turn(session_id, turn_id) + ":history" if isolated else self.of_session(session_id, "history")

    def named(self, name: str, session_id: str, turn_id: str) -> str:
        """Return the key with this name in scripts, for this session and turn. Raises KeyError for an unknown name."""
        if name in OF_TURN:
            return self.turn(session_id, turn_id) + _turn_part(name)
        return self.of_session(session_id, name) if name in OF_SESSION else getattr(self, GLOBAL[name])

    def outside(self, token_digest: str) -> str:
        return f"{self.prefix}outside:{token_digest}"

    def server_tasks(self, brain: str, effect: str) -> str:
        return f"{self.prefix}tasks:{effect}:{brain}"

    def taking(self, digest: str) -> str:
        return f"{self.prefix}taking:{digest}"

    def tries(self, digest: str) -> str:
        return f"{self.prefix}tries:{digest}"

    def asked(self, digest: str) -> str:
        return f"{self.prefix}asked:{digest}"

    def bulk(self, bulk_id: str) -> str:
        return f"{self.prefix}bulk:{bulk_id}"

    def rate(self, name: str, part: str) -> str:
        return f"{self.prefix}rate:{name}:{part}"

    def money(self, part: str, name: str) -> str:
        """Return a key of budgets: `w:` with a window's start, `trust`, `line` or `call`."""
        return f"{self.prefix}{{money}}:{part}:{name}"

    def wake(self, reader: str) -> str:
        return f"{self.prefix}wake:{reader}"

    def lane(self, name: str) -> str:
        return f"{self.lanes}line:{name}"

    def tenant_queue(self, word: str) -> str:
        """Return the key of the tenants' queue for one of the broker's lists: `finalize`, or an effect."""
        return f"{self.prefix}{{{word}}}:queue"

    def room_line(self, session_id: str) -> str:
        """Return the key of the tenant's wait queue for capacity."""
        return f"{self.prefix}{{room}}:line:{tenant_of(session_id)}"

    def room_for(self, brain: str) -> str:
        return f"{self.prefix}{{room}}:for:{brain}"

    def capacity_deferred(self, brain: str, session_id: str) -> str:
        """Return the key of the tenant's sessions that are deferred because the brain is at its cap."""
        return f"{self.room_for(brain)} {tenant_of(session_id)}"

    def worker(self, name: str, *, draining: bool = False) -> str:
        return f"{self.prefix}{'draining' if draining else 'worker'}:{name}"

    def build(self, worker: str) -> str:
        return f"{self.prefix}build:{worker}"

    def serves(self, word: str, digest: str) -> str:
        """Return the key that workers set if they read this queue and have the brain of this digest, or are of
        `@BUILD`."""
        return f"{self.prefix}serves:{word}:{digest}"

    def flushed(self, process: str) -> str:
        return f"{self.prefix}flushed:{process}"
